"""Changes between two moments, or under two sets of thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.curation.decision_text import verb_text
from core.documents.decisions import reason_text, subject
from core.documents.signs import status_sign
from core.history import changes as history
from core.records.decisions import Decision
from core.records.patterns import Maturity
from tui.present.glyphs import STATE_STYLES, Cells, Glyphs, draw, draw_state
from tui.present.numbers import moment_text, percent

if TYPE_CHECKING:
    from core.state.project_state import ProjectState

Change = history.PatternChange | history.LoopChange | history.QuestionChange | Decision
_STATE_CELLS: Final = 7
Counts = Mapping[Maturity, int]
_MAX_BAR: Final = 60


def key_of(change: Change) -> str:
    if isinstance(change, history.PatternChange):
        return f"pattern {change.pattern_id}"
    if isinstance(change, history.LoopChange):
        return f"loop {change.loop_id}"
    if isinstance(change, history.QuestionChange):
        return f"question {change.kind} {change.subject} {change.new}"
    return f"decision {change.id}"


def rows(changes: history.StateComparison) -> dict[str, Change]:
    """Return all changes by key: patterns, questions, decisions, loops."""
    listed: tuple[Change, ...] = (*changes.patterns, *changes.questions, *changes.decisions, *changes.loops)
    return {key_of(change): change for change in listed}


def headline(changes: history.StateComparison | None) -> Content:
    """Return the number of changed patterns, by kind of change."""
    if changes is None:
        return Content.styled("loading the earlier state…", "$quiet")
    count = changes.count(history.STATE)
    parts = [f"{plural(count, 'pattern')} changed state"] * bool(count)
    parts += [f"{changes.count(kind)} {kind}" for kind in (history.NEW, history.REMOVED) if changes.count(kind)]
    moved = changes.count(history.CONTEXT) + changes.count(history.RATE)
    parts += [f"{moved} changed in rate or injection"] * bool(moved)
    return Content.styled(", ".join(parts) or "No pattern changed", "bold" if parts else "")


def use_summary(changes: history.StateComparison) -> Content:
    return Content.styled(f"{plural(changes.helped, 'use')} succeeded, {changes.failed} failed", "$quiet")


def change_counts(changes: history.StateComparison) -> Content:
    """Return the numbers of decisions per person, of loops, and of questions."""
    started, ended = changes.count(history.STARTED), changes.count(history.ENDED)
    asked = sum(question.new for question in changes.questions)
    resolved = len(changes.questions) - asked
    parts = [f"{count} decided by {visible_line(by, 20)}" for by, count in changes.deciders.items()]
    parts += [f"{plural(started, 'loop')} started"] * bool(started) + [f"{plural(ended, 'loop')} ended"] * bool(ended)
    parts += [f"{plural(asked, 'new question')}"] * bool(asked) + [f"{resolved} resolved"] * bool(resolved)
    return Content.styled(", ".join(parts) or "no decision, no loop started or ended", "$quiet")


def since_note(last_visit: datetime | None, now: datetime) -> Content:
    """Return the time of the last visit, or examples for the field of the first time."""
    return Content.styled(f"visit {moment_text(last_visit, now)}" if last_visit else "7d, 36h, day", "$quiet")


def cells(change: Change, view: ProjectState, glyphs: Glyphs) -> Cells:
    if isinstance(change, history.PatternChange):
        return _pattern_cells(change, glyphs)
    if isinstance(change, history.LoopChange):
        verb = ("started " if change.kind == history.STARTED else "ended ", "$quiet")
        what = Content.assemble(verb, draw(status_sign(change.status), glyphs))
        return change_cells(change.loop_id, what, change.task)
    if isinstance(change, history.QuestionChange):
        word = Content.styled("asked" if change.new else "resolved", "$warning" if change.new else "$quiet")
        return change_cells(change.subject, word, change.text)
    why = f": {reason_text(change)}" if reason_text(change) else ""
    return change_cells(subject(view, change), Content(verb_text(change)), f"{change.by}{why}")


def _pattern_cells(change: history.PatternChange, glyphs: Glyphs) -> Cells:
    before, after = change.before, change.after
    if change.kind == history.RATE and before is not None and after is not None:
        moved = Content.assemble((f"{percent(before.rate):>5}   {glyphs.arrow} ", "$quiet"), percent(after.rate))
    elif change.kind == history.CONTEXT and after is not None:
        word, style = ("injected", "") if after.injectable else ("not injected", "$warning")
        moved = Content.styled(word, style)
    else:
        start, end = (
            draw_state(one.state, glyphs, short=True) if one is not None else Content.styled(word, "$accent")
            for one, word in ((before, "new"), (after, "removed"))
        )
        moved = change_text(start, end, glyphs)
    return change_cells(change.pattern_id, moved, change.because, change.title)


def change_text(start: Content, end: Content, glyphs: Glyphs) -> Content:
    start = start.pad_right(max(_STATE_CELLS - start.cell_length, 0))
    return Content.assemble(start, (f" {glyphs.arrow} ", "$quiet"), end)


def change_cells(subject: str, change: Content, note: str | Content, title: str = "") -> Cells:
    return {
        "id": Content.styled(visible_line(subject, 120), "$secondary"),
        "change": change,
        "note": Content(visible_line(note, 200)) if isinstance(note, str) else note,
        "title": Content.styled(visible_line(title, 200), "$quiet"),
    }


def nothing_changed() -> Content:
    return Content.styled("Nothing changed between these two times. Press left to go back one day.", "$quiet")


def count_lines(before: Counts, after: Counts, width: int, glyphs: Glyphs, *, short: bool) -> Content:
    """Return the patterns per state before and after; `short`: two states a line."""
    counts = [_count(state, before, after, glyphs) for state in Maturity]
    if short:
        half = width // 2
        padded = [count.pad_right(max(half - count.cell_length, 2)) for count in counts[::2]]
        rows = [Content.assemble(*pair) for pair in zip(padded, counts[1::2], strict=True)]
        return Content("\n").join(rows)
    most = max(1, *before.values(), *after.values())
    room = max(min(width - counts[0].cell_length - 2, _MAX_BAR), 0)
    return Content("\n").join(
        Content.assemble(count, "  ", _bar(state, before, after, room / most, glyphs))
        for state, count in zip(Maturity, counts, strict=True)
    )


def _count(state: Maturity, before: Counts, after: Counts, glyphs: Glyphs) -> Content:
    then, now = before[state], after[state]
    digits = max(len(f"{count:,}") for count in (*before.values(), *after.values()))
    change = f"{now - then:+,}" if now != then else ""
    name = draw_state(state, glyphs)
    return Content.assemble(
        name.pad_right(14 - name.cell_length),
        (f"{then:>{digits},} ", "$quiet"),
        (f"{glyphs.arrow} ", "$quiet"),
        (f"{now:>{digits},}", "bold" if change else "$quiet"),
        (f" {change:<{digits + 1}}", "$accent bold"),
    )


def _bar(state: Maturity, before: Counts, after: Counts, scale: float, glyphs: Glyphs) -> Content:
    then, now = before[state] * scale, after[state] * scale
    stay, gained, lost = min(then, now), max(now - then, 0), max(then - now, 0)
    return Content.assemble(
        (glyphs.full * round(stay), STATE_STYLES[state]),
        (glyphs.full * (round(stay + gained) - round(stay)), "$accent bold"),
        (glyphs.empty * (round(stay + lost) - round(stay)), "$quiet"),
    )
