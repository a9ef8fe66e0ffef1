"""Compare two project states; the changes with the most effect on loops come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from core.base.text import plural, visible_line
from core.decisions.decision_text import author_text
from core.index.review_items import (
    BROAD,
    DUPLICATE,
    EDITED,
    HARMFUL,
    LESSON,
    OFFER,
    PROPOSAL,
    RECURRING,
    RENAMED,
    SELDOM,
    STALE,
    UNRECONCILED,
    WEAKENED,
    ReviewItem,
)
from core.learning.states import STATES
from core.records.decisions import TURNS, Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity, Pattern

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Flags, Ints

MIN_RATE_CHANGE: Final = 0.1  # minimum change of a success rate (0..1) to list a pattern whose state is unchanged
NEW: Final = "new"
REMOVED: Final = "gone"
STATE: Final = "state"
CONTEXT: Final = "context"
RATE: Final = "rate"
STARTED: Final = "begun"
ENDED: Final = "ended"

_UNDATED: Final = frozenset(
    {
        BROAD,
        DUPLICATE,
        EDITED,
        HARMFUL,
        LESSON,
        OFFER,
        PROPOSAL,
        RECURRING,
        RENAMED,
        SELDOM,
        STALE,
        UNRECONCILED,
        WEAKENED,
    }
)
"""Kinds of questions that are not compared: searches find them in the present state, so their start is unknown."""
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
    questions: tuple[QuestionChange, ...]  # new ones first, then by priority; without kinds in `_UNDATED`
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
        is_dated = item.kind not in _UNDATED and item.held_text is None
        if is_dated and (item.kind, item.question_key) not in known:
            yield QuestionChange(kind=item.kind, subject=item.subject, text=item.question, new=new)


def _count_states(board: Scoreboard) -> dict[Maturity, int]:
    counts = np.bincount(board.state_codes, minlength=len(STATES)).tolist()
    return {state: counts[code] for code, state in enumerate(STATES)}
