"""Find, add and remove the records of pattern files in every known layout.

Reader and writer share the layouts (docs/file-formats.md#pattern-files).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from core.base.text import visible_line
from core.files.file_reader import BOM, Decoded, decode, decode_json, decode_jsonl
from core.files.json_editor import BadJson, JsonText, Path
from core.records.findings import Finding, Severity
from core.records.patterns import PatternType
from core.sources.keys import RecordText, snake_own_keys
from core.sources.normalize import escape_key, quote_value

TYPE_WORDS: Final = {
    "error": PatternType.ERROR,
    "success": PatternType.SUCCESS,
    "anti": PatternType.ANTI,
    "antipattern": PatternType.ANTI,
    "template": PatternType.TEMPLATE,
    "code": PatternType.TEMPLATE,
}
"""Pattern type by the first word of a `type` value, a file name or the key of a list."""
_decoder: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw])

_REGISTRY: Final = "pattern_registry"
_PLAIN: Final = "patterns"
LIST_OF: Final = {
    PatternType.ERROR.value: "error_patterns",
    PatternType.SUCCESS.value: "success_patterns",
    PatternType.ANTI.value: "anti_patterns",
    PatternType.TEMPLATE.value: "code_templates",
}
"""Key of the registry's list for each pattern type."""
_LISTS: Final = {
    **{name: PatternType(kind) for kind, name in LIST_OF.items()},
    "template_patterns": PatternType.TEMPLATE,
}
"""Pattern type of each list of a registry."""
_ID_KEYS: Final = ("pattern_id", "template_id", "id")
_PATTERN_KEYS: Final = frozenset(
    {*_ID_KEYS, "error_signature", "fix_approach", "approach", "approach_description", "template_code"}
)
"""A pattern has at least one of these keys; an object without any is not a pattern."""


class PatternItem(Struct, frozen=True, gc=False):
    """One record of a file; `node` is undecoded JSON (`Raw`) or a decoded value.

    `key` is the ID under which the file has the record, if any. `type` is the type that its list or the file name
    suggests, if any.
    """

    path: Path
    pointer: str
    node: Any
    key: str = ""
    type: PatternType | None = None


class Record(NamedTuple):
    """One pattern in a file, with its path, ID and decoded value."""

    path: Path
    id: str
    value: dict[str, Any]


class _Layout(NamedTuple):
    """The place of the patterns in an object.

    `form` is `step` (in the object at the only key of `keys`), `lists` (in the lists at `keys`), `pattern` (the object
    is a pattern), `entries` (its values are patterns by ID) or `none`. `unknown` are the `keys` not in the schema.
    """

    form: str
    keys: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def _layout(top: Mapping[str, Any]) -> _Layout:
    """Detect the layout of an object with snake_case keys in a pattern file."""
    if _REGISTRY in top:
        return _Layout("step", (_REGISTRY,))
    known = tuple(name for name in _LISTS if name in top)
    if not known:
        if _PLAIN in top:
            return _Layout("step", (_PLAIN,))
        if not _PATTERN_KEYS.isdisjoint(top):
            return _Layout("pattern")
        if any(_is_entry(key, _open(node)) for key, node in top.items()):
            return _Layout("entries")
    unknown = tuple(key for key, node in top.items() if key not in _LISTS and _holds_patterns(_open(node)))
    return _Layout("lists", (*known, *unknown), unknown) if known or unknown else _Layout("none")


def _is_entry(key: str, value: Any) -> bool:
    """Whether a member of an object is a pattern whose ID is the key."""
    return isinstance(value, dict) and (
        key.startswith(("pat-", "tmpl-")) or not _PATTERN_KEYS.isdisjoint(snake_own_keys(value))
    )


def _holds_patterns(value: Any) -> bool:
    """Whether the value of an unknown key contains patterns, in a list or by ID."""
    if isinstance(value, list):
        first = _open(value[0]) if value else None
        return isinstance(first, dict) and not _PATTERN_KEYS.isdisjoint(snake_own_keys(first))
    return isinstance(value, dict) and any(_is_entry(key, _open(node)) for key, node in value.items())


def _open(node: Any) -> Any:
    """Decode a `Raw` node one level deep; return any other value unchanged."""
    if not isinstance(node, Raw):
        return node
    try:
        return _decoder.decode(node)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return decode_json(bytes(node)).value


def decode_node(node: Any) -> Any:
    """Decode a `Raw` node; return any other value unchanged."""
    return decode_json(bytes(node)).value if isinstance(node, Raw) else node


def open_document(file: str, data: bytes) -> Decoded:
    """Decode a pattern file; records in plain JSON stay undecoded (`Raw`)."""
    if file.endswith(".jsonl"):
        return _decode_lines(data)
    if file.endswith((".yaml", ".yml")):
        return decode(file, data)
    try:
        return Decoded(_decoder.decode(data.removeprefix(BOM)))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        first, newline, rest = data.strip().partition(b"\n")
        is_jsonl = newline and rest and isinstance(decode_json(first).value, dict)
        return _decode_lines(data) if is_jsonl else decode_json(data)


def _decode_lines(data: bytes) -> Decoded:
    lines, problems = decode_jsonl(data)
    return Decoded([line.value for line in lines], problems)


def split_items(file: str, document: Any, findings: list[Finding]) -> list[PatternItem]:
    """Split a document into records; parts in no known layout become findings."""
    type_of_file = TYPE_WORDS.get(re.split(r"[-_.]", file.rpartition("/")[2])[0])
    return list(_items(document, type_of_file, file, findings))


def _items(
    top: Any,
    type_of_file: PatternType | None,
    file: str,
    findings: list[Finding],
    path: Path = (),
    pointer: str = "",
) -> Iterator[PatternItem]:
    def report(message: str, place: str = pointer, severity: Severity = Severity.WARNING) -> None:
        findings.append(Finding(file, place, severity, "no-patterns", message))

    if isinstance(top, list):
        yield from _list_items(top, type_of_file, path, pointer)
        return
    if not isinstance(top, dict):
        report(f"expected patterns, found {quote_value(top)}")
        return
    values = snake_own_keys(top)
    original_keys = dict(zip(values, top, strict=True))
    found = _layout(values)
    for key in found.keys:
        here, place = (*path, original_keys[key]), f"{pointer}/{escape_key(original_keys[key])}"
        nodes = _open(values[key])
        if found.form == "step":
            yield from _items(nodes, type_of_file, file, findings, here, place)
        elif isinstance(nodes, list | dict):
            first_word = key.split("_")[0].removesuffix("s")
            yield from _list_items(nodes, _LISTS.get(key) or TYPE_WORDS.get(first_word, type_of_file), here, place)
        elif nodes is not None:
            report(f"expected a list of patterns, found {quote_value(nodes)}", place)
    for key in found.unknown:
        message = "unknown key in a pattern file; the patterns in it are read nevertheless"
        report(message, f"{pointer}/{escape_key(original_keys[key])}", Severity.INFO)
    if found.form == "pattern":
        value = {key: decode_node(node) for key, node in top.items()}
        yield PatternItem(path, pointer, value, type=type_of_file)
    elif found.form == "entries":
        yield from _list_items(top, type_of_file, path, pointer)
    elif found.form == "none" and not (pointer and not top):
        keys = ", ".join(visible_line(key, 40) for key in list(top)[:5])
        report(f"the object contains no patterns{f'; its keys are {keys}' if keys else ''}")


def _list_items(
    nodes: list[Any] | dict[str, Any], type_of_list: PatternType | None, path: Path, pointer: str
) -> Iterator[PatternItem]:
    if isinstance(nodes, list):
        for index, node in enumerate(nodes):
            yield PatternItem((*path, index), f"{pointer}/{index}", node, type=type_of_list)
        return
    for key, node in nodes.items():
        if _is_entry(key, _open(node)):
            yield PatternItem((*path, key), f"{pointer}/{escape_key(key)}", node, key, type_of_list)


def slice_file(data: bytes, pointers: Collection[str]) -> bytes | None:
    """Cut a file down to the records at these JSON pointers; takes 2 ms per MB.

    Returns None if the records are not in lists or the file is not plain JSON; it must then be read as a whole.
    """
    wanted: dict[str, list[int]] = {}
    for pointer in pointers:
        place, _, index = pointer.rpartition("/")
        if not index.isdecimal():
            return None
        wanted.setdefault(place, []).append(int(index))
    try:
        sliced = _slice(Raw(data.removeprefix(BOM)), "", wanted)
        return None if sliced is None or wanted else msgspec.json.encode(sliced)
    except (msgspec.MsgspecError, ValueError, RecursionError, IndexError):
        return None


def _slice(node: Raw, pointer: str, wanted: dict[str, list[int]]) -> Any:
    value = _decoder.decode(node)
    if isinstance(value, list):
        return [value[index] for index in sorted(wanted.pop(pointer, ()))]
    found = _layout(value)
    if found.form not in ("step", "lists"):
        return None
    parts = {key: _slice(value[key], f"{pointer}/{key}", wanted) for key in found.keys if key not in found.unknown}
    return None if None in parts.values() else parts


def id_key(record: Mapping[str, Any]) -> str:
    """Return the key that contains the ID of a record; `pattern_id` if none does."""
    for key in _ID_KEYS:
        if isinstance(value := record.get(key), str) and value and not value.isspace():
            return key
    return _ID_KEYS[0]


def id_of(record: Mapping[str, Any], key: str = "") -> str:
    """Return the ID of a record, otherwise the `key` that it has in its file."""
    found = record.get(id_key(record))
    return found if isinstance(found, str) and found and not found.isspace() else key


def empty_file(pattern_type: str) -> JsonText:
    """Create a registry file with an empty list for one pattern type."""
    content = {"version": "1.0.0", _REGISTRY: {LIST_OF[pattern_type]: []}}
    return RecordText(json.dumps(content, indent=2).encode() + b"\n")


def records(document: JsonText) -> Iterator[Record]:
    """Iterate the patterns of a file, in its order."""
    for item in _items(document.value, None, "", []):
        if isinstance(item.node, dict):
            yield Record(item.path, id_of(item.node, item.key), item.node)


def find(document: JsonText, pattern_id: str) -> Record | None:
    """Return the first record with this ID; None if there is none."""
    return next((record for record in records(document) if record.id == pattern_id), None)


def insert(document: JsonText, pattern_type: str, record: Mapping[str, Any], text: str | None = None) -> None:
    """Add `record` in the place that the file's layout requires.

    `text` is the JSON to write instead of encoding `record`. Raises BadJson if the file has no place for a pattern.
    """
    path: Path = ()
    value = document.value
    key = LIST_OF[pattern_type]
    while isinstance(value, dict):
        found = _layout(value)
        if found.form == "step":
            path, value = (*path, found.keys[0]), value[found.keys[0]]
            continue
        if found.form == "lists":
            name = key if key in value or found.unknown != found.keys else found.keys[0]
            if name not in value:
                document.set(path, name, [record])
                return
            path, value = (*path, name), value[name]
        elif found.form == "pattern":
            if path:
                raise BadJson("expected a list of patterns, found a single pattern")
            document.wrap()
            value = document.value
        elif found.form == "none":
            if path:
                document.set(path, key, [record])
            else:
                document.set(path, _REGISTRY, {key: [record]})
            return
        break
    if isinstance(value, list):
        document.append(path, record, text)
    elif isinstance(value, dict):
        document.set(path, id_of(record), record, text)
    else:
        raise BadJson(f"expected a list of patterns, found {quote_value(value)}")


def insert_all(document: JsonText, pattern_type: str, new: Sequence[Mapping[str, Any]]) -> None:
    """Add many records of one type in about the time that `insert` takes for one."""
    for record in new[:1]:
        insert(document, pattern_type, record)
    if len(new) > 1:
        first = find(document, id_of(new[0]))
        if first is not None and first.path and isinstance(first.path[-1], int):
            document.extend(first.path[:-1], new[1:])
        else:
            for record in new[1:]:
                insert(document, pattern_type, record)


def remove_all(document: JsonText, removed: Iterable[Record]) -> None:
    """Remove many records in about the time of removing one."""
    lists: dict[Path, set[int]] = {}
    for record in removed:
        step = record.path[-1] if record.path else None
        if isinstance(step, int):
            lists.setdefault(record.path[:-1], set()).add(step)
        elif step is None:  # the file is this record
            document.wrap()
            document.remove((0,))
        else:
            document.remove(record.path)
    for path, indices in lists.items():
        document.remove_all(path, indices)


def merge_records(base: bytes | None, theirs: bytes, present: bytes | None) -> bytes:
    """Apply the changes from `base` to `theirs` to `present` (a three-way merge).

    Records that also changed in `present` stay unchanged. Raises BadJson if a version cannot be parsed.
    """
    if present is None:
        return theirs
    document, other = RecordText(present), RecordText(theirs)
    before = {} if base is None else {record.id: record.value for record in records(RecordText(base))}
    after = list(records(other))
    for record in after:
        if record.value == before.get(record.id):
            continue
        here = find(document, record.id)
        if here is None:
            if record.id not in before:
                kind = next((kind for kind, key in LIST_OF.items() if key in record.path), PatternType.ERROR)
                insert(document, kind, record.value, other.text_at(record.path))
        elif here.value == before.get(record.id):
            _update(document, here, other, record)
    for key in before.keys() - {record.id for record in after}:
        here = find(document, key)
        if here is not None and here.path and here.value == before[key]:
            document.remove(here.path)
    return document.encode()


def _update(document: JsonText, here: Record, other: JsonText, theirs: Record) -> None:
    for name in [name for name in here.value if name not in theirs.value]:
        document.remove((*here.path, name))
    for name, value in theirs.value.items():
        if name not in here.value or here.value[name] != value:
            document.set(here.path, name, value, other.text_at((*theirs.path, name)))
