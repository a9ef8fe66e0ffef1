"""Merge many similar findings into one with a count and examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from core.base.text import visible_line
from core.records.findings import Finding

MAX_UNGROUPED: Final = 5
"""Maximum similar findings that are listed separately."""
_MAX_EXAMPLES: Final = 3
_MAX_EXAMPLE_CHARS: Final = 80
_PLACES: Final = re.compile(r"(?<=/)\d+(?=/|$)|(?<=line )\d+")
_VALUES: Final = re.compile(r"'[^']*'|\d+")


def condense(findings: Iterable[Finding], kind: Callable[[Finding], Hashable]) -> tuple[Finding, ...]:
    """Replace each group of more than `MAX_UNGROUPED` findings by its first, with a count and examples.

    Args:
        findings: In the order of their places.
        kind: Key of the group; equal for findings that differ only in place and value.
    """
    groups: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(kind(finding), []).append(finding)
    found: list[Finding] = []
    for group in groups.values():
        found += group if len(group) <= MAX_UNGROUPED else [_condensed(group)]
    return tuple(found)


def kind_in_file(finding: Finding) -> Hashable:
    """Group key within one file: ignores indexes, line numbers and values."""
    place = _PLACES.sub("*", finding.pointer)
    return finding.code, finding.severity, place, _VALUES.sub("*", finding.message)


def kind_across_files(finding: Finding) -> Hashable:
    """Group key across files of the same name; a finding about a whole file is its own group."""
    if not finding.pointer.startswith("/"):
        return finding
    return kind_in_file(finding), finding.file.rpartition("/")[2]


def _condensed(group: Sequence[Finding]) -> Finding:
    first, *others = group
    count = sum(finding.count for finding in group)
    is_one_file = all(finding.file == first.file for finding in others)
    places = [finding.pointer if is_one_file else finding.file for finding in others[:_MAX_EXAMPLES]]
    examples = ", ".join(visible_line(place, _MAX_EXAMPLE_CHARS) for place in places)
    message = f"{first.message} (and {count - 1:,} more like it, for example {examples})"
    return Finding(first.file, first.pointer, first.severity, first.code, message, count)
