"""Questions about the decisions that agents propose; see docs/curation.md#who-decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.formatting import format_day, shorten_id
from core.base.text import capitalized, plural, visible_line
from core.curation import commands
from core.curation.command_codec import decode_command
from core.records.decisions import VERBS, Verb
from core.scanning.messages import describe_suspicions
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.curation.commands import Command, PatternCommand
    from core.records.decisions import CurationState
    from core.records.proposed_decisions import ProposedDecision
    from core.review.priority import ImpactEstimator
    from core.state.review_items import ReviewItem

_NAMED: Final = 3  # Number of records that a question names.
_APPROVING: Final = {Verb.RELEASE, Verb.PROMOTE}


def proposed_decisions(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Ask about decisions that agents propose, as long as the texts are those that they were proposed for."""
    for one in curation.proposed:
        try:
            command = accepted_command(one)
        except BadInput:  # it was written by hand, or by another version
            continue
        patterns = [scales.patterns[key] for key in one.texts if key in scales.patterns and key in scales.board]
        if {pattern.id: pattern.content_hash for pattern in patterns} != one.texts:
            continue
        by, subjects = visible_line(one.by, 40), [shorten_id(subject) for subject in _subjects(command)]
        suspicions = [mark for pattern in patterns for mark in pattern.suspicions]
        reason = f"proposed by {by} on {format_day(one.at)}"
        reason += f": {visible_line(one.reason, 200)}" if one.reason else ""
        reason += f" (“{visible_line(command.text, 300)}”)" if isinstance(command, commands.Note) else ""
        reason += f"; this text {describe_suspicions(suspicions)}" if suspicions else ""
        more = f" and {len(subjects) - _NAMED:,} more" if len(subjects) > _NAMED else ""
        yield scales.item(
            kinds.PROPOSAL,
            one.pattern_id or one.id,
            question=f"{capitalized(VERBS[_verb(command)].word)} {{}}, as {by} proposes?",
            name=", ".join(subjects[:_NAMED]) + more,
            this="this pattern" if one.pattern_id else plural(len(subjects), "record"),
            reason=reason,
            place="",
            impact=scales.unseen(one.pattern_id, is_withheld=True) if one.pattern_id else 0.0,
            chars=None if one.pattern_id else len(one.reason),
            proposed=one,
        )


def accepted_command(proposed: ProposedDecision) -> Command:
    """Return the command with which a person accepts the proposal of an agent.

    The agent's reason for an approval is left out: it must not stand for that of the person, who has read the text.
    Raises BadInput if the proposal is invalid or its command is about something else than it says.
    """
    command = decode_command(proposed.command)
    if _verb(command) != proposed.verb:
        raise BadInput("the proposed command is about another decision")
    if isinstance(command, commands.Bulk):
        command = replace(command, commands=tuple(map(_without_approval, command.commands)))
    elif isinstance(command, commands.PatternCommand):
        command = _without_approval(command)
    is_about_patterns = isinstance(command, commands.Bulk | commands.PatternCommand | commands.Merge)
    if is_about_patterns and not set(_subjects(command)) == set(proposed.subjects) == set(proposed.texts):
        raise BadInput("the proposed command is about other patterns")
    return replace(command, question=proposed.question)


def _without_approval(command: PatternCommand) -> PatternCommand:
    return replace(command, reason="") if command.verb in _APPROVING else command


def _verb(command: Command) -> Verb:
    if not isinstance(command, commands.Bulk):
        return command.verb
    verbs = {one.verb for one in command.commands}
    if len(verbs) != 1:
        raise BadInput("the proposed command has no single verb")
    return verbs.pop()


def _subjects(command: Command) -> tuple[str, ...]:
    """Return what a command is about, for a person."""
    match command:
        case commands.Bulk():
            return tuple(one.pattern_id for one in command.commands)
        case commands.PatternCommand() | commands.Restore():
            return (command.pattern_id,)
        case commands.Merge():
            return command.target_id, command.other_id
        case commands.JudgeReports():
            return (command.source,)
        case commands.SnoozeQuestion() | commands.Dismiss():
            return (command.key,)
        case commands.Undo():
            return (f"the decision {command.decision_id}",)
    return ("what the policy selects",)
