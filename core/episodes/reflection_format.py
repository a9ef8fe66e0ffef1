"""The format of reflections: template, triggers, types and stored fields (docs/task-memory.md#reflections)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso

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
TRIGGERS: Final = ("failure", "success", "timeout", "manual")
"""Values of `triggered_by`."""
TYPES: Final = ("error-analysis", "success-pattern", "process-improvement")
"""Values of `reflection_type`."""
TYPE_OF: Final = {
    "attempt_failure": "error-analysis",
    "attempt_success": "success-pattern",
    "attempt_timeout": "process-improvement",
    "task_completion": "process-improvement",
}
"""The type of a reflection by its trigger."""
TASK_COMPLETION: Final = "task_completion"
LEFT_UNFINISHED: Final = "left unfinished"
"""The reason of an abandoned attempt."""
NOT_REVIEWED: Final = "Drafted from the action log, which shows what was done and what failed, but not why."
"""The last sentence of the analysis of a draft."""
_MISSING: Final = "Not given."
_NO_ITEMS: Final = "None."


def attempt_trigger(outcome: Outcome) -> str:
    """The trigger of a reflection on an attempt with this outcome."""
    return f"attempt_{outcome.value}"


def render_reflection(
    attempt_id: int, observation: str, analysis: str, learning: str, action_items: Sequence[str]
) -> str:
    """Fill in the template with numbered action items; Markdown. Missing parts are marked."""
    items = "\n".join(f"{number}. {item}" for number, item in enumerate(action_items, 1)) or _NO_ITEMS
    texts = {"observation": observation, "analysis": analysis, "learning": learning}
    texts = {name: text or _MISSING for name, text in texts.items()} | {"action_items": items}
    return TEMPLATE.format(attempt_id=attempt_id, **texts)


def reflection_record(
    attempt_id: int,
    at: datetime,
    *,
    observation: str,
    analysis: str,
    learning: str,
    action_items: Sequence[str],
    triggered_by: str,
    reflection_type: str,
) -> dict[str, Any]:
    """A line of `reflections.jsonl`."""
    return {
        "timestamp": iso(at),
        "attempt_id": attempt_id,
        "observation": observation,
        "analysis": analysis,
        "learning": learning,
        "action_items": list(action_items),
        "triggered_by": triggered_by,
        "reflection_type": reflection_type,
    }


def draft_parts(draft: Reflection) -> dict[str, Any]:
    """The parts of a draft that a reflection by an agent takes over, without the note that it is a draft."""
    return {
        "observation": draft.observation,
        "analysis": draft.analysis.removesuffix(NOT_REVIEWED).rstrip(),
        "learning": draft.learning if draft.teaches else "",
        "action_items": list(draft.actions),
    }
