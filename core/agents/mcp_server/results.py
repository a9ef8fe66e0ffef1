"""Answers of the tools: data in classes that are output schemas, and texts.

Texts are masked, scanned, escaped, cut, and in blocks (docs/retrieval.md#blocks).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from core.base.formatting import format_percent
from core.base.prompt_text import (
    APPROVED,
    UNREVIEWED,
    Blocks,
    Voice,
    escape_inline,
    render_blocks,
)
from core.base.scanning.verdict import find_combined_harm, find_harm_when_cut, render_if_safe, withhold_combined_harm
from core.index.experiment import is_held_out
from core.records.patterns import PatternType
from core.retrieval.rendering import count_tokens, render_context

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern

Kind = Literal["approach", "anti_pattern", "error_fix", "template"]


@dataclass(frozen=True)
class Result:
    """Answer of a tool; `text` is for the model: some clients give it only the data."""

    text: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class PatternRow:
    """A pattern; `success_rate` is 0 to 1.

    `given` counts injections, `uses` those that were applied, `seen` the loops that found the pattern themselves.
    `voice` is the block of the text that contains it. An anti_pattern succeeds if the avoided approach failed.
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
    """The context for a task; `left_out` counts matching patterns that did not fit."""

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
    """A similar task; `similarity` is 0 to 1, `approach` the newest attempt's plan."""

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
    """What became of a lesson; `id` is the new pattern, `same_as` a known one."""

    id: str | None
    state: Literal["waiting_for_person", "known_already", "refused"]
    same_as: str | None = None
    reason: str | None = None


# Texts

KINDS: Final[dict[PatternType, Kind]] = {
    PatternType.SUCCESS: "approach",
    PatternType.ANTI: "anti_pattern",
    PatternType.ERROR: "error_fix",
    PatternType.TEMPLATE: "template",
}
"""The words of the tools for the types of patterns."""
MAX_TOKENS: Final = 1200  # of a text without a limit of its own
WITHHELD: Final = "(withheld until a person has released it)"
HELD_OUT: Final = "(held out by chance for the task at work)"
_MAX_TITLE: Final = 160


def quote(state: ProjectState, text: str, limit: int = 0, *, avoided: bool = False, happened: bool = False) -> str:
    """Return untrusted text as one line, or a note if harmful; see `render_if_safe`."""
    shown = partial(escape_inline, limit=limit or state.settings.injection.max_field_chars)
    orders = state.settings.scan.holds_other_texts
    return render_if_safe(text, shown, orders=orders, avoided=avoided, happened=happened)


def name(text: str) -> str:
    """Return an ID as one line, for an answer."""
    return escape_inline(text, 200)


def is_withheld(state: ProjectState, pattern: Pattern) -> bool:
    """Return whether no agent may read a pattern now.

    A person has not released it, the scan stops it, or the experiment holds it out.
    """
    if is_held_out(state, pattern):
        return True
    board = state.board
    row = board.row(pattern.id)
    if board.quarantined[row] or board.injectable[row]:
        return bool(board.quarantined[row])
    return any(one.severity.stops for one in board.suspicions(pattern.id))


def pattern_row(state: ProjectState, pattern: Pattern) -> PatternRow:
    """Describe a pattern; the title of a withheld text is withheld too."""
    found = state.assessment(pattern.id)
    title = escape_inline(pattern.title, _MAX_TITLE)
    if is_withheld(state, pattern):
        title = HELD_OUT if is_held_out(state, pattern) else WITHHELD
    return PatternRow(
        id=name(pattern.id),
        kind=KINDS[pattern.type],
        state=found.shown,
        title=title,
        voice=APPROVED if found.approved else UNREVIEWED,
        success_rate=None if found.rate is None else round(found.rate, 2),
        uses=found.uses,
        given=found.given,
        seen=found.seen,
    )


def pattern_text(state: ProjectState, pattern: Pattern) -> str:
    """Return a pattern as a context has it, or a note why it is withheld."""
    found, settings = state.assessment(pattern.id), state.settings.injection
    if is_withheld(state, pattern):
        return HELD_OUT if is_held_out(state, pattern) else WITHHELD
    orders = state.board.stops_orders(pattern.id)
    text = render_context([(pattern, found)], settings)
    harm = find_harm_when_cut(pattern, settings.max_field_chars, orders=orders)
    harm = harm or find_combined_harm(text, (pattern,), orders=orders)
    return f"(withheld: its text {harm})" if harm else text


def describe_row(row: PatternRow) -> str:
    rate = "no result yet" if row.success_rate is None else format_percent(row.success_rate)
    counts = f"given {row.given:,}, applied {row.uses:,}, seen {row.seen:,}"
    return f"- {row.id} ({row.kind}, {row.state}, {rate}; {counts}): {row.title}"


def list_patterns(state: ProjectState, rows: Iterable[PatternRow]) -> Blocks:
    """Return one line for each pattern, approved texts in a block of their own."""
    lines: dict[Voice, list[str]] = {APPROVED: [], UNREVIEWED: []}
    for row in rows:
        lines[row.voice].append(describe_row(row))
    approved = safe_text(state, join_blocks("\n".join(lines[APPROVED])))
    return Blocks(approved, safe_text(state, join_blocks("\n".join(lines[UNREVIEWED])), approved))


def join_blocks(*texts: str) -> str:
    """Join texts of a block by empty lines, with a final line break; "" if none."""
    return "".join(f"{text}\n" for text in ("\n\n".join(text.strip("\n") for text in texts if text),) if text)


def fence(blocks: Blocks, head: str = "") -> str:
    """Return fenced blocks below a trusted `head`, cut to about `MAX_TOKENS`."""
    head = f"{head}\n\n" if head else ""
    room = MAX_TOKENS - count_tokens(head) - count_tokens(Blocks("\n", "\n").fenced())
    approved = fit(blocks.approved, room)
    return head + render_blocks(approved, fit(blocks.unreviewed, room - count_tokens(approved)))


def fit(text: str, max_tokens: int) -> str:
    """Cut a text after a line, to at most about `max_tokens`."""
    if count_tokens(text) <= max_tokens:
        return text
    lines = text.split("\n")
    counts = range(len(lines))
    too_many = bisect_right(counts, max_tokens, lo=1, key=lambda count: count_tokens(_cut(lines, count)))
    return _cut(lines, too_many - 1)


def _cut(lines: Sequence[str], count: int) -> str:
    return "\n".join([*lines[:count], f"({len(lines) - count:,} more lines left out)"]) + "\n"


def safe_text(state: ProjectState, text: str, before: str = "") -> str:
    """Withhold lines that harm only with lines before them, or the text `before`."""
    return withhold_combined_harm(text, before, orders=state.settings.scan.holds_other_texts)
