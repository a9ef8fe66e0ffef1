"""Join the records with one ID to a pattern, and find what does not fit together between patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

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
