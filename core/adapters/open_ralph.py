"""Th0rgal/open-ralph-wiggum, whose state file vanishes at the end (docs/adapter-files.md#open-ralph)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.adapters.contract import Delivery, Places
from core.adapters.values import MAX_LABEL, compact_time, cut, head_of, newest
from core.adapters.vanishing import remember_states
from core.base.regexes import lazy_regex
from core.records.debug_sessions import Failure
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
from core.records.times import minute_of, parse_time
from core.sources.fields import Fields
from core.sources.normalize import text as as_text

if TYPE_CHECKING:
    from core.adapters.contract import Folders, Moment
    from core.adapters.runner_files import RunnerFiles
    from core.records.lessons import Lesson

STATE: Final = "ralph-loop.state.json"
HISTORY: Final = "ralph-history.json"
_OTHERS: Final = ("ralph-tasks.md", "ralph-questions.json", "ralph-context.md")
_AGENTS: Final = {"claude-code": "claude", "copilot": "copilot", "codex": "codex", "opencode": "opencode"}
_USUAL: Final = timedelta(minutes=30)  # time without a change after which a loop without iterations is stale
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_SHORTEST: Final = timedelta(minutes=2)
_MAX_ITERATIONS: Final = 1000
_MAX_ITEMS: Final = 100
_KEPT: Final = (
    *("active", "iteration", "maxIterations", "completionPromise", "abortPromise", "tasksMode", "prompt"),
    *("startedAt", "model", "agent"),
)  # fields of a state that are remembered
_BOX: Final = lazy_regex(r"\s*[-*]\s+\[([ xX/])\]\s*(.*)")


class _Round(Struct):
    """One entry of the history."""

    iteration: Iteration
    started_at: datetime | None
    is_completed: bool


class OpenRalphAdapter:
    """Reads the state, the history and the tasks; the state is remembered when it vanishes."""

    name = "open-ralph"
    title = "open-ralph-wiggum"
    versions = "1.2 to 1.3"
    contains = "iterations with tools, files and errors, tasks, questions, agent and model"
    lacks = "tokens, cost, lessons, why it ended"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        for name, key in ((STATE, b'"iteration"'), (HISTORY, b'"iterations"')):
            if key in head_of(folders.project / ".ralph" / name, folders.project):
                return (f".ralph/{name}",)
        return ()

    def places(self, folders: Folders) -> Places:
        return Places(
            watched=tuple(root / ".ralph" / name for root in folders.roots for name in (STATE, HISTORY, *_OTHERS))
        )

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        states = dict(found for root in files.folders.roots if (found := _state(root, files)))
        seen = remember_states(files, states, moment.now)
        latest: dict[Path, str] = {}
        for identifier, one in seen.items():  # the history is that of the newest loop in its folder
            root = Path(as_text(one.state.get("root")))
            if root not in latest or _start(seen[latest[root]].state) <= _start(one.state):
                latest[root] = identifier
        for identifier, one in seen.items():
            root = Path(as_text(one.state.get("root")))
            if root in files.folders.roots:
                started = parse_time(_start(one.state))
                rounds = [part for part in _history(root, files) if _is_since(part, started)]
                rounds = rounds if latest[root] == identifier else []
                yield _loop(identifier, root, one.state, one.missing_since, rounds, files, moment)
        for root in files.folders.roots:
            if root not in latest and (rounds := list(_history(root, files))):
                started = rounds[0].started_at
                identifier = _id(root, started.isoformat() if started else "", files)
                yield _loop(identifier, root, {}, None, rounds, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        root = Path(loop.cwd) if loop.cwd else files.folders.project
        notes = [("Prompt", loop.task)] if loop.task else []
        if loop.files:
            for name in ("ralph-tasks.md", "ralph-context.md"):
                if text := files.text(root / ".ralph" / name):
                    notes.append((name, text[:64_000]))
            notes += [("Question", question) for question in _questions(root, files)]
        facts = tuple(_struggles(root, files)) if loop.iterations else ()
        return LoopDetails(loop_id=loop.id, iterations=loop.iterations, notes=tuple(notes), facts=facts)

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        if loop.status.ended or not context.strip():
            return None
        explanation = "Its next iteration gets this text once. Run the command in the folder of the loop."
        return Delivery(explanation=explanation, command=("ralph", "--add-context", context))


def _id(root: Path, started: str, files: RunnerFiles) -> str:
    return f"open-ralph:{files.folders.prefix_of(root)}{compact_time(started) or 'loop'}"


def _start(state: dict[str, Any]) -> str:
    return as_text(state.get("startedAt"))


def _is_since(part: _Round, started: datetime | None) -> bool:
    return started is None or part.started_at is None or part.started_at >= started - _CLOCK_TOLERANCE


def _state(root: Path, files: RunnerFiles) -> tuple[str, dict[str, Any]] | None:
    path = root / ".ralph" / STATE
    value = files.json(path) if files.exists(path) else None
    if not isinstance(value, dict) or "iteration" not in value:
        return None
    kept = {name: value[name] for name in _KEPT if isinstance(value.get(name), str | int | float | bool)}
    kept["prompt"] = cut(kept.get("prompt"))
    kept["root"] = str(root)
    return _id(root, _start(kept), files), kept


def _history(root: Path, files: RunnerFiles) -> Iterator[_Round]:
    path = root / ".ralph" / HISTORY
    value = files.json(path) if files.exists(path) else None
    if not isinstance(value, dict):
        return
    entries = value.get("iterations")
    fields = Fields(
        files.shown(path), {"iterations": entries[-_MAX_ITERATIONS:]} if isinstance(entries, list) else {}, []
    )
    for _, entry in fields.objects("iterations"):
        tools = entry.inside("toolsUsed")
        errors = entry.texts("errors")[:_MAX_ITEMS]
        is_completed = entry.flag("completionDetected") is True
        code = entry.number("exitCode")
        outcome = Outcome.SUCCESS if is_completed else Outcome.FAILURE if code else Outcome.UNKNOWN
        agent = " ".join(filter(None, (entry.text("agent"), entry.text("model"))))
        ended = entry.time("endedAt")
        iteration = Iteration(
            number=entry.count("iteration"),
            at=ended or entry.time("startedAt"),
            action=cut(agent, MAX_LABEL),
            result="completion promise detected" if is_completed else f"exit code {code:g}" if code else "",
            outcome=outcome,
            duration_ms=entry.duration("durationMs"),
            files=tuple(cut(name, MAX_LABEL) for name in entry.texts("filesModified")[:_MAX_ITEMS]),
            failures=tuple(Failure(message=cut(error)) for error in errors),
            tools=tuple(cut(str(name), MAX_LABEL) for name in (tools.mapping if tools else {}))[:_MAX_ITEMS],
        )
        yield _Round(iteration, entry.time("startedAt"), is_completed)


def _struggles(root: Path, files: RunnerFiles) -> Iterator[tuple[str, str]]:
    """Yield what the runner itself counted as signs of trouble."""
    value = files.json(root / ".ralph" / HISTORY)
    signs = Fields("", value, []).inside("struggleIndicators") if isinstance(value, dict) else None
    if signs is None:
        return
    for name, label in (
        ("noProgressIterations", "iterations without progress"),
        ("shortIterations", "short iterations"),
    ):
        if count := signs.count(name):
            yield label, f"{count:,}"
    for error, times in list(signs.items("repeatedErrors"))[:_MAX_ITEMS]:
        if isinstance(times, int) and times > 1:
            yield "repeated error", cut(error, MAX_LABEL)


def _questions(root: Path, files: RunnerFiles) -> list[str]:
    path = root / ".ralph" / "ralph-questions.json"
    value = files.json(path) if files.exists(path) else None
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return [cut(as_text(row.get("question"))) for row in rows[:_MAX_ITEMS]]


def _loop(
    identifier: str,
    root: Path,
    state: dict[str, Any],
    missing_since: datetime | None,
    rounds: list[_Round],
    files: RunnerFiles,
    moment: Moment,
) -> Loop:
    folder = root / ".ralph"
    fields = Fields(files.shown(folder / STATE), state, [])
    is_open = bool(state) and missing_since is None
    limit = fields.count("maxIterations") or None
    last = rounds[-1] if rounds else None
    done = max((part.iteration.number or 0 for part in rounds), default=0)
    times = [part.iteration.at for part in rounds]
    changed_at = newest(*(files.modified_at(folder / name) for name in (STATE, HISTORY))) if is_open or rounds else None
    last_sign = newest(fields.time("startedAt"), *times, changed_at if is_open else None)
    if last_sign is not None:
        last_sign = min(last_sign, moment.now)
    status, source, reason = LoopStatus.UNKNOWN, StateSource.INFERRED, ""
    liveness, why = Liveness.ENDED, "its state file is gone"
    question = ""
    if is_open and fields.flag("active") is False:
        reason, liveness, why = "not active", Liveness.UNKNOWN, "its state file says that it is not active"
    elif is_open:
        status, source = LoopStatus.RUNNING, StateSource.INFERRED
        liveness, why = _age(rounds, last_sign, moment.now)
        if questions := _questions(root, files):
            status, source, reason = LoopStatus.WAITING, StateSource.REPORTED, "question"
            question = cut(questions[-1], MAX_LABEL)
    elif last is not None and last.is_completed:
        status, reason = LoopStatus.COMPLETED, "completion promise"
    elif limit and done >= limit:
        status, reason = LoopStatus.LIMIT, f"{done} of {limit} iterations"
    elif last is not None:
        reason = f"stopped after {done} iterations"
    else:
        reason = "cleared after a promise or an abort"
    if status.ended:
        liveness = Liveness.ENDED
    boxes = [box for line in files.text(folder / "ralph-tasks.md").split("\n") if (box := _BOX.fullmatch(line))]
    tasks = boxes[:_MAX_ITERATIONS] if fields.flag("tasksMode") and (is_open or rounds) else []
    changed = {name for part in rounds for name in part.iteration.files}
    agent = fields.text("agent") or (last.iteration.action.partition(" ")[0] if last else "")
    names = (STATE, HISTORY) if is_open or rounds else ()
    return Loop(
        id=identifier,
        runner="open-ralph",
        sources=("open-ralph",),
        task=cut(fields.text("prompt")) or next((cut(box[2], MAX_LABEL) for box in boxes if box[1] not in "xX"), ""),
        criteria=tuple(cut(box[2], MAX_LABEL) for box in tasks),
        status=status,
        state_source=source,
        end_reason=reason,
        owner=_AGENTS.get(agent, cut(agent, MAX_LABEL)),
        model=cut(fields.text("model") or (last.iteration.action.partition(" ")[2] if last else ""), MAX_LABEL),
        cwd=files.folders.cwd_of(root),
        iteration=fields.count("iteration") or done or None,
        max_iterations=limit,
        iterations=tuple(part.iteration for part in rounds),
        started_at=fields.time("startedAt") or (rounds[0].started_at if rounds else None),
        ended_at=(newest(*times) or missing_since) if liveness is Liveness.ENDED else None,
        ended_approximate=liveness is Liveness.ENDED,
        last_activity=last_sign,
        modified_at=changed_at,
        liveness=liveness,
        liveness_reason=why,
        question=question,
        badges=("stale",) if liveness is Liveness.STALE else (),
        progress=Progress(
            stories=len(tasks) or None,
            stories_done=sum(box[1] in "xX" for box in tasks) if tasks else None,
            files_changed=len(changed) if rounds else None,
            is_claimed=last is not None and last.is_completed,
            changed_at=newest(*(part.iteration.at for part in rounds if part.iteration.files)),
        ),
        files=tuple(files.shown(folder / name) for name in names if files.exists(folder / name)),
    )


def _age(rounds: list[_Round], last_sign: datetime | None, now: datetime) -> tuple[Liveness, str]:
    """Return whether the last change is younger than twice the longest iteration."""
    if last_sign is None:
        return Liveness.UNKNOWN, "no time in its files"
    longest = max((part.iteration.duration_ms or 0 for part in rounds), default=0)
    limit = max(timedelta(milliseconds=min(longest, 1e9) * 2), _SHORTEST) if longest else _USUAL
    since = f"last change {minute_of(last_sign)} UTC"
    return (Liveness.FRESH, since) if now - last_sign < limit else (Liveness.STALE, f"{since}, no known process")
