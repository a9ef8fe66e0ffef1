"""`ralphdeck inject`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from core.base.errors import BadInput, RalphdeckError, Refused
from core.base.text import plural
from core.cli.json.shapes import injection_json, json_help
from core.cli.render.output import end, findings_json, print_bytes, print_json, remark, warn
from core.cli.support.dry_run import tell_missing
from core.cli.support.hooks import FORMS, PROMPT, SESSION, HookCommand, print_answer, read_event, work_in
from core.cli.support.id_completion import complete_loop
from core.cli.support.options import Fraction, Words, reading_options, setting_option
from core.cli.support.project import open_deck
from core.episodes.similar_tasks import embeddable_work
from core.project.project import Project
from core.records.findings import Finding
from core.records.loops import Liveness, Loop
from core.records.patterns import PatternType
from core.retrieval.injection import Injection
from core.retrieval.task import CATEGORIES
from core.state.contexts import prepare_task_injection
from core.state.findings import all_findings, ledger_error
from core.state.project_state import ProjectState
from core.storage.export_file import export_file, write_file

_HOOK_HELP: Final = (
    f"Print what a hook expects. claude-code reads the event on stdin and answers {SESSION} and {PROMPT}, whose "
    'prompt is the task. plain reads a task, as text or as {"prompt", "cwd"}, and prints the bare context. Without '
    "a task and a LOOP it is for the one loop at work. Whatever goes wrong, it only says so on stderr and exits with 0."
)
REFLECTION: Final = "reflection"
"""The type of the learnings of similar tasks and loops, beside those of patterns."""
_MOST_REASONS: Final = 3


@click.command(cls=HookCommand, undone="injects nothing", epilog=json_help("loop inject"))
@click.argument("loop_id", metavar="[LOOP]", required=False, shell_complete=complete_loop)
@click.option("--task", metavar="TEXT", help="What would a loop with this task get? Nothing is recorded.")
@setting_option("--min-success-rate", "injection.min_success_rate", type=Fraction())
@setting_option("--top-k", "injection.top_k_patterns")
@click.option("--types", type=Words([*PatternType, REFLECTION]), help="Only these types.")
@setting_option("--max-reflections", "injection.max_reflections")
@setting_option("--max-tokens", "injection.max_tokens")
@click.option("--category", type=click.Choice(CATEGORIES), help="Of the task, instead of the recognised one.")
@click.option(
    "--decomposition/--no-decomposition",
    default=None,
    help="Whether the task is to split work into parts, which adds strategies. Default: its text decides.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="F", help="Write to F, not to stdout."
)
@click.option("--no-record", is_flag=True, help="Do not record that the loop got these patterns.")
@click.option("--hook", type=click.Choice(FORMS), help=_HOOK_HELP)
@reading_options
def inject(
    loop_id: str | None,
    task: str | None,
    output: Path | None,
    no_record: bool,
    hook: str | None,
    as_json: bool,
    strict: bool,
    **knobs: Any,
) -> None:
    """Print the context that a loop gets: the patterns that fit its task, and what similar tasks and loops learned.

    Without --json that is all that is printed, byte for byte what the dashboard previews. For a LOOP every
    pattern and every reflection is recorded as injected, so that its effect can be measured later. Dangerous
    reflections, and those that wait for approval, are left out; --json lists them with the reason.

    \b
    Examples:
      ralphdeck inject ralph-fix-auth-a1b2c3d4 --output context.md
      ralphdeck inject --task "Fix TypeScript type errors in user validation"
      ralphdeck inject --task "Speed up the report query" --top-k 3 --types error,anti --json
      ralphdeck inject --hook claude-code
    """
    if hook is not None and (output is not None or as_json or strict):
        raise click.UsageError("--hook goes with none of --output, --json, --strict")
    event = read_event(hook) if hook is not None else None
    if event is not None:
        work_in(event.folder)
        if loop_id is None and task is None:
            if event.fault:
                raise BadInput(event.fault)
            task = event.task or None
    if (loop_id is not None and task is not None) or (loop_id is None and task is None and event is None):
        raise click.UsageError("give either a LOOP or --task TEXT")
    if task is not None and not task.strip():
        raise click.UsageError("--task is empty")
    deck = open_deck()
    file = export_file(str(output), deck.project) if output is not None else None
    loop = _loop(deck.view, loop_id) if task is None else None
    text = loop.task if loop is not None else task or ""
    if not text.strip():
        raise BadInput("this loop has no task to find patterns for; give one with --task")
    injection = _injection(deck, text, **knobs)
    findings = all_findings(deck.view)
    if event is not None:
        print_answer(event, injection.context)
    else:
        _tell(injection, findings, file, as_json)
    if not injection.context and not as_json:
        remark(f"ralphdeck injects nothing: {_why_nothing(injection, deck.view)}")
    if loop is not None and not no_record:
        _record(deck, loop.id, injection)  # only now does the loop have it
    if event is None:
        end(findings, strict=strict)


def _tell(injection: Injection, findings: Sequence[Finding], file: Path | None, as_json: bool) -> None:
    context = injection.context.encode("utf-8", "replace")
    if file is not None:
        write_file(file, context)
    if as_json:
        print_json({**injection_json(injection), "findings": findings_json(findings)})
    elif file is None:
        print_bytes(context)


def _why_nothing(injection: Injection, view: ProjectState) -> str:
    """What keeps all patterns out: the most frequent reasons, each with the number of patterns."""
    if not view.settings.injection.enabled:
        return "injection is switched off in the settings"
    if not view.snapshot.patterns and not view.snapshot.reflections:
        return "there are no patterns yet"
    # What a reason says of one pattern, its rate or who pinned it, stands behind a bracket or a colon.
    given_reasons = [left.reason for left in injection.left_out] + [
        left.reason for left in injection.reflections.left_out
    ]
    reasons = Counter(reason.partition(" (")[0].partition(":")[0] for reason in given_reasons)
    told = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(_MOST_REASONS))
    return told or "no pattern has anything in common with the task"


def _loop(view: ProjectState, loop_id: str | None) -> Loop:
    """The named loop; without a name the one that is at work.

    Raises:
        BadInput: Nobody can tell which loop is meant.
    """
    if loop_id is not None:
        return view.loop(loop_id)
    running = [loop for loop in view.snapshot.loops.values() if loop.status.active]
    at_work = [loop for loop in running if loop.liveness is not Liveness.STALE]
    if len(at_work) != 1:
        told = f"{plural(len(at_work), 'loop')} at work"
        if running and not at_work:
            told = f"{plural(len(running), 'loop runs, but without', 'loops run, none with')} a recent sign of life"
        raise BadInput(f"{told}; name one, or give a task")
    return at_work[0]


def _injection(
    deck: Project,
    task: str,
    *,
    min_success_rate: float | None,
    top_k: int | None,
    types: tuple[str, ...] | None,
    max_reflections: int | None,
    max_tokens: int | None,
    category: str | None,
    decomposition: bool | None,
) -> Injection:
    view = deck.view
    if ledger_error(view):
        raise Refused(f"nothing is injected, since the decisions cannot be read: {ledger_error(view)}")
    settings = view.settings.injection
    if min_success_rate is not None:
        settings = replace(settings, min_success_rate=min_success_rate)
    if top_k is not None:
        settings = replace(settings, top_k_patterns=top_k)
        if top_k > settings.max_patterns_injected:
            warn(f"never more than {settings.max_patterns_injected} patterns are injected")
    if max_tokens is not None:
        settings = replace(settings, max_tokens=max_tokens)
    if types is not None:
        settings = replace(
            settings,
            include_error_patterns=PatternType.ERROR in types,
            include_success_patterns=PatternType.SUCCESS in types,
            include_anti_patterns=PatternType.ANTI in types,
            include_code_templates=PatternType.TEMPLATE in types,
            include_reflections=REFLECTION in types,
        )
    if max_reflections is not None:
        settings = replace(settings, max_reflections=max_reflections)
    _make_few(deck)
    injection = prepare_task_injection(view, task, settings, category or "", decomposition)
    if deck.embeddings.problem:
        warn(deck.embeddings.problem)
    return injection


def _make_few(deck: Project) -> None:
    """Make the vectors that are missing, if that takes no time; else say how to make them."""
    snapshot = deck.view.snapshot
    try:
        tell_missing(deck.embeddings.make_few(snapshot.patterns))
        deck.task_embeddings.make_few(embeddable_work(snapshot))
    except RalphdeckError as error:
        warn(f"some patterns can be found by word match only: {error}")


def _record(deck: Project, loop_id: str, injection: Injection) -> None:
    """Write down what the loop got; the loop gets it even if that fails."""
    try:
        deck.inject(loop_id, injection)
    except (RalphdeckError, OSError) as error:
        warn(f"not recorded as injected: {error}")
