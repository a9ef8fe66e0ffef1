"""`ralphdeck task list`, `show` with replay, and `search`: what happened before."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from core.base.errors import BadInput, UnknownRecord
from core.base.masking import mask_secrets
from core.base.settings import WatchSettings
from core.base.text import plural, visible_line
from core.base.validation import ambiguous_id_error, find_matching_ids
from core.cli.json import loops as loops_json
from core.cli.json import tasks as tasks_json
from core.cli.support.document import DIFF_COLOURS, print_document, print_reflections
from core.cli.support.options import (
    MOMENT,
    NumberRange,
    Parsed,
    ReadingCommand,
    WholeNumber,
    choose_mode,
    filter_argument,
    read_filter,
    words_option,
)
from core.cli.support.output import (
    OUTCOME_COLOURS,
    Column,
    end,
    id_column,
    json_bytes,
    line,
    minute,
    percent,
    print_json,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.project import chosen_project, complete_task, now, read_configuration, read_snapshot
from core.files.atomic_write import export_file, write_file
from core.index.search_words import SearchFilters, SearchHit, SearchPlace, SearchWords
from core.records.episodes import TASK_STATUSES, Attempt, Task, TaskStatus, group_by_task
from core.records.loops import Outcome
from core.show.pages.markdown import blocks_markdown, to_markdown
from core.tasks.attempts import MAX_PAUSE, AttemptCondition, AttemptState, Verdict, assess_attempt, describe_state
from core.tasks.task_links import MAX_TASKS
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.cli.json.wire import Wire
    from core.records.findings import Finding
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import PastTask
    from core.tasks.attempts import ReplayStep
    from core.tasks.history import AttemptDetail, TaskHistory, WholeHistory
    from core.tasks.task_links import SimilarTask


_LIMIT: Final = 50
_MARKDOWN: Final = frozenset({".md", ".markdown"})


_MODES: Final = {
    "--replay": "task number speed first errors full",
    "": "task number only_reflections outcome export limit",
}


@click.command(cls=ReadingCommand, modes=_MODES)
@click.argument("task", shell_complete=complete_task)
@click.option("--attempt", "number", type=WholeNumber(min=0), metavar="N", help="Only this attempt and its actions.")
@click.option("--reflections", "only_reflections", is_flag=True, help="Only the reflections.")
@words_option(
    "--outcome",
    words=(outcome.value for outcome in Outcome),
    help="Only attempts with these outcomes, and their reflections; unknown: open attempts.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write it to FILE: Markdown for .md, JSON for .json.",
)
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    default=_LIMIT,
    show_default=True,
    metavar="N",
    help="Print the last N attempts, milestones and reflections. Exports and --json have all.",
)
@click.option("--replay", is_flag=True, help="Step through an attempt: each action with its reason, result and time.")
@click.option(
    "--speed",
    type=NumberRange(min=0),
    default=10.0,
    show_default=True,
    metavar="X",
    help=f"On a terminal: wait between the steps as long as the agent took (at most {MAX_PAUSE:.0f} "
    "seconds), divided by X; 0: do not wait.",
)
@click.option("--from", "first", type=WholeNumber(min=1), default=1, metavar="N", help="Replay from action N.")
@click.option("--errors", is_flag=True, help="Replay only failed actions.")
@click.option("--full", is_flag=True, help="Replay with all lines of the results.")
def show(
    task: str,
    number: int | None,
    only_reflections: bool,
    outcome: frozenset[str],
    export: Path | None,
    limit: int,
    replay: bool,
    speed: float,
    first: int,
    errors: bool,
    full: bool,
) -> None:
    """Print the attempts at TASK, with their outcomes and what was learned.

    TASK is the ID of a task or a part of it, or an attempt such as task-001.2. Only the files of this task are read. An
    open attempt counts as unfinished if it had no activity for 30 minutes (watch.stale_after_minutes), or if its
    task has ended.

    JSON has all attempts and their actions. Markdown has the last 500 actions of each attempt on one line each; with
    --attempt it has all actions in full.

    --replay steps through an attempt, the last one by default. Ctrl-C stops it. Long outputs are shortened to their
    first and last lines. The result of a failed action is its error, followed by its output.

    \b
    Examples:
      ralphdeck task show task-001
      ralphdeck task show task-001 --attempt 2
      ralphdeck task show task-001 --reflections --outcome failure,timeout
      ralphdeck task show task-001 --export task-001.md
      ralphdeck task show task-001.2 --replay --errors --speed 0
      ralphdeck task show task-001 --replay --attempt 2 --from 40 --json | jq '.steps[].verdict'
    """
    if choose_mode(_MODES):
        replay_attempt(task, number, speed, first, errors=errors, full=full)
        return
    from core.tasks.history import read_attempt
    from core.tasks.task_files import find_attempt

    if export is not None and export.suffix.lower() not in {*_MARKDOWN, ".json"}:
        raise click.UsageError(f"--export writes .md or .json, not {export.suffix or 'a file without a suffix'}")
    paths = chosen_project()
    file = export_file(str(export), paths) if export is not None else None
    task_id, attempt = find_attempt(paths, task, number)
    outcomes = frozenset(map(Outcome, outcome))
    if outcomes and attempt is not None:
        raise click.UsageError("--outcome filters all attempts; leave out the number of the attempt")
    if file is None and not wants_json():
        end(_print(paths, task_id, attempt, outcomes, only_reflections, limit))
        return
    found = _read_all(paths, task_id, outcomes) if attempt is None else read_attempt(paths, task_id, attempt)
    if file is not None:
        if file.suffix.lower() in _MARKDOWN:
            write_file(file, _markdown(found, only_reflections))
        else:
            write_file(file, json_bytes(_json(found, only_reflections), indent=2))
    if wants_json():
        print_json(_json(found, only_reflections))
    else:
        line(f"wrote {visible_line(str(file), 300)}")
    end(_findings(found))


def _print(
    paths: ProjectPaths,
    task_id: str,
    attempt: int | None,
    outcomes: Collection[Outcome],
    only_reflections: bool,
    limit: int,
) -> Sequence[Finding]:
    """Print a task or one attempt, and return the findings."""
    from core.show.pages.tasks import attempt_document, task_document
    from core.tasks.history import (
        COUNT_DIFFERS,
        AttemptDetail,
        TaskHistory,
        filter_history,
        read_attempt,
        read_history,
    )

    shown: TaskHistory | AttemptDetail
    if attempt is None:
        whole = read_history(paths, task_id)
        shown = filter_history(whole, lambda one: one.outcome in outcomes) if outcomes else whole
    else:
        shown = read_attempt(paths, task_id, attempt)
        # The state of an open attempt depends on the others.
        whole = read_history(paths, task_id) if shown.attempt.is_open else TaskHistory(Task(id=task_id))
    states = _AttemptStates(whole)
    if only_reflections:
        print_reflections(shown.reflections[-limit:])
        if not shown.reflections:
            remark("no reflections")
    elif isinstance(shown, AttemptDetail):
        print_document(attempt_document(shown, states.condition(shown.attempt)))
    else:
        print_document(task_document(shown, states.condition, limit))
        if whole.attempts and not shown.attempts:
            remark("no attempt has this outcome")
        for finding in shown.findings:
            if finding.code == COUNT_DIFFERS:
                remark(f"{finding.file} {finding.message}")
    return _findings(shown)


def _read_all(paths: ProjectPaths, task_id: str, outcomes: Collection[Outcome]) -> WholeHistory:
    """Read all attempts, or those with certain outcomes, with their actions."""
    from core.tasks.history import WholeHistory, filter_history, read_whole_history

    whole = read_whole_history(paths, task_id)
    if not outcomes:
        return whole
    chosen = tuple(detail for detail in whole.attempts if detail.attempt.outcome in outcomes)
    return WholeHistory(filter_history(whole.task, lambda one: one.outcome in outcomes), chosen)


def _findings(found: TaskHistory | WholeHistory | AttemptDetail) -> Sequence[Finding]:
    from core.tasks.history import AttemptDetail

    return (*found.findings, *found.actions.findings) if isinstance(found, AttemptDetail) else found.findings


def _json(found: WholeHistory | AttemptDetail, only_reflections: bool) -> Wire:
    from core.tasks.history import AttemptDetail

    findings = _findings(found)
    if only_reflections:
        return loops_json.ReflectionList.of(reflections=found.reflections, findings=findings)
    if isinstance(found, AttemptDetail):
        return tasks_json.AttemptDocument.of(found, findings=findings)
    attempts = [tasks_json.AttemptHistory.of(one.attempt, one, log=one.actions) for one in found.attempts]
    return tasks_json.HistoryDocument.of(found.task, attempts=attempts, findings=findings)


def _markdown(found: WholeHistory | AttemptDetail, only_reflections: bool) -> bytes:
    from core.show.pages.reflections import reflection_section
    from core.show.pages.tasks import attempt_document, whole_history_document
    from core.tasks.history import TaskHistory, WholeHistory

    if only_reflections:
        text = blocks_markdown(map(reflection_section, found.reflections), 2) + "\n"
    elif isinstance(found, WholeHistory):
        text = to_markdown(whole_history_document(found, _AttemptStates(found.task).condition))
    else:
        alone = TaskHistory(Task(id=found.attempt.task_id), (found.attempt,))
        text = to_markdown(attempt_document(found, _AttemptStates(alone).condition(found.attempt), full=True))
    return text.encode("utf-8", "replace")


class _AttemptStates:
    """Computes the states of attempts; reads the settings only for open attempts."""

    def __init__(self, history: TaskHistory) -> None:
        self._task: Final = history.task
        self._latest: Final = max((one.number for one in history.attempts), default=0)
        is_open = any(one.is_open for one in history.attempts)
        self._settings: Final = read_configuration().settings.watch if is_open else WatchSettings()

    def condition(self, attempt: Attempt) -> AttemptCondition:
        return assess_attempt(attempt, self._task, self._latest, now(), self._settings)


_COLOURS: Final = {Verdict.SUCCEEDED: "green", Verdict.FAILED: "red", Verdict.UNKNOWN: "yellow"}
_INDENT: Final = "      "
_LABEL: Final = len("expected: ")
_MAX_NAME: Final = 40
_MAX_ABOUT: Final = 200  # Characters of a command or the like that are printed.


def replay_attempt(task: str, number: int | None, speed: float, first: int, *, errors: bool, full: bool) -> None:
    """Print each action of an attempt; on a terminal with pauses divided by `speed`."""
    from core.tasks.attempts import ReplaySteps, pause_after
    from core.tasks.history import read_attempt

    paths = chosen_project()
    detail = read_attempt(paths, *_find(paths, task, number))
    all_steps = ReplaySteps(detail)
    places = [place for place in (detail.actions.errors if errors else range(len(all_steps))) if place >= first - 1]
    findings = (*detail.findings, *detail.actions.findings)

    if wants_json():
        print_object(
            tasks_json.ReplayDocument,
            findings=findings,
            attempt=detail.attempt,
            steps=(_step_json(all_steps[place]) for place in places),
        )
    else:
        line((detail.attempt.id, "bold"), f"  {plural(len(all_steps), 'action')}  {detail.attempt.plan}")
        is_watched = is_terminal()
        for place in places:
            step = all_steps[place]
            _print_step(step, full)
            if is_watched and place != places[-1]:
                time.sleep(pause_after(step, speed))
        if not all_steps:
            remark("no actions were logged")
        elif not places:
            remark(f"no {'failed action' if errors else 'action'}{f' from {first:,}' if first > 1 else ''}")
    end(findings)


def _step_json(step: ReplayStep) -> Wire:
    verdict = "not told" if step.verdict is Verdict.UNKNOWN else step.verdict  # the documented value
    return tasks_json.ReplayStep.of(step.action, step, verdict=verdict)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def _find(paths: ProjectPaths, task: str, number: int | None) -> tuple[str, int]:
    from core.tasks.history import read_history
    from core.tasks.task_files import find_attempt

    task_id, number = find_attempt(paths, task, number)
    if number is None:
        attempts = read_history(paths, task_id).attempts
        if not attempts:
            raise UnknownRecord(f"{visible_line(task_id, 80)} has no attempts yet")
        number = attempts[-1].number
    return task_id, number


def _print_step(step: ReplayStep, full: bool) -> None:
    from core.tasks.attempts import shorten_output

    action = step.action
    if step.begins_iteration and action.iteration is not None:
        quality = f"  quality so far {percent(step.quality)}" if step.quality is not None else ""
        line((f"iteration {action.iteration}", "bold"), quality)
    tool = action.tool if action.tool.lower() != action.type else ""
    what = " ".join(filter(None, (action.type, tool, visible_line(action.about, _MAX_ABOUT))))
    verdict = "no result" if step.verdict is Verdict.UNKNOWN else step.verdict.value
    line(f"{action.number:>5} {_clock(step.elapsed)}  {what or 'action'}  ", (verdict, _COLOURS[step.verdict]))
    _print_text("why", action.reasoning)
    for name, text in step.params:
        _print_text(name, text if full else shorten_output(text))
    for row in step.diff:
        line(_INDENT, (row, DIFF_COLOURS.get(row[:1], "")))
    _print_text("expected", action.expected)
    real = step.result if full else step.real
    _print_text("real", real, _COLOURS[step.verdict] if step.verdict is Verdict.FAILED else "")
    _print_text("output", step.output if full else shorten_output(step.output))


def _print_text(name: str, text: str, colour: str = "") -> None:
    """Print a text after its name, padded to a common width."""
    # A secret may span lines, so mask before splitting.
    for number, row in enumerate(mask_secrets(text.strip("\n")).splitlines()):
        label = f"{visible_line(name, _MAX_NAME)}: " if number == 0 else ""
        line(f"{_INDENT}{label:<{_LABEL}}", (row, colour))


def _clock(seconds: float | None) -> str:
    """Format the time since the start: `+1:02:03`."""
    if seconds is None:
        return "        "
    minutes, rest = divmod(int(seconds), 60)
    return f"+{minutes // 60}:{minutes % 60:02}:{rest:02}"


_SNIPPET = 160  # Longest excerpt, in characters.
_MOST_HITS = 50
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
    "--limit", type=WholeNumber(min=0), default=_MOST_HITS, show_default=True, metavar="N", help="At most N hits."
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


_MAX_SHOWN = 300  # Characters of a text that are printed.
COLUMNS = (
    id_column("ID", lambda row: row.task.id),
    Column("STATUS", lambda row: describe_state(row.task, row.attempts)),
    Column("ATTEMPTS", lambda row: str(len(row.attempts)), right=True, expendable=2),
    Column("LAST OUTCOME", lambda row: row.last.label, colours=OUTCOME_COLOURS),
    Column(
        "OPEN",
        lambda row: row.condition.state.word if row.condition else "",
        colours={AttemptState.LEFT.word: "yellow"},
    ),
    Column("UPDATED", lambda row: minute(row.task.updated_at), expendable=1),
    Column("DESCRIPTION", lambda row: row.task.description, free=True),
)


class _Row(NamedTuple):
    """One task with its attempts; `open` is the newest open attempt."""

    task: Task
    attempts: Sequence[Attempt]
    last: Outcome
    open: Attempt | None
    condition: AttemptCondition | None

    @property
    def agents(self) -> set[str]:
        return {name.casefold() for name in (self.task.agent, *(one.agent for one in self.attempts))}


@click.command("list", cls=ReadingCommand)
@filter_argument
@words_option("--status", words=TASK_STATUSES, help="Only with these states.")
@click.option("--agent", metavar="NAME", help="Only tasks of this agent.")
@click.option("--open", "only_open", is_flag=True, help="Only tasks with an open attempt.")
@click.option("--similar", metavar="TASK|TEXT", help="List past tasks like this one instead, with their learnings.")
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help=f"With --similar: at most N. Default: {MAX_TASKS}.")
def list_tasks(
    filter_text: tuple[str, ...],
    status: frozenset[str],
    agent: str | None,
    only_open: bool,
    similar: str | None,
    limit: int | None,
) -> None:
    """List tasks: status, attempts, last outcome, and the state of an open attempt.

    FILTER is that of the Loops screen, for tasks and attempts: words, and fields such as is:failed or outcome:timeout.

    An open attempt counts as unfinished if it had no activity for 30 minutes (watch.stale_after_minutes), or if its
    task has ended.

    With --similar the past tasks are listed that are most like a TASK or a TEXT. TASK is the ID of a task or a part of
    it, or an attempt; any other TEXT describes a future task. Tasks are compared by semantic similarity if `ralphdeck
    doctor --embed` or the dashboard has computed their vectors, otherwise by common words. Learnings of successful
    attempts come first; drafts are listed only if there is no written reflection.

    \b
    Examples:
      ralphdeck task list --status running,paused
      ralphdeck task list --open --json
      ralphdeck task list oauth outcome:failure
      ralphdeck task list --similar task-001
      ralphdeck task list --similar "Add OAuth login to the admin pages" --limit 3 --json
    """
    if choose_mode({"--similar": "limit", "": "filter_text status agent only_open"}):
        _list_similar(similar or "", limit or MAX_TASKS)
        return
    from core.show.work import FIELDS, select_tasks

    query = read_filter(" ".join(filter_text), FIELDS)
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    matching = select_tasks(snapshot, query)
    rows = [
        row
        for row in _rows(snapshot, now(), configuration.settings.watch)
        if row.task.id in matching
        and (not status or row.task.status.value in status)
        and (agent is None or agent.casefold() in row.agents)
        and (row.open is not None or not only_open)
    ]
    if wants_json():
        print_object(tasks_json.TaskList, findings=snapshot.findings, tasks=map(_row_json, rows))
    else:
        print_table(COLUMNS, rows, "no tasks")
    end(snapshot.findings)


def _rows(snapshot: Snapshot, now: datetime, settings: WatchSettings) -> Iterator[_Row]:
    attempts = group_by_task(snapshot.attempts.values())
    for task in sorted(snapshot.tasks.values(), key=lambda task: task.id):
        mine = attempts.get(task.id, ())
        ended = [one.outcome for one in mine if one.outcome is not Outcome.UNKNOWN]
        open_one = next((one for one in reversed(mine) if one.is_open), None)
        condition = assess_attempt(open_one, task, mine[-1].number, now, settings) if open_one is not None else None
        yield _Row(task, mine, ended[-1] if ended else Outcome.UNKNOWN, open_one, condition)


def _row_json(row: _Row) -> Wire:
    return tasks_json.TaskRow.of(
        row.task,
        state=describe_state(row.task, row.attempts),
        attempts=len(row.attempts),
        last_outcome=row.last,
        open_attempt=row.open.number if row.open else None,
        open_state=row.condition.state if row.condition else None,
        open_reason=row.condition.reason if row.condition else None,
    )


def _list_similar(task: str, limit: int) -> None:
    """List similar past tasks with their learnings, most similar first."""
    from core.retrieval.embeddings import TASKS, Embeddings, is_available
    from core.tasks.task_links import collect_past_tasks, find_similar_tasks

    require_trust(chosen_project())
    snapshot = read_snapshot()
    tasks = collect_past_tasks(snapshot)
    embeddings = Embeddings(chosen_project(), TASKS)
    query = _find_task(task, tasks)
    found = find_similar_tasks(query, snapshot, embeddings, limit)
    if embeddings.problem:
        remark(embeddings.problem)

    if wants_json():
        print_object(tasks_json.SimilarTaskList, findings=snapshot.findings, similar=found)
    else:
        for one in found:
            _print_similar(one)
        if not found:
            is_id = isinstance(query, str) and " " not in query.strip()
            remark(f"no similar task{'; no task has this id, so it was compared as text' if is_id else ''}")
        if is_available() and embeddings.missing(tasks):
            remark("some tasks were compared by words only; to compute vectors: ralphdeck doctor --embed")
    end(snapshot.findings)


def _find_task(text: str, tasks: Mapping[str, PastTask]) -> str | PastTask:
    """Find a task by ID, prefix or attempt, else return the text; raises for several."""
    task_id, _, number = text.rpartition(".")
    name = task_id if text not in tasks and task_id in tasks and number.isdecimal() else text
    matches = find_matching_ids(name, tasks)
    if len(matches) > 1:
        raise ambiguous_id_error(text, matches)
    return tasks[matches[0]] if matches else text


def _print_similar(found: SimilarTask) -> None:
    line(
        (visible_line(found.task_id, _MAX_SHOWN), "bold"),
        f"  {percent(found.score)} by {found.matched_by}  {found.outcome.value}  ",
        visible_line(found.description, _MAX_SHOWN),
    )
    for learned in found.learnings:
        attempt = "" if learned.attempt is None else f"attempt {learned.attempt}: "
        line(f"  - {attempt}", visible_line(learned.text, _MAX_SHOWN))
