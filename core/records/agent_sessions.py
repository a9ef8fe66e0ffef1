"""Sessions of agents as their hooks recorded them (docs/agents.md#sessions)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

SESSION_TAG: Final = "session"  # tag of the tasks that are made from sessions
HOOKS: Final = "hooks"  # source of the loops that hooks recorded


class AgentSession(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The facts of one session record; every text is untrusted.

    `id` is that of its loop, such as `claude:` and the agent's own `session_id`. `prompt` is its first one, and `turns`
    the number of all. `ended_at` is the time of the event that ended it. `pid` and `process_started_at` identify the
    process of the agent on the machine `space`; None and "" if unknown.
    """

    id: str
    agent: str
    session_id: str
    prompt: str = ""
    turns: int = 0
    started_at: datetime | None = None
    last_event_at: datetime | None = None
    ended_at: datetime | None = None
    is_turn_open: bool = False
    pid: int | None = None
    process_started_at: datetime | None = None
    space: str = ""
    file: str = ""
