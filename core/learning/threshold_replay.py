"""Replay of all evidence under other thresholds; docs/scoring.md#what-if."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.learning.inversion import inversion_triggered
from core.learning.maturity import Sums, add_sums, change_within, decay_sums, state_of
from core.records.patterns import Maturity, PatternType

if TYPE_CHECKING:
    from core.base.settings import AntiPatternSettings, MaturitySettings, Settings
    from core.learning.evidence_inputs import EvidenceInputs
    from core.records.events import Observation

_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)


class Course(Struct, frozen=True, kw_only=True):
    """State of one pattern at the end of a replay."""

    state: Maturity  # computed state now
    since: datetime | None  # start of this state; None if it never changed, or if unknown
    inverts: bool  # whether its raw counts require inversion now
    inverted_at: datetime | None  # when they first did; None if never, or if unknown


class PatternDifference(Struct, frozen=True, kw_only=True):
    """A pattern whose state or inversion differs under other thresholds."""

    pattern_id: str
    before: Course  # under the current thresholds
    after: Course
    pinned: bool  # whether a pin overrules the computed state


class Replay(Struct, frozen=True, kw_only=True):
    """The result of `what_if`."""

    turns: tuple[PatternDifference, ...]  # the patterns that differ, sorted by ID
    before: dict[Maturity, int]  # number of patterns by computed state
    after: dict[Maturity, int]
    events: int  # number of results that were replayed


@dataclass(frozen=True)
class History:
    """The records to replay, and the current thresholds."""

    inputs: EvidenceInputs
    now: datetime  # the time of the computed states
    settings: Settings

    @cached_property
    def observations(self) -> Mapping[str, tuple[Observation, ...]]:
        """Evidence under the current thresholds, by pattern ID."""
        return _collect_observations(self.inputs)

    @cached_property
    def courses(self) -> Mapping[str, Course]:
        """Courses under the current thresholds, by pattern ID."""
        return _replay_all(self, self.observations, self.settings)


def what_if(settings: Settings, history: History) -> Replay:
    """Replay all evidence under other thresholds, and compare the states."""
    observations = history.observations
    if settings.learning != history.settings.learning:  # outcomes of loops are part of the evidence
        observations = _collect_observations(history.inputs.with_settings(settings.learning))
    before, after = history.courses, _replay_all(history, observations, settings)
    pins = history.inputs.snapshot.curation.pins
    turns = (
        PatternDifference(pattern_id=id, before=before[id], after=after[id], pinned=id in pins)
        for id in sorted(after)
        if (before[id].state, before[id].inverts) != (after[id].state, after[id].inverts)
    )
    events = sum(use.count for found in observations.values() for use in found if use.success is not None)
    return Replay(turns=tuple(turns), before=_count_states(before), after=_count_states(after), events=events)


def _collect_observations(inputs: EvidenceInputs) -> dict[str, tuple[Observation, ...]]:
    return {id: inputs.all_results(pattern) for id, pattern in inputs.snapshot.patterns.items()}


def _replay_all(
    history: History, observations: Mapping[str, Sequence[Observation]], settings: Settings
) -> dict[str, Course]:
    patterns, now = history.inputs.snapshot.patterns, history.now
    inversion = {id: None if patterns[id].type is PatternType.ANTI else settings.anti_pattern for id in observations}
    return {id: replay_pattern(uses, now, settings.maturity, inversion[id]) for id, uses in observations.items()}


def _count_states(courses: Mapping[str, Course]) -> dict[Maturity, int]:
    counts = Counter(course.state for course in courses.values())
    return {state: counts[state] for state in Maturity}


def replay_pattern(
    observations: Iterable[Observation],
    now: datetime,
    maturity: MaturitySettings,
    inversion: AntiPatternSettings | None,
) -> Course:
    """Replay the results of one pattern in chronological order.

    A future result counts as of now, an undated one from the start. `inversion` is None for an anti-pattern, which is
    never inverted.
    """
    known = (use for use in observations if use.success is not None)
    results = sorted(((_ALWAYS if use.at is None else min(use.at, now), use) for use in known), key=itemgetter(0))
    walk = _Walk(maturity)
    good = bad = 0
    inverts, inverted_at = False, None
    for at, use in results:
        walk.add(at, use)
        good += use.count if use.success else 0
        bad += 0 if use.success else use.count
        if inversion is not None:
            inverts = bool(inversion_triggered(good, bad, inversion))
            if inverts and inverted_at is None:
                inverted_at = at
    walk.advance(now)
    return Course(
        state=walk.state,
        since=None if walk.since == _ALWAYS else walk.since,
        inverts=inverts,
        inverted_at=None if inverted_at == _ALWAYS else inverted_at,
    )


class _Walk:
    """Decayed sums and state of one pattern during a replay."""

    def __init__(self, settings: MaturitySettings) -> None:
        self.state = state_of(0.0, 0.0, settings)
        self.since: datetime | None = None
        self._settings = settings
        self._at = _ALWAYS
        self._moving = self._fixed = (0.0, 0.0)

    def add(self, at: datetime, use: Observation) -> None:
        """Add a result; results must be added in chronological order."""
        self.advance(at)
        value = use.weight * use.count
        more = (value, 0.0) if use.success else (0.0, value)
        if use.at is None:
            self._fixed = add_sums(self._fixed, more)
        else:
            self._moving = add_sums(self._moving, more)
        self._judge(at)

    def advance(self, until: datetime) -> None:
        came_to = self._state(self._decayed(until))
        while came_to is not self.state:
            change = change_within(self.state, self._moving, self._fixed, self._at, self._settings)
            if change is None or change[0] > until:
                break
            self._moving, self._at = self._decayed(change[0]), change[0]
            self.since, self.state = change
        self._moving, self._at = self._decayed(until), until
        self._judge(until)

    def _decayed(self, until: datetime) -> Sums:
        return decay_sums(self._moving, (until - self._at).total_seconds(), self._settings)

    def _state(self, moving: Sums) -> Maturity:
        return state_of(*add_sums(moving, self._fixed), self._settings)

    def _judge(self, at: datetime) -> None:
        state = self._state(self._moving)
        if state is not self.state:
            self.state, self.since = state, at
