"""Instructions of agents' files as statements: list items and sentences with their lines (docs/instructions.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from core.records.instructions import Instruction, InstructionFile
from core.storage.managed_text import find_own_lines

if TYPE_CHECKING:
    from core.adapters.agent_files import AgentFile

MAX_STATEMENTS: Final = 5_000  # statements of all files
_MAX_OF_FILE: Final = 1_000
_MAX_TEXT: Final = 400  # characters of a statement
_MIN_WORDS: Final = 2

_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
_SENTENCE: Final = re.compile(r"(?<=[^.\s][.!?;])\s+(?=[A-Z`\"*])|(?<=[^.\s][.!?][)*\"`])\s+(?=[A-Z`\"*])")
_EMPHASIS: Final = re.compile(r"\*\*|__|(?<![\w*])[*_](?=\w)|(?<=\w)[*_](?![\w*])")
_LINK: Final = re.compile(r"\[([^\]]{1,200})\]\([^)\s]{0,300}\)")
_COMMENT: Final = re.compile(r"<!--.*?-->")


def read_instructions(files: Iterable[AgentFile]) -> tuple[InstructionFile, ...]:
    """Return the instructions of all files, without the text that ralphdeck itself wrote into them."""
    found, left = [], MAX_STATEMENTS
    for file in files:
        statements = tuple(islice(_statements(file), min(left, _MAX_OF_FILE)))
        left -= len(statements)
        if statements:
            found.append(
                InstructionFile(
                    id=file.file, agents=file.agents, loading=file.loading, scope=file.scope, statements=statements
                )
            )
    return tuple(found)


def _statements(file: AgentFile) -> Iterator[Instruction]:
    lines = file.lines[: file.loaded]
    for first, last, text, section in _blocks(lines, file.head):
        sentences = [one for one in map(str.strip, _SENTENCE.split(_plain(text))) if len(one.split()) >= _MIN_WORDS]
        for one in sentences:
            yield Instruction(one[:_MAX_TEXT], (first, last), section, is_whole=len(sentences) == 1)


def _plain(text: str) -> str:
    return _COMMENT.sub("", _EMPHASIS.sub("", _LINK.sub(r"\1", text)))


def _blocks(lines: Sequence[str], head: int) -> Iterator[tuple[int, int, str, str]]:
    """Yield first and last line, text and section of each list item and paragraph; an item has that above it."""
    headings: dict[int, str] = {}
    above: list[tuple[int, str]] = []  # items that end with a colon, by their indent
    block: tuple[int, str] | None = None  # first line and text
    own = find_own_lines(lines)
    is_code = is_comment = False
    for number, line in enumerate((*lines[head:], ""), start=head + 1):
        section = " > ".join(headings.values())
        is_mark = bool(_FENCE.match(line))
        item, heading = _ITEM.match(line), _HEADING.match(line)
        starts = is_mark or is_code or number in own or is_comment or item or heading or not line.strip()
        starts = starts or line[:1] == "|" or line.lstrip().startswith("<!--")
        if block is not None and not starts:
            block = block[0], f"{block[1]} {line.strip()}"
            continue
        if block is not None:
            yield block[0], number - 1, block[1], section
            block = None
        was_comment = is_comment
        is_comment = "-->" not in line and (is_comment or line.lstrip().startswith("<!--"))
        if is_mark:
            is_code = not is_code
        elif is_code or number in own or is_comment or was_comment or not line.strip() or line[:1] == "|":
            continue
        elif heading:
            level = len(heading[1])
            headings = {depth: text for depth, text in headings.items() if depth < level}
            headings[level] = _plain(heading[2])[:80]
            above = []
        elif item:
            indent = len(item[1].expandtabs(4))
            above = [one for one in above if one[0] < indent]
            text = " ".join((*(one for _, one in above), item[2]))
            if item[2].rstrip().endswith(":"):
                above.append((indent, item[2].strip()[:120]))
            else:
                block = number, text
        elif not line.lstrip().startswith("<!--"):
            block = number, line.strip()
