"""Markdown whose structure is ours, whatever the files say."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.config.paths import ProjectPaths
from core.episodes.export import MAX_LISTED, attempt_markdown, fenced, history_markdown, reflections_markdown
from core.episodes.history import read_attempt, read_whole_history
from tests.core.cli.conftest import TREES

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
"""


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


@settings(max_examples=30, deadline=None)
@example(text=HOSTILE)
@given(text=LINES.map("\n".join))
def test_hostile_text_changes_no_structure(project: Path, text: str) -> None:
    paths = hostile(project, f"x{text}x")
    markdown = history_markdown(read_whole_history(paths, "t"))
    assert structure(markdown) == [
        "# Task t",
        "### Summary",
        "### Milestones",
        "## Attempt 1",
        "### Plan",
        "code",
        "### Milestones",
        "### Actions",
        "## Reflection on Attempt 1",
    ]
    markdown = attempt_markdown(read_attempt(paths, "t", 1))
    found = structure(markdown)
    assert found[:4] == ["# Task t", "## Attempt 1", "### Plan", "code"]
    assert found[4:6] == ["### Milestones", "### Actions"]
    assert found[6].startswith("#### 1. ")
    assert found[7:9] == ["code", "code"]
    assert found[9].startswith("#### 2. edit")
    assert found[10:] == ["code", "## Reflection on Attempt 1"]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", markdown)


def test_a_summary_lists_its_learnings_on_a_line_each() -> None:
    whole = read_whole_history(ProjectPaths(TREES / "spec-examples"), "task-001")
    learnings = '[{"attempt_id":1,"learning":"types first","draft":true},{"passed":3,"left":null},"by hand"]'
    told = dataclasses.replace(whole.task, summary=(("learnings", learnings), ("best", ""), ("kept", "[x")))
    markdown = history_markdown(dataclasses.replace(whole, task=told))
    lines = "- learnings:\n  - attempt 1: types first (draft)\n  - passed 3\n  - by hand\n- kept: [x\n"
    assert f"### Summary\n\n{lines}" in markdown


def test_reflections_are_in_the_template_of_the_document() -> None:
    history = read_whole_history(ProjectPaths(TREES / "spec-examples"), "task-001")
    assert reflections_markdown(history.reflections).startswith(REFLECTION)
    of_task = reflections_markdown([replace(history.reflections[0], attempt=None)])
    assert of_task.startswith("## Reflection on the task\n\n**Observation**")
    assert REFLECTION in history_markdown(history)


def test_of_many_actions_a_whole_history_lists_the_last(tmp_path: Path) -> None:
    inside = tmp_path / ".aiwg/ralph/tasks/t/attempts/001"
    inside.mkdir(parents=True)
    (inside / "actions.jsonl").write_text('{"type": "read"}\n' * (MAX_LISTED + 2))
    text = history_markdown(read_whole_history(ProjectPaths(tmp_path), "t"))
    assert (
        "### Actions\n\n*2 earlier actions left out; the export of this attempt alone has them.*\n\n- 3. read" in text
    )
    assert text.count("read") == MAX_LISTED


def test_an_attempt_alone_tells_all_that_came_of_an_action(tmp_path: Path) -> None:
    inside = tmp_path / ".aiwg/ralph/tasks/t/attempts/001"
    inside.mkdir(parents=True)
    long = "\n".join(f"line {number}" for number in range(40))
    action = {"type": "bash", "params": {"command": "make\ninstall"}, "output": long, "error": "exit 2"}
    (inside / "actions.jsonl").write_text(json.dumps(action) + "\n")
    text = attempt_markdown(read_attempt(ProjectPaths(tmp_path), "t", 1))
    for told in ("make\ninstall", long, "exit 2"):
        assert f"\n```\n{told}\n```\n" in text


def test_an_action_is_headed_by_what_it_was_about(tmp_path: Path) -> None:
    inside = tmp_path / ".aiwg/ralph/tasks/t/attempts/001"
    inside.mkdir(parents=True)
    actions = (
        {"type": "bash", "params": {"description": "see", "cwd": ".", "command": "npm test"}, "success": False},
        {"type": "grep", "params": {"path": "src", "pattern": "AuthConfig"}},
        {"type": "read", "params": {"limit": 9, "file_path": "src/auth.ts"}},
    )
    (inside / "actions.jsonl").write_text("".join(json.dumps(action) + "\n" for action in actions))
    lines = attempt_markdown(read_attempt(ProjectPaths(tmp_path), "t", 1)).splitlines()
    assert [line for line in lines if line.startswith("####")] == [
        "#### 1. bash npm test: failed",
        "#### 2. grep AuthConfig: not told",
        "#### 3. read src/auth.ts: not told",
    ]


@pytest.mark.parametrize("run", ["`", "```", "```````"])
def test_nothing_inside_ends_a_block_of_code(run: str) -> None:
    first, *_, last = fenced(f"a\n{run}\nb", "diff").splitlines()
    assert first == f"{last}diff"
    assert len(last) > len(run)
