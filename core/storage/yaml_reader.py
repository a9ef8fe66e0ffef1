"""Parse the bytes of a YAML file to a plain value of texts, with limits and without raising."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from core.base.text import visible_line
from core.records.findings import Severity
from core.storage.file_reader import BOM, MAX_DEPTH, Decoded, Problem, duplicate_key_message

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FLAGS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")


class _Refused(Exception):
    """A YAML document that is not read; holds the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def decode_yaml(data: bytes, *, every: bool = False, typed: bool = False) -> Decoded:
    """The first YAML document with every scalar as a string (plain `null`, `~` and nothing as None).

    No scalar becomes a bool, a number or a time, so that ids, tags and versions stay as written; `dialects`
    turns text into numbers where numbers are meant. Aliases are refused, tags ignored.

    Args:
        every: Of several documents (`---`) the list of all up to the first that cannot be read, instead of the first.
        typed: Give plain numbers, `true` and `false` their type, as JSON has them.
    """
    if not data.removeprefix(BOM).strip(b" \t\r\n\0"):
        return Decoded(problems=(Problem("empty", "is empty", torn=True),), failed=True)
    problems: list[Problem] = []
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        message = f"is not UTF-8 (byte {error.start}); wrong bytes were replaced"
        problems.append(Problem("bad-encoding", message, severity=Severity.WARNING))
    documents: list[Any] = []
    try:
        events = yaml.parse(text, Loader=_Loader)
        while (every or not documents) and _is_followed(events):
            documents.append(_build(events, problems, typed))
    except _Refused as refused:
        problems.append(refused.problem)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        message = f"is not YAML: {visible_line(str(error.problem), 120)}"
        problems.append(Problem("bad-yaml", message, place, torn=True))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = f"is not YAML: {visible_line(str(error), 120)}"
        problems.append(Problem("bad-yaml", message, torn=True))
    else:
        told = [document for document in documents if document is not None]
        return Decoded(told if len(told) > 1 else next(iter(told), None), tuple(problems))
    return Decoded(documents or None, tuple(problems), failed=not documents)


def _is_followed(events: Iterator[yaml.Event]) -> bool:
    """Whether another document begins."""
    return any(isinstance(event, yaml.DocumentStartEvent) for event in events)


def _build(events: Iterator[yaml.Event], problems: list[Problem], typed: bool) -> Any:
    """The value of one document, built with a stack of its own instead of recursion."""
    root: list[Any] = []
    stack: list[list[Any] | _Mapping] = [root]
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            place = f"line {mark.line + 1}" if mark else ""
            raise _Refused(Problem("yaml-alias", "uses an alias; such a file is not read", place))
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent):
            is_key = isinstance(stack[-1], _Mapping) and stack[-1].wants_key
            stack[-1].append(_scalar(event, typed and not is_key))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) > MAX_DEPTH:
                raise _Refused(Problem("too-deep", f"is nested deeper than {MAX_DEPTH} levels; not read"))
            stack.append(_Mapping() if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop()
            if isinstance(done, _Mapping):
                for key in done.twice:
                    problems.append(Problem("duplicate-key", duplicate_key_message(key), severity=Severity.WARNING))
                stack[-1].append(done.record)
            else:
                stack[-1].append(done)
    return root[0] if root else None


class _Mapping:
    """A YAML mapping being filled: keys and values arrive in turn."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.twice: list[str] = []
        self._key: str | None = None

    @property
    def wants_key(self) -> bool:
        return self._key is None

    def append(self, value: Any) -> None:
        if self._key is None:
            self._key = value if isinstance(value, str) else ""
            if self._key in self.record:
                self.twice.append(self._key)
        else:
            self.record[self._key] = value
            self._key = None


def _scalar(event: yaml.ScalarEvent, typed: bool) -> Any:
    if not event.implicit[0]:
        return str(event.value)
    if event.value in ("", "~", "null", "Null", "NULL"):
        return None
    if typed and event.value in _FLAGS:
        return _FLAGS[event.value]
    if typed and _NUMBER.fullmatch(event.value):
        return float(event.value) if "." in event.value else int(event.value)
    return str(event.value)
