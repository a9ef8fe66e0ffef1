"""`ralphdeck task log`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from core.cli.options import Count, Fraction, OneOfAKind, json_option, project_option
from core.cli.output import line, print_json
from core.cli.shapes import json_help
from core.cli.task_begin import episodes
from core.episodes.log_summary import ACTION_TYPES
from core.errors import BadInput
from core.sources.reading import decode_jsonl
from core.text import plural

STDIN: Final = "-"
MAX_INPUT: Final = 64 << 20
"""Most bytes of actions in one call."""


@click.command(cls=OneOfAKind, epilog=json_help("task log"))
@click.argument("task_id", metavar="TASK")
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
@click.option("--json-lines", "lines", metavar="FILE", help="Log actions from a file of JSON lines; - is stdin.")
@click.option("--attempt", type=Count(), metavar="N", help="Default: the newest, which must be open.")
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
    lines: str | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Log what was done in the open attempt at TASK: one action, or many at once with --json-lines.

    Of JSON lines each is {timestamp, iteration, type, tool, params, success, output, error, reasoning,
    expected_outcome, quality}; all but type may be left out. All of them are logged, or none. Lines that tell their
    timestamp are not logged twice if the same call is repeated.

    \b
    Examples:
      ralphdeck task log task-001 --type edit --tool Edit --param file_path=src/auth.ts --success
      ralphdeck task log task-001 --type bash --tool Bash --param command="npm test" --failure \\
        --error "3 failing" --reasoning "see what is left" --expected "green"
      ralphdeck task log task-001 --iteration 2 --quality 0.6 --result coverage.txt
      ralphdeck task log task-001 --json-lines - < actions.jsonl
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
    if told and lines is not None:
        raise click.UsageError("--json-lines tells actions itself; leave out the options of a single one")
    if told and type_ is None:
        raise click.UsageError("an action needs a --type")
    if not told and lines is None and quality is None and not results:
        raise click.UsageError("give an action, --json-lines, --quality or --result")
    logged = episodes().log_actions(
        task_id,
        _actions(lines) if lines is not None else [told] if told else [],
        attempt=attempt,
        iteration=iteration,
        quality=quality,
        results=_results(results),
    )
    if as_json:
        print_json({"id": task_id, "attempt": logged.number, "added": logged.added, "actions": logged.actions})
    else:
        line(
            f"attempt {logged.number} at {task_id}: {logged.added:,} logged, {plural(logged.actions, 'action')} by now"
        )


def _params(given: Sequence[str]) -> dict[str, str]:
    params = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--param {text!r} is not NAME=VALUE")
        params[name] = value
    return params


def _actions(file: str) -> list[dict[str, Any]]:
    """The actions of a file of JSON lines."""
    data = sys.stdin.buffer.read(MAX_INPUT + 1) if file == STDIN else _content(file)
    if len(data) > MAX_INPUT:
        raise BadInput(f"{file} has more than {MAX_INPUT:,} bytes; log them in several calls")
    found, problems = decode_jsonl(data + b"\n")
    for problem in problems:
        raise BadInput(f"{file}, {problem.place}: {problem.message}; nothing was logged")
    for one in found:
        if not isinstance(one.value, dict):
            raise BadInput(f"{file}, line {one.number}: expected an object; nothing was logged")
    return [one.value for one in found]


def _results(files: Sequence[str]) -> dict[str, bytes]:
    """Contents by name."""
    return {Path(file).name: _content(file) for file in files}


def _content(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return opened.read(MAX_INPUT + 1)
