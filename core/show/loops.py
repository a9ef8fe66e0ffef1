"""The list of loops: its columns, its orders, and the cells of each kind of row.

A row is a loop (a session of an agent, or of a runner), or something below it: an attempt, an iteration, a debug
session, or a lesson that it was given. Also the patterns that can be extracted from loops.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.base.formatting import format_cost, format_count, format_duration, format_percent
from core.base.pattern_titles import pattern_title
from core.base.text import plural
from core.records.debug_sessions import DebugSession
from core.records.episodes import TaskStatus
from core.records.loops import CONTRADICTED, WAITS_FOR_YOU, Liveness, LoopStatus, StateSource, waits_for
from core.records.times import minute_of
from core.show.needs import Need, NeedKind, describe_need, find_needs, need_sign, why_no_need
from core.show.pages import loops as documents
from core.show.pages.document import (
    Block,
    Cells,
    Column,
    Document,
    Line,
    Moment,
    Sign,
    Sparkline,
    Text,
    fields,
    items,
    line,
    more,
    section,
)
from core.show.pages.loops import Result, elapsed, find_result, loop_result_sign
from core.show.pages.signs import (
    TYPE_WORDS,
    attempt_sign,
    loop_sign,
    outcome_sign,
    result_sign,
    session_sign,
    status_sign,
    task_sign,
)
from core.show.work import FoundWork, Tree, WorkCatalog, build_tree, session_key
from core.tasks.attempts import AttemptState

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.evidence import LoopPatterns
    from core.learning.following import WorkVerdict
    from core.records.debug_sessions import Execution
    from core.records.episodes import Attempt, Task
    from core.records.events import Observation
    from core.records.extractions import Extraction, Proposal
    from core.records.loops import Iteration, Loop, LoopDetails
    from core.records.patterns import Pattern
    from core.show.filter_parser import Query
    from core.tasks.attempts import AttemptCondition
    from core.tasks.escalations import EscalatedSession


COLUMNS: Final = (
    Column("task", "what", 36, flex=1, best=44, about="the task, or what was done below it"),
    Column("needs", "needs", 10, keep=8, about="why it needs a person now"),
    Column("status", "status", 14, best=16, about="running, paused, or how it ended; ? if no file reports it"),
    Column("result", "result", 7, keep=6, about="worked, failed or unclear, once it has ended"),
    Column("iteration", "iterations", 10, keep=3, about="the iteration and the maximum, or attempts, actions, runs"),
    Column("lessons", "lessons", 12, keep=5, best=21, about="given in its context, followed, held out, found: e shows"),
    Column("runner", "runner", 12, keep=4, about="the program that runs it, or the agent whose session it is"),
    Column("agent", "agent", 6, keep=1, best=20, about="the coding agent and its model"),
    Column("tokens", "tokens", 7, align="right", keep=3, about="input and output tokens, with cached ones"),
    Column("cost", "cost", 7, align="right", keep=2, about="what the runner or agent reported, in US dollars"),
    Column("reason", "ended because", 14, keep=1, best=24, about="why it ended, or what a waiting session asks"),
    Column("quality", "quality", 8, keep=0, about="quality of the work, 0 to 100 %, over the last iterations"),
    Column("elapsed", "took", 6, align="right", keep=2, about="time from its start to its end, or to now"),
    Column("sign", "activity", 10, align="right", keep=7, about="time since it last wrote a file"),
)
_ON_SCREENS: Final = frozenset({"lessons", "agent", "reason", "quality", "sign"})
LISTED: Final = (
    *(column for column in COLUMNS if column.id not in _ON_SCREENS),
    Column("started", "started (utc)", 16, keep=1),
    Column("id", "id", 24, keep_end=8),
)
"""The columns of `loop list`."""
RUNNER_COLUMNS: Final = frozenset({"runner", "agent", "tokens", "cost", "reason"})
"""Columns that are shown if there is a loop of another runner than `.aiwg`."""
SORTS: Final = (
    *(("newest", True), ("needs", False), ("status", False), ("result", False), ("task", False)),
    *(("elapsed", True), ("sign", True), ("tokens", True), ("cost", True)),
)
_INDENT: Final = "    "
EARLIER_SESSION: Final[Text] = (_INDENT, ("earlier session  ", "name"))
"""What is drawn before the title of a session with earlier attempts at a task."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_TASK_RESULTS: Final = {TaskStatus.COMPLETED: Result.WORKED, TaskStatus.FAILED: Result.FAILED}
_URGENCY: Final = {kind: number for number, kind in enumerate(NeedKind)}


def loop_cells(
    state: ProjectState,
    loop: Loop,
    need: Need | None,
    now: datetime,
    *,
    found: int = 0,
    attempts: int = 0,
    fold: Text = (),
    has_lessons: bool = True,
) -> Cells:
    """Return a loop's cells; `found` counts patterns to extract, `fold` is put first.

    `attempts` is the number of attempts if other sessions made some of them, else 0.

    Without `has_lessons` its lessons are not looked up, which takes most of the time.
    """
    seconds, quiet = elapsed(loop, now), "quiet" if loop.is_over else ""
    result = find_result(state, loop)
    usage = loop.usage
    return {
        "task": (*fold, (title_of(loop), "quiet" if loop.archived else "")),
        "id": ((loop.id, "quiet"),),
        "needs": (need_sign(need, now),) if need is not None else (),
        "status": _status(loop),
        "result": (loop_result_sign(result),) if result is not None else (),
        "iteration": ((plural(attempts, "attempt") if attempts else progress(loop), quiet),),
        "lessons": lessons_text(state.loop_patterns(loop.id), found) if has_lessons else (),
        "runner": ((loop.source_name, quiet),),
        "agent": ((" ".join(filter(None, (loop.agent, loop.model))), quiet),),
        "tokens": ((format_count(usage.total) if usage.total is not None else "", quiet),),
        "cost": ((format_cost(usage.cost_usd) if usage.cost_usd is not None else "", quiet),),
        "reason": ((loop.question or loop.end_words or (waits_for(loop) if loop.runner else ""), quiet),),
        "quality": (Sparkline(loop.quality, 8),),
        "elapsed": ((format_duration(seconds) if seconds is not None else "—", quiet),),
        "started": ((minute_of(loop.started_at) if loop.started_at is not None else "", quiet),),
        "sign": _last_activity(loop),
    }


def loop_overview(
    state: ProjectState,
    loop: Loop,
    need: Need | None,
    details: LoopDetails | None,
    offers: Sequence[Block] = (),
    newest: int | None = documents.NEWEST,
) -> Iterable[Block]:
    """Describe why a loop needs a person, or not (tests failed), and then the loop."""
    if need is not None:
        from core.show.pages.tasks import help_wanted  # a list of loops does not describe debug sessions

        yield line((f"{describe_need(need, state.now)}", need_sign(need, state.now).style))
        if need.session_id and (session := state.snapshot.debug_sessions.get(need.session_id)) is not None:
            yield from help_wanted(session, loop)
        yield line("")
    elif reason := why_no_need(state, loop):
        yield line((f"It needs no action: {reason}.", "quiet"))
    yield from documents.overview(state, loop, details, offers, newest)


def loop_document(state: ProjectState, loop: Loop, need: Need | None, details: LoopDetails) -> Document:
    """Describe a loop with all iterations, its lessons, reflections and files."""
    blocks = (
        *loop_overview(state, loop, need, details, newest=None),
        *section("Lessons", documents.patterns(state, loop)),
        *section("Reflections", documents.reflection_rows(documents.loop_reflections(state, loop))),
        *section("Files", documents.files(loop, details)),
    )
    return Document(title_of(loop), blocks)


def loop_rank(loop: Loop, need: Need | None) -> tuple[int, bool, bool, float, str]:
    """Return the default sort key: urgent, running, others, ended; newest first."""
    start = loop.started_at or loop.updated_at
    newest_first = -start.timestamp() if start else 0.0
    return urgency(need), loop.is_over, not loop.is_running, newest_first, loop.id


def needs_column(needs: Iterable[Need], now: datetime) -> Column:
    """Return the column of needs as wide as the widest of them."""
    column = next(one for one in COLUMNS if one.id == "needs")
    return replace(column, width=max([column.width, *(len(need_sign(need, now).text) + 2 for need in needs)]), best=0)


def urgency(need: Need | None) -> int:
    """Return the place of a need in the order of urgency; the last one for None."""
    return _URGENCY[need.kind] if need is not None else len(_URGENCY)


def title_of(loop: Loop) -> str:
    """Return the first words of a loop's task; untrusted."""
    return loop.task or ("no task recorded" if loop.runner else loop.id)


def progress(loop: Loop) -> str:
    """Return the iteration and the maximum, such as `3/10`; "" if none is known."""
    if loop.iteration is None and not loop.max_iterations:
        return ""
    most = f"/{loop.max_iterations}" if loop.max_iterations else ""
    return f"{loop.iteration or 0}{most}"


def lessons_text(patterns: LoopPatterns, found: int = 0) -> Text:
    """Return counts of lessons: given, followed, held out, and yielded or `found`."""
    given, followed = len(patterns.injected_ids), len(patterns.followed_ids)
    has_gained = bool(found or patterns.extracted)
    is_alone = not has_gained and not patterns.held_out
    parts: list[tuple[str, str]] = []
    if given:
        counts = f"{followed}/{given}{' followed' if is_alone else ''}" if followed else f"{given} given"
        parts.append((counts, "quiet"))
    if patterns.held_out:
        parts.append((f"{len(patterns.held_out)} held out", "quiet"))
    if has_gained:
        parts.append((f"{found} found", "accent") if found else (f"{len(patterns.extracted)} found", "quiet"))
    return tuple(part for one in parts for part in ((", ", "quiet"), one))[1:]


def _status(loop: Loop) -> Text:
    """Return the status with badges that add to it; not those of other runners."""
    sign = loop_sign(loop)
    if sign.text == WAITS_FOR_YOU:  # the column before says so
        sign = status_sign(loop.status)
    usual = {"crashed", "unregistered", CONTRADICTED, "stale"}
    is_inferred = loop.state_source is StateSource.INFERRED and loop.status is not LoopStatus.UNKNOWN
    badges = () if loop.runner else tuple(badge for badge in loop.badges if badge not in usual)
    return (
        sign,
        ("?" if is_inferred else "", "warning"),
        *((f" {badge}", "warning") for badge in badges),
    )


def _last_activity(loop: Loop) -> Text:
    if loop.liveness is Liveness.DEAD:
        return (("no process", "bad"),)
    if loop.is_over:
        return (Moment(loop.ended_at, is_age=True),)
    return (Moment(loop.last_activity, "warning" if loop.liveness is Liveness.STALE else "", is_age=True),)


# Rows below a loop, and work of no known loop


def task_cells(task: Task, attempts: Sequence[Attempt], last: AttemptState | None, fold: Text) -> Cells:
    """Return the cells of a task of no known loop; `last` is its last attempt state."""
    quality = tuple(entry.quality for attempt in attempts for entry in attempt.quality)
    activity = task_activity(task, attempts)
    return {
        "task": (*fold, task.description or task.id, (f"  {task.id}" if task.description else "", "quiet")),
        "status": (task_sign(task, last),),
        "result": (loop_result_sign(_TASK_RESULTS[task.status]),) if task.status in _TASK_RESULTS else (),
        "iteration": ((plural(len(attempts), "attempt") if attempts else "", ""),),
        "quality": (Sparkline(quality, 8),),
        "sign": (Moment(activity, "quiet" if task.status.ended else "", is_age=True),),
    }


def attempt_cells(attempt: Attempt, condition: AttemptCondition, title: str = "") -> Cells:
    """Return an attempt's cells; `title` is its task's, if the loop has several."""
    from core.show.pages.tasks import took  # compares texts of actions, which a list of loops does not

    ended = condition.state is AttemptState.ENDED
    text = attempt.plan or attempt.reason or title or "no plan"
    return {
        "task": (_INDENT, (f"attempt {attempt.number}  ", "name"), (text, "quiet" if ended else "")),
        "status": (attempt_sign(attempt, condition),),
        "iteration": ((plural(attempt.actions, "action") if attempt.actions is not None else "", "quiet"),),
        "quality": (Sparkline(tuple(entry.quality for entry in attempt.quality), 8),),
        "elapsed": ((took(attempt), "quiet"),),
        "sign": (Moment(attempt.last_activity, "quiet" if ended else "", is_age=True),),
    }


def earlier_cells(count: int, noun: str, fold: Text) -> Cells:
    """Return the cells of the row that summarizes earlier attempts or iterations."""
    return {"task": (_INDENT, *fold, (f"{plural(count, f'earlier {noun}')}", "quiet"))}


def iteration_cells(iteration: Iteration) -> Cells:
    """Return the cells of an iteration of a loop."""
    number = "?" if iteration.number is None else str(iteration.number)
    took_text = format_duration(iteration.duration_ms / 1000) if iteration.duration_ms else ""
    return {
        "task": (_INDENT, (f"iteration {number}  ", "name"), iteration.action or iteration.result),
        "status": (outcome_sign(iteration.outcome),),
        "quality": (Sparkline((iteration.quality,), 8),) if iteration.quality is not None else (),
        "elapsed": ((took_text, "quiet"),),
        "sign": (Moment(iteration.at, is_age=True),),
    }


def session_cells(session: DebugSession, escalated: EscalatedSession | None, now: datetime, *, is_below: bool) -> Cells:
    """Return the cells of a debug session; the quality is the share of passed tests."""
    from core.tasks.escalations import describe_first_failure

    activity = escalated.last_activity if escalated is not None else session.changed_at
    passing = tuple(share for execution in session.executions if (share := _passed_share(execution)) is not None)
    asks = escalated is not None and not escalated.has_ended
    runs = len(session.executions)
    return {
        "task": (
            _INDENT if is_below else "",
            ("debug  ", "name"),
            session.file_path or session.id,
            (f"  {describe_first_failure(session)}", "quiet"),
        ),
        "needs": (need_sign(Need(kind=NeedKind.ASKS), now),) if asks else (),
        "status": (session_sign(session, is_escalated=escalated is not None),),
        "iteration": ((plural(runs, "run") if runs else "", "quiet"),),
        "quality": (Sparkline(passing, 8),),
        "sign": (Moment(activity, is_age=True),),
    }


def lesson_cells(
    pattern_id: str,
    pattern: Pattern | None,
    uses: Sequence[Observation],
    verdict: WorkVerdict | None = None,
    *,
    is_held_out: bool = False,
) -> Cells:
    """Return a lesson's cells in a loop: given, held out or found; `uses` are in it."""
    last = uses[-1] if uses else None
    followed = next((use for use in reversed(uses) if use.kind != "injected"), None)
    is_judged = verdict is not None and verdict.is_followed is not None
    word = "given" if followed is None else "followed"
    if last is None:
        word = "held out (experiment)" if is_held_out else "found"
    if verdict is not None and is_judged and followed is None:
        word = verdict.word
    return {
        "task": (_INDENT, (f"{word}  ", "name"), pattern_title(pattern) if pattern is not None else pattern_id),
        "status": (result_sign(followed.success if followed is not None else None), f" {lesson_result(followed)}"),
        "sign": (Moment(last.at if last is not None else None, is_age=True),),
    }


def lesson_result(followed: Observation | None) -> str:
    """Return the result of following a lesson in words."""
    if followed is None:
        return ""
    word = {True: "worked", False: "failed", None: "no result"}[followed.success]
    return f"{word}, as all" if followed.inferred else word


def task_activity(task: Task, attempts: Sequence[Attempt]) -> datetime | None:
    """Return the newest time of a task and its attempts."""
    moments = [task.updated_at, task.completed_at, task.created_at, *(attempt.last_activity for attempt in attempts)]
    return max(filter(None, moments), default=None)


def second_line(record: Loop | Task | Attempt | DebugSession) -> Text:
    """Return the second line of a row with two lines: what is not in the first one."""
    from core.records.episodes import Attempt, Task
    from core.records.loops import Loop

    if isinstance(record, Loop):
        tags = " ".join(f"#{tag}" for tag in record.tags[:6])
        return (("   ".join(filter(None, (record.id, record.owner, tags))), "quiet"),)
    if isinstance(record, Task):
        return _labelled("done when", record.criteria)
    if isinstance(record, Attempt):
        known = (("because", (record.reason,)), ("did not work", record.failed), ("next time", record.suggestions))
        return next((_labelled(label, texts[0]) for label, texts in known if texts and texts[0]), ())
    causes = (one.analysis.root_cause for one in reversed(record.executions) if one.analysis is not None)
    return _labelled("cause", next(filter(None, causes), ""))


def _labelled(label: str, text: str) -> Text:
    return ((f"    {label}  {text}", "quiet"),) if text else ()


def _passed_share(execution: Execution) -> float | None:
    results = execution.results
    if results is None or not results.total or results.passed is None:
        return None
    return min(max(results.passed / results.total, 0.0), 1.0)


# Orders


class LoopOrder:
    """What the rows at the top are sorted by: `name` is one of `SORTS`."""

    def __init__(self, name: str, state: ProjectState, catalog: WorkCatalog, needs: Mapping[str, Need]) -> None:
        self._state = state
        self._catalog = catalog
        self._needs = needs
        values: dict[str, Callable[[str], Any]] = {
            "newest": self._rank,
            "needs": lambda key: urgency(needs.get(key)),
            "sign": lambda key: self._times(key)[1] or _LONG_AGO,
            "elapsed": self._of_loop(lambda loop: elapsed(loop, state.now) or 0.0, 0.0),
            "status": self._of_loop(lambda loop: loop.status.value, ""),
            "result": self._of_loop(lambda loop: str(find_result(state, loop) or ""), ""),
            "tokens": self._of_loop(lambda loop: loop.usage.total or 0, 0),
            "cost": self._of_loop(lambda loop: loop.usage.cost_usd or 0.0, 0.0),
        }
        self.value = values.get(name, self._of_loop(lambda loop: loop.task.lower(), ""))
        """The value of the row with a key."""

    def started(self, key: str) -> tuple[float, str]:
        """Return the sort key among equal values: newest first, as in the snapshot."""
        at = self._times(key)[0]
        return -at.timestamp() if at is not None else math.inf, key

    def _rank(self, key: str) -> tuple[int, bool, bool, float, str]:
        """Return the default order; work of no known loop has the place of a loop."""
        if (loop := self._catalog.loops.get(key)) is not None:
            return loop_rank(loop, self._needs.get(key))
        status = getattr(self._catalog.free_record(key), "status", None)
        return urgency(self._needs.get(key)), getattr(status, "ended", True), True, *self.started(key)

    def _of_loop(self, value: Callable[[Loop], Any], otherwise: Any) -> Callable[[str], Any]:
        loops = self._catalog.loops
        return lambda key: value(loops[key]) if key in loops else otherwise

    def _times(self, key: str) -> tuple[datetime | None, datetime | None]:
        """Return when work began, and its last activity."""
        if (loop := self._catalog.loops.get(key)) is not None:
            return loop.started_at, loop.last_activity
        record = self._catalog.free_record(key)
        if isinstance(record, DebugSession):
            return record.created_at, record.changed_at
        attempts = self._catalog.attempts_of.get(key, ())
        began = record.created_at or (attempts[0].started_at if attempts else None)
        return began, task_activity(record, attempts)


class Selection(NamedTuple):
    """Rows that match a query, and their origin; `needs` are by the key of the row."""

    catalog: WorkCatalog
    needs: Mapping[str, Need]
    found: Sequence[FoundWork]
    tree: Tree
    query: Query


def select_rows(
    view: ProjectState,
    catalog: WorkCatalog,
    known: tuple[WorkCatalog, Mapping[str, Need]] | None,
    query: Query,
    sort: tuple[str, bool] | None,
    unfolded: Collection[str],
    hits: Collection[str],
) -> Selection:
    """Select and sort rows; without `known`, update the catalog and find the needs."""
    if known is None:
        needs = {one.loop_id or session_key(one.session_id): one for one in reversed(find_needs(view))}
        known = WorkCatalog(view.snapshot, catalog), needs
    catalog, needs = known[0], dict(known[1])
    found = catalog.select(query, needs, lambda key: view.loop_patterns(key).injected_ids, hits)
    name, descending = sort or ("newest", True)
    order = LoopOrder(name, view, catalog, needs)
    found.sort(key=lambda one: order.value(one.key), reverse=descending and name != "newest")
    return Selection(catalog, needs, found, build_tree(catalog, found, unfolded, view.loop_patterns), query)


def move_rows(
    found: Sequence[FoundWork], keys: Collection[str], order: LoopOrder, *, descending: bool
) -> list[FoundWork]:
    """Return sorted rows with those of `keys`, which have changed, at their places."""
    moved = [one for one in found if one.key not in keys]
    for key in keys:
        is_before = partial(_is_before, order, (order.value(key), order.started(key)), descending=descending)
        moved.insert(bisect_left(moved, True, key=lambda one: is_before(one.key)), FoundWork(key))
    return moved


def _is_before(order: LoopOrder, mine: tuple[Any, tuple[float, str]], other: str, *, descending: bool) -> bool:
    """Return whether a row (its value and start) belongs before another one."""
    value = order.value(other)
    if mine[0] == value:
        return mine[1] < order.started(other)
    return bool(value < mine[0] if descending else mine[0] < value)


_MAX_SOURCES: Final = 20


def count_offered(offer: Extraction | None) -> int:
    """Return the number of patterns that an extraction would add or merge."""
    return len(offer.new) + len(offer.merges) if offer is not None else 0


def offer_blocks(offer: Extraction | None, key: str) -> Iterable[Block]:
    """List the patterns to extract, one per line; `key` is the key for details."""
    if offer is None:
        return
    count = plural(count_offered(offer), "lesson")
    yield line((f"{count} to extract", "strong accent"), (f"   {key}: details", "quiet"))
    for one in (*offer.new, *offer.merges):
        duplicate = f" → {one.duplicate_of}" if one.duplicate_of else ""
        yield line((f"{TYPE_WORDS[one.type]}  ", "name"), _title(one), (duplicate, "quiet"), indent=2)


def lesson_sources(view: ProjectState, offer: Extraction) -> Iterable[Block]:
    """Describe a recurring lesson, and each loop or task that reported it."""
    for proposal in offer.proposals:
        pattern = _pattern(proposal)
        sources = list(dict.fromkeys(loop.loop_id for loop in pattern.source_loops))
        yield line((pattern.description or pattern.title, "strong"))
        yield line("")
        yield line((f"reported by {plural(len(sources), 'loop or task', 'loops or tasks')}:", "quiet"))
        for source in sources[:_MAX_SOURCES]:
            loop = view.snapshot.loops.get(source)
            yield line((f"{source}  ", "name"), status_sign(loop.status) if loop else ("task", "quiet"))
            if loop is not None and loop.task:
                yield line((loop.task, "quiet"), indent=2)
        yield from more(len(sources), "source", _MAX_SOURCES)


def proposal_blocks(offer: Extraction) -> Iterable[Block]:
    """Describe every proposed pattern: new, duplicate, or refused with a reason."""
    from core.retrieval.similarity import cap_similarity  # imports numpy
    from core.show.pages.patterns import body

    for proposal in (*offer.new, *offer.merges):
        status = ("+ new", "good")
        if proposal.duplicate_of:
            similarity = format_percent(cap_similarity(proposal.similarity))
            status = (f"→ one more use of {proposal.duplicate_of}, similarity {similarity}", "name")
        pattern, title = _pattern(proposal), _title(proposal)
        yield line((f"{TYPE_WORDS[proposal.type]}  ", "name"), status)
        yield line((title, "strong"))
        yield from body(pattern, title)
        yield from fields(("Tags", ", ".join(pattern.tags)), ("From", ("; ".join(proposal.trace), "name")))
        yield line("")
    refused: list[Line] = []
    for proposal in offer.refused:
        refused += [
            line(Sign(f"{TYPE_WORDS[proposal.type]}  ", "quiet", "deprecated"), " ", _title(proposal)),
            line((proposal.refused, "warning"), indent=2),
            line(("; ".join(proposal.trace), "quiet"), indent=2),
        ]
    yield from section("Not extracted", refused)
    yield from section("Not found", items("", offer.missing))


def _pattern(proposal: Proposal) -> Pattern:
    from core.decisions.merge import as_read

    return as_read(proposal.record, proposal.type)


def _title(proposal: Proposal) -> str:
    return _pattern(proposal).title or proposal.slug
