"""Verifies the decisions of a space: their hash chain, and that it contains what this project has received."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.team.chain import first_head, verify
from core.team.consent import find_joined
from core.team.decisions import received_head
from core.team.errors import ChainBroken
from core.team.local_state import LocalState
from core.team.server import Space

if TYPE_CHECKING:
    from core.records.team import ChainHead


class SpaceVerification(Struct, frozen=True, kw_only=True):
    """The result for the space of a joined project; with an `obstacle` nothing was verified."""

    space: str
    decisions: int = 0
    problem: str = ""
    obstacle: str = ""

    @property
    def summary(self) -> str:
        name = f"team {visible_line(self.space, 80)}"
        if self.obstacle:
            return f"{name}: not verified: {visible_line(self.obstacle, 300)}"
        if self.problem:
            return f"{name}: {visible_line(self.problem, 300)}"
        return f"{name}: {plural(self.decisions, 'decision')}: hash chain intact"


def verify_space(space: Space, received: ChainHead) -> int:
    """Verify all decisions of a space; return their number, or raise ChainBroken.

    `received` is the last one that this project has received; the same must be in the space.
    """
    head = first_head(space.info.id)
    is_found = received == head
    while rows := space.decisions(head.seq):
        head = verify(head, rows)
        is_found |= any((row.seq, row.hash) == (received.seq, received.hash) for row in rows)
    if not is_found:
        raise ChainBroken(f"decision {received.seq} of the space is not the one that this project received")
    if (end := space.head()).seq < head.seq or (end.seq == head.seq and end.hash != head.hash):
        raise ChainBroken(f"the space has {end.seq} decisions by its own count, but {head.seq} were found")
    return head.seq


def verify_joined(project: Path) -> SpaceVerification | None:
    """Verify the space of a project over the network; None if the project has not joined one."""
    joined = find_joined(project)
    if joined is None:
        return None
    try:
        with closing(LocalState(project)) as state, closing(Space.connect(joined.conninfo, joined.space)) as space:
            received = received_head(state) or first_head(space.info.id)
            return SpaceVerification(space=joined.space, decisions=verify_space(space, received))
    except ChainBroken as error:
        return SpaceVerification(space=joined.space, problem=str(error))
    except RalphdeckError as error:
        return SpaceVerification(space=joined.space, obstacle=str(error))
