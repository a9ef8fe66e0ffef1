"""Findings: defects in files, reported so that a person can fix them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, to_builtins

NOT_IN_SCHEMA: Final = "not-in-schema"
"""Code of the finding for a value that violates its schema."""
MISSING: Final = "missing-field"
"""Code of the finding for an object without a required key."""


class Severity(StrEnum):
    """Severity of a finding: `error` (not usable), `warning` (doubtful) or `info`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(Struct, frozen=True, gc=False):
    """One defect in one project-relative file, with `/` as separator.

    `pointer` is a JSON pointer or `line N`; "" for the whole file. `code` is a stable kebab-case word, such as
    `bad-json`, `wrong-type`, `future-time`. `message` has the found and expected value, for people; it may quote the
    file: untrusted. `count` is the number of places; `file` and `pointer` are the first one.
    """

    file: str
    pointer: str
    severity: Severity
    code: str
    message: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        """The stable form for `--json`."""
        found: dict[str, Any] = to_builtins(self)
        return found
