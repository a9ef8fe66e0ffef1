"""A review session in a real terminal."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from core.cli.demo.sample import copy_sample
from tests.bench.measured import Measured
from tests.bench.place import Place
from tests.e2e.desk import add_questions, decide, leave
from tests.e2e.terminal import ROOT, dashboard, environment
from tests.e2e.tmux import Tmux

DECISIONS: Final = 200
_SPARE: Final = 60
"""Additional questions: some answers resolve more than one."""


def review_200_questions(_place: Place) -> Measured:
    """Make 200 decisions, each as soon as its forecast is on screen; measures from a key to the next question."""
    with tempfile.TemporaryDirectory(prefix="ralphdeck-desk-") as folder:
        home, project = Path(folder) / "home", Path(folder) / "acme-api"
        home.mkdir()
        copy_sample(project, datetime.now(UTC))
        env = environment(home)
        add_questions(project, env, DECISIONS + _SPARE)
        with Tmux(Path(folder), env, (120, 40)) as tmux:
            tmux.start(dashboard(project))
            tmux.sees("live")
            tmux.keys("3")
            taken = decide(tmux, DECISIONS)
            behind = leave(tmux)
        verify = [sys.executable, "-m", "core.cli", "log", "--verify", "--project", str(project)]
        verified = subprocess.run(verify, env=env, cwd=ROOT, check=False, capture_output=True, text=True)
    summary = (verified.stdout or verified.stderr).strip()
    slowest = f"slowest {max(taken) * 1e3:.0f}; all written {behind:.1f} s after the last; {summary}"
    return Measured(quantiles(taken, n=20)[-1] * 1e3, note=f"median {median(taken) * 1e3:.0f}, {slowest}")
