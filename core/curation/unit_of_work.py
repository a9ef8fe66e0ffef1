"""The pattern files as one act of deciding reads them, for one pattern or thousands."""

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

MAX_STORED_TEXT: Final = 64 << 10
"""Longest text, in characters of JSON, that is stored with the decision on it."""


class UnitOfWork:
    """The files of one act of deciding; each is read once, on first use.

    Args:
        paths: The project.
        ledger: Its ledger, locked by the caller.
    """

    def __init__(self, paths: ProjectPaths, ledger: Ledger) -> None:
        self._paths = paths
        self._ledger = ledger
        self._writable: dict[str, bool] = {}
        self._overridden: dict[str, bool] = {}

    @cached_property
    def ids(self) -> FreeIds:
        """Allocates free IDs; IDs of pending effects count as taken."""
        pending = {decision.id: decision for decision, _ in self._ledger.pending()}
        return FreeIds(self._paths, (effect.pattern_id for item in pending.values() for effect in item.effects))

    @cached_property
    def registry(self) -> Registry:
        """The records of the pattern files."""
        return Registry(self._paths)

    def is_writable(self, pattern: Pattern) -> bool:
        """Whether curation can write the record of a pattern."""
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
        """The keys of the record that hold the text of a pattern.

        {} if the record has another text now, or one that the ledger cannot store.
        """
        try:
            record = self.registry.records((pattern,))[pattern.id]
            found = text_of(record, pattern.type)
            check_keepable(found, pattern.id)
        except (KeyError, Refused, Unwritable):
            return {}
        stored = as_read({**found, id_key(record): pattern.id}, pattern.type)
        is_same = stored.content_hash == pattern.content_hash
        return found if is_same and len(json.dumps(found)) <= MAX_STORED_TEXT else {}

    def written_override(self, pattern: Pattern) -> str | None:
        """JSON text of a foreign override in the record, for undo; None if there is none."""
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
        """Whether a file contains an override at all; otherwise it need not be parsed."""
        if file not in self._overridden:
            try:
                data = pattern_path(self._paths, file).read_bytes()
            except (OSError, BadInput):
                data = b""
            self._overridden[file] = OVERRIDE.encode() in data
        return self._overridden[file]
