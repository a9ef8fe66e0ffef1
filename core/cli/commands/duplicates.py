"""`ralphdeck patterns duplicates` and `patterns merge`."""

from __future__ import annotations

import click

from core.cli.commands.decisions import print_decided
from core.cli.json.exchange import duplicate_json, merge_json
from core.cli.json.shapes import json_help
from core.cli.render.output import Column, end, findings_json, line, percent, print_json, print_table, remark
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import Fraction, deciding_options, reading_options
from core.cli.support.project import chosen_project, now, open_deck
from core.curation.commands import Merge
from core.curation.merge import Tally, as_read, check_pair, merged
from core.curation.pattern_registry import Registry
from core.records.patterns import Pattern
from core.retrieval.similarity import cap_similarity
from core.state.findings import all_findings
from core.state.project_state import ProjectState


@click.command(epilog=json_help("pattern duplicates"))
@click.option("--threshold", type=Fraction(), help="Only more alike than this. Default: the setting, 0.8.")
@reading_options
def duplicates(threshold: float | None, as_json: bool, strict: bool) -> None:
    """List pairs of patterns that say nearly the same, most alike first.

    Compared are signature and description of patterns of one type, whatever the order of the words. Of each pair
    the one with more uses comes first: it would be the one to keep.

    \b
    Examples:
      ralphdeck patterns duplicates
      ralphdeck patterns merge pat-error-null-check-015 pat-error-null-guard-002
    """
    deck = open_deck()
    view = deck.view
    pairs = [
        (*_by_uses(view, one, other), ratio)
        for one, other, ratio in view.similarity.pairs(
            deck.settings.extraction.similarity_threshold if threshold is None else threshold
        )
        if not (view.snapshot.patterns[one].copy_folder or view.snapshot.patterns[other].copy_folder)
    ]
    if as_json:
        found = [duplicate_json(kept, other, ratio) for kept, other, ratio in pairs]
        print_json({"duplicates": found, "findings": findings_json(all_findings(view))})
    else:
        columns = (
            Column("KEEP"),
            Column("OTHER"),
            Column("ALIKE", right=True),
            Column("USES", right=True),
            Column("TITLE", free=True),
        )
        rows = (
            (kept, other, percent(cap_similarity(ratio)), _uses(view, kept, other), view.snapshot.patterns[kept].title)
            for kept, other, ratio in pairs
        )
        print_table(columns, rows)
        if not pairs:
            remark("no duplicates")
    end(all_findings(view), strict=strict)


def _by_uses(view: ProjectState, one: str, other: str) -> tuple[str, str]:
    kept, merged = sorted((one, other), key=lambda id: (-view.assessment(id).uses, id))
    return kept, merged


def _uses(view: ProjectState, kept: str, other: str) -> str:
    return f"{view.assessment(kept).uses} + {view.assessment(other).uses}"


@click.command(epilog=json_help("pattern merge"))
@click.argument("kept", metavar="KEPT", shell_complete=complete_pattern)
@click.argument("other", metavar="OTHER", shell_complete=complete_pattern)
@click.option("--dry-run", is_flag=True, help="Print what KEPT would become, and change nothing.")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
def merge(kept: str, other: str, dry_run: bool, reason: str, by: str | None, as_json: bool) -> None:
    """Make one pattern of two that say the same: KEPT keeps its text and gets the uses and the lineage of OTHER.

    OTHER goes into the archive; its id stays a name of KEPT, so that what loops say of it counts there.

    \b
    Examples:
      ralphdeck patterns merge pat-error-null-check-015 pat-error-null-guard-002 --dry-run
      ralphdeck patterns merge pat-error-null-check-015 pat-error-null-guard-002
    """
    deck = open_deck(by)
    if dry_run:
        _print_outlook(deck.view.pattern(kept), deck.view.pattern(other), as_json)
    else:
        print_decided(deck.decide(Merge(kept, other, reason=reason)), as_json)


def _print_outlook(kept: Pattern, other: Pattern, as_json: bool) -> None:
    """What the record of a pattern would count once another one is merged into it."""
    check_pair(kept, other)
    registry = Registry(chosen_project())
    ours, theirs = registry.record(kept).value, registry.record(other).value
    before = as_read(ours, kept.type)
    after = as_read({**ours, **merged(ours, theirs, kept.type, now())}, kept.type)
    if as_json:
        print_json(merge_json(kept.id, other.id, before, after))
        return
    line(f"would merge {other.id} into {kept.id}")
    line(f"Uses: {_counted(before)} → {_counted(after)}")
    line(f"Aliases: {', '.join(after.aliases)}")


def _counted(pattern: Pattern) -> str:
    """`3 of 4, 75%`; of an anti-pattern, how often what it avoids failed."""
    tally, rate = Tally.of(pattern.recorded_counts), percent(pattern.recorded_counts.rate)
    return f"{tally.successes} of {tally.uses}" + (f", {rate}" if rate else "")
