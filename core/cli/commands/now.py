"""`ralphdeck now`: the page Now as text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from core.cli.json import analysis as analysis_json
from core.cli.render.output import end, print_object, wants_json
from core.cli.support.as_of import PastMoment
from core.cli.support.options import ReadingCommand
from core.cli.support.project import open_project

if TYPE_CHECKING:
    from core.show.now import NowSection

_SEARCH_SECONDS: Final = 2.0
"""How long more questions for Review are searched; what was compared is kept, so the next call finds more."""


@click.command(cls=ReadingCommand)
@click.option("--since", type=PastMoment(end_of_day=False), help="Start. Default: the last visit, else 7d.")
@click.option("--notify", "notifies", is_flag=True, help="Also run the notify command of your settings for all needs.")
def now(since: datetime | None, notifies: bool) -> None:
    """Print what needs you, what happened since your last visit, whether lessons help, and which are new.

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
    from core.cli.render.document import print_document
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
