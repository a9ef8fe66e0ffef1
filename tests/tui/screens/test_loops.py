from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.records.decisions import Verb
from core.records.loops import Loop, LoopStatus, Usage
from core.sources.adapters.contract import AdapterRecords
from tests.agent_lessons import find_when_loaded
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.drawing import TextPane
from tui.screens.dialogs import PreviewDialog
from tui.screens.loops import LoopsScreen
from tui.screens.review import ReviewScreen


def state_file(sample: Path, key: str) -> Path:
    return sample / f".aiwg/ralph/loops/{key}/state.json"


def running(user: User) -> str:
    return next(key for key, loop in user.app.view.snapshot.loops.items() if loop.status.value == "running")


def details(user: User) -> str:
    return user.place.query_one(TextPane).plain


def tab_number(user: User, name: str) -> int:
    """The place of a tab of the row under the cursor."""
    place = user.place
    assert isinstance(place, LoopsScreen)
    return place.tabs(user.table.cursor_key).index(name)


async def test_running_loops_are_first_and_the_details_are_read_on_demand(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        loops = user.app.view.snapshot.loops
        active = [loops[key].status.active for key in user.table.keys if key in loops]
        assert active == sorted(active, reverse=True)
        assert any(active)
        await user.sees("● running", "‖ paused", "✗ crashed", "✓ completed", f"{sum(active)} sessions running")
        first = set()
        for _ in range(5):
            assert len(user.table.keys) == 19
            first.add(user.table.keys[0])
            await user.press("S")
        assert len(first) > 1
        user.place.go_to(OFFERING)
        for _ in range(tab_number(user, "Iterations")):
            await user.press("right_square_bracket")
        await user.settled()
        story_read = user.app.project.story(OFFERING)
        assert len(story_read.iterations) > 3
        for iteration in story_read.iterations:
            assert iteration.result.split("\n")[0][:60] in details(user)


async def test_changes_on_disk_are_shown_and_the_cursor_stays(sample: Path, home: Path) -> None:
    loops = sample / ".aiwg/ralph/loops"
    async with open_dashboard(sample, home) as user:
        key = running(user)
        user.place.go_to(key)
        await user.settled()
        state = json.loads(state_file(sample, key).read_text())
        name = "currentIteration" if "currentIteration" in state else "current_iteration"
        state_file(sample, key).write_text(json.dumps(state | {name: 13}))
        await user.until(lambda: "13/" in user.row(key), "the new iteration in the row")
        new = loops / "ralph-brand-new-12345678"
        new.mkdir()
        values = {"task": "Brand new task", "status": "running", "started_at": "2026-11-21T20:59:50Z"}
        (new / "state.json").write_text(json.dumps({"loop_id": new.name, **values}))
        await user.sees("Brand new task")
        assert user.table.cursor_key == key
        assert user.toasts() == [], "its row tells of it"
        task = user.app.view.loop(key).task
        state_file(sample, key).write_text(json.dumps(state | {"status": "failed"}))
        await user.until(lambda: any("failed" in toast and task[:30] in toast for toast in user.toasts()), "the toast")
        assert "failed" in user.row(key)
        for file in (new / "state.json", new):
            file.unlink() if file.is_file() else file.rmdir()
        await user.until(lambda: new.name not in user.app.view.snapshot.loops, "the folder gone")


OFFERING = "ralph-move-the-settlement-jobs-from--18be2e49"


async def test_a_finished_loop_offers_its_patterns(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True) as user:
        user.place.go_to(OFFERING)
        await user.settled()
        assert " found" in user.row(OFFERING)
        assert "lessons to extract   e: details" in details(user)
        assert "Move the settlement jobs" in details(user)
        assert "e extract " in user.key_line()
        await user.press("e")
        await user.arrives("review")
        await user.sees("lessons found in this session. Keep them?")
        place = user.place
        assert isinstance(place, ReviewScreen)
        await user.until(lambda: place.item is not None and place.item.subject == OFFERING, "the loop's question")


async def test_an_extraction_without_an_offer_is_computed_on_demand(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        user.place.go_to(running(user))
        await user.press("e")
        assert "has not ended" in user.toasts()[-1]
        user.place.go_to(OFFERING)
        await user.press("e")
        await user.until(lambda: isinstance(user.app.screen, PreviewDialog), "the preview")
        await user.sees("lessons to extract", "settlement booked twice", "a extract ")
        await user.press("escape")
        assert OFFERING not in {decision.subject for decision in user.app.view.snapshot.decisions}
        await user.press("e")
        await user.until(lambda: isinstance(user.app.screen, PreviewDialog), "the preview")
        await user.decides("a")
        assert user.app.view.snapshot.decisions[-1].verb is Verb.EXTRACT
        assert "extracted " in user.toasts()[-1]
        assert "undo extract" in user.key_line()
        user.place.go_to(OFFERING)
        for _ in range(tab_number(user, "Lessons")):
            await user.press("right_square_bracket")
        await user.until(lambda: "+ found here" in details(user), "the patterns")
        assert learned(user, OFFERING).endswith(" found")
        await user.press("e")
        await user.sees("Nothing to extract: ")
        box, screen = user.app.screen.query_one(".dialog").region, user.app.screen.region
        assert abs(box.x - (screen.right - box.right)) <= 1 and box.x > 1, "in the middle, as every dialog"


def learned(user: User, key: str) -> str:
    """The cell of a column that only wide terminals show."""
    place = user.place
    assert isinstance(place, LoopsScreen)
    return place.cells(key)["lessons"].plain


async def test_tasks_use_the_remaining_width(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 40)) as user:
        for width in (80, 120, 200):
            await user.pilot.resize_terminal(width, 40)
            await user.settled()
            assert user.table.width_of("task") >= 35
            row = user.row(OFFERING)
            assert "Move the settlement jobs from" in row and "24 d ago" in row and "18be2e49" not in row
            if width > 80:
                assert "8/8" in row and "worked" in row


def adapted(count: int = 1, **values: Any) -> AdapterRecords:
    known: dict[str, Any] = {
        "runner": "codex",
        "owner": "codex",
        "model": "gpt-5.6-codex",
        "sources": ("codex",),
        "task": "Round once",
        "status": LoopStatus.WAITING,
        "raw_status": "permission",
        "usage": Usage(input=12_000, output=900, cost_usd=3.2),
        "started_at": NOW,
        "last_activity": NOW,
    }
    return AdapterRecords(loops=tuple(Loop(id=f"codex:{number}", **known | values) for number in range(count)))


async def show(user: User, found: AdapterRecords) -> None:
    engine, project = user.app.engine, user.app.project
    engine.submit(lambda: engine._read(lambda: project.replace_adapted(found)))
    await user.until(lambda: found.loops[0].id in user.table.keys, "the loop of another runner")


async def test_loops_of_runners_have_columns_and_signs_of_their_own(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(140, 50)) as user:
        assert "tokens" not in {column.id for column in user.table.columns}
        await show(user, adapted())
        assert "tokens" in {column.id for column in user.table.columns}
        assert "codex:0" in user.table.keys[:2]
        assert "▲ asks" in user.row("codex:0")
        await user.sees("1 waits for you", "2 need you", "12.9 k", "$3.20", "codex")
        user.place.go_to("codex:0")
        await user.sees("Waits for", "$3.20 reported", "gpt-5.6-codex")
        await show(user, adapted(last_activity=NOW - timedelta(days=3), started_at=NOW - timedelta(days=3)))
        await user.until(lambda: "for you" not in user.text(), "an old wait, which is stale")
        assert user.table.keys[0] != "codex:0"
        assert "waiting" in user.row("codex:0") and "asks" not in user.row("codex:0")


async def test_the_way_of_a_context_to_a_runner_can_be_shown_and_copied(sample: Path, home: Path) -> None:
    folder = sample / "scripts/ralph"
    folder.mkdir(parents=True)
    story = {"id": "US-001", "title": "Type the user", "passes": False, "priority": 1}
    task = "Fix TypeScript type errors in user validation"
    (folder / "prd.json").write_text(json.dumps({"branchName": "ralph/x", "description": task, "userStories": [story]}))
    (folder / "progress.txt").write_text("## Codebase Patterns\n- Use zod\n---\n")
    async with open_dashboard(sample, home) as user:
        await user.until(lambda: "snarktank:scripts/ralph/x" in user.table.keys, "the loop of a runner")
        user.place.go_to("snarktank:scripts/ralph/x")
        await user.place.run_id("deliver")
        await user.sees("Deliver the context", "Change to apply", "+<!-- BEGIN ralphdeck -->")
        await user.press("y")
        await user.settled()
        assert "<!-- BEGIN" not in (folder / "progress.txt").read_text()


async def test_the_filter_line_sums_the_tokens_and_the_cost_of_the_visible_loops_of_runners(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = [
        Loop(id=f"claude:{n}", runner="claude", task=f"Cart {n}", usage=Usage(input=600_000, cost_usd=1.6))
        for n in range(2)
    ]
    find_when_loaded(monkeypatch, loops=loops)
    async with open_dashboard(sample, home) as user:
        await user.sees("· 1.2 M tokens · $3.20")
        await user.filter("cart 1")
        await user.sees(" of 21", "· 600 k tokens · $1.60")
        await user.filter("source:aiwg")
        assert "tokens ·" not in user.text()
