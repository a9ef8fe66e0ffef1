"""Structs of the known keys of JSON objects, and their tolerant conversion.

The objects of most agents are converted by msgspec. If a key has another spelling, or a value another type, the keys
of the object are read one by one, which accepts more and reports each wrong value. Both give the same struct, so that
one function makes the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields as fields_of

from core.base.text import to_camel
from core.base.validation import MAX_COUNT
from core.sources.fields import Fields, escape_key
from core.sources.key_style import SNAKE, is_camel, snake_keys

_K = TypeVar("_K", bound="Keys")


class Keys(Struct, kw_only=True, gc=False):
    """Base of the structs; the value of a missing or invalid key is None, of a text None or "".

    The annotation of a field has its other names (`Names`), and if necessary a function that reads it from `Fields` by
    these names. A field whose JSON name is not one of them is only read by that function.
    """


class Names(tuple[str, ...]):
    """All names of one key, in order of precedence."""

    __slots__ = ()

    def __new__(cls, *names: str) -> Names:
        return super().__new__(cls, names)


Time: TypeAlias = Annotated[Annotated[datetime, Meta(tz=True)] | None, Fields.time]
"""A time in any time zone; `parse_time` converts it to UTC."""
Text: TypeAlias = Annotated[str | None, Fields.text]
Texts: TypeAlias = Annotated[str | tuple[str, ...] | None, Fields.texts]
Count: TypeAlias = Annotated[Annotated[int, Meta(ge=0, le=MAX_COUNT)] | None, Fields.count]
Number: TypeAlias = Annotated[Annotated[float, Meta(ge=-MAX_COUNT, le=MAX_COUNT)] | None, Fields.number]
Rate: TypeAlias = Annotated[Annotated[float, Meta(ge=0, le=1)] | None, Fields.rate]
Flag: TypeAlias = Annotated[bool | None, Fields.flag]
Entries: TypeAlias = list[_K] | dict[str, _K] | None
"""The objects of a list; with their keys if they are in an object, or in a list with other items."""


def pairs(entries: Entries[_K]) -> Iterator[tuple[str, _K]]:
    """Iterate entries with the part of their JSON pointer."""
    if isinstance(entries, dict):
        for key, entry in entries.items():
            yield escape_key(key), entry
    elif entries:
        for index, entry in enumerate(entries):
            yield str(index), entry


def read_keys(kind: type[_K], fields: Fields) -> _K:
    """Convert an object; each wrong value is reported and reads as missing."""
    if (keys := _convert(kind, fields.mapping)) is not None:
        return keys
    if is_camel(fields.mapping):
        fields = Fields(fields.file, snake_keys(fields.mapping), fields.findings, fields.pointer)
    return kind(**{name: read(fields, *arguments) for name, read, arguments in _layout(kind).readers})


class _Reader(NamedTuple):
    """The function that reads a field, with its arguments."""

    name: str
    read: Callable[..., Any]
    arguments: tuple[Any, ...]


class _Layout(NamedTuple):
    """What conversions need of a struct.

    `others` are names of keys whose value may count instead of that of the usual name; those in `later` only count
    without a value of the usual name, which is given. `usual` are the types of fields that are others in `_usual`.
    """

    readers: tuple[_Reader, ...]
    others: frozenset[str]
    later: dict[str, str]
    usual: dict[str, Any]


def _convert(kind: type[_K], mapping: Mapping[str, Any]) -> _K | None:
    """Convert an object in the usual spelling; None for any other."""
    later = _layout(kind).later
    if not later.keys().isdisjoint(mapping):
        for name in later.keys() & mapping:
            if mapping.get(later[name]) is None:
                return None
    try:
        keys: _K = msgspec.convert(mapping, _usual(kind))
        return keys
    except (msgspec.ValidationError, RecursionError):
        return None


@cache
def _usual(kind: type[_K], *, is_nested: bool = False) -> type[_K]:
    """Return a subclass to which an object is only converted if no other spelling of a key counts in it."""
    layout = _layout(kind)
    others = layout.others.union(layout.later if is_nested else ())
    fields: list[Any] = [
        (field.name, layout.usual[field.name], msgspec.field(default=None, name=field.encode_name))
        for field in fields_of(kind)
        if field.name in layout.usual
    ]
    fields += ((f"_other_{number}", None, msgspec.field(default=None, name=name)) for number, name in enumerate(others))
    return msgspec.defstruct(f"Usual{kind.__name__}", fields, bases=(kind,), gc=False, kw_only=True)  # type: ignore


@cache
def _layout(kind: type[Keys]) -> _Layout:
    hints = get_type_hints(kind, include_extras=True)
    readers, others, later, usual = [], set[str](), dict[str, str](), dict[str, Any]()
    for field in fields_of(kind):
        key, hint = field.encode_name, hints[field.name]
        metadata = getattr(hint, "__metadata__", ())
        names = next((one for one in metadata if isinstance(one, Names)), Names(key))
        # The last reader is the most specific one.
        read = next((one for one in reversed(metadata) if callable(one)), None)
        every = (one for name in names for one in (name, to_camel(name)) if one == name or one in SNAKE)
        spellings = list(dict.fromkeys(every))
        if key not in spellings:
            others.update(spellings)
            usual[field.name] = None
        elif read in (Fields.texts, Fields.lines):  # an empty value does not count
            others.update(one for one in spellings if one != key)
        else:
            others.update(spellings[: spellings.index(key)])
            later.update(dict.fromkeys(spellings[spellings.index(key) + 1 :], key))
        parts = list(_parts(hint))
        inner = next((one for one in parts if isinstance(one, type) and issubclass(one, Keys)), None)
        if inner is None:
            readers.append(_Reader(field.name, read or _read_raw, names))
            continue
        if key in spellings:
            usual[field.name] = _replace_keys(hint)
        is_list = any(get_origin(part) is list for part in parts)
        if read is not None:
            readers.append(_Reader(field.name, read, names))
        else:
            read = _read_entries if is_list else _read_object_or_text if str in parts else _read_object
            readers.append(_Reader(field.name, read, (inner, *names)))
    return _Layout(tuple(readers), frozenset(others), later, usual)


def _replace_keys(hint: Any) -> Any:
    """Replace the structs in a type by those of `_usual`."""
    if isinstance(hint, type) and issubclass(hint, Keys):
        return _usual(hint, is_nested=True)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _replace_keys(arguments[0])
    if origin in (list, dict):
        return origin[tuple(map(_replace_keys, arguments))]
    return Union[tuple(map(_replace_keys, arguments))] if arguments else hint  # noqa: UP007


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


def _read_raw(fields: Fields, *names: str) -> Any:
    return next((fields.mapping[name] for name in names if fields.mapping.get(name) is not None), None)


def _read_object(fields: Fields, kind: type[_K], *names: str) -> _K | None:
    objects = (inner for name in names if (inner := fields.inside(name)) is not None)
    return next((read_keys(kind, inner) for inner in objects), None)


def _read_object_or_text(fields: Fields, kind: type[_K], name: str) -> _K | str | None:
    value = fields.mapping.get(name)
    return value if isinstance(value, str) else _read_object(fields, kind, name)


def _read_entries(fields: Fields, kind: type[_K], name: str) -> Entries[_K]:
    entries = {key: read_keys(kind, entry) for key, entry in fields.objects(name)}
    value = fields.mapping.get(name)
    return list(entries.values()) if isinstance(value, list) and len(value) == len(entries) else entries
