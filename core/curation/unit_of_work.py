"""What one act of deciding finds in the pattern files, be it about one pattern or about thousands."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Final

from core.base.errors import BadInput, Refused, Unwritable
from core.config.paths import ProjectPaths
from core.curation.apply import FreeIds, pattern_path
from core.curation.merge import as_read
from core.curation.pattern_registry import Registry, check_keepable
from core.curation.rules import OVERRIDE
from core.ledger.ledger import Ledger
from core.records.patterns import Pattern
from core.sources.pattern_record import text_of
from core.sources.pattern_text import id_key

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
        self._overridden: dict[str, bool] = {}

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
        """Whether curation can write the record of a pattern; not that of a mirror, nor one without an ID."""
        if not pattern.is_registered:
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
            record = self.registry.records((pattern,))[pattern.id]
            found = text_of(record, pattern.type)
            check_keepable(found, pattern.id)
        except (KeyError, Refused, Unwritable):
            return {}
        told = as_read({**found, id_key(record): pattern.id}, pattern.type)
        kept = told.content_hash == pattern.content_hash and len(json.dumps(found)) <= MAX_TEXT_KEPT
        return found if kept else {}

    def written_override(self, pattern: Pattern) -> str | None:
        """The override in the pattern's record as written there, for undo, unless the ledger wrote it."""
        try:
            if not self._is_overridden(pattern.file):
                return None
            value = self.registry.records((pattern,)).get(pattern.id, {}).get(OVERRIDE)
            if isinstance(value, dict) and value.get("decision") in self._ledger:
                return None
            return self.registry.written(pattern, OVERRIDE)
        except Unwritable:
            return None

    def _is_overridden(self, file: str) -> bool:
        """Whether a file holds an override at all; without one it need not be taken apart."""
        if file not in self._overridden:
            try:
                data = pattern_path(self._paths, file).read_bytes()
            except (OSError, BadInput):
                data = b""
            self._overridden[file] = OVERRIDE.encode() in data
        return self._overridden[file]
