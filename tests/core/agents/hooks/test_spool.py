"""Tool calls that could not be logged are kept for the next event, within limits."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from core.agents.hooks.events import HookEvent, parse_event
from core.agents.hooks.sessions import MAX_SPOOLED, spool_call, spooled_calls
from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from tests.core.agents.hooks.agents import START


def event(command: str = "make", session: str = "s1") -> HookEvent:
    tool = {"tool_name": "Bash", "tool_input": {"command": command}}
    parsed = parse_event(
        "claude", json.dumps({"hook_event_name": "PostToolUse", "session_id": session, **tool}).encode()
    )
    assert parsed is not None
    return parsed


def test_calls_are_read_once_oldest_first(project: ProjectPaths) -> None:
    for minutes in (2, 1):
        assert spool_call(project, event(f"make {minutes}"), START + timedelta(minutes=minutes))
    spool_call(project, event(session="s2"), START)
    calls = list(spooled_calls(project, "s1"))
    assert [call.event for call in calls] == [event("make 1"), event("make 2")]
    assert not list(spooled_calls(project, "s1"))


def test_damaged_and_foreign_files_are_dropped(project: ProjectPaths) -> None:
    spool_call(project, event(), START)
    [file] = project.sessions.glob("*.calls/*")
    foreign = file.read_text().replace('"session":"s1"', '"session":"s2"')
    for name, content in {"1.call": "{", "2.call": "", "3.call": foreign}.items():
        file.with_name(name).write_text(content)
    assert [call.event for call in spooled_calls(project, "s1")] == [event()]
    assert not list(project.sessions.glob("*.calls"))


def test_the_number_and_the_size_of_calls_are_limited(project: ProjectPaths) -> None:
    assert not spool_call(project, event("x" * (2 << 20)), START)
    assert [spool_call(project, event(), START) for _ in range(MAX_SPOOLED + 1)].count(True) == MAX_SPOOLED


def test_nothing_is_written_through_a_linked_folder(project: ProjectPaths, tmp_path: Path) -> None:
    spool_call(project, event(), START)
    [folder] = project.sessions.glob("*.calls")
    list(spooled_calls(project, "s1"))
    folder.symlink_to(tmp_path)
    with pytest.raises(BadInput):
        spool_call(project, event(), START)
