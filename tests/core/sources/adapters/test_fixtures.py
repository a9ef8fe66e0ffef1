"""The driver of the adapters' cases itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import tests.core.sources.adapters.fixtures as module
from core.records.lessons import Lesson
from core.records.loops import Loop, LoopDetails
from core.sources.adapters.contract import Delivery, Folders, Moment
from core.sources.adapters.runner_files import RunnerFiles
from tests.core.sources.adapters.fixtures import REPLACEMENTS, open_case, replace_file


class Notes:
    """An adapter whose loops are the lines of `notes.txt`."""

    name, title, versions, contains, lacks = "notes", "Notes", "1", "loops", "all else"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        return ("notes.txt",)

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        for line in files.text(files.folders.project / "notes.txt").split():
            yield Loop(id=f"notes:{line}")

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        return LoopDetails(loop_id=loop.id)

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        return None


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cases."""
    folder = tmp_path / "data"
    monkeypatch.setattr(module, "DATA", folder)
    return folder


def test_a_case_is_copied_with_its_paths(data: Path, tmp_path: Path) -> None:
    source = data / "notes" / "one"
    (source / "home" / "@PROJECT_SLUG@").mkdir(parents=True)
    (source / "home" / "@PROJECT_SLUG@" / "x").write_text("@HOME@ @WORKTREE@")
    (source / "worktree").mkdir()
    (source / "worktree" / "db.sqlite.sql").write_text("CREATE TABLE one (a); INSERT INTO one VALUES (1);")
    (source / "project").mkdir()
    (source / "project" / "notes.txt").write_text("a b")
    case = open_case(Notes(), "notes/one", tmp_path / "case")
    slug = str(case.project).replace("/", "-").replace("_", "-")
    assert (case.home / slug / "x").read_text() == f"{case.home} {case.root / 'worktree'}"
    assert case.folders.worktrees == (case.root / "worktree",)
    assert case.files.rows(case.root / "worktree" / "db.sqlite", "SELECT a FROM one") == [(1,)]
    assert sorted(case.use()[0]) == ["notes:a", "notes:b"]


@pytest.mark.parametrize("by", sorted(set(REPLACEMENTS) - {"unreadable"}))  # the tests may run as root
def test_a_replaced_file_gives_no_loops(by: str, data: Path, tmp_path: Path) -> None:
    (data / "notes" / "one" / "project").mkdir(parents=True)
    (data / "notes" / "one" / "project" / "notes.txt").write_text("a")
    case = open_case(Notes(), "notes/one", tmp_path / "case")
    replace_file(case, case.project / "notes.txt", by)
    assert case.loops() == {}
