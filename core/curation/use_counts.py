"""What loops report goes into the records of the patterns they applied (0) `on_pattern_application`.

The event log comes first and is the truth. A record's counts are not added to but set to what the evidence says,
so that writing again changes nothing, and what a crash left undone is done by the next report. For that the log
says, once for each record, what its own counts told of before (see `core.learning.evidence`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.apply import pattern_path
from core.learning.aggregate_evidence import AGGREGATE, TREND, UseCounts, claimed_rate, usable_trend
from core.learning.evidence import DISCOVERY, find_counted_event, is_later
from core.learning.scoreboard import Scoreboard
from core.records.decisions import Decision
from core.records.events import Event, Observation, event_id
from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.records.times import iso, parse_time
from core.sources.event_log import append_events
from core.sources.key_style import RecordText
from core.sources.pattern_record import read_record
from core.sources.pattern_text import Record, find, merge_records
from core.sources.schema import CLAIMED_RATE
from core.storage.atomic_write import curation_lock, rewrite
from core.storage.json_editor import JsonText

_TOLD_BY_RECORD: Final = (DISCOVERY, TREND, AGGREGATE)
_RESULTS: Final = ("applied", "feedback", "outcome")
_COUNTERS: Final = frozenset({"successful_applications", "failed_applications"})


class CountResult(Struct, frozen=True, kw_only=True):
    """What became of one pattern's record.

    Attributes:
        file: Project-relative pattern file.
        problem: Why the record is not up to date; "" if it is.
        successes, failures, uses: What it says now; uses include those whose result is still open.
    """

    pattern_id: str
    file: str
    problem: str = ""
    successes: int = 0
    failures: int = 0
    uses: int = 0


Read = Callable[[], tuple[Snapshot, Scoreboard]]
"""Reads pattern files and event log as they are now."""


def record_events(
    paths: ProjectPaths, settings: Settings, events: Sequence[Event], *, now: datetime, read: Read
) -> tuple[CountResult, ...]:
    """Write events down, then bring the records of the patterns that they tell of up to date.

    Args:
        paths: The project.
        settings: How long to retry.
        events: To be written, all or none; they are durable on return, whatever becomes of the records.
        now: The present moment.
        read: See `Read`.

    Raises:
        BadInput: See `append_events`.
        Unwritable: The event log cannot be written.
    """
    snapshot, _ = read()
    counted: list[CountResult] = []
    files: dict[str, list[str]] = {}
    for pattern_id in _told_of(snapshot, events) if snapshot.complete else ():
        file = snapshot.patterns[pattern_id].file
        try:
            pattern_path(paths, file)
            files.setdefault(file, []).append(pattern_id)
        except BadInput as error:
            counted.append(CountResult(pattern_id=pattern_id, file=file, problem=str(error)))
    if not files:
        append_events(paths, *events)
        return tuple(counted)
    ids = [pattern_id for file in files.values() for pattern_id in file]
    logged = False
    try:
        with curation_lock(paths):
            append_events(paths, *_first_counts(read(), ids, now, events[0].by, dated=False), *events)
            logged = True
            if first := tuple(_first_counts(read(), ids, now, events[0].by, dated=True)):
                append_events(paths, *first)
            writer = _Writer(*read(), events, now)
            for file, own in files.items():
                counted += _write(paths, settings, file, own, writer)
    except (Conflict, Unwritable) as error:
        if not logged:
            append_events(paths, *events)
        done = {item.pattern_id for item in counted}
        left = ((file, id) for file, own in files.items() for id in own if id not in done)
        counted += (CountResult(pattern_id=id, file=file, problem=str(error)) for file, id in left)
    return tuple(counted)


def brought_counts(
    snapshot: Snapshot, board: Scoreboard, pattern_ids: Iterable[str], decision: Decision
) -> tuple[Event, ...]:
    """What the event log has to say of records into which a decision brought counts from elsewhere.

    Else a use that is reported a moment later would pass for one of those.
    """
    return tuple(
        Event(
            id=event_id(decision.at),
            at=decision.at,
            kind="counted",
            pattern_id=pattern_id,
            by=decision.by,
            unrecorded=_told_by_record(board, pattern_id),
            decision=decision.id,
        )
        for pattern_id in pattern_ids
        if pattern_id in snapshot.patterns and _kept(snapshot, snapshot.patterns[pattern_id]) is not None
    )


def _told_of(snapshot: Snapshot, events: Iterable[Event]) -> tuple[str, ...]:
    """The patterns whose counts the events may change, sorted."""
    found = set()
    for event in events:
        if event.kind not in _RESULTS:
            continue
        if event.pattern_id:
            found.add(event.pattern_id)
        elif event.kind == "outcome":
            loop = snapshot.loop_called(event.loop_id)
            names = {event.loop_id} if loop is None else {loop.id, *loop.aliases}
            found |= {use.pattern_id for use in loop.injected if use.applied} if loop else set()
            found |= {e.pattern_id for e in snapshot.events if e.loop_id in names and e.kind in _RESULTS}
    return tuple(sorted(found & snapshot.patterns.keys()))


def _first_counts(
    known: tuple[Snapshot, Scoreboard], pattern_ids: Iterable[str], now: datetime, by: str, *, dated: bool
) -> Iterator[Event]:
    """The events that say what records alone tell of, unless the log says just that already.

    A record that says when it was last used is looked at when the report is in the log: whoever reports a use may
    have counted it there a moment ago. One that does not say is taken to have counted no use that is yet to come.

    Args:
        known: What is known now.
        dated: Which of the two kinds.
    """
    snapshot, board = known
    for pattern_id in pattern_ids:
        pattern = snapshot.patterns.get(pattern_id)
        if pattern is None or (pattern.last_used is not None) is not dated:
            continue
        told = _told_by_record(board, pattern_id)
        last = _kept(snapshot, pattern)
        if last is None or sorted(map(str, last.unrecorded)) != sorted(map(str, told)):
            yield Event(id=event_id(now), at=now, kind="counted", pattern_id=pattern_id, by=by, unrecorded=told)


def _told_by_record(board: Scoreboard, pattern_id: str) -> tuple[Observation, ...]:
    """What only the record tells of, also where that came from a pattern that was merged into it."""
    told = (seen for seen in board.observations(pattern_id) if seen.source in _TOLD_BY_RECORD)
    return tuple(replace(seen, pattern_id=pattern_id) for seen in told)


def _kept(snapshot: Snapshot, pattern: Pattern) -> Event | None:
    return find_counted_event(pattern, (event for event in snapshot.events if event.pattern_id == pattern.id))


def _write(
    paths: ProjectPaths, settings: Settings, file: str, pattern_ids: Sequence[str], writer: _Writer
) -> list[CountResult]:
    written: dict[str, CountResult] = {}

    def change(data: bytes | None) -> bytes | None:
        written.clear()
        if data is None:
            problem = f"{visible_line(file, 160)} is gone"
            written.update((id, CountResult(pattern_id=id, file=file, problem=problem)) for id in pattern_ids)
            return None
        document = RecordText(data)
        written.update((id, writer.write(document, file, id)) for id in pattern_ids)
        return document.encode()

    try:
        rewrite(pattern_path(paths, file), change, merge=merge_records, retry_seconds=settings.watch.retry_seconds)
    except (BadInput, Conflict, Unwritable) as error:
        return [CountResult(pattern_id=id, file=file, problem=str(error)) for id in pattern_ids]
    return list(written.values())


class _Writer:
    """Writes what the evidence says into records.

    Args:
        snapshot: All that is known, the events included.
        board: Its evidence.
        events: What was reported just now.
        now: The present moment.
    """

    def __init__(self, snapshot: Snapshot, board: Scoreboard, events: Sequence[Event], now: datetime) -> None:
        self._snapshot = snapshot
        self._board = board
        self._loops = {event.loop_id for event in events if event.loop_id}
        self._now = now

    def write(self, document: JsonText, file: str, pattern_id: str) -> CountResult:
        """Bring the record of one pattern up to date, if it is there."""
        record = find(document, pattern_id)
        known = self._snapshot.patterns.get(pattern_id)
        pattern = None if record is None or known is None else read_record(known, record.value)
        if record is None or pattern is None:
            return CountResult(pattern_id=pattern_id, file=file, problem=f"its record is no longer in {file}")
        uses = [seen for seen in self._board.observations_of_record(pattern) if seen.kind != "injected"]
        dates = [seen.at for seen in uses if seen.at is not None and seen.at <= self._now]
        newest = iso(max([*dates, pattern.last_used] if pattern.last_used else dates, default=None))
        after = replace(pattern, last_used=parse_time(newest))
        if after.last_used != pattern.last_used:
            document.set(record.path, "last_used", newest)
        counted = [seen for seen in uses if seen.source in _TOLD_BY_RECORD or not is_later(seen, after)]
        counts = UseCounts(
            sum(seen.count for seen in counted if seen.success is True),
            sum(seen.count for seen in counted if seen.success is False),
            sum(seen.count for seen in counted),
        )
        claimed = UseCounts.of_record(pattern.recorded_counts)
        if claimed is None or _numbers(claimed) != _numbers(counts):
            self._set_counts(document, record, pattern, counts)
        self._add_loops(document, record, pattern, counted)
        return CountResult(
            pattern_id=pattern_id, file=file, successes=counts.successes, failures=counts.failures, uses=counts.uses
        )

    def _set_counts(self, document: JsonText, record: Record, pattern: Pattern, counts: UseCounts) -> None:
        """(0) `1_increment_usage_count` to `3_update_effectiveness_trend`."""
        results = counts.successes + counts.failures
        anti = pattern.type is PatternType.ANTI
        values: dict[str, Any] = {"occurrence_count" if anti else "usage_count": counts.uses}
        # The schema has no such keys; in an anti-pattern others would read them the wrong way round. Without them
        # a rate would stand for all uses, also those whose result is unknown.
        if not anti or not _COUNTERS.isdisjoint(record.value) or results != counts.uses:
            values |= {"successful_applications": counts.successes, "failed_applications": counts.failures}
        if results:
            values["failure_rate" if anti else "success_rate"] = counts.successes / results
            if (claimed := claimed_rate(pattern.recorded_counts)) is not None:
                values[CLAIMED_RATE] = claimed
        for key, value in values.items():
            if key not in record.value or record.value[key] != value:
                document.set(record.path, key, value)
        before, growing = UseCounts.of_record(pattern.recorded_counts), usable_trend(pattern)
        known = max(before.successes + before.failures if before else 0, growing[-1][1] if growing else 0)
        if results <= known:
            return
        point: dict[str, Any] = {
            "timestamp": iso(self._now),
            "success_rate_snapshot": counts.successes / results,
            "sample_size": results,
        }
        if len(self._loops) == 1:
            point["source_loop"] = next(iter(self._loops))
        elif self._loops:
            point["source_loops"] = sorted(self._loops)
        _append(document, record, "effectiveness_trend", [point])

    def _add_loops(self, document: JsonText, record: Record, pattern: Pattern, counted: Iterable[Observation]) -> None:
        """(0) `4_add_source_loop`: of each loop that reported a use the first one, in the shape of (3)."""
        known = {source.loop_id for source in pattern.source_loops}
        entries: list[Any] = []
        listed = record.value.get("source_loops")
        plain = bool(isinstance(listed, list) and listed and all(isinstance(entry, str) for entry in listed))
        for seen in counted:
            loop = self._snapshot.loops.get(seen.loop_id)
            names = {seen.loop_id, *(loop.aliases if loop else ())}
            reported = seen.source not in _TOLD_BY_RECORD and self._told_by_event(pattern.id, names)
            if not reported or not known.isdisjoint(names):
                continue
            known |= names
            if plain or (pattern.type is PatternType.TEMPLATE and not listed):
                entries.append(seen.loop_id)
            else:
                entries.append(_entry(pattern, seen, loop, self._agent(pattern.id, seen, loop, names)))
        if entries:
            _append(document, record, "source_loops", entries)

    def _told_by_event(self, pattern_id: str, names: set[str]) -> bool:
        return not names.isdisjoint(self._loops) or any(True for _ in self._events(pattern_id, names))

    def _agent(self, pattern_id: str, seen: Observation, loop: Loop | None, names: set[str]) -> str:
        """The agent that used the pattern: the one that reported it, the loop's owner, or who tried; "" if unknown."""
        attempt = self._snapshot.attempts.get(seen.loop_id)
        task = self._snapshot.tasks.get(attempt.task_id) if attempt else None
        found = (
            *(event.agent for event in self._events(pattern_id, names)),
            loop.agent if loop else "",
            attempt.agent if attempt else "",
            task.agent if task else "",
        )
        return next(filter(None, found), "")

    def _events(self, pattern_id: str, names: set[str]) -> Iterable[Event]:
        return (
            event
            for event in self._snapshot.events
            if event.pattern_id == pattern_id and event.loop_id in names and event.kind in _RESULTS
        )


def _numbers(counts: UseCounts) -> tuple[int, int, int]:
    return counts.successes, counts.failures, counts.uses


def _append(document: JsonText, record: Record, key: str, entries: Sequence[Any]) -> None:
    """Add to a list of the record; what stands there and is no list is left alone."""
    if key not in record.value:
        document.set(record.path, key, list(entries))
    elif isinstance(record.value[key], list):
        for entry in entries:
            document.append((*record.path, key), entry)


def _entry(pattern: Pattern, seen: Observation, loop: Loop | None, agent: str) -> dict[str, Any]:
    """A loop in `source_loops`, as (3) has it for the type of the pattern; what is not known is left out."""
    at = iso(seen.at)
    if pattern.type is PatternType.SUCCESS:
        result = {True: "success", False: "failure", None: None}[seen.success]
        iterations = loop.iteration if loop is not None and loop.status.ended else None
        told: dict[str, Any] = {
            "loop_id": seen.loop_id,
            "outcome": result,
            "iterations_required": iterations,
            "timestamp": at,
        }
    elif pattern.type is PatternType.ANTI:
        told = {"loop_id": seen.loop_id, "failure_iteration": seen.iteration, "timestamp": at}
    else:
        told = {"loop_id": seen.loop_id, "timestamp": at, "contributed_by": agent or None}
    return {key: value for key, value in told.items() if value is not None}
