from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.ledger.ledger import FILE as LEDGER
from tests.tui.story import Story, copy_tree, story
from tui.present.memory_tree import ESCALATIONS, SESSIONS, TASKS, attempt_key, earlier_key, parts, session_key, task_key
from tui.screens.memory import MemoryScreen
from tui.screens.replay import ReplayScreen
from tui.widgets.filter_line import FilterLine
from tui.widgets.text_pane import TextPane

ENDED, RUNNING = "task-001", "task-002"


async def in_memory(told: Story) -> MemoryScreen:
    await told.go("memory")
    assert isinstance(told.place, MemoryScreen)
    return told.place


def kinds(told: Story) -> list[str]:
    return [parts(key)[0] for key in told.table.keys]


def details(told: Story) -> str:
    return told.place.query_one("#memory-text", TextPane).plain


def beside(told: Story) -> TextPane:
    return told.place.query_one("#memory-beside", TextPane)


async def at(told: Story, key: str) -> None:
    told.place.go_to(key)
    await told.settled()
    assert told.table.cursor_key == key


async def test_escalations_stand_first_then_tasks_then_sessions(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await in_memory(told)
        snapshot = told.app.view.snapshot
        groups = [key for key in told.table.keys if parts(key)[0] == "group"]
        assert groups == [ESCALATIONS, TASKS, SESSIONS]
        first = told.table.keys[1 : told.table.position(TASKS)]
        assert {snapshot.debug_sessions[parts(key)[1]].status for key in first} == {"escalated"}
        tasks = [snapshot.tasks[parts(key)[1]] for key in told.table.keys if parts(key)[0] == "task"]
        created = [task.created_at for task in tasks if task.created_at is not None]
        assert created == sorted(created, reverse=True)
        await told.sees("▲ escalated", "● running", "‖ paused", "✓ completed", "✗ failure", "◌ unfinished")
        await told.sees("These wait for a person")
        assert "enter fold" in told.key_line()


async def test_enter_and_the_arrows_fold_and_unfold(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await in_memory(told)
        await at(told, task_key(ENDED))
        rows = len(told.table.keys)
        assert "▸" in told.row(task_key(ENDED))
        assert "enter unfold" in told.key_line()
        await told.press("enter")
        attempts = [one for one in told.app.view.snapshot.attempts.values() if one.task_id == ENDED]
        assert len(told.table.keys) == rows + len(attempts)
        assert "▾" in told.row(task_key(ENDED))
        await told.press("right")
        assert told.table.cursor_key == attempt_key(f"{ENDED}.1")
        assert "enter replay" in told.key_line()
        await told.press("right")
        assert "nothing to unfold" in told.toasts()[-1]
        await told.press("left")
        assert told.table.cursor_key == task_key(ENDED)
        await told.press("left")
        assert len(told.table.keys) == rows
        await told.press("left")
        assert told.table.cursor_key == TASKS
        await told.press("enter")
        assert "task" not in kinds(told)
        await told.press("enter")
        assert len(told.table.keys) == rows
        assert json.loads(told.app.user_state.get_here("memory-folded"))[TASKS] is False


async def test_a_filter_shows_the_task_of_an_attempt_that_matches(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await in_memory(told)
        everything = len(told.app.view.snapshot.tasks) + len(told.app.view.snapshot.debug_sessions)
        assert f" {everything} by newest" in told.text()
        await told.filter("is:attempt outcome:success")
        attempts = told.app.view.snapshot.attempts
        shown = [attempts[parts(key)[1]] for key in told.table.keys if parts(key)[0] == "attempt"]
        assert {attempt.outcome.value for attempt in shown} == {"success"}
        assert {parts(key)[1] for key in told.table.keys if parts(key)[0] == "task"} == {one.task_id for one in shown}
        assert "session" not in kinds(told)
        await told.filter("cause:null_undefined")
        assert set(kinds(told)) == {"group", "session"}
        await told.filter("is:escalated")
        assert told.table.keys[0] == ESCALATIONS
        assert len(told.table.keys) == 1 + len(told.app.view.escalations())
        await told.press("escape")
        assert "attempt" in kinds(told)


async def test_every_tab_of_every_row_can_be_read(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(100, 40)) as told:
        place = await in_memory(told)
        place.go_to(attempt_key(f"{ENDED}.1"))
        for key in told.table.keys:
            for tab in place.tabs(key):
                assert "".join(line.plain for line in place.details(key, tab)).strip(), (key, tab)
        await at(told, attempt_key(f"{ENDED}.1"))
        for tab in place.tabs(told.table.cursor_key):
            assert details(told).strip(), tab
            assert "reading…" not in details(told)
            await told.press("right_square_bracket")
        assert set(kinds(told)) == {"group", "task", "attempt", "session"}


async def test_a_task_tells_its_attempts_its_quality_and_what_was_learned(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(120, 60)) as told:
        await in_memory(told)
        await at(told, task_key(ENDED))
        text = details(told)
        snapshot = told.app.view.snapshot
        for attempt in (one for one in snapshot.attempts.values() if one.task_id == ENDED):
            assert attempt.plan[:30] in text
        assert "Quality" in text
        assert "100 %┤" in text
        assert "each retry did better: " in text
        assert text.index("100 %┤") < text.index("outcome")  # the chart is what a low pane shows
        text = beside(told).plain
        for reflection in (one for one in snapshot.reflections.values() if one.task_id == ENDED):
            assert reflection.text[:40] in " ".join(text.split())


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_reflections_stand_beside_their_attempt_where_there_is_room(sample: Path, home: Path, width: int) -> None:
    async with story(sample, home, size=(width, 40)) as told:
        place = await in_memory(told)
        key = attempt_key(f"{ENDED}.2")
        await at(told, key)
        if width == 80:
            assert not beside(told).display
            for _ in range(place.tabs(key).index("Reflections")):
                await told.press("right_square_bracket")
            told_there = details(told)
        elif width == 120:
            assert "Reflections" not in place.tabs(key)
            assert beside(told).display
            told_there = beside(told).plain
        else:  # below, as the details are tall there
            assert not beside(told).display
            told_there = details(told)
            assert "enter plays them" in told_there
        (reflection, *_) = place._links.reflections_of(told.app.view.snapshot.attempts[f"{ENDED}.2"])
        assert reflection.learning[:40] in told_there


async def test_one_key_leads_to_loop_patterns_and_reflections(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("type:anti")
        await told.press("enter", "j")
        mine, under = list(told.table.keys), told.table.cursor_key
        place = await in_memory(told)
        catalog, links = place._catalog, place._links
        task = next(task for task in catalog.tasks.values() if len(links.patterns_of(task)) > 1)
        loop = links.loop_of(task)
        await at(told, task_key(task.id))
        await told.press("l")
        await told.until(lambda: told.place.place == "loops" and told.table.cursor_key == loop, "the loop")
        assert told.place.effect("back") == "back to Memory"
        await told.press("escape")
        await told.until(
            lambda: told.place.place == "memory" and told.table.cursor_key == task_key(task.id), "the task"
        )
        patterns = links.patterns_of(task)
        await told.press("p")
        await told.until(lambda: told.place.place == "patterns", "Patterns in front")
        await told.until(lambda: set(told.table.keys) == set(patterns), "the patterns")
        assert told.table.cursor_key == patterns[0]

        await told.press("escape")
        assert told.place.place == "memory", "one escape leads back, whatever filter the link has put on"
        await told.press("p")
        await told.until(lambda: set(told.table.keys) == set(patterns), "the patterns")
        for leave in ("6", "escape"):
            await told.press(leave)
            assert told.place.place == "memory"
            assert told.app.user_state.get_here("patterns-filter") == "type:anti"
            await told.go("patterns")
            assert (told.table.keys, told.table.cursor_key) == (mine, under), "the own filter stands again"
            await told.go("memory")
            await told.press("p")
            await told.until(lambda: set(told.table.keys) == set(patterns), "the patterns")
        await told.filter("type:error")
        await told.press("enter", "6", "2")
        assert told.place.query_one(FilterLine).text == "type:error", "what was typed there is no filter of a link"

        await told.go("memory")
        await at(told, attempt_key(f"{ENDED}.2"))
        wanted = links.reflections_of(told.app.view.snapshot.attempts[f"{ENDED}.2"])[0].id
        await told.press("enter", "right")
        player = told.place
        assert isinstance(player, ReplayScreen)
        await told.until(lambda: player.position == 1, "the second action")
        await told.press("r")
        await told.until(
            lambda: told.place.place == "reflections" and told.table.cursor_key == wanted, "the reflection"
        )
        assert told.place.effect("back") == "back to the player"
        await told.press("escape")
        await told.until(
            lambda: isinstance(told.place, ReplayScreen) and told.place.position == 1, "the player at its place"
        )
        await told.press("escape")
        for key in "lpro":
            await at(told, TASKS)
            await told.press(key)
            assert "this is a header" in told.toasts()[-1]


async def test_a_session_tells_what_failed_why_and_what_was_done(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await in_memory(told)
        sessions = told.app.view.snapshot.debug_sessions
        passed = next(one for one in sessions.values() if one.status == "passed" and len(one.executions) > 1)
        await at(told, session_key(passed.id))
        await told.press("enter")
        assert not told.shows_list()
        text = " ".join(details(told).split())
        run = passed.executions[0]
        assert run.analysis is not None and run.fix is not None
        for part in (run.failures[0].message, run.analysis.root_cause, run.analysis.strategy, run.fix.description):
            assert " ".join(part.split())[:50] in text
        assert "✓ verified" in text
        await told.press("escape")
        assert told.shows_list()
        await at(told, SESSIONS)
        assert run.analysis.category in details(told)
        assert "▮" in details(told)


async def test_what_an_agent_writes_shows_at_once(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await in_memory(told)
        attempt = next(
            one for one in told.app.view.snapshot.attempts.values() if one.task_id == RUNNING and one.is_open
        )
        await at(told, attempt_key(attempt.id))
        log = sample / f".aiwg/ralph/tasks/{RUNNING}/attempts/{attempt.number:03d}/actions.jsonl"
        before = attempt.actions
        assert before is not None
        with log.open("a") as file:
            file.write(json.dumps({"type": "bash", "success": False, "error": "boom", "iteration": 9}) + "\n")
        await told.until(lambda: f" {before + 1} " in told.row(attempt_key(attempt.id)), "one more action")
        task = sample / ".aiwg/ralph/tasks/task-900"
        task.mkdir()
        (task / "metadata.json").write_text(
            json.dumps({"id": "task-900", "description": "A new one", "created": "2026-11-21T20:59:59Z"})
        )
        await told.until(lambda: task_key("task-900") in told.table.keys, "the new task")
        assert told.table.cursor_key == attempt_key(attempt.id)
        await at(told, task_key("task-900"))
        await told.sees("nobody has tried it yet:  ralphdeck task start task-900")


async def test_earlier_attempts_unfold_and_are_gone_to(sample: Path, home: Path) -> None:
    for number in range(4, 14):
        folder = sample / f".aiwg/ralph/tasks/{RUNNING}/attempts/{number:03d}"
        folder.mkdir(parents=True)
        (folder / "outcome.json").write_text('{"outcome": "failure"}')
    async with story(sample, home) as told:
        await in_memory(told)
        earlier = earlier_key(RUNNING)
        await at(told, earlier)
        await told.sees("earlier attempts", "enter unfold")
        await told.press("left")
        assert told.table.cursor_key == task_key(RUNNING)
        await at(told, attempt_key(f"{RUNNING}.1"))
        await told.press("k")
        assert told.table.cursor_key == earlier
        await told.press("enter")
        assert told.table.position(attempt_key(f"{RUNNING}.1")) is None


async def test_v_goes_to_the_whole_details_and_back_and_what_is_gone_is_named(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await in_memory(told)
        await told.press("v")
        assert place.has_class("-detail") and "v back to the list" in told.key_line()
        await told.press("v")
        assert not place.has_class("-detail") and told.in_focus(told.table)
        place.go_to(task_key("task-gone"))
        await told.pilot.pause()
        assert told.toasts()[-1] == "task task-gone is not in Memory any more"


async def test_where_no_loop_has_a_task_it_says_which_could(tmp_path: Path, home: Path) -> None:
    async with story(copy_tree("upstream", tmp_path / "upstream"), home, size=(80, 24)) as told:
        await told.go("memory")
        loops = len(told.app.view.snapshot.loops)
        await told.sees(f"0 of {loops} loops", "only in the cross-task memory, 4", "ralphdeck task init --loop LOOP")


async def test_an_empty_project_says_what_to_do(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "empty"
    (project / LEDGER).parent.mkdir(parents=True)
    async with story(project, home) as told:
        await told.go("memory")
        await told.sees("nothing here yet", "ralphdeck task init")
        await told.press("enter", "left", "right", "v", "l", "p", "r", "o", "y", "S", "escape")
