"""Category, description and tags of a fix, and the code that it adds as a template; docs/extraction.md."""

from __future__ import annotations

import builtins
import keyword
import re
import textwrap
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml
from msgspec import Struct

from core.base.regexes import lazy_regex
from core.base.text import one_line, replace_surrogates
from core.retrieval.task import analyse_task

_MAX_DIFF: Final = 20_000
_MAX_LINES: Final = 30
_MAX_CODE: Final = 2_000  # maximum number of characters of a template
_MAX_IDENTIFIERS: Final = 8

_TABLES: Final[dict[str, Any]] = yaml.load(Path(__file__).with_name("code.yaml").read_bytes(), yaml.CSafeLoader)
LANGUAGES: Final[dict[str, str]] = {end: name for name, ends in _TABLES["languages"].items() for end in ends}
_PURPOSES: Final[dict[str, str]] = _TABLES["purposes"]
_KEYWORDS: Final = frozenset(_TABLES["keywords"].split())
_IDENTIFIER: Final = r"[A-Za-z_$][\w$]{0,80}"
_TESTED: Final = lazy_regex(
    rf"(?<![\w$.])({_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,6}})\s*"
    r"(?:\?\.|(?:===?|!==?|is\s+not|is)\s*(?:null|undefined|None|nil)\b)"
    rf"|(?:\bif\s*\(\s*!|\bif\s+not\s+)({_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,6}})\s*[):]"
)
_TEXT: Final = lazy_regex(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`")
_IMPORT: Final = lazy_regex(r"\s*(?:import|from|export\s.*\sfrom|(?:const|let|var)\s.*=\s*require\()")
_QUOTED: Final = lazy_regex(rf"['\"`]({_IDENTIFIER})['\"`]")
_UNKNOWN_NAME: Final = lazy_regex(rf"\b({_IDENTIFIER}) is not defined\b|\bname ['\"]({_IDENTIFIER})['\"]")
_JS_NAMES: Final = frozenset(
    {
        *("const", "let", "var", "function", "return", "if", "else", "for", "of", "in", "new", "await", "async"),
        *("null", "undefined", "true", "false", "this", "typeof", "throw", "try", "catch"),
    }
)
_COMMON_NAMES: Final = {
    "python": frozenset({*keyword.kwlist, *dir(builtins), "self", "cls"}),
    "javascript": _JS_NAMES,
    "typescript": _JS_NAMES,
}
"""Names by language that do not belong to one place."""
_HOLE: Final = lazy_regex(r"\{\{\s?(\w{1,40})\s?\}\}")
_BOUND: Final = lazy_regex(rf"\b(?:as|const|let|var|for)\s+({_IDENTIFIER})|^\s*({_IDENTIFIER})\s*=(?!=)", re.MULTILINE)
"""A name that a template itself defines."""
_COMMENT: Final = lazy_regex(r"(?:#|//).*")
_ROLES: Final = (
    ("module", re.compile(r"\bmodule\b|\bimport", re.IGNORECASE)),
    ("property", re.compile(r"\bpropert|\battribute\b|\breading\b|\bfield\b|\bkey\b", re.IGNORECASE)),
    ("type", re.compile(r"\btypes?\b|\bassignable\b", re.IGNORECASE)),
)


class Template(Struct, frozen=True, kw_only=True):
    """Code with placeholders, which are listed in the order of their first use."""

    code: str
    placeholders: tuple[str, ...] = ()


def make_template(diff: str, message: str) -> Template | None:
    """Generalize the added code of a diff; None if it adds no code or too much.

    `diff` is a unified diff, or only its lines that start with `+`; untrusted. The names that are quoted in `message`,
    the message of the fixed error, become placeholders.
    """
    code = replace_surrogates(_extract_added(diff))
    if not code:
        return None
    code = "".join(_replace_in_line(line) for line in code.splitlines(keepends=True))
    for name, placeholder in _find_names(code, message):
        code = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])(?!\}}\}})", f"{{{{{placeholder}}}}}", code)
    used = dict.fromkeys(re.findall(r"\{\{([a-z]+\d?)\}\}", code))
    return Template(code=code, placeholders=tuple(used))


def make_clean_template(diff: str, language: str) -> Template | None:
    """Generalize the added code of a diff if that is possible without doubt, else return None.

    Each name that belongs to this place becomes a placeholder. There is no template if the code is one line, has texts
    or members, calls functions that are not built in, or has more than a few such names.
    """
    code = replace_surrogates(_extract_added(diff))
    bare = _COMMENT.sub("", code)
    if not code or bare != code or _TEXT.search(code) or _IMPORT.search(code) or re.search(r"[{}`$@]|\\", code):
        return None
    removed = "\n".join(line[1:] for line in diff.splitlines() if line.startswith("-"))
    common = _COMMON_NAMES.get(language, frozenset())
    names = dict.fromkeys(name for name in re.findall(rf"(?<![\w$]){_IDENTIFIER}", code) if name not in common)
    is_member = any(re.search(rf"\.\s*{name}|{name}\s*[.(]", code) for name in map(re.escape, names))
    is_number = re.search(r"(?<![\w.])(?:[2-9]|\d{2,}|\d+\.\d+)(?![\w.])", code)
    words = len(re.findall(_IDENTIFIER, code))
    is_short = code.count("\n") < 2 or words < 2 * len(names) + 1
    if not names or not common or is_member or is_number or is_short or len(names) > 2:
        return None
    if not all(re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", removed) or code.count(name) > 1 for name in names):
        return None
    for number, name in enumerate(names, 1):
        placeholder = "variable" if number == 1 else f"variable{number}"
        code = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])(?!\}}\}})", f"{{{{{placeholder}}}}}", code)
    return Template(code=code, placeholders=tuple(dict.fromkeys(re.findall(r"\{\{([a-z]+\d?)\}\}", code))))


def has_partial_holes(code: str, language: str) -> bool:
    """Return whether a template has a placeholder in a text, comment or longer name, or beside names of one place."""
    filled = _HOLE.sub(r"hole_\1", code[:_MAX_CODE])
    holes = {f"hole_{name}" for name in _HOLE.findall(code[:_MAX_CODE])}
    if not holes:
        return False
    bare = _COMMENT.sub("", _TEXT.sub(" ", filled))
    common = _COMMON_NAMES.get(language, _JS_NAMES) | _KEYWORDS
    common |= {name for bound in _BOUND.findall(bare) for name in bound if name not in holes}
    return {name for name in re.findall(rf"(?<![\w$.]){_IDENTIFIER}", bare) if name not in common} != holes


def added_lines(diff: str) -> str:
    return "\n".join(line[1:] for line in diff[:_MAX_DIFF].splitlines() if _is_added(line))


def file_language(files: Iterable[str], diff: str = "") -> str:
    """Return the language of the first file or diff header with a known suffix."""
    headers = re.findall(r"^\+\+\+ (?:b/)?(\S{1,300})", diff[:_MAX_DIFF], re.MULTILINE)
    for file in (*files, *headers):
        ending = PurePosixPath(file[-300:].replace("\\", "/")).suffix.removeprefix(".").lower()
        if ending in LANGUAGES:
            return LANGUAGES[ending]
    return ""


def describe_placeholder(placeholder: str) -> str:
    return _PURPOSES.get(placeholder.rstrip("0123456789"), _PURPOSES["name"])


def _is_added(line: str) -> bool:
    return line.startswith("+") and not line.startswith("+++")


def _extract_added(diff: str) -> str:
    """Return the longest run of added lines, dedented; "" if it is too long."""
    lines = diff[:_MAX_DIFF].splitlines()
    runs = [[line[1:] for line in run] for added, run in groupby(lines, _is_added) if added]
    longest = max(runs, key=len, default=[])
    code = textwrap.dedent("\n".join(longest)).strip("\n").rstrip()
    return f"{code}\n" if code.strip() and len(longest) <= _MAX_LINES and len(code) <= _MAX_CODE else ""


def _replace_in_line(line: str) -> str:
    """Replace string literals with sentences, and imported modules, by placeholders."""
    if _IMPORT.match(line):
        return _TEXT.sub(lambda found: f"{found[0][0]}{{{{module}}}}{found[0][-1]}", line)
    return _TEXT.sub(lambda found: f"{found[0][0]}{{{{message}}}}{found[0][-1]}" if " " in found[0] else found[0], line)


def _find_names(code: str, message: str) -> list[tuple[str, str]]:
    """Return the names specific to this error with their placeholders, longest first."""
    roles: dict[str, str] = {}
    for match in _TESTED.finditer(code):
        roles.setdefault(match[1] or match[2], "variable")
    for match in _UNKNOWN_NAME.finditer(message):
        roles.setdefault(match[1] or match[2], "name")
    role = next((name for name, words in _ROLES if words.search(message)), "name")
    for name in _QUOTED.findall(message):
        roles.setdefault(name, role)
    counts: dict[str, int] = {}
    named = []
    for name, kind in list(roles.items())[:_MAX_IDENTIFIERS]:
        if name.lower() in _KEYWORDS or not re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", code):
            continue
        counts[kind] = counts.get(kind, 0) + 1
        named.append((name, kind if counts[kind] == 1 else f"{kind}{counts[kind]}"))
    return sorted(named, key=lambda pair: -len(pair[0]))


_MAX_MESSAGE: Final = 160
MIN_DESCRIPTION: Final = 20  # minimum length of a description in the pattern file format, in characters


def _compile_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


_KINDS: Final[dict[str, dict[str, str]]] = yaml.load(
    Path(__file__).with_name("fix_kinds.yaml").read_bytes(), yaml.CSafeLoader
)
_IN_CODE: Final = {category: lazy_regex(signs, re.MULTILINE) for category, signs in _KINDS["code"].items()}
_IN_WORDS: Final = {category: _compile_words(words) for category, words in _KINDS["words"].items()}
_DOMAINS: Final = {tag: _compile_words(words) for tag, words in _KINDS["domains"].items()}
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
    if cause in _KINDS["causes"]:
        return _KINDS["causes"][cause]
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
    for lead in _KINDS["leads"].values():
        if text == lead or text.startswith((f"{lead}: ", f"{lead}, ")):
            text = text[len(lead) :].lstrip(":, ")
    text = text.removesuffix("as the loop did").removesuffix(", ")
    return bool(text) and not _ONLY_FILES.fullmatch(text) and not _ONLY_RESULTS.fullmatch(text)


def make_tags(language: str, category: str, error_type: str, places: Iterable[str]) -> list[str]:
    """Return the tags that are known: language, kind of fix, and domain."""
    kind = _KINDS["tags"].get(category) or _KINDS["tags"].get(error_type, "")
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
