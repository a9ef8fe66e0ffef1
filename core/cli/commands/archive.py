"""`ralphdeck patterns prune`, `archive`, `restore` and `archived`."""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import replace

from core.cli.commands.decisions import print_decided, print_warnings
from core.cli.json.exchange import archived_json, prune_json
from core.cli.json.shapes import decided_json, json_help
from core.cli.render.output import Column, day, end, findings_json, line, percent, print_json, print_table, remark
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import Count, Fraction, deciding_options, reading_options
from core.cli.support.project import chosen_project, open_deck
from core.curation.commands import Archive, PrunePatterns, Restore
from core.metrics.pruning import Pruning
from core.sources.archives import ArchivedPattern, read_archives
from core.state.findings import all_findings
from core.state.project_state import ProjectState


@click.command(epilog=json_help("pattern prune"))
@click.option("--dry-run", is_flag=True, help="Print what would be archived, and archive nothing.")
@click.option("--min-success-rate", type=Fraction(), help="Archive below this rate. Default: the setting, 0.5.")
@click.option("--min-usage", type=Count(), metavar="N", help="Judge the rate from N uses on. Default: the setting, 3.")
@click.option("--max-age-days", type=Count(), metavar="N", help="Archive if unused so long. Default: the setting, 90.")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
def prune(
    dry_run: bool,
    min_success_rate: float | None,
    min_usage: int | None,
    max_age_days: int | None,
    reason: str,
    by: str | None,
    as_json: bool,
) -> None:
    """Archive patterns that seldom helped, or that nobody used for long.

    Rates are what the evidence shows. What a person promoted or deprecated stays, as does what waits for a person:
    in quarantine or for a verdict on its inversion. The archive keeps everything: patterns restore, or undo.

    \b
    Examples:
      ralphdeck patterns prune --dry-run
      ralphdeck patterns prune --min-success-rate 0.6 --max-age-days 180
    """
    deck = open_deck(by)
    given = {
        "min_success_rate": min_success_rate,
        "min_usage_count": min_usage,
        "max_age_days": max_age_days,
    }
    policy = replace(deck.settings.pruning, **{name: value for name, value in given.items() if value is not None})
    found = deck.pruning(policy)
    if found and not dry_run:
        print_decided(deck.decide(PrunePatterns(policy, reason=reason)), as_json)
    elif as_json:
        view = deck.view
        pruned = [prune_json(item, view.pattern(item.pattern_id)) for item in found]
        print_json({"prune": pruned, "findings": findings_json(all_findings(view))})
    else:
        _print_pruned(deck.view, found)


def _print_pruned(view: ProjectState, found: tuple[Pruning, ...]) -> None:
    columns = (
        Column("ID"),
        Column("TYPE"),
        Column("RATE", right=True),
        Column("USES", right=True),
        Column("LAST USED"),
        Column("WHY", free=True),
    )
    rows = (
        (
            item.pattern_id,
            view.pattern(item.pattern_id).type.value,
            percent(item.rate),
            str(item.uses),
            day(item.last_activity),
            item.reason,
        )
        for item in found
    )
    print_table(columns, rows)
    if not found:
        remark("nothing to prune")


@click.command(epilog=json_help("pattern archive"))
@click.argument("pattern_ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_pattern)
@click.option("--reason", required=True, help="Why; kept in the log and in the archive.")
@deciding_options
def archive(pattern_ids: tuple[str, ...], reason: str, by: str | None, as_json: bool) -> None:
    """Move patterns out of the registry into the archive of this month; each is a decision of its own.

    \b
    Example:
      ralphdeck patterns archive pat-error-retry-004 --reason "the library is gone"
    """
    deck = open_deck(by)
    ids = [deck.view.pattern(pattern_id).id for pattern_id in dict.fromkeys(pattern_ids)]
    made = [deck.decide(Archive(pattern_id, reason=reason)) for pattern_id in ids]
    for decided in made:
        print_warnings(decided)
        if not as_json:
            line(decided.summary)
    if as_json:
        print_json({"decisions": [decided_json(decided) for decided in made]})


@click.command(epilog=json_help("decision"))
@click.argument("pattern_id", metavar="ID")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
def restore(pattern_id: str, reason: str, by: str | None, as_json: bool) -> None:
    """Bring a pattern back from the archive, as it was.

    \b
    Example:
      ralphdeck patterns archived && ralphdeck patterns restore pat-error-retry-004
    """
    print_decided(open_deck(by).decide(Restore(pattern_id, reason=reason)), as_json)


@click.command(epilog=json_help("pattern archived"))
@reading_options
def archived(as_json: bool, strict: bool) -> None:
    """List the archived patterns, newest month first.

    \b
    Example:
      ralphdeck patterns archived
    """
    found, findings = read_archives(chosen_project())
    if as_json:
        print_json({"archived": [archived_json(item) for item in found], "findings": findings_json(findings)})
    else:
        columns = (Column("ID"), Column("TYPE"), Column("ARCHIVED"), Column("BY"), Column("WHY", free=True))
        print_table(columns, map(_cells, found))
        if not found:
            remark("no archived patterns")
    end(findings, strict=strict)


def _cells(item: ArchivedPattern) -> tuple[Any, ...]:
    at = day(item.at)
    return item.pattern.id, item.pattern.type.value, at, item.by, item.reason
