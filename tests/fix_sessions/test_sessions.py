"""The recorded sessions fit together: their edits apply, and their labels name the failure that was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.agents.agent_table import Moment
from core.agents.hooks.events import parse_event
from tests.fix_sessions.payloads import CONVERSATIONS, JsonObject, convert_session
from tests.fix_sessions.sessions import read_sessions

SESSIONS = read_sessions()
FIXES = [session for session in SESSIONS if session.label.learns]


def test_edits_replace_a_text_that_the_file_has_once() -> None:
    for session in SESSIONS:
        files = dict(session.files)
        for step in session.steps:
            if step.edit and not step.error:
                assert files[step.edit].count(step.old) == 1
                files[step.edit] = files[step.edit].replace(step.old, step.new)
            elif step.write:
                files[step.write] = step.content


def test_a_fix_has_a_labelled_failure_and_ends_with_a_passing_command() -> None:
    for session in FIXES:
        assert session.first_failure is not None, session
        assert session.label.error_line, session
        assert session.label.error_line in session.first_failure.output, session
        assert [step.exit for step in session.steps if step.run][-1] == 0, session
        assert session.cause and session.label.must and session.label.ideal, session


def test_all_sessions_without_a_lesson_have_a_reason() -> None:
    assert all(session.label.kind and not session.cause for session in SESSIONS if not session.label.learns)


def test_the_agents_of_the_sessions_are_all_whose_hooks_are_connected() -> None:
    assert {session.agent for session in SESSIONS} == set(CONVERSATIONS)


@pytest.mark.parametrize("form", CONVERSATIONS)
def test_events_are_those_of_the_agent_and_begin_and_end_a_session(form: str, tmp_path: Path) -> None:
    sent: list[JsonObject] = []
    conversation = CONVERSATIONS[form]("s1", tmp_path, tmp_path / "s1.jsonl", sent.append)
    conversation.play(next(session for session in SESSIONS if session.agent == form))
    events = [parse_event(conversation.agent, json.dumps(payload).encode()) for payload in sent]
    moments = [event.moment for event in events if event is not None]
    assert len(moments) == len(sent)
    assert moments[:2] == [Moment.START, Moment.PROMPT]
    assert moments[-2:] == [Moment.TURN_END, Moment.SESSION_END]
    assert {event.agent for event in events if event is not None} == {conversation.agent}
    assert len({event.call for event in events if event is not None and event.call}) == moments.count(Moment.TOOL)


def test_a_session_is_converted_only_to_forms_that_are_known() -> None:
    by_name = {session.name: session for session in SESSIONS}
    written, refused = by_name["latin1-names"], by_name["subclass-constructor"]
    assert convert_session(written, "copilot") is None
    converted = convert_session(refused, "gemini")
    assert converted is not None and converted.agent == "gemini"
    assert any(step.error for step in refused.steps) and not any(step.error for step in converted.steps)
    assert convert_session(refused, "claude") == refused
