"""A decision in the dashboard of a joined project, after another member decided on the same pattern."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from core.decisions.commands import Deprecate
from core.records.patterns import Maturity
from core.team.consent import Joined, save_joined
from tests.team_server import Team
from tests.tui.test_app import ESTABLISHED
from tests.tui.user import open_dashboard

pytestmark = pytest.mark.slow


async def test_a_decision_of_another_member_is_a_conflict_on_screen(
    sample: Path, home: Path, team: Team, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / "user" / variable.lower()))
    monkeypatch.setenv("RALPHDECK_TEAM_URL", team.url("rita"))
    save_joined(sample, Joined(space="acme", source="env", id=uuid4(), name="shop"))
    async with open_dashboard(sample, home) as user:
        await user.until(lambda: user.app.team is not None and user.app.team.last_sync is not None, "the first sync")
        seen = user.app.view
        ada, other = team.space("ada", "acme"), uuid4()
        ada.join_project(other, "web")
        made = {"id": "d1", "at": datetime.now(UTC).isoformat(), "by": "Ada", "verb": "promote", "subject": ESTABLISHED}
        payload = json.dumps({**made, "reason": "used daily"})
        assert ada.decide(other, payload, [ESTABLISHED], seen=ada.head().seq).seq is not None
        user.app.decide(Deprecate(ESTABLISHED, reason="hides the cause"), seen)
        what = f"Ada decided just now: promote {ESTABLISHED} (used daily)"
        await user.until(lambda: any(what in toast for toast in user.toasts()), "the conflict")
        await user.until(
            lambda: user.app.view.assessment(ESTABLISHED).state is Maturity.PROVEN, "the decision of the member"
        )
