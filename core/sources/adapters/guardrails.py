"""iannuttall/ralph and ralph-wiggum-cursor; docs/adapter-files.md#guardrails."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource
from core.records.times import newest
from core.sources.adapters.contract import Delivery
from core.sources.adapters.lessons import (
    foreign_lines,
    join_bullets,
    make_lesson,
    parse_date,
    progress_lessons,
    read_markdown,
    read_progress,
)
from core.sources.adapters.runner_files import MAX_LABEL, MAX_PLANS, cut, distinct, local_time
from core.sources.adapters.runs import MAX_NOTE, RunnerAdapter, State, context_blocks, file_diff, put_block
from core.sources.liveness import check_liveness
from core.sources.normalize import text as as_text

if TYPE_CHECKING:
    from core.records.reflections import Lesson
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.runner_files import RunnerFiles

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
NO_OP: Final = "no-op"  # badge of a run with a session in which the agent did nothing
_SIGNS: Final = ".ralph/guardrails.md"
STALE_AFTER: Final = timedelta(minutes=30)
_TOLERANCE: Final = timedelta(seconds=2)
_SCRIPTS: Final = ("ralph-loop.sh", "ralph-setup.sh")
_MAX_LOG: Final = 8 << 20
_CHECKBOX: Final = lazy_regex(r"\s*(?:[-*]|\d{1,3}\.)\s+\[([ xX])\]\s*(.*)")
_TASK: Final = lazy_regex(r"task:\s*(.+)")
_ENDS: Final = {
    "TASK COMPLETE": LoopStatus.COMPLETED,
    "GUTTER": LoopStatus.FAILED,
    "DEFERRED": LoopStatus.WAITING,
    "Max iterations": LoopStatus.LIMIT,
}  # by a word in the runner's own text; after all other ends the next session begins
_OUTCOMES: Final = {"success": Outcome.SUCCESS, "error": Outcome.FAILURE}


class Round(Struct):
    """One iteration of a run; `end` is the runner's word, "" while it is open."""

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
    """Relevant lines of an activity log: summaries, iteration starts, and sessions."""

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
    """Return iannuttall/ralph's runs, oldest first: activity log and `.ralph/runs`."""
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
    """Note an iteration's start in the newest run that began before it."""
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
    """Return runs of ralph-wiggum-cursor, oldest first; each begins with session 1."""
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
    """Add each session's tools, which the activity log has below its start time."""
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


class _Plan(Struct):
    """A run's task; its stories or criteria are pairs of text and whether it is done."""

    task: str = ""
    stories: list[tuple[str, bool]] = []
    path: Path | None = None
    ids: frozenset[str] = frozenset()

    @property
    def done(self) -> int:
        return sum(is_done for _, is_done in self.stories)

    @property
    def count(self) -> str:
        return f"{self.done} of {len(self.stories)} stories" if self.stories else ""

    @property
    def is_done(self) -> bool:
        return 0 < len(self.stories) == self.done


class GuardrailsAdapter(RunnerAdapter):
    """Reads guardrails.md, logs and plans; their lines show which runner wrote them."""

    name = "guardrails"
    title = "iannuttall/ralph, agrimsingh/ralph-wiggum-cursor"
    versions = "to mid-2026"
    contains = "signs as warnings, iterations, failed commands, stories, sessions without any tool"
    lacks = "cost and tokens, but for an estimate"

    marks = {_SIGNS: (b"Sign",)}

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for root in files.folders.roots:
            known: set[str] = set()
            for run, is_newest, plan in _runs(root, files):
                if run.id not in known:
                    known.add(run.id)
                    yield self._loop(root, run, plan if is_newest else _Plan(plan.task), is_newest, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        for root in files.folders.roots:
            for run, is_newest, plan in _runs(root, files):
                if _id(root, run, files) == loop.id:
                    return self._details(loop, root, run, plan if is_newest else _Plan(), files)
        return LoopDetails(loop_id=loop.id)

    def lessons(self, files: RunnerFiles) -> Iterator[Lesson]:
        return distinct(lesson for root in files.folders.roots for lesson in _lessons(root, files))

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        root = Path(loop.cwd) if loop.cwd else files.folders.project
        path = root / _SIGNS
        before = files.text(path)
        signs = list(_signs(context))
        if not before or not signs:
            return None
        lines = before.removesuffix("\n").split("\n")
        diff = file_diff(files.shown(path), before, "\n".join(put_block(lines, len(lines), signs)) + "\n")
        explanation = "Each iteration reads the signs first; anti-patterns become signs. Apply this change."
        return Delivery(explanation=explanation, diff=diff) if diff else None

    def _details(self, loop: Loop, root: Path, run: Run, plan: _Plan, files: RunnerFiles) -> LoopDetails:
        folder, tokens = root / ".ralph", sum(part.tokens for part in run.rounds.values())
        summaries = (
            (number, folder / "runs" / f"run-{run.id}-iter-{number}.md") for number in sorted(run.rounds)[-20:]
        )
        return self.make_details(
            loop,
            (
                ("Stories", "\n".join(f"[{'x' if done else ' '}] {story}" for story, done in plan.stories)),
                *((name, files.text(folder / name, _MAX_LOG)[-MAX_NOTE:]) for name in ("errors.log", "progress.md")),
                *((f"Summary of iteration {number}", files.text(path)[:MAX_NOTE]) for number, path in summaries),
            ),
            (("stories", plan.count), ("tokens, estimated by the runner", f"{tokens:,}" if tokens else "")),
        )

    def _loop(self, root: Path, run: Run, plan: _Plan, is_newest: bool, files: RunnerFiles, moment: Moment) -> Loop:
        rounds, end = run.rounds.values(), run.last.end if run.last else ""
        logs = (root / ".ralph" / name for name in ("activity.log", "progress.md"))
        written_at = newest(*map(files.modified_at, logs)) if is_newest else None
        last = newest(run.started_at, run.ended_at, *(at for part in rounds for at in (part.started_at, part.ended_at)))
        last = min(last, moment.now) if last is not None else None
        state = _state(root, run, plan, is_newest, moment)
        if state.liveness is Liveness.UNKNOWN and state.status is not LoopStatus.UNKNOWN:
            sign = newest(last, written_at)
            liveness, why = check_liveness(state.status, None, sign, None, replace(moment, stale_after=STALE_AFTER))
            state = replace(state, liveness=liveness, why=why)
        tools = [part for part in rounds if part.tools is not None]
        is_idle = bool(tools) and len(tools) == len(rounds) and not any(part.writes for part in tools)
        paths = [root / ".ralph" / name for name in ("activity.log", "progress.md", "guardrails.md", "errors.log")]
        return self.make_loop(
            _id(root, run, files),
            root,
            state,
            files,
            moment,
            written=(*paths, *((plan.path,) if plan.path else ())),
            last=last,
            ended=run.ended_at or (run.last.ended_at if run.last else None) or last,
            is_exact=True,
            badges=(NO_OP,) if any(part.is_noop for part in rounds) else (),
            task=plan.task,
            criteria=tuple(story for story, _ in plan.stories),
            raw_status=end,
            owner=run.agent,
            model=run.model,
            iteration=max(run.rounds, default=None),
            iterations=tuple(_iterations(run)),
            started_at=run.started_at,
            modified_at=written_at,
            progress=Progress(
                stories=len(plan.stories) or None,
                stories_done=plan.done if plan.stories else None,
                files_changed=0 if is_idle else None,
                is_claimed="signaled complete" in end,
                changed_at=last,
            ),
        )


class Sign(Struct, gc=False):
    """A rule in guardrails.md."""

    line: int
    name: str
    trigger: str = ""
    instruction: str = ""
    reason: str = ""
    other: str = ""  # value of a field that is not used


_FIELDS: Final = {"trigger": "trigger", "instruction": "instruction", "added after": "reason"}
_FIELD: Final = lazy_regex(r"\*\*([A-Za-z ]{1,20}):?\*\*:?\s*(.*)")


def read_signs(lines: Iterable[tuple[int, str]]) -> Iterator[Sign]:
    """Yield signs that a run added, without core signs of the runner itself."""
    signs: list[Sign] = []
    sign: Sign | None = None
    is_core = False
    for line in join_bullets(read_markdown(lines)):
        if line.level == 2 or line.is_rule:
            sign, is_core = None, line.text.casefold().startswith("core")
        elif line.level == 3 and line.text.casefold().startswith("sign:"):
            sign = Sign(line.number, cut(line.text[5:], MAX_LABEL))
            signs += [sign] if not is_core else []
        elif sign is not None and line.bullet and (found := _FIELD.fullmatch(line.text)):
            setattr(sign, _FIELDS.get(found[1].strip().casefold(), "other"), cut(found[2]))
    for sign in signs:
        if (sign.instruction or sign.name) and "core principle" not in sign.reason.casefold():
            yield sign


def _signs(context: str) -> Iterator[str]:
    """Yield the lines of anti-patterns as signs, between the fences of their blocks."""
    for block in context_blocks(context, "Anti-Patterns"):
        origin = "A review in ralphdeck" if block.is_approved else "Earlier sessions, not reviewed"
        yield from block.head
        for first, *others in block.entries:
            name, _, _ = first.partition("** (")
            instruction = " ".join(line.strip().removeprefix("- ") for line in others)
            yield f"### Sign: {name.strip('* ')}"
            yield "- **Trigger**: Before work that this warning is about"
            yield f"- **Instruction**: Avoid this. {instruction}".rstrip()
            yield f"- **Added after**: {origin}"
        yield from block.end


def _lessons(root: Path, files: RunnerFiles) -> Iterator[Lesson]:
    """Yield signs, and lessons in iannuttall/ralph's progress log, which names runs."""
    path = root / _SIGNS
    for sign in read_signs(foreign_lines(files.text(path))):
        text = sign.instruction or sign.name
        yield make_lesson(
            "guardrails",
            text,
            files.shown(path),
            sign.line,
            title=sign.name,
            trigger=sign.trigger,
            why=sign.reason,
            loaded=True,
        )

    path = root / ".ralph" / "progress.md"
    if _run_names(root, files):
        yield from progress_lessons("guardrails", read_progress(files.text(path)), files.shown(path), "")


def _run_names(root: Path, files: RunnerFiles) -> list[str]:
    return [path.name for path in files.names(root / ".ralph" / "runs", "run-*-iter-*")]


def _runs(root: Path, files: RunnerFiles) -> Iterator[tuple[Run, bool, _Plan]]:
    """Yield each run, whether it is the newest one, and the plan of its stories."""
    folder = root / ".ralph"
    folded = files.fold(folder / "activity.log", ActivityFold())
    activity = folded.state if folded is not None else Activity()
    tagged = read_tagged_runs(activity, _run_names(root, files))
    plans = list(_story_plans(root, files)) if tagged else []
    for number, run in enumerate(tagged, start=1):
        stories = {part.story for part in run.rounds.values()}
        plan = next((plan for plan in plans if stories & plan.ids), plans[0] if plans else _Plan())
        yield run, number == len(tagged), plan
    sessions = read_session_runs(files.text(folder / "progress.md", _MAX_LOG), activity)
    task = _task(root, files) if sessions else _Plan()
    for number, run in enumerate(sessions, start=1):
        yield run, number == len(sessions), task


def _story_plans(root: Path, files: RunnerFiles) -> Iterator[_Plan]:
    for path in files.names(root / ".agents" / "tasks", "prd*.json")[-MAX_PLANS:]:
        value = files.json(path)
        rows = value.get("stories") if isinstance(value, dict) else None
        found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        stories = [
            (cut(f"{as_text(row.get('id'))} {as_text(row.get('title'))}", MAX_LABEL), row.get("status") == "done")
            for row in found[:1000]
        ]
        if stories:
            ids = frozenset(as_text(row.get("id")) for row in found)
            yield _Plan(cut(as_text(value.get("project"))), stories, path, ids - {""})


def _task(root: Path, files: RunnerFiles) -> _Plan:
    path = root / "RALPH_TASK.md"
    lines = files.text(path).split("\n")
    stories = [(cut(box[2], MAX_LABEL), box[1] != " ") for line in lines if (box := _CHECKBOX.fullmatch(line))]
    named = next((cut(found[1].strip("\"'")) for line in lines if (found := _TASK.fullmatch(line.strip()))), "")
    heading = next((cut(line.strip("# ")) for line in lines if line.startswith("#")), "")
    return _Plan(named or heading, stories[:1000], path)


def _id(root: Path, run: Run, files: RunnerFiles) -> str:
    return f"guardrails:{files.folders.prefix_of(root)}{run.id}"


def _state(root: Path, run: Run, plan: _Plan, is_newest: bool, moment: Moment) -> State:
    end = run.end or (run.last.end if run.last else "")
    status = next((status for word, status in _ENDS.items() if word in end), None) if run.pid is None else None
    if status is not None:
        return State(status, end, source=StateSource.REPORTED)
    if is_newest and (pid := _process(root, run, moment)) is not None:
        return State(LoopStatus.RUNNING, "", Liveness.ALIVE, f"process {pid} runs", StateSource.REPORTED, pid)
    if run.pid is not None:
        if plan.is_done:
            reason = f"all {len(plan.stories)} stories are done"
            return State(LoopStatus.COMPLETED, reason, source=StateSource.REPORTED)
        parts = ("stopped", plan.count, f"last iteration: {end}" if end else "")
        return State(reason=", ".join(filter(None, parts)), why=f"process {run.pid} is gone")
    if is_newest:
        return State(LoopStatus.RUNNING)
    return State(reason=end, why="a later run began")


def _process(root: Path, run: Run, moment: Moment) -> int | None:
    """Return the run's pid: the one in its name, or that of the project's script."""
    if run.pid is None:
        found = (moment.processes.find(script, root) for script in _SCRIPTS)
        return next((pid for pid in found if pid is not None), None)
    started = moment.processes.started_at(run.pid)
    is_same = started is not None and run.started_at is not None and started <= run.started_at + _TOLERANCE
    return run.pid if is_same else None


def _iterations(run: Run) -> Iterator[Iteration]:
    for number, part in sorted(run.rounds.items()):
        duration = (part.ended_at - part.started_at).total_seconds() if part.ended_at and part.started_at else None
        yield Iteration(
            number=number,
            at=part.ended_at or part.started_at,
            action=part.story,
            result=f"no-op: {part.end}" if part.is_noop else part.end,
            outcome=_outcome(part),
            duration_ms=max(duration, 0) * 1000 if duration is not None else None,
            failures=tuple(Failure(message=message) for message in part.failures),
        )


def _outcome(part: Round) -> Outcome:
    if "TASK COMPLETE" in part.end:
        return Outcome.SUCCESS
    return Outcome.FAILURE if "GUTTER" in part.end else _OUTCOMES.get(part.end, Outcome.UNKNOWN)
