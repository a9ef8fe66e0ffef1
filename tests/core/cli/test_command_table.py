"""The command names that the documents of the loops use do what the commands of ralphdeck do."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from core.cli.command_table import PROGRAM_ALIASES
from tests.core.cli.conftest import ROOT, Call

LOOP = "ralph-add-oauth-login-flow-for-partn-cebd0e18"
PAIRS = [
    (["ralph-extract-patterns", LOOP, "--dry-run"], ["loop", "extract", LOOP, "--dry-run"]),
    (
        ["ralph-extract-patterns", "--all", "--types", "error,success", "--dry-run"],
        ["loop", "extract", "--all", "--types", "error,success", "--dry-run"],
    ),
    (
        ["ralph-inject-patterns", LOOP, "--min-success-rate", "0.8", "--top-k", "10", "--no-record"],
        ["loop", "inject", LOOP, "--min-success-rate", "0.8", "--top-k", "10", "--no-record"],
    ),
    (["ralph-patterns", "list", "--type", "error"], ["pattern", "list", "--type", "error"]),
    (
        ["ralph-patterns", "list", "--min-success-rate", "0.0", "--max-success-rate", "0.6", "--tag", "typescript"],
        ["pattern", "list", "--min-success-rate", "0.0", "--max-success-rate", "0.6", "--tag", "typescript"],
    ),
    (["ralph-patterns", "list", "--from-loop", LOOP], ["pattern", "list", "--from-loop", LOOP]),
    (["ralph-patterns", "show", "pat-error-type-mismatch-003"], ["pattern", "show", "pat-error-type-mismatch-003"]),
    (
        ["ralph-patterns", "prune", "--dry-run", "--min-success-rate", "0.5", "--max-age-days", "90"],
        ["pattern", "prune", "--dry-run", "--min-success-rate", "0.5", "--max-age-days", "90"],
    ),
    (["ralph-history", "task-001", "--attempt", "1"], ["task", "show", "task-001", "--attempt", "1"]),
    (["ralph-history", "task-001", "--reflections"], ["task", "show", "task-001", "--reflections"]),
    (["ralph-replay", "task-001", "--attempt", "1"], ["task", "show", "task-001", "--replay", "--attempt", "1"]),
    (["ralph-search", "null"], ["search", "null"]),
    (
        ["ralph", "Fix type errors", "--min-pattern-success-rate", "0.5"],
        ["loop", "inject", "--task", "Fix type errors", "--min-success-rate", "0.5"],
    ),
]


@pytest.mark.parametrize(("words", "own"), PAIRS)
def test_an_alias_prints_what_its_command_prints(words: list[str], own: list[str], sample: Path, call: Call) -> None:
    expected = call(*own)
    found = call(*words)
    assert found == expected
    assert found.code == 0
    assert found.out or found.err


def test_an_alias_exports_and_imports(sample: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "team-patterns.json"
    assert call("ralph-patterns", "export", "--output", file).code == 0
    assert call("ralph-patterns", "import", "--input", file).code == 0


def test_help_does_not_list_aliases(call: Call) -> None:
    assert "ralph-patterns" not in call("--help").out
    assert "ralphdeck loop extract" in call("ralph-extract-patterns", "--help").out


def test_every_alias_is_a_program_that_runs_its_command() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert {name for name, target in scripts.items() if target == "core.cli.program:alias"} == set(PROGRAM_ALIASES)
    code = "import sys; sys.argv[0] = '/usr/bin/ralph-history'; from core.cli.program import alias; alias()"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0
    assert "Usage: ralphdeck task show" in done.stdout


def test_the_docs_list_every_program_alias() -> None:
    page = (ROOT / "docs/agents.md").read_text()
    assert [name for name in PROGRAM_ALIASES if f"`{name}`" not in page] == []
