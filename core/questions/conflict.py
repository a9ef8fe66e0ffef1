"""Whether instructions for agents that contradict or repeat each other are fine: find them, ask, answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from core.base.text import plural, visible_line
from core.curation import commands
from core.curation.rules import why_refused
from core.extraction.instruction_pairs import choose_kept, find_view_pairs_in_steps
from core.questions.answer import NOT_YET_DAYS, Answer, no, snooze_command, yes
from core.questions.impact import UNSEEN_USES, WASTED_USE
from core.records.decisions import FINE
from core.records.instructions import Loading, Relation
from core.records.lessons import LESSON_ID
from core.state import review_items as kinds

if TYPE_CHECKING:
    from datetime import datetime

    from core.base.steps import Steps
    from core.questions.priority import ImpactEstimator
    from core.records.decisions import CurationState
    from core.records.instructions import InstructionPair
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

MOST_QUESTIONS: Final = 20  # Maximum number of questions at a time, the worst first.
_MOST_LINES: Final = 20  # More repeated lines make no difference.


def find_conflicts(view: ProjectState) -> Steps[tuple[InstructionPair, ...]]:
    """Find the pairs to ask about, the worst first; an instruction is in one contradiction at most."""
    if not view.settings.sources.instructions:
        return ()
    pairs = yield from find_view_pairs_in_steps(view)
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
    return pair.question not in curation.dismissed and (verdict is None or not verdict.is_snoozed(now, 0))


def conflicts(scales: ImpactEstimator, found: Sequence[InstructionPair]) -> Iterator[ReviewItem]:
    """Ask about contradictions one by one, and about all repeats of two files at once."""
    for _, group in groupby(found, attrgetter("question")):
        pairs = tuple(group)
        first = pairs[0]
        is_conflict = first.relation is Relation.CONTRADICTS
        one, other = (visible_line(each.place, 60) for each in first.both)
        texts = [f"“{visible_line(each.text, 50)}”" for each in first.both]
        loaded = sum(each.loading is Loading.START for each in first.both)
        if is_conflict:
            question, name, this = "{} contradict each other. Keep one?", " and ".join(texts), "These instructions"
            reason, impact = f"{one} contradicts {other}", scales.new(UNSEEN_USES * (1 + loaded))
        else:
            lines = plural(len(pairs), "instruction")
            files = " and ".join(visible_line(each.pattern_id or each.file, 60) for each in first.both)
            question, name, this = "{} say the same. Keep one?", f"{files}: {lines}", f"{lines} in two places"
            reason, impact = f"{one} repeats {other}", WASTED_USE * min(len(pairs), _MOST_LINES) / _MOST_LINES
        yield scales.item(
            kinds.CONFLICT,
            first.id,
            question=question,
            name=name,
            this=this,
            reason=reason,
            place="one agent gets both" if first.shares_agent else "different agents get them",
            impact=impact,
            chars=sum(len(each.text) for pair in pairs[:_MOST_LINES] for each in pair.both),
            pairs=pairs,
        )


def mark_fine(pair: InstructionPair, reason: str = "") -> commands.Dismiss:
    """Make the command that marks a pair as fine, until one of its texts changes."""
    about = f"the instructions in {visible_line(' and '.join(one.place for one in pair.both), 160)}"
    return commands.Dismiss(key=pair.question, summary=f"{FINE.past}: {about}", about=about, reason=reason)


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which drops the pattern or waits for an edit, and no, which marks the pair as fine."""
    pair = item.pairs[0]
    kept, removed = choose_kept(pair)
    if kept.pattern_id and _successes(kept.id, state) < _successes(removed.id, state):
        kept, removed = removed, kept
    if removed.pattern_id:
        reason = f"{pair.relation} {visible_line(kept.place, 120)}"
        deprecate = commands.Deprecate(removed.pattern_id, reason=reason)
        effect = (
            f"no agent gets {visible_line(removed.pattern_id, 80)} until reset; {visible_line(kept.place, 80)} stays"
        )
        yield yes("drop the lesson", effect, deprecate, why_not=why_refused(deprecate, state))
    else:
        effect = "remove one of them yourself, as the diff shows; asked again tomorrow if both are left"
        later = snooze_command(item, until=state.now + timedelta(days=NOT_YET_DAYS))
        yield yes("edit a file", effect, later, matters=False)
    yield no("fine", "not asked again unless a text changes", mark_fine(pair), matters=False)


def _successes(pattern_id: str, state: ProjectState) -> int:
    return state.board.successes.item(state.board.row(pattern_id)) if pattern_id in state.board else 0
