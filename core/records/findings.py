"""Findings: defects in files, reported so that a person can fix them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

NOT_IN_SCHEMA: Final = "not-in-schema"
"""Code of the finding for a value that violates its schema."""
MISSING: Final = "missing-field"
"""Code of the finding for an object without a required key."""


class Severity(StrEnum):
    """Severity of a finding: `error` (something could not be used), `warning` (doubtful) or `info`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(Struct, frozen=True, gc=False):
    """One defect in one file.

    Attributes:
        file: Path relative to the project folder, `/` as separator.
        pointer: JSON pointer or `line N` inside the file; empty for the whole file.
        severity: See `Severity`.
        code: Stable kebab-case word, such as `bad-json`, `wrong-type`, `future-time`.
        message: Found and expected value, for people. May quote the file: untrusted.
        count: Number of places; `file` and `pointer` are the first one.
    """

    file: str
    pointer: str
    severity: Severity
    code: str
    message: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        """The stable form for `--json`."""
        return {
            "file": self.file,
            "pointer": self.pointer,
            "severity": self.severity.value,
            "code": self.code,
            "message": self.message,
            "count": self.count,
        }
