"""The base of all objects of the JSON output.

Times are ISO-8601 in UTC, rates lie in 0..1, and null means unknown or none. Keys are only added, and never change
their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from core.records.times import iso

_TIME: Final = object()
Time: TypeAlias = Annotated[str | None, _TIME]
"""A time in ISO-8601, or null; made of a datetime."""
_KINDS: Final[dict[Any, str]] = {Any: "any", bool: "bool", int: "int", float: "number", str: "text"}
_MISSING: Final = object()
_JSON_TYPES: Final = frozenset({str, int, bool, type(None)})  # Their values are JSON as they are.


class Field(NamedTuple):
    """A key of a JSON object."""

    name: str
    attribute: str  # of the class: the key, with `_` behind a word of Python
    kind: str  # text, int, number, bool, time, object, any, or names of classes with `|` between them
    container: str  # `[` for a list, `{` for an object with arbitrary keys, else ""
    is_optional: bool  # Whether it may be null; an empty text is null then.
    source: str  # The attribute of the record with the value, or `part.name`, or `low,high`.
    structs: tuple[type[Wire], ...]  # The classes that `kind` names.


class Wire(msgspec.Struct, frozen=True):
    """A JSON object; `Annotated[T, "name"]` names the record's attribute of a key.

    `part.name` is an attribute of an attribute (null if that is null), and `low,high` a list of both (null if one is).
    """

    @classmethod
    def of(cls, *records: object, **given: Any) -> Self:
        """Build the object from values and, for other keys, attributes of records.

        The first record that has an attribute counts. A record may also be a mapping by keys, or a plain tuple of the
        values in the order of the keys.
        """
        fields = fields_of(cls)
        for record in records:
            if isinstance(record, Mapping):
                given = {**record, **given}
            elif type(record) is tuple:
                given = {**dict(zip((field.name for field in fields), record, strict=True)), **given}
        values = {}
        for field in fields:
            value = given[field.name] if field.name in given else _read(field.source, records)
            if value is not None and field.structs:
                struct = field.structs[0]
                value = [_nested(one, struct) for one in value] if field.container else _nested(value, struct)
            values[field.attribute] = None if field.is_optional and value == "" else plain(value)
        return cls(**values)


class Finding(Wire, frozen=True):
    """A problem in a file; `file` is relative to the project."""

    file: str
    pointer: str
    severity: str
    code: str
    message: str
    count: int


@cache
def fields_of(struct: type[Wire]) -> tuple[Field, ...]:
    """Return the keys of an object, in order."""
    return tuple(_field(name, hint) for name, hint in get_type_hints(struct, include_extras=True).items())


def _field(attribute: str, hint: Any) -> Field:
    marks: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        marks = tuple(rest)
    types = [one for one in _members(hint) if one is not NoneType]
    container = ""
    if get_origin(types[0]) is list:
        container, types = "[", _members(get_args(types[0])[0])
    elif get_origin(types[0]) is dict and get_args(types[0])[1] is not Any:
        container, types = "{", _members(get_args(types[0])[1])
    structs = tuple(one for one in types if isinstance(one, type) and issubclass(one, Wire))
    if _TIME in marks:
        kind = "time"
    elif get_origin(types[0]) is dict:
        kind = "object"
    else:
        kind = "|".join(one.__name__ for one in structs) or _KINDS[types[0]]
    name = attribute.removesuffix("_")
    source = next((mark for mark in marks if isinstance(mark, str)), name)
    return Field(name, attribute, kind, container, NoneType in _members(hint), source, structs)


def _members(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in {Union, UnionType} else [hint]


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
