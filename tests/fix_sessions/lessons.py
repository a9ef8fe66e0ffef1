"""What a good lesson is: contains the change, gives a reason in words, and has holes only where it generalizes."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Iterable
from typing import Final

from core.records.patterns import Pattern
from tests.fix_sessions.sessions import Session

_HOLE: Final = re.compile(r"\{\{[^{}\n]*\}\}")
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_QUOTED: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|//.*|(?<!\$)#.*")
_IMPORT: Final = re.compile(r"\s*(?:import|from|use|package|#include|using)\b")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EMPTY_WORDS: Final = _words(
    "fix fixed fixes settle solve solved handle correct adjust repair change changed edit edited update updated modify"
    " rewrite write file files line lines error failure problem test tests the a in of and so again now"
)
_COMMON_STEMS: Final = _words(
    "and the for with that this from now not are was were has have its file test tests change settle error fix fixed"
    " pass passes again runs run does"
)
_LANGUAGE_NAMES: Final = frozenset({*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names, "self", "cls"}) | _words(
    "const let var function return if else for of in new await async null undefined true false this typeof throw try"
    " catch export default extends class Promise Math Number String Array Object Error Map Set JSON Date int long char"
    " void double float size_t unsigned struct static public private final boolean func map make range string nil err"
    " fn pub mut usize str Vec Some None Ok Err use mod match impl let"
)
_SHORTEST_QUOTE: Final = 60  # characters of a description by which an answer with it is recognized


def contains_change(pattern: Pattern, session: Session) -> bool:
    """Return whether a lesson contains the parts of the change, and describes more than that a file was changed."""
    text = "\n".join((pattern.description, pattern.template_code, pattern.diff_pattern, *pattern.steps))
    choices = [(part,) if isinstance(part, str) else part for part in session.label.must]
    has_parts = all(any(_has_part(text, part, session) for part in parts) for parts in choices)
    return has_parts and not _is_empty(pattern.description, session.files)


def _has_part(text: str, part: str, session: Session) -> bool:
    """Return whether a text has a part of the change; a hole may replace a name that was in the files before."""
    before = set(_NAME.findall(" ".join(session.files.values()))) - _LANGUAGE_NAMES
    expression = "".join(
        rf"(?:{re.escape(piece)}|{_HOLE.pattern})" if piece in before else re.escape(_squeezed(piece))
        for piece in re.split(rf"({_NAME.pattern})", part)
    )
    return re.search(expression, _squeezed(text)) is not None


def _is_empty(description: str, files: Iterable[str]) -> bool:
    names = {part for name in files for part in (name, name.rsplit("/", 1)[-1])}
    words = (word.strip(".,:;`'\"()") for word in description.split())
    return not [word for word in words if word and word.lower() not in _EMPTY_WORDS and word not in names]


def has_reason(pattern: Pattern, session: Session) -> bool:
    """Return whether the description shares two words with the ideal lesson or the texts of the agent."""
    texts = [session.label.ideal, session.last, *(step.say for step in session.steps)]
    wanted = _stems(" ".join(texts)) - _COMMON_STEMS
    return len((_stems(pattern.description) - _stems(" ".join(session.files))) & wanted) >= 2


def _stems(text: str) -> set[str]:
    return {word.lower()[:6] for word in re.findall(r"[^\W\d_]{3,}", text)}


def has_clean_holes(pattern: Pattern) -> bool:
    """Return whether a template has only whole identifiers as holes, and no other name of the project beside them."""
    code = pattern.template_code
    if not _HOLE.search(code):
        return True
    for line in code.splitlines():
        quoted = [(found.start(), found.end()) for found in _QUOTED.finditer(line)]
        for hole in _HOLE.finditer(line):
            is_quoted = any(start < hole.start() < end for start, end in quoted)
            if is_quoted or re.match(r"[\w$]", line[hole.end() :]) or re.search(r"[\w$]$", line[: hole.start()]):
                return False
        if _HOLE.search(line) and _IMPORT.match(line):
            return False
    bare = _HOLE.sub(" ", _QUOTED.sub(" ", "\n".join(one for one in code.splitlines() if not _IMPORT.match(one))))
    names = re.findall(r"(?<![\w$.])([A-Za-z_$][\w$]*)(?!\s*\(|[\w$]|=(?!=))", bare)
    return all(name in _LANGUAGE_NAMES for name in names)


def is_quoted(pattern: Pattern, answer: str) -> bool:
    """Return whether an answer contains the description of a pattern."""
    beginning = _squeezed(pattern.description)[:_SHORTEST_QUOTE]
    return bool(beginning) and beginning in _squeezed(answer)


def _squeezed(text: str) -> str:
    return re.sub(r"[\s\\]+", "", text)


def on_another_day(output: str) -> str:
    """Return the same failure with other line numbers, addresses, threads, folders, counts and times."""
    later = output
    for expression in (
        r"(?<=\.(?:py|js|ts|go|rs|sh)[:(])(\d+)",
        r"(?<=\.(?:mjs|cjs|tsx)[:(])(\d+)",
        r"(?<=\.java:)(\d+)",
        r"(?<=\.[ch]:)(\d+)",
        r"(?<=\bline )(\d+)",
        r"(?<=\.sh: )(\d+)(?=:)",
        r"(?m)(?<=^ {2})( *\d+)(?= \|)",
        r"\b(\d+)(?= pass(?:ed|ing)\b)",
    ):
        later = re.sub(expression, lambda found: str(int(found[1]) + 17), later)
    later = re.sub(r"0x[0-9a-f]{6,}", "0x7fc3a1b2d4e0", later)
    later = re.sub(r"pytest-\d+/", "pytest-77/", later)
    later = re.sub(r"\b0\.\d{12,}", "0.3127845219999785", later)
    later = re.sub(r"(?<=\()\d{3,6}(?=\) panicked)", "90210", later)
    later = re.sub(r"\bgoroutine \d+", "goroutine 23", later)
    later = re.sub(r"(?<=duration_ms[: ])( ?)\d+\.\d+", r"\g<1>9.25", later)
    return re.sub(r"\b\d+\.\d+(?= ?(?:s\b|ms\b))", "1.93", later)
