"""The objects of the JSON output, which `objects.toml` declares.

Times are ISO-8601 in UTC, rates lie in 0..1, and null means unknown or none. Keys are only added, and never change
their meaning.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, Union

import msgspec

from core.records.times import iso

_KINDS: Final[dict[str, Any]] = {
    "any": Any,
    "bool": bool,
    "int": int,
    "number": float,
    "object": dict[str, Any],
    "text": str,
    "time": str,
}
_MISSING: Final = object()
_JSON_TYPES: Final = frozenset({str, int, bool, type(None)})  # Their values are JSON as they are.
_RULES: Final = "Times are ISO-8601 in UTC, rates are 0 to 1, null is unknown. Keys are only ever added."
_FINDINGS: Final = "A finding is {file, pointer, severity, code, message, count}."


class Field(NamedTuple):
    """A key of a JSON object."""

    name: str
    kind: str  # One of `_KINDS`, or names of Structs with `|` between them.
    container: str  # `[` for a list, `{` for an object with arbitrary keys, else "".
    is_optional: bool  # Whether it may be null; an empty text is null then.
    source: str  # The attribute of the record with the value, or `part.name`, or `low,high`; see `objects.toml`.
    structs: tuple[type[Wire], ...]  # The Structs that `kind` names.


class Wire(msgspec.Struct, frozen=True):
    """A JSON object."""

    @classmethod
    def of(cls, *records: object, **given: Any) -> Self:
        """Build the object from values and, for other keys, attributes of records.

        The first record that has an attribute counts; `objects.toml` names the attribute of a key. A record may
        also be a mapping by keys, or a plain tuple of the values in the order of the keys.
        """
        for record in records:
            if isinstance(record, Mapping):
                given = {**record, **given}
            elif type(record) is tuple:
                given = {**dict(zip(cls.__struct_fields__, record, strict=True)), **given}
        values = {}
        for field in FIELDS[cls]:
            value = given[field.name] if field.name in given else _read(field.source, records)
            if value is not None and field.structs:
                struct = field.structs[0]
                value = [_nested(one, struct) for one in value] if field.container else _nested(value, struct)
            values[field.name] = None if field.is_optional and value == "" else plain(value)
        return cls(**values)


FIELDS: Final[dict[type[Wire], tuple[Field, ...]]] = {}  # The keys of every Struct that is defined so far.


def _read(source: str, records: tuple[object, ...]) -> Any:
    if "," in source:
        values = [_read(name, records) for name in source.split(",")]
        return None if None in values else values
    name, _, rest = source.partition(".")
    for record in records:
        value = getattr(record, name, _MISSING)
        if value is not _MISSING:
            return attrgetter(rest)(value) if rest and value is not None else value
    raise AttributeError(source)


def _nested(value: Any, struct: type[Wire]) -> Wire:
    return value if isinstance(value, Wire) else struct.of(value)


def plain(value: Any) -> Any:
    """Convert a value to JSON: times to text, NaN and infinity to null."""
    if type(value) in _JSON_TYPES or isinstance(value, Wire):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str | int):
        return value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


@cache
def _declarations() -> dict[str, dict[str, str]]:
    return _load("objects.toml")


@cache
def find_struct(name: str) -> type[Wire]:
    """Define a Struct that `objects.toml` declares; raises KeyError for another name."""
    declared = _declarations()[name]
    base = find_struct(declared["base"]) if "base" in declared else Wire
    own = tuple(map(_parse_field, declared["keys"].split()))
    types = [(one.name, _type_of(one)) for one in own]
    struct: Any = msgspec.defstruct(name, types, bases=(base,), frozen=True, namespace={"__doc__": declared["about"]})
    made: type[Wire] = struct
    FIELDS[made] = (*FIELDS.get(base, ()), *own)
    return made


def __getattr__(name: str) -> type[Wire]:
    try:
        return find_struct(name)
    except KeyError:
        raise AttributeError(name) from None


def _parse_field(text: str) -> Field:
    word, _, source = text.partition("=")
    name, _, kind = word.removesuffix("?").partition(":")
    container = kind[:1] if kind[:1] in {"[", "{"} else ""
    inner = kind.strip("[]{}") or "text"
    structs = () if inner in _KINDS else tuple(map(find_struct, inner.split("|")))
    return Field(name, inner, container, word.endswith("?") or kind == "time", source or name, structs)


def _type_of(field: Field) -> Any:
    kind = _KINDS[field.kind] if field.kind in _KINDS else Union[field.structs]  # noqa: UP007 (known at run time)
    made: Any = kind
    if field.container:
        made = list[kind] if field.container == "[" else dict[str, kind]  # type: ignore[valid-type]
    return made | None if field.is_optional and made is not Any else made


@cache
def _documents() -> dict[str, str]:
    return _load("documents.toml")


@cache
def json_schemas() -> Mapping[str, type[Wire]]:
    """Load the Struct of each document by command and condition (documents.toml)."""
    return {command: find_struct(name) for command, name in _documents().items()}


def json_help(command: str) -> str | None:
    """Describe the JSON output in the help of a command; None if there is none."""
    documents = _documents()
    if command not in documents:
        return None
    shown: set[type[Wire]] = set()
    texts = [_describe(find_struct(documents[command]), shown)]
    for name, struct in documents.items():
        condition = name.removeprefix(command)
        if name != command and name.startswith(command) and condition[:1] in {" ", ","}:
            words = condition.lstrip(", ").removeprefix("with ")
            texts.append(f"With {words}: {_describe(find_struct(struct), shown)}")
    rules = f"{_RULES} {_FINDINGS}" if "findings" in texts[0] else _RULES
    return "\n\n".join([f"JSON: {texts[0]}", *texts[1:], rules])


def _describe(struct: type[Wire], shown: set[type[Wire]]) -> str:
    """Format the keys of a Struct in braces; Structs in `shown` are not repeated."""
    keys = []
    for field in FIELDS[struct]:
        structs = field.structs
        if not structs or field.kind == "Finding" or structs[0] in shown:
            keys.append(field.name)
            continue
        shown.add(structs[0])
        inner = _describe(structs[0], shown)
        keys.append(f"{field.name}: {f'[{inner}]' if field.container else inner}")
    return f"{{{', '.join(keys)}}}"
