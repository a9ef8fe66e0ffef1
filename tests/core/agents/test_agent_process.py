"""The process of an agent is found above its hook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.agents.agent_process import find_agent_process
from core.sources.liveness import ProcFiles


def make_processes(root: Path, *commands: Sequence[str]) -> ProcFiles:
    """Make processes with the pids 2, 3 and so on; each started the next one."""
    for pid, command in enumerate(commands, start=2):
        folder = root / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_text("\0".join(command))
        (folder / "stat").write_text(f"{pid} ({command[0]}) S {pid - 1} {'0 ' * 17} {pid}00 0")
    return ProcFiles(root)


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
