"""Conditions of a search, also as text (docs/task-memory.md#search)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from core.base.errors import BadInput
from core.base.formatting import parse_past_time
from core.base.text import ELLIPSIS, visible_line
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.records.times import parse_time
from core.tasks.task_files import find_attempt

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


MAX_RANKED: Final = 1000  # maximum number of indexed records that are ranked and counted
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

    @property
    def kinds(self) -> frozenset[int]:
        """Kinds of the records in this place; failed actions are in two places."""
        return _KINDS[self]


ALL_PLACES: Final = frozenset(SearchPlace)


class HitKind(IntEnum):
    """What a record is; its value is stored in the search index."""

    TASK = 0
    ATTEMPT = 1  # the files of an attempt
    ENTRY = 2  # an attempt in the trajectory; often repeats `ATTEMPT`
    DOCUMENT = 3  # a result or a milestone
    SUMMARY = 4  # mostly repeats the other files of the task
    REFLECTION = 5
    ACTION = 6
    FAILED = 7  # a failed action
    ERROR = 8  # in the error log, or the failure of a debug session


_KINDS: Final = {
    SearchPlace.TASKS: frozenset(range(HitKind.REFLECTION)),
    SearchPlace.ACTIONS: frozenset({HitKind.ACTION, HitKind.FAILED}),
    SearchPlace.REFLECTIONS: frozenset({HitKind.REFLECTION}),
    SearchPlace.ERRORS: frozenset({HitKind.FAILED, HitKind.ERROR}),
}


class SearchHit(NamedTuple):
    """A matching record; every text is untrusted."""

    file: str
    task_id: str  # "" if unknown
    text: str  # all searched texts of the record, one field per line
    at: datetime | None = None
    attempt: int | None = None
    pointer: str = ""
    kind: HitKind = HitKind.TASK
    action: int | None = None  # number of the action in its log, from 1
    subject: str = ""  # ID of the debug session, or of the work item of an error in the error log
    agent: str = ""  # agent of the debug session
    tool: str = ""  # tool of the action, or its type
    place: SearchPlace = SearchPlace.TASKS  # among the searched places; `ERRORS` for a failed action if possible


class SearchFilters(Struct, frozen=True, kw_only=True):
    """Conditions for a hit besides the words; an empty condition matches all records."""

    places: frozenset[SearchPlace] = ALL_PLACES  # a failed action is in `ACTIONS` and `ERRORS`
    task_id: str = ""  # complete ID
    attempt: int | None = None  # number of an attempt at this task
    statuses: frozenset[TaskStatus] = frozenset()  # of the task
    agent: str = ""  # of the attempt, task or debug session; case is ignored
    tool: str = ""  # of the action; case is ignored, and only actions match
    outcomes: frozenset[Outcome] = frozenset()  # of the attempt or, if the hit has none, of the task's last attempt
    since: datetime | None = None  # inclusive; excludes hits without a time
    until: datetime | None = None  # inclusive; excludes hits without a time


class SearchWords:
    """Words of a query; a text matches if it contains all, in any order and case.

    Text between double quotes is a phrase: its words must follow each other, separated by white space. Raises BadInput
    if the query is empty or too long.
    """

    def __init__(self, query: str) -> None:
        if len(query) > MAX_QUERY:
            raise BadInput(f"the query has {len(query):,} characters; at most {MAX_QUERY} are allowed")
        self.query: Final = query
        asked = _WORD_OR_PHRASE.finditer(query.casefold())
        self._words: Final = tuple(dict.fromkeys(" ".join((one[1] or one[0]).split()) for one in asked))
        self._phrases: Final = any(" " in word for word in self._words)
        if not self._words:
            raise BadInput("the query is empty; give at least one word")
        whole = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in self._words]
        self._whole: Final = tuple(map(re.compile, whole))
        self._together: Final = re.compile(r"(?<!\w)" + r"\W+".join(map(re.escape, self._words)) + r"(?!\w)")
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

    @property
    def folded(self) -> tuple[str, ...]:
        """The words and phrases without case."""
        return self._words

    def rank(self, text: str) -> int:
        """Rank a matching text: 2 for whole words together, 1 whole words, 0 parts."""
        text = " ".join(text.casefold().split())
        if self._together.search(text):
            return 2
        return int(len(self._words) > 1 and all(word.search(text) for word in self._whole))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return beginning and end of all words and phrases in a text, for highlighting."""
        found = (re.finditer(re.escape(word), text, re.IGNORECASE) for word in self._words)
        return [one.span() for matches in found for one in matches]

    def snippet(self, text: str, limit: int) -> str:
        """Return the text around the first match, with at most `limit` characters."""
        text = BETWEEN.join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
        if len(text) <= limit:
            return text
        places = [found.start() for word in self._words if (found := re.search(re.escape(word), text, re.IGNORECASE))]
        begin = min(max(min(places, default=0) - _BEFORE, 0), len(text) - limit + 1)
        shown = ELLIPSIS + text[begin:] if begin else text
        return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS


class _Everything(SearchWords):
    """Matches every text."""

    def __init__(self) -> None:
        super().__init__("*")

    def may_be_in(self, data: bytes, escape: bytes = b"") -> bool:
        return True

    def are_in(self, text: str) -> bool:
        return True


EVERYTHING: Final = _Everything()


_FILTER: Final = re.compile(r'(?<!\S)(in|task|tool|status|agent|outcome|since|until):(?:"([^"]*)"?|(\S*))(?!\S)')
_SETS: Final[dict[str, tuple[str, type[StrEnum]]]] = {
    "in": ("places", SearchPlace),
    "status": ("statuses", TaskStatus),
    "outcome": ("outcomes", Outcome),
}


def parse_search(text: str, paths: ProjectPaths, now: datetime) -> tuple[SearchWords, SearchFilters]:
    """Return the words and the filters of a search.

    A filter without a value is ignored, and an unknown one is a word. Raises BadInput or UnknownRecord if a filter
    or the rest of the text is invalid.
    """
    rest = _FILTER.sub("", text).strip()
    if not rest and text.strip():
        raise BadInput("add a word: filters alone find nothing")
    values: dict[str, Any] = {}
    for found in _FILTER.finditer(text):
        name, value = found[1], found[2] or found[3] or ""
        if value:
            values |= _PARSERS[name](value, paths, now)
    return SearchWords(rest), SearchFilters(**values)


def parse_moment(text: str, now: datetime, *, end_of_day: bool) -> datetime:
    """Parse any time (`2026-02-01`) or an age (`36h`, `7d`, `2w`); raises BadInput."""
    try:
        return parse_past_time(text, now, end_of_day=end_of_day)
    except BadInput:
        if moment := parse_time(text):
            return moment
        raise


def _parse_set(name: str, value: str, _paths: ProjectPaths, _now: datetime) -> dict[str, Any]:
    """Parse words of a fixed set, which may be abbreviated, with commas between them."""
    field, words = _SETS[name]
    parts = [part for part in value.lower().split(",") if part]
    found = {word for part in parts for word in words if word.value.startswith(part)}
    if not all(any(word.value.startswith(part) for word in words) for part in parts):
        raise BadInput(f"{name}:{visible_line(value, 40)} is not valid; use {', '.join(word.value for word in words)}")
    return {field: frozenset(found)} if found else {}


def _parse_task(value: str, paths: ProjectPaths, _now: datetime) -> dict[str, Any]:
    task_id, attempt = find_attempt(paths, value)
    return {"task_id": task_id, "attempt": attempt}


def _parse_time(name: str, value: str, _paths: ProjectPaths, now: datetime) -> dict[str, Any]:
    return {name: parse_moment(value, now, end_of_day=name == "until")}


_PARSERS: Final[dict[str, Callable[[str, ProjectPaths, datetime], dict[str, Any]]]] = {
    **{name: partial(_parse_set, name) for name in _SETS},
    **{name: partial(_parse_time, name) for name in ("since", "until")},
    "task": _parse_task,
    "tool": lambda value, _paths, _now: {"tool": value},
    "agent": lambda value, _paths, _now: {"agent": value},
}
