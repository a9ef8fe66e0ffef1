from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.base.errors import Conflict, Unwritable
from core.storage.locks import file_lock


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


def test_only_one_thread_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    held, most = 0, 0

    def work() -> None:
        nonlocal held, most
        for _ in range(5):
            with file_lock(tmp_path / "x.lock", 30):
                held += 1
                most = max(most, held)
                held -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
