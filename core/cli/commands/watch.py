"""`ralphdeck watch`."""

from __future__ import annotations

import signal
from types import FrameType

import click

from core.cli.json.shapes import json_help
from core.cli.render.output import line, print_json, warn
from core.cli.support.options import json_option, project_option
from core.cli.support.project import open_deck, read_configuration
from core.records.findings import Severity

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: ""}
_TERMINATED = 128


@click.command(epilog=json_help("watch"))
@click.option(
    "--extract/--no-extract",
    "extracts",
    default=None,
    help="When a loop ends, extract what it has learned. Default: extraction.auto_extract_on_completion.",
)
@click.option(
    "--prune/--no-prune",
    "prunes",
    default=None,
    help="When it is due, archive what the pruning policy names. Default: if the settings file says auto_prune: true.",
)
@click.option("--by", metavar="NAME", help="Who decides. Default: $RALPHDECK_USER, else the name of the user.")
@project_option
@json_option
def watch(extracts: bool | None, prunes: bool | None, by: str | None, as_json: bool) -> None:
    """Follow a project without a screen: one line for whatever happens, until interrupted.

    Unless --no-extract is given, what a loop has learned goes into the registry a second after the loop ended, also
    from loops that ended since the last unattended extraction; Review asks about it afterwards, and each extraction
    can be undone. The settings extraction.auto_extract_on_completion and pruning.auto_prune can forbid either.
    With --readonly nothing is written.

    \b
    Examples:
      ralphdeck watch
      ralphdeck watch --json >> ralphdeck.jsonl
      ralphdeck watch --no-extract
    """
    from core.project.auto_extraction import is_wanted
    from core.project.daemon import Daemon, WatchEvent
    from core.sources.configuration import DEFAULT

    configuration = read_configuration(registry=True)
    deck = open_deck(by, configuration=configuration)
    settings = configuration.settings
    allowed = is_wanted(settings.extraction)
    if extracts and not allowed:
        warn("the settings forbid extraction when a loop ends; nothing is extracted")
    if prunes and not settings.pruning.auto_prune:
        warn("the settings forbid pruning unattended; nothing is archived")
    if prunes is None:
        prunes = configuration.sources["pruning.auto_prune"] != DEFAULT
    if deck.is_readonly:
        if extracts or prunes:
            warn("read-only: nothing is extracted or archived; start without --readonly")
        allowed = prunes = False

    def tell(told: WatchEvent) -> None:
        if as_json:
            print_json(told.to_json(), one_line=True)
        else:
            line((f"{told.at:%H:%M:%S}  ", ""), (told.text, _COLOURS[told.severity]))

    follower = Daemon(
        deck, tell, extract=allowed and extracts is not False, prune=prunes and settings.pruning.auto_prune
    )
    caught: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        follower.stop()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    follower.run()
    if caught:
        click.get_current_context().exit(_TERMINATED + caught[0])
