"""Decision rules for questions that are not about a single pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import Refused
from core.base.formatting import shorten_id
from core.base.scanning.scripts import find_scripts
from core.base.text import plural
from core.decisions import commands
from core.decisions.case import Draft, already_done
from core.decisions.decision_text import ABOUT
from core.decisions.rules import snooze_end, snoozed_fields
from core.learning.bursts import MEMBER, UNDATED
from core.records.decisions import (
    ALL_USES,
    APPROVE,
    SCRIPTS,
    SENT,
    TEXT_HASH,
    VERBS,
    WITHDRAW,
    CurationState,
    text_hash,
)

if TYPE_CHECKING:
    from core.decisions.commands import Command, JudgeReports


def judge_reports(command: JudgeReports, state: CurationState, _at: datetime) -> Draft:
    """Count or discard the suspicious reports of one source."""
    burst = command.burst
    assert burst is not None
    for verdict in state.bursts.get(burst.source, ()):
        if verdict.first <= burst.first and burst.last <= verdict.last and {*burst.patterns} <= {*verdict.patterns}:
            is_same = (verdict.verdict == "confirmed") is isinstance(command, commands.CountReports)
            why = f"the reports of {shorten_id(burst.source)} are already {verdict.verdict}"
            raise already_done(why, command.reason) if is_same else Refused(why)
    counted = plural(len(burst.patterns), "pattern")
    summary = f"{VERBS[command.verb].past} {shorten_id(burst.source)} on {counted}"
    after = {"first": burst.first.isoformat(), "last": burst.last.isoformat(), "patterns": list(burst.patterns)}
    return _draft(command, burst.source, summary, after)


def withdraw_uses(command: commands.WithdrawMember, _state: CurationState, _at: datetime) -> Draft:
    """Let no use count that a member of the team has sent."""
    after = {"first": UNDATED.isoformat(), "last": command.until.isoformat(), "patterns": [], SENT: ALL_USES}
    source = f"{MEMBER}{command.member}"
    return _draft(command, source, f"{WITHDRAW.past} {shorten_id(source)}", after)


def approve_text(command: commands.ApproveText, state: CurationState, _at: datetime) -> Draft:
    """Allow a held text that is not a pattern to be injected while unchanged."""
    digest, name = text_hash(command.text), shorten_id(command.about or command.key)
    if digest in state.approved_texts:
        raise already_done(f"{name} is already approved", command.reason)
    after: dict[str, Any] = {TEXT_HASH: digest, "text": command.text} | _about(command.about)
    if scripts := find_scripts(command.text):
        after[SCRIPTS] = list(scripts)
    return _draft(command, command.key, f"{APPROVE.past} {name}", after)


def dismiss(command: commands.Dismiss, state: CurationState, _at: datetime) -> Draft:
    if command.key in state.dismissed:
        raise already_done(f"{shorten_id(command.about or command.key)} is already answered", command.reason)
    return _draft(command, command.key, command.summary, _about(command.about))


def snooze_question(command: commands.SnoozeQuestion, _state: CurationState, at: datetime) -> Draft:
    """Remove a question from the queue until a time, or more evidence."""
    more = command.more
    ends = snooze_end(command.until, None if more is None else more.count, at)
    beyond = None if more is None else more.known + more.count
    after = snoozed_fields(command.until, beyond) | _about(command.about)
    return _draft(command, command.key, f"snoozed {shorten_id(command.about or command.key)} until {ends}", after)


def _draft(command: Command, subject: str, summary: str, after: dict[str, Any]) -> Draft:
    return Draft(verb=command.verb, subject=subject, summary=summary, reason=command.reason, after=after)


def _about(name: str) -> dict[str, Any]:
    return {ABOUT: name} if name else {}


QUESTION_RULES: Final[Mapping[type[Command], Callable[[Any, CurationState, datetime], Draft]]] = {
    commands.DiscardReports: judge_reports,
    commands.CountReports: judge_reports,
    commands.WithdrawMember: withdraw_uses,
    commands.ApproveText: approve_text,
    commands.Dismiss: dismiss,
    commands.SnoozeQuestion: snooze_question,
}
"""Rules of commands that are not about a single pattern and change no record."""
