"""Task analysis: category, languages, errors, words (docs/retrieval.md#task)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.base.regexes import RegexTable

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
CATEGORIES: Final = (
    *("implementation", "debugging", "refactoring", "testing"),
    *("documentation", "architecture", "migration", "optimization"),
)  # values of `task_category` in the pattern file format


def stem_word(word: str) -> str:
    """Return the stem of an English word: no plural or verb ending, no silent e."""
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


_COMMON: Final = frozenset(map(stem_word, _COMMON_WORDS.split()))


def _term(word: str) -> str:
    word = word.lower()
    if word.isascii():
        word = stem_word(word)
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
        terms = self[written] = tuple(dict.fromkeys(filter(None, map(_term, forms))))
        return terms


_MEMO: Final = _Memo()


def content_words(text: str) -> set[str]:
    """Return stems of meaningful words in the first `MAX_CHARS`, `camelCase` split."""
    return set().union(*map(_MEMO.__getitem__, _WORD.findall(text[:MAX_CHARS])))


class TaskProfile(Struct, frozen=True, kw_only=True):
    """Result of the analysis of a task."""

    text: str  # untrusted
    category: str  # one of `CATEGORIES`, "" if none was recognised
    languages: tuple[str, ...]  # mentioned languages of `LANGUAGES`, by name
    error_types: tuple[str, ...]  # errors that the text names (`TypeError`), then errors that its words suggest
    named_errors: tuple[str, ...]  # errors that the text names
    words: frozenset[str]  # content words, see `content_words`
    decomposition: bool = False  # whether the task is to split work into parts, see `is_decomposition`


_REGEX: Final = RegexTable(Path(__file__).with_name("task.yaml"))
_BY_PRECEDENCE: Final = (
    *("debugging", "testing", "refactoring", "documentation", "migration", "optimization", "architecture"),
    "implementation",
)  # categories; of two with the same score and place the first one wins
_OPENING_BONUS: Final = 2.0
_IMPLEMENTATION_WEIGHT: Final = 0.6
LANGUAGES: Final = ("go", "java", "javascript", "python", "rust", "typescript")  # values of `language`
_NAMED_ERROR: Final = re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Exception)\b")
_ERRORS: Final = (
    *("TypeError", "ReferenceError", "AssertionError", "SyntaxError", "RuntimeError", "TimeoutError"),
    *("ValidationError", "NetworkError"),
)  # errors that words of a task can suggest


def analyse_task(text: str) -> TaskProfile:
    """Analyse the first 8,192 characters of a task description by its words."""
    start = text[:MAX_CHARS]
    named = tuple(dict.fromkeys(_NAMED_ERROR.findall(start)))
    likely = tuple(name for name in _ERRORS if name not in named and _REGEX[name].search(start))
    return TaskProfile(
        text=text,
        category=_category(start) or ("debugging" if named or likely else ""),
        languages=tuple(name for name in LANGUAGES if _REGEX[name].search(start)),
        error_types=named + likely,
        named_errors=named,
        words=frozenset(content_words(start)),
        decomposition=is_decomposition(start),
    )


def is_decomposition(text: str) -> bool:
    """Return whether a task is to split work: "decompose", "split into tasks" ..."""
    return _REGEX["decomposition"].search(text[:MAX_CHARS]) is not None


def _category(text: str) -> str:
    opening = _WORD.search(text)
    best, most = "", (0.0, 0)
    for category in _BY_PRECEDENCE:
        matches = list(_REGEX[category].finditer(text))
        if not matches:
            continue
        score = float(len({match[0].lower() for match in matches}))
        if category == "implementation":
            score *= _IMPLEMENTATION_WEIGHT
        elif opening and matches[0].start() == opening.start():
            score += _OPENING_BONUS
        if (score, -matches[0].start()) > most:
            best, most = category, (score, -matches[0].start())
    return best
