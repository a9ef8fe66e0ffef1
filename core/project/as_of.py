"""Compute the state of a project at a past time, by the same rules as today."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace as with_fields

from core.base.text import plural
from core.decisions.case import DECIDED_TEXT
from core.decisions.merge import as_read
from core.index.project_state import ProjectState
from core.index.texts import Texts
from core.learning.evidence import AGGREGATE, DISCOVERY, TREND
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.scoreboard import Scoreboard
from core.questions.asking import QueueRecords
from core.questions.queue import review_queue
from core.records.debug_sessions import IN_PROGRESS, DebugSession, Escalation
from core.records.decisions import TURNS, Decision, Effect, Verb
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.events import Event, Observation
from core.records.findings import Finding, Severity
from core.records.loops import InjectedUse, Liveness, Loop, LoopStatus, Outcome
from core.records.patterns import Pattern, PatternType, RecordedCounts
from core.records.reflections import Lesson, MemoryTask, Reflection
from core.sources.fold import fold
from core.sources.patterns import content_hash

if TYPE_CHECKING:
    from core.records.snapshot import Snapshot

UNDATED: Final = "undated"  # code of findings about records without a date
_PATTERNS: Final = ".aiwg/ralph/shared/patterns"
_BY_RECORD: Final = frozenset({DISCOVERY, TREND, AGGREGATE})  # sources of evidence in the pattern's own record

_Observe = Callable[[Pattern], tuple[Observation, ...]]
_Record = TypeVar("_Record")
_Dated = TypeVar("_Dated", Reflection, MemoryTask, Lesson)


def build_past_state(view: ProjectState, when: datetime) -> ProjectState:
    """Compute the project state at `when` (aware UTC), with today's settings.

    The past state includes evidence, loops, tasks and decisions up to `when`; the decision log and dated evidence
    restore the patterns. Records without a date and the sums of a team are always included, and recorded totals from
    the pattern's last use on; findings with the code `undated` report these. If `when` is not before `view.now`, only
    the clock changes.

    Takes up to twice as long as computing all scores, less for recent times; call it from a worker.
    """
    if when >= view.now:
        return replace(view, board=view.board.rescored(when), now=when)
    snapshot = _snapshot_at(view, when)
    board = Scoreboard.build(snapshot, when, view.settings)
    queue = review_queue(QueueRecords.of(snapshot, board, when, view.settings))
    return ProjectState(
        snapshot,
        board,
        Texts(snapshot.with_changes(reflections={}, memory_tasks={})),
        queue,
        view.settings,
        when,
        {},
        view.embeddings,
    )


def _snapshot_at(view: ProjectState, when: datetime) -> Snapshot:
    now = view.snapshot
    decisions = tuple(decision for decision in now.decisions if decision.at <= when)
    later = tuple(decision for decision in now.decisions if decision.at > when)
    curation = fold(decisions, now.curation.claims, do_claims_count=now.curation.do_claims_count)
    absent = curation.undone | {decision.id for decision in later}
    events = now.events
    if now.withdrawn:
        events = tuple(sorted((*events, *now.withdrawn), key=lambda event: event.at))
    if absent and any(event.decision in absent for event in events):
        events = tuple(event for event in events if event.decision not in absent)
    patterns, counted, findings = _patterns_at(
        now.with_changes(events=events), rewind_patterns(now.patterns, later), view, when
    )
    lost = len([id for id in curation.pins if id not in patterns and id not in now.patterns])
    if lost:
        findings.append(_finding(f"{plural(lost, 'pattern')} that had a pinned state then: the record is missing"))
    newer = len([one for one in now.team.sums.values() if one.last_used is not None and one.last_used > when])
    if newer:
        count = plural(newer, "pattern")
        findings.append(_finding(f"{count} with later uses in the team's other projects: all their uses there count"))
    return now.with_changes(
        patterns=MappingProxyType(patterns),
        loops=_filter_records(now.loops, when, _loop_at),
        reflections=_filter_records(now.reflections, when, _dated_at),
        memory_tasks=_filter_records(now.memory_tasks, when, _dated_at),
        tasks=_filter_records(now.tasks, when, _task_at),
        attempts=_filter_records(now.attempts, when, _attempt_at),
        debug_sessions=_filter_records(now.debug_sessions, when, _session_at),
        escalations=_filter_records(now.escalations, when, _escalation_at),
        lessons=_filter_records(now.lessons, when, _dated_at),
        instructions=MappingProxyType({}),  # it is not known what they were
        events=(*(event for event in events if event.at <= when), *counted),
        withdrawn=(),
        decisions=decisions,
        curation=curation,
        findings=(*now.findings, *findings),
    )


def _known(at: datetime | None, when: datetime) -> bool:
    """Whether a record with this time existed at `when`; True without a time."""
    return at is None or at <= when


def _filter_records(records: Mapping[str, _Record], when: datetime, at: Any) -> Mapping[str, _Record]:
    """Return the result of `at(record, when)` for each record, without None."""
    found = {id: past for id, record in records.items() if (past := at(record, when)) is not None}
    return MappingProxyType(found)


def _dated_at(record: _Dated, when: datetime) -> _Dated | None:
    return record if _known(record.at, when) else None


# Patterns


def _patterns_at(
    snapshot: Snapshot, then: RewoundPatterns, view: ProjectState, when: datetime
) -> tuple[dict[str, Pattern], list[Event], list[Finding]]:
    """Compute the patterns that existed at `when`, with their recorded counts then.

    A record that was updated later had lower counts. Its dated evidence shows which uses it counted at `when`; an event
    of kind `counted` contains them. Returns patterns, these events, and findings about missing dates.
    """
    changed = {event.pattern_id for event in snapshot.events if event.at > when and event.kind == "counted"}
    changed |= then.counted_until.keys()
    found: dict[str, Pattern] = {}
    observe: _Observe | None = None
    counted: list[Event] = []
    undated = summed = 0
    for id, pattern in then.patterns.items():
        times = [source.at for source in pattern.source_loops if source.at is not None]
        times += [point.at for point in pattern.trend if point.at is not None]
        created = pattern.first_discovered or min(times, default=None)  # the last use is not evidence of the creation
        if not _known(created, when):
            continue
        undated += created is None
        if pattern.last_used is not None and id not in changed and max((pattern.last_used, *times)) <= when:
            found[id] = pattern
            continue
        if observe is None:
            observe = _observer(snapshot, then, view)
        observations = observe(pattern)
        recorded = tuple(one for one in observations if one.source in _BY_RECORD and _known(one.at, when))
        summed += sum(
            one.count for one in observations if one.source == AGGREGATE and (one.at is None or one.at > when)
        )
        if id not in changed and all(_known(at, when) for at in (pattern.last_used, *times)):
            found[id] = pattern  # nothing in its record is newer
            continue
        found[id] = _pattern_at(pattern, observations, recorded, when)
        counted.append(Event(id="", at=when, kind="counted", pattern_id=id, unrecorded=recorded))
    findings = []
    if undated:
        findings.append(_finding(f"{plural(undated, 'pattern')} without a date: shown for every time"))
    if summed:
        count = plural(summed, "use")
        findings.append(
            _finding(f"{count} without a date, from recorded totals: counted from the last use on, or always")
        )
    return found, counted, findings


def _finding(message: str) -> Finding:
    return Finding(_PATTERNS, "", Severity.INFO, UNDATED, message)


def _observer(snapshot: Snapshot, then: RewoundPatterns, view: ProjectState) -> _Observe:
    """Return a function that returns the evidence of a (possibly rewound) pattern."""
    if snapshot.events is view.snapshot.events and not then.counted_until and then.patterns == view.snapshot.patterns:
        return view.board.inputs.observations

    def is_restored(event: Event) -> bool:
        """Whether an event is not newer than the counts that were restored."""
        return event.kind != "counted" or event.at <= then.counted_until.get(event.pattern_id, event.at)

    past = snapshot.with_changes(patterns=then.patterns, events=tuple(filter(is_restored, snapshot.events)))
    return EvidenceInputs.of(past, view.settings.learning).observations


def _pattern_at(
    pattern: Pattern, observations: Iterable[Observation], recorded: Sequence[Observation], when: datetime
) -> Pattern:
    sums = [one for one in recorded if one.source != DISCOVERY]
    return with_fields(
        pattern,
        recorded_counts=RecordedCounts(
            uses=sum(one.count for one in sums),
            successes=sum(one.count for one in sums if one.success is True),
            failures=sum(one.count for one in sums if one.success is False),
        ),
        source_loops=tuple(source for source in pattern.source_loops if _known(source.at, when)),
        trend=tuple(point for point in pattern.trend if _known(point.at, when)),
        last_used=max(
            (one.at for one in observations if one.at is not None and one.at <= when and one.kind != "injected"),
            default=None,
        ),
    )


# Loops, tasks and debug sessions: a record that ended after `when` is open in the past state.


def _loop_at(loop: Loop, when: datetime) -> Loop | None:
    times = (step.at for step in loop.iterations if step.at is not None)
    began = loop.started_at or min(times, default=loop.ended_at)
    if not _known(began, when):
        return None
    end = (loop.ended_at or loop.last_activity or loop.updated_at) if loop.status.ended else loop.last_activity
    if _known(end, when):
        return loop
    iterations = tuple(step for step in loop.iterations if step.at is not None and step.at <= when)
    activity = [step.at for step in iterations if step.at is not None]
    return with_fields(
        loop,
        status=LoopStatus.RUNNING,
        liveness=Liveness.UNKNOWN,
        liveness_reason="",
        badges=(),
        archived=False,
        iteration=max((step.number for step in iterations if step.number is not None), default=None),
        ended_at=None,
        ended_approximate=False,
        updated_at=None,
        last_activity=max(activity, default=loop.started_at),
        iterations=iterations,
        quality=loop.quality[: len(iterations)],
        last_result=iterations[-1].result if iterations else "",
        injected=tuple(_use_at(use, loop, when) for use in loop.injected),
        extracted=(),
        duration_ms=None,
    )


def _use_at(use: InjectedUse, loop: Loop, when: datetime) -> InjectedUse:
    """Return the use without its result if that was not known at `when`."""
    if use.at is not None and use.at <= when:
        return use
    return InjectedUse(pattern_id=use.pattern_id, at=loop.started_at)


def _attempt_at(attempt: Attempt, when: datetime) -> Attempt | None:
    if not _known(attempt.started_at or attempt.ended_at, when):
        return None
    if _known(attempt.ended_at, when):
        return attempt
    return Attempt(
        task_id=attempt.task_id,
        number=attempt.number,
        started_at=attempt.started_at,
        outcome=Outcome.UNKNOWN,
        plan=attempt.plan,
        agent=attempt.agent,
        file=attempt.file,
    )


def _task_at(task: Task, when: datetime) -> Task | None:
    if not _known(task.created_at, when):
        return None
    if not task.status.ended or _known(task.completed_at or task.updated_at, when):
        return task
    return with_fields(task, status=TaskStatus.RUNNING, completed_at=None, updated_at=None)


def _session_at(session: DebugSession, when: datetime) -> DebugSession | None:
    if not _known(session.created_at, when):
        return None
    if _known(session.changed_at, when):
        return session
    executions = tuple(run for run in session.executions if _known(run.at, when))
    later: dict[str, Any] = dict.fromkeys(("lessons", "recurring", "issues", "recommendations"), ())
    return with_fields(session, status=IN_PROGRESS, updated_at=None, executions=executions, **later)


def _escalation_at(call: Escalation, when: datetime) -> Escalation | None:
    known = [one for one in (*call.earlier, call) if one.at <= when]
    if not known or known[-1] is call:
        return known[-1] if known else None
    return with_fields(known[-1], earlier=tuple(known[:-1]))


_ARCHIVE: Final = ".aiwg/ralph/shared/archive/"
_TEXT: Final = (
    *(
        "description",
        "category",
        "error_type",
        "error_pattern",
        "error_message",
        "places",
        "location_hints",
        "task_pattern",
        "template_code",
    ),
    *("template_language", "placeholders", "diff_pattern", "steps", "tools", "preconditions", "benefits"),
    *("limitations", "symptoms", "why_it_fails", "better_alternative", "better_pattern_id", "use_case"),
)  # fields of all pattern types, besides the title, that `content_hash` covers
_OWN: Final = frozenset({"id", "type", "file", "pointer", "copy_folder", "copies", "content_hash"})
"""Fields that identify or locate a record; they are not part of its changed values."""


class RewoundPatterns(Struct, frozen=True):
    """Patterns with the values that they had before some decisions."""

    patterns: dict[str, Pattern]
    counted_until: dict[str, datetime]  # time up to which restored counts include uses, by pattern ID


def rewind_patterns(patterns: Mapping[str, Pattern], later: Iterable[Decision]) -> RewoundPatterns:
    """Revert decisions (sorted oldest first), as far as the decision log allows.

    Removes inserted records, restores removed records, and resets changed keys. If a text was edited without a
    decision, the text that the next decision stored is restored. If that decision stored only the hash of the text,
    the hash is restored, so that a pinned state of that time applies.
    """
    found = RewoundPatterns(dict(patterns), {})
    for decision in reversed(tuple(later)):
        for effect in decision.inverse:
            if not effect.file.startswith(_ARCHIVE):
                _revert(found, effect, decision)
        _restore_text(found.patterns, decision)
    return found


def _revert(found: RewoundPatterns, effect: Effect, decision: Decision) -> None:
    patterns, id = found.patterns, effect.pattern_id
    present = patterns.get(id)
    if effect.remove:
        patterns.pop(id, None)
    elif effect.insert is not None:
        if present is None and (pattern := _read(effect.insert, effect)) is not None:
            patterns[id] = with_fields(pattern, id=id, file=effect.file)
            found.counted_until[id] = decision.at
    elif present is not None:
        made = (one for one in decision.effects if (one.file, one.pattern_id) == (effect.file, id))
        past = _reset(present, effect, next(made, None))
        if past.recorded_counts != present.recorded_counts:
            sources = tuple(one for one in past.source_loops if one.at is None or one.at <= decision.at)
            trend = tuple(point for point in past.trend if point.at is None or point.at <= decision.at)
            past = with_fields(past, source_loops=sources, trend=trend)
            found.counted_until[id] = decision.at
        patterns[id] = past


def _reset(pattern: Pattern, before: Effect, after: Effect | None) -> Pattern:
    """Return the pattern with the values of `before` that differ from `after`."""
    was, became = _read(_keys(before), before), _read(_keys(after) if after else {}, before)
    if was is None or became is None:
        return pattern
    changed = {
        name: getattr(was, name)
        for name in Pattern.__struct_fields__
        if name not in _OWN and getattr(was, name) != getattr(became, name)
    }
    if not changed:
        return pattern
    known = pattern.content_hash == _hash(pattern)
    if "recorded_counts" in changed and "last_used" not in changed:
        # Later uses changed `last_used`; the decision dated the counts by the last use in the trend.
        last = max((point.at for point in became.trend if point.at), default=None)
        changed["last_used"] = min(filter(None, (last, pattern.last_used)), default=None)
    pattern = with_fields(pattern, **changed)
    return with_fields(pattern, content_hash=_hash(pattern)) if known else pattern


def _hash(pattern: Pattern) -> str:
    return content_hash(pattern.type, pattern.title, {name: getattr(pattern, name) for name in _TEXT})


def _keys(effect: Effect) -> dict[str, Any]:
    return {**effect.set, **{key: json.loads(text) for key, text in effect.text.items()}}


def _read(record: Mapping[str, Any], effect: Effect) -> Pattern | None:
    """Parse a record or a part of a record; return None if it is not valid."""
    try:
        found = as_read({**record, "id": effect.pattern_id}, PatternType(effect.type))
    except ValueError:
        return None
    return found if found.id else None


def _restore_text(patterns: dict[str, Pattern], decision: Decision) -> None:
    """Restore the text that the decision was about, or its hash if it was not stored."""
    pattern = patterns.get(decision.subject)
    if pattern is None or decision.verb in TURNS:
        return
    after = None if decision.verb is Verb.EDIT else decision.after.get("content_hash")
    digest = decision.before.get("content_hash") or after
    if not isinstance(digest, str) or digest in ("", pattern.content_hash):
        return
    stored = decision.after.get(DECIDED_TEXT)
    past = as_read({**stored, "id": pattern.id}, pattern.type) if isinstance(stored, dict) else None
    text = {name: getattr(past, name) for name in ("title", *_TEXT)} if past and past.content_hash == digest else {}
    patterns[pattern.id] = with_fields(pattern, **text, content_hash=digest)
