"""Gate of decisions of an open project: its team, if the user has joined one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.base.errors import RalphdeckError
from core.storage.user_files import team_file

if TYPE_CHECKING:
    from core.records.decisions import Decision
    from core.team.gate import TeamGate
    from core.team.sync import OpenProject


class JoinedGate:
    """Accepts everything unless the user has joined the project to a team; joining and leaving work at any time.

    Nothing of `core.team` is imported if the user has joined no project.
    """

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._gate: TeamGate | None = None
        self._stamp: tuple[int, int] | None = None  # of the file with the joined projects
        self._problem = ""  # why the gate of a team cannot be opened

    @property
    def note(self) -> str:
        return self._gate.note if self._gate is not None else self._problem

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        gate = self._find_gate()
        return gate.admit(decisions, is_whole=is_whole) if gate is not None else {}

    def catch_up(self) -> None:
        """Receive what others have decided, after a conflict."""
        if self._gate is not None:
            self._gate.catch_up()

    def _find_gate(self) -> TeamGate | None:
        try:
            status = team_file().stat()
        except OSError:
            stamp = None
        else:
            stamp = status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            self._stamp = stamp
            if self._gate is not None:
                self._gate.close()
            self._gate, self._problem = None, ""
            try:
                self._gate = self._open_gate() if stamp is not None else None
            except RalphdeckError as error:  # it is sent by the next sync that can use these files
                self._problem = f"not sent to the team: {error}"
                self._stamp = None  # the next decision tries again
        return self._gate

    def _open_gate(self) -> TeamGate | None:
        from core.team.consent import find_joined

        joined = find_joined(self._project.project.project)
        if joined is None:
            return None
        from core.team.gate import TeamGate

        return TeamGate(self._project, joined)
