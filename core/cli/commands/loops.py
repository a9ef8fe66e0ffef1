"""`ralphdeck loop list`, `show`, `extract`, and `cost`: work, lessons and usage."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput, Unwritable
from core.base.formatting import format_cost, format_count, format_percent
from core.base.pattern_titles import name_apart
from core.base.text import plural, visible_line
from core.base.validation import find_matching_ids
from core.cli.support.options import (
    OneOf,
    ReadingCommand,
    ReviewingCommand,
    choose_mode,
    filter_argument,
    reason_option,
    words_option,
)
from core.cli.support.output import (
    Column,
    end,
    id_column,
    line,
    percent,
    print_json,
    print_object,
    print_table,
    remark,
    wants_json,
    warn,
)
from core.cli.support.project import (
    PastMoment,
    chosen_project,
    complete_loop,
    complete_source,
    find_loop,
    now,
    open_project,
    open_reader,
    read_configuration,
    read_snapshot,
)
from core.records.loops import LoopStatus, Usage
from core.records.patterns import PatternType
from core.show.metrics import DEFAULT_WEEKS
from core.show.metrics.sessions import GROUPINGS, UsageGroup, group_usage, has_usage, sum_usage

if TYPE_CHECKING:
    from msgspec import Struct

    from core.decisions.case import Decided
    from core.project.project import Project
    from core.records.extractions import Extraction, Proposal
    from core.records.snapshot import Snapshot
    from core.show.metrics.context_cost import AgentCost, ContextCost, FileCost, LessonCost


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
@filter_argument
@words_option("--status", words=(one.value for one in LoopStatus), help="Only with these states.")
@source_option
@click.option("--archived/--no-archived", default=None, help="Only archived sessions, or only the others.")
def list_loops(
    filter_text: tuple[str, ...], status: frozenset[str], sources: frozenset[str], archived: bool | None
) -> None:
    """List all agent sessions: those that need you, then running ones, then newest.

    FILTER is that of the Loops screen: words, and fields such as is:stuck, status:failed, runner:codex or pattern:ID.

    \b
    Examples:
      ralphdeck loop list is:stuck
      ralphdeck loop list --status running,paused
      ralphdeck loop list --source claude,codex
      ralphdeck loop list --no-archived --json | jq -r '.loops[].id'
    """
    from core.cli.support.document import print_list
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
    """Show a session: what it needs, its iterations, lessons, reflections and files.

    \b
    Examples:
      ralphdeck loop show ralph-fix-auth-a1b2c3d4
      ralphdeck loop show claude:9c0f1e2a --json | jq '.iterations[].result'
    """
    from core.cli.json import loops as loops_json
    from core.cli.support.document import print_document
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
    """Show the tokens of lessons and agents' files, and what lessons prevented.

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
    from core.cli.json import patterns as patterns_json
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


_TYPES: Final = [kind.value for kind in PatternType]


@click.command(cls=ReviewingCommand)
@click.argument("source", metavar="[LOOP|TASK|SESSION|LEARNING]", required=False, shell_complete=complete_source)
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="All ended loops, oldest first, then ended tasks without a loop, then other debug sessions.",
)
@words_option("--types", "types", words=_TYPES, help="Only patterns of these types.")
@click.option("--dry-run", is_flag=True, help="Only show what would be extracted; write nothing.")
@reason_option
def extract(source: str | None, is_all: bool, types: frozenset[str], dry_run: bool, reason: str) -> None:
    """Extract patterns from a LOOP, TASK or debug SESSION into the registry.

    These are errors and their fixes, the approach of a loop or attempt that succeeded, what failed, and code templates.
    A loop includes the attempts at its task; a TASK includes only its own. A LEARNING that recurs (see `lesson
    --recurring`) gives one candidate with the lineage of all loops that reported it.

    If a pattern is already known, a use is added to it instead. A pattern that the same loop has added before, and an
    error pattern that matches too many errors, are refused. Each loop is one decision with one undo.

    \b
    Examples:
      ralphdeck loop extract ralph-fix-auth-a1b2c3d4 --dry-run
      ralphdeck loop extract task-001 --types error,success
      ralphdeck loop extract recurring-1a2b3c4d5e --dry-run
      ralphdeck loop extract --all --json
    """
    from core.cli.commands.decisions import decided_json
    from core.cli.json import decisions as decisions_json
    from core.decisions.commands import Extract
    from core.index.project_state import all_findings

    if (source is None) != is_all:
        raise click.UsageError("give either a LOOP, TASK, debug SESSION or recurring LEARNING, or --all")
    kinds = frozenset(map(PatternType, types)) or frozenset(PatternType)
    project, as_json = open_project(), wants_json()
    if is_all:  # the caller did not work in all of the loops
        project.agent = ""
    results: list[Any] = []
    is_written, is_any = True, False
    for identifier in _ended(project) if source is None else [source]:
        learned = _learn_strategies(project, identifier) if PatternType.SUCCESS in kinds and not dry_run else {}
        extraction = project.extraction(identifier, kinds)
        is_any = is_any or bool(extraction.proposals or learned)
        decided = None
        if not dry_run and (extraction.new or extraction.merges):
            decided = project.decide(Extract(identifier, kinds, reason=reason))
            warn(*decided.warnings)
            is_written = is_written and decided.written
        if as_json:
            results.append(
                decisions_json.ExtractionResult.of(
                    extraction, decided=decided and decided_json(decided), strategies=learned
                )
            )
            continue
        if extraction.proposals or source is not None:
            _print(extraction, decided)
        for work_id, names in learned.items():
            line(f"strategies of {work_id}: {', '.join(names)}")
    if as_json:
        print_json(decisions_json.ExtractionList.of(extractions=results, findings=all_findings(project.view)))
    elif is_all and not is_any:
        remark("nothing to extract; for the reason: ralphdeck loop extract LOOP")
    if not is_written:
        raise Unwritable("some patterns are not in the pattern files yet; they are added when the files are writable")
    end(all_findings(project.view))


def _learn_strategies(project: Project, source_id: str) -> dict[str, list[str]]:
    """Count the decomposition strategies of the loops and attempts of a source."""
    from core.questions.extraction.recorded_work import list_work_ids

    loops = project.view.snapshot.loops
    matches = [] if source_id in loops else find_matching_ids(source_id, loops)
    known = matches[0] if len(matches) == 1 else source_id
    work_ids = list_work_ids(known, project.view.snapshot)
    found = {work_id: list(project.learn_strategies(work_id)) for work_id in work_ids}
    return {work_id: names for work_id, names in found.items() if names}


def _ended(project: Project) -> list[str]:
    """Return the IDs of ended loops, oldest first, then of other tasks and sessions."""
    from core.tasks.task_links import link_tasks

    snapshot = project.view.snapshot
    loops = [loop for loop in snapshot.loops.values() if loop.status.ended]
    loops.sort(key=lambda loop: (loop.ended_at is None, loop.ended_at, loop.id))
    linked = link_tasks(snapshot.tasks, snapshot.loops)
    tasks = [task for task in snapshot.tasks.values() if task.status.ended and task.id not in linked]
    tasks.sort(key=lambda task: (task.completed_at is None, task.completed_at, task.id))
    ids = [*(loop.id for loop in loops), *(task.id for task in tasks)]
    names = {name for loop in loops for name in loop.aliases} | set(ids)
    names |= {task_id for task_id, link in linked.items() if link.loop_id in names}
    sessions = snapshot.debug_sessions.values()
    return ids + [session.id for session in sessions if names.isdisjoint({session.loop_id, session.task_id})]


def _print(extraction: Extraction, decided: Decided | None) -> None:
    line((extraction.source_id, "bold"))
    for proposal in extraction.proposals:
        sign, colour, verdict = _verdict(proposal)
        line((f"  {sign} {proposal.type.value} ", colour), f"{proposal.headline}{verdict}")
        line(f"      from {'; '.join(proposal.trace)}")
    if decided is not None:
        line(f"  {decided.summary}")
    elif not (extraction.new or extraction.merges):
        remark(f"nothing to extract from {extraction.source_id}: {extraction.why_nothing}")


def _verdict(proposal: Proposal) -> tuple[str, str, str]:
    if proposal.refused:
        return "-", "yellow", f" ({proposal.refused})"
    if proposal.duplicate_of:
        from core.retrieval.similarity import cap_similarity  # numpy: only if there are duplicates

        return "=", "", f" ({percent(cap_similarity(proposal.similarity))} similar to {proposal.duplicate_of})"
    return "+", "green", ""
