"""Values in the place of a secret that are not secrets: masks, types, words, placeholders, code."""

from __future__ import annotations

import re
from typing import Final

from core.redaction.value_shapes import is_placeholder

_MARKED: Final = ("[secret:", "«secret»", "\ue000")
"""Mask or placeholder in the place of a secret."""
_TEXT: Final = """
    string str number int integer float bool boolean any none null undefined true false required optional
    unknown object bytes text missing expired invalid value varchar char secretstr yes no
    a an and are as at be been by can cannot for from has have if in into is it may must not of on or should that the
    then this to was when which will with you your
    auth authentication authorization flag header option parameter argument scheme switch
    async await function get lambda new return set
"""
_NO_SECRET: Final = frozenset(_TEXT.split())
"""Words that are not secrets: types, prose, keywords."""
_PLACEHOLDER: Final = re.compile(
    r"\s*(?:[{$<%«,)]|&lt;|[\"']\$|arn:aws:|#[a-z_-]+$|(?-i:/?[a-z_-]+(?:[/#][a-z_.-]+(?:@[\d.]+)?)+$)|(?<=\s)\+|:[a-z_]+$|\\|\.\*|\*+$|x{3,}$|your(?:[_-]|pass|pwd|key|token|secret)"
    r"|(?:required|nullable|optional|string|min|max|confirmed)[|:]|(?:pat-(?:error|success|anti|code)|tmpl)-[a-z0-9-]+$)",
    re.IGNORECASE,
)
_METAVARIABLE: Final = re.compile(r"[A-Z_]{0,40}(?:PASS|PWD|SECRET|TOKEN|KEY|VALUE|STRING)[A-Z_]{0,40}")
_CODE: Final = re.compile(
    r"(?:process|os|self|this|req|request|config|settings|env|options|args|props|params)[.\[]"
    r"|[A-Za-z_.]{0,80}[._](?:pass(?:word|wd|phrase)?|pwd|secret|token|key|value|string)$"
)
NUMBERED: Final = re.compile(
    r"[\^~<>=v]{0,3}\d+(?:\.(?:\d+|x|\*)){1,3}(?:[-+][\w.-]+)?|\d[\d.,_]{0,12}[a-z%]{0,3}/[a-z]{1,8}"
)
"""Versions and rates."""
FOLDER: Final = re.compile(r"[\\\"']*(?:~?/|\.{1,2}/|[A-Za-z]:[\\/])")
"""Paths, the other meaning of PWD."""
_CALLED: Final = re.compile(r"[A-Za-z_.]+")


def is_non_secret(found: re.Match[str], group: str) -> bool:
    """Whether a value is masked, a type, a word, a placeholder or code."""
    value = found[group].rstrip(":.") if group == "bare" else found[group]
    if (
        any(mark in found[group] for mark in _MARKED)
        or _PLACEHOLDER.match(value)
        or is_placeholder(found[group])
        or value.lower().rstrip(".:") in _NO_SECRET
    ):
        return True
    if group != "bare":
        return False
    called = found.string[found.end() : found.end() + 1] in ("(", "[") and _CALLED.fullmatch(value)
    return bool(called or _METAVARIABLE.fullmatch(value) or _CODE.match(value))
