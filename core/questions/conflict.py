"""Whether instructions for agents that contradict or repeat each other are fine: find them, ask, answer."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from core.base.text import plural, visible_line
from core.decisions import commands
from core.decisions.rules import why_refused
from core.index import review_items as kinds
from core.questions.answer import Answer, no
from core.questions.extraction.instruction_pairs import choose_kept, find_view_pairs_in_steps
from core.questions.impact import UNSEEN_USES, WASTED_USE
from core.records.decisions import CHOOSE, FINE
from core.records.instructions import Loading, Relation
from core.records.lessons import LESSON_ID

if TYPE_CHECKING:
    from datetime import datetime

    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState
    from core.records.instructions import InstructionPair, PlacedInstruction

MOST_QUESTIONS: Final = 20  # Maximum number of questions at a time, the worst first.
_MOST_LINES: Final = 20  # More repeated lines make no difference.


def find_conflicts(view: ProjectState) -> Steps[tuple[InstructionPair, ...]]:
    """Find the pairs to ask about, the worst first; an instruction is in one contradiction at most."""
    if not view.settings.sources.instructions:
        return ()
    pairs = (yield from find_view_pairs_in_steps(view)).pairs
    found: list[InstructionPair] = []
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
            found.append(pair)
            used |= keys if pair.relation is Relation.CONTRADICTS else set()
    order = {question: place for place, question in enumerate(questions)}
    return tuple(sorted(found, key=lambda pair: order[pair.question]))


def _is_asked(pair: InstructionPair, curation: CurationState, now: datetime) -> bool:
    """Return whether a pair is a question of its own: those of lessons and similar patterns are other kinds."""
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


def conflicts(
    scales: ImpactEstimator, found: Sequence[InstructionPair], answered: Container[str]
) -> Iterator[ReviewItem]:
    """Ask about contradictions one by one, and about all repeats of two files at once.

    `answered` has the IDs of answers that were given since the pairs were found.
    """
    for _, group in groupby(found, attrgetter("question")):
        pairs = tuple(group)
        first = pairs[0]
        if _is_answered(first, answered):
            continue
        one, other = (visible_line(each.place, 60) for each in first.both)
        loaded = sum(each.loading is Loading.START for each in first.both)
        if first.relation is Relation.CONTRADICTS:
            question, places = "{} contradict each other. Which one is right?", _name_places(pairs)
            texts = " and ".join(f"“{visible_line(each.text, 50)}”" for each in first.both)
            reason, impact = f"{texts}: {one} contradicts {other}", scales.new(UNSEEN_USES * (1 + loaded))
        else:
            kept, removed = choose_kept(first)
            what = "Drop the lesson?" if removed.pattern_id else f"Keep {visible_line(kept.file, 60)}?"
            question, places = f"{{}} say the same. {what}", _name_places(pairs)
            reason, impact = f"{one} repeats {other}", WASTED_USE * min(len(pairs), _MOST_LINES) / _MOST_LINES
        yield scales.item(
            kinds.CONFLICT,
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
    """Name the places of the pairs of one question: `CLAUDE.md:4 and AGENTS.md:9`, or the number in two files."""
    first = pairs[0]
    one, other = (_name_place(each, is_line=len(pairs) == 1) for each in first.both)
    return f"{one} and {other}" if len(pairs) == 1 else f"{plural(len(pairs), 'instruction')} of {one} and {other}"


def _name_place(one: PlacedInstruction, *, is_line: bool = True) -> str:
    return "a lesson" if one.pattern_id else visible_line(one.place if is_line else one.file, 60)


def mark_fine(pair: InstructionPair, reason: str = "") -> commands.Dismiss:
    """Make the command that marks a pair as fine, until one of its texts changes."""
    about = f"the instructions in {visible_line(' and '.join(one.place for one in pair.both), 160)}"
    return commands.Dismiss(key=pair.question, summary=f"{FINE.past}: {about}", about=about, reason=reason)


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes and "keep the other one", which say which instruction is right, and no: both are fine."""
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
    """Make the answer that one instruction is right: a lesson is deprecated, a file has to be edited by a person."""
    name, other = (_name_place(one, is_line=is_one) for one in (kept, removed))
    label = "drop the lesson" if removed.pattern_id and not kept.pattern_id else f"keep {name}"
    if removed.pattern_id:
        deprecate = commands.Deprecate(removed.pattern_id, reason=f"{pair.relation} {visible_line(kept.place, 120)}")
        lesson, place = visible_line(removed.pattern_id, 80), visible_line(kept.place, 80)
        effect = f"no agent gets {lesson} until reset; {place} stays"
        return Answer(action, label, effect, deprecate, why_not=why_refused(deprecate, state))
    about = f"{name} over {other}"
    choose = commands.Dismiss(key=pair.answer_for(kept), summary=f"{CHOOSE.past} {about}", about=about)
    effect = f"remove {other} yourself, as the diff shows; `ralphdeck lesson conflicts` lists it until you do"
    return Answer(action, label, effect, choose, matters=False)


def _successes(pattern_id: str, state: ProjectState) -> int:
    return state.board.successes.item(state.board.row(pattern_id)) if pattern_id in state.board else 0
