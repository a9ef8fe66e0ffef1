"""Questions about decisions that agents propose; docs/curation.md#who-decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.formatting import format_day, shorten_id
from core.base.scanning.verdict import describe_suspicions
from core.base.settings import PruningSettings
from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.commands import PatternCommand
from core.decisions.proposals import decode_command
from core.decisions.rules import why_refused
from core.decisions.undo import describe_act
from core.index.review_items import PROPOSAL
from core.questions.answer import Answer, dismissal, yes
from core.records.decisions import REJECT, VERBS, Verb

if TYPE_CHECKING:
    from core.decisions.commands import Command
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.asking import Asker
    from core.records.decisions import Decision, ProposedDecision

_NAMED: Final = 3  # Number of records that a question names.
_APPROVING: Final = {Verb.RELEASE, Verb.PROMOTE}


def ask_proposals(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about decisions that agents propose, while their texts are unchanged."""
    for decision in asker.curation.proposed:
        try:
            command = accepted_command(decision)
        except BadInput:  # it was written by hand, or by another version
            continue
        patterns = [asker.patterns[key] for key in decision.texts if key in asker.patterns and key in asker.board]
        if {pattern.id: pattern.content_hash for pattern in patterns} != decision.texts:
            continue
        by = visible_line(decision.by, 40)
        name, this = _names(command, decision, asker.records.decisions)
        suspicions = [mark for pattern in patterns for mark in pattern.suspicions]
        reason = f"proposed by {by} on {format_day(decision.at)}"
        reason += f": {visible_line(decision.reason, 200)}" if decision.reason else ""
        reason += f" (“{visible_line(command.text, 300)}”)" if isinstance(command, commands.Note) else ""
        reason += f"; this text {describe_suspicions(suspicions)}" if suspicions else ""
        yield asker.item(
            PROPOSAL,
            decision.pattern_id or decision.id,
            question=f"{by} proposes a note on {{}}. Add it?"
            if isinstance(command, commands.Note)
            else f"{by} proposes to {VERBS[_verb(command)].word} {{}}. Do you agree?",
            name=name,
            this=this,
            reason=reason,
            place="",
            impact=asker.unjudged_impact(decision.pattern_id, is_withheld=True) if decision.pattern_id else 0.0,
            chars=None if decision.pattern_id else len(decision.reason),
            proposed=decision,
        )


def _names(command: Command, proposed: ProposedDecision, decisions: Sequence[Decision]) -> tuple[str, str]:
    """Return what a command is about, for a list of questions and for its own page."""
    if isinstance(command, commands.Undo):
        name = _undone_text(command, decisions)
        return name, name
    subjects = [shorten_id(subject) for subject in _subjects(command)]
    more = f" and {len(subjects) - _NAMED:,} more" if len(subjects) > _NAMED else ""
    this = "this lesson" if proposed.pattern_id else plural(len(subjects), "record")
    return ", ".join(subjects[:_NAMED]) + more, this


def _undone_text(command: commands.Undo, decisions: Sequence[Decision]) -> str:
    """Return what an undo is about: `'promote X' by ana`, or an ID not in the log."""
    undone = [one for one in decisions if command.decision_id in (one.id, one.group)]
    if not undone:
        return f"the decision {shorten_id(command.decision_id)}"
    return f"'{describe_act(undone)}' by {visible_line(undone[0].by, 40)}"


def describe_proposal(proposed: ProposedDecision, decisions: Sequence[Decision]) -> Iterator[tuple[str, str]]:
    """Yield what a proposal would do, as titles and texts; `decisions` are the log.

    Raises `BadInput` if the proposal is invalid.
    """
    command = accepted_command(proposed)
    match command:
        case commands.Undo():
            yield "About", _undone_text(command, decisions)
        case commands.Merge():
            yield "Remains", command.target_id
            yield "Merged into it", command.other_id
        case commands.Dismiss():
            yield "Question", command.about or command.key
            yield "Effect", f"{command.summary}; not asked again"
        case commands.SnoozeQuestion():
            yield "Question", command.about or command.key
            ends = [format_day(command.until)] if command.until is not None else []
            ends += [f"after {plural(command.more.count, 'further use')}"] if command.more is not None else []
            yield "Asked again", " or ".join(ends)
        case commands.PrunePatterns(policy=PruningSettings() as policy):
            least = f"{policy.min_success_rate:.0%} in {plural(policy.min_usage_count, 'use')}"
            yield "Archived", f"patterns with a success rate below {least}, or unused for {policy.max_age_days:,} days"
        case _:
            yield "About", ", ".join(_subjects(command))
    yield "Reason", proposed.reason or "none was given"


def accepted_command(proposed: ProposedDecision) -> Command:
    """Return the command with which a person accepts the proposal of an agent.

    The agent's reason for an approval is left out: it must not replace that of the person, who has read the text.
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
    return ("what the policy selects",)


def answer_proposal(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which makes the decision, and no, which rejects the proposal."""
    proposed = item.proposed
    assert proposed is not None
    command, word = accepted_command(proposed), VERBS[Verb(proposed.verb)].word
    needs_reason, why_not = False, ""
    if isinstance(command, PatternCommand):
        is_approval = command.verb in (Verb.RELEASE, Verb.PROMOTE)
        needs_reason = is_approval and state.assessment(item.subject).blocked
        why_not = why_refused(command, state)
    yield yes(
        word, f"{VERBS[Verb(proposed.verb)].past} in your name", command, needs_reason=needs_reason, why_not=why_not
    )
    yield dismissal(item, "reject", REJECT.word, f"{REJECT.past} {item.about}")
