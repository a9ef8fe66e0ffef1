"""Five runners and agents at work in one project, shown live in a terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.terminal import ROOT, environment
from tests.e2e.tmux import Tmux

PLAYS = ("claude", "codex", "snarktank", "frankbria", "open_ralph")
RUNNERS = ("claude", "codex", "snarktank", "frankbria", "open-ralph")


@contextmanager
def playing(project: Path, home: Path, env: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Let all runners write their files at once, torn and in place; those that still run are ended."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"tests.e2e.play_{name}", str(project), "--home", str(home), "--pause", "0.2"],
            cwd=ROOT,
            env=env,
        )
        for name in PLAYS
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
            process.wait()


def written(project: Path) -> dict[Path, bytes]:
    """The files of the runners."""
    return {path: path.read_bytes() for path in project.rglob("*") if path.is_file() and ".aiwg" not in path.parts}


def test_five_runners_at_once_are_shown_live_and_none_of_their_files_is_changed(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "shop"
    (project / ".aiwg" / "ralph").mkdir(parents=True)
    home.mkdir()
    env = environment(home)
    with Tmux(tmp_path, env, (120, 40)) as tmux:
        tmux.start([sys.executable, "-m", "tui", str(project)])
        tmux.sees("4 Loops")
        tmux.keys("4")
        with playing(project, home, env) as started:
            for runner in RUNNERS:
                tmux.sees(runner)
            for process in started:
                assert process.wait(timeout=60) == 0
        before = written(project)
        tmux.sees("completed", "failed", "tokens")
        tmux.keys("q")
        tmux.until(lambda: tmux.flag("alternate_on") == "0", "the dashboard to end")
    assert written(project) == before
