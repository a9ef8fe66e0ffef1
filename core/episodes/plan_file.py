"""`plan.md` of an attempt: what is to be done, and what earlier attempts and similar tasks have taught (1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from core.base.prompt_text import escape_inline, escape_line
from core.base.text import plural
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.reflections import Reflection

MAX_CHARS: Final = 500
"""Longest single text of a plan, in characters; the files that it comes from keep all of it."""
MAX_EARLIER: Final = 10
"""Earlier attempts that a plan tells of, the newest; of further ones it gives the number."""
MAX_SIMILAR: Final = 10
MAX_ITEMS: Final = 10
"""Entries of one list of one attempt."""


class AttemptLessons(NamedTuple):
    """An earlier attempt and the reflections on it, drafts only where there is nothing else."""

    attempt: Attempt
    reflections: tuple[Reflection, ...]


def render_plan(
    number: int,
    *,
    description: str,
    criteria: str = "",
    approach: str = "",
    steps: Sequence[str] = (),
    estimated_iterations: int | None = None,
    lessons: Sequence[AttemptLessons] = (),
    similar: Sequence[tuple[str, str]] = (),
    orders: bool = True,
) -> str:
    """(1) `generate_plan_incorporating_learnings`, as Markdown. Every text stays on a line of its own, as data,
    and none in a heading.

    Args:
        number: Of the attempt.
        description, criteria: Of the task.
        lessons: Of the earlier attempts, oldest first.
        similar: Task and learning, most useful first.
        orders: Whether texts of other attempts that give orders are left out; see docs/safety.md#held-texts.
    """
    parts = [f"# Plan for attempt {number}", "\n".join(_task(description, criteria))]
    if approach:
        parts.append(f"## Approach\n\n{escape_line(approach, MAX_CHARS)}")
    if steps:
        numbered = "\n".join(f"{at}. {escape_inline(step, MAX_CHARS)}" for at, step in enumerate(steps, 1))
        parts.append(f"## Steps\n\n{numbered}")
    if estimated_iterations is not None:
        parts.append(f"Estimated iterations: {estimated_iterations}")
    return "\n\n".join([*parts, *_learnt("\n\n".join(parts), lessons, similar, orders)]) + "\n"


def _learnt(
    before: str, lessons: Sequence[AttemptLessons], similar: Sequence[tuple[str, str]], orders: bool
) -> Iterator[str]:
    """What was written at other times, without what it only says together, or with the plan `before` it."""
    parts = []
    if lessons:
        parts.append("## Learnings from earlier attempts")
        untold = len(lessons) - MAX_EARLIER
        if untold > 0:
            parts.append(f"Left out here: {plural(untold, 'earlier attempt')}; see reflections.jsonl of the task.")
        taught: set[str] = set()
        for lesson in reversed(lessons[-MAX_EARLIER:]):
            parts.append(
                "\n".join([_heading(lesson.attempt), *_facts(lesson, orders), *_taught(lesson, taught, orders)])
            )
    if similar:
        told = "\n".join(
            f"- {_told(task, orders)}: {_told(learning, orders)}" for task, learning in similar[:MAX_SIMILAR]
        )
        parts.append(f"## Learnings from similar tasks\n\n{told}")
    if parts:
        from core.scanning.context_scan import withhold_combined_harm  # only a start of an attempt needs the scan

        yield withhold_combined_harm("\n\n".join(parts), before, orders=orders)


def _task(description: str, criteria: str) -> Iterator[str]:
    yield f"Task: {escape_inline(description, MAX_CHARS) or 'not described'}"
    if criteria:
        yield f"Completion criteria: {escape_inline(criteria, MAX_CHARS)}"


def _heading(attempt: Attempt) -> str:
    came_out = "left open" if attempt.outcome is Outcome.UNKNOWN else attempt.outcome.value
    return f"### Attempt {attempt.number} ({came_out})\n"


def _facts(lesson: AttemptLessons, orders: bool) -> Iterator[str]:
    """How an attempt came out as it did, and what it tried, unless a draft says it."""
    if lesson.attempt.reason:
        yield f"- Reason: {_told(lesson.attempt.reason, orders, happened=True)}"
    if lesson.attempt.plan and not _is_among(approach := _told(lesson.attempt.plan, orders), _drafted(lesson, orders)):
        yield f"- Approach: {approach}"


def _taught(lesson: AttemptLessons, before: set[str], orders: bool) -> Iterator[str]:
    """What it teaches, except what a newer one has taught `before`."""
    for entry in _teachings(lesson, orders):
        if entry not in before:
            before.add(entry)
            yield entry


def _teachings(lesson: AttemptLessons, orders: bool) -> Iterator[str]:
    """What it teaches; nothing twice, as drafts list again what the attempt tells of itself."""
    attempt, drafted = lesson.attempt, _drafted(lesson, orders)

    def own(label: str, texts: Sequence[str], *, avoided: bool = False) -> Iterator[str]:
        told = (_told(text, orders, avoided=avoided) for text in texts[:MAX_ITEMS])
        return (f"- {label}: {text}" for text in told if not _is_among(text, drafted))

    for reflection in lesson.reflections:
        if reflection.teaches:
            yield f"- Learning{' (drafted from the log)' if reflection.draft else ''}: {_told(reflection.text, orders)}"
        yield from own("Action item", reflection.actions)
    yield from own("Worked", attempt.worked)
    yield from own("Did not work", attempt.failed, avoided=True)
    known = {item for reflection in lesson.reflections for item in reflection.actions}
    yield from own("Suggested", [text for text in attempt.suggestions if text not in known])


def _drafted(lesson: AttemptLessons, orders: bool) -> list[str]:
    return [_told(reflection.text, orders) for reflection in lesson.reflections if reflection.draft]


def _is_among(text: str, drafted: Sequence[str]) -> bool:
    """Whether a draft lists it."""
    return any(f"{before}{text}{after}" in one for one in drafted for before in (": ", "; ") for after in (";", "."))


def _told(text: str, orders: bool, *, avoided: bool = False, happened: bool = False) -> str:
    """What somebody wrote at another time, as the next agent may read it."""
    from core.scanning.messages import render_if_safe  # only a start of an attempt needs the scan

    return render_if_safe(
        text, lambda said: escape_inline(said, MAX_CHARS), orders=orders, avoided=avoided, happened=happened
    )
