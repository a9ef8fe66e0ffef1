"""Preview of the patterns that can be extracted from a loop or a recurring learning."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.decisions.commands import Extract
from core.show import offers
from tui.screens.dialogs import PreviewDialog
from tui.screens.document import document_lines

if TYPE_CHECKING:
    from core.records.extractions import Extraction
    from tui.screens.base_screen import BaseScreen


def preview_extraction(screen: BaseScreen, source_id: str) -> None:
    """Preview an extraction from a loop or a recurring learning, and write it only if the user accepts."""
    engine = screen.services.engine

    def work() -> None:
        try:
            found = engine.project.extraction(source_id)
        except RalphdeckError as error:
            screen.call_later(partial(screen.services.say, str(error), severity="warning"))
        else:
            screen.call_later(_show, screen, found)

    engine.submit(work)


def _show(screen: BaseScreen, found: Extraction) -> None:
    if not screen.is_current:
        return  # the user has left the screen meanwhile
    seen = screen.view

    def answered(yes: bool) -> None:
        if yes:
            screen.services.decide(Extract(found.source_id, expected=found), seen)

    count = offers.count_offered(found)
    why = visible_line(found.why_nothing, 400)
    title = f"{plural(count, 'lesson')} to extract" if count else f"Nothing to extract: {why}"
    text = document_lines(offers.proposals(found), seen.now, screen.glyphs)
    screen.ask_user(PreviewDialog(Content(title), text, verb=f"extract {count}" if count else ""), answered)
