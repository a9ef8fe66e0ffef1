"""`ralphdeck patterns export` and `patterns import`."""

from __future__ import annotations

from pathlib import Path

import click

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.cli.commands.decisions import print_warnings
from core.cli.json.exchange import exported_json, row_json
from core.cli.json.shapes import decided_json, json_help
from core.cli.render.output import (
    Column,
    end,
    findings_json,
    line,
    percent,
    print_bytes,
    print_json,
    print_table,
    remark,
    warn,
)
from core.cli.support.input_file import read_named
from core.cli.support.options import deciding_options, reading_options
from core.cli.support.pattern_filter import PatternFilter, filter_options
from core.cli.support.project import chosen_project, now, open_deck, read_configuration, read_snapshot
from core.curation.commands import ImportPatterns
from core.curation.exchange.export import export, read_entries
from core.curation.exchange.import_file import MAX_IMPORT_BYTES
from core.curation.exchange.import_plan import Action, ImportPlan, Row
from core.curation.exchange.origins import project_origin
from core.learning.scoreboard import Scoreboard
from core.records.findings import Severity
from core.storage.export_file import export_file, write_file

_COLOURS = {"conflict": "yellow", "refused": "red", "new": "green"}


@click.command("export", epilog=json_help("pattern export"))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="F",
    help="Write to F, not to stdout; with --json it is needed.",
)
@click.option("--team-shared", is_flag=True, help="Without local paths, names of persons, secrets, and ids of loops.")
@filter_options
@reading_options
def export_patterns(output: Path | None, team_shared: bool, wanted: PatternFilter, as_json: bool, strict: bool) -> None:
    """Write patterns to a file that another project can import.

    The same patterns give the same bytes. Secrets are masked where they can be told by their shape, with
    --team-shared persons and paths, too; names in plain prose cannot: read the file before it leaves.

    \b
    Examples:
      ralphdeck patterns export --output patterns-backup.json
      ralphdeck patterns export --team-shared --min-success-rate 0.7 --output team-patterns.json
    """
    if as_json and output is None:
        raise click.UsageError("--json needs --output: without it the patterns go to stdout")
    project = chosen_project()
    file = export_file(str(output), project) if output is not None else None
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    board = Scoreboard.build(snapshot, now(), configuration.settings)
    entries, left_out = read_entries(project, (pattern for pattern, _ in wanted.rows(snapshot, board)))
    origin = project_origin(project, configuration.settings.watch.retry_seconds)
    exported = export(entries, origin, team_shared=team_shared)
    if left_out:
        warn(f"{plural(len(left_out), 'pattern')} outside of the registry's own files left out")
    if file is None:
        print_bytes(exported.data)
    else:
        write_file(file, exported.data)
    if as_json:
        findings = findings_json(snapshot.findings)
        print_json({**exported_json(str(output), exported, left_out), "findings": findings})
    else:
        for masked in exported.masked:
            remark(f"masked in {masked.pattern_id} {masked.pointer}: {masked.kind}")
        if output is not None:
            line(f"exported {plural(exported.patterns, 'pattern')} to {visible_line(str(output), 300)}")
    end(snapshot.findings, strict=strict)


@click.command("import", epilog=json_help("pattern import"))
@click.option("--input", "file", type=click.Path(path_type=Path), metavar="F", required=True, help="The file.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.option("--reason", default="", help="Why; kept in the log.")
@deciding_options
def import_patterns(file: Path, dry_run: bool, reason: str, by: str | None, as_json: bool) -> None:
    """Take patterns in that another project exported, as one decision.

    Every text that is new here waits in quarantine until somebody has read and released it. Of a pattern that is
    known, counts and lineage are united; importing a file twice changes nothing.

    \b
    Examples:
      ralphdeck patterns import --input team-patterns.json --dry-run
      ralphdeck patterns import --input team-patterns.json && ralphdeck undo
    """
    deck = open_deck(by)
    data = read_named(file, MAX_IMPORT_BYTES)
    plan = deck.import_plan(file.name, data)
    if not plan.rows:
        why = next((finding.message for finding in plan.findings if finding.severity is Severity.ERROR), "")
        raise BadInput(f"{visible_line(str(file), 300)} {why or 'holds no patterns'}")
    decided = None
    if plan.changes and not dry_run:
        decided = deck.decide(ImportPatterns(file.name, data, reason=reason))
        print_warnings(decided)
    if as_json:
        document = {"rows": [row_json(row) for row in plan.rows], "findings": findings_json(plan.findings)}
        print_json(document if decided is None else {**document, **decided_json(decided)})
        return
    _print_plan(plan)
    line(decided.summary if decided else _outlook(plan))


def _outlook(plan: ImportPlan) -> str:
    return f"would change {plural(len(plan.changes), 'pattern')}" if plan.changes else "nothing new"


def _print_plan(plan: ImportPlan) -> None:
    columns = (
        Column("ACTION", colours=_COLOURS),
        Column("TYPE"),
        Column("ID"),
        Column("AS"),
        Column("REMARK", free=True),
    )
    print_table(columns, (_cells(row) for row in plan.rows if row.action is not Action.SAME))
    same = plan.count(Action.SAME)
    if same:
        remark(f"{plural(same, 'pattern')} known already")
    for finding in plan.findings:
        if finding.severity is not Severity.INFO and finding.code != "refused":
            warn(f"{finding.pointer or plan.file}: {finding.message}")


def _cells(row: Row) -> tuple[str, ...]:
    told = row.why
    if row.similar:
        told = ", ".join(f"{percent(ratio)} like {id}" for id, ratio in row.similar[:3])
    return row.action.value, row.type.value, row.pattern_id, row.target if row.target != row.pattern_id else "", told
