"""`ralphdeck loop inject`: print the context of a loop or task, and its delivery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from core.base.errors import BadInput, RalphdeckError, Refused
from core.base.masking import mask_secrets
from core.base.regexes import lazy_regex
from core.base.text import plural, visible
from core.cli.support.hooks import FORMS, PROMPT, SESSION, HookCommand, print_answer, read_event, use_folder
from core.cli.support.options import (
    FRACTION,
    OneOf,
    ReadingCommand,
    Words,
    choose_mode,
    invocation,
    output_option,
    setting_option,
)
from core.cli.support.output import end, print_bytes, print_json, remark, remark_missing_vectors, wants_json, warn
from core.cli.support.project import complete_loop, find_loop, open_project, open_reader
from core.files.atomic_write import export_file, write_file
from core.records.patterns import PatternType
from core.retrieval.task import CATEGORIES
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.base.settings import InjectionSettings
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.project.reader import ProjectReader
    from core.records.findings import Finding
    from core.records.loops import Loop
    from core.retrieval.injection import InjectedContext, Injection

_HOOK_HELP: Final = (
    f"Print what a hook expects. claude-code reads the event on stdin and answers {SESSION} and {PROMPT}, whose "
    'prompt is the task. plain reads a task, as text or as {"prompt", "cwd"}, and prints the context. Without a task '
    "and a LOOP it is for the only active loop. Errors are reported on stderr only, and the exit code is 0."
)
REFLECTION: Final = "reflection"  # The type of the learnings of similar tasks and loops, beside those of patterns.
_INCLUDE: Final = {
    PatternType.ERROR: "include_error_patterns",
    PatternType.SUCCESS: "include_success_patterns",
    PatternType.ANTI: "include_anti_patterns",
    PatternType.TEMPLATE: "include_code_templates",
    REFLECTION: "include_reflections",
}
"""The settings of the words of --types."""
_MAX_REASONS: Final = 3
_NUMBER: Final = lazy_regex(r" [0-9.]+( %)?$")
"""The rank, rate or relevance at the end of a reason; other details of one record follow a bracket or a colon."""


class InjectCommand(ReadingCommand, HookCommand):
    """A reading command that can also answer a hook."""


@click.command(cls=InjectCommand, skipped="gives no lesson")
@click.argument("loop_id", metavar="[LOOP]", required=False, shell_complete=complete_loop)
@click.option("--task", metavar="TEXT", help="Print the context for this task; nothing is recorded.")
@setting_option("--min-success-rate", "injection.min_success_rate", type=FRACTION)
@setting_option("--top-k", "injection.top_k_patterns")
@click.option("--types", type=Words([*PatternType, REFLECTION]), help="Only these types.")
@setting_option("--max-reflections", "injection.max_reflections")
@setting_option("--max-tokens", "injection.max_tokens")
@click.option("--category", type=OneOf(CATEGORIES), help="Category of the task, instead of the recognised one.")
@click.option(
    "--decomposition/--no-decomposition",
    default=None,
    help="Whether to add strategies for dividing the task into parts. Default: decided by its text.",
)
@output_option("Write to FILE, not to stdout.")
@click.option("--explain", is_flag=True, help="Print what is in the context and why, and why the rest is left out.")
@click.option("--no-record", is_flag=True, help="Do not record the injection.")
@click.option("--hook", type=OneOf(FORMS), help=_HOOK_HELP)
@click.option("--deliver", is_flag=True, help="Print how the context gets to a LOOP of another runner; run nothing.")
def inject(
    loop_id: str | None,
    task: str | None,
    deliver: bool,
    output: Path | None,
    explain: bool,
    no_record: bool,
    hook: str | None,
    **knobs: Any,
) -> None:
    """Print a loop's lessons: matching patterns, and what similar tasks learned.

    Without --json only the context is printed, the same text as in the dashboard. What a person approved is in a block
    of its own; the lines around each block have a random token (docs/retrieval.md#blocks). For a LOOP the patterns and
    reflections in the context are recorded as given, so that their effect can be measured. Dangerous reflections and
    those that wait for approval are left out; --json lists them with the reason.

    --deliver prints a command to run, or a change of a file to apply, by which a LOOP gets the context for its task; if
    nothing is injected for it now, only the way. Files of other runners are only read. A runner without a way of its
    own gets the context from the hooks of its agent (ralphdeck connect).

    \b
    Examples:
      ralphdeck loop inject ralph-fix-auth-a1b2c3d4 --output context.md
      ralphdeck loop inject --task "Fix TypeScript type errors in user validation"
      ralphdeck loop inject --task "Speed up the report query" --top-k 3 --types error,anti --json
      ralphdeck loop inject --task "Fix the login" --explain
      ralphdeck loop inject --hook claude-code
      ralphdeck loop inject snarktank:tasks/cart --deliver > context.diff
    """
    if deliver:
        choose_mode({"--deliver": "loop_id"})
        if loop_id is None:
            raise click.UsageError("--deliver needs a LOOP")
        print_delivery(loop_id)
        return
    from core.index.contexts import prepare_delivery, prepare_task_injection
    from core.index.project_state import all_findings
    from core.retrieval.injection import Injection

    as_json = wants_json()
    if hook is not None and (output is not None or as_json or invocation().strict):
        raise click.UsageError("--hook excludes --output, --json and --strict")
    if explain and (hook is not None or output is not None or as_json):
        raise click.UsageError("--explain excludes --hook, --output and --json")
    event = read_event(hook) if hook is not None else None
    if event is not None:
        use_folder(event.folder)
        if loop_id is None and task is None:
            if event.fault:
                raise BadInput(event.fault)
            task = event.task or None
    if (loop_id is not None and task is not None) or (loop_id is None and task is None and event is None):
        raise click.UsageError("give either a LOOP or --task TEXT")
    if task is not None and not task.strip():
        raise click.UsageError("--task is empty")
    recording = open_project(asks=False) if task is None else None
    project: ProjectReader = recording or open_reader(reads_agents=False)
    file = export_file(str(output), project.project) if output is not None else None
    loop = _find_loop(project, loop_id) if task is None else None
    text = loop.task if loop is not None else task or ""
    if not text.strip():
        raise BadInput("this loop has no task; give one with --task")
    settings, category, decomposition = _prepare(project, **knobs)
    if explain:
        _print_explanation(
            project.view, text, prepare_task_injection(project.view, text, settings, category, decomposition), settings
        )
        end(all_findings(project.view))
        return
    given: Injection | InjectedContext
    if as_json:
        given = prepare_task_injection(project.view, text, settings, category, decomposition)
    else:
        given = prepare_delivery(project.view, text, settings, category, decomposition)
    if project.embeddings.problem:
        warn(project.embeddings.problem)
    findings = all_findings(project.view)
    if recording is not None and loop is not None and not no_record:
        _assign(recording, loop.id, given)  # before the loop gets it, so that no arm is lost
    if event is not None:
        print_answer(event, given.context)
    else:
        context = given.context.encode("utf-8", "replace")
        if file is not None:
            write_file(file, context)
        if isinstance(given, Injection):
            _print_json(given, findings)
        elif file is None:
            print_bytes(context)
    if not given.context and not as_json:
        whole = prepare_task_injection(project.view, text, settings, category, decomposition)
        remark(f"ralphdeck gives no lesson: {_why_nothing(whole, project.view)}")
    if recording is not None and loop is not None and not no_record:
        _record(recording, loop.id, given)  # after the output, so that only delivered patterns are recorded
    if event is None:
        end(findings)


def _print_explanation(state: ProjectState, task: str, injection: Injection, settings: InjectionSettings) -> None:
    from core.cli.support.document import print_document  # hooks must be fast
    from core.show.contexts import Preview, context_document

    print_document(context_document(Preview(settings, injection, injection, {}), state, task))


def _print_json(injection: Injection, findings: Sequence[Finding]) -> None:
    from core.cli.json import loops as loops_json  # hooks must be fast

    reflections = [
        loops_json.InjectedReflection.of(one, matched_by="meaning" if one.is_semantic else "words")
        for one in injection.reflections.chosen
    ]
    print_json(loops_json.InjectionDocument.of(injection, reflections=reflections, findings=findings))


def _why_nothing(injection: Injection, state: ProjectState) -> str:
    """List the most frequent reasons for leaving patterns out, with their numbers."""
    if not state.settings.injection.enabled:
        return "giving lessons is disabled in the settings (injection.enabled)"
    if not state.snapshot.patterns and not state.snapshot.reflections:
        return "there are no patterns yet"
    reasons = [one.reason for one in injection.left_out] + [one.reason for one in injection.reflections.left_out]
    counts = Counter(_NUMBER.sub("", reason.partition(" (")[0].partition(":")[0]) for reason in reasons)
    text = ", ".join(f"{reason} ({count:,})" for reason, count in counts.most_common(_MAX_REASONS))
    return text or "no pattern has anything in common with the task"


def _find_loop(project: ProjectReader, loop_id: str | None) -> Loop:
    """Return the named or the only active loop; raises BadInput for none or several."""
    if loop_id is not None:
        return find_loop(project, loop_id)
    active = project.view.own_active_loops
    if len(active) != 1:
        count = plural(len(active), "active loop") if active else "no active loop"
        raise BadInput(f"{count}; pass LOOP or --task")
    return active[0]


def _prepare(
    project: ProjectReader,
    *,
    types: tuple[str, ...] | None,
    category: str | None,
    decomposition: bool | None,
    **changes: Any,
) -> tuple[InjectionSettings, str, bool | None]:
    """Check trust, compute vectors; return settings, category and decomposition."""
    from core.index.project_state import ledger_error

    state = project.view
    require_trust(project.project)
    if problem := ledger_error(state):
        raise Refused(f"nothing is injected, because the decisions cannot be read: {problem}")
    changes = {name: value for name, value in changes.items() if value is not None}
    if types is not None:
        changes |= {setting: kind in types for kind, setting in _INCLUDE.items()}
    settings = replace(state.settings.injection, **changes)
    if settings.top_k_patterns > settings.max_patterns_injected and "top_k_patterns" in changes:
        warn(f"at most {settings.max_patterns_injected} patterns are injected")
    _compute_few_vectors(project)
    return settings, category or "", decomposition


def _compute_few_vectors(project: ProjectReader) -> None:
    """Compute the missing vectors; if they are many, print how to compute them."""
    try:
        remark_missing_vectors(*project.embed_few())
    except RalphdeckError as error:
        warn(f"some patterns are found by words only: {error}")


def _assign(project: Project, loop_id: str, injection: Injection | InjectedContext) -> None:
    """Record what the experiment decided; only warn on failure: both arms fail alike."""
    try:
        project.assign(loop_id, injection.task, injection.assigned)
    except (RalphdeckError, OSError) as error:
        warn(f"what is held out by chance was not recorded: {error}")


def _record(project: Project, loop_id: str, injection: Injection | InjectedContext) -> None:
    """Record the injection; on failure only warn, because the context is printed."""
    try:
        project.inject(loop_id, injection)
    except (RalphdeckError, OSError) as error:
        warn(f"the injection was not recorded: {error}")


def print_delivery(loop_id: str) -> None:
    """Print how the context for its task gets to a loop."""
    from core.index.project_state import all_findings
    from core.project.reader import find_delivery
    from core.show.pages.loops import delivery_explanation, delivery_text

    project = open_project(asks=False)
    loop = find_loop(project, loop_id)
    delivery, obstacle = find_delivery(project, loop.id)
    explanation, text = delivery_explanation(loop, delivery, obstacle), delivery_text(delivery)
    findings = all_findings(project.view)

    if wants_json():
        from core.cli.json import loops as loops_json

        command, diff = ((), "") if delivery is None else (delivery.command, delivery.diff)
        print_json(
            loops_json.DeliveryDocument.of(
                loop_id=loop.id, explanation=explanation, command=command, diff=diff, findings=findings
            )
        )
    else:
        remark(explanation)
        click.echo(mask_secrets(visible(text)), nl=False)
    end(findings)
