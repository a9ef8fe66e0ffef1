"""What each answer to a question would change: a line a key, and in full for the one under the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from core.base.diff import DELETED, INSERTED, line_changes
from core.base.text import plural, visible_line
from core.forecast.forecast import ContextChange, Forecast
from core.review.answers import Answer
from core.review.context_recipients import LOOP, PAUSED, TASK
from core.state.project_state import ProjectState
from tui.present.glyphs import Glyphs, draw_state
from tui.present.merge import merged_counts, merged_lineage

LEAST_EFFECT: Final = 12
"""Cells from which it is worth saying what an answer does, in words."""
BY_WORDS: Final = "~"
"""Before what is foretold by words yet, and will be by meaning."""
MAIN_ANSWERS: Final = 3
"""Answers that are set off from the rest."""
_GAP: Final = 2
_SAME: Final = 3
"""Contexts that change alike which are named."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What one answer would change, or why nobody can tell.

    Attributes:
        number: Of the snapshot that it was worked out on.
        forecast: None where that failed.
        problem: Why it failed.
    """

    number: int
    forecast: Forecast | None
    problem: str = ""


def answer_rows(
    answers: Sequence[Answer],
    outlooks: Sequence[Outlook | None],
    keys: Sequence[str],
    about: str,
    glyphs: Glyphs,
    width: int,
) -> list[Content]:
    """One line an answer: key, name, what it does to the state, and how many contexts change.

    Args:
        outlooks: What is known of each so far.
        keys: The keys, for people.
        about: Id of the pattern in question.
        width: Cells there are.
    """
    pairs = list(zip(answers, keys, strict=True))
    names = [
        _padded([Content.styled(key, "$quiet" if answer.why_not else "$accent bold") for answer, key in pairs]),
        _padded([Content.styled(visible_line(one.label, 20), _weight(one, n)) for n, (one, _) in enumerate(pairs)]),
    ]
    changes = [
        _padded([_states(outlook, about, glyphs) for outlook in outlooks]),
        _padded([_ranks(outlook, about, glyphs) for outlook in outlooks]),
    ]
    effects = [Content("" if answer.why_not else visible_line(answer.effect, 200)) for answer in answers]
    longest = max((effect.cell_length for effect in effects), default=0)
    contexts: list[Content] = []
    room = 0
    for wide in (True, False):
        contexts = _padded([_contexts(one, outlook, wide=wide) for one, outlook in zip(answers, outlooks, strict=True)])
        room = width - sum(cells[0].cell_length + _GAP for cells in (*names, *changes, contexts) if _has_any(cells))
        if room >= longest:
            break
    room = min(room, longest) if room >= LEAST_EFFECT else 0
    rows = []
    for n, (answer, effect) in enumerate(zip(answers, effects, strict=True)):
        said = [cells[n] for cells in names]
        if answer.why_not:
            rows.append(_row([*said, Content.styled(f"not now: {visible_line(answer.why_not, 200)}", "$quiet")]))
            continue
        told = [cells[n] for cells in (*changes, contexts) if _has_any(cells)]
        rows.append(_row([*said, *_worded(effect, room, told)]))
    return rows


def _weight(answer: Answer, number: int) -> str:
    """The style of an answer's name: the main ones, which come first, are bold."""
    if answer.why_not:
        return "$quiet"
    return "bold" if number < MAIN_ANSWERS else "$foreground"


def _padded(cells: Sequence[Content]) -> list[Content]:
    """One column."""
    most = max((cell.cell_length for cell in cells), default=0)
    return [cell.pad_right(most - cell.cell_length) for cell in cells]


def _has_any(cells: Sequence[Content]) -> bool:
    return any(cell.cell_length for cell in cells)


def _row(cells: Sequence[Content]) -> Content:
    return Content(" " * _GAP).join([cell for cell in cells if cell]).rstrip()


def _worded(effect: Content, room: int, told: Sequence[Content]) -> list[Content]:
    """What an answer does, in words, before what it changes, in numbers: where there are none of the first ones, the
    words run on into their columns.
    """
    while told and told[0].plain.isspace():
        room += told[0].cell_length + (_GAP if room else 0)
        told = told[1:]
    if room < LEAST_EFFECT:
        return [Content(" " * room), *told]
    words = effect.truncate(room, ellipsis=True)
    return [words.pad_right(room - words.cell_length), *told]


def _states(outlook: Outlook | None, about: str, glyphs: Glyphs) -> Content:
    """The state of the pattern before and after; of many patterns how many turn."""
    found = outlook.forecast if outlook is not None else None
    if found is None:
        return Content("")
    own = [turn for turn in found.turned if turn[0] == about]
    if own:
        _, before, after = own[0]
        return Content.assemble(draw_state(before, glyphs)[:1], f" {glyphs.arrow} ", draw_state(after, glyphs))
    turned = len(found.turned)
    return Content(f"{plural(turned, 'pattern')} {'turn' if turned > 1 else 'turns'}") if turned else Content("")


def _ranks(outlook: Outlook | None, about: str, glyphs: Glyphs) -> Content:
    """Its place among all patterns before and after, where that changes."""
    found = outlook.forecast if outlook is not None else None
    for id, before, after in found.places if found is not None else ():
        if id == about and before.rank != after.rank:
            ranks = [f"{place.rank:,}" if place.rank is not None else "none" for place in (before, after)]
            return Content.assemble(("rank ", "$quiet"), f" {glyphs.arrow} ".join(ranks))
    return Content("")


def _contexts(answer: Answer, outlook: Outlook | None, *, wide: bool) -> Content:
    """How many contexts change: `3 of 4 running loops, 1 of 1 paused (when it resumes)`; only what does change."""
    if answer.why_not:
        return Content("")
    if not answer.matters:
        return Content("")
    if outlook is None:
        return Content.styled("…", "$quiet")
    found = outlook.forecast
    if found is None:
        return Content.styled(f"! {visible_line(outlook.problem, 60)}", "$warning")
    counts = (
        (LOOP, found.loops, "running loops", "loops"),
        (PAUSED, found.paused, "paused (when it resumes)", "paused"),
        (TASK, found.tasks, "tasks", "tasks"),
    )
    parts = [
        (
            f"{found.changed_of(kind)}{' of ' if wide else '/'}{looked} {words if wide else short}",
            found.changed_of(kind),
        )
        for kind, looked, words, short in counts
        if looked
    ]
    if not parts:
        return Content.styled("no loop, no task yet", "$quiet")
    told = Content(", ").join(Content(text) for text, count in parts if count)
    return told if found.by_words is None else Content.assemble((f"{BY_WORDS} ", "$warning"), told)


def what_heading(answer: Answer, key: str) -> Content:
    """What the pane of changes is about."""
    effect = f": {visible_line(answer.effect, 200)}" if answer.effect else ""
    return Content.assemble("if you press ", (key, "$accent bold"), f", {visible_line(answer.label, 40)}{effect}")


def what_changes(answer: Answer, outlook: Outlook | None, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """Everything that one answer would change: states, what a merge gives, and every context, as a diff."""
    if answer.why_not:
        return [Content.styled(f"Not now: {visible_line(answer.why_not, 300)}", "$quiet")]
    if not answer.matters:
        return [Content.styled("It changes nothing for the loops.", "$quiet")]
    if outlook is None:
        return [Content.styled("working out what changes…", "$quiet")]
    found = outlook.forecast
    if found is None:
        return [Content.styled(visible_line(outlook.problem, 400), "$warning")]
    lines: list[Content] = []
    if found.by_words is not None:
        lines.append(Content.styled(f"{BY_WORDS} {found.by_words.text}", "$warning"))
    if found.merger is not None:
        lines += [*merged_counts(found.merger, glyphs), Content("")]
    lines += _turned_lines(found, glyphs)
    if not found.changed:
        lines.append(Content.styled(_looked(found), "$quiet"))
    for changes in alike(found.changed):
        lines += _change_lines(changes, glyphs)
    if found.merger is not None:
        lines += [Content(""), *merged_lineage(found.merger, view, glyphs)]
    return lines


def _looked(found: Forecast) -> str:
    """What was looked at in vain."""
    if not (found.loops or found.paused or found.tasks):
        return "No loop is running or paused and no task is known: there is no context to change."
    told = [plural(found.loops, "running loop")] * bool(found.loops)
    told += [plural(found.paused, "paused loop")] * bool(found.paused)
    told += [f"the last {plural(found.tasks, 'task')}"] * bool(found.tasks)
    return f"{', '.join(told)}: none would get another context."


def _turned_lines(found: Forecast, glyphs: Glyphs) -> Iterator[Content]:
    for id, before, after in found.turned:
        yield Content.assemble(
            (f"{visible_line(id, 80)}  ", "$secondary"),
            draw_state(before, glyphs),
            f" {glyphs.arrow} ",
            draw_state(after, glyphs),
        )


def alike(changed: Sequence[ContextChange]) -> list[list[ContextChange]]:
    """Contexts that change in the same lines, together, in the order of the first of each."""
    groups: dict[tuple[str, ...], list[ContextChange]] = {}
    for change in changed:
        key = tuple(line.plain for line in diff_lines(change.before, change.after))
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def _change_lines(changes: Sequence[ContextChange], glyphs: Glyphs) -> Iterator[Content]:
    """Contexts that would be others in the same way: whose they are, and what differs in them."""
    for change in changes[:_SAME]:
        mark = {LOOP: glyphs.running, PAUSED: glyphs.paused}.get(change.kind, glyphs.done)
        kind = "paused loop, when it resumes:" if change.kind == PAUSED else change.kind
        yield Content.assemble((f"{mark} {kind} ", "$quiet"), (visible_line(change.title, 200), "bold"))
    if len(changes) > _SAME:
        yield Content.styled(f"  and {len(changes) - _SAME} others alike", "$quiet")
    yield from (line.pad_left(2) for line in diff_lines(changes[0].before, changes[0].after))


def diff_lines(before: str, after: str) -> list[Content]:
    """A line diff of two contexts: only what differs, `-` before what goes and `+` before what comes."""
    marks = {DELETED: ("-", "$error"), INSERTED: ("+", "$success")}
    changed = (
        (*marks[piece.mark], piece.text.rstrip("\n")) for piece in line_changes(before, after) if piece.mark in marks
    )
    return [Content.styled(f"{sign} {visible_line(line, 400)}", style) for sign, style, line in changed]
