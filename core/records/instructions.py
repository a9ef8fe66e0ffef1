"""Instructions in CLAUDE.md, AGENTS.md, rules and skills (docs/instructions.md)."""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum
from operator import attrgetter

from msgspec import Struct

from core.records.decisions import INSTRUCTIONS_PREFIX, PAIR_ANSWERS


class Loading(StrEnum):
    """When an agent loads a file."""

    START = "start"  # at the start of each session
    PATH = "path"  # when it works on a file of the scope
    REQUEST = "request"  # when the agent or a person asks for it; a skill's description is loaded at the start


class Instruction(Struct, frozen=True, gc=False):
    """One sentence or list item of a file; untrusted.

    `lines` are the number of the first line, from 1, and that of the last one. `section` are the headings above it.
    `is_whole` is whether its lines contain nothing else, so that they can be deleted.
    """

    text: str
    lines: tuple[int, int]
    section: str = ""
    is_whole: bool = True


class PlacedInstruction(Struct, frozen=True, kw_only=True, gc=False):
    """An instruction and its place: an agents' file, an agent's lesson, or a pattern.

    `agents` are the titles of the agents that load it; () for a pattern, which every agent may get. `id` is that of the
    pattern or lesson, else the file.
    """

    text: str
    id: str
    file: str = ""
    lines: tuple[int, int] = (1, 1)
    agents: tuple[str, ...] = ()
    loading: Loading = Loading.START
    scope: tuple[str, ...] = ()
    section: str = ""
    is_whole: bool = True
    pattern_id: str = ""

    @property
    def place(self) -> str:
        """File and line, or the ID of the pattern; untrusted."""
        return self.pattern_id or f"{self.file}:{self.lines[0]}"


class InstructionFile(Struct, frozen=True, kw_only=True, gc=False):
    """A file with agents' instructions; `id`: path as shown, `agents`: their titles.

    `scope` has the globs of the files that it is about; () for all.
    """

    id: str
    agents: tuple[str, ...]
    loading: Loading = Loading.START
    scope: tuple[str, ...] = ()
    statements: tuple[Instruction, ...] = ()


class Relation(StrEnum):
    """How two instructions are related."""

    CONTRADICTS = "contradicts"
    REPEATS = "repeats"


class InstructionPair(Struct, frozen=True, kw_only=True, gc=False):
    """Two instructions that contradict or repeat each other; `similarity` is 0..1.

    `question` is the ID of the question about it; all repeats of two files are one question. Another text, or another
    file, makes another question. `cause` is the choice in which they differ, if any.
    """

    relation: Relation
    one: PlacedInstruction
    other: PlacedInstruction
    similarity: float
    cause: str = ""
    question: str = ""

    @property
    def id(self) -> str:
        """The part of the question's ID that people use."""
        return self.question.removeprefix(INSTRUCTIONS_PREFIX)

    def answer_for(self, right: PlacedInstruction) -> str:
        """Return the ID of the answer that one of the two is right."""
        key = attrgetter("id", "text", "lines")
        return f"{PAIR_ANSWERS[right is not min(self.both, key=key)]} {self.question}"

    def find_chosen(self, answered: Container[str]) -> PlacedInstruction | None:
        """Return the instruction that a person chose, by the IDs `answered`, or None."""
        return next((one for one in self.both if self.answer_for(one) in answered), None)

    @property
    def both(self) -> tuple[PlacedInstruction, PlacedInstruction]:
        return self.one, self.other

    @property
    def shares_agent(self) -> bool:
        """Whether one agent gets both."""
        one, other = self.one.agents, self.other.agents
        return not one or not other or not set(one).isdisjoint(other)
