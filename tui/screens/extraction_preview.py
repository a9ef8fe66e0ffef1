"""Preview the patterns of a loop or a recurring learning, and extract them."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.content import Content
from textual.message import Message

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.curation.commands import Extract
from core.records.extractions import Extraction
from tui.present import extraction
from tui.present.document import document_lines
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import PreviewDialog


class ExtractionPreview(BaseScreen):
    """Mixin of screens that extract patterns from the record under the cursor."""

    @dataclass(eq=False)
    class Extracted(Message):
        """The engine has computed the extraction; nothing is written yet."""

        extraction: Extraction | None
        problem: str = ""

    def preview_extraction(self, source_id: str) -> None:
        """Preview the extraction from a loop or a recurring learning."""
        engine = self.services.engine

        def work() -> None:
            try:
                self.post_message(self.Extracted(engine.project.extraction(source_id)))
            except RalphdeckError as error:
                self.post_message(self.Extracted(None, str(error)))

        engine.submit(work)

    @on(Extracted)
    def _extracted(self, message: Extracted) -> None:
        message.stop()
        found = message.extraction
        if found is None:
            self.services.say(message.problem, severity="warning")
            return
        if not self.is_current:
            return  # the user has left the screen meanwhile

        seen = self.view

        def answered(yes: bool | None) -> None:
            if yes:
                self.services.decide(Extract(found.source_id, expected=found), seen)

        count = extraction.count_offered(found)
        why = visible_line(found.why_nothing, 400)
        title = f"{plural(count, 'pattern')} to extract" if count else f"Nothing to extract: {why}"
        text = document_lines(extraction.proposals(found), self.view.now, self.glyphs)
        self.app.push_screen(PreviewDialog(Content(title), text, verb=f"extract {count}" if count else ""), answered)
