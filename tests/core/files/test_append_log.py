from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from core.base.errors import Unwritable
from core.files.append_log import AppendLog
from core.files.file_access import file_lock


@pytest.fixture
def journal(tmp_path: Path) -> AppendLog:
    return AppendLog(tmp_path / "curation" / "ledger.jsonl", lock_seconds=0.05)


def test_lines_are_read_in_the_order_of_appending(journal: AppendLog) -> None:
    journal.append([b'{"n":1}', b'{"n":2}'])
    journal.append([b'{"n":3}'])
    assert journal.read() == (b'{"n":1}\n{"n":2}\n{"n":3}\n', 24)


def test_reading_continues_at_an_offset(journal: AppendLog) -> None:
    journal.append([b'{"n":1}'])
    _, offset = journal.read()
    journal.append([b'{"n":2}'])
    assert journal.read(offset) == (b'{"n":2}\n', 16)


def test_a_missing_log_reads_as_empty(journal: AppendLog) -> None:
    assert journal.read() == (b"", 0)


def test_an_incomplete_last_line_is_not_read(journal: AppendLog) -> None:
    journal.append([b'{"n":1}'])
    with journal.path.open("ab") as file:
        file.write(b'{"n":')
    assert journal.read() == (b'{"n":1}\n', 8)


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


def test_a_complete_record_without_line_end_gets_one(journal: AppendLog) -> None:
    journal.append([b'{"n":1}'])
    with journal.path.open("ab") as file:
        file.write(b'{"n":2}')
    journal.append([b'{"n":3}'])
    assert journal.read()[0] == b'{"n":1}\n{"n":2}\n{"n":3}\n'


def test_waiting_for_a_lock_times_out(journal: AppendLog) -> None:
    with (
        file_lock(journal.path.with_name("ledger.jsonl.lock")),
        pytest.raises(Unwritable, match="another process has kept"),
    ):
        journal.append([b"{}"])
    assert journal.read() == (b"", 0)


def test_waiting_for_another_thread_times_out(journal: AppendLog) -> None:
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
