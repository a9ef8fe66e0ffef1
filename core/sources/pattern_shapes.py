"""Layouts of pattern files, for reader and writer (docs/file-formats.md#pattern-files)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.patterns import PatternType
from core.sources.fields import Fields, shown
from core.storage.decoded import BOM, Decoded
from core.storage.file_reader import decode
from core.storage.json_reader import decode_json, decode_jsonl

TYPE_WORDS: Final = {
    "error": PatternType.ERROR,
    "success": PatternType.SUCCESS,
    "anti": PatternType.ANTI,
    "antipattern": PatternType.ANTI,
    "template": PatternType.TEMPLATE,
    "code": PatternType.TEMPLATE,
}
"""Pattern types by the first word of a `type` value, a file name or the key of a list."""
_decoder: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw])

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


class PatternItem(Struct, frozen=True, gc=False):
    """One record before it is decoded.

    Attributes:
        pointer: JSON pointer of the record.
        node: Its undecoded bytes (`Raw`) or its decoded value.
        key: Its key, if records are keyed by ID.
        type: Type that its list or the file name suggests; None if neither does.
    """

    pointer: str
    node: Any
    key: str = ""
    type: PatternType | None = None


def open_document(file: str, data: bytes) -> Decoded:
    """Decode a pattern file; the records of plain JSON stay undecoded (`Raw`)."""
    if file.endswith(".jsonl"):
        return _decode_lines(data)
    if file.endswith((".yaml", ".yml")):
        return decode(file, data)
    try:
        return Decoded(_decoder.decode(data.removeprefix(BOM)))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _decode_lines(data) if _is_jsonl(data) else decode_json(data)


def split_items(file: str, document: Any, findings: list[Finding]) -> list[PatternItem]:
    """The records of a document from `open_document`; adds a finding for each part in no known layout."""
    type_of_file = TYPE_WORDS.get(re.split(r"[-_.]", file.rpartition("/")[2])[0])
    return list(_items(document, type_of_file, file, findings))


def decode_node(node: Any) -> Any:
    """The value of an undecoded node; any other value as it is."""
    return decode_json(bytes(node)).value if isinstance(node, Raw) else node


def _is_jsonl(data: bytes) -> bool:
    """Whether the first line is a complete object and another line follows."""
    first, newline, rest = data.strip().partition(b"\n")
    if not newline or not rest:
        return False
    decoded = decode_json(first)
    return not decoded.failed and isinstance(decoded.value, dict)


def _decode_lines(data: bytes) -> Decoded:
    lines, problems = decode_jsonl(data)
    return Decoded([line.value for line in lines], problems)


def _open(node: Any) -> Any:
    """A node decoded one level deep: a dict or list of nodes, or a scalar."""
    if not isinstance(node, Raw):
        return node
    try:
        return _decoder.decode(node)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return decode_json(bytes(node)).value


def _items(
    top: Any, type_of_file: PatternType | None, file: str, findings: list[Finding], pointer: str = ""
) -> Iterator[PatternItem]:
    def report(message: str, place: str = pointer, severity: Severity = Severity.WARNING) -> None:
        findings.append(Finding(file, place, severity, "no-patterns", message))

    if isinstance(top, list):
        yield from _list_items(top, type_of_file, pointer)
        return
    if not isinstance(top, dict):
        report(f"expected patterns, found {shown(top)}")
        return
    here = Fields("", {}, [], pointer)
    values = snaked(top)
    original_keys = dict(zip(values, top, strict=True))
    found = layout(values, _open)
    for key in found.keys:
        place = here.place(original_keys[key])
        if found.form == "step":
            yield from _items(_open(values[key]), type_of_file, file, findings, place)
            continue
        nodes = _open(values[key])
        if isinstance(nodes, list | dict):
            first_word = key.split("_")[0].removesuffix("s")
            yield from _list_items(nodes, LISTS.get(key) or TYPE_WORDS.get(first_word, type_of_file), place)
        elif nodes is not None:
            report(f"expected a list of patterns, found {shown(nodes)}", place)
    for key in found.unknown:
        message = "is not a key of a pattern file; the patterns in it are read"
        report(message, here.place(original_keys[key]), Severity.INFO)
    if found.form == "pattern":
        yield PatternItem(pointer, {key: decode_node(node) for key, node in top.items()}, type=type_of_file)
    elif found.form == "entries":
        yield from _list_items(top, type_of_file, pointer)
    elif found.form == "none" and not (pointer and not top):
        keys = ", ".join(visible_line(key, 40) for key in list(top)[:5])
        report(f"is an object without patterns{f'; it has {keys}' if keys else ''}")


def _list_items(nodes: Any, type_of_list: PatternType | None, pointer: str) -> Iterator[PatternItem]:
    """The records of a list, or of an object keyed by ID."""
    if isinstance(nodes, list):
        for index, node in enumerate(nodes):
            yield PatternItem(f"{pointer}/{index}", node, type=type_of_list)
    elif isinstance(nodes, dict):
        here = Fields("", nodes, [], pointer)
        for key, node in nodes.items():
            if is_entry(key, _open(node)):
                yield PatternItem(here.place(key), node, key, type_of_list)
