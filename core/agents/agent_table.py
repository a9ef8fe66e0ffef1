"""The coding agents that `ralphdeck connect` and `ralphdeck hook` know."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

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
    """Return the agent that runs a hook: the named one, unless another agent runs its hooks."""
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
