from __future__ import annotations

import pytest

from core.config.settings import ReviewSettings
from core.index.verdicts import VerdictsInMemory
from core.questions import broad
from core.questions.broad import BroadTriggerSearch, trigger_match_share
from core.records.patterns import Pattern
from tests.factories import make_error_pattern

BROAD = make_error_pattern("p", error_pattern="e|o", content_hash="v1")
NARROW = make_error_pattern("p", error_pattern="ENOSPC", content_hash="v2")


def search_all(search: BroadTriggerSearch, *patterns: Pattern) -> bool:
    """Check all patterns; whether something changed."""
    by_id = {one.id: one for one in patterns}
    changed = False
    while (found := search.look(by_id)) is not None:
        changed |= found
    return changed


@pytest.mark.parametrize(
    ("trigger", "share"),
    [(".*", 1.0), (r"[Ee]rror|the|a", 1.0), (r"TypeError: Cannot read", 1 / 20), (r"(a+)+$", 0.0), ("(", 3 / 20)],
)
def test_trigger_is_matched_against_common_messages(trigger: str, share: float) -> None:
    assert trigger_match_share(make_error_pattern("p", error_pattern=trigger)) == pytest.approx(share, abs=0.06)


def test_trigger_is_checked_again_only_if_it_changes() -> None:
    search = BroadTriggerSearch(ReviewSettings(), VerdictsInMemory())
    assert search_all(search, BROAD) and set(search.found) == {"p"}
    assert search_all(search, NARROW) and search.found == {}
    assert search_all(search, BROAD)
    assert search_all(search) and search.found == {}


def test_a_stored_verdict_is_used_for_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = VerdictsInMemory()
    search_all(BroadTriggerSearch(ReviewSettings(), stored), BROAD, make_error_pattern("q", content_hash="v3"))
    tried: list[str] = []

    def try_one(pattern: Pattern) -> float:
        tried.append(pattern.id)
        return 0.0

    monkeypatch.setattr(broad, "trigger_match_share", try_one)
    again = BroadTriggerSearch(ReviewSettings(), stored)
    search_all(again, BROAD, make_error_pattern("new", content_hash="v4"))
    assert (set(again.found), tried) == ({"p"}, ["new"])
