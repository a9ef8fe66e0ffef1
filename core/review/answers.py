"""Every answer that a question of the review queue can get, as data: the decision it makes, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from core.base.text import plural, visible_line
from core.curation.curator import Decided
from core.curation.rules import More
from core.learning.assessment import Assessment
from core.records.decisions import Decision, Verb
from core.records.patterns import Maturity
from core.records.question_ids import duplicate_question_id, extraction_question_id
from core.review.approved_text import approved
from core.review.messages import offer_text
from core.state.project_state import ProjectState
from core.state.review_items import (
    BORDERLINE,
    BROAD,
    CONTRADICTED,
    DUPLICATE,
    EXTRACTED,
    HELD,
    INVERSION,
    QUARANTINE,
    RECURRING,
    STALE_PIN,
    UNRECONCILED,
    HeldText,
    ReviewItem,
)

if TYPE_CHECKING:
    from core.project.project import Project

Decide = Callable[["Project", str], Decided]

SNOOZE_DAYS: Final = 7
"""How long a question that is snoozed without a date stays away."""
SNOOZE_EVIDENCE: Final = 3
"""New evidence after which a question is asked again that was snoozed until there is some."""
TOO_BROAD: Final = "its trigger fits nearly everything"
"""Why a pattern is put into quarantine whose trigger nobody said more about."""
KEPT: Final = "confirmed in review"
"""Why a pattern is deprecated again whose first reason is not known."""
REJECTED: Final = "rejected in review"
"""Why a text is archived that nobody gave a reason for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to one question.

    Attributes:
        action: Id of the action that gives it: `accept`, `reject`, `rewrite`, `promote`, `deprecate`, `reset`,
            `restore_text`, `quarantine`, `archive`, `snooze` or `snooze_evidence`.
        label: What it is called, one to three words.
        effect: What it does, in words that can stand behind an arrow.
        decide: Makes the decision; its second argument is the reason that was typed, for `rewrite` the text.
        needs_reason: It is refused without a reason.
        matters: Whether it can change what loops get. A snooze, or not to be asked again, cannot.
        why_not: Why it can't be given now, "" if it can.
    """

    action: str
    label: str
    effect: str
    decide: Decide
    needs_reason: bool = False
    matters: bool = True
    why_not: str = ""


def answers(item: ReviewItem, view: ProjectState) -> tuple[Answer, ...]:
    """What can be answered, in the order in which it is offered; `accept`, if there is one, comes first.

    Raises:
        UnknownRecord: The pattern that the question is about has gone.
    """
    return (*_proposed(item, view), *_standing(item, view), *_snoozes(item))


def answer(item: ReviewItem, view: ProjectState, action: str) -> Answer | None:
    """The answer that an action gives; None if this kind of question has no such answer."""
    return next((one for one in answers(item, view) if one.action == action), None)


def question_of(decision: Decision) -> str:
    """What the question that a decision has answered is filed under."""
    if decision.verb is Verb.MERGE:
        return duplicate_question_id(decision.subject, str(decision.after.get("merged", "")))
    return extraction_question_id(decision.subject) if decision.verb is Verb.EXTRACT else decision.subject


def why_not_decide(action: str, view: ProjectState, pattern_id: str) -> str:
    """Why a decision on one pattern is not possible now, "" if it is; the same rules as the curator's (semantics 4)."""
    assessment = view.assessment(pattern_id)
    pinned = assessment.pin is not None and not assessment.pin_stale and not assessment.contradicted
    free = assessment.pin is None and (assessment.state is not Maturity.DEPRECATED or view.was_reset(pattern_id))
    if action == "promote":
        if assessment.state is Maturity.DEPRECATED and not free:
            return "a deprecated pattern can't be promoted: reset it first"
        if pinned and assessment.state is Maturity.PROVEN:
            return "it is promoted already; reset takes the pin off"
    if action == "deprecate" and pinned and assessment.state is Maturity.DEPRECATED:
        return "it is deprecated already; reset takes the pin off"
    if action == "quarantine":
        if assessment.quarantined and not assessment.held:
            return "it is in quarantine already"
        if assessment.pin is not None and not assessment.pin_stale:
            return "a decision on it holds: deprecate it, or reset it first"
    if action == "release" and not assessment.quarantined:
        return "it is neither held nor in quarantine"
    if action == "archive" and not view.pattern(pattern_id).is_registered:
        return "it stands in a file that is not written to"
    if action == "reset" and free:
        return "nobody has pinned it: the evidence decides already"
    return ""


def _proposed(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    """To do what is proposed, to leave it, to do it another way."""
    if item.burst is not None:
        yield from _burst(item)
    elif item.offer is not None:
        yield from _offer(item, offer_text(item.offer))
    elif item.session is not None:
        yield _escalation(item)
    elif item.held_text is not None:
        yield from _held_text(item, item.held_text)
    elif item.kind == DUPLICATE:
        yield from _duplicate(item)
    elif item.kind in (QUARANTINE, HELD, EXTRACTED):
        yield from _arrival(item, view)
    elif item.kind == INVERSION:
        yield from _inversion(item, view)
    elif item.kind in (CONTRADICTED, STALE_PIN):
        yield from _doubted(item, view)
    elif item.kind == BROAD:
        yield from _broad(item, view)
    elif item.kind == BORDERLINE:
        yield from _borderline(item, view)
    elif item.kind == UNRECONCILED:
        yield _dismissal(item, "accept", "leave", f"left the counts of {visible_line(item.subject, 80)} as they are")


def _burst(item: ReviewItem) -> Iterator[Answer]:
    source, seen = item.subject, item.burst
    yield Answer(
        action="accept",
        label="discard",
        effect="these reports never count",
        decide=lambda deck, reason: deck.revoke(source, seen=seen, reason=reason),
    )
    yield Answer(
        action="reject",
        label="count them",
        effect="these reports count",
        decide=lambda deck, reason: deck.confirm(source, seen=seen, reason=reason),
    )


def _offer(item: ReviewItem, offered: str) -> Iterator[Answer]:
    yield Answer(
        action="accept",
        label="create" if item.kind == RECURRING else "extract",
        effect=offered.replace(" to extract", ""),
        decide=lambda deck, reason: deck.extract(item.subject, seen=item.offer, reason=reason),
    )
    yield _dismissal(item, "reject", "never", f"nothing is extracted from {visible_line(item.subject, 80)}")


def _held_text(item: ReviewItem, held: HeldText) -> Iterator[Answer]:
    label, effect = _ARRIVAL_ANSWERS[HELD]
    yield Answer(
        action="accept",
        label=label,
        effect=effect,
        decide=lambda deck, reason: deck.approve_text(item.question_key, held.text, about=item.about, reason=reason),
    )
    yield _dismissal(item, "reject", "leave out", f"left out {visible_line(item.about, 100)}")


def _escalation(item: ReviewItem) -> Answer:
    return _dismissal(item, "accept", "acknowledge", f"acknowledged the {visible_line(item.about, 80)}")


def _dismissal(item: ReviewItem, action: str, label: str, summary: str) -> Answer:
    """Not to be asked again; `summary` is what the log says."""
    key, about = item.question_key, item.about
    return Answer(
        action=action,
        label=label,
        effect="not asked again",
        decide=lambda deck, reason: deck.dismiss(key, summary, about=about, reason=reason),
        matters=False,
    )


def _duplicate(item: ReviewItem) -> Iterator[Answer]:
    kept, other = item.subject, item.other
    yield Answer(
        action="accept",
        label="merge",
        effect=f"{visible_line(kept, 80)} stays, with the uses of both",
        decide=lambda deck, reason: deck.merge(kept, other, reason=reason),
    )
    summary = f"kept both {visible_line(kept, 80)} and {visible_line(other, 80)}"
    yield _dismissal(item, "reject", "keep both", summary)
    yield Answer(
        action="rewrite",
        label="keep the other one",
        effect=f"{visible_line(other, 80)} stays, with the uses of both",
        decide=lambda deck, reason: deck.merge(other, kept, reason=reason),
    )


_ARRIVAL_ANSWERS: Final = {
    QUARANTINE: ("release", "loops may get it"),
    HELD: ("approve", "loops may get this very text"),
    EXTRACTED: ("approve", "not asked again"),
}
"""Label and effect of a yes to a text that no person has approved."""


def _arrival(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    label, effect = _ARRIVAL_ANSWERS[item.kind]
    yield Answer(
        action="accept",
        label=label,
        effect=effect,
        decide=lambda deck, reason: deck.release(item.subject, reason=reason),
        needs_reason=view.is_scanned_out(item.subject),
        matters=view.assessment(item.subject).quarantined,
    )
    yield Answer(
        action="reject",
        label="archive",
        effect="out of the registry",
        decide=lambda deck, reason: deck.archive(item.subject, reason=reason or REJECTED),
        why_not=why_not_decide("archive", view, item.subject),
    )


def _inversion(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    failures = view.settings.anti_pattern.failures_until_asked_again
    by_rule = view.assessment(item.subject).computed is Maturity.DEPRECATED
    stays = "not inverted, stays deprecated by rule" if by_rule else "not inverted, injected again"
    yield Answer(
        action="accept",
        label="accept",
        effect="an anti-pattern, the original deprecated",
        decide=lambda deck, reason: deck.accept_inversion(item.subject, reason=reason),
    )
    yield Answer(
        action="reject",
        label="reject",
        effect=f"{stays}; asked again after {plural(failures, 'more failure')}",
        decide=lambda deck, reason: deck.reject_inversion(item.subject, reason=reason),
    )
    yield Answer(
        action="rewrite",
        label="rewrite",
        effect="an anti-pattern in your own words",
        decide=lambda deck, text: deck.accept_inversion(item.subject, text=text or None),
    )


def _doubted(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    """Remove a decision, or confirm it: whichever the question asks for is `accept`."""
    assessment = view.assessment(item.subject)
    why = "its text has changed" if item.kind == STALE_PIN else "later evidence contradicts it"
    can_keep = assessment.pin is not None and assessment.pin.state is not Maturity.ESTABLISHED
    asks_to_keep = item.kind == STALE_PIN and can_keep
    remove = Answer(
        action="reject" if asks_to_keep else "accept",
        label="remove",
        effect=_reset_effect(assessment),
        decide=lambda deck, reason: deck.reset(item.subject, reason=reason or why),
    )
    if not can_keep:
        yield remove
        return
    keep = _kept_pin(item.subject, "accept" if asks_to_keep else "reject", view)
    yield from (keep, remove) if asks_to_keep else (remove, keep)


def _kept_pin(id: str, action: str, view: ProjectState) -> Answer:
    """Decide the same again, for the present text and with the evidence of today."""
    pin = view.assessment(id).pin
    if pin is not None and pin.state is Maturity.DEPRECATED:
        return replace(
            _deprecation(id, view),
            action=action,
            label="keep",
            effect="stays deprecated until reset",
            decide=lambda deck, reason: deck.deprecate(id, reason=reason or pin.reason or KEPT),
            needs_reason=False,
        )
    multiplier = view.settings.maturity.multiplier_proven
    return replace(
        _promotion(id, view), action=action, label="keep", effect=f"stays proven: x{multiplier:g} until reset"
    )


def _borderline(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    """Re-enable what the rules deprecate, or leave it so; keep what they let through (`deprecate` says no to that)."""
    id, name = item.subject, visible_line(item.subject, 80)
    if view.assessment(id).state is Maturity.DEPRECATED:
        yield Answer(
            action="accept",
            label="re-enable",
            effect=f"proven: x{view.settings.maturity.multiplier_proven:g} until reset",
            decide=lambda deck, reason: deck.re_enable(id, reason=reason),
            needs_reason=view.is_scanned_out(id),
        )
        yield _dismissal(item, "reject", "leave", f"left {name} deprecated: the evidence decides")
    else:
        yield _dismissal(item, "accept", "keep", f"kept injecting {name}: the evidence decides")


def _broad(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    yield Answer(
        action="accept",
        label="quarantine",
        effect="not injected until changed and released",
        decide=lambda deck, reason: deck.quarantine(item.subject, reason=reason or TOO_BROAD),
        why_not=why_not_decide("quarantine", view, item.subject),
    )
    summary = f"kept the broad trigger of {visible_line(item.subject, 80)}"
    yield _dismissal(item, "reject", "keep", summary)


def _standing(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    """Decisions on the pattern itself, which any question about one pattern can be answered with, except those that
    `accept` or `reject` make.
    """
    if item.is_about_pattern and item.kind != DUPLICATE:
        yield from _verdicts(item, view)
        yield from _removals(item, view)


def _verdicts(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    """What state it is to have."""
    id = item.subject
    assessment = view.assessment(id)
    is_doubted = item.kind in (CONTRADICTED, STALE_PIN)
    kept = assessment.pin.state if is_doubted and assessment.pin is not None else None
    if kept is not Maturity.PROVEN:
        yield _promotion(id, view)
    if kept is not Maturity.DEPRECATED:
        yield _deprecation(id, view)
    if not is_doubted:
        yield Answer(
            action="reset",
            label="reset",
            effect=_reset_effect(assessment),
            decide=lambda deck, reason: deck.reset(id, reason=reason),
            why_not=why_not_decide("reset", view, id),
        )
    if item.kind == STALE_PIN:
        yield Answer(
            action="restore_text",
            label="restore text",
            effect="the text that was approved, for which the decision holds",
            decide=lambda deck, reason: deck.restore_text(id, reason=reason),
            why_not="" if approved(view, id) is not None else "the approved text was not kept",
        )


def _promotion(id: str, view: ProjectState) -> Answer:
    return Answer(
        action="promote",
        label="promote",
        effect=f"proven: x{view.settings.maturity.multiplier_proven:g} until reset",
        decide=lambda deck, reason: deck.promote(id, reason=reason),
        needs_reason=view.is_scanned_out(id),
        why_not=why_not_decide("promote", view, id),
    )


def _deprecation(id: str, view: ProjectState) -> Answer:
    return Answer(
        action="deprecate",
        label="deprecate",
        effect="never injected until reset",
        decide=lambda deck, reason: deck.deprecate(id, reason=reason),
        needs_reason=True,
        why_not=why_not_decide("deprecate", view, id),
    )


def _removals(item: ReviewItem, view: ProjectState) -> Iterator[Answer]:
    """To keep it from loops for a while, or for good."""
    id = item.subject
    if item.kind != BROAD:  # where that is what is proposed
        yield Answer(
            action="quarantine",
            label="quarantine",
            effect="not injected until released",
            decide=lambda deck, reason: deck.quarantine(id, reason=reason),
            needs_reason=True,
            why_not=why_not_decide("quarantine", view, id),
        )
    if item.kind not in (QUARANTINE, HELD, EXTRACTED):  # where rejecting is just that
        yield Answer(
            action="archive",
            label="archive",
            effect="out of the registry",
            decide=lambda deck, reason: deck.archive(id, reason=reason),
            needs_reason=True,
            why_not=why_not_decide("archive", view, id),
        )


def _reset_effect(assessment: Assessment) -> str:
    if assessment.pin is None:
        return "state unchanged; can be promoted afterwards"
    return f"the evidence decides: {assessment.computed}"


def _snoozes(item: ReviewItem) -> Iterator[Answer]:
    """To be asked later: nothing else changes."""
    whole = item.question_key == item.subject  # the pattern as a whole, whatever is asked about it

    def for_days(deck: Project, reason: str) -> Decided:
        until = deck.now() + timedelta(days=SNOOZE_DAYS)
        if whole:
            return deck.snooze(item.subject, until=until, reason=reason)
        return deck.snooze_question(item.question_key, until=until, about=item.about, reason=reason)

    def for_evidence(deck: Project, reason: str) -> Decided:
        if whole:
            return deck.snooze(item.subject, uses=SNOOZE_EVIDENCE, reason=reason)
        more = More(item.evidence, SNOOZE_EVIDENCE)
        return deck.snooze_question(item.question_key, more=more, about=item.about, reason=reason)

    yield Answer(
        action="snooze",
        label="snooze",
        effect=f"asked again in {plural(SNOOZE_DAYS, 'day')}; nothing else changes",
        decide=for_days,
        matters=False,
    )
    yield Answer(
        action="snooze_evidence",
        label="wait for evidence",
        effect=f"asked again when {SNOOZE_EVIDENCE} more have come; nothing else changes",
        decide=for_evidence,
        matters=False,
    )
