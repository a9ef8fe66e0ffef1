"""Contexts as changes of a runner's own files, which a person applies (docs/adapters.md#delivery).

They are in a marked block, so that a later context replaces it, and that it is not read back as lessons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.context_blocks import APPROVED, FENCE, LABELS, lines_outside_contexts
from core.base.regexes import lazy_regex

BEGIN: Final = "<!-- BEGIN ralphdeck -->"
END: Final = "<!-- END ralphdeck -->"
_ENTRY: Final = lazy_regex(r"\d{1,4}\. (.+)")
_LINE: Final = lazy_regex(r"[^\n]*\n|[^\n]+")
_FENCE: Final = lazy_regex(FENCE)
_HEADING: Final = lazy_regex(r"#{1,6} (.+)")


class ContextBlock(Struct, frozen=True):
    """The entries of one block of a context, and the lines before and after them: the fences and the label.

    An entry is its first line without the number, and the indented lines below.
    """

    head: tuple[str, ...] = ()
    entries: list[list[str]] = []
    end: tuple[str, ...] = ()

    @property
    def is_approved(self) -> bool:
        return LABELS[APPROVED] in self.head


def context_blocks(context: str, section: str = "") -> list[ContextBlock]:
    """Return the blocks of a context that have entries; with `section`, only those below headings with this word."""
    blocks = [ContextBlock()]
    is_read = not section
    for line in context.splitlines():
        last = blocks[-1]
        if _FENCE.fullmatch(line):
            is_end = line.startswith("</")
            blocks.append(replace(blocks.pop(), end=(line,)) if is_end else ContextBlock((line,)))
        elif line in LABELS.values() and not last.entries:
            blocks[-1] = replace(last, head=(*last.head, line, ""))
        elif heading := _HEADING.fullmatch(line):
            is_read = section.casefold() in heading[1].casefold()
        elif is_read and (entry := _ENTRY.fullmatch(line)):
            last.entries.append([entry[1]])
        elif is_read and last.entries and line.startswith(" "):
            last.entries[-1].append(line)
    return [block for block in blocks if block.entries]


def context_bullets(context: str) -> list[str]:
    """Return the entries of a context as bullets, between the fences of their blocks."""
    lines: list[str] = []
    for block in context_blocks(context):
        lines += block.head
        for first, *others in block.entries:
            lines += [f"- {first}", *others]
        lines += block.end
    return lines


def foreign_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is in no delivered block and no context."""
    yield from lines_outside_contexts(_lines_outside_blocks(text))


def _lines_outside_blocks(text: str) -> Iterator[tuple[int, str]]:
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
    """Return the lines with a block instead of the delivered one, or at `place` if there is none.

    A block that differs from the delivered one only in the tokens of its fences is that one.
    """
    marks = [line.strip() for line in lines]
    written = [BEGIN, *block, END]
    if BEGIN in marks and END in marks[marks.index(BEGIN) :]:
        start = marks.index(BEGIN)
        end = marks.index(END, start) + 1
        is_same = _without_fences(lines[start:end]) == _without_fences(written)
        return lines if is_same else [*lines[:start], *written, *lines[end:]]
    return [*lines[:place], *written, *lines[place:]]


def _without_fences(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if not _FENCE.fullmatch(line.strip())]


def file_diff(file: str, before: str | None, after: str) -> str:
    """Return a unified diff of a file, "" if nothing changes; `file` is its path for people, `before` None if new."""
    old, new = _LINE.findall(before or ""), _LINE.findall(after)
    name = "/dev/null" if before is None else f"a/{file}"
    from difflib import unified_diff  # not needed for lists of loops

    return "".join(_with_line_ends(unified_diff(old, new, name, f"b/{file}")))


def _with_line_ends(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
