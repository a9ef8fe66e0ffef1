"""Who decided: a person, a script or an agent, as the signature of a decision shows (docs/curation.md#who-decides)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

AGENT: Final = "agent:"  # start of the signature of an agent's command
CLIENT: Final = "mcp:"  # start of the signature of a client of the MCP server
_SCRIPT: Final = " (script)"  # end of the signature of a process without a terminal
_UNATTENDED: Final = " (unattended)"  # end of the signature of an extraction when work ended


class Author(StrEnum):
    """What made a decision."""

    PERSON = "person"
    SCRIPT = "script"
    AGENT = "agent"


def sign(author: Author, name: str) -> str:
    """Return the signature of an author: `ada`, `ada (script)` or `agent:claude`."""
    if author is Author.AGENT:
        return f"{AGENT}{name}"
    return f"{name}{_SCRIPT}" if author is Author.SCRIPT else name


def sign_unattended(by: str) -> str:
    """Return the signature of a decision that a program makes by itself for the author `by`."""
    return f"{by}{_UNATTENDED}"


def is_signed_unattended(by: str) -> bool:
    """Return whether a program made a decision with this signature by itself."""
    return by.endswith(_UNATTENDED)


def author_of(by: str) -> Author:
    """Return what made a decision with this signature."""
    if by.startswith((AGENT, CLIENT)):
        return Author.AGENT
    return Author.SCRIPT if by.endswith((_SCRIPT, _UNATTENDED)) else Author.PERSON


def name_of(by: str) -> str:
    """Return the name in a signature: `ada` for `ada (script)`, `claude` for `agent:claude`."""
    return by.removeprefix(AGENT).removeprefix(CLIENT).removesuffix(_UNATTENDED).removesuffix(_SCRIPT)


def is_same_user(by: str, other: str) -> bool:
    """Return whether two signatures are those of one user, by hand or by a script of theirs."""
    is_of_user = all(author_of(one) is not Author.AGENT and not is_signed_unattended(one) for one in (by, other))
    return by == other or (is_of_user and name_of(by) == name_of(other))


def sign_as_member(by: str, member: str) -> str:
    """Return the signature of a decision for the team: the member's name in place of the local one."""
    return member if author_of(by) is Author.PERSON else sign(Author.SCRIPT, member)
