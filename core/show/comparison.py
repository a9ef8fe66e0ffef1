"""The page that compares two moments: what changed, from what to what, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_percent
from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.decisions.decision_text import author_text, verb_text
from core.records.patterns import Maturity
from core.records.times import minute_of
from core.show import state_changes as history
from core.show.decisions import Entry, group_decisions, subject_title
from core.show.pages import document as doc
from core.show.pages.decisions import reason_text
from core.show.pages.document import line
from core.show.pages.signs import state_sign, status_sign
from core.show.table import Cells, Column, list_table

if TYPE_CHECKING:
    from core.index.project_state import ProjectState

Change = history.PatternChange | history.LoopChange | history.QuestionChange | Entry
Counts = Mapping[Maturity, int]
COLUMNS: Final = (
    Column("title", "what", 30, flex=3, about="the pattern, the session, the question, or what was decided about"),
    Column("change", "then → now", 27, about="the state at the earlier moment and at the later one"),
    Column("why", "why", 26, flex=2, about="why it changed: a decision, results, or time"),
    Column("id", "id", 34, keep=0, keep_end=4, about="the ID, as commands take it"),
)
_SECTIONS: Final = ("Patterns", "Questions", "Decisions", "Sessions")


def list_changes(found: history.StateComparison) -> dict[str, Change]:
    """Return all changes by key: patterns, questions, decisions, sessions."""
    return {key_of(change): change for changes in _sections(found) for change in changes}


def key_of(change: Change) -> str:
    """Return the key of the row of a change: its kind and its ID."""
    match change:
        case history.PatternChange():
            return f"pattern {change.pattern_id}"
        case history.LoopChange():
            return f"loop {change.loop_id}"
        case history.QuestionChange():
            return f"question {change.kind} {change.subject} {change.new}"
    return f"decision {change.key}"


def _sections(found: history.StateComparison) -> tuple[Sequence[Change], ...]:
    return found.patterns, found.questions, group_decisions(found.decisions), found.loops


def change_cells(change: Change, state: ProjectState) -> Cells:
    """Return the cells of a row."""
    match change:
        case history.PatternChange():
            return _pattern_cells(change, state)
        case history.LoopChange():
            verb = "started " if change.kind == history.STARTED else "ended "
            return {
                "title": (change.task or change.loop_id,),
                "change": ((verb, "quiet"), status_sign(change.status)),
                "id": ((change.loop_id, "quiet"),),
            }
        case history.QuestionChange():
            word = ("asked", "warning") if change.new else ("resolved", "quiet")
            return {"title": (change.text,), "change": (word,), "id": ((change.subject, "quiet"),)}
    decision = change.decisions[0]
    reason = reason_text(decision)
    count = len(change.decisions)
    title = subject_title(decision, state.snapshot)
    return {
        "title": title[:-1] or title if count == 1 else (plural(count, "record"),),
        "change": (verb_text(decision),),
        "why": (f"{author_text(decision)}{f': {reason}' if reason else ''}",),
        "id": ((decision.subject, "quiet"),),
    }


def _pattern_cells(change: history.PatternChange, state: ProjectState) -> Cells:
    pattern = state.snapshot.patterns.get(change.pattern_id)
    return {
        "title": (pattern_title(pattern) if pattern is not None else change.title,),
        "change": _moved(change),
        "why": (change.because,),
        "id": ((change.pattern_id, "quiet"),),
    }


def _moved(change: history.PatternChange) -> doc.Text:
    """Return what a pattern was and is: its state, its success rate, or whether agents get it."""
    before, after = change.before, change.after
    if change.kind == history.RATE and before is not None and after is not None:
        return ((f"{_rate(before)} → ", "quiet"), _rate(after))
    if change.kind == history.CONTEXT and after is not None:
        return ("given again" if after.injectable else ("no longer given", "warning"),)
    start = state_sign(before.state.value) if before is not None else ("new", "accent")
    end = state_sign(after.state.value) if after is not None else ("removed", "accent")
    return state_change(start, end)


def state_change(start: doc.Part, end: doc.Part) -> doc.Text:
    """Return a change from one state to another."""
    return (start, (" → ", "quiet"), end)


def _rate(status: history.PatternStatus) -> str:
    return "—" if status.rate is None else format_percent(status.rate)


def pattern_summary(found: history.StateComparison) -> str:
    """Return how many patterns changed, by kind of change."""
    states, moved = found.count(history.STATE), found.count(history.CONTEXT) + found.count(history.RATE)
    parts = [f"{plural(states, 'pattern')} changed state"] * bool(states)
    parts += [f"{found.count(kind)} {kind}" for kind in (history.NEW, history.REMOVED) if found.count(kind)]
    parts += [f"{moved} changed in rate or delivery"] * bool(moved)
    return ", ".join(parts) or "No pattern changed"


def use_summary(found: history.StateComparison) -> str:
    """Return how many uses of patterns worked and failed."""
    return f"{plural(found.helped, 'use')} worked, {found.failed} failed"


def work_summary(found: history.StateComparison) -> str:
    """Return the numbers of decisions by author, of sessions, and of questions."""
    deciders = Counter(author_text(decision) for decision in found.decisions).most_common()
    started, ended = found.count(history.STARTED), found.count(history.ENDED)
    asked = sum(question.new for question in found.questions)
    resolved = len(found.questions) - asked
    parts = [f"{count} decided by {by}" for by, count in deciders]
    parts += [f"{plural(started, 'session')} started"] * bool(started)
    parts += [f"{plural(ended, 'session')} ended"] * bool(ended)
    parts += [f"{plural(asked, 'new question')}"] * bool(asked) + [f"{resolved} resolved"] * bool(resolved)
    return ", ".join(parts) or "no decision, no session started or ended"


def count_table(before: Counts, after: Counts, titles: tuple[str, str] = ("then", "now")) -> doc.Table:
    """Return the number of patterns per state at both moments."""
    rows: list[tuple[doc.Text, ...]] = []
    for state in Maturity:
        then, now = before[state], after[state]
        difference = (f"{now - then:+,}" if now != then else "", "accent")
        rows.append(((state_sign(state.value),), (f"{then:,}",), (f"{now:,}",), (difference,)))
    return doc.Table(("state", *titles, "change"), tuple(rows), right=(1, 2))


def comparison_document(found: history.StateComparison, state: ProjectState, limit: int | None = None) -> doc.Document:
    """Return the page of a comparison; each section has at most `limit` rows."""
    sections: list[doc.Block] = []
    for title, changes in zip(_SECTIONS, _sections(found), strict=True):
        sections += doc.section(title, _section_blocks(changes, state, limit, title))
    return doc.Document(
        f"{minute_of(found.since)} to {minute_of(found.until)} UTC",
        (
            line("; ".join((pattern_summary(found), use_summary(found), work_summary(found)))),
            count_table(found.states_before, found.states_after),
            *sections,
        ),
    )


def _section_blocks(
    changes: Sequence[Change], state: ProjectState, limit: int | None, title: str
) -> Iterable[doc.Block]:
    if changes:
        rows = [change_cells(change, state) for change in changes[:limit]]
        yield list_table(COLUMNS, rows, ("title", "change", "id", "why"))
        if limit is not None:
            yield from doc.more(len(changes), title.lower().removesuffix("s"), limit)
