"""Untrusted texts as parts of a record: one line each, capped; and the words that name a pattern."""

from __future__ import annotations

import re
from typing import Final

MAX_LINE: Final = 300
"""Longest single text, in characters, of a record that is made."""
MAX_SLUG: Final = 40

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_MAX_SLUG_WORDS: Final = 4
_SMALL: Final = frozenset(
    {"the", "an", "of", "to", "and", "or", "for", "in", "on", "with", "is", "are", "was", "it", "its", "by", "at"}
    | {"from", "so", "that", "this", "be", "as", "all", "one", "their", "then", "when", "while"}
)
"""Words that no name needs."""
_LABEL: Final = re.compile(r"\s*(?:attempt|iteration|step)\s+\d{1,6}\s*[:.-]\s*", re.IGNORECASE)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """`text` on one line of at most `limit` characters; whatever else it holds stays as it is."""
    whole = " ".join(replace_surrogates(text[: limit * 4]).split())
    return whole if len(whole) <= limit else f"{whole[: limit - 1]}…"


def replace_surrogates(text: str) -> str:
    """`text` without half characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def strip_label(text: str) -> str:
    """What an iteration says it did, without the label in front: `Attempt 2: guard` is `guard`."""
    label = _LABEL.match(text)
    return one_line(text[label.end() :] if label else text)


def make_slug(text: str, fallback: str) -> str:
    """The telling words of `text` as an id carries them: lower case letters, digits, hyphens, 40 at most."""
    kept: list[str] = []
    for word in _WORD.findall(text[: MAX_LINE * 2]):
        if len(word) > 1 and word.lower() not in _SMALL and word.lower() not in kept:
            kept.append(word.lower())
        if len(kept) == _MAX_SLUG_WORDS:
            break
    while len(kept) > 1 and len("-".join(kept)) > MAX_SLUG:
        kept.pop()
    return "-".join(kept)[:MAX_SLUG] or fallback
