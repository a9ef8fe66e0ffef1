"""The tools, resources and prompts of the server, and the project that it serves.

First the tools that read: contexts, fixes, patterns, past tasks and loops; then those that report outcomes and propose
lessons, which a person reviews. The project is opened once, up to date for each call, one call at a time.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from heapq import nsmallest
from itertools import takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from core.agents.mcp_server.results import (
    MAX_TOKENS,
    Fix,
    FoundPatterns,
    HeldMark,
    KnownFixes,
    LoopContext,
    LoopRow,
    Loops,
    PastTask,
    PastTasks,
    PatternDetails,
    Proposal,
    Report,
    describe_row,
    fence,
    is_withheld,
    join_blocks,
    list_patterns,
    name,
    pattern_row,
    pattern_text,
    quote,
    safe_text,
)
from core.base.errors import BadInput, DamagedError, RalphdeckError, ReadOnly, Refused, UnknownRecord
from core.base.masking import mask_secrets
from core.base.paths import relative_to_project
from core.base.prompt_text import APPROVED, Blocks
from core.base.scanning.verdict import describe_rule
from core.base.text import plural, visible
from core.index.contexts import prepare_task_injection, task_relevance
from core.index.experiment import coin_at_work, draw_coin, with_open_tasks
from core.index.project_state import explain_pattern as explain_state
from core.index.project_state import ledger_error
from core.learning.bursts import format_burst, source_of
from core.learning.maturity import CODES
from core.project.error_advice import hold_out, on_failure
from core.questions.extraction.learnings import make_lesson
from core.questions.extraction.material import parse_pattern
from core.records.debug_sessions import Failure
from core.records.decisions import CLIENT
from core.records.events import Event, Signals
from core.records.loops import Liveness, Loop, LoopStatus
from core.records.patterns import Maturity, Pattern, PatternType, Severity
from core.records.times import iso
from core.retrieval.rendering import count_tokens, join_parts
from core.tasks.escalations import find_escalation
from core.tasks.protocol import Episodes
from core.tasks.task_links import SimilarTask, find_similar_tasks
from core.trust.projects import FOR_AGENTS, is_trusted

if TYPE_CHECKING:
    from core.base.settings import InjectionSettings
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.retrieval.injection import Injection
    from core.tasks.known_fixes import KnownFix

MAX_CALLS: Final = 60  # calls in a minute
_MINUTE: Final = 60.0
_MAX_CLIENT: Final = 40  # characters of the name of a client
_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9._]+")
TYPES: Final = {
    "approach": ("include_success_patterns", "include_code_templates"),
    "anti_pattern": ("include_anti_patterns",),
    "error_fix": ("include_error_patterns",),
    "decision": ("include_reflections",),
}
"""The settings of the words of `types`; what earlier work decided is in its reflections."""
WAITING: Final = frozenset({LoopStatus.WAITING, LoopStatus.PAUSED})
_SAME_INJECTION: Final = timedelta(hours=1)  # in which the same task of a loop gets the same ID
_INJECTED: Final = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}")  # end of the ID of an injection
_NOTHING: Final = "No lesson of earlier work matches this task.\n"
_USABLE: Final = ("candidate", "established", "proven")
_MAX_LOOPS: Final = 20  # loops that explain the rate of a pattern
_MAX_LEARNED: Final = 5
_MAX_LINE: Final = 200  # characters of a text in a list


def sign(client: str) -> str:
    """Return the signature of a client: `mcp:claude-code`; its name is untrusted."""
    name = _NOT_IN_NAME.sub("-", client[: 4 * _MAX_CLIENT].lower())[:_MAX_CLIENT].strip("-._")
    return f"{CLIENT}{name or 'unknown'}"


class Session:
    """One open project for the agents of one server.

    `load` reads the records of the project; it is called once. `clock` returns monotonic seconds.
    """

    def __init__(self, project: Project, load: Callable[[], object], *, clock: Callable[[], float] = monotonic) -> None:
        self.project = project
        self.is_readonly = project.is_readonly
        self.injections: dict[tuple[str, str], tuple[str, datetime]] = {}
        """IDs and times of the injections of the last hour, by work item and digest of the task."""
        self._started = project.now()
        self._load = load
        self._clock = clock
        self._lock = threading.RLock()
        self._is_loaded = False
        self._calls: deque[float] = deque(maxlen=MAX_CALLS)

    def open(self) -> None:
        """Read the records, unless that was done before."""
        with self._lock:
            if not self._is_loaded:
                self._load()
                self._is_loaded = True

    @contextmanager
    def call(self, client: str = "", *, writes: bool = False) -> Iterator[ProjectState]:
        """Give the newest state to one call of a client.

        Raises Refused for too many calls in a minute, in a project that the user does not trust, or if the decisions
        cannot be read, because the texts that are withheld are then unknown; ReadOnly if a read-only server is asked to
        write.
        """
        if writes and self.is_readonly:
            raise ReadOnly("this server is read-only")
        with self._lock:
            self._count_call()
            if not is_trusted(self.project.project):
                raise Refused(FOR_AGENTS)
            if self._is_loaded:
                self.project.apply(None)
            else:
                self.open()
            self.project.by, self.project.agent = sign(client), sign(client).removeprefix(CLIENT)
            state = with_open_tasks(self.project.view, self.project.project)
            if problem := ledger_error(state):
                raise Refused(f"nothing is answered, because the decisions cannot be read: {problem}")
            try:
                yield state
            except DamagedError:
                self.project.recover()  # for the next call
                raise

    def own_work_id(self, client: str) -> str:
        """Return the work ID of a client that names no loop: one per run of the server."""
        return f"{sign(client)}@{self._started:%Y%m%dT%H%M%S}"

    def _count_call(self) -> None:
        now = self._clock()
        if len(self._calls) == MAX_CALLS and now - self._calls[0] < _MINUTE:
            wait = max(round(_MINUTE - (now - self._calls[0])), 1)
            raise Refused(f"{MAX_CALLS} calls in the last minute; try again in {wait} s")
        self._calls.append(now)


def loop_context(
    session: Session,
    task: str,
    loop: str | None = None,
    max_tokens: int = MAX_TOKENS,
    types: Sequence[str] | None = None,
    *,
    client: str = "",
) -> LoopContext:
    """Return what a loop with this task gets; for a `loop`, record that it got it."""
    with session.call(client) as state:
        _require(task, "task")
        work_id = find_work(state, loop) if loop else ""
        with suppress(RalphdeckError):  # without vectors, words are compared
            session.project.embed_few()
        settings = _settings(state, max_tokens, types)
        coin = draw_coin(state, task)
        injection = prepare_task_injection(state, task, settings, coin=coin)
        if not session.is_readonly and (work_id or coin_at_work(state)):
            session.project.assign(work_id or session.own_work_id(client), injection.task, injection.assigned)
        text = injection.context or _NOTHING
        injection_id = None
        if work_id and not session.is_readonly:
            injection_id = _record(session, state, work_id, task, injection)
        left_out = sum(
            one.score > 0 and state.assessment(one.pattern_id).injectable
            for one in injection.left_out
            if one.pattern_id in state.board
        )
        rows = [pattern_row(state, state.snapshot.patterns[one.pattern_id]) for one in injection.chosen]
        return LoopContext(injection_id, rows, count_tokens(text), left_out, text=text)


def _settings(state: ProjectState, max_tokens: int, types: Sequence[str] | None) -> InjectionSettings:
    changes: dict[str, Any] = {"max_tokens": max_tokens}
    if types is not None:
        changes |= {setting: word in types for word, settings in TYPES.items() for setting in settings}
    return msgspec.structs.replace(state.settings.injection, **changes)


def _record(session: Session, state: ProjectState, work_id: str, task: str, injection: Injection) -> str:
    """Record the injection; return its ID: work item, time, and digest of the task."""
    digest = hashlib.sha256(task.strip().encode("utf-8", "replace")).hexdigest()[:8]
    now = session.project.now()
    recent = {key: one for key, one in session.injections.items() if one[1] > now - _SAME_INJECTION}
    known = recent.get((work_id, digest)) or _find_injection(state, work_id, digest, now)
    found, _ = recent[work_id, digest] = known or (f"{work_id}@{now:%Y%m%dT%H%M%S}-{digest}", now)
    session.injections = recent
    session.project.inject(work_id, injection, comment=found)
    return found


def _find_injection(state: ProjectState, work_id: str, digest: str, now: datetime) -> tuple[str, datetime] | None:
    """Return ID and time of an injection that another server recorded within an hour."""
    for event in reversed(state.snapshot.events):
        if event.at <= now - _SAME_INJECTION:
            break
        start, _, end = event.text.rpartition("@")
        is_injection = event.kind.startswith("injected") and event.loop_id == start == work_id
        if is_injection and _INJECTED.fullmatch(end) and end.endswith(digest):
            return event.text, event.at
    return None


def find_work(state: ProjectState, loop: str) -> str:
    """Return the ID of a loop, attempt or task's newest attempt; or UnknownRecord."""
    if loop in state.snapshot.tasks:
        numbers = [one.number for one in state.snapshot.attempts.values() if one.task_id == loop]
        return f"{loop}.{max(numbers)}" if numbers else loop
    return state.work_id(loop)


def known_fix(
    session: Session, message: str, error_type: str = "", file: str = "", limit: int = 3, *, client: str = ""
) -> KnownFixes:
    """Return what solved an error before: fixes of debug sessions, error patterns."""
    with session.call(client) as state:
        _require(message, "message")
        place = relative_to_project(file, str(session.project.project.project))
        advice = on_failure(state, Failure(error_type=error_type, message=message, file=place), most=limit)
        if (coin := coin_at_work(state)) is not None:
            assigned = coin.assign_all(advice.patterns)
            if not session.is_readonly:
                session.project.assign(session.own_work_id(client), coin.logged_task, assigned)
            advice = hold_out(state, advice, [one.pattern_id for one in assigned if one.is_held_out])
        fixes = [_fix(state, one) for one in advice.fixes]
        fixes += [
            Fix(
                fix=quote(state, pattern.description),
                category=quote(state, pattern.category),
                seen=found.uses,
                held=found.successes,
                origin=name(pattern.id),
                match="pattern",
            )
            for pattern, found in advice.patterns
        ]
        text = fence(advice.blocks) if advice.text else "No fix of this error is known.\n"
        return KnownFixes(bool(advice.text), fixes[:limit], text=text)


def _fix(state: ProjectState, fix: KnownFix) -> Fix:
    return Fix(
        fix=quote(state, fix.fix or fix.strategy),
        category=quote(state, fix.category),
        seen=fix.results.known,
        held=fix.results.passed,
        origin=name(fix.session.id),
        match="message" if fix.is_similar else "error_type",
    )


def search_patterns(
    session: Session, query: str, states: Sequence[str] | None = None, limit: int = 8, *, client: str = ""
) -> FoundPatterns:
    """Return titles of matching patterns; without `states`, those not deprecated."""
    with session.call(client) as state:
        _require(query, "query")
        wanted = {CODES[Maturity(word)] for word in states or _USABLE}
        codes, board = state.board.state_codes, state.board
        found = [
            pattern
            for pattern in _find_patterns(state, query)
            if codes[board.row(pattern.id)] in wanted and not is_withheld(state, pattern)
        ]
        rows = [pattern_row(state, pattern) for pattern in found[:limit]]
        head = f"{plural(len(found), 'pattern')} found. explain_pattern has the text of one."
        return FoundPatterns(rows, len(found), text=fence(list_patterns(state, rows), head))


def _find_patterns(state: ProjectState, query: str) -> Iterator[Pattern]:
    """Yield patterns with the text in ID or title, then relevant ones, best first."""
    text, patterns = query.strip().casefold(), state.snapshot.patterns
    named = [one for one in patterns.values() if text in one.id.casefold() or text in one.title.casefold()]
    yield from named
    found, known = task_relevance(state, query, learnings=()), {one.id for one in named}
    ids = [state.index.ids[row] for row in found.rows.tolist()]
    for place in sorted(range(len(ids)), key=lambda place: (-found.values[place], ids[place])):
        pattern_id = ids[place]
        if found.values[place] > 0 and pattern_id not in known and pattern_id in patterns:
            yield patterns[pattern_id]


def explain_pattern(session: Session, pattern_id: str, *, client: str = "") -> PatternDetails:
    """Return a pattern's text, the rules of its state, and the loops of its rate."""
    with session.call(client) as state:
        pattern = state.find_pattern(pattern_id)
        row, body, found = pattern_row(state, pattern), pattern_text(state, pattern), explain_state(state, pattern.id)
        reasons = [quote(state, f"{line.label}: {line.text}", _MAX_LINE) for line in found.lines]
        results = [(one.loop_id, one.helpful, one.harmful) for one in found.loops[:_MAX_LOOPS]]
        loops = [f"{quote(state, id, 200)}: {good:.2f} helpful, {bad:.2f} harmful" for id, good, bad in results]
        lists = ["\n".join([f"{head}:", *(f"- {one}" for one in lines)]) if lines else "" for head, lines in (
            ("Why this state", reasons), ("Loops", loops)
        )]  # fmt: skip
        text, reasoning = join_blocks(describe_row(row), body), join_blocks(*(safe_text(state, one) for one in lists))
        approved = text if row.voice == APPROVED else ""
        unreviewed = reasoning if approved else join_parts(text, reasoning)
        return PatternDetails(row, reasons, loops, text=fence(Blocks(approved, unreviewed)))


def past_attempts(session: Session, task: str, limit: int = 3, *, client: str = "") -> PastTasks:
    """Return similar tasks with their outcomes and learnings."""
    with session.call(client) as state:
        _require(task, "task")
        with suppress(RalphdeckError):  # without vectors, words are compared
            session.project.embed_few()
        found = find_similar_tasks(task, state.snapshot, state.task_embeddings, limit)
        tasks = [_past_task(state, one) for one in found]
        blocks = [
            "\n".join([f"- {one.task} ({one.outcome}, {plural(one.attempts, 'attempt')})", *_details(one)])
            for one in tasks
        ]
        notes = join_blocks(safe_text(state, "\n".join(blocks)))
        return PastTasks(tasks, text=fence(Blocks(unreviewed=notes)) or "No similar task is known.\n")


def _details(task: PastTask) -> Iterator[str]:
    if task.approach:
        yield f"  - Approach: {task.approach}"
    yield from (f"  - Learning: {text}" for text in task.learned)


def _past_task(state: ProjectState, found: SimilarTask) -> PastTask:
    attempts = sorted(
        (one for one in state.snapshot.attempts.values() if one.task_id == found.task_id), key=lambda one: one.number
    )
    return PastTask(
        task=quote(state, f"{found.task_id}: {found.description}", _MAX_LINE),
        outcome=found.outcome.value,
        attempts=len(attempts),
        approach=quote(state, attempts[-1].plan, _MAX_LINE) if attempts else "",
        learned=[quote(state, one.text, _MAX_LINE) for one in found.learnings[:_MAX_LEARNED]],
        similarity=round(found.score, 2),
    )


def list_loops(session: Session, status: str = "all", limit: int = 20, *, client: str = "") -> Loops:
    """Return the loops with this status, newest first."""
    with session.call(client) as state:
        loops = state.snapshot.loops.values()
        groups = {
            "active": state.active_loops,
            "waiting": [one for one in loops if one.status in WAITING],
            "ended": [one for one in loops if one.status.ended],
            "all": list(loops),
        }
        stuck = {
            session.loop_id
            for session in state.snapshot.debug_sessions.values()
            if session.loop_id and find_escalation(session, state.snapshot) is not None
        }
        rows = [loop_row(state, one, stuck) for one in groups[status][:limit]]
        running, waiting = len(groups["active"]), len(groups["waiting"])
        head = f"{plural(running, 'loop')} running, {waiting:,} waiting."
        lines = [
            f"- {one.id} ({one.status}{', needs a person' if one.needs_person else ''}, {_progress(one)}): {one.task}"
            for one in rows
        ]
        notes = join_blocks(safe_text(state, "\n".join(lines)))
        return Loops(rows, running, waiting, text=fence(Blocks(unreviewed=notes), head))


def _progress(row: LoopRow) -> str:
    most = f" of {row.max_iterations:,}" if row.max_iterations is not None else ""
    return f"iteration {row.iteration or 0:,}{most}"


def loop_row(state: ProjectState, loop: Loop, stuck: set[str]) -> LoopRow:
    """Describe a loop; `stuck` names the loops with an escalated debug session."""
    is_inferred = loop.status is LoopStatus.CRASHED or loop.liveness is Liveness.STALE
    is_external = any(source.startswith("external") for source in loop.sources)
    return LoopRow(
        id=name(loop.id),
        source="aiwg external" if is_external else "aiwg",
        status="stale" if loop.liveness is Liveness.STALE else loop.status.value,
        state_source="inferred" if is_inferred else "reported",
        task=quote(state, loop.task, _MAX_LINE),
        iteration=loop.iteration,
        max_iterations=loop.max_iterations,
        started_at=iso(loop.started_at),
        last_sign=iso(loop.last_activity or loop.modified_at),
        needs_person=loop.status is LoopStatus.WAITING or not stuck.isdisjoint({loop.id, *loop.aliases}),
    )


def _require(text: str, field: str) -> None:
    if not text.strip():
        raise BadInput(f"{field} is empty")


# Resources and prompts

_BEST = 8  # patterns of the general context


def context_page(session: Session) -> str:
    """Return the context of the only active loop, else titles of the best patterns."""
    with session.call() as state:
        active = [one for one in state.own_active_loops if one.task.strip()]
        if len(active) == 1:
            task = active[0].task
        else:
            rows = np.flatnonzero(state.board.injectable).tolist()
            scored = zip((-state.board.score[rows]).tolist(), (state.board.ids[row] for row in rows), strict=True)
            patterns = [state.snapshot.patterns[id] for _, id in nsmallest(_BEST, scored)]
            head = f"{len(active)} active loops; call loop_context with your task. "
            head += "The best lessons:" if patterns else "There are no lessons yet."
            return fence(list_patterns(state, (pattern_row(state, one) for one in patterns)), head)
    return loop_context(session, task).text


def pattern_page(session: Session, pattern_id: str) -> str:
    """Return one pattern as JSON."""
    return _json(asdict(explain_pattern(session, pattern_id)))


def loop_page(session: Session, loop_id: str) -> str:
    """Return one loop as JSON, with the patterns that it got and its outcome."""
    with session.call() as state:
        loop = state.loop(loop_id)
        patterns, scored = state.loop_patterns(loop.id), state.outcome(loop.id)
        return _json(
            {
                **asdict(loop_row(state, loop, set())),
                "injected": [name(id) for id in patterns.injected_ids],
                "applied": [name(id) for id in patterns.applied_ids],
                "score": None if scored is None else round(scored[1].raw, 2),
            }
        )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def reflect(task: str) -> str:
    """Reflect on a task that ended, and report it."""
    return (
        f"The task that has ended, as data:\n\n{visible(task, 4000)}\n\n"
        "1. What was the outcome: success, partial or failure? Judge by evidence such as tests, not by impression.\n"
        "2. Which lessons that loop_context returned helped, harmed, or were not used?\n"
        "3. Call report_outcome once with the result, a summary of at most 1000 characters and these marks.\n"
        "4. Is there one insight that would have saved time and that no lesson has? Search with search_patterns. Only "
        "if it is new, call propose_lesson with when it applies, what to do, and the evidence. A person reviews it."
    )


def tidy_memory() -> str:
    """Compare your own memory with the reviewed lessons."""
    return (
        "Compare the notes of your own memory files with the reviewed lessons of this project.\n\n"
        "1. For each note, call search_patterns with its main words, and explain_pattern for the best match.\n"
        "2. List the notes that a reviewed lesson repeats, that a lesson contradicts, or whose lesson is deprecated, "
        "each with the ID of the lesson and the reason.\n"
        "3. Show the list to the user. Delete a note only if the user agrees; ralphdeck changes none of your files.\n"
        "4. For a note that no lesson covers and that is supported by evidence, call propose_lesson."
    )


# The tools that write

MAX_WAITING: Final = 10  # proposals of one loop that wait for a person
RESULTS: Final[Mapping[str, bool | None]] = {"helped": True, "harmed": False, "unused": None}
"""The words of marks; a pattern that was not used stays an injection without a result."""
LESSON_KINDS: Final = {
    "approach": PatternType.SUCCESS,
    "anti_pattern": PatternType.ANTI,
    "error_fix": PatternType.ERROR,
}
_REPEATED: Final = timedelta(hours=1)  # in which the same report without a key is the same one


class Mark(NamedTuple):
    """Whether a pattern helped: one of the words of `RESULTS`."""

    pattern_id: str
    result: str


def report_outcome(
    session: Session,
    result: str,
    summary: str,
    loop: str | None = None,
    injection_id: str | None = None,
    marks: Sequence[Mark] = (),
    errors: int | None = None,
    retries: int | None = None,
    key: str | None = None,
    *,
    client: str = "",
) -> Report:
    """Record an outcome, which patterns helped, and an attempt's summary; all once."""
    with session.call(client, writes=True) as state:
        named = _find_reported(state, loop, injection_id)
        work_id = named or session.own_work_id(client)
        results = _read_marks(state, marks)
        given = key or repr((result, summary, injection_id, [*map(tuple, marks)], errors, retries))
        identity = repr((sign(client), named, bool(key), given)).encode("utf-8", "backslashreplace")
        digest = hashlib.sha256(identity).hexdigest()[:24]
        now = session.project.now()
        found = _find_report(state, digest, now, has_key=bool(key))
        if found is None:
            start = "mcp" if key else f"{now:%Y%m%dT%H%M%S%f}"  # one ID for one key, so that it counts only once
            make = partial(Event, at=now, loop_id=work_id, by=session.project.by, agent=session.project.agent)
            outcome = make(
                id=f"{start}-{digest}",
                kind="outcome",
                success=result == "success",
                text=mask_secrets(summary),
                signals=Signals(
                    error_count=errors, retry_count=retries, failure_mode="partial" if result == "partial" else ""
                ),
            )
            uses = [
                make(
                    id=f"{start}-{digest}-{number}",
                    kind="applied",
                    pattern_id=pattern_id,
                    success=helped,
                    text=injection_id or "",
                )
                for number, (pattern_id, helped) in enumerate(results.items(), 1)
            ]
            session.project.record(outcome, *uses)
            _reflect(session, state, work_id, summary)
        state = session.project.view
        scored = state.board.outcome(found.loop_id if found is not None else work_id)
        score = None if scored is None else round(scored[1].raw, 2)
        held = _held_marks(state, results, session.project.by)
        parts = ["Recorded." if found is None else "Recorded before; nothing changed."]
        for why in dict.fromkeys(one.why for one in held):
            ids = ", ".join(one.pattern_id for one in held if one.why == why)
            parts.append(f"These marks do not count: {ids} ({why}).")
        text = "\n".join(parts) + "\n"
        return Report(recorded=found is None, duplicate=found is not None, score=score, held=held, text=text)


def _find_reported(state: ProjectState, loop: str | None, injection_id: str | None) -> str:
    """Return the ID of the work that a report is about, or "" if it names none."""
    work_id = find_work(state, loop) if loop else ""
    if not injection_id:
        return work_id
    start = injection_id.rpartition("@")[0]
    try:
        injected = find_work(state, start)
    except UnknownRecord:
        raise BadInput("injection_id is not one that loop_context returned; leave it out") from None
    if work_id and injected != work_id:
        raise BadInput(f"injection_id is of {name(injected)}, not of {name(work_id)}")
    return injected


def _read_marks(state: ProjectState, marks: Sequence[Mark]) -> dict[str, bool]:
    """Return by full ID whether patterns helped; raises if unknown or contradictory."""
    results: dict[str, bool | None] = {}
    for pattern_id, word in marks:
        known = state.pattern(pattern_id).id
        if results.setdefault(known, RESULTS[word]) is not RESULTS[word]:
            raise BadInput(f"{name(known)} has two different marks")
    return {pattern_id: helped for pattern_id, helped in results.items() if helped is not None}


def _find_report(state: ProjectState, digest: str, now: datetime, *, has_key: bool) -> Event | None:
    """Return an earlier call's outcome: with a key at any time, else within the hour."""
    events = state.snapshot.events
    recent = events if has_key else takewhile(lambda event: event.at > now - _REPEATED, reversed(events))
    return next((event for event in recent if event.kind == "outcome" and event.id.endswith(digest)), None)


def _reflect(session: Session, state: ProjectState, work_id: str, summary: str) -> None:
    """Add the summary to an attempt's reflections; an observation is in no context."""
    attempt = state.snapshot.attempts.get(work_id)
    if attempt is None or not summary.strip():
        return
    project = session.project
    memory = Episodes(project.project, clock=project.now, by=project.agent)
    with suppress(RalphdeckError):  # the outcome is recorded
        memory.reflect(attempt.task_id, attempt.number, observation=mask_secrets(summary))


def _held_marks(state: ProjectState, results: Mapping[str, bool], by: str) -> list[HeldMark]:
    source = source_of(Event(id="", at=state.now, kind="applied", by=by))
    whys = {burst.source: format_burst(burst) for burst in state.board.bursts}
    return [
        HeldMark(name(id), whys.get(source, "") if not one.revoked else "a person discarded these reports")
        for id, helped in results.items()
        if not helped
        for one in state.board.ignored_reports(id)[-1:]
        if one.source == source
    ]


class _Known(Refused):
    """A pattern with the proposed lesson exists."""

    def __init__(self, pattern_id: str) -> None:
        super().__init__(pattern_id)
        self.pattern_id = pattern_id


def propose_lesson(
    session: Session, kind: str, when: str, lesson: str, evidence: str, loop: str | None = None, *, client: str = ""
) -> Proposal:
    """Make a candidate for Review; no context has it before a person has released it."""
    with session.call(client, writes=True) as state:
        by = session.project.by
        try:
            work_id = find_work(state, loop) if loop else ""
            proposal = make_lesson(
                LESSON_KINDS[kind], when, lesson, evidence, loop_id=work_id, at=session.project.now(), by=by
            )
            pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
            harm = [one for one in pattern.suspicions if one.severity is Severity.BLOCKED]
            if harm:
                raise Refused(f"this text {', '.join(map(describe_rule, harm))}")
            decided = session.project.propose(
                proposal,
                f"proposal of {work_id or by}",
                by=by,
                reason=mask_secrets(evidence).strip(),
                check=lambda newest: _check_proposal(newest, pattern, work_id, by),
            )
            data = Proposal(id=decided.decision.after["patterns"][0], state="waiting_for_person")
        except _Known as known:
            data = _known_already(session.project.view, known.pattern_id, pattern)
        except (BadInput, Refused) as error:
            data = Proposal(id=None, state="refused", reason=str(error))
        return replace(data, text=_describe(data))


def _check_proposal(state: ProjectState, pattern: Pattern, work_id: str, by: str) -> None:
    """Raise `Refused` if the lesson is known or too many proposals of the work wait."""
    if known_id := _find_known(state, pattern):
        raise _Known(known_id)
    waiting = 0
    for pattern_id in state.snapshot.curation.arrivals:
        known = state.snapshot.patterns.get(pattern_id)
        if known is not None and _is_waiting(state, known):
            loops = {source.loop_id for source in known.source_loops}
            waiting += work_id in loops if work_id else not loops
    if waiting >= MAX_WAITING:
        raise Refused(f"{waiting} proposals {f'of {name(work_id)}' if work_id else 'without a loop'} wait already")


def _find_known(state: ProjectState, pattern: Pattern) -> str:
    """Return the ID of the pattern with the same or nearly the same lesson, or ""."""
    similar = state.similarity.nearest(pattern, state.settings.extraction.similarity_threshold)
    if similar or pattern.type is PatternType.ERROR:
        return similar[0][0] if similar else ""
    # The similarity also compares category and steps, which an agent does not give.
    text = _plain(pattern.description)
    same = (one for one in state.snapshot.patterns.values() if one.type is pattern.type)
    return next((one.id for one in same if _plain(one.description) == text), "")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_waiting(state: ProjectState, pattern: Pattern) -> bool:
    arrival = state.snapshot.curation.arrivals.get(pattern.id)
    return arrival is not None and arrival.kind == "proposal" and arrival.needs_review(pattern.content_hash)


def _known_already(state: ProjectState, pattern_id: str, proposed: Pattern) -> Proposal:
    """Describe the known pattern; the same text again is the proposal that waits."""
    known, same_as = state.pattern(pattern_id), name(pattern_id)
    if _is_waiting(state, known):
        if known.content_hash == proposed.content_hash:
            return Proposal(id=same_as, state="waiting_for_person")
        return Proposal(id=None, state="known_already", same_as=same_as, reason="it waits for a person")
    is_deprecated = state.assessment(known.id).state is Maturity.DEPRECATED
    return Proposal(id=None, state="known_already", same_as=same_as, reason="deprecated" if is_deprecated else None)


def _describe(data: Proposal) -> str:
    match data.state:
        case "waiting_for_person":
            return f"{data.id} waits for the review of a person; no agent gets it before.\n"
        case "known_already":
            return f"Known already as {data.same_as}{f' ({data.reason})' if data.reason else ''}.\n"
    return f"Refused: {data.reason}\n"
