"""`ralphdeck errors`: the errors of a loop or an attempt, for its next try to know of (2) Error Accumulator."""

from __future__ import annotations

import click

from core.base.errors import UnknownRecord
from core.base.formatting import short_id
from core.cli.json.learning import error_json, stats_json
from core.cli.json.shapes import json_help
from core.cli.render.output import line, print_bytes, print_json, remark, warn
from core.cli.support.id_completion import complete_work
from core.cli.support.options import deciding_options
from core.cli.support.project import now, open_deck
from core.cli.support.work_options import find_work
from core.curation.reference_storage import LoggedErrors
from core.learning.errors import ErrorAccumulator, classify_error
from core.records.events import ErrorType

TYPES = [kind.value for kind in ErrorType]


@click.command(epilog=json_help("loop errors"))
@click.argument("work", shell_complete=complete_work)
@click.option("--all", "everything", is_flag=True, help="Resolved errors too.")
@click.option("--add", "message", metavar="MESSAGE", help="Record an error; prints its id.")
@click.option("--type", "error_type", type=click.Choice(TYPES), help="Of the error. Default: by its words.")
@click.option("--tool", default="", metavar="T", help="Which tool reported it.")
@click.option("--context", default="", metavar="C", help="What was being done.")
@click.option("--stack-trace", default="", metavar="S", help="Where it happened.")
@click.option("--resolve", "error_id", metavar="ID", help="Note that an error was fixed.")
@deciding_options
def errors(
    work: str,
    everything: bool,
    message: str | None,
    error_type: str | None,
    tool: str,
    context: str,
    stack_trace: str,
    error_id: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Print what the prompt of a retry of WORK, a loop or an attempt at a task, tells of its earlier errors.

    Without --json that is all that is printed, and nothing if there are none. Errors count in the outcome.

    \b
    Examples:
      ralphdeck errors task-001.2 >> prompt.md
      ralphdeck errors task-001.2 --add "Type error in src/auth.ts" --tool typecheck
      ralphdeck errors task-001.2 --resolve 20261121T113600000000-0123456789abcdef
    """
    if message is None and (error_type or tool or context or stack_trace):
        raise click.UsageError("--type, --tool, --context and --stack-trace are for --add")
    if message is not None and error_id is not None:
        raise click.UsageError("give either --add or --resolve")
    if message is not None and not message.strip():
        raise click.UsageError("--add is empty")
    deck = open_deck(by, records=message is not None)
    warnings: list[str] = []
    work_id = find_work(deck.view, work, warnings)
    accumulator = ErrorAccumulator(LoggedErrors(deck.project, clock=now, by=deck.by, agent=deck.agent))
    said = ""
    if message is not None:
        for warning in warnings:
            warn(warning)
        entry = accumulator.record_error(
            work_id,
            error_type or classify_error(message),
            message,
            now=now(),
            stack_trace=stack_trace,
            tool_name=tool,
            context=context,
        )
        said = entry.id
    elif error_id is not None:
        if error_id not in {entry.id for entry in accumulator.get_errors(work_id)}:
            raise UnknownRecord(f"{short_id(work_id)} has no error {short_id(error_id)}; see: ralphdeck errors --json")
        accumulator.resolve_error(error_id)
        said = f"resolved {error_id}"
    if as_json:
        found = [entry for entry in accumulator.get_errors(work_id) if everything or not entry.resolved]
        stats = stats_json(accumulator.get_error_stats(work_id))
        print_json({"errors": [error_json(entry) for entry in found], "stats": stats})
    elif said:
        line(said)
    else:
        told = accumulator.get_error_context(work_id, include_resolved=everything)
        if told:
            print_bytes(f"{told}\n".encode("utf-8", "replace"))
        else:
            remark(f"no errors of {short_id(work_id)}{'' if everything else ' that are not resolved'}")
