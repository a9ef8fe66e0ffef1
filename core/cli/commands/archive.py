"""`ralphdeck pattern prune`, `archive`, `archived` and `restore`."""

from __future__ import annotations

import click
from msgspec.structs import replace

from core.cli.commands.decisions import print_decided, print_warnings, required_reason_option
from core.cli.json import objects
from core.cli.render.output import Column, day, id_column, line, percent, print_table, respond
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import COUNT, FRACTION, DecidingCommand, ReadingCommand, reason_option
from core.cli.support.project import chosen_project, open_project
from core.curation.commands import Archive, PrunePatterns, Restore
from core.sources.archives import read_archives
from core.state.findings import all_findings


@click.command(cls=DecidingCommand)
@click.option("--dry-run", is_flag=True, help="Print what would be archived, and archive nothing.")
@click.option("--min-success-rate", type=FRACTION, help="Archive below this rate. Default: the setting, 0.5.")
@click.option("--min-usage", type=COUNT, metavar="N", help="Uses before the rate counts. Default: the setting, 3.")
@click.option("--max-age-days", type=COUNT, metavar="N", help="Archive if unused this long. Default: the setting, 90.")
@reason_option
def prune(
    dry_run: bool, min_success_rate: float | None, min_usage: int | None, max_age_days: int | None, reason: str
) -> None:
    """Archive patterns that rarely helped or are unused.

    Rates are those of the evidence. Pinned patterns stay, and so do those in quarantine or with a proposed inversion.
    The archive is complete: use pattern restore, or undo.

    \b
    Examples:
      ralphdeck pattern prune --dry-run
      ralphdeck pattern prune --min-success-rate 0.6 --max-age-days 180
    """
    project = open_project()
    given = {"min_success_rate": min_success_rate, "min_usage_count": min_usage, "max_age_days": max_age_days}
    policy = replace(project.settings.pruning, **{name: value for name, value in given.items() if value is not None})
    found = project.pruning(policy)
    if found and not dry_run:
        print_decided(project.decide(PrunePatterns(policy, reason=reason)))
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
    respond(
        "PruneList",
        lambda: print_table(columns, rows, "nothing to prune"),
        prune=(objects.PrunedPattern.of(item, pattern, id=pattern.id) for item, pattern in rows),
        findings=all_findings(project.view),
    )


@click.command(cls=DecidingCommand)
@click.argument("pattern_ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_pattern)
@required_reason_option
def archive(pattern_ids: tuple[str, ...], reason: str) -> None:
    """Move patterns into the archive of this month; each has its own undo.

    \b
    Example:
      ralphdeck pattern archive pat-error-retry-004 --reason "the library was removed"
    """
    project = open_project()
    ids = [project.view.find_pattern(pattern_id).id for pattern_id in dict.fromkeys(pattern_ids)]
    made = [project.decide(Archive(pattern_id, reason=reason)) for pattern_id in ids]
    for decided in made:
        print_warnings(decided)

    def show() -> None:
        for decided in made:
            line(decided.summary)

    respond("DecidedEach", show, decisions=made)


@click.command(cls=DecidingCommand)
@click.argument("pattern_id", metavar="ID")
@reason_option
def restore(pattern_id: str, reason: str) -> None:
    """Restore a pattern from the archive.

    \b
    Example:
      ralphdeck pattern archived && ralphdeck pattern restore pat-error-retry-004
    """
    print_decided(open_project().decide(Restore(pattern_id, reason=reason)))


@click.command(cls=ReadingCommand)
def archived() -> None:
    """List the archived patterns, newest month first.

    \b
    Example:
      ralphdeck pattern archived
    """
    found, findings = read_archives(chosen_project())
    columns = (
        id_column("ID", lambda item: item.pattern.id),
        Column("TYPE", lambda item: item.pattern.type.value),
        Column("ARCHIVED", lambda item: day(item.at)),
        Column("BY", lambda item: item.by, expendable=1),
        Column("REASON", lambda item: item.reason, free=True),
    )
    respond(
        "ArchivedPatternList", lambda: print_table(columns, found, "no archived patterns"), findings, archived=found
    )
