"""Notes of agents and recurring learnings: joined, compared and drafted.

See docs/adapters.md#lessons and docs/extraction.md#recurring-learnings.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.masking import mask_secrets
from core.base.polarity import Warned, parse_warning, read_warning
from core.base.steps import Steps, sort_in_steps
from core.base.text import lesson_name, make_slug, one_line, strip_label
from core.learning.maturity import CODES
from core.questions.extraction.approaches import (
    detect_failure_mode,
    make_anti_pattern,
)
from core.questions.extraction.engine import (
    KnownPatterns,
    mark_duplicate,
    narrow_trigger,
    refuse_ineffective,
)
from core.questions.extraction.fixes import (
    describe_place,
    detect_domain,
    fix_category,
    fix_description,
    make_tags,
    mentioned_language,
)
from core.questions.extraction.material import (
    make_proposal,
    make_source,
    parse_pattern,
    remove_controls,
    without_uses,
)
from core.questions.extraction.triggers import (
    Sighting,
    extract_message,
    parse_error,
)
from core.records.debug_sessions import Failure
from core.records.decisions import LESSON_PREFIX, Verb, lesson_question_id
from core.records.extractions import Extraction, Proposal
from core.records.loops import Outcome
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.reflections import LESSON_ID, MIN_LOOPS, JoinedLesson, Lesson, LessonKind, LessonState, Reflection
from core.retrieval.similarity import MIN_SIMILARITY, Demand, Statement
from core.retrieval.task import analyse_task
from core.tasks.task_links import LoopNames, collect_past_tasks

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.index.verdicts import StoredVerdicts
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import Decision
    from core.records.snapshot import Snapshot
    from core.retrieval.similarity import TextPool

CLUSTER_ID: Final = "recurring-"  # prefix of cluster IDs
MIN_WORDS: Final = 3  # shorter learnings, such as "tests failed", are similar by chance
_KIND, _KEY = "learnings", "groups"  # of the stored groups
_UNDATED: Final = datetime.max.replace(tzinfo=UTC)
_MAX_NAME: Final = 120  # characters of the name of an approach
KNOWN: Final = "already known from all of these loops as "
"""Start of the reason for a pattern that is already registered; its ID follows."""
_MAX_STEPS: Final = 20
_MAX_TRACE: Final = 10
MAX_PATTERNS: Final = 20_000  # patterns that lessons are compared with; in a larger registry, the first ones
_MAX_NAMED: Final = 8  # patterns or lessons that one lesson is said to contradict
_INJECTED_BY_RULE: Final = (CODES[Maturity.ESTABLISHED], CODES[Maturity.PROVEN])
_MAX_SOURCES: Final = 20


class Member(NamedTuple):
    """A reflection, and the ID of its loop, or of its task if the loop is unknown."""

    source: str
    reflection: Reflection


class Cluster(Struct, frozen=True, kw_only=True, gc=False):
    """Similar reflections of at least two loops.

    `sources` are the IDs of their loops, or of tasks whose loop is unknown, in the order of their first reflection.
    """

    id: str  # derived from the oldest reflection, so that it is stable when others join
    central: Reflection  # the reflection that all others are similar to
    members: tuple[Member, ...]  # oldest first, those without a time last
    sources: tuple[str, ...]
    kinds: tuple[str, ...]  # kinds of reflections, the most frequent first
    first_at: datetime | None  # times of the oldest and the newest reflection; None if unknown
    last_at: datetime | None

    @property
    def text(self) -> str:
        """Learning of the central reflection; untrusted."""
        return self.central.learning


def cluster_in_steps(snapshot: Snapshot, stored: StoredVerdicts) -> Steps[tuple[Cluster, ...]]:
    """Find a project's recurring learnings step by step, most loops first.

    A learning joins a cluster if it is similar to the central one and asks for the same (see
    `core.retrieval.similarity`). So no chain of small differences joins different learnings. Learnings that are
    similar to many others become central. The order of the reflections does not matter. Drafts, and reflections without
    loop and task, are ignored. Each reflection is compared with a bounded number of others: 10,000 reflections take a
    few seconds; learnings that were grouped before are not compared.
    """
    names = LoopNames(snapshot.loops.values())
    loop_of_task = {}
    for id, task in collect_past_tasks(snapshot).items():
        if (link := names.link(task)) is not None:
            loop_of_task[id] = link.loop_id
        yield
    same: dict[Statement, list[Member]] = defaultdict(list)
    for reflection in snapshot.reflections.values():
        source = reflection.loop_id or loop_of_task.get(reflection.task_id, reflection.task_id)
        if source and not reflection.draft:
            statement = Statement.of(reflection.learning)
            if statement.words.count(" ") + 1 >= MIN_WORDS:
                same[statement].append(Member(source, reflection))
        yield
    counts = {}
    for statement, members in same.items():
        counts[statement] = len(members)
        yield
    clusters = []
    for group in (yield from _known_groups_in_steps(counts, stored)):
        members = sorted((member for statement in group for member in same[statement]), key=_age_order)
        if len({member.source for member in members}) >= MIN_LOOPS:
            clusters.append(_make_cluster(members, min(same[group[0]], key=_age_order).reflection))
        yield
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster.sources), -len(cluster.members), cluster.id)))


class _Groups(Struct, frozen=True, array_like=True):
    """Groups of statements, by place in key order; `digest` is of these and counts."""

    digest: bytes
    groups: list[list[int]]


def _known_groups_in_steps(counts: Mapping[Statement, int], stored: StoredVerdicts) -> Steps[list[list[Statement]]]:
    """Return stored groups of equal statements and counts, or group and store them."""
    from core.index.verdicts import read_verdicts, write_verdicts

    ordered = yield from sort_in_steps(counts, lambda statement: statement.key)
    hasher = blake2b(digest_size=16)
    for statement in ordered:
        hasher.update(repr((statement.key, counts[statement])).encode("utf-8", "surrogatepass"))
        yield
    digest = hasher.digest()
    verdict = read_verdicts(stored, _KIND, [_KEY], _Groups).get(_KEY)
    if verdict is not None and verdict.digest == digest:
        return [[ordered[place] for place in group] for group in verdict.groups]
    groups = yield from group_statements_in_steps(counts)
    places = {statement: place for place, statement in enumerate(ordered)}
    rows = [[places[statement] for statement in group] for group in groups]
    write_verdicts(stored, _KIND, {_KEY: _Groups(digest, rows)})
    return groups


def group_statements_in_steps(counts: Mapping[Statement, int]) -> Steps[list[list[Statement]]]:
    """Group similar statements; the first statement of each group is its central one."""
    from core.retrieval.similarity import TextPool

    ordered = yield from sort_in_steps(counts, lambda statement: (-counts[statement], statement.key))
    everything = TextPool()
    for statement in ordered:
        everything.add(statement.words)
        yield
    weights = []
    for statement in ordered:
        similar = _similar(statement, everything, ordered)
        weights.append(math.fsum(ratio * counts[ordered[row]] for row, ratio in similar))
        yield
    centres: list[Statement] = []
    texts = TextPool()
    groups: list[list[Statement]] = []
    for index in (yield from sort_in_steps(range(len(ordered)), lambda index: (-weights[index], ordered[index].key))):
        statement = ordered[index]
        row = next((row for row, _ in _similar(statement, texts, centres)), len(centres))
        if row == len(centres):
            texts.add(statement.words)
            centres.append(statement)
            groups.append([])
        groups[row].append(statement)
        yield
    return groups


def _similar(statement: Statement, texts: TextPool, statements: Sequence[Statement]) -> Iterator[tuple[int, float]]:
    """Yield row and similarity of the statements in `texts` that are nearly equal."""
    for row, ratio in texts.find_similar(statement.words, MIN_SIMILARITY):
        if not statement.demand.differs(statements[row].demand):
            yield row, ratio


def _make_cluster(members: Sequence[Member], central: Reflection) -> Cluster:
    oldest = members[0].reflection
    times = [member.reflection.at for member in members if member.reflection.at is not None]
    kinds = Counter(member.reflection.kind for member in members if member.reflection.kind)
    return Cluster(
        id=f"{CLUSTER_ID}{sha256(oldest.id.encode('utf-8', 'replace')).hexdigest()[:10]}",
        central=central,
        members=tuple(members),
        sources=tuple(dict.fromkeys(member.source for member in members)),
        kinds=tuple(sorted(kinds, key=lambda kind: (-kinds[kind], kind))),
        first_at=min(times, default=None),
        last_at=max(times, default=None),
    )


def _age_order(member: Member) -> tuple[datetime, str]:
    return member.reflection.at or _UNDATED, member.reflection.id


def extract_recurring_lesson(
    cluster: Cluster, descriptions: Mapping[str, str], registry: KnownPatterns, settings: ExtractionSettings
) -> Extraction:
    """Extract a candidate from a recurring learning, or explain why there is none.

    `descriptions` are those of loops and tasks, by ID. `known` has the errors and tasks of all loops.
    """
    tasks = [one_line(descriptions[source]) for source in cluster.sources if descriptions.get(source)]
    proposal = _compare_recurring(_draft_recurring(cluster, tasks, registry, settings), cluster, registry, settings)
    return Extraction(source_id=cluster.id, proposals=(proposal,))


def _draft_recurring(
    cluster: Cluster, tasks: list[str], registry: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    learning = strip_label(cluster.text)
    if extract_message(learning) or learning in registry.messages:
        refused = "it is an error message: it describes the failure, not what to do"
        return replace(_draft_success_pattern(learning, cluster, tasks), refused=refused)
    if error := _find_common_error(cluster):
        return narrow_trigger(_draft_error_pattern(learning, error, cluster, tasks), error, registry, settings)
    if warned := parse_warning(learning):
        return _draft_warning(warned, cluster, tasks)
    return _draft_success_pattern(learning, cluster, tasks)


def _draft_success_pattern(learning: str, cluster: Cluster, tasks: list[str]) -> Proposal:
    category = _find_category(learning, tasks)
    steps = _list_steps(cluster) or [learning]
    fields = {"task_category": category, "approach": {"description": learning, "steps": steps}}
    tags = (mentioned_language(learning, *tasks), category, detect_domain((learning, *tasks)))
    return make_proposal(PatternType.SUCCESS, make_slug(learning, category), fields, tags=tags, **_origin(cluster))


def _draft_warning(warned: Warned, cluster: Cluster, tasks: list[str]) -> Proposal:
    approach = warned.text
    mode = detect_failure_mode(" ".join((approach, cluster.central.analysis, cluster.central.observation)))
    symptoms = dict.fromkeys(one_line(one.observation, 120) for _, one in cluster.members if one.observation)
    analysis = next((one.analysis for one in _central_first(cluster) if one.analysis), "")
    return make_anti_pattern(
        approach,
        mode,
        symptoms=list(symptoms) or None,
        why="; ".join(filter(None, (warned.why, analysis))),
        better=warned.better or "; ".join(_list_steps(cluster)),
        tags=(mentioned_language(approach, *tasks), _find_category(approach, tasks), detect_domain((approach, *tasks))),
        **_origin(cluster),
    )


def _draft_error_pattern(learning: str, error: Sighting, cluster: Cluster, tasks: list[str]) -> Proposal:
    category = fix_category(learning, "", "", error.message)
    fields = {
        "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
        "fix_approach": {"description": fix_description(learning, category, error.message), "fix_category": category},
    }
    language = mentioned_language(*tasks, error.message)
    tags = make_tags(language, category, error.error_type, (error.file, learning, *tasks))
    return make_proposal(PatternType.ERROR, make_slug(learning, "error"), fields, tags=tags, **_origin(cluster))


def _origin(cluster: Cluster) -> dict[str, Any]:
    """Return sources, time and trace of a proposal."""
    first = {member.source: member.reflection for member in reversed(cluster.members)}
    places = ((source, describe_place(first[source])) for source in cluster.sources[:_MAX_TRACE])
    trace = [f"{one_line(source, 80)} {place}".strip() for source, place in places]
    if len(cluster.sources) > _MAX_TRACE:
        trace.append(f"and {len(cluster.sources) - _MAX_TRACE} more")
    sources = [make_source(source, first[source].at) for source in cluster.sources]
    return {"sources": sources, "at": cluster.members[0].reflection.at, "trace": tuple(trace)}


def _find_common_error(cluster: Cluster) -> Sighting | None:
    """Return the error that most sources, at least two, recorded with the learning."""
    errors: dict[str, tuple[Sighting, set[str]]] = {}
    for source, reflection in cluster.members:
        for text in (reflection.observation, reflection.analysis):
            message = extract_message(text)
            if message and (
                error := parse_error(Failure(message=message), reflection.id, reflection.iteration, reflection.at)
            ):
                errors.setdefault(error.signature, (error, set()))[1].add(source)
    best = max(errors.values(), key=lambda pair: len(pair[1]), default=None)
    return best[0] if best is not None and len(best[1]) >= MIN_LOOPS else None


def _list_steps(cluster: Cluster) -> list[str]:
    """Return the action items; those of the central reflection are first."""
    items = (one_line(item) for one in _central_first(cluster) for item in one.actions)
    return list(dict.fromkeys(filter(None, items)))[:_MAX_STEPS]


def _central_first(cluster: Cluster) -> tuple[Reflection, ...]:
    return cluster.central, *(member.reflection for member in cluster.members)


def _find_category(learning: str, tasks: list[str]) -> str:
    """Return the most frequent category of the tasks, or that of the learning."""
    categories = Counter(filter(None, (analyse_task(task).category for task in tasks)))
    return categories.most_common(1)[0][0] if categories else analyse_task(learning).category or "implementation"


def _compare_recurring(
    proposal: Proposal, cluster: Cluster, registry: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    """Compare with the registry; refuse a pattern that already has all these sources."""
    if proposal.refused:
        return proposal
    pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
    alike = registry.similar.nearest(pattern, settings.similarity_threshold)
    for identifier, _ in alike:
        if set(cluster.sources) <= {source.loop_id for source in registry.patterns[identifier].source_loops}:
            return replace(proposal, refused=f"{KNOWN}{identifier}")
    return refuse_ineffective(mark_duplicate(proposal, alike, settings), registry, settings)


class Comparison(Struct, frozen=True):
    """Lessons that say the same, and similar ones: patterns by ID, lessons by number."""

    places: tuple[Lesson, ...]
    same_patterns: tuple[str, ...] = ()  # the most similar one is first
    opposite_patterns: tuple[str, ...] = ()
    opposite_lessons: tuple[int, ...] = ()


def compare_lessons_in_steps(
    lessons: Mapping[str, Lesson], patterns: Mapping[str, Pattern]
) -> Steps[tuple[Comparison, ...]]:
    """Join lessons that say the same; find patterns and lessons that agree or oppose.

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
    comparisons = []
    for number, (statement, places) in enumerate(groups.items()):
        same: list[tuple[float, str]] = []
        opposite = list[int]()
        is_long = _is_long(statement)
        for row, ratio in pool.find_similar(statement.words, MIN_SIMILARITY) if is_long else ():
            if row == number + len(ids):
                continue
            if statement.demand.differs(statements[row].demand):
                # More than the numbers must differ: other numbers may be about other things.
                if replace(statement.demand, numbers=()).differs(statements[row].demand):
                    opposite.append(row)
            elif row < len(ids):
                same.append((-ratio, ids[row]))
        comparisons.append(
            Comparison(
                places,
                tuple(id for _, id in sorted(same)[:_MAX_NAMED]),
                tuple(ids[row] for row in opposite if row < len(ids)),
                tuple(row - len(ids) for row in opposite if row >= len(ids))[:_MAX_NAMED],
            )
        )
        yield
    return tuple(comparisons)


def judge_lessons_in_steps(
    compared: Sequence[Comparison], snapshot: Snapshot, board: Scoreboard
) -> Steps[tuple[JoinedLesson, ...]]:
    """Add decisions, and approved patterns that lessons contradict; newest first."""
    accepted = _find_accepted(snapshot.decisions, snapshot.curation.undone)
    dismissed = {key for key in snapshot.curation.dismissed if key.startswith(LESSON_PREFIX)}
    patterns = snapshot.patterns
    lessons = []
    for comparison in compared:
        accepted_as = dict.fromkeys(chain.from_iterable(accepted.get(place.id, ()) for place in comparison.places))
        same = next((id for id in comparison.same_patterns if id in patterns), "")
        state = LessonState.OPEN
        if accepted_as:
            state = LessonState.ACCEPTED
        elif dismissed and any(lesson_question_id(place.text) in dismissed for place in comparison.places):
            state = LessonState.REJECTED
        elif same:
            state = LessonState.KNOWN
        opposite = (
            id for id in comparison.opposite_patterns if id in patterns and is_approved(patterns[id], snapshot, board)
        )
        opposite = (id for id in opposite if id not in accepted_as)
        lessons.append(
            JoinedLesson(
                places=comparison.places,
                state=state,
                patterns=tuple(accepted_as) or ((same,) if same else ()),
                contradicts=tuple(islice(opposite, _MAX_NAMED)),
                disagrees_with=tuple(compared[number].places[0].id for number in comparison.opposite_lessons),
            )
        )
        yield
    return tuple(sorted(lessons, key=lambda one: (-one.at.timestamp() if one.at is not None else 0.0, one.id)))


def is_approved(pattern: Pattern, snapshot: Snapshot, board: Scoreboard) -> bool:
    """Return whether a pattern is injectable, and a person or its uses confirmed it.

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
    patterns: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.verb is Verb.EXTRACT and decision.subject.startswith(LESSON_ID) and decision.id not in undone:
            lists = (decision.after.get(key) for key in ("patterns", "joined"))
            patterns[decision.subject] = [
                id for ids in lists if isinstance(ids, list) for id in ids if isinstance(id, str)
            ]
    return patterns


def _join_in_steps(lessons: Iterable[Lesson]) -> Steps[dict[Statement, tuple[Lesson, ...]]]:
    """Return lessons that say the same, those to ask first, by central statement."""
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
    """Return the sort key of equal lessons: possible patterns that worked first."""
    is_success = lesson.outcome is Outcome.SUCCESS
    return lesson.kind is LessonKind.FACT, not is_success, not lesson.loaded, -(lesson.uses or 0), lesson.id


def _is_long(statement: Statement) -> bool:
    """Return whether a text has enough words to be compared with others."""
    return statement.words.count(" ") + 1 >= MIN_WORDS


def read_statement(text: str) -> Statement:
    """Return a comparable lesson: `Never use X` is `Use X` with the opposite demand."""
    line = strip_label(text)
    warned = parse_warning(line)
    return _negated(Statement.of(warned.approach)) if warned else Statement.of(line)


def _read_pattern(pattern: Pattern) -> Statement:
    if pattern.type is not PatternType.ANTI:
        return read_statement(pattern.description)
    line = strip_label(pattern.description)
    warned = parse_warning(line)
    return _negated(Statement.of(warned.approach if warned else line))


def _negated(statement: Statement) -> Statement:
    demand: Demand = replace(statement.demand, negated=not statement.demand.negated)
    return replace(statement, demand=demand)


def pattern_type(lesson: Lesson) -> PatternType | None:
    """Return the type of the pattern that a lesson can become; None for a fact."""
    match lesson.kind:
        case LessonKind.FACT:
            return None
        case LessonKind.FIX if lesson.trigger:
            return PatternType.ERROR
    return PatternType.ANTI if parse_warning(one_line(lesson.text)) else PatternType.SUCCESS


def extract_lesson(
    joined: JoinedLesson,
    registry: KnownPatterns,
    settings: ExtractionSettings,
    types: Set[PatternType],
) -> Extraction:
    """Extract a candidate from a lesson, or explain why there is none.

    The kind of the lesson decides its type, unless exactly one of the `types` is asked for.
    """
    kind = next(iter(types)) if len(types) == 1 else pattern_type(joined.lesson)
    offer = Extraction(source_id=joined.id, about=lesson_name(joined.lesson.text))
    if kind is None:
        return replace(offer, missing=("it is a fact, not advice; name a pattern type to make a pattern of it",))
    if kind is PatternType.TEMPLATE:
        return replace(offer, missing=("a lesson has no code for a template",))
    error = parse_error(Failure(message=one_line(joined.lesson.trigger)), "a lesson", None, None)
    if kind is PatternType.ERROR and error is None:
        return replace(offer, missing=("it does not name the error that it fixes; name another pattern type",))
    proposal = _draft_lesson(joined, kind)
    if kind is PatternType.ERROR and error is not None:
        proposal = narrow_trigger(proposal, error, registry, settings)
    return replace(offer, proposals=(_compare_lesson(proposal, joined, registry, settings),))


def _draft_lesson(joined: JoinedLesson, kind: PatternType) -> Proposal:
    lesson = joined.lesson
    text, why, better = one_line(lesson.text), one_line(lesson.why), ""
    if kind is PatternType.ANTI:
        text, _, better, reason = read_warning(text)
        why = "; ".join(filter(None, (reason, why)))
    sources: dict[str, dict[str, Any]] = {}
    for place in joined.places[:_MAX_SOURCES]:
        source_id = place.loop_id or place.id
        source = make_source(source_id, place.at, by=place.runner, file=place.file, line=place.line)
        sources.setdefault(source_id, source)
    places = (one_line(f"{place.runner} {place.file}:{place.line}") for place in joined.places[:_MAX_SOURCES])
    origin: dict[str, Any] = {
        "sources": list(sources.values()),
        "at": min((place.at for place in joined.places if place.at is not None), default=None),
        "trace": tuple(dict.fromkeys(places)),
    }
    proposal = draft_pattern(kind, one_line(lesson.trigger), text, why, better=better, **origin)
    record = {key: value for key, value in proposal.record.items() if key != "last_used"}
    record["name"] = remove_controls(one_line(lesson.text))
    return replace(proposal, record=record | without_uses(kind))


def _compare_lesson(
    proposal: Proposal, joined: JoinedLesson, registry: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    """Mark a proposal as new, as a use of a registered pattern, or as already known."""
    if proposal.refused:
        return proposal
    if joined.state is LessonState.ACCEPTED:
        for id in joined.patterns:
            if id in registry.patterns:
                return replace(proposal, refused=f"already accepted as {id}", known_as=id)
    pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
    similar = registry.similar.nearest(pattern, settings.similarity_threshold)
    sources = {source["loop_id"] for source in proposal.record["source_loops"]}
    for id, _ in similar:
        if sources & {source.loop_id for source in registry.patterns[id].source_loops}:
            return replace(proposal, refused=f"already known from its session as {id}", known_as=id)
    return mark_duplicate(proposal, similar, settings)


def make_lesson(
    kind: PatternType, when: str, lesson: str, evidence: str, *, loop_id: str, at: datetime, by: str
) -> Proposal:
    """Turn a lesson into a pattern, with its secrets masked.

    `when` is the situation, or for an error pattern the error message. `loop_id` is that of the work where it was
    learned, or "". Raises BadInput if a text is empty, or if an error message is too general to be recognised.
    """
    when, lesson, evidence = (one_line(mask_secrets(text)) for text in (when, lesson, evidence))
    for name, text in (("when", when), ("lesson", lesson), ("evidence", evidence)):
        if not text:
            raise BadInput(f"{name} is empty")
    origin: dict[str, Any] = {
        "sources": [make_source(loop_id, at, by=by)] if loop_id else [],
        "at": at,
        "trace": (f"proposed by {by}",),
    }
    if kind is PatternType.ANTI:
        warned = read_warning(lesson)
        why = "; ".join(filter(None, (warned.why, evidence)))
        return _without_uses(draft_pattern(kind, when, warned.text, why, better=warned.better, **origin))
    return _without_uses(draft_pattern(kind, when, lesson, evidence, **origin))


def _without_uses(proposal: Proposal) -> Proposal:
    """Return a proposal without uses: to propose a lesson is not to apply it."""
    return replace(proposal, record=proposal.record | without_uses(proposal.type))


def draft_pattern(kind: PatternType, when: str, text: str, why: str, *, better: str = "", **origin: Any) -> Proposal:
    """Draft a short pattern; an anti-pattern avoids `text` and does `better`.

    `when` is "" if unknown. Raises BadInput if the error message of an error pattern, `when`, is too general.
    """
    language = mentioned_language(when, text)
    if kind is PatternType.ERROR:
        error = parse_error(Failure(message=when), "a lesson", None, origin["at"])
        if error is None:
            raise BadInput("`when` of an error_fix must be the error message, such as 'TypeError: x is null'")
        category = fix_category(text, "", "", error.message)
        fields = {
            "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
            "fix_approach": {"description": text, "fix_category": category},
        }
        tags = make_tags(language, category, error.error_type, (error.file, text))
        return make_proposal(kind, make_slug(text, "error"), fields, tags=tags, **origin)
    category = analyse_task(when).category or analyse_task(text).category or "implementation"
    all_tags = (language, category, detect_domain((when, text)))
    if kind is PatternType.ANTI:
        mode = detect_failure_mode(f"{text} {why}")
        return make_anti_pattern(
            text, mode, symptoms=[when] if when else None, why=why, better=better, tags=all_tags, **origin
        )
    approach = {
        "name": one_line(when, _MAX_NAME) or None,
        "task_category": category,
        "approach": {"description": text, "steps": []},
        "preconditions": [when] if when else None,
    }
    return make_proposal(kind, make_slug(text, category), approach, tags=all_tags, **origin)
