"""Editing of JSON as text, so that unchanged parts keep their bytes.

Numbers (`1.0`, `1e400`, forty digits), escapes, key order, duplicate keys, indentation and line ends of other programs
survive, because unchanged text is never written again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any, Final, NamedTuple

from core.base.regexes import lazy_regex
from core.files.file_reader import detect_encoding, is_nested_deeper

Path = tuple[str | int, ...]  # keys and indexes from the root; in JSON lines first the index of the record

_BOM: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
_FIRST_INDENT: Final = lazy_regex(r"\n([ \t]+)\S")
_SPACE: Final = lazy_regex(r"[ \t\n\r]*")
_FIRST_COLON: Final = lazy_regex(r'"[ \t]*:[ \t]*')
_ESCAPED: Final = lazy_regex(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")


class BadJson(ValueError):
    """The text is not JSON that can be edited."""


class JsonText:
    """JSON document, or JSON lines, open for edits."""

    def __init__(self, data: bytes) -> None:
        """Parse `data`; raises BadJson if it is not JSON that can be edited."""
        self._encoding = detect_encoding(data)
        try:
            text = data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise BadJson(f"not {self._encoding.upper()} at byte {error.start}") from None
        self._has_bom = text.startswith(_BOM)
        self._text = text[1:] if self._has_bom else text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._ascii = self._encoding == "cp1252" or (text.isascii() and _ESCAPED.search(text) is not None)
        self.is_lines = False  # whether it is JSON lines: several objects, each on one line
        self._known_spans: tuple[str, tuple[Path, frozenset[int]], dict[int, Child]] | None = None
        try:
            self.value: Any = DECODER.decode(self._text)  # updated with each edit; for JSON lines the records
        except RecursionError:
            raise BadJson("nested too deeply") from None
        except ValueError as error:
            records = self._parse_lines()
            if records is None:
                raise BadJson(str(error)) from None
            self.value, self.is_lines = records, True

    def encode(self) -> bytes:
        """Return the document as bytes, in its original encoding."""
        text = (_BOM if self._has_bom else "") + self._text
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError:  # can only be inside strings, where JSON escapes are equivalent
            return b"".join(_encode_char(char, self._encoding) for char in text)

    def text_at(self, path: Path) -> str:
        start = self._find(path)
        return self._text[start : find_value_end(self._text, start)]

    def texts(self, path: Path) -> list[str]:
        """Return the text of each item of the list at `path`."""
        return [self._text[child.value : child.end] for child in iterate_children(self._text, self._find(path))]

    def set(self, path: Path, key: str, value: Any, text: str | None = None) -> None:
        """Set the member `key` of the object at `path`, with `text` as its JSON if given."""
        container = self._at(path)
        assert isinstance(container, dict)
        start = self._find(path)
        name = str(self._spelling(start, key))
        old = next((child for child in reversed(self._children(start)) if child.key == name), None)
        if old is None:
            self._append(start, name, self._written(value), text)
        else:
            self._splice(old.value, old.end, text or self._replacement(start, old, self._written(value)))
        container[key] = self._parsed(value)

    def append(self, path: Path, value: Any, text: str | None = None) -> None:
        """Append `value` to the list at `path`; `()` appends a record to JSON lines."""
        container = self._at(path)
        assert isinstance(container, list)
        if self.is_lines and not path:
            line = text or self._dump(self._written(value), None, colon_style(self._text, []))
            has_end = self._text.endswith("\n")
            self._text += line + self._newline if has_end else self._newline + line
        else:
            self._append(self._find(path), None, self._written(value), text)
        container.append(self._parsed(value))

    def extend(self, path: Path, values: Sequence[Any]) -> None:
        """Append many values to the list at `path`, about as fast as one."""
        container = self._at(path)
        # The first value may start an empty list; JSON lines are independent of each other.
        one_by_one = len(values) if self.is_lines and not path else 1
        for value in values[:one_by_one]:
            self.append(path, value)
        if rest := values[one_by_one:]:
            start = self._find(path)
            children = self._children(start)
            siblings = [*children[:1], *children[1:][-2:]]  # enough to copy the layout from
            added = "".join(self._sibling_text(start, siblings, None, self._written(value), None) for value in rest)
            self._splice(children[-1].end, children[-1].end, added)
            container.extend(map(self._parsed, rest))

    def remove(self, path: Path) -> None:
        """Remove the member or item at `path` with its comma."""
        container = self._at(path[:-1])
        if self.is_lines and len(path) == 1:
            start = self._find(path)
            line_end = self._text.find("\n", start)
            self._text = self._text[:start] + (self._text[line_end + 1 :] if line_end >= 0 else "")
        else:
            start = self._find(path[:-1])
            children = self._children(start)
            child, index = find_child(children, self._spelling(start, path[-1]))
            if len(children) == 1:
                self._splice(start + 1, find_value_end(self._text, start) - 1, "")
            elif index:
                self._splice(children[index - 1].end, child.end, "")
            else:
                self._splice(child.start, children[1].start, "")
        del container[path[-1]]

    def remove_all(self, path: Path, indexes: Collection[int]) -> None:
        """Remove many items of the list at `path`, about as fast as one."""
        container = self._at(path)
        if self.is_lines and not path:
            for index in sorted(indexes, reverse=True):
                self.remove((index,))
            return
        start = self._find(path)
        children = self._children(start)
        left = [index for index in range(len(children)) if index not in indexes]
        # Each item but the first keeps the text between it and its predecessor.
        texts = [
            self._text[children[i - 1].end if n else children[i].start : children[i].end] for n, i in enumerate(left)
        ]
        span = (children[0].start, children[-1].end) if left else (start + 1, find_value_end(self._text, start) - 1)
        self._splice(*span, "".join(texts))
        container[:] = [container[index] for index in left]

    def items(self, path: Path, indexes: Collection[int]) -> dict[int, JsonText]:
        """Open some items of the list at `path` for edits; `put_back` stores them."""
        found = {}
        for index, child in self._spans(path, indexes).items():
            found[index] = item = self._part(self._text[child.value : child.end].encode())
            item._ascii, item._newline = self._ascii, self._newline
        return found

    def put_back(self, path: Path, edited: Mapping[int, JsonText]) -> None:
        """Replace items of the list at `path` by their edited versions."""
        container = self._at(path)
        text, done, pieces = self._text, 0, []
        for index, child in self._spans(path, edited).items():
            pieces += [text[done : child.value], edited[index]._text]
            done = child.end
            container[index] = edited[index].value
        self._text = "".join([*pieces, text[done:]])

    def wrap(self) -> None:
        """Make the whole document the only item of a list."""
        start = skip_space(self._text, 0)
        end = find_value_end(self._text, start)
        self._text = f"{self._text[:start]}[{self._text[start:end]}]{self._text[end:]}"
        self.value = [self.value]

    def _spelling(self, start: int, key: str | int) -> str | int:
        """Return the text of a key as written in the object at `start`."""
        return key

    def _written(self, value: Any) -> Any:
        """Convert a value from the form of `value` to the form of the file."""
        return value

    def _parsed(self, value: Any) -> Any:
        """Convert a value from the form of the file to the form of `value`."""
        return value

    def _part(self, data: bytes) -> JsonText:
        """Open one item for edits of its own."""
        return JsonText(data)

    def _at(self, path: Path) -> Any:
        return value_at(self.value, path)

    def _parse_lines(self) -> list[Any] | None:
        """Parse the records of JSON lines; None if the text is not JSON lines."""
        records = []
        for line in self._text.split("\n"):
            if not line.strip():
                continue
            try:
                record = DECODER.decode(line)
            except (ValueError, RecursionError):
                return None
            if not isinstance(record, dict):
                return None
            records.append(record)
        return records if len(records) > 1 else None

    def _spans(self, path: Path, indexes: Collection[int]) -> dict[int, Child]:
        """Return the offsets of some items of a list; cached, because the search is slow."""
        wanted = (path, frozenset(indexes))
        if self._known_spans is None or self._known_spans[0] is not self._text or self._known_spans[1] != wanted:
            children = enumerate(iterate_children(self._text, self._find(path)))
            spans = {index: child for index, child in children if index in indexes}
            self._known_spans = self._text, wanted, spans
        return self._known_spans[2]

    def _children(self, start: int) -> list[Child]:
        return list(iterate_children(self._text, start))

    def _find(self, path: Path) -> int:
        steps = list(path)
        start = self._line_start(int(steps.pop(0)) if self.is_lines else 0)
        try:
            position = start
            for step in steps:
                position = first_child_value(self._text, position, step)
            if DECODER.raw_decode(self._text, position)[0] == self._at(path):
                return position
        except (ValueError, IndexError):
            pass
        # A key on the path occurs twice: parsers use the last one.
        for step in steps:
            start = self._child_of(start, step).value
        return start

    def _line_start(self, number: int) -> int:
        """Return the offset of the top value, or of a record of JSON lines."""
        position = 0
        for _ in range(number):
            position = self._text.index("\n", skip_space(self._text, position)) + 1
        return skip_space(self._text, position)

    def _child_of(self, start: int, step: str | int) -> Child:
        return find_child(self._children(start), step)[0]

    def _splice(self, start: int, end: int, new: str) -> None:
        self._text = self._text[:start] + new + self._text[end:]

    def _append(self, start: int, key: str | None, value: Any, written: str | None) -> None:
        """Insert a child after the last one of the container at `start`."""
        children = self._children(start)
        if children:
            end = children[-1].end
            self._splice(end, end, self._sibling_text(start, children, key, value, written))
            return
        colon = colon_style(self._text, children)
        name = "" if key is None else json.dumps(key, ensure_ascii=self._ascii) + colon
        self._fill(start, name, value, colon, written)

    def _sibling_text(self, start: int, children: list[Child], key: str | None, value: Any, written: str | None) -> str:
        """Format a comma and a further child, laid out like the other children."""
        text = self._text
        colon = colon_style(text, children)
        name = "" if key is None else json.dumps(key, ensure_ascii=self._ascii) + colon
        lead = text[start + 1 : children[0].start]
        comma = text[children[-2].end + 1 : children[-1].start] if len(children) > 1 else ""
        if "\n" in lead:
            indent = lead.rpartition("\n")[2]
            unit = self._unit(indent, text[children[-1].end : skip_space(text, children[-1].end)].rpartition("\n")[2])
            objects = [c for c in children if text[c.value] == "{"]
            one_line = bool(objects) and "\n" not in text[objects[-1].value : objects[-1].end]
            written = written or self._dump(value, None if one_line else (indent, unit), colon)
            separator = self._newline + indent
        else:
            written = written or self._dump(value, None, colon, "," + comma if comma else None)
            separator = comma or (" " if colon.endswith(" ") else "")
        return "," + separator + name + written

    def _fill(self, start: int, name: str, value: Any, colon: str, written: str | None) -> None:
        """Insert the first child into the empty container at `start`."""
        text = self._text
        unit = _FIRST_INDENT.search(text)
        if unit is None:
            inside = name + (written or self._dump(value, None, colon))
        else:
            line = text[text.rfind("\n", 0, start) + 1 : start]
            outer = line[: len(line) - len(line.lstrip(" \t"))]
            indent = outer + unit[1]
            inner = name + (written or self._dump(value, (indent, unit[1]), colon))
            inside = self._newline + indent + inner + self._newline + outer
        self._splice(start + 1, find_value_end(text, start) - 1, inside)

    def _replacement(self, start: int, old: Child, value: Any) -> str:
        """Return the text of `value`, to replace `old` in the object at `start`."""
        text = self._text
        children = self._children(start)
        lead = text[start + 1 : children[0].start]
        colon = colon_style(text, children)
        was_container = text[old.value] in "{["
        if "\n" not in lead or (was_container and "\n" not in text[old.value : old.end]):
            return self._dump(value, None, colon)
        indent = lead.rpartition("\n")[2]
        closing = text[children[-1].end : find_value_end(text, start) - 1].rpartition("\n")[2]
        return self._dump(value, (indent, self._unit(indent, closing)), colon)

    def _unit(self, indent: str, closing: str) -> str:
        """Return the indentation of one level, from a child's and the closing bracket's."""
        if indent.startswith(closing) and indent != closing:
            return indent[len(closing) :]
        first = _FIRST_INDENT.search(self._text)
        return first[1] if first else "  "

    def _dump(self, value: Any, layout: tuple[str, str] | None, colon: str, comma: str | None = None) -> str:
        """Dump `value` as JSON; `layout` is (first indent, one level), None for one line."""
        if layout is None:
            comma = comma or (", " if colon.endswith(" ") else ",")
            return json.dumps(value, ensure_ascii=self._ascii, separators=(comma, colon), allow_nan=False)
        indent, unit = layout
        written = json.dumps(value, ensure_ascii=self._ascii, indent=unit, separators=(",", colon), allow_nan=False)
        return written.replace("\n", self._newline + indent)


def value_at(value: Any, path: Path) -> Any:
    """Return the part of a parsed document at a path."""
    return reduce(getitem, path, value)


def parse_value(text: str) -> Any:
    """Parse a value like that of `text_at`; BadJson if invalid or nested too deeply."""
    if is_nested_deeper(text.encode(errors="replace")):
        raise BadJson("nested too deeply")
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from None


def _encode_char(char: str, encoding: str) -> bytes:
    """Encode a character, as a JSON escape if the encoding lacks it."""
    try:
        return char.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(char)[1:-1].encode(encoding)


# Location of values in text


class Child(NamedTuple):
    """Member of an object or item of a list, as offsets into the text."""

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
    """Skip white space; returns the offset of the next character."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def find_value_end(text: str, position: int) -> int:
    """Return the offset after the value at `position`."""
    return int(DECODER.raw_decode(text, position)[1])


def iterate_children(text: str, start: int) -> Iterator[Child]:
    """Return the children of the object or list at offset `start`."""
    closing = "}" if text[start] == "{" else "]"
    position = skip_space(text, start + 1)
    while text[position] != closing:
        key, value = None, position
        if closing == "}":
            key, after = DECODER.raw_decode(text, position)
            value = skip_space(text, skip_space(text, after) + 1)
        end = find_value_end(text, value)
        yield Child(key, position, value, end)
        position = skip_space(text, end)
        if text[position] == ",":
            position = skip_space(text, position + 1)


def first_child_value(text: str, start: int, step: str | int) -> int:
    """Return the offset of the first child with a key or index; reads no further."""
    position = skip_space(text, start + 1)
    if isinstance(step, int):
        for _ in range(step):
            position = skip_space(text, skip_space(text, find_value_end(text, position)) + 1)
        return position
    while True:
        key, after = DECODER.raw_decode(text, position)
        value = skip_space(text, skip_space(text, after) + 1)
        if key == step:
            return value
        position = skip_space(text, skip_space(text, find_value_end(text, value)) + 1)


def find_child(children: list[Child], step: str | int) -> tuple[Child, int]:
    """Return a child and its index, found by key (the last of equal keys) or index."""
    if isinstance(step, int):
        return children[step], step
    return next((child, index) for index, child in reversed(list(enumerate(children))) if child.key == step)


def colon_style(text: str, children: list[Child]) -> str:
    """Return the text between key and value of the children, or of the first member."""
    for child in reversed(children):
        if child.key is not None:
            between = text[find_value_end(text, child.start) : child.value]
            return between if between.strip(" \t") == ":" else ": "
    first = _FIRST_COLON.search(text)
    return first[0][1:] if first else ": "
