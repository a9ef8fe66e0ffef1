"""`ralphdeck loop errors`: the errors of a loop or an attempt."""

from __future__ import annotations

import click

from core.base.errors import UnknownRecord
from core.base.formatting import shorten_id
from core.cli.json import objects
from core.cli.json.wire import Wire
from core.cli.render.output import line, print_bytes, remark, respond, warn
from core.cli.support.options import DecidingCommand
from core.cli.support.project import now, open_project
from core.cli.support.work_options import find_work, work_argument
from core.curation.reference_storage import LoggedErrors
from core.learning.decay import parse_moment
from core.learning.errors import ErrorAccumulator, ErrorEntry, classify_error
from core.records.events import ErrorType

TYPES = [kind.value for kind in ErrorType]


@click.command(cls=DecidingCommand)
@work_argument
@click.option("--all", "include_resolved", is_flag=True, help="Resolved errors too.")
@click.option("--add", "message", metavar="MESSAGE", help="Record an error; prints its id.")
@click.option("--type", "error_type", type=click.Choice(TYPES), help="Type of the error. Default: by its words.")
@click.option("--tool", "tool_name", default="", metavar="T", help="The tool that reported it.")
@click.option("--context", default="", metavar="C", help="What was being done.")
@click.option("--stack-trace", default="", metavar="S", help="Where it happened.")
@click.option("--resolve", "error_id", metavar="ID", help="Mark an error as fixed.")
def errors(
    work: str, include_resolved: bool, message: str | None, error_type: str | None, error_id: str | None, **details: str
) -> None:
    """Print the earlier errors of WORK, a loop or an attempt at a task, for the prompt of its retry.

    Without --json nothing else is printed, and nothing without errors. Errors count in the score of the outcome.

    \b
    Examples:
      ralphdeck loop errors task-001.2 >> prompt.md
      ralphdeck loop errors task-001.2 --add "Type error in src/auth.ts" --tool typecheck
      ralphdeck loop errors task-001.2 --resolve 20261121T113600000000-0123456789abcdef
    """
    if message is None and (error_type or any(details.values())):
        raise click.UsageError("--type, --tool, --context and --stack-trace are for --add")
    if message is not None and error_id is not None:
        raise click.UsageError("give either --add or --resolve")
    if message is not None and not message.strip():
        raise click.UsageError("--add is empty")
    project = open_project(records=message is not None)
    warnings: list[str] = []
    work_id = find_work(project.view, work, warnings)
    accumulator = ErrorAccumulator(LoggedErrors(project.project, clock=now, by=project.by, agent=project.agent))
    answer = ""
    if message is not None:
        warn(*warnings)
        kind = error_type or classify_error(message)
        answer = accumulator.record_error(work_id, kind, message, now=now(), **details).id
    elif error_id is not None:
        if error_id not in {entry.id for entry in accumulator.get_errors(work_id)}:
            hint = "ralphdeck loop errors --json"
            raise UnknownRecord(f"{shorten_id(work_id)} has no error {shorten_id(error_id)}; see: {hint}")
        accumulator.resolve_error(error_id)
        answer = f"resolved {error_id}"

    def show() -> None:
        if answer:
            line(answer)
        elif text := accumulator.get_error_context(work_id, include_resolved=include_resolved):
            print_bytes(f"{text}\n".encode("utf-8", "replace"))
        else:
            remark(f"no {'' if include_resolved else 'unresolved '}errors of {shorten_id(work_id)}")

    shown = (one for one in accumulator.get_errors(work_id) if include_resolved or not one.resolved)
    respond(
        "ErrorList",
        show,
        errors=map(_error_json, shown),
        stats=lambda: accumulator.get_error_stats(work_id),
    )


def _error_json(entry: ErrorEntry) -> Wire:
    at = parse_moment(entry.timestamp, "timestamp")
    return objects.LoggedError.of(entry, at=at)
