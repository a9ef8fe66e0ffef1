"""Lessons of agents and runners: joined if they say the same, and compared with patterns (docs/adapters.md#lessons)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.polarity import parse_warning
from core.base.record_text import strip_label
from core.learning.states import CODES
from core.questions.extraction.clustering import MIN_WORDS, group_statements_in_steps
from core.records.decisions import LESSON_PREFIX, Verb, lesson_question_id
from core.records.lessons import LESSON_ID, JoinedLesson, Lesson, LessonKind, LessonState
from core.records.loops import Outcome
from core.records.patterns import Maturity, Pattern, PatternType
from core.retrieval.contradiction import MIN_SIMILARITY, Demand, Statement

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import Decision
    from core.records.snapshot import Snapshot

MAX_PATTERNS: Final = 20_000  # patterns that lessons are compared with; in a larger registry, the first ones
_MAX_NAMED: Final = 8  # patterns or lessons that one lesson is said to contradict
_INJECTED_BY_RULE: Final = (CODES[Maturity.ESTABLISHED], CODES[Maturity.PROVEN])


class Comparison(Struct, frozen=True):
    """Lessons that say the same, and what is similar to them: patterns by ID, other lessons by their number."""

    places: tuple[Lesson, ...]
    same_patterns: tuple[str, ...] = ()  # the most similar one is first
    opposite_patterns: tuple[str, ...] = ()
    opposite_lessons: tuple[int, ...] = ()


def compare_lessons_in_steps(
    lessons: Mapping[str, Lesson], patterns: Mapping[str, Pattern]
) -> Steps[tuple[Comparison, ...]]:
    """Join the lessons that say the same, and find the patterns and lessons that say the same or the opposite.

    Each text is compared with a limited number of others: 3,000 lessons take about a second.
    """
    from core.retrieval.similarity import TextPool

    groups = yield from _join_in_steps(lessons.values())
    if not groups:
        return ()
    pool, statements, ids = TextPool(), list[Statement](), list[str]()
    for id, pattern in islice(patterns.items(), MAX_PATTERNS):
        if pattern.type is not PatternType.TEMPLATE and (statement := _read_pattern(pattern)).words:
            pool.add(statement.words)
            statements.append(statement)
            ids.append(id)
        yield
    for statement in groups:
        pool.add(statement.words)
        statements.append(statement)
    found = []
    for number, (statement, places) in enumerate(groups.items()):
        same: list[tuple[float, str]] = []
        opposite = list[int]()
        is_long = _is_long(statement)
        for row, ratio in pool.find_similar(statement.words, MIN_SIMILARITY) if is_long else ():
            if row == number + len(ids):
                continue
            if statement.demand.differs(statements[row].demand):
                if _is_opposite(statement, statements[row]):
                    opposite.append(row)
            elif row < len(ids):
                same.append((-ratio, ids[row]))
        found.append(
            Comparison(
                places,
                tuple(id for _, id in sorted(same)[:_MAX_NAMED]),
                tuple(ids[row] for row in opposite if row < len(ids)),
                tuple(row - len(ids) for row in opposite if row >= len(ids))[:_MAX_NAMED],
            )
        )
        yield
    return tuple(found)


def judge_lessons_in_steps(
    compared: Sequence[Comparison], snapshot: Snapshot, board: Scoreboard
) -> Steps[tuple[JoinedLesson, ...]]:
    """Add what was decided about the lessons, and which approved patterns they contradict; newest first."""
    accepted = _find_accepted(snapshot.decisions, snapshot.curation.undone)
    dismissed = {key for key in snapshot.curation.dismissed if key.startswith(LESSON_PREFIX)}
    patterns = snapshot.patterns
    found = []
    for one in compared:
        made = dict.fromkeys(chain.from_iterable(accepted.get(place.id, ()) for place in one.places))
        same = next((id for id in one.same_patterns if id in patterns), "")
        state = LessonState.OPEN
        if made:
            state = LessonState.ACCEPTED
        elif dismissed and any(lesson_question_id(place.text) in dismissed for place in one.places):
            state = LessonState.REJECTED
        elif same:
            state = LessonState.KNOWN
        opposite = (id for id in one.opposite_patterns if id in patterns and is_approved(patterns[id], snapshot, board))
        opposite = (id for id in opposite if id not in made)
        found.append(
            JoinedLesson(
                places=one.places,
                state=state,
                patterns=tuple(made) or ((same,) if same else ()),
                contradicts=tuple(islice(opposite, _MAX_NAMED)),
                disagrees_with=tuple(compared[number].places[0].id for number in one.opposite_lessons),
            )
        )
        yield
    return tuple(sorted(found, key=lambda one: (-one.at.timestamp() if one.at is not None else 0.0, one.id)))


def is_approved(pattern: Pattern, snapshot: Snapshot, board: Scoreboard) -> bool:
    """Return whether a pattern may be injected, and a person or its uses confirmed it.

    A person promoted or approved its text, or extracted it, or its uses made it established or proven.
    """
    curation, id = snapshot.curation, pattern.id
    if id not in board or not board.injectable[board.row(id)]:
        return False
    is_extracted = id in curation.extracted and id not in curation.arrivals
    by_rule = board.state_codes[board.row(id)] in _INJECTED_BY_RULE
    return bool(by_rule or is_extracted or curation.approves(id, pattern.content_hash))


def _find_accepted(decisions: Iterable[Decision], undone: frozenset[str]) -> dict[str, list[str]]:
    """Return the IDs of patterns that people made of lessons, by lesson."""
    found: dict[str, list[str]] = {}
    for one in decisions:
        if one.verb is Verb.EXTRACT and one.subject.startswith(LESSON_ID) and one.id not in undone:
            lists = (one.after.get(key) for key in ("patterns", "joined"))
            found[one.subject] = [id for ids in lists if isinstance(ids, list) for id in ids if isinstance(id, str)]
    return found


def _join_in_steps(lessons: Iterable[Lesson]) -> Steps[dict[Statement, tuple[Lesson, ...]]]:
    """Return the lessons that say the same, those to ask about first, by the central statement."""
    same: dict[Statement, list[Lesson]] = defaultdict(list)
    for lesson in lessons:
        same[read_statement(lesson.text)].append(lesson)
        yield
    long = {statement: len(found) for statement, found in same.items() if _is_long(statement)}
    groups = yield from group_statements_in_steps(long)
    groups += [[statement] for statement in same if statement not in long]
    joined = {}
    for central, *others in groups:
        places = sorted(same[central], key=_rank)
        places += sorted((lesson for statement in others for lesson in same[statement]), key=_rank)
        joined[central] = tuple(places)
        yield
    return joined


def _rank(lesson: Lesson) -> tuple[bool, bool, bool, int, str]:
    """Return the order of lessons with the same text: what can become a pattern and worked is first."""
    is_success = lesson.outcome is Outcome.SUCCESS
    return lesson.kind is LessonKind.FACT, not is_success, not lesson.loaded, -(lesson.uses or 0), lesson.id


def _is_long(statement: Statement) -> bool:
    """Return whether a text has enough words to be compared with others."""
    return statement.words.count(" ") + 1 >= MIN_WORDS


def read_statement(text: str) -> Statement:
    """Return a lesson in comparable form: `Never use X` is `Use X` with the opposite demand."""
    line = strip_label(text)
    warned = parse_warning(line)
    return _negated(Statement.of(warned.approach)) if warned else Statement.of(line)


def _read_pattern(pattern: Pattern) -> Statement:
    if pattern.type is not PatternType.ANTI:
        return read_statement(pattern.description)
    line = strip_label(pattern.description)
    warned = parse_warning(line)
    return _negated(Statement.of(warned.approach if warned else line))


def _is_opposite(one: Statement, other: Statement) -> bool:
    """Return whether more than numbers differ: other numbers may be about other things."""
    return replace(one.demand, numbers=()).differs(other.demand)


def _negated(statement: Statement) -> Statement:
    demand: Demand = replace(statement.demand, negated=not statement.demand.negated)
    return replace(statement, demand=demand)
