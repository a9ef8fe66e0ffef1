"""Runs agents as an ordinary user, without a network but loopback.

`python -m tests.agents.sandbox PORT SCENARIO LOG -- COMMAND` runs a command in the current folder beside a scripted
model at that port. In a network namespace of its own, it switches loopback on first.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.agents.model_server import scripted_model

ROOT: Final = Path(__file__).parents[2]
DEAD_PROXY: Final = "http://127.0.0.1:9"
"""Where the network is not cut off, connections to other machines go to a port at which nothing listens."""
PROXY: Final = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"), DEAD_PROXY)
NO_PROXY: Final = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
_USER: Final = "nobody"
_READING: Final = "-all,+dac_read_search"
"""Capabilities of the ordinary user: only to read what root may read, such as a Python in root's home."""


@cache
def ordinary_user() -> Sequence[str]:
    """The command that runs another one as an ordinary user; empty if this is one."""
    if os.geteuid() != 0:
        return ()
    user = pwd.getpwnam(_USER)
    program = shutil.which("setpriv")
    if program is None:
        raise FileNotFoundError("agents do not run as root, and setpriv is missing")
    capabilities = [f"--{kind}={_READING}" for kind in ("bounding-set", "inh-caps", "ambient-caps")]
    return (program, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *capabilities)


@cache
def without_network() -> Sequence[str]:
    """The command that runs another one in an empty network namespace; empty if that is not permitted."""
    command = ("unshare", "--net", "--")
    is_permitted = shutil.which("unshare") and shutil.which("ip")
    return command if is_permitted and _succeeds([*command, "ip", "link", "set", "lo", "up"]) else ()


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def give_to_user(folder: Path) -> None:
    """Let the ordinary user own a folder and everything in it."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(_USER)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


PID_FILE: Final = "pid"
"""File beside the logged requests with the process ID of the agent, which leads a process group."""


def sandboxed(command: Sequence[str], port: int, scenario: str, log: Path) -> list[str]:
    """Return the command that runs an agent beside a scripted model."""
    model = [sys.executable, "-m", "tests.agents.sandbox", str(port), scenario, str(log), "--"]
    return [*without_network(), *model, *command]


def main(arguments: Sequence[str]) -> int:
    """Run a command beside a scripted model; returns its exit code."""
    port, scenario, log, _, *command = arguments
    has_namespace = Path("/proc/self/ns/net").readlink() != Path(f"/proc/{os.getppid()}/ns/net").readlink()
    if has_namespace:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with scripted_model(int(port), scenario, Path.cwd(), Path(log)):
        agent = subprocess.Popen([*ordinary_user(), *command], stdin=subprocess.DEVNULL, process_group=0)
        (Path(log) / PID_FILE).write_text(str(agent.pid))
        return agent.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
