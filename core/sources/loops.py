"""Read loop states, registries, heartbeats, analytics and crash logs.

See docs/file-formats.md#loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec.structs import replace

from core.records.debug_sessions import Failure
from core.records.findings import Finding
from core.records.loops import ExtractedPattern, Improvement, InjectedUse, Iteration, LoopStatus, Outcome
from core.records.times import parse_time
from core.sources import loop_facts as sources
from core.sources import normalize
from core.sources.debug_sessions import MAX_TEXT, read_failure, read_fix, read_results
from core.sources.fields import Fields, document
from core.sources.loop_facts import LoopFact, loop_directory, newest
from core.sources.record_kinds import loop_source

_MAX_FAILURES: Final = 100  # Maximum errors that are read from one field.

Facts = tuple[tuple[LoopFact, ...], tuple[Finding, ...]]

_UPDATED: Final = (*normalize.UPDATED, "last_active", "lastActive")
_REGISTRIES: Final = frozenset({sources.REGISTRY, sources.EXTERNAL_REGISTRY, sources.LAUNCHER})
_PATTERN_KEYS: Final = ("pattern_id", "template_id", "id")
_ITERATION_KEY: Final = re.compile(r"iteration_(\d{1,6})")
_CRASH: Final = re.compile(rb"^\[([^\]\n]{8,64})\]", re.MULTILINE)


def read_loops(file: str, value: Any, modified_at: datetime) -> Facts:
    """Read the facts of a decoded JSON file about loops (see `loop_source`)."""
    findings: list[Finding] = []
    source = loop_source(file)
    if source in _REGISTRIES and isinstance(value, list):
        value = {"active_loops": value}
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    if source in _REGISTRIES:
        facts = tuple(_read_registry(source, fields))
    elif source == sources.HEARTBEAT:
        facts = (_read_heartbeat(fields, modified_at),)
    elif source in (sources.ANALYTICS, sources.BEST_OUTPUT):
        facts = (_read_measurements(source, fields, modified_at),)
    else:
        facts = (_read_state(source, fields, modified_at),)
    return facts, tuple(findings)


def read_crash_log(file: str, data: bytes, modified_at: datetime) -> Facts:
    """Read a `crash.log`, in which each entry starts a line with `[ISO time]`."""
    times = [time for found in _CRASH.findall(data) if (time := parse_time(found.decode("ascii", "replace")))]
    directory = loop_directory(file)
    fact = LoopFact(
        source=sources.CRASH_LOG,
        file=file,
        loop_id=directory.rpartition("/")[2],
        directory=directory,
        modified_at=modified_at,
        crashes=len(times),
        crashed_at=max(times, default=None),
    )
    return (fact,), ()


def loop_of(fields: Fields) -> str:
    """Return the loop ID: from the directory, else the file's content, else its name."""
    directory = loop_directory(fields.file)
    if directory:
        return directory.rpartition("/")[2]
    *_, folder, name = fields.file.split("/")
    by_name = folder if name == "best-output-tracking.json" else (name.rpartition(".")[0] or name)
    return fields.text(*normalize.LOOP_ID) or by_name


def _read_state(source: str, fields: Fields, modified_at: datetime) -> LoopFact:
    whole = fields
    if isinstance(fields.mapping.get("loop_state"), dict):
        fields = fields.inside("loop_state") or fields
    inner_id = fields.text(*normalize.LOOP_ID)
    loop_id = loop_of(fields)
    iterations = tuple(read_iteration(item) for _, item in fields.objects("iterations"))
    if not iterations:
        iterations = tuple(_iterations_by_key(fields)) or tuple(_iterations_by_key(whole))
    if not iterations and (progress := fields.inside("progress")) is not None:
        iterations = tuple(read_iteration(item) for _, item in progress.objects("completion_checks"))
    common = _common(fields)
    times = (common["started_at"], common["ended_at"], common["updated_at"], *[item.at for item in iterations])
    learning = fields.inside("cross_loop_learning") or fields.inside("crossLoopLearning")
    return LoopFact(
        source=source,
        file=fields.file,
        loop_id=loop_id,
        inner_id=inner_id if inner_id != loop_id else "",
        directory=loop_directory(fields.file),
        modified_at=modified_at,
        task=fields.text(*normalize.TASK),
        owner=fields.text("owner", "agent"),
        max_iterations=_max_iterations(fields),
        last_activity_at=newest(*times),
        pid=fields.count("currentPid", "current_pid"),
        iterations=iterations,
        last_result=fields.text("lastResult", "last_result"),
        learnings=fields.lines(*normalize.LEARNINGS),
        injected=tuple(_injected(learning, iterations)) if learning else (),
        extracted=tuple(
            ExtractedPattern(
                pattern_id=entry.text(*_PATTERN_KEYS),
                new=entry.flag("new") is not False,
                rate=entry.rate("success_rate"),
            )
            for entry in (_pattern_entries(learning, "extracted_patterns") if learning else ())
        ),
        improvement=_improvement(learning) if learning else None,
        quality=tuple(item.quality for item in iterations if item.quality is not None),
        duration_ms=fields.number("totalDuration_ms", "total_duration_ms"),
        **common,
    )


def _iterations_by_key(fields: Fields) -> Iterator[Iteration]:
    """Read the iterations of a state that has one key for each: `iteration_2`."""
    numbered = [(int(match[1]), name) for name in fields.mapping if (match := _ITERATION_KEY.fullmatch(str(name)))]
    for number, name in sorted(numbered):
        if (inner := fields.inside(name)) is not None:
            iteration = read_iteration(inner)
            yield iteration if iteration.number is not None else replace(iteration, number=number)


def _common(fields: Fields) -> dict[str, Any]:
    """Read the fields that have the same names in loop states and registry entries."""
    raw_status, status = _status(fields)
    return {
        "raw_status": raw_status,
        "status": status,
        "criteria": fields.texts(*normalize.CRITERIA),
        "priority": fields.text("priority"),
        "tags": fields.texts("tags"),
        "iteration": fields.count(*normalize.ITERATION),
        "started_at": fields.time(*normalize.STARTED),
        "ended_at": fields.time(*normalize.ENDED),
        "updated_at": fields.time(*_UPDATED),
    }


def _status(fields: Fields) -> tuple[str, LoopStatus]:
    """Read the status word and its meaning; without a known word, flags decide."""
    raw = fields.text("status")
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


def _max_iterations(fields: Fields) -> int | None:
    most = fields.count(*normalize.MAX_ITERATIONS)
    for name in ("configuration", "config"):
        if most is None and name in fields.mapping and (inner := fields.inside(name)) is not None:
            most = inner.count(*normalize.MAX_ITERATIONS)
    return most


def _improvement(learning: Fields) -> Improvement | None:
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


def _injected(learning: Fields, iterations: tuple[Iteration, ...]) -> Iterator[InjectedUse]:
    times = {item.number: item.at for item in iterations if item.number is not None}
    for entry in _pattern_entries(learning, "injected_patterns"):
        iteration = entry.count("iteration_used", "iteration")
        used_at = times.get(iteration) if iteration is not None else None
        successful = entry.flag("successful")
        applied = entry.flag("applied")
        yield InjectedUse(
            pattern_id=entry.text("pattern_id", "id"),
            applied=successful is not None if applied is None else applied,
            successful=successful,
            iteration=iteration,
            at=entry.time("timestamp", "used_at", "at") or used_at,
        )


def _pattern_entries(learning: Fields, name: str) -> Iterator[Fields]:
    """Read the entries that refer to a pattern; a plain ID counts as an entry."""
    for key, item in learning.items(name):
        place = f"{learning.place(name)}/{key}"
        entry = {"pattern_id": item} if isinstance(item, str) else item
        if isinstance(entry, dict) and any(entry.get(key) for key in _PATTERN_KEYS):
            yield Fields(learning.file, entry, learning.findings, place)
        else:
            learning.add("missing-id", "the entry has no pattern ID; skipped", place)


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
        common = _common(entry)
        pid = entry.count("pid")
        yield LoopFact(
            source=source,
            file=fields.file,
            loop_id=loop_id,
            task=entry.text("task_summary", *normalize.TASK),
            owner=entry.text("owner"),
            max_iterations=entry.count(*normalize.MAX_ITERATIONS),
            last_activity_at=newest(common["started_at"], common["updated_at"]),
            pid=pid if source == sources.EXTERNAL_REGISTRY else None,
            launcher_pid=pid if source != sources.REGISTRY else None,
            **common,
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


def _read_measurements(source: str, fields: Fields, modified_at: datetime) -> LoopFact:
    """Read analytics (except `end_time`, which is never updated) or best output."""
    qualities = []
    times = [fields.time("last_updated")]
    for _, item in fields.objects("iterations"):
        quality = read_quality(item)
        if quality is not None:
            qualities.append(quality)
        times.append(item.time("timestamp"))
    return LoopFact(
        source=source,
        file=fields.file,
        loop_id=loop_of(fields),
        directory=loop_directory(fields.file),
        modified_at=modified_at,
        task=fields.text(*normalize.TASK),
        iteration=fields.count("total_iterations"),
        started_at=fields.time("start_time"),
        last_activity_at=newest(*times),
        quality=tuple(qualities),
        duration_ms=fields.number("total_time_ms"),
    )


def read_iteration(fields: Fields) -> Iteration:
    """Read an iteration in any of its spellings.

    "completed" together with an error means that the iteration ended without success.
    """
    failures = tuple(_failures(fields))
    word = fields.text("outcome", "status", "verification_status")
    is_just_finished = bool(failures) and normalize.word(word) in ("completed", "complete", "done")
    outcome = Outcome.UNKNOWN if is_just_finished else normalize.outcome(word)
    if outcome is Outcome.UNKNOWN and (passed := fields.flag("verified", "passed")) is not None:
        outcome = Outcome.SUCCESS if passed else Outcome.FAILURE
    results = read_results(fields)
    if outcome is Outcome.UNKNOWN and results is not None and results.green is not None:
        outcome = Outcome.SUCCESS if results.green else Outcome.FAILURE
    return Iteration(
        number=fields.count(*normalize.ITERATION_NUMBER),
        at=fields.time("timestamp", "completed_at", "completedAt", "started_at", "startedAt"),
        action=fields.text("action"),
        result=fields.text("result", "output", "notes", "progress"),
        outcome=outcome,
        learnings=fields.lines("learnings", "reflections"),
        duration_ms=fields.number("duration_ms", "execution_time_ms", "duration"),
        quality=read_quality(fields),
        files=fields.texts("filesModified", "files_modified", "files_changed", "artifactsModified"),
        failures=failures,
        fix=read_fix(fields),
        results=results,
        tools=fields.texts("tools_used", "toolsUsed", "tools"),
    )


def read_quality(fields: Fields) -> float | None:
    """Read the quality as 0..1; `quality_score` is 0..100, other names are rates."""
    score = fields.number("quality_score")
    if score is None:
        return fields.rate("quality", "final_quality")
    return score / 100 if 0 <= score <= 100 else None


def _failures(fields: Fields) -> Iterator[Failure]:
    """Read errors: a list or a single one, as objects or texts, also those of the test results."""
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
