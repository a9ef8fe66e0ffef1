"""Decision commands as plain values, for proposals in the decision log (docs/file-formats.md#proposals)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import fields

from core.base.errors import BadInput
from core.decisions import commands
from core.decisions.commands import Command, PatternCommand

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
    """Return a command as values of JSON; raise `BadInput` if an agent cannot propose it."""
    name = _NAMES.get(type(command))
    if name is None:
        where = "in Review" if isinstance(command, _ASKED_ANYWAY) else "with this command"
        raise BadInput(f"an agent can neither decide nor propose that; a person has to decide it, {where}")
    if isinstance(command, commands.Bulk):
        return {"command": name, "reason": command.reason, "commands": [*map(encode_command, command.commands)]}
    values = {field.name: getattr(command, field.name) for field in fields(command) if field.name not in _LEFT_OUT}
    return {"command": name, **msgspec.to_builtins(values)}


def decode_command(values: dict[str, Any]) -> Command:
    """Return the command of `encode_command`; raise `BadInput` if it is unknown or invalid."""
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
