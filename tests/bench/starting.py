"""Complete runs of the command line, including the start of the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from core.demo.sample import copy_sample
from tests.bench.measured import Measured, processor_seconds
from tests.bench.place import Place

ROOT: Final = Path(__file__).parents[2]
_RUNS: Final = 7
_HOOK: Final = ("-m", "tui", "hook", "--agent", "claude")
_SLOWEST: Final = 5
_LIST: Final = """
from core.cli.command_table import SECTIONS, GroupPlace
for commands in SECTIONS.values():
    for name, place in commands.items():
        print(*[f"{name} {one}" for one in place.commands] if isinstance(place, GroupPlace) else [name], sep="\\n")
"""


def python(_place: Place) -> Measured:
    return _run("-c", "pass")


def version(_place: Place) -> Measured:
    return _run("-m", "tui", "--version")


def help_of_all(_place: Place) -> Measured:
    return _run("-m", "tui", "--help")


def help_of_one(_place: Place) -> Measured:
    """The slowest of all commands: one run of each, then several of the slowest ones."""
    listed = subprocess.run([sys.executable, "-c", _LIST], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [*listed.stdout.splitlines(), "dashboard", "demo", "serve"]
    once = {name: _run("-m", "tui", *name.split(), "--help", runs=1).cpu or 0.0 for name in names}
    found = {
        name: _run("-m", "tui", *name.split(), "--help") for name in sorted(names, key=once.__getitem__)[-_SLOWEST:]
    }
    slowest = max(found, key=lambda name: found[name].cpu or 0.0)
    return Measured(found[slowest].value, cpu=found[slowest].cpu, note=f"slowest of {len(names)}: {slowest}")


def task_log(place: Place) -> Measured:
    """Log one action of an agent."""
    project = place.folder / "agent"
    if not project.exists():
        project.mkdir()
        for command in (["init", "Fix the login", "--id", "bench", "--criteria", "pytest passes"], ["start", "bench"]):
            arguments = [sys.executable, "-m", "tui", "task", *command, "--project", str(project)]
            subprocess.run(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    action = ("--type", "bash", "--tool", "Bash", "--param", "command=pytest", "--success")
    return _run("-m", "tui", "task", "log", "bench", *action, "--project", str(project))


def hook_tool_call(place: Place) -> Measured:
    """Log a tool call of an agent by its hook, in the sample project."""
    _answer(place, "UserPromptSubmit", prompt="Fix the login")
    _answer(place, "PostToolUse", tool_use_id="first", tool_name="Bash", tool_input={"command": "make"})  # opens a task
    calls = (
        _event(place, "PostToolUse", tool_use_id=os.urandom(8).hex(), tool_name="Bash", tool_input={"command": "make"})
        for _ in range(_RUNS)
    )
    return _run(*_HOOK, given=calls)


def hook_prompt(place: Place) -> Measured:
    """Give the context for a prompt by the hook, in the sample project."""
    prompts = (
        _event(place, "UserPromptSubmit", prompt=f"Fix TypeScript type errors {os.urandom(8).hex()}")
        for _ in range(_RUNS)
    )
    return _run(*_HOOK, given=prompts)


def _event(place: Place, name: str, **fields: object) -> bytes:
    project = place.folder / "hooked"
    if not project.exists():
        copy_sample(project, datetime.now(UTC))
    return json.dumps({"hook_event_name": name, "session_id": "bench", "cwd": str(project), **fields}).encode()


def _answer(place: Place, name: str, **fields: object) -> None:
    given = _event(place, name, **fields)
    subprocess.run([sys.executable, *_HOOK], cwd=ROOT, input=given, stdout=subprocess.DEVNULL, check=True)


def _run(*arguments: str, runs: int = _RUNS, given: Iterable[bytes] = ()) -> Measured:
    """Median of complete runs of `python ARGUMENTS`, each with the next input of `given` if there is one."""
    walls, cpus, inputs = [], [], iter(given)
    for _ in range(runs):
        command, sent = [sys.executable, *arguments], next(inputs, b"")
        begin, cpu = time.perf_counter(), processor_seconds()
        subprocess.run(command, cwd=ROOT, env=os.environ, input=sent, stdout=subprocess.DEVNULL, check=True)
        walls.append((time.perf_counter() - begin) * 1000)
        cpus.append((processor_seconds() - cpu) * 1000)
    return Measured(median(walls), cpu=median(cpus))
