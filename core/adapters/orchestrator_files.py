"""Files of ralph-orchestrator: events and history of runs, registry, lock and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from core.adapters.values import MAX_LABEL, MAX_TEXT, clip, cut, newest
from core.base.regexes import lazy_regex
from core.records.times import parse_time
from core.sources.fields import Fields

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles

FOLDER: Final = ".ralph"
MAX_PLACES: Final = 50  # folders of runs
_MAX_RUNS: Final = 100  # of one folder
_MAX_ITERATIONS: Final = 500
_MAX_TASKS: Final = 500
_SAME_START: Final = timedelta(seconds=60)  # between the first event of a run and its start in the history
_REASON: Final = lazy_regex(r"## Reason\s{1,4}(\w{1,60})")


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
    steps: list[Step] = field(default_factory=list)

    def see(self, at: datetime | None) -> None:
        self.started_at = self.started_at or at
        self.last_at = newest(self.last_at, at)

    def step(self, number: int) -> Step:
        if not self.steps or self.steps[-1].number != number:
            self.steps.append(Step(number))
            del self.steps[:-_MAX_ITERATIONS]
        return self.steps[-1]


class _History(Struct):
    runs: list[Run] = field(default_factory=list)


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
        event = Fields("", value["type"], [])
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
    """A run in a workspace; the process and the tasks are those of the newest run there."""

    id: str
    native_id: str
    workspace: Path
    run: Run
    file: Path
    pid: int | None = None
    is_newest: bool = False


def find_workspaces(files: RunnerFiles) -> list[Path]:
    """Return the folders of runs: the project, its working trees, and those that the registry names."""
    folders = files.folders
    found = [*folders.roots, *files.names(folders.project / ".worktrees")]
    for entry in _registered(files):
        for name in ("worktree_path", "workspace"):
            path = entry.text(name)
            found += [Path(path)] if folders.contain(path) else []
    return list(dict.fromkeys(found))[:MAX_PLACES]


def _registered(files: RunnerFiles) -> list[Fields]:
    """Return the entries of the registry, which vanish with their processes."""
    value = files.json(files.folders.project / FOLDER / "loops.json")
    registry = Fields("", value if isinstance(value, dict) else {}, [])
    return [entry for _, entry in registry.objects("loops")][:_MAX_RUNS]


def find_runs(files: RunnerFiles) -> list[Found]:
    return [found for workspace in find_workspaces(files) for found in _runs(workspace, files)]


def _runs(workspace: Path, files: RunnerFiles) -> Iterator[Found]:
    """Yield the runs of a workspace, oldest first: one per file of events, and those of the history without one."""
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
            merged = msgspec.structs.replace(same, reason=same.reason or run.reason, task=same.task or run.task)
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
            run = msgspec.structs.replace(run, task=prompt)
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
    """Return ID, pid, prompt and start of the newest run in a workspace, from the registry, else from the lock."""
    folder = workspace / FOLDER
    native_id = cut(files.text(folder / "current-loop-id"), MAX_LABEL)
    for entry in _registered(files):
        place = entry.text("worktree_path") or entry.text("workspace")
        if place == str(workspace) and (not native_id or entry.text("id") == native_id):
            found = entry.text("id"), entry.count("pid"), cut(entry.text("prompt")), entry.time("started")
            return cut(found[0], MAX_LABEL), *found[1:]
    value = files.json(folder / "loop.lock")
    lock = Fields("", value if isinstance(value, dict) else {}, [])
    return native_id, lock.count("pid"), cut(lock.text("prompt")), lock.time("started")


def read_tasks(found: Found, files: RunnerFiles) -> list[Fields]:
    """Return the newest line of each task of a run; tasks without a loop are those of the newest run."""
    lines = files.json(found.workspace / FOLDER / "agent" / "tasks.jsonl")
    latest: dict[str, Fields] = {}
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line.value, dict):
            task = Fields("", line.value, [])
            loop_id = task.text("loop_id")
            if task.text("id") and (loop_id == found.native_id if loop_id else found.is_newest):
                latest[task.text("id")] = task
    return list(latest.values())[:_MAX_TASKS]


def _text(value: Any) -> str:
    """Return a payload as text; agents also write objects."""
    return cut(value if isinstance(value, str) else msgspec.json.encode(value).decode() if value else "", MAX_TEXT)
