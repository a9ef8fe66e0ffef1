"""mikeyobrien/ralph-orchestrator: one run per file of events (docs/adapter-files.md#orchestrator)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from core.adapters.contract import Delivery, Places
from core.adapters.lessons import lesson_id
from core.adapters.orchestrator_files import FOLDER, MAX_PLACES, Found, Run, find_runs, find_workspaces, read_tasks
from core.adapters.values import MAX_LABEL, cut, distinct, lesson_kind, newest
from core.base.regexes import lazy_regex
from core.records.lessons import Lesson, LessonKind
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource, Usage
from core.records.times import parse_time
from core.sources.liveness import check_liveness

if TYPE_CHECKING:
    from core.adapters.contract import Folders, Moment
    from core.adapters.runner_files import RunnerFiles

_EVIDENCE: Final = ("loops.json", "current-events", "agent")
_MAX_MEMORIES: Final = 500
_STALE_AFTER: Final = timedelta(minutes=10)
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


class OrchestratorAdapter:
    """Reads events, history, registry and lock of runs, tasks and memories; also of runs in working trees."""

    name = "orchestrator"
    title = "ralph-orchestrator"
    versions = "2.x"
    contains = "runs with iterations, why they ended, tasks, estimated cost, memories, process"
    lacks = "tokens, IDs of the agent's sessions"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        found = (f"{FOLDER}/{name}" for name in _EVIDENCE)
        return tuple(name for name in found if (folders.project / name).exists())

    def places(self, folders: Folders) -> Places:
        trees = sorted((folders.project / ".worktrees").glob(f"*/{FOLDER}"))[:MAX_PLACES]
        return Places(watched=(*(root / FOLDER for root in folders.roots), *trees))

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for found in find_runs(files):
            yield _loop(found, files, moment)

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
        return LoopDetails(
            loop_id=loop.id,
            iterations=_iterations(found.run),
            notes=tuple((title, cut(text)) for title, text in notes if text.strip()),
            facts=(("loop", found.native_id),) if found.native_id else (),
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


def _loop(found: Found, files: RunnerFiles, moment: Moment) -> Loop:
    run = found.run
    iterations = _iterations(run)
    status, source, reason = _STATUSES.get(run.reason, LoopStatus.UNKNOWN), StateSource.REPORTED, run.reason
    if not run.reason and found.is_newest:
        status = LoopStatus.WAITING if run.topic == "human.interact" else LoopStatus.RUNNING
    liveness, why = check_liveness(status, found.pid, run.last_at, None, moment.now, _STALE_AFTER, moment.processes)
    if liveness is Liveness.DEAD:
        status, reason = LoopStatus.CRASHED, "its process has ended"
    elif not run.reason and (not found.is_newest or liveness is Liveness.STALE):
        status, source, reason = LoopStatus.UNKNOWN, StateSource.INFERRED, "no reason was written"
        liveness = Liveness.UNKNOWN
    elif not run.reason and found.pid is None:
        source = StateSource.INFERRED
    if status is LoopStatus.WAITING:
        why = f"asks a question; {why}"
    summary = files.text(found.workspace / FOLDER / "agent" / "summary.md") if found.is_newest and run.reason else ""
    cost = _COST.search(summary)
    backend = _BACKEND.search(files.text(found.workspace / "ralph.yml"))
    ended_at = run.last_at if status.ended else None
    return Loop(
        id=_id(found),
        aliases=(found.native_id,) if found.native_id else (),
        runner=OrchestratorAdapter.name,
        sources=(OrchestratorAdapter.name,),
        task=run.task,
        status=status,
        raw_status=run.reason or run.topic,
        state_source=source,
        end_reason=reason,
        liveness=liveness,
        liveness_reason=why,
        owner=backend[1] if backend else "",
        iteration=max((one.number or 0 for one in iterations), default=None),
        iterations=iterations,
        started_at=run.started_at,
        ended_at=ended_at,
        ended_approximate=ended_at is not None and not run.reason,
        last_activity=run.last_at,
        pid=found.pid,
        usage=Usage(cost_usd=float(cost[1])) if cost else Usage(),
        cwd=files.folders.cwd_of(found.workspace),
        badges=("crashed",) if status is LoopStatus.CRASHED else (),
        files=(files.shown(found.file),),
        progress=_progress(found, files),
    )


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
    """Yield the memories of a file: a heading per kind, then an ID, a quoted text and a comment with tags."""
    section, memory, lines = "", None, list[str]()
    place = count = 0
    for number, line in enumerate((*text.splitlines(), "## "), start=1):
        if line.startswith("> ") and memory is not None:
            lines.append(line[2:])
        elif line.startswith("#") and count < _MAX_MEMORIES:
            if memory is not None and (quoted := cut("\n".join(lines))):
                count += 1
                at = parse_time(int(memory[2]))
                yield Lesson(
                    id=lesson_id(OrchestratorAdapter.name, quoted),
                    runner=OrchestratorAdapter.name,
                    text=quoted,
                    kind=_KINDS.get(section.casefold()) or lesson_kind(quoted),
                    file=file,
                    line=place,
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
