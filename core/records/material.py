"""What one loop or debug session left behind, all that extraction looks at (0) 1_analyze_loop_history."""

from __future__ import annotations

from msgspec import Struct

from core.records.debug_sessions import DebugSession
from core.records.events import Event
from core.records.loops import Iteration, Loop
from core.records.reflections import Reflection


class Material(Struct, frozen=True, kw_only=True):
    """Everything that is known of one loop, or of one debug session.

    Attributes:
        source_id: The id of the loop or session that was asked for.
        loop: The loop; of a session the one that it belongs to, None where that is not known.
        iterations: Merged from all of the loop's files; empty for a session.
        sessions: Of the loop, oldest first.
        reflections: Of the loop, newest first.
        errors: Of the error log of (2), oldest first.
        resolved: The events that settled some of these.
    """

    source_id: str
    loop: Loop | None = None
    iterations: tuple[Iteration, ...] = ()
    sessions: tuple[DebugSession, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    errors: tuple[Event, ...] = ()
    resolved: tuple[Event, ...] = ()

    @property
    def loop_id(self) -> str:
        """What a pattern names as its source: the loop, or the session of no loop."""
        return self.loop.id if self.loop else self.source_id
