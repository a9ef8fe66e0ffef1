"""The errors that ralphdeck raises on purpose. The CLI prints each on one line and exits with `exit_code`."""

from __future__ import annotations


class RalphdeckError(Exception):
    """Something could not be done; the message names the place, what was expected and what to do."""

    exit_code = 1


class ProjectNotFound(RalphdeckError):
    """No `.aiwg/ralph` where one was expected."""


class UnknownRecord(RalphdeckError):
    """An id names no record of this project."""


class BadInput(RalphdeckError, ValueError):
    """A value from the caller (not from a file under `.aiwg/`) is not acceptable; names field and value."""


class Refused(RalphdeckError):
    """A rule of curation forbids the decision; the message says which, and what would allow it."""


class AlreadyDone(Refused):
    """What a decision asks for holds already, by an earlier decision; nothing is written."""


class Conflict(RalphdeckError):
    """A file changed again and again while it was being written; nothing was written."""


class StaleDecision(Conflict):
    """Others have decided something since what this decision rests on was read; read again, and decide again."""


class Unwritable(RalphdeckError):
    """The disk, a lock or a permission kept a write from happening; nothing was half written."""


class ReadOnly(Unwritable):
    """Nothing is to be written, as whoever started the program wanted."""
