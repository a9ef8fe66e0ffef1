"""`ralphdeck search`: search the task memory."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from core.base.errors import BadInput
from core.base.text import plural
from core.cli.json import tasks as tasks_json
from core.cli.render.output import Column, end, minute, print_object, print_table, remark, wants_json
from core.cli.support.id_completion import complete_task
from core.cli.support.options import MOMENT, Parsed, ReadingCommand, WholeNumber, words_option
from core.cli.support.project import chosen_project, now
from core.index.search_words import SearchFilters, SearchHit, SearchPlace, SearchWords
from core.records.episodes import TaskStatus
from core.records.loops import Outcome

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

_SNIPPET = 160  # Longest excerpt, in characters.
_LIMIT = 50
_NOT_SEARCHED = (
    "Searched: tasks with their attempts, actions, reflections and errors. Not searched: patterns, lessons, and loops "
    "without a task; the palette of the dashboard (key :) finds them"
)
_INDEXING_SECONDS = 2.0  # Time that a search spends on the index after its answer.


def _when(*, end_of_day: bool) -> Parsed[datetime]:
    """Parse a past or future time or an age: `2026-02-01`, `36h`, `7d`, `2w`."""

    def parse(value: Any) -> datetime | None:
        from core.index.search_words import parse_moment

        try:
            return parse_moment(str(value), now(), end_of_day=end_of_day)
        except BadInput:
            return None

    return Parsed("time", "time", MOMENT.usage, parse)


@click.command(cls=ReadingCommand)
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@words_option(
    "--in",
    "places",
    words=(place.value for place in SearchPlace),
    help="Only in these. tasks are tasks, attempts, plans, milestones and results; errors are failed actions, the "
    "error log, and the failures of debug sessions.",
)
@click.option(
    "--task", metavar="TASK", shell_complete=complete_task, help="Only this task, or an attempt such as task-001.2."
)
@words_option("--status", words=(status.value for status in TaskStatus), help="Only tasks with these states.")
@click.option("--agent", metavar="NAME", help="Only records of this agent.")
@words_option(
    "--outcome",
    words=(outcome.value for outcome in Outcome),
    help="Only attempts with these outcomes; of a task, its last attempt.",
)
@click.option(
    "--since", type=_when(end_of_day=False), metavar="TIME", help="Not before this time, such as 2026-02-01 or 7d."
)
@click.option("--until", type=_when(end_of_day=True), metavar="TIME", help="Not after this time, or this day.")
@click.option(
    "--limit", type=WholeNumber(min=0), default=_LIMIT, show_default=True, metavar="N", help="At most N hits."
)
def search(
    query: tuple[str, ...],
    places: frozenset[str],
    task: str | None,
    status: frozenset[str],
    agent: str | None,
    outcome: frozenset[str],
    limit: int,
    **period: datetime | None,
) -> None:
    """Search tasks: their attempts, actions, reflections and errors.

    Lists the records that contain all words of QUERY, ignoring case, best hits first. Patterns and other reflections
    are found by the palette of the dashboard (key :).

    All words must occur in one record, such as an action. For a phrase, put double quotes inside single quotes:
    '"exit 1"'. Whole words that follow each other come first, then whole words, then parts of words, each newest
    first. Times without a zone are UTC. Filters in QUERY, such as in:errors, mean the same as options; tool:NAME, for
    the actions with a tool, has no option.

    \b
    Examples:
      ralphdeck search oauth AuthConfig
      ralphdeck search '"exit 1"' --in errors --outcome failure,timeout
      ralphdeck search tsc --task task-001.2
      ralphdeck search ECONNRESET --since 2026-02-01 --agent software-implementer --json
    """
    from msgspec.structs import replace

    from core.index.search import search_indexed
    from core.index.search_words import parse_search
    from core.tasks.task_files import find_attempt

    paths = chosen_project()
    try:
        words, filters = parse_search(" ".join(query), paths, now())
    except BadInput as error:
        raise click.UsageError(str(error)) from None
    options = {
        "places": frozenset(map(SearchPlace, places)),
        "statuses": frozenset(map(TaskStatus, status)),
        "agent": agent,
        "outcomes": frozenset(map(Outcome, outcome)),
        **period,
    }
    filters = replace(filters, **{name: value for name, value in options.items() if value})
    if task:
        task_id, attempt = find_attempt(paths, task)
        filters = replace(filters, task_id=task_id, attempt=attempt)
    run = search_indexed(paths, words, filters, limit)
    found = run.result
    columns = (
        Column("AT (UTC)", lambda hit: minute(hit.at), expendable=1),
        Column("WHERE", _where, least=24),
        Column("IN", lambda hit: hit.place.value, expendable=2),
        Column("MATCH", lambda hit: words.snippet(hit.text, _SNIPPET), free=True),
    )

    hits = (tasks_json.SearchHit.of(hit, snippet=words.snippet(hit.text, _SNIPPET)) for hit in found.hits)
    try:
        if wants_json():
            print_object(
                tasks_json.SearchResult, findings=found.findings, hits=hits, total=found.total, is_exact=found.is_exact
            )
        else:
            print_table(columns, found.hits)
            if not found.total:
                remark(f"nothing found{_hint(paths, words, filters)}")
                remark(_NOT_SEARCHED)
            elif found.total > len(found.hits):
                more = plural(found.total - len(found.hits), "more hit")
                remark(f"{more if found.is_exact else f'more than {more}'}; see --limit")
        end(found.findings)
    finally:
        run.end(_INDEXING_SECONDS)


def _hint(paths: ProjectPaths, words: SearchWords, filters: SearchFilters) -> str:
    from core.tasks.task_files import task_ids

    if not task_ids(paths):
        return "; this project has no tasks yet"
    if filters != SearchFilters():
        return " that matches the filters; try without them"
    return f": no record has all {len(words)} words; try fewer" if len(words) > 1 else ""


def _where(hit: SearchHit) -> str:
    work = f"{hit.task_id}.{hit.attempt}" if hit.attempt is not None and hit.task_id else hit.task_id
    return f"{work} action {hit.action}" if hit.action is not None else work or hit.subject
