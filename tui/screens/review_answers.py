"""Actions of Review that answer a question or follow its links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partialmethod
from typing import TYPE_CHECKING, Final

import msgspec
from textual.content import Content

from core.base.errors import BadInput, RalphdeckError
from core.base.text import visible_line
from core.base.validation import check_amount
from core.config.settings import MAX_MINUTES
from core.curation.commands import AcceptInversion, Note
from core.questions.answers import Answer, answers, snooze_command
from core.questions.session import Plan, measure_pace, plan
from core.state.review_items import DUPLICATE, ReviewItem, make_agenda
from tui.present.memory import session_key, task_key
from tui.present.review_session import ReviewSession
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import AskLine, AskText, Choose, overtaken
from tui.screens.question_order import Key, QuestionOrder, key_of, same_question
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.learning.inversion_rules import Inversion
    from core.state.project_state import ProjectState

ANSWERS: Final = frozenset(
    {"accept", "reject", "rewrite", "promote", "deprecate", "reset", "restore_text", "quarantine", "archive"}
    | {"snooze", "snooze_evidence"}
)
"""The actions that answer a question."""

SNOOZES: Final = {"for a day": 1, "for a week": 7, "for a month": 30, "for three months": 90}  # days of a snooze

DECIDES: Final = ANSWERS | {"give", "snooze_until", "rewrite_in_editor", "alternative", "note"}
"""The actions that decide, or prepare a decision."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Edits of a proposed anti-pattern before it is accepted."""

    text: str = ""  # "" for the proposed one
    better: str | None = None  # ID of the alternative pattern, "" for none; None for the proposed one


def evidence_loops(item: ReviewItem, view: ProjectState) -> list[str]:
    """Return the known loops of a question's evidence, contradicting ones first, then those a pattern comes from."""
    if item.group is not None:
        return []
    if not item.is_about_pattern:
        loop_ids = [item.subject, *item.sources, item.session.loop_id if item.session is not None else ""]
        loop_ids += [place.loop_id for place in item.lesson.places] if item.lesson is not None else []
    else:
        observations = sorted(view.board.observations(item.subject), key=lambda one: one.success is not False)
        pattern = view.snapshot.patterns.get(item.subject)
        loop_ids = [one.loop_id for one in observations]
        loop_ids += [source.loop_id for source in pattern.source_loops] if pattern is not None else []
    return [id for id in dict.fromkeys(map(view.board.loop_of_work, loop_ids)) if id]


class ReviewAnswers(BaseScreen):
    """Base of Review that submits answers, asks for reasons, and opens related records."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = QuestionOrder(self._is_taken)
        self.session = ReviewSession()
        self._drafts: dict[Key, Draft] = {}
        self._opened: set[Key] = set()
        """Questions that the user asked for, and that are in a row otherwise."""

    def agenda(self, view: ProjectState) -> tuple[ReviewItem, ...]:
        """Return what to ask: also the questions that the user opened, or whose answer was undone."""
        asked, returning = self._opened | self.questions.asked, self.questions.returning
        if returning:
            asked |= {key_of(item) for item in view.queue if returning in (item.question_key, item.subject)}
        return make_agenda(view.queue, view.snapshot.curation, view.now, asked)

    def _ask_next(self, items: Sequence[ReviewItem]) -> None:
        """Ask questions of a row one by one, before the current question."""
        self._opened |= {key_of(item) for item in items}
        self.questions.ask_next(items)
        self.session.extend(items)
        self.show_anew()

    def _is_taken(self, item: ReviewItem) -> bool:
        """Whether another member of the team has a question open."""
        return self.services.lease_on(item.question_key) is not None

    @property
    def item(self) -> ReviewItem | None:
        return self.questions.item

    def answers_to(self, item: ReviewItem, view: ProjectState) -> tuple[Answer, ...]:
        """Return the answers to a question, with the edited text; none if the record is gone."""
        try:
            offered = answers(item, view)
        except RalphdeckError:
            return ()
        draft = self.draft(item)
        if draft is None:
            return offered
        return tuple(_with_draft(answer, item, draft) if answer.action == "accept" else answer for answer in offered)

    def answered(self, *, decided: bool) -> None:
        """Handle the result of an answer: if it was refused, its question returns."""
        if self.questions.land(decided=decided) and not decided:
            self.session.uncount()
            self.show_anew()

    def draft(self, item: ReviewItem) -> Draft | None:
        return self._drafts.get(key_of(item))

    def proposal(self, item: ReviewItem) -> Inversion | None:
        """Return the proposed anti-pattern with the user's edits, or None."""
        proposal, draft = item.inversion, self.draft(item)
        if proposal is None or draft is None:
            return proposal
        if draft.text:
            proposal = proposal.with_text(draft.text)
        if draft.better is not None:
            proposal = proposal.with_alternative(self.view.snapshot.patterns.get(draft.better))
        return proposal

    @property
    def me(self) -> str:
        return self.services.project.by

    def offer(self, view: ProjectState, minutes: float = 0.0) -> Plan:
        """Return the plan of a session of `minutes`, or of the default length if 0."""
        pace = measure_pace(view.snapshot.decisions, self.me)
        return plan(self.questions.items, minutes or view.settings.review.minutes, view.settings, pace)

    def action_minutes(self) -> None:
        def answered(text: str) -> None:
            try:
                minutes = float(text or "0")
                check_amount(minutes, "minutes", MAX_MINUTES)
            except (ValueError, BadInput):
                self.services.say(f"{visible_line(text, 40)} is not a number of minutes", severity="warning")
                return
            planned = self.offer(self.view, minutes) if minutes else None
            self.session.follow(planned, self.services.now())
            if planned is not None:
                self.services.say(planned.text)
                self.questions.plan(planned.items)
            self.show_anew()

        usual = self.session.plan.minutes if self.session.plan is not None else self.view.settings.review.minutes
        title = Content("How many minutes do you have?")
        detail = Content("Questions with the highest impact come first; 0 removes the limit.")
        self.ask_user(AskLine(title, detail, verb="plan", required=False, value=f"{usual:g}"), answered)

    def show_anew(self) -> None:
        self.refresh_view(self.view, None)

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
        title = Content(f"{answer.label.capitalize()} {visible_line(item.subject, 60)}: why?")
        detail = Content(f"Effect: {answer.effect}. Can be undone.")
        other = overtaken(seen, item.question_key, item.subject, item.other or item.subject)
        dialog = AskLine(title, detail, verb=answer.label, overtaken=other)
        self.ask_user(dialog, lambda reason: self._decide(item, answer, reason, seen))

    action_restore_text = partialmethod(_give, "restore_text")
    action_accept = partialmethod(_give, "accept")
    action_reject = partialmethod(_give, "reject")
    action_promote = partialmethod(_give, "promote")
    action_deprecate = partialmethod(_give, "deprecate")
    action_reset = partialmethod(_give, "reset")
    action_quarantine = partialmethod(_give, "quarantine")
    action_archive = partialmethod(_give, "archive")
    action_snooze = partialmethod(_give, "snooze")
    action_snooze_evidence = partialmethod(_give, "snooze_evidence")

    def _decide(self, item: ReviewItem, answer: Answer, reason: str, seen: ProjectState | None = None) -> None:
        """Submit an answer and go to the next question. `seen` is the state the user saw before a dialog."""
        command = msgspec.structs.replace(answer.with_text(reason), question=item.question_key)
        self.services.decide(command, seen)
        if (front := self.item) is not None and same_question(front, item):
            self.questions.give()
        self.session.count(self.services.now())
        self.show_anew()

    def _redraft(self, item: ReviewItem, draft: Draft) -> None:
        self._drafts[key_of(item)] = draft
        self.forget(item, "accept")
        self.show_anew()

    def forget(self, item: ReviewItem, action: str) -> None:
        """Discard the forecast of an answer that has changed."""
        raise NotImplementedError

    def action_rewrite(self) -> None:
        """Edit the proposed text, or swap the pattern to keep. No decision is made."""
        item = self.item
        if item is None:
            return
        if item.kind == DUPLICATE:
            self.questions.swap()
            self.show_anew()
        elif (proposal := self.proposal(item)) is not None:
            dialog = AskText(Content("Edit the anti-pattern"), proposal.text)
            self.ask_user(dialog, lambda text: self._worded(item, text))

    def action_rewrite_in_editor(self) -> None:
        item = self.item
        if item is not None and (proposal := self.proposal(item)) is not None:
            self._worded(item, self.services.edit_text(proposal.text))

    def _worded(self, item: ReviewItem, text: str | None) -> None:
        proposed = item.inversion
        if text and proposed is not None:
            before = self.draft(item) or Draft()
            self._redraft(item, replace(before, text="" if text == proposed.text else text))

    def action_alternative(self) -> None:
        """Choose the next alternative pattern. After the last one, choose no alternative."""
        item = self.item
        if item is not None and (proposal := self.proposal(item)) is not None:
            ids = [*(pattern.id for pattern in self.view.board.alternatives(item.subject)), ""]
            at = ids.index(proposal.better_pattern_id) if proposal.better_pattern_id in ids else -1
            self._redraft(item, replace(self.draft(item) or Draft(), better=ids[(at + 1) % len(ids)]))

    def action_snooze_until(self) -> None:
        item, seen = self.item, self.view
        if item is None:
            return

        def chosen(key: str) -> None:
            command = snooze_command(item, until=self.view.now + timedelta(days=SNOOZES[key]))
            effect = "asked again later"
            snooze = Answer(action="snooze_until", label="snooze", effect=effect, command=command, matters=False)
            self._decide(item, snooze, "", seen)

        detail = Content("Only the question is hidden; nothing changes for the loops. Can be undone.")
        choices = [(key, Content(key)) for key in SNOOZES]
        self.ask_user(Choose(Content("Snooze for how long?"), detail, choices, verb="snooze"), chosen)

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
        elif item.weakened is not None:
            self.services.open_record("memory", task_key(item.subject))
        elif item.lesson is not None:
            self.services.open_record("reflections", item.subject)
        elif item.proposed is not None and not item.is_about_pattern:
            self.services.open_record("log", item.proposed.subjects[0] if item.proposed.subjects else "")
        else:
            self.services.open_record("patterns" if item.is_about_pattern else "loops", item.subject)

    def action_to_loop(self) -> None:
        """Open a loop of the evidence, after a choice if there are several."""
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
        self.ask_user(AskLine(title, detail, verb="add note"), answered)

    def copy_text(self) -> str:
        """Return the record's ID, or the text of the focused pane."""
        if isinstance(self.focused, TextPane) and self.focused.id != "review-subject":
            return self.focused.plain
        return self.item.subject if self.item is not None else ""


def _with_draft(answer: Answer, item: ReviewItem, draft: Draft) -> Answer:
    """Return the answer that accepts the proposal with the user's edits."""
    return replace(
        answer,
        label="accept edited text" if draft.text else answer.label,
        command=AcceptInversion(item.subject, text=draft.text or None, better=draft.better),
    )
