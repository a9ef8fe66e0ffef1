"""Checks of a connection: answers of hook and MCP server, and what stops hooks."""

from __future__ import annotations

import json
import os
import resource
import selectors
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from core.agents.agent_table import AGENTS, SERVER
from core.agents.entries import CONNECTIONS, hook_programs, is_own_server, is_same_program, server_program, start_event
from core.agents.plan import Target, is_connected, read_parsed
from core.base.errors import BadInput
from core.files.file_reader import decode_json

MAX_SECONDS: Final = 2.0  # answers that take longer delay the agent
_TIMEOUT_SECONDS: Final = 10.0
_MAX_ANSWER: Final = 1 << 20  # bytes
_PROGRAM: Final = "ralphdeck"
_SAMPLE_SESSION: Final = "ralphdeck-connection-test"
_LOOP_PLUGINS: Final = ("ralph-loop@", "ralph-wiggum@")  # plugins whose Stop hook drives a loop
_BLOCK_CAP: Final = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": _PROGRAM, "version": "1"},
    },
}


class Answer(NamedTuple):
    """How long a command took to answer, and what is wrong with the answer."""

    seconds: float
    problem: str


def has_mcp_extra() -> bool:
    """Return whether the extra `mcp` is installed."""
    return find_spec("mcp") is not None


def find_program() -> str:
    """Return ralphdeck as a login shell finds it, else its path; BadInput if neither."""
    running = Path(sys.argv[0])
    beside = Path(sys.executable).with_name(_PROGRAM)
    found = next((place for place in (running, beside) if place.name == _PROGRAM and place.is_file()), None)
    path = str(found.absolute()) if found else shutil.which(_PROGRAM)
    if path is None:
        raise BadInput("ralphdeck is not installed as a program; install it with uv tool, pipx or pip")
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        command = [shell, "-lc", f"command -v {_PROGRAM}"]
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return path
    lines = done.stdout.split("\n")
    is_found = any(line.startswith("/") and os.path.realpath(line) == os.path.realpath(path) for line in lines)
    return _PROGRAM if is_found else path


def try_hook(agent: str, command: str, project: Path) -> Answer:
    """Run the hook command with a sample session start; it records nothing."""
    sample = {
        "session_id": _SAMPLE_SESSION,
        "conversation_id": _SAMPLE_SESSION,
        "hook_event_name": start_event(agent),
        "cwd": str(project),
        "workspace_roots": [str(project)],
        "source": "startup",
    }
    began, processor_began = time.monotonic(), _children_seconds()
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(sample).encode(),
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            cwd=project,
            env={**os.environ, "RALPHDECK_READONLY": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(_TIMEOUT_SECONDS, f"gives no answer within {_TIMEOUT_SECONDS:g} s")
    except OSError as error:
        return Answer(0.0, f"cannot be started: {error.strerror}")
    seconds = time.monotonic() - began
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return Answer(seconds, f"exits with {done.returncode}{f': {lines[-1]}' if lines else ''}")
    problem = _check_answer(agent, done.stdout)
    # Processor time: other programs may keep this machine busy for the moment.
    work = _children_seconds() - processor_began
    if not problem and work > MAX_SECONDS:
        problem = f"works for {work:.1f} s; more than {MAX_SECONDS:g} s delays the agent"
    return Answer(seconds, problem)


def _children_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _check_answer(agent: str, answer: bytes) -> str:
    """Return what is wrong with an answer, "" if the agent accepts it."""
    if not answer.strip():
        return ""
    value = decode_json(answer).value
    if not isinstance(value, dict):
        return "prints something that is not a JSON object"
    unknown = sorted(value.keys() - set(CONNECTIONS[agent].answer))
    if unknown:
        return f"prints the key {unknown[0]}, which {AGENTS[agent].title} does not accept"
    inner = value.get("hookSpecificOutput", {"hookEventName": start_event(agent)})
    if not isinstance(inner, dict) or inner.get("hookEventName") != start_event(agent):
        return "prints an answer to another event"
    return ""


def try_mcp_server(program: str, project: Path) -> Answer:
    """Start the MCP server and initialize it."""
    began = time.monotonic()
    try:
        server = subprocess.Popen(
            [program, "mcp"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=project,
        )
    except OSError as error:
        return Answer(0.0, f"cannot be started: {error.strerror}")
    with server:
        assert server.stdin is not None and server.stdout is not None
        with suppress(OSError):  # it has ended, perhaps after an answer
            server.stdin.write(f"{json.dumps(_INITIALIZE)}\n".encode())
        line = _read_line(server.stdout.fileno(), began + _TIMEOUT_SECONDS)
        server.kill()
    answer = decode_json(line).value if line else None
    is_answer = isinstance(answer, dict) and isinstance(answer.get("result"), dict)
    return Answer(time.monotonic() - began, "" if is_answer else "does not answer; run: ralphdeck mcp")


def _read_line(descriptor: int, deadline: float) -> bytes:
    """Read the first line; what there is of it after the deadline."""
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while b"\n" not in data and len(data) < _MAX_ANSWER and selector.select(max(0.0, deadline - time.monotonic())):
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                break
            data += chunk
    return data.partition(b"\n")[0]


def installed_command(agent: str, target: Target) -> str:
    """Return the hooks' command; "" if they run another program than the target's.

    The command is made anew, because a project's file could contain any command.
    """
    program = next(hook_programs(_read_kind(agent, "hooks", target)), "")
    if not program or not is_same_program(program, target.program):
        return ""
    return f"{shlex.quote(program)} hook --agent {agent}"


def installed_server(agent: str, target: Target) -> str:
    """Return the MCP server's program in the agent's file, any program; "" for none."""
    servers = _read_kind(agent, "mcp", target).get(CONNECTIONS[agent].mcp.key)
    entry = servers.get(SERVER) if isinstance(servers, dict) else None
    return server_program(entry) if is_own_server(entry) else ""


def _read_kind(agent: str, kind: str, target: Target) -> dict[str, Any]:
    connection = CONNECTIONS[agent]
    file = connection.hooks if kind == "hooks" else connection.mcp
    path = "" if file is None else file.user if target.is_global else file.project
    return read_parsed(agent, path, target) if path else {}


def find_obstacles(agent: str, target: Target) -> Iterator[str]:
    """Yield what stops the agent's hooks: switches that are off, and missing trust."""
    connection = CONNECTIONS[agent]
    for switch in connection.switches:
        for file in switch.files:
            value: Any = read_parsed(agent, file, target)
            for key in switch.key.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is switch.value:
                yield f"{switch.key} is {json.dumps(value)} in {file.format(home=connection.home)}: no hook runs"
    if connection.hooks is not None and connection.hooks.trusted_in and is_connected(agent, target, ("hooks",)):
        path, _ = connection.resolve(
            connection.hooks.user if target.is_global else connection.hooks.project, target.project
        )
        hooks = read_parsed(agent, connection.hooks.trusted_in, target).get("hooks")
        state = hooks.get("state") if isinstance(hooks, dict) else None
        if not any(key.startswith(f"{path}:") for key in (state if isinstance(state, dict) else ())):
            yield f"these hooks are not trusted yet. {connection.left[0]}"
    if agent == "claude":
        yield from _block_cap(target)


def _block_cap(target: Target) -> Iterator[str]:
    """Warn of a plugin's loop by Stop hooks, which Claude Code ends after 8 turns."""
    files = CONNECTIONS["claude"].switches[0].files
    settings = [read_parsed("claude", file, target) for file in files]
    plugins = [one.get("enabledPlugins") for one in settings]
    variables = [os.environ, *(one.get("env") for one in settings)]
    if any(isinstance(one, Mapping) and _BLOCK_CAP in one for one in variables):
        return
    for named in plugins:
        for name, is_on in named.items() if isinstance(named, dict) else ():
            if is_on is True and name.startswith(_LOOP_PLUGINS):
                yield f"the plugin {name} ends its loop after 8 turns in a row; set {_BLOCK_CAP} in env of the settings"
                return
