"""Evidence, states and scores of all patterns at one moment.

Decayed sums are stored for one reference time. All parts of a sum decay by the same factor, so a single multiplication
gives the sum at any other time, however many events there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import numpy as np

from core.base.errors import UnknownRecord
from core.base.formatting import shorten_id
from core.base.scanning.normalization import find_common_scripts
from core.base.scanning.verdict import find_stopping_severity, list_suspicions, pin_covers, stops_orders
from core.learning.evidence import LOOP, claimed_rate
from core.learning.evidence_inputs import (
    EvidenceInputs,
    IgnoredReport,
    find_changed_patterns,
    find_team_sums,
    settle,
    suppose_inputs,
)
from core.learning.evidence_records import Link
from core.learning.explanation import reconcile_record
from core.learning.inversion import Alternatives, Inversion, inversion_triggered, propose_inversion
from core.learning.maturity import (
    CODES,
    HELD,
    HUMAN,
    INVERSION,
    QUARANTINE,
    RULE,
    SCRIPT,
    SECONDS_PER_DAY,
    STATES,
    Assessment,
    change_within,
    decayed_counts,
    multipliers,
    next_change,
    state_codes,
)
from core.learning.outcomes import Outcome, OutcomeSignals, score_signals
from core.learning.scores import (
    NO_PIN,
    REMOVED,
    Codes,
    Columns,
    Flags,
    Floats,
    Ints,
    ObservationSums,
    ReplacedTimes,
    StoredTimes,
    UseTimes,
)
from core.learning.statistics import jeffreys_intervals
from core.learning.threshold_replay import History
from core.records.decisions import Author
from core.records.events import EVENT_LOG
from core.records.patterns import Maturity, Pattern, PatternType, Severity, Suspicion

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.learning.bursts import Burst
    from core.learning.following import WorkVerdict
    from core.records.decisions import CurationState, Pin
    from core.records.events import Observation
    from core.records.findings import Finding
    from core.records.snapshot import Delta, Snapshot
    from core.records.team import TeamSums

__all__ = ["Assessment", "Scoreboard"]

_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""Maximum time to display; a float cannot represent later ones exactly."""
_SAME_NAMES: Final = (
    *("successes", "failures", "uses", "injected_only", "given", "seen", "helpful", "harmful", "faded", "pin_stale"),
    *("contradicted", "multiplier", "score", "inversion_due", "injectable", "quarantined", "held", "blocked"),
    "unreviewed",
)
"""Fields of `Assessment` that are read from the array with the same name."""
_TIMELESS: Final = ("interval", "use_times", "effectiveness")  # cached values that are the same at any time
_MAX_CACHED: Final = 64  # assessments that are kept, more than the rows on a screen
_MAX_HALF_LIVES: Final = 500.0  # maximum age of the sums in half-lives; a float can represent 2**500


_Array = TypeVar("_Array")


class _Column(Generic[_Array]):
    """Descriptor for the column of the same name, which does not depend on the time."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, scores: Any, owner: type) -> _Array:
        return cast(_Array, getattr(scores._columns, self._name))


@dataclass(frozen=True)
class Scoreboard:
    """The assessments of all patterns at one moment; immutable.

    Arrays have one row per pattern; times are epoch seconds, NaN if unknown. Methods that look up a pattern raise
    `UnknownRecord` for an unknown ID. `used_scripts` are the scripts other than Latin of the newest tasks, and of texts
    that a person approved.
    """

    ids: Sequence[str]  # pattern IDs in the order of the rows
    now: datetime
    settings: Settings  # the thresholds in use
    _rows: Mapping[str, int]
    _inputs: EvidenceInputs
    _columns: Columns
    _epoch: float  # reference time of the decayed sums in `_columns`
    _filled: float  # time of the last summation; the sums are valid from then on
    _times: StoredTimes
    used_scripts: frozenset[str] = frozenset()

    successes = _Column[Ints]()  # raw counts
    failures = _Column[Ints]()
    uses = _Column[Ints]()  # including uses without a result
    injected_only = _Column[Ints]()  # injections that were not applied
    given = _Column[Ints]()  # injections, applied or not
    seen = _Column[Ints]()  # loops that found the pattern themselves
    rate = _Column[Floats]()  # displayed success rates, 0..1; NaN without any result
    last_used = _Column[Floats]()  # time of the newest use
    pin_stale = _Column[Flags]()  # whether the text changed since the pin was set
    good_since_pin = _Column[Ints]()  # successes since the pin
    bad_since_pin = _Column[Ints]()  # failures since the pin
    team_uses = _Column[Ints]()  # the part of `uses` that is of the team's other projects
    quarantined = _Column[Flags]()  # kept out of contexts until a person decides about the text
    held = _Column[Flags]()  # quarantined only because the text gives orders that no person has approved
    blocked = _Column[Flags]()  # by the safety scan
    unreviewed = _Column[Flags]()  # no person has approved this text, which arrived by itself
    inversion_pending = _Column[Flags]()  # kept out of contexts until a person decides, even if snoozed

    @classmethod
    def build(cls, snapshot: Snapshot, now: datetime, settings: Settings) -> Scoreboard:
        """Assess all patterns from scratch; takes about 10 us per pattern."""
        inputs = EvidenceInputs.of(snapshot, settings.learning)
        return cls.assess(tuple(snapshot.patterns), inputs, find_used_scripts(snapshot), now, settings)

    @classmethod
    def assess(
        cls,
        ids: Sequence[str],
        inputs: EvidenceInputs,
        used_scripts: frozenset[str],
        now: datetime,
        settings: Settings,
        epoch: float | None = None,
    ) -> Scoreboard:
        """Assess some patterns; `epoch`: reference time of sums in seconds, or `now`."""
        seconds = now.timestamp()
        columns, rows = Columns.empty(len(ids)), {id: row for row, id in enumerate(ids)}
        epoch = seconds if epoch is None else epoch
        board = cls(ids, now, settings, rows, inputs, columns, epoch, seconds, UseTimes.empty(), used_scripts)
        return replace(board, _times=board._fill(ids))

    def updated(self, snapshot: Snapshot, delta: Delta, now: datetime) -> Scoreboard:
        """Return `build` for a supposed change, but assess only what it affects."""
        inputs = suppose_inputs(self._inputs, snapshot, delta) if self._is_valid_at(now) else None
        scores = self.settings, self._epoch, self.used_scripts
        part = assess_changed(self._inputs, inputs, delta, now, *scores) if inputs is not None else None
        if part is None:
            return Scoreboard.build(snapshot, now, self.settings)
        removed = [self._rows[id] for id in delta.patterns if id in self._rows and id not in snapshot.patterns]
        if part.ids or removed:
            return self._with_part(part, removed)
        return self._with_caches(replace(self, now=now, _inputs=part.inputs, used_scripts=part.used_scripts))

    def _with_part(self, part: Scoreboard, removed: Sequence[int]) -> Scoreboard:
        """Replace or add the scores of some patterns, and drop the rows `removed`."""
        ids, rows = self.ids, self._rows
        added = [id for id in part.ids if id not in rows]
        keep = np.ones(len(ids), np.bool_)
        keep[removed] = False
        if added or removed:
            ids = (*compress(ids, keep.tolist()), *added)
            rows = {id: row for row, id in enumerate(ids)}
        places = np.fromiter(map(rows.__getitem__, part.ids), np.int64)
        columns = self._columns.select(keep, len(added))
        columns.put(places, part.columns)
        new_rows = np.where(keep, np.cumsum(keep) - 1, REMOVED)
        new_rows[self.rows_of(id for id in part.ids if id in self._rows)] = REMOVED
        times = ReplacedTimes(self._times, new_rows, part.use_times.renumbered(places))
        return replace(part, ids=ids, _rows=rows, _columns=columns, _times=times)

    def rescored(self, now: datetime) -> Scoreboard:
        """Return the same evidence at another time; arrays are computed on first use."""
        if not self._is_valid_at(now):
            return Scoreboard.build(self._inputs.snapshot, now, self.settings)
        return self._with_caches(replace(self, now=now))

    def _with_caches(self, board: Scoreboard) -> Scoreboard:
        """Copy time-independent cached values to a board with the same sums."""
        board.__dict__.update({name: self.__dict__[name] for name in _TIMELESS if name in self.__dict__})
        return board

    @property
    def evidence(self) -> object:
        """The same object for all boards with the same evidence; their times may differ."""
        return self.uses

    def changed_patterns(self, other: Scoreboard) -> set[str] | None:
        """Return patterns that the other board may assess differently; None if unknown."""
        if self.ids != other.ids or self.now != other.now or self.settings != other.settings:
            return None
        rows = np.flatnonzero(self._columns.differs(other._columns)).tolist()
        return {self.ids[row] for row in rows} | find_changed_patterns(self._curation, other._curation)

    def _is_valid_at(self, now: datetime) -> bool:
        return are_sums_valid(now, self._epoch, self._filled, self.settings)

    def with_intervals(self) -> Scoreboard:
        """Return the same scores, with the intervals in their columns."""
        low, high = self.interval
        return self._with_caches(replace(self, _columns=replace(self._columns, low=low, high=high)))

    def _fill(self, ids: Sequence[str]) -> UseTimes:
        """Sum up the evidence on these patterns in place; return their use times."""
        snapshot, columns = self._inputs.snapshot, self._columns
        tally = ObservationSums(self.settings.maturity.min_feedback, snapshot.team)
        patterns = [self._patterns[id] for id in ids]
        for pattern in patterns:
            team = find_team_sums(snapshot, pattern) if snapshot.team.sums else None
            tally.add(pattern, self._inputs.observations(pattern), team)
        rows = self.rows_of(ids)
        columns.unnamed[rows] = [pattern.is_unnamed for pattern in patterns]
        columns.from_lesson[rows] = [any(source.file for source in one.source_loops) for one in patterns]
        use_times = tally.store(columns, rows, self._epoch, self.now.timestamp(), self._half_life)
        columns.clear_decisions(rows)
        pins = self._curation.pins
        for id in pins.keys() & set(ids):
            self._set_pin(id, pins[id])
        suspected = {pattern.id for pattern in patterns if pattern.suspicions or pattern.scripts}
        for id in suspected | (self._curation.arrivals.keys() & set(ids)):
            self._set_quarantine(id)
        if self._inputs.has_warnings:
            for pattern in patterns:
                self._set_warned(pattern)
        triggered = inversion_triggered(columns.successes, columns.failures, self.settings.anti_pattern)
        for row in rows[triggered[rows]].tolist():
            self._set_inversion(row)
        return use_times

    def _set_pin(self, id: str, pin: Pin) -> None:
        row, columns = self._rows[id], self._columns
        pattern = self._patterns[id]
        good = max(int(columns.successes[row]) - pin.successes, 0)
        bad = max(int(columns.failures[row]) - pin.failures, 0)
        # If the counts of the record lag behind, later uses seem to be included in them: count dated uses too.
        later = [
            observation.success
            for observation in self._inputs.observations(pattern)
            if observation.is_use
            and observation.source in (EVENT_LOG, LOOP)
            and observation.at
            and observation.at > pin.at
        ]
        columns.pin[row] = CODES[pin.state]
        columns.pin_stale[row] = bool(pin.content_hash) and pin.content_hash != pattern.content_hash
        columns.good_since_pin[row] = max(good, later.count(True))
        columns.bad_since_pin[row] = max(bad, later.count(False))

    def _is_pinned(self, row: int) -> bool:
        return bool(self._columns.pin[row] != NO_PIN and not self._columns.pin_stale[row])

    def _set_quarantine(self, id: str) -> None:
        """Quarantine an unpinned text, unread or stopped by the scan; mark unreviewed."""
        row, columns = self._rows[id], self._columns
        pattern, arrival = self._patterns[id], self._curation.arrivals.get(id)
        pin = self._curation.pins.get(id)
        pinned = self._is_pinned(row) and pin is not None and pin_covers(pin, pattern)
        unread = arrival is not None and arrival.blocks and arrival.needs_review(pattern.content_hash)
        used = self.used_scripts if pattern.scripts else ()
        stopped = None if pinned else find_stopping_severity(pattern, self._curation, self.settings.scan, used)
        columns.quarantined[row] = not pinned and (unread or stopped is not None)
        is_approved = arrival is None or not arrival.needs_review(pattern.content_hash)
        columns.unreviewed[row] = not pinned and not is_approved
        columns.held[row] = not unread and stopped is Severity.HELD
        columns.blocked[row] = stopped is Severity.BLOCKED

    def _set_inversion(self, row: int) -> None:
        """Set whether the inversion of a failing pattern needs a decision."""
        id, columns = self.ids[row], self._columns
        if self._is_pinned(row) or self._patterns[id].type is PatternType.ANTI or self._inputs.warnings_from(id):
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

    def _set_warned(self, pattern: Pattern) -> None:
        """Keep a pattern out of contexts that warn of its fix, unless pinned since."""
        warning = self._inputs.find_warning(pattern)
        if warning is None:
            return
        pin, since = self._curation.pins.get(pattern.id), warning.first_discovered
        is_decided = (
            pin is not None and since is not None and pin.at > since and self._is_pinned(self._rows[pattern.id])
        )
        self._columns.warned[self._rows[pattern.id]] = not is_decided

    @property
    def columns(self) -> Columns:
        """What all arrays are computed from."""
        return self._columns

    @property
    def inputs(self) -> EvidenceInputs:
        """What the evidence comes from."""
        return self._inputs

    @property
    def times(self) -> StoredTimes:
        return self._times

    @property
    def rows_by_id(self) -> Mapping[str, int]:
        return self._rows

    @cached_property
    def use_times(self) -> UseTimes:
        """Times of all uses."""
        return self._times.load()

    @property
    def _patterns(self) -> Mapping[str, Pattern]:
        return self._inputs.snapshot.patterns

    @property
    def _curation(self) -> CurationState:
        return self._inputs.snapshot.curation

    @property
    def _half_life(self) -> float:
        """Half-life in seconds."""
        return self.settings.maturity.half_life_days * SECONDS_PER_DAY

    @property
    def _decay(self) -> float:
        """Decay factor from the reference time to now."""
        return float(2.0 ** ((self._epoch - self.now.timestamp()) / self._half_life))

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the intervals of the success rates, 0..1."""
        low, high = self._columns.low, self._columns.high
        missing = np.isnan(low)
        if missing.any():
            low, high = low.copy(), high.copy()
            results = self.successes[missing], self.failures[missing]
            low[missing], high[missing] = jeffreys_intervals(*results, self.settings.interval_level)
        return low, high

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        columns = self._columns
        helpful = columns.helpful * self._decay + columns.fixed_helpful
        harmful = columns.harmful * self._decay + columns.fixed_harmful
        for row in np.flatnonzero(columns.has_future).tolist():
            results = self._inputs.all_results(self._patterns[self.ids[row]])
            helpful[row], harmful[row] = decayed_counts(results, self.now, self.settings.maturity)
        return helpful, harmful

    @property
    def helpful(self) -> Floats:
        """Decayed sums of helpful results."""
        return self._sums[0]

    @property
    def harmful(self) -> Floats:
        """Decayed sums of harmful results."""
        return self._sums[1]

    @cached_property
    def injections(self) -> Floats:
        """Decayed sums of uses and injections."""
        injections: Floats = self._columns.injections * self._decay + self._columns.fixed_injections
        return injections

    @cached_property
    def computed_codes(self) -> Codes:
        """States computed by the rules alone, as indices into `states.STATES`."""
        return state_codes(self.helpful, self.harmful, self.settings.maturity)

    @cached_property
    def state_codes(self) -> Codes:
        """Effective states (pins, quarantine, unreviewed texts), as `STATES` indices."""
        columns = self._columns
        is_capped = columns.unreviewed & (self.computed_codes == CODES[Maturity.PROVEN])
        by_rule = np.where(is_capped, CODES[Maturity.ESTABLISHED], self.computed_codes).astype(np.int8)
        unread = columns.pin_stale | columns.quarantined
        decided = np.where(unread, CODES[Maturity.CANDIDATE], columns.pin).astype(np.int8)
        return np.where((columns.pin == NO_PIN) & ~columns.quarantined, by_rule, decided)

    @cached_property
    def faded(self) -> Flags:
        """Whether each pattern is a candidate only because its evidence is old."""
        enough = self.settings.maturity.min_feedback - self.settings.maturity.total_tolerance
        candidate: Flags = self.computed_codes == CODES[Maturity.CANDIDATE]
        return candidate & (self._columns.undecayed >= enough)

    @cached_property
    def contradicted(self) -> Flags:
        """Whether later evidence contradicts a pin; docs/scoring.md#contradicted-pins."""
        columns, settings = self._columns, self.settings.maturity
        later = columns.good_since_pin + columns.bad_since_pin
        enough = later >= settings.min_feedback
        bad = columns.bad_since_pin > (settings.deprecation_threshold + settings.ratio_tolerance) * later
        computed = self.computed_codes
        against_promotion = (enough & bad) | ((columns.bad_since_pin > 0) & (computed == CODES[Maturity.DEPRECATED]))
        against_deprecation = enough & ~bad & (computed == CODES[Maturity.PROVEN])
        against_promotion &= columns.pin != NO_PIN
        against: Flags = np.where(columns.pin == CODES[Maturity.DEPRECATED], against_deprecation, against_promotion)
        return against & ~columns.pin_stale

    @property
    def pinned(self) -> Flags:
        pinned: Flags = self._columns.pin != NO_PIN
        return pinned

    @cached_property
    def multiplier(self) -> Floats:
        return multipliers(self.settings.maturity)[self.state_codes]

    @cached_property
    def effectiveness(self) -> Floats:
        """Success rates, 0..1; without results 1 if promoted, a lesson or seen, else 0."""
        usable = (self._columns.pin == CODES[Maturity.PROVEN]) & ~self._columns.pin_stale
        usable |= self._columns.from_lesson | (self.seen > 0)
        return np.where(np.isnan(self.rate), usable.astype(np.float64), self.rate)

    @cached_property
    def score(self) -> Floats:
        return self.effectiveness * self.multiplier

    @cached_property
    def inversion_due(self) -> Flags:
        """Whether each pattern has an open inversion proposal that is not snoozed."""
        return self._columns.inversion_pending & (self._columns.snoozed_until <= self.now.timestamp())

    @cached_property
    def injectable(self) -> Flags:
        """Whether each pattern may be injected into a context."""
        allowed: Flags = (self.state_codes != CODES[Maturity.DEPRECATED]) & ~self._columns.unnamed
        columns = self._columns
        return allowed & ~columns.quarantined & ~columns.inversion_pending & ~columns.warned

    def __contains__(self, pattern_id: str) -> bool:
        return pattern_id in self._rows

    def row(self, pattern_id: str) -> int:
        if pattern_id not in self._rows:
            raise UnknownRecord(f"no pattern {shorten_id(pattern_id)}")
        return self._rows[pattern_id]

    def rows_of(self, pattern_ids: Iterable[str]) -> Ints:
        return np.fromiter(map(self._rows.__getitem__, pattern_ids), np.int64)

    def _pattern(self, pattern_id: str) -> Pattern:
        self.row(pattern_id)
        return self._patterns[pattern_id]

    def assessment(self, pattern_id: str) -> Assessment:
        found = self._assessments.get(pattern_id)
        if found is None:
            if len(self._assessments) >= _MAX_CACHED:
                self._assessments.clear()
            found = self._assessments[pattern_id] = self.assessments([self._pattern(pattern_id)])[0]
        return found

    @cached_property
    def _assessments(self) -> dict[str, Assessment]:
        """Cache of assessments; each key needs those of a selected pattern many times."""
        return {}

    def assessments(self, patterns: Sequence[Pattern]) -> list[Assessment]:
        """Return assessments of this board's records in order, faster than one by one.

        Raises KeyError for an unknown one.
        """
        rows = self.rows_of(pattern.id for pattern in patterns)
        columns, pins, level = self._columns, self._curation.pins, self.settings.interval_level
        # Only read if it is known: most commands never need the intervals of all patterns.
        low, high = self.__dict__.get("interval") or (columns.low, columns.high)
        same = zip(*(getattr(self, name)[rows].tolist() for name in _SAME_NAMES), strict=True)
        pinned = (columns.pin[rows] != NO_PIN) & ~columns.pin_stale[rows]
        others = (
            self.rate,
            self.last_used,
            low,
            high,
            self.computed_codes,
            self.state_codes,
            columns.inversion_pending,
        )
        other = zip(*(values[rows].tolist() for values in others), pinned.tolist(), strict=True)
        found = []
        for pattern, row, cells, more in zip(patterns, rows.tolist(), same, other, strict=True):
            rate, last_used, least, most, computed, state, is_inversion, is_pinned = more
            values = dict(zip(_SAME_NAMES, cells, strict=True))
            pin = pins.get(pattern.id)
            decided_by = INVERSION if is_inversion else RULE
            if is_pinned:
                decided_by = SCRIPT if pin is not None and pin.decided_by is not Author.PERSON else HUMAN
            elif values["quarantined"]:
                decided_by = HELD if values["held"] else QUARANTINE
            one = Assessment(
                pattern_id=pattern.id,
                rate=None if math.isnan(rate) else rate,
                claimed_rate=claimed_rate(pattern.recorded_counts),
                level=level,
                known_interval=None if math.isnan(least) else (least, most),
                computed=STATES[computed],
                state=STATES[state],
                decided_by=decided_by,
                warning_id=self._warning_id(row, pattern),
                approved=self._curation.approves_as_guidance(pattern.id, pattern.content_hash),
                pin=pin,
                last_used=None if math.isnan(last_used) else datetime.fromtimestamp(min(last_used, _END_OF_TIME), UTC),
                **values,
            )
            found.append(one)
        return found

    def _warning_id(self, row: int, pattern: Pattern) -> str:
        warning = self._inputs.find_warning(pattern) if self._columns.warned[row] else None
        return warning.id if warning is not None else ""

    def next_change(self, pattern_id: str) -> tuple[datetime, Maturity] | None:
        """Return the next change of the state that rules give, by decay alone."""
        row, columns = self.row(pattern_id), self._columns
        if columns.has_future[row]:
            return next_change(self.all_results(pattern_id), self.now, self.settings.maturity)
        fixed = float(columns.fixed_helpful[row]), float(columns.fixed_harmful[row])
        moving = float(self.helpful[row]) - fixed[0], float(self.harmful[row]) - fixed[1]
        state = STATES[self.computed_codes[row]]
        return change_within(state, moving, fixed, self.now, self.settings.maturity)

    def observations(self, pattern_id: str) -> tuple[Observation, ...]:
        """Compute this project's evidence on a pattern at each call, oldest first."""
        return self._inputs.observations(self._pattern(pattern_id))

    def claimed_uses(self, pattern_id: str) -> int:
        """Return the number of a pattern file's claimed uses; docs/scoring.md#claims."""
        return sum(one.count for one in self.observations(pattern_id) if one.is_claim and one.is_use)

    def all_results(self, pattern_id: str) -> tuple[Observation, ...]:
        """Return the results, without sightings, then sums of the team's other projects."""
        return self._inputs.all_results(self._pattern(pattern_id))

    def team_sums(self, pattern_id: str) -> TeamSums | None:
        """Return the sums of the team's other projects on one pattern; None without any."""
        return find_team_sums(self._inputs.snapshot, self._pattern(pattern_id))

    def ignored_reports(self, pattern_id: str) -> tuple[IgnoredReport, ...]:
        """Return the harmful reports on one pattern that are held or revoked."""
        return self._inputs.ignored_reports(pattern_id)

    @cached_property
    def bursts(self) -> tuple[Burst, ...]:
        """Undecided bursts of harmful reports, the largest first."""
        return self._inputs.bursts()

    @cached_property
    def history(self) -> History:
        """The records, for `core.learning.threshold_replay.what_if`."""
        return History(self._inputs, self.now, self.settings)

    def outcome(self, work_id: str) -> tuple[OutcomeSignals, Outcome] | None:
        """Return the signals and the score of a finished loop or attempt, or None."""
        return score_signals(self._inputs.signals(work_id), self.now, self.settings.learning)

    def results(self, pattern_id: str) -> tuple[int, int]:
        """Return successes and failures of a pattern; zeros for an unknown one."""
        if pattern_id not in self:
            return 0, 0
        row = self.row(pattern_id)
        return int(self.successes[row]), int(self.failures[row])

    def results_since_pin(self, pattern_id: str) -> tuple[int, int]:
        """Return successes and failures since the pin; zeros without a pin."""
        row = self.row(pattern_id)
        return int(self.good_since_pin[row]), int(self.bad_since_pin[row])

    def stops_orders(self, pattern_id: str) -> bool:
        """Return whether the scan policy keeps the pattern's text out of contexts."""
        return stops_orders(self._patterns[pattern_id], self._curation, self.settings.scan)

    def suspicions(self, pattern_id: str) -> tuple[Suspicion, ...]:
        """Return the scan results of a pattern in this project, the most severe first."""
        pattern = self._patterns[pattern_id]
        return list_suspicions(pattern, self._curation, self.used_scripts if pattern.scripts else ())

    def is_approved(self, pattern_id: str) -> bool:
        """Return whether a person approved exactly this text as guidance for agents."""
        return self._curation.approves_as_guidance(pattern_id, self._patterns[pattern_id].content_hash)

    def verdicts(self, pattern_id: str) -> list[WorkVerdict]:
        """Return whether each work given a pattern followed it, oldest first."""
        return self._inputs.verdicts(self._pattern(pattern_id))

    def reconcile(self, pattern_id: str) -> tuple[Finding, ...]:
        """Compare the counts of the record with the evidence."""
        snapshot = self._inputs.snapshot
        sources = (snapshot.loops, snapshot.tasks, snapshot.attempts, snapshot.memory_tasks, snapshot.debug_sessions)
        names = (source.loop_id for source in self._pattern(pattern_id).source_loops)
        logged = set(filter(self._inputs.has_logged, names))  # also of work that has no files here
        return reconcile_record(self._pattern(pattern_id), self.observations(pattern_id), self.now, *sources, logged)

    def proposal(self, pattern_id: str) -> Inversion:
        """Return the proposal to invert a pattern, even if it is not due."""
        pattern, loops = self._pattern(pattern_id), self._inputs.snapshot.loops
        assessment, observations = self.assessment(pattern_id), self.observations(pattern_id)
        better = self._alternatives.best_for(pattern)
        return propose_inversion(pattern, assessment, observations, loops, better, self.settings.anti_pattern)

    def alternatives(self, pattern_id: str) -> tuple[Pattern, ...]:
        """Return the patterns to use instead of a pattern, best first."""
        return self._alternatives.alternatives_for(self._pattern(pattern_id))

    @cached_property
    def _alternatives(self) -> Alternatives:
        good = np.isin(self.state_codes, (CODES[Maturity.PROVEN], CODES[Maturity.ESTABLISHED]))
        rows = np.flatnonzero(good & self.injectable).tolist()
        return Alternatives((self._patterns[self.ids[row]], float(self.score[row])) for row in rows)


def are_sums_valid(now: datetime, epoch: float, filled: float, settings: Settings) -> bool:
    """Return whether sums for `epoch`, made at `filled`, still apply at `now`."""
    seconds, half_life = now.timestamp(), settings.maturity.half_life_days * SECONDS_PER_DAY
    return seconds >= filled and (seconds - epoch) / half_life < _MAX_HALF_LIVES


def assess_changed(
    before: EvidenceInputs,
    after: EvidenceInputs,
    delta: Delta,
    now: datetime,
    settings: Settings,
    epoch: float,
    scripts: frozenset[str],
) -> Scoreboard | None:
    """Assess only patterns that a change affects, with intervals; None: assess all.

    `after` has the new records, but no ignored reports. `epoch` and `scripts` are those of the scores before.
    """
    settled = settle(before, after, delta)
    if settled is None:
        return None
    inputs, affected = settled
    used = _update_scripts(scripts, before.snapshot, after.snapshot, delta)
    affected = affected.union(*(inputs.links[Link.SCRIPT].get(script, ()) for script in used ^ scripts))
    ids = [id for id in affected if id in after.snapshot.patterns]
    return Scoreboard.assess(ids, inputs, used, now, settings, epoch).with_intervals()


def _update_scripts(known: frozenset[str], before: Snapshot, after: Snapshot, delta: Delta) -> frozenset[str]:
    """Return the scripts in use; recount them only if a task or approval changed."""
    loops = ((before.loops.get(id), after.loops.get(id)) for id in delta.loops)
    is_same = all(
        one is not None and two is not None and (one.task, one.started_at) == (two.task, two.started_at)
        for one, two in loops
    )
    is_same = is_same and (not delta.decisions or before.curation.scripts == after.curation.scripts)
    return known if is_same else find_used_scripts(after)


def find_used_scripts(snapshot: Snapshot) -> frozenset[str]:
    """Return non-Latin scripts of the newest tasks and of texts a person approved."""
    # By ID, because only the first loops are needed: the values of stored loops are decoded together.
    tasks = (snapshot.loops[id].task for id in snapshot.loops)
    return snapshot.curation.scripts | find_common_scripts(tasks)
