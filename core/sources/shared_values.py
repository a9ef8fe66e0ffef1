"""Share equal values of records: decoded ones have a copy of each, which would take a fifth of the memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import force_setattr

from core.records.loops import InjectedUse
from core.records.patterns import Pattern, SourceLoop
from core.records.reflections import Reflection
from core.sources.loop_facts import LoopFact

if TYPE_CHECKING:
    from msgspec import Struct

    from core.sources.parsed_file import ParsedFile

_FIELDS: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    Pattern: (
        *("title", "category", "error_type", "template_language", "tags", "location_hints", "places"),
        *("first_discovered", "last_used", "recorded_counts", "file", "copy_folder"),
    ),
    SourceLoop: ("loop_id", "at"),
    LoopFact: ("loop_id", "directory", "raw_status", "criteria", "source", "file"),
    InjectedUse: ("pattern_id", "at"),
    Reflection: ("loop_id", "task_id", "file", "pointer", "shape", "kind", "effectiveness"),
}
"""Fields whose values many records have: names, dates and counts, not texts."""
_TUPLES: Final = frozenset({"tags", "location_hints", "places", "criteria"})
"""Those of `_FIELDS` whose items are shared too."""
_MAX_WAITING: Final = 1000  # records that wait to be changed: many at once take half the time


class SharedValues:
    """Replaces equal values of new records by the first one, or one of `known`; call `finish` at the end."""

    def __init__(self, known: Collection[str] = ()) -> None:
        self._known: dict[Any, Any] = dict(zip(known, known, strict=True))
        self._waiting: dict[type[Struct], list[Struct]] = {kind: [] for kind in _FIELDS}
        self._count = 0

    def share(self, parsed: ParsedFile) -> ParsedFile:
        """Return the file; its records are changed now or later, to equal ones."""
        waiting = self._waiting
        waiting[Pattern] += parsed.patterns
        waiting[LoopFact] += parsed.loops
        waiting[Reflection] += parsed.reflections
        for pattern in parsed.patterns:
            waiting[SourceLoop] += pattern.source_loops
        for loop in parsed.loops:
            waiting[InjectedUse] += loop.injected
        self._count += len(parsed.patterns) + len(parsed.loops) + len(parsed.reflections)
        if self._count >= _MAX_WAITING:
            self.finish()
        return parsed

    def finish(self) -> None:
        """Change the records that are waiting."""
        known = self._known.setdefault
        for kind, records in self._waiting.items():
            for name in _FIELDS[kind]:
                values = list(map(attrgetter(name), records))
                if name in _TUPLES:
                    values = [value and tuple(map(known, value, value)) for value in values]
                deque(map(force_setattr, records, repeat(name), map(known, values, values)), 0)
            records.clear()
        self._count = 0
