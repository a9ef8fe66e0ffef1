"""Growing files of lines are read once, at an offset; their states are kept between runs, masked, and never trusted."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from core.files.user_files import cache_path
from core.sources.adapters.folders import Folders
from core.sources.adapters.runner_files import RunnerFiles
from core.sources.adapters.transcripts import MAX_BYTES_AT_ONCE, MAX_LINE_BYTES, KeptFile, KeptStates
from tests.core.sources.adapters.fake_adapter import FakeRunner, Notes, NotesFold
from tests.factories import record_calls


class Lines(Struct):
    lines: list[str] = []


class LinesFold:
    """Keeps all lines; a line that begins with `!` cannot be read."""

    name = "lines"
    version = 1
    state = Lines

    def add(self, state: Lines, line: bytes) -> None:
        if line.startswith(b"!"):
            raise ValueError
        state.lines = [*state.lines, line[:20].decode()]


FOLD = LinesFold()
LONG_LINE = f"{'0123456789' * 102}abc\n"  # few of them fill a look, because each new state copies all its lines


class Reader:
    """A transcript and its reader."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "a.jsonl"
        self.files = RunnerFiles(Folders(project=folder), "fake")

    def append(self, data: str) -> None:
        with self.path.open("a") as file:
            file.write(data)

    def read(self) -> list[str]:
        """Look until the file is read to its end."""
        for _ in range(20):
            self.files.start_look()
            folded = self.files.fold(self.path, FOLD)
            if not self.files.is_behind:
                return folded.state.lines if folded is not None else []
        raise AssertionError("never read to the end")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_a_new_line_costs_what_it_holds(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.append(f"{'one':399}\n" * 1000)
    reader.read()
    calls = record_calls(monkeypatch, os, "pread")
    reader.append("two\n")
    assert reader.read()[-1] == "two"
    assert all(size <= 1024 or offset >= 400_000 for _, size, offset in calls)


def test_an_unchanged_file_is_not_opened(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.append("one\n")
    reader.read()
    first = reader.files.fold(reader.path, FOLD)
    monkeypatch.setattr(os, "open", None)
    assert reader.files.fold(reader.path, FOLD) is first


def test_a_last_line_without_newline_is_left_for_later(reader: Reader) -> None:
    reader.append("one\ntw")
    assert reader.read() == ["one"]
    before = reader.files.fold(reader.path, FOLD)
    reader.append("o\n")
    assert reader.read() == ["one", "two"]
    assert before is not None and before.state.lines == ["one"], "the state is another object after a change"


def test_a_line_that_cannot_be_read_is_counted(reader: Reader) -> None:
    reader.append("one\n!\n\n \ntwo\n")
    assert reader.read() == ["one", "two"]
    folded = reader.files.fold(reader.path, FOLD)
    assert folded is not None and folded.skipped == 1


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (r"a\ud83d", r"a\ufffd"),
        (r"\uDE00b", r"\ufffdb"),
        (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
        (r"\\ud83d", r"\\ud83d"),
    ],
)
def test_half_of_a_pair_of_escapes_is_replaced(reader: Reader, line: str, read: str) -> None:
    reader.append(f"{line}\n")
    assert reader.read() == [read]


@pytest.mark.parametrize("length", [MAX_BYTES_AT_ONCE - 1, MAX_BYTES_AT_ONCE + 1, MAX_LINE_BYTES - 1])
def test_a_long_line_is_read(reader: Reader, length: int) -> None:
    reader.append(f"one\n{'x' * length}\ntwo\n")
    assert reader.read() == ["one", "x" * 20, "two"]


@pytest.mark.parametrize("length", [MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES])
def test_a_longer_line_is_skipped_and_counted_once(
    reader: Reader, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.append(f"one\n{'x' * length}")
    calls = record_calls(monkeypatch, os, "pread")
    assert reader.read() == ["one"]
    reader.append("x\ntwo\n")
    assert reader.read() == ["one", "two"]
    folded = reader.files.fold(reader.path, FOLD)
    assert folded is not None and folded.skipped == 1
    assert max(call[1] for call in calls) <= MAX_LINE_BYTES


def test_a_look_reads_a_part_of_a_large_file(reader: Reader) -> None:
    reader.append(LONG_LINE * (3 * MAX_BYTES_AT_ONCE // len(LONG_LINE)))
    reader.files.start_look()
    folded = reader.files.fold(reader.path, FOLD)
    assert folded is not None and folded.offset == MAX_BYTES_AT_ONCE
    assert (reader.files.is_behind, reader.files.bytes_behind) == (True, 2 * MAX_BYTES_AT_ONCE)


THOUSAND = "".join(f"{n}\n" for n in range(1000))


@pytest.mark.parametrize(
    ("before", "after"),
    [("one\ntwo\n", "one\n"), ("one\ntwo\n", "ONE\ntwo\nthree\n"), (f"{THOUSAND}one\n", f"{THOUSAND}two\nthree\n")],
)
def test_a_file_that_was_rewritten_is_read_anew(reader: Reader, before: str, after: str) -> None:
    reader.append(before)
    reader.read()
    reader.path.write_text(after)
    assert reader.read() == after.split()
    (reader.path.parent / "new").write_text(f"{after}four\n")
    (reader.path.parent / "new").replace(reader.path)
    assert reader.read() == [*after.split(), "four"]


def test_a_file_that_is_rotated_while_it_is_read_is_read_as_it_was_opened(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.append("one\n" * 10)
    added = LinesFold.add

    def rotate(fold: LinesFold, state: Lines, line: bytes) -> None:
        if line == b"one" and reader.path.exists():
            reader.path.rename(tmp_path / "a.1")
            reader.path.write_text("two\n")
        added(fold, state, line)

    monkeypatch.setattr(LinesFold, "add", rotate)
    assert reader.read() == ["one"] * 10
    monkeypatch.undo()
    assert reader.read() == ["two"]


def test_a_file_that_is_cut_while_it_is_read_does_not_raise(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.append(LONG_LINE * (2 * MAX_BYTES_AT_ONCE // len(LONG_LINE)))
    reader.files.start_look()
    reader.files.fold(reader.path, FOLD)
    pread = os.pread

    def cut(descriptor: int, size: int, offset: int) -> bytes:
        if size > 1024:
            os.truncate(reader.path, len(LONG_LINE))
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", cut)
    reader.files.start_look()
    reader.files.fold(reader.path, FOLD)
    monkeypatch.undo()
    assert reader.read() == [LONG_LINE[:20]]


def test_neither_a_clock_that_jumps_nor_a_file_that_vanishes_matters(reader: Reader) -> None:
    reader.append("one\n")
    reader.read()
    reader.append("two\n")
    for time in (0, 9e9):
        os.utime(reader.path, (time, time))
        assert reader.read() == ["one", "two"]
    reader.path.unlink()
    assert reader.read() == ["one", "two"], "the last state is kept"


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.text("ab!\n", max_size=12)),
        st.tuples(st.just("rewrite"), st.text("ab!\n", max_size=12)),
        st.tuples(st.just("cut"), st.integers(0, 12)),
    ),
    max_size=8,
)


@given(CHANGES)
def test_after_any_changes_the_state_is_that_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str | int]]
) -> None:
    reader = Reader(tmp_path_factory.mktemp("file"))
    reader.append("")
    for kind, value in changes:
        if kind == "append":
            reader.append(str(value))
        elif kind == "rewrite":
            reader.path.write_text(str(value))
        else:
            os.truncate(reader.path, min(int(value), reader.path.stat().st_size))
        *lines, _ = reader.path.read_text().split("\n")
        assert reader.read() == [line for line in lines if line.strip() and not line.startswith("!")]


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


def run_once(runner: FakeRunner, text: str = "") -> None:
    if text:
        runner.write(text)
    first = Run(runner)
    first.read()
    first.end()


def test_the_next_run_reads_only_what_was_added(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    run_once(runner, "one")
    lines = record_calls(monkeypatch, NotesFold, "add")
    assert Run(runner).read() == Notes(1, "one")
    assert not lines
    runner.write("two")
    assert Run(runner).read() == Notes(2, "two")
    assert len(lines) == 1


def test_a_file_that_was_rewritten_meanwhile_is_read_anew(runner: FakeRunner) -> None:
    path = runner.write("one")
    run_once(runner)
    path.write_text('{"text": "two"}\n{"text": "three"}\n')
    assert Run(runner).read() == Notes(2, "three")


def test_another_version_of_the_fold_reads_anew(runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    run_once(runner, "one")
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
    file = cache_path(runner.notes.parents[1], "adapters")
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
    assert Run(runner, "other").files.remembered("state") is None


def test_without_a_file_that_this_version_wrote_everything_is_read(runner: FakeRunner, tmp_path: Path) -> None:
    runner.write("one")
    file = cache_path(runner.notes.parents[1], "adapters")

    def check() -> None:
        again = Run(runner)
        assert again.read() == Notes(1, "one")
        again.files.remember("state", 1)
        again.end()

    check()
    for data in (b"", b"SQLite format 3\0" + b"\xff" * 5000, b"text"):
        file.write_bytes(data)
        check()
    for change in (
        *(f"UPDATE states SET data = {value}" for value in ("x'00'", "'text'", "NULL", "zeroblob(100)")),
        *("DROP TABLE states", "PRAGMA user_version = 77", "PRAGMA application_id = 1"),
        "ALTER TABLE states RENAME COLUMN data TO other",
    ):
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(change)
        check()
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file where a folder is expected")
    check()


def test_states_of_deleted_files_are_removed(runner: FakeRunner) -> None:
    path = runner.write("one")
    run_once(runner)
    path.unlink()
    second = Run(runner)
    second.files.kept.prune()
    second.end()
    with closing(sqlite3.connect(cache_path(runner.notes.parents[1], "adapters"))) as database:
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
