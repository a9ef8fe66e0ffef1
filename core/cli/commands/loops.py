"""`ralphdeck loop list` and `show`, and the usage of loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.base.errors import BadInput
from core.base.formatting import format_cost, format_count
from core.cli.render.output import Column, end, id_column, print_json, print_table, wants_json
from core.cli.support.id_completion import complete_loop
from core.cli.support.options import ReadingCommand, words_option
from core.cli.support.project import chosen_project, find_loop, now, open_reader, read_configuration, read_snapshot
from core.records.loops import LoopStatus, Usage
from core.show.metrics.sessions import UsageGroup, group_usage, has_usage, sum_usage

if TYPE_CHECKING:
    from msgspec import Struct

    from core.records.snapshot import Snapshot

USAGE_COLUMNS = (
    Column("LOOPS", lambda group: f"{group.loops:,}", right=True),
    Column("TOKENS", lambda group: _count(group.usage.total), right=True),
    Column("INPUT", lambda group: _count(group.usage.input), right=True, expendable=3),
    Column("CACHED INPUT", lambda group: _count(group.usage.cache_read), right=True, expendable=2),
    Column("CACHE WRITES", lambda group: _count(group.usage.cache_write), right=True, expendable=1),
    Column("OUTPUT", lambda group: _count(group.usage.output), right=True, expendable=4),
    Column("COST", lambda group: _cost(group.usage), right=True),
)


def _parse_sources(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    from core.sources.adapters.adapter_table import find_source

    try:
        return frozenset(find_source(name) for names in value for name in names.split(",") if name)
    except BadInput as error:
        raise click.BadParameter(str(error)) from None


source_option = click.option(
    *("--source", "sources"),
    multiple=True,
    callback=_parse_sources,
    metavar="NAME",
    help="Only of these runners or agents, by name or title; aiwg: loops in .aiwg.",
)


@click.command("list", cls=ReadingCommand)
@click.argument("filter_text", metavar="[FILTER]...", nargs=-1)
@words_option("--status", words=(one.value for one in LoopStatus), help="Only with these states.")
@source_option
@click.option("--archived/--no-archived", default=None, help="Only archived sessions, or only the others.")
def list_loops(
    filter_text: tuple[str, ...], status: frozenset[str], sources: frozenset[str], archived: bool | None
) -> None:
    """List the sessions of every runner and agent: those that need you first, then running ones, then the newest.

    FILTER is that of the Loops screen: words, and fields such as is:stuck, status:failed, runner:codex or pattern:ID.

    \b
    Examples:
      ralphdeck loop list is:stuck
      ralphdeck loop list --status running,paused
      ralphdeck loop list --source claude,codex
      ralphdeck loop list --no-archived --json | jq -r '.loops[].id'
    """
    from core.cli.render.document import print_list
    from core.index.project_state import ProjectState
    from core.show import loops as rows
    from core.show.filter_parser import parse_query
    from core.show.needs import find_needs
    from core.show.work import FIELDS, select_loops

    configuration = read_configuration()
    snapshot = read_snapshot(configuration, adapted=True)
    state = ProjectState.open(snapshot, configuration.settings, now())
    query = parse_query(" ".join(filter_text), FIELDS)
    if query.problems:
        raise BadInput(query.problems[0])
    needs = {need.loop_id: need for need in find_needs(state)}
    chosen = [
        loop
        for loop in select_loops(state, query, needs)
        if (not status or loop.status in status)
        and (not sources or loop.source_name in sources)
        and archived in {None, loop.archived}
    ]
    chosen.sort(key=lambda loop: rows.loop_rank(loop, needs.get(loop.id)))
    if wants_json():
        from core.cli.json import loops as loops_json
        from core.cli.json.loops import loop_row

        found = [loop_row(state, loop, needs.get(loop.id)) for loop in chosen]
        print_json(loops_json.LoopList.of(loops=found, findings=snapshot.findings))
    else:
        has_runners = any(loop.runner for loop in chosen)
        columns = [one for one in rows.LISTED if has_runners or one.id not in rows.RUNNER_COLUMNS]
        cells = [rows.loop_cells(state, loop, needs.get(loop.id), state.now, has_lessons=False) for loop in chosen]
        print_list(columns, cells, _empty(snapshot))
    end(snapshot.findings)


def _empty(snapshot: Snapshot) -> str:
    """Return why no loop is listed: the project has none yet, or none was chosen."""
    if snapshot.loops:
        return "no loops"
    from core.agents.plan import find_connected
    from core.show.now import describe_empty

    return describe_empty(find_connected(chosen_project().project))


@click.command(cls=ReadingCommand)
@click.argument("loop_id", metavar="LOOP", shell_complete=complete_loop)
def show(loop_id: str) -> None:
    """Show a session of any runner or agent: what it needs, its iterations, lessons, reflections and files.

    \b
    Examples:
      ralphdeck loop show ralph-fix-auth-a1b2c3d4
      ralphdeck loop show claude:9c0f1e2a --json | jq '.iterations[].result'
    """
    from core.cli.json import loops as loops_json
    from core.cli.render.document import print_document
    from core.show.loops import loop_document
    from core.show.needs import find_need

    project = open_reader(reads_agents=False)
    loop = find_loop(project, loop_id)
    details, view = project.adapters.details(loop), project.view
    need = find_need(view, loop)

    def document() -> Struct:
        from core.cli.json.loops import loop_row

        row = loop_row(view, loop, need)
        texts = {"facts": dict(details.facts), "notes": dict(details.notes)}
        return loops_json.LoopDocument.of(details, loop=row, **texts, findings=findings)

    findings = view.snapshot.findings
    if wants_json():
        print_json(document())
    else:
        print_document(loop_document(view, loop, need, details))
    end(findings)


def show_usage(by: str, sources: frozenset[str]) -> None:
    """Sum the tokens and the reported cost of loops."""
    from core.cli.json import loops as loops_json

    snapshot = read_snapshot(read_configuration(), adapted=True)
    chosen = (loop for loop in snapshot.loops.values() if not sources or loop.source_name in sources)
    loops = list(filter(has_usage, chosen))
    groups = group_usage(loops, by)
    total = UsageGroup(name="total", usage=sum_usage(loops), loops=len(loops))

    def document() -> Struct:

        return loops_json.UsageList.of(by=by, groups=groups, total=total, findings=snapshot.findings)

    if wants_json():
        print_json(document())
    else:
        columns = (id_column(by.upper(), lambda group: group.name), *USAGE_COLUMNS)
        print_table(columns, [*groups, total] if groups else [], "no loop reports tokens or cost")
    end(snapshot.findings)


def _count(count: int | None) -> str:
    return "" if count is None else format_count(count)


def _cost(usage: Usage) -> str:
    return "" if usage.cost_usd is None else format_cost(usage.cost_usd)
