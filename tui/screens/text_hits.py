"""Rows of the palette for records with text hits, and the search index's state."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.style import Style

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.index.search_words import HitKind, SearchWords
from core.show.work import attempt_key, session_key, task_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.index.search_words import SearchHit
    from core.records.snapshot import Snapshot
    from core.show.filter_parser import Query

_log: Final = logging.getLogger(__name__)
_SHOWN: Final = 120  # maximum characters of the text
_FOUND: Final = Style(underline=True, bold=True)
_NAMES: Final = {
    HitKind.TASK: "task",
    HitKind.ATTEMPT: "attempt",
    HitKind.ENTRY: "attempt",
    HitKind.DOCUMENT: "result",
    HitKind.SUMMARY: "summary",
    HitKind.REFLECTION: "reflection",
    HitKind.ACTION: "action",
    HitKind.FAILED: "failed action",
    HitKind.ERROR: "error",
}


def hit_content(hit: SearchHit, words: SearchWords) -> Content:
    """Return kind, place and text of a record at its first match; underlines all."""
    where = f"{hit.task_id}.{hit.attempt}" if hit.attempt is not None else hit.task_id or hit.subject
    if hit.action is not None:
        where = f"{where} action {hit.action}"
    head = f"{_NAMES[hit.kind]}  {visible_line(where, 80)}  "
    return Content(head) + underlined(visible_line(words.snippet(hit.text, _SHOWN), _SHOWN), words)


def underlined(text: str, words: SearchWords) -> Content:
    """Return a text, not parsed as markup, with all words underlined."""
    content = Content(text)
    for begin, end in words.spans(text):
        content = content.stylize(_FOUND, begin, end)
    return content


def record_of(hit: SearchHit, snapshot: Snapshot) -> tuple[str, str] | None:
    """Return the screen and key of a hit's record; None if no screen lists it."""
    attempt_id = f"{hit.task_id}.{hit.attempt}"
    if hit.attempt is not None and attempt_id in snapshot.attempts:
        return "loops", attempt_key(attempt_id)
    if hit.task_id in snapshot.tasks:
        return "loops", task_key(hit.task_id)
    if hit.subject in snapshot.debug_sessions:
        return "loops", session_key(hit.subject)
    return ("loops", hit.subject) if hit.subject in snapshot.loops else None


def search_words(query: Query) -> SearchWords | None:
    """Return the words of a filter to search in all texts; None if there are none."""
    values = [term.value for term in query.terms if not (term.field or term.negated)]
    try:
        return SearchWords(" ".join(f'"{value}"' if " " in value else value for value in values))
    except BadInput:
        return None


def hits_by_record(hits: Iterable[SearchHit], query: Query) -> dict[str, SearchHit]:
    """Return the first (best) hit by task or attempt ID that has no excluded word."""
    excluded = [term.value for term in query.terms if term.negated and not term.field]
    found: dict[str, SearchHit] = {}
    for hit in hits:
        text = hit.text.lower()
        if hit.task_id and not any(word in text for word in excluded):
            found.setdefault(hit.task_id if hit.attempt is None else f"{hit.task_id}.{hit.attempt}", hit)
    return found


def failure_note(error: Exception) -> str:
    """Log the failure of a search, and describe it in a few words."""
    _log.error("a search failed", exc_info=error)
    return f"the search failed ({type(error).__name__}); the log has details"


def index_note(missing: tuple[int, int] | None) -> str:
    """Describe what a search reads from files; "" if all is indexed."""
    if missing is None:
        return "no search index yet; all files are searched"
    left, total = missing
    return f"{left:,} of {plural(total, 'task')} not indexed yet; their files are searched" if left else ""
