"""Patterns, loops, events and boards for tests of scoring and retrieval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from core.config.settings import Settings
from core.learning import evidence
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState, Pin
from core.records.events import Event, Observation
from core.records.loops import InjectedUse, Loop
from core.records.patterns import Maturity, Pattern, PatternType, RecordedCounts, SourceLoop
from core.records.snapshot import Snapshot
from core.sources.patterns import read_patterns

NOW: Final = datetime(2026, 2, 3, tzinfo=UTC)
SETTINGS: Final = Settings()

NULL_CHECK_001: Final = "pat-error-null-check-001"
NULL_CHECK_015: Final = "pat-error-null-check-015"
TYPE_MISMATCH: Final = "pat-error-type-mismatch-003"
OPTIMIZING: Final = "pat-anti-premature-optimization-001"
TEST_GENERATION: Final = "pat-success-test-generation-001"

_EXAMPLES: Final = Path(__file__).parents[2] / "trees/spec-examples/.aiwg/ralph/shared/patterns"


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def example_patterns() -> dict[str, Pattern]:
    """The patterns of the example tree."""
    files = sorted(_EXAMPLES.glob("*.json"))
    return {found.id: found for file in files for found in read_patterns(file.name, file.read_bytes()).patterns}


def example_loops() -> dict[str, Loop]:
    """The loops of the example tree that record their patterns."""
    end = at("2026-02-02T21:05:30")
    return {
        loop.id: loop
        for loop in (
            Loop(
                id="ralph-fix-validation-b2c3d4e5",
                last_activity=end,
                injected=(use(NULL_CHECK_015, True, iteration=2), use(TYPE_MISMATCH, True, iteration=4)),
            ),
            Loop(id="ralph-fix-api-d4e5f6a7", last_activity=end, injected=(use(NULL_CHECK_015, False, iteration=3),)),
        )
    }


def make_pattern(id: str = "pat-error-sample-001", type: PatternType = PatternType.ERROR, **fields: Any) -> Pattern:
    return Pattern(**{"id": id, "type": type, "title": "Sample", "content_hash": "seen", **fields})


def source(loop_id: str, when: datetime | None = None) -> SourceLoop:
    return SourceLoop(loop_id=loop_id, at=when)


def recorded_counts(successes: int, failures: int) -> RecordedCounts:
    return RecordedCounts(successes=successes, failures=failures, uses=successes + failures)


def use(pattern_id: str, successful: bool | None, applied: bool = True, **fields: Any) -> InjectedUse:
    return InjectedUse(pattern_id=pattern_id, applied=applied, successful=successful, **fields)


def event(number: int, kind: str, when: datetime, **fields: Any) -> Event:
    return Event(id=f"e{number:06d}", at=when, kind=kind, **{"pattern_id": "pat-error-sample-001", **fields})


def pin(state: Maturity, when: datetime, **fields: Any) -> Pin:
    return Pin(
        **{"state": state, "at": when, "by": "ada", "reason": "", "content_hash": "seen", "decision_id": "d1", **fields}
    )


def board_of(
    *patterns: Pattern,
    loops: dict[str, Loop] | None = None,
    events: tuple[Event, ...] = (),
    curation: CurationState | None = None,
    now: datetime = NOW,
    settings: Settings = SETTINGS,
) -> Scoreboard:
    found = {pattern.id: pattern for pattern in patterns}
    return Scoreboard.build(
        Snapshot(patterns=found, loops=loops or {}, events=events, curation=curation or CurationState()), now, settings
    )


class LoopAliases:
    """Work items that know only the aliases of some loops."""

    def __init__(self, loops: Iterable[Loop]) -> None:
        self._ids: dict[str, str] = {alias: loop.id for loop in loops for alias in loop.aliases}

    def owner_id(self, work_id: str) -> str:
        return self._ids.get(work_id, work_id)

    def outcome_success(self, _work_id: str) -> bool | None:
        return None

    def is_open(self, _work_id: str) -> bool:
        return False

    def ignores(self, _event: Event) -> bool:
        return False


def collect_observations(
    pattern: Pattern,
    uses: Sequence[tuple[Loop, InjectedUse]] = (),
    events: Sequence[Event] = (),
    discoverer: Loop | None = None,
) -> tuple[Observation, ...]:
    known = LoopAliases(loop for loop, _ in uses)
    return evidence.collect_observations(pattern, uses, events, discoverer, known)
