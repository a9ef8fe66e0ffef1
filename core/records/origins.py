"""Which records of a snapshot came from elsewhere after the user trusted the project (docs/scoring.md#claims)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.records.events import Event


def _all_events(_event: Event) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ForeignRecords:
    """The IDs of `patterns` whose numbers in files do not count, and which events happened here.

    `arrived` are those of them that came from elsewhere after the project was trusted, and that the user has not
    accepted; the others do not count because of the user's own settings.
    """

    patterns: frozenset[str] = frozenset()
    arrived: frozenset[str] = frozenset()
    is_own_event: Callable[[Event], bool] = field(default=_all_events, compare=False)


NOTHING_FOREIGN: Final = ForeignRecords()
