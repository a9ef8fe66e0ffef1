"""Findings: data that is wrong, reported so that a person can go there and fix it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

NOT_IN_SCHEMA: Final = "not-in-schema"
"""Code of a finding for a value that its schema does not allow."""
MISSING: Final = "missing-field"
"""Code of a finding for an object that lacks a required key."""
MOST_ALIKE: Final = 5
"""Findings of one kind that are listed one by one; more of them become one with a count."""
_EXAMPLES: Final = 3
_PLACES: Final = re.compile(r"(?<=/)\d+(?=/|$)|(?<=line )\d+")
_VALUES: Final = re.compile(r"'[^']*'|\d+")


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
        count: How many places it stands for; `file` and `pointer` are the first one.
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


def condense(findings: Iterable[Finding], kind: Callable[[Finding], Hashable]) -> tuple[Finding, ...]:
    """The findings, of each kind that occurs often only the first, with a count and examples of the others.

    Args:
        findings: In the order of their places.
        kind: The same for findings that differ in nothing but the place and the value.
    """
    groups: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(kind(finding), []).append(finding)
    found: list[Finding] = []
    for alike in groups.values():
        found += alike if len(alike) <= MOST_ALIKE else [_condensed(alike)]
    return tuple(found)


def kind_in_file(finding: Finding) -> Hashable:
    """Findings of one file are alike if only the index or line of the record, and the value, differ."""
    place = _PLACES.sub("*", finding.pointer)
    return finding.code, finding.severity, place, _VALUES.sub("*", finding.message)


def kind_across_files(finding: Finding) -> Hashable:
    """As `kind_in_file`, for what schemas do not allow in files of one name; all others stay as they are."""
    if finding.code not in (NOT_IN_SCHEMA, MISSING):
        return finding
    return kind_in_file(finding), finding.file.rpartition("/")[2]


def _condensed(alike: Sequence[Finding]) -> Finding:
    first, *others = alike
    count = sum(finding.count for finding in alike)
    same_file = all(finding.file == first.file for finding in others)
    places = [finding.pointer if same_file else finding.file for finding in others[:_EXAMPLES]]
    message = f"{first.message} (and {count - 1:,} more like it, for example {', '.join(places)})"
    return Finding(first.file, first.pointer, first.severity, first.code, message, count)
