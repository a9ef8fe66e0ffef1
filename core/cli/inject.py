"""`ralphdeck inject`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click
from msgspec.structs import replace

from core.cli.completing import complete_loop
from core.cli.options import Fraction, reading_options
from core.cli.output import end, findings_json, print_bytes, print_json, warn
from core.cli.project import decider, now, open_deck
from core.cli.shapes import injection_json, json_help
from core.deck import Deck, View
from core.errors import BadInput, RalphdeckError, Unwritable
from core.records.events import Event, event_id
from core.retrieval.ranking import Injection, prepare_injection
from core.retrieval.task import CATEGORIES, analyse_task
from core.sources.event_log import append_events
from core.text import visible_line


@click.command(epilog=json_help("inject"))
@click.argument("loop_id", metavar="[LOOP]", required=False, shell_complete=complete_loop)
@click.option("--task", metavar="TEXT", help="What would a loop with this task get? Nothing is recorded.")
@click.option("--min-success-rate", type=Fraction(), help="Only patterns with at least this rate.")
@click.option("--top-k", type=click.IntRange(min=0), metavar="N", help="At most so many patterns.")
@click.option("--category", type=click.Choice(CATEGORIES), help="Of the task, instead of the recognised one.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="F", help="Write to F, not to stdout."
)
@click.option("--no-record", is_flag=True, help="Do not record that the loop got these patterns.")
@reading_options
def inject(
    loop_id: str | None,
    task: str | None,
    min_success_rate: float | None,
    top_k: int | None,
    category: str | None,
    output: Path | None,
    no_record: bool,
    as_json: bool,
    strict: bool,
) -> None:
    """Print the context that a loop gets: the patterns that fit its task, in the layout that loops expect.

    Without --json that is all that is printed, byte for byte what the dashboard previews. For a LOOP every
    pattern is recorded as injected, so that its effect can be measured later.

    \b
    Examples:
      ralphdeck inject ralph-fix-auth-a1b2c3d4 --output context.md
      ralphdeck inject --task "Fix TypeScript type errors in user validation"
      ralphdeck inject --task "Speed up the report query" --top-k 3 --json
    """
    if (loop_id is None) == (task is None):
        raise click.UsageError("give either a LOOP or --task TEXT")
    if task is not None and not task.strip():
        raise click.UsageError("--task is empty")
    deck = open_deck()
    view = deck.view
    loop = view.loop(loop_id) if loop_id is not None else None
    text = loop.task if loop is not None else task or ""
    if not text.strip():
        raise BadInput("this loop has no task to find patterns for; give one with --task")
    injection = _injection(view, text, min_success_rate, top_k, category)
    if loop is not None and not no_record:
        _record(deck, loop.id, injection)
    context = injection.context.encode("utf-8", "replace")
    if output is not None:
        _write(output, context)
    if as_json:
        print_json({**injection_json(injection), "findings": findings_json(view.findings)})
    elif output is None:
        print_bytes(context)
    end(view.findings, strict=strict)


def _injection(
    view: View, task: str, min_success_rate: float | None, top_k: int | None, category: str | None
) -> Injection:
    settings = view.settings.injection
    if min_success_rate is not None:
        settings = replace(settings, min_success_rate=min_success_rate)
    if top_k is not None:
        settings = replace(settings, top_k_patterns=top_k)
        if top_k > settings.max_patterns_injected:
            warn(f"never more than {settings.max_patterns_injected} patterns are injected")
    profile = analyse_task(task)
    if category is not None:
        profile = replace(profile, category=category)
    return prepare_injection(profile, view.index, view.snapshot.patterns, view.board, settings)


def _record(deck: Deck, loop_id: str, injection: Injection) -> None:
    """Write down what the loop got; the loop gets it even if that fails."""
    at = now()
    try:
        append_events(
            deck.project,
            *(
                Event(
                    id=event_id(at),
                    at=at,
                    kind="injected",
                    pattern_id=chosen.pattern_id,
                    loop_id=loop_id,
                    by=decider(),
                )
                for chosen in injection.chosen
            ),
        )
    except (RalphdeckError, OSError) as error:
        warn(f"not recorded as injected: {error}")


def _write(file: Path, data: bytes) -> None:
    """Whole or not at all; who may read a file that exists already stays as it is."""
    try:
        file = file.resolve()
        present = file.stat() if file.exists() else None
        if present is not None and not stat.S_ISREG(present.st_mode):
            raise BadInput(f"{file} is no regular file; without --output the context goes to stdout")
        draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        try:
            with draft.open("xb") as opened:
                if present is not None:
                    os.fchmod(opened.fileno(), stat.S_IMODE(present.st_mode))
                opened.write(data)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot write {visible_line(str(file), 300)}: {error.strerror}") from None
