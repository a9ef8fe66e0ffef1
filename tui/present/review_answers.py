"""Preview of the answers to a question: one line each, and details of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.diff import DELETED, INSERTED, line_changes
from core.base.text import plural, visible_line
from core.questions.context_recipients import LOOP, PAUSED, TASK
from core.retrieval.rendering import INTRODUCTION, REFLECTIONS_ONLY
from tui.present.glyphs import Glyphs, draw_state
from tui.present.merge import merged_counts, merged_lineage

if TYPE_CHECKING:
    from core.forecast.forecast import ContextChange, Forecast
    from core.questions.answers import Answer
    from core.state.project_state import ProjectState

MIN_EFFECT_CELLS: Final = 12  # Cells below which the effect of an answer is not described.
BY_WORDS: Final = "~"  # Marks a forecast by word match that will be repeated by semantic similarity.
BESIDE_CELLS: Final = 100  # Cells from which numbers follow the effects; in less they are at the right edge.
MIN_CONTEXT_CELLS: Final = 22  # Reserved for the number of changed contexts, so that other columns stay in place.
MAIN_ANSWERS: Final = 3
_GAP: Final = 2
_START: Final = frozenset({"", *REFLECTIONS_ONLY.splitlines(), INTRODUCTION})  # lines before the first pattern
_MAX_NAMED: Final = 3  # Contexts with the same change that are named.


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of an answer for snapshot `number`, or the `problem` that prevents it."""

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
    """Return a line per answer: key, name, effect, and what changes.

    An outlook is None while it is computed; `about` is the ID of the pattern in question.
    """
    names: list[list[Content]] = [[], []]
    for n, (answer, key) in enumerate(zip(answers, keys, strict=True)):
        possible = ("$accent bold", "bold" if n < MAIN_ANSWERS else "$foreground")
        key_style, label_style = ("$quiet", "$quiet") if answer.why_not else possible
        names[0].append(Content.styled(key, key_style))
        names[1].append(Content.styled(visible_line(answer.label, 20), label_style))
    names = [_padded(column) for column in names]
    forecasts = [outlook.forecast if outlook is not None else None for outlook in outlooks]
    changes = [_padded([change(one, about, glyphs) for one in forecasts]) for change in (_states, _ranks)]
    effects = [Content("" if one.why_not else visible_line(one.effect, 200)) for one in answers]
    numbers: list[list[Content]] = []
    room = longest = 0
    reserved = MIN_CONTEXT_CELLS if width < BESIDE_CELLS else 0
    whole = width - sum(cells[0].cell_length + _GAP for cells in names)
    for wide, ranked in ((True, True), (False, True), (False, False)):  # from the most to the least room they take
        pairs = zip(answers, outlooks, strict=True)
        contexts = _padded([_contexts(answer, outlook, wide=wide) for answer, outlook in pairs], reserved)
        numbers = [cells for cells in (*changes[: 1 + ranked], contexts) if any(cell.plain.strip() for cell in cells)]
        room = whole - sum(cells[0].cell_length + _GAP for cells in numbers)
        with_numbers = [n for n in range(len(answers)) if any(cells[n].plain.strip() for cells in numbers)]
        longest = max((effects[n].cell_length for n in with_numbers), default=width)
        if room >= longest:
            break
    if not reserved:
        room = min(room, longest)
    room = room if room >= MIN_EFFECT_CELLS else 0
    rows = []
    for n, (answer, effect) in enumerate(zip(answers, effects, strict=True)):
        start = [cells[n] for cells in names]
        if answer.why_not:
            rows.append(_row([*start, Content.styled(f"not now: {visible_line(answer.why_not, 200)}", "$quiet")]))
        else:
            rows.append(_row([*start, *_with_effect(effect, room, [cells[n] for cells in numbers], whole)]))
    return rows


def _padded(cells: Sequence[Content], least: int = 0) -> list[Content]:
    """Pad all cells to the longest, and to `least` cells unless all are blank."""
    most = max((cell.cell_length for cell in cells), default=0)
    most = max(most, least) if most else 0
    return [cell.pad_right(most - cell.cell_length) for cell in cells]


def _row(cells: Sequence[Content]) -> Content:
    return Content(" " * _GAP).join([cell for cell in cells if cell]).rstrip()


def _with_effect(effect: Content, room: int, numbers: Sequence[Content], whole: int) -> list[Content]:
    """Put the effect before the numbers; it may extend over leading blank cells, or have the whole row."""
    while numbers and numbers[0].plain.isspace():
        room += numbers[0].cell_length + (_GAP if room else 0)
        numbers = numbers[1:]
    if not numbers:
        return [effect.truncate(whole, ellipsis=True)]
    if room < MIN_EFFECT_CELLS:
        return [Content(" " * room), *numbers]
    words = effect.truncate(room, ellipsis=True)
    return [words.pad_right(room - words.cell_length), *numbers]


def _states(found: Forecast | None, about: str, glyphs: Glyphs) -> Content:
    """Return the state before and after, or the number of changed patterns."""
    if found is None or not found.turned:
        return Content("")
    for id, before, after in found.turned:
        if id == about:
            return Content.assemble(draw_state(before, glyphs)[:1], f" {glyphs.arrow} ", draw_state(after, glyphs))
    return Content(f"{plural(len(found.turned), 'pattern')} changed")


def _ranks(found: Forecast | None, about: str, glyphs: Glyphs) -> Content:
    """Return the rank among all patterns before and after, where it changes."""
    for id, before, after in found.places if found is not None else ():
        if id == about and before.rank != after.rank:
            ranks = [f"{place.rank:,}" if place.rank is not None else "none" for place in (before, after)]
            return Content.assemble(("rank ", "$quiet"), f" {glyphs.arrow} ".join(ranks))
    return Content("")


def _contexts(answer: Answer, outlook: Outlook | None, *, wide: bool) -> Content:
    """Return the number of changed contexts: `3 of 4 running loops`."""
    if answer.why_not or not answer.matters:
        return Content("")
    if outlook is None:
        return Content.styled("…", "$quiet")
    found = outlook.forecast
    if found is None:
        return Content.styled(f"! {visible_line(outlook.problem, 60)}", "$warning")
    if not (found.loops or found.paused or found.tasks):
        return Content.styled("no loop, no task yet", "$quiet")
    parts = [
        f"{count}{' of ' if wide else '/'}{total} {words if wide else short}"
        for kind, total, words, short in (
            (LOOP, found.loops, "running loops", "loops"),
            (PAUSED, found.paused, "paused (on resume)", "paused"),
            (TASK, found.tasks, "tasks", "tasks"),
        )
        if (count := found.changed_of(kind))
    ]
    return Content.assemble((f"{BY_WORDS} " if found.by_words is not None else "", "$warning"), ", ".join(parts))


def what_heading(answer: Answer, key: str, glyphs: Glyphs) -> Content:
    """Return the heading of the changes: the key, the answer and its effect."""
    effect = f" {glyphs.arrow} {visible_line(answer.effect, 200)}" if answer.effect else ""
    return Content.assemble("Preview (", (key, "$accent bold"), f"): {visible_line(answer.label, 40)}{effect}")


def what_changes(answer: Answer, outlook: Outlook | None, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """Describe all changes that an answer causes, with diffs of the contexts."""
    if answer.why_not:
        return [Content.styled(f"Not now: {visible_line(answer.why_not, 300)}", "$quiet")]
    if not answer.matters:
        return [Content.styled("No effect on loops.", "$quiet")]
    if outlook is None:
        return [Content.styled("Computing the forecast…", "$quiet")]
    found = outlook.forecast
    if found is None:
        return [Content.styled(visible_line(outlook.problem, 400), "$warning")]
    by_words = found.by_words
    lines = [Content.styled(f"{BY_WORDS} {by_words.text}", "$warning")] if by_words is not None else []
    if found.merger is not None:
        lines += [*merged_counts(found.merger, glyphs), Content("")]
    for id, before, after in found.turned:
        change = (draw_state(before, glyphs), f" {glyphs.arrow} ", draw_state(after, glyphs))
        lines.append(Content.assemble((f"{visible_line(id, 80)}  ", "$secondary"), *change))
    if not found.changed:
        lines.append(Content.styled(_unchanged(found), "$quiet"))
    for changes in group_same_changes(found.changed):
        lines += _change_lines(changes, glyphs)
    if found.merger is not None:
        lines += [Content(""), *merged_lineage(found.merger, view, glyphs)]
    return lines


def _unchanged(found: Forecast) -> str:
    if not (found.loops or found.paused or found.tasks):
        return "No running or paused loop and no task: no injected text to compare."
    compared = [plural(found.loops, "running loop")] * bool(found.loops)
    compared += [plural(found.paused, "paused loop")] * bool(found.paused)
    compared += [f"the last {plural(found.tasks, 'task')}"] * bool(found.tasks)
    return f"No injected text changes ({', '.join(compared)})."


def group_same_changes(changed: Sequence[ContextChange]) -> list[list[ContextChange]]:
    """Group the contexts that change in the same lines."""
    groups: dict[tuple[str, ...], list[ContextChange]] = {}
    for change in changed:
        key = tuple(line.plain for line in diff_lines(change.before, change.after))
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def _change_lines(changes: Sequence[ContextChange], glyphs: Glyphs) -> Iterator[Content]:
    """Yield the name of a context and its diff, then the names of others that change in the same way."""
    for change in changes[:_MAX_NAMED]:
        glyph = {LOOP: glyphs.running, PAUSED: glyphs.paused}.get(change.kind, glyphs.done)
        kind = "paused loop, on resume:" if change.kind == PAUSED else change.kind
        yield Content.assemble((f"{glyph} {kind} ", "$quiet"), (visible_line(change.title, 200), "bold"))
        if change is changes[0]:
            yield from (line.pad_left(2) for line in diff_lines(change.before, change.after))
            if len(changes) > 1:
                yield Content.styled("The same change in:", "$quiet")
    if len(changes) > _MAX_NAMED:
        yield Content.styled(f"  and {len(changes) - _MAX_NAMED} more", "$quiet")


def diff_lines(before: str, after: str) -> list[Content]:
    """Return the changed lines of two contexts, marked with `-` and `+`, without the same start of all contexts."""
    signs = {DELETED: ("-", "$error"), INSERTED: ("+", "$success")}
    pieces = [piece for piece in line_changes(before, after) if piece.mark in signs]
    while pieces and pieces[0].text.strip() in _START:
        del pieces[0]
    return [
        Content.styled(f"{signs[piece.mark][0]} {visible_line(piece.text.rstrip(), 400)}", signs[piece.mark][1])
        for piece in pieces
    ]
