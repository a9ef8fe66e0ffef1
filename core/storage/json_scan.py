"""Locate values in the text of a valid JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_FIRST_COLON: Final = re.compile(r'"[ \t]*:[ \t]*')


class Child(NamedTuple):
    """A member of an object or an item of a list, as offsets into the text."""

    key: str | None
    start: int
    value: int
    end: int


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return float("inf")


DECODER: Final = json.JSONDecoder(parse_int=_integer)


def skip_space(text: str, position: int) -> int:
    """Offset of the first character at or after `position` that is not white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def value_end(text: str, position: int) -> int:
    """Offset after the value at `position`."""
    return int(DECODER.raw_decode(text, position)[1])


def children_of(text: str, start: int) -> Iterator[Child]:
    """The children of the object or list at offset `start`."""
    closing = "}" if text[start] == "{" else "]"
    position = skip_space(text, start + 1)
    while text[position] != closing:
        key, value = None, position
        if closing == "}":
            key, after = DECODER.raw_decode(text, position)
            value = skip_space(text, skip_space(text, after) + 1)
        end = value_end(text, value)
        yield Child(key, position, value, end)
        position = skip_space(text, end)
        if text[position] == ",":
            position = skip_space(text, position + 1)


def first_child_value(text: str, start: int, step: str | int) -> int:
    """Offset of the first child with a key or index; reads nothing after it."""
    position = skip_space(text, start + 1)
    if isinstance(step, int):
        for _ in range(step):
            position = skip_space(text, skip_space(text, value_end(text, position)) + 1)
        return position
    while True:
        key, after = DECODER.raw_decode(text, position)
        value = skip_space(text, skip_space(text, after) + 1)
        if key == step:
            return value
        position = skip_space(text, skip_space(text, value_end(text, value)) + 1)


def find_child(children: list[Child], step: str | int) -> tuple[Child, int]:
    """The child with a key (the last one, as parsers do) or index, and its index."""
    if isinstance(step, int):
        return children[step], step
    return next((child, index) for index, child in reversed(list(enumerate(children))) if child.key == step)


def colon_style(text: str, children: list[Child]) -> str:
    """Text between key and value of the children, or of the first member."""
    for child in reversed(children):
        if child.key is not None:
            between = text[value_end(text, child.start) : child.value]
            return between if between.strip(" \t") == ":" else ": "
    first = _FIRST_COLON.search(text)
    return first[0][1:] if first else ": "
