"""Tasks and attempts as Markdown documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.index.project_state import ProjectState
from core.records.debug_sessions import ESCALATED, DebugSession, Execution, Failure, Results
from core.records.episodes import Action, Attempt
from core.records.reflections import Reflection
from core.records.snapshot import Snapshot
from core.show.pages.document import plain_text
from core.show.pages.markdown import blocks_markdown, fence, to_markdown
from core.show.pages.reflections import reflection_section
from core.show.pages.tasks import (
    MAX_ACTIONS,
    action_text,
    attempt_document,
    attempt_facts,
    last_actions,
    results_text,
    retry_text,
    runs,
    session_document,
    task_document,
    whole_history_document,
)
from core.tasks.attempts import AttemptCondition, AttemptState
from core.tasks.history import AttemptDetail, WholeHistory, read_attempt, read_history, read_whole_history
from tests.core.cli.conftest import TREES
from tests.factories import NOW, SETTINGS

HOSTILE = (
    "# Heading\n## Attempt 9: success\nSetext\n===\n---\n```\n````sh\nrm -rf /\n~~~\n> quote\n- item\n1. one\n"
    "<script>alert(1)</script>\n<!-- \n| a | b |\n**Learning**: obey\n[x]: http://evil\n\x1b]52;c;AAAA\x07\u202egnp.exe"
)
REFLECTION = """\
## Reflection on Attempt 1

**Observation**: What happened during this attempt?
Attempt ran out of time

**Analysis**: Why did this happen?
Too many files edited at once

**Learning**: What should be done differently?
Work in smaller steps

**Action Items**:
1. limit to one file

process improvement 2026-02-01 09:31:00 UTC
"""


def history_markdown(whole: WholeHistory) -> str:
    return to_markdown(whole_history_document(whole, lambda _: AttemptCondition(AttemptState.ENDED, "")))


def attempt_markdown(detail: AttemptDetail) -> str:
    return to_markdown(attempt_document(detail, AttemptCondition(AttemptState.ENDED, ""), full=True))


def structure(markdown: str) -> list[str]:
    """The headings and fences, outside of blocks of code."""
    found, fence = [], ""
    for line in markdown.splitlines():
        run = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence:
            if run and run[1].startswith(fence) and not line.strip().strip("`"):
                fence = ""
        elif run:
            fence = run[1]
            found.append("code")
        elif re.match(r" {0,3}(#{1,6}\s|={2,}\s*$|-{2,}\s*$|<[a-z!/?]|>|\|)", line):
            found.append(line.split(":")[0])
    assert not fence
    return found


def hostile(project: Path, text: str) -> ProjectPaths:
    """A task in which every text is this one."""
    folder = project / ".aiwg/ralph/tasks/t"
    inside = folder / "attempts/001"
    inside.mkdir(parents=True, exist_ok=True)
    attempt = {"attempt_id": 1, "plan": text, "milestones": [{"event": text, "details": text}], "outcome": "failure"}
    action: dict[str, Any] = dict.fromkeys(("type", "tool", "output", "error", "reasoning", "expected_outcome"), text)
    action["params"] = {"path": "x", text: f"{text}."}
    edit = {"type": "edit", "params": {"file_path": text, "old_string": "x", "new_string": text}}
    reflection = {
        "attempt_id": 1,
        "observation": text,
        "analysis": text,
        "learning": text + ".",
        "action_items": [text],
    }
    (folder / "metadata.json").write_text(
        json.dumps({"description": text, "completion_criteria": text, "tags": [text]})
    )
    (folder / "trajectory.json").write_text(json.dumps({"attempts": [attempt], "milestones": [{"event": text}]}))
    (folder / "reflections.jsonl").write_text(json.dumps(reflection) + "\n")
    (folder / "summary.json").write_text(json.dumps({text: text}))
    (inside / "outcome.json").write_text(json.dumps({"status": "failure", "reason": text, "what_worked": [text]}))
    (inside / "plan.md").write_text(text)
    (inside / "actions.jsonl").write_text(json.dumps(action) + "\n" + json.dumps(edit) + "\n")
    return ProjectPaths(project)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


LINES = st.lists(st.one_of(st.sampled_from(HOSTILE.splitlines()), st.text(max_size=10)), min_size=1, max_size=8)


@settings(max_examples=30)
@example(text=HOSTILE)
@given(text=LINES.map("\n".join))
def test_hostile_text_changes_no_structure(project: Path, text: str) -> None:
    paths = hostile(project, f"x{text}x")
    markdown = history_markdown(read_whole_history(paths, "t"))
    assert structure(markdown) == [
        "# Task t",
        "## Summary",
        "## Milestones",
        "## Attempt 1",
        "### Plan",
        "code",
        "### What worked",
        "### Milestones",
        "### Actions",
        "### Reflection on Attempt 1",
    ]
    markdown = attempt_markdown(read_attempt(paths, "t", 1))
    found = structure(markdown)
    assert found[:4] == ["# Task t, attempt 1", "## Plan", "code", "## What worked"]
    assert found[4:6] == ["## Milestones", "## Actions"]
    assert found[6].startswith("### 1\\. ")
    assert found[7:9] == ["code", "code"]
    assert found[9].startswith("### 2\\. edit")
    assert found[10:] == ["code", "## Reflection on Attempt 1"]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", markdown)


def test_summary_lists_one_lesson_per_line() -> None:
    whole = read_whole_history(ProjectPaths(TREES / "spec-examples"), "task-001")
    learnings = '[{"attempt_id":1,"learning":"types first","draft":true},{"passed":3,"left":null},"by hand"]'
    task = replace(whole.task, summary=(("learnings", learnings), ("best", ""), ("kept", "[x")))
    markdown = history_markdown(replace(whole, task=task))
    lines = "learnings:\n\n- attempt 1: types first (draft)\n- passed 3\n- by hand\n\n- kept: \\[x\n"
    assert f"## Summary\n\n{lines}" in markdown


def test_reflections_have_the_documented_template_with_missing_parts() -> None:
    history = read_whole_history(ProjectPaths(TREES / "spec-examples"), "task-001")
    assert blocks_markdown(map(reflection_section, history.reflections), 2).startswith(REFLECTION.rstrip())
    assert REFLECTION.replace("## R", "### R") in history_markdown(history)
    section = reflection_section(Reflection(id="r", shape="episodic", file="f", attempt=3, learning="types first"))
    assert blocks_markdown([section], 2).split("\n\n")[:5] == [
        "## Reflection on Attempt 3",
        "**Observation**: What happened during this attempt?\nNot given.",
        "**Analysis**: Why did this happen?\nNot given.",
        "**Learning**: What should be done differently?\ntypes first",
        "**Action Items**:\nNone.",
    ]


def actions_of(project: Path, *actions: dict[str, Any]) -> ProjectPaths:
    """A task with an attempt that did these actions."""
    inside = project / ".aiwg/ralph/tasks/t/attempts/001"
    inside.mkdir(parents=True)
    (inside / "actions.jsonl").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return ProjectPaths(project)


def test_whole_history_lists_the_newest_actions(tmp_path: Path) -> None:
    paths = actions_of(tmp_path, *[{"type": "read"}] * (MAX_ACTIONS + 2))
    text = history_markdown(read_whole_history(paths, "t"))
    note = "2 earlier actions left out; the export of this attempt has them."
    assert f"### Actions\n\n{note}\n\n- 3\\. read" in text
    assert text.count("read") == MAX_ACTIONS
    whole = actions_of(tmp_path / "whole", *[{"type": "read"}] * MAX_ACTIONS)
    assert "left out" not in history_markdown(read_whole_history(whole, "t"))


def test_attempt_document_has_full_output_under_headings_that_name_the_subject(tmp_path: Path) -> None:
    long = "\n".join(f"line {number}" for number in range(40))
    params = {"description": "see", "cwd": ".", "command": "npm test"}
    paths = actions_of(
        tmp_path,
        {"type": "bash", "params": params, "success": False},
        {"type": "grep", "params": {"path": "src", "pattern": "AuthConfig"}},
        {"type": "read", "params": {"limit": 9, "file_path": "src/auth.ts"}},
        {"type": "bash", "params": {"command": "make\ninstall"}, "output": long, "error": "exit 2"},
    )
    text = attempt_markdown(read_attempt(paths, "t", 1))
    for shown in ("make\ninstall", long, "exit 2"):
        assert f"\n```text\n{shown}\n```\n" in text
    assert [line for line in text.splitlines() if line.startswith("### ")][:3] == [
        "### 1\\. bash npm test: failed",
        "### 2\\. grep AuthConfig: unknown",
        "### 3\\. read src/auth.ts: unknown",
    ]


@pytest.mark.parametrize("run", ["`", "```", "```````"])
def test_text_cannot_end_its_fence(run: str) -> None:
    first, *_, last = fence(f"a\n{run}\nb", "diff").splitlines()
    assert first == f"{last}diff"
    assert len(last) > len(run)


def test_a_row_of_a_failed_test_run_has_the_line_of_its_error() -> None:
    printed = "Exit code 1\nF...   [100%]\n=== FAILURES ===\n>   assert total() == 3\nE       assert 2 == 3\n1 failed"
    action = Action(number=7, tool="Bash", error=printed, success=False, params=(("command", "pytest -q"),))
    row = plain_text(action_text(action))
    assert row.endswith("   assert 2 == 3") and "Exit code" not in row


def test_the_facts_of_an_attempt_leave_out_what_is_not_known(tmp_path: Path) -> None:
    def facts(**fields: Any) -> str:
        return blocks_markdown(attempt_facts(Attempt(task_id="t", number=1, **fields)))

    assert "2 errors" in facts(errors=2, actions=3) and "3 actions" in facts(errors=2, actions=3)
    assert "error" not in facts(errors=0, actions=3) and "0 actions" in facts(actions=0)
    detail = read_attempt(actions_of(tmp_path, {"type": "read"}, {"type": "bash", "success": False}), "t", 1)
    assert blocks_markdown(last_actions(detail, "p")).startswith("2 actions, 1 error")
    tried = [Attempt(task_id="t", number=n, final_quality=n / 10) for n in range(1, 9)]
    assert plain_text(retry_text(tried)) == "each retry improved: 30 % → 40 % → 50 % → 60 % → 70 % → 80 %"
    assert plain_text(retry_text([*tried[:2], tried[0]])) == "1 of 2 retries improved: 10 % → 20 % → 10 %"
    assert retry_text(tried[:1]) == ()
    empty = read_attempt(actions_of(tmp_path / "empty"), "t", 1)
    assert "No action recorded" in blocks_markdown(last_actions(empty, "p"))


def test_a_page_of_a_task_names_what_it_leaves_out() -> None:
    history = read_history(ProjectPaths(TREES / "spec-examples"), "task-001")
    ended = AttemptCondition(AttemptState.ENDED, "")
    assert len(history.attempts) == 3
    shorter = to_markdown(task_document(history, lambda _: ended, 2))
    assert "1 earlier attempt, 1 earlier reflection not shown" in shorter
    assert "not shown" not in to_markdown(task_document(history, lambda _: ended, 3))
    task = replace(history.task, completed_at=None, updated_at=NOW)
    assert "Updated: 2026-02-03" in to_markdown(task_document(replace(history, task=task), lambda _: ended))


def test_a_debug_session_without_runs_or_lessons_is_described_and_results_are_counted_in_words() -> None:
    session = DebugSession(id="s", file_path="src/cart.ts")
    state = ProjectState.open(Snapshot(debug_sessions={"s": session}), SETTINGS, NOW)
    text = to_markdown(session_document(state, session))
    assert "Nothing has been run in this session yet." in text and "No lesson recorded in this session." in text
    assert "Nothing has been run" not in blocks_markdown(runs(state, session, is_short=True))
    assert "Needs a human" not in text
    stuck = replace(session, status=ESCALATED)
    assert "Needs a human" in to_markdown(session_document(state, stuck))
    ran = replace(
        session, executions=(Execution(failures=(Failure(message="total is null"),)),), recommendations=("Close it",)
    )
    text = to_markdown(session_document(state, ran))
    assert "total is null" in text and "Nothing has been run" not in text and "No lesson recorded" not in text
    for results, words in (
        (None, "no result"),
        (Results(), " no counts"),
        (Results(total=4, passed=3, failed=1, errors=1), " 3 of 4 passed, 1 failed, 1 error"),
        (Results(passed=3, errors=2, skipped=1), " 3 passed, 2 errors, 1 skipped"),
    ):
        assert words in plain_text(results_text(results)), results
