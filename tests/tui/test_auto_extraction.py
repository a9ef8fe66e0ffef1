"""The dashboard extracts from loops when they end, unless the settings or --readonly forbid it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.base.settings import ExtractionSettings, Settings
from core.records.decisions import Verb
from tests.core.project.test_watch_loop import ERROR
from tests.tui.user import User, open_dashboard

OFF = Settings(extraction=ExtractionSettings(auto_extract_on_completion=False))


def end_a_loop(user: User, sample: Path) -> str:
    """Let a running loop complete, with an error that it fixed."""
    loops = user.app.view.snapshot.loops
    key = next(
        key for key, loop in loops.items() if loop.status.active and (sample / loop.files[0]).name == "state.json"
    )
    file = sample / loops[key].files[0]
    state = json.loads(file.read_text())
    state["status"] = "completed"
    state["iterations"] = [
        {"number": 1, "action": "Ran the tests", "result": f"3 failing: {ERROR}"},
        {
            "number": 2,
            "action": "Added a null check before the e-mail is read",
            "result": "12 passing",
            "verified": True,
        },
    ]
    file.write_text(json.dumps(state))
    return key


def extracted(user: User) -> list[str]:
    return [d.subject for d in user.app.view.snapshot.decisions if d.verb is Verb.EXTRACT]


@pytest.mark.slow
async def test_the_dashboard_extracts_from_a_loop_that_ends(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, extracts=True) as user:
        before = extracted(user)
        key = end_a_loop(user, sample)
        await user.until(lambda: extracted(user) == [*before, key], "the extraction")
        await user.until(lambda: any("see Review" in toast for toast in user.toasts()), "the toast")
        decision = user.app.view.snapshot.decisions[-1]
        asked = {item.subject for item in user.app.view.queue}
        assert set(decision.after["hashes"]) <= asked, "what is new waits for a person"
        assert user.app.view.board.inputs.loop_patterns(key).extracted


@pytest.mark.parametrize(("settings", "readonly"), [(OFF, False), (None, True)], ids=["off", "readonly"])
async def test_the_dashboard_does_not_extract_if_the_setting_forbids_it(
    settings: Settings | None, readonly: bool, sample: Path, home: Path
) -> None:
    async with open_dashboard(sample, home, extracts=True, settings=settings, readonly=readonly) as user:
        before = extracted(user)
        key = end_a_loop(user, sample)
        await user.until(lambda: user.app.view.loop(key).status.ended, "the end of the loop")
        await user.settled()
        engine = user.app.engine
        assert engine._extraction is None
        assert extracted(user) == before
