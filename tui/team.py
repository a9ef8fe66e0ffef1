"""Part of the app that shows the team of the project and which question is open here."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from textual import events, on

from tui.decisions import DecisionApp
from tui.engine import Engine

if TYPE_CHECKING:
    from core.records.team_status import Lease, TeamStatus
    from tui.terminal.bell import Bell


AWAY_SECONDS: Final = 600.0
"""Seconds without a key or the mouse after which an open question is free for other members."""


class TeamApp(DecisionApp, inherit_bindings=False):
    is_open: bool
    team: TeamStatus | None = None
    _bell: Bell
    _question = ""  # the one that is open here
    _acted = 0.0  # monotonic time of the last key or movement of the mouse

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            self._acted = monotonic()
        await super().on_event(event)

    @on(Engine.TeamChanged)
    def _team_changed(self) -> None:
        if (follower := self.engine.team) is None:
            return
        before, self.team = self.team, follower.status
        self.update_lease()
        known = before.problem if before is not None else ""
        if self.team.problem and self.team.problem != known:
            self.say(f"Offline: {self.team.problem}", severity="error" if self.team.needs_person else "warning")
        if place := self._front():
            place.team_changed()

    def hold_question(self, question: str) -> None:
        """Show the members of the team that a question is open here; "" for none."""
        self._question = question
        self.update_lease()

    def update_lease(self) -> None:
        """Hold the open question unless the user has been away for some time."""
        if self.is_open and self.engine.team is not None:
            is_here = monotonic() - self._acted < AWAY_SECONDS
            self.engine.team.hold(self._question if is_here else "")

    def lease_on(self, question: str) -> Lease | None:
        """Return who else has a question open, or None."""
        return self.engine.team.holder(question) if self.team is not None and self.engine.team is not None else None
