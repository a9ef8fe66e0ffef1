"""`ralphdeck extract`: what finished loops have learned, into the registry (0) Pattern Extraction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from core.base.errors import Unwritable
from core.base.id_lookup import find_matching_ids
from core.cli.commands.decisions import print_warnings
from core.cli.json.shapes import decided_json, extraction_json, json_help
from core.cli.render.output import end, findings_json, line, percent, print_json, remark
from core.cli.support.id_completion import complete_source
from core.cli.support.options import Words, deciding_options, joined, strict_option
from core.cli.support.project import open_deck
from core.curation.commands import Extract
from core.episodes.loop_links import link_tasks
from core.extraction.strategies import list_work_ids
from core.records.patterns import PatternType
from core.state.findings import all_findings

if TYPE_CHECKING:
    from core.curation.decision_writer import Decided
    from core.project.project import Project
    from core.records.extractions import Extraction, Proposal

_TYPES: Final = [kind.value for kind in PatternType]


@click.command(epilog=json_help("loop extract"))
@click.argument("source", metavar="[LOOP|TASK|SESSION|LEARNING]", required=False, shell_complete=complete_source)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Every loop that has ended, oldest first, then ended tasks that record none of them, then debug sessions of "
    "neither.",
)
@click.option("--types", "types", type=Words(_TYPES), multiple=True, help="Only patterns of these types.")
@click.option("--dry-run", is_flag=True, help="Only show what would be taken; nothing is written.")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
@strict_option
def extract(
    source: str | None,
    every: bool,
    types: tuple[tuple[str, ...], ...],
    dry_run: bool,
    reason: str,
    by: str | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Put what LOOP, TASK or the debug SESSION has learned into the registry: errors and their fixes, the approach
    of a loop or attempt that reached its goal, what failed, and code templates.

    A loop brings the attempts at the task that records it; a TASK brings its own, for its loop where it has one.
    A LEARNING that recurs, see `ralphdeck reflections --recurring`, gives one candidate with lineage to every loop
    that told it.

    What the registry knows already becomes a further use of that pattern; what it knows from this very loop, and
    triggers that match too many errors, are refused with the reason. Each loop is one decision: undo takes it back.

    \b
    Examples:
      ralphdeck extract ralph-fix-auth-a1b2c3d4 --dry-run
      ralphdeck extract task-001 --types error,success
      ralphdeck extract recurring-1a2b3c4d5e --dry-run
      ralphdeck extract --all --json
    """
    if (source is None) != every:
        raise click.UsageError("give either a LOOP, TASK, debug SESSION or recurring LEARNING, or --all")
    kinds = frozenset(map(PatternType, joined(types))) or frozenset(PatternType)
    deck = open_deck(by)
    if every:  # whoever extracts from all loops did not work in all of them
        deck.agent = ""
    told = []
    whole, any_offered = True, False
    for identifier in _ended(deck) if source is None else [source]:
        learned = _learn_strategies(deck, identifier) if PatternType.SUCCESS in kinds and not dry_run else {}
        extraction = deck.extraction(identifier, kinds)
        any_offered = any_offered or bool(extraction.proposals or learned)
        decided = None
        if not dry_run and (extraction.new or extraction.merges):
            decided = deck.decide(Extract(identifier, kinds, reason=reason))
            print_warnings(decided)
            whole = whole and decided.written
        if as_json:
            done = {"decided": decided and decided_json(decided), "strategies": learned}
            told.append({**extraction_json(extraction), **done})
        elif extraction.proposals or source is not None:
            _print(extraction, decided)
        if not as_json:
            for work_id, names in learned.items():
                line(f"strategies of {work_id}: {', '.join(names)}")
    if every and not any_offered and not as_json:
        remark("nothing to extract from what has ended; extract LOOP says why")
    if as_json:
        print_json({"extractions": told, "findings": findings_json(all_findings(deck.view))})
    if not whole:
        raise Unwritable("not all that was extracted is in the pattern files; it follows once they can be written")
    end(all_findings(deck.view), strict=strict)


def _learn_strategies(deck: Project, source_id: str) -> dict[str, list[str]]:
    """The decomposition strategies of each loop and attempt of a source, counted."""
    loops = deck.view.snapshot.loops
    meant = [] if source_id in loops else find_matching_ids(source_id, loops)
    known = meant[0] if len(meant) == 1 else source_id
    found = {work_id: list(deck.learn_strategies(work_id)) for work_id in list_work_ids(known, deck.view.snapshot)}
    return {work_id: names for work_id, names in found.items() if names}


def _ended(deck: Project) -> list[str]:
    """The loops that have ended, in that order: what one has found a later one uses; then what belongs to none."""
    snapshot = deck.view.snapshot
    loops = [loop for loop in snapshot.loops.values() if loop.status.ended]
    loops.sort(key=lambda loop: (loop.ended_at is None, loop.ended_at, loop.id))
    linked = link_tasks(snapshot.tasks, snapshot.loops)
    tasks = [task for task in snapshot.tasks.values() if task.status.ended and task.id not in linked]
    tasks.sort(key=lambda task: (task.completed_at is None, task.completed_at, task.id))
    taken = [*(loop.id for loop in loops), *(task.id for task in tasks)]
    names = {name for loop in loops for name in loop.aliases} | set(taken)
    names |= {task_id for task_id, link in linked.items() if link.loop_id in names}
    sessions = snapshot.debug_sessions.values()
    return taken + [session.id for session in sessions if names.isdisjoint({session.loop_id, session.task_id})]


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
        from core.retrieval.similarity import cap_similarity  # numpy: only where there is something to compare

        return "=", "", f" ({percent(cap_similarity(proposal.similarity))} like {proposal.duplicate_of})"
    return "+", "green", ""
