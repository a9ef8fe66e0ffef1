"""Records of pattern files and archives, for decisions on whole records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.base.errors import BadInput, Refused, Unwritable
from core.base.text import visible_line
from core.decisions.apply import FreeIds, pattern_path
from core.decisions.merge import as_read
from core.files.file_access import open_regular
from core.files.json_editor import BadJson, JsonText, Path
from core.sources.keys import RecordText
from core.sources.pattern_text import Record, id_key, records
from core.sources.patterns import text_of

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.patterns import Pattern
    from core.sources.ledger import Ledger

OVERRIDE: Final = "override"
"""Key of a pattern record that shows a decision to other tools; only the ledger is authoritative."""
MAX_STORED_TEXT: Final = 64 << 10  # Maximum length of a text, in characters of JSON, that is stored with a decision.


@dataclass(frozen=True)
class Stored:
    """One record, its JSON text and its project-relative file."""

    file: str
    value: dict[str, Any]
    text: str

    def texts_of(self, keys: Iterable[str]) -> dict[str, str]:
        document = RecordText(self.text.encode())
        return {key: document.text_at((key,)) for key in keys}


class Registry:
    """The pattern files and archives of a project, each read once on first use."""

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._files: dict[str, tuple[JsonText, dict[str, Record]] | None] = {}
        self._texts: dict[tuple[str, Path], list[str]] = {}

    def record(self, pattern: Pattern) -> Stored:
        """Return a pattern's record; raise `Refused` if file or ledger cannot store it."""
        if pattern.is_unnamed:
            place = f"{visible_line(pattern.file, 120)} at {visible_line(pattern.pointer, 80) or 'the top'}"
            raise Refused(f"the record in {place} has no ID and cannot be changed; give it one first")
        found = self.find(pattern.file, pattern.id)
        if found is None or pattern.copy_folder:
            name, file = visible_line(pattern.id, 80), visible_line(pattern.file, 120)
            raise Refused(f"{name} is in {file}, which cannot be changed")
        return found

    def find(self, file: str, pattern_id: str) -> Stored | None:
        """Return the record of an ID in one file; None if it cannot be changed there.

        Raises `Refused` if the ledger cannot store it exactly.
        """
        read = self._read(file)
        if read is None or pattern_id not in read[1]:
            return None
        document, records = read
        record = records[pattern_id]
        check_storable(record.value, pattern_id)
        return Stored(file, record.value, self._text(file, document, record.path))

    def _text(self, file: str, document: JsonText, path: Path) -> str:
        """Return the JSON text of a record; a list of records is split only once."""
        if document.is_lines or not path or not isinstance(path[-1], int):
            return document.text_at(path)
        parent = (file, path[:-1])
        if parent not in self._texts:
            self._texts[parent] = document.texts(path[:-1])
        return self._texts[parent][path[-1]]

    def records(self, patterns: Iterable[Pattern]) -> dict[str, dict[str, Any]]:
        """Return records by pattern ID, for the patterns whose files can be written."""
        found = {}
        for pattern in patterns:
            read = None if pattern.copy_folder else self._read(pattern.file)
            if read is not None and pattern.id in read[1]:
                found[pattern.id] = read[1][pattern.id].value
        return found

    def written(self, pattern: Pattern, key: str) -> str | None:
        """Return the JSON text of a key in a pattern's record; None if it is missing."""
        document, records = self._read(pattern.file) or (None, {})
        record = records.get(pattern.id)
        if document is None or record is None or key not in record.value:
            return None
        return document.text_at((*record.path, key))

    def archives(self) -> tuple[str, ...]:
        """Return the archive files, newest month first; project-relative."""
        return tuple(self._paths.relative(path) for path in sorted(self._paths.archive.glob("*.json"), reverse=True))

    def _read(self, file: str) -> tuple[JsonText, dict[str, Record]] | None:
        """Return a file and the first record of each ID; None if it cannot be written."""
        if file not in self._files:
            try:
                document = _read(pattern_path(self._paths, file))
            except (BadInput, BadJson, FileNotFoundError):
                self._files[file] = None
            else:
                found = list(records(document))
                if file not in self.archives():  # in an archive the last record of an ID counts
                    found.reverse()
                self._files[file] = document, {record.id: record for record in found}
        return self._files[file]


def check_storable(record: dict[str, Any], pattern_id: str) -> None:
    """Raise `Refused` if the ledger cannot store a record exactly."""
    try:
        same = msgspec.json.decode(msgspec.json.encode(record)) == record
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        same = False
    if not same:
        name = visible_line(pattern_id, 80)
        raise Refused(f"{name} contains numbers or characters that the decision log cannot store")


def _read(path: FilePath) -> JsonText:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            return RecordText(file.read())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unwritable(f"cannot read {path}: {error.strerror}") from None


class UnitOfWork:
    """The files read for one act, each once, while the ledger is locked."""

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
        return Registry(self._paths)

    def is_writable(self, pattern: Pattern) -> bool:
        """Whether curation can write the record of a pattern."""
        if not pattern.is_registered:
            return False
        if pattern.file not in self._writable:
            self._writable[pattern.file] = True
            try:
                pattern_path(self._paths, pattern.file)
            except BadInput:
                self._writable[pattern.file] = False
        return self._writable[pattern.file]

    def text(self, pattern: Pattern) -> dict[str, Any]:
        """Return the text keys of a record; {} if they changed or cannot be stored."""
        try:
            record = self.registry.records((pattern,))[pattern.id]
            found = text_of(record, pattern.type)
            check_storable(found, pattern.id)
        except (KeyError, Refused, Unwritable):
            return {}
        stored = as_read({**found, id_key(record): pattern.id}, pattern.type)
        is_same = stored.content_hash == pattern.content_hash
        return found if is_same and len(json.dumps(found)) <= MAX_STORED_TEXT else {}

    def written_override(self, pattern: Pattern) -> str | None:
        """Return the JSON text of an override by another program, for undo, or None."""
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
        """Whether a file contains any override; if not, it is not parsed."""
        if file not in self._overridden:
            try:
                data = pattern_path(self._paths, file).read_bytes()
            except (OSError, BadInput):
                data = b""
            self._overridden[file] = OVERRIDE.encode() in data
        return self._overridden[file]
