"""The search for lessons to ask about ends, and begins again when something changed."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from core.base.errors import Refused
from core.base.settings import Settings
from core.base.steps import Steps, run_all
from core.questions.lesson import MOST_LESSONS, find_lessons, lesson_weight
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
        self.joined = joined
        self.drafted: list[str] = []
        self.is_prepared = False

    def find(self, snapshot: Snapshot = SNAPSHOT) -> list[str]:
        """Return the lessons that are found."""
        view: Any = SimpleNamespace(snapshot=snapshot, settings=SETTINGS, now=NOW)
        return [one.id for one, _ in run_all(find_lessons(view, self._load))]

    def find_lessons_in_steps(self, view: object) -> Steps[tuple[JoinedLesson, ...]]:
        yield
        return self.joined

    def prepare_in_steps(self, view: object) -> Steps[bool]:
        yield
        self.is_prepared = True
        return True

    def extract_lesson(self, joined: JoinedLesson, view: object) -> Extraction:
        assert self.is_prepared, "drafting one without its indexes takes long"
        self.drafted.append(joined.id)
        if "Squash" in joined.lesson.text:
            raise Refused("not this one")
        return offer(joined.id, new=1)

    def _load(self) -> Steps[Any]:
        yield
        return self


def test_it_finds_the_open_lessons_that_give_a_pattern() -> None:
    rejected = make_agent_lesson("Mock the mail server in every test")
    searched = Searched(
        JoinedLesson(places=(LESSON,)),
        JoinedLesson(places=(OTHER,)),
        JoinedLesson(places=(rejected,), state=LessonState.REJECTED),
    )
    assert searched.find() == [LESSON.id]
    assert set(searched.drafted) == {LESSON.id, OTHER.id}


def test_no_more_are_drafted_than_are_asked_about() -> None:
    many = [make_agent_lesson(f"Lock table {number} first") for number in range(MOST_LESSONS + 5)]
    searched = Searched(*(JoinedLesson(places=(one,)) for one in many))
    assert len(searched.find()) == len(searched.drafted) == MOST_LESSONS


def test_without_lessons_nothing_is_loaded() -> None:
    searched = Searched(JoinedLesson(places=(LESSON,)))
    assert searched.find(Snapshot()) == [] and not searched.drafted


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
