"""Reflections as documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from core.documents.document import Block, Code, Document, Moment, fields, items, line
from core.documents.signs import outcome_sign
from core.records.loops import Outcome

if TYPE_CHECKING:
    from core.records.reflections import Reflection
    from core.state.project_state import ProjectState

DRAFT = "draft, not reviewed yet"


def reflection_document(state: ProjectState, reflection: Reflection) -> Document:
    """Describe one reflection with its loop or task, its trigger and its files."""
    loop = state.snapshot.loops.get(reflection.loop_id)
    task = f"  {loop.task}" if loop else "  (unknown loop)"
    known = reflection.outcome is not Outcome.UNKNOWN or reflection.trigger or reflection.effectiveness
    outcome = (outcome_sign(reflection.outcome),) if known else None
    return Document(
        reflection.id,
        (
            head(reflection),
            *fields(
                ("Outcome", outcome),
                ("Trigger", reflection.trigger),
                ("Effect", reflection.effectiveness),
                ("Loop", ((reflection.loop_id, "accent"), (task, "quiet")) if reflection.loop_id else None),
                ("Task", reflection.task_id),
            ),
            *answers(reflection),
            *fields(("File", f"{reflection.file} ({reflection.shape})"), ("Also in", ", ".join(reflection.also_in))),
        ),
    )


def head(reflection: Reflection, where: str = "") -> Block:
    return line(
        (f"{where}   ", "name") if where else None,
        (kind_word(reflection), "strong name"),
        "   ",
        Moment(reflection.at),
        (" (time of its file)", "quiet") if reflection.at_approximate else None,
        (f"   {DRAFT}", "warning") if reflection.draft else None,
        ("   replaced by a later one", "quiet") if reflection.superseded else None,
    )


def answers(reflection: Reflection) -> Iterable[Block]:
    """Describe what happened, why, what to do differently, and action items."""
    for label, text in (
        ("What happened", reflection.observation),
        ("Why", reflection.analysis),
        ("What to do differently", reflection.learning),
    ):
        if text:
            yield Code(text, label, "", 2)
    yield from items("Action items", reflection.actions, is_numbered=True)


def kind_word(reflection: Reflection) -> str:
    return reflection.kind.replace("_", " ") or "reflection"
