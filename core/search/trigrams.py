"""Texts and expressions for the trigram index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

_LENGTH: Final = 3
_BREAK: Final = "\x1f"
_MAX_TRIGRAMS: Final = 100  # maximum number of trigrams that are looked up; the text decides anyway
_IDEOGRAPHS: Final = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_UNSAFE: Final = re.compile("[\x00\x1f\ud800-\udfff]")  # NUL ends a text in the index; surrogates are not in UTF-8


def indexed_text(texts: Iterable[str]) -> str:
    """Return the words of texts as they are indexed: without case, each once.

    Words of one or two ideographs are too short for trigrams, so ideographs are repeated with a break between them.
    """
    words = dict.fromkeys("\n".join(texts).casefold().split())
    text = " ".join(word for word in words if len(word) >= _LENGTH)
    if not text.isascii() or "\x00" in text:
        text = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)
    runs = (run for word in words if not word.isascii() for run in _IDEOGRAPHS.findall(word))
    return " ".join((text, *dict.fromkeys(f"{_BREAK}{_BREAK.join(run)}{_BREAK}" for run in runs)))


def match_expression(words: Sequence[str]) -> str:
    """Return a full-text expression that every text with all these words matches.

    "" if the words are too short. The words are without case, as in `SearchWords`; none of them is parsed as syntax.
    """
    trigrams: dict[str, None] = {}
    for word in (part for phrase in words for part in phrase.split(" ")):
        safe = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", word)
        if len(safe) < _LENGTH and _IDEOGRAPHS.fullmatch(safe):
            safe = f"{_BREAK}{safe}{_BREAK}" if len(safe) == 1 else _BREAK.join(safe)
        trigrams |= dict.fromkeys(safe[at : at + _LENGTH] for at in range(len(safe) - _LENGTH + 1))
    return " ".join('"{}"'.format(one.replace('"', '""')) for one in islice(trigrams, _MAX_TRIGRAMS))
