"""`ralphdeck loop extract`: extract patterns from what has finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from core.base.errors import Unwritable
from core.base.validation import find_matching_ids
from core.cli.json import decisions as decisions_json
from core.cli.render.output import end, line, percent, print_json, remark, wants_json, warn
from core.cli.support.id_completion import complete_source
from core.cli.support.options import ReviewingCommand, reason_option, words_option
from core.cli.support.project import open_project
from core.decisions.commands import Extract
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.decisions.case import Decided
    from core.project.project import Project
    from core.records.extractions import Extraction, Proposal

_TYPES: Final = [kind.value for kind in PatternType]


@click.command(cls=ReviewingCommand)
@click.argument("source", metavar="[LOOP|TASK|SESSION|LEARNING]", required=False, shell_complete=complete_source)
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="All ended loops, oldest first, then ended tasks without a loop, then other debug sessions.",
)
@words_option("--types", "types", words=_TYPES, help="Only patterns of these types.")
@click.option("--dry-run", is_flag=True, help="Only show what would be extracted; write nothing.")
@reason_option
def extract(source: str | None, is_all: bool, types: frozenset[str], dry_run: bool, reason: str) -> None:
    """Extract patterns from a LOOP, TASK or debug SESSION into the registry: errors and their fixes, the approach of a
    loop or attempt that succeeded, what failed, and code templates.

    A loop includes the attempts at its task; a TASK includes only its own. A LEARNING that recurs (see `lesson
    --recurring`) gives one candidate with the lineage of all loops that reported it.

    If a pattern is already known, a use is added to it instead. A pattern that the same loop has added before, and an
    error pattern that matches too many errors, are refused. Each loop is one decision with one undo.

    \b
    Examples:
      ralphdeck loop extract ralph-fix-auth-a1b2c3d4 --dry-run
      ralphdeck loop extract task-001 --types error,success
      ralphdeck loop extract recurring-1a2b3c4d5e --dry-run
      ralphdeck loop extract --all --json
    """
    from core.cli.commands.decisions import decided_json
    from core.index.project_state import all_findings

    if (source is None) != is_all:
        raise click.UsageError("give either a LOOP, TASK, debug SESSION or recurring LEARNING, or --all")
    kinds = frozenset(map(PatternType, types)) or frozenset(PatternType)
    project, as_json = open_project(), wants_json()
    if is_all:  # the caller did not work in all of the loops
        project.agent = ""
    results: list[Any] = []
    is_written, is_any = True, False
    for identifier in _ended(project) if source is None else [source]:
        learned = _learn_strategies(project, identifier) if PatternType.SUCCESS in kinds and not dry_run else {}
        extraction = project.extraction(identifier, kinds)
        is_any = is_any or bool(extraction.proposals or learned)
        decided = None
        if not dry_run and (extraction.new or extraction.merges):
            decided = project.decide(Extract(identifier, kinds, reason=reason))
            warn(*decided.warnings)
            is_written = is_written and decided.written
        if as_json:
            results.append(
                decisions_json.ExtractionResult.of(
                    extraction, decided=decided and decided_json(decided), strategies=learned
                )
            )
            continue
        if extraction.proposals or source is not None:
            _print(extraction, decided)
        for work_id, names in learned.items():
            line(f"strategies of {work_id}: {', '.join(names)}")
    if as_json:
        print_json(decisions_json.ExtractionList.of(extractions=results, findings=all_findings(project.view)))
    elif is_all and not is_any:
        remark("nothing to extract; for the reason: ralphdeck loop extract LOOP")
    if not is_written:
        raise Unwritable("some patterns are not in the pattern files yet; they are added when the files are writable")
    end(all_findings(project.view))


def _learn_strategies(project: Project, source_id: str) -> dict[str, list[str]]:
    """Count the decomposition strategies of the loops and attempts of a source."""
    from core.questions.extraction.recorded_work import list_work_ids

    loops = project.view.snapshot.loops
    matches = [] if source_id in loops else find_matching_ids(source_id, loops)
    known = matches[0] if len(matches) == 1 else source_id
    work_ids = list_work_ids(known, project.view.snapshot)
    found = {work_id: list(project.learn_strategies(work_id)) for work_id in work_ids}
    return {work_id: names for work_id, names in found.items() if names}


def _ended(project: Project) -> list[str]:
    """Return the IDs of ended loops, oldest first, then of other tasks and sessions."""
    from core.tasks.task_links import link_tasks

    snapshot = project.view.snapshot
    loops = [loop for loop in snapshot.loops.values() if loop.status.ended]
    loops.sort(key=lambda loop: (loop.ended_at is None, loop.ended_at, loop.id))
    linked = link_tasks(snapshot.tasks, snapshot.loops)
    tasks = [task for task in snapshot.tasks.values() if task.status.ended and task.id not in linked]
    tasks.sort(key=lambda task: (task.completed_at is None, task.completed_at, task.id))
    ids = [*(loop.id for loop in loops), *(task.id for task in tasks)]
    names = {name for loop in loops for name in loop.aliases} | set(ids)
    names |= {task_id for task_id, link in linked.items() if link.loop_id in names}
    sessions = snapshot.debug_sessions.values()
    return ids + [session.id for session in sessions if names.isdisjoint({session.loop_id, session.task_id})]


def _print(extraction: Extraction, decided: Decided | None) -> None:
    line((extraction.source_id, "bold"))
    for proposal in extraction.proposals:
        sign, colour, verdict = _verdict(proposal)
        line((f"  {sign} {proposal.type.value} ", colour), f"{proposal.headline}{verdict}")
        line(f"      from {'; '.join(proposal.trace)}")
    if decided is not None:
        line(f"  {decided.summary}")
    elif not (extraction.new or extraction.merges):
        remark(f"nothing to extract from {extraction.source_id}: {extraction.why_nothing}")


def _verdict(proposal: Proposal) -> tuple[str, str, str]:
    if proposal.refused:
        return "-", "yellow", f" ({proposal.refused})"
    if proposal.duplicate_of:
        from core.retrieval.similarity import cap_similarity  # numpy: only if there are duplicates

        return "=", "", f" ({percent(cap_similarity(proposal.similarity))} similar to {proposal.duplicate_of})"
    return "+", "green", ""
