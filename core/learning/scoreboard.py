"""All patterns' evidence and states at once, kept as arrays so that time and events cost little.

Decayed sums are kept as they stood at one reference time. Since everything in them decays by the same factor,
their value now is one multiplication away, whatever the number of events behind them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import numpy as np

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.config.settings import Settings
from core.learning.aggregate_evidence import claimed_rate
from core.learning.assessment import HELD, HUMAN, INVERSION, QUARANTINE, RULE, Assessment
from core.learning.bursts import Burst
from core.learning.calendar import change_within, next_change
from core.learning.decay import SECONDS_PER_DAY
from core.learning.evidence_inputs import IgnoredReport, Inputs
from core.learning.inversion_proposals import Alternatives, Inversion, propose
from core.learning.inversion_rules import inversion_triggered
from core.learning.loop_patterns import LoopPatterns
from core.learning.outcomes import Outcome, OutcomeSignals, score_outcome
from core.learning.reconciliation import reconcile
from core.learning.recorded_uses import EVENT_LOG, LOOP
from core.learning.score_arrays import NO_PIN, Codes, Columns, Flags, Floats, Ints, Tally
from core.learning.states import CODES, STATES, decayed_counts, multipliers, state_codes
from core.learning.statistics import jeffreys_intervals
from core.learning.threshold_replay import History
from core.learning.use_times import GONE, Dated, DatedTally
from core.records.decisions import CurationState, Pin
from core.records.events import Observation
from core.records.findings import Finding
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Delta, Snapshot
from core.records.suspicions import Severity
from core.scanning.verdict import stops, stops_orders

__all__ = ["Assessment", "Scoreboard"]

_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""A float cannot tell the last instants of time from what comes after it."""
_MAX_HALF_LIVES: Final = 500.0
"""How far the sums may be from their reference time: 2**500 is still well inside a float."""


@dataclass(frozen=True)
class Scoreboard:
    """Every pattern's assessment at one moment; never changed, only replaced. Make one with `build`.

    The arrays have one row per pattern, in the order of `ids`; times are epoch seconds, NaN = unknown.

    Attributes:
        ids: Pattern ids.
        now: The moment that it is about.
        settings: The thresholds that it was made with.
        dated: When its patterns were used.
    """

    ids: tuple[str, ...]
    now: datetime
    settings: Settings
    dated: Dated
    _rows: Mapping[str, int]
    _inputs: Inputs
    _columns: Columns
    _epoch: float
    _filled: float
    """The newest moment that evidence was summed at; the sums hold from there on."""

    @classmethod
    def build(cls, snapshot: Snapshot, now: datetime, settings: Settings) -> Scoreboard:
        """Assess everything from scratch: about 10 us a pattern."""
        ids = tuple(snapshot.patterns)
        board = cls(
            ids,
            now,
            settings,
            Dated.none(),
            {id: row for row, id in enumerate(ids)},
            Inputs.of(snapshot, settings.learning),
            Columns.empty(len(ids)),
            now.timestamp(),
            now.timestamp(),
        )
        return replace(board, dated=board._fill(ids))

    def updated(self, snapshot: Snapshot, delta: Delta, now: datetime) -> Scoreboard:
        """What `build` would give, assessing anew only what `delta` touches."""
        if not self._reaches(now) or self._inputs.renames(snapshot, delta):
            return Scoreboard.build(snapshot, now, self.settings)
        inputs, touched = self._inputs.changed(snapshot, delta)
        if not touched:
            return replace(self.rescored(now), _inputs=inputs)
        board = self._resized(inputs, delta.patterns, now)
        if len(board.ids) != len(snapshot.patterns):
            return Scoreboard.build(snapshot, now, self.settings)
        added = board._fill([id for id in touched if id in snapshot.patterns])
        if board.ids is self.ids:
            places = np.arange(len(self.ids))
        else:
            places = np.array([board._rows.get(id, GONE) for id in self.ids], np.int64)
        places[[self._rows[id] for id in touched if id in self._rows]] = GONE
        return replace(board, dated=self.dated.moved(places) + added)

    def rescored(self, now: datetime) -> Scoreboard:
        """The same evidence at another time; the arrays follow when they are asked for."""
        if not self._reaches(now):
            return Scoreboard.build(self._inputs.snapshot, now, self.settings)
        board = replace(self, now=now)
        if "interval" in self.__dict__:
            board.__dict__["interval"] = self.interval
        return board

    def has_same_evidence(self, other: Scoreboard) -> bool:
        """Whether it goes by the very same evidence on the same patterns, if perhaps at another time."""
        return self._columns is other._columns

    def _reaches(self, now: datetime) -> bool:
        """Whether the kept sums serve at `now`: not before they were made, nor so late that they overflow."""
        seconds = now.timestamp()
        return seconds >= self._filled and (seconds - self._epoch) / self._half_life < _MAX_HALF_LIVES

    @property
    def _patterns(self) -> Mapping[str, Pattern]:
        return self._inputs.snapshot.patterns

    @property
    def _curation(self) -> CurationState:
        return self._inputs.snapshot.curation

    @property
    def _half_life(self) -> float:
        """Seconds."""
        return self.settings.maturity.half_life_days * SECONDS_PER_DAY

    def _resized(self, inputs: Inputs, changed: Iterable[str], now: datetime) -> Scoreboard:
        """A copy that has the patterns of `inputs`, the new ones still empty."""
        added = [id for id in changed if id in inputs.snapshot.patterns and id not in self._rows]
        removed = [self._rows[id] for id in changed if id in self._rows and id not in inputs.snapshot.patterns]
        ids, rows, columns = self.ids, self._rows, self._columns.mapped(np.copy)
        if added or removed:
            keep = np.ones(len(ids), np.bool_)
            keep[removed] = False
            ids = (*(id for id, kept in zip(ids, keep.tolist(), strict=True) if kept), *added)
            rows = {id: row for row, id in enumerate(ids)}
            columns = self._columns.taken(keep, len(added))
        filled = now.timestamp()
        return replace(self, ids=ids, now=now, _rows=rows, _inputs=inputs, _columns=columns, _filled=filled)

    def _fill(self, ids: Sequence[str]) -> Dated:
        """Sum up the evidence on these patterns into their rows; only on a board that nobody has seen yet.

        Returns:
            When they were used.
        """
        tally, dated = Tally(self.settings.maturity.min_feedback), DatedTally()
        for id in ids:
            pattern = self._patterns[id]
            observations = self._inputs.observations(pattern)
            tally.add(pattern, observations)
            dated.add(self._rows[id], observations)
            self._columns.unnamed[self._rows[id]] = pattern.is_unnamed
        columns = self._columns
        rows = np.array([self._rows[id] for id in ids], np.int64)
        tally.store(columns, rows, self._epoch, self.now.timestamp(), self._half_life)
        columns.clear_decisions(rows)
        pins = self._curation.pins
        for id in pins.keys() & set(ids):
            self._set_pin(id, pins[id])
        suspected = {id for id in ids if self._patterns[id].suspicions}
        for id in suspected | (self._curation.arrivals.keys() & set(ids)):
            self._set_quarantine(id)
        triggered = inversion_triggered(columns.successes, columns.failures, self.settings.anti_pattern)
        for row in rows[triggered[rows]].tolist():
            self._set_inversion(row)
        return dated.made()

    def _set_pin(self, id: str, pin: Pin) -> None:
        row, columns = self._rows[id], self._columns
        pattern = self._patterns[id]
        good = max(int(columns.successes[row]) - pin.successes, 0)
        bad = max(int(columns.failures[row]) - pin.failures, 0)
        # A record that lags behind hides later uses among those it claimed before: count the dated ones too.
        later = [
            observation.success
            for observation in self._inputs.observations(pattern)
            if observation.source in (EVENT_LOG, LOOP) and observation.at and observation.at > pin.at
        ]
        columns.pin[row] = CODES[pin.state]
        columns.pin_stale[row] = bool(pin.content_hash) and pin.content_hash != pattern.content_hash
        columns.later_good[row] = max(good, later.count(True))
        columns.later_bad[row] = max(bad, later.count(False))

    def _set_quarantine(self, id: str) -> None:
        """Set whether its text is unread, or the scan stops it, and no pin overrules that."""
        row, columns = self._rows[id], self._columns
        pattern, arrival = self._patterns[id], self._curation.arrivals.get(id)
        pinned = columns.pin[row] != NO_PIN and not columns.pin_stale[row]
        unread = arrival is not None and arrival.blocks and arrival.waits(pattern.content_hash)
        stopped = None if pinned else stops(pattern, self._curation, self.settings.scan)
        columns.quarantined[row] = not pinned and (unread or stopped is not None)
        columns.held[row] = not unread and stopped is Severity.HELD
        columns.blocked[row] = stopped is Severity.BLOCKED

    def _set_inversion(self, row: int) -> None:
        """Whether a pattern that fails often enough waits for a verdict (semantics 4: a pin comes first)."""
        id, columns = self.ids[row], self._columns
        pinned = columns.pin[row] != NO_PIN and not columns.pin_stale[row]
        if pinned or self._patterns[id].type is PatternType.ANTI or self._inputs.inverted.get(id):
            return
        verdict = self._curation.inversions.get(id)
        if verdict is not None:
            more = int(columns.failures[row]) - verdict.failures
            if verdict.verdict == "accepted" or (
                verdict.verdict == "rejected" and more < self.settings.anti_pattern.failures_until_asked_again
            ):
                return
            if verdict.verdict == "snoozed" and verdict.is_snoozed(self.now, int(columns.uses[row])):
                columns.snoozed_until[row] = math.inf if verdict.until is None else verdict.until.timestamp()
        columns.inversion_pending[row] = True

    # What does not depend on the time.

    @property
    def successes(self) -> Ints:
        """Raw counts."""
        return self._columns.successes

    @property
    def failures(self) -> Ints:
        """Raw counts."""
        return self._columns.failures

    @property
    def uses(self) -> Ints:
        """Raw counts, uses without a result included."""
        return self._columns.uses

    @property
    def injected_only(self) -> Ints:
        """Raw counts."""
        return self._columns.injected_only

    @property
    def rate(self) -> Floats:
        """Success rates as shown, 0..1; NaN without any result."""
        return self._columns.rate

    @property
    def last_used(self) -> Floats:
        """Epoch seconds; NaN = unknown."""
        return self._columns.last_used

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the rates' intervals, 0..1."""
        return jeffreys_intervals(self.successes, self.failures, self.settings.interval_level)

    # What follows from the time; each array is one expression over all rows.

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        columns, now = self._columns, self.now.timestamp()
        factor = 2.0 ** ((self._epoch - now) / self._half_life)
        helpful = columns.helpful * factor + columns.fixed_helpful
        harmful = columns.harmful * factor + columns.fixed_harmful
        for row in np.flatnonzero(columns.ahead).tolist():
            helpful[row], harmful[row] = decayed_counts(
                self.observations(self.ids[row]), self.now, self.settings.maturity
            )
        return helpful, harmful

    @property
    def helpful(self) -> Floats:
        """Decayed sums."""
        return self._sums[0]

    @property
    def harmful(self) -> Floats:
        """Decayed sums."""
        return self._sums[1]

    @cached_property
    def given(self) -> Floats:
        """Decayed sums of uses and exposures: how often loops got each pattern, and get it of late."""
        columns = self._columns
        factor = 2.0 ** ((self._epoch - self.now.timestamp()) / self._half_life)
        given: Floats = columns.given * factor + columns.fixed_given
        return given

    @cached_property
    def computed_codes(self) -> Codes:
        """What the rules say; indices into `core.learning.states.STATES`."""
        return state_codes(self.helpful, self.harmful, self.settings.maturity)

    @cached_property
    def state_codes(self) -> Codes:
        """The states that hold, pins included; indices into `core.learning.states.STATES`."""
        columns = self._columns
        unseen = columns.pin_stale | columns.quarantined
        decided = np.where(unseen, CODES[Maturity.CANDIDATE], columns.pin).astype(np.int8)
        return np.where((columns.pin == NO_PIN) & ~columns.quarantined, self.computed_codes, decided)

    @cached_property
    def faded(self) -> Flags:
        """Candidate by age alone."""
        enough = self.settings.maturity.min_feedback - self.settings.maturity.total_tolerance
        candidate: Flags = self.computed_codes == CODES[Maturity.CANDIDATE]
        return candidate & (self._columns.fresh >= enough)

    @cached_property
    def contradicted(self) -> Flags:
        """Pins that the evidence since then speaks against: a full sample, or with it all the evidence."""
        columns, settings = self._columns, self.settings.maturity
        later = columns.later_good + columns.later_bad
        full = later >= settings.min_feedback
        bad = columns.later_bad > (settings.deprecation_threshold + settings.ratio_tolerance) * later
        computed = self.computed_codes
        against_promotion = (full & bad) | ((columns.later_bad > 0) & (computed == CODES[Maturity.DEPRECATED]))
        against_deprecation = full & ~bad & (computed == CODES[Maturity.PROVEN])
        against: Flags = np.where(
            columns.pin == CODES[Maturity.DEPRECATED],
            against_deprecation,
            (columns.pin != NO_PIN) & against_promotion,
        )
        return against & ~columns.pin_stale

    @property
    def pinned(self) -> Flags:
        """Patterns with a pin, stale or not."""
        pinned: Flags = self._columns.pin != NO_PIN
        return pinned

    @property
    def pin_stale(self) -> Flags:
        """Pins that were given to another text."""
        return self._columns.pin_stale

    @property
    def quarantined(self) -> Flags:
        """Patterns that no loop gets until a person has decided about their text, held ones too."""
        return self._columns.quarantined

    @property
    def held(self) -> Flags:
        """Patterns that are only kept out because they give orders that no person has approved."""
        return self._columns.held

    def stops_orders(self, pattern_id: str) -> bool:
        """Whether the policy keeps a text like this pattern's out of contexts when it gives orders."""
        return stops_orders(self._patterns[pattern_id], self._curation, self.settings.scan)

    @property
    def blocked(self) -> Flags:
        """Patterns that the scan blocks."""
        return self._columns.blocked

    @cached_property
    def multiplier(self) -> Floats:
        """Of the state that holds."""
        return multipliers(self.settings.maturity)[self.state_codes]

    @cached_property
    def effectiveness(self) -> Floats:
        """The success rate, 0..1. Without any result 0, but 1 for a pattern that a person promoted: (2) calls
        that external validation."""
        vouched = (self._columns.pin == CODES[Maturity.PROVEN]) & ~self._columns.pin_stale
        return np.where(np.isnan(self.rate), vouched.astype(np.float64), self.rate)

    @cached_property
    def score(self) -> Floats:
        """effectiveness x multiplier."""
        return self.effectiveness * self.multiplier

    @property
    def inversion_pending(self) -> Flags:
        """Patterns that no loop gets until somebody has given a verdict on their inversion, snoozed ones too."""
        return self._columns.inversion_pending

    @cached_property
    def inversion_due(self) -> Flags:
        """Patterns with an open proposal to invert them, snoozed ones not."""
        return self._columns.inversion_pending & (self._columns.snoozed_until <= self.now.timestamp())

    @cached_property
    def injectable(self) -> Flags:
        """Neither deprecated, nor in quarantine, nor waiting for a verdict on its inversion, nor without an ID."""
        allowed: Flags = (self.state_codes != CODES[Maturity.DEPRECATED]) & ~self._columns.unnamed
        return allowed & ~self._columns.quarantined & ~self._columns.inversion_pending

    # One pattern.

    def __contains__(self, pattern_id: str) -> bool:
        return pattern_id in self._rows

    def row(self, pattern_id: str) -> int:
        """Its row in the arrays.

        Raises:
            UnknownRecord: No pattern has this id.
        """
        try:
            return self._rows[pattern_id]
        except KeyError:
            raise UnknownRecord(f"no pattern {visible_line(pattern_id, 80)}") from None

    def rows_of(self, pattern_ids: Iterable[str]) -> Ints:
        """The rows of many patterns, all of which must be known."""
        return np.fromiter(map(self._rows.__getitem__, pattern_ids), np.int64)

    def assessment(self, pattern_id: str) -> Assessment:
        """Everything about one pattern, as `Assessment` says.

        Raises:
            UnknownRecord: No pattern has this id.
        """
        row, columns = self.row(pattern_id), self._columns
        rate, last_used = float(self.rate[row]), float(self.last_used[row])
        pinned = columns.pin[row] != NO_PIN and not columns.pin_stale[row]
        quarantined = bool(columns.quarantined[row])
        decided_by = RULE
        if pinned:
            decided_by = HUMAN
        elif quarantined:
            decided_by = HELD if columns.held[row] else QUARANTINE
        elif columns.inversion_pending[row]:
            decided_by = INVERSION
        return Assessment(
            pattern_id=pattern_id,
            successes=int(self.successes[row]),
            failures=int(self.failures[row]),
            uses=int(self.uses[row]),
            injected_only=int(self.injected_only[row]),
            helpful=float(self.helpful[row]),
            harmful=float(self.harmful[row]),
            rate=None if math.isnan(rate) else rate,
            claimed_rate=claimed_rate(self._patterns[pattern_id].recorded_counts),
            interval=(float(self.interval[0][row]), float(self.interval[1][row])),
            computed=STATES[self.computed_codes[row]],
            state=STATES[self.state_codes[row]],
            faded=bool(self.faded[row]),
            decided_by=decided_by,
            pin=self._curation.pins.get(pattern_id),
            pin_stale=bool(columns.pin_stale[row]),
            contradicted=bool(self.contradicted[row]),
            multiplier=float(self.multiplier[row]),
            score=float(self.score[row]),
            inversion_due=bool(self.inversion_due[row]),
            injectable=bool(self.injectable[row]),
            quarantined=quarantined,
            held=bool(columns.held[row]),
            blocked=bool(columns.blocked[row]),
            last_used=None if math.isnan(last_used) else datetime.fromtimestamp(min(last_used, _END_OF_TIME), UTC),
            next_change=self._next_change(row),
        )

    def _next_change(self, row: int) -> tuple[datetime, Maturity] | None:
        columns = self._columns
        if columns.ahead[row]:
            return next_change(self.observations(self.ids[row]), self.now, self.settings.maturity)
        fixed = float(columns.fixed_helpful[row]), float(columns.fixed_harmful[row])
        moving = float(self.helpful[row]) - fixed[0], float(self.harmful[row]) - fixed[1]
        state = STATES[self.computed_codes[row]]
        return change_within(state, moving, fixed, self.now, self.settings.maturity)

    def observations(self, pattern_id: str) -> tuple[Observation, ...]:
        """The evidence on one pattern, oldest first; made anew at each call.

        Raises:
            UnknownRecord: No pattern has this id.
        """
        self.row(pattern_id)
        return self._inputs.observations(self._patterns[pattern_id])

    def observations_of_record(self, pattern: Pattern) -> tuple[Observation, ...]:
        """What the evidence on a pattern would be, were its record this one."""
        return self._inputs.observations(pattern)

    def set_aside(self, pattern_id: str) -> tuple[IgnoredReport, ...]:
        """The harmful marks on one pattern that do not count: held, or revoked by a decision."""
        return self._inputs.set_aside(pattern_id)

    @cached_property
    def bursts(self) -> tuple[Burst, ...]:
        """Bursts of harmful marks that wait for a verdict, the largest first."""
        return self._inputs.bursts()

    @cached_property
    def history(self) -> History:
        """All that happened, to replay it under other thresholds with `core.learning.threshold_replay.what_if`."""
        return History(self._inputs, self.now, self.settings)

    def outcome(self, work_id: str) -> tuple[OutcomeSignals, Outcome] | None:
        """How a loop or attempt came out, and how that scores; None if it has not come out."""
        signals = self._inputs.signals(work_id)
        return None if signals is None else (signals, score_outcome(signals, self.now, self.settings.learning))

    def results(self, pattern_id: str) -> tuple[int, int]:
        """Successes and failures of a pattern; (0, 0) for an unknown one."""
        if pattern_id not in self:
            return 0, 0
        row = self.row(pattern_id)
        return int(self.successes[row]), int(self.failures[row])

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        """Patterns that a loop got, used and gave, by its state file and the event log."""
        return self._inputs.loop_patterns(loop_id)

    def finished(self) -> Iterator[str]:
        """Ids of all loops and attempts that have an `outcome`."""
        return self._inputs.finished()

    def results_since_pin(self, pattern_id: str) -> tuple[int, int]:
        """(successes, failures) since the pattern was pinned; (0, 0) without a pin."""
        row = self.row(pattern_id)
        return int(self._columns.later_good[row]), int(self._columns.later_bad[row])

    def reconcile(self, pattern_id: str) -> tuple[Finding, ...]:
        """Where the record's own claims and the evidence disagree; see `core.learning.reconciliation`."""
        pattern = self._patterns[self.ids[self.row(pattern_id)]]
        snapshot = self._inputs.snapshot
        sources = (snapshot.loops, snapshot.tasks, snapshot.attempts, snapshot.memory_tasks, snapshot.debug_sessions)
        return reconcile(pattern, self.observations(pattern_id), self.now, *sources)

    def proposal(self, pattern_id: str) -> Inversion:
        """The proposal to invert a pattern, due or not; see `core.learning.inversion_rules.propose`."""
        pattern = self._patterns[self.ids[self.row(pattern_id)]]
        return propose(
            pattern,
            self.assessment(pattern_id),
            self.observations(pattern_id),
            self._inputs.snapshot.loops,
            self._alternatives.best_for(pattern),
            self.settings.anti_pattern,
        )

    def alternatives(self, pattern_id: str) -> tuple[Pattern, ...]:
        """What to do instead of a pattern, best first; the first is in its `proposal`."""
        return self._alternatives.alternatives_for(self._patterns[self.ids[self.row(pattern_id)]])

    @cached_property
    def _alternatives(self) -> Alternatives:
        good = np.isin(self.state_codes, (CODES[Maturity.PROVEN], CODES[Maturity.ESTABLISHED]))
        rows = np.flatnonzero(good & self.injectable).tolist()
        patterns = self._patterns
        return Alternatives((patterns[self.ids[row]], float(self.score[row])) for row in rows)
