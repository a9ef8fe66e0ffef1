"""Tasks that the index of an open project keeps ready for searches."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.user_files import index_file
from core.index.refresh import Index
from core.index.search import SearchResult
from core.index.search_words import SearchFilters, SearchWords
from tests.copying import copy_folder
from tests.core.cli.conftest import TREES

LOG = "task-001/attempts/002/actions.jsonl"
RESULT = "task-001/attempts/002/results/report.txt"


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """A copy of the documented examples, with a result."""
    paths = ProjectPaths(copy_folder(TREES / "spec-examples", tmp_path / "project"))
    (paths.tasks / RESULT).parent.mkdir()
    (paths.tasks / RESULT).write_text("quokka")
    return paths


@pytest.fixture
def index(paths: ProjectPaths) -> Iterator[Index]:
    """An index with all tasks."""
    index = Index(paths, Settings(), clock=lambda: datetime(2026, 11, 21, 20, 30, tzinfo=UTC))
    index.load()
    fill(index)
    yield index
    index.close()


def fill(index: Index) -> None:
    while index.fill_words():
        pass


def find(index: Index, text: str, *, reads_files: bool = False) -> SearchResult:
    return index.search(SearchWords(text), SearchFilters(), None, go_on=lambda: reads_files, snapshot=index.snapshot)


def write_action(paths: ProjectPaths, output: str) -> None:
    with (paths.tasks / LOG).open("a") as log:
        log.write(json.dumps({"type": "bash", "output": output}) + "\n")


def test_all_tasks_of_a_loaded_project_are_indexed_in_steps(paths: ProjectPaths) -> None:
    with closing(Index(paths, Settings(), clock=lambda: datetime(2026, 11, 21, tzinfo=UTC))) as index:
        index.load()
        assert find(index, "quokka").missing == (2, 2)
        assert find(index, "quokka", reads_files=True).total == 1
        fill(index)
        assert find(index, "quokka").missing == (0, 2)
        assert find(index, "quokka").total == 1


def test_changed_tasks_are_read_until_they_are_indexed(paths: ProjectPaths, index: Index) -> None:
    write_action(paths, "quetzal")
    index.refresh([paths.tasks / LOG])
    assert find(index, "quetzal").missing == (1, 2)
    assert find(index, "quetzal", reads_files=True).total == 1
    fill(index)
    found = find(index, "quetzal")
    assert (found.total, found.missing) == (1, (0, 2))


def test_removed_tasks_are_not_found(paths: ProjectPaths, index: Index) -> None:
    (paths.tasks / "task-001").rename(paths.aiwg / "elsewhere")
    index.refresh([paths.tasks / "task-001"])
    assert find(index, "quokka", reads_files=True).total == 0
    fill(index)
    found = find(index, "quokka")
    assert (found.total, found.missing) == (0, (0, 1))


def test_after_a_sweep_files_without_records_are_compared(
    paths: ProjectPaths, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paths.tasks / RESULT).write_text("quetzal")
    fill(index)
    assert find(index, "quetzal").total == 0
    monkeypatch.setattr("core.index.task_words._CHECK_SECONDS", 0.0)
    index.refresh()
    fill(index)
    assert find(index, "quetzal").total == 1


def test_a_hit_whose_file_has_changed_unnoticed_is_read_again(paths: ProjectPaths, index: Index) -> None:
    (paths.tasks / RESULT).write_text("quetzal")
    assert find(index, "quokka", reads_files=True).total == 0


def test_an_unreadable_file_is_not_tried_again_at_once(
    paths: ProjectPaths, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_action(paths, "quetzal")
    index.refresh([paths.tasks / LOG])
    with monkeypatch.context() as failing:
        failing.setattr("core.index.task_words._are_readable", lambda findings: False)
        fill(index)
    fill(index)
    assert find(index, "quetzal").missing == (1, 2)
    monkeypatch.setattr("core.index.task_words._CHECK_SECONDS", 0.0)
    fill(index)
    assert find(index, "quetzal").missing == (0, 2)


def test_damaged_records_are_read_from_the_files_and_made_again(paths: ProjectPaths, index: Index) -> None:
    with closing(sqlite3.connect(index_file(paths.project), isolation_level=None)) as connection:
        connection.execute("UPDATE search_block SET data = substr(data, 2)")
    assert find(index, "quokka", reads_files=True).total == 1
    fill(index)
    found = find(index, "quokka")
    assert (found.total, found.missing) == (1, (0, 2))
