"""Contexts as changes of a runner's own files, which a person applies (docs/adapters.md#delivery).

They are in a marked block, so that a later context replaces it, and that it is not read back as lessons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Final

BEGIN: Final = "<!-- BEGIN ralphdeck -->"
END: Final = "<!-- END ralphdeck -->"
_ENTRY: Final = re.compile(r"\d{1,4}\. (.+)")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING: Final = re.compile(r"#{1,6} (.+)")


def context_entries(context: str, section: str = "") -> list[list[str]]:
    """Return the entries of a rendered context: the first line without its number, and the indented lines below.

    With `section`, only those below headings that contain this word.
    """
    entries: list[list[str]] = []
    is_read = not section
    for line in context.splitlines():
        if heading := _HEADING.fullmatch(line):
            is_read = section.casefold() in heading[1].casefold()
        elif is_read and (entry := _ENTRY.fullmatch(line)):
            entries.append([entry[1]])
        elif is_read and entries and line.startswith(" "):
            entries[-1].append(line)
    return entries


def foreign_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is not in a delivered block."""
    lines = text.split("\n")
    last = max((number for number, line in enumerate(lines, 1) if line.strip() == END), default=0)
    is_own = False
    for number, line in enumerate(lines, start=1):
        mark = line.strip()
        if mark == BEGIN:
            is_own = number < last  # a block without its end does not hide the rest of the file
        elif mark == END:
            is_own = False
        elif not is_own:
            yield number, line


def put_block(lines: list[str], place: int, block: Sequence[str]) -> list[str]:
    """Return the lines with a block instead of the delivered one, or at `place` if there is none."""
    marks = [line.strip() for line in lines]
    written = [BEGIN, *block, END]
    if BEGIN in marks and END in marks[marks.index(BEGIN) :]:
        start = marks.index(BEGIN)
        return [*lines[:start], *written, *lines[marks.index(END, start) + 1 :]]
    return [*lines[:place], *written, *lines[place:]]


def file_diff(file: str, before: str | None, after: str) -> str:
    """Return a unified diff of a file, "" if nothing changes; `file` is its path for people, `before` None if new."""
    old, new = _LINE.findall(before or ""), _LINE.findall(after)
    name = "/dev/null" if before is None else f"a/{file}"
    return "".join(_with_line_ends(unified_diff(old, new, name, f"b/{file}")))


def _with_line_ends(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
