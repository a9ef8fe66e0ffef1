"""All answers to a review question: those of its kind, decisions on the pattern, and later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from core.base.text import plural
from core.decisions import commands
from core.decisions.rules import find_approved_pattern
from core.index import review_items as kinds
from core.index.review_items import BEST
from core.questions import (
    arrivals,
    borderline,
    broad,
    burst,
    conflict,
    duplicate,
    edited,
    escalation,
    followed,
    harmful,
    held,
    inversion,
    lesson,
    offer,
    pins,
    proposals,
    stale,
    unreconciled,
    weakened,
)
from core.questions.answer import (
    NO_DECISION,
    SNOOZE_DAYS,
    SNOOZE_EVIDENCE,
    Answer,
    decision,
    no,
    promotion,
    reset_effect,
    snooze_command,
    yes,
)
from core.records.decisions import (
    EDIT_ANSWERS,
    PAIR_ANSWERS,
    VERBS,
    Decision,
    Verb,
    duplicate_question_id,
    extraction_question_id,
)
from core.records.lessons import LESSON_ID
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import QuestionGroup, ReviewItem

ROW_EVIDENCE: Final = 5  # Number of further questions that bring back a row that was not read.

_BY_KIND: Final[Mapping[str, Callable[[ReviewItem, ProjectState], Iterator[Answer]]]] = {
    kinds.INVERSION: inversion.answers,
    kinds.CONTRADICTED: pins.answers,
    kinds.STALE_PIN: pins.answers,
    kinds.BORDERLINE: borderline.answers,
    kinds.DUPLICATE: duplicate.answers,
    kinds.EXTRACTED: arrivals.answers,
    kinds.QUARANTINE: arrivals.answers,
    kinds.HELD: held.answers,
    kinds.BURST: burst.answers,
    kinds.RECURRING: offer.answers,
    kinds.LESSON: lesson.answers,
    kinds.OFFER: offer.answers,
    kinds.BROAD: broad.answers,
    kinds.SELDOM: followed.answers,
    kinds.UNRECONCILED: unreconciled.answers,
    kinds.STALE: stale.answers,
    kinds.RENAMED: stale.answers,
    kinds.WEAKENED: weakened.answers,
    kinds.EDITED: edited.answers,
    kinds.PROPOSAL: proposals.answers,
    kinds.CONFLICT: conflict.answers,
    kinds.ESCALATION: escalation.answers,
    kinds.HARMFUL: harmful.answers,
}
"""Yes, no and the other answers that are specific to a kind of question."""


def answers(item: ReviewItem, state: ProjectState) -> tuple[Answer, ...]:
    """Return all answers in the order of display; `accept` comes first.

    Raises `UnknownRecord` if the pattern that the question is about no longer exists.
    """
    return (*_own_answers(item, state), *_pattern_decisions(item, state), *_snoozes(item, state))


def answer(item: ReviewItem, state: ProjectState, action: str) -> Answer | None:
    """Return the answer of an action; None if this question has no such answer."""
    return next((one for one in answers(item, state) if one.action == action), None)


def question_of(decision: Decision) -> str:
    """Return the ID of the question that a decision answers, or of the lesson that it is about."""
    if decision.verb is Verb.MERGE:
        return duplicate_question_id(decision.subject, str(decision.after.get("merged", "")))
    answer, _, about = decision.subject.partition(" ")
    if decision.verb is Verb.DISMISS and answer in (*EDIT_ANSWERS, *PAIR_ANSWERS):
        return about
    is_offer = decision.verb is Verb.EXTRACT and not decision.subject.startswith(LESSON_ID)
    return extraction_question_id(decision.subject) if is_offer else decision.subject


def _own_answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    return _BY_KIND[item.kind](item, state) if item.group is None else _row_answers(item, item.group)


def _row_answers(item: ReviewItem, group: QuestionGroup) -> Iterator[Answer]:
    """Yield yes, which asks the best questions of a row one by one, and no, which waits for more."""
    best = group.items[:BEST]
    which = f"the top {len(best)}" if len(group.items) > len(best) else "them"
    yield yes("ask now", f"asks about {which}, one by one", NO_DECISION, matters=False, opens=best)
    more = commands.More(item.evidence, ROW_EVIDENCE)
    command = commands.SnoozeQuestion(key=item.question_key, more=more, about=item.about)
    yield no("not now", f"asked again when there are {ROW_EVIDENCE} more", command, matters=False)


def _pattern_decisions(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield decisions on the pattern that `accept` and `reject` do not already make."""
    if not item.is_about_pattern or item.kind == kinds.DUPLICATE:
        return
    id, assessment = item.subject, state.assessment(item.subject)
    is_doubtful = item.kind in (kinds.CONTRADICTED, kinds.STALE_PIN)
    pinned = assessment.pin.state if is_doubtful and assessment.pin is not None else None
    if pinned is not Maturity.PROVEN:
        yield promotion(id, state, is_asked=item.kind == kinds.BORDERLINE)
    is_proposed = item.kind == kinds.HARMFUL or any(one.is_removed for one in item.anchors)  # another answer does that
    if pinned is not Maturity.DEPRECATED and not is_proposed:
        yield decision(commands.Deprecate(id), "no agent gets it until reset", state)
    if not is_doubtful:
        yield decision(commands.Reset(id), reset_effect(assessment), state)
    if item.kind == kinds.STALE_PIN:
        effect = "restores the approved text, for which the decision was made"
        why_not = "" if find_approved_pattern(state, id) is not None else "the approved text was not stored"
        yield Answer("restore_text", VERBS[Verb.EDIT].word, effect, commands.RestoreText(id), why_not=why_not)
    if item.kind != kinds.BROAD:  # there it is the proposal
        yield decision(commands.Quarantine(id), "no agent gets it until released", state)
    if item.kind not in (kinds.QUARANTINE, kinds.HELD, kinds.EXTRACTED):  # there `reject` archives
        yield decision(commands.Archive(id), "archived: no agent gets it", state)


def _snoozes(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    effect = f"asked again in {plural(SNOOZE_DAYS, 'day')}"
    command = snooze_command(item, until=state.now + timedelta(days=SNOOZE_DAYS))
    yield Answer("snooze", VERBS[Verb.SNOOZE].word, effect, command, matters=False)
    if item.group is not None:  # there `reject` waits for more
        return
    effect = f"asked again after {SNOOZE_EVIDENCE} more results"
    command = snooze_command(item, evidence=SNOOZE_EVIDENCE)
    yield Answer("snooze_evidence", "wait for evidence", effect, command, matters=False)
