"""The words and phrases of a search query: find them in texts, and rule them out in undecoded bytes."""

from __future__ import annotations

import re
from typing import Final

from core.base.errors import BadInput
from core.base.text import ELLIPSIS

MAX_QUERY: Final = 512
"""Characters of a query."""
BETWEEN: Final = " \N{MIDDLE DOT} "
"""Separator of lines in an excerpt."""
_BEFORE: Final = 30
"""Characters that are shown before a match."""
# Characters that JSON may escape with a backslash and a letter or sign; all others are literal or \uXXXX.
_ESCAPED: Final = re.compile(r'["\\/\x00-\x1f]+')
_WORD_OR_PHRASE: Final = re.compile(r'(?<!\S)"([^"]*[^"\s][^"]*)"(?!\S)|\S+')


class SearchWords:
    """All words must occur in a record, in any order and case.

    Text between double quotes is a phrase: its words must follow each other, separated by any white space.

    Raises:
        BadInput: The query is empty or too long.
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

        Args:
            data: JSON or the like, complete or one line.
            escape: The beginning of an escape sequence, which may hide a character.
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
