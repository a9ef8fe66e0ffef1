"""Compare two project states; changes with the most effect on loops are first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from core.base.formatting import format_percent
from core.base.pattern_titles import pattern_title
from core.base.text import plural, visible_line
from core.decisions.case import author_text, verb_text
from core.index.review_items import KINDS, ReviewItem
from core.learning.maturity import STATES, multiplier
from core.records.decisions import TURNS, Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity, Pattern
from core.records.times import minute_of
from core.show.decisions import Entry, group_decisions, subject_title
from core.show.pages import document as doc
from core.show.pages.document import Cells, Column, line, list_table
from core.show.pages.signs import reason_text, state_sign, status_sign

if TYPE_CHECKING:
    from core.base.settings import Setting, Settings
    from core.index.project_state import ProjectState
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Flags, Ints
    from core.learning.threshold_replay import PatternDifference, Replay


MIN_RATE_CHANGE: Final = 0.1  # minimum change of a success rate (0..1) to list a pattern whose state is unchanged
NEW: Final = "new"
REMOVED: Final = "gone"
STATE: Final = "state"
CONTEXT: Final = "context"
RATE: Final = "rate"
STARTED: Final = "begun"
ENDED: Final = "ended"

_PINNING_VERBS: Final = frozenset({Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET})
_CHANGING_VERBS: Final = frozenset(
    {
        *(Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET, Verb.ACCEPT_INVERSION, Verb.REJECT_INVERSION, Verb.QUARANTINE),
        *(Verb.RELEASE, Verb.EDIT, Verb.MERGE, Verb.IMPORT, Verb.EXTRACT, Verb.ARCHIVE, Verb.RESTORE),
    }
)  # decisions that may add, remove or change a pattern


class PatternStatus(Struct, frozen=True, kw_only=True):
    """State of a pattern at one time."""

    state: Maturity
    rate: float | None  # success rate as shown, 0..1; None without results
    successes: int
    failures: int
    uses: int
    score: float  # effectiveness x multiplier
    injectable: bool  # whether it could be injected


class PatternChange(Struct, frozen=True, kw_only=True):
    """Change of one pattern."""

    pattern_id: str
    title: str  # untrusted
    kind: str  # `new`, `gone`, `state`, `context` (whether it can be injected changed) or `rate`
    before: PatternStatus | None  # None if the pattern did not exist
    after: PatternStatus | None  # None if the pattern does not exist any more
    because: str  # cause in one line: a decision, results, or time
    by: str = ""  # author of the decision, "" without one

    @property
    def weight(self) -> float:
        """Effect on loops: absolute change of the score, which is 0 if not injectable."""
        before, after = (one.score if one and one.injectable else 0.0 for one in (self.before, self.after))
        return abs(after - before)


class LoopChange(Struct, frozen=True, kw_only=True):
    """A loop that started or ended; if it did both, the change is its end."""

    loop_id: str
    kind: str
    task: str
    status: LoopStatus
    at: datetime | None


class QuestionChange(Struct, frozen=True, kw_only=True):
    """A review question that is new, or no longer asked."""

    kind: str
    subject: str
    text: str
    new: bool


class StateComparison(Struct, frozen=True, kw_only=True):
    """Differences between two project states."""

    since: datetime
    until: datetime
    patterns: tuple[PatternChange, ...]  # by effect on loops, largest first
    decisions: tuple[Decision, ...]  # newest first, including undo and redo
    loops: tuple[LoopChange, ...]  # newest first
    questions: tuple[QuestionChange, ...]  # new ones first, then by priority; without kinds whose start is unknown
    helped: int  # number of new successes
    failed: int  # number of new failures
    other: int  # number of new uses without a result
    states_before: dict[Maturity, int]  # number of patterns by state
    states_after: dict[Maturity, int]

    @property
    def longest(self) -> int:
        """Number of rows of the longest part."""
        return max(map(len, (self.patterns, self.decisions, self.loops, self.questions)))

    def count(self, kind: str) -> int:
        """Return the number of pattern and loop changes of a kind."""
        kinds = (*(change.kind for change in self.patterns), *(change.kind for change in self.loops))
        return kinds.count(kind)


def compare_states(before: ProjectState, after: ProjectState) -> StateComparison:
    """Compare two states of a project; `core.project.as_of` computes past states.

    Takes a few ms for 100,000 patterns, and about as long again for each 10,000 changed patterns.
    """
    decisions = tuple(
        decision for decision in reversed(after.snapshot.decisions) if before.now < decision.at <= after.now
    )
    pairs = _Pairs(before.board, after.board)
    helped, failed, uses = pairs.count_new()
    changes = sorted(
        _patterns(before, after, pairs, decisions), key=lambda one: (-one.weight, one.kind, one.pattern_id)
    )
    return StateComparison(
        since=before.now,
        until=after.now,
        patterns=tuple(changes),
        decisions=decisions,
        loops=tuple(_loops(before.snapshot.loops, after.snapshot.loops)),
        questions=(*_questions(after.queue, before.queue, new=True), *_questions(before.queue, after.queue, new=False)),
        helped=helped,
        failed=failed,
        other=max(uses - helped - failed, 0),
        states_before=_count_states(before.board),
        states_after=_count_states(after.board),
    )


class _Pairs:
    """Pairs of rows of the same pattern on two scoreboards."""

    def __init__(self, before: Scoreboard, after: Scoreboard) -> None:
        self.before, self.after = before, after
        self.both = [id for id in after.ids if id in before]
        self.new = [id for id in after.ids if id not in before]
        self.removed = [id for id in before.ids if id not in after]
        self._rows = before.rows_of(self.both), after.rows_of(self.both)

    def count_new(self) -> tuple[int, int, int]:
        """Return the new (successes, failures, uses); decreases by merges are ignored."""
        fresh = self.after.rows_of(self.new)

        def increase(name: str) -> int:
            then: Ints = getattr(self.before, name)[self._rows[0]]
            now: Ints = getattr(self.after, name)
            return int(np.maximum(now[self._rows[1]] - then, 0).sum() + now[fresh].sum())

        return increase("successes"), increase("failures"), increase("uses")

    def find_changed(self) -> Iterator[tuple[str, str]]:
        """Yield (ID, kind of change) of patterns that exist in both states and changed."""
        (old, new), (then, now) = self._rows, (self.before, self.after)
        state: Flags = then.state_codes[old] != now.state_codes[new]
        context: Flags = then.injectable[old] != now.injectable[new]
        with np.errstate(invalid="ignore"):
            rate: Flags = np.abs(then.rate[old] - now.rate[new]) >= MIN_RATE_CHANGE
        for place in np.flatnonzero(state | context | rate).tolist():
            yield self.both[place], STATE if state[place] else CONTEXT if context[place] else RATE


def _patterns(
    before: ProjectState, after: ProjectState, pairs: _Pairs, decisions: Iterable[Decision]
) -> Iterator[PatternChange]:
    decided = _find_decisions(decisions, after.snapshot.decisions)
    old, new = before.snapshot.patterns, after.snapshot.patterns
    changes = [*((id, REMOVED) for id in pairs.removed), *((id, NEW) for id in pairs.new), *pairs.find_changed()]
    for id, kind in changes:
        then = None if kind == NEW else _status_of(before, id)
        now = None if kind == REMOVED else _status_of(after, id)
        decision, about = decided.get(id, (None, None))
        if then is None or now is None:
            is_cause = decision is not None and any(
                one.pattern_id == id and (one.remove or one.insert is not None) for one in decision.effects
            )
            because = _describe_origin(new[id], after) if now else "its record was removed"
        else:
            has_new_pin = before.assessment(id).pin != after.assessment(id).pin
            is_cause = kind != RATE and (has_new_pin or about is None or about.verb not in _PINNING_VERBS)
            because = _describe_evidence(then, now)
        by = ""
        if decision and about and is_cause:
            word = about.verb.value.replace("_", " ")
            what = word if about is decision else f"{decision.verb.value} of {word}"
            reason = f": {visible_line(decision.reason, 200)}" if decision.reason else ""
            because, by = f"{what} by {visible_line(author_text(decision), 40)}{reason}", decision.by
        title = (old if kind == REMOVED else new)[id].title
        yield PatternChange(pattern_id=id, title=title, kind=kind, before=then, after=now, because=because, by=by)


def _status_of(view: ProjectState, pattern_id: str) -> PatternStatus:
    board = view.board
    row = board.row(pattern_id)
    rate = float(board.rate[row])
    names = ("successes", "failures", "uses", "score", "injectable")
    values: dict[str, Any] = {name: getattr(board, name)[row].item() for name in names}
    return PatternStatus(state=STATES[board.state_codes[row]], rate=None if np.isnan(rate) else rate, **values)


def _find_decisions(
    decisions: Iterable[Decision], known: Iterable[Decision]
) -> Mapping[str, tuple[Decision, Decision]]:
    """Map pattern IDs to the newest decision, and to the one it undoes (or itself)."""
    by_id: dict[str, Decision] | None = None
    found: dict[str, tuple[Decision, Decision]] = {}
    for decision in decisions:
        about = decision
        if decision.verb in TURNS:
            by_id = {one.id: one for one in known} if by_id is None else by_id
            about = by_id.get(decision.subject, decision)
        if about.verb in _CHANGING_VERBS:
            for id in _subjects(about):
                found.setdefault(id, (decision, about))
    return found


def _subjects(decision: Decision) -> Iterator[str]:
    yield decision.subject
    for key in ("anti_id", "merged"):
        if isinstance(one := decision.after.get(key), str):
            yield one
    for key in ("patterns", "joined"):
        many = decision.after.get(key)
        yield from (one for one in many if isinstance(one, str)) if isinstance(many, list | tuple) else ()


def _describe_origin(pattern: Pattern, state: ProjectState) -> str:
    """Describe where a new pattern was found: the task of its first source loop."""
    loop = next((loop for one in pattern.source_loops if (loop := state.snapshot.loops.get(one.loop_id))), None)
    return f"found in “{visible_line(loop.task, 80)}”" if loop is not None and loop.task else "discovered"


def _describe_evidence(before: PatternStatus, after: PatternStatus) -> str:
    """Describe the new results that caused a change; without any, it is decay."""
    good, bad = after.successes - before.successes, after.failures - before.failures
    parts = [f"{good} more helped"] * (good > 0) + [f"{bad} more failed"] * (bad > 0)
    parts += [f"{plural(-good, 'success', 'successes')} no longer counted"] * (good < 0)
    parts += [f"{plural(-bad, 'failure')} no longer counted"] * (bad < 0)
    return ", ".join(parts) or "decay: older evidence counts less"


def _loops(before: Mapping[str, Loop], after: Mapping[str, Loop]) -> Iterator[LoopChange]:
    for loop in after.values():
        then = before.get(loop.id)
        ended = loop.status.ended and (then is None or not then.status.ended)
        if ended or then is None:
            kind, at = (ENDED, loop.ended_at) if ended else (STARTED, loop.started_at)
            yield LoopChange(loop_id=loop.id, kind=kind, task=loop.task, status=loop.status, at=at)


def _questions(here: Iterable[ReviewItem], there: Iterable[ReviewItem], *, new: bool) -> Iterator[QuestionChange]:
    known = {(item.kind, item.question_key) for item in there}
    for item in here:
        is_dated = KINDS[item.kind].is_dated and item.held_text is None
        if is_dated and (item.kind, item.question_key) not in known:
            yield QuestionChange(kind=item.kind, subject=item.subject, text=item.question, new=new)


def _count_states(board: Scoreboard) -> dict[Maturity, int]:
    counts = np.bincount(board.state_codes, minlength=len(STATES)).tolist()
    return {state: counts[code] for code, state in enumerate(STATES)}


Change = PatternChange | LoopChange | QuestionChange | Entry
Counts = Mapping[Maturity, int]
COLUMNS: Final = (
    Column("title", "what", 30, flex=3, about="the pattern, the session, the question, or what was decided about"),
    Column("change", "then → now", 27, about="the state at the earlier moment and at the later one"),
    Column("why", "why", 26, flex=2, about="why it changed: a decision, results, or time"),
    Column("id", "id", 34, keep=0, keep_end=4, about="the ID, as commands take it"),
)
_SECTIONS: Final = ("Patterns", "Questions", "Decisions", "Sessions")


def list_changes(found: StateComparison) -> dict[str, Change]:
    """Return all changes by key: patterns, questions, decisions, sessions."""
    return {key_of(change): change for changes in _sections(found) for change in changes}


def key_of(change: Change) -> str:
    """Return the key of the row of a change: its kind and its ID."""
    match change:
        case PatternChange():
            return f"pattern {change.pattern_id}"
        case LoopChange():
            return f"loop {change.loop_id}"
        case QuestionChange():
            return f"question {change.kind} {change.subject} {change.new}"
    return f"decision {change.key}"


def _sections(found: StateComparison) -> tuple[Sequence[Change], ...]:
    return found.patterns, found.questions, group_decisions(found.decisions), found.loops


def change_cells(change: Change, state: ProjectState) -> Cells:
    """Return the cells of a row."""
    match change:
        case PatternChange():
            return _pattern_cells(change, state)
        case LoopChange():
            verb = "started " if change.kind == STARTED else "ended "
            return {
                "title": (change.task or change.loop_id,),
                "change": ((verb, "quiet"), status_sign(change.status)),
                "id": ((change.loop_id, "quiet"),),
            }
        case QuestionChange():
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


def _pattern_cells(change: PatternChange, state: ProjectState) -> Cells:
    pattern = state.snapshot.patterns.get(change.pattern_id)
    return {
        "title": (pattern_title(pattern) if pattern is not None else change.title,),
        "change": _moved(change),
        "why": (change.because,),
        "id": ((change.pattern_id, "quiet"),),
    }


def _moved(change: PatternChange) -> doc.Text:
    """Return what a pattern was and is: state, success rate, or if agents get it."""
    before, after = change.before, change.after
    if change.kind == RATE and before is not None and after is not None:
        return ((f"{format_percent(before.rate)} → ", "quiet"), format_percent(after.rate))
    if change.kind == CONTEXT and after is not None:
        return ("given again" if after.injectable else ("no longer given", "warning"),)
    start = state_sign(before.state.value) if before is not None else ("new", "accent")
    end = state_sign(after.state.value) if after is not None else ("removed", "accent")
    return state_change(start, end)


def state_change(start: doc.Part, end: doc.Part) -> doc.Text:
    """Return a change from one state to another."""
    return (start, (" → ", "quiet"), end)


def pattern_summary(found: StateComparison) -> str:
    """Return how many patterns changed, by kind of change."""
    states, moved = found.count(STATE), found.count(CONTEXT) + found.count(RATE)
    parts = [f"{plural(states, 'pattern')} changed state"] * bool(states)
    parts += [f"{found.count(kind)} {kind}" for kind in (NEW, REMOVED) if found.count(kind)]
    parts += [f"{moved} changed in rate or delivery"] * bool(moved)
    return ", ".join(parts) or "No pattern changed"


def use_summary(found: StateComparison) -> str:
    """Return how many uses of patterns worked and failed."""
    return f"{plural(found.helped, 'use')} worked, {found.failed} failed"


def work_summary(found: StateComparison) -> str:
    """Return the numbers of decisions by author, of sessions, and of questions."""
    deciders = Counter(author_text(decision) for decision in found.decisions).most_common()
    started, ended = found.count(STARTED), found.count(ENDED)
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


def comparison_document(found: StateComparison, state: ProjectState, limit: int | None = None) -> doc.Document:
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


DIFFERENCE_COLUMNS: Final = (
    Column("title", "what", 30, flex=3, about="the error, or the name of the pattern"),
    Column("change", "now → what if", 27, about="its state now and with the changed thresholds"),
    Column("why", "besides", 24, flex=1, about="what changes besides"),
    Column("id", "id", 34, keep=0, keep_end=4, about="the ID, as commands take it"),
)


def by_consequence(replay: Replay, settings: Settings) -> list[PatternDifference]:
    """Return the changed patterns, largest consequence first.

    New and dropped inversions come first, then deprecations, then the change of the multiplier. Pinned patterns come
    last: their state does not change until they are reset.
    """
    multipliers = {state: multiplier(state, settings.maturity) for state in Maturity}

    def rank(turn: PatternDifference) -> tuple[bool, bool, bool, float, str]:
        before, after = turn.before, turn.after
        dropped = (before.state is Maturity.DEPRECATED) is not (after.state is Maturity.DEPRECATED)
        moved = abs(multipliers[after.state] - multipliers[before.state])
        return turn.pinned, before.inverts is after.inverts, not dropped, -moved, turn.pattern_id

    return sorted(replay.turns, key=rank)


def replay_summary(replay: Replay) -> str:
    """Return how many patterns would change, as a sentence."""
    total = sum(replay.before.values())
    changes = [(turn.before, turn.after) for turn in replay.turns]
    states = sum(before.state is not after.state for before, after in changes)
    more = sum(after.inverts and not before.inverts for before, after in changes)
    fewer = sum(before.inverts and not after.inverts for before, after in changes)
    parts = [f"{states} of {plural(total, 'pattern')} {'changes' if states == 1 else 'change'} state"]
    if not states:
        parts = ["no pattern changes state"] if more or fewer else ["Nothing changes"]
    parts += [f"{more} would invert"] * bool(more) + [f"{fewer} would no longer invert"] * bool(fewer)
    text = ", ".join(parts)
    return text[0].upper() + text[1:]


def difference_cells(turn: PatternDifference, state: ProjectState) -> Cells:
    """Return the cells of a row."""
    pattern = state.snapshot.patterns.get(turn.pattern_id)
    start, end = (state_sign(one.state.value) for one in (turn.before, turn.after))
    return {
        "title": (pattern_title(pattern) if pattern is not None else turn.pattern_id,),
        "change": (end,) if turn.before.state is turn.after.state else state_change(start, end),
        "why": _note(turn),
        "id": ((turn.pattern_id, "quiet"),),
    }


def _note(turn: PatternDifference) -> doc.Text:
    """Return the change of inversion, or the pin, or the start of the new state."""
    before, after = turn.before, turn.after
    if after.inverts and not before.inverts:
        since = (" since ", doc.Moment(after.inverted_at, "warning")) if after.inverted_at else ()
        return (("pinned, inverts" if turn.pinned else "would invert", "warning"), *since)
    if before.inverts and not after.inverts:
        return ("pinned, no longer inverts" if turn.pinned else "would no longer invert",)
    if turn.pinned:
        return (("pinned: state stays", "quiet"),)
    return (("since ", "quiet"), doc.Moment(after.since)) if after.since else ()


def what_if_document(replay: Replay, tried: Sequence[Setting], settings: Settings, state: ProjectState) -> doc.Document:
    """Return the page of a what-if; `tried` are thresholds changed in `settings`."""
    return doc.Document(
        "What if",
        (
            *(line(f"{known.name}: {known.text(state.settings)} → {known.text(settings)}") for known in tried),
            line(
                (replay_summary(replay), "strong"),
                (f"  {plural(replay.events, 'result')} replayed, states by rule, without pins", "quiet"),
            ),
            count_table(replay.before, replay.after, ("now", "what if")),
            *_changes(by_consequence(replay, settings), state),
        ),
    )


def _changes(turns: Sequence[PatternDifference], state: ProjectState) -> Iterable[doc.Block]:
    if turns:
        rows = [difference_cells(turn, state) for turn in turns]
        yield from doc.section("Patterns", [list_table(DIFFERENCE_COLUMNS, rows, ("title", "change", "id", "why"))])
