"""Texts as sets of comparable words."""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 8192  # characters of a text that are read

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_]+")
_MAX_MEMO: Final = 200_000
# Words of any text, and words for the kind of task, which the category covers.
_COMMON_WORDS: Final = """
    a about after all also an and any are as at be because been before but by can could do does done don
    during each every for from get go had has have how if in into is it its just like make may me more
    most must need new no not now of on once one only or other our out over please rather set should so
    some such t s than that the their them then there these they this those to too under until up us use
    used using want was we were what when where which while who will with without would you your add
    create build implement write fix change update remove improve handle work task code file project
    thing way error errors failing fails failed problem problems issue issues bug bugs pattern approach
"""


def _stem(word: str) -> str:
    """Stem of an English word, without plural and verb endings and silent e."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if not word.endswith(("ss", "us", "is", "eed")):
        for ending in ("ing", "ed", "es", "s"):
            rest = word.removesuffix(ending)
            if rest != word and len(rest) >= 3:
                doubled = ending in ("ing", "ed") and len(rest) > 3 and rest[-1] == rest[-2] not in "ls"
                word = rest[:-1] if doubled else rest
                break
    return word.rstrip("e") if len(word) > 3 else word


_COMMON: Final = frozenset(map(_stem, _COMMON_WORDS.split()))


def _term(word: str) -> str:
    word = word.lower()
    if word.isascii():
        word = _stem(word)
        if len(word) < 2 or word.isdigit() or word in _COMMON:
            return ""
    return word


class _Memo(dict[str, tuple[str, ...]]):
    """Cache of the terms of each written word."""

    def __missing__(self, written: str) -> tuple[str, ...]:
        if len(self) >= _MAX_MEMO:
            self.clear()
        forms = [written]
        if not written.islower():
            forms += _CAMEL.findall(written)
        found = self[written] = tuple(dict.fromkeys(filter(None, map(_term, forms))))
        return found


_MEMO: Final = _Memo()


def content_words(text: str) -> set[str]:
    """Stems of meaningful words in the first `MAX_CHARS`, with `camelCase` parts."""
    return set().union(*map(_MEMO.__getitem__, _WORD.findall(text[:MAX_CHARS])))
