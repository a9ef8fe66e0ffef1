"""Damaged files, and things that are not files, in the cases of all adapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.sources.adapters.fixtures import NOW, Case, check_damages, check_replacements, open_case
from tests.core.sources.adapters.test_shared_folder import CASES, anew, owner_of

FILES: dict[str, tuple[str, ...]] = {
    "beads/issues": ("project/.beads/issues.jsonl",),
    "claude/goal-met": ("home/**/*",),
    "claude/job-blocked": ("home/**/*",),
    "claude/loop-cron": ("home/**/*",),
    "claude/permission-prompt": ("home/**/*",),
    "claude/subagent": ("home/**/*",),
    "claude-memory/new-frontmatter": ("home/**/memory/*",),
    "claude-memory/no-frontmatter": ("home/**/memory/*",),
    "claude-memory/old-frontmatter": ("home/**/memory/*",),
    "codex/exec": ("home/.codex/sessions/**/*.jsonl",),
    "codex-memories/ascending": ("home/.codex/memories/raw_memories.md", "home/.codex/memories_1.sqlite"),
    "codex-memories/no-raw": ("home/.codex/memories/MEMORY.md", "home/.codex/memories/rollout_summaries/*"),
    "frankbria/running": (
        "project/.ralph/status.json",
        "project/.ralph/progress.json",
        "project/.ralph/logs/ralph.log",
        "project/.ralph/logs/metrics.jsonl",
        "project/.ralph/logs/claude_output_*.log",
        "project/.ralph/.response_analysis",
        "project/.ralph/queue.json",
    ),
    "guardrails/agrimsingh": (
        "project/.ralph/guardrails.md",
        "project/.ralph/progress.md",
        "project/.ralph/activity.log",
    ),
    "guardrails/iannuttall": (
        "project/.ralph/guardrails.md",
        "project/.ralph/progress.md",
        "project/.ralph/activity.log",
    ),
    "open-ralph/running": (
        "project/.ralph/ralph-loop.state.json",
        "project/.ralph/ralph-history.json",
        "project/.ralph/ralph-tasks.md",
    ),
    "opencode/db": ("home/.local/share/opencode/opencode.db",),
    "orchestrator/one": (
        "project/.ralph/events*.jsonl",
        "project/.ralph/loops.json",
        "project/.ralph/loop.lock",
        "project/.ralph/current-loop-id",
        "project/.ralph/history.jsonl",
        "project/.ralph/agent/memories.md",
        "project/.ralph/agent/tasks.jsonl",
        "project/ralph.yml",
    ),
    "ralph-loop/active": ("project/.claude/ralph-loop.local.md", "home/.claude/projects/**/*.jsonl"),
    "ralph-tui/registry": ("home/.config/ralph-tui/sessions.json",),
    "ralph-tui/running": (
        "project/.ralph-tui/session.json",
        "project/.ralph-tui/ralph.lock",
        "project/.ralph-tui/progress.md",
        "project/.ralph-tui/iterations/*.log",
        "project/prd.json",
    ),
    "snarktank/complete": ("project/prd.json", "project/progress.txt"),
}
"""Files of each case; those of one pattern are damaged at once."""
PID = 4242
"""Process of the sessions of Claude Code, which runs."""
each_file = pytest.mark.parametrize(
    ("name", "pattern"), [(name, pattern) for name, patterns in FILES.items() for pattern in patterns]
)


def open_files(name: str, pattern: str, tmp_path: Path) -> tuple[Case, list[Path]]:
    case = open_case(anew(owner_of(name)), name, tmp_path / "case")
    case.processes.starts[PID] = NOW
    paths = [path for path in case.root.glob(pattern) if path.is_file()]
    assert paths
    return case, paths


def test_all_adapters_with_cases_are_checked() -> None:
    assert {owner_of(case) for case in CASES} == {owner_of(name) for name in FILES}


@each_file
def test_damaged_files_never_raise_and_are_not_changed(name: str, pattern: str, tmp_path: Path) -> None:
    case, paths = open_files(name, pattern, tmp_path)
    check_damages(case, *paths)


@each_file
def test_what_is_not_a_file_is_not_read(name: str, pattern: str, tmp_path: Path) -> None:
    case, paths = open_files(name, pattern, tmp_path)
    check_replacements(case, *paths)
