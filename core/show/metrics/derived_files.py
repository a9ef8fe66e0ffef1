"""Files with effectiveness and the pattern index; docs/metrics.md#derived-files.

A file is written only if a value changes. Unknown keys are preserved, and a file that is not a JSON object is not
changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import to_builtins

from core.base.errors import BadInput, Conflict, Unwritable
from core.files.atomic_write import curation_lock, rewrite, take_theirs
from core.files.file_reader import MAX_PATTERN_BYTES, Problem, decode_json, read_file
from core.files.json_editor import JsonText
from core.records.times import iso
from core.show.metrics.effectiveness import EffectivenessMetrics, compute_effectiveness
from core.sources.configuration import METRICS, read_registry_extras

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.learning.scoreboard import Scoreboard
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot

_VERSION: Final = "1.0.0"
_Update = Callable[[JsonText], None]


def metrics_path(paths: ProjectPaths) -> Path:
    """Path of the file with the effectiveness metrics."""
    return paths.ralph / "shared" / "effectiveness-metrics.json"


def index_path(paths: ProjectPaths) -> Path:
    """Path of the file with the index of patterns."""
    return paths.ralph / "memory" / "patterns-index.json"


def write_derived(
    paths: ProjectPaths, settings: Settings, snapshot: Snapshot, board: Scoreboard, now: datetime
) -> tuple[str, ...]:
    """Update index and metrics; return errors, which do not affect the records."""
    of_index = _write_index(paths, settings, snapshot.patterns, now)
    return of_index + write_metrics(paths, settings, snapshot, board, now)


def write_metrics(
    paths: ProjectPaths, settings: Settings, snapshot: Snapshot, board: Scoreboard, now: datetime
) -> tuple[str, ...]:
    """Update `shared/effectiveness-metrics.json`; see `write_derived`."""
    metrics = to_builtins(compute_effectiveness(snapshot, board, now))
    at = metrics.pop("last_updated")

    def update(document: JsonText) -> None:
        is_wrapped = isinstance(document.value.get(METRICS), dict)  # a file of its own does not need the key
        path = (METRICS,) if is_wrapped else ()
        if _set_known(document, path, metrics):
            document.set(path, "last_updated", at)

    return _update(paths, settings, metrics_path(paths), update)


def _set_known(document: JsonText, path: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    """Set the values at `path`, remove keys whose value is None; return if changed."""
    here = document.value
    for step in path:
        here = here[step]
    changed = False
    for key, value in values.items():
        old = here.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            changed |= _set_known(document, (*path, key), value)
        elif value is None and key in here:
            document.remove((*path, key))
            changed = True
        elif value is not None and (type(old) is bool or old != value):
            if isinstance(value, dict):
                value = {name: item for name, item in value.items() if item is not None}
            document.set(path, key, value)
            changed = True
    return changed


def _write_index(
    paths: ProjectPaths, settings: Settings, patterns: Mapping[str, Pattern], now: datetime
) -> tuple[str, ...]:
    entries = [
        {
            "pattern_id": pattern.id,
            "type": pattern.type.value,
            "title": pattern.title,
            "category": pattern.category,
            "tags": list(pattern.tags),
            "content_hash": pattern.content_hash,
            "file": pattern.file,
        }
        for _, pattern in sorted(patterns.items())
        if pattern.is_registered
    ]

    def update(document: JsonText) -> None:
        if document.value.get("patterns") == entries:
            return
        document.set((), "version", _VERSION)
        document.set((), "updated_at", iso(now))
        # json.dumps escapes lone surrogates; one line per pattern makes readable diffs.
        lines = ",".join(f"\n    {json.dumps(entry)}" for entry in entries)
        document.set((), "patterns", entries, f"[{lines}\n  ]" if entries else "[]")

    return _update(paths, settings, index_path(paths), update)


def _update(paths: ProjectPaths, settings: Settings, path: Path, update: _Update) -> tuple[str, ...]:
    """Edit or create a file that contains a JSON object; return the errors."""

    def change(data: bytes | None) -> bytes:
        document = JsonText(b"{\n}\n" if data is None else data)
        if not isinstance(document.value, dict):
            raise Conflict(f"{path} is not a JSON object; it was not changed")
        update(document)
        return document.encode()

    try:
        if (problem := _explain_unusable(paths, path)) is not None:
            raise Conflict(f"{path} {problem}; it was not changed")
        with curation_lock(paths):
            _make_folder(paths, path.parent)
            rewrite(path, change, merge=take_theirs, retry_seconds=settings.watch.retry_seconds)
    except (BadInput, Conflict, Unwritable) as error:
        return (str(error),)
    return ()


def _explain_unusable(paths: ProjectPaths, path: Path) -> str | None:
    """Return why a file cannot be edited, as the end of a sentence, or None."""
    paths.inside(paths.relative(path))
    raw = read_file(path, paths.aiwg, MAX_PATTERN_BYTES)
    if raw is None or isinstance(raw, Problem):
        return raw.message if raw is not None else None
    decoded = decode_json(raw.data)
    return decoded.problems[0].message if decoded.failed else None


def _make_folder(paths: ProjectPaths, folder: Path) -> None:
    try:
        paths.inside(paths.relative(folder)).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make {folder}: {error.strerror}") from None


def read_recorded_metrics(paths: ProjectPaths) -> dict[str, dict[str, Any]]:
    """Return the metrics in the metrics and pattern files, by file and `group.key`."""
    recorded = {}
    raw = read_file(metrics_path(paths), paths.aiwg, MAX_PATTERN_BYTES)
    value = None if raw is None or isinstance(raw, Problem) else decode_json(raw.data).value
    if isinstance(value, dict):
        inner = value.get(METRICS)
        recorded[paths.relative(metrics_path(paths))] = _flatten(inner if isinstance(inner, dict) else value)
    for extras in read_registry_extras(paths, []):
        if extras.metrics is not None:
            recorded[extras.document.file] = _flatten(extras.metrics)
    return recorded


class MetricDifference(NamedTuple):
    """A recorded metric that differs from the evidence."""

    file: str
    key: str
    claimed: Any
    evident: Any


def compare_metrics(
    recorded: Mapping[str, Mapping[str, Any]], metrics: EffectivenessMetrics
) -> tuple[MetricDifference, ...]:
    """Find recorded metrics that differ from the evidence."""
    evident = _flatten(to_builtins(metrics))
    return tuple(
        MetricDifference(file, key, claimed[key], value)
        for file, claimed in recorded.items()
        for key, value in evident.items()
        if key != "last_updated" and key in claimed and (type(claimed[key]) is bool or claimed[key] != value)
    )


def _flatten(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            found |= {f"{key}.{inner}": it for inner, it in item.items()}
        else:
            found[key] = item
    return found
