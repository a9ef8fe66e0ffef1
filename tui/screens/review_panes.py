"""The panes of Review: both sides and the effect, or one pane on a small screen."""

from __future__ import annotations

from functools import partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from core.base.text import visible_line
from core.state import review_items as kinds
from tui.present import review as present
from tui.present.document import UNBROKEN
from tui.screens.review_answers import ReviewAnswers
from tui.widgets.bars import Item, ItemLine
from tui.widgets.drawing import AnswerList
from tui.widgets.text_pane import TextPane, wrap

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

BESIDE: Final = 100  # cells of the screen from which the two sides are side by side
TALL: Final = 36  # lines from which a narrow screen stacks the panes
TAB_CELLS: Final = 24  # longest name of a tab
_PANES: Final = ("subject", "proposal", "consequence")


class ReviewPanes(ReviewAnswers):
    """Base of Review that lays out a question and moves between its panes."""

    def __init__(self) -> None:
        super().__init__()
        self._pane = _PANES[0]
        self._headings = ("", "")

    def compose_content(self) -> ComposeResult:
        yield ItemLine(classes="question")
        yield Static(id="review-reason")
        yield ItemLine(id="review-tabs")
        with Vertical(classes="desk"):
            with Horizontal(classes="sides"):
                with Vertical(classes="side", id="review-side-subject"):
                    yield Static(classes="heading", id="review-left")
                    yield TextPane(id="review-subject")
                with Vertical(classes="side side--right", id="review-side-proposal"):
                    yield Static(classes="heading", id="review-right")
                    yield TextPane(id="review-proposal")
            with Vertical(classes="outcome", id="review-side-consequence"):
                yield Static(classes="heading heading--rule", id="review-what")
                yield TextPane(id="review-consequence")
            yield AnswerList()

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width >= BESIDE, "-wide")
        self.set_class(width < BESIDE and height < TALL, "-tabbed")
        self.refresh_frame()

    def on_descendant_focus(self) -> None:
        """Show the focused pane on a small screen."""
        focused = self.focused
        if isinstance(focused, TextPane) and focused.id is not None:
            self._turn_pane(focused.id.removeprefix("review-"))  # after a click, or when a dialog closes

    @on(TextPane.Widened)
    def _lay_out(self) -> None:
        """Render both sides for their current size."""
        if self.is_composed:
            self.show_anew()

    def text_of(self, name: str) -> TextPane:
        """Return a pane by name: `subject`, `proposal` or `consequence`."""
        return self.query_one(f"#review-{name}", TextPane)

    def _widths(self) -> tuple[int, int]:
        """Return the widths of both sides in cells; unlimited before the first layout."""
        left, right = (self.text_of(name).scrollable_content_region.width for name in ("subject", "proposal"))
        return left or right or UNBROKEN, right or left or UNBROKEN

    def _turn_pane(self, name: str) -> None:
        self._pane = name
        for pane in _PANES:
            self.set_class(pane == name, f"-shows-{pane}")
        self._show_tabs()

    def _to_pane(self, by: int) -> None:
        self._turn_pane(_PANES[(_PANES.index(self._pane) + by) % len(_PANES)])
        self.call_after_refresh(self.text_of(self._pane).focus)

    action_next_pane = partialmethod(_to_pane, 1)
    action_previous_pane = partialmethod(_to_pane, -1)

    def _show_tabs(self) -> None:
        items: list[Item] = []
        for name, heading in zip(_PANES, (*self._headings, "effect"), strict=True):
            style = "$accent bold underline" if name == self._pane else "$quiet"
            items.append(Item(Content.styled(visible_line(heading.partition(",")[0], TAB_CELLS), style), name))
        self.query_one("#review-tabs", ItemLine).show(items)

    @on(ItemLine.Clicked, "#review-tabs")
    def _tab_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        self._turn_pane(message.value)
        self.call_after_refresh(self.text_of(message.value).focus)

    def show_sides(self, item: ReviewItem, view: ProjectState, *, top: bool) -> None:
        left, right, about, beside = present.sides(view, item, self._desk(item))
        self._headings = left, right
        self.query_one("#review-left", Static).update(Content(left))
        self.query_one("#review-right", Static).update(Content(right))
        if item.kind == kinds.DUPLICATE and self.has_class("-wide"):
            about, beside = self._side_by_side(about, beside)
        self.text_of("subject").show(about, top=top)
        self.text_of("proposal").show(beside, top=top)
        self._show_tabs()

    def _desk(self, item: ReviewItem) -> present.Desk:
        draft, key = self.draft(item), self.services.shown_key
        is_edited = bool(draft is not None and draft.text)
        return present.Desk(
            glyphs=self.glyphs,
            key=key,
            widths=self._widths(),
            proposal=self.proposal(item),
            is_edited=is_edited,
            agent_files=self.services.project.adapters.agent_files() if item.lesson is not None else (),
        )

    def _side_by_side(self, left: list[Content], right: list[Content]) -> tuple[list[Content], list[Content]]:
        """Return both texts, padded with blank lines so that equal fields are side by side."""
        widths = self._widths()
        padded: tuple[list[Content], list[Content]] = ([], [])
        for pair in zip(left, right, strict=True):
            heights = [len(wrap([line], width)) for line, width in zip(pair, widths, strict=True)]
            for lines, line, height in zip(padded, pair, heights, strict=True):
                lines += [line, *[Content("")] * (max(heights) - height)]
        return padded
