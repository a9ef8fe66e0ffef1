"""`ralphdeck pattern duplicates` and `pattern merge`."""

from __future__ import annotations

import click

from core.cli.commands.decisions import print_decided
from core.cli.json import objects
from core.cli.json.wire import Wire
from core.cli.render.output import Column, id_column, line, percent, print_table, respond
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import FRACTION, DecidingCommand, ReadingCommand, reason_option
from core.cli.support.project import chosen_project, now, open_project
from core.curation.commands import Merge
from core.curation.merge import Tally, as_read, check_pair, merged
from core.curation.pattern_registry import Registry
from core.records.patterns import Pattern
from core.retrieval.similarity import cap_similarity
from core.state.findings import all_findings


@click.command(cls=ReadingCommand)
@click.option("--threshold", type=FRACTION, help="Minimum similarity. Default: the setting, 0.8.")
def duplicates(threshold: float | None) -> None:
    """List pairs of similar patterns, most similar first.

    Signature and description of patterns of one type are compared, in any order of words. Of each pair the pattern with
    more uses comes first: it would be the one to keep.

    \b
    Examples:
      ralphdeck pattern duplicates
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002
    """
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
        Column("TITLE", lambda row: patterns[row[0]].title, free=True, expendable=1),
    )
    respond(
        "DuplicateList", lambda: print_table(columns, pairs, "no duplicates"), all_findings(state), duplicates=pairs
    )


@click.command(cls=DecidingCommand)
@click.argument("target", metavar="KEPT", shell_complete=complete_pattern)
@click.argument("other", metavar="OTHER", shell_complete=complete_pattern)
@click.option("--dry-run", is_flag=True, help="Print the counts that KEPT would have, and change nothing.")
@reason_option
def merge(target: str, other: str, dry_run: bool, reason: str) -> None:
    """Merge pattern OTHER into KEPT: KEPT keeps its text and gets the uses and the lineage of OTHER.

    OTHER is archived. Its id becomes an alias of KEPT, so that later reports on it count for KEPT.

    \b
    Examples:
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002 --dry-run
      ralphdeck pattern merge pat-error-null-check-015 pat-error-null-guard-002
    """
    project = open_project()
    patterns = project.view.find_pattern(target), project.view.find_pattern(other)
    if dry_run:
        _print_preview(*patterns)
    else:
        print_decided(project.decide(Merge(patterns[0].id, patterns[1].id, reason=reason)))


def _print_preview(target: Pattern, other: Pattern) -> None:
    """Print the counts of a record after a merge."""
    check_pair(target, other)
    registry = Registry(chosen_project())
    ours, theirs = registry.record(target).value, registry.record(other).value
    before = as_read(ours, target.type)
    after = as_read({**ours, **merged(ours, theirs, target.type, now())}, target.type)

    def show() -> None:
        line(f"would merge {other.id} into {target.id}")
        line(f"Uses: {_uses(before)} → {_uses(after)}")
        line(f"Aliases: {', '.join(after.aliases)}")

    respond(
        "MergePreview",
        show,
        kept=target.id,
        other=other.id,
        before=lambda: _counts(before),
        after=lambda: _counts(after),
        aliases=after.aliases,
    )


def _counts(pattern: Pattern) -> Wire:
    counts = pattern.recorded_counts
    return objects.RecordedCounts.of(Tally.of(counts), success_rate=counts.rate)


def _uses(pattern: Pattern) -> str:
    """`3 of 4, 75 %`; of an anti-pattern, how often the avoided approach failed."""
    tally, rate = Tally.of(pattern.recorded_counts), percent(pattern.recorded_counts.rate)
    return f"{tally.successes} of {tally.uses}" + (f", {rate}" if rate else "")
