from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.errors import Refused
from core.base.settings import Settings
from core.base.steps import Steps, run_all
from core.index.verdicts import VerdictsInMemory
from core.questions.offer import JUDGED_AT_ONCE, MOST_JUDGED, FoundOffers, find_offers, join_offers
from core.records.extractions import Extraction, Proposal
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from tests.factories import make_error_pattern

ONE, TWO = make_error_pattern("one"), make_error_pattern("two")


def ended(*ids: str) -> dict[str, Loop]:
    return {id: Loop(id=id, task=id, status=LoopStatus.COMPLETED) for id in ids}


def lesson(error: str, fix: str, duplicate_of: str = "") -> Proposal:
    signature = {"error_type": "TypeError", "error_pattern": error}
    record = {"error_signature": signature, "fix_approach": {"description": fix}}
    return Proposal(type=PatternType.ERROR, slug="a", record=record, duplicate_of=duplicate_of)


def offer(loop_id: str, *lessons: Proposal) -> Extraction:
    other = " ".join(sha256(f"{loop_id}{number}".encode()).hexdigest()[:7] for number in range(5))
    return Extraction(source_id=loop_id, proposals=lessons or (lesson(other, "fix it"),))


class Desk:
    """Loops that can be judged until nothing is left."""

    def __init__(self, loops: Mapping[str, Loop], *patterns: Pattern, stored: VerdictsInMemory | None = None) -> None:
        self.stored = VerdictsInMemory() if stored is None else stored
        self.found = FoundOffers()
        self.snapshot = Snapshot(patterns={one.id: one for one in patterns}, loops=loops)
        self.asked: list[str] = []
        self.offering: set[str] = set()
        self.known: set[str] = set()
        """Loops whose lesson is in the registry."""

    def prepare_in_steps(self, view: object) -> Steps[None]:
        yield

    def extraction(self, loop_id: str, view: object) -> Extraction:
        self.asked.append(loop_id)
        if loop_id == "refused":
            raise Refused("no")
        if loop_id not in self.offering:
            return Extraction(source_id=loop_id)
        found = offer(loop_id)
        refused = "already known" if loop_id in self.known else ""
        return replace(found, proposals=tuple(replace(one, refused=refused) for one in found.proposals))

    def search_all(self, *, is_idle: bool = False) -> None:
        """Judge until nothing is left."""
        view: Any = SimpleNamespace(snapshot=self.snapshot, settings=Settings())
        most = MOST_JUDGED if is_idle else JUDGED_AT_ONCE
        for _ in range(100):
            self.found = run_all(find_offers(view, self.found, self.stored, self._load, self.extraction, most))
            if self.found.is_whole if is_idle else self.found.is_done:
                return
        raise AssertionError("the search does not end")

    def change(self, *patterns: Pattern) -> None:
        self.snapshot = Snapshot(patterns={one.id: one for one in patterns}, loops=self.snapshot.loops)

    def _load(self) -> Steps[Any]:
        yield
        return self


def test_finished_loops_are_judged_once_and_a_refusal_offers_nothing() -> None:
    desk = Desk(ended("a", "refused"))
    desk.offering = {"a"}
    desk.search_all()
    assert desk.asked == ["a", "refused"]
    assert dict(desk.found.offers) == {"a": offer("a")}
    desk.search_all()
    assert desk.asked == ["a", "refused"]


def test_only_the_newest_finished_loops_are_judged_at_once_and_older_ones_when_idle() -> None:
    loops = {"running": Loop(id="running", task="", status=LoopStatus.RUNNING)}
    names = [f"loop-{number:03}" for number in range(MOST_JUDGED + 5)]
    desk = Desk(loops | ended(*names))
    desk.search_all()
    assert desk.asked == names[:JUDGED_AT_ONCE]
    desk.search_all(is_idle=True)
    assert desk.asked == names[:MOST_JUDGED]


def test_offers_of_older_loops_are_withdrawn() -> None:
    desk = Desk(ended("old"))
    desk.offering = {"old", "new-0"}
    desk.search_all()
    desk.snapshot = Snapshot(loops=ended(*(f"new-{number}" for number in range(MOST_JUDGED)), "old"))
    desk.search_all()
    assert set(desk.found.offers) == {"new-0"}
    desk.snapshot = Snapshot(loops=ended("old"))
    desk.search_all()
    assert set(desk.found.offers) == {"old"}, "it is among the newest again"


def test_offers_are_compared_again_after_a_registry_change() -> None:
    desk = Desk(ended("a", "b"), ONE)
    desk.offering = {"a"}
    desk.search_all()
    desk.asked.clear()
    desk.change(ONE, TWO)
    desk.search_all()
    assert desk.asked == ["a"]


def test_only_the_best_offers_are_compared_again_until_they_are_asked_about() -> None:
    desk = Desk(ended(*(f"loop-{number:03}" for number in range(MOST_JUDGED))), ONE)
    desk.offering = set(desk.snapshot.loops)
    desk.search_all(is_idle=True)
    desk.asked.clear()
    desk.change(ONE, TWO)
    desk.search_all(is_idle=True)
    assert 5 <= len(desk.asked) <= JUDGED_AT_ONCE
    first = desk.asked[0]
    desk.asked.clear()
    desk.found = desk.found.without(first)
    desk.search_all(is_idle=True)
    assert len(desk.asked) == 1 and first not in desk.asked, "another one is among the best"


def test_extracted_offer_returns_if_its_pattern_is_removed() -> None:
    desk = Desk(ended("a"), ONE)
    desk.offering = {"a"}
    desk.search_all()
    desk.found = desk.found.without("a")
    assert not desk.found.offers
    desk.known = {"a"}
    desk.change(ONE, TWO)
    desk.search_all()
    assert not desk.found.offers
    desk.known = set()
    desk.change(ONE)
    desk.search_all()
    assert list(desk.found.offers) == ["a"]


def test_an_offer_that_was_extracted_returns_at_once_when_that_is_undone() -> None:
    desk = Desk(ended("a"), ONE)
    desk.offering = {"a"}
    desk.search_all()
    assert desk.found.without("a").restored("a").offers == desk.found.offers


def test_a_forgotten_offer_is_made_again() -> None:
    desk = Desk(ended("a", "b"), ONE)
    desk.offering = {"a", "b"}
    desk.search_all()
    desk.asked.clear()
    desk.found = desk.found.forget("a")
    desk.search_all()
    assert desk.asked == ["a"]


def test_an_offer_returns_if_its_pattern_is_removed_in_another_run() -> None:
    stored = VerdictsInMemory()
    first = Desk(ended("a"), ONE, stored=stored)
    first.offering = first.known = {"a"}
    first.search_all()
    again = Desk(ended("a"), stored=stored)
    again.offering = {"a"}
    again.search_all()
    assert list(again.found.offers) == ["a"]


def test_stored_verdicts_are_used_for_loops_and_registries_that_have_not_changed() -> None:
    stored = VerdictsInMemory()
    first = Desk(ended("a", "b", "c"), ONE, stored=stored)
    first.offering = {"a", "b"}
    first.search_all()
    again = Desk(ended("a", "b", "c"), ONE, stored=stored)
    again.search_all()
    assert again.asked == [] and again.found.offers == first.found.offers
    extended = Desk(ended("a", "b", "c"), ONE, TWO, stored=stored)
    extended.search_all()
    assert sorted(extended.asked) == ["a", "b"], "what offers something is compared with the new registry"
    changed = Desk(ended("a", "b") | {"c": Loop(id="c", task="more", status=LoopStatus.COMPLETED)}, ONE, stored=stored)
    changed.search_all()
    assert changed.asked == ["c"], "its record differs"


def test_stored_verdicts_of_older_loops_count_also_where_they_are_not_judged() -> None:
    stored = VerdictsInMemory()
    names = [f"loop-{number:03}" for number in range(MOST_JUDGED)]
    idle = Desk(ended(*names), stored=stored)
    idle.offering = {names[-1]}
    idle.search_all(is_idle=True)
    short = Desk(ended(*names), stored=stored)
    short.search_all()
    assert short.asked == [] and list(short.found.offers) == [names[-1]]


def test_a_damaged_verdict_is_judged_again() -> None:
    stored = VerdictsInMemory()
    Desk(ended("a"), stored=stored).search_all()
    stored.put("offer", {"a": b"\xc1"})
    again = Desk(ended("a"), stored=stored)
    again.search_all()
    assert again.asked == ["a"]


NULL = lesson("Cannot read properties of null", "check the cart for null before use")
NULL_AGAIN = lesson("Cannot read properties of null", "check the cart for null before its use")
POOL = lesson("Connection pool exhausted after 30 seconds", "close the cursor in the finally block")


def sources(offers: Mapping[str, Extraction]) -> list[tuple[str, ...]]:
    return [one.sources for one in join_offers(offers, 0.8)]


def test_offers_of_the_same_lesson_are_one_with_its_sources() -> None:
    offers = {"a": offer("a", NULL), "b": offer("b", POOL), "c": offer("c", NULL_AGAIN)}
    assert sources(offers) == [("a", "c"), ("b",)]


def test_an_offer_with_another_lesson_is_not_hidden_behind_one_that_lacks_it() -> None:
    offers = {"a": offer("a", NULL), "b": offer("b", POOL), "both": offer("both", POOL, NULL_AGAIN)}
    assert sources(offers) == [("both", "a", "b")]
    assert sources({"a": offer("a", NULL), "use": offer("use", NULL, lesson("x", "y", duplicate_of="p"))}) == [
        ("use", "a")
    ]
    assert len(sources({"p": offer("p", lesson("x", "y", "p")), "q": offer("q", lesson("x", "y", "q"))})) == 2


def test_an_empty_offer_is_none() -> None:
    assert sources({"a": Extraction(source_id="a")}) == []


@given(st.dictionaries(st.text("abc", min_size=1), st.lists(st.sampled_from([NULL, NULL_AGAIN, POOL]), min_size=1)))
def test_each_offer_is_a_source_once(chosen: dict[str, list[Proposal]]) -> None:
    offers = {id: offer(id, *lessons) for id, lessons in chosen.items()}
    found = [id for one in sources(offers) for id in one]
    assert sorted(found) == sorted(offers)
