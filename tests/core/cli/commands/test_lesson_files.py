"""`ralphdeck lesson` reads the files of agents in the home folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.sources.adapters.agent_files import project_slug
from tests.core.cli.conftest import Call


def test_the_memories_of_an_agent_are_listed(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    memory = tmp_path / "claude" / "projects" / project_slug(sample.resolve()) / "memory"
    memory.mkdir(parents=True)
    (memory / "clock.md").write_text("Use the fake clock.\n")
    found = call("lesson", "--json").document["lessons"]
    assert [one["text"] for one in found] == ["Use the fake clock."]
