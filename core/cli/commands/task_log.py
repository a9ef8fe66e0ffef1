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
from core.cli.commands.task_begin import episodes, task_argument
from core.cli.json.shapes import json_help
from core.cli.render.output import line, print_json
from core.cli.support.hooks import CLAUDE_CODE, HookCommand, read_tool_event, work_in
from core.cli.support.options import Count, Fraction, OneOfAKind, json_option, project_option
from core.cli.support.project import chosen_project
from core.episodes.log_summary import ACTION_TYPES
from core.episodes.tool_events import FAILED, SUCCEEDED, parse_tool_event
from core.storage.decoded import BOM
from core.storage.json_reader import decode_json

STDIN: Final = "-"
MAX_INPUT: Final = 64 << 20
"""Most bytes of actions in one call."""
_DECODER: Final = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)
"""Only to find where a document ends."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_EXPECTED: Final = "expected an action, or an array of them; nothing was logged"
_HOOK_HELP: Final = (
    f"Log the tool call that a hook tells of on stdin: {SUCCEEDED} and {FAILED} of Claude Code. Goes with --attempt, "
    "--iteration and --project only. Prints nothing. Whatever goes wrong, it only says so on stderr and exits with 0."
)


class _LogCommand(OneOfAKind, HookCommand):
    """Both."""


@click.command(cls=_LogCommand, undone="logs nothing", epilog=json_help("task log"))
@task_argument
@click.option("--type", "type_", type=click.Choice(ACTION_TYPES), help="What kind of action it was.")
@click.option("--tool", metavar="NAME", help="The tool that was used.")
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="May be given several times.")
@click.option("--success", "success", flag_value=True, type=bool, default=None, help="It went well.")
@click.option("--failure", "success", flag_value=False, type=bool, help="It did not.")
@click.option("--output", metavar="TEXT", help="What came out.")
@click.option("--error", metavar="TEXT", help="What went wrong.")
@click.option("--reasoning", metavar="TEXT", help="Why it was done.")
@click.option("--expected", metavar="TEXT", help="What it was to bring.")
@click.option("--iteration", type=Count(), metavar="N", help="Default: the one that was named last, else 1.")
@click.option("--quality", type=Fraction(), help="What the work is worth by now.")
@click.option("--result", "results", metavar="FILE", multiple=True, help="Keep a copy of a file with the iteration.")
@click.option("--milestone", "milestones", metavar="TEXT", multiple=True, help="What was reached by now.")
@click.option("--json-lines", "lines", metavar="FILE", help="Log actions from a file of JSON; - is stdin.")
@click.option("--attempt", type=Count(), metavar="N", help="Default: the newest, which must be open.")
@click.option("--hook", type=click.Choice([CLAUDE_CODE]), help=_HOOK_HELP)
@project_option
@json_option
def log(
    task_id: str,
    type_: str | None,
    tool: str | None,
    params: tuple[str, ...],
    success: bool | None,
    output: str | None,
    error: str | None,
    reasoning: str | None,
    expected: str | None,
    iteration: int | None,
    quality: float | None,
    results: tuple[str, ...],
    milestones: tuple[str, ...],
    lines: str | None,
    attempt: int | None,
    hook: str | None,
    as_json: bool,
) -> None:
    """Log what was done in the open attempt at TASK: one action, or many at once with --json-lines.

    Of JSON lines, of objects as jq prints them, or of a JSON array, each is {timestamp, iteration, type, tool, params,
    success, output, error, reasoning, expected_outcome, quality}; all but type may be left out. All of them are
    logged, or none. If one of them tells its timestamp, the same call repeated at once logs nothing twice.

    Of a text that is too long to be kept, in params, output or error, both ends are.

    \b
    Examples:
      ralphdeck task log task-001 --type edit --tool Edit --param file_path=src/auth.ts --success
      ralphdeck task log task-001 --type bash --tool Bash --param command="npm test" --failure \\
        --error "3 failing" --reasoning "see what is left" --expected "green"
      ralphdeck task log task-001 --iteration 2 --quality 0.6 --result coverage.txt --milestone "types are green"
      ralphdeck task log task-001 --json-lines - < actions.jsonl
      RALPHDECK_TASK=task-001 claude             with a hook that calls: ralphdeck task log --hook claude-code
    """
    fields = {
        "type": type_,
        "tool": tool,
        "params": _params(params) or None,
        "success": success,
        "output": output,
        "error": error,
        "reasoning": reasoning,
        "expected_outcome": expected,
    }
    told = {name: value for name, value in fields.items() if value is not None}
    if hook is not None:
        if told or lines is not None or quality is not None or results or milestones or as_json:
            raise click.UsageError("--hook goes with --attempt, --iteration and --project only")
        _log_event(task_id, attempt, iteration)
        return
    if told and lines is not None:
        raise click.UsageError("--json-lines tells actions itself; leave out the options of a single one")
    if told and type_ is None:
        raise click.UsageError("an action needs a --type")
    if not told and lines is None and quality is None and not results and not milestones:
        raise click.UsageError("give an action, --json-lines, --quality, --result or --milestone")
    logged = episodes().log_actions(
        task_id,
        _actions(lines) if lines is not None else [told] if told else [],
        attempt=attempt,
        iteration=iteration,
        quality=quality,
        results=_results(results),
        milestones=[{"event": text} for text in milestones],
    )
    if as_json:
        print_json({"id": task_id, "attempt": logged.number, "added": logged.added, "actions": logged.actions})
    else:
        line(
            f"attempt {logged.number} at {task_id}: {logged.added:,} logged, {plural(logged.actions, 'action')} by now"
        )


def _log_event(task_id: str, attempt: int | None, iteration: int | None) -> None:
    """Log the tool call that the event on stdin tells of."""
    event = read_tool_event()
    folder = event.get("cwd")
    work_in(folder if isinstance(folder, str) else "")
    action = parse_tool_event(event, str(chosen_project().project))
    episodes().log_actions(task_id, [action], attempt=attempt, iteration=iteration)


def _params(given: Sequence[str]) -> dict[str, str]:
    params = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--param {text!r} is not NAME=VALUE")
        params[name] = value
    return params


def _actions(file: str) -> list[dict[str, Any]]:
    """The actions of a file: objects and arrays of objects one after another, on a line each or over several."""
    name = "stdin" if file == STDIN else file
    data = _stdin() if file == STDIN else _content(file)
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
    """JSON documents one after another, each with the line that it begins on."""
    text = data.decode("latin-1")  # as long as the bytes; what a document says is read from them
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


def _stdin() -> bytes:
    if sys.stdin is None:
        raise BadInput("stdin is closed; --json-lines - reads actions from it. Nothing was logged")
    return sys.stdin.buffer.read(MAX_INPUT + 1)


def _results(files: Sequence[str]) -> dict[str, bytes]:
    """Contents by name."""
    return {Path(file).name: _content(file) for file in files}


def _content(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return opened.read(MAX_INPUT + 1)
