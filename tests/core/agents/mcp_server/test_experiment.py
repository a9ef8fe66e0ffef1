"""What the experiment holds out of a task at work, no tool gives."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from core.agents.mcp_server.texts import HELD_OUT
from core.base.paths import ProjectPaths
from core.index import experiment
from core.index.experiment import set_share
from core.learning.assignment import Experiment
from core.records.events import ASSIGNED, Event
from core.sources.events import append_assignments
from tests.core.agents.hooks.agents import SimulatedAgent
from tests.core.agents.mcp_server.conftest import LOOP, TASK, Server, text_of
from tests.core.cli.conftest import home

__all__ = ["home"]
PATTERN = "pat-error-type-mismatch-003"
ERROR = "TypeScript error TS2322: Type 'string | null' is not assignable to type 'string'"


@pytest.fixture
def held_out(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server for an experiment that holds the pattern out of the task."""
    set_share(0.5)
    secret = next(
        secret
        for secret in (b"%d" % number for number in count())
        if (one := Experiment(0.5, secret)).holds_out(one.key_of_task(TASK, server.now), PATTERN)
    )
    monkeypatch.setattr(experiment, "secret_of_project", lambda *_: secret)
    return server


async def test_no_tool_gives_what_is_held_out_of_the_task_at_work(server: Server, home: Path) -> None:
    async with server.client() as agent:
        text = text_of(await agent.call("loop_context", task=TASK))
        assert PATTERN in str(await agent.data("search_patterns", query="type mismatch"))
    assert "type" in text


async def test_assignments_are_logged_before_the_injection(held_out: Server) -> None:
    async with held_out.client() as agent:
        found = await agent.data("loop_context", task=TASK, loop=LOOP)
    assert PATTERN not in [one["id"] for one in found["patterns"]]
    events = [one for one in held_out.project.view.snapshot.events if one.by.startswith("mcp:")]
    kinds = [one.kind for one in events]
    assert kinds.index("injected") == kinds.count(ASSIGNED) > 1
    (event,) = (one for one in events if one.kind == ASSIGNED and one.pattern_id == PATTERN)
    assert event.trial is not None and event.trial.is_held_out and event.loop_id == LOOP


async def test_a_hook_that_assigns_at_the_same_time_gets_the_same_arms_and_one_record(
    held_out: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = SimulatedAgent(held_out.project.project, at=held_out.now)
    monkeypatch.setattr("core.agents.hooks.answer.start_background", lambda _: None)
    contexts: list[str] = []

    def append_after_the_hook(paths: ProjectPaths, *events: Event) -> None:
        contexts.append(agent.prompt(TASK))
        append_assignments(paths, *events)

    monkeypatch.setattr("core.project.project.append_assignments", append_after_the_hook)
    async with held_out.client() as client:
        found = await client.data("loop_context", task=TASK, loop=LOOP)
    events = [one for one in held_out.project.view.snapshot.events if one.kind == ASSIGNED]
    arms = {one.pattern_id: one.trial.is_held_out for one in events if one.trial is not None}
    assert len(arms) == len(events) > 1 and arms[PATTERN], "each is recorded once"
    assert contexts[0] and not any(arms.get(one["id"]) for one in found["patterns"])


async def test_other_tools_do_not_give_it_while_the_task_is_open(held_out: Server) -> None:
    async with held_out.client() as agent:
        await agent.data("loop_context", task=TASK, loop=LOOP)
        other = await agent.data("loop_context", task="Type error in another file")
        found = await agent.data("search_patterns", query="type mismatch")
        for data in (other, found):
            assert PATTERN not in [one["id"] for one in data["patterns"]]
        assert HELD_OUT in text_of(await agent.call("explain_pattern", pattern_id=PATTERN))
        fix = await agent.data("known_fix", message=ERROR, error_type="TypeError")
        assert PATTERN not in [one["origin"] for one in fix["fixes"]]
        held_out.wait(days=2)
        assert HELD_OUT not in text_of(await agent.call("explain_pattern", pattern_id=PATTERN))
