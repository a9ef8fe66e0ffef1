"""The base of all JSON output: Structs by their keys, and how values become JSON.

Times are ISO-8601 in UTC, rates lie in 0..1, and null means unknown or none. Keys are only added, and never change
their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, Union

import msgspec
import yaml

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


class Field(NamedTuple):
    """A key of a JSON object.

    Attributes:
        kind: One of `_KINDS`, or names of Structs with `|` between them.
        container: `[` for a list, `{` for an object with arbitrary keys, else "".
        is_optional: Whether it may be null; an empty text is null then.
    """

    name: str
    kind: str
    container: str
    is_optional: bool

    @property
    def structs(self) -> list[type[Wire]]:
        """The Structs of its objects."""
        return [] if self.kind in _KINDS else [find_struct(name) for name in self.kind.split("|")]


class Wire(msgspec.Struct, frozen=True):
    """A JSON object."""

    @classmethod
    def of(cls, record: object = None, **given: Any) -> Self:
        """Build the object from the attributes of a record, or items of a mapping, with the names of its keys.

        Args:
            given: Values of the keys for which the record has no such attribute.
        """
        if isinstance(record, Mapping):
            given = {**record, **given}
        values = {}
        for field in FIELDS[cls]:
            value = given[field.name] if field.name in given else getattr(record, field.name)
            if field.structs:
                value = _nested(value, field.structs[0])
            values[field.name] = None if field.is_optional and value == "" else plain(value)
        return cls(**values)


FIELDS: Final[dict[type[Wire], tuple[Field, ...]]] = {}
"""The keys of every Struct that is defined so far."""


@cache
def _declarations() -> dict[str, dict[str, str]]:
    declared: dict[str, dict[str, str]] = yaml.load(
        Path(__file__).with_name("objects.yaml").read_bytes(), yaml.CSafeLoader
    )
    return declared


@cache
def find_struct(name: str) -> type[Wire]:
    """Define the Struct that `objects.yaml` declares.

    Raises:
        KeyError: There is none.
    """
    declared = _declarations()[name]
    base = find_struct(declared["base"]) if "base" in declared else Wire
    own = tuple(map(_parse_field, declared["keys"].split()))
    types = [(one.name, _type_of(one)) for one in own]
    struct: Any = msgspec.defstruct(name, types, bases=(base,), frozen=True, namespace={"__doc__": declared["about"]})
    made: type[Wire] = struct
    FIELDS[made] = (*FIELDS.get(base, ()), *own)
    return made


def _parse_field(word: str) -> Field:
    name, _, kind = word.removesuffix("?").partition(":")
    container = kind[:1] if kind[:1] in {"[", "{"} else ""
    return Field(name, kind.strip("[]{}") or "text", container, word.endswith("?") or kind == "time")


def _type_of(field: Field) -> Any:
    kind = _KINDS[field.kind] if field.kind in _KINDS else Union[tuple(field.structs)]  # noqa: UP007 (known at run time)
    made: Any = kind
    if field.container:
        made = list[kind] if field.container == "[" else dict[str, kind]  # type: ignore[valid-type]
    return made | None if field.is_optional and made is not Any else made


def plain(value: Any) -> Any:
    """A value of a record as JSON: times as text, numbers that are not finite as null."""
    if value is None or isinstance(value, bool | Wire):
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


def _nested(value: Any, struct: type[Wire]) -> Any:
    if value is None or isinstance(value, Wire):
        return value
    if isinstance(value, list | tuple | Set) or hasattr(value, "__next__"):
        return [one if isinstance(one, Wire) else struct.of(one) for one in value]
    return struct.of(value)
