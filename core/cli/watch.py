"""`ralphdeck watch`."""

from __future__ import annotations

import signal
from types import FrameType

import click

from core.cli.options import json_option, project_option
from core.cli.output import line, print_json, warn
from core.cli.project import open_deck
from core.cli.shapes import json_help
from core.records.findings import Severity

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: ""}
_TERMINATED = 128


@click.command(epilog=json_help("watch"))
@click.option("--extract", "extracts", is_flag=True, help="When a loop completes, extract what it has learned.")
@click.option("--prune", "prunes", is_flag=True, help="When it is due, archive what the policy of the settings names.")
@click.option("--by", metavar="NAME", help="Who decides. Default: $RALPHDECK_USER, else the name of the user.")
@project_option
@json_option
def watch(extracts: bool, prunes: bool, by: str | None, as_json: bool) -> None:
    """Follow a project without a screen: one line for whatever happens, until interrupted.

    With --extract what a loop has learned goes into the registry two seconds after it completes, also from loops
    that completed since the last unattended extraction; Review asks about it afterwards, and each extraction can
    be undone. The settings `extraction.auto_extract_on_completion` and `pruning.auto_prune` can forbid either.

    \b
    Examples:
      ralphdeck watch
      ralphdeck watch --extract --json >> ralphdeck.jsonl
    """
    from core.following import Follower, Line

    deck = open_deck(by)
    settings = deck.settings
    if extracts and not (settings.extraction.enabled and settings.extraction.auto_extract_on_completion):
        warn("the settings forbid extraction on completion; nothing is extracted")
        extracts = False
    if prunes and not settings.pruning.auto_prune:
        warn("the settings forbid pruning unattended; nothing is archived")
        prunes = False

    def tell(told: Line) -> None:
        if as_json:
            print_json(told.to_json(), one_line=True)
        else:
            line((f"{told.at:%H:%M:%S}  ", ""), (told.text, _COLOURS[told.severity]))

    follower = Follower(deck, tell, extract=extracts, prune=prunes)
    caught: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        follower.stop()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    follower.run()
    if caught:
        click.get_current_context().exit(_TERMINATED + caught[0])
