"""Conditions of a search, and a reader that parses only what may match them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from core.base.errors import BadInput
from core.base.text import ELLIPSIS
from core.config.paths import ProjectPaths
from core.records.episodes import TaskStatus
from core.records.findings import Finding
from core.records.loops import Outcome
from core.sources.record_kinds import DEBUG_SESSIONS
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_BYTES, RawFile, decode, read_file

MAX_QUERY: Final = 512  # characters of a query
BETWEEN: Final = " \N{MIDDLE DOT} "  # separator of lines in an excerpt
_BEFORE: Final = 30  # characters that are shown before a match
# Characters that JSON may escape with a backslash and a letter or sign; all others are literal or \uXXXX.
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
    task_id: str  # "" if the record names none
    text: str = field(repr=False)  # all searched texts, one field per line
    at: datetime | None = None
    attempt: int | None = None
    pointer: str = ""
    place: SearchPlace = SearchPlace.TASKS  # a failed action is an error if errors are searched
    action: int | None = None  # the number of the action in its log, from 1
    subject: str = ""  # the loop of an error in the error log, or the debug session
    agent: str = ""  # of the debug session


class SearchFilters(Struct, frozen=True, kw_only=True):
    """Conditions for a hit besides the words; an empty filter matches everything."""

    places: frozenset[SearchPlace] = frozenset(SearchPlace)  # a failed action is an action and an error, found once
    task_id: str = ""  # complete; with `attempt` only that attempt
    attempt: int | None = None
    statuses: frozenset[TaskStatus] = frozenset()  # of the task
    agent: str = ""  # of the attempt, the task or the debug session; case is ignored
    outcomes: frozenset[Outcome] = frozenset()  # of the attempt; for a task, of its last attempt
    since: datetime | None = None  # inclusive, like `until`; hits without a time do not match then
    until: datetime | None = None


class SearchWords:
    """The words of a query, all of which must occur, in any order and case.

    Text between double quotes is a phrase: its words must follow each other, separated by any white space. Raises
    BadInput if the query is empty or too long.
    """

    def __init__(self, query: str) -> None:
        if len(query) > MAX_QUERY:
            raise BadInput(f"a query has at most {MAX_QUERY} characters, not {len(query):,}")
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
        """False only if no record in encoded data can contain all words.

        `data` is JSON or the like, complete or one line; `escape` is the beginning of an escape sequence, which may
        hide a character.
        """
        if not data.isascii():
            text = data.decode("utf-8", "replace").casefold()
            return all(piece in text for piece in self._pieces) or escape in data
        lower = data.lower()
        for needle in self._needles:  # not a generator: a search spends its time here
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
        """The text around the first match, at most `limit` characters."""
        text = BETWEEN.join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
        if len(text) <= limit:
            return text
        places = [found.start() for word in self._words if (found := re.search(re.escape(word), text, re.IGNORECASE))]
        begin = min(max(min(places, default=0) - _BEFORE, 0), len(text) - limit + 1)
        shown = ELLIPSIS + text[begin:] if begin else text
        return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS


class SearchReader:
    """Match files against a query; `findings` are problems with parsed files."""

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
