"""Loop facts to loop rows: one row a loop, whichever files know it (formats C14-C18, section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from core.records.findings import Finding
from core.records.loops import Loop
from core.settings import WatchSettings
from core.sources.liveness import Processes
from core.sources.loops import LoopFact


def join_loops(
    facts: Iterable[LoopFact], now: datetime, settings: WatchSettings, processes: Processes
) -> dict[str, Loop]:
    """All rows by id, of all facts at once."""
    raise NotImplementedError


class LoopBook:
    """All loop facts by file; joins again only the loops that a change can touch.

    Usage: `replace` for each changed file (no facts: the file is gone), then `join`.
    Attributes:
        loops: Rows by id as of the last `join`; a new mapping after each change.
        aliases: Other ids of a loop (UUID of its analytics, launcher id) -> id of its row.
        findings: What only the joined view shows (directory without readable state, future time, …).
    """

    def replace(self, file: str, facts: Sequence[LoopFact]) -> None:
        """From now on `file` says `facts` and nothing else. A directory fact's file is its directory with `/`."""
        raise NotImplementedError

    def join(self, now: datetime, settings: WatchSettings, processes: Processes) -> frozenset[str]:
        """Bring the rows up to date, loops at work judged anew; ids of the rows that changed, came or went."""
        raise NotImplementedError
