"""Real agents in a small project: connected, given lessons, counted, disconnected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.model_apis import CACHED, INPUT, OUTPUT
from tests.agents.story import PROMPTS, SAME_TASK, TASK, Story

pytestmark = [pytest.mark.agents, pytest.mark.slow]
LESSON = "count a missing discount as zero"
"""Part of the reason that the agent gave, as a context contains it."""


def only_with_hooks(story: Story) -> None:
    """Skip a test for an agent that runs no hook commands."""
    if not story.bench.agent.events:
        pytest.skip("runs no hook commands")


def lesson_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the only lesson of the fix."""
    (row,) = [row for row in rows if row["type"] == "error"]
    return row


def test_connecting_is_accepted_and_changes_nothing_the_second_time(story: Story) -> None:
    assert story.checked == 0
    assert story.connected != story.before
    assert story.connected_again == story.connected


def test_all_hooks_fire_and_none_reports_an_error(story: Story) -> None:
    only_with_hooks(story)
    for session in story.sessions.values():
        assert session.code == 0, session.output
        assert not [hook.errors for hook in session.hooks if hook.errors]
    assert story.sessions["fixed"].events() >= story.bench.agent.events


def test_a_session_that_gives_up_fails_and_one_that_fixes_the_test_succeeds(story: Story) -> None:
    only_with_hooks(story)
    outcomes = {name: task["last_outcome"] for name, task in story.worked_on.items()}
    assert (outcomes["given up"], outcomes["fixed"], outcomes["next"]) == ("failure", "success", "success")
    assert story.loop("given up")["status"] == "failed"
    assert story.loop("fixed")["status"] == "completed"


def test_a_repeated_prompt_is_another_attempt_at_its_task(story: Story) -> None:
    only_with_hooks(story)
    first, again, other = (story.worked_on[name] for name in ("given up", "fixed", "next"))
    assert (first["description"], first["attempts"]) == (TASK, 1)
    assert (again["id"], again["attempts"]) == (first["id"], 2)
    assert (other["description"], other["attempts"]) == (SAME_TASK, 1)


def test_the_fix_is_learned_in_the_words_of_the_agent(story: Story) -> None:
    (row,) = story.learned
    assert (row["type"], row["state"]) == ("error", "candidate")
    assert LESSON in " ".join(story.lesson.split())
    assert "Change cart.py" not in story.lesson


def test_a_similar_prompt_gives_the_lesson_to_the_model(story: Story) -> None:
    requests = story.sessions["next"].bodies()
    given = requests[0] if story.bench.agent.events else requests[1]
    assert LESSON in given, "the first request, or the one after the call of loop_context, has the lesson"


def test_the_same_error_gives_the_known_fix_to_the_model(story: Story) -> None:
    requests = story.sessions["other"].bodies()
    before, after = (1, 2) if story.bench.agent.events else (2, 3)
    assert not any(LESSON in body for body in requests[:before]), "another prompt does not get the lesson"
    assert LESSON in requests[after - 1]


def test_the_use_of_the_lesson_is_counted(story: Story) -> None:
    only_with_hooks(story)
    known, now = lesson_of(story.learned), lesson_of(story.patterns)
    assert now["id"] == known["id"]
    assert now["usage_count"] == known["usage_count"] + 2, "both later sessions used it"
    assert story.loop("next")["injected"] == [now["id"]]
    assert [(use["id"], use["success"]) for use in story.loop("next")["uses"]] == [(now["id"], True)]


def test_each_session_is_a_loop_with_its_tokens(story: Story) -> None:
    for name, session in story.sessions.items():
        row = story.loop(name)
        assert row["source"] == story.bench.name
        assert row["task"] == PROMPTS[name]
        if story.bench.name == "copilot":  # it leaves no file with tokens
            continue
        replies = len(session.requests)
        assert row["usage"]["output"] == OUTPUT * replies
        assert row["usage"]["cache_read"] == CACHED * replies
        assert row["usage"]["input"] in (INPUT * replies, (INPUT + CACHED) * replies)


def test_a_question_makes_no_task(story: Story) -> None:
    row = story.loop("asked")
    assert story.worked_on["asked"] == story.worked_on["other"]
    assert row["badges"] == []


def test_removing_restores_all_files(story: Story) -> None:
    assert story.disconnected == story.before
