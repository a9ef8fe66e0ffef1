"""What the searches for questions found is used by the next process while nothing has changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import copy_sample
from core.decisions import commands
from core.index.project_state import ProjectState
from core.index.review_items import DUPLICATE, OFFER, RECURRING
from core.project.project import Project
from core.questions.extraction.extractor import Extractor
from core.questions.search import QuestionSearch
from core.records.extractions import ALL_TYPES

SETTINGS = Settings()
NOW = datetime(2026, 2, 4, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose questions were searched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copy_sample(tmp_path / "project", NOW)
    return tmp_path / "project"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[QuestionSearch]:
    """The searches that did a step, each once for a step."""
    found: list[QuestionSearch] = []
    look = QuestionSearch.look

    def counted(search: QuestionSearch, view: ProjectState, *, is_idle: bool = False) -> bool | None:
        found.append(search)
        return look(search, view, is_idle=is_idle)

    monkeypatch.setattr(QuestionSearch, "look", counted)
    return found


def searched(folder: Path, now: datetime = NOW, settings: Settings = SETTINGS) -> ProjectState:
    project = Project(ProjectPaths(folder), settings, by="ada", clock=lambda: now)
    project.load()
    return project.search_all()


def test_nothing_is_searched_again_while_nothing_has_changed(folder: Path, steps: list[QuestionSearch]) -> None:
    first = searched(folder)
    assert {item.kind for item in first.queue} >= {DUPLICATE, OFFER, RECURRING}
    steps.clear()
    again = searched(folder)
    assert not steps
    assert again.queue == first.queue
    assert again.offers == first.offers
    tomorrow = NOW + timedelta(days=1)
    searched(folder, tomorrow)
    assert steps, "on another day"
    steps.clear()
    extraction = structs.replace(SETTINGS.extraction, enabled=False)
    assert not searched(folder, tomorrow, structs.replace(SETTINGS, extraction=extraction)).offers
    assert steps, "with other settings"


def test_extracting_a_stored_offer_removes_it_until_undo(folder: Path, steps: list[QuestionSearch]) -> None:
    searched(folder)
    project = Project(ProjectPaths(folder), SETTINGS, by="ada", clock=lambda: NOW)
    project.load()
    offer = next(item for item in project.view.queue if item.kind == OFFER)
    project.decide(commands.Extract(source_id=offer.subject))
    assert offer.subject not in project.search_all().offers
    steps.clear()
    assert offer.question_key not in {item.question_key for item in searched(folder).queue}
    project.decide(commands.Undo())
    steps.clear()
    assert offer.subject in project.search_all().offers
    assert steps, "a decision is searched again"


def test_a_dashboard_judges_the_loops_that_a_command_did_not(folder: Path, steps: list[QuestionSearch]) -> None:
    searched(folder)
    project = Project(ProjectPaths(folder), SETTINGS, by="ada", clock=lambda: NOW)
    for _ in range(2):
        steps.clear()
        project.load()
        while project.search_next() is not None:
            pass
        project = Project(ProjectPaths(folder), SETTINGS, by="ada", clock=lambda: NOW)
        if not steps:
            return
    raise AssertionError("a search that judged all loops is repeated")


def test_what_another_process_found_meanwhile_is_shown(folder: Path, steps: list[QuestionSearch]) -> None:
    project = Project(ProjectPaths(folder), SETTINGS, by="ada", clock=lambda: NOW)
    project.load()
    (folder / ".aiwg" / "ralph" / "shared" / "patterns" / "new.json").write_text("3")
    other = searched(folder)
    steps.clear()
    project.apply(None)
    assert project.search_all().queue == other.queue
    assert not steps


def test_every_search_ends_although_records_keep_changing(folder: Path) -> None:
    project = Project(ProjectPaths(folder), SETTINGS, by="ada", clock=lambda: NOW, cache=False)
    view = project.load()

    def new_search() -> QuestionSearch:
        extractor = Extractor(ProjectPaths(folder), SETTINGS.extraction)
        return QuestionSearch(SETTINGS, lambda: extractor, lambda id, state: extractor.extract(id, state, ALL_TYPES))

    still, busy = new_search(), new_search()
    while still.look(view) is not None:
        pass
    assert still.found.alike and still.found.recurring
    for _ in range(2_000):
        patterns = dict(view.snapshot.patterns)
        view = replace(view, snapshot=view.snapshot.with_changes(patterns=patterns, loops=dict(view.snapshot.loops)))
        busy.look(view)
        if busy.found == still.found:
            return
    raise AssertionError("it always begins again")
