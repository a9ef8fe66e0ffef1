"""What is below the rows of Loops: attempts, iterations, debug sessions and lessons."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from textual.content import Content

from core.base.paths import ProjectPaths
from core.base.pattern_titles import pattern_title
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.index.texts import Texts
from core.project.project import Project
from core.records.debug_sessions import DebugSession
from core.records.snapshot import Snapshot
from core.show.pages.tasks import lessons, runs
from core.show.work import attempt_key, earlier_key, iteration_key, lesson_key, parse_key, session_key, task_key
from core.sources.debug_sessions import read_sessions
from tests.factories import (
    DEBUG_NOW,
    SESSION_FILE,
    make_full_session,
    make_lesson,
    make_run,
    make_session,
    sessions_by_id,
)
from tests.tui.user import User, make_app, open_dashboard
from tui.kit.drawing import TextPane
from tui.kit.fields import FilterLine
from tui.kit.looks import ASCII
from tui.screens.document import document_lines
from tui.screens.loops import LoopsScreen
from tui.screens.replay import ReplayScreen

ENDED, RUNNING = "task-001", "task-002"


async def in_loops(user: User) -> LoopsScreen:
    await user.go("loops")
    assert isinstance(user.place, LoopsScreen)
    return user.place


def kinds(user: User) -> list[str]:
    return [parse_key(key).kind for key in user.table.keys]


def details(user: User) -> str:
    return user.place.query_one(TextPane).plain


async def at(user: User, key: str) -> None:
    user.place.go_to(key)
    await user.settled()
    assert user.table.cursor_key == key


def home_of(user: User, task_id: str) -> str:
    """The key of the row that has the attempts at a task below it."""
    assert isinstance(user.place, LoopsScreen)
    return user.place._catalog.homes.get(task_id) or task_key(task_id)


async def test_a_session_made_from_an_attempt_is_shown_with_the_attempt(sample: Path, home: Path) -> None:
    failure = {"test_name": "t", "error_type": "TypeError", "error_message": "total is null"}
    run = {"attempt": 1, "test_results": {"total": 4, "passed": 3, "failed": 1}, "failures": [failure]}
    session = {"session_id": "s-of-attempt", "executions": [run], "metadata": {"task_id": ENDED, "attempt": 1}}
    file = sample / ".aiwg/ralph/debug-memory/s-of-attempt.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(session))
    async with open_dashboard(sample, home) as user:
        screen = await in_loops(user)
        assert session_key("s-of-attempt") not in user.table.keys
        screen.go_to(session_key("s-of-attempt"))
        await user.settled()
        assert user.table.cursor_key == attempt_key(f"{ENDED}.1")
        assert "3 of 4 passed" in details(user)


async def test_enter_and_the_arrows_fold_and_unfold(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_loops(user)
        top = home_of(user, ENDED)
        await at(user, top)
        rows = len(user.table.keys)
        assert "▸" in user.row(top)
        assert "enter unfold" in user.key_line()
        await user.press("enter")
        attempts = [one for one in user.app.view.snapshot.attempts.values() if one.task_id == ENDED]
        assert len(user.table.keys) >= rows + len(attempts)
        assert "▾" in user.row(top)
        await user.press("right")
        assert user.table.cursor_key == attempt_key(f"{ENDED}.1")
        assert "enter replay" in user.key_line()
        await user.press("right")
        assert "nothing to unfold" in user.toasts()[-1]
        await user.press("left")
        assert user.table.cursor_key == top
        assert top in json.loads(user.app.user_state.get_here("loops-unfolded"))
        await user.press("left")
        assert len(user.table.keys) == rows
        await user.press("left")
        assert "nothing to fold" in user.toasts()[-1]


async def test_a_loop_unfolds_to_iterations_and_lessons(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_loops(user)
        view = user.app.view
        loop = next(loop for loop in view.snapshot.loops.values() if loop.injected and loop.iterations)
        pattern = view.loop_patterns(loop.id).injected_ids[0]
        await at(user, iteration_key(loop.id, len(loop.iterations) - 1))
        assert loop.iterations[-1].action[:30] in details(user)
        await at(user, lesson_key(loop.id, pattern))
        assert pattern_title(view.snapshot.patterns[pattern])[:20] in user.row(lesson_key(loop.id, pattern))
        await user.press("enter")
        await user.arrives("patterns", pattern)
        await user.press("escape")
        await user.arrives("loops")
        assert user.table.cursor_key == lesson_key(loop.id, pattern)
        await user.press("l")
        assert user.table.cursor_key == loop.id


async def test_filters_find_attempts_with_their_rows_and_stuck_sessions(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_loops(user)
        await user.filter("is:attempt outcome:success")
        attempts = user.app.view.snapshot.attempts
        shown = [attempts[parse_key(key).id] for key in user.table.keys if parse_key(key).kind == "attempt"]
        assert shown and {attempt.outcome.value for attempt in shown} == {"success"}
        assert {home_of(user, one.task_id) for one in shown} <= set(user.table.keys)
        assert "session" not in kinds(user)
        await user.filter("is:escalated")
        assert kinds(user).count("session") == len(user.app.view.escalations())
        await user.press("escape")
        assert "attempt" not in kinds(user)

        first = user.table.keys[0]
        await user.sees("▲ asks", "1 needs you")
        await at(user, first)
        assert "asked 58 m ago" in details(user)
        await user.filter("is:stuck")
        assert first in user.table.keys


async def test_every_tab_of_every_row_can_be_read(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(100, 40)) as user:
        place = await in_loops(user)
        for key in user.table.keys:
            place._unfolded[key] = None
        await at(user, attempt_key(f"{ENDED}.1"))
        for key in user.table.keys:
            for tab in place.tabs(key):
                if parse_key(key).kind != "earlier":
                    assert "".join(line.plain for line in place.details(key, tab)).strip(), (key, tab)
        for tab in place.tabs(user.table.cursor_key):
            assert details(user).strip(), tab
            await user.press("right_square_bracket")
        assert set(kinds(user)) >= {"loop", "attempt", "session", "iteration", "lesson"}


async def test_links_lead_from_an_attempt_and_back(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("type:anti")
        place = await in_loops(user)
        links, attempts = place.links, user.app.view.snapshot.attempts.values()
        attempt = next(one for one in attempts if links.patterns_of(one) and links.reflections_of(one))
        key, patterns, wanted = attempt_key(attempt.id), links.patterns_of(attempt), links.reflections_of(attempt)[0].id
        await at(user, key)
        await user.place.run_id("to_patterns")
        await user.settled()
        await user.arrives("patterns")
        assert user.table.cursor_key == patterns[0]
        await user.press("escape")
        await user.arrives("loops", key)
        assert user.app.user_state.get_here("patterns-filter") == "type:anti"
        await user.press("enter", "right")
        player = user.place
        assert isinstance(player, ReplayScreen)
        await user.until(lambda: player.position == 1, "the second action")
        await user.place.run_id("to_reflections")
        await user.settled()
        await user.arrives("reflections", wanted)
        assert user.place.effect("back") == "back to Replay"
        await user.press("escape")
        await user.until(
            lambda: isinstance(user.place, ReplayScreen) and user.place.position == 1, "the player at its place"
        )
        await user.press("escape")
        await user.go("patterns")
        assert user.place.query_one(FilterLine).text == "type:anti"


async def test_records_of_an_agent_are_shown_at_once(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await in_loops(user)
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
        await in_loops(user)
        earlier = earlier_key(f"attempt/{task_key(RUNNING)}")
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
        place = await in_loops(user)
        await user.press("v")
        assert place.has_class("-detail") and "v show list" in user.key_line()
        await user.press("v")
        assert not place.has_class("-detail") and user.in_focus(user.table)
        place.go_to(task_key("task-gone"))
        await user.pilot.pause()
        assert user.toasts()[-1] == "Task task-gone is no longer in Loops"


async def test_the_filter_finds_attempts_by_the_output_of_their_actions(sample: Path, home: Path) -> None:
    log = sample / ".aiwg/ralph/tasks" / ENDED / "attempts/002/actions.jsonl"
    log.write_text(log.read_text() + json.dumps({"type": "bash", "output": "saw a quetzal\x1b[31m [b]fly"}) + "\n")
    async with open_dashboard(sample, home) as user:
        await in_loops(user)
        await user.filter("quetzal fly")
        await user.until(lambda: user.table.cursor_key == attempt_key(f"{ENDED}.2"), "the cursor on the attempt")
        await user.settled()
        assert kinds(user)[-1] == "attempt" and len(user.table.keys) == 2
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
        await in_loops(user)
        with monkeypatch.context() as failing:
            failing.setattr(user.app.project.index, "search", Mock(side_effect=KeyError))
            await user.filter("lock")
            await user.sees("the search failed (KeyError); the log has details")
        await user.filter("lock order")
        await user.settled()
        assert "failed (KeyError)" not in user.text()


async def test_the_cursor_is_on_the_first_match_of_the_filter_of_the_last_run(sample: Path, home: Path) -> None:
    app = make_app(sample, home, place="loops")
    app.user_state.set_here("loops-filter", "is:attempt")
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.progress is None, "the first load")
        await user.settled()
        key = user.table.cursor_key or ""
        assert (parse_key(key).kind, kinds(user).index("attempt")) == ("attempt", user.table.cursor)


async def test_the_rows_of_a_large_project_are_selected_in_a_thread(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_dashboard(sample, home, place="loops") as user:
        known = list(user.table.keys)
        monkeypatch.setattr("tui.screens.loops.MOST_AT_ONCE", 0)
        await user.filter("is:attempt")
        await user.until(lambda: "attempt" in kinds(user), "the attempts")
        await user.settled()
        key = user.table.cursor_key or ""
        assert kinds(user).index("attempt") == user.table.cursor, key
        user.place.go_to(attempt_key(f"{ENDED}.2"))
        await user.until(lambda: user.table.cursor_key == attempt_key(f"{ENDED}.2"), "the attempt")
        await user.press("left", "left", "escape")
        await user.until(lambda: list(user.table.keys) == known, "all rows again")


def session_lines(session: DebugSession, view: ProjectState) -> list[Content]:
    return document_lines(runs(view, session), view.now, ASCII)


def lesson_lines(session: DebugSession, view: ProjectState) -> list[Content]:
    return document_lines(lessons(view, session), view.now, ASCII)


@pytest.fixture
def view(tmp_path: Path) -> ProjectState:
    """An empty project."""
    return Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view


def test_every_field_of_a_session_is_shown(view: ProjectState) -> None:
    full = make_full_session()
    ((found,), _) = read_sessions(SESSION_FILE.format("told-id"), full)
    view = replace(view, snapshot=Snapshot(debug_sessions={found.id: found}))
    text = "\n".join(line.plain for line in (*session_lines(found, view), *lesson_lines(found, view)))
    fields = set(re.findall(r"told-[\w-]+", json.dumps(full))) - {"told-id"}  # the list names it by its file
    assert {field for field in fields if field not in text} == set()
    for value in ("11 of 19", "3 failed", "4 errors", "1 skipped", "62 %", "89 %", "iteration 9", "81 %", "wont fix"):
        assert value in text


def test_runs_of_unchanged_code_and_sessions_without_runs_are_marked(view: ProjectState) -> None:
    executed = [make_run(code_hash=code) for code in ("a", "a", "b")]
    lines = [line.plain for line in session_lines(make_session("s", *executed), view)]
    environments = [line for line in lines if line.strip().startswith("with:")]
    assert ["unchanged since the run before" in line for line in environments] == [False, True, False]
    assert "Nothing has been run" in session_lines(make_session("s", executions=()), view)[-1].plain


def test_fixes_show_how_often_they_worked_over_all_sessions(view: ProjectState) -> None:
    cause = "null_undefined_access"
    held = make_session("s0", make_run(category=cause, fixed=True), lessons=(make_lesson(),))
    sessions = sessions_by_id(
        held, *(make_session(f"s{number}", make_run(category=cause, fixed=False)) for number in (1, 2, 3))
    )
    snapshot = Snapshot(debug_sessions=sessions)
    view = replace(view, snapshot=snapshot, texts=Texts(snapshot))
    assert "worked in 1 of 4 (25 %)" in "\n".join(line.plain for line in lesson_lines(held, view))
    assert "did not help" in "\n".join(line.plain for line in session_lines(sessions["s1"], view))
