"""Read loop states, registries, heartbeats, analytics, crash logs and details.

See docs/file-formats.md#loops. Details never fail: missing and unreadable files are skipped, long texts are truncated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice, product
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.formatting import format_duration
from core.base.paths import ProjectPaths, is_safe_id
from core.files.file_reader import RawFile, decode_json, open_file, read_file
from core.records.debug_sessions import Failure, Fix, Results
from core.records.findings import Finding
from core.records.loops import (
    ExtractedPattern,
    Improvement,
    InjectedUse,
    Iteration,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
)
from core.records.reflections import Reflection
from core.records.times import newest, parse_time
from core.sources import normalize
from core.sources import record_kinds as sources
from core.sources.debug_sessions import MAX_TEXT, read_failure, read_fix, read_results
from core.sources.keys import (
    Count,
    Entries,
    Flag,
    Keys,
    Names,
    Number,
    Rate,
    Text,
    Texts,
    Time,
    pairs,
    read_keys,
    snake_keys,
)
from core.sources.loop_join import LoopFact
from core.sources.normalize import Fields, document, fill_gaps
from core.sources.record_kinds import (
    ANALYTICS,
    BEST_OUTPUT,
    CRASH_LOG,
    CURRENT,
    LAUNCHER,
    STATE,
    loop_directory,
    loop_source,
)
from core.sources.reflections import make_reflection, read_headed_lines

_K = TypeVar("_K", bound=Keys)

_MAX_FAILURES: Final = 100  # Maximum errors that are read from one field.
_REGISTRIES: Final = frozenset({sources.REGISTRY, sources.EXTERNAL_REGISTRY, sources.LAUNCHER})
_PATTERN_KEYS: Final = ("pattern_id", "template_id", "id")
_ITERATION_KEY: Final = re.compile(r"iteration_(\d{1,6})")
_ACTIVE: Final = ("last_active", "lastActive")
_CRASH: Final = re.compile(rb"^\[([^\]\n]{8,64})\]", re.MULTILINE)


class LoopRecords(Struct, frozen=True):
    """The records of one file about loops, and its findings."""

    facts: tuple[LoopFact, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_loops(file: str, value: Any, modified_at: datetime) -> LoopRecords:
    """Read a decoded file about loops (see `loop_source`), with its reflections."""
    findings: list[Finding] = []
    source = loop_source(file)
    if source in _REGISTRIES and isinstance(value, list):
        value = {"active_loops": value}
    fields = document(file, value, findings)
    if fields is None:
        return LoopRecords(findings=tuple(findings))
    reflections: tuple[Reflection, ...] = ()
    if source in _REGISTRIES:
        facts = tuple(_read_registry(source, Fields(file, snake_keys(value), findings)))
    elif source == sources.HEARTBEAT:
        facts = (_read_heartbeat(fields, modified_at),)
    elif source in (sources.ANALYTICS, sources.BEST_OUTPUT):
        measured = read_keys(_MeasuredKeys, fields)
        facts = (_measured_fact(source, file, measured, modified_at),)
        reflections = tuple(_measured_reflections(facts[0], measured, modified_at))
    else:
        facts, reflections = _read_state(source, fields, modified_at)
    return LoopRecords(facts, reflections, tuple(findings))


def read_crash_log(file: str, data: bytes, modified_at: datetime) -> LoopFact:
    """Read a `crash.log`, in which each entry starts a line with `[ISO time]`."""
    times = [time for found in _CRASH.findall(data) if (time := parse_time(found.decode("ascii", "replace")))]
    directory = loop_directory(file)
    return LoopFact(
        source=sources.CRASH_LOG,
        file=file,
        loop_id=directory.rpartition("/")[2],
        directory=directory,
        modified_at=modified_at,
        crashes=len(times),
        crashed_at=max(times, default=None),
    )


def loop_of(file: str, inner_id: str) -> str:
    """Return the loop ID: from the directory, else the file, else the file's name."""
    directory = loop_directory(file)
    if directory:
        return directory.rpartition("/")[2]
    *_, folder, name = file.split("/")
    by_name = folder if name == "best-output-tracking.json" else (name.rpartition(".")[0] or name)
    return inner_id or by_name


class _Rest(Struct, frozen=True):
    """What few iterations have: an outcome as a word, errors, a fix and test results."""

    outcome: Outcome = Outcome.UNKNOWN
    failures: tuple[Failure, ...] = ()
    fix: Fix | None = None
    results: Results | None = None


def _read_rest(fields: Fields, *_: str) -> _Rest:
    """Read the rest; "completed" with an error means an end without success."""
    failures = tuple(_failures(fields))
    word = fields.text("outcome", "status", "verification_status")
    is_just_finished = bool(failures) and normalize.word(word) in ("completed", "complete", "done")
    outcome = Outcome.UNKNOWN if is_just_finished else normalize.outcome(word)
    if outcome is Outcome.UNKNOWN:
        passed = normalize.flag(fields.mapping.get("verified"))
        outcome = _VERIFIED[fields.flag("passed") if passed is None else passed]
    results = read_results(fields)
    if outcome is Outcome.UNKNOWN and results is not None:
        outcome = _VERIFIED[results.green]
    return _Rest(outcome, failures, read_fix(fields), results)


_NO_REST: Final = _Rest()
_VERIFIED: Final = {True: Outcome.SUCCESS, False: Outcome.FAILURE, None: Outcome.UNKNOWN}


class _IterationKeys(Keys):
    number: Annotated[Count, Names(*normalize.ITERATION_NUMBER)] = None
    timestamp: Annotated[Time, Names("timestamp", "completed_at", "completedAt", "started_at", "startedAt")] = None
    action: Text = None
    result: Annotated[Text, Names("result", "output", "notes", "progress")] = None
    verified: Flag = None
    learnings: Annotated[Texts, Fields.lines] = None
    reflections: Annotated[Texts, Fields.lines] = None
    duration_ms: Annotated[Number, Names("duration_ms", "execution_time_ms", "duration")] = None
    quality_score: Number = None
    quality: Annotated[Rate, _read_quality_rate, Names("quality", "final_quality")] = None
    files: Annotated[Texts, Names("filesModified", "files_modified", "files_changed", "artifactsModified")] = None
    tools: Annotated[Texts, Names("tools_used", "toolsUsed", "tools")] = None
    rest: Annotated[
        _Rest | None,
        _read_rest,
        Names(
            *("outcome", "status", "verification_status", "passed"),
            *("error_message", "error", "errors", "failures", "test_results", "fix_applied"),
        ),
    ] = msgspec.field(default=None, name="#rest")


class _UseKeys(Keys):
    pattern_id: Annotated[str, Meta(min_length=1), Fields.text, Names("pattern_id", "id")]
    applied: Flag = None
    successful: Flag = None
    iteration_used: Annotated[Count, Names("iteration_used", "iteration")] = None
    timestamp: Annotated[Time, Names("timestamp", "used_at", "at")] = None


class _ExtractedKeys(Keys):
    pattern_id: Annotated[str, Meta(min_length=1), Fields.text, Names(*_PATTERN_KEYS)]
    new: Flag = None
    success_rate: Rate = None


def _read_improvement(learning: Fields, *_: str) -> Improvement | None:
    """Read `improvement_estimate`; the share is computed from the counts if possible."""
    estimate = learning.inside("improvement_estimate")
    if estimate is None:
        return None
    baseline, actual = estimate.number("baseline_iterations"), estimate.number("actual_iterations")
    if baseline is not None and actual is not None and baseline > 0:
        share: float | None = 1 - actual / baseline
    else:
        share = estimate.rate("improvement")
    return None if baseline is actual is share is None else Improvement(baseline=baseline, actual=actual, share=share)


def _read_pattern_entries(kind: type[_K], learning: Fields, name: str) -> list[_K]:
    """Read the entries that refer to a pattern; a plain ID counts as an entry."""
    entries: list[_K] = []
    for key, item in learning.items(name):
        place = f"{learning.place(name)}/{key}"
        entry = {"pattern_id": item} if isinstance(item, str) else item
        if isinstance(entry, dict) and any(entry.get(key) for key in _PATTERN_KEYS):
            entries.append(read_keys(kind, Fields(learning.file, entry, learning.findings, place)))
        else:
            learning.add("missing-id", "the entry has no pattern ID; skipped", place)
    return entries


class _LearningKeys(Keys):
    injected_patterns: Annotated[list[_UseKeys] | None, partial(_read_pattern_entries, _UseKeys)] = None
    extracted_patterns: Annotated[list[_ExtractedKeys] | None, partial(_read_pattern_entries, _ExtractedKeys)] = None
    improvement: Annotated[Improvement | None, _read_improvement, Names("improvement_estimate")] = msgspec.field(
        default=None, name="#improvement"
    )


class _StateKeys(Keys, rename="camel"):
    loop_id: Annotated[Text, Names(*normalize.LOOP_ID)] = None
    status: Text = None
    task: Annotated[Text, Names(*normalize.TASK)] = None
    owner: Annotated[Text, Names("owner", "agent")] = None
    priority: Text = None
    tags: Texts = None
    completion: Annotated[Texts, Names(*normalize.CRITERIA)] = None
    max_iterations: Annotated[Count, Names(*normalize.MAX_ITERATIONS)] = None
    current_iteration: Annotated[Count, Names(*normalize.ITERATION)] = None
    current_pid: Annotated[Count, Names("currentPid", "current_pid")] = None
    start_time: Annotated[Time, Names(*normalize.STARTED)] = None
    end_time: Annotated[Time, Names(*normalize.ENDED)] = None
    last_update: Annotated[Time, Names(*normalize.UPDATED)] = None
    last_active: Annotated[Time, Names(*_ACTIVE)] = None
    iterations: Entries[_IterationKeys] = None
    last_result: Annotated[Text, Names("lastResult", "last_result")] = None
    learnings: Texts = None
    accumulated_learnings: Texts = None
    learning: Annotated[_LearningKeys | None, Names("cross_loop_learning", "crossLoopLearning")] = msgspec.field(
        default=None, name="cross_loop_learning"
    )
    total_duration: Annotated[Number, Names("totalDuration_ms", "total_duration_ms")] = msgspec.field(
        default=None, name="totalDuration_ms"
    )


class _MeasuredIterationKeys(Keys):
    iteration_number: Annotated[Count, Names(*normalize.ITERATION_NUMBER)] = None
    timestamp: Time = None
    quality_score: Number = None
    quality: Annotated[Rate, _read_quality_rate, Names("quality", "final_quality")] = None
    reflections: Texts = None


class _MeasuredKeys(Keys):
    """Keys of analytics and best output; `end_time` is never updated, so not read."""

    loop_id: Annotated[Text, Names(*normalize.LOOP_ID)] = None
    task_description: Annotated[Text, Names(*normalize.TASK)] = None
    start_time: Time = None
    last_updated: Time = None
    iterations: Entries[_MeasuredIterationKeys] = None
    total_iterations: Count = None
    total_time_ms: Number = None


def _read_state(
    source: str, whole: Fields, modified_at: datetime
) -> tuple[tuple[LoopFact, ...], tuple[Reflection, ...]]:
    fields = whole
    if isinstance(whole.mapping.get("loop_state"), dict):
        fields = whole.inside("loop_state") or whole
    state = read_keys(_StateKeys, fields)
    inner_id = state.loop_id or ""
    loop_id = loop_of(fields.file, inner_id)
    started_at, ended_at, updated_at = map(
        parse_time, (state.start_time, state.end_time, state.last_update or state.last_active)
    )
    iterations = [_make_iteration(item) for _, item in pairs(state.iterations)]
    if not iterations:
        iterations = list(_iterations_by_key(fields)) or list(_iterations_by_key(whole))
    if not iterations and (progress := fields.inside("progress")) is not None:
        iterations = [read_iteration(item) for _, item in progress.objects("completion_checks")]
    raw_status, status = _status(fields, state.status or "")
    learning = state.learning or _LearningKeys()
    fact = LoopFact(
        source=source,
        file=fields.file,
        loop_id=loop_id,
        inner_id=inner_id if inner_id != loop_id else "",
        directory=loop_directory(fields.file),
        modified_at=modified_at,
        task=state.task or "",
        raw_status=raw_status,
        status=status,
        criteria=normalize.texts(state.completion),
        owner=state.owner or "",
        priority=state.priority or "",
        tags=normalize.texts(state.tags),
        iteration=state.current_iteration,
        max_iterations=_max_iterations(fields, state.max_iterations),
        started_at=started_at,
        ended_at=ended_at,
        updated_at=updated_at,
        last_activity_at=newest(started_at, ended_at, updated_at, *[item.at for item in iterations]),
        pid=state.current_pid,
        iterations=tuple(iterations),
        last_result=state.last_result or "",
        learnings=normalize.lines(state.learnings) or normalize.lines(state.accumulated_learnings),
        injected=tuple(_uses(learning.injected_patterns or (), iterations)),
        extracted=tuple(
            ExtractedPattern(pattern_id=item.pattern_id, new=item.new is not False, rate=item.success_rate)
            for item in learning.extracted_patterns or ()
        ),
        improvement=learning.improvement,
        quality=tuple([item.quality for item in iterations if item.quality is not None]),
        duration_ms=state.total_duration,
    )
    if fields is not whole:  # reflections are only read outside of it; the findings are already there
        state = read_keys(_StateKeys, Fields(whole.file, whole.mapping, []))
        loop_id = loop_of(whole.file, state.loop_id or "")
        iterations = [_make_iteration(item) for _, item in pairs(state.iterations)]
    return (fact,), tuple(_state_reflections(fact.file, loop_id, state, iterations, modified_at))


def _state_reflections(
    file: str, loop_id: str, state: _StateKeys, iterations: Sequence[Iteration], modified_at: datetime
) -> Iterator[Reflection]:
    """Return the learnings of a loop and of its iterations."""
    for (key, item), iteration in zip(pairs(state.iterations), iterations, strict=False):
        for text in normalize.lines(item.learnings) if item.reflections else iteration.learnings:
            place, at = f"/iterations/{key}/learnings", iteration.at or modified_at
            yield make_reflection(STATE, file, place, None, at, loop_id, iteration.number, text)
    if not (state.learnings or state.accumulated_learnings):
        return
    times = [item.at for item in iterations] if state.iterations else ()
    at = newest(*map(parse_time, (state.end_time, state.last_update)), *times) or modified_at
    for name, learnings in (("learnings", state.learnings), ("accumulatedLearnings", state.accumulated_learnings)):
        for number, text in read_headed_lines(normalize.texts(learnings)) if learnings else ():
            yield make_reflection(STATE, file, f"/{name}", None, at, loop_id, number, text)


def _iterations_by_key(fields: Fields) -> Iterator[Iteration]:
    """Read the iterations of a state that has one key for each: `iteration_2`."""
    numbered = [(int(match[1]), name) for name in fields.mapping if (match := _ITERATION_KEY.fullmatch(str(name)))]
    for number, name in sorted(numbered):
        if (inner := fields.inside(name)) is not None:
            iteration = read_iteration(inner)
            yield iteration if iteration.number is not None else replace(iteration, number=number)


def _status(fields: Fields, raw: str) -> tuple[str, LoopStatus]:
    """Return the status word and its meaning; without a known word, flags decide."""
    status = normalize.loop_status(raw)
    if status is not LoopStatus.UNKNOWN:
        return raw, status
    final = fields.inside("finalResult")
    success = final.flag("success") if final is not None else None
    if success is not None:
        return raw, LoopStatus.COMPLETED if success else LoopStatus.FAILED
    if not raw and fields.flag("completed"):
        return raw, LoopStatus.COMPLETED
    if not raw and fields.flag("active"):
        return raw, LoopStatus.RUNNING
    return raw, status


def _max_iterations(fields: Fields, most: int | None) -> int | None:
    for name in ("configuration", "config"):
        if most is None and name in fields.mapping and (inner := fields.inside(name)) is not None:
            most = inner.count(*normalize.MAX_ITERATIONS)
    return most


def _uses(items: Iterable[_UseKeys], iterations: Iterable[Iteration]) -> Iterator[InjectedUse]:
    times = {item.number: item.at for item in iterations if item.number is not None}
    for item in items:
        iteration = item.iteration_used
        yield InjectedUse(
            pattern_id=item.pattern_id,
            applied=item.successful is not None if item.applied is None else item.applied,
            successful=item.successful,
            iteration=iteration,
            at=parse_time(item.timestamp) or (times.get(iteration) if iteration is not None else None),
        )


def _read_registry(source: str, fields: Fields) -> Iterator[LoopFact]:
    """Read the registry itself, then its entries (a list, or an object keyed by ID).

    Entries get no mtime: unchanged entries of a rewritten registry must stay equal, so that they are not joined again.
    """
    yield LoopFact(source=source, file=fields.file)
    name = "active_loops" if "active_loops" in fields.mapping else "loops"
    is_keyed = isinstance(fields.mapping.get(name), dict)
    for key, entry in fields.objects(name):
        loop_id = entry.text(*normalize.LOOP_ID) or (key if is_keyed else "")
        if not loop_id:
            entry.add("missing-id", "the entry has no loop_id; skipped", entry.pointer)
            continue
        raw_status, status = _status(entry, entry.text("status"))
        started_at, updated_at = entry.time(*normalize.STARTED), entry.time(*normalize.UPDATED, *_ACTIVE)
        pid = entry.count("pid")
        yield LoopFact(
            source=source,
            file=fields.file,
            loop_id=loop_id,
            task=entry.text("task_summary", *normalize.TASK),
            owner=entry.text("owner"),
            max_iterations=entry.count(*normalize.MAX_ITERATIONS),
            raw_status=raw_status,
            status=status,
            criteria=entry.texts(*normalize.CRITERIA),
            priority=entry.text("priority"),
            tags=entry.texts("tags"),
            iteration=entry.count(*normalize.ITERATION),
            started_at=started_at,
            ended_at=entry.time(*normalize.ENDED),
            updated_at=updated_at,
            last_activity_at=newest(started_at, updated_at),
            pid=pid if source == sources.EXTERNAL_REGISTRY else None,
            launcher_pid=pid if source != sources.REGISTRY else None,
        )


def _read_heartbeat(fields: Fields, modified_at: datetime) -> LoopFact:
    """Read a heartbeat, which is written when the phase changes, not at intervals."""
    return LoopFact(
        source=sources.HEARTBEAT,
        file=fields.file,
        loop_id=PurePosixPath(fields.file).stem,
        modified_at=modified_at,
        iteration=fields.count(*normalize.ITERATION),
        last_activity_at=fields.time("timestamp"),
    )


def _measured_fact(source: str, file: str, measured: _MeasuredKeys, modified_at: datetime) -> LoopFact:
    items = [item for _, item in pairs(measured.iterations)]
    times = [parse_time(item.timestamp) for item in items]
    qualities = [_quality(item.quality_score, item.quality) for item in items]
    return LoopFact(
        source=source,
        file=file,
        loop_id=loop_of(file, measured.loop_id or ""),
        directory=loop_directory(file),
        modified_at=modified_at,
        task=measured.task_description or "",
        iteration=measured.total_iterations,
        started_at=parse_time(measured.start_time),
        last_activity_at=newest(parse_time(measured.last_updated), *times),
        quality=tuple([quality for quality in qualities if quality is not None]),
        duration_ms=measured.total_time_ms,
    )


def _measured_reflections(fact: LoopFact, measured: _MeasuredKeys, modified_at: datetime) -> Iterator[Reflection]:
    """Return the reflection texts in the iterations of analytics and best output."""
    for key, item in pairs(measured.iterations):
        for index, text in enumerate(normalize.texts(item.reflections) if item.reflections else ()):
            place, at = f"/iterations/{key}/reflections/{index}", parse_time(item.timestamp) or modified_at
            number = item.iteration_number
            yield make_reflection(fact.source, fact.file, place, None, at, fact.loop_id, number, text)


def read_iteration(fields: Fields) -> Iteration:
    """Read an iteration in any of its spellings."""
    return _make_iteration(read_keys(_IterationKeys, fields))


def _make_iteration(keys: _IterationKeys) -> Iteration:
    rest = keys.rest or _NO_REST
    return Iteration(
        number=keys.number,
        at=parse_time(keys.timestamp),
        action=keys.action or "",
        result=keys.result or "",
        outcome=rest.outcome if keys.rest is not None else _VERIFIED[keys.verified],
        learnings=normalize.lines(keys.learnings) or normalize.lines(keys.reflections),
        duration_ms=keys.duration_ms,
        quality=_quality(keys.quality_score, keys.quality),
        files=normalize.texts(keys.files),
        failures=rest.failures,
        fix=rest.fix,
        results=rest.results,
        tools=normalize.texts(keys.tools),
    )


def _read_quality_rate(fields: Fields, *names: str) -> float | None:
    """Read the quality, which does not count beside a `quality_score`."""
    return fields.rate(*names) if normalize.number(fields.mapping.get("quality_score")) is None else None


def _quality(score: float | None, rate: float | None) -> float | None:
    """Return the quality as 0..1; a score is 0..100."""
    if score is None:
        return rate
    return score / 100 if 0 <= score <= 100 else None


def _failures(fields: Fields) -> Iterator[Failure]:
    """Read errors: a list or a single one, objects or texts, also in test results."""
    message = fields.text("error_message", "errorMessage")
    if message.strip():
        yield Failure(error_type=fields.text("error_type", "errorType")[:MAX_TEXT], message=message[:MAX_TEXT])
    results = fields.mapping.get("test_results")
    holders = [fields, *([fields.inside("test_results")] if isinstance(results, dict) else [])]
    for holder, name in product(filter(None, holders), ("error", "errors", "failures")):
        value = holder.mapping.get(name)
        for item in (value if isinstance(value, list) else [value])[:_MAX_FAILURES]:
            if isinstance(item, str) and item.strip():
                yield Failure(message=item[:MAX_TEXT])
            elif isinstance(item, dict):
                inner = Fields(holder.file, item, holder.findings, holder.place(name))
                if failure := read_failure(inner, tested=holder is not fields):
                    yield failure


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
