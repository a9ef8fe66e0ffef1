"""`ralphdeck patterns duplicates` and `patterns merge`."""

from __future__ import annotations

import click

from core.cli.completing import complete_pattern
from core.cli.decide import print_decided
from core.cli.exchange_shapes import duplicate_json
from core.cli.options import Fraction, deciding_options, reading_options
from core.cli.output import Column, end, findings_json, percent, print_json, print_table, remark
from core.cli.project import open_deck
from core.cli.shapes import json_help
from core.deck import View


@click.command(epilog=json_help("patterns duplicates"))
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
        for one, other, ratio in view.likeness.pairs(
            deck.settings.extraction.similarity_threshold if threshold is None else threshold
        )
        if not (view.snapshot.patterns[one].mirror_of or view.snapshot.patterns[other].mirror_of)
    ]
    if as_json:
        found = [duplicate_json(kept, other, ratio) for kept, other, ratio in pairs]
        print_json({"duplicates": found, "findings": findings_json(view.findings)})
    else:
        columns = (
            Column("KEEP"),
            Column("OTHER"),
            Column("ALIKE", right=True),
            Column("USES", right=True),
            Column("TITLE", free=True),
        )
        rows = (
            (kept, other, percent(ratio), _uses(view, kept, other), view.snapshot.patterns[kept].title)
            for kept, other, ratio in pairs
        )
        print_table(columns, rows)
        if not pairs:
            remark("no duplicates")
    end(view.findings, strict=strict)


def _by_uses(view: View, one: str, other: str) -> tuple[str, str]:
    kept, merged = sorted((one, other), key=lambda id: (-view.assessment(id).uses, id))
    return kept, merged


def _uses(view: View, kept: str, other: str) -> str:
    return f"{view.assessment(kept).uses} + {view.assessment(other).uses}"


@click.command(epilog=json_help("decision"))
@click.argument("kept", metavar="KEPT", shell_complete=complete_pattern)
@click.argument("other", metavar="OTHER", shell_complete=complete_pattern)
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
def merge(kept: str, other: str, reason: str, by: str | None, as_json: bool) -> None:
    """Make one pattern of two that say the same: KEPT keeps its text and gets the uses and the lineage of OTHER.

    OTHER goes into the archive; its id stays a name of KEPT, so that what loops say of it counts there.

    \b
    Example:
      ralphdeck patterns merge pat-error-null-check-015 pat-error-null-guard-002
    """
    print_decided(open_deck(by).merge(kept, other, reason=reason), as_json)
