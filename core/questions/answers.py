"""Possible answers to a review question; each has a command and its effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from core.base.record_text import lesson_name
from core.base.text import plural, visible_line
from core.curation import commands
from core.curation.commands import PatternCommand
from core.curation.rules import why_refused
from core.curation.text_approval import find_approved_pattern
from core.questions.offer import offer_text
from core.questions.proposals import accepted_command
from core.records.decisions import (
    ACKNOWLEDGE,
    APPROVE,
    RE_ENABLE,
    REJECT,
    VERBS,
    Decision,
    Verb,
    duplicate_question_id,
    extraction_question_id,
    lesson_question_id,
)
from core.records.lessons import LESSON_ID
from core.records.patterns import Maturity
from core.state import review_items as kinds
from core.state.review_items import BEST

if TYPE_CHECKING:
    from core.curation.commands import Command
    from core.learning.assessment import Assessment
    from core.records.lessons import JoinedLesson
    from core.records.proposed_decisions import ProposedDecision
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

SNOOZE_DAYS: Final = 7  # Length of a snooze without a date, in days.
SNOOZE_EVIDENCE: Final = 3  # Number of new results that end a snooze without a date.
ROW_EVIDENCE: Final = 5  # Number of further questions that bring back a row that was not read.
NOT_YET_DAYS: Final = 1  # Days until a question that no one acknowledged is asked again.
TOO_BROAD: Final = "its trigger matches nearly everything"
"""Default reason to quarantine a pattern with a broad trigger."""
WRONG_COUNTS: Final = "its recorded counts contradict the evidence"
"""Default reason to quarantine a pattern whose counts disagree."""
CONFIRMED: Final = "confirmed in review"  # Default reason to deprecate a pattern again.
REJECTED: Final = "rejected in review"  # Default reason to archive a new text.


_RESULTS: Final = {
    **dict.fromkeys((Verb.RELEASE, Verb.PROMOTE, Verb.REJECT_INVERSION, Verb.EDIT), "kept"),
    **dict.fromkeys((Verb.ARCHIVE, Verb.DEPRECATE, Verb.QUARANTINE, Verb.ACCEPT_INVERSION), "removed"),
    **dict.fromkeys((Verb.REVOKE, Verb.CONFIRM), "judged"),
    Verb.EXTRACT: "added",
    Verb.MERGE: "merged",
    Verb.RESET: "reset",
    Verb.SNOOZE: "put off",
    Verb.NOTE: "noted",
}
"""Participles of the summary of a review session, by the verb of the decision."""
NO_DECISION: Final = commands.Command()


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to one question.

    `action` is the ID of the TUI action that gives it: `accept`, `reject`, `rewrite`, `promote`, `deprecate`, `reset`,
    `restore_text`, `quarantine`, `archive`, `snooze` or `snooze_evidence`. `label` has one to three words, `effect` can
    follow an arrow. `command` lacks typed text and, if it `needs_reason`, is refused without. `matters`: it can change
    what is injected, unlike a snooze. `why_not` is why it is refused at present, "" if it is allowed. An answer that
    decides nothing has the command `NO_DECISION`: it asks the questions in `opens` one by one.
    """

    action: str
    label: str
    effect: str
    command: Command
    needs_reason: bool = False
    matters: bool = True
    why_not: str = ""
    opens: tuple[ReviewItem, ...] = ()

    @property
    def result(self) -> str:
        """What the answer does to a lesson, as a participle for a summary."""
        return _RESULTS.get(self.command.verb, "left as they are")

    def with_text(self, typed: str) -> Command:
        """Return the command with the typed reason, or typed text of an inversion."""
        if not typed:
            return self.command
        is_rewrite = self.action == "rewrite" and isinstance(self.command, commands.AcceptInversion)
        return msgspec.structs.replace(self.command, **{"text" if is_rewrite else "reason": typed})


_accept: Final = partial(Answer, "accept")
_reject: Final = partial(Answer, "reject")


def answers(item: ReviewItem, state: ProjectState) -> tuple[Answer, ...]:
    """Return all answers in the order of display; `accept` comes first.

    Raises `UnknownRecord` if the pattern that the question is about no longer exists.
    """
    return (*_proposals(item, state), *_pattern_decisions(item, state), *_snoozes(item, state))


def answer(item: ReviewItem, state: ProjectState, action: str) -> Answer | None:
    """Return the answer of an action; None if this question has no such answer."""
    return next((one for one in answers(item, state) if one.action == action), None)


def question_of(decision: Decision) -> str:
    """Return the ID of the question that a decision answers, or of the lesson that it is about."""
    if decision.verb is Verb.MERGE:
        return duplicate_question_id(decision.subject, str(decision.after.get("merged", "")))
    is_offer = decision.verb is Verb.EXTRACT and not decision.subject.startswith(LESSON_ID)
    return extraction_question_id(decision.subject) if is_offer else decision.subject


def _proposals(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield the answers that are specific to the kind of question."""
    subject, name = item.subject, visible_line(item.subject, 80)
    if item.group is not None:
        best = item.group.items[:BEST]
        which = f"the {len(best)} best" if len(item.group.items) > len(best) else "them"
        effect = f"asks about {which}, one by one"
        yield _accept("read", effect, NO_DECISION, matters=False, opens=best)
        more = commands.More(item.evidence, ROW_EVIDENCE)
        command = commands.SnoozeQuestion(key=item.question_key, more=more, about=item.about)
        effect = f"asked again when there are {ROW_EVIDENCE} more"
        yield _reject("not now", effect, command, matters=False)
    elif item.proposed is not None:
        yield from _agents_proposal(item, item.proposed, state)
    elif item.burst is not None:
        yield _accept("discard", "the reports never count", commands.DiscardReports(source=subject, burst=item.burst))
        yield _reject("count them", "the reports count", commands.CountReports(source=subject, burst=item.burst))
    elif item.offer is not None:
        label = "create" if item.kind in (kinds.RECURRING, kinds.LESSON) else VERBS[Verb.EXTRACT].word
        effect = f"adds {offer_text(item.offer)}"
        yield _accept(label, effect, commands.Extract(subject, expected=item.offer))
        if item.lesson is not None:
            yield _reject(REJECT.word, "nothing is added", reject_lesson(item.lesson), matters=False)
        else:
            yield _dismissal(item, "reject", "never", f"nothing is extracted from {name}", "nothing is added")
    elif item.session is not None or item.weakened is not None:
        article = "the " if item.session is not None else ""
        summary = f"{ACKNOWLEDGE.past} {article}{visible_line(item.about, 120)}"
        yield _dismissal(item, "accept", ACKNOWLEDGE.word, summary)
        yield _not_now(item, state, "not yet", NOT_YET_DAYS)
    elif item.held_text is not None:
        approve = commands.ApproveText(key=item.question_key, text=item.held_text.text, about=item.about)
        yield _accept(*_RELEASE_WORDS[kinds.HELD], approve)
        yield _dismissal(
            item, "reject", "leave out", f"left out {visible_line(item.about, 100)}", "left out of every prompt"
        )
    elif item.kind == kinds.DUPLICATE:
        other = visible_line(item.other, 80)
        yield _accept("merge", f"merged: {name} stays, with the uses of both", commands.Merge(subject, item.other))
        yield _dismissal(item, "reject", "keep both", f"kept both {name} and {other}", "both stay")
        effect = f"{other} stays, with the uses of both"
        yield Answer("rewrite", "keep the other one", effect, commands.Merge(item.other, subject))
    elif item.kind in (kinds.QUARANTINE, kinds.HELD, kinds.EXTRACTED):
        yield from _new_text(item, state)
    elif item.kind == kinds.INVERSION:
        yield from _inversion(item, state)
    elif item.kind in (kinds.CONTRADICTED, kinds.STALE_PIN):
        yield from _doubtful_pin(item, state)
    elif item.kind == kinds.BROAD:
        quarantine = commands.Quarantine(subject, reason=TOO_BROAD)
        effect = "no agent gets it until it is changed and released"
        yield _accept("quarantine", effect, quarantine, why_not=why_refused(quarantine, state))
        yield _dismissal(item, "reject", "keep", f"kept the broad trigger of {name}", "it stays as it is")
    elif item.kind == kinds.BORDERLINE:
        yield from _borderline(item, state)
    elif item.kind == kinds.UNRECONCILED:
        yield _dismissal(item, "accept", "leave", f"left the counts of {name} as they are", "its results count")
        quarantine = commands.Quarantine(subject, reason=WRONG_COUNTS)
        effect = "no agent gets it until the counts are corrected and it is released"
        yield _reject("quarantine", effect, quarantine, why_not=why_refused(quarantine, state))


def _agents_proposal(item: ReviewItem, proposed: ProposedDecision, state: ProjectState) -> Iterator[Answer]:
    command, word = accepted_command(proposed), VERBS[Verb(proposed.verb)].word
    needs_reason, why_not = False, ""
    if isinstance(command, PatternCommand):
        is_approval = command.verb in (Verb.RELEASE, Verb.PROMOTE)
        needs_reason = is_approval and state.assessment(item.subject).blocked
        why_not = why_refused(command, state)
    yield _accept(
        word, f"{VERBS[Verb(proposed.verb)].past} in your name", command, needs_reason=needs_reason, why_not=why_not
    )
    yield _dismissal(item, "reject", REJECT.word, f"{REJECT.past} {item.about}")


def _dismissal(item: ReviewItem, action: str, label: str, summary: str, effect: str = "not asked again") -> Answer:
    """Make an answer that dismisses the question; the log shows `summary`."""
    dismiss = commands.Dismiss(key=item.question_key, summary=summary, about=item.about)
    return Answer(action, label, effect, dismiss, matters=False)


def _not_now(item: ReviewItem, state: ProjectState, label: str, days: int) -> Answer:
    """Make the answer no to a question that only a later time can settle."""
    command = snooze_command(item, until=state.now + timedelta(days=days))
    return _reject(label, f"asked again in {plural(days, 'day')}", command, matters=False)


def reject_lesson(joined: JoinedLesson, reason: str = "") -> commands.Dismiss:
    """Make the command that rejects a lesson of an agent."""
    name, key = lesson_name(joined.lesson.text), lesson_question_id(joined.lesson.text)
    return commands.Dismiss(key=key, summary=f"{REJECT.past} {name}", about=name, reason=reason)


_RELEASE_WORDS: Final = {
    kinds.QUARANTINE: (VERBS[Verb.RELEASE].word, "agents may get it"),
    kinds.HELD: (APPROVE.word, "agents may get exactly this text"),
    kinds.EXTRACTED: (APPROVE.word, "it stays, and may become proven"),
}
"""Label and effect of an answer that accepts a text that no person has approved."""


def _new_text(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    assessment = state.assessment(item.subject)
    release, blocked = commands.Release(item.subject), assessment.blocked
    yield _accept(*_RELEASE_WORDS[item.kind], release, needs_reason=blocked, matters=assessment.quarantined)
    archive = commands.Archive(item.subject, reason=REJECTED)
    yield _reject("archive", "archived: no agent gets it", archive, why_not=why_refused(archive, state))


def _inversion(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    failures = state.settings.anti_pattern.failures_until_asked_again
    by_rule = state.assessment(item.subject).computed is Maturity.DEPRECATED
    outcome = "stays deprecated" if by_rule else "agents get it again"
    accepts, rejects = VERBS[Verb.ACCEPT_INVERSION].word, VERBS[Verb.REJECT_INVERSION].word
    yield _accept(accepts, "a warning takes its place", commands.AcceptInversion(item.subject))
    again = f"asked again after {plural(failures, 'more failure')}"
    yield _reject(rejects, f"{outcome}; {again}", commands.RejectInversion(item.subject))
    yield Answer("rewrite", "rewrite", "a warning in your words", commands.AcceptInversion(item.subject))


def _doubtful_pin(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield answers that remove and keep a pin; `accept` is what the question asks."""
    assessment = state.assessment(item.subject)
    why = "its text has changed" if item.kind == kinds.STALE_PIN else "later evidence contradicts it"
    can_keep = assessment.pin is not None and assessment.pin.state is not Maturity.ESTABLISHED
    asks_to_keep = item.kind == kinds.STALE_PIN and can_keep
    action = "reject" if asks_to_keep else "accept"
    reset = Answer(action, VERBS[Verb.RESET].word, _reset_effect(assessment), commands.Reset(item.subject, reason=why))
    if not can_keep:
        yield from (reset, _not_now(item, state, "not now", SNOOZE_DAYS))
        return
    keep = _same_pin(item.subject, "accept" if asks_to_keep else "reject", state)
    yield from (keep, reset) if asks_to_keep else (reset, keep)


def _same_pin(id: str, action: str, state: ProjectState) -> Answer:
    """Make an answer that repeats the decision for the current text and evidence."""
    pin = state.assessment(id).pin
    if pin is not None and pin.state is Maturity.DEPRECATED:
        command = commands.Deprecate(id, reason=pin.reason or CONFIRMED)
        why_not = why_refused(command, state)
        return Answer(action, "keep", "stays deprecated until reset", command, why_not=why_not)
    effect = "stays proven until reset"
    return replace(_promotion(id, state), action=action, label="keep", effect=effect)


def _borderline(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield answers that re-enable a deprecated pattern, or keep a state."""
    id, name, assessment = item.subject, visible_line(item.subject, 80), state.assessment(item.subject)
    if assessment.state is Maturity.DEPRECATED:
        if assessment.pin is None:
            effect = "established: given again, with the weight of its evidence"
            yield _accept(RE_ENABLE.word, effect, commands.Release(id), needs_reason=assessment.blocked)
        else:
            yield _accept(RE_ENABLE.word, _reset_effect(assessment), commands.Reset(id))
        yield _dismissal(item, "reject", "leave", f"left {name} deprecated: the evidence decides", "no agent gets it")
    else:
        yield _dismissal(
            item, "accept", "keep", f"kept injecting {name}: the evidence decides", "it stays: the evidence decides"
        )
        deprecate = commands.Deprecate(id, reason=REJECTED)
        yield _reject("deprecate", "no agent gets it until reset", deprecate, why_not=why_refused(deprecate, state))


def _pattern_decisions(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield decisions on the pattern that `accept` and `reject` do not already make."""
    if not item.is_about_pattern or item.kind == kinds.DUPLICATE:
        return
    id, assessment = item.subject, state.assessment(item.subject)
    is_doubtful = item.kind in (kinds.CONTRADICTED, kinds.STALE_PIN)
    pinned = assessment.pin.state if is_doubtful and assessment.pin is not None else None
    if pinned is not Maturity.PROVEN:
        yield _promotion(id, state, is_asked=item.kind == kinds.BORDERLINE)
    if pinned is not Maturity.DEPRECATED:
        yield _decision(commands.Deprecate(id), "no agent gets it until reset", state)
    if not is_doubtful:
        yield _decision(commands.Reset(id), _reset_effect(assessment), state)
    if item.kind == kinds.STALE_PIN:
        effect = "restores the approved text, for which the decision was made"
        why_not = "" if find_approved_pattern(state, id) is not None else "the approved text was not stored"
        yield Answer("restore_text", VERBS[Verb.EDIT].word, effect, commands.RestoreText(id), why_not=why_not)
    if item.kind != kinds.BROAD:  # there it is the proposal
        yield _decision(commands.Quarantine(id), "no agent gets it until released", state)
    if item.kind not in (kinds.QUARANTINE, kinds.HELD, kinds.EXTRACTED):  # there `reject` archives
        yield _decision(commands.Archive(id), "archived: no agent gets it", state)


def _decision(command: PatternCommand, effect: str, state: ProjectState, *, needs_reason: bool = False) -> Answer:
    verb = VERBS[command.verb]
    needs_reason = needs_reason or bool(verb.asks)
    why_not = why_refused(command, state)
    return Answer(command.verb.value, verb.word, effect, command, needs_reason=needs_reason, why_not=why_not)


def _promotion(id: str, state: ProjectState, *, is_asked: bool = False) -> Answer:
    """Return the promotion; a deprecated pattern can be promoted at once only where its re-enabling `is_asked`."""
    assessment = state.assessment(id)
    effect = "proven: ranked first until reset"
    command = commands.Promote(id, re_enable=is_asked and assessment.state is Maturity.DEPRECATED)
    return _decision(command, effect, state, needs_reason=assessment.blocked)


def _reset_effect(assessment: Assessment) -> str:
    if assessment.pin is None:
        return "nothing changes; it can be promoted afterwards"
    return f"the evidence decides: {assessment.computed}"


def snooze_command(item: ReviewItem, *, until: datetime | None = None, evidence: int | None = None) -> Command:
    """Make the command that asks a question again at a time or with more evidence."""
    if item.question_key == item.subject:  # about the pattern as a whole
        return commands.Snooze(item.subject, until=until, uses=evidence)
    more = None if evidence is None else commands.More(item.evidence, evidence)
    return commands.SnoozeQuestion(key=item.question_key, until=until, more=more, about=item.about)


def _snoozes(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    effect = f"asked again in {plural(SNOOZE_DAYS, 'day')}"
    command = snooze_command(item, until=state.now + timedelta(days=SNOOZE_DAYS))
    yield Answer("snooze", VERBS[Verb.SNOOZE].word, effect, command, matters=False)
    if item.group is not None:  # there `reject` waits for more
        return
    effect = f"asked again after {SNOOZE_EVIDENCE} more results"
    command = snooze_command(item, evidence=SNOOZE_EVIDENCE)
    yield Answer("snooze_evidence", "wait for evidence", effect, command, matters=False)
