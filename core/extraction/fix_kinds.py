"""What kind of fix it was, how it is said in general, and which tags go with it (3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from core.base.record_text import one_line
from core.extraction.code import added_lines
from core.retrieval.task import analyse_task

MIN_DESCRIPTION: Final = 20
"""(3) `fix_approach.description`: its least length, in characters."""


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


# The code says what a fix is before the words of a person do.
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
"""(4) `root_cause_category` -> (3) `fix_category`."""
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
# A fix that says no more than that a well-known thing was added is said as everybody says it.
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
    """(3) `fix_category`: by the code that was added, the cause that was found, the words of the fix, in this order."""
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
    """What to do, in general where the words say no more than the category does; else in the loop's own words."""
    told = one_line(description)
    words = dict(_IN_WORDS)[category] if category in ("add_null_check", "add_import") else None
    if not told or (words and words.search(told)):
        for general, about, text in _GENERAL:
            if general == category and about.search(message):
                return text
    if len(told) >= MIN_DESCRIPTION:
        return told
    text = f"{_LEADS[category]}: {told}" if told else _LEADS[category]
    return text if len(text) >= MIN_DESCRIPTION else f"{text}, as the loop did"


def tags(language: str, category: str, error_type: str, places: Iterable[str]) -> list[str]:
    """(0) Tag Patterns Consistently: language, type, domain, as far as each is known."""
    kind = _OF_CATEGORY.get(category) or _OF_TYPE.get(error_type, "")
    return list(dict.fromkeys(filter(None, (language, kind, domain(places)))))


def domain(places: Iterable[str]) -> str:
    """What part of a program some paths and texts are about; the innermost name of a path decides."""
    for place in places:
        for name in _names(place):
            for tag, words in _DOMAINS.items():
                if words.search(name):
                    return tag
    return ""


def _names(place: str) -> Iterator[str]:
    """A text as it is, a path from its file name outward, with `camelCase` and `_` taken apart."""
    parts = PurePosixPath(place[-300:]).parts if "/" in place and " " not in place else (place[:300],)
    for part in reversed(parts):
        yield re.sub(r"(?<=[a-z])(?=[A-Z])|_|\.", " ", part)


def languages_of(*texts: str) -> str:
    """(3) `language` that a text mentions first, "" if none."""
    return next((name for text in texts for name in analyse_task(one_line(text)).languages), "")
