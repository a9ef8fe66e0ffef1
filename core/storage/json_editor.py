"""JSON edited as text: what an edit does not name keeps its very bytes.

Numbers (`1.0`, `1e400`, forty digits), escapes, key order, duplicate keys, indentation and line ends of other
programs survive, since nothing is ever written again that was not changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from core.storage.encodings import encoding_of
from core.storage.json_reader import is_nested_deeper

Path = tuple[str | int, ...]
"""Keys and indices from the root down. In JSON lines the first one is the number of the record."""

BOM: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_FIRST_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_FIRST_COLON: Final = re.compile(r'"[ \t]*:[ \t]*')
_ESCAPED: Final = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")


class BadJson(ValueError):
    """The text is no JSON that can be edited; the message says why."""


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


_DECODER: Final = json.JSONDecoder(parse_int=_integer)


class JsonText:
    """A JSON document, or JSON lines, open for edits.

    Attributes:
        value: The parsed document, kept in step with the edits; for JSON lines the list of records.
        is_lines: Whether it is JSON lines: several values, each an object on one line.
    """

    def __init__(self, data: bytes) -> None:
        """Take `data` apart.

        Raises:
            BadJson: It is empty, torn, in an unknown encoding, nested too deeply, or otherwise no JSON.
        """
        self._encoding = encoding_of(data)
        try:
            text = data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise BadJson(f"not {self._encoding.upper()} at byte {error.start}") from None
        self._bom = text.startswith(BOM)
        self._text = text[1:] if self._bom else text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._ascii = self._encoding == "cp1252" or (text.isascii() and _ESCAPED.search(text) is not None)
        self.is_lines = False
        self._known_spans: tuple[str, tuple[Path, frozenset[int]], dict[int, Child]] | None = None
        try:
            self.value: Any = _DECODER.decode(self._text)
        except RecursionError:
            raise BadJson("nested too deeply") from None
        except ValueError as error:
            records = self._lines()
            if records is None:
                raise BadJson(str(error)) from None
            self.value, self.is_lines = records, True

    def encode(self) -> bytes:
        """The document as bytes, in the encoding that it had."""
        text = (BOM if self._bom else "") + self._text
        try:
            return text.encode(self._encoding)
        except UnicodeEncodeError:  # only text inside strings can be meant, where escapes mean the same
            return b"".join(_encoded(char, self._encoding) for char in text)

    def text_at(self, path: Path) -> str:
        """The value at `path` as it is written."""
        start = self._find(path)
        return self._text[start : _end(self._text, start)]

    def set(self, path: Path, key: str, value: Any, text: str | None = None) -> None:
        """Give the object at `path` the member `key: value`; a new member comes last.

        Args:
            path: Of the object.
            key: Of the member.
            value: What it shall hold.
            text: How to write `value`, where that matters.
        """
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
        """Add `value` to the list at `path`; for JSON lines, `()` adds a record."""
        container = self._at(path)
        assert isinstance(container, list)
        if self.is_lines and not path:
            ended = self._text.endswith("\n")
            line = text or self._dump(self._written(value), None, _colon(self._text, []))
            self._text += line + self._newline if ended else self._newline + line
        else:
            self._append(self._find(path), None, self._written(value), text)
        container.append(self._parsed(value))

    def extend(self, path: Path, values: Sequence[Any]) -> None:
        """Add many values to the list at `path`, in about the time that one takes; see `append`."""
        container = self._at(path)
        if self.is_lines and not path:
            for value in values:
                self.append(path, value)
            return
        for value in values[:1]:  # perhaps into an empty list
            self.append(path, value)
        if len(values) > 1:
            start = self._find(path)
            children = self._children(start)
            siblings = [*children[:1], *children[1:][-2:]]  # all that a layout is taken from
            added = "".join(self._behind(start, siblings, None, self._written(value), None) for value in values[1:])
            self._splice(children[-1].end, children[-1].end, added)
            container.extend(map(self._parsed, values[1:]))

    def remove_all(self, path: Path, indices: Collection[int]) -> None:
        """Take many items out of the list at `path`, in about the time that one takes; see `remove`."""
        container = self._at(path)
        if self.is_lines and not path:
            for index in sorted(indices, reverse=True):
                self.remove((index,))
            return
        start = self._find(path)
        children = self._children(start)
        kept = [index for index in range(len(children)) if index not in indices]
        # Each item but the first keeps what stood between it and the one before.
        texts = [
            self._text[children[i - 1].end if n else children[i].start : children[i].end] for n, i in enumerate(kept)
        ]
        whole = (children[0].start, children[-1].end) if kept else (start + 1, _end(self._text, start) - 1)
        self._splice(*whole, "".join(texts))
        container[:] = [container[index] for index in kept]

    def texts(self, path: Path) -> list[str]:
        """The items of the list at `path`, as they are written."""
        return [self._text[child.value : child.end] for child in _children(self._text, self._find(path))]

    def items(self, path: Path, indices: Collection[int]) -> dict[int, JsonText]:
        """Some items of the list at `path`, each open for edits of its own; `put_back` brings them in."""
        found = {}
        for index, child in self._spans(path, indices).items():
            found[index] = item = self._part(self._text[child.value : child.end].encode())
            item._ascii, item._newline = self._ascii, self._newline
        return found

    def _spans(self, path: Path, indices: Collection[int]) -> dict[int, Child]:
        """Where some items of the list at `path` stand; found once for the same text, since all of it is read."""
        wanted = (path, frozenset(indices))
        if self._known_spans is None or self._known_spans[0] is not self._text or self._known_spans[1] != wanted:
            children = enumerate(_children(self._text, self._find(path)))
            spans = {index: child for index, child in children if index in indices}
            self._known_spans = self._text, wanted, spans
        return self._known_spans[2]

    def put_back(self, path: Path, edited: Mapping[int, JsonText]) -> None:
        """Put items of the list at `path` in place of what they were."""
        container = self._at(path)
        text, done, pieces = self._text, 0, []
        for index, child in self._spans(path, edited).items():
            pieces += [text[done : child.value], edited[index]._text]
            done = child.end
            container[index] = edited[index].value
        self._text = "".join([*pieces, text[done:]])

    def wrap(self) -> None:
        """Make the whole document the only item of a list."""
        space = _SPACE.match(self._text)
        start = space.end() if space else 0
        end = _end(self._text, start)
        self._text = f"{self._text[:start]}[{self._text[start:end]}]{self._text[end:]}"
        self.value = [self.value]

    def remove(self, path: Path) -> None:
        """Take the member or item at `path` out, with the comma that it needed."""
        container = self._at(path[:-1])
        if self.is_lines and len(path) == 1:
            start = self._find(path)
            line_end = self._text.find("\n", start)
            self._text = self._text[:start] + (self._text[line_end + 1 :] if line_end >= 0 else "")
        else:
            start = self._find(path[:-1])
            self._cut(start, self._spelling(start, path[-1]))
        del container[path[-1]]

    def _spelling(self, start: int, key: str | int) -> str | int:
        """How the file writes a key of the object at `start`."""
        return key

    def _written(self, value: Any) -> Any:
        """A value of `value` as it is written to the file."""
        return value

    def _parsed(self, value: Any) -> Any:
        """A value of the file as `value` has it."""
        return value

    def _part(self, data: bytes) -> JsonText:
        """An item of the document, open for edits of its own."""
        return JsonText(data)

    def _at(self, path: Path) -> Any:
        value = self.value
        for step in path:
            value = value[step]
        return value

    def _lines(self) -> list[Any] | None:
        """The records of JSON lines, or None if the text is something else, or torn."""
        records = []
        for line in self._text.split("\n"):
            if not line.strip():
                continue
            try:
                record = _DECODER.decode(line)
            except (ValueError, RecursionError):
                return None
            if not isinstance(record, dict):
                return None
            records.append(record)
        return records if len(records) > 1 else None

    def _children(self, start: int) -> list[Child]:
        return list(_children(self._text, start))

    def _find(self, path: Path) -> int:
        """Offset of the value at `path`."""
        steps = list(path)
        start = self._line_start(int(steps.pop(0)) if self.is_lines else 0)
        try:
            position = start
            for step in steps:
                position = _first(self._text, position, step)
            if _DECODER.raw_decode(self._text, position)[0] == self._at(path):
                return position
        except (ValueError, IndexError):
            pass
        # A key on the way stands there twice: parsers take the last one.
        for step in steps:
            start = self._child_of(start, step).value
        return start

    def _line_start(self, number: int) -> int:
        """Offset of the document, or of a record of JSON lines."""
        position = 0
        for _ in range(number):
            position = self._text.index("\n", _skip(self._text, position)) + 1
        return _skip(self._text, position)

    def _child_of(self, start: int, step: str | int) -> Child:
        return _child(self._children(start), step)[0]

    def _splice(self, start: int, end: int, new: str) -> None:
        self._text = self._text[:start] + new + self._text[end:]

    def _cut(self, start: int, step: str | int) -> None:
        children = self._children(start)
        child, index = _child(children, step)
        if len(children) == 1:
            self._splice(start + 1, _end(self._text, start) - 1, "")
        elif index:
            self._splice(children[index - 1].end, child.end, "")
        else:
            self._splice(child.start, children[1].start, "")

    def _append(self, start: int, key: str | None, value: Any, written: str | None) -> None:
        """Put a child behind the last one of the container at `start`."""
        children = self._children(start)
        if children:
            end = children[-1].end
            self._splice(end, end, self._behind(start, children, key, value, written))
            return
        colon = _colon(self._text, children)
        name = "" if key is None else json.dumps(key, ensure_ascii=self._ascii) + colon
        self._fill(start, name, value, colon, written)

    def _behind(self, start: int, children: list[Child], key: str | None, value: Any, written: str | None) -> str:
        """A comma and a further child of the container at `start`, laid out like its siblings."""
        text = self._text
        colon = _colon(text, children)
        name = "" if key is None else json.dumps(key, ensure_ascii=self._ascii) + colon
        lead = text[start + 1 : children[0].start]
        comma = text[children[-2].end + 1 : children[-1].start] if len(children) > 1 else ""
        if "\n" in lead:
            indent = lead.rpartition("\n")[2]
            unit = self._unit(indent, text[children[-1].end : _skip(text, children[-1].end)].rpartition("\n")[2])
            objects = [c for c in children if text[c.value] == "{"]
            one_line = bool(objects) and "\n" not in text[objects[-1].value : objects[-1].end]
            written = written or self._dump(value, None if one_line else (indent, unit), colon)
            separator = self._newline + indent
        else:
            written = written or self._dump(value, None, colon, "," + comma if comma else None)
            separator = comma or (" " if colon.endswith(" ") else "")
        return "," + separator + name + written

    def _fill(self, start: int, name: str, value: Any, colon: str, written: str | None) -> None:
        """Put the first child into the empty container at `start`."""
        text = self._text
        unit = _FIRST_INDENT.search(text)
        if unit is None:
            inside = name + (written or self._dump(value, None, colon))
        else:
            line = text[text.rfind("\n", 0, start) + 1 : start]
            outer = line[: len(line) - len(line.lstrip(" \t"))]
            indent = outer + unit[1]
            inside = self._newline + indent + name
            inside += written or self._dump(value, (indent, unit[1]), colon)
            inside += self._newline + outer
        self._splice(start + 1, _end(text, start) - 1, inside)

    def _replacement(self, start: int, old: Child, value: Any) -> str:
        """`value` as text to stand in place of `old`, a member of the object at `start`."""
        text = self._text
        children = self._children(start)
        lead = text[start + 1 : children[0].start]
        colon = _colon(text, children)
        was_container = text[old.value] in "{["
        if "\n" not in lead or (was_container and "\n" not in text[old.value : old.end]):
            return self._dump(value, None, colon)
        indent = lead.rpartition("\n")[2]
        closing = text[children[-1].end : _end(text, start) - 1].rpartition("\n")[2]
        return self._dump(value, (indent, self._unit(indent, closing)), colon)

    def _unit(self, indent: str, closing: str) -> str:
        if indent.startswith(closing) and indent != closing:
            return indent[len(closing) :]
        first = _FIRST_INDENT.search(self._text)
        return first[1] if first else "  "

    def _dump(self, value: Any, layout: tuple[str, str] | None, colon: str, comma: str | None = None) -> str:
        """`value` as JSON; `layout` is the indentation of its first line and the step, None for one line."""
        if layout is None:
            comma = comma or (", " if colon.endswith(" ") else ",")
            return json.dumps(value, ensure_ascii=self._ascii, separators=(comma, colon), allow_nan=False)
        indent, unit = layout
        written = json.dumps(value, ensure_ascii=self._ascii, indent=unit, separators=(",", colon), allow_nan=False)
        return written.replace("\n", self._newline + indent)


def _encoded(char: str, encoding: str) -> bytes:
    """A character in an encoding, as an escape of JSON where it has no such character."""
    try:
        return char.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(char)[1:-1].encode(encoding)


def parsed(text: str) -> Any:
    """The value of a piece of JSON, as `JsonText.text_at` gives it.

    Raises:
        BadJson: It is none, or one that no reader would take.
    """
    if is_nested_deeper(text.encode(errors="replace")):
        raise BadJson("nested too deeply")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from None


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _end(text: str, position: int) -> int:
    return int(_DECODER.raw_decode(text, position)[1])


def _children(text: str, start: int) -> Iterator[Child]:
    """The children of the object or list at offset `start` of a text that is known to be valid JSON."""
    closing = "}" if text[start] == "{" else "]"
    position = _skip(text, start + 1)
    while text[position] != closing:
        key, value = None, position
        if closing == "}":
            key, after = _DECODER.raw_decode(text, position)
            value = _skip(text, _skip(text, after) + 1)
        end = _end(text, value)
        yield Child(key, position, value, end)
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)


def _first(text: str, start: int, step: str | int) -> int:
    """Offset of the first child for a key or index, found without reading what comes after it."""
    position = _skip(text, start + 1)
    if isinstance(step, int):
        for _ in range(step):
            position = _skip(text, _skip(text, _end(text, position)) + 1)
        return position
    while True:
        key, after = _DECODER.raw_decode(text, position)
        value = _skip(text, _skip(text, after) + 1)
        if key == step:
            return value
        position = _skip(text, _skip(text, _end(text, value)) + 1)


def _child(children: list[Child], step: str | int) -> tuple[Child, int]:
    """The child for a key (the last one, as parsers take it) or an index, and its index."""
    if isinstance(step, int):
        return children[step], step
    return next((c, i) for i, c in reversed(list(enumerate(children))) if c.key == step)


def _colon(text: str, children: list[Child]) -> str:
    """What stands between key and value here, or in the first member of the document."""
    for child in reversed(children):
        if child.key is not None:
            between = text[_end(text, child.start) : child.value]
            return between if between.strip(" \t") == ":" else ": "
    first = _FIRST_COLON.search(text)
    return first[0][1:] if first else ": "
