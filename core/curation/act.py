"""What one act of deciding finds in the pattern files, be it about one pattern or about thousands."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Final

from core.curation.ledger import Ledger
from core.curation.merging import as_read
from core.curation.registry import Registry
from core.curation.rules import OVERRIDE
from core.curation.settling import FreeIds, pattern_path
from core.errors import BadInput, Refused, Unwritable
from core.paths import ProjectPaths
from core.records.patterns import Pattern
from core.sources.json_text import BadJson, JsonText
from core.sources.pattern_text import Record, id_key, records
from core.sources.patterns import text_of

MAX_TEXT_KEPT: Final = 64 << 10
"""Longest text, in characters of JSON, that is kept with the decision on it."""


class Act:
    """One act of deciding; every file is read once, when it is first asked for.

    Args:
        paths: The project.
        ledger: Its ledger, which nobody else writes to meanwhile.
    """

    def __init__(self, paths: ProjectPaths, ledger: Ledger) -> None:
        self._paths = paths
        self._ledger = ledger
        self._writable: dict[str, bool] = {}
        self._overridden: dict[str, tuple[JsonText, dict[str, Record]] | None] = {}

    @cached_property
    def ids(self) -> FreeIds:
        """Free ids; what decisions still owe to files counts as taken."""
        pending = {decision.id: decision for decision, _ in self._ledger.pending()}
        return FreeIds(self._paths, (effect.pattern_id for item in pending.values() for effect in item.effects))

    @cached_property
    def registry(self) -> Registry:
        """The records."""
        return Registry(self._paths)

    def is_writable(self, pattern: Pattern) -> bool:
        """Whether the file of a pattern is one that curation writes; a mirror's is not."""
        if pattern.mirror_of:
            return False
        if pattern.file not in self._writable:
            try:
                pattern_path(self._paths, pattern.file)
            except BadInput:
                self._writable[pattern.file] = False
            else:
                self._writable[pattern.file] = True
        return self._writable[pattern.file]

    def text(self, pattern: Pattern) -> dict[str, Any]:
        """The keys of its record that hold the text of a pattern; {} where its record says another one by now, or
        could not be kept.
        """
        try:
            record = self.registry.record(pattern).value
        except (Refused, Unwritable):
            return {}
        found = text_of(record, pattern.type)
        told = as_read({**found, id_key(record): pattern.id}, pattern.type)
        kept = told.content_hash == pattern.content_hash and len(json.dumps(found)) <= MAX_TEXT_KEPT
        return found if kept else {}

    def written_override(self, pattern: Pattern) -> str | None:
        """The override in the pattern's record as written there, for undo, unless the ledger wrote it."""
        if pattern.file not in self._overridden:
            self._overridden[pattern.file] = self._read_overridden(pattern.file)
        found = self._overridden[pattern.file]
        record = found[1].get(pattern.id) if found else None
        if found is None or record is None or OVERRIDE not in record.value:
            return None
        value = record.value[OVERRIDE]
        if isinstance(value, dict) and value.get("decision") in self._ledger:
            return None
        return found[0].text_at((*record.path, OVERRIDE))

    def _read_overridden(self, file: str) -> tuple[JsonText, dict[str, Record]] | None:
        """A file that holds an override, and the first record of each id in it."""
        try:
            data = pattern_path(self._paths, file).read_bytes()
            if OVERRIDE.encode() not in data:
                return None
            document = JsonText(data)
        except (OSError, BadInput, BadJson):
            return None
        return document, {record.id: record for record in reversed([*records(document)])}
