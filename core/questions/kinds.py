"""Kinds of review questions: search, question, answers; docs/curation.md#review.

What a kind is called, and what an answer takes, is in `core.index.review_items.KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.base.text import plural
from core.decisions import commands
from core.decisions.rules import find_approved_pattern
from core.index.review_items import (
    BEST,
    BORDERLINE,
    BROAD,
    BURST,
    CONFLICT,
    CONTRADICTED,
    DUPLICATE,
    EDITED,
    ESCALATION,
    EXTRACTED,
    HARMFUL,
    HELD,
    INVERSION,
    LESSON,
    OFFER,
    PROPOSAL,
    QUARANTINE,
    RECURRING,
    RENAMED,
    SELDOM,
    STALE,
    STALE_PIN,
    UNRECONCILED,
    WEAKENED,
)
from core.questions.acknowledgement import (
    answer_acknowledgement,
    ask_escalations,
    ask_weakened_tests,
    find_weakened_tests,
)
from core.questions.answer import (
    NO_DECISION,
    SNOOZE_DAYS,
    SNOOZE_EVIDENCE,
    Answer,
    decision,
    no,
    promotion,
    reset_effect,
    snooze_command,
    yes,
)
from core.questions.conflict import answer_conflict, ask_conflicts, find_conflicts
from core.questions.doubts import (
    answer_broad,
    answer_burst,
    answer_harmful,
    answer_seldom_followed,
    answer_stale,
    answer_wrong_counts,
    ask_broad,
    ask_bursts,
    ask_harmful,
    ask_seldom_followed,
    ask_stale,
    ask_wrong_counts,
    checked_out,
    find_broad_triggers,
    find_stale_anchors,
    find_wrong_counts,
)
from core.questions.duplicate import answer_duplicate, ask_duplicates, find_duplicates
from core.questions.edited import answer_edited, ask_edited
from core.questions.new_text import answer_new_text, ask_new_texts, find_held_texts
from core.questions.offer import (
    answer_lesson,
    answer_offer,
    ask_lessons,
    ask_offers,
    ask_recurring,
    find_lessons,
    find_offers,
    find_recurring,
)
from core.questions.pattern_state import (
    answer_borderline,
    answer_inversion,
    answer_pin,
    ask_borderline,
    ask_inversions,
    ask_pins,
)
from core.questions.proposed_decision import answer_proposal, ask_proposals
from core.records.decisions import (
    EDIT_ANSWERS,
    PAIR_ANSWERS,
    VERBS,
    Decision,
    Verb,
    duplicate_question_id,
    extraction_question_id,
)
from core.records.patterns import Maturity
from core.records.reflections import LESSON_ID

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import QuestionGroup, ReviewItem
    from core.index.verdicts import StoredVerdicts
    from core.questions.asking import Asker
    from core.questions.offer import Extract, LoadExtractor

ROW_EVIDENCE: Final = 5  # Number of further questions that bring back a row that was not read.


class SearchTools(NamedTuple):
    """Inputs of a search: earlier result, verdicts, extraction of up to `most` loops."""

    before: Any
    stored: StoredVerdicts
    load: LoadExtractor
    extract: Extract
    most: int


class Search(NamedTuple):
    """A search, by the name of its result in `core.questions.search.SearchState`.

    It is repeated if one of its `records` is another object than before.
    """

    name: str
    records: Callable[[ProjectState], tuple[object, ...]]
    find: Callable[[ProjectState, SearchTools], Steps[Any]]


class QuestionKind(NamedTuple):
    """Kinds of questions that are searched for, asked and answered together."""

    names: tuple[str, ...]
    ask: Callable[[Asker], Iterator[ReviewItem]]
    answers: Callable[[ReviewItem, ProjectState], Iterator[Answer]]
    """Yields yes, no and the other answers that only these kinds have."""
    search: Search | None = None


def _learning_records(view: ProjectState) -> tuple[object, ...]:
    snapshot = view.snapshot
    return snapshot.reflections, snapshot.patterns, snapshot.tasks, snapshot.memory_tasks, snapshot.loops


def _held_records(view: ProjectState) -> tuple[object, ...]:
    snapshot = view.snapshot
    return snapshot.reflections, snapshot.memory_tasks, snapshot.tasks, snapshot.loops


def _instruction_records(view: ProjectState) -> tuple[object, ...]:
    snapshot = view.snapshot
    return snapshot.instructions, snapshot.lessons, snapshot.patterns, snapshot.curation


# Of one pattern, the first rows ask about its state or text; `ask_borderline` leaves out those that they ask about.
TABLE: Final = (
    QuestionKind((INVERSION,), ask_inversions, answer_inversion),
    QuestionKind((CONTRADICTED, STALE_PIN), ask_pins, answer_pin),
    QuestionKind(
        (EXTRACTED, QUARANTINE, HELD),
        ask_new_texts,
        answer_new_text,
        Search("held", _held_records, lambda view, tools: find_held_texts(view)),
    ),
    QuestionKind((HARMFUL,), ask_harmful, answer_harmful),
    QuestionKind((BORDERLINE,), ask_borderline, answer_borderline),
    QuestionKind((PROPOSAL,), ask_proposals, answer_proposal),
    QuestionKind((BURST,), ask_bursts, answer_burst),
    QuestionKind(
        (DUPLICATE,),
        ask_duplicates,
        answer_duplicate,
        Search(
            "alike",
            lambda view: (view.snapshot.patterns,),
            lambda view, tools: find_duplicates(view, tools.before, tools.stored),
        ),
    ),
    QuestionKind(
        (OFFER,),
        ask_offers,
        answer_offer,
        Search(
            "offers",
            lambda view: (view.snapshot.loops, view.snapshot.patterns),
            lambda view, tools: find_offers(view, *tools),
        ),
    ),
    QuestionKind(
        (RECURRING,),
        ask_recurring,
        answer_offer,
        Search(
            "recurring",
            _learning_records,
            lambda view, tools: find_recurring(view, tools.before, tools.stored, tools.load),
        ),
    ),
    QuestionKind(
        (LESSON,),
        ask_lessons,
        answer_lesson,
        Search(
            "lessons",
            # Not the evidence: lessons are not weighed again for each result.
            lambda view: (view.snapshot.lessons, view.snapshot.patterns, view.snapshot.curation),
            lambda view, tools: find_lessons(view, tools.load),
        ),
    ),
    QuestionKind(
        (BROAD,),
        ask_broad,
        answer_broad,
        Search(
            "broad",
            lambda view: (view.snapshot.patterns,),
            lambda view, tools: find_broad_triggers(view, tools.stored),
        ),
    ),
    QuestionKind((SELDOM,), ask_seldom_followed, answer_seldom_followed),
    QuestionKind(
        (UNRECONCILED,),
        ask_wrong_counts,
        answer_wrong_counts,
        Search("unreconciled", lambda view: (view.board.evidence,), lambda view, tools: find_wrong_counts(view)),
    ),
    QuestionKind(
        (STALE, RENAMED),
        ask_stale,
        answer_stale,
        Search(
            "stale",
            lambda view: (view.snapshot.patterns, checked_out(view.snapshot)),
            lambda view, tools: find_stale_anchors(view, tools.stored),
        ),
    ),
    QuestionKind(
        (WEAKENED,),
        ask_weakened_tests,
        answer_acknowledgement,
        Search(
            "weakened",
            lambda view: (view.snapshot.attempts,),
            lambda view, tools: find_weakened_tests(view, tools.before, tools.load),
        ),
    ),
    QuestionKind((EDITED,), ask_edited, answer_edited),
    QuestionKind(
        (CONFLICT,),
        ask_conflicts,
        answer_conflict,
        Search("pairs", _instruction_records, lambda view, tools: find_conflicts(view)),
    ),
    QuestionKind((ESCALATION,), ask_escalations, answer_acknowledgement),
)
_ROW_OF: Final = {name: row for row in TABLE for name in row.names}


def answers(item: ReviewItem, state: ProjectState) -> tuple[Answer, ...]:
    """Return all answers in the order of display; `accept` comes first.

    Raises `UnknownRecord` if the pattern that the question is about no longer exists.
    """
    own = _ROW_OF[item.kind].answers(item, state) if item.group is None else _row_answers(item, item.group)
    return (*own, *_pattern_decisions(item, state), *_snoozes(item, state))


def answer(item: ReviewItem, state: ProjectState, action: str) -> Answer | None:
    """Return the answer of an action; None if this question has no such answer."""
    return next((one for one in answers(item, state) if one.action == action), None)


def question_of(decision: Decision) -> str:
    """Return the ID of the question that a decision answers, or of its lesson."""
    if decision.verb is Verb.MERGE:
        return duplicate_question_id(decision.subject, str(decision.after.get("merged", "")))
    answer, _, about = decision.subject.partition(" ")
    if decision.verb is Verb.DISMISS and answer in (*EDIT_ANSWERS, *PAIR_ANSWERS):
        return about
    is_offer = decision.verb is Verb.EXTRACT and not decision.subject.startswith(LESSON_ID)
    return extraction_question_id(decision.subject) if is_offer else decision.subject


def _row_answers(item: ReviewItem, group: QuestionGroup) -> Iterator[Answer]:
    """Yield yes (ask the row's best questions one by one) and no (wait for more)."""
    best = group.items[:BEST]
    which = f"the top {len(best)}" if len(group.items) > len(best) else "them"
    yield yes("ask now", f"asks about {which}, one by one", NO_DECISION, matters=False, opens=best)
    more = commands.More(item.evidence, ROW_EVIDENCE)
    command = commands.SnoozeQuestion(key=item.question_key, more=more, about=item.about)
    yield no("not now", f"asked again when there are {ROW_EVIDENCE} more", command, matters=False)


def _pattern_decisions(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield decisions on the pattern that `accept` and `reject` do not already make."""
    if not item.is_about_pattern or item.kind == DUPLICATE:
        return
    id, assessment = item.subject, state.assessment(item.subject)
    is_doubtful = item.kind in (CONTRADICTED, STALE_PIN)
    pinned = assessment.pin.state if is_doubtful and assessment.pin is not None else None
    if pinned is not Maturity.PROVEN:
        yield promotion(id, state, is_asked=item.kind == BORDERLINE)
    is_proposed = item.kind == HARMFUL or any(one.is_removed for one in item.anchors)  # another answer does that
    if pinned is not Maturity.DEPRECATED and not is_proposed:
        yield decision(commands.Deprecate(id), "no agent gets it until reset", state)
    if not is_doubtful:
        yield decision(commands.Reset(id), reset_effect(assessment), state)
    if item.kind == STALE_PIN:
        effect = "restores the approved text, for which the decision was made"
        why_not = "" if find_approved_pattern(state, id) is not None else "the approved text was not stored"
        yield Answer("restore_text", VERBS[Verb.EDIT].word, effect, commands.RestoreText(id), why_not=why_not)
    if item.kind != BROAD:  # there it is the proposal
        yield decision(commands.Quarantine(id), "no agent gets it until released", state)
    if item.kind not in (QUARANTINE, HELD, EXTRACTED):  # there `reject` archives
        yield decision(commands.Archive(id), "archived: no agent gets it", state)


def _snoozes(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    effect = f"asked again in {plural(SNOOZE_DAYS, 'day')}"
    command = snooze_command(item, until=state.now + timedelta(days=SNOOZE_DAYS))
    yield Answer("snooze", VERBS[Verb.SNOOZE].word, effect, command, matters=False)
    if item.group is not None:  # there `reject` waits for more
        return
    effect = f"asked again after {SNOOZE_EVIDENCE} more results"
    command = snooze_command(item, evidence=SNOOZE_EVIDENCE)
    yield Answer("snooze_evidence", "wait for evidence", effect, command, matters=False)
