from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.desk import add_questions, decide, leave
from tests.e2e.terminal import ROOT, dashboard, environment
from tests.e2e.tmux import Tmux

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
DECISIONS = 30


def test_quick_decisions_are_logged_and_the_log_verifies(sample: Path, home: Path, tmp_path: Path) -> None:
    env = environment(home)
    add_questions(sample, env, 40)
    ledger = sample / ".aiwg/ralph/shared/curation/ledger.jsonl"
    before = ledger.read_bytes()
    with Tmux(tmp_path, env, (120, 40)) as tmux:
        tmux.start(dashboard(sample))
        tmux.sees("live")
        tmux.keys("2")
        decide(tmux, DECISIONS)
        leave(tmux)
    made = [json.loads(line) for line in ledger.read_bytes().removeprefix(before).splitlines()]
    decisions = [line for line in made if line["kind"] == "decision"]
    assert len(decisions) == DECISIONS
    assert {line["by"] for line in decisions} == {"ana"}
    assert len({line["subject"] for line in decisions}) == DECISIONS
    verify = [sys.executable, "-m", "core.cli", "log", "--verify", "--project", str(sample)]
    assert subprocess.run(verify, env=env, cwd=ROOT, check=False).returncode == 0
