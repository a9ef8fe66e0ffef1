"""frankbria/ralph-claude-code, in `.ralph` or in the flat layout before 0.10 (docs/adapter-files.md#frankbria)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.adapters.contract import Delivery, Places
from core.adapters.delivery import context_entries, file_diff, put_block
from core.adapters.frankbria_logs import CallResult, LogFold, LogRun, MetricFold, call_time, read_result
from core.adapters.values import MAX_LABEL, cut, head_of, local_time, newest
from core.records.loops import (
    Iteration,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
    Progress,
    StateSource,
    Usage,
)
from core.records.times import minute_of, parse_time
from core.sources.fields import Fields
from core.storage.json_reader import decode_json

if TYPE_CHECKING:
    from core.adapters.contract import Folders, Moment
    from core.adapters.runner_files import RunnerFiles
    from core.records.lessons import Lesson

SCRIPT: Final = "ralph_loop.sh"
FRESH: Final = timedelta(seconds=60)  # the runner writes every 10 s while the agent works
CRASHED: Final = timedelta(minutes=10)
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_MAX_CALLS: Final = 300  # newest logs of the agent that are read
_MAX_CALL_BYTES: Final = 32 << 20
_MAX_NOTE: Final = 64_000
_MAX_ITEMS: Final = 1000
_BOX: Final = re.compile(r"\s*[-*]\s+\[([ xX])\]\s*(.*)")
_PROJECT: Final = re.compile(r"""PROJECT_NAME=["']?([^"'\n]{1,200})""")
_STATUSES: Final = {
    **dict.fromkeys(("api_limit_exit", "api_5hour_limit", "cost_limit", "e2b_cost_limit"), LoopStatus.LIMIT),
    **dict.fromkeys(("max_loops", "max_loops_reached"), LoopStatus.LIMIT),
    **dict.fromkeys(("circuit_breaker_open", "circuit_breaker_trip", "stagnation_detected"), LoopStatus.FAILED),
    **dict.fromkeys(("permission_denied", "integrity_failure", "files_deleted", "halted"), LoopStatus.FAILED),
    **dict.fromkeys(("stopped", "interrupted", "manual_interrupt"), LoopStatus.ABORTED),
    **dict.fromkeys(("graceful_exit", "project_complete", "plan_complete"), LoopStatus.COMPLETED),
    **dict.fromkeys(("completion_signals", "test_saturation", "completed"), LoopStatus.COMPLETED),
}  # the most specific words come first
_BETWEEN: Final = ("running", "success", "error")  # statuses after which the loop goes on


class _Place(Struct, frozen=True):
    """Where one project has the runner's files; `at` is the prefix of Markdown files before 0.10."""

    root: Path
    folder: Path
    at: str

    def path(self, name: str) -> Path:
        return self.folder / (f"{self.at}{name}" if name in ("fix_plan.md", "AGENT.md") else name)


class _State(Struct):
    status: LoopStatus = LoopStatus.UNKNOWN
    source: StateSource = StateSource.INFERRED
    reason: str = ""
    liveness: Liveness = Liveness.UNKNOWN
    why: str = ""
    pid: int | None = None


class FrankbriaAdapter:
    """Reads status, logs, analysis, circuit breaker and queue; each start in the log is a loop."""

    name = "frankbria"
    title = "ralph-claude-code"
    versions = "0.9 to 0.11"
    contains = "status with its reason, iterations, cost and tokens of calls, circuit breaker, queue, plan"
    lacks = "lessons, the process"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        for name in (".ralph/status.json", "status.json"):
            head = head_of(folders.project / name, folders.project)
            if b'"loop_count"' in head and b'"calls_made_this_hour"' in head:
                return (name,)
        return (".ralphrc",) if b"RALPH" in head_of(folders.project / ".ralphrc", folders.project) else ()

    def places(self, folders: Folders) -> Places:
        names = (
            *("status.json", "progress.json", "live.log", "fix_plan.md", "@fix_plan.md", "queue.json", "logs"),
            *(".response_analysis", ".circuit_breaker_state", ".ralph_session_history", ".claude_session_id"),
        )
        return Places(
            watched=tuple(root / place / name for root in folders.roots for place in (".ralph", "") for name in names)
        )

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for place in _places(files):
            runs = _runs(place, files)
            for number, run in enumerate(runs, start=1):
                yield _loop(place, run, runs[number] if number < len(runs) else None, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        for place in _places(files):
            runs = _runs(place, files)
            for number, run in enumerate(runs, start=1):
                if _id(place, run, files) == loop.id:
                    return _details(loop, place, number == len(runs), files)
        return LoopDetails(loop_id=loop.id)

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        place = next((one for one in _places(files) if str(one.root) == (loop.cwd or str(files.folders.project))), None)
        bullets = [line for entry in context_entries(context) for line in (f"- {entry[0]}", *entry[1:])]
        path = place.path("AGENT.md") if place else None
        before = files.text(path) if path else ""
        if path is None or not before or not bullets:
            return None
        lines = before.removesuffix("\n").split("\n")
        block = ["## Lessons of earlier loops", "", *bullets]
        diff = file_diff(files.shown(path), before, "\n".join(put_block(lines, len(lines), block)) + "\n")
        explanation = "The agent reads this file in each iteration. Apply this change."
        return Delivery(explanation=explanation, diff=diff) if diff else None


def _places(files: RunnerFiles) -> Iterator[_Place]:
    for root in files.folders.roots:
        for place in (_Place(root, root / ".ralph", ""), _Place(root, root, "@")):
            if _status(place, files) is not None:
                yield place
                break


def _status(place: _Place, files: RunnerFiles) -> Fields | None:
    """Return status.json of this runner, or its last good version; None if there is none."""
    path = place.folder / "status.json"
    value = files.json(path) if files.exists(path) else None
    if not isinstance(value, dict) or "loop_count" not in value or "calls_made_this_hour" not in value:
        return None
    return Fields(files.shown(path), value, [])


def _document(place: _Place, name: str, files: RunnerFiles) -> Fields:
    path = place.folder / name
    value = files.read(path, lambda data: decode_json(data).value) if files.exists(path) else None
    return Fields(files.shown(path), value if isinstance(value, dict) else {}, [])


def _rows(place: _Place, name: str, files: RunnerFiles) -> list[dict[str, Any]]:
    path = place.folder / name
    value = files.read(path, lambda data: decode_json(data).value) if files.exists(path) else None
    return [row for row in value if isinstance(row, dict)][-_MAX_ITEMS:] if isinstance(value, list) else []


def _runs(place: _Place, files: RunnerFiles) -> list[LogRun]:
    """Return the runs in the log, oldest first; one without a start if there is no log."""
    folded = files.fold(place.folder / "logs" / "ralph.log", LogFold())
    return list(folded.state.runs) if folded is not None and folded.state.runs else [LogRun()]


def _id(place: _Place, run: LogRun, files: RunnerFiles) -> str:
    name = re.sub(r"[^0-9]", "", run.started)[:14]
    prefix = "" if place.root == files.folders.project else f"{place.root}/"
    return f"frankbria:{prefix}{name[:8]}-{name[8:]}" if name else f"frankbria:{prefix}loop"


def _loop(place: _Place, run: LogRun, following: LogRun | None, files: RunnerFiles, moment: Moment) -> Loop:
    status = _status(place, files) or Fields("", {}, [])
    started, end = local_time(run.started), local_time(following.started) if following else None
    is_newest = following is None
    written_at = _last_sign(place, files) if is_newest else None
    if is_newest:
        state = _newest_state(place, status, written_at, files, moment)
    else:
        state = _older_state(place, run, started, end, files)
    calls = list(_calls(place, started, end, files))
    iterations = tuple(_iterations(place, run, started, end, files))
    plan = _plan(place, files) if is_newest else []
    analysis = _document(place, ".response_analysis", files).inside("analysis") if is_newest else None
    ended = newest(status.time("timestamp") if is_newest else None, local_time(run.last))
    last_activity = newest(started, ended, *(one.at for one in iterations))
    session = cut(files.text(place.folder / ".claude_session_id"), MAX_LABEL) if is_newest else ""
    sessions = (*(call.session_id for call in calls), session)
    claims = analysis is not None and bool(analysis.flag("exit_signal") or analysis.flag("has_completion_signal"))
    badges = {Liveness.STALE: ("stale",), Liveness.DEAD: ("crashed",)}.get(state.liveness, ())
    return Loop(
        id=_id(place, run, files),
        runner="frankbria",
        sources=("frankbria",),
        task=_task(place, files),
        criteria=tuple(cut(text, MAX_LABEL) for text, _ in plan),
        status=state.status,
        raw_status=cut(status.text("status"), MAX_LABEL) if is_newest else "",
        state_source=state.source,
        end_reason=cut(state.reason, MAX_LABEL),
        owner="claude",
        cwd="" if place.root == files.folders.project else str(place.root),
        pid=state.pid,
        iteration=(status.count("loop_count") if is_newest else None) or run.loops or None,
        iterations=iterations,
        started_at=started,
        ended_at=ended if state.status.ended else None,
        ended_approximate=state.status is LoopStatus.CRASHED,
        last_activity=min(last_activity, moment.now) if last_activity else None,
        modified_at=written_at,
        liveness=Liveness.ENDED if state.status.ended and not badges else state.liveness,
        liveness_reason=state.why,
        badges=badges,
        usage=sum((call.usage for call in calls), Usage()),
        session_ids=tuple(dict.fromkeys(one for one in sessions if one)),
        progress=Progress(
            stories=len(plan) or None,
            stories_done=sum(is_done for _, is_done in plan) if plan else None,
            is_claimed=claims,
            changed_at=newest(*(one.at for one in iterations)),
        ),
        files=tuple(
            files.shown(path)
            for path in (place.folder / "status.json", place.folder / "logs" / "ralph.log", place.path("fix_plan.md"))
            if files.exists(path)
        ),
    )


def _last_sign(place: _Place, files: RunnerFiles) -> datetime | None:
    names = ("status.json", "progress.json", "live.log", "logs/ralph.log")
    return newest(*(files.modified_at(place.folder / name) for name in names))


def _newest_state(place: _Place, status: Fields, sign: datetime | None, files: RunnerFiles, moment: Moment) -> _State:
    word, action, reason = status.text("status"), status.text("last_action"), status.text("exit_reason")
    if word == "paused":
        is_limit = "api_limit" in f"{action} {reason}"
        found = LoopStatus.WAITING if is_limit else LoopStatus.PAUSED
        why = f"its files report {action or word}"
        return _State(found, StateSource.REPORTED, reason or action or word, Liveness.IDLE, why)
    if word not in _BETWEEN:
        return _ended_state(word, action, reason)
    since = f"last sign {minute_of(sign)} UTC" if sign else "no sign"
    age = moment.now - sign if sign else CRASHED
    if (pid := moment.processes.find(SCRIPT, place.root)) is not None:
        return _State(LoopStatus.RUNNING, StateSource.REPORTED, "", Liveness.ALIVE, f"process {pid} runs", pid)
    if age <= FRESH:
        return _State(LoopStatus.RUNNING, StateSource.REPORTED, "", Liveness.FRESH, since)
    analysis = _document(place, ".response_analysis", files).inside("analysis")
    if word == "success" and analysis is not None and analysis.flag("asking_questions"):
        return _State(LoopStatus.WAITING, StateSource.INFERRED, "asking_questions", Liveness.FRESH, since)
    if age < CRASHED:
        return _State(LoopStatus.RUNNING, StateSource.INFERRED, "", Liveness.FRESH, since)
    if word == "error":
        return _State(LoopStatus.FAILED, StateSource.REPORTED, reason or action or word, Liveness.ENDED, since)
    return _State(LoopStatus.CRASHED, StateSource.INFERRED, "", Liveness.DEAD, f"no process {SCRIPT}, {since}")


def _ended_state(word: str, action: str, reason: str) -> _State:
    for candidate in _STATUSES:
        if candidate in (reason, action, word):
            why = f"its files report the status {word or action}"
            named = reason or (action if action in _STATUSES else word)
            return _State(_STATUSES[candidate], StateSource.REPORTED, named, Liveness.ENDED, why)
    return _State(reason=reason or action or word, why="its files contain no known status")


def _older_state(
    place: _Place, run: LogRun, started: datetime | None, end: datetime | None, files: RunnerFiles
) -> _State:
    """Return how a run ended by its log, or by the history of sessions between its start and the next one."""
    if run.exit_reason:
        return _ended_state("", "", run.exit_reason)
    for row in reversed(_rows(place, ".ralph_session_history", files)):
        fields = Fields("", row, [])
        at, reason = fields.time("timestamp"), fields.text("reason")
        if at and started and end and started <= at <= end and reason in _STATUSES:
            return _ended_state("", "", reason)
    return _State(why="a later run began")


def _iterations(
    place: _Place, run: LogRun, started: datetime | None, end: datetime | None, files: RunnerFiles
) -> Iterator[Iteration]:
    folded = files.fold(place.folder / "logs" / "metrics.jsonl", MetricFold())
    known = set()
    for metric in folded.state.rows if folded is not None else ():
        at = parse_time(metric.at)
        if not _is_between(at, started, end):
            continue
        known.add(metric.loop)
        outcome = {True: Outcome.SUCCESS, False: Outcome.FAILURE}.get(metric.success, Outcome.UNKNOWN)
        yield Iteration(
            number=metric.loop,
            at=at,
            outcome=outcome,
            duration_ms=metric.duration * 1000 if metric.duration is not None else None,
            result=f"{metric.calls} calls" if metric.calls else "",
        )
    if run.loops and run.loops not in known:
        yield Iteration(number=run.loops, at=local_time(run.loop_started))


def _is_between(at: datetime | None, started: datetime | None, end: datetime | None) -> bool:
    if at is None:
        return started is None
    return (started is None or at >= started - _CLOCK_TOLERANCE) and (end is None or at < end)


def _calls(place: _Place, started: datetime | None, end: datetime | None, files: RunnerFiles) -> Iterator[CallResult]:
    for path in files.names(place.folder / "logs", "claude_output_*.log")[-_MAX_CALLS:]:
        if _is_between(call_time(path.name), started, end):
            result = files.read(path, read_result, _MAX_CALL_BYTES)
            if isinstance(result, CallResult):
                yield result


def _plan(place: _Place, files: RunnerFiles) -> list[tuple[str, bool]]:
    """Return the tasks of the plan; those below Optional or Future do not block the end."""
    found: list[tuple[str, bool]] = []
    is_counted = True
    for line in files.text(place.path("fix_plan.md")).split("\n"):
        if line.startswith("#"):
            title = line.strip("# ").casefold()
            is_counted = not title.startswith(("optional", "future"))
        elif is_counted and (box := _BOX.fullmatch(line)):
            found.append((box[2], box[1] != " "))
    return found[:_MAX_ITEMS]


def _task(place: _Place, files: RunnerFiles) -> str:
    named = _PROJECT.search(files.text(place.root / ".ralphrc"))
    return cut(named[1]) if named else cut(files.text(place.folder / "PROMPT.md"))


def _details(loop: Loop, place: _Place, is_newest: bool, files: RunnerFiles) -> LoopDetails:
    facts: list[tuple[str, str]] = []
    notes: list[tuple[str, str]] = []
    if is_newest:
        status = _status(place, files) or Fields("", {}, [])
        breaker = _document(place, ".circuit_breaker_state", files)
        analysis = _document(place, ".response_analysis", files).inside("analysis") or Fields("", {}, [])
        queue = _document(place, "queue.json", files)
        items = [item for _, item in queue.objects("queue")][:_MAX_ITEMS]
        waiting = sum(item.text("status") == "pending" for item in items)
        facts = [
            ("calls this hour", f"{status.text('calls_made_this_hour')} of {status.text('max_calls_per_hour')}"),
            ("circuit breaker", " ".join(filter(None, (breaker.text("state"), breaker.text("reason"))))),
            ("permission denials", analysis.text("permission_denial_count").removesuffix("0")),
            ("queue", f"{waiting} of {len(items)} pending" if items else ""),
        ]
        notes = [
            ("Last summary", cut(analysis.text("work_summary"))),
            ("Queue", "\n".join(f"{item.text('status')}: {item.text('title')}" for item in items)),
            ("fix_plan.md", files.text(place.path("fix_plan.md"))[:_MAX_NOTE]),
        ]
        for row in _rows(place, ".circuit_breaker_history", files)[-20:]:
            change = " ".join(filter(None, (Fields("", row, []).text(name) for name in ("to_state", "reason"))))
            notes.append(("Circuit breaker", cut(change)))
    return LoopDetails(
        loop_id=loop.id,
        iterations=loop.iterations,
        notes=tuple((title, text) for title, text in notes if text),
        facts=tuple((name, cut(value, MAX_LABEL)) for name, value in facts if value.strip()),
    )
