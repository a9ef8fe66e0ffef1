"""Text output of the history of a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from core.base.text import plural, visible_line
from core.cli.render.output import (
    OUTCOME_COLOURS,
    Column,
    line,
    minute,
    percent,
    print_table,
    remark,
)
from core.cli.support.project import now, read_configuration
from core.config.settings import WatchSettings
from core.episodes.attempt_state import AttemptCondition, assess_attempt
from core.episodes.export import reflection_markdown
from core.episodes.history import (
    COUNT_DIFFERS,
    AttemptDetail,
    TaskHistory,
)
from core.records.episodes import Attempt, Milestone, Quality
from core.records.reflections import Reflection

COLOURS: Final = {**OUTCOME_COLOURS, "running": "yellow", "paused": "yellow", "left unfinished": "yellow"}
_LIMIT: Final = 50
"""So many attempts, milestones and reflections of a task are printed, the last ones."""
MOST_SHOWN: Final = 2_000
"""Characters of one text that are printed; exports and --json have all."""
_MARKDOWN: Final = frozenset({".md", ".markdown"})


def print_history(told: TaskHistory | AttemptDetail, history: TaskHistory, only_reflections: bool, limit: int) -> None:
    states = _States(history)
    if not only_reflections:
        if isinstance(told, TaskHistory):
            _print_task(told, states, limit)
        else:
            _print_attempt(told, states)
    for reflection in told.reflections[-limit:]:
        _print_reflection(reflection)
    if only_reflections and not told.reflections:
        remark("no reflections")
    _print_left_out({"reflection": len(told.reflections) - limit})


class _States:
    """How each attempt came out, or what state it is in while nobody has said."""

    def __init__(self, history: TaskHistory) -> None:
        self._task: Final = history.task
        self.latest: Final = max((one.number for one in history.attempts), default=0)
        is_open = any(one.is_open for one in history.attempts)
        self._settings: Final = read_configuration().settings.watch if is_open else WatchSettings()

    def condition(self, attempt: Attempt) -> AttemptCondition:
        return assess_attempt(attempt, self._task, self.latest, now(), self._settings)

    def came_out(self, attempt: Attempt) -> str:
        """The outcome or the state in a word; nothing where nobody can tell."""
        return self.condition(attempt).state.value if attempt.is_open else attempt.outcome.told


def _print_task(history: TaskHistory, states: _States, limit: int) -> None:
    task = history.task
    line((_short(task.id), "bold"), f"  {task.status.value}  {_short(task.description)}")
    _print_facts(
        (
            ("done when", task.criteria),
            ("tags", ", ".join(task.tags)),
            ("agent", task.agent),
            ("loop", task.loop_id),
            ("related", ", ".join(task.related)),
            ("created", minute(task.created_at)),
            ("completed" if task.completed_at else "updated", minute(task.completed_at or task.updated_at)),
            ("quality", percent(history.final_quality)),
            ("completion", percent(history.completion)),
        )
    )
    columns = (
        Column("ATTEMPT", right=True),
        Column("OUTCOME", colours=COLOURS),
        Column("STARTED (UTC)"),
        Column("MINUTES", right=True, expendable=4),
        Column("ITERATIONS", right=True, expendable=1),
        Column("ACTIONS", right=True, expendable=2),
        Column("QUALITY", right=True),
        Column("PLAN", free=True, expendable=3),
        Column("REASON", free=True),
    )
    print_table(columns, (_row(one, states.came_out(one)) for one in history.attempts[-limit:]))
    if not history.attempts:
        remark("no attempt came out so" if states.latest else "no attempts yet")
    for finding in history.findings:
        if finding.code == COUNT_DIFFERS:
            remark(f"{finding.file} {finding.message}")
    _print_milestones(history.milestones[-limit:])
    _print_left_out({"attempt": len(history.attempts) - limit, "milestone": len(history.milestones) - limit})


def _print_left_out(more: Mapping[str, int]) -> None:
    told = ", ".join(plural(count, f"earlier {noun}") for noun, count in more.items() if count > 0)
    if told:
        remark(f"{told}; see --limit")


def _row(attempt: Attempt, came_out: str) -> tuple[str, ...]:
    newest = attempt.quality[-1].quality if attempt.quality else None  # while it is open
    return (
        str(attempt.number),
        came_out,
        minute(attempt.started_at),
        _minutes(attempt),
        _count(attempt.iterations),
        _count(attempt.actions),
        percent(newest if attempt.final_quality is None else attempt.final_quality),
        attempt.plan,
        attempt.reason,
    )


def _minutes(attempt: Attempt) -> str:
    """How long it took; nothing where a time is missing."""
    if attempt.started_at is None or attempt.ended_at is None:
        return ""
    took = (attempt.ended_at - attempt.started_at).total_seconds() / 60
    return f"{took:.0f}" if took >= 1 else "<1"


def _print_attempt(detail: AttemptDetail, states: _States) -> None:
    attempt = detail.attempt
    came_out = states.came_out(attempt)
    line((_short(attempt.id), "bold"), "  ", (came_out, COLOURS.get(came_out, "")), f"  {_short(attempt.plan)}")
    minutes = _minutes(attempt)
    failed = f", {attempt.errors:,} failed" if attempt.errors else ""
    planned = "" if detail.estimated_iterations is None else f" of {detail.estimated_iterations:,} planned"
    _print_facts(
        (
            ("reason", states.condition(attempt).reason if attempt.is_open else attempt.reason),
            ("agent", attempt.agent),
            ("started", minute(attempt.started_at)),
            ("ended", f"{minute(attempt.ended_at)}{minutes and f' after {minutes} min'}"),
            ("iterations", f"{_count(attempt.iterations)}{planned if attempt.iterations is not None else ''}"),
            ("actions", f"{_count(attempt.actions)}{failed}"),
            *(("step", step) for step in detail.steps),
            *(("worked", text) for text in attempt.worked),
            *(("did not work", text) for text in attempt.failed),
            *(("next time", text) for text in attempt.suggestions),
            ("quality by iteration", "  ".join(map(_quality, attempt.quality))),
            ("quality", percent(attempt.final_quality)),
            ("completion", percent(attempt.completion)),
            *(("result", name) for name in detail.results),
        )
    )
    columns = (
        Column("ACTION", right=True),
        Column("AT (UTC)"),
        Column("TYPE"),
        Column("RESULT", colours={"failed": "red"}),
        Column("ON", free=True),
        Column("WHY", free=True),
    )
    rows = (
        (
            str(action.number),
            f"{action.at:%H:%M:%S}" if action.at else "",
            action.type or action.tool,
            "failed" if action.has_failed else "ok" if action.success else "",
            action.about,
            action.reasoning,
        )
        for action in detail.actions
    )
    print_table(columns, rows)
    if not detail.actions:
        remark("no actions were logged")
    _print_milestones(detail.milestones)


def _quality(one: Quality) -> str:
    return f"{percent(one.quality)} ({one.change})" if one.change else percent(one.quality)


def _print_milestones(milestones: Iterable[Milestone]) -> None:
    for one in milestones:
        of = "" if one.attempt is None else f"  attempt {one.attempt}"
        line(f"milestone  {minute(one.at)}{of}  {_short(one.event)}  {_short(one.details)}")


def _print_reflection(one: Reflection) -> None:
    line()
    heading, *rows = reflection_markdown(one).split("\n")
    line((heading, "bold"))
    for row in rows:
        line(row)


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    for name, text in facts:
        if text:
            line(f"  {name}: {_short(text)}")


def _short(text: str) -> str:
    return visible_line(text, MOST_SHOWN)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
