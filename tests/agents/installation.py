"""Installs the agents from npm, once for each version."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.agents.agent_table import RealAgent

VARIABLE: Final = "RALPHDECK_AGENTS"
"""Environment variable with the folder in which agents are installed; default: ~/.cache/ralphdeck-agents."""
_TIMEOUT_SECONDS: Final = 600
_OPTIONS: Final = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")


class NotInstalled(Exception):
    """An agent cannot be installed here."""


def install(agent: RealAgent) -> Path:
    """Install an agent if it is not; returns its program. Raises NotInstalled with the reason."""
    person = Path(pwd.getpwuid(os.getuid()).pw_dir)  # tests have another HOME
    cache = Path(os.environ.get(VARIABLE) or person / ".cache" / "ralphdeck-agents")
    folder = cache / f"{agent.program}-{agent.version}"
    program = folder / "node_modules" / ".bin" / agent.program
    if program.exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is missing")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--prefix", str(folder), *_OPTIONS, f"{agent.package}@{agent.version}"]
    env = {**os.environ, "HOME": str(person)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    if done.returncode or not program.exists():
        raise NotInstalled(f"npm cannot install {agent.package} {agent.version}: {done.stderr.strip()[-300:]}")
    if subprocess.run([program, "--version"], capture_output=True, check=False).returncode:
        shutil.rmtree(folder)
        raise NotInstalled(f"{agent.package} {agent.version} does not start here")
    return program
