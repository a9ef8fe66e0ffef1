"""Coding agents that `connect` and `hook` know, and which runs this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated, Final

from msgspec import Meta, Struct

from core.base.regexes import lazy_regex
from core.sources.liveness import RUNTIMES, ProcFiles, process_space, system_processes

SERVER: Final = "ralphdeck"  # name of the MCP server in the agents' files
MCP_TOOLS: Final = (
    *("loop_context", "known_fix", "search_patterns", "explain_pattern", "past_attempts", "list_loops"),
    *("report_outcome", "propose_lesson"),
)


class Moment(StrEnum):
    """What an agent's hook event reports."""

    START = "start"  # a session begins or resumes, or its context was compacted
    PROMPT = "prompt"
    TOOL = "tool"  # a tool call ended, with success or not
    TURN_END = "turn_end"
    SESSION_END = "session_end"


class Agent(Struct, frozen=True, kw_only=True):
    """One coding agent."""

    title: str
    events: Mapping[str, Moment]  # by the agent's name of the event; {} if the agent runs no hook commands
    context_events: tuple[str, ...] = ()  # events whose answer may add a context
    context_key: str = ""  # key of the context in the answer, "" for the form of Claude Code
    variable: str = ""  # environment variable of its hooks, for an agent that runs the hooks of others too
    program: str = ""  # start of the name of its program, "" for the name of the agent
    shell_variables: tuple[str, ...] = ()  # variables of the commands that it runs, not of a person's beside it


def acting_agent(named: str, environment: Mapping[str, str]) -> str:
    """Return the agent that runs a hook: the named one, or one that runs its hooks."""
    return next((name for name, agent in AGENTS.items() if agent.variable and agent.variable in environment), named)


_CLAUDE_EVENTS: Final = {
    "SessionStart": Moment.START,
    "UserPromptSubmit": Moment.PROMPT,
    "PostToolUse": Moment.TOOL,
    "PostToolUseFailure": Moment.TOOL,
    "Stop": Moment.TURN_END,
    "SessionEnd": Moment.SESSION_END,
}
AGENTS: Final[Mapping[str, Agent]] = {
    "claude": Agent(
        title="Claude Code",
        shell_variables=("CLAUDECODE",),
        context_events=("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"),
        events=_CLAUDE_EVENTS,
    ),
    "codex": Agent(
        title="Codex",
        shell_variables=("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI", "CODEX_THREAD_ID"),
        context_events=("SessionStart", "UserPromptSubmit", "PostToolUse"),
        events={name: moment for name, moment in _CLAUDE_EVENTS.items() if name != "PostToolUseFailure"},
    ),
    "gemini": Agent(
        title="Gemini CLI",
        shell_variables=("GEMINI_CLI",),
        context_events=("SessionStart", "BeforeAgent", "AfterTool"),
        events={
            "SessionStart": Moment.START,
            "BeforeAgent": Moment.PROMPT,
            "AfterTool": Moment.TOOL,
            "AfterAgent": Moment.TURN_END,
            "SessionEnd": Moment.SESSION_END,
        },
    ),
    "cursor": Agent(
        title="Cursor",
        program="cursor-agent",  # the editor, which starts with `cursor`, also runs the terminals of its user
        shell_variables=("CURSOR_AGENT",),
        context_key="additional_context",
        context_events=("sessionStart", "postToolUse"),
        events={
            "sessionStart": Moment.START,
            "beforeSubmitPrompt": Moment.PROMPT,
            "postToolUse": Moment.TOOL,
            "postToolUseFailure": Moment.TOOL,
            "stop": Moment.TURN_END,
            "sessionEnd": Moment.SESSION_END,
        },
    ),
    "copilot": Agent(
        title="Copilot CLI",
        variable="COPILOT_CLI",
        shell_variables=("COPILOT_CLI",),
        context_key="additionalContext",
        context_events=("SessionStart", "UserPromptSubmit", "PostToolUse"),
        events=_CLAUDE_EVENTS,
    ),
    "opencode": Agent(
        title="opencode",
        shell_variables=("OPENCODE",),
        events={},
    ),
}
"""By the name that `--agent` and `ralphdeck connect` take. Not a file, whose parser would take 5 ms in each hook."""


# The agent that runs this process: a hook (docs/agents.md#sessions), or a command of the agent

_MAX_PARENTS: Final = 12  # shells and wrappers between the hook and the agent
_PACKAGES: Final = "node_modules"
_NAMES: Final = ("AI_AGENT", "RALPHDECK_AGENT")  # variables in which any agent can name itself
_NOT_IN_NAME: Final = lazy_regex(r"[^a-z0-9._@-]+")
_MAX_NAME: Final = 40  # characters of such a name


class AgentProcess(Struct, frozen=True, omit_defaults=True):
    """A process by number, space of numbers, and start: numbers are used again."""

    pid: int
    started: Annotated[datetime, Meta(tz=True)]
    space: str  # see `process_space`


def find_agent_process(agent: str, first: int = 0, files: ProcFiles | None = None) -> AgentProcess | None:
    """Return an agent's nearest process from `first` (or parent) up; None if none."""
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
    """Yield PID and command line of processes from `first` up; none without `/proc`."""
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
    """Return whether a command line starts an agent, by name or from its package."""
    names = [PurePath(word).name for word in words[:1]]
    if names and names[0] in RUNTIMES:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        path = PurePath(script)
        names += [path.name, *path.parts[path.parts.index(_PACKAGES) + 1 :]] if _PACKAGES in path.parts else [path.name]
    return any(name.lower().startswith(agent) for name in names)
