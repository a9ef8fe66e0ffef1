"""Two programs of two members on two copies of a project, with a real server between them."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from core.base.paths import project_at
from core.base.settings import Settings
from core.decisions.commands import Promote
from core.project.project import Project
from core.project.watch_loop import Daemon
from core.team.consent import Joined, save_joined
from tests.core.team.fake_space import WAIT
from tests.team_server import Team
from tests.tui.screens.review_steps import desk
from tests.tui.test_app import ESTABLISHED
from tests.tui.user import NOW, User, open_dashboard

pytestmark = pytest.mark.slow


def join(project: Path, team: Team, role: str) -> None:
    save_joined(project, Joined(space="acme", source=f"url={team.url(role)}", id=uuid4(), name=f"shop of {role}"))


@asynccontextmanager
async def watching(project: Path, by: str) -> AsyncIterator[Daemon]:
    """Watch a project without a screen."""
    opened = Project(project_at(project), Settings(), by=by, clock=lambda: NOW, cache=False)
    opened.load()
    daemon = Daemon(opened, lambda event: None)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        yield daemon
    finally:
        daemon.stop()
        await asyncio.to_thread(thread.join, WAIT)


def top(user: User) -> str:
    return user.text().splitlines()[0]


async def test_two_members_see_each_other_decide(
    sample: Path, home: Path, team: Team, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / "user" / variable.lower()))
    monkeypatch.setattr("core.project.watch_loop.Daemon.place", "dashboard")
    other = tmp_path / "other" / "acme-api"
    shutil.copytree(sample, other)
    join(sample, team, "rita")
    join(other, team, "ada")
    async with open_dashboard(sample, home, size=(160, 40)) as user:
        await user.until(lambda: user.app.team is not None and user.app.team.is_online, "the team")
        assert "team acme " in top(user)
        async with watching(other, "Ada") as ada:
            await user.sees("team acme: Ada here")
            await user.go("review")
            second = desk(user).questions.items[1]
            assert ada.team is not None
            ada.team.hold(second.question_key)
            await user.until(lambda: user.app.lease_on(second.question_key) is not None, "the lease")
            await user.press("n")
            assert desk(user).item != second

            def promote() -> None:
                ada.project.decide(Promote(ESTABLISHED, reason="used daily"))

            ada.submit(promote)
            await user.until(
                lambda: any(one.by == "Ada" for one in user.app.view.snapshot.decisions), "the decision of Ada"
            )
            await user.go("log")
            await user.sees("Ada", "promote")
            await user.filter("by:ada")
            assert len(user.table.keys) == 1
            team.cluster.stop()
            try:
                await user.until(lambda: "offline since 21:00" in top(user), "offline")
                await user.go("patterns")
                await user.decides("c")
                await user.press("escape")
            finally:
                team.cluster.start()
            await user.sees("team acme: Ada here")
            await user.until(lambda: ada.team is not None and ada.team.status.is_online, "Ada online")
        await user.until(lambda: "here" not in top(user), "Ada has left")
