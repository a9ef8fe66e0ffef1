"""Category, languages, errors and words of a task (docs/retrieval.md#task)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.redaction.regex_table import RegexTable
from core.retrieval.words import MAX_CHARS, content_words

CATEGORIES: Final = (
    *("implementation", "debugging", "refactoring", "testing"),
    *("documentation", "architecture", "migration", "optimization"),
)  # values of `task_category` in the pattern file format


class TaskProfile(Struct, frozen=True, kw_only=True):
    """Result of the analysis of a task."""

    text: str  # untrusted
    category: str  # one of `CATEGORIES`, "" if none was recognised
    languages: tuple[str, ...]  # mentioned languages of `LANGUAGES`, by name
    error_types: tuple[str, ...]  # errors that the text names (`TypeError`), then errors that its words suggest
    named_errors: tuple[str, ...]  # errors that the text names
    words: frozenset[str]  # content words, see `core.retrieval.words`
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
    """Whether a task is to split work: "decompose", "split into tasks" ..."""
    return _REGEX["decomposition"].search(text[:MAX_CHARS]) is not None


def _category(text: str) -> str:
    opening = re.search(r"[^\W_]+", text)
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
