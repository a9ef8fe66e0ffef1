"""Update counts in pattern records; see docs/curation.md#use-counts.

The event log is written first and is authoritative. Counts are set to the evidence, not incremented, so that writing is
idempotent and the next report completes what a crash left undone. To this end, a `counted` event stores once for each
record which uses its own counts already contained (see `core.learning.evidence`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Conflict, Unwritable
from core.base.text import visible_line
from core.decisions.apply import pattern_path
from core.decisions.merge import Tally
from core.files.atomic_write import curation_lock, rewrite
from core.learning import evidence
from core.learning.evidence import UseCounts, claimed_rate, find_counted_event, is_later, usable_trend
from core.learning.scoreboard import Scoreboard
from core.records.events import Event, Observation, event_id
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.records.times import iso, parse_time
from core.sources.events import append_events
from core.sources.keys import RecordText
from core.sources.pattern_text import Record, find, merge_records
from core.sources.patterns import read_record
from core.sources.schema import CLAIMED_RATE

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.files.json_editor import JsonText
    from core.records.decisions import Decision
    from core.records.loops import Loop

_FROM_RECORD: Final = (evidence.DISCOVERY, evidence.TREND, evidence.AGGREGATE)
_RESULTS: Final = ("applied", "feedback", "outcome")
_MAX_TREND_LOOPS: Final = 50  # maximum number of source loops that a point of the trend names, the newest
_COUNTERS: Final = frozenset({"successful_applications", "failed_applications"})


class CountResult(Struct, frozen=True, kw_only=True):
    """New counts (`uses` also without result) or `problem`; `is_changed` if written."""

    pattern_id: str
    file: str
    problem: str = ""
    is_changed: bool = False
    successes: int = 0
    failures: int = 0
    uses: int = 0


Known = tuple[Snapshot, Scoreboard]
Read = Callable[[], Known]  # Reads the current pattern files and event log.


def record_events(
    paths: ProjectPaths, settings: Settings, events: Sequence[Event], *, now: datetime, read: Read
) -> tuple[CountResult, ...]:
    """Append events, then update the records of the patterns that they are about.

    All or no events are written, durably, even if a record cannot be updated. Raises `BadInput` like `append_events`,
    and `Unwritable` if the event log cannot be written.
    """
    snapshot, _ = read()
    counted: list[CountResult] = []
    files: dict[str, list[str]] = {}
    for pattern_id in _affected_patterns(snapshot, events) if snapshot.complete else ():
        file = snapshot.patterns[pattern_id].file
        try:
            pattern_path(paths, file)
            files.setdefault(file, []).append(pattern_id)
        except BadInput as error:
            counted += _failed(file, (pattern_id,), error)
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
        for file, own in files.items():
            counted += _failed(file, (id for id in own if id not in done), error)
    return tuple(counted)


def make_counted_events(
    snapshot: Snapshot, board: Scoreboard, pattern_ids: Iterable[str], decision: Decision
) -> tuple[Event, ...]:
    """Make a `counted` event for each record into which a decision wrote counts.

    Without it, a use reported later would be mistaken for one that is already counted.
    """
    return tuple(
        Event(
            id=event_id(decision.at),
            at=decision.at,
            kind="counted",
            pattern_id=pattern_id,
            by=decision.by,
            unrecorded=_observations_from_record(board, pattern_id),
            decision=decision.id,
        )
        for pattern_id in pattern_ids
        if pattern_id in snapshot.patterns and _last_counted_event(snapshot, snapshot.patterns[pattern_id]) is not None
    )


def _affected_patterns(snapshot: Snapshot, events: Iterable[Event]) -> tuple[str, ...]:
    """Return the sorted IDs of patterns whose counts the events may change."""
    found = set()
    for event in events:
        if event.kind not in _RESULTS:
            continue
        if event.pattern_id:
            found.add(event.pattern_id)
        elif event.kind == "outcome":
            loop = snapshot.find_loop(event.loop_id)
            names = {event.loop_id} if loop is None else {loop.id, *loop.aliases}
            found |= {use.pattern_id for use in loop.injected if use.applied} if loop else set()
            found |= {e.pattern_id for e in snapshot.events if e.loop_id in names and e.kind in _RESULTS}
    return tuple(sorted(found & snapshot.patterns.keys()))


def _first_counts(known: Known, pattern_ids: Iterable[str], now: datetime, by: str, *, dated: bool) -> Iterator[Event]:
    """Yield missing `counted` events of records with (`dated`) or without a last use.

    A record with a last use is checked after the report is logged, since the reporter may already have counted the use
    in the record. A record without one cannot contain a use that is reported later.
    """
    snapshot, board = known
    for pattern_id in pattern_ids:
        pattern = snapshot.patterns.get(pattern_id)
        if pattern is None or (pattern.last_used is not None) is not dated:
            continue
        observations = _observations_from_record(board, pattern_id)
        last = _last_counted_event(snapshot, pattern)
        if last is None or sorted(map(str, last.unrecorded)) != sorted(map(str, observations)):
            yield Event(id=event_id(now), at=now, kind="counted", pattern_id=pattern_id, by=by, unrecorded=observations)


def _observations_from_record(board: Scoreboard, pattern_id: str) -> tuple[Observation, ...]:
    """Return observations from the record alone, also of patterns merged into it."""
    found = (one for one in board.observations(pattern_id) if one.source in _FROM_RECORD)
    return tuple(replace(one, pattern_id=pattern_id) for one in found)


def _last_counted_event(snapshot: Snapshot, pattern: Pattern) -> Event | None:
    return find_counted_event(pattern, (event for event in snapshot.events if event.pattern_id == pattern.id))


def _write(
    paths: ProjectPaths, settings: Settings, file: str, ids: Sequence[str], writer: _Writer
) -> list[CountResult]:
    written: dict[str, CountResult] = {}

    def change(data: bytes | None) -> bytes | None:
        written.clear()
        if data is None:
            missing = _failed(file, ids, f"{visible_line(file, 160)} no longer exists")
            written.update((one.pattern_id, one) for one in missing)
            return None
        document = RecordText(data)
        written.update((id, writer.write(document, file, id)) for id in ids)
        return document.encode()

    try:
        rewrite(pattern_path(paths, file), change, merge=merge_records, retry_seconds=settings.watch.retry_seconds)
    except (BadInput, Conflict, Unwritable) as error:
        return _failed(file, ids, error)
    return list(written.values())


def _failed(file: str, pattern_ids: Iterable[str], why: object) -> list[CountResult]:
    return [CountResult(pattern_id=id, file=file, problem=str(why)) for id in pattern_ids]


class _Writer:
    """Writes the evidence into records; `board` includes the new events."""

    def __init__(self, snapshot: Snapshot, board: Scoreboard, events: Sequence[Event], now: datetime) -> None:
        self._snapshot = snapshot
        self._board = board
        self._loops = {event.loop_id for event in events if event.loop_id}
        self._now = now

    def write(self, document: JsonText, file: str, pattern_id: str) -> CountResult:
        """Update the record of one pattern, if it exists."""
        record = find(document, pattern_id)
        known = self._snapshot.patterns.get(pattern_id)
        pattern = None if record is None or known is None else read_record(known, record.value)
        if record is None or pattern is None:
            return CountResult(pattern_id=pattern_id, file=file, problem=f"its record is no longer in {file}")
        before = document.text_at(record.path)
        uses = [use for use in self._board.inputs.observations(pattern) if use.kind != "injected"]
        dates = [use.at for use in uses if use.at is not None and use.at <= self._now]
        newest = iso(max([*dates, pattern.last_used] if pattern.last_used else dates, default=None))
        after = replace(pattern, last_used=parse_time(newest))
        if after.last_used != pattern.last_used:
            document.set(record.path, "last_used", newest)
        counted = [use for use in uses if use.source in _FROM_RECORD or not is_later(use, after)]
        results = Counter[bool | None]()
        for use in counted:
            results[use.success] += use.count
        counts = Tally(results[True], results[False], results.total())
        if UseCounts.of_record(pattern.recorded_counts) is None or Tally.of(pattern.recorded_counts) != counts:
            self._set_counts(document, record, pattern, counts)
        self._add_loops(document, record, pattern, counted)
        is_changed = document.text_at(record.path) != before
        return CountResult(pattern_id=pattern_id, file=file, is_changed=is_changed, **asdict(counts))

    def _set_counts(self, document: JsonText, record: Record, pattern: Pattern, counts: Tally) -> None:
        """Set counts and rate; extend the effectiveness trend by new results."""
        results = counts.successes + counts.failures
        anti = pattern.type is PatternType.ANTI
        values: dict[str, Any] = {"occurrence_count" if anti else "usage_count": counts.uses}
        # The schema of anti-patterns lacks these keys, and other programs would misread them. But without them the
        # rate would apply to all uses, also those without a result.
        if not anti or not _COUNTERS.isdisjoint(record.value) or results != counts.uses:
            values |= {"successful_applications": counts.successes, "failed_applications": counts.failures}
        if results:
            values["failure_rate" if anti else "success_rate"] = counts.successes / results
            if (recorded := claimed_rate(pattern.recorded_counts)) is not None:
                values[CLAIMED_RATE] = recorded
        for key, value in values.items():
            if key not in record.value or record.value[key] != value:
                document.set(record.path, key, value)
        before, growing = Tally.of(pattern.recorded_counts), usable_trend(pattern)
        known = max(before.successes + before.failures, growing[-1][1] if growing else 0)
        if results <= known:
            return
        rate = counts.successes / results
        point: dict[str, Any] = {"timestamp": iso(self._now), "success_rate_snapshot": rate, "sample_size": results}
        loops = list(dict.fromkeys((*(source.loop_id for source in pattern.source_loops), *sorted(self._loops))))
        if len(loops) == 1:
            point["source_loop"] = loops[0]
        elif loops:
            point["source_loops"] = loops[-_MAX_TREND_LOOPS:]
        _append(document, record, "effectiveness_trend", [point])

    def _add_loops(self, document: JsonText, record: Record, pattern: Pattern, counted: Iterable[Observation]) -> None:
        """Add each loop that reported a use to `source_loops`, with its first use."""
        known = {source.loop_id for source in pattern.source_loops}
        entries: list[Any] = []
        listed = record.value.get("source_loops")
        plain = bool(isinstance(listed, list) and listed and all(isinstance(entry, str) for entry in listed))
        for use in counted:
            loop = self._snapshot.loops.get(use.loop_id)
            names = {use.loop_id, *(loop.aliases if loop else ())}
            if use.source in _FROM_RECORD or not known.isdisjoint(names):
                continue
            if names.isdisjoint(self._loops) and not any(self._events(pattern.id, names)):
                continue
            known |= names
            if plain or (pattern.type is PatternType.TEMPLATE and not listed):
                entries.append(use.loop_id)
            else:
                entries.append(_entry(pattern, use, loop, self._agent(pattern.id, use, loop, names)))
        if entries:
            _append(document, record, "source_loops", entries)

    def _agent(self, pattern_id: str, use: Observation, loop: Loop | None, names: set[str]) -> str:
        """Return the agent that reported the use, or of its loop or task; "" if unknown."""
        attempt = self._snapshot.attempts.get(use.loop_id)
        task = self._snapshot.tasks.get(attempt.task_id) if attempt else None
        sources = (*self._events(pattern_id, names), loop, attempt, task)
        return next((source.agent for source in sources if source is not None and source.agent), "")

    def _events(self, pattern_id: str, names: set[str]) -> Iterable[Event]:
        own = (event for event in self._snapshot.events if event.pattern_id == pattern_id)
        return (event for event in own if event.loop_id in names and event.kind in _RESULTS)


def _append(document: JsonText, record: Record, key: str, entries: Sequence[Any]) -> None:
    """Append to a list in the record; a value that is not a list stays unchanged."""
    if key not in record.value:
        document.set(record.path, key, list(entries))
    elif isinstance(record.value[key], list):
        for entry in entries:
            document.append((*record.path, key), entry)


def _entry(pattern: Pattern, use: Observation, loop: Loop | None, agent: str) -> dict[str, Any]:
    """Make an entry of `source_loops` for the pattern's type, without unknown values."""
    entry: dict[str, Any] = {"loop_id": use.loop_id, "timestamp": iso(use.at)}
    if pattern.type is PatternType.SUCCESS:
        result = {True: "success", False: "failure", None: None}[use.success]
        iterations = loop.iteration if loop is not None and loop.status.ended else None
        entry = {"loop_id": use.loop_id, "outcome": result, "iterations_required": iterations} | entry
    elif pattern.type is PatternType.ANTI:
        entry = {"loop_id": use.loop_id, "failure_iteration": use.iteration} | entry
    else:
        entry["contributed_by"] = agent or None
    return {key: value for key, value in entry.items() if value is not None}
