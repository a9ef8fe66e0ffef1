"""Decoding of untrusted YAML to plain strings, with limits; raises nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.files.decoded import BOM, MAX_DEPTH, TOO_DEEP, Decoded, Problem, duplicate_key_message
from core.records.findings import Severity

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FLAGS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_LIBRARY_TOO_DEEP: Final = "exceeded maximum nesting depth"  # newer versions of libyaml allow 1,000 levels
_NUMBER: Final = lazy_regex(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")


class _UnsupportedYaml(Exception):
    """YAML document that is refused; the argument is the problem."""


def decode_yaml(data: bytes, *, every: bool = False, typed: bool = False) -> Decoded:
    """Decode the first YAML document, with every scalar as a string.

    Plain `null`, `~` and nothing are None. Scalars do not become booleans, numbers or times, so that IDs, tags and
    versions keep their spelling; `core.sources.normalize` converts where a number is expected. Aliases are refused,
    tags are ignored. With `every`, returns a list of all documents (separated by `---`) up to the first that cannot be
    read. With `typed`, plain numbers, `true` and `false` get their type, as in JSON.
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
        # `any` advances to the next document.
        while (every or not documents) and any(isinstance(event, yaml.DocumentStartEvent) for event in events):
            documents.append(_build(events, problems, typed))
    except _UnsupportedYaml as refused:
        problems.append(refused.args[0])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = str(error.problem if isinstance(error, yaml.MarkedYAMLError) else error)
        if reason == _LIBRARY_TOO_DEEP:
            problems.append(TOO_DEEP)
        else:
            problems.append(Problem("bad-yaml", f"is not YAML: {visible_line(reason, 120)}", place, torn=True))
    else:
        filled = [document for document in documents if document is not None]
        return Decoded(filled if len(filled) > 1 else next(iter(filled), None), tuple(problems))
    return Decoded(documents or None, tuple(problems), failed=not documents)


def _build(events: Iterator[yaml.Event], problems: list[Problem], typed: bool) -> Any:
    """Build the value of one document, with an explicit stack instead of recursion."""
    root: list[Any] = []
    stack: list[list[Any] | _Mapping] = [root]
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            place = f"line {mark.line + 1}" if mark else ""
            raise _UnsupportedYaml(Problem("yaml-alias", "uses an alias; such a file is not read", place))
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent):
            is_key = isinstance(stack[-1], _Mapping) and stack[-1].key is None
            stack[-1].append(_scalar(event, typed and not is_key))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) > MAX_DEPTH:
                raise _UnsupportedYaml(TOO_DEEP)
            stack.append(_Mapping() if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop()
            if isinstance(done, _Mapping):
                for key in done.duplicates:
                    problems.append(Problem("duplicate-key", duplicate_key_message(key), severity=Severity.WARNING))
                stack[-1].append(done.record)
            else:
                stack[-1].append(done)
    return root[0] if root else None


class _Mapping:
    """YAML mapping under construction; `key` is None when a key comes next."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.duplicates: list[str] = []
        self.key: str | None = None

    def append(self, value: Any) -> None:
        if self.key is None:
            self.key = value if isinstance(value, str) else ""
            if self.key in self.record:
                self.duplicates.append(self.key)
        else:
            self.record[self.key] = value
            self.key = None


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
