"""Conversion of untrusted texts to single lines of records, and to pattern IDs."""

from __future__ import annotations

import re
from typing import Final

from core.base.regexes import lazy_regex
from core.base.text import visible_line

MAX_LINE: Final = 300  # Longest line, in characters, of a created record.
MAX_SLUG: Final = 40

_WORD: Final = lazy_regex(r"[A-Za-z][A-Za-z0-9]*")
_MAX_SLUG_WORDS: Final = 4
_SMALL: Final = frozenset(
    {"the", "an", "of", "to", "and", "or", "for", "in", "on", "with", "is", "are", "was", "it", "its", "by", "at"}
    | {"from", "so", "that", "this", "be", "as", "all", "one", "their", "then", "when", "while"}
)
"""Words left out of slugs."""
_LABEL: Final = lazy_regex(r"\s*(?:attempt|iteration|step)\s+\d{1,6}\s*[:.-]\s*", re.IGNORECASE)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Return `text` as one line of at most `limit` characters."""
    whole = " ".join(replace_surrogates(text[: limit * 4]).split())
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def strip_label(text: str) -> str:
    """Return `text` on one line without its label: `Attempt 2: guard` -> `guard`."""
    label = _LABEL.match(text)
    return one_line(text[label.end() :] if label else text)


def lesson_name(text: str) -> str:
    """Return a short name of a lesson that an agent wrote down, for people."""
    return f"the lesson “{visible_line(one_line(text), 60)}”"


def make_slug(text: str, fallback: str) -> str:
    """Return a slug of the meaningful words, of `a-z`, `0-9` and `-`; 40 at most."""
    words: list[str] = []
    for word in _WORD.findall(text[: MAX_LINE * 2]):
        if len(word) > 1 and word.lower() not in _SMALL and word.lower() not in words:
            words.append(word.lower())
        if len(words) == _MAX_SLUG_WORDS:
            break
    while len(words) > 1 and len("-".join(words)) > MAX_SLUG:
        words.pop()
    return "-".join(words)[:MAX_SLUG] or fallback
