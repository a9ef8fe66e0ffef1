"""`ralphdeck task log`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from core.base.errors import BadInput
from core.base.text import plural
from core.cli.render.output import line, print_object, wants_json
from core.cli.support.hooks import CLAUDE_CODE, HookCommand, read_tool_event, use_folder
from core.cli.support.options import COUNT, FRACTION, Command, ExclusiveFlags, OneOf
from core.cli.support.project import chosen_project
from core.cli.support.task_memory import join_milestones, milestone_options, open_task_memory, task_argument
from core.files.file_reader import BOM, decode_json
from core.records.episodes import ACTION_TYPES
from core.tasks.tool_events import FAILED, SUCCEEDED

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
    from core.tasks.tool_events import parse_tool_event

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
