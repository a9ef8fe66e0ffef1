"""What changed between two moments: patterns, decisions, loops and questions, what matters most to loops first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct

from core.base.text import plural, visible_line
from core.learning.score_arrays import Flags, Ints
from core.learning.scoreboard import Scoreboard
from core.learning.states import STATES
from core.records.decisions import TURNS, Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity
from core.state.project_state import ProjectState
from core.state.review_items import BROAD, DUPLICATE, OFFER, RECURRING, UNRECONCILED, ReviewItem

RATE_MOVED: Final = 0.1
"""How far a success rate must move to be told of a pattern whose state stayed."""
NEW: Final = "new"
GONE: Final = "gone"
STATE: Final = "state"
CONTEXT: Final = "context"
RATE: Final = "rate"
BEGUN: Final = "begun"
ENDED: Final = "ended"

_UNDATED: Final = frozenset({BROAD, DUPLICATE, OFFER, RECURRING, UNRECONCILED})
"""Kinds of questions that are found by looking around at the present, so that nobody knows since when they stand."""
_TURNING: Final = frozenset(
    {
        *(Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET, Verb.ACCEPT_INVERSION, Verb.REJECT_INVERSION, Verb.QUARANTINE),
        *(Verb.RELEASE, Verb.EDIT, Verb.MERGE, Verb.IMPORT, Verb.EXTRACT, Verb.ARCHIVE, Verb.RESTORE),
    }
)
"""Decisions that may turn a pattern, bring it or take it away."""


class Standing(Struct, frozen=True, kw_only=True):
    """How a pattern stood at one moment.

    Attributes:
        rate: Success rate as shown, 0..1; None without any result.
        score: effectiveness x multiplier.
        injectable: Whether loops could get it.
    """

    state: Maturity
    rate: float | None
    successes: int
    failures: int
    uses: int
    score: float
    injectable: bool

    @property
    def worth(self) -> float:
        """The score that loops saw: none of what they could not get."""
        return self.score if self.injectable else 0.0


class PatternChange(Struct, frozen=True, kw_only=True):
    """What became of one pattern.

    Attributes:
        kind: `new`, `gone`, `state`, `context` (loops get it now, or no more) or `rate`.
        title: Untrusted.
        before, after: None where it did not exist.
        because: The decision, the results or the time that did it, in one line.
        by: Who decided so, "" if nobody did.
    """

    pattern_id: str
    title: str
    kind: str
    before: Standing | None
    after: Standing | None
    because: str
    by: str = ""

    @property
    def weight(self) -> float:
        """How much loops notice: how far the score moved that they saw, 0 up."""
        return abs((self.after.worth if self.after else 0.0) - (self.before.worth if self.before else 0.0))


class LoopChange(Struct, frozen=True, kw_only=True):
    """A loop that began or came to its end; one that did both is told once, as ended."""

    loop_id: str
    kind: str
    task: str
    status: LoopStatus
    at: datetime | None


class Question(Struct, frozen=True, kw_only=True):
    """A question of Review that came up, or that was answered or has settled itself."""

    kind: str
    subject: str
    text: str
    new: bool


class Changes(Struct, frozen=True, kw_only=True):
    """What changed between two moments.

    Attributes:
        patterns: Those that loops notice most first.
        decisions: Newest first, undo and redo among them.
        loops: Newest first.
        questions: Most worth first, the new ones before the others. Those that are found by looking around, such as
            near-duplicates, have no beginning and are left out.
        helped, failed, other: Results that came in, and uses without one.
        states_before, states_after: How many patterns each state has.
    """

    since: datetime
    until: datetime
    patterns: tuple[PatternChange, ...]
    decisions: tuple[Decision, ...]
    loops: tuple[LoopChange, ...]
    questions: tuple[Question, ...]
    helped: int
    failed: int
    other: int
    states_before: dict[Maturity, int]
    states_after: dict[Maturity, int]

    @property
    def deciders(self) -> dict[str, int]:
        """How many decisions each person made, the busiest first."""
        return dict(Counter(decision.by for decision in self.decisions).most_common())

    def count(self, kind: str) -> int:
        """How many patterns or loops changed so."""
        kinds = (*(change.kind for change in self.patterns), *(change.kind for change in self.loops))
        return kinds.count(kind)


def changes_between(before: ProjectState, after: ProjectState) -> Changes:
    """Compare two views of one project; of the past make them with `core.history.as_of.view_at`.

    Takes some ms for 100,000 patterns, and as long again for each 10,000 that changed.
    """
    decisions = tuple(
        decision for decision in reversed(after.snapshot.decisions) if before.now < decision.at <= after.now
    )
    pairs = _Pairs(before.board, after.board)
    helped, failed, uses = pairs.more()
    changes = sorted(
        _patterns(before, after, pairs, decisions), key=lambda one: (-one.weight, one.kind, one.pattern_id)
    )
    return Changes(
        since=before.now,
        until=after.now,
        patterns=tuple(changes),
        decisions=decisions,
        loops=tuple(_loops(before.snapshot.loops, after.snapshot.loops)),
        questions=(*_questions(after.queue, before.queue, new=True), *_questions(before.queue, after.queue, new=False)),
        helped=helped,
        failed=failed,
        other=max(uses - helped - failed, 0),
        states_before=_counted(before.board),
        states_after=_counted(after.board),
    )


class _Pairs:
    """The patterns of two boards: which rows are those of the same pattern."""

    def __init__(self, before: Scoreboard, after: Scoreboard) -> None:
        self.before, self.after = before, after
        self.both = [id for id in after.ids if id in before]
        self.new = [id for id in after.ids if id not in before]
        self.gone = [id for id in before.ids if id not in after]
        self._rows = before.rows_of(self.both), after.rows_of(self.both)

    def more(self) -> tuple[int, int, int]:
        """(successes, failures, uses) that came in: counts that a pattern lost, as by a merge, are no uses."""
        fresh = self.after.rows_of(self.new)

        def grown(name: str) -> int:
            then: Ints = getattr(self.before, name)[self._rows[0]]
            now: Ints = getattr(self.after, name)
            return int(np.maximum(now[self._rows[1]] - then, 0).sum() + now[fresh].sum())

        return grown("successes"), grown("failures"), grown("uses")

    def turned(self) -> Iterator[tuple[str, str]]:
        """(id, kind) of the patterns that stand otherwise now."""
        (old, new), (then, now) = self._rows, (self.before, self.after)
        state: Flags = then.state_codes[old] != now.state_codes[new]
        context: Flags = then.injectable[old] != now.injectable[new]
        with np.errstate(invalid="ignore"):
            rate: Flags = np.abs(then.rate[old] - now.rate[new]) >= RATE_MOVED
        for place in np.flatnonzero(state | context | rate).tolist():
            yield self.both[place], STATE if state[place] else CONTEXT if context[place] else RATE


def _patterns(
    before: ProjectState, after: ProjectState, pairs: _Pairs, decisions: Iterable[Decision]
) -> Iterator[PatternChange]:
    decided = _deciding(decisions, after.snapshot.decisions)
    gone = before.snapshot.patterns
    for id in pairs.gone:
        because, by = _decision(_moved(decided.get(id), id)) or ("its record is there no more", "")
        title, then = gone[id].title, _standing(before, id)
        yield PatternChange(pattern_id=id, title=title, kind=GONE, before=then, after=None, because=because, by=by)
    for id in pairs.new:
        because, by = _decision(_moved(decided.get(id), id)) or ("discovered", "")
        title, now = after.snapshot.patterns[id].title, _standing(after, id)
        yield PatternChange(pattern_id=id, title=title, kind=NEW, before=None, after=now, because=because, by=by)
    for id, kind in pairs.turned():
        then, now = _standing(before, id), _standing(after, id)
        because, by = (_decision(decided.get(id)) if kind != RATE else None) or (_evidence(then, now), "")
        title = after.snapshot.patterns[id].title
        yield PatternChange(pattern_id=id, title=title, kind=kind, before=then, after=now, because=because, by=by)


def _standing(view: ProjectState, pattern_id: str) -> Standing:
    board = view.board
    row = board.row(pattern_id)
    rate = float(board.rate[row])
    return Standing(
        state=STATES[board.state_codes[row]],
        rate=None if np.isnan(rate) else rate,
        successes=int(board.successes[row]),
        failures=int(board.failures[row]),
        uses=int(board.uses[row]),
        score=float(board.score[row]),
        injectable=bool(board.injectable[row]),
    )


def _deciding(decisions: Iterable[Decision], known: Iterable[Decision]) -> Mapping[str, tuple[Decision, Decision]]:
    """The newest decision that may have turned each pattern, with the one that it took back, repeated, or is.

    Args:
        decisions: Newest first.
        known: All of them.
    """
    by_id: dict[str, Decision] | None = None
    found: dict[str, tuple[Decision, Decision]] = {}
    for decision in decisions:
        about = decision
        if decision.verb in TURNS:
            by_id = {one.id: one for one in known} if by_id is None else by_id
            about = by_id.get(decision.subject, decision)
        if about.verb in _TURNING:
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


def _moved(found: tuple[Decision, Decision] | None, pattern_id: str) -> tuple[Decision, Decision] | None:
    """The same, if it put the pattern's record in or took it out."""
    effects = found[0].effects if found is not None else ()
    moves = (one.pattern_id == pattern_id and (one.remove or one.insert is not None) for one in effects)
    return found if any(moves) else None


def _decision(found: tuple[Decision, Decision] | None) -> tuple[str, str] | None:
    if found is None:
        return None
    decision, about = found
    word = about.verb.value.replace("_", " ")
    what = word if about is decision else f"{decision.verb.value} of {word}"
    reason = f": {visible_line(decision.reason, 200)}" if decision.reason else ""
    return f"{what} by {visible_line(decision.by, 40)}{reason}", decision.by


def _evidence(before: Standing, after: Standing) -> str:
    """The results that did it; time alone where there are none."""
    good, bad = after.successes - before.successes, after.failures - before.failures
    told = [f"{good} more helped"] * (good > 0) + [f"{bad} more failed"] * (bad > 0)
    told += [f"{plural(-good, 'success', 'successes')} no longer counted"] * (good < 0)
    told += [f"{plural(-bad, 'failure')} no longer counted"] * (bad < 0)
    return ", ".join(told) or "time: older evidence counts less"


def _loops(before: Mapping[str, Loop], after: Mapping[str, Loop]) -> Iterator[LoopChange]:
    for loop in after.values():
        then = before.get(loop.id)
        ended = loop.status.ended and (then is None or not then.status.ended)
        if ended or then is None:
            kind, at = (ENDED, loop.ended_at) if ended else (BEGUN, loop.started_at)
            yield LoopChange(loop_id=loop.id, kind=kind, task=loop.task, status=loop.status, at=at)


def _questions(here: Iterable[ReviewItem], there: Iterable[ReviewItem], *, new: bool) -> Iterator[Question]:
    known = {(item.kind, item.question_key) for item in there}
    for item in here:
        if item.kind not in _UNDATED and (item.kind, item.question_key) not in known:
            yield Question(kind=item.kind, subject=item.subject, text=item.question, new=new)


def _counted(board: Scoreboard) -> dict[Maturity, int]:
    counts = np.bincount(board.state_codes, minlength=len(STATES)).tolist()
    return {state: counts[code] for code, state in enumerate(STATES)}
