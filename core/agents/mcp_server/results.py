"""What the tools answer, as data; the server derives the output schemas from these classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from core.base.prompt_text import Voice  # noqa: TC001 (the server reads the annotations)

Kind = Literal["approach", "anti_pattern", "error_fix", "template"]


@dataclass(frozen=True)
class Result:
    """The answer of a tool. `text` is what the model should read: some clients give it only the data."""

    text: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class PatternRow:
    """A pattern. `success_rate` is 0 to 1; of an anti_pattern it is how often the avoided approach failed.

    `given` counts injections, `uses` those that were applied, `seen` the loops that found the pattern themselves.
    `voice` is the block of the text that contains it.
    """

    id: str
    kind: Kind
    state: str
    title: str
    voice: Voice
    success_rate: float | None
    uses: int
    given: int
    seen: int


@dataclass(frozen=True)
class LoopContext(Result):
    """The context for a task; `left_out` counts the matching patterns that did not fit."""

    injection_id: str | None
    patterns: list[PatternRow]
    tokens: int
    left_out: int


@dataclass(frozen=True)
class Fix:
    """A fix of an error: `held` of the `seen` uses with a known result solved it."""

    fix: str
    category: str
    seen: int
    held: int
    origin: str
    match: Literal["message", "error_type", "pattern"]


@dataclass(frozen=True)
class KnownFixes(Result):
    """What solved an error before."""

    known: bool
    fixes: list[Fix]


@dataclass(frozen=True)
class FoundPatterns(Result):
    """The best matches; `total` counts all of them."""

    patterns: list[PatternRow]
    total: int


@dataclass(frozen=True)
class PatternDetails(Result):
    """One pattern: the rules behind its state, and the loops behind its rate."""

    pattern: PatternRow
    reasons: list[str]
    loops: list[str]


@dataclass(frozen=True)
class PastTask:
    """A similar task. `similarity` is 0 to 1; `approach` is the plan of its newest attempt."""

    task: str
    outcome: str
    attempts: int
    approach: str
    learned: list[str]
    similarity: float


@dataclass(frozen=True)
class PastTasks(Result):
    """Similar tasks, the most similar first."""

    tasks: list[PastTask]


@dataclass(frozen=True)
class LoopRow:
    """A loop. `state_source` is inferred if its files do not contain its status."""

    id: str
    source: str
    status: str
    state_source: Literal["reported", "inferred"]
    task: str
    iteration: int | None
    max_iterations: int | None
    started_at: str | None
    last_sign: str | None
    needs_person: bool


@dataclass(frozen=True)
class Loops(Result):
    """Loops, newest first; `running` and `waiting` count all of them."""

    loops: list[LoopRow]
    running: int
    waiting: int


@dataclass(frozen=True)
class HeldMark:
    """A mark that does not count until a person has decided."""

    pattern_id: str
    why: str


@dataclass(frozen=True)
class Report(Result):
    """What was recorded; `score` (0 to 1) is that of the outcome."""

    recorded: bool
    duplicate: bool
    score: float | None
    held: list[HeldMark]


@dataclass(frozen=True)
class Proposal(Result):
    """What became of a lesson; `id` is that of the new pattern, `same_as` that of a known one."""

    id: str | None
    state: Literal["waiting_for_person", "known_already", "refused"]
    same_as: str | None = None
    reason: str | None = None
