"""Growing files of lines are read once, at an offset, whatever happens to them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from core.sources.adapters.contract import Folders
from core.sources.adapters.runner_files import RunnerFiles
from core.sources.adapters.transcripts import MAX_BYTES_AT_ONCE, MAX_LINE_BYTES
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


def test_a_file_that_became_shorter_is_read_anew(reader: Reader) -> None:
    reader.append("one\ntwo\n")
    reader.read()
    reader.path.write_text("one\n")
    assert reader.read() == ["one"]


def test_a_file_that_was_rewritten_with_another_start_is_read_anew(reader: Reader) -> None:
    reader.append("one\ntwo\n")
    reader.read()
    reader.path.write_text("ONE\ntwo\nthree\n")
    assert reader.read() == ["ONE", "two", "three"]


def test_a_file_that_was_rewritten_after_its_start_is_read_anew(reader: Reader) -> None:
    start = "".join(f"{n}\n" for n in range(1000))
    reader.append(f"{start}one\n")
    reader.read()
    reader.path.write_text(f"{start}two\nthree\n")
    assert reader.read()[-2:] == ["two", "three"]


def test_a_file_that_was_replaced_is_read_anew(reader: Reader, tmp_path: Path) -> None:
    reader.append("one\n")
    reader.read()
    (tmp_path / "new").write_text("one\ntwo\n")
    (tmp_path / "new").replace(reader.path)
    assert reader.read() == ["one", "two"]


def test_the_last_state_of_a_file_that_vanished_is_kept(reader: Reader) -> None:
    reader.append("one\n")
    reader.read()
    reader.path.unlink()
    assert reader.read() == ["one"]


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


def test_a_clock_that_jumps_does_not_matter(reader: Reader) -> None:
    reader.append("one\n")
    reader.read()
    reader.append("two\n")
    os.utime(reader.path, (0, 0))
    assert reader.read() == ["one", "two"]
    os.utime(reader.path, (9e9, 9e9))
    assert reader.read() == ["one", "two"]


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
