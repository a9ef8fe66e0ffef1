"""The command names that the documents of the loops use do what the commands of ralphdeck do."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from core.cli.command_table import PROGRAM_ALIASES, translate_alias
from tests.core.cli.conftest import ROOT, Call

LOOP = "ralph-add-oauth-login-flow-for-partn-cebd0e18"


def test_an_alias_is_its_command(sample: Path, call: Call) -> None:
    for words, own in (
        (f"ralph-extract-patterns {LOOP} --dry-run", f"loop extract {LOOP} --dry-run"),
        (f"ralph-inject-patterns {LOOP} --top-k 10", f"loop inject {LOOP} --top-k 10"),
        ("ralph-patterns list --type error", "pattern list --type error"),
        ("ralph-history task-001 --attempt 1", "task show task-001 --attempt 1"),
        ("ralph-replay task-001 --attempt 1", "task show --replay task-001 --attempt 1"),
        ("ralph-search null", "search null"),
        ("ralph types --min-pattern-success-rate 0.5", "loop inject --task types --min-success-rate 0.5"),
        ("ralph types --min-pattern-success-rate=0.5", "loop inject --task types --min-success-rate=0.5"),
        ("ralph --project x", "loop inject --project x"),
        ("ralph", "ralph"),
    ):
        assert translate_alias(words.split()) == own.split()
    expected, found = call("pattern", "list", "--from-loop", LOOP), call("ralph-patterns", "list", "--from-loop", LOOP)
    assert found == expected and found.code == 0


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
