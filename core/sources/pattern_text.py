"""Find, add, update and remove records in the text of a pattern file.

See docs/file-formats.md#pattern-files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from core.sources.key_style import RecordText
from core.sources.pattern_shapes import ID_KEYS, LIST_OF, is_entry, layout
from core.storage.json_editor import BadJson, JsonText, Path


class Record(NamedTuple):
    """One pattern in a file: its path, ID and decoded value."""

    path: Path
    id: str
    value: dict[str, Any]


def empty_file(pattern_type: str) -> JsonText:
    """A new registry file with an empty list for one pattern type."""
    content = {"version": "1.0.0", "pattern_registry": {LIST_OF[pattern_type]: []}}
    return RecordText(json.dumps(content, indent=2).encode() + b"\n")


def records(document: JsonText) -> Iterator[Record]:
    """All patterns of a file in its order."""
    yield from _records(document.value, ())


def find(document: JsonText, pattern_id: str) -> Record | None:
    """The first record with an ID."""
    return next((record for record in records(document) if record.id == pattern_id), None)


def id_key(record: Mapping[str, Any]) -> str:
    """The key with the ID of a record; `pattern_id` if it has none."""
    return next((key for key in ID_KEYS if isinstance(record.get(key), str) and record[key].strip()), ID_KEYS[0])


def insert(document: JsonText, pattern_type: str, record: Mapping[str, Any], text: str | None = None) -> None:
    """Add `record` where the layout of the file requires, spelled as `text` if given.

    Raises:
        BadJson: The file has no place for a pattern.
    """
    path: Path = ()
    value = document.value
    key = LIST_OF[pattern_type]
    while isinstance(value, dict):
        found = layout(value)
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
                raise BadJson("a single pattern is where a list is expected")
            document.wrap()
            value = document.value
        elif found.form == "none":
            if path:
                document.set(path, key, [record])
            else:
                document.set(path, "pattern_registry", {key: [record]})
            return
        break
    if isinstance(value, list):
        document.append(path, record, text)
    elif isinstance(value, dict):
        document.set(path, _id_of(record), record, text)
    else:
        raise BadJson("something else is where a list of patterns is expected")


def insert_all(document: JsonText, pattern_type: str, new: Sequence[Mapping[str, Any]]) -> None:
    """Add many records of one type, about as fast as one; see `insert`."""
    for record in new[:1]:
        insert(document, pattern_type, record)
    if len(new) > 1:
        first = find(document, _id_of(new[0]))
        if first is not None and first.path and isinstance(first.path[-1], int):
            document.extend(first.path[:-1], new[1:])
        else:
            for record in new[1:]:
                insert(document, pattern_type, record)


def remove_all(document: JsonText, removed: Iterable[Record]) -> None:
    """Remove many records, about as fast as one."""
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
    """Apply to `present` the records that `theirs` added, changed or removed since `base`.

    A record that also changed in `present` stays unchanged.

    Raises:
        BadJson: A version cannot be parsed.
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
                insert(document, _type_at(record.path), record.value, other.text_at(record.path))
        elif here.value == before.get(record.id):
            _update(document, here, other, record)
    for key in before.keys() - {record.id for record in after}:
        here = find(document, key)
        if here is not None and here.path and here.value == before[key]:
            document.remove(here.path)
    return document.encode()


def _update(document: JsonText, here: Record, other: JsonText, theirs: Record) -> None:
    """Make one record equal to that in another version of the file."""
    for name in [name for name in here.value if name not in theirs.value]:
        document.remove((*here.path, name))
    for name, value in theirs.value.items():
        if name not in here.value or here.value[name] != value:
            document.set(here.path, name, value, other.text_at((*theirs.path, name)))


def _type_at(path: Path) -> str:
    """The pattern type of the list on a path; `error` without one."""
    return next((kind for kind, key in LIST_OF.items() if key in path), "error")


def _records(value: Any, path: Path) -> Iterator[Record]:
    if isinstance(value, list):
        yield from _entries(value, path)
    elif isinstance(value, dict):
        found = layout(value)
        if found.form == "pattern":
            yield Record(path, _id_of(value), value)
        elif found.form == "entries":
            yield from _entries(value, path)
        for name in found.keys:
            below = _records if found.form == "step" else _entries
            yield from below(value[name], (*path, name))


def _entries(value: Any, path: Path) -> Iterator[Record]:
    """The records of a list, or of an object keyed by ID."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield Record((*path, index), _id_of(item), item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if is_entry(key, item):
                yield Record((*path, key), _id_of(item) or key, item)


def _id_of(record: Mapping[str, Any]) -> str:
    """The ID of a record, as for the reader: its first ID key with a text."""
    found = (record.get(key) for key in ID_KEYS)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")
