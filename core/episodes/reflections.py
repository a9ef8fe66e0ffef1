"""The format of reflections (docs/task-memory.md#reflections)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.base.validation import check_choice, check_text
from core.episodes.folders import TaskFolder, find_attempt_folder
from core.episodes.strict_reader import StrictReader
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_BYTES

TEMPLATE: Final = """\
## Reflection on Attempt {attempt_id}

**Observation**: What happened during this attempt?
{observation}

**Analysis**: Why did this happen?
{analysis}

**Learning**: What should be done differently?
{learning}

**Action Items**:
{action_items}
"""
"""The template of a reflection, as Markdown."""
TRIGGERS: Final = ("failure", "success", "timeout", "manual")  # values of `triggered_by`
TYPES: Final = ("error-analysis", "success-pattern", "process-improvement")  # values of `reflection_type`
TYPE_OF: Final = {
    "attempt_failure": "error-analysis",
    "attempt_success": "success-pattern",
    "attempt_timeout": "process-improvement",
    "task_completion": "process-improvement",
}
"""The type of a reflection by its trigger."""
TASK_COMPLETION: Final = "task_completion"
LEFT_UNFINISHED: Final = "left unfinished"  # the reason of an abandoned attempt
NOT_REVIEWED: Final = "Drafted from the action log, which shows what was done and what failed, but not why."
"""The last sentence of the analysis of a draft."""
_MISSING: Final = "Not given."
_NO_ITEMS: Final = "None."
_MAX_FILE_BYTES: Final = MAX_BYTES // 4 * 3
"""Size of `reflections.jsonl` up to which reflections are added; the rest is reserved for drafts."""


def attempt_trigger(outcome: Outcome) -> str:
    """The trigger of a reflection on an attempt with this outcome."""
    return f"attempt_{outcome.value}"


def render_reflection(
    attempt_id: int, observation: str, analysis: str, learning: str, action_items: Sequence[str]
) -> str:
    """Fill in the Markdown template; missing parts are marked."""
    items = "\n".join(f"{number}. {item}" for number, item in enumerate(action_items, 1)) or _NO_ITEMS
    texts = {"observation": observation, "analysis": analysis, "learning": learning}
    texts = {name: text or _MISSING for name, text in texts.items()} | {"action_items": items}
    return TEMPLATE.format(attempt_id=attempt_id, **texts)


def add_reflection(
    folder: TaskFolder,
    attempt: int | None,
    parts: Mapping[str, Any],
    trigger: str,
    reflection_type: str | None,
    now: datetime,
) -> Reflection:
    """Append a reflection unless it repeats the last one on the attempt, by default the newest.

    `parts` are `observation`, `analysis`, `learning` and `action_items`; empty ones are taken from the draft.
    `reflection_type` is by default the one for the outcome of the attempt. Raises BadInput if the trigger or type is
    unknown, or the file would become too long.
    """
    check_choice(trigger, "trigger", TRIGGERS)
    if reflection_type is not None:
        check_text(reflection_type, "reflection_type")
        reflection_type = reflection_type.replace("_", "-")
        check_choice(reflection_type, "reflection_type", TYPES)
    given = {name: part for name, part in parts.items() if part}
    number = find_attempt_folder(folder, attempt).number
    reader = StrictReader(folder)
    outcome = reader.attempt(number).outcome
    reflection_type = reflection_type or TYPE_OF.get(attempt_trigger(outcome), TYPES[-1])
    drafts = [one for one in reader.reflections() if one.draft and one.attempt == number]
    drafted = (
        {}
        if not drafts
        else {
            "observation": drafts[0].observation,
            "analysis": drafts[0].analysis.removesuffix(NOT_REVIEWED).rstrip(),
            "learning": drafts[0].learning if drafts[0].teaches else "",
            "action_items": list(drafts[0].actions),
        }
    )
    all_parts = {**parts, **drafted, **given}
    records = (line.value for line in reader.reflection_lines())
    earlier = [one for one in records if isinstance(one, dict) and one.get("attempt_id") == number]
    kind = {"triggered_by": trigger, "reflection_type": reflection_type}
    repeated = {**given, **kind}
    if not earlier or drafts or {**earlier[-1], **repeated} != earlier[-1]:
        line = msgspec.json.encode({"timestamp": iso(now), "attempt_id": number, **all_parts, **kind})
        size = len(line) + (folder.reflections.stat().st_size if folder.reflections.exists() else 0)
        if size > _MAX_FILE_BYTES:
            limit = f"{size:,} bytes; at most {_MAX_FILE_BYTES:,} are kept"
            raise BadInput(f"with this one the reflections on {folder.id} have {limit}: shorten it")
        AppendLog(folder.reflections).append([line])
    return [one for one in reader.reflections() if one.attempt == number][-1]
