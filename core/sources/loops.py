"""Loop facts: what one file says about one loop (formats sections 1-3, C6, C13, C28, C29)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from core.records.debug_sessions import Failure
from core.records.findings import Finding
from core.records.loops import ExtractedPattern, Improvement, InjectedUse, Iteration, LoopStatus, Outcome
from core.records.times import parse_time
from core.sources import normalize
from core.sources.debug_sessions import MAX_TEXT, read_failure, read_fix, read_results
from core.sources.fields import Fields, document
from core.sources.loop_paths import (
    ANALYTICS,
    BEST_OUTPUT,
    CRASH_LOG,
    DIRECTORY,
    EXTERNAL_REGISTRY,
    HEARTBEAT,
    LAUNCHER,
    REGISTRY,
    loop_directory,
)
from core.sources.record_kinds import loop_source


class LoopFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one file (or one entry of a registry, or a bare loop directory) says about one loop.

    Attributes:
        source: Kind of file, one of the constants of `places`. The first nine are the `sources` of a
            `Loop`; the others add detail and make no row of their own, unless they lie in a loop's directory.
        file: Project-relative; a bare directory ends in `/`.
        loop_id: The name of the loop's directory, where it lies in one, else the id inside, else the file's
            stem. "" is the registry itself: it exists, even if it lists no loop.
        inner_id: The id inside where it differs.
        directory: Project-relative directory of the loop, or "".
        modified_at: The file's mtime; None for entries of a registry.
        status: Normalised; `unknown` also where the file gives none.
        pid: Of the loop's own process (`currentPid`, external registry); `launcher_pid` only joins (C14).
        told_at: Newest sign of life told inside: update, iteration, heartbeat, start, end.
        crashed_at: Newest entry of a crash log; `crashes` counts its entries.
        quality: 0..1 per iteration in order.
        duration_ms: `total_time_ms` of analytics, or the loop's own total.
    """

    source: str
    file: str
    loop_id: str = ""
    inner_id: str = ""
    directory: str = ""
    modified_at: datetime | None = None
    raw_status: str = ""
    status: LoopStatus = LoopStatus.UNKNOWN
    task: str = ""
    criteria: tuple[str, ...] = ()
    owner: str = ""
    priority: str = ""
    tags: tuple[str, ...] = ()
    iteration: int | None = None
    max_iterations: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None
    last_activity_at: datetime | None = None
    pid: int | None = None
    launcher_pid: int | None = None
    iterations: tuple[Iteration, ...] = ()
    last_result: str = ""
    learnings: tuple[str, ...] = ()
    injected: tuple[InjectedUse, ...] = ()
    extracted: tuple[ExtractedPattern, ...] = ()
    improvement: Improvement | None = None
    quality: tuple[float, ...] = ()
    duration_ms: float | None = None
    crashes: int = 0
    crashed_at: datetime | None = None


Facts = tuple[tuple[LoopFact, ...], tuple[Finding, ...]]

_UPDATED: Final = (*normalize.UPDATED, "last_active", "lastActive")
_AT: Final = ("timestamp", "completed_at", "completedAt", "started_at", "startedAt")
_FILES: Final = ("filesModified", "files_modified", "files_changed", "artifactsModified")
_DURATION: Final = ("duration_ms", "execution_time_ms", "duration")
_FAILURES: Final = ("error", "errors", "failures")
_RAN: Final = frozenset({"completed", "complete", "done"})
_MAX_FAILURES: Final = 100
"""Most errors of one iteration that are read."""
_REGISTRIES: Final = frozenset({REGISTRY, EXTERNAL_REGISTRY, LAUNCHER})
_CRASH: Final = re.compile(rb"^\[([^\]\n]{8,64})\]", re.MULTILINE)


def directory_fact(directory: str, modified_at: datetime | None = None) -> LoopFact | None:
    """The fact that a loop's directory exists; None if the path is no loop directory.

    The scan gives one for each directory in `loops/` and `archive/` of both trees: a loop whose state
    can't be read is still a row.
    """
    directory = directory.rstrip("/")
    if directory.count("/") != 3 or loop_directory(directory) != directory:
        return None
    name = directory.rpartition("/")[2]
    return LoopFact(source=DIRECTORY, file=f"{directory}/", loop_id=name, directory=directory, modified_at=modified_at)


def read_loops(file: str, value: Any, modified_at: datetime) -> Facts:
    """Facts of a JSON file for which `loop_source` names a kind other than `CRASH_LOG`.

    Args:
        file: Project-relative path with `/`.
        value: The decoded document, of any JSON type.
        modified_at: The file's mtime, UTC.
    """
    findings: list[Finding] = []
    source = loop_source(file)
    if source in _REGISTRIES and isinstance(value, list):
        value = {"active_loops": value}
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    if source in _REGISTRIES:
        facts = tuple(_registry(source, fields))
    elif source == HEARTBEAT:
        facts = (_heartbeat(fields, modified_at),)
    elif source in (ANALYTICS, BEST_OUTPUT):
        facts = (_qualities(source, fields, modified_at),)
    else:
        facts = (_state(source, fields, modified_at),)
    return facts, tuple(findings)


def read_crash_log(file: str, data: bytes, modified_at: datetime) -> Facts:
    """Facts of a `crash.log`: each entry starts a line with `[ISO time]`."""
    times = [
        moment for found in _CRASH.findall(data) if (moment := parse_time(found.decode("ascii", "replace"))) is not None
    ]
    directory = loop_directory(file)
    fact = LoopFact(
        source=CRASH_LOG,
        file=file,
        loop_id=directory.rpartition("/")[2],
        directory=directory,
        modified_at=modified_at,
        crashes=len(times),
        crashed_at=max(times, default=None),
    )
    return (fact,), ()


def loop_of(fields: Fields) -> str:
    """The id of the loop that a file tells of: its directory, else the id inside, else the file's name."""
    directory = loop_directory(fields.file)
    if directory:
        return directory.rpartition("/")[2]
    *_, folder, name = fields.file.split("/")
    by_name = folder if name == "best-output-tracking.json" else _stem(name)
    return fields.text(*normalize.LOOP_ID) or by_name


def read_iteration(fields: Fields) -> Iteration:
    """One iteration, in any of the shapes that `docs/file-formats.md#iterations` lists.

    "completed" beside an error means that the iteration ran to its end, not that it succeeded.
    """
    failures = tuple(_failures(fields))
    told = fields.text("outcome", "status", "verification_status")
    outcome = Outcome.UNKNOWN if failures and normalize.word(told) in _RAN else normalize.outcome(told)
    if outcome is Outcome.UNKNOWN and (passed := fields.flag("verified", "passed")) is not None:
        outcome = Outcome.SUCCESS if passed else Outcome.FAILURE
    results = read_results(fields)
    if outcome is Outcome.UNKNOWN and results is not None and results.green is not None:
        outcome = Outcome.SUCCESS if results.green else Outcome.FAILURE
    return Iteration(
        number=fields.count(*normalize.ITERATION_NUMBER),
        at=fields.time(*_AT),
        action=fields.text("action"),
        result=fields.text("result", "output", "notes", "progress"),
        outcome=outcome,
        learnings=fields.lines("learnings", "reflections"),
        duration_ms=fields.number(*_DURATION),
        quality=_quality(fields),
        files=fields.texts(*_FILES),
        failures=failures,
        fix=read_fix(fields),
        results=results,
        tools=fields.texts("tools_used", "toolsUsed", "tools"),
    )


def _failures(fields: Fields) -> Iterator[Failure]:
    """Errors as (0) tells them, in a list or alone, as objects or texts."""
    for name in _FAILURES:
        value = fields.mapping.get(name)
        for item in (value if isinstance(value, list) else [value])[:_MAX_FAILURES]:
            if isinstance(item, str) and item.strip():
                yield Failure(message=item[:MAX_TEXT])
            elif isinstance(item, dict):
                place = Fields(fields.file, item, fields.findings, fields.place(name))
                if failure := read_failure(place):
                    yield failure


def _quality(fields: Fields) -> float | None:
    """0..1: `quality_score` counts to 100 (section 2), other names are rates."""
    score = fields.number("quality_score")
    if score is None:
        return fields.rate("quality", "final_quality")
    return score / 100 if 0 <= score <= 100 else None


def _state(source: str, fields: Fields, modified_at: datetime) -> LoopFact:
    """A state file, internal or external, in any case of C6."""
    directory = loop_directory(fields.file)
    inner_id = fields.text(*normalize.LOOP_ID)
    loop_id = loop_of(fields)
    iterations = tuple(read_iteration(item) for _, item in fields.objects("iterations"))
    if not iterations and (progress := fields.inside("progress")) is not None:
        iterations = tuple(read_iteration(item) for _, item in progress.objects("completion_checks"))
    raw_status, status = _status(fields)
    started_at = fields.time(*normalize.STARTED)
    ended_at = fields.time(*normalize.ENDED)
    updated_at = fields.time(*_UPDATED)
    learning = fields.inside("cross_loop_learning") or fields.inside("crossLoopLearning")
    injected, extracted = _learning(learning, iterations)
    return LoopFact(
        source=source,
        file=fields.file,
        loop_id=loop_id,
        inner_id=inner_id if inner_id != loop_id else "",
        directory=directory,
        modified_at=modified_at,
        raw_status=raw_status,
        status=status,
        task=fields.text(*normalize.TASK),
        criteria=fields.texts(*normalize.CRITERIA),
        owner=fields.text("owner", "agent"),
        priority=fields.text("priority"),
        tags=fields.texts("tags"),
        iteration=fields.count(*normalize.ITERATION),
        max_iterations=_max_iterations(fields),
        started_at=started_at,
        ended_at=ended_at,
        updated_at=updated_at,
        last_activity_at=newest(started_at, ended_at, updated_at, *[item.at for item in iterations]),
        pid=fields.count("currentPid", "current_pid"),
        iterations=iterations,
        last_result=fields.text("lastResult", "last_result"),
        learnings=fields.lines(*normalize.LEARNINGS),
        injected=injected,
        extracted=extracted,
        improvement=_improvement(learning),
        quality=tuple(item.quality for item in iterations if item.quality is not None),
        duration_ms=fields.number("totalDuration_ms", "total_duration_ms"),
    )


def _status(fields: Fields) -> tuple[str, LoopStatus]:
    """The word of the file and what it means; flags decide where it is missing or a free reason (3.7)."""
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


def _improvement(learning: Fields | None) -> Improvement | None:
    """`improvement_estimate`; the share follows from the counts where both are there."""
    estimate = learning.inside("improvement_estimate") if learning is not None else None
    if estimate is None:
        return None
    baseline, actual = estimate.number("baseline_iterations"), estimate.number("actual_iterations")
    if baseline is not None and actual is not None and baseline > 0:
        share: float | None = 1 - actual / baseline
    else:
        share = estimate.rate("improvement")
    return None if baseline is actual is share is None else Improvement(baseline=baseline, actual=actual, share=share)


def _learning(
    learning: Fields | None, iterations: tuple[Iteration, ...]
) -> tuple[tuple[InjectedUse, ...], tuple[ExtractedPattern, ...]]:
    """`cross_loop_learning`: what was injected, and what was extracted."""
    if learning is None:
        return (), ()
    times = {item.number: item.at for item in iterations if item.number is not None}
    injected = []
    for entry in _entries(learning, "injected_patterns"):
        iteration = entry.count("iteration_used", "iteration")
        used_at = times.get(iteration) if iteration is not None else None
        successful = entry.flag("successful")
        applied = entry.flag("applied")
        injected.append(
            InjectedUse(
                pattern_id=entry.text("pattern_id", "id"),
                applied=successful is not None if applied is None else applied,
                successful=successful,
                iteration=iteration,
                at=entry.time("timestamp", "used_at", "at") or used_at,
            )
        )
    extracted = [
        ExtractedPattern(
            pattern_id=entry.text("pattern_id", "template_id", "id"),
            new=entry.flag("new") is not False,
            rate=entry.rate("success_rate"),
        )
        for entry in _entries(learning, "extracted_patterns")
    ]
    return tuple(injected), tuple(extracted)


def _entries(learning: Fields, name: str) -> Iterator[Fields]:
    """Entries that name a pattern; a bare id counts as an entry."""
    for key, item in learning.items(name):
        place = f"{learning.place(name)}/{key}"
        entry = {"pattern_id": item} if isinstance(item, str) else item
        if isinstance(entry, dict) and any(entry.get(key) for key in ("pattern_id", "template_id", "id")):
            yield Fields(learning.file, entry, learning.findings, place)
        else:
            learning.add("missing-id", "names no pattern", place)


def _registry(source: str, fields: Fields) -> Iterator[LoopFact]:
    """The registry itself, then its entries; a list, or an object keyed by id.

    Without mtime: the facts of entries that a rewrite left alone stay equal, so their rows stay as well.
    """
    yield LoopFact(source=source, file=fields.file)
    name = "active_loops" if "active_loops" in fields.mapping else "loops"
    keyed = isinstance(fields.mapping.get(name), dict)
    for key, entry in fields.objects(name):
        loop_id = entry.text(*normalize.LOOP_ID) or (key if keyed else "")
        if not loop_id:
            entry.add("missing-id", "an entry of the registry without loop_id", entry.pointer)
            continue
        raw_status, status = _status(entry)
        started_at, updated_at = entry.time(*normalize.STARTED), entry.time(*_UPDATED)
        pid = entry.count("pid")
        yield LoopFact(
            source=source,
            file=fields.file,
            loop_id=loop_id,
            raw_status=raw_status,
            status=status,
            task=entry.text("task_summary", *normalize.TASK),
            criteria=entry.texts(*normalize.CRITERIA),
            owner=entry.text("owner"),
            priority=entry.text("priority"),
            tags=entry.texts("tags"),
            iteration=entry.count(*normalize.ITERATION),
            max_iterations=entry.count(*normalize.MAX_ITERATIONS),
            started_at=started_at,
            ended_at=entry.time(*normalize.ENDED),
            updated_at=updated_at,
            last_activity_at=newest(started_at, updated_at),
            pid=pid if source == EXTERNAL_REGISTRY else None,
            launcher_pid=pid if source != REGISTRY else None,
        )


def _heartbeat(fields: Fields, modified_at: datetime) -> LoopFact:
    """A heartbeat: told only at changes of phase, so its age proves nothing (3.3)."""
    return LoopFact(
        source=HEARTBEAT,
        file=fields.file,
        loop_id=_stem(fields.file.rpartition("/")[2]),
        modified_at=modified_at,
        iteration=fields.count(*normalize.ITERATION),
        last_activity_at=fields.time("timestamp"),
    )


def _qualities(source: str, fields: Fields, modified_at: datetime) -> LoopFact:
    """Analytics and best output. `end_time` of analytics stands still at the first iteration: never read."""
    qualities = []
    times = [fields.time("last_updated")]
    for _, item in fields.objects("iterations"):
        quality = _quality(item)
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


def newest(*times: datetime | None) -> datetime | None:
    """The latest of the times that are known."""
    return max((moment for moment in times if moment is not None), default=None)


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
