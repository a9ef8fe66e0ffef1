"""Contradicting or repeated instructions for agents: find them, ask, answer.

See docs/instructions.md#pairs.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.base.polarity import find_prohibition
from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index.review_items import CONFLICT
from core.questions.answer import Answer, no
from core.questions.impact import UNSEEN_USES, WASTED_USE
from core.records.decisions import CHOOSE, FINE, instruction_question_id
from core.records.findings import Finding, Severity
from core.records.instructions import InstructionPair, Loading, PlacedInstruction, Relation
from core.records.patterns import Pattern, PatternType
from core.records.reflections import LESSON_ID
from core.retrieval.instruction_clauses import Area, ParsedInstruction, find_areas, have_common_area, parse_instruction
from core.retrieval.instructions import CLOSE, compare_instructions
from core.sources.adapters.agent_files import agent_title

if TYPE_CHECKING:
    from datetime import datetime

    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scoreboard import Scoreboard
    from core.questions.asking import Asker
    from core.records.decisions import CurationState
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
    """Pairs found, and a finding if some with common words were not compared."""

    pairs: tuple[InstructionPair, ...]
    findings: tuple[Finding, ...] = ()


def collect_instructions(snapshot: Snapshot, board: Scoreboard) -> Iterator[PlacedInstruction]:
    """Yield the instructions of agents' files, memories and injectable patterns."""
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
    """Return the compared instructions by their texts; {} if that is switched off."""
    if not view.settings.sources.instructions:
        return {}
    return {one.text: one for one in islice(collect_instructions(view.snapshot, view.board), MAX_INSTRUCTIONS)}


def find_view_pairs_in_steps(view: ProjectState) -> Steps[FoundPairs]:
    """Compare all instructions of a project by words, and by vectors if available."""
    placed = list(islice(collect_instructions(view.snapshot, view.board), MAX_INSTRUCTIONS))
    yield
    return (yield from find_pairs_in_steps(placed, view.instruction_embeddings))


def place_instructions(file: InstructionFile) -> Iterator[PlacedInstruction]:
    """Yield the instructions of a file with their place."""
    for statement in file.statements:
        yield PlacedInstruction(
            text=statement.text,
            id=file.id,
            file=file.id,
            lines=statement.lines,
            agents=file.agents,
            loading=file.loading,
            scope=file.scope,
            section=statement.section,
            is_whole=statement.is_whole,
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
    """Compare instructions with common words; contradictions first, then most alike.

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
    pairs: list[InstructionPair] = []
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
                pairs.append(pair)
        yield
    message = f"{limited:,} instructions were compared with the {most:,} most similar ones only"
    findings = (Finding("", "", Severity.WARNING, "too-many", message),) if limited else ()
    return FoundPairs(tuple(_with_questions(sorted(pairs, key=_pair_order))), findings)


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
    """Compare two instructions, also by their areas and the files they are for."""
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
    # Rules for different files have to repeat each other; what repeats a rule for all files is superfluous.
    is_for_all = not one.placed.scope or not other.placed.scope
    if relation is Relation.REPEATS and not is_for_all and not _have_same_scope(one.placed, other.placed):
        return None
    return InstructionPair(
        relation=relation,
        one=one.placed,
        other=other.placed,
        similarity=round(min(similarity, 1.0), 2),
        cause=cause,
    )


def _have_same_scope(one: PlacedInstruction, other: PlacedInstruction) -> bool:
    """Return whether two scopes share a glob; a narrower one is only an exception."""
    return one.scope == other.scope or not set(one.scope).isdisjoint(other.scope)


def _areas_of(instruction: PlacedInstruction) -> frozenset[Area]:
    """Return the areas of a text, and those that only its section and files name."""
    endings = (_ENDINGS.get(glob.rpartition(".")[2].strip("}"), "") for glob in instruction.scope)
    areas = find_areas(instruction.text)
    kinds = {kind for kind, _ in areas}
    return areas | {area for area in find_areas(f"{instruction.section} {' '.join(endings)}") if area[0] not in kinds}


def _pair_order(pair: InstructionPair) -> tuple[bool, bool, float, str, str]:
    """Return the sort key: contradictions, then what an agent gets at each start."""
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


MOST_QUESTIONS: Final = 20  # Maximum number of questions at a time, the worst first.
_MOST_LINES: Final = 20  # More repeated lines make no difference.


def find_conflicts(view: ProjectState) -> Steps[tuple[InstructionPair, ...]]:
    """Find the pairs to ask about, worst first; one contradiction per instruction."""
    if not view.settings.sources.instructions:
        return ()
    pairs = (yield from find_view_pairs_in_steps(view)).pairs
    asked: list[InstructionPair] = []
    questions = dict[str, None]()
    used = set[tuple[str, str]]()
    for pair in pairs:
        keys = {(one.id, one.text) for one in pair.both}
        if not _is_asked(pair, view.snapshot.curation, view.now) or (
            pair.relation is Relation.CONTRADICTS and keys & used
        ):
            continue
        if pair.question in questions or len(questions) < MOST_QUESTIONS:
            questions[pair.question] = None
            asked.append(pair)
            used |= keys if pair.relation is Relation.CONTRADICTS else set()
    order = {question: place for place, question in enumerate(questions)}
    return tuple(sorted(asked, key=lambda pair: order[pair.question]))


def _is_asked(pair: InstructionPair, curation: CurationState, now: datetime) -> bool:
    """Return whether to ask; other kinds cover pairs of lessons or similar patterns."""
    are_lessons = all(one.pattern_id or one.id.startswith(LESSON_ID) for one in pair.both)
    are_patterns = all(one.pattern_id for one in pair.both)
    if are_lessons and not (are_patterns and pair.relation is Relation.CONTRADICTS):
        return False
    if pair.relation is Relation.REPEATS and not pair.shares_agent:
        return False
    verdict = curation.inversions.get(pair.question)
    return not _is_answered(pair, curation.dismissed) and (verdict is None or not verdict.is_snoozed(now, 0))


def _is_answered(pair: InstructionPair, answered: Container[str]) -> bool:
    return pair.question in answered or pair.find_chosen(answered) is not None


def ask_conflicts(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about each contradiction, and about all repeats of two files at once."""
    answered = asker.curation.dismissed  # some answers were given since the pairs were found
    for _, group in groupby(asker.found.pairs, attrgetter("question")):
        pairs = tuple(group)
        first = pairs[0]
        if _is_answered(first, answered):
            continue
        one, other = (visible_line(each.place, 60) for each in first.both)
        loaded = sum(each.loading is Loading.START for each in first.both)
        if first.relation is Relation.CONTRADICTS:
            question, places = f"{{}} contradict. {_name_choice(first, is_line=True)}", _name_places(pairs)
            texts = " and ".join(f"“{visible_line(each.text, 50)}”" for each in first.both)
            reason, impact = f"{texts}: {one} contradicts {other}", asker.new_text_impact(UNSEEN_USES * (1 + loaded))
        else:
            question, places = f"{{}} say the same. {_name_choice(first, is_line=False)}", _name_places(pairs)
            reason, impact = f"{one} repeats {other}", WASTED_USE * min(len(pairs), _MOST_LINES) / _MOST_LINES
        yield asker.item(
            CONFLICT,
            first.id,
            question=question,
            name=places,
            this=places,
            reason=reason,
            place="one agent gets both" if first.shares_agent else "different agents get them",
            impact=impact,
            chars=sum(len(each.text) for pair in pairs[:_MOST_LINES] for each in pair.both),
            pairs=pairs,
        )


def _name_places(pairs: Sequence[InstructionPair]) -> str:
    """Name the places of a question: `CLAUDE.md:4 and AGENTS.md:9`, or the number."""
    first = pairs[0]
    one, other = (_name_place(each, is_line=len(pairs) == 1) for each in first.both)
    return f"{one} and {other}" if len(pairs) == 1 else f"{plural(len(pairs), 'instruction')} of {one} and {other}"


def _name_choice(pair: InstructionPair, *, is_line: bool) -> str:
    """Return what the answer yes does, as a question."""
    kept, removed = choose_kept(pair)
    if kept.pattern_id and removed.pattern_id:
        return "Keep the one with more successes?"
    return "Drop the lesson?" if removed.pattern_id else f"Keep {_name_place(kept, is_line=is_line)}?"


def _name_place(instruction: PlacedInstruction, *, is_line: bool = True) -> str:
    if instruction.pattern_id:
        return "a lesson"
    return visible_line(instruction.place if is_line else instruction.file, 60)


def mark_fine(pair: InstructionPair, reason: str = "") -> commands.Dismiss:
    """Make the command that marks a pair as fine, until one of its texts changes."""
    about = f"the instructions in {visible_line(' and '.join(one.place for one in pair.both), 160)}"
    return commands.Dismiss(key=pair.question, summary=f"{FINE.past}: {about}", about=about, reason=reason)


def answer_conflict(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, "keep the other one", and no, which means that both are fine."""
    pair, is_one = item.pairs[0], len(item.pairs) == 1
    kept, removed = choose_kept(pair)
    if kept.pattern_id and _successes(kept.id, state) < _successes(removed.id, state):
        kept, removed = removed, kept
    yield _choose("accept", pair, kept, removed, state, is_one=is_one)
    yield no("both are fine", "not asked again unless a text changes", mark_fine(pair), matters=False)
    yield _choose("rewrite", pair, removed, kept, state, is_one=is_one)


def _choose(
    action: str,
    pair: InstructionPair,
    kept: PlacedInstruction,
    removed: PlacedInstruction,
    state: ProjectState,
    *,
    is_one: bool,
) -> Answer:
    """Answer that `kept` is right: deprecate the lesson, or a person edits the file."""
    name, other = (_name_place(one, is_line=is_one) for one in (kept, removed))
    label = "drop the lesson" if removed.pattern_id and not kept.pattern_id else f"keep {name}"
    if removed.pattern_id:
        deprecate = commands.Deprecate(removed.pattern_id, reason=f"{pair.relation} {visible_line(kept.place, 120)}")
        lesson, place = visible_line(removed.pattern_id, 80), visible_line(kept.place, 80)
        effect = f"no agent gets {lesson} until reset; {place} stays"
        return Answer(action, label, effect, deprecate, why_not=why_refused(deprecate, state))
    about = f"{name} over {other}"
    choose = commands.Dismiss(key=pair.answer_for(kept), summary=f"{CHOOSE.past} {about}", about=about)
    effect = f"remove {other} yourself, as the diff shows; `ralphdeck review --conflicts` lists it until you do"
    return Answer(action, label, effect, choose, matters=False)


def _successes(pattern_id: str, state: ProjectState) -> int:
    return state.board.successes.item(state.board.row(pattern_id)) if pattern_id in state.board else 0
