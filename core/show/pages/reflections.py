"""Reflections as documents (docs/task-memory.md#reflections)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from core.records.loops import Outcome
from core.show.pages.document import Block, Document, Moment, Passage, Section, fields, line
from core.show.pages.signs import outcome_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.reflections import Reflection

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
            *template(reflection),
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


def reflection_section(reflection: Reflection) -> Section:
    """Describe a reflection on an attempt or a task below its heading."""
    where = "the task" if reflection.attempt is None else f"Attempt {reflection.attempt}"
    return Section(f"Reflection on {where}", (*template(reflection), line(""), head(reflection)))


def template(reflection: Reflection) -> Iterable[Block]:
    """Describe observation, analysis, learning and action items.

    Parts that a reflection on an attempt lacks are shown as missing, others are left out.
    """
    is_whole = reflection.attempt is not None
    for label, question, text in (
        ("Observation", "What happened during this attempt?", reflection.observation),
        ("Analysis", "Why did this happen?", reflection.analysis),
        ("Learning", "What should be done differently?", reflection.learning),
    ):
        if text or is_whole:
            yield Passage(label, question, text or "Not given.")
    if reflection.actions or is_whole:
        yield Passage("Action Items", text="" if reflection.actions else "None.", items=reflection.actions)


def kind_word(reflection: Reflection) -> str:
    return reflection.kind.replace("_", " ") or "reflection"
