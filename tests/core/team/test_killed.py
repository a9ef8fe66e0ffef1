"""A sync that is killed with SIGKILL anywhere, and repeated, loses nothing and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from core.team.consent import Joined, save_joined
from tests.core.team.working_copy import WorkingCopy, make_record, make_use_event
from tests.team_server import Team

ROOT = Path(__file__).parents[3]
IDS = ("pat-error-a-001", "pat-error-b-001")
LAST_MOMENT = 60
"""More moments than a sync has; then it ends by itself."""


@pytest.mark.crash
def test_nothing_is_lost_or_doubled_by_a_kill(team: Team, tmp_path: Path) -> None:
    ada, rita = WorkingCopy(tmp_path / "ada", team, "ada"), WorkingCopy(tmp_path / "rita", team, "rita")
    ada.write(*map(make_record, IDS))
    save_joined(ada.paths.project, Joined(space="acme", source="env", id=uuid4(), name="ada"))
    environment = {**os.environ, "RALPHDECK_TEAM_URL": team.url("ada"), "RALPHDECK_USER": "Ada"}
    codes = set()
    for number, moment in enumerate((*range(1, 34, 5), LAST_MOMENT)):
        ada.log(make_use_event(number, IDS[number % 2], f"loop-{number}", number % 3 > 0))
        command = [sys.executable, "-m", "tests.core.team.interruption", str(ada.paths.project), str(moment)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        codes.add(done.returncode)
    assert codes == {0, -signal.SIGKILL}
    rita.sync()
    rita.clock = ada.clock
    own, others = ada.sums(IDS), rita.sums(IDS)
    assert sum(one["uses"] for one in own.values()) == number + 1
    for pattern_id in IDS:
        assert others[pattern_id]["uses"] == own[pattern_id]["uses"]
        assert others[pattern_id]["successes"] == own[pattern_id]["successes"]
