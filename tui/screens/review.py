"""The Review screen: one card at a time, its evidence, yes, no or later; an end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial, partialmethod
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from textual import events, on
from textual.containers import Vertical
from textual.content import Content
from textual.worker import get_current_worker

from core.base.errors import BadInput, RalphdeckError
from core.base.settings import MAX_MINUTES
from core.base.text import plural, visible_line
from core.base.validation import check_amount
from core.decisions.commands import Note
from core.index.review_items import CONFLICT, DUPLICATE, ReviewItem, make_agenda
from core.project.forecast import Forecaster
from core.questions.answer import Answer, snooze_command
from core.questions.kinds import answers, question_of
from core.questions.new_text import MAX_JUDGED, Advice, Judge, JudgedText, held_text_of
from core.questions.pattern_state import WarningEdits
from core.questions.queue import Pace, measure_pace, plan, time_text
from core.show.card_evidence import evidence_attempt, evidence_loops, work_title
from core.show.cards import (
    NO,
    YES,
    card_title,
    is_about,
    no_answer,
    present_effect,
    question_record,
    question_subject,
    review_card,
    skipped_text,
    terminal_card,
)
from core.show.now import describe_empty
from core.show.pages.markdown import to_markdown
from core.show.work import attempt_key
from tui.kit.actions import ACTIONS, BY_ID
from tui.kit.bars import Item, ItemLine
from tui.kit.drawing import AnswerList, TextPane
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import AskLine, AskText, Choose, overtaken
from tui.screens.document import document_lines
from tui.screens.frame import lease_text
from tui.screens.question_order import (
    GivenAnswer,
    Key,
    QuestionOrder,
    ReviewSession,
    key_of,
    same_question,
)
from tui.screens.review_preview import Forecasts, answer_rows, compute_outlook, preview_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.index.project_state import ProjectState
    from core.learning.inversion import Inversion
    from core.records.decisions import Decision
    from core.records.snapshot import Delta
    from core.show.pages.document import Document
    from core.sources.adapters.agent_files import AgentFile

ANSWERS: Final = frozenset(
    {YES, NO, "rewrite", "promote", "deprecate", "reset", "restore_text", "quarantine", "archive"}
    | {"snooze", "snooze_evidence"}
)
"""The actions that answer a question."""
DECIDES: Final = ANSWERS | {"give", "snooze_until", "rewrite_in_editor", "alternative", "note"}
"""The actions that decide, or prepare a decision."""
SHOWN_KEYS: Final = (YES, NO, "next_item", "rewrite", "more", "open_item", "to_loop")
"""The actions in the key line, in order."""
WORDS: Final = {YES: "yes", NO: "no"}
EMPTY: Final = (
    "Questions appear here for new lessons from the work of a connected agent, agents that ask for help, lessons that "
    "fail, decisions that later results contradict, texts that no person has read, and notes of agents."
)
SNOOZES: Final = {"for a day": 1, "for a week": 7, "for a month": 30, "for three months": 90}  # days of a snooze
LEAST_QUESTION: Final = 20  # cells of a question that are shown on any screen
PREVIEW_SHARE: Final = 0.25  # largest part of the height that the preview of an answer takes
LEAST_PREVIEW: Final = 4  # lines of the preview that always fit
MAX_ADVICE: Final = 320  # characters of the advice of a judge
ASKED: Final = "asked"
NO_ADVICE: Final = "no advice"
_ALWAYS: Final = frozenset(
    {"undo", "redo", "what_if", "minutes", "back"}
    | {action.id for action in ACTIONS if action.group in {"Go", "Program", "Move"}}
) - {"next_item", "previous_item"}
"""Actions that need no question."""


class ReviewScreen(BaseScreen):
    """Shows a card, its answers, and the prompts that the highlighted answer changes."""

    place = "review"

    def __init__(self) -> None:
        super().__init__()
        self.questions = QuestionOrder(self._is_taken)
        self.session = ReviewSession()
        self._drafts: dict[Key, WarningEdits] = {}
        self._opened: set[Key] = set()
        """Questions that the user asked for, and that are in a row otherwise."""
        self._forecasts = Forecasts()
        self._cards: dict[tuple[Key, str], tuple[int, Document]] = {}
        """Cards of the current and the next question, with the number of the snapshot that they are of."""
        self._offered: tuple[Answer, ...] = ()
        self._cursor = 0
        self._shown: ReviewItem | None = None
        self._is_armed = False  # whether the highlighted answer was clicked once: the next click gives it
        self._advice: dict[str, str] = {}
        """What to show of the judge, by the ID of the text."""
        self._judged: JudgedText | None = None  # the held text of the question
        self._decisions = 0  # number of decisions when the question was shown

    def compose_content(self) -> ComposeResult:
        yield ItemLine(classes="question")
        yield TextPane(id="review-card")
        with Vertical(classes="outcome"):
            yield AnswerList()
            yield TextPane(id="review-preview")

    def on_mount(self) -> None:
        if self.is_composed:
            super().on_mount()
            self.card.focus()

    @property
    def card(self) -> TextPane:
        return self.query_one("#review-card", TextPane)

    @property
    def preview(self) -> TextPane:
        return self.query_one("#review-preview", TextPane)

    def on_resize(self, event: events.Resize) -> None:
        self.refresh_frame()

    @on(TextPane.Widened)
    def _lay_out(self) -> None:
        """Draw the card for its current width."""
        if self.is_composed:
            self.show_anew()

    # The current question

    def agenda(self, view: ProjectState) -> tuple[ReviewItem, ...]:
        """Return what to ask, also questions that were opened or whose answer was undone."""
        asked, returning = self._opened | self.questions.asked, self.questions.returning
        if returning:
            asked |= {key_of(item) for item in view.queue if returning in (item.question_key, item.subject)}
        return make_agenda(view.queue, view.snapshot.curation, view.now, asked)

    @property
    def item(self) -> ReviewItem | None:
        return self.questions.item if not self._is_time_up else None

    @property
    def _is_time_up(self) -> bool:
        return self.session.is_over(self.services.now())

    @property
    def me(self) -> str:
        return self.services.project.by

    def _is_taken(self, item: ReviewItem) -> bool:
        """Whether another member of the team has a question open."""
        return self.services.lease_on(item.question_key) is not None

    def show_anew(self) -> None:
        self.refresh_view(self.view, None)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Update the queue. The current question stays until it is answered or resolved."""
        # The queue may follow the decisions in a later state, so all since the question was shown count.
        made = view.snapshot.decisions[self._decisions :]
        resolved = self.questions.follow(self.agenda(view))
        if view.snapshot.complete and self.services.engine.has_searched_once and not self.services.is_counting:
            self.questions.fix()  # with all that the first searches found
        item = self.questions.settle() if not self._is_time_up else None
        if resolved is not None:
            self._report_skipped(resolved, made, view)
        if item is None:
            self._show_end()
        else:
            self._show(item, view)

    def _report_skipped(self, item: ReviewItem, made: Sequence[Decision], view: ProjectState) -> None:
        """Report a question resolved elsewhere, and ignore keys already typed for it."""
        by = next((one for one in reversed(made) if is_about(one, item) and one.by != self.me), None)
        if not view.snapshot.complete or (by is None and any(one.by == self.me for one in made)):
            return
        self.services.jump_guard.arm()
        self.services.say(skipped_text(item, by))

    def _show(self, item: ReviewItem, view: ProjectState) -> None:
        another = self._shown is None or not same_question(self._shown, item)
        self._shown = item
        self._offered = self.answers_to(item, view)
        if another:
            self._cursor, self._is_armed = 0, False
            self._decisions = len(view.snapshot.decisions)
        self._hold()
        self._ask_judge(item, view)
        self._show_card(item, view, top=another)
        self._show_outcome(top=another)
        self._work_out(item, view)

    def _show_card(self, item: ReviewItem, view: ProjectState, *, top: bool) -> None:
        document = self._find_card(item, view)
        advice = self._advice.get(self._judged.id, "") if self._judged is not None else ""
        lines = [Content.styled(f"judge: {visible_line(advice, MAX_ADVICE)}", "$accent")] if advice else []
        width = self.card.scrollable_content_region.width
        lines += document_lines(document.blocks, view.now, self.glyphs, *([width] if width else []))
        self.card.show(lines, top=top)

    def _find_card(self, item: ReviewItem, view: ProjectState) -> Document:
        """Return the card of a question; one with a user's draft is always made anew."""
        draft, number, key = self.draft(item), view.snapshot.number, (key_of(item), item.subject)
        known = self._cards.get(key)
        if draft is None and known is not None and known[0] == number:
            return known[1]
        is_edited = bool(draft is not None and draft.text)
        files = self._agent_files(item)
        card = review_card(view, item, proposal=self.proposal(item), is_edited=is_edited, agent_files=files)
        if draft is None:
            self._cards[key] = number, card
        return card

    def _agent_files(self, item: ReviewItem) -> Sequence[AgentFile]:
        has_files = item.lesson is not None or bool(item.pairs)
        return self.services.project.adapters.all_agent_files() if has_files else ()

    def _show_end(self) -> None:
        """Show what was done, and what is left, until the user reads on."""
        self._shown, self._offered = None, ()
        self._hold()
        key, left, later = self.services.shown_key("next_item"), self.questions.pending, self.questions.later
        summary, rest, is_partial = self.session.summary, self.questions.rest, self.view.snapshot.is_partial
        lines = [Content.styled(summary, "bold")] if summary else []
        if is_partial:
            lines.append(Content("Questions appear when all files are read."))
        elif not (summary or rest):
            lines.append(Content(EMPTY))
            if not self.view.snapshot.loops:
                lines.append(Content(f"{describe_empty(self.services.engine.connected_agents)}."))
        if rest:
            lines += [Content(""), Content.assemble((key, "$accent bold"), f" reads on: {rest}")]
        head = (
            "Still opening"
            if is_partial
            else "Time is up"
            if left
            else "Done"
            if summary or later
            else "Nothing to review"
        )
        self.query_one(".question", ItemLine).show([Item(Content.styled(f"{head}.", "bold"))])
        self.card.show(lines)
        self._show_outcome(top=True)

    def _show_head(self, item: ReviewItem) -> None:
        questions, view = self.questions, self.view
        is_open = self.services.is_counting
        place = f"{questions.place:,} of {questions.total:,}" if not is_open else f"{questions.place:,} of …"
        lease = self.services.lease_on(item.question_key)
        left = [Item(Content.styled(visible_line(item.asks or item.question, 200), "bold"))]
        if lease is not None:
            left.append(Item(Content.styled(lease_text(lease, self.services.now()), "$warning bold")))
        if self.services.project.is_readonly:
            left.append(Item(Content.styled("read-only", "$warning bold")))
        pace = measure_pace(view.snapshot.decisions, self.me)
        fresh = f"  +{questions.fresh:,} new" if questions.fresh and not is_open else ""
        right = [Item(Content.assemble((place, "$quiet"), (fresh, "$accent")), "minutes")]
        timed = [Item(right[0].content.append(Content.styled(f" · {self._time_left(pace)}", "$quiet")), "minutes")]
        if ItemLine.cells([*left, *timed]) <= self.size.width:
            right = timed
        room = self.size.width - ItemLine.cells([*left[1:], *right]) - len(ItemLine.SEPARATOR)
        left[0] = Item(left[0].content.truncate(max(room, LEAST_QUESTION), ellipsis=True))
        self.query_one(".question", ItemLine).show(left, right)

    def _time_left(self, pace: Pace) -> str:
        if self.session.ends is None:
            return time_text(self.questions.pending, pace)
        return f"{max((self.session.ends - self.services.now()).total_seconds(), 0) / 60:.0f} min left"

    @on(ItemLine.Clicked, ".question")
    def _head_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        self.action_minutes()

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
        """Redraw the time left, and how long another member has had the question open."""
        if self._shown is None:
            return
        if self._is_time_up:
            self.show_anew()
        elif self.session.ends is not None or self.services.lease_on(self._shown.question_key) is not None:
            self._show_head(self._shown)

    def refresh_top(self) -> None:
        super().refresh_top()
        if self.is_mounted and self._shown is not None:
            self._show_head(self._shown)

    # The advice of the user's judge

    def _ask_judge(self, item: ReviewItem, view: ProjectState) -> None:
        """Ask the user's judge in a thread about this and the next held texts, once each."""
        self._judged = held_text_of(item, view) if item.risk and self._judge.command else None
        if self._judged is None or self._judged.id in self._advice or self.is_computing("judge"):
            return
        held = (held_text_of(one, view) for one in self.questions.items if one.risk)
        new = (text for text in held if text is not None and text.id not in self._advice)
        texts = (self._judged, *islice((text for text in new if text != self._judged), MAX_JUDGED - 1))
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
        """Show the advice, and ask about the text if the judge was busy when it came up."""
        if self._shown is not None:
            self._ask_judge(self._shown, self.view)
            self._show_card(self._shown, self.view, top=False)

    @cached_property
    def _judge(self) -> Judge:
        return Judge()

    def on_unmount(self) -> None:
        if "_judge" in self.__dict__:
            self._judge.stop()

    # What the answers change

    @property
    def _listed(self) -> list[Answer]:
        """The answers that get a line: yes and no."""
        return [answer for answer in self._offered if answer.action in WORDS]

    def _show_outcome(self, *, top: bool) -> None:
        """Show what yes and no do, and the prompts that the highlighted one changes."""
        item, listed = self._shown, self._listed
        self._cursor = min(self._cursor, max(len(listed) - 1, 0))
        rows, changes = list[Content](), list[Content]()
        if item is not None and listed:
            outlooks = [self._forecasts.of(item, answer.action) for answer in listed]
            width = (self.query_one(AnswerList).size.width or self.size.width) - 2
            named = [(self.services.shown_key(one.action), WORDS[one.action], one) for one in listed]
            rows = answer_rows(named, outlooks, width)
            answer, outlook = listed[self._cursor], outlooks[self._cursor]
            changes = preview_lines(WORDS[answer.action], answer, outlook, item.subject, self.glyphs)
            if now := present_effect(self.view, item):
                changes.insert(0, Content.styled(now, "$quiet"))
        self.query_one(AnswerList).show(rows, self._cursor)
        self.query_one(".outcome").display = bool(rows)
        self.preview.display = bool(changes)
        self.preview.show(changes, top=top)
        self._fit_preview()
        self.refresh_frame()

    def _fit_preview(self) -> None:
        """Give the preview the lines that it needs, and the card the rest."""
        most = max(round(self.size.height * PREVIEW_SHARE), LEAST_PREVIEW)
        width = self.preview.scrollable_content_region.width or self.size.width - 3
        self.preview.styles.height = max(min(self.preview.count_lines(width), most), 1)

    def _work_out(self, item: ReviewItem, view: ProjectState) -> None:
        """Compute missing forecasts of yes and no for this question, then for the next."""
        if view.snapshot.as_of is not None:
            return
        questions = [one for one in (item, self.questions.next) if one is not None]
        self._forecasts.keep(questions)
        kept = {(key_of(question), question.subject) for question in questions}
        self._cards = {key: card for key, card in self._cards.items() if key in kept}
        jobs: list[tuple[ReviewItem, Answer]] = []
        for question in questions:
            offered = [answer for answer in self.answers_to(question, view) if answer.action in WORDS]
            jobs += self._forecasts.missing(question, offered, view.snapshot.number)
        if jobs or questions[1:]:
            self.run_worker(self._forecast(jobs, questions[1:], view), group="forecast", exclusive=True)

    async def _forecast(
        self, jobs: Sequence[tuple[ReviewItem, Answer]], following: Sequence[ReviewItem], view: ProjectState
    ) -> None:
        """Compute forecasts in a thread, after the card of the `following` question."""
        worker, forecaster = get_current_worker(), self._forecaster
        for item in following:
            with suppress(RalphdeckError):  # its pattern may be gone
                await asyncio.to_thread(self._find_card, item, view)
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

    # Keys and their conditions

    def label_for(self, action: str) -> str | None:
        labels = {"next_item": "later" if self._shown is not None else "read on", "rewrite": "edit"}
        if action == "rewrite" and self._shown is not None and self._shown.kind == DUPLICATE:
            return "swap"
        if action == "rewrite" and self._shown is not None and self._shown.kind == CONFLICT:
            return "keep other"
        return labels.get(action)

    def _key_items(self) -> tuple[list[Item], list[Item]]:
        """Return the keys of the card: yes, no, later and the menu of all others."""
        right = [item for item in super()._key_items()[1] if item.value != "more"]
        offered = [action for action in SHOWN_KEYS if self.reason_against(action) is None]
        return [self._key_item(id, self.label_for(id) or BY_ID[id].label) for id in offered], right

    def writes(self, action: str) -> bool:
        given = self._highlighted if action == "give" else action
        is_reading = any(answer.action == given and answer.opens for answer in self._offered)
        return (action in DECIDES or super().writes(action)) and not is_reading

    def why_not(self, action: str) -> str | None:
        if action in _ALWAYS:
            return None
        if action == "mark_many":
            return f"Select several lessons in Patterns, {self.services.shown_key('go_patterns')}"
        item = self.item
        if action == "next_item" and item is None:
            rests = self.questions.later or self.questions.others or self.questions.pending
            return None if rests else self._nothing
        if action == "previous_item":
            return None if len(self.questions.items) > (item is not None) else "This is the only question"
        if item is None:
            return self._nothing
        if self.services.project.is_readonly and self.writes(action):
            return "Read-only: restart without --readonly to decide"
        if action == "give":
            return self._why_not_answer(self._highlighted, item) if self._highlighted else "No answer is available"
        if action in ANSWERS:
            return self._why_not_answer(action, item)
        if action in {"rewrite_in_editor", "alternative"} and item.inversion is None:
            return "Only a proposed warning can be edited"
        if action == "open_item" and item.group is not None:
            return f"This question is about {question_subject(item)}"
        if action in {"why", "in_context", "note"}:
            return None if item.is_about_pattern else f"This question is about {question_subject(item)}"
        if action == "to_loop":
            has_source = evidence_loops(self.view, item) or evidence_attempt(self.view, item)
            return None if has_source else "No session of the evidence is known"
        if action == "edit_item_file":
            return None if item.is_about_pattern or item.session is not None else "The record has no file"
        return None

    @property
    def _nothing(self) -> str:
        """Why there is no question."""
        return "Still opening" if self.view.snapshot.is_partial else "No open questions"

    def _why_not_answer(self, action: str, item: ReviewItem) -> str | None:
        for answer in self._offered:
            if answer.action == action:
                return answer.why_not or None
        return f"{no_answer(action, item)}; {self.services.shown_key('more')} lists all answers"

    def action_mark_many(self) -> None:
        """Do nothing. The key only shows the reason from `why_not`."""

    def action_more(self) -> None:
        """List the answers other than yes and no, and what else the question allows."""
        others = [answer for answer in self._offered if answer.action not in WORDS and not answer.why_not]
        choices = [(answer.action, self._answer_choice(answer)) for answer in others]
        extras = ("snooze_until", "rewrite_in_editor", "alternative", "note", "why", "in_context", "edit_item_file")
        allowed = [id for id in (*extras, "minutes") if self.reason_against(id) is None]
        choices += [(id, self._choice(BY_ID[id])) for id in allowed]
        about = visible_line(card_title(self.view, self._shown), 160) if self._shown is not None else ""
        self.ask_user(Choose(Content("More answers"), Content(about), choices, verb="choose"), self._run_chosen)

    def _answer_choice(self, answer: Answer) -> Content:
        action = BY_ID[answer.action]
        return self._choice(replace(action, label=answer.label, tooltip=visible_line(answer.effect, 160)))

    # Answers

    def answers_to(self, item: ReviewItem, view: ProjectState) -> tuple[Answer, ...]:
        """Return answers to a question, with edited text; none if the record is gone."""
        try:
            offered = answers(item, view)
        except RalphdeckError:
            return ()
        draft = self.draft(item)
        if draft is None:
            return offered
        return tuple(draft.edit_answer(answer, item.subject) if answer.action == YES else answer for answer in offered)

    async def action_give(self) -> None:
        await self.run_id(self._highlighted)

    def _give(self, action: str) -> None:
        item = self.item
        offered = self.answers_to(item, self.view) if item is not None else ()
        answer = next((one for one in offered if one.action == action), None)
        if item is None or answer is None:
            return
        if answer.opens:
            self._ask_next(answer.opens)
            return
        if not answer.needs_reason:
            self._decide(item, answer, "")
            return
        seen = self.services.view
        title = Content(f"{answer.label.capitalize()} “{visible_line(card_title(self.view, item), 60)}”: why?")
        detail = Content(f"Effect: {answer.effect}. Can be undone.")
        other = overtaken(seen, item.question_key, item.subject, item.other or item.subject)
        dialog = AskLine(title, detail, verb=answer.label, overtaken=other)
        self.ask_user(dialog, lambda reason: self._decide(item, answer, reason, seen))

    action_restore_text = partialmethod(_give, "restore_text")
    action_accept = partialmethod(_give, YES)
    action_reject = partialmethod(_give, NO)
    action_promote = partialmethod(_give, "promote")
    action_deprecate = partialmethod(_give, "deprecate")
    action_reset = partialmethod(_give, "reset")
    action_quarantine = partialmethod(_give, "quarantine")
    action_archive = partialmethod(_give, "archive")
    action_snooze = partialmethod(_give, "snooze")
    action_snooze_evidence = partialmethod(_give, "snooze_evidence")

    def _decide(self, item: ReviewItem, answer: Answer, reason: str, seen: ProjectState | None = None) -> None:
        """Submit an answer and go on; `seen` is the state the user saw before a dialog."""
        command = msgspec.structs.replace(answer.with_text(reason), question=item.question_key)
        outlook = self._forecasts.of(item, answer.action)
        found = outlook.forecast if outlook is not None else None
        changed = frozenset(one.id for one in found.changed) if found and answer.matters else frozenset[str]()
        self.services.decide(command, seen)
        if (front := self.item) is not None and same_question(front, item):
            self.questions.give()
        self.session.answers[item.question_key] = GivenAnswer(answer.result, changed, answer.lessons)
        self.show_anew()

    def answered(self, *, decided: bool) -> None:
        """Handle the result of an answer: if it was refused, its question returns."""
        key = self.questions.land(decided=decided)
        if key is not None and not decided:
            self.session.answers.pop(key[1], None)
            self.show_anew()

    def undone(self, decision: Decision) -> None:
        """Return to the question of an undone decision."""
        self.questions.return_to(question_of(decision))
        if decision.by == self.me:
            self.session.answers.pop(question_of(decision), None)

    def _ask_next(self, items: Sequence[ReviewItem]) -> None:
        """Ask questions of a row one by one, before the current question."""
        self._opened |= {key_of(item) for item in items}
        self.questions.ask_next(items)
        self.show_anew()

    def _step(self, by: int) -> None:
        if self.item is None and by > 0:
            self.session.ends = None
            self.questions.read_on()
            self.show_anew()
            return
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
        """Go to the question with this key, or the first about this pattern or loop ID."""
        in_row = (item for item in self.view.queue if key in (item.question_key, item.subject, item.other))
        if self.questions.go_to_question(key):
            self.session.ends = None
            self.show_anew()
        elif (item := next(in_row, None)) is not None:
            self.session.ends = None
            self._ask_next([item])

    def action_minutes(self) -> None:
        def answered(text: str) -> None:
            try:
                minutes = float(text or "0")
                check_amount(minutes, "minutes", MAX_MINUTES)
            except (ValueError, BadInput):
                self.services.say(f"{visible_line(text, 40)} is not a number of minutes", severity="warning")
                return
            self.session.ends = None
            if minutes:
                pace = measure_pace(self.view.snapshot.decisions, self.me)
                self.questions.plan(plan(self.questions.items, minutes, self.view.settings, pace).items)
                self.session.ends = self.services.now() + timedelta(minutes=minutes)
            self.show_anew()

        title = Content("How many minutes do you have?")
        detail = Content("The questions that matter most come first; 0 removes the limit.")
        value = f"{self.view.settings.review.minutes:g}"
        self.ask_user(AskLine(title, detail, verb="start", required=False, value=value), answered)

    # Edits of a proposed warning

    def draft(self, item: ReviewItem) -> WarningEdits | None:
        return self._drafts.get(key_of(item))

    def proposal(self, item: ReviewItem) -> Inversion | None:
        """Return the proposed anti-pattern with the user's edits, or None."""
        proposal, draft = item.inversion, self.draft(item)
        if proposal is None or draft is None:
            return proposal
        return draft.edit_proposal(proposal, self.view.snapshot.patterns)

    def _redraft(self, item: ReviewItem, draft: WarningEdits) -> None:
        self._drafts[key_of(item)] = draft
        self._forecasts.forget(item, YES)
        self.show_anew()

    def action_rewrite(self) -> None:
        """Edit the text or swap the pattern, undecided; or keep the other instruction."""
        item = self.item
        if item is None:
            return
        if item.kind == DUPLICATE:
            self.questions.swap()
            self.show_anew()
        elif item.kind == CONFLICT:
            self._give("rewrite")
        elif (proposal := self.proposal(item)) is not None:
            dialog = AskText(Content("Edit the warning"), proposal.text)
            self.ask_user(dialog, lambda text: self._worded(item, text))

    def action_rewrite_in_editor(self) -> None:
        item = self.item
        if item is not None and (proposal := self.proposal(item)) is not None:
            self._worded(item, self.services.edit_text(proposal.text))

    def _worded(self, item: ReviewItem, text: str | None) -> None:
        proposed = item.inversion
        if text and proposed is not None:
            before = self.draft(item) or WarningEdits()
            self._redraft(item, replace(before, text="" if text == proposed.text else text))

    def action_alternative(self) -> None:
        """Choose the next alternative pattern. After the last one, choose no alternative."""
        item = self.item
        if item is not None and (proposal := self.proposal(item)) is not None:
            ids = [*(pattern.id for pattern in self.view.board.alternatives(item.subject)), ""]
            at = ids.index(proposal.better_pattern_id) if proposal.better_pattern_id in ids else -1
            self._redraft(item, replace(self.draft(item) or WarningEdits(), better=ids[(at + 1) % len(ids)]))

    # Other decisions, and links

    def action_snooze_until(self) -> None:
        item, seen = self.item, self.view
        if item is None:
            return

        def chosen(key: str) -> None:
            command = snooze_command(item, until=self.view.now + timedelta(days=SNOOZES[key]))
            effect = "asked again later"
            snooze = Answer(action="snooze_until", label="snooze", effect=effect, command=command, matters=False)
            self._decide(item, snooze, "", seen)

        detail = Content("Only the question is hidden; nothing changes for agents. Can be undone.")
        choices = [(key, Content(key)) for key in SNOOZES]
        self.ask_user(Choose(Content("Snooze for how long?"), detail, choices, verb="snooze"), chosen)

    def action_why(self) -> None:
        if self.item is not None:
            self.services.open_record("patterns", self.item.subject, tab="Why")

    def action_in_context(self) -> None:
        if self.item is not None:
            self.services.preview_pattern(self.item.subject)

    def action_open_item(self) -> None:
        if self.item is not None:
            self.services.open_record(*question_record(self.item))

    def action_to_loop(self) -> None:
        """Open the attempt that a lesson was found in, or a loop of the evidence."""
        item = self.item
        if item is None:
            return
        if attempt := evidence_attempt(self.view, item):
            self.services.open_record("loops", attempt_key(attempt))
            return
        loops = evidence_loops(self.view, item)
        if len(loops) == 1:
            self.services.open_record("loops", loops[0])
            return
        choices = [(id, Content(self._loop_name(id))) for id in loops]
        detail = Content("Sessions in which it failed come first.")
        dialog = Choose(Content("Which session of the evidence?"), detail, choices, verb="open")
        self.ask_user(dialog, lambda key: self.services.open_record("loops", key))

    def _loop_name(self, loop_id: str) -> str:
        task = visible_line(work_title(self.view, loop_id), 60)
        return f"{task}   {visible_line(loop_id, 40)}" if task else visible_line(loop_id, 80)

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

        title = Content(f"Note on “{visible_line(card_title(self.view, item), 60)}”")
        detail = Content("Stored in the log and shown under History; answers no question and changes no state.")
        self.ask_user(AskLine(title, detail, verb="add note"), answered)

    def copy_text(self) -> str:
        """Return the record's ID, or the text of the focused preview."""
        if self.focused is self.preview:
            return self.preview.plain
        return self.item.subject if self.item is not None else ""

    def copy_markdown(self) -> str:
        """Return the card with what yes and no do."""
        item = self.item
        return to_markdown(terminal_card(self.view, item, self._agent_files(item))) if item is not None else ""
