from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from core.base.errors import Refused
from core.config.settings import ExtractionSettings
from core.records.extractions import Extraction, Proposal
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.retrieval.similarity import LazySimilarity
from core.review import background_search
from core.review.background_search import OFFERED_LOOPS, BackgroundSearch


def pattern(id: str, text: str, **changes: object) -> Pattern:
    values = {"id": id, "type": PatternType.ERROR, "title": text, "error_pattern": text, "content_hash": text}
    return Pattern(**(values | changes))  # type: ignore[arg-type]


def ended(*ids: str) -> dict[str, Loop]:
    return {id: Loop(id=id, task=id, status=LoopStatus.COMPLETED) for id in ids}


def offer(loop_id: str) -> Extraction:
    return Extraction(
        source_id=loop_id, proposals=(Proposal(type=PatternType.ERROR, slug="a", record={"pattern": loop_id}),)
    )


class Desk:
    """A registry that can be looked at until nothing is left."""

    def __init__(self, *patterns: Pattern, loops: Mapping[str, Loop] | None = None) -> None:
        self.search = BackgroundSearch(ExtractionSettings())
        self.snapshot = Snapshot(patterns={one.id: one for one in patterns}, loops=loops or {})
        self.similarity = LazySimilarity(self.snapshot.patterns)
        self.asked: list[str] = []
        self.offering: set[str] = set()

    def extraction(self, loop_id: str) -> Extraction:
        self.asked.append(loop_id)
        if loop_id == "refused":
            raise Refused("no")
        return offer(loop_id) if loop_id in self.offering else Extraction(source_id=loop_id)

    def look(self) -> bool | None:
        return self.search.look(self.snapshot, self.similarity, self.extraction)

    def search_all(self) -> int:
        """Look until nothing is left; returns how often something changed."""
        changed = 0
        while (found := self.look()) is not None:
            changed += found
        return changed

    def change(self, patterns: Iterable[Pattern]) -> None:
        after = {one.id: one for one in patterns}
        before = self.snapshot.patterns
        touched = {id for id in {*after, *before} if after.get(id) is not before.get(id)}
        self.snapshot = Snapshot(patterns=after, loops=self.snapshot.loops)
        self.similarity = self.similarity.updated(after, frozenset(touched))
        self.search.doubt()

    def pairs(self) -> list[tuple[str, str]]:
        return [(one, other) for one, other, _ in self.search.alike]


ONE = pattern("one", "cannot read property name of undefined in the session store")
LIKE_ONE = pattern("two", "cannot read property name of undefined in the session cache")
ELSE = pattern("three", "connection refused by the database after five attempts")


def test_duplicates_are_found_and_the_search_ends() -> None:
    desk = Desk(ONE, LIKE_ONE, ELSE)
    assert desk.search_all() == 1
    assert desk.pairs() == [("one", "two")]
    assert desk.look() is None


def test_large_registry_is_compared_in_steps_and_reported_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_search, "_AT_ONCE", 1)
    desk = Desk(ONE, LIKE_ONE, ELSE)
    assert [desk.look(), desk.look(), desk.look(), desk.look()] == [False, False, True, None]


def test_only_new_texts_are_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_search, "_AT_ONCE", 1)
    desk = Desk(ONE, LIKE_ONE, ELSE)
    desk.search_all()
    counted = pattern("one", ONE.title, file="elsewhere")
    desk.change([counted, LIKE_ONE, ELSE])
    assert desk.look() is None
    copied = pattern("four", ELSE.title)
    desk.change([counted, LIKE_ONE, ELSE, copied])
    assert [desk.look(), desk.look()] == [True, None]
    assert desk.pairs() == [("four", "three"), ("one", "two")]


def test_pair_disappears_with_either_pattern() -> None:
    desk = Desk(ONE, LIKE_ONE, ELSE)
    desk.search_all()
    desk.change([ONE, ELSE])
    assert desk.search_all() == 1
    assert desk.pairs() == []


def test_finished_loops_are_searched_once_and_a_refusal_offers_nothing() -> None:
    desk = Desk(loops=ended("a", "refused"))
    desk.offering = {"a"}
    assert desk.search_all() == 1
    assert desk.asked == ["a", "refused"]
    assert dict(desk.search.offers) == {"a": offer("a")}
    assert desk.look() is None


def test_only_the_newest_finished_loops_are_searched() -> None:
    loops = {"running": Loop(id="running", task="", status=LoopStatus.RUNNING)}
    loops |= ended(*(f"loop-{number:02}" for number in range(OFFERED_LOOPS + 5)))
    desk = Desk(loops=loops)
    desk.search_all()
    assert desk.asked == [f"loop-{number:02}" for number in range(OFFERED_LOOPS)]


def test_offers_of_older_loops_are_withdrawn() -> None:
    desk = Desk(loops=ended("old"))
    desk.offering = {"old", "new-0"}
    desk.search_all()
    desk.snapshot = Snapshot(loops=ended(*(f"new-{number}" for number in range(OFFERED_LOOPS)), "old"))
    desk.search_all()
    assert set(desk.search.offers) == {"new-0"}
    desk.snapshot = Snapshot(loops=ended("old"))
    desk.search_all()
    assert set(desk.search.offers) == {"old"}, "it is the newest again"


def test_offers_are_searched_again_after_a_registry_change() -> None:
    desk = Desk(ONE, loops=ended("a", "b"))
    desk.offering = {"a"}
    desk.search_all()
    desk.asked.clear()
    desk.change([ONE, ELSE])
    desk.search_all()
    assert desk.asked == ["a"]


def test_extracted_offer_returns_if_its_pattern_is_removed() -> None:
    desk = Desk(ONE, loops=ended("a"))
    desk.offering = {"a"}
    desk.search_all()
    desk.search.take("a")
    assert not desk.search.offers
    desk.change([ONE, ELSE])
    desk.offering = set()
    desk.search_all()
    assert not desk.search.offers
    desk.change([ONE])
    desk.offering = {"a"}
    desk.search_all()
    assert list(desk.search.offers) == ["a"]


def test_number_of_pairs_per_pattern_is_limited() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(300)]
    desk = Desk(*many)
    desk.search_all()
    assert {id for pair in desk.pairs() for id in pair} == {one.id for one in many}
    assert len(desk.pairs()) < 20 * len(many), "and not with all others, which would be 45,000 pairs"


def test_duplicates_of_a_removed_pattern_are_compared_again() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(40)]
    desk = Desk(*many)
    desk.search_all()
    for left in (20, 5, 2):
        desk.change(many[-left:])
        desk.search_all()
    assert desk.pairs() == [("same-038", "same-039")]
