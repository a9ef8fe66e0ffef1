"""The coding agents that can be connected, read from `agents.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

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


class Agent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One coding agent."""

    title: str
    events: Mapping[str, Moment]  # by the agent's name of the event; {} if the agent runs no hook commands
    context_events: tuple[str, ...] = ()  # events whose answer may add a context
    context_key: str = ""  # key of the context in the answer, "" for the form of Claude Code
    variable: str = ""  # environment variable of its hooks, for an agent that runs the hooks of others too
    program: str = ""  # start of the name of its program, "" for the name of the agent
    shell_variables: tuple[str, ...] = ()  # environment variables of the commands that it runs


def acting_agent(named: str, environment: Mapping[str, str]) -> str:
    """Return the agent that runs a hook: the named one, unless another agent runs its hooks."""
    return next((name for name, agent in AGENTS.items() if agent.variable and agent.variable in environment), named)


AGENTS: Final[Mapping[str, Agent]] = msgspec.convert(
    tomllib.loads((Path(__file__).with_name("agents.toml")).read_text("utf-8")), dict[str, Agent]
)
