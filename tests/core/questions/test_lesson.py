"""The search for lessons to ask about ends, and begins again when something changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from core.base.errors import Refused
from core.config.settings import Settings
from core.questions.lesson import LessonSearch, lesson_weight
from core.records.decisions import CurationState
from core.records.extractions import Extraction
from core.records.lessons import JoinedLesson, LessonState
from core.records.loops import Outcome
from core.records.snapshot import Snapshot
from tests.agent_lessons import CLOCK, make_agent_lesson
from tests.core.questions.test_queue import offer
from tests.factories import NOW

SETTINGS = Settings()
LESSON = make_agent_lesson()
OTHER = make_agent_lesson("Squash the commits before a merge")
SNAPSHOT = Snapshot(lessons={one.id: one for one in (LESSON, OTHER)})


class Searched:
    """A search with what it was asked to do."""

    def __init__(self, *joined: JoinedLesson) -> None:
        self.search = LessonSearch(SETTINGS)
        self.joined: Sequence[JoinedLesson] | None = joined
        self.drafted: list[str] = []
        self.is_ready = True

    def look(self, snapshot: Snapshot = SNAPSHOT) -> bool | None:
        board = SimpleNamespace(evidence=None)
        view: Any = SimpleNamespace(snapshot=snapshot, board=board, settings=SETTINGS, now=NOW)
        return self.search.look(view, lambda: self.joined, self._draft, lambda: self.is_ready)

    def finish(self, snapshot: Snapshot = SNAPSHOT) -> list[str]:
        """Do all steps; returns the lessons that were found."""
        for _ in range(100):
            if self.look(snapshot) is None:
                return [one.id for one, _ in self.search.found]
        raise AssertionError("the search does not end")

    def _draft(self, joined: JoinedLesson) -> Extraction:
        self.drafted.append(joined.id)
        if "Squash" in joined.lesson.text:
            raise Refused("not this one")
        return offer(joined.id, new=1)


def test_it_finds_the_open_lessons_that_give_a_pattern_and_then_rests() -> None:
    rejected = make_agent_lesson("Mock the mail server in every test")
    searched = Searched(
        JoinedLesson(places=(LESSON,)),
        JoinedLesson(places=(OTHER,)),
        JoinedLesson(places=(rejected,), state=LessonState.REJECTED),
    )
    assert searched.finish() == [LESSON.id]
    assert set(searched.drafted) == {LESSON.id, OTHER.id}
    assert searched.look() is None
    assert searched.finish(replace(SNAPSHOT, curation=CurationState(dismissed=frozenset({"x"})))) == [LESSON.id]
    assert len(searched.drafted) == 4, "a decision begins it again"


def test_a_change_during_the_search_begins_it_again() -> None:
    searched = Searched(JoinedLesson(places=(LESSON,)))
    searched.joined = None
    assert searched.look() is False
    searched.joined = (JoinedLesson(places=(LESSON,)),)
    newer = replace(SNAPSHOT, curation=CurationState(dismissed=frozenset({"x"})))
    assert searched.finish(newer) == [LESSON.id]
    assert len(searched.drafted) == 2


def test_nothing_is_drafted_before_its_indexes_are_ready() -> None:
    searched = Searched(JoinedLesson(places=(LESSON,)))
    searched.is_ready = False
    for _ in range(5):
        assert searched.look() is False
    assert not searched.drafted
    searched.is_ready = True
    assert searched.finish() == [LESSON.id]


def test_removed_lessons_leave_the_result() -> None:
    searched = Searched(JoinedLesson(places=(LESSON,)))
    searched.finish()
    searched.joined = ()
    assert searched.finish(Snapshot()) == []


def test_without_lessons_there_is_nothing_to_do() -> None:
    assert Searched().look(Snapshot()) is None


def test_an_accepted_lesson_is_removed_at_once() -> None:
    searched = Searched(JoinedLesson(places=(LESSON,)))
    searched.finish()
    searched.search.remove(LESSON.id)
    assert not searched.search.found


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
