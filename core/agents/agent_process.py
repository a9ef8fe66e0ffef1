"""Find the agent that runs this process: a hook (docs/agents.md#sessions), or a command of the agent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Final

from msgspec import Meta, Struct

from core.agents.agent_table import AGENTS
from core.base.regexes import lazy_regex
from core.sources.liveness import RUNTIMES, ProcFiles, process_space, system_processes

_MAX_PARENTS: Final = 12  # shells and wrappers between the hook and the agent
_PACKAGES: Final = "node_modules"
_NAMES: Final = ("AI_AGENT", "RALPHDECK_AGENT")  # variables in which any agent can name itself
_NOT_IN_NAME: Final = lazy_regex(r"[^a-z0-9._@-]+")
_MAX_NAME: Final = 40  # characters of such a name


class AgentProcess(Struct, frozen=True, omit_defaults=True):
    """A process, where its number means something, and its start; a later process can have the same number."""

    pid: int
    started: Annotated[datetime, Meta(tz=True)]
    space: str  # see `process_space`


def find_agent_process(agent: str, first: int = 0, files: ProcFiles | None = None) -> AgentProcess | None:
    """Return the nearest process of an agent above the process `first`, by default the parent of this one.

    None if there is none, or on a system without `/proc`.
    """
    for pid, words, processes in _ancestors(first, files):
        if _is_program(words, agent) and (started := processes.started_at(pid)) is not None:
            return AgentProcess(pid, started, process_space())
    return None


def find_acting_agent(environment: Mapping[str, str], first: int = 0, files: ProcFiles | None = None) -> str:
    """Return the agent whose command this process is, "" if it is none.

    The agent is known by an environment variable, or by its program among the processes above `first`, by default the
    parent of this one. An agent that is not in the table can name itself in `AI_AGENT` or `RALPHDECK_AGENT`.
    """
    for name, agent in AGENTS.items():
        if any(environment.get(variable) for variable in agent.shell_variables):
            return name
    for variable in _NAMES:
        if named := _NOT_IN_NAME.sub("-", environment.get(variable, "").lower())[:_MAX_NAME].strip("-"):
            return named
    for _, words, _processes in _ancestors(first, files):
        for name, agent in AGENTS.items():
            if _is_program(words, agent.program or name):
                return name
    return ""


def _ancestors(first: int, files: ProcFiles | None) -> Iterator[tuple[int, list[str], ProcFiles]]:
    """Yield pid and command line of the processes from `first` upwards; none on a system without `/proc`."""
    processes = files or system_processes()
    if not isinstance(processes, ProcFiles):
        return
    pid = first or os.getppid()
    for _ in range(_MAX_PARENTS):
        if pid <= 1:
            return
        yield pid, processes.words(pid), processes
        pid = processes.parent(pid)


def _is_program(words: list[str], agent: str) -> bool:
    """Return whether a command line starts an agent: by its name, or an interpreter with a script of its package."""
    names = [PurePath(word).name for word in words[:1]]
    if names and names[0] in RUNTIMES:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        path = PurePath(script)
        names += [path.name, *path.parts[path.parts.index(_PACKAGES) + 1 :]] if _PACKAGES in path.parts else [path.name]
    return any(name.lower().startswith(agent) for name in names)
