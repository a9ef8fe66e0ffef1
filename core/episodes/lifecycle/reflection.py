"""Add a reflection to `reflections.jsonl` of a task."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from core.base.errors import BadInput
from core.base.validation import check_choice, check_text
from core.episodes.folders import TaskFolder, find_attempt_folder
from core.episodes.reflection_format import TRIGGERS, TYPE_OF, TYPES, attempt_trigger, draft_parts, reflection_record
from core.episodes.strict_reader import StrictReader
from core.records.reflections import Reflection
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_BYTES

_MAX_FILE_BYTES: Final = MAX_BYTES // 4 * 3
"""Size of `reflections.jsonl` up to which reflections are added; the rest is reserved for drafts."""


def add_reflection(
    folder: TaskFolder,
    attempt: int | None,
    parts: Mapping[str, Any],
    trigger: str,
    reflection_type: str | None,
    now: datetime,
) -> Reflection:
    """Append a reflection unless it equals the last one on the attempt; the caller holds the lock of the task.

    Args:
        attempt: By default the newest.
        parts: `observation`, `analysis`, `learning` and `action_items`; empty ones are taken from the draft.
        reflection_type: By default the one for the outcome of the attempt.

    Raises:
        BadInput: The trigger or type is unknown, or the file would become too long.
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
    all_parts = {**parts, **(draft_parts(drafts[0]) if drafts else {}), **given}
    record = reflection_record(number, now, **all_parts, triggered_by=trigger, reflection_type=reflection_type)
    records = (line.value for line in reader.reflection_lines())
    earlier = [one for one in records if isinstance(one, dict) and one.get("attempt_id") == number]
    repeated = {**given, "triggered_by": trigger, "reflection_type": reflection_type}
    if not earlier or drafts or {**earlier[-1], **repeated} != earlier[-1]:
        _append(folder, msgspec.json.encode(record))
    return [one for one in reader.reflections() if one.attempt == number][-1]


def _append(folder: TaskFolder, line: bytes) -> None:
    size = len(line) + (folder.reflections.stat().st_size if folder.reflections.exists() else 0)
    if size > _MAX_FILE_BYTES:
        limit = f"{size:,} bytes; at most {_MAX_FILE_BYTES:,} are kept"
        raise BadInput(f"with this one the reflections on {folder.id} have {limit}: shorten it")
    AppendLog(folder.reflections).append([line])
