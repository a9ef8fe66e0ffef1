"""The dashboard extracts from loops when they end, unless the settings or --readonly forbid it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.config.settings import ExtractionSettings, Settings
from core.records.decisions import Verb
from tests.core.project.test_daemon import ERROR
from tests.tui.story import Story, story

OFF = Settings(extraction=ExtractionSettings(auto_extract_on_completion=False))


def end_a_loop(told: Story, sample: Path) -> str:
    """Let a running loop complete, with an error that it fixed."""
    loops = told.app.view.snapshot.loops
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


def extracted(told: Story) -> list[str]:
    return [d.subject for d in told.app.view.snapshot.decisions if d.verb is Verb.EXTRACT]


async def test_the_dashboard_extracts_from_a_loop_that_ends(sample: Path, home: Path) -> None:
    async with story(sample, home, extracts=True) as told:
        before = extracted(told)
        key = end_a_loop(told, sample)
        await told.until(lambda: extracted(told) == [*before, key], "the extraction")
        await told.until(lambda: any("see Review" in toast for toast in told.toasts()), "the toast")
        decision = told.app.view.snapshot.decisions[-1]
        asked = {item.subject for item in told.app.view.queue}
        assert set(decision.after["hashes"]) <= asked, "what is new waits for a person"
        assert told.app.view.loop_patterns(key).extracted


@pytest.mark.parametrize(("settings", "readonly"), [(OFF, False), (None, True)], ids=["off", "readonly"])
async def test_it_does_not_where_that_is_forbidden(
    settings: Settings | None, readonly: bool, sample: Path, home: Path
) -> None:
    async with story(sample, home, extracts=True, settings=settings, readonly=readonly) as told:
        before = extracted(told)
        key = end_a_loop(told, sample)
        await told.until(lambda: told.app.view.loop(key).status.ended, "the end of the loop")
        await told.settled()
        engine = told.app.engine
        assert engine._extraction is None
        assert extracted(told) == before
