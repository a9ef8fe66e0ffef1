"""Edit debug sessions' YAML as text, so that unchanged parts keep their bytes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from core.base.errors import Refused
from core.base.text import visible_line
from core.files.file_reader import decode_yaml
from core.files.json_editor import BadJson, Path, value_at

_NULLS: Final = ("", "~", "null", "Null", "NULL")
_STEP: Final = 2  # indentation of new lines, in spaces
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class YamlText:
    """YAML file open for edits."""

    def __init__(self, data: bytes) -> None:
        """Parse `data`; BadJson if it is invalid, Refused if it cannot be edited."""
        self._data = data
        self._parse()

    def encode(self) -> bytes:
        return self._data

    def set(self, path: Path, key: str, value: Any) -> None:
        """Set the member `key` of the mapping at `path`; a new member comes last."""
        node = self._node(path)
        if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
            self._replace(path, {**(value_at(self.value, path) or {}), key: value})
            return
        old = next((item for name, item in reversed(node.value) if name.value == key), None)
        if old is not None:
            self._replace((*path, key), value)
            return
        column = node.start_mark.column
        self._insert_after(node, f"{' ' * column}{_member(key, value, column)}")

    def append(self, path: Path, value: Any) -> None:
        node = self._node(path)
        if not isinstance(node, yaml.SequenceNode) or node.flow_style or not node.value:
            self._replace(path, [*(value_at(self.value, path) or []), value])
            return
        column = node.start_mark.column
        self._insert_after(node, f"{' ' * column}{_item(value, column)}")

    def _parse(self) -> None:
        decoded = decode_yaml(self._data, every=True, typed=True)
        if decoded.failed or decoded.torn or any(problem.severity == "error" for problem in decoded.problems):
            raise BadJson(decoded.problems[-1].message if decoded.problems else "is empty")
        self.value = decoded.value  # updated with each edit
        try:
            self._text = self._data.decode()
        except UnicodeDecodeError as error:
            raise BadJson(f"not UTF-8 at byte {error.start}") from None
        self._newline = "\r\n" if "\r\n" in self._text else "\n"
        try:
            documents = list(yaml.compose_all(self._text, Loader=yaml.SafeLoader))
        except yaml.YAMLError as error:  # stricter than the reader's parser, for example about tabs
            raise Refused(f"the YAML file cannot be edited: {visible_line(str(error), 200)}") from None
        self._documents = [
            node
            for node in documents
            if node is not None
            and not (isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULLS)
        ]

    def _take(self, text: str) -> None:
        self._data = text.encode()
        self._parse()

    def _node(self, path: Path) -> yaml.Node:
        steps = list(path)
        node = self._documents[int(steps.pop(0)) if len(self._documents) > 1 else 0]
        for step in steps:
            if isinstance(node, yaml.MappingNode):
                node = next(item for name, item in reversed(node.value) if name.value == step)
            else:
                node = node.value[step]
        return node

    def _replace(self, path: Path, value: Any) -> None:
        """Replace the value at `path`; inside brackets on one line."""
        node = self._node(path)
        above: Any = self._node(path[:-1]) if path else None
        start, end = node.start_mark.index, _end(node)
        inline = not isinstance(value, dict | list) or not value
        is_flow = isinstance(node, yaml.CollectionNode) and node.flow_style
        if inline or is_flow or above is None or above.flow_style:
            written = _flow(value)
        elif isinstance(above, yaml.SequenceNode):
            written = _block(value, node.start_mark.column).lstrip(" ").replace("\n", self._newline)
        else:
            column = above.start_mark.column + _STEP
            written = (f"\n{_block(value, column)}").replace("\n", self._newline)
            while self._text[start - 1] in " \r\n":  # a block starts on the line after its key
                start -= 1
        gap = " " if self._text[start - 1 : start] == ":" and not written.startswith(self._newline) else ""
        self._take(self._text[:start] + gap + written + self._text[end:])

    def _insert_after(self, node: yaml.Node, lines: str) -> None:
        """Insert lines after the last line of a block."""
        end = self._text.find("\n", _end(node))
        added = lines.replace("\n", self._newline)
        if end < 0:
            self._take(f"{self._text}{self._newline}{added}{self._newline}")
        else:
            self._take(f"{self._text[: end + 1]}{added}{self._newline}{self._text[end + 1 :]}")


def _flow(value: Any) -> str:
    """Format a value on one line, as JSON without the characters that YAML forbids."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _end(node: yaml.Node) -> int:
    """Return the offset after a node; for PyYAML a block ends where the next begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        text = node.end_mark.buffer
        return len(text[:end].rstrip()) if text is not None else end
    return end


def _member(key: str, value: Any, column: int) -> str:
    """Format `key: value` as lines of a block mapping at a column."""
    name = key if key.isidentifier() else _flow(key)
    if isinstance(value, dict | list) and value:
        return f"{name}:\n{_block(value, column + _STEP)}"
    return f"{name}: {_flow(value)}"


def _item(value: Any, column: int) -> str:
    """Format `- value` as lines of a block list at a column."""
    if isinstance(value, dict | list) and value:
        return f"- {_block(value, column + _STEP).lstrip(' ')}"
    return f"- {_flow(value)}"


def _block(value: dict[str, Any] | list[Any], column: int) -> str:
    """Format a non-empty collection as indented lines."""
    lead = " " * column
    if isinstance(value, dict):
        return "\n".join(f"{lead}{_member(key, item, column)}" for key, item in value.items())
    return "\n".join(f"{lead}{_item(item, column)}" for item in value)
