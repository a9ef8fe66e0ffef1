"""The table of connections fits the table of agents and the files that agents read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.agent_table import AGENTS
from core.agents.connection_table import CONNECTIONS, fill, start_event


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(item)


def test_every_agent_has_a_connection() -> None:
    assert [*CONNECTIONS] == [*AGENTS]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_with_hook_events_has_a_hook_file_and_the_reverse(agent: str) -> None:
    assert bool(AGENTS[agent].events) == (CONNECTIONS[agent].hooks is not None)
    assert bool(start_event(agent)) == bool(AGENTS[agent].events)


@pytest.mark.parametrize("agent", AGENTS)
def test_entries_for_single_events_name_events_of_the_agent(agent: str) -> None:
    hooks = CONNECTIONS[agent].hooks
    assert hooks is None or hooks.entries.keys() <= AGENTS[agent].events.keys()


@pytest.mark.parametrize("agent", AGENTS)
def test_every_entry_names_the_program(agent: str) -> None:
    connection = CONNECTIONS[agent]
    assert any("{program}" in text for text in texts(connection.mcp.entry))
    for entry in (connection.hooks.entry, *connection.hooks.entries.values()) if connection.hooks else ():
        assert "{hook}" in texts(entry)


def test_an_entry_is_filled_at_every_depth() -> None:
    filled = fill({"a": ["{program}", {"b": "run {program}"}], "c": 1}, program='x "y"')
    assert filled == {"a": ['x "y"', {"b": 'run x "y"'}], "c": 1}
    assert json.dumps(filled)


def test_the_home_folder_of_an_agent_can_be_moved(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CONNECTIONS["claude"].home_folder() == home / ".claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert CONNECTIONS["claude"].home_folder() == tmp_path / "elsewhere"
    assert CONNECTIONS["claude"].resolve("{home}/settings.json", tmp_path)[0] == tmp_path / "elsewhere/settings.json"
