"""`plan.md` of an attempt: what is to be done, and what earlier attempts and similar tasks have taught (1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from core.prompt_text import bare, field
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.scanning.telling import unless_harmful
from core.text import plural

MAX_CHARS: Final = 500
"""Longest single text of a plan, in characters; the files that it comes from keep all of it."""
MAX_EARLIER: Final = 10
"""Earlier attempts that a plan tells of, the newest; of further ones it gives the number."""
MAX_SIMILAR: Final = 10
MAX_ITEMS: Final = 10
"""Entries of one list of one attempt."""


class Lesson(NamedTuple):
    """An earlier attempt and the reflections on it, drafts only where there is nothing else."""

    attempt: Attempt
    reflections: tuple[Reflection, ...]


def plan_text(
    number: int,
    *,
    description: str,
    criteria: str = "",
    approach: str = "",
    steps: Sequence[str] = (),
    estimated_iterations: int | None = None,
    lessons: Sequence[Lesson] = (),
    similar: Sequence[tuple[str, str]] = (),
) -> str:
    """(1) `generate_plan_incorporating_learnings`, as Markdown. Every text stays on a line of its own, as data,
    and none in a heading.

    Args:
        number: Of the attempt.
        description, criteria: Of the task.
        lessons: Of the earlier attempts, oldest first.
        similar: Task and learning, most useful first.
    """
    parts = [f"# Plan for attempt {number}", "\n".join(_task(description, criteria))]
    if approach:
        parts.append(f"## Approach\n\n{bare(approach, MAX_CHARS)}")
    if steps:
        numbered = "\n".join(f"{at}. {field(step, MAX_CHARS)}" for at, step in enumerate(steps, 1))
        parts.append(f"## Steps\n\n{numbered}")
    if estimated_iterations is not None:
        parts.append(f"Estimated iterations: {estimated_iterations}")
    if lessons:
        parts.append("## Learnings from earlier attempts")
        untold = len(lessons) - MAX_EARLIER
        if untold > 0:
            parts.append(f"Left out here: {plural(untold, 'earlier attempt')}; see reflections.jsonl of the task.")
        parts += ["\n".join(_lesson(lesson)) for lesson in reversed(lessons[-MAX_EARLIER:])]
    if similar:
        told = "\n".join(f"- {_told(task)}: {_told(learning)}" for task, learning in similar[:MAX_SIMILAR])
        parts.append(f"## Learnings from similar tasks\n\n{told}")
    return "\n\n".join(parts) + "\n"


def _task(description: str, criteria: str) -> Iterator[str]:
    yield f"Task: {field(description, MAX_CHARS) or 'not described'}"
    if criteria:
        yield f"Completion criteria: {field(criteria, MAX_CHARS)}"


def _lesson(lesson: Lesson) -> Iterator[str]:
    attempt = lesson.attempt
    came_out = "left open" if attempt.outcome is Outcome.UNKNOWN else attempt.outcome.value
    yield f"### Attempt {attempt.number} ({came_out})\n"
    if attempt.reason:
        yield f"- Reason: {_told(attempt.reason, avoided=True)}"
    if attempt.plan:
        yield f"- Approach: {_told(attempt.plan)}"
    for reflection in lesson.reflections:
        drafted = " (drafted from the log)" if reflection.draft else ""
        yield f"- Learning{drafted}: {_told(reflection.text)}"
        yield from (f"- Action item: {_told(item)}" for item in reflection.actions[:MAX_ITEMS])
    yield from (f"- Worked: {_told(text)}" for text in attempt.worked[:MAX_ITEMS])
    yield from (f"- Did not work: {_told(text, avoided=True)}" for text in attempt.failed[:MAX_ITEMS])
    known = {item for reflection in lesson.reflections for item in reflection.actions}
    suggested = [text for text in attempt.suggestions if text not in known]
    yield from (f"- Suggested: {_told(text)}" for text in suggested[:MAX_ITEMS])


def _told(text: str, *, avoided: bool = False) -> str:
    """What somebody wrote at another time, as the next agent may read it."""
    return field(unless_harmful(text, avoided=avoided), MAX_CHARS)
