"""`ralphdeck pattern export` and `pattern import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.cli.commands.patterns import PatternFilter, filter_options
from core.cli.json import patterns as patterns_json
from core.cli.support.options import DecidingCommand, ReadingCommand, output_option, reason_option
from core.cli.support.output import (
    Column,
    end,
    id_column,
    line,
    percent,
    print_bytes,
    print_json,
    print_object,
    print_table,
    remark,
    wants_json,
    warn,
)
from core.cli.support.process import read_input
from core.cli.support.project import chosen_project, now, open_project, read_configuration, read_snapshot
from core.decisions.commands import ImportPatterns
from core.files.atomic_write import export_file, write_file
from core.records.findings import Severity

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.decisions.import_plan import ImportPlan as Plan
    from core.decisions.import_plan import Row

COLUMNS = (
    Column("ACTION", lambda row: row.action.value, colours={"conflict": "yellow", "refused": "red", "new": "green"}),
    Column("TYPE", lambda row: row.type.value, expendable=1),
    id_column("ID", lambda row: row.pattern_id),
    id_column("AS", lambda row: row.target if row.target != row.pattern_id else ""),
    Column("REMARK", lambda row: _remark(row), free=True),
)


@click.command("export", cls=ReadingCommand)
@output_option("Write to FILE, not to stdout; required with --json.")
@click.option("--team-shared", is_flag=True, help="Also mask local paths, names of persons and loop IDs.")
@filter_options
def export_patterns(output: Path | None, team_shared: bool, wanted: PatternFilter) -> None:
    """Write patterns to a file that another project can import.

    The same patterns give the same bytes. Secrets in a known format are masked. With --team-shared local paths and
    names of persons are masked as well, and loop IDs are replaced by pseudonyms. A person's name that appears only in
    prose is not recognised: read the file before you share it.

    \b
    Examples:
      ralphdeck pattern export --output patterns-backup.json
      ralphdeck pattern export --team-shared --min-success-rate 0.7 --output team-patterns.json
    """
    from core.decisions.export import export, read_entries
    from core.decisions.merge import project_origin
    from core.index.scores import find_board

    if wants_json() and output is None:
        raise click.UsageError("--json needs --output, because the patterns are written to stdout without it")
    project = chosen_project()
    file = export_file(str(output), project) if output is not None else None
    configuration = read_configuration()
    snapshot = read_snapshot(configuration)
    board = find_board(snapshot, now(), configuration.settings)
    entries, left_out = read_entries(project, (pattern for pattern, _ in wanted.rows(snapshot, board)))
    origin = project_origin(project, configuration.settings.watch.retry_seconds)
    exported = export(entries, origin, team_shared=team_shared)
    if left_out:
        warn(f"{plural(len(left_out), 'pattern')} left out: not in the files of the registry")
    if file is None:
        print_bytes(exported.data)
    else:
        write_file(file, exported.data)

    counts = {"exported": exported.patterns, "left_out": left_out}
    if wants_json():
        print_object(patterns_json.Export, exported, findings=snapshot.findings, file=str(output), **counts)
    else:
        for masked in exported.masked:
            remark(f"masked in {masked.pattern_id} {masked.pointer}: {masked.kind}")
        if output is not None:
            line(f"exported {plural(exported.patterns, 'pattern')} to {visible_line(str(output), 300)}")
    end(snapshot.findings)


@click.command("import", cls=DecidingCommand)
@click.option("--input", "file", type=click.Path(path_type=Path), metavar="FILE", required=True, help="File to import.")
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@reason_option
def import_patterns(file: Path, dry_run: bool, reason: str) -> None:
    """Import patterns that another project exported, as one decision.

    New texts stay in quarantine until a person releases them. The counts and the lineage of known patterns are merged.
    Importing a file twice changes nothing.

    \b
    Examples:
      ralphdeck pattern import --input team-patterns.json --dry-run
      ralphdeck pattern import --input team-patterns.json && ralphdeck undo
    """
    from core.decisions.import_plan import MAX_IMPORT_BYTES

    project = open_project()
    data = read_input(file, MAX_IMPORT_BYTES)
    plan = project.import_plan(file.name, data)
    if not plan.rows:
        why = next((finding.message for finding in plan.findings if finding.severity is Severity.ERROR), "")
        raise BadInput(f"{visible_line(str(file), 300)} {why or 'contains no patterns'}")
    command = ImportPatterns(file.name, data, reason=reason)
    decided = project.decide(command) if plan.changes and not dry_run else None
    if decided is not None:
        warn(*decided.warnings)

    def document() -> Wire:
        rows = list(map(_row_json, plan.rows))
        if decided is None:
            return patterns_json.ImportPlan.of(written=False, rows=rows, findings=plan.findings)
        return patterns_json.ImportResult.of(decided, rows=rows, findings=plan.findings)

    if wants_json():
        print_json(document())
    else:
        _print_plan(plan)
        preview = f"would change {plural(len(plan.changes), 'pattern')}" if plan.changes else "nothing new"
        line(decided.summary if decided else preview)


def _row_json(row: Row) -> Wire:
    return patterns_json.ImportRow.of(row, quarantined=bool(row.content_hash), changes=sorted([*row.set, *row.unset]))


def _print_plan(plan: Plan) -> None:
    from core.decisions.import_plan import Action

    print_table(COLUMNS, [row for row in plan.rows if row.action is not Action.SAME])
    same = sum(row.action is Action.SAME for row in plan.rows)
    if same:
        remark(f"{plural(same, 'pattern')} already known")
    for finding in plan.findings:
        if finding.severity is not Severity.INFO and finding.code != "refused":
            warn(f"{finding.pointer or plan.file}: {finding.message}")


def _remark(row: Row) -> str:
    if row.similar:
        return ", ".join(f"{percent(ratio)} similar to {id}" for id, ratio in row.similar[:3])
    return row.why
