"""The searches for each kind of question: what they find, and what they do not search again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from core.base.errors import Refused
from core.base.settings import Settings
from core.base.steps import Steps, run_all
from core.index.review_items import WeakenedTest
from core.index.similarity import SimilarityIndex
from core.index.texts import Texts
from core.index.verdicts import VerdictsInMemory
from core.learning.scoreboard import Scoreboard
from core.questions import doubts
from core.questions.acknowledgement import SEARCHED_ATTEMPTS, WeakenedTests, find_weakened_tests
from core.questions.doubts import find_broad_triggers, find_wrong_counts, trigger_match_share
from core.questions.duplicate import Duplicates, find_duplicates
from core.questions.extraction.learnings import Cluster, Member
from core.questions.offer import (
    JUDGED_AT_ONCE,
    MOST_JUDGED,
    MOST_LESSONS,
    FoundOffers,
    RecurringLearnings,
    find_lessons,
    find_offers,
    find_recurring,
    join_offers,
    lesson_weight,
)
from core.records.episodes import Attempt
from core.records.extractions import Extraction, Proposal
from core.records.findings import Finding
from core.records.loops import Loop, LoopStatus, Outcome
from core.records.patterns import Pattern, PatternType, RecordedCounts
from core.records.reflections import JoinedLesson, LessonState, Reflection
from core.records.snapshot import Snapshot
from tests.agent_lessons import CLOCK, make_agent_lesson
from tests.core.questions.test_queue import offer, used
from tests.factories import CURATION_NOW, NOW, make_error_pattern


def view_of(snapshot: Snapshot, **more: Any) -> Any:
    return SimpleNamespace(snapshot=snapshot, settings=Settings(), now=NOW, **more)


class Desk:
    """Extractor of these tests, with the verdicts that searches store."""

    def __init__(self, stored: VerdictsInMemory | None = None) -> None:
        self.stored = VerdictsInMemory() if stored is None else stored
        self.is_prepared = False

    def load(self) -> Steps[Any]:
        yield
        return self

    def prepare_in_steps(self, view: object) -> Steps[None]:
        self.is_prepared = True
        yield


FIRST_PATTERN, SECOND_PATTERN = make_error_pattern("one"), make_error_pattern("two")


def ended(*ids: str) -> dict[str, Loop]:
    return {id: Loop(id=id, task=id, status=LoopStatus.COMPLETED) for id in ids}


def make_draft(error: str, fix: str, duplicate_of: str = "") -> Proposal:
    signature = {"error_type": "TypeError", "error_pattern": error}
    record = {"error_signature": signature, "fix_approach": {"description": fix}}
    return Proposal(type=PatternType.ERROR, slug="a", record=record, duplicate_of=duplicate_of)


def make_offer(loop_id: str, *lessons: Proposal) -> Extraction:
    other = " ".join(sha256(f"{loop_id}{number}".encode()).hexdigest()[:7] for number in range(5))
    return Extraction(source_id=loop_id, proposals=lessons or (make_draft(other, "fix it"),))


class OfferDesk(Desk):
    """Loops that can be judged until nothing is left."""

    def __init__(self, loops: Mapping[str, Loop], *patterns: Pattern, stored: VerdictsInMemory | None = None) -> None:
        super().__init__(stored)
        self.found = FoundOffers()
        self.snapshot = Snapshot(patterns={one.id: one for one in patterns}, loops=loops)
        self.asked: list[str] = []
        self.offering: set[str] = set()
        self.known: set[str] = set()
        """Loops whose lesson is in the registry."""

    def extraction(self, loop_id: str, view: object) -> Extraction:
        self.asked.append(loop_id)
        if loop_id == "refused":
            raise Refused("no")
        if loop_id not in self.offering:
            return Extraction(source_id=loop_id)
        found = make_offer(loop_id)
        refused = "already known" if loop_id in self.known else ""
        return replace(found, proposals=tuple(replace(one, refused=refused) for one in found.proposals))

    def search_all(self, *, is_idle: bool = False) -> None:
        """Judge until nothing is left."""
        view = view_of(self.snapshot)
        most = MOST_JUDGED if is_idle else JUDGED_AT_ONCE
        for _ in range(100):
            self.found = run_all(find_offers(view, self.found, self.stored, self.load, self.extraction, most))
            if self.found.is_whole if is_idle else self.found.is_done:
                return
        raise AssertionError("the search does not end")

    def change(self, *patterns: Pattern) -> None:
        self.snapshot = Snapshot(patterns={one.id: one for one in patterns}, loops=self.snapshot.loops)


def test_finished_loops_are_judged_once_and_a_refusal_offers_nothing() -> None:
    desk = OfferDesk(ended("a", "refused"))
    desk.offering = {"a"}
    desk.search_all()
    assert desk.asked == ["a", "refused"]
    assert dict(desk.found.offers) == {"a": make_offer("a")}
    desk.search_all()
    assert desk.asked == ["a", "refused"]


def test_only_the_newest_finished_loops_are_judged_at_once_and_older_ones_when_idle() -> None:
    loops = {"running": Loop(id="running", task="", status=LoopStatus.RUNNING)}
    names = [f"loop-{number:03}" for number in range(MOST_JUDGED + 5)]
    desk = OfferDesk(loops | ended(*names))
    desk.search_all()
    assert desk.asked == names[:JUDGED_AT_ONCE]
    desk.search_all(is_idle=True)
    assert desk.asked == names[:MOST_JUDGED]


def test_offers_of_older_loops_are_withdrawn() -> None:
    desk = OfferDesk(ended("old"))
    desk.offering = {"old", "new-0"}
    desk.search_all()
    desk.snapshot = Snapshot(loops=ended(*(f"new-{number}" for number in range(MOST_JUDGED)), "old"))
    desk.search_all()
    assert set(desk.found.offers) == {"new-0"}
    desk.snapshot = Snapshot(loops=ended("old"))
    desk.search_all()
    assert set(desk.found.offers) == {"old"}, "it is among the newest again"


def test_offers_are_compared_again_after_a_registry_change_or_if_they_are_forgotten() -> None:
    desk = OfferDesk(ended("a", "b"), FIRST_PATTERN)
    desk.offering = {"a"}
    desk.search_all()
    assert desk.found.without("a").restored("a").offers == desk.found.offers, "an extraction was undone"
    desk.asked.clear()
    desk.change(FIRST_PATTERN, SECOND_PATTERN)
    desk.search_all()
    assert desk.asked == ["a"]
    desk.found = desk.found.forget("a")
    desk.search_all()
    assert desk.asked == ["a", "a"]


def test_only_the_best_offers_are_compared_again_until_they_are_asked_about() -> None:
    desk = OfferDesk(ended(*(f"loop-{number:03}" for number in range(MOST_JUDGED))), FIRST_PATTERN)
    desk.offering = set(desk.snapshot.loops)
    desk.search_all(is_idle=True)
    desk.asked.clear()
    desk.change(FIRST_PATTERN, SECOND_PATTERN)
    desk.search_all(is_idle=True)
    assert 5 <= len(desk.asked) <= JUDGED_AT_ONCE
    first = desk.asked[0]
    desk.asked.clear()
    desk.found = desk.found.without(first)
    desk.search_all(is_idle=True)
    assert len(desk.asked) == 1 and first not in desk.asked, "another one is among the best"


def test_extracted_offer_returns_if_its_pattern_is_removed() -> None:
    desk = OfferDesk(ended("a"), FIRST_PATTERN)
    desk.offering = {"a"}
    desk.search_all()
    desk.found = desk.found.without("a")
    assert not desk.found.offers
    desk.known = {"a"}
    desk.change(FIRST_PATTERN, SECOND_PATTERN)
    desk.search_all()
    assert not desk.found.offers
    desk.known = set()
    desk.change(FIRST_PATTERN)
    desk.search_all()
    assert list(desk.found.offers) == ["a"]


def test_stored_verdicts_are_used_for_loops_and_registries_that_have_not_changed() -> None:
    stored = VerdictsInMemory()
    first = OfferDesk(ended("a", "b", "c"), FIRST_PATTERN, stored=stored)
    first.offering = {"a", "b"}
    first.search_all()
    again = OfferDesk(ended("a", "b", "c"), FIRST_PATTERN, stored=stored)
    again.search_all()
    assert again.asked == [] and again.found.offers == first.found.offers
    extended = OfferDesk(ended("a", "b", "c"), FIRST_PATTERN, SECOND_PATTERN, stored=stored)
    extended.search_all()
    assert sorted(extended.asked) == ["a", "b"], "what offers something is compared with the new registry"
    changed = OfferDesk(
        ended("a", "b") | {"c": Loop(id="c", task="more", status=LoopStatus.COMPLETED)}, FIRST_PATTERN, stored=stored
    )
    changed.search_all()
    assert changed.asked == ["c"], "its record differs"
    stored.put("offer", {"c": b"\xc1"})
    damaged = OfferDesk(ended("a", "b", "c"), FIRST_PATTERN, SECOND_PATTERN, stored=stored)
    damaged.search_all()
    assert damaged.asked == ["c"]


def test_an_offer_returns_if_its_pattern_is_removed_in_another_run() -> None:
    stored = VerdictsInMemory()
    first = OfferDesk(ended("a"), FIRST_PATTERN, stored=stored)
    first.offering = first.known = {"a"}
    first.search_all()
    again = OfferDesk(ended("a"), stored=stored)
    again.offering = {"a"}
    again.search_all()
    assert list(again.found.offers) == ["a"]


def test_stored_verdicts_of_older_loops_count_also_where_they_are_not_judged() -> None:
    stored = VerdictsInMemory()
    names = [f"loop-{number:03}" for number in range(MOST_JUDGED)]
    idle = OfferDesk(ended(*names), stored=stored)
    idle.offering = {names[-1]}
    idle.search_all(is_idle=True)
    short = OfferDesk(ended(*names), stored=stored)
    short.search_all()
    assert short.asked == [] and list(short.found.offers) == [names[-1]]


NULL = make_draft("Cannot read properties of null", "check the cart for null before use")
NULL_AGAIN = make_draft("Cannot read properties of null", "check the cart for null before its use")
POOL = make_draft("Connection pool exhausted after 30 seconds", "close the cursor in the finally block")


def sources(offers: Mapping[str, Extraction]) -> list[tuple[str, ...]]:
    return [one.sources for one in join_offers(offers, 0.8)]


def test_offers_of_the_same_lesson_are_one_with_its_sources() -> None:
    a, b, c, empty = (
        make_offer("a", NULL),
        make_offer("b", POOL),
        make_offer("c", NULL_AGAIN),
        Extraction(source_id="a"),
    )
    assert sources({"a": empty}) == []
    assert sources({"a": a, "b": b, "c": c}) == [("a", "c"), ("b",)]
    assert sources({"a": a, "b": b, "both": make_offer("both", POOL, NULL_AGAIN)}) == [("both", "a", "b")]
    p, q = (make_draft("x", "y", duplicate_of=id) for id in "pq")
    assert sources({"a": a, "use": make_offer("use", NULL, p)}) == [("use", "a")], "it has another lesson, too"
    assert len(sources({"p": make_offer("p", p), "q": make_offer("q", q)})) == 2


@given(st.dictionaries(st.text("abc", min_size=1), st.lists(st.sampled_from([NULL, NULL_AGAIN, POOL]), min_size=1)))
def test_each_offer_is_a_source_once(chosen: dict[str, list[Proposal]]) -> None:
    offers = {id: make_offer(id, *lessons) for id, lessons in chosen.items()}
    found = [id for one in sources(offers) for id in one]
    assert sorted(found) == sorted(offers)


def cluster(number: int) -> Cluster:
    reflection = Reflection(id=f"r{number}", learning="lock the rows first", shape="episodic", file="r.json")
    members = (Member("a", reflection), Member("b", reflection))
    return Cluster(
        id=f"recurring-{number}",
        central=reflection,
        members=members,
        sources=("a", "b"),
        kinds=(),
        first_at=None,
        last_at=None,
    )


def snapshot_of(*patterns: Pattern, **more: Any) -> Snapshot:
    return Snapshot(patterns={pattern.id: pattern for pattern in patterns}, **more)


class RecurringDesk(Desk):
    """Searches, each after what was found before, with the clusters that were drafted."""

    def __init__(self, stored: VerdictsInMemory | None = None, **offers: Extraction) -> None:
        super().__init__(stored)
        self.offers = offers or {"recurring_1": offer("recurring-1", new=1)}
        self.found = RecurringLearnings()
        self.clusters: Sequence[Cluster] = [cluster(1)]
        self.drafted: list[str] = []
        self.is_clustered = False

    def find(self, snapshot: Snapshot) -> list[str]:
        """Return the recurring learnings that are asked about."""
        self.drafted.clear()
        self.is_clustered = False
        self.found = run_all(find_recurring(view_of(snapshot), self.found, self.stored, self.load))
        return [one.id for one, _ in self.found.found]

    def find_recurring_in_steps(self, snapshot: Snapshot) -> Steps[tuple[Cluster, ...]]:
        self.is_clustered = True
        yield
        return tuple(self.clusters)

    def extract_cluster(self, cluster: Cluster, view: object) -> Extraction:
        self.drafted.append(cluster.id)
        if (name := cluster.id.replace("-", "_")) not in self.offers:
            raise Refused("gone")
        return self.offers[name]


def test_recurring_learnings_without_a_pattern_are_offered() -> None:
    desk = RecurringDesk(recurring_1=offer("recurring-1", new=1), recurring_2=offer("recurring-2", merges=1))
    desk.clusters = [cluster(1), cluster(2), cluster(3)]
    assert desk.find(snapshot_of(make_error_pattern("p"))) == ["recurring-1"]
    assert desk.drafted == ["recurring-1", "recurring-2", "recurring-3"]


def test_learning_is_checked_again_if_the_task_of_its_loop_changes() -> None:
    desk = RecurringDesk()
    snapshot = Snapshot(loops={id: Loop(id=id, task="x") for id in ("a", "b", "c")})
    for changed, again in (({}, True), ({"c": "y"}, False), ({"a": "y"}, True), ({"a": "y"}, False)):
        loops = {id: structs.replace(loop, task=changed.get(id, loop.task)) for id, loop in snapshot.loops.items()}
        snapshot = dataclasses.replace(snapshot, loops=loops)
        assert desk.find(snapshot) == ["recurring-1"]
        assert bool(desk.drafted) is again, changed


def reflection(id: str, learning: str) -> Reflection:
    return Reflection(id=id, learning=learning, shape="episodic", file="r.json", loop_id="a")


def test_a_stored_verdict_is_used_until_learnings_or_patterns_change() -> None:
    stored = VerdictsInMemory()
    reflections = {"r": reflection("r", "lock the rows first")}
    snapshot = snapshot_of(make_error_pattern("p"), reflections=reflections)
    first = RecurringDesk(stored)
    first.find(snapshot)

    def find_again(after: Snapshot) -> tuple[list[str], bool]:
        desk = RecurringDesk(stored)
        desk.clusters = []
        return desk.find(after), desk.is_clustered

    same = snapshot_of(make_error_pattern("p"), reflections={"r": reflection("r", "lock the rows first")})
    assert find_again(same) == (["recurring-1"], False)
    learned = snapshot_of(make_error_pattern("p"), reflections=reflections | {"s": reflection("s", "do it twice")})
    assert find_again(learned) == ([], True)
    known = snapshot_of(make_error_pattern("p"), make_error_pattern("q"), reflections=reflections)
    assert find_again(known) == ([], True)


SETTINGS = Settings()
LESSON = make_agent_lesson()
OTHER = make_agent_lesson("Squash the commits before a merge")
SNAPSHOT = Snapshot(lessons={one.id: one for one in (LESSON, OTHER)})


class LessonSearch(Desk):
    """A search with what it was asked to do."""

    def __init__(self, *joined: JoinedLesson) -> None:
        super().__init__()
        self.joined = joined
        self.drafted: list[str] = []

    def find(self, snapshot: Snapshot = SNAPSHOT) -> list[str]:
        """Return the lessons that are found."""
        return [one.id for one, _ in run_all(find_lessons(view_of(snapshot), self.load))]

    def find_lessons_in_steps(self, view: object) -> Steps[tuple[JoinedLesson, ...]]:
        yield
        return self.joined

    def extract_lesson(self, joined: JoinedLesson, view: object) -> Extraction:
        assert self.is_prepared, "drafting one without its indexes takes long"
        self.drafted.append(joined.id)
        if "Squash" in joined.lesson.text:
            raise Refused("not this one")
        return offer(joined.id, new=1)


def test_it_finds_the_open_lessons_that_give_a_pattern_and_drafts_no_more_than_are_asked_about() -> None:
    rejected = make_agent_lesson("Mock the mail server in every test")
    searched = LessonSearch(
        JoinedLesson(places=(LESSON,)),
        JoinedLesson(places=(OTHER,)),
        JoinedLesson(places=(rejected,), state=LessonState.REJECTED),
    )
    assert searched.find(Snapshot()) == [] and not searched.drafted, "nothing is loaded"
    assert searched.find() == [LESSON.id]
    assert set(searched.drafted) == {LESSON.id, OTHER.id}
    many = [make_agent_lesson(f"Lock table {number} first") for number in range(MOST_LESSONS + 5)]
    searched = LessonSearch(*(JoinedLesson(places=(one,)) for one in many))
    assert len(searched.find()) == len(searched.drafted) == MOST_LESSONS


def test_what_worked_is_loaded_cited_new_or_contradicted_weighs_more() -> None:
    def weight(*, days: float = 10, contradicts: tuple[str, ...] = (), **fields: Any) -> float:
        lesson = make_agent_lesson(CLOCK, at=NOW - timedelta(days=days), **fields)
        return lesson_weight(JoinedLesson(places=(lesson,), contradicts=contradicts), NOW, 30)

    plain = weight()
    assert weight(outcome=Outcome.SUCCESS) > plain
    assert weight(loaded=True) > plain
    assert weight(uses=9) > weight(uses=1) > plain
    assert weight(days=0) > plain > weight(days=90)
    assert weight(contradicts=("p",)) > plain
    assert weight(days=-90) == weight(days=0), "a time in the future is now"


def pattern(id: str, text: str, **changes: object) -> Pattern:
    values = {"id": id, "type": PatternType.ERROR, "title": text, "error_pattern": text, "content_hash": text}
    return Pattern(**(values | changes))  # type: ignore[arg-type]


class DuplicateDesk:
    """A registry that is searched, each time after what was found before."""

    def __init__(self, *patterns: Pattern, stored: VerdictsInMemory | None = None) -> None:
        self.stored = VerdictsInMemory() if stored is None else stored
        self.found = Duplicates()
        self.change(patterns)

    def find(self) -> list[tuple[str, str]]:
        """Return the pairs of similar patterns."""
        view = view_of(self.texts.snapshot, texts=self.texts)
        self.found = run_all(find_duplicates(view, self.found, self.stored))
        return [(one, other) for one, other, _ in self.found.alike]

    def change(self, patterns: Iterable[Pattern]) -> None:
        self.texts = Texts(Snapshot(patterns={one.id: one for one in patterns}))


ONE = pattern("one", "cannot read property name of undefined in the session store")
LIKE_ONE = pattern("two", "cannot read property name of undefined in the session cache")
ELSE = pattern("three", "connection refused by the database after five attempts")


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The patterns that were compared with all others."""
    found: list[str] = []
    some_nearest = SimilarityIndex.some_nearest

    def counted(index: SimilarityIndex, one: Pattern, threshold: float) -> tuple[tuple[str, float], ...]:
        found.append(one.id)
        return some_nearest(index, one, threshold)

    monkeypatch.setattr(SimilarityIndex, "some_nearest", counted)
    return found


def test_only_new_texts_are_compared_again_and_a_pair_disappears_with_either_pattern(compared: list[str]) -> None:
    desk = DuplicateDesk(ONE, LIKE_ONE, ELSE)
    assert desk.find() == [("one", "two")]
    compared.clear()
    counted = pattern("one", ONE.title, file="elsewhere")
    desk.change([counted, LIKE_ONE, ELSE])
    desk.find()
    assert compared == []
    copied = pattern("four", ELSE.title)
    desk.change([counted, LIKE_ONE, ELSE, copied])
    assert desk.find() == [("four", "three"), ("one", "two")]
    assert compared == ["four"]
    desk.change([ONE, ELSE])
    assert desk.find() == []


def test_number_of_pairs_per_pattern_is_limited() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(300)]
    pairs = DuplicateDesk(*many).find()
    assert {id for pair in pairs for id in pair} == {one.id for one in many}
    assert len(pairs) < 20 * len(many), "and not with all others, which would be 45,000 pairs"


def test_duplicates_of_a_removed_pattern_are_compared_again() -> None:
    many = [pattern(f"same-{number:03}", ONE.title) for number in range(40)]
    desk = DuplicateDesk(*many)
    for left in (40, 20, 5, 2):
        desk.change(many[-left:])
        pairs = desk.find()
    assert pairs == [("same-038", "same-039")]


def test_a_pattern_that_returns_is_compared_with_what_came_meanwhile() -> None:
    desk = DuplicateDesk(ONE, ELSE)
    for patterns in ([ONE, ELSE], [ELSE], [LIKE_ONE, ELSE], [ONE, LIKE_ONE, ELSE]):
        desk.change(patterns)
        pairs = desk.find()
    assert pairs == [("one", "two")]


def test_stored_verdicts_give_the_same_pairs_and_only_new_texts_are_compared(compared: list[str]) -> None:
    stored = VerdictsInMemory()
    copy = pattern("copy", ONE.title)
    first = DuplicateDesk(ONE, ELSE, copy, stored=stored)
    first.find()
    compared.clear()
    again = DuplicateDesk(ELSE, copy, ONE, stored=stored)
    again.find()
    assert again.found.alike == first.found.alike and not compared
    assert ("one", "two") in DuplicateDesk(ONE, ELSE, copy, LIKE_ONE, stored=stored).find()
    assert compared == ["two"]
    other = pattern("other", "cannot read property name of undefined in the session pool")
    assert DuplicateDesk(LIKE_ONE, other, stored=stored).find() == [("other", "two")], "its stored duplicate is gone"


BROAD = make_error_pattern("p", error_pattern="e|o", content_hash="v1")
NARROW = make_error_pattern("p", error_pattern="ENOSPC", content_hash="v2")


def find_broad(*patterns: Pattern, stored: VerdictsInMemory | None = None) -> dict[str, float]:
    view = view_of(Snapshot(patterns={one.id: one for one in patterns}))
    return run_all(find_broad_triggers(view, VerdictsInMemory() if stored is None else stored))


def test_trigger_is_matched_against_common_messages() -> None:
    for trigger, share in [
        (".*", 1.0),
        (r"[Ee]rror|the|a", 1.0),
        (r"TypeError: Cannot read", 1 / 20),
        (r"(a+)+$", 0.0),
        ("(", 3 / 20),
    ]:
        assert trigger_match_share(make_error_pattern("p", error_pattern=trigger)) == pytest.approx(share, abs=0.06), (
            trigger,
            share,
        )


def test_a_trigger_that_matches_most_common_messages_is_found_and_its_verdict_stored_by_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = VerdictsInMemory()
    assert set(find_broad(BROAD, make_error_pattern("q", content_hash="v3"), stored=stored)) == {"p"}
    assert find_broad(NARROW, stored=stored) == {}
    tried: list[str] = []

    def try_one(pattern: Pattern) -> float:
        tried.append(pattern.id)
        return 0.0

    monkeypatch.setattr(doubts, "trigger_match_share", try_one)
    found = find_broad(BROAD, make_error_pattern("new", content_hash="v4"), stored=stored)
    assert (set(found), tried) == ({"p"}, ["new"])
    assert find_broad(stored=stored) == {}


ATTEMPT = Attempt(task_id="task-001", number=1, outcome=Outcome.SUCCESS, ended_at=NOW)


class WeakenedSearch:
    """Searches, each after the one before, with the attempts whose logs they read."""

    def __init__(self) -> None:
        self.result = WeakenedTests()
        self.read: list[str] = []

    def finish(self, *attempts: Attempt) -> list[str]:
        """Search; returns the attempts with a weakened test."""
        snapshot = Snapshot(attempts={one.id: one for one in attempts})
        self.result = run_all(find_weakened_tests(view_of(snapshot), self.result, self._load))
        return [one.attempt_id for one in self.result.found]

    def _load(self) -> Steps[Any]:
        yield
        return SimpleNamespace(find_weakened_tests=self._find)

    def _find(self, attempt: Attempt) -> Sequence[WeakenedTest]:
        self.read.append(attempt.id)
        found = WeakenedTest(attempt_id=attempt.id, task_id=attempt.task_id, number=3, change="skipped")
        return (found,) if attempt.agent == "codex" else ()


def test_it_reads_each_of_the_newest_ended_attempts_once_and_again_after_a_change() -> None:
    searched = WeakenedSearch()
    running = Attempt(task_id="task-002", number=1, agent="codex")
    assert searched.finish(ATTEMPT, running) == []
    assert searched.finish(ATTEMPT, running) == []
    for _ in range(2):
        assert searched.finish(replace(ATTEMPT, agent="codex"), running) == ["task-001.1"]
    assert searched.read == ["task-001.1", "task-001.1"]
    searched = WeakenedSearch()
    assert searched.finish(replace(ATTEMPT, agent="codex", actions=9, errors=0)) == []
    assert searched.read == [], "no action failed"
    days = range(SEARCHED_ATTEMPTS + 1)
    attempts = [replace(ATTEMPT, number=day + 1, ended_at=NOW + timedelta(days=day)) for day in days]
    searched.finish(*attempts)
    assert sorted(searched.read) == sorted(one.id for one in attempts[1:])


def find_unreconciled(snapshot: Snapshot) -> dict[str, Finding]:
    board = Scoreboard.build(snapshot, CURATION_NOW + timedelta(days=9), Settings())
    return run_all(find_wrong_counts(view_of(snapshot, board=board)))


def test_record_with_fewer_counts_than_evidence_is_unreconciled() -> None:
    events = tuple(used("p", "+++--", start=CURATION_NOW - timedelta(days=3)))
    wrong = make_error_pattern("p", recorded_counts=RecordedCounts(uses=2, rate=1.0), last_used=CURATION_NOW)
    other = make_error_pattern("q", recorded_counts=RecordedCounts(uses=7, rate=0.5))
    found = find_unreconciled(snapshot_of(wrong, other, events=events))
    assert set(found) == {"p"}
    assert "registry records 2 uses" in found["p"].message
    right = make_error_pattern("p", recorded_counts=RecordedCounts(uses=5, rate=0.6), last_used=CURATION_NOW)
    assert find_unreconciled(snapshot_of(right, events=events)) == {}
