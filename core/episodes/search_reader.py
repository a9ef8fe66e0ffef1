"""Read files for a search: parse only files and lines whose bytes may match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from core.config.paths import ProjectPaths
from core.episodes.search_words import SearchWords
from core.records.findings import Finding
from core.sources.record_kinds import DEBUG_SESSIONS
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_BYTES, RawFile, decode, read_file


class SearchPlace(StrEnum):
    """Kinds of records that are searched."""

    TASKS = "tasks"
    ACTIONS = "actions"
    REFLECTIONS = "reflections"
    ERRORS = "errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A matching record; every text is untrusted.

    Attributes:
        place: A failed action is an error if errors are searched.
        task_id, attempt: "" and None if the record names none.
        action: The number of the action in its log, from 1.
        subject: The loop of an error in the error log, or the debug session; else "".
        agent: The agent of the debug session; for tasks and attempts see `Owner`.
        text: All searched texts, one field per line.
    """

    place: SearchPlace
    file: str
    pointer: str = ""
    task_id: str = ""
    attempt: int | None = None
    action: int | None = None
    subject: str = ""
    at: datetime | None = None
    agent: str = ""
    text: str = field(repr=False)


class SearchReader:
    """Reads files and matches their texts against the words of a query.

    Attributes:
        findings: Problems with the files that were parsed.
    """

    def __init__(self, paths: ProjectPaths, words: SearchWords) -> None:
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._words: Final = words
        self._root: Final = paths.aiwg

    def _lines(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of the complete lines that may match."""
        if self._words.may_be_in(data):
            for number, line in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n"), 1):
                if line and self._words.may_be_in(line):
                    yield number, line

    def _match(self, texts: Iterable[str]) -> str:
        """The texts joined by line feeds if they contain all words, else ""."""
        text = "\n".join(filter(None, dict.fromkeys(texts)))
        return text if self._words.are_in(text) else ""

    def _read(self, file: str, limit: int = MAX_BYTES) -> RawFile | None:
        raw = read_file(f"{self._paths.project}/{file}", self._root, limit)
        if isinstance(raw, Problem):
            self.findings.append(raw.finding(file))
            return None
        return raw

    def _decode(self, file: str, data: bytes) -> Any:
        decoded = decode(file, data, every=DEBUG_SESSIONS.matches(file))
        self.findings += (problem.finding(file) for problem in decoded.problems)
        return decoded.value

    def _object(self, file: str, wanted: Callable[[bytes], bool] | None = None) -> dict[str, Any]:
        """A JSON object; an empty one if there is none or its bytes do not match."""
        raw = self._read(file)
        value = self._decode(file, raw.data) if raw and (wanted is None or wanted(raw.data)) else None
        return value if isinstance(value, dict) else {}
