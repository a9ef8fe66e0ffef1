"""Category, description and tags of a fix; docs/extraction.md#error-patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import yaml

from core.base.record_text import one_line
from core.base.regexes import lazy_regex
from core.questions.extraction.code import added_lines
from core.retrieval.task import analyse_task

_MAX_MESSAGE: Final = 160
MIN_DESCRIPTION: Final = 20  # minimum length of a description in the pattern file format, in characters


def _compile_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


_TABLES: Final[dict[str, dict[str, str]]] = yaml.load(
    Path(__file__).with_name("fix_kinds.yaml").read_bytes(), yaml.CSafeLoader
)
_IN_CODE: Final = {category: lazy_regex(signs, re.MULTILINE) for category, signs in _TABLES["code"].items()}
_IN_WORDS: Final = {category: _compile_words(words) for category, words in _TABLES["words"].items()}
_DOMAINS: Final = {tag: _compile_words(words) for tag, words in _TABLES["domains"].items()}
_GUARD: Final = _compile_words(r"guard\w*|early return")
_MISSING_VALUE: Final = lazy_regex(r"\b(?:null|undefined|none|nil|nonetype)\b", re.IGNORECASE)
_ONLY_FILES: Final = re.compile(r"(?:Change \S{1,400}(?:; |$))+")
"""A fix of which only the changed files are known."""
_ONLY_RESULTS: Final = re.compile(r"`[^`]{1,400}` failed with .{1,600} until \S{1,400} changed\.?")
"""A fix of which only the command, its error and the changed file are known."""
_PROPERTY: Final = lazy_regex(r"\bpropert|\breading\b|\battribute\b|\baccess|nil pointer", re.IGNORECASE)


def fix_category(description: str, diff: str, cause: str, message: str) -> str:
    """Return the category of a fix by its code, its root cause, or its description."""
    code = added_lines(diff)
    for category, signs in _IN_CODE.items():
        if code and signs.search(code):
            return category
    if cause in _TABLES["causes"]:
        return _TABLES["causes"][cause]
    if _GUARD.search(description) and _MISSING_VALUE.search(message):
        return "add_null_check"
    return next((category for category, words in _IN_WORDS.items() if words.search(description)), "other")


def fix_description(description: str, category: str, message: str, diff: str = "") -> str:
    """Return the description of a fix; "" without any, a standard one if it is too vague.

    Without words it is the first added line, and a short one names the error.
    """
    text = one_line(description)
    line = next((line.strip() for line in added_lines(diff).splitlines() if line.strip()), "")
    if category in ("add_null_check", "add_import") and (not text or _IN_WORDS[category].search(text)):
        if category == "add_import":
            return "Import the missing name before it is used"
        return f"Add null check before {'property access' if _PROPERTY.search(message) else 'the value is used'}"
    text = text if has_reason(text) else ""
    if len(text) >= MIN_DESCRIPTION:
        return text
    text = text or (f"Add `{line}`" if line else "")
    return one_line(f'{text}, which removed the error "{one_line(message, _MAX_MESSAGE)}"') if text else ""


def has_reason(description: str) -> bool:
    """Return whether the description of a fix or approach contains more than its category and the changed files."""
    text = one_line(description)
    for lead in _TABLES["leads"].values():
        if text == lead or text.startswith((f"{lead}: ", f"{lead}, ")):
            text = text[len(lead) :].lstrip(":, ")
    text = text.removesuffix("as the loop did").removesuffix(", ")
    return bool(text) and not _ONLY_FILES.fullmatch(text) and not _ONLY_RESULTS.fullmatch(text)


def make_tags(language: str, category: str, error_type: str, places: Iterable[str]) -> list[str]:
    """Return the tags that are known: language, kind of fix, and domain."""
    kind = _TABLES["tags"].get(category) or _TABLES["tags"].get(error_type, "")
    return list(dict.fromkeys(filter(None, (language, kind, detect_domain(places)))))


def detect_domain(places: Iterable[str]) -> str:
    """Return the domain tag of paths and texts; the end of a path has priority."""
    for place in places:
        is_path = "/" in place and " " not in place
        for part in reversed(PurePosixPath(place[-300:]).parts if is_path else (place[:300],)):
            name = re.sub(r"(?<=[a-z])(?=[A-Z])|_|\.", " ", part)
            if tag := next((tag for tag, words in _DOMAINS.items() if words.search(name)), ""):
                return tag
    return ""


def mentioned_language(*texts: str) -> str:
    """Return the first language that the texts mention, or ""."""
    return next((name for text in texts for name in analyse_task(one_line(text)).languages), "")
