"""Th0rgal/open-ralph-wiggum and its state file; docs/adapter-files.md#open-ralph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.base.regexes import lazy_regex
from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource
from core.records.times import minute_of, newest, parse_time
from core.sources.adapters.contract import Delivery
from core.sources.adapters.runner_files import MAX_LABEL, compact_time, cut
from core.sources.adapters.runs import MAX_NOTE, RunnerAdapter, Seen, State, remember_states
from core.sources.normalize import Fields
from core.sources.normalize import text as as_text

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.runner_files import RunnerFiles

STATE: Final = ".ralph/ralph-loop.state.json"
HISTORY: Final = ".ralph/ralph-history.json"
_TASKS: Final = ".ralph/ralph-tasks.md"
_QUESTIONS: Final = ".ralph/ralph-questions.json"
_CONTEXT: Final = ".ralph/ralph-context.md"
_AGENTS: Final = {"claude-code": "claude"}
_USUAL: Final = timedelta(minutes=30)  # time without a change after which a loop without iterations is stale
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_SHORTEST: Final = timedelta(minutes=2)
_MAX_ITERATIONS: Final = 1000
_MAX_ITEMS: Final = 100
_KEPT: Final = (
    *("active", "iteration", "maxIterations", "completionPromise", "abortPromise", "tasksMode", "prompt"),
    *("startedAt", "model", "agent"),
)  # fields of a state that are remembered
_SIGNS: Final = {"noProgressIterations": "iterations without progress", "shortIterations": "short iterations"}
_BOX: Final = lazy_regex(r"\s*[-*]\s+\[([ xX/])\]\s*(.*)")


class OpenRalphAdapter(RunnerAdapter):
    """Reads state, history and tasks; the state is remembered when it vanishes."""

    name = "open-ralph"
    title = "open-ralph-wiggum"
    versions = "1.2 to 1.3"
    contains = "iterations with tools, files and errors, tasks, questions, agent and model"
    lacks = "tokens, cost, lessons, why it ended"
    marks = {STATE: (b'"iteration"',), HISTORY: (b'"iterations"',)}

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        states = dict(found for root in files.folders.roots if (found := _state(root, files)))
        seen = remember_states(files, states, moment.now)
        # The history is that of the newest loop in its folder.
        newest_of = {_root(one): id for id, one in sorted(seen.items(), key=lambda pair: _start(pair[1].state))}
        for id, one in seen.items():
            root = _root(one)
            if root in files.folders.roots:
                entries = _history(root, files) if newest_of[root] == id else ()
                started = parse_time(_start(one.state))
                yield self._loop(
                    id, root, one, [entry for entry in entries if _is_since(entry, started)], files, moment
                )
        for root in files.folders.roots:
            if root not in newest_of and (entries := _history(root, files)):
                begun = entries[0].time("startedAt")
                id = _id(root, begun.isoformat() if begun else "", files)
                yield self._loop(id, root, Seen({}, moment.now, moment.now), entries, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        root = Path(loop.cwd) if loop.cwd else files.folders.project
        notes = [("Prompt", loop.task)]
        if loop.files:
            notes += [(Path(name).name, files.text(root / name)[:MAX_NOTE]) for name in (_TASKS, _CONTEXT)]
            notes += [("Question", question) for question in _questions(root, files)]
        return self.make_details(loop, notes, _struggles(root, files) if loop.iterations else ())

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        if loop.status.ended or not context.strip():
            return None
        explanation = "Its next iteration gets this text once. Run the command in the folder of the loop."
        return Delivery(explanation=explanation, command=("ralph", "--add-context", context))

    def _loop(
        self, id: str, root: Path, seen: Seen, entries: Sequence[Fields], files: RunnerFiles, moment: Moment
    ) -> Loop:
        fields = Fields(files.shown(root / STATE), seen.state, [])
        is_open = seen.missing_since is None
        iterations = tuple(map(_iteration, entries))
        times = [one.at for one in iterations]
        written = [root / STATE, root / HISTORY] if is_open or entries else []
        last = newest(fields.time("startedAt"), *times, *(map(files.modified_at, written) if is_open else ()))
        done, limit = max((one.number or 0 for one in iterations), default=0), fields.count("maxIterations") or None
        newest_entry = entries[-1] if entries else Fields("", {}, [])
        is_claimed = newest_entry.flag("completionDetected") is True
        if is_open:
            state = _open_state(fields, _questions(root, files), iterations, last, moment.now)
        else:
            state = _ended_state(done, limit, is_claimed, has_history=bool(entries))
        boxes = [box for line in files.text(root / _TASKS).split("\n") if (box := _BOX.fullmatch(line))]
        tasks = boxes[:_MAX_ITERATIONS] if fields.flag("tasksMode") and written else []
        agent = fields.text("agent") or newest_entry.text("agent")
        return self.make_loop(
            id,
            root,
            state,
            files,
            moment,
            written=written,
            last=last,
            ended=newest(*times) or (seen.missing_since if seen.state else None),
            task=cut(fields.text("prompt"))
            or next((cut(box[2], MAX_LABEL) for box in boxes if box[1] not in "xX"), ""),
            criteria=tuple(cut(box[2], MAX_LABEL) for box in tasks),
            owner=_AGENTS.get(agent, cut(agent, MAX_LABEL)),
            model=cut(fields.text("model") or newest_entry.text("model"), MAX_LABEL),
            iteration=fields.count("iteration") or done or None,
            max_iterations=limit,
            iterations=iterations,
            started_at=fields.time("startedAt") or (entries[0].time("startedAt") if entries else None),
            progress=Progress(
                stories=len(tasks) or None,
                stories_done=sum(box[1] in "xX" for box in tasks) if tasks else None,
                files_changed=len({name for one in iterations for name in one.files}) if entries else None,
                is_claimed=is_claimed,
                changed_at=newest(*(one.at for one in iterations if one.files)),
            ),
        )


def _open_state(
    fields: Fields, questions: Sequence[str], iterations: Sequence[Iteration], last: datetime | None, now: datetime
) -> State:
    """Return the state by a present file: fresh up to twice the longest iteration."""
    if fields.flag("active") is False:
        return State(reason="not active", why="its state file says that it is not active")
    longest = max((one.duration_ms or 0 for one in iterations), default=0)
    limit = max(timedelta(milliseconds=min(longest, 1e9) * 2), _SHORTEST) if longest else _USUAL
    liveness, why = Liveness.UNKNOWN, "no time in its files"
    if last is not None:
        last = min(last, now)
        liveness, why = Liveness.FRESH, f"last change {minute_of(last)} UTC"
        if now - last >= limit:
            liveness, why = Liveness.STALE, f"{why}, no known process"
    if questions:
        question = cut(questions[-1], MAX_LABEL)
        return State(LoopStatus.WAITING, "question", liveness, why, StateSource.REPORTED, question=question)
    return State(LoopStatus.RUNNING, "", liveness, why)


def _ended_state(done: int, limit: int | None, is_claimed: bool, *, has_history: bool) -> State:
    """Return the end of a loop whose file vanished."""
    status, reason = LoopStatus.UNKNOWN, "cleared after a promise or an abort"
    if is_claimed:
        status, reason = LoopStatus.COMPLETED, "completion promise"
    elif limit and done >= limit:
        status, reason = LoopStatus.LIMIT, f"{done} of {limit} iterations"
    elif has_history:
        reason = f"stopped after {done} iterations"
    return State(status, reason, Liveness.ENDED, "its state file is gone")


def _id(root: Path, started: str, files: RunnerFiles) -> str:
    return f"open-ralph:{files.folders.prefix_of(root)}{compact_time(started) or 'loop'}"


def _start(state: dict[str, Any]) -> str:
    return as_text(state.get("startedAt"))


def _root(seen: Seen) -> Path:
    return Path(as_text(seen.state.get("root")))


def _is_since(entry: Fields, started: datetime | None) -> bool:
    begun = entry.time("startedAt")
    return started is None or begun is None or begun >= started - _CLOCK_TOLERANCE


def _state(root: Path, files: RunnerFiles) -> tuple[str, dict[str, Any]] | None:
    value = files.json(root / STATE)
    if not isinstance(value, dict) or "iteration" not in value:
        return None
    kept = {name: value[name] for name in _KEPT if isinstance(value.get(name), str | int | float | bool)}
    kept |= {"prompt": cut(kept.get("prompt")), "root": str(root)}
    return _id(root, _start(kept), files), kept


def _history(root: Path, files: RunnerFiles) -> list[Fields]:
    """Return the entries of the history, oldest first."""
    value = files.json(root / HISTORY)
    entries = value.get("iterations") if isinstance(value, dict) else None
    last = {"iterations": entries[-_MAX_ITERATIONS:] if isinstance(entries, list) else []}
    return [entry for _, entry in Fields(files.shown(root / HISTORY), last, []).objects("iterations")]


def _iteration(entry: Fields) -> Iteration:
    tools, code = entry.inside("toolsUsed"), entry.number("exitCode")
    is_completed = entry.flag("completionDetected") is True
    return Iteration(
        number=entry.count("iteration"),
        at=entry.time("endedAt") or entry.time("startedAt"),
        action=cut(" ".join(filter(None, (entry.text("agent"), entry.text("model")))), MAX_LABEL),
        result="completion promise detected" if is_completed else f"exit code {code:g}" if code else "",
        outcome=Outcome.SUCCESS if is_completed else Outcome.FAILURE if code else Outcome.UNKNOWN,
        duration_ms=entry.duration("durationMs"),
        files=tuple(cut(name, MAX_LABEL) for name in entry.texts("filesModified")[:_MAX_ITEMS]),
        failures=tuple(Failure(message=cut(error)) for error in entry.texts("errors")[:_MAX_ITEMS]),
        tools=tuple(cut(str(name), MAX_LABEL) for name in (tools.mapping if tools else {}))[:_MAX_ITEMS],
    )


def _struggles(root: Path, files: RunnerFiles) -> Iterator[tuple[str, str]]:
    """Yield what the runner itself counted as signs of trouble."""
    value = files.json(root / HISTORY)
    signs = Fields("", value, []).inside("struggleIndicators") if isinstance(value, dict) else None
    if signs is not None:
        yield from ((label, f"{count:,}") for name, label in _SIGNS.items() if (count := signs.count(name)))
        for error, times in list(signs.items("repeatedErrors"))[:_MAX_ITEMS]:
            if isinstance(times, int) and times > 1:
                yield "repeated error", cut(error, MAX_LABEL)


def _questions(root: Path, files: RunnerFiles) -> list[str]:
    value = files.json(root / _QUESTIONS)
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return [cut(as_text(row.get("question"))) for row in rows[:_MAX_ITEMS]]
