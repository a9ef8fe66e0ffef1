"""Files are written as a whole or not at all, also beside other writers."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import core.files.atomic_write
from core.base.errors import Conflict, ReadOnly, Unwritable
from core.base.paths import ProjectPaths
from core.files.append_log import AppendLog
from core.files.atomic_write import curation_lock, put, rewrite, take_theirs, write_file
from core.files.file_access import (
    file_lock,
    make_draft_path,
    make_folder,
    open_regular,
    protect,
    release,
    remove_drafts,
)
from core.files.json_editor import BadJson, JsonText
from core.sources.pattern_text import insert, merge_records
from tests.factories import leave_draft


@pytest.fixture
def journal(tmp_path: Path) -> AppendLog:
    return AppendLog(tmp_path / "curation" / "ledger.jsonl", lock_seconds=0.05)


def test_complete_lines_are_read_in_the_order_of_appending(journal: AppendLog) -> None:
    assert journal.read() == (b"", 0), "a missing log"
    journal.append([b'{"n":1}', b'{"n":2}'])
    _, offset = journal.read()
    journal.append([b'{"n":3}'])
    assert journal.read() == (b'{"n":1}\n{"n":2}\n{"n":3}\n', 24)
    assert journal.read(offset) == (b'{"n":3}\n', 24)
    with journal.path.open("ab") as file:
        file.write(b'{"n":4}')
    assert journal.read(offset) == (b'{"n":3}\n', 24), "an incomplete last line"
    journal.append([b'{"n":5}'])
    assert journal.read(offset)[0] == b'{"n":3}\n{"n":4}\n{"n":5}\n', "a complete record gets a line end"


@pytest.mark.parametrize("torn", [b'{"n":', b"\x00" * 70_000, b'{"n":2}\x00'])
def test_the_next_writer_moves_an_incomplete_line_to_a_side_file(journal: AppendLog, torn: bytes) -> None:
    journal.append([b'{"n":1}'])
    for number in (1, 2):
        with journal.path.open("ab") as file:
            file.write(torn)
        journal.append([b'{"n":3}'])
        assert journal.path.with_name(f"ledger.jsonl.torn-{number}").read_bytes() == torn
    assert journal.path.read_bytes() == b'{"n":1}\n{"n":3}\n{"n":3}\n'


@pytest.mark.parametrize("written", range(0, 25, 4))
def test_a_batch_of_a_killed_writer_is_complete_or_absent(
    journal: AppendLog, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    journal.append([b'{"n":1}'])

    def killed(handle: int, data: bytes) -> int:
        if len(data) == 24:
            write(handle, data[:written])
            raise KeyboardInterrupt
        return write(handle, data)

    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            journal.append([b'{"n":2}', b'{"n":3}', b'{"n":4}'])
    assert journal.read()[1] == journal.read(8)[1] == (32 if written == 24 else 8)  # an incomplete batch is invisible
    journal.append([b'{"n":5}'])
    batch = b'{"n":2}\n{"n":3}\n{"n":4}\n' if written == 24 else b""
    assert journal.path.read_bytes() == b'{"n":1}\n' + batch + b'{"n":5}\n'
    torn = journal.path.with_name("ledger.jsonl.torn-1")
    assert (len(torn.read_bytes()) if torn.exists() else 0) == written % 24
    assert not list(journal.path.parent.glob(".*"))


@pytest.mark.parametrize("note", [b"", b"3 900\n", b"0 1\n", b"-1 99\n", b"8 99\n", b"junk" * 99])
def test_an_invalid_batch_file_is_ignored(journal: AppendLog, note: bytes) -> None:
    journal.append([b'{"n":1}'])
    journal.path.with_name(".ledger.jsonl.batch").write_bytes(note)
    journal.append([b'{"n":2}'])
    assert [file.name for file in sorted(journal.path.parent.iterdir())] == ["ledger.jsonl", "ledger.jsonl.lock"]
    assert journal.path.read_bytes() == b'{"n":1}\n{"n":2}\n'


def test_waiting_for_another_process_or_thread_times_out(journal: AppendLog) -> None:
    with (
        file_lock(journal.path.with_name("ledger.jsonl.lock")),
        pytest.raises(Unwritable, match="another process has kept"),
    ):
        journal.append([b"{}"])
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with journal.locked():
            taken.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(10)
    with pytest.raises(Unwritable, match="another thread"):
        journal.append([b"{}"])
    done.set()
    thread.join()
    assert journal.read() == (b"", 0)


def test_a_failed_write_leaves_the_log_unchanged(journal: AppendLog, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.append([b'{"n":1}'])
    real_write = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) > 4:
            return real_write(handle, data[:4])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(Unwritable, match=r"cannot write .*ledger\.jsonl: No space left on device"):
            journal.append([b'{"n":2}'])
    assert journal.path.read_bytes() == b'{"n":1}\n'
    journal.append([b'{"n":3}'])
    assert journal.read()[0] == b'{"n":1}\n{"n":3}\n'


def test_a_failed_sync_is_an_error(journal: AppendLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(Unwritable, match="Input/output error"):
            journal.append([b"{}"])
    assert journal.read()[0] == b""


def test_a_real_file_size_limit_is_one_line_of_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from core.base.errors import Unwritable\n"
        "from core.files.append_log import AppendLog\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "for number in range(100):\n"
        "    try:\n"
        "        AppendLog(Path(sys.argv[1])).append([b'1' * 300])\n"
        "    except Unwritable as error:\n"
        "        raise SystemExit(f'{number} {error}')\n"
    )
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=root, capture_output=True, text=True, check=False
    )
    assert ended.stderr == f"6 cannot write {path}: File too large\n"
    assert path.read_bytes() == (b"1" * 300 + b"\n") * 6


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_writing_refuses_links_and_pipes(journal: AppendLog, tmp_path: Path, kind: str) -> None:
    journal.path.parent.mkdir()
    if kind == "link":
        journal.path.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(journal.path)
    with pytest.raises(Unwritable):
        journal.append([b"{}"])
    with pytest.raises(Unwritable):
        journal.read()
    assert not (tmp_path / "elsewhere").exists()


def test_the_mode_of_a_new_log_follows_the_umask(journal: AppendLog) -> None:
    before = os.umask(0o077)
    try:
        journal.append([b"{}"])
    finally:
        os.umask(before)
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_many_writers_in_threads_lose_nothing(tmp_path: Path) -> None:
    journal = AppendLog(tmp_path / "ledger.jsonl")

    def work(first: int) -> None:
        for number in range(first, first + 20):
            journal.append([b"%d" % number])

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [int(line) for line in journal.read()[0].split()]
    assert sorted(numbers) == [100 * number + i for number in range(5) for i in range(20)]


PAUSES = (0.001, 0.001)
real_exchange = core.files.atomic_write._exchange


def add(identifier: str) -> Callable[[bytes | None], bytes | None]:
    """Add a record unless it exists."""

    def change(data: bytes | None) -> bytes | None:
        document = JsonText(b"[]" if data is None else data)
        if {"pattern_id": identifier} not in document.value:
            insert(document, "error", {"pattern_id": identifier})
        return document.encode()

    return change


def ids(path: Path) -> list[str]:
    return [record["pattern_id"] for record in json.loads(path.read_bytes())]


def put_beside(path: Path, *names: str) -> None:
    """Write atomically, as another program does."""
    draft = path.with_name("theirs")
    draft.write_text(json.dumps([{"pattern_id": name} for name in names]))
    draft.rename(path)


def moving(*moves: Callable[[], None]) -> Callable[[], None]:
    """Makes one more of `moves` whenever it is called, while there are any."""
    left = iter(moves)

    def move() -> None:
        for one in left:
            one()
            break

    return move


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "patterns.json"
    put_beside(path, "a")
    return path


def test_a_change_replaces_the_file_and_leaves_no_other_files(path: Path) -> None:
    path.chmod(0o640)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert (ids(path), path.stat().st_mode & 0o777) == (["a", "ours"], 0o640)
    before = path.stat()
    rewrite(path, add("a"), merge=merge_records, retry_seconds=PAUSES)
    after = path.stat()  # reading it may have set its time of access
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        *(before.st_ino, before.st_mtime_ns, before.st_ctime_ns),
    ), "a change without effect writes nothing"
    assert list(path.parent.iterdir()) == [path]
    rewrite(path.with_name("new.json"), add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path.with_name("new.json")) == ["ours"]


def test_a_write_between_reading_and_comparing_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = core.files.atomic_write._write_draft
    moves = moving(lambda: put_beside(path, "a", "theirs"))

    def racing(*args: Any) -> Path:
        moves()
        return real(*args)

    monkeypatch.setattr(core.files.atomic_write, "_write_draft", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "theirs", "ours"]


def test_a_write_at_the_last_moment_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = moving(lambda: put_beside(path, "a", "theirs"))

    def racing(one: Path, other: Path) -> bool:
        moves()
        return real_exchange(one, other)

    monkeypatch.setattr(core.files.atomic_write, "_exchange", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "theirs", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_write_based_on_a_displacing_version_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writes just before our swap; B reads ours, which lacks A's record, and writes it back with its own."""
    moves = moving(lambda: put_beside(path, "a", "from A"), lambda: put_beside(path, "a", "ours", "from B"))

    def racing(one: Path, other: Path) -> bool:
        moves()
        return real_exchange(one, other)

    monkeypatch.setattr(core.files.atomic_write, "_exchange", racing)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert sorted(ids(path)) == ["a", "from A", "from B", "ours"]
    assert list(path.parent.iterdir()) == [path]


def test_a_change_is_repeated_after_a_slow_writer_undid_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = moving(lambda: put_beside(path, "a", "slow"))
    monkeypatch.setattr(time, "sleep", lambda _seconds: moves())
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "slow", "ours"]


def test_a_file_system_that_cannot_swap_still_gets_the_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.files.atomic_write, "_renameat2", lambda: None)
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "ours"]


def test_a_half_written_file_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"")
    monkeypatch.setattr(time, "time", lambda: path.stat().st_ctime)  # it was written a moment ago
    moves = moving(lambda: None, lambda: put_beside(path, "a", "late"))
    monkeypatch.setattr(time, "sleep", lambda _seconds: moves())
    rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path) == ["a", "late", "ours"]


@pytest.mark.parametrize("torn", [b"", b'[{"pattern_id": "a"'])
def test_a_broken_file_is_not_changed(path: Path, torn: bytes) -> None:
    path.write_bytes(torn)
    with pytest.raises(Conflict, match="cannot be parsed"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert path.read_bytes() == torn


def test_a_file_that_was_damaged_earlier_is_not_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"{")
    monkeypatch.setattr(time, "time", lambda: path.stat().st_ctime + sum(PAUSES) + 0.001)
    monkeypatch.setattr(time, "sleep", lambda _seconds: pytest.fail("waits"))
    with pytest.raises(Conflict, match="cannot be parsed"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)


def test_rewriting_gives_up_against_busy_writers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10**9))
    monkeypatch.setattr(core.files.atomic_write, "_TIMEOUT_SECONDS", 0.2)
    real = core.files.atomic_write._write_draft

    def racing(*args: Any) -> Path:
        put_beside(path, "a", f"theirs-{next(numbers)}")
        return real(*args)

    monkeypatch.setattr(core.files.atomic_write, "_write_draft", racing)
    with pytest.raises(Conflict, match="changes faster"):
        rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert ids(path)[1].startswith("theirs-")


@pytest.mark.parametrize("call", ["write", "fsync", "open"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_error_leaves_the_file_unchanged(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    before = path.read_bytes()
    real = getattr(os, call)

    def refusing(*args: Any) -> Any:
        if call == "open" and not args[1] & os.O_CREAT:
            return real(*args)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refusing)
        with pytest.raises(Unwritable, match=os.strerror(code)) as caught:
            rewrite(path, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_rewriting_refuses_links_and_pipes(tmp_path: Path) -> None:
    (tmp_path / "target.json").write_text("[]")
    (tmp_path / "link.json").symlink_to("target.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link.json", "pipe.json"):
        with pytest.raises(Unwritable):
            rewrite(tmp_path / name, add("ours"), merge=merge_records, retry_seconds=PAUSES)
    assert (tmp_path / "target.json").read_text() == "[]"


def test_an_impossible_change_reports_the_reason(path: Path) -> None:
    def change(_data: bytes | None) -> bytes | None:
        raise BadJson("no place for it")

    with pytest.raises(Conflict, match="no place for it"):
        rewrite(path, change, merge=merge_records, retry_seconds=PAUSES)


def test_curators_exclude_each_other(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    with (
        curation_lock(paths),
        pytest.raises(Unwritable, match="another process"),
        file_lock(paths.curation / "curation.lock", 0.01),
    ):
        raise AssertionError("both hold it")
    assert list(paths.patterns.iterdir()) == []


def test_only_old_drafts_of_dead_processes_are_removed(tmp_path: Path) -> None:
    left = leave_draft(tmp_path / "a.json")
    young = leave_draft(tmp_path / "b.json")
    os.utime(young, (time.time(), time.time()))
    own = make_draft_path(tmp_path / "c.json")
    others = [
        tmp_path / name for name in ("d.json.tmp-4194305-0123abcd", ".d.json.tmp-4194305-abcd", f"{left.name}.bak")
    ]
    for path in (own, *others):
        path.touch()
        os.utime(path, (0, 0))
    folder = left.with_name(left.name.replace("a.json", "e.json"))
    folder.mkdir()
    remove_drafts(tmp_path)
    assert {*tmp_path.iterdir()} == {young, own, *others, folder}


def rewrite_as(file: Path, data: bytes) -> None:
    rewrite(file, lambda _: data, merge=take_theirs, retry_seconds=())


@pytest.mark.parametrize("write", [rewrite_as, put, write_file])
def test_each_write_removes_the_drafts_in_its_folder(tmp_path: Path, write: Callable[[Path, bytes], None]) -> None:
    file = tmp_path / ".aiwg" / "a.json"
    file.parent.mkdir()
    for data in (b"1", b"2"):  # a new file, and one that is replaced
        left = leave_draft(file.with_name("b.json"))
        write(file, data)
        assert not left.exists() and file.read_bytes() == data
    own, other = leave_draft(tmp_path / "CLAUDE.md"), leave_draft(tmp_path / "notes.md")
    write(tmp_path / "CLAUDE.md", b"2")
    assert other.exists() and not own.exists(), "in a folder of the user only those of the file"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return tmp_path / "shop/.aiwg/ralph/tasks"


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}


def test_a_private_folder_and_its_files_are_readable_by_the_user_alone(tasks: Path) -> None:
    make_folder(tasks / "task-001")
    put(tasks / "task-001/metadata.json", b"{}")
    AppendLog(tasks / "task-001/actions.jsonl").append([b"{}", b"{}"])
    with file_lock(tasks / "task-002/.lock"):
        pass
    assert set(modes(tasks).values()) == {"0o700", "0o600"}
    assert {"metadata.json", "actions.jsonl", "actions.jsonl.lock", ".lock", ".gitignore"} < modes(tasks).keys()


def test_folders_above_and_beside_keep_their_permissions(tasks: Path) -> None:
    make_folder(tasks)
    make_folder(tasks.with_name("shared") / "patterns")
    put(tasks.with_name("shared") / "patterns/error-patterns.json", b"{}")
    assert {tasks.parent.stat().st_mode & 0o777, tasks.parents[1].stat().st_mode & 0o777} == {0o777 & ~umask()}
    assert modes(tasks.with_name("shared")) == {
        "shared": oct(0o777 & ~umask()),
        "patterns": oct(0o777 & ~umask()),
        "error-patterns.json": oct(0o666 & ~umask()),
    }


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("write", ["replace", "append"])
def test_a_write_tightens_what_an_earlier_version_made(tasks: Path, write: str) -> None:
    file = tasks / "task-001/log.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1\n")
    for path in (tasks, file.parent):
        path.chmod(0o755)
    file.chmod(0o644)
    if write == "replace":
        rewrite(file, lambda _: b"2\n", merge=take_theirs, retry_seconds=())
    else:
        AppendLog(file).append([b"2"])
    assert b"2\n" in file.read_bytes()
    assert {modes(tasks)[name] for name in ("tasks", "task-001")} == {"0o700"} and modes(tasks)["log.jsonl"] == "0o600"


def test_reading_changes_no_permissions_and_a_git_ignore_file_of_the_user_is_kept(tasks: Path) -> None:
    tasks.mkdir(parents=True)
    (tasks / ".gitignore").write_text("")
    before = modes(tasks)
    os.close(open_regular(tasks / ".gitignore", os.O_RDONLY))
    assert modes(tasks) == before
    put(tasks / "index.json", b"{}")
    assert (tasks / ".gitignore").read_text() == ""


def test_a_killed_writer_leaves_no_empty_git_ignore_file(tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    make_folder(tasks.parent)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(OSError, match="full"):
            make_folder(tasks)
    assert not (tasks / ".gitignore").exists()
    make_folder(tasks)
    assert "*" in (tasks / ".gitignore").read_text().splitlines()


def test_nothing_is_written_in_a_read_only_folder(tasks: Path) -> None:
    tasks.mkdir(parents=True)
    protect(tasks.parents[1])
    try:
        with pytest.raises(ReadOnly):
            make_folder(tasks / "task-001")
    finally:
        release(tasks.parents[1])
    assert list(tasks.iterdir()) == []


@pytest.mark.skipif(not shutil.which("git"), reason="git is missing")
def test_git_adds_lessons_of_the_debug_memory_but_no_sessions(tasks: Path) -> None:
    memory, project = tasks.with_name("debug-memory"), tasks.parents[2]
    for name in ("session.json", "archive/2026-01/session.json", "patterns/learned.json", "patterns/auth/learned.json"):
        make_folder((memory / name).parent)
        put(memory / name, b"{}")
    for command in (["init", "-q", "."], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=project, check=True, capture_output=True, text=True).stdout
    assert listed.split() == [
        ".aiwg/ralph/debug-memory/patterns/auth/learned.json",
        ".aiwg/ralph/debug-memory/patterns/learned.json",
    ]


@pytest.mark.parametrize("error", [Unwritable, Conflict])
def test_a_file_lock_timeout_names_the_file(tmp_path: Path, error: type[Unwritable | Conflict]) -> None:
    lock = tmp_path / "x.lock"
    with (
        file_lock(lock),
        pytest.raises(error, match=r"another process has kept .*x\.lock"),
        file_lock(lock, 0.01, timeout=error),
    ):
        raise AssertionError("both hold it")


def test_an_impossible_folder_is_one_line_of_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match="cannot lock"), file_lock(tmp_path / "file" / "x.lock"):
        raise AssertionError("locked nothing")
