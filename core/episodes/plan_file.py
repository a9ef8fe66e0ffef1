"""Render `plan.md` of an attempt: task, approach, and earlier learnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from core.base.prompt_text import escape_inline, escape_line
from core.base.text import plural
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.reflections import Reflection

MAX_CHARS: Final = 500  # characters of one text in a plan
MAX_EARLIER: Final = 10  # newest earlier attempts in a plan; of further ones only the number is given
MAX_SIMILAR: Final = 10
MAX_ITEMS: Final = 10  # entries of one list of one attempt


class AttemptLessons(NamedTuple):
    """An earlier attempt and the reflections on it."""

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
    """Render the plan of attempt `number` as Markdown; every text is data on its own line.

    `description` and `criteria` are those of the task, `lessons` earlier attempts, oldest first, and `similar` pairs of
    task and learning, most useful first. If `orders` is set, texts of other attempts that give orders are left out
    (docs/safety.md#held-texts).
    """
    task = f"Task: {escape_inline(description, MAX_CHARS) or 'not described'}"
    task += f"\nCompletion criteria: {escape_inline(criteria, MAX_CHARS)}" if criteria else ""
    parts = [f"# Plan for attempt {number}", task]
    if approach:
        parts.append(f"## Approach\n\n{escape_line(approach, MAX_CHARS)}")
    if steps:
        numbered = "\n".join(f"{at}. {escape_inline(step, MAX_CHARS)}" for at, step in enumerate(steps, 1))
        parts.append(f"## Steps\n\n{numbered}")
    if estimated_iterations is not None:
        parts.append(f"Estimated iterations: {estimated_iterations}")
    return "\n\n".join([*parts, *_learnings("\n\n".join(parts), lessons, similar, orders)]) + "\n"


def _learnings(
    before: str, lessons: Sequence[AttemptLessons], similar: Sequence[tuple[str, str]], orders: bool
) -> Iterator[str]:
    """The learnings, without texts that are harmful in combination."""
    parts = []
    if lessons:
        parts.append("## Learnings from earlier attempts")
        omitted = len(lessons) - MAX_EARLIER
        if omitted > 0:
            parts.append(f"Left out here: {plural(omitted, 'earlier attempt')}; see reflections.jsonl of the task.")
        taught: set[str] = set()
        for attempt, reflections in reversed(lessons[-MAX_EARLIER:]):
            drafted = [_safe_text(reflection.text, orders) for reflection in reflections if reflection.draft]
            outcome = "left open" if attempt.outcome is Outcome.UNKNOWN else attempt.outcome.value
            lines = [f"### Attempt {attempt.number} ({outcome})\n"]
            if attempt.reason:
                lines.append(f"- Reason: {_safe_text(attempt.reason, orders, happened=True)}")
            approach = _safe_text(attempt.plan, orders) if attempt.plan else ""
            if approach and not _is_among(approach, drafted):
                lines.append(f"- Approach: {approach}")
            learnings = dict.fromkeys(_all_learnings(attempt, reflections, drafted, orders))
            new = [text for text in learnings if text not in taught]
            taught.update(new)
            parts.append("\n".join([*lines, *new]))
    if similar:
        texts = "\n".join(
            f"- {_safe_text(task, orders)}: {_safe_text(learning, orders)}" for task, learning in similar[:MAX_SIMILAR]
        )
        parts.append(f"## Learnings from similar tasks\n\n{texts}")
    if parts:
        from core.scanning.context_scan import withhold_combined_harm  # only a start of an attempt needs the scan

        yield withhold_combined_harm("\n\n".join(parts), before, orders=orders)


def _all_learnings(
    attempt: Attempt, reflections: Sequence[Reflection], drafted: Sequence[str], orders: bool
) -> Iterator[str]:
    def own(label: str, texts: Sequence[str], *, avoided: bool = False) -> Iterator[str]:
        safe = (_safe_text(text, orders, avoided=avoided) for text in texts[:MAX_ITEMS])
        return (f"- {label}: {text}" for text in safe if not _is_among(text, drafted))

    for reflection in reflections:
        if reflection.teaches:
            label = "Learning (drafted from the log)" if reflection.draft else "Learning"
            yield f"- {label}: {_safe_text(reflection.text, orders)}"
        yield from own("Action item", reflection.actions)
    yield from own("Worked", attempt.worked)
    yield from own("Did not work", attempt.failed, avoided=True)
    known = {item for reflection in reflections for item in reflection.actions}
    yield from own("Suggested", [text for text in attempt.suggestions if text not in known])


def _is_among(text: str, drafted: Sequence[str]) -> bool:
    return any(f"{before}{text}{after}" in one for one in drafted for before in (": ", "; ") for after in (";", "."))


def _safe_text(text: str, orders: bool, *, avoided: bool = False, happened: bool = False) -> str:
    """A text of another attempt, escaped and withheld if it is harmful."""
    from core.scanning.messages import render_if_safe  # only a start of an attempt needs the scan

    return render_if_safe(
        text, lambda text: escape_inline(text, MAX_CHARS), orders=orders, avoided=avoided, happened=happened
    )
