from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.show.work import attempt_key
from core.tasks.history import AttemptDetail, read_attempt
from tests.tui.user import User, open_dashboard
from tui.kit.drawing import Drawing, TextPane
from tui.kit.looks import ASCII, DRAWN
from tui.screens import replay as screen
from tui.screens.dialogs import Help
from tui.screens.replay import ReplayScreen, Track, cell, position_at, timeline

ENDED, RUNNING = "task-001", "task-002"


async def opened(user: User, task_id: str, number: int) -> ReplayScreen:
    await user.go("loops")
    user.place.go_to(attempt_key(f"{task_id}.{number}"))
    await user.settled()
    await user.press("enter")
    await user.settled()
    assert isinstance(user.place, ReplayScreen)
    return user.place


def detail(user: User, task_id: str, number: int) -> AttemptDetail:
    return read_attempt(user.app.project.project, task_id, number)


def text(user: User) -> str:
    return " ".join(user.place.query_one("#replay-text", TextPane).plain.split())


def log(sample: Path, task_id: str, number: int) -> Path:
    return sample / f".aiwg/ralph/tasks/{task_id}/attempts/{number:03d}/actions.jsonl"


async def test_stepping_shows_actions_and_reasons(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        player = await opened(user, ENDED, 2)
        known = detail(user, ENDED, 2)
        assert player.position == 0
        for position, action in enumerate(known.actions):
            await user.settled()
            assert player.position == position
            shown = text(user)
            assert action.tool in shown
            assert " ".join(action.reasoning.split())[:60] in shown
            assert ("✗ failed" if action.has_failed else "✓ succeeded") in shown
            if action.expected:
                assert " ".join(action.expected.split())[:60] in shown
            await user.sees(f"{position + 1} of {len(known.actions)} actions", f"iteration {action.iteration}")
            await user.press("right")
        await user.press("left")
        assert player.position == len(known.actions) - 2
        await user.press("g")
        assert player.position == 0
        await user.press("escape")
        assert user.place.place == "loops"
        assert user.table.cursor_key == attempt_key(f"{ENDED}.2")


async def test_keys_go_to_errors_a_click_goes_anywhere_and_changes_have_signs(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        player = await opened(user, ENDED, 2)
        errors = list(detail(user, ENDED, 2).actions.errors)
        assert len(errors) > 1
        for error in errors:
            await user.press("n")
            assert player.position == error
        await user.press("n")
        assert "No later action failed" in user.toasts()[-1]
        await user.press("N")
        assert player.position == errors[-2]
        await user.settled()
        await user.sees("✗ failed")

        line = user.place.query_one("#replay-timeline", Drawing)
        await user.pilot.click(line, offset=(line.size.width - 1, 0))
        assert player.position == len(detail(user, ENDED, 2).actions) - 1

        steps = player._steps
        assert steps is not None
        position, step = next((n, step) for n, step in enumerate(steps) if step.diff)
        player._go(position)
        await user.settled()
        lines = user.place.query_one("#replay-text", TextPane).plain.split("\n")
        added = next(line for line in step.diff if line.startswith("+") and not line.startswith("+++"))
        assert added in [line.strip() for line in lines]
        assert "old_string" not in text(user)


async def test_it_plays_to_the_end_and_stops(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(screen, "pause_after", lambda step, speed: 0.001)
    async with open_dashboard(sample, home) as user:
        player = await opened(user, ENDED, 2)
        await user.sees("‖ paused  1x")
        await user.press("less_than_sign")
        await user.sees("0.5x")
        await user.press(*["greater_than_sign"] * 3)
        await user.sees("4x")
        last = len(detail(user, ENDED, 2).actions) - 1
        await user.press("space")
        await user.until(lambda: player.position == last and "‖ paused" in user.text(), "the end")
        assert "space play" in user.key_line()
        monkeypatch.setattr(screen, "pause_after", lambda step, speed: 60.0)
        await user.press("space")
        await user.sees("1 of", "▶ playing  4x  ▯▯▯▯▯", "space pause")
        player._wait_on()
        await user.sees("▶ playing  4x  ▮▯▯▯▯")
        await user.press("right")
        await user.sees("2 of")
        await user.sees("‖ paused")
        assert "▯" not in user.text()


async def test_a_running_attempt_is_followed_only_from_its_last_action(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        player = await opened(user, RUNNING, 2)
        count = len(detail(user, RUNNING, 2).actions)
        assert player.position == count - 1
        await user.sees("⟳ following new actions")

        def act(what: str) -> None:
            action = {"type": "bash", "tool": "Bash", "success": True, "reasoning": what, "iteration": 2}
            with log(sample, RUNNING, 2).open("a") as file:
                file.write(json.dumps(action) + "\n")

        act("look once more")
        await user.until(lambda: player.position == count and "look once more" in text(user), "the new action")
        await user.press("g")
        act("and again")
        await user.sees(f"1 of {count + 2} actions")
        assert player.position == 0


async def test_quality_and_reflections_are_beside_the_task_if_there_is_space(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await opened(user, ENDED, 2)
        side = user.place.query_one("#replay-side", TextPane)
        assert side.size.width
        assert "not measured yet" in side.plain
        await user.press("G")
        await user.settled()
        known = detail(user, ENDED, 2)
        assert "100 %┤" in side.plain
        assert f"{len(known.attempt.quality)} of {len(known.attempt.quality)} iterations" in side.plain
        assert known.reflections[0].learning[:40] in side.plain
        await user.pilot.resize_terminal(80, 24)
        await user.settled()
        assert not side.is_on_screen
        below = user.place.query_one("#replay-text", TextPane).plain
        assert f"{len(known.attempt.quality)} of {len(known.attempt.quality)} iterations" in below
        assert known.reflections[0].learning[:40] in below


async def test_unplayable_attempts_give_a_reason(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        log(sample, ENDED, 2).write_text("")
        await user.until(lambda: not user.app.view.snapshot.attempts[f"{ENDED}.2"].errors, "the empty log")
        await opened(user, ENDED, 2)
        await user.sees("no action recorded")
        await user.press("space", "n", "right", "G", "y", "u")
        assert "No decisions on this screen" in user.toasts()[-1]
        await user.press("f1")
        assert isinstance(user.app.screen, Help)
        await user.press("escape", "3")
        await user.arrives("patterns")

        await opened(user, ENDED, 3)
        shutil.rmtree(sample / f".aiwg/ralph/tasks/{ENDED}")
        await user.until(lambda: f"no task '{ENDED}'" in user.text(), "that it is gone")


# The timeline


def test_a_timeline_marks_errors_iterations_and_the_position() -> None:
    track = Track(count=4, errors=(1,), iterations={0: 1, 2: 2})
    line, numbers = timeline(track, 3, 12, DRAWN)
    assert line.plain == "┃━━✗━━┃━━●━━"
    assert numbers.plain == "1     2"
    assert timeline(track, 3, 40, DRAWN)[1].plain == "iteration 1         2"
    assert timeline(track, 1, 12, ASCII)[0].plain == "|==x==|-----"
    assert timeline(Track(), 0, 12, DRAWN)[0].plain == ""


@settings(max_examples=50)
@given(st.integers(1, 5000), st.integers(1, 200), st.data())
def test_every_action_is_in_exactly_one_cell(count: int, width: int, data: st.DataObject) -> None:
    track = Track(count=count, errors=(0, count - 1), iterations={0: 1})
    position = data.draw(st.integers(0, count - 1))
    assert 0 <= cell(track, position, width) < width
    assert 0 <= position_at(track, data.draw(st.integers(0, width - 1)), width) < count
    assert timeline(track, position, width, DRAWN)[0].cell_length == width
