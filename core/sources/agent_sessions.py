"""Read the session records that hooks write (docs/agents.md#sessions)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from core.base.text import visible_line
from core.records.agent_sessions import AgentSession
from core.redaction.masking import mask_secrets
from core.sources.fields import document

if TYPE_CHECKING:
    from core.records.findings import Finding

_AGENT: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_MAX_ID: Final = 63  # characters of the ID of a loop in a task
_MAX_PROMPT: Final = 4_095
_MAX_SPACE: Final = 300


def parse_agent_sessions(file: str, value: Any) -> tuple[tuple[AgentSession, ...], tuple[Finding, ...]]:
    """Read the session of one record; none if it lacks the agent or the ID."""
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    agent, session_id = fields.text("agent"), fields.text("id")
    if _AGENT.fullmatch(agent) is None or not session_id:
        return (), ()
    process = fields.inside("process")
    session = AgentSession(
        id=loop_id_of(agent, session_id),
        agent=agent,
        session_id=session_id,
        prompt=mask_secrets(visible_line(fields.text("first_prompt", "prompt"), _MAX_PROMPT)),
        turns=fields.count("turns") or 0,
        started_at=fields.time("started"),
        last_event_at=fields.time("last_event"),
        ended_at=fields.time("ended"),
        is_turn_open=fields.mapping.get("is_turn_open") is True,
        pid=process.count("pid") if process is not None else None,
        process_started_at=process.time("started") if process is not None else None,
        space=process.text("space")[:_MAX_SPACE] if process is not None else "",
        file=file,
    )
    return (session,), tuple(findings)


def loop_id_of(agent: str, session_id: str) -> str:
    """Return the ID of a session's loop, which is that of the adapter of the agent."""
    return visible_line(f"{agent}:{session_id}", _MAX_ID)


def join_agent_sessions(sessions: Iterable[AgentSession]) -> dict[str, AgentSession]:
    """Return the sessions by ID; the last record of an ID counts."""
    return {session.id: session for session in sessions}
