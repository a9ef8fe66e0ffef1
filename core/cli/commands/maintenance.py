"""`ralphdeck pattern prune` and `merge`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from core.base.pattern_titles import pattern_title
from core.cli.commands.decisions import decide, decide_each
from core.cli.json import patterns as patterns_json
from core.cli.render.output import Column, day, end, id_column, line, percent, print_object, print_table, wants_json
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import COUNT, FRACTION, DecidingCommand, ListingCommand, choose_mode, reason_option
from core.cli.support.project import chosen_project, now, open_project
from core.decisions.commands import Archive, Merge, PrunePatterns, Restore

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.records.patterns import Pattern


_POLICY: Final = "min_success_rate min_usage max_age_days"
_PRUNE_MODES: Final = {"ID": "reason", "--restore": "reason", "": f"dry_run {_POLICY} reason"}


@click.command(cls=DecidingCommand)
@click.argument("pattern_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_pattern)
@click.option("--restore", metavar="ID", help="Restore this pattern from the archive.")
@click.option("--dry-run", is_flag=True, help="Print what would be archived, and archive nothing.")
@click.option("--min-success-rate", type=FRACTION, help="Archive patterns below this rate. Default: a setting (0.5).")
@click.option("--min-usage", type=COUNT, metavar="N", help="Ignore the rate below N uses. Default: a setting (3).")
@click.option("--max-age-days", type=COUNT, metavar="N", help="Archive if unused for N days. Default: a setting (90).")
@reason_option
def prune(
    pattern_ids: tuple[str, ...],
    restore: str | None,
    dry_run: bool,
    min_success_rate: float | None,
    min_usage: int | None,
    max_age_days: int | None,
    reason: str,
) -> None:
    """Archive patterns that rarely helped or are unused, or those with the IDs.

    The success rate is that of the evidence. Pinned patterns, patterns in quarantine or held, and patterns with a
    proposed or rejected inversion are not archived by a rule. Nothing is lost: --restore or undo brings a pattern back,
    and pattern list --archived lists them. Patterns named by ID need a --reason, and each has its own undo.

    \b
    Examples:
      ralphdeck pattern prune --dry-run
      ralphdeck pattern prune --min-success-rate 0.6 --max-age-days 180
      ralphdeck pattern prune pat-error-retry-004 --reason "the library was removed"
      ralphdeck pattern prune --restore pat-error-retry-004
    """
    from core.index.findings import all_findings

    mode = choose_mode(_PRUNE_MODES)
    if restore is not None:
        decide(open_project(), Restore(restore, reason=reason))
        return
    if mode:
        _archive(pattern_ids, reason)
        return
    project = open_project()
    given = {"min_success_rate": min_success_rate, "min_usage_count": min_usage, "max_age_days": max_age_days}
    policy = replace(project.settings.pruning, **{name: value for name, value in given.items() if value is not None})
    found = project.pruning(policy)
    if found and not dry_run:
        decide(project, PrunePatterns(policy, reason=reason))
        return
    rows = [(item, project.view.pattern(item.pattern_id)) for item in found]
    columns = (
        id_column("ID", lambda row: row[1].id),
        Column("TYPE", lambda row: row[1].type.value),
        Column("RATE", lambda row: percent(row[0].rate), right=True),
        Column("USES", lambda row: str(row[0].uses), right=True, expendable=1),
        Column("LAST USED", lambda row: day(row[0].last_activity), expendable=2),
        Column("REASON", lambda row: row[0].reason, free=True),
    )
    if wants_json():
        print_object(
            patterns_json.PruneList,
            prune=(patterns_json.PrunedPattern.of(item, pattern, id=pattern.id) for item, pattern in rows),
            findings=all_findings(project.view),
        )
    else:
        print_table(columns, rows, "nothing to prune")


def _archive(pattern_ids: Iterable[str], reason: str) -> None:
    """Move patterns into the archive of this month."""
    if not reason:
        raise click.UsageError("give a --reason for archiving these patterns")
    project = open_project()
    ids = [project.view.find_pattern(pattern_id).id for pattern_id in dict.fromkeys(pattern_ids)]
    decide_each(project, [Archive(pattern_id, reason=reason) for pattern_id in ids])


def _list_duplicates(threshold: float | None) -> None:
    from core.index.findings import all_findings
    from core.retrieval.similarity import cap_similarity

    project = open_project()
    state = project.view
    patterns = state.snapshot.patterns
    least = project.settings.extraction.similarity_threshold if threshold is None else threshold
    pairs = [
        (*sorted((one, other), key=lambda id: (-state.assessment(id).uses, id)), ratio)
        for one, other, ratio in state.similarity.pairs(least)
        if not (patterns[one].copy_folder or patterns[other].copy_folder)
    ]
    columns = (
        id_column("KEEP", lambda row: row[0]),
        id_column("OTHER", lambda row: row[1]),
        Column("SIMILAR", lambda row: percent(cap_similarity(row[2])), right=True),
        Column("USES", lambda row: f"{state.assessment(row[0]).uses} + {state.assessment(row[1]).uses}", right=True),
        Column("TITLE", lambda row: pattern_title(patterns[row[0]]), free=True, expendable=1),
    )
    if wants_json():
        print_object(patterns_json.DuplicateList, findings=all_findings(state), duplicates=pairs)
    else:
        print_table(columns, pairs, "no duplicates")
    end(all_findings(state))


@click.command(cls=ListingCommand)
@click.argument("target", metavar="[KEPT]", required=False, shell_complete=complete_pattern)
@click.argument("other", metavar="[OTHER]", required=False, shell_complete=complete_pattern)
@click.option("--threshold", type=FRACTION, help="List pairs above this similarity. Default: a setting (0.8).")
@click.option("--dry-run", is_flag=True, help="Print the counts that KEPT would have, and change nothing.")
@reason_option
def merge(target: str | None, other: str | None, threshold: float | None, dry_run: bool, reason: str) -> None:
    """List pairs of similar patterns, most similar first, or merge pattern OTHER into KEPT.

    Compares the signatures and descriptions of patterns of the same type, ignoring the order of words. The pattern of a
    pair with more uses comes first; it is the one to keep.

    KEPT keeps its text and gets the uses and the lineage of OTHER, which is archived. Its ID becomes an alias of KEPT,
    so that later reports on OTHER count for KEPT.

    \b
    Examples:
      ralphdeck pattern merge
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002 --dry-run
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002
    """
    if choose_mode({"KEPT": "other dry_run reason", "": "threshold"}) == "":
        _list_duplicates(threshold)
        return
    if target is None or other is None:
        raise click.UsageError("give both patterns, KEPT and OTHER")
    project = open_project()
    patterns = project.view.find_pattern(target), project.view.find_pattern(other)
    if dry_run:
        _print_preview(*patterns)
    else:
        decide(project, Merge(patterns[0].id, patterns[1].id, reason=reason))


def _print_preview(target: Pattern, other: Pattern) -> None:
    """Print the counts that the kept record would have after a merge."""
    from core.decisions.merge import as_read, check_pair, merge_changes
    from core.decisions.pattern_registry import Registry

    check_pair(target, other)
    registry = Registry(chosen_project())
    ours, theirs = registry.record(target).value, registry.record(other).value
    before = as_read(ours, target.type)
    after = as_read({**ours, **merge_changes(ours, theirs, target.type, now())}, target.type)

    if wants_json():
        print_object(
            patterns_json.MergePreview,
            kept=target.id,
            other=other.id,
            before=_counts(before),
            after=_counts(after),
            aliases=after.aliases,
        )
    else:
        line(f"would merge {other.id} into {target.id}")
        line(f"Uses: {_uses(before)} → {_uses(after)}")
        line(f"Aliases: {', '.join(after.aliases)}")


def _counts(pattern: Pattern) -> Wire:
    from core.decisions.merge import Tally

    counts = pattern.recorded_counts
    return patterns_json.RecordedCounts.of(Tally.of(counts), success_rate=counts.rate)


def _uses(pattern: Pattern) -> str:
    """Format counts: `3 of 4, 75 %`; for an anti-pattern, failures of the approach."""
    from core.decisions.merge import Tally

    tally, rate = Tally.of(pattern.recorded_counts), percent(pattern.recorded_counts.rate)
    return f"{tally.successes} of {tally.uses}" + (f", {rate}" if rate else "")
