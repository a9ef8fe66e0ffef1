"""Session records are read with care: they are written by another process, and their texts are untrusted."""

from __future__ import annotations

from typing import Any

import pytest

from core.sources.agent_sessions import parse_agent_sessions

FILE = ".aiwg/ralph/sessions/0123456789abcdef01234567.json"
RECORD: dict[str, Any] = {
    "agent": "claude",
    "id": "s1",
    "started": "2026-11-20T09:00:00Z",
    "last_event": "2026-11-20T09:01:00Z",
    "is_turn_open": True,
    "turns": 2,
    "first_prompt": "Fix it",
    "process": {"pid": 42, "started": "2026-11-20T08:00:00Z", "space": "here"},
}


def test_a_record_has_the_facts_of_a_session() -> None:
    (session,), findings = parse_agent_sessions(FILE, RECORD)
    assert (session.id, session.prompt, session.turns, session.is_turn_open) == ("claude:s1", "Fix it", 2, True)
    assert (session.pid, session.space, findings) == (42, "here", ())


def test_a_prompt_is_shown_without_secrets_and_hidden_characters() -> None:
    secret = "ghp_" + "a1B2" * 9
    (session,), _ = parse_agent_sessions(FILE, RECORD | {"first_prompt": f"Use {secret}\u202e now"})
    assert secret not in session.prompt
    assert "\u202e" not in session.prompt


@pytest.mark.parametrize("value", [[], "x", {}, {"agent": "claude"}, {"agent": "../x", "id": "s1"}, {"id": "s1"}])
def test_a_record_without_an_agent_or_id_is_not_a_session(value: Any) -> None:
    assert parse_agent_sessions(FILE, value)[0] == ()


@pytest.mark.parametrize("field", ["started", "last_event", "ended", "turns", "process", "first_prompt"])
def test_a_damaged_field_leaves_the_session(field: str) -> None:
    (session,), _ = parse_agent_sessions(FILE, RECORD | {field: [{"x": -1}]})
    assert session.id == "claude:s1"
