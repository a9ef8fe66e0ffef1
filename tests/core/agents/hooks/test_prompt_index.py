"""Tasks of the first prompts of sessions are remembered, whatever the clock and the IDs are."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from core.agents.hooks.events import digest
from core.agents.hooks.sessions import MAX_FIRST_PROMPTS as MAX_PROMPTS
from core.agents.hooks.sessions import PromptTask, find_prompt_task, remember_prompt_task
from core.base.paths import ProjectPaths
from tests.core.agents.hooks.agents import START


def test_a_prompt_is_remembered_after_the_clock_was_years_ahead(project: ProjectPaths) -> None:
    task = PromptTask("task-001", "s1", START)
    remember_prompt_task(project, digest("a"), task)
    remember_prompt_task(project, digest("b"), PromptTask("task-002", "s2", START.replace(year=2099)))
    remember_prompt_task(project, digest("c"), PromptTask("task-003", "s3", START))
    assert find_prompt_task(project, digest("a"), START + timedelta(hours=1)) == task
    assert find_prompt_task(project, digest("b"), START) is None


def test_a_prompt_is_forgotten_after_a_day(project: ProjectPaths) -> None:
    remember_prompt_task(project, digest("a"), PromptTask("task-001", "s1", START))
    assert find_prompt_task(project, digest("a"), START + timedelta(hours=25)) is None


def test_the_newest_prompts_are_kept_if_long_ids_of_sessions_fill_the_file(project: ProjectPaths) -> None:
    file = project.sessions / "prompts.json"
    project.sessions.mkdir()
    old = {digest(str(n)): {"task": f"task-{n}", "session": "s" * 430, "at": START} for n in range(MAX_PROMPTS)}
    file.write_bytes(msgspec.json.encode(old))
    newest = PromptTask("task-new", "\0" * 500, START)
    remember_prompt_task(project, digest("new"), newest)
    assert find_prompt_task(project, digest("new"), START) == newest
    assert find_prompt_task(project, digest(str(MAX_PROMPTS - 1)), START) is not None
    assert file.stat().st_size < 1 << 18
