"""Patterns that the policy prunes, and patterns that are never pruned."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from core.base.settings import PruningSettings
from core.records.decisions import CurationState, InversionVerdict, UnreviewedText
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Snapshot
from core.show.metrics.effectiveness import PruneRule, Pruning, select_prunable
from tests.factories import NOW, days_ago, make_board, make_pattern, make_pin, make_recorded_counts, make_source

ID = "pat-error-sample-001"
POLICY = PruningSettings()


def pruned(pattern: Pattern, curation: CurationState | None = None, policy: PruningSettings = POLICY) -> list[Pruning]:
    curation = curation or CurationState()
    snapshot = Snapshot(patterns={pattern.id: pattern}, curation=curation)
    return list(select_prunable(snapshot, make_board(pattern, curation=curation), policy))


def failing(**fields: Any) -> Pattern:
    """A pattern below the rate of the policy, but not bad enough for inversion."""
    return make_pattern(**{"recorded_counts": make_recorded_counts(9, 11), "last_used": days_ago(1), **fields})


def test_a_low_rate_is_pruned_with_a_reason() -> None:
    (found,) = pruned(failing())
    assert found.rules == (PruneRule.RATE,)
    assert found.reason == "45% of 20 uses succeeded, below 50%"
    assert (found.rate, found.uses) == (0.45, 20)


@pytest.mark.parametrize(
    ("counts", "goes"),
    [
        (make_recorded_counts(1, 1), False),
        (make_recorded_counts(5, 5), False),
        (make_recorded_counts(4, 5), True),
        (make_recorded_counts(0, 2), False),
    ],
)
def test_a_rate_needs_enough_uses(counts: Any, goes: bool) -> None:
    assert bool(pruned(failing(recorded_counts=counts))) is goes


def test_pruning_follows_the_settings() -> None:
    assert not pruned(failing(), policy=PruningSettings(min_success_rate=0.4))
    assert not pruned(failing(), policy=PruningSettings(min_usage_count=21))
    assert pruned(make_pattern(last_used=days_ago(8)), policy=PruningSettings(max_age_days=7))


@pytest.mark.parametrize(
    ("fields", "goes"),
    [
        ({"last_used": days_ago(90)}, False),
        ({"last_used": days_ago(91)}, True),
        ({"last_used": days_ago(1), "first_discovered": days_ago(900)}, False),
        ({"source_loops": (make_source("ralph-a", days_ago(200)), make_source("ralph-b", days_ago(2)))}, False),
        ({"source_loops": (make_source("ralph-a", days_ago(200)),)}, True),
        ({"first_discovered": days_ago(200)}, True),
        ({}, False),
    ],
)
def test_age_counts_from_the_last_activity(fields: dict[str, Any], goes: bool) -> None:
    assert [found.rules for found in pruned(make_pattern(**fields))] == ([(PruneRule.UNUSED,)] if goes else [])


def test_an_anti_pattern_is_pruned_when_the_avoided_approach_works() -> None:
    bad_warning = failing(id="pat-anti-sample-001", type=PatternType.ANTI)
    assert pruned(bad_warning)[0].rules == (PruneRule.RATE,)
    assert not pruned(
        failing(id="pat-anti-sample-001", type=PatternType.ANTI, recorded_counts=make_recorded_counts(19, 1))
    )


def arrived(kind: str, blocks: bool, reviewed: frozenset[str] = frozenset()) -> CurationState:
    return CurationState(
        arrivals={ID: UnreviewedText(kind=kind, at=NOW, by="ada", decision_id="d1", blocks=blocks, reviewed=reviewed)}
    )


def verdict(word: str, until: datetime | None = None) -> CurationState:
    return CurationState(inversions={ID: InversionVerdict(verdict=word, at=NOW, failures=11, until=until)})


@pytest.mark.parametrize(
    ("curation", "goes"),
    [
        (CurationState(pins={ID: make_pin(Maturity.PROVEN, NOW)}), False),
        (CurationState(pins={ID: make_pin(Maturity.DEPRECATED, NOW)}), False),
        (CurationState(pins={ID: make_pin(Maturity.PROVEN, NOW, content_hash="another text")}), False),
        (arrived("import", True), False),
        (arrived("import", True, frozenset({"seen"})), True),
        (arrived("extraction", False), True),
        (verdict("rejected"), False),
    ],
)
def test_decided_and_pending_patterns_are_not_pruned(curation: CurationState, goes: bool) -> None:
    assert bool(pruned(failing(last_used=days_ago(400)), curation)) is goes


def test_inversion_comes_before_pruning() -> None:
    assert not pruned(failing(recorded_counts=make_recorded_counts(2, 18)))


def test_copies_are_not_pruned() -> None:
    assert not pruned(failing(copy_folder=".aiwg/ralph/memory"))
