from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from core.base.settings import Settings
from core.base.steps import run_all
from core.index.verdicts import VerdictsInMemory
from core.questions import doubts
from core.questions.doubts import find_broad_triggers, trigger_match_share
from core.records.patterns import Pattern
from core.records.snapshot import Snapshot
from tests.factories import make_error_pattern

BROAD = make_error_pattern("p", error_pattern="e|o", content_hash="v1")
NARROW = make_error_pattern("p", error_pattern="ENOSPC", content_hash="v2")


def find(*patterns: Pattern, stored: VerdictsInMemory | None = None) -> dict[str, float]:
    snapshot = Snapshot(patterns={one.id: one for one in patterns})
    view: Any = SimpleNamespace(snapshot=snapshot, settings=Settings())
    return run_all(find_broad_triggers(view, VerdictsInMemory() if stored is None else stored))


@pytest.mark.parametrize(
    ("trigger", "share"),
    [(".*", 1.0), (r"[Ee]rror|the|a", 1.0), (r"TypeError: Cannot read", 1 / 20), (r"(a+)+$", 0.0), ("(", 3 / 20)],
)
def test_trigger_is_matched_against_common_messages(trigger: str, share: float) -> None:
    assert trigger_match_share(make_error_pattern("p", error_pattern=trigger)) == pytest.approx(share, abs=0.06)


def test_a_trigger_that_matches_most_common_messages_is_found_until_its_text_changes() -> None:
    stored = VerdictsInMemory()
    assert set(find(BROAD, stored=stored)) == {"p"}
    assert find(NARROW, stored=stored) == {}
    assert set(find(BROAD, stored=stored)) == {"p"}
    assert find(stored=stored) == {}


def test_a_stored_verdict_is_used_for_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = VerdictsInMemory()
    find(BROAD, make_error_pattern("q", content_hash="v3"), stored=stored)
    tried: list[str] = []

    def try_one(pattern: Pattern) -> float:
        tried.append(pattern.id)
        return 0.0

    monkeypatch.setattr(doubts, "trigger_match_share", try_one)
    found = find(BROAD, make_error_pattern("new", content_hash="v4"), stored=stored)
    assert (set(found), tried) == ({"p"}, ["new"])
