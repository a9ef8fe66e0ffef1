"""Find the process of the agent that runs a hook (docs/agents.md#sessions)."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Final

from msgspec import Meta, Struct

from core.sources.liveness import RUNTIMES, ProcFiles, process_space, system_processes

_MAX_PARENTS: Final = 12  # shells and wrappers between the hook and the agent
_PACKAGES: Final = "node_modules"


class AgentProcess(Struct, frozen=True, omit_defaults=True):
    """A process, where its number means something, and its start; a later process can have the same number."""

    pid: int
    started: Annotated[datetime, Meta(tz=True)]
    space: str  # see `process_space`


def find_agent_process(agent: str, first: int = 0, files: ProcFiles | None = None) -> AgentProcess | None:
    """Return the nearest process of an agent above the process `first`, by default the parent of this one.

    None if there is none, or on a system without `/proc`.
    """
    processes = files or system_processes()
    if not isinstance(processes, ProcFiles):
        return None
    pid = first or os.getppid()
    for _ in range(_MAX_PARENTS):
        if pid <= 1:
            break
        if _is_program(processes.words(pid), agent) and (started := processes.started_at(pid)) is not None:
            return AgentProcess(pid, started, process_space())
        pid = processes.parent(pid)
    return None


def _is_program(words: list[str], agent: str) -> bool:
    """Return whether a command line starts an agent: by its name, or an interpreter with a script of its package."""
    names = [PurePath(word).name for word in words[:1]]
    if names and names[0] in RUNTIMES:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        path = PurePath(script)
        names += [path.name, *path.parts[path.parts.index(_PACKAGES) + 1 :]] if _PACKAGES in path.parts else [path.name]
    return any(name.lower().startswith(agent) for name in names)
