"""Code templates: the code that a fix adds; docs/extraction.md#code-templates."""

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

from core.base.record_text import replace_surrogates
from core.base.regexes import lazy_regex

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
    for found in _TESTED.finditer(code):
        roles.setdefault(found[1] or found[2], "variable")
    for found in _UNKNOWN_NAME.finditer(message):
        roles.setdefault(found[1] or found[2], "name")
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
