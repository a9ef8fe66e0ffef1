"""Pairs of instructions that contradict or repeat each other, over all sources (docs/instructions.md#pairs)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.base.negation import find_prohibition
from core.records.decisions import instruction_question_id
from core.records.findings import Finding, Severity
from core.records.instructions import InstructionPair, Loading, PlacedInstruction, Relation
from core.records.patterns import Pattern, PatternType
from core.retrieval.instruction_clauses import Area, ParsedInstruction, find_areas, have_common_area, parse_instruction
from core.retrieval.instructions import CLOSE, compare_instructions
from core.sources.adapters.agent_files import agent_title

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.learning.scoreboard import Scoreboard
    from core.records.instructions import InstructionFile
    from core.records.snapshot import Snapshot
    from core.retrieval.embeddings import Embeddings

MAX_INSTRUCTIONS: Final = 6_000  # instructions that are compared; of more, the first ones
_MAX_COMPARISONS: Final = 80_000  # of two instructions, in all
_MIN_COMPARED: Final = 40  # others that one instruction is compared with, also if there are more comparisons in all
_NUMBER: Final = re.compile(r"\d+")
_MAX_TEXT: Final = 400
_FAR: Final = CLOSE - 0.05  # assumed cosine of two vectors that are not close
_ENDINGS: Final = {"py": "python", "ts": "ts", "tsx": "ts", "js": "js", "jsx": "js", "rs": "rust", "go": "go"}


class Compared(Struct, frozen=True):
    """An instruction, its demands, and what it is about."""

    placed: PlacedInstruction
    parsed: ParsedInstruction
    areas: frozenset[Area]


class FoundPairs(NamedTuple):
    """The pairs that were found, and a finding if not all instructions with common words were compared."""

    pairs: tuple[InstructionPair, ...]
    findings: tuple[Finding, ...] = ()


def collect_instructions(snapshot: Snapshot, board: Scoreboard) -> Iterator[PlacedInstruction]:
    """Yield the instructions of agents' files, of their memories, and of the patterns that agents may get."""
    in_memories = {lesson.file for lesson in snapshot.lessons.values()}
    for file in snapshot.instructions.values():
        if file.id not in in_memories:
            yield from place_instructions(file)
    for lesson in snapshot.lessons.values():
        loading = Loading.START if lesson.loaded else Loading.REQUEST
        yield PlacedInstruction(
            text=lesson.text[:_MAX_TEXT],
            id=lesson.id,
            file=lesson.file,
            lines=(lesson.line, lesson.line),
            agents=(agent_title(lesson.runner),),
            loading=loading,
            is_whole=False,
        )
    for id, pattern in snapshot.patterns.items():
        if id in board and board.injectable[board.row(id)] and (text := _pattern_text(pattern)):
            yield PlacedInstruction(text=text, id=id, file=pattern.file, loading=Loading.REQUEST, pattern_id=id)


def index_instructions(view: ProjectState) -> dict[str, PlacedInstruction]:
    """Return the instructions that are compared, by their texts; {} if that is switched off."""
    if not view.settings.sources.instructions:
        return {}
    return {one.text: one for one in islice(collect_instructions(view.snapshot, view.board), MAX_INSTRUCTIONS)}


def find_view_pairs_in_steps(view: ProjectState) -> Steps[FoundPairs]:
    """Compare all instructions of a project, by words, and by vectors where there are some."""
    placed = list(islice(collect_instructions(view.snapshot, view.board), MAX_INSTRUCTIONS))
    yield
    return (yield from find_pairs_in_steps(placed, view.instruction_embeddings))


def place_instructions(file: InstructionFile) -> Iterator[PlacedInstruction]:
    """Yield the instructions of a file with their place."""
    for one in file.statements:
        yield PlacedInstruction(
            text=one.text,
            id=file.id,
            file=file.id,
            lines=one.lines,
            agents=file.agents,
            loading=file.loading,
            scope=file.scope,
            section=one.section,
            is_whole=one.is_whole,
        )


def _pattern_text(pattern: Pattern) -> str:
    """Return what a pattern demands; a warning begins with what forbids it."""
    text = (pattern.description or pattern.title)[:_MAX_TEXT]
    if pattern.type is PatternType.TEMPLATE:
        return ""
    return text if pattern.type is not PatternType.ANTI or find_prohibition(text) else f"Avoid {text}"


def find_pairs_in_steps(
    placed: Iterable[PlacedInstruction], vectors: Embeddings[PlacedInstruction] | None = None
) -> Steps[FoundPairs]:
    """Compare the instructions with those that have words in common; contradictions first, then the most alike.

    `vectors` add those whose meaning is close. In a large set, each is compared only with the most similar ones.
    """
    compared: list[Compared] = []
    for instruction in placed:
        parsed = parse_instruction(instruction.text)
        if parsed.key:
            compared.append(Compared(instruction, parsed, _areas_of(instruction)))
        yield
    # Sorted, so that sums of the same words are equal to the last digit.
    words = [sorted({*one.parsed.key, *_NUMBER.findall(one.placed.text)}) for one in compared]
    rows: dict[str, list[int]] = defaultdict(list)
    for row, some in enumerate(words):
        for word in some:
            rows[word].append(row)
    rare = {word: math.log(1 + len(compared) / len(found)) for word, found in rows.items()}
    places = {word: np.array(found) for word, found in rows.items()}
    totals = np.array([sum(rare[word] for word in some) for some in words])
    most = max(_MIN_COMPARED, _MAX_COMPARISONS // max(len(compared), 1))
    limited = 0
    near = vectors.find_close([one.placed for one in compared], CLOSE) if vectors is not None else {}
    found: list[InstructionPair] = []
    for row, one in enumerate(compared):
        shared = np.zeros(row)
        for word in words[row]:
            earlier = places[word]
            shared[earlier[: earlier.searchsorted(row)]] += rare[word]
        ranked = np.flatnonzero(shared)
        if len(ranked) > most:
            # Among those that share the same words, those with few other words come first.
            similarity = shared * (1 + shared / (totals[:row] + totals[row] - shared))
            ranked = ranked[np.argsort(-similarity[ranked], kind="stable")[:most]]
            limited += 1
        candidates = set(ranked.tolist())
        closeness = near.get(row, {})
        for other in sorted(candidates.union(other for other in closeness if other < row)):
            far = _FAR if row in near and other in near else None
            if (pair := compare_placed(compared[other], one, closeness.get(other, far))) is not None:
                found.append(pair)
        yield
    message = f"{limited:,} instructions were compared with the {most:,} most similar ones only"
    findings = (Finding("", "", Severity.WARNING, "too-many", message),) if limited else ()
    return FoundPairs(tuple(_with_questions(sorted(found, key=_order))), findings)


def _with_questions(pairs: Sequence[InstructionPair]) -> Iterator[InstructionPair]:
    """Yield the pairs with the IDs of their questions.

    All repeats of two files are one question, and so are their contradictions in one choice, such as npm or pnpm.
    """
    groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for pair in pairs:
        groups[_group_of(pair)] |= {f"{one.id}\n{' '.join(one.text.split())}" for one in pair.both}
    questions = {group: instruction_question_id(texts) for group, texts in groups.items()}
    for pair in pairs:
        yield replace(pair, question=questions[_group_of(pair)])


def _group_of(pair: InstructionPair) -> tuple[str, ...]:
    ids = sorted(one.id for one in pair.both)
    is_one = pair.relation is Relation.REPEATS or bool(pair.cause)
    return (pair.relation, *ids, *((pair.cause,) if is_one else sorted(one.text for one in pair.both)))


def compare_placed(one: Compared, other: Compared, closeness: float | None = None) -> InstructionPair | None:
    """Compare two instructions, also by what they are about and for which files they are."""
    if one.placed.id == other.placed.id and one.placed.lines == other.placed.lines:
        return None
    result = compare_instructions(one.parsed, other.parsed, closeness)
    if result is None:
        return None
    relation, similarity, cause = result
    if not have_common_area(one.areas, other.areas):
        return None
    if relation is Relation.CONTRADICTS and not _have_same_scope(one.placed, other.placed):
        return None
    if relation is Relation.REPEATS and not _can_repeat(one.placed, other.placed):
        return None
    return InstructionPair(
        relation=relation,
        one=one.placed,
        other=other.placed,
        similarity=round(min(similarity, 1.0), 2),
        cause=cause,
    )


def _have_same_scope(one: PlacedInstruction, other: PlacedInstruction) -> bool:
    """Return whether two instructions are for the same files: what is for fewer files is an exception, no conflict."""
    return one.scope == other.scope or not set(one.scope).isdisjoint(other.scope)


def _can_repeat(one: PlacedInstruction, other: PlacedInstruction) -> bool:
    """Return whether one of two instructions is superfluous: rules for different files have to repeat each other."""
    return not one.scope or not other.scope or _have_same_scope(one, other)


def _areas_of(one: PlacedInstruction) -> frozenset[Area]:
    """Return what an instruction is about: what its text does not say, its section and the files it is for do."""
    endings = (_ENDINGS.get(glob.rpartition(".")[2].strip("}"), "") for glob in one.scope)
    areas = find_areas(one.text)
    kinds = {kind for kind, _ in areas}
    return areas | {area for area in find_areas(f"{one.section} {' '.join(endings)}") if area[0] not in kinds}


def _order(pair: InstructionPair) -> tuple[bool, bool, float, str, str]:
    """Return the order of pairs: contradictions, and what one agent gets at each start, first."""
    loaded = sum(one.loading is Loading.START for one in pair.both)
    is_late = not pair.shares_agent
    return pair.relation is Relation.REPEATS, is_late, -loaded - pair.similarity, pair.one.place, pair.other.place


def choose_kept(pair: InstructionPair) -> tuple[PlacedInstruction, PlacedInstruction]:
    """Return which of two instructions to keep, and which to remove.

    What more sessions get stays, then the shorter text. A pattern is removed rather than a line that an agent loads.
    """

    def cost(one: PlacedInstruction) -> tuple[bool, bool, int, str]:
        return bool(one.pattern_id), one.loading is not Loading.START, len(one.text), one.place

    kept, removed = sorted(pair.both, key=cost)
    return kept, removed
