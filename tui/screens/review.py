"""Place 3: one thing to decide at a time, most worth deciding first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.curation.registry import Registry
from core.errors import RalphdeckError
from core.forecast import Forecast, forecast
from core.records.patterns import Maturity, Pattern
from core.review import items as kinds
from core.review.answers import SNOOZE_DAYS, answer, question_of, why_not_decide
from core.review.items import ReviewItem
from core.review.telling import offer_text
from core.snapshot import Delta
from core.text import plural, visible_line
from core.view import View
from tui.present import review as present
from tui.present.layout import UNBROKEN
from tui.present.memory_tree import session_key
from tui.screens.deciding import Deciding
from tui.screens.dialogs import AskText
from tui.widgets.bars import Item, ItemLine
from tui.widgets.text_pane import TextPane, wrap

BESIDE: Final = 100
"""Cells from which the two sides stand beside each other."""

Key = tuple[str, str]
"""What tells one question from all others: its kind and its `question_key`."""


def key_of(item: ReviewItem) -> Key:
    """Which question this is; of two patterns that resemble each other, whichever is kept."""
    return item.kind, item.question_key


def _same(one: ReviewItem, other: ReviewItem) -> bool:
    """Whether both ask the same, and of two patterns about the same one."""
    return key_of(one) == key_of(other) and one.subject == other.subject


class ReviewPlace(Deciding):
    """Left what it is, right what it would become, below what changes for the loops."""

    place = "review"
    ABOUT = (
        "One question at a time, the one that matters most first: inversions, decisions in doubt, texts that nobody "
        "has read, patterns that say the same, and what finished loops have learned. Left: what it is about. Right: "
        "what is proposed. Below: what would change for the loops that run now. Every answer can be taken back with u."
    )

    class Forecasted(Message):
        """A worker has worked out what an answer would change."""

        def __init__(self, item: ReviewItem, result: Forecast | None, problem: str = "") -> None:
            super().__init__()
            self.item = item
            self.result = result
            self.problem = problem

    def __init__(self) -> None:
        super().__init__()
        self._current: Key | None = None
        self._given: Key | None = None
        """The question whose answer is on its way to the disk; it is not in front any more."""
        self._turned: set[Key] = set()
        """Pairs of patterns of which the other one is to be kept."""
        self._forecast: tuple[ReviewItem, Forecast] | None = None
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

    @on(TextPane.Widened)
    def _lay_out(self) -> None:
        """Write both sides anew for the room that they have."""
        if self.whole:
            self.refresh_view(self.view, Delta())

    @property
    def item(self) -> ReviewItem | None:
        """The question in front."""
        queue = self.open_items
        if self._current is not None:
            for item in queue:
                if key_of(item) == self._current:
                    return item
        return queue[min(self._at, len(queue) - 1)] if queue else None

    @property
    def open_items(self) -> list[ReviewItem]:
        """The questions that are not answered."""
        turned = self._turned
        return [
            replace(item, subject=item.other, other=item.subject) if turned and key_of(item) in turned else item
            for item in self.view.queue
            if key_of(item) != self._given
        ]

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
        if self._returning and self._turn_to(self._returning):
            self._returning = ""
        item = self.item
        line = self.query_one(".question", ItemLine)
        if item is None:
            self._current = None
            line.show([Item(Content.styled("Nothing waits for a decision.", "bold"))])
            self._pane("subject").show(
                [
                    Content(
                        "Escalations, inversions, decisions that later evidence contradicts, texts that nobody has "
                        "read, patterns that say the same and what finished loops offer will stand here."
                    ),
                    Content.styled("Meanwhile: 2 to browse patterns, 4 to see what a task would get.", "$quiet"),
                ]
            )
            self._pane("proposal").show([])
            self._pane("consequence").show([])
            return
        another = key_of(item) != self._current
        self._current = key_of(item)
        waiting = self.open_items
        self._at = waiting.index(item)
        self.query_one(".desk").set_class(item.kind == kinds.DUPLICATE, "-even")
        self.query_one(".desk").set_class(item.session is not None, "-brief")
        head, worth = present.head(item, self._at + 1, len(waiting), self.glyphs)
        line.show([Item(head)], [Item(worth)])
        left, right, about, beside = present.sides(view, item, self.glyphs, self._widths())
        self.query_one("#review-left", Static).update(Content(left))
        self.query_one("#review-heading", Static).update(Content(right))
        if item.kind == kinds.DUPLICATE and self.has_class("-wide"):
            about, beside = self._side_by_side(about, beside)
        self._pane("subject").show(about, top=another)
        self._pane("proposal").show(beside, top=another)
        if another or (self._forecast is not None and not _same(self._forecast[0], item)):
            self._forecast = None
            self._pane("consequence").show([Content.styled("working out what changes…", "$quiet")])
        self._work_out(item, view)

    def _side_by_side(self, left: list[Content], right: list[Content]) -> tuple[list[Content], list[Content]]:
        """Both texts with blank lines where the other one takes more, so that the same field stands beside itself."""
        widths = self._widths()
        padded: tuple[list[Content], list[Content]] = ([], [])
        for pair in zip(left, right, strict=True):
            heights = [len(wrap([line], width)) for line, width in zip(pair, widths, strict=True)]
            for lines, line, height in zip(padded, pair, heights, strict=True):
                lines += [line, *[Content("")] * (max(heights) - height)]
        return padded

    def _widths(self) -> tuple[int, int]:
        """Cells of the two sides; before anything is laid out as many as one likes."""
        left, right = (self._pane(name).scrollable_content_region.width for name in ("subject", "proposal"))
        return left or UNBROKEN, right or UNBROKEN

    def _pane(self, name: str) -> TextPane:
        return self.query_one(f"#review-{name}", TextPane)

    def _work_out(self, item: ReviewItem, view: View) -> None:
        registry = Registry(self.deck_app.deck.project)

        def record_of(pattern: Pattern) -> dict[str, Any]:
            return registry.record(pattern).value

        def work() -> None:
            try:
                self.post_message(self.Forecasted(item, forecast(view, item, record_of)))
            except RalphdeckError as error:
                self.post_message(self.Forecasted(item, None, str(error)))

        self.run_worker(work, thread=True, group="forecast", exclusive=True)

    def on_review_place_forecasted(self, message: Forecasted) -> None:
        """Show what would change, if the question is still in front."""
        if self.item is None or not _same(message.item, self.item):
            return
        if message.result is None:
            self._pane("consequence").show([Content.styled(visible_line(message.problem, 400), "$warning")])
            return
        self._forecast = message.item, message.result
        lines = present.consequence_lines(message.result, self.view, self.glyphs)
        if self.item.session is not None:
            lines += present.key_lines(self.deck_app.shown_key, SNOOZE_DAYS)
        self._pane("consequence").show(lines)
        self.refresh_frame()

    # Deciding

    def subjects(self) -> Sequence[str]:
        """The pattern in question; a burst is about many, an offer about none yet, an escalation about none."""
        item = self.item
        return [item.subject] if item is not None and item.is_about_pattern else []

    def why_not(self, action: str) -> str | None:
        """Each kind of question has its own answers."""
        item = self.item
        if action in {"open", "accept", "reject", "rewrite", "snooze", "promote", "deprecate", "reset", "note", "why",
                      "in_context", "next_item", "previous_item", "copy", "edit_file"}:  # fmt: skip
            if item is None:
                return "nothing waits for a decision"
            if action in {"next_item", "previous_item"}:
                return "this is the only question" if len(self.open_items) < 2 else None
            if action in {"accept", "snooze", "copy"}:
                return None
            return self._why_not_here(action, item)
        return None

    def _why_not_here(self, action: str, item: ReviewItem) -> str | None:
        if action == "open" and item.session is None:
            return "only an escalation leads on to Memory"
        if item.burst is not None:
            return None if action == "reject" else "this question is about many patterns at once; here: a, x or s"
        if item.offer is not None:
            return None if action == "reject" else "this question is about no pattern yet; here: a, x or s"
        if item.session is not None:
            leads = action in {"open", "edit_file"}
            return None if leads else "this question is about no pattern; here: a, s, enter or o"
        if item.kind == kinds.DUPLICATE:
            if action in {"promote", "deprecate", "reset", "note"}:
                return "this question is about two patterns; here: a, e, x or s"
            return None
        if action == "rewrite" and item.inversion is None:
            return "only a proposed inversion can be put in other words"
        if action == "reject" and item.inversion is None and item.kind not in (kinds.QUARANTINE, kinds.EXTRACTED):
            return "only what is proposed can be rejected; here: a, p, d, r or s"
        return why_not_decide(action, self.view, item.subject) or None

    def wording(self, action: str) -> str | None:
        """The consequence stands on the key."""
        item = self.item
        if item is None:
            return None
        if action == "snooze":
            return f"snooze {SNOOZE_DAYS} d"
        wide = self.size.width >= BESIDE
        arrow = self.glyphs.arrow
        if item.burst is not None:
            return {
                "accept": f"revoke {arrow} the marks never count" if wide else "revoke",
                "reject": f"confirm {arrow} they count" if wide else "confirm",
            }.get(action)
        if item.offer is not None:
            return {
                "accept": f"extract {arrow} {offer_text(item.offer)}".replace(" to extract", "") if wide else "extract",
                "reject": f"never {arrow} not asked again" if wide else "never",
            }.get(action)
        if item.session is not None:
            seen = f"seen {arrow} not asked again" if wide else "seen"
            return {"accept": seen, "open": "to the session"}.get(action)
        if item.kind == kinds.DUPLICATE:
            return {
                "accept": f"merge{self._merged()}",
                "reject": f"keep both {arrow} not asked again" if wide else "keep both",
                "rewrite": "keep the other one" if wide else "other way",
            }.get(action)
        if item.kind in (kinds.QUARANTINE, kinds.EXTRACTED):
            release = "release" if item.kind == kinds.QUARANTINE else "keep"
            effect = "loops may get it" if item.kind == kinds.QUARANTINE else "not asked again"
            return {
                "accept": f"{release} {arrow} {effect}" if wide else release,
                "reject": f"archive {arrow} out of the registry" if wide else "archive",
            }.get(action)
        if item.inversion is not None:
            failures = self.view.settings.anti_pattern.failures_until_asked_again
            return {
                "accept": f"accept {arrow} anti-pattern" + f", original {self.glyphs.deprecated}" * wide,
                "reject": f"reject {arrow} asks again after {failures} failures" if wide else "reject",
            }.get(action)
        assessment = self.view.assessment(item.subject)
        return {
            "accept": f"accept {arrow} reset" + f", evidence says {assessment.computed.value}" * wide,
            "promote": "promote again",
            "deprecate": "deprecate again" if assessment.state is Maturity.DEPRECATED else "deprecate",
            "reset": f"reset {arrow} {assessment.computed.value}",
        }.get(action)

    def _merged(self) -> str:
        """What a merge gives, once that is known."""
        if self._forecast is None or self._forecast[1].merger is None:
            return ""
        after = self._forecast[1].merger.after
        return f" {self.glyphs.arrow} {plural(after.uses, 'use')}, {after.state.value}"

    def do_accept(self) -> None:
        """Do what is proposed."""
        if item := self.item:
            self._give(item, "accept")

    def do_reject(self) -> None:
        """Leave things as they are, and ask no more; or let marks count, or archive a text."""
        if item := self.item:
            self._give(item, "reject")

    def do_snooze(self) -> None:
        """Ask again later."""
        if item := self.item:
            self._give(item, "snooze")

    def _give(self, item: ReviewItem, action: str) -> None:
        given = answer(item, self.view, action)
        if given is not None:
            self.deck_app.decide(lambda deck: given.decide(deck, ""))
            self._answered()

    def do_rewrite(self) -> None:
        """Accept in other words; or keep the other one of two."""
        item = self.item
        if item is not None and item.kind == kinds.DUPLICATE:
            self._turned ^= {key_of(item)}
            self.refresh_view(self.view, None)
            return
        if item is None or item.inversion is None:
            return

        def answered(text: str | None) -> None:
            if text:
                self.deck_app.decide(lambda deck: deck.accept_inversion(item.subject, text=text))
                self._answered()

        self.deck_app.push_screen(AskText(Content("The anti-pattern in your words"), item.inversion.text), answered)

    def do_open(self) -> None:
        """To the debug session, in Memory."""
        if self.item is not None and self.item.session is not None:
            self.deck_app.open_record("memory", session_key(self.item.subject))

    def _answered(self) -> None:
        """Let go of the question: the next one is in front at once."""
        if item := self.item:
            self._given = key_of(item)
        self._current, self._returning = None, ""
        self.refresh_view(self.view, None)

    def do_undo(self) -> None:
        """Take the newest decision back, and ask its question again."""
        undoable = self.view.snapshot.curation.undoable
        decisions = [d for d in self.view.snapshot.decisions if undoable and d.id == undoable[-1]]
        self._returning = question_of(decisions[0]) if decisions else ""
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
        self._current, self._returning = None, ""
        self.refresh_view(self.view, None)
        self._current = key_of(item)

    def go_to(self, key: str) -> None:
        """To the question that is filed under a key, else to one about this pattern or loop."""
        if self._turn_to(key):
            self.refresh_view(self.view, None)

    def _turn_to(self, key: str) -> bool:
        questions = self.open_items
        found = [n for n, item in enumerate(questions) if item.question_key == key]
        found += [n for n, item in enumerate(questions) if key in (item.subject, item.other)]
        if found:
            self._at, self._current = found[0], None
        return bool(found)

    def do_why(self) -> None:
        """To the pattern, with its rules."""
        if subjects := self.subjects():
            self.deck_app.open_record("patterns", subjects[0], tab="Why")

    def do_in_context(self) -> None:
        """See it in Context."""
        if subjects := self.subjects():
            self.deck_app.preview_pattern(subjects[0])

    def do_edit_file(self) -> None:
        """Open the file of the pattern, or of the debug session."""
        item = self.item
        if item is not None and item.session is not None:
            self.deck_app.edit_file(item.session.file)
        elif subjects := self.subjects():
            self.deck_app.edit_file(self.view.pattern(subjects[0]).file)

    def copy_text(self) -> str:
        """The id of the pattern or debug session, or the text that has focus."""
        if isinstance(self.focused, TextPane) and self.focused.id != "review-subject":
            return self.focused.plain
        if self.item is not None and self.item.session is not None:
            return self.item.subject
        return self.subjects()[0] if self.subjects() else ""
