"""The process of an agent is found above its hook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.agents.agent_process import find_acting_agent, find_agent_process
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


@pytest.mark.parametrize(
    ("variable", "agent"),
    [
        ("CLAUDECODE", "claude"),
        ("CODEX_THREAD_ID", "codex"),
        ("GEMINI_CLI", "gemini"),
        ("CURSOR_AGENT", "cursor"),
        ("COPILOT_CLI", "copilot"),
        ("OPENCODE", "opencode"),
    ],
)
def test_a_command_of_an_agent_is_known_by_its_environment(variable: str, agent: str, tmp_path: Path) -> None:
    assert find_acting_agent({variable: "1"}, files=make_processes(tmp_path)) == agent
    assert find_acting_agent({variable: ""}, files=make_processes(tmp_path)) == ""


@pytest.mark.parametrize("variable", ["AI_AGENT", "RALPHDECK_AGENT"])
def test_any_agent_can_name_itself(variable: str, tmp_path: Path) -> None:
    assert find_acting_agent({variable: " Devin\n(2)" + "x" * 99}, files=make_processes(tmp_path))[:8] == "devin-2-"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("command", "agent"),
    [
        (("/usr/bin/claude",), "claude"),
        (("node", "/usr/lib/node_modules/@openai/codex/bin/codex.js"), "codex"),
        (("/opt/cursor-agent", "chat"), "cursor"),
        (("/usr/share/cursor/cursor", "--type=zygote"), ""),  # the editor, in whose terminal a person types
        (("bash", "claude-loop.sh"), ""),
    ],
)
def test_a_command_of_an_agent_is_known_by_the_programs_above(
    command: Sequence[str], agent: str, tmp_path: Path
) -> None:
    processes = make_processes(tmp_path, command, ("sh", "-c", "ralphdeck undo"))
    assert find_acting_agent({}, first=3, files=processes) == agent
