"""SIGKILL while the index is written, deleted or made leaves one that shows what the files say."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.records import COLLECTIONS
from core.index.refresh import Index
from tests.copying import copy_folder
from tests.crash.index_worker import NOW

ROOT = Path(__file__).parents[2]


def start(project: Path, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.crash.index_worker", str(project), str(seed)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)


def content(project: Path, *, is_kept: bool) -> dict[str, Any]:
    snapshot = Index(ProjectPaths(project), Settings(), clock=lambda: NOW, is_kept=is_kept).load()
    return {name: list(getattr(snapshot, name).items()) for name in COLLECTIONS} | {"findings": snapshot.findings}


def test_kills_leave_an_index_that_shows_what_the_files_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project, dice = tmp_path / "project", random.Random(7)
    copy_folder(ROOT / "tests/trees/spec-examples", project)
    for kill, writers in enumerate((1, 2, 2, 1)):
        started = [start(project, 10 * kill + number) for number in range(writers)]
        for process in started:
            assert process.stdout
            for _ in range(dice.randrange(1, 6)):
                assert process.stdout.readline() == "done\n"
        time.sleep(dice.random() / 10)  # any moment of a transaction
        for process in started:
            process.kill()
        for process in started:
            process.communicate()
        assert content(project, is_kept=True) == content(project, is_kept=False)
