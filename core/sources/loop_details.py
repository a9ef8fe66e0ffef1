"""Read the details of one loop on demand: iterations, notes, facts, checkpoints.

Reading never fails: missing and unreadable files are skipped, long texts are truncated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.formatting import format_duration
from core.base.paths import ProjectPaths, is_safe_id
from core.files.file_reader import RawFile, decode_json, open_file, read_file
from core.records.loops import Iteration, Loop, LoopDetails
from core.sources.fields import Fields, fill_gaps
from core.sources.loops import read_iteration
from core.sources.record_kinds import ANALYTICS, BEST_OUTPUT, CRASH_LOG, CURRENT, LAUNCHER, loop_source

MAX_NOTE: Final = 64 * 1024  # Maximum size of a note in bytes; a log keeps its end, any other text its start.
MAX_DOCUMENT: Final = 1 << 20  # Maximum size of a JSON file, in bytes.
MAX_ENTRIES: Final = 1000  # Maximum entries read from one folder.
_MAX_REPORTS: Final = 5
_MAX_NOTES: Final = 50  # Maximum notes on single iterations; only the last ones are read.
_TASK_KEY: Final = 80
_NUMBERED: Final = re.compile(r"(?:iteration-|iter-)?0*(\d{1,9})(?:[.-].*)?")
_RALPH: Final = ".aiwg/ralph"
_EXTERNAL: Final = ".aiwg/ralph-external"


def read_loop_details(paths: ProjectPaths, loop: Loop) -> LoopDetails:
    """Read iterations, notes and facts of `loop` from its own files."""
    reader = _Reader(paths)
    documents: dict[str, Fields] = {}
    for file in loop.files:
        if (source := loop_source(file)) not in documents and (fields := reader.document(file)) is not None:
            documents[source] = fields
    measured = [
        [read_iteration(item) for _, item in documents[source].objects("iterations")]
        for source in (ANALYTICS, BEST_OUTPUT)
        if source in documents
    ]
    folder = f"{loop.directory or _RALPH}/iterations" if loop.directory or CURRENT in loop.sources else ""
    single, notes, checkpoints = reader.iterations(folder, loop)
    if loop.directory:
        checkpoints += reader.names(f"{loop.directory}/checkpoints")
    return LoopDetails(
        loop_id=loop.id,
        iterations=_merge([list(loop.iterations), single, *measured]),
        notes=(*_notes(reader, loop, documents), *notes),
        facts=_facts(documents),
        checkpoints=tuple(checkpoints),
    )


class _Reader:
    """Reads project-relative files below `.aiwg`; never fails."""

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths

    def document(self, file: str) -> Fields | None:
        """Read a JSON object; None if the file does not contain one."""
        if not file.endswith(".json"):
            return None
        raw = read_file(self._paths.project / file, self._paths.aiwg, MAX_DOCUMENT)
        value: Any = decode_json(raw.data).value if isinstance(raw, RawFile) else None
        return Fields(file, value, []) if isinstance(value, dict) else None

    def note(self, file: str, *, tail: bool = False) -> str:
        """Read the first or last `MAX_NOTE` bytes of a text file; "" if it is missing."""
        path = self._inside(file)
        opened = open_file(path, self._paths.aiwg) if path is not None else None
        if not isinstance(opened, int):
            return ""
        try:
            size = os.fstat(opened).st_size
            start = max(size - MAX_NOTE, 0) if tail else 0
            text = os.pread(opened, MAX_NOTE, start).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(opened)
        if start:
            return f"… {text.partition(chr(10))[2]}"
        return f"{text}\n…" if size > MAX_NOTE else text

    def names(self, folder: str) -> list[str]:
        """List the names in a folder by their numbers; empty if it is missing."""
        path = self._inside(folder)
        if path is None:
            return []
        try:
            with os.scandir(path) as entries:
                return sorted((entry.name for entry in islice(entries, MAX_ENTRIES)), key=_numbers)
        except OSError:
            return []

    def iterations(self, folder: str, loop: Loop) -> tuple[list[Iteration], list[tuple[str, str]], list[str]]:
        """Read the iterations, notes and checkpoint names in the folder of iterations.

        Names are such as `iteration-1.json`, `iteration-001/`, `001.md` and `001-checkpoint.json`. Consecutive loops of
        the hook share a folder, so numbers beyond the current iteration belong to an earlier loop.
        """
        found: list[Iteration] = []
        notes: list[tuple[str, str]] = []
        checkpoints: list[str] = []
        for name in self.names(folder) if folder else ():
            numbered = _NUMBERED.fullmatch(name)
            if numbered is None:
                continue
            number = int(numbered[1])
            file = f"{folder}/{name}"
            if not loop.directory and loop.iteration is not None and number > loop.iteration:
                continue
            if "checkpoint" in name or name.endswith(".gz"):
                checkpoints.append(name)
            elif name.endswith(".md"):
                notes.append((f"iteration {number}", file))
            elif (fields := self.document(file)) is not None:
                iteration = read_iteration(fields)
                found.append(iteration if iteration.number is not None else replace(iteration, number=number))
            elif (path := self._inside(file)) is not None and path.is_dir():
                found.append(Iteration(number=number, files=tuple(self.names(file))))
        return found, [(title, self.note(file)) for title, file in notes[-_MAX_NOTES:]], checkpoints

    def _inside(self, file: str) -> Path | None:
        try:
            return self._paths.inside(file)
        except (BadInput, OSError, RuntimeError, ValueError):
            return None


def _numbers(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts `iteration-10` after `iteration-2`."""
    parts = re.split(r"(\d{1,18})", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _merge(sources: Iterable[Sequence[Iteration]]) -> tuple[Iteration, ...]:
    """Merge iterations by number; later sources fill the gaps of earlier ones."""
    merged: list[Iteration] = []
    place: dict[int, int] = {}
    for source in sources:
        here: set[int] = set()
        for iteration in source:
            number = iteration.number
            if number is None or number not in place or number in here:
                merged.append(iteration)
                if number is not None:
                    place.setdefault(number, len(merged) - 1)
                    here.add(number)
            else:
                merged[place[number]] = fill_gaps(merged[place[number]], iteration)
    return tuple(sorted(merged, key=lambda one: one.number if one.number is not None else 1 << 62))


def _notes(reader: _Reader, loop: Loop, documents: Mapping[str, Fields]) -> Iterator[tuple[str, str]]:
    """Find texts about a loop: crash log, reports and the end of the daemon's output."""
    for title, file, tail in _note_files(loop, documents):
        text = reader.note(file, tail=tail)
        if text.strip():
            yield title, text
    names = {loop.id, *loop.aliases}
    if any(source.startswith("external") for source in loop.sources):
        report = reader.note(f"{_EXTERNAL}/completion-report.md")
        if any(name in report for name in names):
            yield "completion report", report
    if CURRENT in loop.sources and loop.task:
        reports = [name for name in reader.names(_RALPH) if re.fullmatch(r"completion-.*\.md", name)]
        task = loop.task.strip()[:_TASK_KEY]
        for name in reports[: -_MAX_REPORTS - 1 : -1]:
            text = reader.note(f"{_RALPH}/{name}")
            if task in text:
                yield name.removesuffix(".md"), text


def _note_files(loop: Loop, documents: Mapping[str, Fields]) -> Iterator[tuple[str, str, bool]]:
    """Title and path of each note, and whether to read the end instead of the start."""
    folders = [loop.directory] if loop.directory else []
    if LAUNCHER in loop.sources:
        folders += [f"{_EXTERNAL}/loops/{name}" for name in (loop.id, *loop.aliases) if is_safe_id(name)]
    for folder in dict.fromkeys(folders):
        yield "daemon output", f"{folder}/daemon-output.log", True
    for file in loop.files:
        if loop_source(file) == CRASH_LOG:
            yield "crash.log", file, False
    if BEST_OUTPUT in documents:
        folder = documents[BEST_OUTPUT].file.rpartition("/")[0]
        yield "selection report", f"{folder}/selection-report.md", False
    if ANALYTICS in documents:
        folder, _, name = documents[ANALYTICS].file.rpartition("/")
        yield "analytics report", f"{folder}/{name.removesuffix('.json')}-report.md", False
        yield "analytics report", f"{folder}/report.md", False


def _facts(documents: Mapping[str, Fields]) -> tuple[tuple[str, str], ...]:
    """Collect short facts from the loop's documents; the first of a label is used."""
    facts: dict[str, str] = {}
    for source, fields in documents.items():
        if source == BEST_OUTPUT:
            found = _pairs(fields, (("best iteration", "best_iteration_number", "{:,.0f}"),))
        elif source == ANALYTICS:
            found = _pairs(fields, _MEASURED)
        else:
            metrics = fields.inside("metrics")
            found = chain(_pairs(fields, _STATE), _pairs(metrics, _MEASURED) if metrics else ())
        for label, value in found:
            facts.setdefault(label, value)
    return tuple(facts.items())


_DURATION: Final = "duration"
_MEASURED: Final = (
    ("best iteration", "optimal_iteration", "{:,.0f}"),
    ("selected iteration", "selected_iteration", "{:,.0f}"),
    ("selection", "selection_reason", ""),
    ("tokens", "total_tokens", "{:,.0f}"),
    ("cost", "total_cost_usd", "${:,.3f}"),
    ("iteration time", "total_time_ms", _DURATION),
    ("trajectory", "quality_trajectory", ""),
    ("diminishing returns from", "diminishing_returns_iteration", "iteration {:,.0f}"),
)
_STATE: Final = (
    ("branch", "branch", ""),
    ("time limit", "timeoutMinutes", "{:,.0f} min"),
    ("recoveries", "recoveryAttempts", "{:,.0f}"),
    ("session", "sessionId", ""),
)


def _pairs(fields: Fields, table: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Label and value of each existing key; a row with a format reads a number."""
    for label, key, form in table:
        if not form:
            if text := fields.text(key):
                yield label, text
        elif (number := fields.number(key)) is not None:
            yield label, format_duration(number / 1000) if form == _DURATION else form.format(number)
