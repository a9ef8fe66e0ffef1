"""Findings about several records: groups of similar ones, and what does not fit together between patterns."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from msgspec.structs import replace

from core.base.grouping import group_pairs
from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.patterns import Pattern, PatternCopy


def duplicate_findings(copies: Sequence[Pattern]) -> tuple[Finding, ...]:
    """Return a finding for each registry record whose ID an earlier record has."""
    registered = [copy for copy in copies if not copy.copy_folder]
    if len(registered) < 2:
        return ()
    first, *others = registered
    message = (
        f"the ID '{visible_line(first.id, 80)}' is also at {first.pointer} of {first.file}, which takes precedence"
    )
    return tuple(Finding(copy.file, copy.pointer, Severity.WARNING, "duplicate-id", message) for copy in others)


def references(pattern: Pattern | None) -> set[str]:
    """Return the IDs of the patterns that a pattern refers to."""
    if pattern is None or not (pattern.related or pattern.better_pattern_id):
        return set()  # as most
    return {*pattern.related, pattern.better_pattern_id} - {""}


def dangling_findings(pattern: Pattern, unknown: Iterable[str]) -> tuple[Finding, ...]:
    """Return a finding for each reference of a pattern to an unknown one."""
    messages = (
        f"refers to '{visible_line(target, 80)}', which is not a pattern of this project" for target in sorted(unknown)
    )
    return tuple(
        Finding(pattern.file, pattern.pointer, Severity.INFO, "orphan-reference", message) for message in messages
    )


def precedence(pattern: Pattern) -> tuple[bool, str, list[tuple[int, str]]]:
    """Sort key: the registry before copies, then by file and position."""
    place = [(int(part), "") if part.isdecimal() else (-1, part) for part in pattern.pointer.split("/")]
    return (bool(pattern.copy_folder), pattern.file, place)


def join_copies(copies: Sequence[Pattern]) -> Pattern | None:
    """Join records with one ID: the first in precedence, with the others as `copies`."""
    if len(copies) < 2:
        return copies[0] if copies else None
    first, *others = sorted(copies, key=precedence)
    copies_of_first = []
    for copy in others:
        moved = replace(copy, file=first.file, pointer=first.pointer, copy_folder=first.copy_folder)
        copies_of_first.append(PatternCopy(file=copy.file, pointer=copy.pointer, differs=moved != first))
    return replace(first, copies=tuple(copies_of_first))


MAX_UNGROUPED: Final = 5  # Maximum number of similar findings that are listed separately.
MAX_FINDINGS: Final = 200  # Maximum findings of one file, so that it does not hide those of other files.
_MAX_EXAMPLES: Final = 3
_MAX_EXAMPLE_CHARS: Final = 80
_PLACES: Final = re.compile(r"(?<=/)\d+(?=/|$)|(?<=line )\d+")
_VALUES: Final = re.compile(r"'[^']*'|\d+")


def condense(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Condense the findings of one file, and limit their number.

    A group of more than `MAX_UNGROUPED` similar findings becomes its first one, with a count and examples.
    """
    condensed = _condense_groups((_kind(finding), finding) for finding in findings)
    if len(condensed) <= MAX_FINDINGS:
        return condensed
    message = f"{len(condensed) - MAX_FINDINGS:,} more findings of this file are not listed"
    more = Finding(condensed[0].file, "", Severity.INFO, "more-findings", message)
    return *condensed[:MAX_FINDINGS], more


def condense_files(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Condense the findings of many files: those of files with one name."""
    numbers = count()
    return _condense_groups((_group_of(finding, numbers), finding) for finding in findings)


def _group_of(finding: Finding, numbers: Iterator[int]) -> Hashable:
    """Return the key of a group; findings on whole files are not grouped."""
    if not finding.pointer.startswith("/"):
        return next(numbers)
    return _kind(finding), finding.file.rpartition("/")[2]


def _kind(finding: Finding) -> Hashable:
    """Group key, equal for findings of one file that differ only in index, line number and values."""
    place = _PLACES.sub("*", finding.pointer)
    return finding.code, finding.severity, place, _VALUES.sub("*", finding.message)


def _condense_groups(pairs: Iterable[tuple[Hashable, Finding]]) -> tuple[Finding, ...]:
    """Condense findings with the key of their group."""
    found: list[Finding] = []
    for group in group_pairs(pairs).values():
        found += group if len(group) <= MAX_UNGROUPED else [_condense_group(group)]
    return tuple(found)


def _condense_group(group: Sequence[Finding]) -> Finding:
    first, *others = group
    count = sum(finding.count for finding in group)
    is_one_file = all(finding.file == first.file for finding in others)
    places = [finding.pointer if is_one_file else finding.file for finding in others[:_MAX_EXAMPLES]]
    examples = ", ".join(visible_line(place, _MAX_EXAMPLE_CHARS) for place in places)
    message = f"{first.message} (and {count - 1:,} more like it, for example {examples})"
    return Finding(first.file, first.pointer, first.severity, first.code, message, count)
