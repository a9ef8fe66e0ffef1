"""Decision rules for questions that are not about a single pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from core.base.errors import AlreadyDone, Refused
from core.base.formatting import shorten_id
from core.base.text import plural
from core.curation.case import Draft
from core.curation.commands import (
    ApproveText,
    Command,
    CountReports,
    DiscardReports,
    Dismiss,
    JudgeReports,
    SnoozeQuestion,
)
from core.curation.decision_text import ABOUT
from core.curation.rules import snooze_end, snoozed_fields
from core.records.decisions import APPROVE, TEXT_HASH, VERBS, CurationState, Verb, text_hash


def judge_reports(command: JudgeReports, state: CurationState, _at: datetime) -> Draft:
    """Count or discard the suspicious harmful reports of one source."""
    burst = command.burst
    assert burst is not None
    for verdict in state.bursts.get(burst.source, ()):
        if verdict.first <= burst.first and burst.last <= verdict.last and {*burst.patterns} <= {*verdict.patterns}:
            raise Refused(f"the reports of {shorten_id(burst.source)} are already {verdict.verdict}")
    return Draft(
        verb=command.verb,
        subject=burst.source,
        summary=f"{VERBS[command.verb].past} {shorten_id(burst.source)} on {plural(len(burst.patterns), 'pattern')}",
        reason=command.reason,
        after={"first": burst.first.isoformat(), "last": burst.last.isoformat(), "patterns": list(burst.patterns)},
    )


def approve_text(command: ApproveText, state: CurationState, _at: datetime) -> Draft:
    """Allow a held text that is not a pattern to be injected, as long as it does not change."""
    digest, name = text_hash(command.text), shorten_id(command.about or command.key)
    if digest in state.approved_texts:
        raise AlreadyDone(f"{name} is already approved")
    return Draft(
        verb=Verb.RELEASE,
        subject=command.key,
        summary=f"{APPROVE.past} {name}",
        reason=command.reason,
        after={TEXT_HASH: digest, "text": command.text, **_about(command.about)},
    )


def dismiss(command: Dismiss, state: CurationState, _at: datetime) -> Draft:
    """Never ask a question again."""
    if command.key in state.dismissed:
        raise Refused(f"{shorten_id(command.about or command.key)} is already answered")
    return Draft(
        verb=Verb.DISMISS,
        subject=command.key,
        summary=command.summary,
        reason=command.reason,
        after=_about(command.about),
    )


def snooze_question(command: SnoozeQuestion, _state: CurationState, at: datetime) -> Draft:
    """Remove a question from the queue until a time, or more evidence."""
    more = command.more
    ends = snooze_end(command.until, None if more is None else more.count, at)
    beyond = None if more is None else more.known + more.count
    return Draft(
        verb=Verb.SNOOZE,
        subject=command.key,
        summary=f"snoozed {shorten_id(command.about or command.key)} until {ends}",
        reason=command.reason,
        after=snoozed_fields(command.until, beyond) | _about(command.about),
    )


def _about(name: str) -> dict[str, Any]:
    return {ABOUT: name} if name else {}


QUESTION_RULES: Final[Mapping[type[Command], Callable[[Any, CurationState, datetime], Draft]]] = {
    DiscardReports: judge_reports,
    CountReports: judge_reports,
    ApproveText: approve_text,
    Dismiss: dismiss,
    SnoozeQuestion: snooze_question,
}
"""Rules of commands that are not about a single pattern and change no record."""
