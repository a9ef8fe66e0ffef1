"""Findings of one kind that occur often, as one finding with a count and examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from core.base.text import visible_line
from core.records.findings import Finding

MOST_ALIKE: Final = 5
"""Findings of one kind that are listed one by one; more of them become one with a count."""
_EXAMPLES: Final = 3
_PLACES: Final = re.compile(r"(?<=/)\d+(?=/|$)|(?<=line )\d+")
_VALUES: Final = re.compile(r"'[^']*'|\d+")
_SHOWN: Final = 80
"""Longest example, in characters."""


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
    """As `kind_in_file`, for places inside files of one name; what concerns a whole file stays as it is."""
    if not finding.pointer.startswith("/"):
        return finding
    return kind_in_file(finding), finding.file.rpartition("/")[2]


def _condensed(alike: Sequence[Finding]) -> Finding:
    first, *others = alike
    count = sum(finding.count for finding in alike)
    same_file = all(finding.file == first.file for finding in others)
    places = [finding.pointer if same_file else finding.file for finding in others[:_EXAMPLES]]
    examples = ", ".join(visible_line(place, _SHOWN) for place in places)
    message = f"{first.message} (and {count - 1:,} more like it, for example {examples})"
    return Finding(first.file, first.pointer, first.severity, first.code, message, count)
