"""What decoding a document gives: its value, and the problems with it.

A document is *torn* if its bytes cannot be decoded (empty, cut short, unreadable). A writer is probably busy, so the
caller keeps the last good value and reads the file again (docs/reliability.md#torn-files). All other problems come with
a usable value.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from core.base.text import visible_line
from core.records.findings import Finding, Severity

MAX_DEPTH: Final = 64  # maximum nesting of a document; real files have at most 9 levels
BOM: Final = b"\xef\xbb\xbf"


class Problem(Struct, frozen=True, gc=False):
    """Defect of one document."""

    code: str  # stable kebab-case word, as in `Finding`
    message: str  # for people
    place: str = ""  # JSON pointer, `line N` or `line N, column M`; "" for the whole document
    severity: Severity = Severity.ERROR  # `error` if nothing could be used
    torn: bool = False  # whether the bytes are not a document, so that the last good value stays

    def finding(self, file: str) -> Finding:
        """Return this problem as a finding in `file` (project-relative)."""
        return Finding(file, self.place, self.severity, self.code, self.message)


TOO_DEEP: Final = Problem("too-deep", f"is nested deeper than {MAX_DEPTH} levels; not read")


class Decoded(Struct, frozen=True, gc=False):
    """Decoded document; `value` is usable unless `failed`."""

    value: Any = None
    problems: tuple[Problem, ...] = ()
    failed: bool = False

    @property
    def torn(self) -> bool:
        """Whether the document is torn, so that the last good value should stay."""
        return self.failed and any(problem.torn for problem in self.problems)


class Line(Struct, frozen=True, gc=False):
    """Line of a JSONL file: its number, counted from 1, and its value."""

    number: int
    value: Any


def duplicate_key_message(key: str) -> str:
    """Return the message for a key that occurs twice in one object."""
    return f"key {visible_line(key, 60)!r} occurs twice in one object; the last one counts"


def encoding_problem(name: str) -> Problem:
    """Return the problem that a file is not in UTF-8, but was read."""
    return Problem("bad-encoding", f"is {name}, not UTF-8; it was read anyway", severity=Severity.WARNING)
