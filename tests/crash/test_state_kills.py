"""SIGKILL at any moment loses nothing of the user's own state, and neither do two writers at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from core.files.user_files import damaged_files, read_tables

ROOT = Path(__file__).parents[2]


def start(path: Path, writer: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.crash.state_worker", str(path), writer, str(count)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)


def numbers(path: Path, writer: str) -> list[int]:
    return [row["number"] for row in read_tables(path).rows(writer)]


def test_kills_lose_no_acknowledged_document(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    dice = random.Random(7)
    acknowledged: dict[str, int] = {}
    for kill in range(12):
        with start(path, f"writer {kill}", 10**9) as process:
            assert process.stdout
            for _ in range(dice.randrange(1, 20)):
                process.stdout.readline()
            time.sleep(dice.random() / 50)  # any moment of a transaction
            process.kill()
            acknowledged[f"writer {kill}"] = int(process.stdout.read().split("\n")[-2:][0] or 0)
        for writer, last in acknowledged.items():
            found = numbers(path, writer)
            assert found == list(range(len(found))) and len(found) > last
    assert not damaged_files(path)
    for draft in tmp_path.glob(".state.json.tmp-*"):
        os.utime(draft, (0, 0))  # younger drafts may be those of a container
    with start(path, "last", 1):
        pass
    assert sorted(one.name for one in tmp_path.iterdir()) == ["state.json", "state.json.lock"], "no draft is left"


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with start(path, "one", 60) as one, start(path, "other", 60) as other:
        assert (one.wait(60), other.wait(60)) == (0, 0)
    assert (numbers(path, "one"), numbers(path, "other")) == (list(range(60)), list(range(60)))
