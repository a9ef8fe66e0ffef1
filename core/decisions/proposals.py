"""Agents' proposals, logged until a person decides; docs/curation.md#who-decides.

A command is stored as plain values (docs/file-formats.md#proposals).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import fields

from core.base.errors import AlreadyDone, BadInput, Proposed, Refused
from core.base.formatting import shorten_id
from core.base.text import plural
from core.decisions import commands, undo
from core.decisions.case import clean, make_id
from core.decisions.commands import Command, PatternCommand
from core.decisions.rules import check_allowed
from core.records.decisions import VERBS, ProposedDecision, Verb
from core.sources.fold import MOST_PROPOSED

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.sources.ledger import Ledger

WAITS: Final = "waits for a person in Review"
_COMMANDS: Final[dict[str, type[Command]]] = {
    "promote": commands.Promote,
    "deprecate": commands.Deprecate,
    "reset": commands.Reset,
    "reject_inversion": commands.RejectInversion,
    "snooze": commands.Snooze,
    "note": commands.Note,
    "quarantine": commands.Quarantine,
    "release": commands.Release,
    "archive": commands.Archive,
    "many": commands.Bulk,
    "discard_reports": commands.DiscardReports,
    "count_reports": commands.CountReports,
    "snooze_question": commands.SnoozeQuestion,
    "dismiss": commands.Dismiss,
    "merge": commands.Merge,
    "prune": commands.PrunePatterns,
    "restore": commands.Restore,
    "undo": commands.Undo,
}
"""Commands that an agent may propose. About inversions, lessons and held reflections Review asks anyway; an import and
a repair have contents of whole files, and what a redo repeats depends on its time."""
_ASKED_ANYWAY: Final = (commands.AcceptInversion, commands.Extract, commands.ApproveReflection, commands.ApproveText)
_NAMES: Final = {kind: name for name, kind in _COMMANDS.items()}
_LEFT_OUT: Final = {"question"}  # Fields that depend on what a person saw.


def encode_command(command: Command) -> dict[str, Any]:
    """Return a command as JSON values; raise `BadInput` if agents cannot propose it."""
    name = _NAMES.get(type(command))
    if name is None:
        where = "in Review" if isinstance(command, _ASKED_ANYWAY) else "with this command"
        raise BadInput(f"an agent can neither decide nor propose that; a person has to decide it, {where}")
    if isinstance(command, commands.Bulk):
        return {"command": name, "reason": command.reason, "commands": [*map(encode_command, command.commands)]}
    values = {field.name: getattr(command, field.name) for field in fields(command) if field.name not in _LEFT_OUT}
    return {"command": name, **msgspec.to_builtins(values)}


def decode_command(values: dict[str, Any]) -> Command:
    """Return the command of `encode_command`; raise `BadInput` if unknown or invalid."""
    kind = _COMMANDS.get(str(values.get("command")))
    if kind is None:
        raise BadInput("the proposed command is unknown to this version")
    try:
        if kind is commands.Bulk:
            inner = [one for one in map(decode_command, values["commands"]) if isinstance(one, PatternCommand)]
            return commands.Bulk(tuple(inner), reason=str(values.get("reason", "")))
        return msgspec.convert({name: value for name, value in values.items() if name != "command"}, kind)
    except (msgspec.ValidationError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadInput("the proposed command is invalid") from None


class _Subject(NamedTuple):
    """What a command is about: verb, subjects of decisions, and hashes of texts."""

    verb: Verb
    ids: tuple[str, ...]
    texts: dict[str, str]


def propose(ledger: Ledger, state: ProjectState, command: Command, *, by: str, now: datetime) -> Proposed:
    """Log the proposal of a command; return the answer to the agent.

    Raises AlreadyDone if the decision is in effect, Refused if a person could not decide that either, if an agent
    cannot propose it, or if too many proposals wait; UnknownRecord and Unwritable.
    """
    reason = command.reason
    if isinstance(command, commands.Bulk):
        reason = command.commands[0].reason
        command = command.commands[0] if len(command.commands) == 1 else command
    try:
        values = encode_command(command)
    except BadInput as error:
        raise Refused(str(error)) from None
    if isinstance(command, commands.Undo):
        chosen = _undone(command, ledger, by)
        values["decision_id"] = ledger.decision(chosen[0]).act
        subject = _Subject(Verb.UNDO, chosen, {})
    else:
        subject = _find_subject(command, values, state)
    about = shorten_id(subject.ids[0]) if len(subject.ids) == 1 else f"{len(subject.ids):,} records"
    shown = f"{VERBS[subject.verb].word} {about}"
    waiting = ledger.state().proposed
    wanted = _without_reasons(values)
    if any(_without_reasons(one.command) == wanted and one.texts == subject.texts for one in waiting):
        return Proposed(f"{shown} was proposed before; it {WAITS}")
    if len(waiting) >= MOST_PROPOSED:
        raise Refused(f"{plural(len(waiting), 'proposal')} wait for a person in Review; no more are taken")
    ledger.propose(
        ProposedDecision(
            id=make_id(now),
            at=now,
            by=by,
            verb=subject.verb.value,
            subjects=subject.ids,
            command=values,
            reason=clean(reason, "reason"),
            texts=subject.texts,
        )
    )
    return Proposed(f"{shown}: proposed; {WAITS}")


def _find_subject(command: Command, values: dict[str, Any], state: ProjectState) -> _Subject:
    """Return a command's subject; drop from `values` what a person could not decide."""
    if isinstance(command, commands.Bulk):
        allowed = _allowed(command.commands, state)
        values["commands"] = [one for one in values["commands"] if one["pattern_id"] in allowed]
        return _Subject(command.commands[0].verb, tuple(allowed), allowed)
    if isinstance(command, commands.PatternCommand):
        texts = _allowed((command,), state)
        return _Subject(command.verb, tuple(texts), texts)
    match command:
        case commands.JudgeReports():
            ids: tuple[str, ...] = (command.source,)
        case commands.SnoozeQuestion() | commands.Dismiss():
            ids = (command.key,)
        case commands.Merge():
            ids = (state.pattern(command.target_id).id, state.pattern(command.other_id).id)
            return _Subject(command.verb, ids, {one: state.pattern(one).content_hash for one in ids})
        case commands.Restore():
            ids = (command.pattern_id,)
        case _:
            ids = ("prune",)
    return _Subject(command.verb, ids, {})


def _allowed(many: Sequence[PatternCommand], state: ProjectState) -> dict[str, str]:
    """Return the hashes of patterns about which a person could decide this, by ID.

    If there are none, raises AlreadyDone if each decision is in effect already, else Refused.
    """
    found: dict[str, str] = {}
    refusal, is_done = "nothing to decide", True
    for command in many:
        pattern = state.pattern(command.pattern_id)
        try:
            check_allowed(command, state)
        except (Refused, BadInput) as error:
            refusal = f"{shorten_id(pattern.id)}: {error}"
            is_done = is_done and isinstance(error, AlreadyDone)
        else:
            found[pattern.id] = pattern.content_hash
    if not found:
        raise (AlreadyDone if is_done and many else Refused)(refusal)
    return found


def _undone(command: commands.Undo, ledger: Ledger, by: str) -> tuple[str, ...]:
    """Return the decisions that an undo would be about."""
    state, decisions = ledger.state(), ledger.decisions()
    if command.decision_id:
        return undo.named_act(command.decision_id, state, decisions)
    chosen = undo.last_act(Verb.UNDO, state, decisions)
    if not command.any_author:
        undo.check_own(ledger.decision(chosen[0]), by)
    return chosen


def _without_reasons(values: dict[str, Any]) -> dict[str, Any]:
    inner = values.get("commands")
    kept = {name: value for name, value in values.items() if name not in ("reason", "commands")}
    return {**kept, "commands": [*map(_without_reasons, inner)] if isinstance(inner, list) else None}
