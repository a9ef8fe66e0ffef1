"""Who decides in this process, and with which signature (docs/curation.md#who-decides)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from core.agents.agent_table import find_acting_agent
from core.base.user_settings import find_own_name, own_names
from core.records.decisions import Author, sign

if TYPE_CHECKING:
    from core.base.settings import Settings


class Signature(NamedTuple):
    """The signature of decisions, and where the name comes from."""

    by: str
    source: str


def find_signature(named: str | None, settings: Settings, *, in_dashboard: bool = False) -> Signature:
    """Return who decides: an agent, a script without a terminal, or the user, `named` or with the default name."""
    if agent := find_acting_agent(os.environ):
        return Signature(sign(Author.AGENT, agent), "the agent that runs this command")
    author = Author.PERSON if in_dashboard or is_at_terminal() else Author.SCRIPT
    name, source = find_user_name(named, settings)
    return Signature(sign(author, name), source)


def find_user_name(named: str | None, settings: Settings) -> Signature:
    """Return the user's name, also where a script or an agent decides.

    A name that is not the user's own is put behind the login name, as in `uma as ada`, and so not taken for a person.
    """
    names = own_names()
    chosen, source = find_reporter(named, settings)
    if not chosen:
        return Signature(names[0], source)
    return Signature(find_own_name(chosen, names) or f"{names[0]} as {chosen}", source)


def find_reporter(named: str | None, settings: Settings) -> Signature:
    """Return the name that was chosen for this process, "" if none was; evidence may have any name."""
    places = (
        (named or "", "--by"),
        (os.environ.get("RALPHDECK_USER", ""), "$RALPHDECK_USER"),
        (settings.curation.actor, "curation.actor"),
    )
    chosen = (Signature(name.strip(), source) for name, source in places if name.strip())
    return next(chosen, Signature("", "the system"))


def is_at_terminal() -> bool:
    """Whether a person can read the messages of this process, and has typed its command or sees its output.

    The messages are decisive: agents read what a command prints, so its standard error is a pipe.
    """
    in_, out, messages = (stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return messages and (in_ or out)
