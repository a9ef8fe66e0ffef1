"""ralph-orchestrator: a run per events file; docs/adapter-files.md#orchestrator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource, Usage
from core.records.reflections import Lesson, LessonKind
from core.records.times import newest, parse_time
from core.sources.adapters.contract import Delivery
from core.sources.adapters.lessons import make_lesson
from core.sources.adapters.runner_files import MAX_LABEL, cut, distinct, fields_of
from core.sources.adapters.runs import RunnerAdapter, State
from core.sources.liveness import check_liveness

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles
    from core.sources.normalize import Fields

FOLDER: Final = ".ralph"
MAX_PLACES: Final = 50  # folders of runs
_MAX_RUNS: Final = 100  # of one folder
_MAX_ITERATIONS: Final = 500
_MAX_TASKS: Final = 500
_SAME_START: Final = timedelta(seconds=60)  # between the first event of a run and its start in the history
_REASON: Final = lazy_regex(r"## Reason\s{1,4}(\w{1,60})")
_EVIDENCE: Final = ("loops.json", "current-events", "agent")
_MAX_MEMORIES: Final = 500
_STATUSES: Final = {
    **dict.fromkeys(("completed", "completion_promise", "chaos_mode_complete"), LoopStatus.COMPLETED),
    **dict.fromkeys(("max_iterations", "max_runtime", "max_cost", "chaos_mode_max_iterations"), LoopStatus.LIMIT),
    **dict.fromkeys(("consecutive_failures", "loop_thrashing", "loop_stale", "validation_failure"), LoopStatus.FAILED),
    **dict.fromkeys(("stopped", "cancelled", "interrupted"), LoopStatus.ABORTED),
    "restart_requested": LoopStatus.RECOVERING,
    "workspace_gone": LoopStatus.CRASHED,
}
_KINDS: Final = {"fixes": LessonKind.FIX, "context": LessonKind.FACT}
_COST: Final = lazy_regex(r"\*\*Est\. cost:\*\* \$(\d{1,9}(?:\.\d{1,9})?)")
_BACKEND: Final = lazy_regex(r"^\s{0,8}backend:\s*[\"']?(\w{1,40})", re.MULTILINE)
_MEMORY: Final = lazy_regex(r"### (mem-(\d{9,11})-\w{1,16})")
_TAGS: Final = lazy_regex(r"<!--\s*tags:\s*([^|>]{1,200})")


class _Event(Struct):
    ts: str | None = None
    iteration: Any = 0
    hat: Any = ""
    topic: Any = ""
    payload: Any = ""


class Step(Struct):
    """One iteration; `ended_at` is the time of its last event."""

    number: int
    ended_at: datetime | None = None
    hat: str = ""
    topic: str = ""
    payload: str = ""
    success: bool | None = None


class Run(Struct):
    """A run, from its events or its part of the history."""

    task: str = ""
    started_at: datetime | None = None
    last_at: datetime | None = None
    topic: str = ""  # of the last event
    reason: str = ""
    steps: list[Step] = []

    def see(self, at: datetime | None) -> None:
        self.started_at = self.started_at or at
        self.last_at = newest(self.last_at, at)

    def step(self, number: int) -> Step:
        if not self.steps or self.steps[-1].number != number:
            self.steps.append(Step(number))
            del self.steps[:-_MAX_ITERATIONS]
        return self.steps[-1]


class _History(Struct):
    runs: list[Run] = []


class _EventFold:
    """Reads a file of events."""

    name = "orchestrator-events"
    version = 1
    state = Run

    def add(self, state: Run, line: bytes) -> None:
        event = msgspec.json.decode(line, type=_Event)
        topic = cut(event.topic, MAX_LABEL)
        if not topic:
            raise ValueError("not an event")
        at = parse_time(event.ts)
        payload = _text(event.payload)
        state.see(at)
        state.topic = topic
        if topic == "task.start" and not state.task:
            state.task = payload
        if topic == "loop.terminate":
            found = _REASON.search(payload)
            state.reason = found[1] if found else payload.partition("\n")[0][:MAX_LABEL]
        elif isinstance(event.iteration, int) and 0 < event.iteration < 1_000_000:
            step = state.step(event.iteration)
            step.ended_at = newest(step.ended_at, at)
            step.hat, step.topic, step.payload = cut(event.hat, MAX_LABEL), topic, clip(payload, 500)


class _HistoryFold:
    """Reads the history of all runs in a folder."""

    name = "orchestrator-history"
    version = 1
    state = _History

    def add(self, state: _History, line: bytes) -> None:
        value = msgspec.json.decode(line, type=dict[str, Any])
        event = fields_of(value["type"])
        kind, at = event.text("kind"), parse_time(value.get("ts"))
        if kind == "loop_started":
            state.runs.append(Run(task=cut(event.text("prompt"))))
            del state.runs[:-_MAX_RUNS]
        if not kind or not state.runs:
            return
        run = state.runs[-1]
        run.see(at)
        number = event.count("iteration")
        if kind in ("iteration_started", "iteration_completed") and number:
            step = run.step(number)
            step.ended_at = at
            step.success = event.flag("success") if kind == "iteration_completed" else None
        elif kind == "loop_completed":
            run.reason = cut(event.text("reason"), MAX_LABEL) or "completed"
        elif kind in ("loop_terminated", "loop_discarded"):
            run.reason = "interrupted" if kind == "loop_terminated" else "cancelled"


_EVENTS: Final = _EventFold()
_HISTORY: Final = _HistoryFold()


class Found(Struct, frozen=True, kw_only=True):
    """A run in a workspace; process and tasks are those of the newest run there."""

    id: str
    native_id: str
    workspace: Path
    run: Run
    file: Path
    pid: int | None = None
    is_newest: bool = False


def find_workspaces(files: RunnerFiles) -> list[Path]:
    """Return the project, its working trees, and workspaces that the registry names."""
    folders = files.folders
    found = [*folders.roots, *files.names(folders.project / ".worktrees")]
    for entry in _registered(files):
        for name in ("worktree_path", "workspace"):
            path = entry.text(name)
            found += [Path(path)] if folders.contain(path) else []
    return list(dict.fromkeys(found))[:MAX_PLACES]


def _registered(files: RunnerFiles) -> list[Fields]:
    """Return the entries of the registry, which vanish with their processes."""
    registry = fields_of(files.json(files.folders.project / FOLDER / "loops.json"))
    return [entry for _, entry in registry.objects("loops")][:_MAX_RUNS]


def find_runs(files: RunnerFiles) -> list[Found]:
    return [found for workspace in find_workspaces(files) for found in _runs(workspace, files)]


def _runs(workspace: Path, files: RunnerFiles) -> Iterator[Found]:
    """Yield a workspace's runs, oldest first, from event files, others from history."""
    folder = workspace / FOLDER
    runs: list[tuple[str, Path, Run]] = []
    for path in files.names(folder, "events*.jsonl")[-_MAX_RUNS:]:
        folded = files.fold(path, _EVENTS)
        if folded is not None and folded.state.topic:
            runs.append((path.stem, path, folded.state))
    history = files.fold(folder / "history.jsonl", _HISTORY)
    for run in history.state.runs if history is not None else ():
        same = next((one for _, _, one in runs if _is_same(one, run)), None)
        if same is None:
            name = f"history-{run.started_at:%Y%m%d-%H%M%S}" if run.started_at else "history"
            runs.append((name, folder / "history.jsonl", run))
        elif (not same.reason and run.reason) or not same.task:
            place = next(n for n, (_, _, one) in enumerate(runs) if one is same)
            merged = replace(same, reason=same.reason or run.reason, task=same.task or run.task)
            runs[place] = (*runs[place][:2], merged)
    runs.sort(key=lambda one: (one[2].started_at or datetime.min.replace(tzinfo=UTC), one[0]))
    native_id, pid, prompt, started_at = _process(workspace, files)
    if not runs and (pid is not None or prompt):
        runs.append(("current", folder / "loop.lock", Run(task=prompt, started_at=started_at, last_at=started_at)))
    shown = files.shown(workspace).removesuffix(".")
    tree = workspace.name if workspace.parent.name == ".worktrees" else shown
    unique = {one[0]: one for one in runs}.values()
    for place, (name, path, run) in enumerate(unique, start=1):
        is_newest = place == len(unique)
        if is_newest and not run.task:
            run = replace(run, task=prompt)
        yield Found(
            id="/".join(filter(None, (tree, name))),
            native_id=native_id if is_newest else "",
            workspace=workspace,
            run=run,
            file=path,
            pid=pid if is_newest else None,
            is_newest=is_newest,
        )


def _is_same(one: Run, other: Run) -> bool:
    if one.started_at is None or other.started_at is None:
        return False
    return abs(one.started_at - other.started_at) <= _SAME_START


def _process(workspace: Path, files: RunnerFiles) -> tuple[str, int | None, str, datetime | None]:
    """Return ID, pid, prompt and start of the newest run, from registry, else lock."""
    folder = workspace / FOLDER
    native_id = cut(files.text(folder / "current-loop-id"), MAX_LABEL)
    for entry in _registered(files):
        place = entry.text("worktree_path") or entry.text("workspace")
        if place == str(workspace) and (not native_id or entry.text("id") == native_id):
            found = entry.text("id"), entry.count("pid"), cut(entry.text("prompt")), entry.time("started")
            return cut(found[0], MAX_LABEL), *found[1:]
    lock = fields_of(files.json(folder / "loop.lock"))
    return native_id, lock.count("pid"), cut(lock.text("prompt")), lock.time("started")


def read_tasks(found: Found, files: RunnerFiles) -> list[Fields]:
    """Return each task's newest line; tasks without a loop are of the newest run."""
    lines = files.json(found.workspace / FOLDER / "agent" / "tasks.jsonl")
    latest: dict[str, Fields] = {}
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line.value, dict):
            task = fields_of(line.value)
            loop_id = task.text("loop_id")
            if task.text("id") and (loop_id == found.native_id if loop_id else found.is_newest):
                latest[task.text("id")] = task
    return list(latest.values())[:_MAX_TASKS]


def _text(value: Any) -> str:
    """Return a payload as text; agents also write objects."""
    return cut(value if isinstance(value, str) else msgspec.json.encode(value).decode() if value else "")


class OrchestratorAdapter(RunnerAdapter):
    """Reads events, history, registry, lock, tasks and memories, also in worktrees."""

    name = "orchestrator"
    title = "ralph-orchestrator"
    versions = "2.x"
    contains = "runs with iterations, why they ended, tasks, estimated cost, memories, process"
    lacks = "tokens, IDs of the agent's sessions"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        found = (f"{FOLDER}/{name}" for name in _EVIDENCE)
        return tuple(name for name in found if (folders.project / name).exists())

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for found in find_runs(files):
            yield self._loop(found, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        found = next((one for one in find_runs(files) if _id(one) == loop.id), None)
        if found is None:
            return LoopDetails(loop_id=loop.id)
        agent = found.workspace / FOLDER / "agent"
        marks = [("x" if task.text("status") == "closed" else " ", task) for task in read_tasks(found, files)]
        tasks = "\n".join(f"[{mark}] {task.text('title')}" for mark, task in marks)
        notes = [("Tasks", tasks)]
        if found.is_newest:
            notes += [(name, files.text(agent / name)) for name in ("summary.md", "handoff.md", "scratchpad.md")]
        facts = (("loop", found.native_id),)
        return self.make_details(
            loop, ((title, cut(text)) for title, text in notes), facts, iterations=_iterations(found.run)
        )

    def lessons(self, files: RunnerFiles) -> Iterator[Lesson]:
        runs = find_runs(files)
        paths = (workspace / FOLDER / "agent" / "memories.md" for workspace in find_workspaces(files))
        # The memories of working trees are links to those of the project.
        return distinct(lesson for path in paths for lesson in _memories(files.text(path), files.shown(path), runs))

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        if not context.strip():
            return None
        return Delivery(
            explanation="Adds the context to the memories, which each iteration gets.",
            command=("ralph", "tools", "memory", "add", context.strip(), "--type", "pattern"),
        )

    def _loop(self, found: Found, files: RunnerFiles, moment: Moment) -> Loop:
        run = found.run
        iterations = _iterations(run)
        summary = (
            files.text(found.workspace / FOLDER / "agent" / "summary.md") if found.is_newest and run.reason else ""
        )
        cost, backend = _COST.search(summary), _BACKEND.search(files.text(found.workspace / "ralph.yml"))
        return self.make_loop(
            _id(found),
            found.workspace,
            _state(found, moment),
            files,
            moment,
            written=(found.file,),
            last=run.last_at,
            ended=run.last_at,
            is_exact=run.last_at is None or bool(run.reason),
            aliases=(found.native_id,) if found.native_id else (),
            task=run.task,
            raw_status=run.reason or run.topic,
            owner=backend[1] if backend else "",
            iteration=max((one.number or 0 for one in iterations), default=None),
            iterations=iterations,
            started_at=run.started_at,
            usage=Usage(cost_usd=float(cost[1])) if cost else Usage(),
            progress=_progress(found, files),
            modified_at=None,
        )


def _state(found: Found, moment: Moment) -> State:
    run, last_at = found.run, found.run.last_at
    status, source, reason = _STATUSES.get(run.reason, LoopStatus.UNKNOWN), StateSource.REPORTED, run.reason
    if not run.reason and found.is_newest:
        status = LoopStatus.WAITING if run.topic == "human.interact" else LoopStatus.RUNNING
    liveness, why = check_liveness(status, found.pid, last_at, None, moment)
    if liveness is Liveness.DEAD:
        status, reason = LoopStatus.CRASHED, "its process has ended"
    elif not run.reason and (not found.is_newest or liveness is Liveness.STALE):
        status, source, reason = LoopStatus.UNKNOWN, StateSource.INFERRED, "no reason was written"
        liveness = Liveness.UNKNOWN
    elif not run.reason and found.pid is None:
        source = StateSource.INFERRED
    if status is LoopStatus.WAITING:
        why = f"asks a question; {why}"
    return State(status, reason, liveness, why, source, found.pid)


def _progress(found: Found, files: RunnerFiles) -> Progress:
    tasks = read_tasks(found, files)
    closed = [task.time("closed") for task in tasks if task.text("status") == "closed"]
    return Progress(
        stories=len(tasks) or None,
        stories_done=len(closed) if tasks else None,
        is_claimed=_STATUSES.get(found.run.reason) is LoopStatus.COMPLETED,
        changed_at=newest(*closed),
    )


def _iterations(run: Run) -> tuple[Iteration, ...]:
    outcomes = {True: Outcome.SUCCESS, False: Outcome.FAILURE, None: Outcome.UNKNOWN}
    return tuple(
        Iteration(
            number=step.number,
            at=step.ended_at,
            action=" ".join(filter(None, (step.hat, step.topic))),
            result=step.payload,
            outcome=outcomes[step.success],
        )
        for step in run.steps
    )


def _memories(text: str, file: str, runs: list[Found]) -> Iterator[Lesson]:
    """Yield memories: headings are kinds; then ID, quoted text, comment with tags."""
    section, memory, lines = "", None, list[str]()
    place = count = 0
    for number, line in enumerate((*text.splitlines(), "## "), start=1):
        if line.startswith("> ") and memory is not None:
            lines.append(line[2:])
        elif line.startswith("#") and count < _MAX_MEMORIES:
            if memory is not None and (quoted := cut("\n".join(lines))):
                count += 1
                at = parse_time(int(memory[2]))
                yield make_lesson(
                    OrchestratorAdapter.name,
                    quoted,
                    file,
                    place,
                    _KINDS.get(section.casefold()),
                    title=section,
                    at=at,
                    loop_id=next((_id(one) for one in runs if _contains(one.run, at)), ""),
                    loaded=True,
                )
            memory, lines, place = _MEMORY.match(line), [], number + 1
            if line.startswith("## "):
                section = cut(line[3:], MAX_LABEL)


def _contains(run: Run, at: datetime | None) -> bool:
    return at is not None and run.started_at is not None and run.started_at <= at <= (run.last_at or run.started_at)


def _id(found: Found) -> str:
    return f"{OrchestratorAdapter.name}:{found.id}"
