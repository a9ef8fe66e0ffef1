"""States of transcripts are kept between runs, masked, and never trusted."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from core.files.user_files import cache_path
from core.sources.adapters.contract import Folders
from core.sources.adapters.runner_files import RunnerFiles
from core.sources.adapters.transcripts import KeptFile, KeptStates
from tests.core.sources.adapters.fake_adapter import FakeRunner, Notes, NotesFold
from tests.factories import record_calls

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7h8"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return FakeRunner(tmp_path / "project")


class Run:
    """A run of the program, which reads one transcript."""

    def __init__(self, runner: FakeRunner, adapter: str = "fake") -> None:
        self.project = runner.notes.parents[1]
        self.path = runner.notes / "a.jsonl"
        self.kept = KeptFile(self.project)
        self.files = RunnerFiles(Folders(project=self.project), adapter, kept=KeptStates(self.kept, adapter))

    def read(self, fold: NotesFold | None = None) -> Notes:
        folded = self.files.fold(self.path, fold or NotesFold())
        assert folded is not None and isinstance(folded.state, Notes)
        return folded.state

    def end(self) -> None:
        self.files.kept.save()
        self.kept.close()


def test_the_next_run_reads_only_what_was_added(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.write("one")
    first = Run(runner)
    first.read()
    first.end()
    lines = record_calls(monkeypatch, NotesFold, "add")
    assert Run(runner).read() == Notes(1, "one")
    assert not lines
    runner.write("two")
    assert Run(runner).read() == Notes(2, "two")
    assert len(lines) == 1


def test_a_file_that_was_rewritten_meanwhile_is_read_anew(runner: FakeRunner) -> None:
    path = runner.write("one")
    first = Run(runner)
    first.read()
    first.end()
    path.write_text('{"text": "two"}\n{"text": "three"}\n')
    assert Run(runner).read() == Notes(2, "three")


def test_another_version_of_the_fold_reads_anew(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.write("one")
    first = Run(runner)
    first.read()
    first.end()
    monkeypatch.setattr(NotesFold, "version", 2)
    lines = record_calls(monkeypatch, NotesFold, "add")
    assert Run(runner).read() == Notes(1, "one")
    assert len(lines) == 1


def test_texts_are_masked_in_a_private_file(runner: FakeRunner) -> None:
    runner.write(f"Log in with {TOKEN}")
    first = Run(runner)
    first.read()
    first.files.remember("prompt", {"text": TOKEN})
    first.end()
    file = cache_path(first.project, "adapters")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert TOKEN.encode() not in b"".join(one.read_bytes() for one in file.parent.iterdir())
    assert "[secret: " in Run(runner).read().text


def test_identifiers_that_look_random_are_not_masked(runner: FakeRunner) -> None:
    names = ["msg_01XFDUDYJgAACzvnptvVoYEL", "req_011CSHoEeqs5C35K2UUqR7Fy", "toolu_01A09q90qw90lq917835lq9"]
    names += ["5b1d0c7e-0000-4000-8000-000000000001", "rollout-2026-11-20T09-00-00-0199f3a2", "ses_5f3c0e2b1ffe"]
    first = Run(runner)
    first.files.remember("names", dict.fromkeys(names, 1))
    first.end()
    assert list(Run(runner).files.remembered("names")) == names


def test_remembered_values_are_kept_for_the_next_run(runner: FakeRunner) -> None:
    first = Run(runner)
    first.files.remember("state", {"iteration": 4})
    first.end()
    files = Run(runner).files
    assert files.remembered("state") == {"iteration": 4}
    assert files.remembered("other") is None


def test_adapters_have_their_own_values(runner: FakeRunner) -> None:
    first = Run(runner)
    first.files.remember("state", 1)
    first.end()
    assert Run(runner, "other").files.remembered("state") is None


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0" + b"\xff" * 5000, b"text"])
def test_a_damaged_file_is_like_an_empty_one(runner: FakeRunner, data: bytes) -> None:
    runner.write("one")
    first = Run(runner)
    first.read()
    first.end()
    cache_path(first.project, "adapters").write_bytes(data)
    second = Run(runner)
    assert second.read() == Notes(1, "one")
    second.end()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE states SET data = x'00'",
        "UPDATE states SET data = 'text'",
        "UPDATE states SET data = NULL",
        "UPDATE states SET data = zeroblob(100)",
        "DROP TABLE states",
        "PRAGMA user_version = 77",
        "PRAGMA application_id = 1",
        "ALTER TABLE states RENAME COLUMN data TO other",
    ],
)
def test_content_of_another_program_is_not_used(runner: FakeRunner, change: str) -> None:
    runner.write("one")
    first = Run(runner)
    first.read()
    first.end()
    with closing(sqlite3.connect(cache_path(first.project, "adapters"))) as database, database:
        database.execute(change)
    second = Run(runner)
    assert second.read() == Notes(1, "one")
    second.files.remember("state", 1)
    second.end()


def test_without_a_cache_folder_everything_is_read(runner: FakeRunner, tmp_path: Path) -> None:
    runner.write("one")
    (tmp_path / "cache").write_text("a file where a folder is expected")
    first = Run(runner)
    assert first.read() == Notes(1, "one")
    first.end()


def test_states_of_deleted_files_are_removed(runner: FakeRunner) -> None:
    path = runner.write("one")
    first = Run(runner)
    first.read()
    first.end()
    path.unlink()
    second = Run(runner)
    second.files.kept.prune()
    second.end()
    with closing(sqlite3.connect(cache_path(first.project, "adapters"))) as database:
        assert database.execute("SELECT count(*) FROM states").fetchone() == (0,)


def test_names_that_are_not_text_are_kept(runner: FakeRunner) -> None:
    runner.write("one")
    name = os.fsdecode(b"\xff.jsonl")
    (runner.notes / "a.jsonl").rename(runner.notes / name)
    first = Run(runner)
    first.path = runner.notes / name
    first.read()
    first.end()
    second = Run(runner)
    second.path = runner.notes / name
    assert second.read() == Notes(1, "one")
