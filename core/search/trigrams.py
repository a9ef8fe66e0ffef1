"""Texts and expressions for the trigram index."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

_LENGTH: Final = 3
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_BREAK: Final = "\x1f"
_MAX_TRIGRAMS: Final = 100  # maximum number of trigrams that are looked up; the text decides anyway
_IDEOGRAPHS: Final = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_UNSAFE: Final = re.compile("[\x00\x1f\ud800-\udfff]")  # NUL ends a text in the index; surrogates are not in UTF-8


def indexed_text(texts: Iterable[str]) -> str:
    """Return the words of texts as they are indexed: without case, each once.

    Every character begins a trigram, so spaces follow the last one. Words of one or two ideographs are frequent, so
    ideographs are repeated with a break between them.
    """
    words = dict.fromkeys("\n".join(texts).casefold().split())
    text = f"{' '.join(words)}  "
    if not text.isascii() or "\x00" in text:
        text = _UNSAFE.sub(_REPLACEMENT, text)
    runs = (run for word in words if not word.isascii() for run in _IDEOGRAPHS.findall(word))
    return "".join((text, *dict.fromkeys(f"{_BREAK}{_BREAK.join(run)}{_BREAK}" for run in runs)))


def match_expression(words: Sequence[str], list_terms: Callable[[str], Iterable[str]]) -> str:
    """Return a full-text expression that every text with all these words matches.

    `list_terms` lists the indexed trigrams that begin with one or two characters; it is used if no word is longer. ""
    if there are none. The words are without case, as in `SearchWords`; none of them is parsed as syntax.
    """
    parts = [_UNSAFE.sub(_REPLACEMENT, part) for phrase in words for part in phrase.split(" ")]
    trigrams: dict[str, None] = {}
    for word in parts:
        if len(word) < _LENGTH and _IDEOGRAPHS.fullmatch(word):
            word = f"{_BREAK}{word}{_BREAK}" if len(word) == 1 else _BREAK.join(word)
        trigrams |= dict.fromkeys(word[at : at + _LENGTH] for at in range(len(word) - _LENGTH + 1))
    if trigrams:
        return " ".join(map(_quote, islice(trigrams, _MAX_TRIGRAMS)))
    return " OR ".join(map(_quote, list_terms(max(parts, key=len))))


def _quote(term: str) -> str:
    return '"{}"'.format(term.replace('"', '""'))
