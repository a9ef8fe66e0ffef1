"""Parse error messages and stack traces; generalize messages to regexes.

See docs/extraction.md. Stack traces are those of Node, Vitest, Python and pytest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from core.base.text import MAX_PATTERN, safe_matcher

_MAX_MESSAGE: Final = 400  # characters of a message that are used, from its beginning
_MIN_LETTERS: Final = 6  # a signature with fewer literal letters is too general

_PART: Final = re.compile(
    r"(?P<quoted>(?<![\w'])'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`)"
    r"|(?P<path>(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+[\w.@~+-]*(?::[0-9]+){0,2}"
    r"|(?:[\w-]+\.)+(?:[cm]?[jt]sx?|pyi?|go|rs|java|kt|rb|php|cs|cpp|cc|c|h|sql|json|ya?ml|toml|md)(?![\w-])(?::[0-9]+){0,2})"
    r"|(?P<id>(?<![\w-])(?:0[xX][0-9a-fA-F]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64})(?![\w-]))"
    r"|(?P<number>(?<![\w.])[0-9]+(?:[.,][0-9]+)*)"
)
_SPECIAL: Final = frozenset("\\.^$*+?{}[]|()")
_FORMS: Final[dict[str | None, str]] = {"path": r"\S+", "id": r"[\w-]+", "number": r"\d+"}
_NAME: Final = re.compile(r"(?:Uncaught\s+)?(?:\w{1,40}\.){0,6}([A-Z]\w{0,60}(?:Error|Exception))(?:\s*\[\w+\])?:\s*")
_PATH: Final = r"[\w.@~+/\\:-]{0,200}\.[A-Za-z]{1,6}(?::\d{1,9}){0,2}"
_LOCATION: Final = re.compile(rf"\s+(?:(?:at|in|from)\s+({_PATH})|\(({_PATH})\))$")


def generalize_message(message: str, *, keep_names: bool = False) -> str:
    """The RE2 regex for messages similar to an untrusted one; "" if it is too general.

    Only the first line is used. `keep_names` keeps quoted names literal, for a narrower regex.
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


def _literal(text: str) -> Iterator[tuple[str, str]]:
    """Word by word, so that a long signature is cut between two words."""
    for word in re.split(r"(?<= )", text):
        yield word, "".join(map(_escape, word))


def _escape(char: str) -> str:
    if char in _SPECIAL:
        return f"\\{char}"
    # Control and invisible characters are not shown in signatures.
    return char if char.isprintable() else "."


def location_hint(file: str, function: str) -> str:
    """`*.ts:validateInput`, without a function `*.ts:validate*`, else ""."""
    path = PurePosixPath(file[-_MAX_MESSAGE:].replace("\\", "/"))
    ending = path.suffix if re.fullmatch(r"\.\w{1,10}", path.suffix) else ""
    name = re.fullmatch(r"[\w$.-]{1,80}", function)
    stem = re.match(r"[\w$-]{1,80}", path.stem)
    if not ending or not (name or stem):
        return ""
    return f"*{ending}:{name[0]}" if name else f"*{ending}:{stem[0]}*" if stem else ""


def split_error(text: str) -> tuple[str, str, str]:
    """Split `TypeError: x is null at a.ts:7` into name, message and location."""
    name = ""
    if found := _NAME.match(text):
        name, text = found[1], text[found.end() :]
    first_line = text.split("\n", 1)[0].rstrip()
    located = _LOCATION.search(first_line)
    if located:
        return name, first_line[: located.start()], located[1] or located[2]
    return name, text, ""
