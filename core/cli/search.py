"""`ralphdeck search`: what happened in the episodic memory."""

from __future__ import annotations

from datetime import datetime

import click

from core.cli.episode_shapes import hit_json
from core.cli.options import Moment, Words, joined, reading_options
from core.cli.output import Column, end, findings_json, minute, print_json, print_table, remark
from core.cli.project import chosen_project
from core.cli.shapes import json_help
from core.episodes.matching import Hit, Place
from core.episodes.names import task_ids
from core.episodes.search_words import SearchWords
from core.episodes.searching import Filters
from core.episodes.searching import search as search_memory
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.text import plural

_SNIPPET = 160
"""Longest excerpt, in characters."""
_LIMIT = 50


@click.command(epilog=json_help("search"))
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "--in",
    "places",
    type=Words([place.value for place in Place]),
    multiple=True,
    help="Only in these. Errors are failed actions, the error log, and the failures of debug sessions.",
)
@click.option(
    "--status",
    type=Words([status.value for status in TaskStatus]),
    multiple=True,
    help="Only tasks in one of these.",
)
@click.option("--agent", metavar="NAME", help="Only what this agent did.")
@click.option(
    "--outcome",
    type=Words([outcome.value for outcome in Outcome]),
    multiple=True,
    help="Only attempts that came out so; of a task, its last attempt.",
)
@click.option("--since", type=Moment(), metavar="TIME", help="Not before this time, such as 2026-02-01.")
@click.option("--until", type=Moment(), metavar="TIME", help="Not after this time.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=_LIMIT, show_default=True, metavar="N", help="At most so many."
)
@reading_options
def search(
    query: tuple[str, ...],
    places: tuple[tuple[str, ...], ...],
    status: tuple[tuple[str, ...], ...],
    agent: str | None,
    outcome: tuple[tuple[str, ...], ...],
    since: datetime | None,
    until: datetime | None,
    limit: int,
    as_json: bool,
    strict: bool,
) -> None:
    """Search tasks, actions, reflections and errors for all words of QUERY, whatever their case; newest first.

    \b
    Examples:
      ralphdeck search oauth AuthConfig
      ralphdeck search "exit 1" --in errors --outcome failure,timeout
      ralphdeck search ECONNRESET --since 2026-02-01 --agent software-implementer --json
    """
    paths = chosen_project()
    words = SearchWords(" ".join(query))
    filters = Filters(
        places=frozenset(map(Place, joined(places))) or frozenset(Place),
        statuses=frozenset(map(TaskStatus, joined(status))),
        agent=agent or "",
        outcomes=frozenset(map(Outcome, joined(outcome))),
        since=since,
        until=until,
    )
    found = search_memory(paths, words, filters, limit)
    if as_json:
        hits = [hit_json(hit, words.snippet(hit.text, _SNIPPET)) for hit in found.hits]
        print_json({"hits": hits, "total": found.total, "findings": findings_json(found.findings)})
    else:
        columns = (Column("AT (UTC)"), Column("WHERE"), Column("IN"), Column("MATCH", free=True))
        print_table(columns, (_row(hit, words) for hit in found.hits))
        if not found.total:
            remark("nothing found" if task_ids(paths) else "nothing found; this project has no tasks yet")
        elif found.total > len(found.hits):
            remark(f"{plural(found.total - len(found.hits), 'more hit')}; see --limit")
    end(found.findings, strict=strict)


def _row(hit: Hit, words: SearchWords) -> tuple[str, ...]:
    where = hit.task_id if hit.attempt is None else f"{hit.task_id}.{hit.attempt}"
    place = f"{where} action {hit.action}" if hit.action is not None else where or hit.subject
    return (
        minute(hit.at),
        place,
        hit.place.value,
        words.snippet(hit.text, _SNIPPET),
    )
