"""Exceptions; the CLI prints each on one line and exits with its `exit_code`."""

from __future__ import annotations


def install_hint(extra: str) -> str:
    """Return how to install an extra, from the source folder of ralphdeck."""
    return f"in the source folder of ralphdeck, run: pip install '.[{extra}]'"


class RalphdeckError(Exception):
    """Base class; the message names the problem, the place and what to do."""

    exit_code = 1


class ProjectNotFound(RalphdeckError):
    """Found no folder `.aiwg/ralph`."""


class UnknownRecord(RalphdeckError):
    """Found no record with the ID in the project."""


class BadInput(RalphdeckError, ValueError):
    """Got an invalid value from the caller, not from a file; names field and value."""


class Refused(RalphdeckError):
    """A rule forbids the decision; the message gives the reason and the remedy."""


class AlreadyDone(Refused):
    """An earlier decision had the same effect; nothing was written."""


class Proposed(Refused):
    """The decision of an agent waits for a person; only the proposal was written."""

    exit_code = 0


class Conflict(RalphdeckError):
    """A file kept changing while it was being written; nothing was written."""


class StaleDecision(Conflict):
    """The data changed since the user saw it; the user must reload and decide again."""


class DamagedError(RalphdeckError):
    """A cache file contains something that this program version did not write."""


class Unwritable(RalphdeckError):
    """A write failed (disk, lock or permission); no partial file remains."""


class ReadOnly(Unwritable):
    """The program was started in read-only mode."""
