"""Filters inside the text of a search, such as `in:errors since:7d oauth` (docs/task-memory.md#search)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import BadInput
from core.base.text import visible_line
from core.base.time_parsing import parse_past_time
from core.episodes.task_lookup import find_attempt
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.records.times import parse_time
from core.search.words import SearchFilters, SearchPlace, SearchWords

if TYPE_CHECKING:
    from enum import StrEnum

    from core.config.paths import ProjectPaths

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
    """Parse a past or future time or an age: `2026-02-01`, `36h`, `7d`, `2w`; raises BadInput."""
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
