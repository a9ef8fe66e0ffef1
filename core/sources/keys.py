"""JSON keys: spellings, structs, tolerant conversion, edits in a file's style.

Keys in camelCase are read as snake_case: only known keys are renamed, and only in objects with fixed keys. The objects
of most agents are converted to structs by msgspec. If a key has another spelling, or a value another type, the keys of
the object are read one by one, which accepts more and reports each wrong value. Both give the same struct, so that one
function makes the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields as fields_of
from msgspec.structs import replace

from core.base.text import to_camel
from core.base.validation import MAX_COUNT
from core.files.file_reader import Line
from core.files.json_editor import JsonText, Path
from core.sources.normalize import Fields, escape_key
from core.sources.schema import SCHEMAS, Rule

if TYPE_CHECKING:
    from core.records.findings import Finding


_FREE: Final = frozenset({"placeholders", "origins", "additional", "params"})
"""Fields with objects whose keys are data and are never renamed."""
_OTHER_KEYS: Final = (
    *("pattern_registry", "error_patterns", "success_patterns", "anti_patterns", "code_templates"),
    *("template_patterns", "error_type", "error_pattern", "fix_template", "last_seen", "is_negative", "anti_pattern"),
    *("source_loop", "success_count", "failure_count"),
)
"""Known keys that are not in a schema."""


def _keys_of(rule: Rule) -> Iterator[str]:
    for name, inner in rule.keys.items():
        yield name
        yield from _keys_of(inner)
    if rule.items is not None:
        yield from _keys_of(rule.items)


_KNOWN: Final = {*_OTHER_KEYS, *(name for rule in SCHEMAS.values() for name in _keys_of(rule))}
SNAKE: Final[Mapping[str, str]] = {to_camel(name): name for name in sorted(_KNOWN) if to_camel(name) != name}
"""The snake_case form of each known key with several words, by its camelCase form."""
_CAMEL: Final = frozenset(SNAKE)
_NESTED: Final = (dict, list)
_NESTED_TYPES: Final = frozenset(_NESTED)


def is_camel(value: Any) -> bool:
    """Whether a value contains known keys in camelCase at any depth."""
    if isinstance(value, dict):
        if not _CAMEL.isdisjoint(value):
            return True
        for key, item in value.items():
            if isinstance(item, _NESTED) and key not in _FREE and is_camel(item):
                return True
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, _NESTED) and is_camel(item):
                return True
    return False


def snake_keys(value: Any) -> Any:
    """Convert known keys to snake_case, unless the object has both spellings."""
    if isinstance(value, dict):
        own = snake_own_keys(value)
        if _NESTED_TYPES.isdisjoint(map(type, value.values())):
            return own
        return {
            key: snake_keys(item) if isinstance(item, _NESTED) and old not in _FREE else item
            for old, (key, item) in zip(value, own.items(), strict=True)
        }
    return [snake_keys(item) for item in value] if isinstance(value, list) else value


def snake_own_keys(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Like `snake_keys`, but leaves nested objects unchanged."""
    if _CAMEL.isdisjoint(value):
        return value
    return {SNAKE[key] if key in SNAKE and SNAKE[key] not in value else key: item for key, item in value.items()}


def camel_keys(value: Any) -> Any:
    """Convert known keys to camelCase, unless the object has both spellings."""
    if isinstance(value, dict):
        return {
            name if (name := to_camel(key)) in SNAKE and name not in value else key: (
                item if key in _FREE else camel_keys(item)
            )
            for key, item in value.items()
        }
    return [camel_keys(item) for item in value] if isinstance(value, list) else value


def respell(pointer: str, value: Any, base: str = "") -> str:
    """Translate a JSON pointer into `snake_keys(value)` to the keys of `value`."""
    if not pointer.startswith(base):
        return pointer
    parts = []
    for part in pointer[len(base) :].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            name = to_camel(name) if name not in value and to_camel(name) in value else name
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        parts.append(escape_key(name))
    return "".join((base, *(f"/{part}" for part in parts)))


def normalize_keys(value: Any) -> Any:
    """Convert the known keys of a document, or of its `Line`s, to snake_case."""
    if isinstance(value, list) and value and isinstance(value[0], Line):
        if not any(is_camel(line.value) for line in value):
            return value
        return [Line(line.number, snake_keys(line.value)) for line in value]
    return snake_keys(value) if is_camel(value) else value


def restore_key_style(findings: tuple[Finding, ...], value: Any) -> tuple[Finding, ...]:
    """Translate pointers into `normalize_keys(value)` to pointers into `value`."""
    several = value if isinstance(value, list) else ()
    lines = {f"line {line.number}": line.value for line in several if isinstance(line, Line)}
    bases = (finding.pointer.partition("/")[0] for finding in findings)
    return tuple(
        replace(finding, pointer=respell(finding.pointer, lines.get(base, value), base))
        for finding, base in zip(findings, bases, strict=True)
    )


class RecordText(JsonText):
    """An editable JSON document; `value` and paths have snake_case keys.

    Text written to the file has the key style of the file.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._is_camel = is_camel(self.value)
        if self._is_camel:
            self.value = snake_keys(self.value)

    def _find(self, path: Path) -> int:
        if not self._is_camel:
            return super()._find(path)
        steps = list(path)
        start = self._line_start(int(steps.pop(0)) if self.is_lines else 0)
        for step in steps:
            start = self._child_of(start, self._spelling(start, step)).value
        return start

    def _spelling(self, start: int, key: str | int) -> str | int:
        if not self._is_camel or isinstance(key, int):
            return key
        names = {child.key for child in self._children(start)}
        return to_camel(key) if key not in names and to_camel(key) in SNAKE else key

    def _written(self, value: Any) -> Any:
        return camel_keys(value) if self._is_camel else value

    def _parsed(self, value: Any) -> Any:
        return snake_keys(value) if self._is_camel else value

    def _part(self, data: bytes) -> JsonText:
        part = RecordText(data)
        part._is_camel = self._is_camel
        return part


_K = TypeVar("_K", bound="Keys")


class Keys(Struct, kw_only=True, gc=False):
    """Base of the structs; a missing or invalid key is None, of a text None or "".

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
    """Return a subclass that converts an object only if no other key spelling counts."""
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
