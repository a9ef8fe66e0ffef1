"""Share equal values of records: decoded ones have a copy of each, which would take a fifth of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        *("title", "category", "error_type", "template_language", "tags", "location_hints", "first_discovered"),
        *("last_used", "recorded_counts", "file", "copy_folder"),
    ),
    SourceLoop: ("loop_id", "at"),
    LoopFact: ("loop_id", "directory", "raw_status", "criteria", "source", "file"),
    InjectedUse: ("pattern_id", "at"),
    Reflection: ("loop_id", "task_id", "file", "pointer", "shape", "kind", "effectiveness"),
}
"""Fields whose values many records have: names, dates and counts, not texts."""
_READERS: Final = {kind: attrgetter(*names) for kind, names in _FIELDS.items()}


class SharedValues:
    """Replaces equal values of new records by the first one; no one else may use the records yet."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def share(self, parsed: ParsedFile) -> ParsedFile:
        """Change the records of a file, and return it."""
        self._share_all(parsed.patterns)
        self._share_all(parsed.loops)
        self._share_all(parsed.reflections)
        for pattern in parsed.patterns:
            self._share_all(pattern.source_loops)
        for loop in parsed.loops:
            self._share_all(loop.injected)
        return parsed

    def _share_all(self, records: Iterable[Struct]) -> None:
        known = self._known.setdefault
        for record in records:
            kind = type(record)
            for name, value in zip(_FIELDS[kind], _READERS[kind](record), strict=True):
                if not value:
                    continue
                first = value if type(value) is not tuple else tuple(map(known, value, value))
                first = known(first, first)
                if first is not value:
                    force_setattr(record, name, first)
