"""`ralphdeck task init`, `start`, `log`, `complete`, `reflect`: record work."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import BadInput, ProjectNotFound, UnknownRecord
from core.base.paths import BEGIN_COMMAND, is_folder
from core.base.text import plural, visible_line
from core.cli.support.hooks import CLAUDE_CODE, HookCommand, read_tool_event, use_folder
from core.cli.support.options import COUNT, FRACTION, Command, ExclusiveFlags, NumberRange, OneOf, choose_mode
from core.cli.support.output import line, print_object, remark, wants_json, warn
from core.cli.support.project import chosen_project, complete_loop, now, read_configuration, read_snapshot
from core.files.file_reader import BOM, decode_json
from core.records.episodes import ACTION_TYPES
from core.records.loops import Outcome
from core.records.reflections import REFLECTION_TYPES, TRIGGERS
from core.tasks.validation import FAILED, MAX_PERCENT, SUCCEEDED
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.cli.support.options import Decorated
    from core.sources.configuration import Configuration
    from core.tasks.protocol import Episodes


class _TaskId(click.types.StringParamType):
    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        return "Name the task, or set RALPHDECK_TASK."


class _TaskArgument(click.Argument):
    """An argument that the environment may replace."""

    def make_metavar(self, ctx: click.Context) -> str:
        return "[TASK]"

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return "'TASK'"


task_argument: Final = click.argument("task_id", cls=_TaskArgument, type=_TaskId(), envvar="RALPHDECK_TASK")
"""The task; an agent may set it once for all of its hooks."""


def milestone_options(command: Decorated) -> Decorated:
    """Add `--milestone` and `--milestone-details`; see `join_milestones`."""
    details = click.option(
        "--milestone-details",
        metavar="TEXT",
        multiple=True,
        help="Details of the milestone that was given at the same position.",
    )
    milestone = click.option(
        "--milestone", "milestones", metavar="TEXT", multiple=True, help="A milestone; may be repeated."
    )
    return milestone(details(command))


def join_milestones(events: Sequence[str], details: Sequence[str]) -> list[dict[str, str]]:
    """Pair milestones with details; UsageError for details without a milestone."""
    if len(details) > len(events):
        raise click.UsageError("--milestone-details needs a --milestone")
    return [{"event": event, "details": text} for event, text in zip_longest(events, details, fillvalue="")]


def open_task_memory(*, may_create: bool = False) -> Episodes:
    """Open the task memory of the chosen project.

    With `may_create` it is created in a folder without `.aiwg`, if `--project` names the folder. Raises ProjectNotFound
    if there is no project or no task memory; the message explains how to create one.
    """
    from core.tasks.protocol import Episodes

    project = chosen_project()
    if not may_create and not is_folder(project.aiwg):
        raise ProjectNotFound(
            f"no .aiwg in {project.project}; begin with: {BEGIN_COMMAND} {quote(str(project.project))}"
        )
    return Episodes(project, clock=now, warn=warn)


_agent_option: Final = partial(click.option, "--agent", metavar="NAME", default="", envvar="RALPHDECK_AGENT")


@click.command(cls=Command)
@click.argument("description", required=False, default="")
@click.option("--criteria", metavar="TEXT", default="", help="How to know that the task is done.")
@click.option("--tag", "tags", metavar="WORD", multiple=True, help="A tag; may be repeated.")
@click.option("--related", metavar="TASK", multiple=True, help="A related task; may be repeated.")
@_agent_option(help="The agent. Default: $RALPHDECK_AGENT.")
@click.option("--loop", metavar="ID", shell_complete=complete_loop, help="Copy task, criteria and tags of this loop.")
@click.option("--id", "task_id", metavar="ID", help="ID of the task. Default: the next free task-NNN.")
def init(
    description: str,
    criteria: str,
    tags: tuple[str, ...],
    related: tuple[str, ...],
    agent: str,
    loop: str | None,
    task_id: str | None,
) -> None:
    """Create a task with this DESCRIPTION and print its ID.

    In a folder without .aiwg, name the folder with --project: .aiwg/ralph is created there, and nowhere else.

    \b
    Examples:
      id=$(ralphdeck task init "Add OAuth login" --criteria "npm test passes" --tag auth)
      id=$(ralphdeck task init --loop ralph-fix-auth-a1b2c3d4)
      id=$(ralphdeck task init "Add OAuth login" --project .)
    """
    memory = open_task_memory(may_create=True)
    source = None
    if loop is not None:
        source = read_snapshot().find_loop(loop)
        if source is None:
            raise UnknownRecord(f"no loop {visible_line(loop, 80)}; see: ralphdeck loop list")
        description, criteria = description or source.task, criteria or "; ".join(source.criteria)
        tags, agent = tags or source.tags, agent or source.owner
    if not description:
        raise click.UsageError("give a DESCRIPTION of the task, or a --loop that has one")
    made = memory.init_task(
        description,
        criteria=criteria,
        tags=tags,
        related=related,
        agent=agent,
        loop_id=source.id if source else "",
        task_id=task_id,
    )
    if wants_json():
        from core.cli.json import tasks as tasks_json  # agents call this command, and print no JSON

        print_object(tasks_json.TaskCreated, id=made)
    else:
        line(made)


@click.command(cls=Command)
@task_argument
@_agent_option(help="The agent. Default: $RALPHDECK_AGENT, else that of the task.")
@click.option("--approach", metavar="TEXT", default="", help="What the attempt tries, in one line.")
@click.option("--step", "steps", metavar="TEXT", multiple=True, help="A step of the plan; may be repeated.")
@click.option("--estimate", "estimated_iterations", type=COUNT, metavar="N", help="Estimated number of iterations.")
@click.option(
    "--similar/--no-similar",
    "with_similar",
    default=True,
    help="Add what similar tasks and loops learned, as loop inject does. Default: yes, which reads the whole project.",
)
@click.option("--resume", is_flag=True, help="Continue an open attempt, if there is one.")
@click.option("--abandon", is_flag=True, help="Close an open attempt as a timeout first.")
@click.option("--reopen", is_flag=True, help="Start even if the task is completed or has failed.")
def start(task_id: str, with_similar: bool, **options: Any) -> None:
    """Start the next attempt at TASK, and print its plan with earlier learnings.

    The learnings are those of earlier attempts and similar tasks. If the task is paused, or with --resume, the open
    attempt continues, and its plan is printed unchanged. The plan is saved in plan.md.

    \b
    Examples:
      ralphdeck task start task-001 --approach "types first" --step "update the interface" --step "run tsc"
      ralphdeck task start task-001 --resume
      ralphdeck task start task-001 --abandon --json | jq -r .attempt
    """
    require_trust(chosen_project())
    configuration = read_configuration()
    started = open_task_memory().start_attempt(
        task_id,
        similar=_similar(task_id, configuration) if with_similar else (),
        orders=configuration.settings.scan.holds_other_texts,
        **options,
    )

    if wants_json():
        from core.cli.json import tasks as tasks_json  # agents call this command, and print no JSON

        print_object(tasks_json.AttemptStarted, started, id=task_id)
    else:
        for text in started.plan.splitlines():
            line(text)
        if started.resumed:
            remark(f"attempt {started.number} continues")


def _similar(task_id: str, configuration: Configuration) -> tuple[tuple[str, str], ...]:
    """Return (ID, text) of learnings of similar tasks and loops, best first."""
    settings = configuration.settings.injection
    if not (settings.enabled and settings.include_reflections):
        return ()
    from core.index.contexts import find_similar_reflections
    from core.retrieval.embeddings import TASKS, Embeddings
    from core.tasks.task_links import collect_past_tasks

    snapshot = read_snapshot(configuration)
    task = collect_past_tasks(snapshot).get(task_id)
    if task is None:
        return ()
    found = find_similar_reflections(task, snapshot, configuration.settings, now(), Embeddings(chosen_project(), TASKS))
    return tuple((one.sources[0], one.text) for one in found)


def _pause(task_id: str) -> None:
    """Pause a task; an open attempt stays open."""
    open_task_memory().pause_task(task_id)
    text = f"{task_id} is paused; resume it with: ralphdeck task start {task_id}"
    if wants_json():
        from core.cli.json import tasks as tasks_json  # agents call this command, and print no JSON

        print_object(tasks_json.TaskPaused, id=task_id, status="paused")
    else:
        line(text)


class _Choice(OneOf):
    """Words with hyphens; also accepts the underscores of --json."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(str(value).replace("_", "-"), param, ctx)


class _CompleteCommand(Command, ExclusiveFlags):
    """A command whose flags exclude one another."""


@click.command(cls=_CompleteCommand)
@task_argument
@click.option("--success", "outcome", flag_value=Outcome.SUCCESS.value, help="The attempt reached the goal.")
@click.option("--failure", "outcome", flag_value=Outcome.FAILURE.value, help="The attempt failed.")
@click.option("--timeout", "outcome", flag_value=Outcome.TIMEOUT.value, help="The attempt ran out of time.")
@click.option("--reason", metavar="TEXT", default="", help="Reason for the outcome.")
@click.option("--quality", "final_quality", type=FRACTION, help="Quality of the work. Default: the last logged one.")
@click.option(
    "--percent",
    "completion_percent",
    type=NumberRange(0, MAX_PERCENT),
    metavar="N",
    help="Percentage of the task done.",
)
@click.option("--worked", metavar="TEXT", multiple=True, help="What worked; may be repeated.")
@click.option("--didnt-work", metavar="TEXT", multiple=True, help="What did not work; may be repeated.")
@click.option(
    "--suggest", "suggestions", metavar="TEXT", multiple=True, help="What to do differently next time; may be repeated."
)
@milestone_options
@click.option("--done", "done", flag_value=True, type=bool, default=None, help="The task is completed.")
@click.option("--give-up", "done", flag_value=False, type=bool, help="The task has failed.")
@click.option("--attempt", type=COUNT, metavar="N", help="The attempt. Default: the newest.")
@click.option("--pause", is_flag=True, help="Close nothing: pause the task. The next start resumes an open attempt.")
def complete(
    task_id: str, outcome: str | None, done: bool | None, attempt: int | None, pause: bool, **parts: Any
) -> None:
    """Close the attempt at TASK with its outcome, and draft the reflection on it.

    Without --success, --failure or --timeout the outcome is derived from the log: from the last check (test, build,
    type check, linter) if no file was changed after it, otherwise from the last action if it failed. Without such
    evidence the command fails and changes nothing.

    The task itself ends only with --done or --give-up, in this call or a later one. A call can be repeated after a
    crash: missing steps are completed, and the outcome of a closed attempt does not change.

    \b
    Examples:
      ralphdeck task complete task-001 --failure --reason "types are missing" --suggest "interface first"
      ralphdeck task complete task-001 --success --reason "all green" --worked "types first"
      ralphdeck task complete task-001 --done
      ralphdeck task complete task-001 --pause
    """
    if pause:
        choose_mode({"--pause": "task_id"})
        _pause(task_id)
        return
    ignored = [param.opts[0] for param in click.get_current_context().command.params if parts.get(param.name or "")]
    parts["milestones"] = join_milestones(parts["milestones"], parts.pop("milestone_details"))
    completed = open_task_memory().complete_attempt(
        task_id, outcome=Outcome(outcome) if outcome is not None else None, attempt=attempt, task_done=done, **parts
    )

    from core.cli.support.document import print_reflections

    if wants_json():
        from core.cli.json import tasks as tasks_json  # agents call this command, and print no JSON

        print_object(tasks_json.AttemptCompleted, completed, id=task_id)
    else:
        by_log = ", derived from the log" if completed.derived else ""
        counts = f"{plural(completed.log.actions, 'action')}, {plural(completed.log.errors, 'error')}"
        line(f"attempt {completed.number} at {task_id}: {completed.outcome.value}{by_log} ({counts})")
        line(f"{task_id} is {completed.status.value}")
        print_reflections(completed.reflections)
        if completed.again and ignored:
            remark(f"attempt {completed.number} is already closed; {' and '.join(ignored)} ignored")
        if completed.outcome is Outcome.SUCCESS and not completed.status.ended:
            remark(f"the task is still open; to complete it: ralphdeck task complete {task_id} --done")
        if any(one.draft for one in completed.reflections):
            remark(f"drafted from the log; to improve it: ralphdeck task reflect {task_id} --learning TEXT")


@click.command(cls=Command)
@task_argument
@click.option("--observation", metavar="TEXT", default="", help="What happened.")
@click.option("--analysis", metavar="TEXT", default="", help="Why it happened.")
@click.option("--learning", metavar="TEXT", default="", help="What to do differently.")
@click.option("--action-item", "action_items", metavar="TEXT", multiple=True, help="What to do next; may be repeated.")
@click.option("--trigger", type=OneOf(TRIGGERS), default="manual", show_default=True)
@click.option(
    "--type", "reflection_type", type=_Choice(REFLECTION_TYPES), help="Default: decided by the outcome of the attempt."
)
@click.option("--attempt", type=COUNT, metavar="N", help="The attempt. Default: the newest.")
def reflect(task_id: str, attempt: int | None, **parts: Any) -> None:
    """Write the reflection on an attempt at TASK; it replaces the draft from the log.

    Missing parts are taken from the draft. The plan of the next attempt includes the reflection. If the command is
    called several times, the plan has the last learning, and the history has all of them.

    \b
    Examples:
      ralphdeck task reflect task-001 --observation "3 type errors" --analysis "the interface was not updated" \\
        --learning "types first" --action-item "update AuthConfig" --action-item "run tsc before the tests"
    """
    from core.cli.support.document import print_reflections

    reflection = open_task_memory().reflect(task_id, attempt, **parts)
    if wants_json():
        from core.cli.json import tasks as tasks_json  # agents call this command, and print no JSON

        print_object(tasks_json.ReflectionWritten, reflection=reflection)
    else:
        print_reflections([reflection])


STDIN: Final = "-"
MAX_INPUT: Final = 64 << 20  # Longest input of one call in bytes.
_DECODER: Final = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)
"""Used only to find the end of a document."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_EXPECTED: Final = "expected an action, or an array of them; nothing was logged"
_HOOK_HELP: Final = (
    f"Log the tool call of a hook event on stdin: {SUCCEEDED} and {FAILED} of Claude Code. Only with --attempt, "
    "--iteration and --project. Prints nothing. Errors are reported on stderr only, and the exit code is 0."
)


class _LogCommand(Command, ExclusiveFlags, HookCommand):
    """A command with exclusive flags that can also answer a hook."""


@click.command(cls=_LogCommand, skipped="logs nothing")
@task_argument
@click.option("--type", type=OneOf(ACTION_TYPES), help="Type of the action.")
@click.option("--tool", metavar="NAME", help="The tool.")
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="A parameter; may be repeated.")
@click.option("--success", "success", flag_value=True, type=bool, default=None, help="It succeeded.")
@click.option("--failure", "success", flag_value=False, type=bool, help="It failed.")
@click.option("--output", metavar="TEXT", help="Its output.")
@click.option("--error", metavar="TEXT", help="Its error.")
@click.option("--reasoning", metavar="TEXT", help="The reason for it.")
@click.option("--expected", "expected_outcome", metavar="TEXT", help="The expected result.")
@click.option("--iteration", type=COUNT, metavar="N", help="The iteration. Default: the last one given, or 1.")
@click.option("--quality", type=FRACTION, help="Quality of the work so far.")
@click.option("--result", "results", metavar="FILE", multiple=True, help="Save a copy of a file with the iteration.")
@milestone_options
@click.option("--json-lines", "lines", metavar="FILE", help="Log actions from a file of JSON; - is stdin.")
@click.option("--attempt", type=COUNT, metavar="N", help="The attempt, which must be open. Default: the newest.")
@click.option("--hook", type=OneOf([CLAUDE_CODE]), help=_HOOK_HELP)
def log(
    task_id: str,
    iteration: int | None,
    quality: float | None,
    results: tuple[str, ...],
    milestones: tuple[str, ...],
    milestone_details: tuple[str, ...],
    lines: str | None,
    attempt: int | None,
    hook: str | None,
    params: tuple[str, ...],
    **fields: Any,
) -> None:
    """Log actions of the open attempt at TASK: one action, or many with --json-lines.

    The input of --json-lines is JSON lines, objects as jq prints them, or a JSON array. The keys of an object are
    {timestamp, iteration, type, tool, params, success, output, error, reasoning, expected_outcome, quality}; only type
    is required. Either all actions are logged or none. If the actions have timestamps, an immediate repetition of the
    call does not log them twice.

    Long texts in params, output and error are shortened to their start and end.

    \b
    Examples:
      ralphdeck task log task-001 --type edit --tool Edit --param file_path=src/auth.ts --success
      ralphdeck task log task-001 --type bash --tool Bash --param command="npm test" --failure \\
        --error "3 failing" --reasoning "see what is left" --expected "green"
      ralphdeck task log task-001 --iteration 2 --quality 0.6 --result coverage.txt --milestone "types are green"
      ralphdeck task log task-001 --json-lines - < actions.jsonl
      RALPHDECK_TASK=task-001 claude             with a hook that calls: ralphdeck task log --hook claude-code
    """
    fields["params"] = _params(params) or None
    action = {name: value for name, value in fields.items() if value is not None}
    if hook is not None:
        if (
            action
            or lines is not None
            or quality is not None
            or results
            or milestones
            or milestone_details
            or wants_json()
        ):
            raise click.UsageError("--hook allows only --attempt, --iteration and --project")
        _log_event(task_id, attempt, iteration)
        return
    if action and lines is not None:
        raise click.UsageError("--json-lines has the actions; leave out the options of a single action")
    if action and "type" not in action:
        raise click.UsageError("an action needs a --type")
    if not action and lines is None and quality is None and not results and not milestones:
        raise click.UsageError("give an action, --json-lines, --quality, --result or --milestone")
    logged = open_task_memory().log_actions(
        task_id,
        _actions(lines) if lines is not None else [action] if action else [],
        attempt=attempt,
        iteration=iteration,
        quality=quality,
        results={Path(file).name: _content(file) for file in results},
        milestones=join_milestones(milestones, milestone_details),
    )
    total = plural(logged.actions, "action")
    text = f"attempt {logged.number} at {task_id}: {logged.added:,} logged, {total} in total"
    if wants_json():
        from core.cli.json import tasks as tasks_json  # agents call this command, and print no JSON

        print_object(tasks_json.ActionsLogged, logged, id=task_id)
    else:
        line(text)


def _log_event(task_id: str, attempt: int | None, iteration: int | None) -> None:
    from core.tasks.validation import parse_tool_event

    event = read_tool_event()
    folder = event.get("cwd")
    use_folder(folder if isinstance(folder, str) else "")
    action = parse_tool_event(event, str(chosen_project().project))
    open_task_memory().log_actions(task_id, [action], attempt=attempt, iteration=iteration)


def _params(given: Sequence[str]) -> dict[str, str]:
    params = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--param {text!r} is not NAME=VALUE")
        params[name] = value
    return params


def _actions(file: str) -> list[dict[str, Any]]:
    """Read the actions of a file: any sequence of JSON objects and arrays of objects."""
    name = "stdin" if file == STDIN else file
    data = _content(file)
    if len(data) > MAX_INPUT:
        raise BadInput(f"{name} has more than {MAX_INPUT:,} bytes; log them in several calls")
    found = []
    for place, value in _documents(name, data.removeprefix(BOM)):
        entries = [(place, value)]
        if isinstance(value, list):
            entries = [(f"{place}, entry {number}", entry) for number, entry in enumerate(value, 1)]
        for where, entry in entries:
            if not isinstance(entry, dict):
                raise BadInput(f"{name}, {where}: expected an object; nothing was logged")
            found.append(entry)
    return found


def _documents(name: str, data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the JSON documents, each with the number of its first line."""
    text = data.decode("latin-1")  # one character a byte; the documents are decoded from the bytes
    position, lines, counted = _SPACE.match(text).end(), 1, 0  # type: ignore[union-attr]  # it matches anywhere
    while position < len(text):
        lines, counted = lines + text.count("\n", counted, position), position
        place = f"line {lines}"
        try:
            _, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            place = f"line {lines + text.count(chr(10), counted, error.pos)}"
            raise BadInput(f"{name}, {place}: is not JSON: {error.msg}; {_EXPECTED}") from None
        except RecursionError:
            raise BadInput(f"{name}, {place}: is nested too deeply; {_EXPECTED}") from None
        decoded = decode_json(data[position:end])
        for problem in decoded.problems:
            wrong = problem.message.partition(" and was read as null")[0]
            raise BadInput(f"{name}, {place}: {wrong}; {_EXPECTED}")
        yield place, decoded.value
        position = _SPACE.match(text, end).end()  # type: ignore[union-attr]


def _content(file: str) -> bytes:
    if file != STDIN:
        with Path(file).open("rb") as opened:
            return opened.read(MAX_INPUT + 1)
    if sys.stdin is None:
        raise BadInput("stdin is closed; --json-lines - reads actions from it. Nothing was logged")
    return sys.stdin.buffer.read(MAX_INPUT + 1)
