"""Findings: data that is wrong, reported so that a person can go there and fix it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

NOT_IN_SCHEMA: Final = "not-in-schema"
"""Code of a finding for a value that its schema does not allow."""
MISSING: Final = "missing-field"
"""Code of a finding for an object that lacks a required key."""


class Severity(StrEnum):
    """How bad a finding is: `error` = something could not be used, `warning` = doubtful, `info` = worth knowing."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(Struct, frozen=True, gc=False):
    """One thing that is wrong in one file.

    Attributes:
        file: Path relative to the project folder, `/` as separator.
        pointer: JSON pointer or `line N` inside the file; empty for the whole file.
        severity: See `Severity`.
        code: Stable machine word, kebab-case, e.g. `bad-json`, `wrong-type`, `future-time`.
        message: For a person: what was found and what was expected. May quote the file: untrusted.
        count: Number of places that it reports; `file` and `pointer` are the first one.
    """

    file: str
    pointer: str
    severity: Severity
    code: str
    message: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        """The stable shape that `--json` prints."""
        return {
            "file": self.file,
            "pointer": self.pointer,
            "severity": self.severity.value,
            "code": self.code,
            "message": self.message,
            "count": self.count,
        }
