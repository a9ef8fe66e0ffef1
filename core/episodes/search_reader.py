"""Conditions of a search, and a reader that parses only data that may match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.base.errors import BadInput
from core.base.text import ELLIPSIS
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.sources.record_kinds import DEBUG_SESSIONS
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_BYTES, RawFile, decode, read_file

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.findings import Finding

MAX_QUERY: Final = 512  # maximum length of a query
BETWEEN: Final = " \N{MIDDLE DOT} "  # separator of lines in an excerpt
_BEFORE: Final = 30  # number of characters that are shown before a match
# Characters that JSON may escape with a backslash and one character; others are literal or escaped as \uXXXX.
_ESCAPED: Final = re.compile(r'["\\/\x00-\x1f]+')
_WORD_OR_PHRASE: Final = re.compile(r'(?<!\S)"([^"]*[^"\s][^"]*)"(?!\S)|\S+')


class SearchPlace(StrEnum):
    """Kinds of records that are searched."""

    TASKS = "tasks"
    ACTIONS = "actions"
    REFLECTIONS = "reflections"
    ERRORS = "errors"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A matching record; every text is untrusted."""

    file: str
    task_id: str  # "" if unknown
    text: str = field(repr=False)  # all searched texts of the record, one field per line
    at: datetime | None = None
    attempt: int | None = None
    pointer: str = ""
    place: SearchPlace = SearchPlace.TASKS  # `ERRORS` for a failed action if errors are searched
    action: int | None = None  # number of the action in its log, from 1
    subject: str = ""  # ID of the debug session, or of the work item of an error in the error log
    agent: str = ""  # agent of the debug session


class SearchFilters(Struct, frozen=True, kw_only=True):
    """Conditions for a hit besides the words; an empty condition matches all records."""

    places: frozenset[SearchPlace] = frozenset(SearchPlace)  # a failed action is in `ACTIONS` and `ERRORS`
    task_id: str = ""  # complete ID
    attempt: int | None = None  # number of an attempt at this task
    statuses: frozenset[TaskStatus] = frozenset()  # of the task
    agent: str = ""  # of the attempt, task or debug session; case is ignored
    outcomes: frozenset[Outcome] = frozenset()  # of the attempt or, if the hit has none, of the task's last attempt
    since: datetime | None = None  # inclusive; excludes hits without a time
    until: datetime | None = None  # inclusive; excludes hits without a time


class SearchWords:
    """Words of a query; a text matches if it contains all of them, in any order and case.

    Text between double quotes is a phrase: its words must follow each other, separated by white space. Raises BadInput
    if the query is empty or too long.
    """

    def __init__(self, query: str) -> None:
        if len(query) > MAX_QUERY:
            raise BadInput(f"the query has {len(query):,} characters; at most {MAX_QUERY} are allowed")
        asked = _WORD_OR_PHRASE.finditer(query.casefold())
        self._words: Final = tuple(dict.fromkeys(" ".join((one[1] or one[0]).split()) for one in asked))
        self._phrases: Final = any(" " in word for word in self._words)
        if not self._words:
            raise BadInput("the query is empty; give at least one word")
        pieces = [max(_ESCAPED.split(word), key=len) for words in self._words for word in words.split(" ")]
        self._pieces: Final = tuple(sorted(filter(None, pieces), key=len, reverse=True))
        self._needles: Final = tuple(piece.encode("utf-8", "replace") for piece in self._pieces)

    def __len__(self) -> int:
        return len(self._words)

    def may_be_in(self, data: bytes, escape: bytes = b"\\u") -> bool:
        """Return False if no record in encoded data can contain all words.

        `data` is a file or line in JSON or a similar format. True may be wrong, for example if `data` contains
        `escape`, the beginning of an escape sequence, which may represent any character.
        """
        if not data.isascii():
            text = data.decode("utf-8", "replace").casefold()
            return all(piece in text for piece in self._pieces) or escape in data
        lower = data.lower()
        for needle in self._needles:  # a loop is faster than a generator; a search spends most of its time here
            if needle not in lower:
                return escape in data
        return True

    def are_in(self, text: str) -> bool:
        """Whether a text contains all words and phrases."""
        text = text.casefold()
        if self._phrases:
            text = " ".join(text.split())
        return all(word in text for word in self._words)

    def snippet(self, text: str, limit: int) -> str:
        """Return the text around the first match, with at most `limit` characters."""
        text = BETWEEN.join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
        if len(text) <= limit:
            return text
        places = [found.start() for word in self._words if (found := re.search(re.escape(word), text, re.IGNORECASE))]
        begin = min(max(min(places, default=0) - _BEFORE, 0), len(text) - limit + 1)
        shown = ELLIPSIS + text[begin:] if begin else text
        return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS


class SearchReader:
    """Reads files that may match a query; `findings` are problems with parsed files."""

    def __init__(self, paths: ProjectPaths, words: SearchWords) -> None:
        self.findings: list[Finding] = []
        self._paths: Final = paths
        self._words: Final = words
        self._root: Final = paths.aiwg

    def _lines(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of complete lines that may match."""
        if self._words.may_be_in(data):
            for number, line in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n"), 1):
                if line and self._words.may_be_in(line):
                    yield number, line

    def _match(self, texts: Iterable[str]) -> str:
        """Return the texts joined by line feeds if they contain all words; otherwise ""."""
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
        """Read a JSON object; return {} if there is none or its bytes are not `wanted`."""
        raw = self._read(file)
        value = self._decode(file, raw.data) if raw and (wanted is None or wanted(raw.data)) else None
        return value if isinstance(value, dict) else {}
