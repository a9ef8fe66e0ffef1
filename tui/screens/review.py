"""The Review screen: one question at a time, highest impact first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property, partial, partialmethod
from itertools import islice
from typing import TYPE_CHECKING, Final

from textual import on
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from core.agents.plan import describe_connected
from core.base.errors import RalphdeckError
from core.base.text import plural
from core.forecast.forecast import Forecaster
from core.questions.answers import Answer, question_of
from core.questions.judge import MAX_TEXTS, Advice, Judge, JudgedText, held_text_of
from core.state import review_items as kinds
from tui.actions import ACTIONS
from tui.present import review as present
from tui.present.review_answers import answer_rows, what_changes, what_heading
from tui.present.review_session import budget_text, pace_text, stop_lines
from tui.present.team import lease_text
from tui.screens.question_order import same_question
from tui.screens.review_answers import ANSWERS, DECIDES, evidence_loops
from tui.screens.review_forecasts import Forecasts, compute_outlook
from tui.screens.review_panes import ReviewPanes
from tui.widgets.bars import Item, ItemLine
from tui.widgets.drawing import AnswerList
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from core.questions.session import Plan
    from core.records.decisions import Decision
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

NAMES_IMPACT: Final = 100
"""Minimum screen width at which the impact is always shown, even if the ID or the question must be cut."""
SHORTEST_ID: Final = 12
"""Minimum cells of the ID: pace, then minutes and share of impact, are dropped to keep this width."""
MAX_KEY_LABEL: Final = 12  # Maximum characters of the highlighted answer in the key line of a narrow screen.
ROOMY: Final = 48  # lines of the screen from which disabled answers are listed, too
ASKED: Final = "asked"
NO_ADVICE: Final = "no advice"
_ALWAYS: Final = frozenset(
    {"undo", "redo", "what_if", "copy", "minutes", "back"}
    | {action.id for action in ACTIONS if action.group in {"Go", "Program", "Move"}}
) - {"next_item", "previous_item"}
"""Actions that need no question."""


class ReviewScreen(ReviewPanes):
    """Shows the record on the left, evidence on the right, and the answers below."""

    place = "review"

    def __init__(self) -> None:
        super().__init__()
        self._forecasts = Forecasts()
        self._offered: tuple[Answer, ...] = ()
        self._cursor = 0
        self._shown: ReviewItem | None = None
        self._is_armed = False  # whether the highlighted answer was clicked once: the next click gives it
        self._advice: dict[str, str] = {}
        """What to show of the judge, by the ID of the text."""
        self._judged: JudgedText | None = None  # the held text of the question
        self._decisions = 0  # number of decisions when the question was shown

    def on_mount(self) -> None:
        if not self.is_composed:
            return
        super().on_mount()
        self.query_one("#review-subject", TextPane).focus()

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Update the queue. The current question stays until it is answered or resolved."""
        # The queue may follow the decisions in a later state, so all since the question was shown count.
        made = view.snapshot.decisions[self._decisions :]
        if view.snapshot.complete and self.services.engine.has_searched_once:
            self.questions.fix()
        resolved = self.questions.follow(self.agenda(view))
        item = self.questions.settle()
        if resolved is not None:
            self._report_skipped(resolved, made, view)
        if item is None:
            self._show_nothing()
        elif self._may_stop and self.session.plan is not None:
            self._show_stop(self.session.plan)
        else:
            self._show(item, view)

    @property
    def _may_stop(self) -> bool:
        return self.session.is_over(self.questions.items, self.services.now())

    def _report_skipped(self, item: ReviewItem, made: Sequence[Decision], view: ProjectState) -> None:
        """Report a question resolved elsewhere, and ignore keys already typed for it."""
        by = next((one for one in reversed(made) if present.is_about(one, item) and one.by != self.me), None)
        if not view.snapshot.complete or (by is None and any(one.by == self.me for one in made)):
            return
        self.services.jump_guard.arm()
        self.services.say(present.skipped_text(item, by, view))

    def _show(self, item: ReviewItem, view: ProjectState) -> None:
        another = self._shown is None or not same_question(self._shown, item)
        self._shown = item
        self._offered = self.answers_to(item, view)
        if another:
            self._cursor, self._is_armed = 0, False
            self._decisions = len(view.snapshot.decisions)
            self.session.start(self.services.now())
        self._hold()
        desk = self.query_one(".desk")
        desk.set_class(item.kind == kinds.DUPLICATE, "-even")
        desk.set_class(not any(answer.matters for answer in self._offered), "-brief")
        self._ask_judge(item, view)
        self._show_reason(item)
        self.show_sides(item, view, top=another)
        self._show_outcome(top=another)
        self._work_out(item, view)

    def _show_reason(self, item: ReviewItem) -> None:
        advice = self._advice.get(self._judged.id, "") if self._judged is not None else ""
        self.query_one("#review-reason", Static).update(present.reason(item, advice))

    def _ask_judge(self, item: ReviewItem, view: ProjectState) -> None:
        """Ask the user's judge in a thread about a held text and those of the next questions, once about each."""
        self._judged = held_text_of(item, view) if item.risk and self._judge.command else None
        if self._judged is None or self._judged.id in self._advice or self.is_computing("judge"):
            return
        held = (held_text_of(one, view) for one in self.questions.items if one.risk)
        new = (text for text in held if text is not None and text.id not in self._advice)
        texts = (self._judged, *islice((text for text in new if text != self._judged), MAX_TEXTS - 1))
        self._advice |= {text.id: ASKED for text in texts}
        show, fail = partial(self._show_advice, texts), partial(self._show_failure, texts)
        self.run_in_thread("judge", partial(self._judge.ask, texts), show, fail=fail)

    def _show_advice(self, texts: Sequence[JudgedText], given: Mapping[str, Advice]) -> None:
        self._advice |= {text.id: given[text.id].text if text.id in given else NO_ADVICE for text in texts}
        self._go_on_judging()

    def _show_failure(self, texts: Sequence[JudgedText], error: Exception) -> None:
        if not isinstance(error, RalphdeckError):
            raise error
        self._advice |= {text.id: str(error) for text in texts}
        self._go_on_judging()

    def _go_on_judging(self) -> None:
        """Show the advice on the question, and ask about its text if the judge was busy when it came up."""
        if self._shown is not None:
            self._ask_judge(self._shown, self.view)
            self._show_reason(self._shown)

    @cached_property
    def _judge(self) -> Judge:
        return Judge()

    def on_unmount(self) -> None:
        if "_judge" in self.__dict__:
            self._judge.stop()

    def _hold(self) -> None:
        """Show the members of the team which question is open here."""
        item = self._shown if self.app.screen_stack and self in self.app.screen_stack else None
        self.services.hold_question(item.question_key if item is not None else "")

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._hold()

    def on_screen_suspend(self) -> None:
        self._hold()

    def tick(self) -> None:
        """Redraw for how long another member has the question open."""
        if self._shown is not None and self.services.lease_on(self._shown.question_key) is not None:
            self._show_head(self._shown)

    def refresh_top(self) -> None:
        super().refresh_top()
        if self.is_mounted and self._shown is not None:
            self._show_head(self._shown)

    def _show_head(self, item: ReviewItem) -> None:
        total = f"{self.questions.total:,}"
        if self.services.is_counting:
            total = f"{max(self.questions.total, self.view.pending_count):,}+"
        now, offer, key = self.services.now(), self.offer(self.view), self.services.shown_key("minutes")
        lease = self.services.lease_on(item.question_key)
        mark = lease_text(lease, now) if lease is not None else ""
        head = partial(present.head, item, self.questions.place, total, self.questions.fresh, mark)
        pace = [Item(pace_text(self.session))] * bool(self.session.decided)
        readonly = [Item(Content.styled("read-only", "$warning bold"))] * self.services.project.is_readonly
        left, right = list[Item](), list[Item]()
        for short in (False, True):
            budget = Item(budget_text(self.session, offer, self.questions.items, now, key, short=short), "minutes")
            left = [Item(head()), *readonly, *([budget, *pace] if short else [*pace, budget])]
            right = [Item(present.impact_bar(item, self.glyphs, short=short))]
            if ItemLine.cells(left + right) <= self.size.width:
                break
        if self.size.width >= NAMES_IMPACT:
            room, least = 0, head(id_cells=SHORTEST_ID).cell_length
            for others in (left[1:], left[1 : 2 + len(readonly)], []):
                room = self.size.width - ItemLine.cells([*others, *right]) - len(ItemLine.SEPARATOR)
                if least <= room:
                    break
            if (excess := head().cell_length - room) > 0:
                fitted = head(id_cells=max(min(len(item.subject), present.ID_CELLS) - excess, SHORTEST_ID))
                left[0] = Item(fitted.truncate(room, ellipsis=True))
        self.query_one(".question", ItemLine).show(left, right)

    @on(ItemLine.Clicked, ".question")
    def _head_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        self.action_minutes()

    def _show_stop(self, planned: Plan) -> None:
        """Show that the plan is done or the time is up, until the user continues."""
        head, *lines = stop_lines(self.questions.items, planned, self.services.shown_key("next_item"))
        self._show_text([Item(head), Item(pace_text(self.session))], lines)

    def _show_nothing(self) -> None:
        hint = Content.styled("Press 3 to browse patterns, 6 to preview the context of a task.", "$quiet")
        head = Content.styled(f"{self._nothing}.", "bold")
        text = "Questions appear when all files are read." if self.view.snapshot.is_partial else present.EMPTY
        connected = "" if self.view.snapshot.loops else describe_connected(self.services.engine.connected_agents)
        lines = [Content(text), *([Content(f"{connected}.")] if connected else []), Content(""), hint]
        self._show_text([Item(head)], lines)

    @property
    def _nothing(self) -> str:
        """Why there is no question."""
        return "Still opening" if self.view.snapshot.is_partial else "No open questions"

    def _show_text(self, head: Sequence[Item], text: Sequence[Content]) -> None:
        self._shown, self._offered = None, ()
        self._hold()
        self.query_one(".question", ItemLine).show(head)
        for name in ("reason", "left", "right"):
            self.query_one(f"#review-{name}", Static).update(Content(""))
        self.text_of("subject").show(text)
        self.text_of("proposal").show([])
        self._show_outcome(top=True)

    def _show_outcome(self, *, top: bool) -> None:
        """Show the answers, and the full forecast of the highlighted answer."""
        item, offered = self._shown, self._listed
        self._cursor = min(self._cursor, max(len(offered) - 1, 0))
        rows, heading, changes = list[Content](), Content(""), list[Content]()
        if item is not None and offered:
            outlooks = [self._forecasts.of(item, answer.action) for answer in offered]
            keys = [self.services.shown_key(answer.action) for answer in offered]
            width = (self.query_one(AnswerList).size.width or self.size.width) - 2
            rows = answer_rows(offered, outlooks, keys, item.subject, self.glyphs, width)
            answer, outlook = offered[self._cursor], outlooks[self._cursor]
            heading = what_heading(answer, keys[self._cursor], self.glyphs)
            changes = what_changes(answer, outlook, self.view, self.glyphs)
        self.query_one("#review-what", Static).update(heading)
        self.text_of("consequence").show(changes, top=top)
        self.query_one(AnswerList).show(rows, self._cursor)
        self.refresh_frame()

    @property
    def _listed(self) -> list[Answer]:
        """The answers that get a line. Disabled answers are listed only on a tall screen."""
        roomy = self.size.height >= ROOMY
        return [answer for answer in self._offered if roomy or not answer.why_not]

    def _work_out(self, item: ReviewItem, view: ProjectState) -> None:
        """Compute missing forecasts for the current question, then for the next one, if the files are checked."""
        if view.snapshot.as_of is not None:
            return
        questions = [one for one in (item, self.questions.next) if one is not None]
        self._forecasts.keep(questions)
        jobs: list[tuple[ReviewItem, Answer]] = []
        for question in questions:
            jobs += self._forecasts.missing(question, self.answers_to(question, view), view.snapshot.number)
        if jobs:
            self.run_worker(self._forecast(jobs, view), group="forecast", exclusive=True)

    async def _forecast(self, jobs: Sequence[tuple[ReviewItem, Answer]], view: ProjectState) -> None:
        worker, forecaster = get_current_worker(), self._forecaster
        for item, answer in jobs:
            compute = partial(compute_outlook, forecaster, view, item, answer, lambda: worker.is_cancelled)
            outlook = await asyncio.to_thread(compute)
            if outlook is not None:
                self._forecasts.store(item, answer.action, outlook)
                if self._shown is not None and same_question(item, self._shown):
                    self._show_outcome(top=False)

    @cached_property
    def _forecaster(self) -> Forecaster:
        return Forecaster(self.services.project)

    def embedding(self, done: int, total: int) -> None:
        """When embeddings are complete, recompute the forecasts made without them."""
        if done < total:
            return
        self._forecasts.mark_unembedded()
        item = self._shown
        if self.is_composed and item is not None and self._offered:
            self._work_out(item, self.view)

    def forget(self, item: ReviewItem, action: str) -> None:
        self._forecasts.forget(item, action)

    @on(AnswerList.Chosen)
    async def _clicked_answer(self, message: AnswerList.Chosen) -> None:
        if self._is_armed and message.row == self._cursor:
            await self.run_id("give")
        else:
            self._choose(message.row)
            self._is_armed = True

    def _choose(self, row: int) -> None:
        if self._listed:
            self._cursor, self._is_armed = row % len(self._listed), False
            self._show_outcome(top=True)

    def _step_answer(self, by: int) -> None:
        self._choose(self._cursor + by)

    action_next_answer = partialmethod(_step_answer, 1)
    action_previous_answer = partialmethod(_step_answer, -1)

    @property
    def _highlighted(self) -> str:
        """The action of the highlighted answer, or "" if there is none."""
        return self._listed[self._cursor].action if self._cursor < len(self._listed) else ""

    async def action_give(self) -> None:
        await self.run_id(self._highlighted)

    def label_for(self, action: str) -> str | None:
        if action == "give" and self._highlighted:
            label = self._listed[self._cursor].label
            return label if len(label) <= MAX_KEY_LABEL or self.size.width >= NAMES_IMPACT else "answer"
        return None

    def own_keys(self) -> frozenset[str]:
        return ANSWERS

    def _key_items(self) -> tuple[list[Item], list[Item]]:
        """Return the key items, most useful ones first: a narrow screen drops the last ones."""
        offered, right = super()._key_items()
        first = ("give", "next_item", "open_item")
        return sorted(offered, key=lambda item: first.index(item.value) if item.value in first else len(first)), right

    def writes(self, action: str) -> bool:
        given = self._highlighted if action == "give" else action
        is_reading = any(answer.action == given and answer.opens for answer in self._offered)
        return (action in DECIDES or super().writes(action)) and not is_reading

    def why_not(self, action: str) -> str | None:
        if action in _ALWAYS:
            return None
        if action == "mark_many":
            key = self.services.shown_key("go_patterns")
            return f"Select several patterns in Patterns, {key}"
        if action in {"next_item", "previous_item"}:
            return None if self._may_stop or len(self.questions.items) > 1 else "This is the only question"
        item = self.item
        if item is None:
            return self._nothing
        if self.services.project.is_readonly and self.writes(action):
            return "Read-only: restart without --readonly to decide"
        if self._may_stop:
            return f"You can stop here; {self.services.shown_key('next_item')} continues"
        if action == "give":
            return self._why_not_answer(self._highlighted, item) if self._highlighted else "No answer is available"
        if action in ANSWERS:
            return self._why_not_answer(action, item)
        if action in {"rewrite_in_editor", "alternative"} and item.inversion is None:
            return "Only a proposed inversion can be edited"
        if action == "open_item" and item.group is not None:
            return f"This question is about {present.question_subject(item)}"
        if action in {"why", "in_context", "note"}:
            return None if item.is_about_pattern else f"This question is about {present.question_subject(item)}"
        if action == "to_loop":
            return None if evidence_loops(item, self.view) else "No loop of the evidence is known"
        if action == "edit_item_file":
            return None if item.is_about_pattern or item.session is not None else "The record has no file"
        return None

    def _why_not_answer(self, action: str, item: ReviewItem) -> str | None:
        for answer in self._offered:
            if answer.action == action:
                return answer.why_not or None
        keys = [self.services.shown_key(answer.action) for answer in self._offered if not answer.why_not]
        return f"{present.no_answer(action, item)}; available keys: {', '.join(keys)}"

    def action_mark_many(self) -> None:
        """Do nothing. The key only shows the reason from `why_not`."""

    def undone(self, decision: Decision) -> None:
        """Return to the question of an undone decision."""
        self.questions.return_to(question_of(decision))
        if decision.by == self.me:
            self.session.uncount()

    def _step(self, by: int) -> None:
        if self._may_stop:
            self.session.goes_on, by = True, min(by, 0)
        passed = self.questions.step(by)
        if passed.resolved:
            self.services.say(f"Skipped {plural(passed.resolved, 'question')}: already resolved")
        if passed.taken:
            key = self.services.shown_key("previous_item")
            self.services.say(f"Skipped {plural(passed.taken, 'question')} open at other members; {key} goes back")
        self.show_anew()

    action_next_item = partialmethod(_step, 1)
    action_previous_item = partialmethod(_step, -1)

    def go_to(self, key: str) -> None:
        """Go to the question with this key, or to the first about this pattern or loop ID."""
        in_row = (item for item in self.view.queue if key in (item.question_key, item.subject, item.other))
        if self.questions.go_to_question(key):
            self.session.goes_on = True
            self.show_anew()
        elif (item := next(in_row, None)) is not None:
            self.session.goes_on = True
            self._ask_next([item])
