"""`ralphdeck cost`: the tokens of lessons, of agents' own files, and of loops."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from core.base.formatting import format_count, format_percent
from core.base.pattern_titles import name_apart
from core.base.text import plural, visible_line
from core.cli.commands.loops import show_usage, source_option
from core.cli.json import patterns as patterns_json
from core.cli.render.output import Column, end, line, print_object, print_table, wants_json
from core.cli.support.as_of import PastMoment
from core.cli.support.options import OneOf, ReadingCommand, choose_mode
from core.cli.support.project import open_reader
from core.show.metrics import DEFAULT_WEEKS
from core.show.metrics.sessions import GROUPINGS

if TYPE_CHECKING:
    from core.show.metrics.context_cost import AgentCost, ContextCost, FileCost, LessonCost

_MOST_LESSONS: Final = 20
_MOST_SESSIONS: Final = 5
_MOST_COMPARED: Final = 500  # lessons that are compared with the lines of files


@click.command(cls=ReadingCommand)
@click.option(
    "--since",
    type=PastMoment(end_of_day=False),
    help="Only contexts since then, such as 30d; not with --by. Default: 12 weeks.",
)
@click.option("--by", type=OneOf(list(GROUPINGS)), help="Sum the tokens and the reported cost of loops instead.")
@source_option
def cost(since: datetime | None, by: str | None, sources: frozenset[str]) -> None:
    """Show what lessons and agents' own files cost in tokens, and what the lessons prevented.

    The period is that of Metrics, 12 weeks, unless --since has another one. Each lesson: how often it was given, its
    tokens a week, its share of all lessons, whether sessions followed it, and in how many its error did not return
    after that. Then the sessions with most tokens, and the files that agents load: the tokens of each agent in each of
    its sessions, those that only some sessions load, and lines that repeat another line or a lesson. Sizes are
    estimates; "~" marks contexts that were recorded without their size, so that the text of today counts.

    With --by, sums the tokens and the reported cost of all loops, or of those with a --source. A loop counts on the day
    (UTC) of its end or last activity. Cost is what runners and agents reported; nothing is computed from prices, and
    loops that report no cost add none.

    \b
    Examples:
      ralphdeck cost --since 30d
      ralphdeck cost --json | jq '.lessons[] | select(.followed.followed == 0)'
      ralphdeck cost --by model --source claude
      ralphdeck cost --by day --json | jq .total.usage.cost_usd
    """
    if choose_mode({"--by": "sources", "": "since"}):
        show_usage(by or "day", sources)
        return
    from core.show.metrics.context_cost import measure_cost, measure_files, sum_by_agent
    from core.show.metrics.dashboard import list_week_starts

    project = open_reader(reads_agents=False)
    state = project.view
    found = measure_cost(state, since or list_week_starts(state.now, DEFAULT_WEEKS)[0])
    compared = {one.pattern_id: state.snapshot.patterns[one.pattern_id] for one in found.lessons[:_MOST_COMPARED]}
    files = measure_files(project.adapters.all_agent_files(), compared)

    if wants_json():
        print_object(
            patterns_json.CostDocument,
            findings=state.snapshot.findings,
            since=found.since,
            weeks=round(found.weeks, 2),
            given=found.given,
            tokens=found.tokens,
            lessons=[patterns_json.LessonCost.of(one, followed=one.counts) for one in found.lessons],
            sessions=found.sessions,
            files=files,
            agents=sum_by_agent(files),
        )
    else:
        _print_lessons(found)
        _print_files(files, sum_by_agent(files))
    end(state.snapshot.findings)


def _print_lessons(found: ContextCost) -> None:
    if not found.lessons:
        line(f"No lesson was given since {found.since:%Y-%m-%d}.")
        return
    given = plural(found.given, "given lesson")
    line(f"Lessons: about {format_count(found.tokens)} tokens since {found.since:%Y-%m-%d}, {given}")
    shown = found.lessons[:_MOST_LESSONS]
    names = name_apart((one.pattern_id, one.name) for one in shown)
    columns = [
        Column("LESSON", lambda one: visible_line(names[one.pattern_id], 200), free=True, least=30),
        Column("GIVEN", lambda one: f"{one.given:,}", right=True),
        Column("TOKENS", lambda one: f"{'~' if one.is_estimated else ''}{one.tokens:,}", right=True),
        Column("A WEEK", lambda one: f"{one.weekly:,.0f}", right=True, expendable=2),
        Column("SHARE", lambda one: format_percent(one.share), right=True, expendable=1),
        Column("FOLLOWED", _followed),
        Column("PREVENTED", lambda one: f"{one.prevented:,}" if one.prevented else "", right=True),
    ]
    print_table(columns, shown)
    if (more := len(found.lessons) - _MOST_LESSONS) > 0:
        line(f"and {plural(more, 'more lesson')} (--json lists all)")
    line("")
    line("Sessions with most tokens of lessons")
    sessions = [
        Column("SESSION", lambda one: one.work_id, free=True),
        Column("LESSONS", lambda one: f"{one.lessons:,}", right=True),
        Column("TOKENS", lambda one: f"{one.tokens:,}", right=True),
    ]
    print_table(sessions, list(islice(found.sessions, _MOST_SESSIONS)))


def _followed(one: LessonCost) -> str:
    """Such as `7 of 10`: of the sessions with a clear verdict."""
    return f"{one.counts.followed:,} of {one.counts.judged:,}" if one.counts.judged else "can't tell"


def _print_files(files: tuple[FileCost, ...], agents: tuple[AgentCost, ...]) -> None:
    if not files:
        return
    line("")
    each = ", ".join(f"{one.agent} about {format_count(one.tokens)}" for one in agents)
    line(f"Files that an agent loads in each session, in tokens: {each}")
    columns = [
        Column("FILE", lambda one: one.file, free=True),
        Column("AGENTS", lambda one: ", ".join(one.agents), expendable=1),
        Column("TOKENS", lambda one: f"{one.tokens:,}", right=True),
        Column("ON DEMAND", lambda one: f"{one.on_demand:,}" if one.on_demand else "", right=True, expendable=2),
        Column("REPEATED LINES", _repeated, free=True),
    ]
    print_table(columns, files)


def _repeated(one: FileCost) -> str:
    shown = [f"{repeated.line} ({repeated.other})" for repeated in one.repeated[:3]]
    more = len(one.repeated) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
