"""One error message, generalised to a regex that finds its like (semantics 7).

Quoted names, paths, numbers and hexadecimal ids vary; everything else is literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from core.base.text import MAX_PATTERN, safe_matcher

_MAX_MESSAGE: Final = 400
"""Characters of a message, from its beginning, that a signature looks at."""
_MIN_LETTERS: Final = 6
"""A signature with fewer literal letters says nothing of its own."""

_PART: Final = re.compile(
    r"(?P<quoted>(?<![\w'])'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`)"
    r"|(?P<path>(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+[\w.@~+-]*(?::[0-9]+){0,2}"
    r"|(?:[\w-]+\.)+(?:[cm]?[jt]sx?|pyi?|go|rs|java|kt|rb|php|cs|cpp|cc|c|h|sql|json|ya?ml|toml|md)(?![\w-])(?::[0-9]+){0,2})"
    r"|(?P<id>(?<![\w-])(?:0[xX][0-9a-fA-F]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64})(?![\w-]))"
    r"|(?P<number>(?<![\w.])[0-9]+(?:[.,][0-9]+)*)"
)
_SPECIAL: Final = frozenset("\\.^$*+?{}[]|()")


def generalize_message(message: str, *, keep_names: bool = False) -> str:
    """The regex for messages like this one, for RE2; "" where too little of it is its own.

    Args:
        message: Untrusted; its first line is looked at.
        keep_names: Leave quoted names as they are: a narrower form.
    """
    text = message.strip().split("\n", 1)[0].rstrip()[:_MAX_MESSAGE]
    pattern, letters = "", 0
    for literal, piece in _pieces(text, keep_names):
        if len(pattern) + len(piece) > MAX_PATTERN:
            break
        pattern += piece
        letters += sum(map(str.isalpha, literal))
    pattern = pattern.strip()
    if letters < _MIN_LETTERS:
        return ""
    compiled = safe_matcher(pattern)
    return pattern if compiled.problem is None and compiled.matches(message) else ""


def _pieces(text: str, keep_names: bool) -> Iterator[tuple[str, str]]:
    """Literal text and regex of each part of a message."""
    end = 0
    for found in _PART.finditer(text):
        yield from _literal(text[end : found.start()])
        end = found.end()
        if found.lastgroup != "quoted":
            yield (
                "",
                "[0-9.,]+" if found.lastgroup == "number" and not found[0].isdecimal() else _FORMS[found.lastgroup],
            )
        elif keep_names:
            yield from _literal(found[0])
        else:
            yield "", f"{found[0][0]}.*{found[0][0]}"
    yield from _literal(text[end:])


_FORMS: Final[dict[str | None, str]] = {"path": r"\S+", "id": r"[\w-]+", "number": r"\d+"}


def _literal(text: str) -> Iterator[tuple[str, str]]:
    """Word by word, so that a signature that grows too long ends between two of them."""
    for word in re.split(r"(?<= )", text):
        yield word, "".join(map(_escaped, word))


def _escaped(char: str) -> str:
    if char in _SPECIAL:
        return f"\\{char}"
    # What acts or hides is no part of a signature that somebody has to read.
    return char if char.isprintable() else "."


def location_hint(file: str, function: str) -> str:
    """`*.ts:validateInput` for a function, `*.ts:validate*` where only the file is known; "" where that is neither."""
    path = PurePosixPath(file[-_MAX_MESSAGE:].replace("\\", "/"))
    ending = path.suffix if re.fullmatch(r"\.\w{1,10}", path.suffix) else ""
    name = re.fullmatch(r"[\w$.-]{1,80}", function)
    stem = re.match(r"[\w$-]{1,80}", path.stem)
    if not ending or not (name or stem):
        return ""
    return f"*{ending}:{name[0]}" if name else f"*{ending}:{stem[0]}*" if stem else ""
