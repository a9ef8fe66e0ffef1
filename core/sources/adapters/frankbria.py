"""frankbria/ralph-claude-code in both layouts; docs/adapter-files.md#frankbria."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.regexes import lazy_regex
from core.files.file_reader import decode_json
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource, Usage
from core.records.times import minute_of, newest, parse_time
from core.sources.adapters.contract import Delivery
from core.sources.adapters.runner_files import MAX_LABEL, cut, decode_quietly, fields_of, local_time
from core.sources.adapters.runs import MAX_NOTE, RunnerAdapter, State, context_bullets, file_diff, put_block
from core.sources.normalize import Fields

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.runner_files import RunnerFiles

MAX_RUNS: Final = 200
MAX_METRICS: Final = 2000
_LINE: Final = lazy_regex(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] \[\w{1,10}\] (.*)")
_LOOP: Final = lazy_regex(rb"=== Starting Loop #(\d{1,9}) ===")
_EXIT: Final = lazy_regex(rb"(?:Graceful exit triggered:|- Exit reason:) ([a-z_0-9]{1,60})")
_CALL: Final = lazy_regex(r"claude_output_(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)\.log")
SCRIPT: Final = "ralph_loop.sh"
FRESH: Final = timedelta(seconds=60)  # the runner writes every 10 s while the agent works
CRASHED: Final = timedelta(minutes=10)
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_MAX_CALLS: Final = 5000  # newest logs of the agent that are read
_MAX_WHOLE: Final = 20  # newest ones of them that may be a document of several lines
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
_STATUS: Final = (b'"loop_count"', b'"calls_made_this_hour"')
_NOTHING: Final = fields_of(None)


class LogRun(Struct, array_like=True):
    """One run in ralph.log; times are as in the file."""

    started: str = ""
    last: str = ""
    loops: int = 0
    loop_started: str = ""
    exit_reason: str = ""


class LogState(Struct):
    """The newest runs."""

    runs: list[LogRun] = []


class LogFold:
    """Reads ralph.log; a run begins with the line that the runner writes first."""

    name: str = "frankbria-log"
    version: int = 1
    state: type[LogState] = LogState

    def add(self, state: LogState, line: bytes) -> None:
        found = _LINE.match(line)
        if found is None:
            return
        at, text = found[1].decode(), found[2]
        loop = _LOOP.search(text)
        is_first = loop is not None and int(loop[1]) == 1 and (not state.runs or state.runs[-1].loops > 0)
        if (b"loop starting" in text or is_first) and all(run.started != at for run in state.runs):
            state.runs = [*state.runs, LogRun(at)][-MAX_RUNS:]
        if not state.runs:
            return
        run = state.runs[-1]
        run.last = at
        if loop is not None:
            run.loops, run.loop_started = int(loop[1]), at
        elif reason := _EXIT.search(text):
            run.exit_reason = reason[1].decode()


class Metric(Struct, array_like=True):
    """One iteration in metrics.jsonl; the duration is in seconds."""

    at: str = ""
    loop: int | None = None
    duration: float | None = None
    success: bool | None = None
    calls: int | None = None


class MetricState(Struct):
    """The newest iterations."""

    rows: list[Metric] = []


class MetricFold:
    """Reads metrics.jsonl."""

    name: str = "frankbria-metrics"
    version: int = 1
    state: type[MetricState] = MetricState

    def add(self, state: MetricState, line: bytes) -> None:
        value = msgspec.json.decode(line)
        fields = Fields("", value, [])
        metric = Metric(
            cut(fields.text("timestamp"), MAX_LABEL),
            fields.count("loop"),
            fields.duration("duration"),
            fields.flag("success"),
            fields.count("calls"),
        )
        state.rows.append(metric)
        del state.rows[:-MAX_METRICS]


class CallResult(Struct, array_like=True):
    """Output of one agent call at its end; `usage` is None if it printed no result."""

    session_id: str = ""
    usage: Usage | None = None


class CallFold:
    """Reads a call's log, with one or many JSON documents; the last result counts."""

    name: str = "frankbria-call"
    version: int = 1
    state: type[CallResult] = CallResult

    def add(self, state: CallResult, line: bytes) -> None:
        if b'"result"' in line:
            found = read_result(line)
            state.session_id, state.usage = found.session_id, found.usage


def call_time(name: str) -> datetime | None:
    """Return the start of a call by the name of its log."""
    found = _CALL.fullmatch(name)
    return local_time(f"{found[1]} {found[2]}:{found[3]}:{found[4]}") if found else None


def read_result(data: bytes) -> CallResult:
    """Read the result in a JSON document or a list of records; ValueError if none."""
    value: Any = decode_json(data).value
    if isinstance(value, list):
        value = next((one for one in reversed(value) if isinstance(one, dict) and one.get("type") == "result"), None)
    if not isinstance(value, dict) or value.get("type", "result") != "result":
        raise ValueError("no result")
    fields = Fields("", value, [])
    usage, metadata = (fields.inside(name) or _NOTHING for name in ("usage", "metadata"))
    return CallResult(
        cut(fields.text("session_id") or metadata.text("session_id"), MAX_LABEL),
        Usage(
            input=usage.count("input_tokens"),
            output=usage.count("output_tokens"),
            cache_read=usage.count("cache_read_input_tokens"),
            cache_write=usage.count("cache_creation_input_tokens"),
            cost_usd=fields.duration("total_cost_usd"),
        ),
    )


class _Place(Struct, frozen=True):
    """Places of the runner's files; `at` is the prefix of Markdown files before 0.10."""

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


class FrankbriaAdapter(RunnerAdapter):
    """Reads status, logs, analysis, breaker and queue; each logged start is a loop."""

    name = "frankbria"
    title = "ralph-claude-code"
    versions = "0.9 to 0.11"
    contains = "status with its reason, iterations, cost and tokens of calls, circuit breaker, queue, plan"
    lacks = "lessons, the process"

    marks = {".ralph/status.json": _STATUS, "status.json": _STATUS, ".ralphrc": (b"RALPH",)}

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for place in _places(files):
            for run in _runs(place, files):
                yield self._loop(place, run, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        runs = ((place, run) for place in _places(files) for run in _runs(place, files))
        found = next(((place, run) for place, run in runs if _id(place, run.log, files) == loop.id), None)
        if found is None or not found[1].is_newest:
            return LoopDetails(loop_id=loop.id, iterations=loop.iterations if found is not None else ())
        place = found[0]
        status = _status(place, files) or _NOTHING
        breaker = _document(place, ".circuit_breaker_state", files)
        analysis = _analysis(place, files) or _NOTHING
        items = [item for _, item in _document(place, "queue.json", files).objects("queue")][:_MAX_ITEMS]
        waiting = sum(item.text("status") == "pending" for item in items)
        changes = (fields_of(row) for row in _rows(place, ".circuit_breaker_history", files)[-20:])
        return self.make_details(
            loop,
            (
                ("Last summary", cut(analysis.text("work_summary"))),
                ("Queue", "\n".join(f"{item.text('status')}: {item.text('title')}" for item in items)),
                ("fix_plan.md", files.text(place.path("fix_plan.md"))[:MAX_NOTE]),
                *(("Circuit breaker", cut(_words(change, "to_state", "reason"))) for change in changes),
            ),
            (
                ("calls this hour", f"{status.text('calls_made_this_hour')} of {status.text('max_calls_per_hour')}"),
                ("circuit breaker", _words(breaker, "state", "reason")),
                ("permission denials", analysis.text("permission_denial_count").removesuffix("0")),
                ("queue", f"{waiting} of {len(items)} pending" if items else ""),
            ),
        )

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

    def _loop(self, place: _Place, run: _Run, files: RunnerFiles, moment: Moment) -> Loop:
        is_newest = run.is_newest
        status = (_status(place, files) if is_newest else None) or _NOTHING
        written_at = _last_sign(place, files) if is_newest else None
        state = (
            _newest_state(place, status, written_at, files, moment) if is_newest else _older_state(place, run, files)
        )
        iterations = tuple(_iterations(run))
        plan = _plan(place, files) if is_newest else []
        analysis = _analysis(place, files) if is_newest else None
        ended = newest(status.time("timestamp"), local_time(run.log.last))
        session = cut(files.text(place.folder / ".claude_session_id"), MAX_LABEL) if is_newest else ""
        return self.make_loop(
            _id(place, run.log, files),
            place.root,
            state,
            files,
            moment,
            written=(place.folder / "status.json", place.folder / "logs" / "ralph.log", place.path("fix_plan.md")),
            last=newest(run.started, ended, *(one.at for one in iterations)),
            ended=ended,
            is_exact=state.status is not LoopStatus.CRASHED,
            task=_task(place, files),
            criteria=tuple(cut(text, MAX_LABEL) for text, _ in plan),
            raw_status=cut(status.text("status"), MAX_LABEL),
            owner="claude",
            iteration=status.count("loop_count") or run.log.loops or None,
            iterations=iterations,
            started_at=run.started,
            modified_at=written_at,
            usage=sum((call.usage for call in run.calls if call.usage is not None), Usage()),
            session_ids=tuple(dict.fromkeys(filter(None, (*(call.session_id for call in run.calls), session)))),
            progress=Progress(
                stories=len(plan) or None,
                stories_done=sum(is_done for _, is_done in plan) if plan else None,
                is_claimed=bool(analysis and (analysis.flag("exit_signal") or analysis.flag("has_completion_signal"))),
                changed_at=newest(*(one.at for one in iterations)),
            ),
        )


def _places(files: RunnerFiles) -> Iterator[_Place]:
    for root in files.folders.roots:
        for place in (_Place(root, root / ".ralph", ""), _Place(root, root, "@")):
            if _status(place, files) is not None:
                yield place
                break


def _status(place: _Place, files: RunnerFiles) -> Fields | None:
    """Return this runner's status.json, or its last good version; None if missing."""
    found = _document(place, "status.json", files)
    return found if "loop_count" in found.mapping and "calls_made_this_hour" in found.mapping else None


def _document(place: _Place, name: str, files: RunnerFiles) -> Fields:
    return fields_of(files.read(place.folder / name, decode_quietly))


def _analysis(place: _Place, files: RunnerFiles) -> Fields | None:
    return _document(place, ".response_analysis", files).inside("analysis")


def _rows(place: _Place, name: str, files: RunnerFiles) -> list[dict[str, Any]]:
    value = files.read(place.folder / name, decode_quietly)
    return [row for row in value if isinstance(row, dict)][-_MAX_ITEMS:] if isinstance(value, list) else []


def _words(fields: Fields, *names: str) -> str:
    return " ".join(filter(None, map(fields.text, names)))


def _runs(place: _Place, files: RunnerFiles) -> list[_Run]:
    """Return runs with metrics and calls, oldest first; if none, one without a start."""
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


def _last_sign(place: _Place, files: RunnerFiles) -> datetime | None:
    names = ("status.json", "progress.json", "live.log", "logs/ralph.log")
    return newest(*(files.modified_at(place.folder / name) for name in names))


def _newest_state(place: _Place, status: Fields, sign: datetime | None, files: RunnerFiles, moment: Moment) -> State:
    word, action, reason = status.text("status"), status.text("last_action"), status.text("exit_reason")
    named = reason or action or word
    if word == "paused":
        kind = LoopStatus.WAITING if "api_limit" in f"{action} {reason}" else LoopStatus.PAUSED
        return State(kind, named, Liveness.IDLE, f"its files report {action or word}", StateSource.REPORTED)
    if word not in _BETWEEN:
        return _ended_state(word, action, reason)
    since = f"last sign {minute_of(sign)} UTC" if sign else "no sign"
    age = moment.now - sign if sign else CRASHED
    if (pid := moment.processes.find(SCRIPT, place.root)) is not None:
        return State(LoopStatus.RUNNING, "", Liveness.ALIVE, f"process {pid} runs", StateSource.REPORTED, pid)
    if age <= FRESH:
        return State(LoopStatus.RUNNING, "", Liveness.FRESH, since, StateSource.REPORTED)
    if word == "success" and (analysis := _analysis(place, files)) and analysis.flag("asking_questions"):
        return State(LoopStatus.WAITING, "asking_questions", Liveness.FRESH, since)
    if age < CRASHED:
        return State(LoopStatus.RUNNING, "", Liveness.FRESH, since)
    if word == "error":
        return State(LoopStatus.FAILED, named, Liveness.ENDED, since, StateSource.REPORTED)
    return State(LoopStatus.CRASHED, "", Liveness.DEAD, f"no process {SCRIPT}, {since}")


def _ended_state(word: str, action: str, reason: str) -> State:
    for candidate in _STATUSES:
        if candidate in (reason, action, word):
            why = f"its files report the status {word or action}"
            named = reason or (action if action in _STATUSES else word)
            return State(_STATUSES[candidate], named, Liveness.ENDED, why, StateSource.REPORTED)
    return State(reason=reason or action or word, why="its files contain no known status")


def _older_state(place: _Place, run: _Run, files: RunnerFiles) -> State:
    """Return how a run ended, by its log or the session history until the next run."""
    if run.log.exit_reason:
        return _ended_state("", "", run.log.exit_reason)
    for row in reversed(_rows(place, ".ralph_session_history", files)):
        fields = fields_of(row)
        at, reason = fields.time("timestamp"), fields.text("reason")
        if at and run.started and run.end and run.started <= at <= run.end and reason in _STATUSES:
            return _ended_state("", "", reason)
    return State(why="a later run began")


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
    """Return the plan's tasks; those below Optional or Future do not block the end."""
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
    """Return the first line of prompt or plan about the project, else its name."""
    texts = (files.text(place.folder / "PROMPT.md"), files.text(place.path("fix_plan.md")))
    found = (_MARKS.sub("", line, count=1).strip() for text in texts for line in text.split("\n"))
    if own := next((name for name in found if not _OF_TEMPLATE.match(name)), ""):
        return cut(own)
    named = _PROJECT.search(files.text(place.root / ".ralphrc"))
    return cut(named[1]) if named else ""
