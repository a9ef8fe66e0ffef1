"""Checks of a connection: the hook's answer, the MCP server, and what stops the hooks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from core.agents.agent_table import AGENTS, Moment, acting_agent, find_acting_agent, find_agent_process
from core.agents.checks import (
    find_obstacles,
    find_program,
    installed_command,
    installed_server,
    try_hook,
    try_mcp_server,
)
from core.agents.entries import start_event
from core.agents.hooks.events import HookEvent, encode_answer
from core.agents.plan import is_connected, plan_connect
from core.base.errors import BadInput
from tests.authors import make_processes
from tests.core.agents.conftest import Desk

ANSWER = '{"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}}'


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (f"cat >event.json; echo '{ANSWER}'", ""),
        ("exit 0", ""),
        ("echo oops >&2; exit 3", "exits with 3: oops"),
        ("echo lessons", "prints something that is not a JSON object"),
        ('echo \'{"decision": "block"}\'', "prints the key decision, which Claude Code does not accept"),
        (f"echo '{ANSWER}' | sed s/SessionStart/Stop/", "prints an answer to another event"),
        ("/nowhere/at/all", "exits with 127"),
    ],
)
def test_the_hook_is_run_with_a_sample_event(desk: Desk, script: str, problem: str) -> None:
    answer = try_hook("claude", script, desk.project)
    assert answer.problem.startswith(problem) and bool(answer.problem) == bool(problem)


def test_a_hook_that_works_too_long_is_a_problem(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert try_hook("claude", "true", desk.project).problem == ""
    monkeypatch.setattr("core.agents.checks.MAX_SECONDS", 0)
    assert try_hook("claude", "true", desk.project).problem.startswith("works for ")


def test_the_sample_event_is_a_session_start_that_records_nothing(desk: Desk) -> None:
    try_hook("cursor", "cat >event.json; echo $RALPHDECK_READONLY >readonly", desk.project)
    event = json.loads((desk.project / "event.json").read_text())
    assert (event["hook_event_name"], event["cwd"]) == ("sessionStart", str(desk.project))
    assert (desk.project / "readonly").read_text() == "1\n"


def test_an_mcp_server_is_initialized(desk: Desk, program: Callable[[str], str]) -> None:
    server = program("""read line; echo "$line" >request.json; echo '{"jsonrpc": "2.0", "id": 1, "result": {}}'""")
    assert try_mcp_server(server, desk.project).problem == ""
    assert json.loads((desk.project / "request.json").read_text())["method"] == "initialize"
    assert try_mcp_server(program("echo no"), desk.project).problem.startswith("does not answer")
    assert try_mcp_server("/nowhere/ralphdeck", desk.project).problem.startswith("cannot be started")


def test_the_program_is_named_by_its_path_unless_a_login_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[[str], str]
) -> None:
    path = program("")
    monkeypatch.setattr(sys, "argv", [path])
    shell = tmp_path / "shell"
    monkeypatch.setenv("SHELL", str(shell))
    for found, expected in ((path, "ralphdeck"), ("/usr/bin/ralphdeck", path), ("", path)):
        shell.write_text(f"#!/bin/sh\necho Welcome; echo {found}\n")
        shell.chmod(0o755)
        assert find_program() == expected
    monkeypatch.setenv("SHELL", "/nowhere/shell")
    assert find_program() == path


def test_a_program_that_is_not_installed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["python"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="not installed as a program"):
        find_program()


SWITCHES = [
    ("claude", ".claude/settings.local.json", '{"disableAllHooks": true}', "disableAllHooks is true"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks is false"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled is false"),
    ("copilot", ".github/copilot/settings.json", '{"disableAllHooks": true}', "disableAllHooks is true"),
]


@pytest.mark.parametrize(("agent", "file", "text", "message"), SWITCHES)
def test_switches_that_stop_hooks_are_found(desk: Desk, agent: str, file: str, text: str, message: str) -> None:
    assert [*find_obstacles(agent, desk.target())] == []
    desk.write(file, text)
    (found,) = find_obstacles(agent, desk.target())
    assert message in found and file in found
    desk.write(file, "\x00")
    assert [*find_obstacles(agent, desk.target())] == []


def test_hooks_that_codex_does_not_trust_are_found(desk: Desk, home: Path) -> None:
    desk.connect("codex")
    assert any("not trusted yet" in text for text in find_obstacles("codex", desk.target()))
    key = f"{desk.project}/.codex/hooks.json:session_start:0:0"
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(f'[hooks.state."{key}"]\ntrusted_hash = "sha256:1"\n')
    assert [*find_obstacles("codex", desk.target())] == []


def test_the_cap_of_stop_hooks_is_found(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", raising=False)
    plugins = {"enabledPlugins": {"ralph-loop@official": True}}
    desk.write(".claude/settings.json", json.dumps(plugins))
    (found,) = find_obstacles("claude", desk.target())
    assert "ralph-loop@official ends its loop after 8 turns" in found
    desk.write(".claude/settings.json", json.dumps({**plugins, "env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "50"}}))
    assert [*find_obstacles("claude", desk.target())] == []


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_the_installed_server_is_found(desk: Desk, agent: str, program: Callable[[str], str]) -> None:
    assert installed_server(agent, desk.target()) == "" and not is_connected(agent, desk.target())
    path = program("")
    desk.connect(agent, program=path)
    assert installed_server(agent, desk.target()) == path and is_connected(agent, desk.target())


HOSTILE = [
    "touch owned; ralphdeck hook --agent claude",
    "./ralphdeck hook --agent claude",
    "$(touch owned) ralphdeck hook",
    "'ralphdeck' hook --agent 'claude; touch owned'",
]


@pytest.mark.parametrize("command", HOSTILE)
def test_a_command_from_a_file_of_the_project_is_never_run(
    desk: Desk, command: str, program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program("exit 0")
    monkeypatch.chdir(desk.project)
    monkeypatch.setenv("PATH", f"{Path(path).parent}:/usr/bin:/bin")
    desk.write("ralphdeck", "#!/bin/sh\ntouch owned\n").chmod(0o755)
    entry = {"hooks": [{"type": "command", "command": command}]}
    desk.write(".claude/settings.json", json.dumps({"hooks": {"SessionStart": [entry]}}))
    ours = installed_command("claude", desk.target(path))
    assert ours in {"", "ralphdeck hook --agent claude"}
    (plan,) = plan_connect(["claude"], desk.target(path), {})
    assert command.encode() not in (plan.changes[0].after or b"")
    if ours:
        try_hook("claude", ours, desk.project)
    assert not (desk.project / "owned").exists()


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if start_event(agent) in AGENTS[agent].context_events])
def test_the_answers_of_the_hook_command_are_accepted(
    desk: Desk, agent: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    event = HookEvent(agent=agent, name=start_event(agent), moment=Moment.START, session="s")
    (tmp_path / "answer").write_bytes(encode_answer(event, "lessons"))
    assert try_hook(agent, program(f"cat {tmp_path / 'answer'}"), desk.project).problem == ""


def test_copilot_is_recognised_when_it_runs_the_hooks_of_claude_code() -> None:
    assert acting_agent("claude", {"COPILOT_CLI": "1"}) == "copilot"
    assert acting_agent("claude", {"": "", "TERM": "x"}) == "claude"


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


def test_a_command_of_an_agent_is_known_by_its_environment(tmp_path: Path) -> None:
    files = make_processes(tmp_path)
    agents = {"CLAUDECODE": "claude", "CODEX_THREAD_ID": "codex", "GEMINI_CLI": "gemini"}
    agents |= {"CURSOR_AGENT": "cursor", "COPILOT_CLI": "copilot", "OPENCODE": "opencode"}
    for variable, agent in agents.items():
        assert find_acting_agent({variable: "1"}, files=files) == agent
        assert find_acting_agent({variable: ""}, files=files) == ""
    for variable in ("AI_AGENT", "RALPHDECK_AGENT"):  # any agent can name itself
        assert find_acting_agent({variable: " Devin\n(2)" + "x" * 99}, files=files)[:8] == "devin-2-"


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
