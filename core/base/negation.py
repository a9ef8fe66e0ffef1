"""Negation in English text: words that negate, and the phrases that they negate."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.base.regexes import RegexTable

MAX_TEXT: Final = 50_000  # Maximum number of characters of a text that are read.

NOT: Final = (
    r"(?:(?:ai|do|does|did|wo|would|should|could|ca|must|need|is|are|was|were|has|have|had)n['\u2019]?t"
    r"|cannot|not|never)"
)
"""A word that negates a verb."""
_REGEX: Final = RegexTable(Path(__file__).with_name("negation.yaml"), negator=NOT)


def is_negated(text: str) -> bool:
    """Return whether a lower-case sentence contains a negation in a known language."""
    return _REGEX["negated"].search(text) is not None


def find_prohibition(text: str) -> str:
    """Return the first word that forbids something, such as "never"; "" if none does.

    "No", "without" and the like count only at the beginning of a clause.
    """
    found = _REGEX["prohibition"].search(text)
    return found["opening"] or found["anywhere"] if found else ""


_SIGNS: Final = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'") | {"&": " and ", "\u2014": " ; "})
_DASHES: Final = frozenset({"-", "--", "\u2013"})


@dataclass(slots=True)
class _Negation:
    """Negation whose clause has not ended yet.

    `kind` is the group of the regex that matched. A negated verb (`kind`) reaches further than a negated noun or
    phrase. `opening` is whether the negation opens its clause: "Instead of ..., ...". `covers_phrase` is whether
    `covers` already returned True for it.
    """

    kind: str
    opening: bool
    covers_phrase: bool = False


def normalize_sentences(text: str) -> str:
    """Return lower-case `text` without markup, with spaces around punctuation.

    Each list item, and each line that begins with a capital, becomes a sentence of its own. Items below a heading such
    as "Avoid:" repeat the heading. Reads only the first `MAX_TEXT` characters.
    """
    parts: list[str] = []
    warning = ""
    text = unicodedata.normalize("NFKC", text[:MAX_TEXT].translate(_SIGNS))[:MAX_TEXT]
    for line in _REGEX["hidden"].sub("", text).splitlines():
        line = line.strip()
        item = _REGEX["item"].match(line)
        found = _REGEX["word"].findall(line.lower().replace("w/o", "without"), item.end() if item else 0)
        words = " ".join(";" if word in _DASHES else word for word in found)
        if item:
            words = f". {warning}{words}"
        elif words:
            heading = line.startswith("#") or words.endswith(":")
            warning = "avoid : " if heading and _REGEX["heading"].search(words) else ""
        parts.append(f". {words}" if not words or _REGEX["sentence"].match(line) else words)
    return " ".join(parts)


class Negations:
    """Finds negated phrases in a text from `normalize_sentences`, in one pass.

    A negation reaches to the end of its clause: a full stop, a semicolon, a word such as "but" or "so", or a comma or
    "and" before a new clause.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = _REGEX["mark"].finditer(text)
        self._next = next(self._marks, None)
        self._negation: _Negation | None = None
        self._clause = 0
        self._outside: list[_Negation | None] = []

    def covers(self, end: int) -> bool:
        """Return whether the phrase ending at `end` is negated; call with rising `end`."""
        while self._next is not None and self._next.start() < end:
            self._read(self._next)
            self._next = next(self._marks, None)
        if self._negation is None:
            return _REGEX["refused_after"].match(self._text, end) is not None
        self._negation.covers_phrase = True
        return True

    def _read(self, mark: re.Match[str]) -> None:
        kind = mark.lastgroup
        if kind in ("phrase", "verb", "noun", "past"):
            self._negation = _Negation(kind, opening=mark.start() <= self._clause + 1)
        elif kind == "toggle":
            self._negation = None if self._negation else _Negation("phrase", opening=False)
        elif kind == "subject":
            negation = self._negation
            if negation and negation.kind == "phrase" and negation.opening and negation.covers_phrase:
                self._negation = None  # "instead of ... we ..."
        elif kind == "open":
            self._outside.append(self._negation)
        elif kind == "close":
            self._negation = self._outside.pop() if self._outside else None
        elif kind == "stop" or (kind in ("comma", "and") and self._ends(kind, mark.end())):
            self._negation = None
            self._clause = mark.end()

    def _ends(self, kind: str, at: int) -> bool:
        """Return whether the comma or "and" before offset `at` ends the negation."""
        negation = self._negation
        if negation is None or _REGEX["subject_next"].match(self._text, at):
            return True
        if kind == "and" and negation.kind == "verb":
            return False
        if not negation.covers_phrase:
            return True
        if kind == "comma" and _REGEX["list_next"].match(self._text, at):
            return False
        if kind == "comma" and negation.kind == "phrase":
            return negation.opening or not _REGEX["same_next"].match(self._text, at)
        return _REGEX["verb_next"].match(self._text, at) is not None
