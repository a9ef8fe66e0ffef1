"""Debug sessions as details."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from textual.content import Content

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.index.texts import Texts
from core.project.project import Project
from core.records.debug_sessions import DebugSession
from core.records.snapshot import Snapshot
from core.show.pages.debug_sessions import lessons, runs
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
from tui.kit.glyphs import ASCII
from tui.screens.document import document_lines


def session_lines(session: DebugSession, view: ProjectState) -> list[Content]:
    return document_lines(runs(view, session), view.now, ASCII)


def lesson_lines(session: DebugSession, view: ProjectState) -> list[Content]:
    return document_lines(lessons(view, session), view.now, ASCII)


def test_every_field_of_a_session_is_shown(tmp_path: Path) -> None:
    view = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view
    full = make_full_session()
    ((found,), _) = read_sessions(SESSION_FILE.format("told-id"), full)
    view = replace(view, snapshot=Snapshot(debug_sessions={found.id: found}))
    text = "\n".join(line.plain for line in (*session_lines(found, view), *lesson_lines(found, view)))
    fields = set(re.findall(r"told-[\w-]+", json.dumps(full))) - {"told-id"}  # the list names it by its file
    assert {field for field in fields if field not in text} == set()
    for value in ("11 of 19", "3 failed", "4 errors", "1 skipped", "62 %", "89 %", "iteration 9", "81 %", "wont fix"):
        assert value in text


def test_run_of_unchanged_code_is_marked(tmp_path: Path) -> None:
    view = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view
    executed = [make_run(code_hash=code) for code in ("a", "a", "b")]
    lines = [line.plain for line in session_lines(make_session("s", *executed), view)]
    environments = [line for line in lines if line.strip().startswith("with:")]
    assert ["unchanged since the run before" in line for line in environments] == [False, True, False]


def test_a_session_without_runs_is_labelled(tmp_path: Path) -> None:
    view = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view
    assert "Nothing has been run" in session_lines(make_session("s", executions=()), view)[-1].plain


def test_fixes_show_how_often_they_worked_over_all_sessions(tmp_path: Path) -> None:
    view = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view
    cause = "null_undefined_access"
    held = make_session("s0", make_run(category=cause, fixed=True), lessons=(make_lesson(),))
    sessions = sessions_by_id(
        held, *(make_session(f"s{number}", make_run(category=cause, fixed=False)) for number in (1, 2, 3))
    )
    snapshot = Snapshot(debug_sessions=sessions)
    view = replace(view, snapshot=snapshot, texts=Texts(snapshot))
    assert "worked in 1 of 4 (25 %)" in "\n".join(line.plain for line in lesson_lines(held, view))
    assert "did not help" in "\n".join(line.plain for line in session_lines(sessions["s1"], view))
