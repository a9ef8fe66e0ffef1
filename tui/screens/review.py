"""Place 3: one thing to decide at a time, most worth deciding first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static
from textual.widgets._toast import ToastRack

from core.checks import check_amount
from core.errors import BadInput
from core.forecast import Forecaster
from core.records.decisions import Decision
from core.review import items as kinds
from core.review.answers import Answer, question_of
from core.review.items import ReviewItem
from core.review.session import Plan, pace_of, plan
from core.settings import MAX_MINUTES
from core.snapshot import Delta
from core.text import visible_line
from core.view import View
from tui.actions import ACTIONS
from tui.present import review as present
from tui.present.layout import UNBROKEN
from tui.present.memory_tree import session_key
from tui.present.review_answers import Outlook, answer_rows, what_changes, what_heading
from tui.present.sitting import budget_text, pace_text, stop_lines
from tui.screens.dialogs import AskLine
from tui.screens.review_answering import ANSWERS, DECIDES, Answering
from tui.screens.review_forecasts import Forecasts, work_out
from tui.screens.review_walk import same_question
from tui.widgets.answer_list import AnswerList
from tui.widgets.bars import Item, ItemLine
from tui.widgets.text_pane import TextPane, wrap

BESIDE: Final = 100
"""Cells from which the two sides stand beside each other."""
TALL: Final = 36
"""Lines from which a narrow screen stacks what it else shows one at a time."""
ANSWER_FRAME: Final = 2
"""Lines below and above the answers: the key line and a rule."""
_PANES: Final = ("subject", "proposal", "consequence")
ROOMY: Final = 48
"""Lines from which answers that can't be given now are listed, too."""
TAB_CELLS: Final = 24
"""Longest name of a tab."""
_ALWAYS: Final = frozenset(
    {"undo", "redo", "what_if", "copy", "minutes"}
    | {action.id for action in ACTIONS if action.group in {"Go", "Program", "Move"}}
) - {"next_item", "previous_item"}
"""What can be done without a question in front."""


class ReviewPlace(Answering):
    """Left what it is, right the evidence on it; below what each key would change."""

    place = "review"
    ABOUT = (
        "One question at a time, the one that matters most first. Left: what it is about. Right: what speaks for and "
        "against it. At the bottom, for each key that decides, what it would change; left and right choose one of "
        "them without deciding, and above them stands how it changes what loops would read. Every answer can be "
        "taken back with u."
    )

    class Foretold(Message):
        """A worker has worked out what an answer would change."""

        def __init__(self, item: ReviewItem, action: str, outlook: Outlook) -> None:
            super().__init__()
            self.item = item
            self.action = action
            self.outlook = outlook

    def __init__(self) -> None:
        super().__init__()
        self._forecasts = Forecasts()
        self._forecaster: Forecaster | None = None
        self._offered: tuple[Answer, ...] = ()
        self._cursor = 0
        self._shown: ReviewItem | None = None
        self._pane = "subject"
        self._headings = ("", "")
        self._gone_by: Decision | None = None
        self._decisions = 0
        """How many decisions the view of before knew."""

    def compose_content(self) -> ComposeResult:
        """Question, two panes, what changes, the answers."""
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
            yield AnswerList(id="review-answers")

    def on_mount(self) -> None:
        """The keys decide; the text only scrolls."""
        if not self.whole:
            return
        super().on_mount()
        self.query_one("#review-subject", TextPane).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Beside each other where there is room, below each other where there is height, else one at a time."""
        width, height = event.size
        self.set_class(width >= BESIDE, "-wide")
        self.set_class(width < BESIDE and height < TALL, "-tabbed")
        self.refresh_frame()

    def on_descendant_focus(self) -> None:
        """The pane that has focus is the one that a small screen shows."""
        focused = self.focused
        if isinstance(focused, TextPane) and focused.id is not None:
            self._turn_pane(focused.id.removeprefix("review-"))  # a click, or the way back from a dialog

    @on(TextPane.Widened)
    def _lay_out(self) -> None:
        """Write both sides anew for the room that they have."""
        if self.whole:
            self.show_anew()

    # Following the queue

    def refresh_view(self, view: View, delta: Delta | None) -> None:
        """Stay at the question in front while others come and go; move on when it is answered here."""
        made = view.snapshot.decisions[self._decisions :]
        self._decisions = len(view.snapshot.decisions)
        self.walk.follow(view.queue, moves_on=lambda item: self._moves_on(item, made, view))
        item = self.walk.settle()
        if self.walk.gone is not None:
            self._show_gone(self.walk.gone)
        elif item is None:
            self._show_nothing()
        elif self._may_stop and self.sitting.plan is not None:
            self._show_stop(self.sitting.plan)
        else:
            self._show(item, view)

    @property
    def _may_stop(self) -> bool:
        return self.sitting.is_over(self.walk.items, self.deck_app.now())

    def _moves_on(self, item: ReviewItem, made: Sequence[Decision], view: View) -> bool:
        """Whether the next question may take the place of one that waits no more: not if others have answered it, or
        the evidence has.
        """
        if not view.snapshot.complete:
            return True
        self._gone_by = next(
            (one for one in reversed(made) if present.is_about(one, item) and one.by != self._me), None
        )
        return self._gone_by is None and any(one.by == self._me for one in made)

    @property
    def _me(self) -> str:
        return self.deck_app.deck.by

    def _show(self, item: ReviewItem, view: View) -> None:
        another = self._shown is None or not same_question(self._shown, item)
        self._shown = item
        self._offered = self.answers_to(item, view)
        if another:
            self._cursor = 0
            self.sitting.look(self.deck_app.now())
        desk = self.query_one(".desk")
        desk.set_class(item.kind == kinds.DUPLICATE, "-even")
        desk.set_class(not any(answer.matters for answer in self._offered), "-brief")
        self._show_head(item)
        self._show_sides(item, view, top=another)
        self._show_outcome(top=another)
        self._work_out(item, view)

    def _show_head(self, item: ReviewItem) -> None:
        waiting = len(self.walk.items)
        head, worth = present.head(item, self.walk.place, waiting, self.glyphs)
        now, offer = self.deck_app.now(), self._offer(self.view)
        budget = budget_text(self.sitting, offer, self.walk.items, now, self.deck_app.shown_key("minutes"))
        pace = [Item(pace_text(self.sitting))] * bool(self.sitting.decided)
        readonly = [Item(Content.styled("read-only", "$warning bold"))] * self.deck_app.deck.is_readonly
        told = [Item(head), *readonly, *pace, Item(budget, "minutes")]
        self.query_one(".question", ItemLine).show(told, [Item(worth)])
        self.query_one("#review-reason", Static).update(present.reason(item))

    def _offer(self, view: View, minutes: float = 0.0) -> Plan:
        """What a sitting of so many minutes would be for, 0: of the usual length."""
        review = view.settings.review
        return plan(
            self.walk.items, minutes or review.minutes, view.settings, pace_of(view.snapshot.decisions, self._me)
        )

    def do_minutes(self) -> None:
        """Set the time for this sitting: what brings most comes first, and it says when to stop."""

        def answered(text: str | None) -> None:
            if text is None:
                return
            try:
                minutes = float(text or "0")
                check_amount(minutes, "minutes", MAX_MINUTES)
            except (ValueError, BadInput):
                self.deck_app.say(f"{visible_line(text, 40)} is no number of minutes", severity="warning")
                return
            planned = self._offer(self.view, minutes) if minutes else None
            self.sitting.follow(planned, self.deck_app.now())
            if planned is not None:
                self.deck_app.say(planned.text)
                self.walk.plan(planned.items)
            self.show_anew()

        usual = self.sitting.plan.minutes if self.sitting.plan is not None else self.view.settings.review.minutes
        self.deck_app.push_screen(
            AskLine(
                Content("How many minutes do you have?"),
                Content("The decisions that bring most in that time come first; 0 takes the time off."),
                required=False,
                value=f"{usual:g}",
            ),
            answered,
        )

    @on(ItemLine.Clicked, ".question")
    def _head_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        self.do_minutes()

    def _show_stop(self, planned: Plan) -> None:
        """The plan is done, or the time is up: nothing is asked until the person goes on."""
        self._shown, self._offered = None, ()
        head, *told = stop_lines(self.walk.items, planned, self.deck_app.shown_key("next_item"))
        self.query_one(".question", ItemLine).show([Item(head), Item(pace_text(self.sitting))])
        self._show_text(told)

    def _show_text(self, text: Sequence[Content]) -> None:
        """Text alone, without sides and answers."""
        self.query_one("#review-reason", Static).update("")
        for name in ("left", "right"):
            self.query_one(f"#review-{name}", Static).update("")
        self._text("subject").show(text)
        self._text("proposal").show([])
        self._show_outcome(top=True)

    def _show_sides(self, item: ReviewItem, view: View, *, top: bool) -> None:
        left, right, about, beside = present.sides(view, item, self._desk(item))
        self._headings = left, right
        self.query_one("#review-left", Static).update(Content(left))
        self.query_one("#review-right", Static).update(Content(right))
        if item.kind == kinds.DUPLICATE and self.has_class("-wide"):
            about, beside = self._side_by_side(about, beside)
        self._text("subject").show(about, top=top)
        self._text("proposal").show(beside, top=top)
        self._show_tabs()

    def _desk(self, item: ReviewItem) -> present.Desk:
        """How the question in front is drawn."""
        draft = self.draft(item)
        return present.Desk(
            glyphs=self.glyphs,
            key=self.deck_app.shown_key,
            widths=self._widths(),
            proposal=self.proposal(item),
            own_words=bool(draft is not None and draft.text),
        )

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
        left, right = (self._text(name).scrollable_content_region.width for name in ("subject", "proposal"))
        return left or right or UNBROKEN, right or left or UNBROKEN

    def _text(self, name: str) -> TextPane:
        return self.query_one(f"#review-{name}", TextPane)

    def _turn_pane(self, name: str) -> None:
        self._pane = name
        for pane in _PANES:
            self.set_class(pane == name, f"-shows-{pane}")
        self._show_tabs()

    def do_next_pane(self) -> None:
        """Focus the next pane, which a small screen then shows."""
        self._to_pane(1)

    def do_previous_pane(self) -> None:
        """Focus the pane before."""
        self._to_pane(-1)

    def _to_pane(self, by: int) -> None:
        self._turn_pane(_PANES[(_PANES.index(self._pane) + by) % len(_PANES)])
        self.call_after_refresh(self._text(self._pane).focus)

    def _show_tabs(self) -> None:
        tabs = zip(_PANES, (*self._headings, "what changes"), strict=True)
        shown = [(name, visible_line(heading.split(":")[0], TAB_CELLS)) for name, heading in tabs]
        self.query_one("#review-tabs", ItemLine).show(
            [
                Item(Content.styled(text, "$accent bold underline" if name == self._pane else "$quiet"), name)
                for name, text in shown
            ]
        )

    @on(ItemLine.Clicked, "#review-tabs")
    def _tab_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        self._turn_pane(message.value)
        self.call_after_refresh(self._text(message.value).focus)

    def _show_gone(self, item: ReviewItem) -> None:
        """What was in front stays to be read; nothing can be answered."""
        self._offered = ()
        told = present.gone(item, self._gone_by, self.view)
        self.query_one(".question", ItemLine).show([Item(Content.styled(told, "bold $warning"))])
        on = f"{self.deck_app.shown_key('next_item')} goes on to the next question"
        self.query_one("#review-reason", Static).update(Content.styled(on, "$quiet"))
        self._show_outcome(top=True)

    def _show_nothing(self) -> None:
        """The queue is empty."""
        self._shown, self._offered = None, ()
        self.query_one(".question", ItemLine).show([Item(Content.styled("Nothing waits for a decision.", "bold"))])
        self._show_text(
            [
                Content(present.EMPTY),
                Content(""),
                Content.styled("Meanwhile: 2 to browse patterns, 4 to see what a task would get.", "$quiet"),
            ]
        )

    # What each answer would change

    def _show_outcome(self, *, top: bool) -> None:
        """The answers with what is known of each, and in full what the one under the cursor changes."""
        item = self._shown if self._listed else None
        self._cursor = min(self._cursor, max(len(self._listed) - 1, 0))
        rows: list[Content] = []
        if item is not None:
            offered = self._listed
            outlooks = [self._forecasts.of(item, answer.action) for answer in offered]
            keys = [self.deck_app.shown_key(answer.action) for answer in offered]
            width = (self.query_one(AnswerList).size.width or self.size.width) - 2
            rows = answer_rows(offered, outlooks, keys, item.subject, self.glyphs, width)
            answer, outlook = offered[self._cursor], outlooks[self._cursor]
            self.query_one("#review-what", Static).update(what_heading(answer, keys[self._cursor]))
            self._text("consequence").show(what_changes(answer, outlook, self.view, self.glyphs), top=top)
        else:
            self.query_one("#review-what", Static).update("")
            self._text("consequence").show([])
        self.query_one(AnswerList).show(rows, self._cursor)
        self._lift_toasts(len(rows))
        self.refresh_frame()

    def _lift_toasts(self, rows: int) -> None:
        """Toasts stand above the answers: what the keys do must not be covered, least of all after a decision."""
        above = rows + ANSWER_FRAME if rows else 1
        for rack in self.query(ToastRack):
            if rack.styles.margin.bottom != above:
                rack.styles.margin = (0, 0, above, 0)

    @property
    def _listed(self) -> list[Answer]:
        """The answers that have a line: those that can't be given now only where there is room."""
        roomy = self.size.height >= ROOMY
        return [answer for answer in self._offered if roomy or not answer.why_not]

    def _work_out(self, item: ReviewItem, view: View) -> None:
        """What is not known yet of the question in front, then of the next one, so that it is known when it comes."""
        number = view.snapshot.number
        following = self.walk.next
        self._forecasts.keep([item, *([following] if following is not None else [])])
        jobs = [(item, self._forecasts.missing(item, self._offered, number))]
        if following is not None:
            jobs.append((following, self._forecasts.missing(following, self.answers_to(following, view), number)))
        if not any(answers for _, answers in jobs):
            return
        if self._forecaster is None:
            self._forecaster = Forecaster(self.deck_app.deck)
        forecaster = self._forecaster

        def work() -> None:
            for found in work_out(jobs, view, forecaster):
                self.post_message(self.Foretold(*found))

        self.run_worker(work, thread=True, group="forecast", exclusive=True)

    def on_review_place_foretold(self, message: Foretold) -> None:
        """Keep what would change; show it if its question is still in front."""
        self._forecasts.take(message.item, message.action, message.outlook)
        if self._shown is not None and same_question(message.item, self._shown):
            self._show_outcome(top=False)

    def forget(self, item: ReviewItem, action: str) -> None:
        """What was worked out of an answer does not hold any more."""
        self._forecasts.forget(item, action)

    def do_next_answer(self) -> None:
        """The cursor to the next answer."""
        self._choose(self._cursor + 1)

    def do_previous_answer(self) -> None:
        """The cursor to the answer before."""
        self._choose(self._cursor - 1)

    @on(AnswerList.Chosen)
    def _clicked_answer(self, message: AnswerList.Chosen) -> None:
        self._choose(message.row)

    def _choose(self, row: int) -> None:
        if self._listed:
            self._cursor = row % len(self._listed)
            self._show_outcome(top=True)

    # Keys

    def listed(self) -> frozenset[str]:
        """The answers have lines of their own."""
        return ANSWERS

    def why_not(self, action: str) -> str | None:
        """Each kind of question has its own answers."""
        if action in _ALWAYS:
            return None
        if action in {"next_item", "previous_item"}:
            moves = self.walk.gone or self._may_stop or len(self.walk.items) > 1
            return None if moves else "this is the only question"
        if self.walk.gone is not None:
            return f"this question waits no more: {self.deck_app.shown_key('next_item')} goes on"
        item = self.item
        if item is None:
            return "nothing waits for a decision"
        if self.deck_app.deck.is_readonly and action in DECIDES:
            return "nothing can be decided: the dashboard was started with --readonly"
        if self._may_stop:
            return f"you can stop here; {self.deck_app.shown_key('next_item')} goes on"
        if action in ANSWERS:
            return self._why_not_answer(action, item)
        if action in {"rewrite_in_editor", "alternative"} and item.inversion is None:
            return "only a proposed inversion can be put in other words"
        if action in {"why", "in_context", "note"}:
            return None if item.is_about_pattern else f"this question is about {present.about(item)}"
        if action == "edit_file":
            return None if item.is_about_pattern or item.session is not None else "what this is about has no file"
        return None

    def _why_not_answer(self, action: str, item: ReviewItem) -> str | None:
        for answer in self._offered:
            if answer.action == action:
                return answer.why_not or None
        keys = [self.deck_app.shown_key(answer.action) for answer in self._offered if not answer.why_not]
        return f"this question is about {present.about(item)}; here: {', '.join(keys)}"

    def do_undo(self) -> None:
        """Take the newest decision back, and ask its question again."""
        undoable = self.view.snapshot.curation.undoable
        newest = [one for one in self.view.snapshot.decisions if undoable and one.id == undoable[-1]]
        if newest:
            self.walk.come_back_to(question_of(newest[0]))
        self.sitting.take_back()
        self.deck_app.do_undo()

    # Looking

    def do_next_item(self) -> None:
        """The next question."""
        self._step(1)

    def do_previous_item(self) -> None:
        """The previous question."""
        self._step(-1)

    def _step(self, by: int) -> None:
        if self._may_stop:
            self.sitting.goes_on, by = True, min(by, 0)
        self.walk.step(by)
        self.show_anew()

    def go_to(self, key: str) -> None:
        """To the question that is filed under a key, else to one about this pattern or loop."""
        if self.walk.turn_to(key):
            self.sitting.goes_on = True
            self.show_anew()

    def do_why(self) -> None:
        """To the pattern, with its rules."""
        if self.item is not None:
            self.deck_app.open_record("patterns", self.item.subject, tab="Why")

    def do_in_context(self) -> None:
        """See it in Context."""
        if self.item is not None:
            self.deck_app.preview_pattern(self.item.subject)

    def do_open(self) -> None:
        """To what the question is about: a pattern, a loop, or a debug session in Memory."""
        item = self.item
        if item is None:
            return
        if item.session is not None:
            self.deck_app.open_record("memory", session_key(item.subject))
        else:
            self.deck_app.open_record("patterns" if item.is_about_pattern else "loops", item.subject)

    def do_edit_file(self) -> None:
        """Open the file of the pattern, or of the debug session."""
        item = self.item
        if item is not None:
            file = item.session.file if item.session is not None else self.view.pattern(item.subject).file
            self.deck_app.edit_file(file)

    def do_note(self) -> None:
        """Write a note beside the pattern."""
        item = self.item

        def answered(text: str | None) -> None:
            if text and item is not None:
                self.deck_app.decide(lambda deck: deck.note(item.subject, text=text))

        if item is not None:
            self.deck_app.push_screen(
                AskLine(
                    Content(f"A note on {visible_line(item.subject, 60)}"),
                    Content("It is kept in the log and shown under History; it answers nothing and changes no state."),
                    required=True,
                ),
                answered,
            )

    def copy_text(self) -> str:
        """The id of what the question is about, or the text that has focus."""
        if isinstance(self.focused, TextPane) and self.focused.id != "review-subject":
            return self.focused.plain
        return self.item.subject if self.item is not None else ""
