"""Category, description and tags of a fix; docs/extraction.md#error-patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from core.base.record_text import one_line
from core.extraction.code import added_lines
from core.retrieval.task import analyse_task

MIN_DESCRIPTION: Final = 20
"""Minimum length of a description in the pattern file format, in characters."""


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


# Code has priority over words.
_IN_CODE: Final = (
    (
        "add_null_check",
        re.compile(r"[!=]==?\s*(?:null|undefined|nil)\b|\bis (?:not )?None\b|\?\.|\?\?|if\s*\(\s*!\w|if not \w"),
    ),
    ("add_error_handling", re.compile(r"\b(?:try|catch|except|finally|rescue|recover)\b")),
    (
        "add_type_validation",
        re.compile(r"\b(?:typeof|instanceof|isinstance)\b|\.(?:parse|safeParse|validate)\(|:\s*\w+ \| undefined"),
    ),
    ("add_import", re.compile(r"^\s*(?:import|from|use|require)\b", re.MULTILINE)),
    ("update_dependency", re.compile(r"^\s*\"[@\w/.-]+\":\s*\"[~^]?\d", re.MULTILINE)),
)
_CAUSES: Final = {
    "null_undefined_access": "add_null_check",
    "type_mismatch": "add_type_validation",
    "missing_validation": "add_type_validation",
    "missing_error_handling": "add_error_handling",
    "logic_error": "fix_logic_error",
    "off_by_one": "fix_logic_error",
    "race_condition": "fix_logic_error",
    "dependency_issue": "update_dependency",
}
"""Fix category by root cause category of a debug session."""
_IN_WORDS: Final = (
    (
        "add_null_check",
        _any(
            r"(?:null|none|nil|undefined)(?:/\w+)?[ -](?:check|guard|test)\w*|null[ -]?safe\w*|optional chaining"
            r"|guard\w* (?:against |for |on )?(?:null|none|nil|undefined)"
        ),
    ),
    (
        "add_error_handling",
        _any(r"try/?catch|catch\w*|except\w*|handl\w+ (?:the )?errors?|retr(?:y|ies|ied|ying)|fallback|timeouts?"),
    ),
    ("add_import", _any(r"import(?:s|ed|ing)?")),
    ("update_dependency", _any(r"upgrad\w+|bump\w*|pin(?:ned|ning)?|dependenc\w+|lock ?file")),
    (
        "add_type_validation",
        _any(r"types?|typed|typing|interfaces?|narrow\w*|schema\w*|validat\w+|cast\w*|assert\w* the type|optional"),
    ),
    (
        "refactor_code_structure",
        _any(r"refactor\w*|extract\w*|mov(?:e|ed|ing)|renam\w+|split\w*|restructur\w+|inlin\w+|simplif\w+|serialis\w+"),
    ),
    (
        "fix_logic_error",
        _any(r"fix(?:es|ed|ing)?|correct\w*|condition|off.by.one|order\w*|swap\w*|wrong|return\w*|idempotent"),
    ),
)
_GUARD: Final = _any(r"guard\w*|early return")
_MISSING_VALUE: Final = re.compile(r"\b(?:null|undefined|none|nil|nonetype)\b", re.IGNORECASE)
_LEADS: Final = {
    "add_null_check": "Add a null check",
    "add_type_validation": "Validate the type",
    "add_error_handling": "Handle the error",
    "fix_logic_error": "Correct the logic",
    "add_import": "Add the missing import",
    "update_dependency": "Update the dependency",
    "refactor_code_structure": "Restructure the code",
    "other": "Settle the error",
}
# A fix whose words only name its category gets a general description.
_GENERAL: Final = (
    (
        "add_null_check",
        re.compile(r"\bpropert|\breading\b|\battribute\b|\baccess|nil pointer", re.IGNORECASE),
        "Add null check before property access",
    ),
    ("add_null_check", re.compile(""), "Add null check before the value is used"),
    ("add_import", re.compile(""), "Import the missing name before it is used"),
)

_OF_CATEGORY: Final = {
    "add_null_check": "null-safety",
    "add_type_validation": "type-safety",
    "add_error_handling": "error-handling",
    "add_import": "imports",
    "update_dependency": "dependencies",
    "refactor_code_structure": "structure",
}
_OF_TYPE: Final = {"TimeoutError": "timeouts", "SyntaxError": "syntax", "AssertionError": "assertions"}
_DOMAINS: Final = {
    "validation": _any(r"validat\w*"),
    "auth": _any(r"auth\w*|login|session\w*|jwt|oauth|sign-?(?:in|up)"),
    "payments": _any(r"pay(?:ment|ments)?|billing|invoic\w+|checkout|refund\w*|settlement"),
    "database": _any(r"db|database|sql|postgres\w*|migrations?|deadlock|queries|query|pool"),
    "testing": _any(r"tests?|spec|fixtures?|coverage|mocks?"),
    "api": _any(r"api|routes?|endpoints?|handlers?|http|rest|graphql|webhooks?"),
    "ui": _any(r"ui|components?|views?|pages?|css|widgets?"),
    "workers": _any(r"workers?|queue|jobs?|cron"),
    "documentation": _any(r"docs?|document\w*|readme"),
}


def fix_category(description: str, diff: str, cause: str, message: str) -> str:
    """Return the fix category by the added code, the root cause, or the words of the fix, in this order."""
    code = added_lines(diff)
    for category, signs in _IN_CODE:
        if code and signs.search(code):
            return category
    if cause in _CAUSES:
        return _CAUSES[cause]
    if _GUARD.search(description) and _MISSING_VALUE.search(message):
        return "add_null_check"
    return next((category for category, words in _IN_WORDS if words.search(description)), "other")


def fix_description(description: str, category: str, message: str) -> str:
    """Describe a fix in its own words; in general words if these only name the category."""
    text = one_line(description)
    words = dict(_IN_WORDS)[category] if category in ("add_null_check", "add_import") else None
    if not text or (words and words.search(text)):
        for general, about, sentence in _GENERAL:
            if general == category and about.search(message):
                return sentence
    if len(text) >= MIN_DESCRIPTION:
        return text
    text = f"{_LEADS[category]}: {text}" if text else _LEADS[category]
    return text if len(text) >= MIN_DESCRIPTION else f"{text}, as the loop did"


def make_tags(language: str, category: str, error_type: str, places: Iterable[str]) -> list[str]:
    """Return the known tags among language, kind of fix and domain."""
    kind = _OF_CATEGORY.get(category) or _OF_TYPE.get(error_type, "")
    return list(dict.fromkeys(filter(None, (language, kind, detect_domain(places)))))


def detect_domain(places: Iterable[str]) -> str:
    """Return the domain tag of paths and texts; the last part of a path has priority."""
    for place in places:
        for name in _names(place):
            for tag, words in _DOMAINS.items():
                if words.search(name):
                    return tag
    return ""


def _names(place: str) -> Iterator[str]:
    """Yield a text, or the parts of a path from its end, with `camelCase` and `_` split."""
    parts = PurePosixPath(place[-300:]).parts if "/" in place and " " not in place else (place[:300],)
    for part in reversed(parts):
        yield re.sub(r"(?<=[a-z])(?=[A-Z])|_|\.", " ", part)


def mentioned_language(*texts: str) -> str:
    """Return the first language that the texts mention, or ""."""
    return next((name for text in texts for name in analyse_task(one_line(text)).languages), "")
