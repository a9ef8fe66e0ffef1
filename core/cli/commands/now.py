"""`ralphdeck now` and `watch`: what needs the user, once and continuously."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from core.cli.json import analysis as analysis_json
from core.cli.json import loops as loops_json
from core.cli.support.options import DecidingCommand, ReadingCommand
from core.cli.support.output import end, line, print_json, print_object, wants_json, warn
from core.cli.support.process import run_until_signal
from core.cli.support.project import PastMoment, open_project, read_configuration
from core.records.findings import Severity

if TYPE_CHECKING:
    from core.show.now import NowSection


_SEARCH_SECONDS: Final = 2.0
"""How long more questions for Review are searched; what was compared is kept, so the next call finds more."""


@click.command(cls=ReadingCommand)
@click.option("--since", type=PastMoment(end_of_day=False), help="Start. Default: the last visit, else 7d.")
@click.option("--notify", "notifies", is_flag=True, help="Also run the notify command of your settings for all needs.")
def now(since: datetime | None, notifies: bool) -> None:
    """Print what needs you, what happened, whether lessons help, and which are new.

    The last visit is when the dashboard was last open on this project; one in the last half hour goes on. In a large
    project not all questions of Review are found at once: the number is then that of those found so far.

    \b
    Examples:
      ralphdeck now
      ralphdeck now --since 36h
      ralphdeck now --notify    (try the notify command)
      ralphdeck now --json | jq -r '.sections[] | select(.id == "needs").lines[].title'
    """
    from core.agents.setup import read_setup
    from core.cli.support.document import print_document
    from core.cli.support.user_files import last_visit
    from core.show.metrics.lesson_effect import measure_lesson_effect
    from core.show.now import make_page, page_document

    project = open_project()
    state, folder = project.search_all(_SEARCH_SECONDS), project.project
    is_searching = project.review is not None and not project.review.is_searched
    begin = since or last_visit(folder.project, state.now)
    is_running = state.experiment is not None
    effect = measure_lesson_effect(state.snapshot, state.board, state.settings, is_running=is_running)
    page = make_page(state, begin, read_setup(folder), effect, is_searching=is_searching)
    sections = [_section_json(one) for one in page.sections]
    if notifies:
        from core.show.needs import report_all_needs

        report_all_needs(folder.project, state)

    if wants_json():
        print_object(analysis_json.NowDocument, findings=state.snapshot.findings, since=page.since, sections=sections)
    else:
        print_document(page_document(page, folder.project.name))
    end(state.snapshot.findings)


def _section_json(section: NowSection) -> dict[str, Any]:
    lines = [
        {
            "sign": line.sign.text or line.sign.glyph,
            "title": line.title,
            "facts": [fact for fact in line.facts if fact],
            "text": line.text,
            "place": line.target.place if line.target is not None else "",
            "id": line.target.key if line.target is not None else "",
        }
        for line in section.lines
    ]
    return {"id": section.id, "title": section.title, "note": section.note, "total": section.total, "lines": lines}


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
    """Follow a project without a screen: print each event until interrupted.

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
