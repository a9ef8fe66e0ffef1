"""The process of an agent is found above its hook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.agents.agent_process import find_agent_process
from tests.authors import make_processes


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ("claude", ("claude", "-p", "x")),
        ("codex", ("/usr/lib/codex/codex-x86_64-linux", "exec", "-")),
        ("gemini", ("node", "--no-warnings", "/usr/bin/gemini")),
        ("copilot", ("node", "/usr/lib/node_modules/@github/copilot/index.js")),
    ],
)
def test_the_agent_above_a_hook_and_its_shell_is_found(agent: str, command: Sequence[str], tmp_path: Path) -> None:
    processes = make_processes(tmp_path, ("sh", "claude-loop.sh"), command, ("sh", "-c", "ralphdeck hook"))
    found = find_agent_process(agent, first=4, files=processes)
    assert found is not None and found.pid == 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_shell_or_a_folder_with_the_name_of_the_agent_is_not_the_agent(tmp_path: Path) -> None:
    commands = (("bash", "/home/claude/run.sh"), ("uv", "run", "--project", "/home/claude", "ralphdeck"))
    assert find_agent_process("claude", first=3, files=make_processes(tmp_path, *commands)) is None
