"""The recorded sessions and failures; README.md describes the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

FOLDER: Final = Path(__file__).parent


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of an agent: a text, a command with its result, or a file that is read, edited or written."""

    say: str = ""
    run: str = ""
    exit: int = 0
    output: str = ""
    read: str = ""
    edit: str = ""
    old: str = ""
    new: str = ""
    write: str = ""
    content: str = ""
    error: str = ""  # of an edit that changes nothing


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person would learn from a session."""

    learns: bool
    kind: str = ""  # why nothing is learned
    error_line: str = ""  # part of the first failure that its lesson is about
    must: tuple[str | tuple[str, ...], ...] = ()  # parts of the change that a lesson contains; a tuple is a choice
    language: str | tuple[str, ...] = ""
    error: str = ""
    ideal: str = ""


class Session(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One session of an agent in a small project."""

    name: str
    agent: str
    label: Label
    cause: str = ""  # lessons of the same cause may answer each other's failures
    prompt: str
    files: Mapping[str, str]
    steps: Sequence[Step]
    last: str = ""

    @property
    def first_failure(self) -> Failure | None:
        """Return the first command that failed, None if none did."""
        failed = next((step for step in self.steps if step.run and step.exit), None)
        return Failure(self.name, failed.run, failed.exit, failed.output) if failed else None


class Failure(Struct, frozen=True):
    """A failed command."""

    name: str
    command: str
    exit: int
    output: str


@cache
def read_sessions() -> tuple[Session, ...]:
    """Return all sessions, sorted by name."""
    files = sorted((FOLDER / "sessions").glob("*.yaml"))
    return tuple(msgspec.convert({"name": file.stem, **_read(file)}, Session) for file in files)


@cache
def read_other_failures() -> tuple[Failure, ...]:
    """Return failures of causes from which no session learns."""
    return msgspec.convert(_read(FOLDER / "other_failures.yaml"), tuple[Failure, ...])


def _read(file: Path) -> Any:
    return yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
