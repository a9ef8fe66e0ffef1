"""Layouts of pattern files, for reader and writer (docs/file-formats.md#pattern-files)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from core.records.patterns import PatternType
from core.storage.decoded import BOM

_REGISTRY: Final = "pattern_registry"
_PLAIN: Final = "patterns"

_opener: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw])

REGISTRY: Final = "pattern_registry"
PLAIN: Final = "patterns"
LIST_OF: Final = {
    PatternType.ERROR.value: "error_patterns",
    PatternType.SUCCESS.value: "success_patterns",
    PatternType.ANTI.value: "anti_patterns",
    PatternType.TEMPLATE.value: "code_templates",
}
"""Key of the registry's list for each pattern type."""
LISTS: Final = {
    **{name: PatternType(kind) for kind, name in LIST_OF.items()},
    "template_patterns": PatternType.TEMPLATE,
}
"""Pattern type of each list of a registry."""
ID_KEYS: Final = ("pattern_id", "template_id", "id")
PATTERN_KEYS: Final = frozenset(
    {*ID_KEYS, "error_signature", "fix_approach", "approach", "approach_description", "template_code"}
)
"""A pattern has at least one of these; an object without any contains patterns, or is something else."""


class Layout(NamedTuple):
    """Where an object contains patterns.

    Attributes:
        form: `step` (one level down, at the only key), `lists` (in the lists at the keys), `pattern` (the object is a
            pattern), `entries` (its values are patterns by ID) or `none`.
        keys: See `form`.
        unknown: The keys among them that are not in the schema.
    """

    form: str
    keys: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def layout(top: Mapping[str, Any], opened: Callable[[Any], Any] = lambda node: node) -> Layout:
    """The layout of an object of a pattern file, its keys in snake_case.

    Args:
        top: The object.
        opened: Decodes a value of it one level deep.
    """
    if REGISTRY in top:
        return Layout("step", (REGISTRY,))
    known = tuple(name for name in LISTS if name in top)
    if not known:
        if PLAIN in top:
            return Layout("step", (PLAIN,))
        if not PATTERN_KEYS.isdisjoint(top):
            return Layout("pattern")
        if any(is_entry(key, opened(node)) for key, node in top.items()):
            return Layout("entries")
    unknown = tuple(key for key, node in top.items() if key not in LISTS and _holds_patterns(opened(node), opened))
    return Layout("lists", (*known, *unknown), unknown) if known or unknown else Layout("none")


def is_entry(key: str, value: Any) -> bool:
    """Whether a member of an object is a pattern with its key as ID."""
    return isinstance(value, dict) and (key.startswith(("pat-", "tmpl-")) or not PATTERN_KEYS.isdisjoint(snaked(value)))


def snaked(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with its known keys in snake_case; nested objects are unchanged."""
    # Imported here for speed: few files need the table of key names.
    from core.sources.key_style import SNAKE

    if SNAKE.keys().isdisjoint(value):
        return value
    return {SNAKE[key] if key in SNAKE and SNAKE[key] not in value else key: item for key, item in value.items()}


def _holds_patterns(value: Any, opened: Callable[[Any], Any]) -> bool:
    """Whether a value under an unknown key is a list of patterns, or an object of patterns by ID."""
    if isinstance(value, list):
        first = opened(value[0]) if value else None
        return isinstance(first, dict) and not PATTERN_KEYS.isdisjoint(snaked(first))
    return isinstance(value, dict) and any(is_entry(key, opened(node)) for key, node in value.items())


def slice_file(data: bytes, pointers: Collection[str]) -> bytes | None:
    """The file in its layout with only the records at these JSON pointers; takes 2 ms per MB.

    None if its records are not in lists, or it is not plain JSON: such a file must be read as a whole.
    """
    wanted: dict[str, list[int]] = {}
    for pointer in pointers:
        place, _, index = pointer.rpartition("/")
        if not index.isdecimal():
            return None
        wanted.setdefault(place, []).append(int(index))
    try:
        shape = _shape(Raw(data.removeprefix(BOM)), "", wanted)
        return None if shape is None or wanted else msgspec.json.encode(shape)
    except (msgspec.MsgspecError, ValueError, RecursionError, IndexError):
        return None


def _shape(node: Raw, pointer: str, wanted: dict[str, list[int]]) -> Any:
    value = _opener.decode(node)
    if isinstance(value, list):
        return [value[index] for index in sorted(wanted.pop(pointer, ()))]
    if _REGISTRY in value:
        return _only(value, _REGISTRY, pointer, wanted)
    lists = [name for name in LISTS if name in value]
    if lists:
        shapes = {name: _shape(value[name], f"{pointer}/{name}", wanted) for name in lists}
        return None if None in shapes.values() else shapes
    return _only(value, _PLAIN, pointer, wanted) if _PLAIN in value else None


def _only(value: dict[str, Raw], key: str, pointer: str, wanted: dict[str, list[int]]) -> Any:
    inner = _shape(value[key], f"{pointer}/{key}", wanted)
    return None if inner is None else {key: inner}
