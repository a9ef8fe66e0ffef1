"""Signature of who decides (docs/curation.md#who-decides), and what it trusts."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from core.agents.agent_table import find_acting_agent
from core.base.errors import RalphdeckError
from core.base.paths import TRUSTED_PATHS, is_in_trusted_path
from core.base.user_settings import find_own_name, own_names
from core.cli.support.output import warn
from core.records.decisions import Author, sign
from core.trust.origins import Origins
from core.trust.projects import find_answer, find_record, save_answer

if TYPE_CHECKING:
    from datetime import datetime

    from core.base.paths import ProjectPaths
    from core.base.settings import Settings


class Signature(NamedTuple):
    """The signature of decisions, and where the name comes from."""

    by: str
    source: str


def find_signature(named: str | None, settings: Settings, *, in_dashboard: bool = False) -> Signature:
    """Return who decides: an agent, a script without a terminal, or the user by name."""
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
    """Return the name chosen for this process, "" if none; evidence may have any."""
    places = (
        (named or "", "--by"),
        (os.environ.get("RALPHDECK_USER", ""), "$RALPHDECK_USER"),
        (settings.curation.actor, "curation.actor"),
    )
    chosen = (Signature(name.strip(), source) for name, source in places if name.strip())
    return next(chosen, Signature("", "the system"))


def is_at_terminal() -> bool:
    """Whether a person reads the messages, and typed the command or sees the output.

    The messages are decisive: agents read what a command prints, so its standard error is a pipe.
    """
    in_, out, messages = (stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return messages and (in_ or out)


def trust_here(paths: ProjectPaths, how: str, now: datetime) -> str:
    """Trust an unanswered project; return what it brings from elsewhere, else "".

    Only warn if the user has declined or revoked the trust, which only an answer to the question changes, or if the
    user's state cannot be written: agents then get nothing.
    """
    answer = find_answer(paths)
    if is_in_trusted_path(paths.project) or (answer is not None and answer.answer == "trusted"):
        return ""
    record = find_record(paths)
    if record is not None and record.answer != "trusted":
        warn(describe_trust(paths))
        return ""
    if has_records(paths) and (agent := find_acting_agent(os.environ)):
        warn(
            f"{agent} cannot decide that agents get what is in this project; in a terminal of your own: ralphdeck trust"
        )
        return ""
    try:
        if not has_records(paths):
            Origins(paths.project).add_patterns(())
            save_answer(paths, how, now)
            return ""
        return _trust_records(paths, how, now)
    except RalphdeckError as error:
        warn(f"the project is not trusted, so agents get nothing from it: {error}")
        return ""


def describe_trust(paths: ProjectPaths) -> str:
    """Return in one sentence whether agents get something from a project, and why."""
    if is_in_trusted_path(paths.project):
        return f"Trusted, because ${TRUSTED_PATHS} names a folder above it"
    answer, record = find_answer(paths), find_record(paths)
    if record is not None and record.answer != "trusted":
        change = f"on {record.since[:10]}: agents get nothing from it. To change that: ralphdeck trust"
        return f"Trust {record.answer} {change}"
    if answer is None and record is not None:
        return "Trusted before, but its key is gone: it is a new clone, or was cleaned or moved. Again: ralphdeck trust"
    if answer is None:
        return "Not trusted: agents get nothing from it. To decide: ralphdeck trust"
    how = "by your answer" if answer.how == "question" else answer.how
    return f"Trusted since {answer.since[:10]} ({how})"


def has_records(paths: ProjectPaths) -> bool:
    """Return whether a project contains more than empty folders of this program."""
    kept = (paths.patterns, paths.curation, paths.tasks, paths.ralph / "debug-memory", paths.ralph / "loops")
    return paths.external.exists() or any(folder.is_dir() and any(folder.iterdir()) for folder in kept)


def _trust_records(paths: ProjectPaths, how: str, now: datetime) -> str:
    from core.project.reader import ProjectReader
    from core.project.trust import find_arrivals, trust
    from core.sources.configuration import Configuration

    settings = Configuration.read(paths).settings
    project = ProjectReader(paths, settings, by="", clock=lambda: now, asks=False)
    project.load()
    arrivals = find_arrivals(project)
    trust(project, how)
    return arrivals.summary if arrivals.patterns or arrivals.decisions else ""
