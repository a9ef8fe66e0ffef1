"""The words and phrases of a query: found in records, and ruled out in bytes that were not decoded."""

from __future__ import annotations

import re
from typing import Final

from core.base.errors import BadInput
from core.base.text import ELLIPSIS

MAX_QUERY: Final = 512
"""Longest query, in characters."""
BETWEEN: Final = " \N{MIDDLE DOT} "
"""What stands between two lines in an excerpt, which may be of different fields."""
_BEFORE: Final = 30
"""So many characters before a match are shown with it."""
# What JSON may write with a backslash and a letter or sign; everything else stands as it is, or as \uXXXX.
_ESCAPED: Final = re.compile(r'["\\/\x00-\x1f]+')
_WORD_OR_PHRASE: Final = re.compile(r'(?<!\S)"([^"]*[^"\s][^"]*)"(?!\S)|\S+')


class SearchWords:
    """All of them must occur in a record, in any order, whatever their case.

    What stands between two double quotes is a phrase: its words must follow each other, with any white space between.

    Raises:
        BadInput: There are none, or the query is too long.
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
        """How many words and phrases there are."""
        return len(self._words)

    def may_be_in(self, data: bytes, escape: bytes = b"\\u") -> bool:
        """False only where no record of an encoded document can hold all words.

        Args:
            data: JSON or the like, whole or a line of it.
            escape: What begins a spelling of a character that hides it.
        """
        if not data.isascii():
            text = data.decode("utf-8", "replace").casefold()
            return all(piece in text for piece in self._pieces) or escape in data
        lower = data.lower()
        for needle in self._needles:  # no generator: this is where a search spends its time
            if needle not in lower:
                return escape in data
        return True

    def are_in(self, text: str) -> bool:
        """Whether a text holds all words and phrases."""
        text = text.casefold()
        if self._phrases:
            text = " ".join(text.split())
        return all(word in text for word in self._words)

    def snippet(self, text: str, limit: int) -> str:
        """The surroundings of the first match, on at most so many characters; a mark stands between lines."""
        text = BETWEEN.join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
        if len(text) <= limit:
            return text
        places = [found.start() for word in self._words if (found := re.search(re.escape(word), text, re.IGNORECASE))]
        begin = min(max(min(places, default=0) - _BEFORE, 0), len(text) - limit + 1)
        shown = ELLIPSIS + text[begin:] if begin else text
        return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS
