"""What changed between two moments, as text."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.curation.decision_text import verb_text
from core.documents.decisions import reason_text, subject
from core.documents.signs import status_sign
from core.history.changes import (
    CONTEXT,
    ENDED,
    NEW,
    RATE,
    REMOVED,
    STARTED,
    STATE,
    LoopChange,
    PatternChange,
    QuestionChange,
    StateComparison,
)
from core.records.decisions import Decision
from core.state.project_state import ProjectState
from tui.present.glyphs import Cells, Glyphs, draw, draw_state
from tui.present.numbers import moment_text, percent

Change = PatternChange | LoopChange | QuestionChange | Decision
_STATE_CELLS: Final = 7


def key_of(change: Change) -> str:
    """What tells the rows of a list apart."""
    if isinstance(change, PatternChange):
        return f"pattern {change.pattern_id}"
    if isinstance(change, LoopChange):
        return f"loop {change.loop_id}"
    if isinstance(change, QuestionChange):
        return f"question {change.kind} {change.subject} {change.new}"
    return f"decision {change.id}"


def rows(changes: StateComparison) -> dict[str, Change]:
    """All that changed, by key: what patterns came to, the questions that came up or settled, decisions, loops."""
    listed: tuple[Change, ...] = (*changes.patterns, *changes.questions, *changes.decisions, *changes.loops)
    return {key_of(change): change for change in listed}


def headline(changes: StateComparison | None) -> Content:
    """What became of patterns, in a sentence."""
    if changes is None:
        return Content.styled("working out what was known then…", "$quiet")
    turned = changes.count(STATE)
    parts = [f"{plural(turned, 'pattern')} {'turns' if turned == 1 else 'turn'}"] * bool(turned)
    parts += [f"{changes.count(kind)} {kind}" for kind in (NEW, REMOVED) if changes.count(kind)]
    moved = changes.count(CONTEXT) + changes.count(RATE)
    parts += [f"{moved} moved otherwise"] * bool(moved)
    return Content.styled(", ".join(parts) or "No pattern changed", "bold" if parts else "")


def beside(changes: StateComparison) -> Content:
    """The results that came in."""
    return Content.styled(f"{plural(changes.helped, 'use')} helped, {changes.failed} failed", "$quiet")


def sums(changes: StateComparison) -> Content:
    """Who decided, what loops did, and what is asked."""
    begun, ended = changes.count(STARTED), changes.count(ENDED)
    asked = sum(question.new for question in changes.questions)
    settled = len(changes.questions) - asked
    parts = [f"{count} decided by {visible_line(by, 20)}" for by, count in changes.deciders.items()]
    parts += [f"{plural(begun, 'loop')} began"] * bool(begun) + [f"{plural(ended, 'loop')} ended"] * bool(ended)
    parts += [f"{plural(asked, 'question')} came up"] * bool(asked) + [f"{settled} settled"] * bool(settled)
    return Content.styled(", ".join(parts) or "nobody decided, no loop began or ended", "$quiet")


def since_note(last_visit: datetime | None, now: datetime) -> Content:
    """What stands behind the field of the first moment."""
    return Content.styled(f"visit {moment_text(last_visit, now)}" if last_visit else "7d, 36h, day", "$quiet")


def cells(change: Change, view: ProjectState, glyphs: Glyphs) -> Cells:
    """One row."""
    if isinstance(change, PatternChange):
        return _pattern_cells(change, glyphs)
    if isinstance(change, LoopChange):
        what = Content.assemble(
            ("began " if change.kind == STARTED else "ended ", "$quiet"), draw(status_sign(change.status), glyphs)
        )
        return _row(change.loop_id, what, change.task)
    if isinstance(change, QuestionChange):
        word = Content.styled("asked" if change.new else "settled", "$warning" if change.new else "$quiet")
        return _row(change.subject, word, change.text)
    said = f": {reason_text(change)}" if reason_text(change) else ""
    return _row(subject(view, change), Content(verb_text(change)), f"{change.by}{said}")


def _pattern_cells(change: PatternChange, glyphs: Glyphs) -> Cells:
    before, after = change.before, change.after
    if change.kind == RATE and before is not None and after is not None:
        moved = Content.assemble(
            (f"{percent(before.rate):>5}", "$quiet"), (f"   {glyphs.arrow} ", "$quiet"), percent(after.rate)
        )
    elif change.kind == CONTEXT and after is not None:
        word, style = ("loops get it", "") if after.injectable else ("kept out", "$warning")
        moved = Content.styled(word, style)
    else:
        start, end = (
            draw_state(one.state, glyphs, short=True) if one is not None else Content.styled(word, "$accent")
            for one, word in ((before, "new"), (after, "gone"))
        )
        start = start.pad_right(max(_STATE_CELLS - start.cell_length, 0))
        moved = Content.assemble(start, (f" {glyphs.arrow} ", "$quiet"), end)
    return _row(change.pattern_id, moved, change.because, change.title)


def _row(subject: str, change: Content, note: str, title: str = "") -> Cells:
    return {
        "id": Content.styled(visible_line(subject, 120), "$secondary"),
        "change": change,
        "note": Content(visible_line(note, 200)),
        "title": Content.styled(visible_line(title, 200), "$quiet"),
    }


def nothing_changed() -> Content:
    """Where nothing is listed."""
    return Content.styled("Nothing changed between these moments. Step back a day with the left key.", "$quiet")
