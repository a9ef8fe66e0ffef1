"""An answer to a review question, and how the kinds of questions make theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from core.base.text import lesson_name, plural
from core.decisions import commands
from core.decisions.rules import why_refused
from core.records.decisions import REJECT, VERBS, Verb, lesson_question_id
from core.records.patterns import Maturity

if TYPE_CHECKING:
    from core.decisions.commands import Command, PatternCommand
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.maturity import Assessment
    from core.records.reflections import JoinedLesson

SNOOZE_DAYS: Final = 7  # Length of a snooze without a date, in days.

SNOOZE_EVIDENCE: Final = 3  # Number of new results that end a snooze without a date.

NOT_YET_DAYS: Final = 1  # Days until a question that no one acknowledged is asked again.

REJECTED: Final = "rejected in review"  # Default reason to archive a new text.

_RESULTS: Final = {
    **dict.fromkeys((Verb.RELEASE, Verb.PROMOTE, Verb.REJECT_INVERSION, Verb.EDIT), "kept"),
    **dict.fromkeys((Verb.ARCHIVE, Verb.DEPRECATE, Verb.QUARANTINE, Verb.ACCEPT_INVERSION), "removed"),
    Verb.EXTRACT: "new",
    Verb.MERGE: "merged",
    Verb.SNOOZE: "put off",
}
"""What the summary of a review session counts, by the verb of the decision."""

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
        """Effect on lessons: `kept`, `removed`, `new`, `merged` or `put off`; else ""."""
        return _RESULTS.get(self.command.verb, "")

    @property
    def lessons(self) -> int:
        """The number of lessons that the answer is about."""
        expected = self.command.expected if isinstance(self.command, commands.Extract) else None
        return len(expected.new) if expected is not None else 1

    def with_text(self, typed: str) -> Command:
        """Return the command with the typed reason, or typed text of an inversion."""
        if not typed:
            return self.command
        is_rewrite = self.action == "rewrite" and isinstance(self.command, commands.AcceptInversion)
        return msgspec.structs.replace(self.command, **{"text" if is_rewrite else "reason": typed})


yes: Final = partial(Answer, "accept")
no: Final = partial(Answer, "reject")


def dismissal(item: ReviewItem, action: str, label: str, summary: str, effect: str = "not asked again") -> Answer:
    """Make an answer that dismisses the question; the log shows `summary`."""
    dismiss = commands.Dismiss(key=item.question_key, summary=summary, about=item.about)
    return Answer(action, label, effect, dismiss, matters=False)


def not_now(item: ReviewItem, state: ProjectState, label: str, days: int) -> Answer:
    """Make the answer no to a question that only a later time can settle."""
    command = snooze_command(item, until=state.now + timedelta(days=days))
    return no(label, f"asked again in {plural(days, 'day')}", command, matters=False)


def new_text(item: ReviewItem, state: ProjectState, label: str, effect: str) -> Iterator[Answer]:
    """Yield yes, which accepts an unapproved text, and no, which archives it."""
    assessment = state.assessment(item.subject)
    release, blocked = commands.Release(item.subject), assessment.blocked
    yield yes(label, effect, release, needs_reason=blocked, matters=assessment.quarantined)
    archive = commands.Archive(item.subject, reason=REJECTED)
    yield no("archive", "archived: no agent gets it", archive, why_not=why_refused(archive, state))


def decision(command: PatternCommand, effect: str, state: ProjectState, *, needs_reason: bool = False) -> Answer:
    verb = VERBS[command.verb]
    needs_reason = needs_reason or bool(verb.asks)
    why_not = why_refused(command, state)
    return Answer(command.verb.value, verb.word, effect, command, needs_reason=needs_reason, why_not=why_not)


def promotion(id: str, state: ProjectState, *, is_asked: bool = False) -> Answer:
    """Return the promotion; a deprecated pattern needs `is_asked` to be re-enabled."""
    assessment = state.assessment(id)
    effect = "proven: ranked first until reset"
    if state.has_low_rate(id):
        least = state.settings.injection.min_success_rate
        effect = f"proven until reset, but left out of prompts until its rate is at least {least:.0%}"
    command = commands.Promote(id, re_enable=is_asked and assessment.state is Maturity.DEPRECATED)
    return decision(command, effect, state, needs_reason=assessment.blocked)


def reset_effect(assessment: Assessment) -> str:
    if assessment.pin is None:
        return "nothing changes; it can be promoted afterwards"
    return f"the evidence decides: {assessment.computed}"


def snooze_command(item: ReviewItem, *, until: datetime | None = None, evidence: int | None = None) -> Command:
    """Make the command that asks a question again at a time or with more evidence."""
    if item.question_key == item.subject:  # about the pattern as a whole
        return commands.Snooze(item.subject, until=until, uses=evidence)
    more = None if evidence is None else commands.More(item.evidence, evidence)
    return commands.SnoozeQuestion(key=item.question_key, until=until, more=more, about=item.about)


def reject_lesson(joined: JoinedLesson, reason: str = "") -> commands.Dismiss:
    """Make the command that rejects a lesson of an agent."""
    name, key = lesson_name(joined.lesson.text), lesson_question_id(joined.lesson.text)
    return commands.Dismiss(key=key, summary=f"{REJECT.past} {name}", about=name, reason=reason)
