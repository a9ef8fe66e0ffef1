"""`ralphdeck watch`: follow a project without a screen."""

from __future__ import annotations

import click

from core.cli.json import loops as loops_json
from core.cli.render.output import line, print_json, wants_json, warn
from core.cli.support.options import DecidingCommand
from core.cli.support.process import run_until_signal
from core.cli.support.project import open_project, read_configuration
from core.records.findings import Severity

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: ""}


@click.command(cls=DecidingCommand)
@click.option(
    "--extract/--no-extract",
    "extracts",
    default=None,
    help="Extract patterns when a loop ends. Default: the setting extraction.auto_extract_on_completion.",
)
@click.option(
    "--prune/--no-prune",
    "prunes",
    default=None,
    help="Archive patterns by the pruning policy. Default: yes if the settings file sets pruning.auto_prune.",
)
def watch(extracts: bool | None, prunes: bool | None) -> None:
    """Follow a project without a screen: print a line for each event, until interrupted.

    Without --no-extract, patterns are extracted a second after a loop ends; at the start, also from loops that ended
    since the last automatic extraction. Review asks about new patterns, and each extraction can be undone. If the
    settings extraction.auto_extract_on_completion or pruning.auto_prune are false, the options cannot switch them on.
    With --readonly nothing is written. If your settings have a notify command, it is run for what newly needs you.

    \b
    Examples:
      ralphdeck watch
      ralphdeck watch --json >> ralphdeck.jsonl
      ralphdeck watch --no-extract
    """
    from core.project.watch_loop import Daemon, WatchEvent, is_wanted
    from core.show.needs import Notifier
    from core.sources.configuration import DEFAULT

    configuration = read_configuration(registry=True)
    project, as_json = open_project(configuration=configuration), wants_json()
    settings = configuration.settings
    is_allowed = is_wanted(settings.extraction)
    if extracts and not is_allowed:
        warn("the settings forbid automatic extraction; nothing is extracted")
    if prunes and not settings.pruning.auto_prune:
        warn("the settings forbid automatic pruning; nothing is archived")
    if prunes is None:
        prunes = configuration.sources["pruning.auto_prune"] != DEFAULT
    if project.is_readonly:
        if extracts or prunes:
            warn("read-only: nothing is extracted or archived; start without --readonly")
        is_allowed = prunes = False

    def report(event: WatchEvent) -> None:
        if as_json:
            print_json(loops_json.WatchLine.of(event), one_line=True)
        else:
            line((f"{event.at:%H:%M:%S}  ", ""), (event.text, _COLOURS[event.severity]))

    daemon = Daemon(
        project, report, extract=is_allowed and extracts is not False, prune=prunes and settings.pruning.auto_prune
    )
    daemon.report_needs = Notifier.for_loop(project.project.project)
    run_until_signal(daemon)
