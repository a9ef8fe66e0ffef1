"""Torn and damaged files give their last good content, and are reported if it lasts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.sources.adapters.contract import Folders
from core.sources.adapters.runner_files import FAILED_SECONDS, RETRY_SECONDS, RunnerFiles


class Reader:
    """A file that is written in place, and a clock that the test advances."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self.now = 0.0
        self.pauses: list[float] = []
        self.during_pause: Callable[[], object] = lambda: None
        self.files = RunnerFiles(Folders(project=folder), "fake", clock=lambda: self.now, pause=self._pause)

    def write(self, text: str) -> None:
        self.path.write_text(text)
        os.utime(self.path, (1e9, 1e9))  # so long ago that it does not change again at the same time

    def look(self, seconds: float = 0.0) -> object:
        self.now += seconds
        self.files.start_look()
        return self.files.json(self.path)

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.files.findings]

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.during_pause()


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_a_torn_file_is_read_once_more_after_a_moment(reader: Reader) -> None:
    reader.write('{"a": ')
    reader.during_pause = lambda: reader.write('{"a": 1}')
    assert reader.look() == {"a": 1}
    assert reader.pauses == [RETRY_SECONDS]


def test_the_last_good_content_stays_while_a_file_is_torn(reader: Reader) -> None:
    reader.write('{"a": 1}')
    reader.look()
    reader.write('{"a": ')
    assert reader.look() == {"a": 1}
    assert not reader.files.findings
    assert reader.files.has_failures
    reader.write('{"a": 2}')
    assert reader.look(FAILED_SECONDS) == {"a": 2}
    assert not reader.files.has_failures


def test_a_file_that_stays_damaged_is_reported_after_two_seconds(reader: Reader) -> None:
    reader.write('{"a": ')
    assert reader.look() is None
    reader.look(FAILED_SECONDS - 0.1)
    assert not reader.codes
    reader.look(0.1)
    first = reader.codes
    assert len(first) == 1
    count = len(reader.pauses)
    reader.look(60)
    assert reader.codes == first, "reported as long as it lasts"
    assert len(reader.pauses) == count, "not read again until it changes"


def test_a_file_that_is_torn_at_each_look_is_reported(reader: Reader) -> None:
    for second in range(4):
        reader.write('{"a": ' + "1" * second)
        reader.look(1.0)
    assert len(reader.codes) == 1


def test_a_missing_file_has_no_content(reader: Reader) -> None:
    reader.write('{"a": 1}')
    reader.look()
    reader.path.unlink()
    assert reader.look() is None
    assert not reader.files.findings


def test_a_clock_that_jumps_back_does_not_hide_a_damaged_file(reader: Reader) -> None:
    reader.write('{"a": ')
    reader.now = 1e6
    reader.look()
    reader.look(-1e6)
    assert len(reader.codes) == 1


def test_a_change_without_another_time_is_noticed(reader: Reader) -> None:
    reader.write('{"a": 1}')
    reader.look()
    before = reader.path.stat()
    reader.path.write_text('{"a": 2}')
    os.utime(reader.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reader.look() == {"a": 2}


@pytest.mark.parametrize("kind", ["fifo", "link outside", "folder", "device", "link of a folder"])
def test_only_regular_files_inside_are_read(
    reader: Reader, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "state.json").write_text('{"a": 1}')
    path = reader.path
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link outside":
        path.symlink_to(outside / "state.json")
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        (path.parent / "link").symlink_to(outside)
        reader.path = path.parent / "link/state.json"
    assert reader.look() is None
    assert reader.files.text(reader.path) == ""
    assert reader.files.head(reader.path, 10) == b""
    assert reader.files.names(reader.path.parent, "*.json") == (
        [] if kind.startswith("link") or kind == "device" else [path]
    )


def test_nothing_outside_of_the_project_is_read_without_a_home_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/a.json").write_text("{}")
    project = tmp_path / "project"
    project.mkdir()
    files = RunnerFiles(Folders(project=project), "codex")
    assert files.json(home / ".codex/a.json") is None
    assert files.names(home / ".codex") == []
    assert not files.exists(home / ".codex/a.json")
    files = RunnerFiles(Folders(project=project, home=home), "codex")
    assert files.json(home / ".codex/a.json") == {}


def test_a_link_may_not_leave_the_private_folder_of_an_agent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh/id.json").write_text('{"key": 1}')
    (home / ".codex/a.json").symlink_to(home / ".ssh/id.json")
    files = RunnerFiles(Folders(project=tmp_path / "project", home=home), "codex")
    assert files.json(home / ".codex/a.json") is None
    assert files.names(home / ".codex") == []
