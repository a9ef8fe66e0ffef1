"""Token costs and benefits of lessons and agents' files; docs/metrics.md#cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct

from core.base.pattern_titles import pattern_title
from core.files.managed_text import find_own_lines
from core.learning.following import FollowCounts
from core.records.instructions import Loading
from core.records.patterns import PatternType
from core.retrieval.rendering import count_tokens
from core.retrieval.similarity import find_repeated

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern
    from core.retrieval.similarity import Repetition
    from core.sources.adapters.agent_files import AgentFile

_WEEK_SECONDS: Final = 7 * 24 * 3600.0
_MIN_LINE: Final = 20  # characters of a line that may repeat another one


class _Given(NamedTuple):
    """One context with a pattern; `tokens` is None if its size was not recorded."""

    work_id: str
    at: datetime
    tokens: int | None


class LessonCost(Struct, frozen=True, kw_only=True):
    """The tokens of one lesson in all contexts of a period.

    `prevented` is the number of sessions that followed it and in which its error did not return. `is_estimated`: some
    contexts were recorded without their size, so that the text of today counts.
    """

    pattern_id: str
    name: str  # its title: untrusted
    given: int
    tokens: int
    is_estimated: bool
    weekly: float  # tokens a week
    share: float  # of the tokens of all lessons, 0..1
    counts: FollowCounts
    prevented: int


class SessionCost(Struct, frozen=True, kw_only=True):
    """The tokens of the lessons that one loop or attempt was given."""

    work_id: str
    lessons: int
    tokens: int


class FileCost(Struct, frozen=True, kw_only=True):
    """A file that agents load: `tokens` at each start, `on_demand` in some sessions.

    `repeated` are its lines from the start that repeat another such line or a lesson.
    """

    file: str
    agents: tuple[str, ...]
    loading: Loading
    lines: int
    tokens: int
    on_demand: int
    repeated: tuple[RepeatedLine, ...] = ()


class AgentCost(Struct, frozen=True, kw_only=True):
    """Tokens of all files that one agent loads at the start of each session."""

    agent: str
    tokens: int


class RepeatedLine(Struct, frozen=True, kw_only=True):
    """A line that repeats another one (`FILE:LINE`) or a lesson (its ID)."""

    line: int
    other: str


class CostWeek(NamedTuple):
    """The lessons in the contexts of one week."""

    given: int
    tokens: int


class ContextCost(Struct, frozen=True, kw_only=True):
    """The costs of the period from `since`; those with most tokens first.

    `weeks` is its length from the first context, at least 1. `by_week` has the weeks from `since`, oldest first.
    """

    since: datetime
    weeks: float
    given: int
    tokens: int
    by_week: tuple[CostWeek, ...]
    lessons: tuple[LessonCost, ...]
    sessions: tuple[SessionCost, ...]


def measure_cost(view: ProjectState, since: datetime | None = None, most: int | None = None) -> ContextCost:
    """Sum the tokens of lessons given since a moment; describe the `most` largest."""
    board, patterns = view.board, view.snapshot.patterns
    found: list[tuple[Pattern, list[_Given]]] = []
    for id in (board.ids[row] for row in np.flatnonzero(board.given > 0).tolist()):
        pattern = patterns.get(id)
        if pattern is not None and not pattern.copy_folder and (given := _list_given(view, pattern, since)):
            found.append((pattern, given))
    first = min((one.at for _, given in found for one in given), default=view.now)
    begin = since or first
    sizes = view.count_tokens(pattern.id for pattern, given in found if any(one.tokens is None for one in given))
    of_work: Counter[str] = Counter()
    lessons_of: Counter[str] = Counter()
    tokens_of: dict[str, int] = {}
    by_week = [CostWeek(0, 0)] * (_week_of(view.now, begin) + 1)
    for pattern, given in found:
        for one in given:
            size = sizes[pattern.id] if one.tokens is None else one.tokens
            of_work[one.work_id] += size
            lessons_of[one.work_id] += 1
            tokens_of[pattern.id] = tokens_of.get(pattern.id, 0) + size
            week = _week_of(min(one.at, view.now), begin)
            by_week[week] = CostWeek(by_week[week].given + 1, by_week[week].tokens + size)
    total = sum(tokens_of.values())
    weeks = max((view.now - first).total_seconds() / _WEEK_SECONDS, 1.0)
    found.sort(key=lambda pair: (-tokens_of[pair[0].id], pair[0].id))
    return ContextCost(
        since=begin,
        weeks=weeks,
        given=sum(week.given for week in by_week),
        tokens=total,
        by_week=tuple(by_week),
        lessons=tuple(
            _make_lesson(view, pattern, given, tokens_of[pattern.id], weeks, total, since)
            for pattern, given in found[:most]
        ),
        sessions=tuple(
            SessionCost(work_id=id, lessons=lessons_of[id], tokens=size) for id, size in of_work.most_common()
        ),
    )


def _week_of(at: datetime, begin: datetime) -> int:
    """Return the number of whole weeks from the beginning of a period."""
    return max(int((at - begin).total_seconds() // _WEEK_SECONDS), 0)


def measure_lesson(view: ProjectState, pattern: Pattern) -> tuple[int, int]:
    """Return how often one lesson was given, and its tokens in all contexts."""
    given = _list_given(view, pattern, None)
    today = view.count_tokens([pattern.id])[pattern.id] if any(one.tokens is None for one in given) else 0
    return len(given), sum(today if one.tokens is None else one.tokens for one in given)


def _list_given(view: ProjectState, pattern: Pattern, since: datetime | None) -> list[_Given]:
    """Return contexts with a pattern since a moment, by events and files of loops."""
    inputs = view.inputs
    events = inputs.events.by_pattern.get(pattern.id, ())
    given = [_Given(event.loop_id, event.at, event.tokens) for event in events if event.kind == "injected"]
    logged = {inputs.owner_id(one.work_id) for one in given}
    for loop, use in inputs.uses(pattern.id):
        if loop.id not in logged:
            given.append(_Given(loop.id, use.at or loop.started_at or loop.ended_at or view.now, None))
    return [one for one in given if since is None or one.at >= since]


def _make_lesson(
    view: ProjectState,
    pattern: Pattern,
    given: Sequence[_Given],
    tokens: int,
    weeks: float,
    total: int,
    since: datetime | None,
) -> LessonCost:
    verdicts = [one for one in view.board.verdicts(pattern.id) if since is None or (one.at or since) >= since]
    worked = _find_worked(view, pattern) if pattern.type is PatternType.ERROR else set()
    return LessonCost(
        pattern_id=pattern.id,
        name=pattern_title(pattern),
        given=len(given),
        tokens=tokens,
        is_estimated=any(one.tokens is None for one in given),
        weekly=tokens / weeks,
        share=tokens / total if total else 0.0,
        counts=FollowCounts.of(verdicts),
        prevented=sum(one.is_followed is True and one.work_id in worked for one in verdicts),
    )


def _find_worked(view: ProjectState, pattern: Pattern) -> set[str]:
    """Return the work that applied a pattern with success: the error did not return."""
    events = view.inputs.events.by_pattern.get(pattern.id, ())
    found = {event.loop_id for event in events if event.kind == "applied" and event.success is True}
    return found | {loop.id for loop, use in view.inputs.uses(pattern.id) if use.applied and use.successful}


def measure_files(files: Sequence[AgentFile], patterns: Mapping[str, Pattern]) -> tuple[FileCost, ...]:
    """Count tokens of files that agents load, with repeated lines; most tokens first."""
    texts = {id: (one.title, one.description, one.better_alternative) for id, one in patterns.items()}
    first: dict[str, str] = {}  # where each line is first
    found = []
    for file in files:
        repeated: dict[int, str] = {}
        lines = file.lines[: file.loaded] if file.loading is Loading.START else ()
        own = find_own_lines(lines)
        for number, text in enumerate(lines, 1):
            key = " ".join(text.casefold().split()).lstrip("-*# ")
            if len(key) < _MIN_LINE or number in own:
                continue
            if (place := first.setdefault(key, f"{file.file}:{number}")) != f"{file.file}:{number}":
                repeated[number] = place
        foreign = ["" if number in own else text for number, text in enumerate(lines, 1)]
        of_lessons: Mapping[str, Repetition] = find_repeated(texts, [(file.file, foreign)])
        for id, match in of_lessons.items():
            repeated.setdefault(match.line, id)
        rows = tuple(RepeatedLine(line=number, other=other) for number, other in sorted(repeated.items()))
        tokens = count_tokens(file.resident)
        found.append(
            FileCost(
                file=file.file,
                agents=file.agents,
                loading=file.loading,
                lines=file.loaded,
                tokens=tokens,
                on_demand=count_tokens(file.text) - tokens,
                repeated=rows,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.tokens, -one.on_demand, one.file)))


def sum_by_agent(files: Sequence[FileCost]) -> tuple[AgentCost, ...]:
    """Sum the tokens of files per agent (a session has one agent), most tokens first."""
    tokens: Counter[str] = Counter()
    for file in files:
        tokens.update(dict.fromkeys(file.agents, file.tokens))
    return tuple(AgentCost(agent=agent, tokens=count) for agent, count in tokens.most_common())
