"""Links of Review to pattern, file, loops, context and debug session."""

from __future__ import annotations

from textual.content import Content

from core.base.text import visible_line
from core.curation.commands import Note
from core.state.project_state import ProjectState
from core.state.review_items import ReviewItem
from tui.present.memory import session_key
from tui.screens.dialogs import AskLine, Choose
from tui.screens.review_panes import ReviewPanes
from tui.widgets.text_pane import TextPane


def evidence_loops(item: ReviewItem, view: ProjectState) -> list[str]:
    """The known loops of a question's evidence; contradicting ones come first."""
    if not item.is_about_pattern:
        loop_ids = [item.subject, item.session.loop_id if item.session is not None else ""]
    else:
        observations = sorted(view.board.observations(item.subject), key=lambda one: one.success is not False)
        loop_ids = [one.loop_id for one in observations]
    return [id for id in dict.fromkeys(loop_ids) if id in view.snapshot.loops]


class ReviewLinks(ReviewPanes):
    """Mixin with links from the question in front."""

    def action_why(self) -> None:
        if self.item is not None:
            self.services.open_record("patterns", self.item.subject, tab="Why")

    def action_in_context(self) -> None:
        if self.item is not None:
            self.services.preview_pattern(self.item.subject)

    def action_open_item(self) -> None:
        item = self.item
        if item is None:
            return
        if item.session is not None:
            self.services.open_record("memory", session_key(item.subject))
        else:
            self.services.open_record("patterns" if item.is_about_pattern else "loops", item.subject)

    def action_to_loop(self) -> None:
        """Go to a loop of the evidence; those in which the pattern failed come first."""
        item = self.item
        if item is None:
            return
        loops = evidence_loops(item, self.view)
        if len(loops) == 1:
            self.services.open_record("loops", loops[0])
            return
        choices = [(id, Content(visible_line(id, 80))) for id in loops]
        detail = Content("Loops in which it failed come first.")
        dialog = Choose(Content("Which loop of the evidence?"), detail, choices, verb="open")
        self.ask_user(dialog, lambda key: self.services.open_record("loops", key))

    def action_edit_item_file(self) -> None:
        item = self.item
        if item is not None:
            file = item.session.file if item.session is not None else self.view.pattern(item.subject).file
            self.services.edit_file(file)

    def action_note(self) -> None:
        item, seen = self.item, self.view
        if item is None:
            return

        def answered(text: str) -> None:
            self.questions.wait()
            self.services.decide(Note(item.subject, text=text), seen)

        title = Content(f"Note on {visible_line(item.subject, 60)}")
        detail = Content("Stored in the log and shown under History; answers no question and changes no state.")
        self.ask_user(AskLine(title, detail, verb="add note", required=True), answered)

    def copy_text(self) -> str:
        """The id of the record, or the focused text."""
        if isinstance(self.focused, TextPane) and self.focused.id != "review-subject":
            return self.focused.plain
        return self.item.subject if self.item is not None else ""
