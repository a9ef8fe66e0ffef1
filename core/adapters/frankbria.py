"""frankbria/ralph-claude-code, in `.ralph` or in the flat layout before 0.10 (docs/adapter-files.md#frankbria)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.adapters.contract import Delivery, Places
from core.adapters.delivery import context_bullets, file_diff, put_block
from core.adapters.frankbria_logs import (
    CallFold,
    CallResult,
    LogFold,
    LogRun,
    Metric,
    MetricFold,
    call_time,
    read_result,
)
from core.adapters.values import MAX_LABEL, cut, decode_quietly, head_of, local_time, newest
from core.base.regexes import lazy_regex
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

if TYPE_CHECKING:
    from core.adapters.contract import Folders, Moment
    from core.adapters.runner_files import RunnerFiles
    from core.records.lessons import Lesson

SCRIPT: Final = "ralph_loop.sh"
FRESH: Final = timedelta(seconds=60)  # the runner writes every 10 s while the agent works
CRASHED: Final = timedelta(minutes=10)
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_MAX_CALLS: Final = 5000  # newest logs of the agent that are read
_MAX_WHOLE: Final = 20  # newest ones of them that may be a document of several lines
_MAX_NOTE: Final = 64_000
_MAX_ITEMS: Final = 1000
_MARKS: Final = lazy_regex(r"\s*[#*-]*\s*(?:\[[ xX]\]\s)?")
_OF_TEMPLATE: Final = lazy_regex(
    r"(?:.{0,30} instructions|context|.{0,9}fix plan|.{0,7}priority|you are ralph.*|\W*)$", re.IGNORECASE
)
_BOX: Final = lazy_regex(r"\s*[-*]\s+\[([ xX])\]\s*(.*)")
_PROJECT: Final = lazy_regex(r"""PROJECT_NAME=["']?([^"'\n]{1,200})""")
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


class _Run(Struct):
    """One run, with what the logs have about it; `end` is the start of the next one."""

    log: LogRun
    started: datetime | None
    end: datetime | None = None
    is_newest: bool = True
    metrics: list[Metric] = []
    calls: list[CallResult] = []


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
            for run in _runs(place, files):
                yield _loop(place, run, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        for place in _places(files):
            for run in _runs(place, files):
                if _id(place, run.log, files) == loop.id:
                    return _details(loop, place, run.is_newest, files)
        return LoopDetails(loop_id=loop.id)

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        place = next((one for one in _places(files) if str(one.root) == (loop.cwd or str(files.folders.project))), None)
        bullets = context_bullets(context)
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
    value = files.read(path, decode_quietly) if files.exists(path) else None
    if not isinstance(value, dict) or "loop_count" not in value or "calls_made_this_hour" not in value:
        return None
    return Fields(files.shown(path), value, [])


def _document(place: _Place, name: str, files: RunnerFiles) -> Fields:
    path = place.folder / name
    value = files.read(path, decode_quietly) if files.exists(path) else None
    return Fields(files.shown(path), value if isinstance(value, dict) else {}, [])


def _rows(place: _Place, name: str, files: RunnerFiles) -> list[dict[str, Any]]:
    path = place.folder / name
    value = files.read(path, decode_quietly) if files.exists(path) else None
    return [row for row in value if isinstance(row, dict)][-_MAX_ITEMS:] if isinstance(value, list) else []


def _runs(place: _Place, files: RunnerFiles) -> list[_Run]:
    """Return the runs in the log, oldest first, with their metrics and calls; one without a start if there is none."""
    folded = files.fold(place.folder / "logs" / "ralph.log", LogFold())
    logs = (list(folded.state.runs) if folded is not None else None) or [LogRun()]
    runs = sorted((_Run(log, local_time(log.started)) for log in logs), key=lambda run: run.started or _LONG_AGO)
    for run, following in pairwise(runs):
        run.end, run.is_newest = following.started, False
    starts = [(run.started or _LONG_AGO + _CLOCK_TOLERANCE) - _CLOCK_TOLERANCE for run in runs]

    def run_at(at: datetime | None) -> _Run | None:
        place_of = bisect_right(starts, at) - 1 if at is not None else len(runs) - 1
        return runs[place_of] if place_of >= 0 else None

    metrics = files.fold(place.folder / "logs" / "metrics.jsonl", MetricFold())
    for metric in metrics.state.rows if metrics is not None else ():
        if (found := run_at(parse_time(metric.at))) is not None:
            found.metrics.append(metric)
    paths = files.names(place.folder / "logs", "claude_output_*.log")[-_MAX_CALLS:]
    for number, path in enumerate(paths, start=1):
        if (found := run_at(call_time(path.name))) is not None:
            call = _call(path, files, is_new=number > len(paths) - _MAX_WHOLE)
            found.calls += [call] if call is not None else []
    return runs


def _call(path: Path, files: RunnerFiles, *, is_new: bool) -> CallResult | None:
    folded = files.fold(path, CallFold())
    if folded is not None and folded.state.usage is not None:
        found: CallResult = folded.state
        return found
    result = files.read(path, read_result) if is_new else None
    return result if isinstance(result, CallResult) else None


def _id(place: _Place, run: LogRun, files: RunnerFiles) -> str:
    name = re.sub(r"[^0-9]", "", run.started)[:14]
    prefix = files.folders.prefix_of(place.root)
    return f"frankbria:{prefix}{name[:8]}-{name[8:]}" if name else f"frankbria:{prefix}loop"


def _loop(place: _Place, run: _Run, files: RunnerFiles, moment: Moment) -> Loop:
    status = _status(place, files) or Fields("", {}, [])
    is_newest = run.is_newest
    written_at = _last_sign(place, files) if is_newest else None
    state = _newest_state(place, status, written_at, files, moment) if is_newest else _older_state(place, run, files)
    iterations = tuple(_iterations(run))
    plan = _plan(place, files) if is_newest else []
    analysis = _document(place, ".response_analysis", files).inside("analysis") if is_newest else None
    ended = newest(status.time("timestamp") if is_newest else None, local_time(run.log.last))
    last_activity = newest(run.started, ended, *(one.at for one in iterations))
    session = cut(files.text(place.folder / ".claude_session_id"), MAX_LABEL) if is_newest else ""
    sessions = (*(call.session_id for call in run.calls), session)
    claims = analysis is not None and bool(analysis.flag("exit_signal") or analysis.flag("has_completion_signal"))
    badges = {Liveness.STALE: ("stale",), Liveness.DEAD: ("crashed",)}.get(state.liveness, ())
    return Loop(
        id=_id(place, run.log, files),
        runner="frankbria",
        sources=("frankbria",),
        task=_task(place, files),
        criteria=tuple(cut(text, MAX_LABEL) for text, _ in plan),
        status=state.status,
        raw_status=cut(status.text("status"), MAX_LABEL) if is_newest else "",
        state_source=state.source,
        end_reason=cut(state.reason, MAX_LABEL),
        owner="claude",
        cwd=files.folders.cwd_of(place.root),
        pid=state.pid,
        iteration=(status.count("loop_count") if is_newest else None) or run.log.loops or None,
        iterations=iterations,
        started_at=run.started,
        ended_at=ended if state.status.ended else None,
        ended_approximate=state.status is LoopStatus.CRASHED,
        last_activity=min(last_activity, moment.now) if last_activity else None,
        modified_at=written_at,
        liveness=Liveness.ENDED if state.status.ended and not badges else state.liveness,
        liveness_reason=state.why,
        badges=badges,
        usage=sum((call.usage for call in run.calls if call.usage is not None), Usage()),
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


def _older_state(place: _Place, run: _Run, files: RunnerFiles) -> _State:
    """Return how a run ended by its log, or by the history of sessions between its start and the next one."""
    if run.log.exit_reason:
        return _ended_state("", "", run.log.exit_reason)
    for row in reversed(_rows(place, ".ralph_session_history", files)):
        fields = Fields("", row, [])
        at, reason = fields.time("timestamp"), fields.text("reason")
        if at and run.started and run.end and run.started <= at <= run.end and reason in _STATUSES:
            return _ended_state("", "", reason)
    return _State(why="a later run began")


def _iterations(run: _Run) -> Iterator[Iteration]:
    for metric in run.metrics:
        is_known = metric.success is not None
        outcome = (Outcome.SUCCESS if metric.success else Outcome.FAILURE) if is_known else Outcome.UNKNOWN
        yield Iteration(
            number=metric.loop,
            at=parse_time(metric.at),
            outcome=outcome,
            duration_ms=metric.duration * 1000 if metric.duration is not None else None,
            result=f"{metric.calls} calls" if metric.calls else "",
        )
    if run.log.loops and all(metric.loop != run.log.loops for metric in run.metrics):
        yield Iteration(number=run.log.loops, at=local_time(run.log.loop_started))


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
    """Return the first line of the prompt or of the plan that is about this project, else the project's name."""
    texts = (files.text(place.folder / "PROMPT.md"), files.text(place.path("fix_plan.md")))
    found = (_MARKS.sub("", line, count=1).strip() for text in texts for line in text.split("\n"))
    if own := next((name for name in found if not _OF_TEMPLATE.match(name)), ""):
        return cut(own)
    named = _PROJECT.search(files.text(place.root / ".ralphrc"))
    return cut(named[1]) if named else ""


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
