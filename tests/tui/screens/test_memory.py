from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from core.ledger.decision_log import FILE as LEDGER
from tests.tui.user import User, copy_tree, make_app, open_dashboard
from tui.present.memory import ESCALATIONS, SESSIONS, TASKS, attempt_key, earlier_key, parts, session_key, task_key
from tui.screens.memory import MemoryScreen
from tui.screens.replay import ReplayScreen
from tui.widgets.filter_line import FilterLine
from tui.widgets.text_pane import TextPane

ENDED, RUNNING = "task-001", "task-002"


async def in_memory(user: User) -> MemoryScreen:
    await user.go("memory")
    assert isinstance(user.place, MemoryScreen)
    return user.place


def kinds(user: User) -> list[str]:
    return [parts(key)[0] for key in user.table.keys]


def details(user: User) -> str:
    return user.place.query_one("#memory-text", TextPane).plain


def beside(user: User) -> TextPane:
    return user.place.query_one("#memory-beside", TextPane)


async def at(user: User, key: str) -> None:
    user.place.go_to(key)
    await user.settled()
    assert user.table.cursor_key == key


async def test_escalations_are_first_then_tasks_then_sessions(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        snapshot = user.app.view.snapshot
        groups = [key for key in user.table.keys if parts(key)[0] == "group"]
        assert groups == [ESCALATIONS, TASKS, SESSIONS]
        first = user.table.keys[1 : user.table.position(TASKS)]
        assert {snapshot.debug_sessions[parts(key)[1]].status for key in first} == {"escalated"}
        tasks = [snapshot.tasks[parts(key)[1]] for key in user.table.keys if parts(key)[0] == "task"]
        created = [task.created_at for task in tasks if task.created_at is not None]
        assert created == sorted(created, reverse=True)
        await user.sees("▲ escalated", "● running", "‖ paused", "✓ completed", "✗ failure", "◌ unfinished")
        await user.sees("Needs a human: the agents")
        assert "enter fold" in user.key_line()


@pytest.mark.slow
async def test_a_session_made_from_an_attempt_is_shown_with_the_attempt(sample: Path, home: Path) -> None:
    failure = {"test_name": "t", "error_type": "TypeError", "error_message": "total is null"}
    run = {"attempt": 1, "test_results": {"total": 4, "passed": 3, "failed": 1}, "failures": [failure]}
    session = {"session_id": "s-of-attempt", "executions": [run], "metadata": {"task_id": ENDED, "attempt": 1}}
    file = sample / ".aiwg/ralph/debug-memory/s-of-attempt.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(session))
    async with open_dashboard(sample, home) as user:
        screen = await in_memory(user)
        assert session_key("s-of-attempt") not in user.table.keys
        screen.go_to(session_key("s-of-attempt"))
        await user.settled()
        assert user.table.cursor_key == attempt_key(f"{ENDED}.1")
        assert "3 of 4 passed" in details(user)


@pytest.mark.slow
async def test_enter_and_the_arrows_fold_and_unfold(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        await at(user, task_key(ENDED))
        rows = len(user.table.keys)
        assert "▸" in user.row(task_key(ENDED))
        assert "enter unfold" in user.key_line()
        await user.press("enter")
        attempts = [one for one in user.app.view.snapshot.attempts.values() if one.task_id == ENDED]
        assert len(user.table.keys) == rows + len(attempts)
        assert "▾" in user.row(task_key(ENDED))
        await user.press("right")
        assert user.table.cursor_key == attempt_key(f"{ENDED}.1")
        assert "enter replay" in user.key_line()
        await user.press("right")
        assert "nothing to unfold" in user.toasts()[-1]
        await user.press("left")
        assert user.table.cursor_key == task_key(ENDED)
        await user.press("left")
        assert len(user.table.keys) == rows
        await user.press("left")
        assert user.table.cursor_key == TASKS
        await user.press("enter")
        assert "task" not in kinds(user)
        await user.press("enter")
        assert len(user.table.keys) == rows
        assert json.loads(user.app.user_state.get_here("memory-folded"))[TASKS] is False


@pytest.mark.slow
async def test_a_filter_shows_the_task_of_an_attempt_that_matches(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        everything = len(user.app.view.snapshot.tasks) + len(user.app.view.snapshot.debug_sessions)
        assert f" {everything}, newest first" in user.text()
        await user.filter("is:attempt outcome:success")
        attempts = user.app.view.snapshot.attempts
        shown = [attempts[parts(key)[1]] for key in user.table.keys if parts(key)[0] == "attempt"]
        assert {attempt.outcome.value for attempt in shown} == {"success"}
        assert {parts(key)[1] for key in user.table.keys if parts(key)[0] == "task"} == {one.task_id for one in shown}
        assert "session" not in kinds(user)
        await user.filter("cause:null_undefined")
        assert set(kinds(user)) == {"group", "session"}
        await user.filter("is:escalated")
        assert user.table.keys[0] == ESCALATIONS
        assert len(user.table.keys) == 1 + len(user.app.view.escalations())
        await user.press("escape")
        assert "attempt" in kinds(user)


@pytest.mark.slow
async def test_every_tab_of_every_row_can_be_read(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(100, 40)) as user:
        place = await in_memory(user)
        place.go_to(attempt_key(f"{ENDED}.1"))
        for key in user.table.keys:
            for tab in place.tabs(key):
                assert "".join(line.plain for line in place.details(key, tab)).strip(), (key, tab)
        await at(user, attempt_key(f"{ENDED}.1"))
        for tab in place.tabs(user.table.cursor_key):
            assert details(user).strip(), tab
            assert "Reading…" not in details(user)
            await user.press("right_square_bracket")
        assert set(kinds(user)) == {"group", "task", "attempt", "session"}


async def test_a_task_shows_attempts_quality_and_lessons(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(120, 60)) as user:
        await in_memory(user)
        await at(user, task_key(ENDED))
        text = details(user)
        snapshot = user.app.view.snapshot
        for attempt in (one for one in snapshot.attempts.values() if one.task_id == ENDED):
            assert attempt.plan[:30] in text
        assert "Quality" in text
        assert "100 %┤" in text
        assert "each retry improved: " in text
        assert text.index("100 %┤") < text.index("outcome")  # the chart is what a low pane shows
        text = beside(user).plain
        for reflection in (one for one in snapshot.reflections.values() if one.task_id == ENDED):
            assert reflection.text[:40] in " ".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 120, 200])
async def test_reflections_are_beside_their_attempt_if_there_is_space(sample: Path, home: Path, width: int) -> None:
    async with open_dashboard(sample, home, size=(width, 40)) as user:
        place = await in_memory(user)
        key = attempt_key(f"{ENDED}.2")
        await at(user, key)
        if width == 80:
            assert not beside(user).display
            for _ in range(place.tabs(key).index("Reflections")):
                await user.press("right_square_bracket")
            shown_there = details(user)
        elif width == 120:
            assert "Reflections" not in place.tabs(key)
            assert beside(user).display
            shown_there = beside(user).plain
        else:  # below, as the details are tall there
            assert not beside(user).display
            shown_there = details(user)
            assert "enter: replay" in shown_there
        (reflection, *_) = place.links.reflections_of(user.app.view.snapshot.attempts[f"{ENDED}.2"])
        assert reflection.learning[:40] in shown_there


@pytest.mark.slow
async def test_one_key_opens_loop_patterns_or_reflections(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("type:anti")
        await user.press("enter", "j")
        mine, under = list(user.table.keys), user.table.cursor_key
        place = await in_memory(user)
        catalog, links = place._catalog, place.links
        task = next(task for task in catalog.tasks.values() if len(links.patterns_of(task)) > 1)
        loop = links.loop_of(task)
        await at(user, task_key(task.id))
        await user.press("l")
        await user.until(lambda: user.place.place == "loops" and user.table.cursor_key == loop, "the loop")
        assert user.place.effect("back") == "back to Memory"
        await user.press("escape")
        await user.until(
            lambda: user.place.place == "memory" and user.table.cursor_key == task_key(task.id), "the task"
        )
        patterns = links.patterns_of(task)
        await user.press("p")
        await user.until(lambda: user.place.place == "patterns", "Patterns in front")
        await user.until(lambda: set(user.table.keys) == set(patterns), "the patterns")
        assert user.table.cursor_key == patterns[0]

        await user.press("escape")
        assert user.place.place == "memory", "one escape leads back, whatever filter the link has put on"
        await user.press("p")
        await user.until(lambda: set(user.table.keys) == set(patterns), "the patterns")
        for leave in ("6", "escape"):
            await user.press(leave)
            assert user.place.place == "memory"
            assert user.app.user_state.get_here("patterns-filter") == "type:anti"
            await user.go("patterns")
            assert (user.table.keys, user.table.cursor_key) == (mine, under), "the own filter stands again"
            await user.go("memory")
            await user.press("p")
            await user.until(lambda: set(user.table.keys) == set(patterns), "the patterns")
        await user.filter("type:error")
        await user.press("enter", "6", "2")
        assert user.place.query_one(FilterLine).text == "type:error", "what was typed there is not a filter of a link"

        await user.go("memory")
        await at(user, attempt_key(f"{ENDED}.2"))
        wanted = links.reflections_of(user.app.view.snapshot.attempts[f"{ENDED}.2"])[0].id
        await user.press("enter", "right")
        player = user.place
        assert isinstance(player, ReplayScreen)
        await user.until(lambda: player.position == 1, "the second action")
        await user.press("r")
        await user.until(
            lambda: user.place.place == "reflections" and user.table.cursor_key == wanted, "the reflection"
        )
        assert user.place.effect("back") == "back to Replay"
        await user.press("escape")
        await user.until(
            lambda: isinstance(user.place, ReplayScreen) and user.place.position == 1, "the player at its place"
        )
        await user.press("escape")
        for key in "lpro":
            await at(user, TASKS)
            await user.press(key)
            assert "This is a heading" in user.toasts()[-1]


@pytest.mark.slow
async def test_a_session_shows_failures_causes_and_fixes(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        sessions = user.app.view.snapshot.debug_sessions
        passed = next(one for one in sessions.values() if one.status == "passed" and len(one.executions) > 1)
        await at(user, session_key(passed.id))
        await user.press("enter")
        assert not user.shows_list()
        text = " ".join(details(user).split())
        run = passed.executions[0]
        assert run.analysis is not None and run.fix is not None
        for part in (run.failures[0].message, run.analysis.root_cause, run.analysis.strategy, run.fix.description):
            assert " ".join(part.split())[:50] in text
        assert "✓ verified" in text
        await user.press("escape")
        assert user.shows_list()
        await at(user, SESSIONS)
        assert run.analysis.category in details(user)
        assert "▮" in details(user)


async def test_records_of_an_agent_are_shown_at_once(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        attempt = next(
            one for one in user.app.view.snapshot.attempts.values() if one.task_id == RUNNING and one.is_open
        )
        await at(user, attempt_key(attempt.id))
        log = sample / f".aiwg/ralph/tasks/{RUNNING}/attempts/{attempt.number:03d}/actions.jsonl"
        before = attempt.actions
        assert before is not None
        with log.open("a") as file:
            file.write(json.dumps({"type": "bash", "success": False, "error": "boom", "iteration": 9}) + "\n")
        await user.until(lambda: f" {before + 1} " in user.row(attempt_key(attempt.id)), "one more action")
        task = sample / ".aiwg/ralph/tasks/task-900"
        task.mkdir()
        (task / "metadata.json").write_text(
            json.dumps({"id": "task-900", "description": "A new one", "created": "2026-11-21T20:59:59Z"})
        )
        await user.until(lambda: task_key("task-900") in user.table.keys, "the new task")
        assert user.table.cursor_key == attempt_key(attempt.id)
        await at(user, task_key("task-900"))
        await user.sees("No attempts yet: ralphdeck task start task-900")


async def test_earlier_attempts_unfold_and_can_be_opened(sample: Path, home: Path) -> None:
    for number in range(4, 14):
        folder = sample / f".aiwg/ralph/tasks/{RUNNING}/attempts/{number:03d}"
        folder.mkdir(parents=True)
        (folder / "outcome.json").write_text('{"outcome": "failure"}')
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        earlier = earlier_key(RUNNING)
        await at(user, earlier)
        await user.sees("earlier attempts", "enter unfold")
        await user.press("left")
        assert user.table.cursor_key == task_key(RUNNING)
        await at(user, attempt_key(f"{RUNNING}.1"))
        await user.press("k")
        assert user.table.cursor_key == earlier
        await user.press("enter")
        assert user.table.position(attempt_key(f"{RUNNING}.1")) is None


async def test_v_toggles_full_details_and_missing_records_are_reported(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        place = await in_memory(user)
        await user.press("v")
        assert place.has_class("-detail") and "v show list" in user.key_line()
        await user.press("v")
        assert not place.has_class("-detail") and user.in_focus(user.table)
        place.go_to(task_key("task-gone"))
        await user.pilot.pause()
        assert user.toasts()[-1] == "Task task-gone is no longer in Memory"


async def test_without_tasks_finished_loops_are_listed(tmp_path: Path, home: Path) -> None:
    async with open_dashboard(
        copy_tree("upstream", tmp_path / "upstream"), home, size=(80, 24), place="memory"
    ) as user:
        loops = len(user.app.view.snapshot.loops)
        await user.sees(f"0 of {loops} loops", "only in the cross-task memory, 4", "ralphdeck task init --loop LOOP")


@pytest.mark.slow
async def test_an_empty_project_explains_what_to_do(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "empty"
    (project / LEDGER).parent.mkdir(parents=True)
    async with open_dashboard(project, home, place="memory") as user:
        await user.sees("Nothing here yet", "ralphdeck task init")
        await user.press("enter", "left", "right", "v", "l", "p", "r", "o", "y", "S", "escape")


async def test_the_filter_finds_attempts_by_the_output_of_their_actions(sample: Path, home: Path) -> None:
    log = sample / ".aiwg/ralph/tasks" / ENDED / "attempts/002/actions.jsonl"
    log.write_text(log.read_text() + json.dumps({"type": "bash", "output": "saw a quetzal\x1b[31m [b]fly"}) + "\n")
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        await user.filter("quetzal fly")
        await user.until(lambda: user.table.cursor_key == attempt_key(f"{ENDED}.2"), "the cursor on the attempt")
        await user.settled()
        assert kinds(user) == ["group", "task", "attempt"]
        assert "saw a quetzal\N{SYMBOL FOR ESCAPE}[31m [b]fly" in details(user)
        await user.press("enter")
        await user.until(lambda: isinstance(user.app.screen, ReplayScreen), "the replay")
        await user.sees("quetzal")
        await user.press("escape")
        for text in ("quetzal -fly", "quetzal is:task"):
            await user.filter(text)
            await user.settled()
            assert not user.table.keys, text


async def test_a_failed_search_is_reported_beside_the_filter(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        with monkeypatch.context() as failing:
            failing.setattr(user.app.project.index, "search", Mock(side_effect=KeyError))
            await user.filter("lock")
            await user.sees("the search failed (KeyError); the log has details")
        await user.filter("lock order")
        await user.settled()
        assert "failed (KeyError)" not in user.text()


async def test_the_cursor_goes_to_the_first_match_of_a_filter(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_memory(user)
        for text, kind in (("is:task", "task"), ("is:attempt", "attempt"), ("is:escalated", "session")):
            await user.filter(text)
            await user.settled()
            key = user.table.cursor_key or ""
            assert (parts(key)[0], kinds(user).index(kind)) == (kind, user.table.cursor), text


@pytest.mark.parametrize(("text", "kind"), [("is:attempt", "attempt"), ("is:escalated", "session")])
async def test_the_cursor_is_on_the_first_match_of_the_filter_of_the_last_run(
    sample: Path, home: Path, text: str, kind: str
) -> None:
    app = make_app(sample, home, place="memory")
    app.user_state.set_here("memory-filter", text)
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.progress is None, "the first load")
        await user.settled()
        key = user.table.cursor_key or ""
        assert (parts(key)[0], kinds(user).index(kind)) == (kind, user.table.cursor)
