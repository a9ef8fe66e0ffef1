"""What can go wrong between this machine and the server of a team."""

from __future__ import annotations

from core.base.errors import BadInput, RalphdeckError, Refused, Unwritable


class TeamError(RalphdeckError):
    """Base class; the message names the server or the space, and what to do."""


class Offline(TeamError):
    """The server cannot be reached, is starting, or did not answer in time; try again later."""


class ServerFull(Offline, Unwritable):
    """The server has no space left or accepts no writes; try again later."""


class AccessDenied(TeamError):
    """The server refuses the credentials or the connection; a person must change something."""


class NotMember(AccessDenied):
    """The role is not a member of the space, or the space does not exist."""


class SchemaMismatch(TeamError):
    """The schema in the database is newer or older than the one of this program."""


class LevelTooLow(TeamError, Refused):
    """The level of the member does not allow the call; nothing was written."""


class LimitReached(Offline):
    """The member has sent as much as the space takes from one member in a day; the rest can be sent tomorrow (UTC)."""


class InvalidCall(TeamError, BadInput):
    """The server refused a value; nothing was written."""


class TooLarge(InvalidCall):
    """The space takes no decision of this size; it was not sent."""


class ChainBroken(TeamError):
    """The decisions of the space are not those that its hash chain continues from."""
