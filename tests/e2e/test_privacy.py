"""No command talks to another machine, and none writes a file outside the project and ralphdeck's own folders."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.bench.command_runs import GUARDRAILS, NOTHING_TO_DO, RUNS, SAMPLE, arguments
from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS, Terminal, dashboard, environment, python

STRACE: Final = shutil.which("strace")
if STRACE is None and "CI" not in os.environ:
    pytest.skip("strace is not installed", allow_module_level=True)

_CALLS: Final = (
    "connect,sendto,sendmsg,sendmmsg,open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,"
    "symlink,symlinkat,mknod,mknodat"
)
_CALL: Final = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)")
_PATH: Final = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_WRITING: Final = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC")
_LOCAL: Final = ('inet_addr("127.', 'inet_pton(AF_INET6, "::1"')


def traced(command: Sequence[str], log: Path) -> list[str]:
    """The command under strace, with all its children."""
    assert STRACE is not None
    return [STRACE, "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", f"trace={_CALLS}", "-o", str(log), *command]


def remote_addresses(log: Path) -> list[str]:
    """Calls that contact another machine or resolve a name, as strace prints them."""
    return [
        line
        for line in log.read_text("utf-8", "replace").splitlines()
        if ("sa_family=AF_INET" in line and not any(local in line for local in _LOCAL))
        or ("/etc/resolv.conf" in line and "openat" in line)
    ]


def written_paths(log: Path) -> Iterator[Path]:
    """Files and folders that were created or opened for writing, successfully or not."""
    for line in log.read_text("utf-8", "replace").splitlines():
        call = _CALL.match(line)
        if call is None or (call[1].startswith("open") and not any(flag in line for flag in _WRITING)):
            continue
        if call[1] in ("connect", "sendto", "sendmsg", "sendmmsg"):
            continue
        for folder, name in _PATH.findall(call[2]):
            yield Path(folder, name)


def private_environment(home: Path) -> dict[str, str]:
    """An empty home without XDG variables, so that the default folders are used, and the model switched on."""
    scratch = home.parent / "tmp"
    scratch.mkdir(exist_ok=True)
    kept = {name: value for name, value in environment(home).items() if not name.startswith("XDG_")}
    shutil.rmtree(home / "config")  # of the variables
    return {**kept, "RALPHDECK_SEMANTIC": "on", "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}


def check_private(log: Path, home: Path, *allowed: Path) -> None:
    """Check that nothing was sent, and nothing was written outside these folders and ralphdeck's own."""
    assert remote_addresses(log) == []
    own = [home / place / "ralphdeck" for place in (".cache", ".config", ".local/state")]
    folders = [parent for folder in own for parent in folder.parents]
    devices = [Path("/dev", name) for name in ("null", "tty", "ptmx", "pts")]
    may = (*own, *allowed, home.parent / "tmp", *devices)
    foreign = {
        str(path)
        for path in written_paths(log)
        if path not in folders and not any(path.is_relative_to(folder) for folder in may)
    }
    assert not foreign
    assert {path.name for path in home.iterdir()} <= {".cache", ".config", ".local"}


def test_no_command_uses_the_network_or_writes_outside_its_folders(sample: Path, home: Path, tmp_path: Path) -> None:
    log, outside, env = tmp_path / "calls.log", tmp_path / "outside", private_environment(home)
    outside.mkdir()
    (sample / ".ralph").mkdir()
    (sample / ".ralph" / "guardrails.md").write_text(GUARDRAILS)
    program = tmp_path / "bin/ralphdeck"  # which the agent starts
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {shlex.join(python("-m", "tui"))} "$@"\n')
    program.chmod(0o755)
    env["PATH"] = f"{program.parent}:{env['PATH']}"
    lines = [json.dumps(arguments(name, SAMPLE, str(outside))) for name in RUNS]
    done = subprocess.run(
        traced(python("-m", "tests.e2e.forked_commands"), log),
        cwd=ROOT,
        env={**env, "RALPHDECK_PROJECT": str(sample)},
        input="\n".join(lines),
        text=True,
        capture_output=True,
        check=True,
    )
    codes = dict(zip(RUNS, map(int, done.stdout.split()), strict=True))
    assert {name: code for name, code in codes.items() if code} == dict.fromkeys(NOTHING_TO_DO, 1)
    check_private(log, home, sample, outside)


def test_the_dashboard_does_not_use_the_network(sample: Path, home: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls.log"
    with Terminal(traced(dashboard(sample), log), private_environment(home)) as terminal:
        terminal.sees("Loops", "live")
        for place in "2345678":
            terminal.press(place)
        terminal.press("6", "/", *"flaky", "enter")
        terminal.settles()
        vectors = sample / ".aiwg/ralph/memory/embeddings/patterns.vec"
        terminal.until(vectors.exists, "the embedding model to be loaded")
        terminal.press("escape", "escape", "q")
        assert terminal.end() == 0
    check_private(log, home, sample)


@pytest.mark.parametrize("command", [["watch"], ["serve", "--port", "0"]], ids=["watch", "serve"])
async def test_watch_and_serve_do_not_use_the_network(
    command: list[str], sample: Path, home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "calls.log"
    arguments = python("-m", "tui", command[0], *command[1:])
    env = {**private_environment(home), "RALPHDECK_PROJECT": str(sample), "PYTHONUNBUFFERED": "1"}
    process = await asyncio.create_subprocess_exec(
        *traced(arguments, log), cwd=ROOT, env=env, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        if command[0] == "serve":
            address = (await asyncio.wait_for(process.stdout.readline(), TIMEOUT_SECONDS)).decode().split()[-1]
            await open_tab(address)
        else:
            shutil.copytree(
                sample / ".aiwg/ralph/loops" / SAMPLE.loop, sample / ".aiwg/ralph/loops/ralph-another-00000000"
            )
            await asyncio.wait_for(process.stdout.readline(), TIMEOUT_SECONDS)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        await asyncio.wait_for(process.wait(), TIMEOUT_SECONDS)
    check_private(log, home, sample)


async def open_tab(address: str) -> None:
    """Open the page and its socket as a browser does, and read until the dashboard draws."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await answers(browser, address):
                pass
        host = address.partition("/?")[0]
        async with browser.ws_connect(f"{host}/ws?width=120&height=40", origin=host) as socket:
            while True:
                message = await asyncio.wait_for(socket.receive(), TIMEOUT_SECONDS)
                assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY)
                if message.type is aiohttp.WSMsgType.BINARY and b"Loops" in message.data:
                    return


async def answers(browser: aiohttp.ClientSession, address: str) -> bool:
    """Whether the page is served; the address is printed a moment before the server listens."""
    try:
        async with browser.get(address) as page:
            return page.status == 200
    except aiohttp.ClientConnectorError:
        return False


# A joined project whose server is dead: what agents wait for contacts nothing, not even this machine

ID = "6f1c3f0e-8a52-4a8f-9d57-0e6b9c1d2a3b"
URL = "postgresql://ada@127.0.0.1:9/team"


def joined_environment(sample: Path, home: Path) -> dict[str, str]:
    """The environment of a user who has joined the project to a team."""
    folder = home / ".config/ralphdeck"
    folder.mkdir(parents=True)
    joined = {"space": "acme", "source": f"url={URL}", "id": ID, "name": "shop"}
    file = folder / "team.json"
    file.write_text(json.dumps({"projects": {str(sample.resolve()): joined}}))
    file.chmod(0o600)
    return {**private_environment(home), "RALPHDECK_PROJECT": str(sample), "RALPHDECK_TEAM_URL": URL}


def addresses(words: list[str], env: dict[str, str], log: Path, event: dict[str, str] | None = None) -> list[str]:
    """Run a command; returns its calls that name an address of a network."""
    done = subprocess.run(
        traced(python("-m", "tui", *words), log),
        cwd=ROOT,
        env=env,
        input=json.dumps(event or {}),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in log.read_text("utf-8", "replace").splitlines() if "sa_family=AF_INET" in line]


@pytest.mark.parametrize("name", ["UserPromptSubmit", "Stop"])
def test_a_hook_opens_no_connection(name: str, sample: Path, home: Path, tmp_path: Path) -> None:
    env = joined_environment(sample, home)
    event = {"hook_event_name": name, "session_id": "s1", "cwd": str(sample), "prompt": "Fix the null crash"}
    assert addresses(["hook", "--agent", "claude"], env, tmp_path / "calls.log", event) == []


@pytest.mark.parametrize("words", [["loop", "inject", SAMPLE.loop], ["review", "--json"]])
def test_injecting_and_reading_open_no_connection(words: list[str], sample: Path, home: Path, tmp_path: Path) -> None:
    assert addresses(words, joined_environment(sample, home), tmp_path / "calls.log") == []


def test_a_check_of_the_team_does_open_one(sample: Path, home: Path, tmp_path: Path) -> None:
    """Shows that the other tests would see a connection."""
    pytest.importorskip("psycopg")
    env = joined_environment(sample, home)
    assert addresses(["log", "--verify"], env, tmp_path / "calls.log") != []
