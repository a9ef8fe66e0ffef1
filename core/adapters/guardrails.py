"""iannuttall/ralph and agrimsingh/ralph-wiggum-cursor, whose lessons are signs (docs/adapter-files.md#guardrails)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.adapters.contract import Delivery, Places
from core.adapters.delivery import context_blocks, file_diff, foreign_lines, put_block
from core.adapters.guardrails_runs import (
    Activity,
    ActivityFold,
    Round,
    Run,
    read_session_runs,
    read_signs,
    read_tagged_runs,
)
from core.adapters.lessons import lesson_id
from core.adapters.progress_log import progress_lessons, read_progress
from core.adapters.values import MAX_LABEL, MAX_PLANS, cut, distinct, head_of, lesson_kind, newest
from core.base.regexes import lazy_regex
from core.records.debug_sessions import Failure
from core.records.lessons import Lesson
from core.records.loops import (
    Iteration,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
    Progress,
    StateSource,
)
from core.sources.liveness import check_liveness
from core.sources.normalize import text as as_text

if TYPE_CHECKING:
    from core.adapters.contract import Folders, Moment
    from core.adapters.runner_files import RunnerFiles

NO_OP: Final = "no-op"  # badge of a run with a session in which the agent did nothing
STALE_AFTER: Final = timedelta(minutes=30)
_TOLERANCE: Final = timedelta(seconds=2)
_SCRIPTS: Final = ("ralph-loop.sh", "ralph-setup.sh")
_MAX_LOG: Final = 8 << 20
_MAX_NOTE: Final = 64_000
_CHECKBOX: Final = lazy_regex(r"\s*(?:[-*]|\d{1,3}\.)\s+\[([ xX])\]\s*(.*)")
_TASK: Final = lazy_regex(r"task:\s*(.+)")
_ENDS: Final = {
    "TASK COMPLETE": LoopStatus.COMPLETED,
    "GUTTER": LoopStatus.FAILED,
    "DEFERRED": LoopStatus.WAITING,
    "Max iterations": LoopStatus.LIMIT,
}  # by a word in the runner's own text; after all other ends the next session begins
_OUTCOMES: Final = {"success": Outcome.SUCCESS, "error": Outcome.FAILURE}


class _Plan(Struct):
    """The task of a run, with its stories or criteria as pairs of text and whether it is done."""

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

    @property
    def progress(self) -> Progress:
        return Progress(stories=len(self.stories), stories_done=self.done) if self.stories else Progress()


class GuardrailsAdapter:
    """Reads guardrails.md, the logs and the plans; their lines, not their folder, show which one wrote them."""

    name = "guardrails"
    title = "iannuttall/ralph, agrimsingh/ralph-wiggum-cursor"
    versions = "to mid-2026"
    contains = "signs as warnings, iterations, failed commands, stories, sessions without any tool"
    lacks = "cost and tokens, but for an estimate"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        path = folders.project / ".ralph" / "guardrails.md"
        return (".ralph/guardrails.md",) if b"Sign" in head_of(path, folders.project) else ()

    def places(self, folders: Folders) -> Places:
        logs = ("guardrails.md", "progress.md", "errors.log", "activity.log", "runs")
        names = (*(f".ralph/{name}" for name in logs), ".agents/tasks", "RALPH_TASK.md")
        return Places(watched=tuple(root / name for root in folders.roots for name in names))

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for root in files.folders.roots:
            known: set[str] = set()
            for run, is_newest, plan in _runs(root, files):
                if run.id not in known:
                    known.add(run.id)
                    yield _loop(root, run, plan if is_newest else _Plan(plan.task), is_newest, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        for root in files.folders.roots:
            for run, is_newest, plan in _runs(root, files):
                if _id(root, run, files) == loop.id:
                    return _details(loop, root, run, plan if is_newest else _Plan(), files)
        return LoopDetails(loop_id=loop.id)

    def lessons(self, files: RunnerFiles) -> Iterator[Lesson]:
        for_root = ((*_sign_lessons(root, files), *_progress_lessons(root, files)) for root in files.folders.roots)
        return distinct(lesson for found in for_root for lesson in found)

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        root = Path(loop.cwd) if loop.cwd else files.folders.project
        path = root / ".ralph" / "guardrails.md"
        before = files.text(path)
        signs = list(_signs(context))
        if not before or not signs:
            return None
        lines = before.removesuffix("\n").split("\n")
        diff = file_diff(files.shown(path), before, "\n".join(put_block(lines, len(lines), signs)) + "\n")
        explanation = "Each iteration reads the signs first; anti-patterns become signs. Apply this change."
        return Delivery(explanation=explanation, diff=diff) if diff else None


def _signs(context: str) -> Iterator[str]:
    """Yield the lines of the anti-patterns as signs, between the fences of their blocks."""
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


def _sign_lessons(root: Path, files: RunnerFiles) -> Iterator[Lesson]:
    path = root / ".ralph" / "guardrails.md"
    for sign in read_signs(foreign_lines(files.text(path))):
        text = sign.instruction or sign.name
        yield Lesson(
            id=lesson_id("guardrails", text),
            runner="guardrails",
            text=text,
            kind=lesson_kind(text),
            file=files.shown(path),
            line=sign.line,
            title=sign.name,
            trigger=sign.trigger,
            why=sign.reason,
            loaded=True,
        )


def _progress_lessons(root: Path, files: RunnerFiles) -> Iterator[Lesson]:
    """Yield the lessons in the progress log of iannuttall/ralph, which is the only one with runs by name."""
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


def _loop(root: Path, run: Run, plan: _Plan, is_newest: bool, files: RunnerFiles, moment: Moment) -> Loop:
    last = run.last
    times = [time for part in run.rounds.values() for time in (part.started_at, part.ended_at)]
    logs = (root / ".ralph" / name for name in ("activity.log", "progress.md"))
    written_at = newest(*(files.modified_at(path) for path in logs)) if is_newest else None
    last_sign = newest(run.started_at, run.ended_at, *times)
    if last_sign is not None:
        last_sign = min(last_sign, moment.now)
    state = _state(root, run, plan, is_newest, moment)
    liveness, why = state.liveness, state.why
    if liveness is Liveness.UNKNOWN and state.status is not LoopStatus.UNKNOWN:
        sign = newest(last_sign, written_at)
        liveness, why = check_liveness(
            state.status, None, sign, None, moment.now, STALE_AFTER, moment.processes
        )  # fmt: skip
    badges = {NO_OP} if any(part.is_noop for part in run.rounds.values()) else set()
    badges |= {"stale"} if liveness is Liveness.STALE else set()
    known = [part for part in run.rounds.values() if part.tools is not None]
    is_idle = bool(known) and len(known) == len(run.rounds) and not any(part.writes for part in known)
    claims = "signaled complete" in (last.end if last else "")
    return Loop(
        id=_id(root, run, files),
        runner="guardrails",
        sources=("guardrails",),
        task=plan.task,
        criteria=tuple(story for story, _ in plan.stories),
        status=state.status,
        raw_status=last.end if last else "",
        state_source=state.source,
        end_reason=state.reason,
        owner=run.agent,
        model=run.model,
        cwd=files.folders.cwd_of(root),
        pid=state.pid,
        iteration=max(run.rounds, default=None),
        iterations=tuple(_iterations(run)),
        started_at=run.started_at,
        ended_at=(run.ended_at or (last.ended_at if last else None) or last_sign) if state.status.ended else None,
        last_activity=last_sign,
        modified_at=written_at,
        liveness=liveness,
        liveness_reason=why,
        badges=tuple(sorted(badges)),
        progress=Progress(
            stories=plan.progress.stories,
            stories_done=plan.progress.stories_done,
            files_changed=0 if is_idle else None,
            is_claimed=claims,
            changed_at=last_sign,
        ),
        files=_files(root, plan, files),
    )


class _State(Struct):
    status: LoopStatus
    source: StateSource
    reason: str = ""
    pid: int | None = None
    liveness: Liveness = Liveness.UNKNOWN
    why: str = ""


def _state(root: Path, run: Run, plan: _Plan, is_newest: bool, moment: Moment) -> _State:
    last_end = run.end or (run.last.end if run.last else "")
    ended = next((status for word, status in _ENDS.items() if word in last_end), None) if run.pid is None else None
    if ended is not None:
        return _State(ended, StateSource.REPORTED, last_end)
    if is_newest and (pid := _process(root, run, moment)) is not None:
        why = f"process {pid} runs"
        return _State(LoopStatus.RUNNING, StateSource.REPORTED, pid=pid, liveness=Liveness.ALIVE, why=why)
    if run.pid is not None:
        if plan.is_done:
            reason = f"all {len(plan.stories)} stories are done"
            return _State(LoopStatus.COMPLETED, StateSource.REPORTED, reason)
        parts = ("stopped", plan.count, f"last iteration: {last_end}" if last_end else "")
        why = f"process {run.pid} is gone"
        return _State(LoopStatus.UNKNOWN, StateSource.INFERRED, ", ".join(filter(None, parts)), why=why)
    if is_newest:
        return _State(LoopStatus.RUNNING, StateSource.INFERRED)
    return _State(LoopStatus.UNKNOWN, StateSource.INFERRED, last_end, why="a later run began")


def _process(root: Path, run: Run, moment: Moment) -> int | None:
    """Return the pid of the run: the one in its name, or that of the script in the project."""
    if run.pid is None:
        found = (moment.processes.find(script, root) for script in _SCRIPTS)
        return next((pid for pid in found if pid is not None), None)
    started = moment.processes.started_at(run.pid)
    is_same = started is not None and run.started_at is not None and started <= run.started_at + _TOLERANCE
    return run.pid if is_same else None


def _files(root: Path, plan: _Plan, files: RunnerFiles) -> tuple[str, ...]:
    names = ("activity.log", "progress.md", "guardrails.md", "errors.log")
    paths = [root / ".ralph" / name for name in names]
    found = [path for path in paths if files.exists(path)]
    return tuple(files.shown(path) for path in (*found, *([plan.path] if plan.path else [])))


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


def _details(loop: Loop, root: Path, run: Run, plan: _Plan, files: RunnerFiles) -> LoopDetails:
    notes = []
    if plan.stories:
        notes.append(("Stories", "\n".join(f"[{'x' if done else ' '}] {story}" for story, done in plan.stories)))
    for name in ("errors.log", "progress.md"):
        if tail := files.text(root / ".ralph" / name, _MAX_LOG)[-_MAX_NOTE:]:
            notes.append((name, tail))
    for number in sorted(run.rounds)[-20:]:
        if meta := files.text(root / ".ralph" / "runs" / f"run-{run.id}-iter-{number}.md"):
            notes.append((f"Summary of iteration {number}", meta[:_MAX_NOTE]))
    tokens = sum(part.tokens for part in run.rounds.values())
    facts = [("stories", plan.count), ("tokens, estimated by the runner", f"{tokens:,}" if tokens else "")]
    return LoopDetails(
        loop_id=loop.id,
        iterations=loop.iterations,
        notes=tuple(notes),
        facts=tuple((name, value) for name, value in facts if value),
    )
