"""Help as text: the keys of the focused widget first, then the rest, filtered by a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from textual.content import Content

from core.base.text import visible_line
from tui.present.document import hanging, heading

KEY_CELLS: Final = 10
NAME_CELLS: Final = 14
GAP: Final = 2
"""Cells before the keys."""


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One key.

    Attributes:
        keys: As shown, separated by spaces.
        name: Name of the action in the keymap file; "" if it has none.
        text: What it does.
        now: What it would do to the selected record; may be untrusted.
        against: Why it is disabled; may be untrusted.
    """

    keys: str
    name: str
    text: str
    now: str = ""
    against: str = ""

    def fits(self, words: Sequence[str]) -> bool:
        """Whether it contains all words, in lower case."""
        text = f"{self.keys}\n{self.name}\n{self.text}\n{self.now}\n{self.against}".lower()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class Section:
    """Keys below a heading."""

    title: str
    lines: tuple[HelpLine, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """The content of the help at one moment."""

    title: str
    about: str
    sections: tuple[Section, ...]


def help_lines(topic: Topic, search: str, width: int) -> list[Content]:
    """Return the help, wrapped to `width` cells.

    Args:
        search: Words that must all occur; a line with this key comes first.
    """
    words = search.lower().split()
    if not words:
        lines = list(chain.from_iterable(_section(section, width) for section in topic.sections))[1:]
        about = (
            [*heading(topic.title), *hanging(Content(" " * GAP), Content(topic.about), width)] if topic.about else []
        )
        return [*lines, *about]
    every = [line for section in topic.sections for line in section.lines]
    exact = [line for line in every if search.strip() in line.keys.split()]
    found = [*exact, *(line for line in every if line not in exact and line.fits(words))]
    if not found:
        return [Content.styled(f"No help contains {visible_line(search, 60)!r}", "$quiet")]
    return list(chain.from_iterable(_line(line, width) for line in found))


def _section(section: Section, width: int) -> Iterable[Content]:
    if not section.lines:
        return
    yield from heading(visible_line(section.title, max(width - len(section.note) - 4, 20)), section.note)
    for line in section.lines:
        yield from _line(line, width)


def _line(line: HelpLine, width: int) -> Iterable[Content]:
    quiet = "$quiet" if line.against else ""
    label = Content.assemble(
        " " * GAP,
        (f"{line.keys:<{KEY_CELLS}} ", "$quiet" if line.against else "$accent bold"),
        (f"{line.name:<{NAME_CELLS}} ", "$quiet"),
    )
    yield from hanging(label, Content.styled(line.text, quiet), width)
    below = Content(" " * label.cell_length)
    if line.against:
        yield from hanging(below, Content.styled(f"not now: {visible_line(line.against, 300)}", "$warning"), width)
    elif line.now:
        yield from hanging(below, Content.styled(f"now: {visible_line(line.now, 200)}", "$secondary"), width)
