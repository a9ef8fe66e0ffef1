from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.command import CommandPalette
from textual.widgets import Input

from core.base.errors import DamagedError, Unwritable
from core.base.paths import ProjectPaths
from core.base.settings import ExtractionSettings, Settings
from core.cli.demo.sample import copy_sample
from core.decisions.case import Decided
from core.decisions.commands import Note, Promote
from core.decisions.curator import Curator
from core.files.file_access import protect, release
from core.files.user_files import cache_path
from core.index.project_state import ProjectState
from core.index.scores import find_board
from core.learning.scoreboard import Scoreboard
from core.project.kept_project import KeptProject
from core.project.project import Project
from core.records.decisions import Verb
from core.records.snapshot import UNCHECKED, Snapshot
from core.show.work import task_key
from tests.core.project.test_watch_loop import ERROR
from tests.tui.user import NOW, User, make_app, open_dashboard
from tui.app import RalphdeckApp, run
from tui.kit.actions import PLACES, actions_of
from tui.kit.bars import KeyLine, TopBar
from tui.kit.looks import ASCII
from tui.screens import frame, review
from tui.screens.dialogs import AskLine, Confirm, Help
from tui.screens.help import topic_of
from tui.screens.history import WhatIfScreen

ESTABLISHED = "pat-error-unique-violation-007"


def spot(user: User, bar: type[TopBar | KeyLine], text: str) -> tuple[int, int]:
    """Column of a text in a bar."""
    line = user.place.query_one(bar)
    drawn = "".join(segment.text for segment in line.render_line(0))
    return drawn.index(text), 0


# Start


async def test_the_first_frame_is_drawn_before_the_project_is_opened(sample: Path, home: Path) -> None:
    app = make_app(sample, home)
    open_project = app.open_project
    drawn: list[str] = []
    go_on = threading.Event()

    def watched() -> Project:
        drawn.append("\n".join(strip.text for strip in app.screen._compositor.render_strips()))
        go_on.wait(10)
        return open_project()

    app.open_project = watched
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.sees("acme-api", "3 Patterns", "opening…")
        await user.until(lambda: bool(drawn), "the project to be opened")
        assert "acme-api" in drawn[0], "the frame stood before"
        app.post_message(events.Key("3", "3"))
        go_on.set()
        await user.until(lambda: app.is_open and user.place.place == "patterns", "the key typed meanwhile to act")


async def test_a_project_that_cannot_be_opened_ends_the_dashboard(sample: Path, home: Path) -> None:
    app = make_app(sample, home)
    error = Unwritable("no")

    def fail() -> Project:
        raise error

    app.open_project = fail
    async with app.run_test() as pilot:
        await User(app, pilot).until(lambda: app._exit, "the end")
    assert app.opening_error is error


async def test_the_load_shows_its_progress_and_no_screen_calls_the_project_empty_before(
    sample: Path, home: Path
) -> None:
    app = make_app(sample, home)
    go_on = threading.Event()
    project = app.open_project()
    load = project.load

    def late(*arguments: Any) -> ProjectState:
        arguments[0](300, 900)
        go_on.wait(10)
        return load(*arguments)

    project.load = late  # type: ignore[assignment]
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.is_open, "the project to be open")
        await user.sees("acme-api", "opening: 300 of 900 files")
        await user.press("2")
        await user.sees("Still opening.", "Questions appear when all files are read.")
        assert "Nothing to review" not in user.text()
        await user.press("a")
        assert user.toasts()[-1] == "Still opening"
        await user.press("M")
        await user.sees("Still opening. All figures follow when all files are read.")
        assert "No patterns yet" not in user.text()
        go_on.set()
        await user.until(lambda: app.progress is None, "the rest")
        app.clear_notifications()
        await user.until(lambda: "Still opening" not in user.text(), "the figures")
        await user.press("2")
        await user.sees("a yes", "4 sessions running", "live")
        assert "opening" not in user.text()


async def test_records_read_first_are_shown_before_the_rest(sample: Path, home: Path) -> None:
    app = make_app(sample, home)
    go_on = threading.Event()
    project = app.open_project()
    load = project.load

    def slow(
        progress: Callable[[int, int], None] | None = None, publish: Callable[[ProjectState], None] | None = None
    ) -> ProjectState:
        assert publish is not None

        def published(view: ProjectState) -> None:
            publish(view)
            go_on.wait(10)

        return load(progress, published)

    for n in range(250):
        folder = sample / f".aiwg/ralph/loops/ralph-copy-{n:08d}"
        folder.mkdir()
        (folder / "state.json").write_text(json.dumps({"loop_id": folder.name, "task": f"copy {n}"}))
    project.load = slow  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.is_open, "the project to be open")
        await user.until(lambda: 100 <= len(user.table.keys) < 250, "part of the loops")
        assert app.progress is not None
        await user.press("j", "j")
        key = user.table.cursor_key
        go_on.set()
        await user.until(lambda: app.progress is None, "the rest")
        assert user.table.cursor_key == key, "what one looks at stays in place while the rest comes"
        assert user.toasts() == [], "what was there before is no news"


async def test_what_the_last_run_showed_is_drawn_until_it_is_checked(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    last_run = Project(ProjectPaths(sample), Settings(), by="ana", clock=lambda: NOW)
    last_run.load()
    last_run.keep_questions()
    key = next(loop.id for loop in last_run.view.snapshot.loops.values() if loop.directory)
    state = sample / last_run.view.snapshot.loops[key].files[0]
    state.write_text(json.dumps(json.loads(state.read_text()) | {"task": "A task that is new"}))
    app = make_app(sample, home)
    app.open_kept = lambda: KeptProject.open(ProjectPaths(sample), Settings(), "ana", lambda: NOW)
    restored = []

    def restore(snapshot: Snapshot, *rest: Any) -> Scoreboard:
        restored.append(snapshot)
        return find_board(snapshot, *rest)

    monkeypatch.setattr("core.index.scores.find_board", restore)
    forecast: list[datetime | None] = []
    monkeypatch.setattr(review, "compute_outlook", lambda _, view, *rest: forecast.append(view.snapshot.as_of))
    open_project, go_on, check = app.open_project, threading.Event(), threading.Event()
    project = open_project()
    load = project.load

    def slow(*rest: Any) -> ProjectState:
        rest[0](300, 900)
        check.wait(60)
        return load(*rest)

    project.load = slow  # type: ignore[assignment]
    app.open_project = lambda: (go_on.wait(10) and project) or project
    async with app.run_test(size=(200, 40)) as pilot:
        user = User(app, pilot)
        await user.sees("as of 21:00, checking", "2 Review·11")
        assert len(user.table.keys) >= len(last_run.view.snapshot.loops)
        assert not app.is_open
        assert restored == [], "the rows of loops need no scores of patterns"
        await pilot.click(TopBar, offset=spot(user, TopBar, "Patterns"))
        go_on.set()
        await user.until(lambda: app.is_open, "the project to be open")
        await user.sees("as of 21:00, checking: 300 of 900 files")
        assert user.place.place == "loops", "clicks wait until the project is open"
        await user.press("3", "p")
        await user.press("p")
        assert user.toasts() == [UNCHECKED]
        await user.press("2")
        await user.press("n", "n")
        await user.sees(" 3 of ")
        await user.press("3", "?")
        await user.sees("not now: The files are still being checked")
        check.set()
        await user.until(lambda: "still being checked" not in user.text(), "the help after the check")
        assert user.toasts() == []
        await user.press("escape", "2")
        await user.until(lambda: bool(forecast), "forecasts of the answers")
        assert set(forecast) == {None}, "before the check each of them would be a refusal"
        await user.press("4")
        await user.sees("live", "A task that is new")
        assert "as of" not in user.text()
        await user.press("3")
        await user.decides("p")
        assert app.view.snapshot.decisions


async def test_records_that_are_damaged_end_the_app_to_start_again(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setattr("tui.app.DRAW_SECONDS", 30.0)
    Project(ProjectPaths(sample), Settings(), by="ana", clock=lambda: NOW).load()
    index = cache_path(sample, "index")
    with closing(sqlite3.connect(index, isolation_level=None)) as connection:
        connection.execute("UPDATE record SET data = zeroblob(20)")
    app = make_app(sample, home)
    app.open_kept = lambda: KeptProject.open(ProjectPaths(sample), Settings(), "ana", lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        await User(app, pilot).until(lambda: app.is_view_unusable, "an error of the view")
    assert (app.return_code, app.opening_error) == (0, None)
    assert not index.exists()


async def test_a_record_found_damaged_later_ends_the_app_to_start_again(sample: Path, home: Path) -> None:
    app = make_app(sample, home)

    is_found = asyncio.Event()

    def find_damage() -> None:
        is_found.set()
        raise DamagedError("a value of the index is damaged")

    async with app.run_test(size=(120, 40)) as pilot:
        await User(app, pilot).until(lambda: app.is_open and app.view.snapshot.complete, "the records")
        app.screen.call_later(find_damage)
        await is_found.wait()
    assert (app.is_view_unusable, app.return_code) == (True, 0)


@pytest.mark.parametrize(("is_unusable", "views"), [(False, ["kept"]), (True, ["kept", None])])
def test_the_app_starts_again_without_a_view_that_is_unusable(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch, is_unusable: bool, views: list[str | None]
) -> None:
    shown: list[Any] = []

    def show(app: RalphdeckApp) -> None:
        shown.append(app.open_kept())
        app.is_view_unusable = is_unusable and len(shown) == 1

    monkeypatch.setattr(RalphdeckApp, "run", show)
    files: Any = {"state_file": home / "state.json", "keymap_file": home / "keymap.toml"}
    kept: Any = "kept"
    assert run(lambda: pytest.fail(), ProjectPaths(sample), open_kept=lambda: kept, remembered_as="a", **files) == 0
    assert shown == views


async def test_a_change_that_arrives_while_the_app_closes_is_ignored(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        app, before = user.app, user.app.view
    assert not app.screen_stack
    app._changed()
    assert app.view is before


async def test_quitting_during_the_load_does_not_wait(sample: Path, home: Path) -> None:
    app = make_app(sample, home)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
    assert app.return_code == 0


async def test_an_empty_project_explains_what_to_do_and_fills_when_files_appear(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with open_dashboard(project, home) as user:
        await user.sees("not set up here", "No session yet")
        for place, text in (
            ("patterns", "No session yet"),
            ("review", "Nothing to review."),
            ("reflections", "No reflections yet"),
            ("log", "No decisions yet"),
        ):
            await user.go(place)
            await user.sees(text)
        source = tmp_path / "source"
        copy_sample(source, NOW)
        shutil.move(source / ".aiwg", project / ".aiwg")
        await user.until(lambda: len(user.app.view.snapshot.patterns) == 40, "the patterns")
        await user.sees("promote")
        await user.go("loops")
        await user.sees("● running", "live")


async def test_a_removed_project_folder_can_return(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        shutil.move(sample / ".aiwg", sample / "away")
        await user.until(lambda: not user.app.view.snapshot.loops, "everything gone")
        await user.sees("No session yet", "not set up here")
        shutil.move(sample / "away", sample / ".aiwg")
        await user.until(lambda: len(user.app.view.snapshot.loops) == 17, "everything back")


# Frame, help, palette, keys


async def test_the_top_bar_counts_each_snapshot_once(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(snapshot: Snapshot) -> frame.Counts:
        counted.append(snapshot.number)
        return frame.Counts(1, 0, 0)

    monkeypatch.setattr(frame, "count_status", count)
    async with open_dashboard(sample, home) as user:
        for place in PLACES:
            user.app.top_items(place)
        assert counted and len(counted) == len(set(counted))


async def test_everything_works_with_the_mouse(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await user.pilot.click(TopBar, offset=spot(user, TopBar, "Patterns"))
        await user.arrives("patterns")
        await user.settled()
        await user.pilot.click(user.table, offset=(10, 5))
        assert user.table.cursor == 4
        await user.pilot.click(KeyLine, offset=spot(user, KeyLine, "filter"))
        assert isinstance(user.app.focused, Input)
        await user.press("escape")
        await user.pilot.click(user.table, offset=(10, 3), times=2)
        await user.until(lambda: not user.table.display, "the details alone")
        await user.press("escape")
        await user.pilot.click(KeyLine, offset=spot(user, KeyLine, "help"))
        assert isinstance(user.app.screen, Help)


async def test_the_help_lists_every_action_of_each_place_with_its_keys(sample: Path, home: Path) -> None:
    (home / "keymap.toml").write_text('copy = "f8"\n')
    async with open_dashboard(sample, home, size=(140, 60)) as user:
        for place in PLACES:
            await user.go(place)
            lines = {line.name: line for section in topic_of(user.place).sections for line in section.lines}
            assert {action.id: lines[action.id].text for action in actions_of(place)} == {
                action.id: action.tooltip for action in actions_of(place)
            }
            assert lines["copy"].keys == "f8"
        await user.press("f1")
        assert isinstance(user.app.screen, Help)
        await user.sees("f8 ", "copy ")
        await user.press("escape")
        assert user.place.place == place


async def test_the_palette_finds_actions_and_records(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:

        async def find(text: str) -> None:
            await user.press("ctrl+p")
            await user.until(lambda: isinstance(user.app.screen, CommandPalette), "the palette")
            await user.paste(text)
            await user.press("enter")  # at once: what fitted before is not taken

        await find("Go to Log")
        await user.arrives("log")
        await find("try other thresholds")
        await user.until(lambda: isinstance(user.app.screen, WhatIfScreen), "What-if over Log")
        await user.press("q")
        await find(ESTABLISHED)
        await user.arrives("patterns", ESTABLISHED)
        await find("task-001")
        await user.arrives("loops", task_key("task-001"))
        await find("view: never used")
        await user.arrives("patterns")
        await user.sees("uses:0 -is:quarantined")


async def test_keys_of_the_keymap_work_and_are_shown_and_wrong_lines_are_reported(sample: Path, home: Path) -> None:
    (home / "keymap.toml").write_text('promote = "f6"\ndeprecate = \n')
    async with open_dashboard(sample, home, place="patterns") as user:
        assert any("keymap.toml line 2" in toast for toast in user.toasts())
        user.place.go_to(ESTABLISHED)
        await user.pilot.pause()
        assert "f6 promote" in user.key_line()
        before = len(user.app.view.snapshot.decisions)
        await user.decides("p")
        assert len(user.app.view.snapshot.decisions) == before
        await user.decides("f6")
        assert len(user.app.view.snapshot.decisions) == before + 1
        assert len([toast for toast in user.toasts() if "promoted" in toast]) == 1, "own decisions are reported once"


async def test_control_c_copies_a_selection_and_quits_also_from_a_dialog(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.press("g", "k", "pageup")
        assert not user.toasts() and user.table.cursor == 0, "a movement that leads nowhere is silent"
        await user.press("t")
        await user.press("ctrl+c")
        assert user.app.is_running and user.app.clipboard
        await user.press("j", "ctrl+c")
        assert user.app.is_running, "another field, another text"
        await user.press("escape")
        await user.go("patterns")
        user.place.go_to(ESTABLISHED)
        await user.pilot.pause()
        await user.press("d")
        assert isinstance(user.app.screen, AskLine)
        await user.pilot.press("ctrl+c")
        await user.until(lambda: user.app._exit, "the end")


async def test_undo_after_a_decision_undoes_that_one(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        user.place.go_to(ESTABLISHED)
        await user.settled()
        before = user.app.view.snapshot.decisions
        assert before[-1].by != "ana", "the newest decision is another's"
        async with user.engine_held():
            for key in ("p", "u", "p", "u", "u"):
                user.app.post_message(events.Key(key, key))
            await user.until(lambda: bool(user.app._pending_undos), "u to wait for the decision")
        await user.until(lambda: user.app.key_queue.is_empty, "all to have acted")
        await user.settled()
        made = user.app.view.snapshot.decisions[len(before) :]
        assert [one.verb.value for one in made] == ["promote", "undo", "promote", "undo"]
        assert [one.subject for one in made[1::2]] == [made[0].id, made[2].id]
        assert isinstance(user.app.screen, Confirm), "the third u would take back what another decided, and asks"


async def test_every_action_can_be_run(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    done: set[tuple[str, object]] = {("quit", RalphdeckApp.action_quit), ("theme", RalphdeckApp.action_theme)}
    async with open_dashboard(sample, home) as user:
        for place in PLACES:
            for action in actions_of(place):
                if user.app.screen.id != place:
                    user.app.go(place)
                    await user.pilot.pause()
                name = f"action_{action.command.partition('.')[2] or action.id}".partition("(")[0]
                code = getattr(type(user.place), name, None) or getattr(RalphdeckApp, name, None)
                if (action.id, code) in done:
                    continue  # it is the same on an earlier screen
                done.add((action.id, code))
                await user.place.run_id(action.id)
                await user.pilot.pause()
                while len(user.app.screen_stack) > 1:
                    user.app.pop_screen()
                    await user.pilot.pause()
        await user.settled()
        assert user.app._exception is None


# What is kept, and what happens elsewhere


async def test_filter_theme_and_glyphs_are_saved(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await user.go("patterns")
        await user.filter("type:error")
        await user.press("T", "A")
        theme = user.app.theme
        await user.sees("Theme: ")
    async with open_dashboard(sample, home, remembers=True) as user:
        await user.go("patterns")
        assert user.app.theme == theme != "dark"
        assert user.app.glyphs is ASCII
        assert 0 < len(user.table.keys) < 40, "the filter of the last run"


async def test_every_screen_is_drawn_in_a_theme_and_a_screen_in_every_theme(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), theme="light") as user:
        for place, theme in zip(PLACES, cycle(user.app.themes), strict=False):
            user.app.use_theme(theme)
            assert user.app.theme == theme
            user.app.go(place)
            await user.settled()
            assert user.place.place == place
            assert PLACES[place][1] in user.text().splitlines()[0]


async def test_no_key_decides_in_a_read_only_project(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_dashboard(sample, home) as user:
        monkeypatch.setattr(user.app.project, "is_readonly", True)
        protect(sample / ".aiwg")
        before = len(user.app.view.snapshot.decisions)
        for place in ("patterns", "review", "log", "loops", "reflections"):
            await user.go(place)
            for action in actions_of(place):
                if action.group == "Decide":
                    assert "Read-only" in (user.place.reason_against(action.id) or ""), action.id
        await user.sees("read-only")
        user.app.decide(Promote(ESTABLISHED))
        await user.settled()
        assert any("read-only: nothing is written" in toast for toast in user.toasts())
        assert len(user.app.view.snapshot.decisions) == before
        await user.go("metrics")
        assert user.place.reason_against("screenshot") is None
        monkeypatch.setattr(type(user.app), "is_web", True)
        for writing in ("export", "screenshot"):
            assert "a browser session cannot write files" in (user.place.reason_against(writing) or "")
        release(sample / ".aiwg")


async def test_a_decision_right_before_quitting_is_written(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        async with user.engine_held():
            for remark in ("one", "two"):
                user.app.decide(Note(ESTABLISHED, text=f"remark {remark}"))
            user.app.engine.stop()
        await user.press("q")
    ledger = (sample / ".aiwg/ralph/shared/curation/ledger.jsonl").read_text()
    assert "remark one" in ledger
    assert "remark two" in ledger


async def test_markup_in_files_is_text_on_the_screen(sample: Path, home: Path) -> None:
    hostile = "[@click=app.quit]x[/] [b]bold[/b] \x1b]0;owned\x07"
    folder = sample / ".aiwg/ralph/loops/ralph-hostile-00000000"
    folder.mkdir()
    (folder / "state.json").write_text(
        json.dumps({"loop_id": folder.name, "task": hostile, "status": "running", "started_at": "2026-11-21T20:59:59Z"})
    )
    async with open_dashboard(sample, home) as user:
        user.place.go_to(folder.name)
        await user.pilot.pause()
        await user.sees("[@click=app.quit]x[/] [b]bold[/b]")
        assert "\x1b" not in user.text()
        await user.press("i")
        await user.arrives("context")
        await user.settled()
        assert not user.app._exit


async def test_notices_are_in_the_footer_on_every_screen_and_listed_with_the_findings(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await user.settled()
        above = user.text().splitlines()[:-1]
        for n in range(9):
            user.app.say(f"notice {n}")
        user.app.notify("from Textual", severity="warning")
        await user.sees("from Textual")
        assert [text[-1] for text in user.toasts()] == ["8", "l"]
        assert user.text().splitlines()[:-1] == above
        assert user.key_line().startswith(" from Textual |  notice 8 |  ")
        assert user.key_line().endswith("? help ")
        await user.go("patterns")
        assert "from Textual" in user.key_line()
        await user.press("F")
        await user.sees("Newest notices of this session", "notice 3")
        assert "from Textual" in user.key_line()


async def test_a_new_theme_is_on_all_rows_also_of_lists_that_were_not_in_front(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="loops") as user:
        await user.settled()
        await user.go("patterns")
        for _ in range(2):
            await user.press("T")
            await user.press("j", "j")
            for place in ("patterns", "loops"):
                await user.go(place)
                ground = {str(user.table.visual_style.rich_style.bgcolor)}
                rows = [user.table.render_line(y) for y in range(8, 12)]
                assert {str(s.style.bgcolor) for row in rows for s in row if s.style is not None} == ground
            await user.go("patterns")


async def test_undo_works_after_a_failed_decision(sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_options: object) -> Decided:
        raise ValueError("a bug")

    async with open_dashboard(sample, home, place="patterns") as user:
        user.place.go_to(ESTABLISHED)
        with monkeypatch.context() as patch:
            patch.setattr(Curator, "decide", broken)
            user.app.decide(Promote(ESTABLISHED))
            await user.until(lambda: any("a bug" in toast for toast in user.toasts()), "that it failed")
        await user.decides("p")
        await user.press("u")
        await user.settled()
        assert [one.verb.value for one in user.app.view.snapshot.decisions[-2:]] == ["promote", "undo"]


# Unattended extraction

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


async def test_the_dashboard_does_not_extract_if_the_setting_or_readonly_forbids_it(sample: Path, home: Path) -> None:
    for settings, readonly in ((None, True), (OFF, False)):
        async with open_dashboard(sample, home, extracts=True, settings=settings, readonly=readonly) as user:
            before = extracted(user)
            key = end_a_loop(user, sample)
            await user.until(lambda: user.app.view.loop(key).status.ended, "the end of the loop")  # noqa: B023
            await user.settled()
            assert user.app.engine._extraction is None
            assert extracted(user) == before
