"""Runs in the logs of the guardrails family (docs/adapter-files.md#guardrails)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from core.adapters.progress_log import parse_date
from core.adapters.values import MAX_LABEL, MAX_TEXT, cut, local_time
from core.base.regexes import lazy_regex

MAX_ITERATIONS: Final = 1000  # of one run
MAX_RUNS: Final = 200
MAX_LINES: Final = 5000  # summaries and starts of iterations
MAX_FAILURES: Final = 50  # of one session
_TIME: Final = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
_RUN_FILE: Final = lazy_regex(r"run-(\d{8}-\d{6}-(\d{1,10}))-iter-(\d{1,6})\.(log|md)")
_SUMMARY: Final = lazy_regex(
    rf"- {_TIME} \| run=(\d{{8}}-\d{{6}}-\d{{1,10}}) \| iter=(\d{{1,6}}) \| mode=(\w*)(?: \| story=([^ |]{{0,80}}))?"
    r"(?: \| duration=(\d{1,7})s)?(?: \| status=(\w+))?.*"
)
_START: Final = lazy_regex(rf"\[{_TIME}\] ITERATION (\d{{1,6}}) start \(mode=\w*(?: story=([^ )]{{1,80}}))?\)")
_STAMP: Final = lazy_regex(rf"### {_TIME}")
_SESSION: Final = lazy_regex(r"\*\*Session (\d{1,6}) (started|ended)\*\*(?: \((.*)\)| - (.*))?")
_LOOP_END: Final = lazy_regex(r"\*\*Loop ended\*\* - (.*)")
_CURSOR_START: Final = lazy_regex(r"Ralph Session Started: (.{8,60})")
_TOOL: Final = lazy_regex(r"\[\d\d:\d\d:\d\d\] \S{1,8} (READ|WRITE|EDIT|SHELL|BASH|SEARCH|TOOL) (.*)")
_TOKENS: Final = lazy_regex(r"\[\d\d:\d\d:\d\d\] \S{1,8} TOKENS: (\d{1,9}) /")
_FAILED: Final = lazy_regex(r"→ (?:exit [1-9]\d{0,4}|failed)\b")
_NEAR: Final = timedelta(seconds=90)  # between the start of a session in progress.md and in activity.log


class Round(Struct):
    """One iteration of a run; `end` is the runner's word for its end, "" while it is open."""

    number: int
    story: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    end: str = ""
    tools: int | None = None  # None if its activity is unknown
    writes: int = 0  # tools that can change files
    tokens: int = 0  # estimate of the runner
    failures: list[str] = []

    @property
    def is_noop(self) -> bool:
        """Whether the agent stopped by itself without using a tool."""
        return self.tools == 0 and "finished naturally" in self.end


class Run(Struct):
    """One run; `end` is the runner's word for the end of all, "" if it wrote none."""

    id: str
    started_at: datetime | None = None
    pid: int | None = None
    agent: str = ""
    model: str = ""
    rounds: dict[int, Round] = {}
    end: str = ""
    ended_at: datetime | None = None

    @property
    def last(self) -> Round | None:
        return self.rounds[max(self.rounds)] if self.rounds else None


class Segment(Struct, array_like=True):
    """Activity of one session; `started` is as in the file."""

    started: str
    tools: int = 0
    writes: int = 0
    tokens: int = 0
    failures: list[str] = []


class Activity(Struct):
    """Lines of an activity log that matter: summaries and starts of iterations, and sessions."""

    summaries: list[tuple[str, ...]] = []
    starts: list[tuple[str, ...]] = []
    segments: list[Segment] = []


class ActivityFold:
    """Reads activity.log of both runners."""

    name: str = "guardrails-activity"
    version: int = 1
    state: type[Activity] = Activity

    def add(self, state: Activity, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        if summary := _SUMMARY.fullmatch(text):
            state.summaries = [*state.summaries, summary.groups("")][-MAX_LINES:]
        elif start := _START.match(text):
            state.starts = [*state.starts, start.groups("")][-MAX_LINES:]
        elif session := _CURSOR_START.search(text):
            state.segments = [*state.segments, Segment(session[1])][-MAX_ITERATIONS:]
        elif state.segments:
            _add_tool(state.segments[-1], text)


def _add_tool(segment: Segment, line: str) -> None:
    if tool := _TOOL.match(line):
        segment.tools += 1
        segment.writes += tool[1] in ("WRITE", "EDIT", "SHELL", "BASH", "TOOL")
        if _FAILED.search(tool[2]) and len(segment.failures) < MAX_FAILURES:
            segment.failures.append(cut(f"{tool[1]} {tool[2]}", MAX_LABEL))
    elif tokens := _TOKENS.match(line):
        segment.tokens = max(segment.tokens, int(tokens[1]))


def read_tagged_runs(activity: Activity, names: list[str]) -> list[Run]:
    """Return the runs of iannuttall/ralph, oldest first, by its activity log and the names in `.ralph/runs`."""
    runs: dict[str, Run] = {}
    for name in names:
        if found := _RUN_FILE.fullmatch(name):
            _round(runs, found[1], int(found[3]))
    for at, run_id, number, _, story, duration, status in activity.summaries:
        part = _round(runs, run_id, int(number))
        part.ended_at, part.story, part.end = local_time(at), story.strip(), status
        if part.ended_at and duration:
            part.started_at = part.ended_at - timedelta(seconds=int(duration))
    ordered = sorted(runs.values(), key=lambda run: run.id)[-MAX_RUNS:]
    for at, number, story in activity.starts:
        _start_round(ordered, local_time(at), int(number), story)
    return ordered


def _start_round(runs: list[Run], at: datetime | None, number: int, story: str) -> None:
    """Note the start of an iteration, which belongs to the newest run that began before it."""
    if at is None:
        return
    run = next((run for run in reversed(runs) if run.started_at and run.started_at <= at), None)
    if run is not None and len(run.rounds) < MAX_ITERATIONS:
        part = run.rounds.setdefault(number, Round(number))
        part.started_at, part.story = at, part.story or story


def _round(runs: dict[str, Run], run_id: str, number: int) -> Round:
    if run_id not in runs:
        date, time, pid = run_id.split("-")
        text = f"{date[:4]}-{date[4:6]}-{date[6:]} {time[:2]}:{time[2:4]}:{time[4:]}"
        runs[run_id] = Run(run_id, local_time(text), int(pid))
    rounds = runs[run_id].rounds
    return rounds.setdefault(number, Round(number)) if len(rounds) < MAX_ITERATIONS else Round(number)


def read_session_runs(progress: str, activity: Activity) -> list[Run]:
    """Return the runs of agrimsingh/ralph-wiggum-cursor, oldest first; each begins with session 1."""
    runs: list[Run] = []
    at: datetime | None = None
    for line in progress.split("\n"):
        line = line.strip()
        if stamp := _STAMP.fullmatch(line):
            at = local_time(stamp[1])
        elif session := _SESSION.fullmatch(line):
            _add_session(runs, session, at)
        elif runs and (end := _LOOP_END.fullmatch(line)):
            runs[-1].end, runs[-1].ended_at = cut(end[1], MAX_LABEL), at
    _add_activity(runs, activity)
    return runs[-MAX_RUNS:]


def _add_session(runs: list[Run], session: re.Match[str], at: datetime | None) -> None:
    number = int(session[1])
    if session[2] == "started":
        if at is not None and (not runs or number == 1 or runs[-1].end):
            agent, model = _agent(session[3] or "")
            runs.append(Run(f"{at:%Y%m%d-%H%M%S}", at, agent=agent, model=model))
        if runs and len(runs[-1].rounds) < MAX_ITERATIONS:
            runs[-1].rounds[number] = Round(number, started_at=at)
    elif runs and number in runs[-1].rounds:
        part = runs[-1].rounds[number]
        part.end, part.ended_at = cut(session[4], MAX_LABEL), at


def _agent(text: str) -> tuple[str, str]:
    values = dict(part.strip().split(": ", 1) for part in text.split(",") if ": " in part)
    agent = values.get("cli", "cursor-agent").removesuffix("-agent")
    return cut(agent, MAX_LABEL), cut(values.get("model", ""), MAX_LABEL)


def _add_activity(runs: list[Run], activity: Activity) -> None:
    """Add the tools of each session, which the activity log has below the time of its start."""
    rounds = [(part.started_at, part) for run in runs for part in run.rounds.values() if part.started_at is not None]
    rounds.sort(key=lambda item: item[0])
    times = [at for at, _ in rounds]
    for segment in activity.segments:
        at = parse_date(segment.started)
        place = bisect_left(times, at - _NEAR) if at is not None else len(times)
        if at is not None and place < len(times) and times[place] <= at + _NEAR:
            part = rounds[place][1]
            part.tools, part.writes = (part.tools or 0) + segment.tools, part.writes + segment.writes
            part.tokens = max(part.tokens, segment.tokens)
            part.failures = [*part.failures, *segment.failures][:MAX_FAILURES]


class Sign(Struct, gc=False):
    """A rule in guardrails.md."""

    line: int
    name: str
    trigger: str = ""
    instruction: str = ""
    reason: str = ""


_FIELDS: Final = {"trigger": "trigger", "instruction": "instruction", "added after": "reason"}
_FIELD: Final = lazy_regex(r"[-*+]\s+\*\*([A-Za-z ]{1,20}):?\*\*:?\s*(.*)")


def read_signs(lines: Iterator[tuple[int, str]]) -> Iterator[Sign]:
    """Yield the signs that a run added, without the core signs that the runner itself writes."""
    sign: Sign | None = None
    field, is_core = "", False
    for number, line in lines:
        text = line.strip()
        if text.startswith("## ") or text == "---":
            if sign is not None and not is_core:
                yield from _learned(sign)
            sign, is_core = None, text.casefold().startswith("## core")
        elif text.casefold().startswith("### sign:"):
            if sign is not None and not is_core:
                yield from _learned(sign)
            sign, field = Sign(number, cut(text[9:], MAX_LABEL)), ""
        elif sign is not None and (found := _FIELD.fullmatch(text)):
            field = _FIELDS.get(found[1].strip().casefold(), "")
            if field:
                setattr(sign, field, cut(found[2]))
        elif sign is not None and field and text and line[:1] in (" ", "\t") and len(getattr(sign, field)) < MAX_TEXT:
            setattr(sign, field, cut(f"{getattr(sign, field)} {text}"))
    if sign is not None and not is_core:
        yield from _learned(sign)


def _learned(sign: Sign) -> Iterator[Sign]:
    if "core principle" not in sign.reason.casefold() and (sign.instruction or sign.name):
        yield sign
