"""Place 3: one thing to decide at a time, most worth deciding first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.curation.review import STALE_PIN, ReviewItem
from core.deck import View
from core.errors import RalphdeckError
from core.forecast import Forecast, forecast
from core.records.patterns import Maturity
from core.snapshot import Delta
from tui.present import review as present
from tui.screens.deciding import Deciding, why_not_decide
from tui.screens.dialogs import AskText
from tui.widgets.bars import Item, ItemLine
from tui.widgets.text_pane import TextPane

SNOOZE_DAYS: Final = 7
BESIDE: Final = 100
"""Cells from which the two sides stand beside each other."""


class ReviewPlace(Deciding):
    """Left what it is, right what it would become, below what changes for the loops."""

    place = "review"
    ABOUT = (
        "One question at a time, the one that matters most first. Left: the pattern and its uses. Right: what is "
        "proposed. Below: what would change for the loops that run now. Every answer can be taken back with u."
    )

    class Forecasted(Message):
        """A worker has worked out what an answer would change."""

        def __init__(self, key: tuple[str, str], result: Forecast) -> None:
            super().__init__()
            self.key = key
            self.result = result

    def __init__(self) -> None:
        super().__init__()
        self._current: tuple[str, str] | None = None
        self._given: str | None = None
        """The pattern whose answer is on its way to the disk; its question is not in front any more."""
        self._landed = False
        self._at = 0
        self._returning = ""

    def compose_content(self) -> ComposeResult:
        """Question, two panes, consequence."""
        yield ItemLine(classes="question")
        with Vertical(classes="desk"):
            with Horizontal(classes="sides"):
                with Vertical(classes="side"):
                    yield Static(Content("pattern"), classes="heading", id="review-left")
                    yield TextPane(id="review-subject")
                with Vertical(classes="side side--right"):
                    yield Static(Content("would become"), classes="heading", id="review-heading")
                    yield TextPane(id="review-proposal")
            yield Static(Content("what changes"), classes="heading heading--rule")
            yield TextPane(id="review-consequence")

    def on_mount(self) -> None:
        """The keys decide; the text only scrolls."""
        if not self.whole:
            return
        super().on_mount()
        self.query_one("#review-subject", TextPane).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Beside each other where there is room."""
        self.set_class(event.size.width >= BESIDE, "-wide")
        self.refresh_frame()

    @property
    def item(self) -> ReviewItem | None:
        """The question in front."""
        queue = self.open_items
        if self._current is not None:
            for item in queue:
                if (item.kind, item.subject) == self._current:
                    return item
        return queue[min(self._at, len(queue) - 1)] if queue else None

    @property
    def open_items(self) -> list[ReviewItem]:
        """The questions that are not answered."""
        return [item for item in self.view.queue if item.subject != self._given]

    def answered(self, *, decided: bool) -> None:
        """The answer is on disk, as the next view will show, or was refused: then its question comes back."""
        self._landed = decided
        if not decided:
            self._given = None
            self.refresh_view(self.view, None)

    def refresh_view(self, view: View, delta: Delta | None) -> None:
        """Stay at the question in front while others come and go; move on when it is answered."""
        if self._landed:
            self._given, self._landed = None, False
        for n, question in enumerate(self.open_items):
            if question.subject == self._returning:
                self._at, self._current, self._returning = n, None, ""
        item = self.item
        line = self.query_one(".question", ItemLine)
        if item is None:
            self._current = None
            line.show([Item(Content.styled("Nothing waits for a decision.", "bold"))])
            self._pane("subject").show(
                [
                    Content("Inversions and decisions that later evidence contradicts will stand here."),
                    Content.styled("Meanwhile: 2 to browse patterns, 4 to see what a task would get.", "$quiet"),
                ]
            )
            self._pane("proposal").show([])
            self._pane("consequence").show([])
            return
        key = (item.kind, item.subject)
        another = key != self._current
        self._current = key
        waiting = self.open_items
        self._at = waiting.index(item)
        head, worth = present.head(item, self._at + 1, len(waiting), self.glyphs)
        line.show([Item(head)], [Item(worth)])
        left, right, about, beside = present.sides(view, item, self.glyphs)
        self.query_one("#review-left", Static).update(Content(left))
        self.query_one("#review-heading", Static).update(Content(right))
        self._pane("subject").show([Content.styled(item.reason, "$warning"), Content(""), *about], top=another)
        self._pane("proposal").show(beside, top=another)
        if another:
            self._pane("consequence").show([Content.styled("working out what changes…", "$quiet")])
        self._work_out(item, view)

    def _pane(self, name: str) -> TextPane:
        return self.query_one(f"#review-{name}", TextPane)

    def _work_out(self, item: ReviewItem, view: View) -> None:
        key = (item.kind, item.subject)

        def work() -> None:
            try:
                self.post_message(self.Forecasted(key, forecast(view, item)))
            except RalphdeckError:
                return  # the pattern has just gone; the queue will say so

        self.run_worker(work, thread=True, group="forecast", exclusive=True)

    def on_review_place_forecasted(self, message: Forecasted) -> None:
        """Show what would change, if the question is still in front."""
        if message.key != self._current:
            return
        self._pane("consequence").show(present.consequence_lines(message.result, self.glyphs))

    # Deciding

    def subjects(self) -> Sequence[str]:
        """The pattern in question; a burst is about many."""
        item = self.item
        return [item.subject] if item is not None and item.burst is None else []

    def why_not(self, action: str) -> str | None:
        """Each kind of question has its own answers."""
        item = self.item
        if action in {"accept", "reject", "rewrite", "snooze", "promote", "deprecate", "reset", "note", "why",
                      "in_context", "next_item", "previous_item", "copy", "edit_file"}:  # fmt: skip
            if item is None:
                return "nothing waits for a decision"
            if action in {"next_item", "previous_item"}:
                return "this is the only question" if len(self.open_items) < 2 else None
            if item.burst is not None:
                possible = action in {"accept", "reject", "snooze", "copy"}
                return None if possible else "this question is about many patterns at once; here: a, x or s"
            if action in {"reject", "rewrite", "snooze"} and item.inversion is None:
                return "only a proposed inversion can be rejected, rewritten or snoozed; here: a, p, d or r"
            return why_not_decide(action, self.view, item.subject)
        return None

    def wording(self, action: str) -> str | None:
        """The consequence stands on the key."""
        item = self.item
        if item is None:
            return None
        wide = self.size.width >= BESIDE
        if item.burst is not None:
            return {
                "accept": f"revoke {self.glyphs.arrow} the marks never count" if wide else "revoke",
                "reject": f"confirm {self.glyphs.arrow} they count" if wide else "confirm",
                "snooze": f"snooze {SNOOZE_DAYS} d",
            }.get(action)
        if item.inversion is not None:
            failures = self.view.settings.anti_pattern.failures_until_asked_again
            return {
                "accept": f"accept {self.glyphs.arrow} anti-pattern" + f", original {self.glyphs.deprecated}" * wide,
                "reject": f"reject {self.glyphs.arrow} asks again after {failures} failures" if wide else "reject",
                "snooze": f"snooze {SNOOZE_DAYS} d",
            }.get(action)
        assessment = self.view.assessment(item.subject)
        return {
            "accept": f"accept {self.glyphs.arrow} reset" + f", evidence says {assessment.computed.value}" * wide,
            "promote": "promote again",
            "deprecate": "deprecate again" if assessment.state is Maturity.DEPRECATED else "deprecate",
            "reset": f"reset {self.glyphs.arrow} {assessment.computed.value}",
        }.get(action)

    def do_accept(self) -> None:
        """Do what is proposed: invert, let the evidence decide, or believe no burst."""
        item = self.item
        if item is None:
            return
        if item.burst is not None:
            self.deck_app.decide(lambda deck: deck.revoke(item.subject, seen=item.burst))
        elif item.inversion is not None:
            self.deck_app.decide(lambda deck: deck.accept_inversion(item.subject))
        else:
            reason = "its text has changed" if item.kind == STALE_PIN else "later evidence contradicts it"
            self.deck_app.decide(lambda deck: deck.reset(item.subject, reason=reason))
        self._answered()

    def do_reject(self) -> None:
        """Keep the pattern as it is; or let the marks of a burst count."""
        if item := self.item:
            if item.burst is not None:
                self.deck_app.decide(lambda deck: deck.confirm(item.subject, seen=item.burst))
            else:
                self.deck_app.decide(lambda deck: deck.reject_inversion(item.subject))
            self._answered()

    def do_snooze(self) -> None:
        """Ask again later."""
        if item := self.item:
            until = self.deck_app.now() + timedelta(days=SNOOZE_DAYS)
            if item.burst is not None:
                self.deck_app.decide(lambda deck: deck.snooze_question(item.question_key, until=until))
            else:
                self.deck_app.decide(lambda deck: deck.snooze(item.subject, until=until))
            self._answered()

    def do_rewrite(self) -> None:
        """Accept in other words."""
        item = self.item
        if item is None or item.inversion is None:
            return

        def answered(text: str | None) -> None:
            if text:
                self.deck_app.decide(lambda deck: deck.accept_inversion(item.subject, text=text))
                self._answered()

        self.deck_app.push_screen(AskText(Content("The anti-pattern in your words"), item.inversion.text), answered)

    def _answered(self) -> None:
        """Let go of the question: the next one is in front at once."""
        if item := self.item:
            self._given = item.subject
        self._current = None
        self.refresh_view(self.view, None)

    def do_undo(self) -> None:
        """Take the newest decision back, and ask its question again."""
        undoable = self.view.snapshot.curation.undoable
        subjects = [d.subject for d in self.view.snapshot.decisions if undoable and d.id == undoable[-1]]
        self._returning = subjects[0] if subjects else ""
        self.deck_app.do_undo()

    # Looking

    def do_next_item(self) -> None:
        """The next question."""
        self._step(1)

    def do_previous_item(self) -> None:
        """The previous question."""
        self._step(-1)

    def _step(self, by: int) -> None:
        questions = self.open_items
        self._at = (self._at + by) % len(questions)
        item = questions[self._at]
        self._current = None
        self.refresh_view(self.view, None)
        self._current = (item.kind, item.subject)

    def go_to(self, key: str) -> None:
        """To the question about a pattern."""
        for n, item in enumerate(self.open_items):
            if item.subject == key:
                self._at, self._current = n, None
                self.refresh_view(self.view, None)

    def do_why(self) -> None:
        """To the pattern, with its rules."""
        if subjects := self.subjects():
            self.deck_app.open_record("patterns", subjects[0], tab="Why")

    def do_in_context(self) -> None:
        """See it in Context."""
        if subjects := self.subjects():
            self.deck_app.preview_pattern(subjects[0])

    def do_edit_file(self) -> None:
        """Open the pattern's file."""
        if subjects := self.subjects():
            self.deck_app.edit_file(self.view.pattern(subjects[0]).file)

    def copy_text(self) -> str:
        """The pattern's id, or the text that has focus."""
        if isinstance(self.focused, TextPane) and self.focused.id != "review-subject":
            return self.focused.plain
        return self.subjects()[0] if self.subjects() else ""
