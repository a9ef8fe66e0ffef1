"""Findings: defects in files, reported so that a person can fix them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, to_builtins

NOT_IN_SCHEMA: Final = "not-in-schema"  # Code of the finding for a value that violates its schema.
MISSING: Final = "missing-field"  # Code of the finding for an object without a required key.


class Severity(StrEnum):
    """Severity of a finding: `error` (not usable), `warning` (doubtful) or `info`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(Struct, frozen=True, gc=False):
    """A defect in a file.

    `file` is project-relative, with `/` as separator. `pointer` is a JSON pointer or `line N`; "" for the whole file.
    `code` is a stable kebab-case identifier such as `bad-json`, `wrong-type` or `future-time`. `message` contains the
    found and the expected value; it may quote the file, so it is untrusted. `count` is the number of places with this
    defect; `file` and `pointer` locate the first one.
    """

    file: str
    pointer: str
    severity: Severity
    code: str
    message: str
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints, with stable keys."""
        found: dict[str, Any] = to_builtins(self)
        return found
