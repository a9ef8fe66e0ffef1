"""Lessons of agents for tests, and projects that have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from core.index.project_state import ProjectState
from core.index.review_items import LESSON, ReviewItem
from core.project.project import Project
from core.records.extractions import Extraction
from core.records.loops import Loop
from core.records.reflections import JoinedLesson, Lesson, LessonKind
from core.sources.adapters.collector import Collector
from core.sources.adapters.contract import AdapterRecords
from core.sources.adapters.lessons import lesson_id

CLOCK = "Use the fake clock of tests/clock.ts in every cart test"
NO_CLOCK = "Never use the fake clock of tests/clock.ts in every cart test"


def make_agent_lesson(text: str = CLOCK, runner: str = "claude", **fields: Any) -> Lesson:
    known: dict[str, Any] = {"kind": LessonKind.APPROACH, "file": f"~/.{runner}/memory/notes.md", "line": 3}
    return Lesson(id=lesson_id(runner, text), runner=runner, text=text, **(known | fields))


def add_lessons(project: Project, *lessons: Lesson, loops: Iterable[Loop] = ()) -> None:
    """Let adapters find these lessons and loops."""
    project.replace_adapted(AdapterRecords(lessons=lessons, loops=tuple(loops)))


def find_when_loaded(monkeypatch: pytest.MonkeyPatch, *lessons: Lesson, loops: Iterable[Loop] = ()) -> None:
    """Let adapters find these lessons and loops in each project that is loaded from now on."""
    found, load = AdapterRecords(lessons=lessons, loops=tuple(loops)), Project.load

    def collect(collector: Collector) -> AdapterRecords:
        collector._records = found
        return found

    def loaded(project: Project, *args: Any) -> ProjectState:
        load(project, *args)
        return project.replace_adapted(found)[0]

    monkeypatch.setattr(Collector, "_collect", collect)
    monkeypatch.setattr(Project, "load", loaded)


def find_joined(project: Project, lesson: Lesson) -> JoinedLesson:
    """The joined lesson that contains a lesson."""
    return next(one for one in project.lessons() if lesson in one.places)


def lesson_questions(project: Project) -> list[ReviewItem]:
    """The questions about lessons, when all searches have ended."""
    return [item for item in project.search_all().queue if item.kind == LESSON]


def drafted(offer: Extraction) -> dict[str, Any]:
    """The record of the only proposal."""
    (proposal,) = offer.proposals
    return proposal.record
