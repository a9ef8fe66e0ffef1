"""Protocol of what may stop a decision that the local rules allow, such as the registry of a team."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.records.decisions import Decision


class DecisionGate(Protocol):
    """Accepts decisions before they are written; see `DecisionWriter`."""

    @property
    def note(self) -> str:
        """What the user should know about the decisions that were accepted last, or ""."""
        ...

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        """Return why decisions of one act cannot be made, by decision ID; the others are accepted.

        If `is_whole`, either all are accepted or none. Called while the decision log is locked, so it returns within a
        few seconds. Raises `Refused` if the author may not make such a decision; then none is accepted.
        """
        ...


class OpenGate:
    """Accepts every decision: the project belongs to no team."""

    note = ""

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        return {}
