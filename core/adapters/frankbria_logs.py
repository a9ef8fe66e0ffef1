"""Logs of frankbria/ralph-claude-code: runs, metrics, and results of calls (docs/adapter-files.md#frankbria)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.adapters.values import MAX_LABEL, cut, local_time
from core.base.regexes import lazy_regex
from core.records.loops import Usage
from core.sources.fields import Fields
from core.storage.file_reader import decode_json

MAX_RUNS: Final = 200
MAX_METRICS: Final = 2000
_LINE: Final = lazy_regex(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] \[\w{1,10}\] (.*)")
_LOOP: Final = lazy_regex(rb"=== Starting Loop #(\d{1,9}) ===")
_EXIT: Final = lazy_regex(rb"(?:Graceful exit triggered:|- Exit reason:) ([a-z_0-9]{1,60})")
_CALL: Final = lazy_regex(r"claude_output_(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)\.log")


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
    """Reads ralph.log; a run begins with the line that the runner writes at its start."""

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
    """What one call of the agent printed at its end; `usage` is None if it printed no result."""

    session_id: str = ""
    usage: Usage | None = None


class CallFold:
    """Reads the log of a call, which has one JSON document or many in its lines; the last result counts."""

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
    """Read the result in a JSON document, or in a list of records; ValueError if there is none."""
    value: Any = decode_json(data).value
    if isinstance(value, list):
        value = next((one for one in reversed(value) if isinstance(one, dict) and one.get("type") == "result"), None)
    if not isinstance(value, dict) or value.get("type", "result") != "result":
        raise ValueError("no result")
    fields = Fields("", value, [])
    usage = fields.inside("usage") or Fields("", {}, [])
    metadata = fields.inside("metadata") or Fields("", {}, [])
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
