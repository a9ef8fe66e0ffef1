"""Recurring learnings and notes of agents: joined, compared with patterns, and drafted."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rapidfuzz import fuzz, process

from core.base.errors import BadInput
from core.base.settings import ExtractionSettings
from core.base.steps import run_all
from core.base.text import strip_label
from core.index.verdicts import VerdictsInMemory
from core.questions.extraction.engine import KnownPatterns
from core.questions.extraction.learnings import (
    Cluster,
    cluster_in_steps,
    compare_lessons_in_steps,
    extract_lesson,
    extract_recurring_lesson,
    judge_lessons_in_steps,
    make_lesson,
    pattern_type,
)
from core.records.decisions import CurationState, Decision, Verb, lesson_question_id
from core.records.episodes import Task
from core.records.extractions import ALL_TYPES, Extraction, Proposal
from core.records.loops import Loop, Outcome
from core.records.patterns import Pattern, PatternType
from core.records.reflections import JoinedLesson, Lesson, LessonKind, LessonState, Reflection
from core.records.snapshot import Snapshot
from core.retrieval.similarity import MIN_SIMILARITY, sorted_words
from tests.agent_lessons import CLOCK, NO_CLOCK, drafted, make_agent_lesson
from tests.factories import (
    NOW,
    cluster_reflections,
    make_board,
    make_known_patterns,
    make_pattern,
    make_source,
    parse_pattern_record,
    record_calls,
)

START = datetime(2026, 2, 2, tzinfo=UTC)
SETTLE = "Settle the shared types before any file that uses them"


def reflection(loop: str, learning: str, day: int | None = 0, **fields: Any) -> Reflection:
    at = None if day is None else START + timedelta(days=day)
    values = {"id": f"{loop} {day} {learning[:80]}", "shape": "state", "file": "f", "loop_id": loop, "at": at}
    return Reflection(**{**values, "learning": learning, **fields})


def texts(clusters: tuple[Cluster, ...]) -> list[list[str]]:
    return [[member.reflection.learning for member in cluster.members] for cluster in clusters]


def find_clusters(snapshot: Snapshot, stored: VerdictsInMemory) -> tuple[Cluster, ...]:
    return run_all(cluster_in_steps(snapshot, stored))


def test_a_learning_recurs_if_two_loops_recorded_it() -> None:
    other = "Settle the shared types before the first file that uses them."
    (found,) = cluster_reflections(
        [reflection("b", other, 2), reflection("a", SETTLE, 1), reflection("c", "Lock in order", 3)], {}
    )
    assert texts((found,)) == [[SETTLE, other]]
    assert found.sources == ("a", "b")
    assert (found.first_at, found.last_at) == (START + timedelta(days=1), START + timedelta(days=2))
    assert cluster_reflections([reflection("a", SETTLE, 1), reflection("a", SETTLE, 2)], {}) == ()


def test_labels_case_and_order_of_words_make_no_difference() -> None:
    one = reflection("a", "Iteration 1: test first, then make the minimal change")
    two = reflection("b", "Attempt 2: make the minimal change, then TEST FIRST")
    assert len(cluster_reflections([one, two], {})) == 1


def test_a_chain_of_small_differences_is_not_one_cluster() -> None:
    words = [f"word{number}" for number in range(30)]
    steps = [reflection(f"loop-{n}", " ".join(words[n * 2 : n * 2 + 8])) for n in range(11)]
    for cluster in cluster_reflections(steps, {}):
        central = sorted_words(cluster.text)
        for member in cluster.members:
            assert fuzz.ratio(central, sorted_words(member.reflection.learning)) > MIN_SIMILARITY * 100


def test_opposites_with_the_same_words_are_different() -> None:
    asked = ["Mock the gateway in unit tests", "Always mock the gateway in unit tests."]
    negated_texts = ["Never mock the gateway in unit tests.", "Don't mock the gateway in unit tests"]
    turned = ["Write the migration before the model", "Write the model before the migration"]
    reflections = [reflection(f"loop-{n}", text) for n, text in enumerate(asked + negated_texts + turned)]
    assert sorted(map(sorted, texts(cluster_reflections(reflections, {})))) == sorted(
        map(sorted, (asked, negated_texts))
    )


def test_learnings_in_a_language_without_spaces_recur() -> None:
    reflections = [
        reflection("a", "先に型定義を更新してから実装する"),
        reflection("b", "先に型定義を更新してから実装すること"),
    ]
    assert (
        len(cluster_reflections([*reflections, reflection("c", "先に型定義を更新してから実装しない")], {})[0].members)
        == 2
    )


def test_the_most_similar_learning_is_central() -> None:
    endings = ("at once", "and tests", "in one step")
    near = [reflection(f"loop-{n}", f"{SETTLE} {extra}") for n, extra in enumerate(endings)]
    (found,) = cluster_reflections([*near, reflection("z", SETTLE, 9)], {})
    assert found.text == SETTLE and len(found.members) == 4


def test_the_id_is_stable_while_reflections_join() -> None:
    first = [reflection("a", SETTLE, 1), reflection("b", f"{SETTLE} too", 2)]
    (before,) = cluster_reflections(first, {})
    (after,) = cluster_reflections([*first, *(reflection(f"c{n}", SETTLE, 3) for n in range(3))], {})
    assert before.id == after.id and before.text != after.text
    assert before.id.startswith("recurring-") and before.id.removeprefix("recurring-").isalnum()


def test_a_task_and_its_loop_are_one_source() -> None:
    of_loop = reflection("", SETTLE, 1, task_id="task-001", id="1")
    loops = {"a": Loop(id="a", task="Migrate", aliases=("a-alias",))}
    tasks = {"task-001": Task(id="task-001", loop_id="a"), "task-002": Task(id="task-002")}
    of_task = reflection("", SETTLE, 2, task_id="task-002", id="2")
    same = Snapshot(loops=loops, tasks=tasks, reflections={"1": of_loop, "3": reflection("a", SETTLE, 3)})
    assert find_clusters(same, VerdictsInMemory()) == ()
    two = Snapshot(loops=loops, tasks=tasks, reflections={"1": of_loop, "2": of_task})
    (found,) = find_clusters(two, VerdictsInMemory())
    assert found.sources == ("a", "task-002")


def test_learnings_that_were_grouped_before_are_compared_again_only_after_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnings = (
        SETTLE,
        f"{SETTLE} too",
        "Lock the rows before the update of a stock",
        "Lock the rows before an update",
    )
    reflections = {str(n): reflection(f"loop-{n}", text, n) for n, text in enumerate(learnings)}
    stored = VerdictsInMemory()
    first = find_clusters(Snapshot(reflections=reflections), stored)
    assert len(first) == 2
    calls = record_calls(monkeypatch, process, "cdist")
    assert find_clusters(Snapshot(reflections=dict(reversed(reflections.items()))), stored) == first
    assert not calls
    more = Snapshot(reflections=reflections | {"9": reflection("loop-9", f"Always {SETTLE}", 9)})
    assert find_clusters(more, stored) == find_clusters(more, VerdictsInMemory()) != first


def test_thousands_of_similar_learnings_need_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    cdist = process.cdist

    def counted(queries: list[str], choices: list[str], **options: Any) -> Any:
        compared.append(len(choices))
        return cdist(queries, choices, **options)

    monkeypatch.setattr(process, "cdist", counted)
    reflections = [
        reflection(f"loop-{n}", f"When adding part p{n} update number n{n * 7919} of m{n % 97}") for n in range(2000)
    ]
    (found,) = cluster_reflections(reflections, {})
    assert len(found.members) == 2000
    assert max(compared) <= 64 and len(compared) <= 2 * len(reflections)


def test_small_groups_are_found_among_many_that_share_words() -> None:
    random = Random(5)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 9))) for _ in range(300)]
    groups = [" ".join(random.sample(words, 10)) for _ in range(400)]
    reflections = [
        reflection(f"loop-{n}-{m}", f"{text} {random.choice(words)}") for n, text in enumerate(groups) for m in "ab"
    ]
    assert sorted(len(cluster.members) for cluster in cluster_reflections(reflections, {})) == [2] * len(groups)


def test_drafts_reflections_without_source_and_short_ones_are_ignored() -> None:
    drafts = [reflection(loop, "The approach carried at once.", draft=True) for loop in "ab"]
    homeless = [reflection("", SETTLE, day) for day in (1, 2)]
    short = [reflection(loop, "tests failed") for loop in "ab"]
    silent = [reflection(loop, "", observation=SETTLE) for loop in "ab"]
    assert cluster_reflections([*drafts, *homeless, *short, *silent], {}) == ()


def test_hostile_texts_are_truncated_and_not_dropped() -> None:
    wild = "\x1b]0;x\x07 \ud800 [/] \u202e " + "word and another " * 100_000
    (found,) = cluster_reflections([reflection("\ud800", wild), reflection("b", wild)], {})
    assert found.text == wild


_WORDS = ("types", "first", "lock", "order", "settle", "retry", "cache", "before", "tests", "shared")
_LEARNING = st.lists(st.sampled_from(_WORDS), min_size=0, max_size=7).map(" ".join)
_DRAWN = st.lists(st.tuples(st.sampled_from("abcd"), _LEARNING, st.none() | st.integers(0, 3)), max_size=14)


@given(_DRAWN, st.randoms(use_true_random=False))
def test_clusters_are_disjoint_and_independent_of_the_order_of_input(
    drawn: list[tuple[str, str, int | None]], random: Random
) -> None:
    reflections = [reflection(loop, text, day, id=f"{n}") for n, (loop, text, day) in enumerate(drawn)]
    clusters = cluster_reflections(reflections, {})
    members = [member.reflection.id for cluster in clusters for member in cluster.members]
    assert len(members) == len(set(members))
    assert len({cluster.id for cluster in clusters}) == len(clusters)
    for cluster in clusters:
        central = sorted_words(strip_label(cluster.text))
        assert cluster.central in {member.reflection for member in cluster.members}
        assert len(set(cluster.sources)) == len(cluster.sources) >= 2
        for member in cluster.members:
            words = sorted_words(strip_label(member.reflection.learning))
            assert words == central or fuzz.ratio(central, words) > MIN_SIMILARITY * 100
    random.shuffle(reflections)
    assert cluster_reflections(reflections, {}) == clusters


FIRST_AT = datetime(2026, 2, 2, 15, 0, tzinfo=UTC)
LOCK = "Lock the carts in the order of their ids; then no retry is needed"
ASKED = {"loop-0": "Fix TypeScript deadlock in the checkout", "loop-1": "Debug the merge of carts"}


def make_reflection(number: int, learning: str, **more: Any) -> Reflection:
    at = FIRST_AT + timedelta(hours=number)
    values = {"id": f"r-{number}", "shape": "hook", "file": "f", "loop_id": f"loop-{number}", "at": at, "iteration": 3}
    return Reflection(**{**values, "learning": learning, **more})


def make_cluster(learning: str = LOCK, count: int = 2, **more: Any) -> Cluster:
    (found,) = cluster_reflections([make_reflection(number, learning, **more) for number in range(count)], {})
    return found


def draft_recurring(of: Cluster, knows: KnownPatterns | None = None, **settings: Any) -> Proposal:
    extraction = extract_recurring_lesson(of, ASKED, knows or make_known_patterns(), ExtractionSettings(**settings))
    assert extraction.source_id == of.id
    (proposal,) = extraction.proposals
    return proposal


def test_a_recommendation_is_a_success_pattern_with_all_source_loops_and_one_use() -> None:
    found = draft_recurring(make_cluster(count=3, actions=("Sort the ids", "Drop the retry wrapper")))
    record = found.record
    assert (found.type, found.refused, found.duplicate_of) == (PatternType.SUCCESS, "", "")
    assert record["approach"] == {"description": LOCK, "steps": ["Sort the ids", "Drop the retry wrapper"]}
    assert record["source_loops"] == [
        {"loop_id": f"loop-{number}", "timestamp": f"2026-02-02T{15 + number}:00:00Z"} for number in range(3)
    ]
    assert (record["success_rate"], record["usage_count"]) == (1.0, 1)
    assert record["first_discovered"] == record["last_used"] == "2026-02-02T15:00:00Z"
    assert record["task_category"] == "debugging" and "typescript" in record["tags"]
    assert found.trace == ("loop-0 iteration 3", "loop-1 iteration 3", "loop-2 iteration 3")
    assert found.slug == "lock-carts-order-ids"
    assert draft_recurring(make_cluster()).record["approach"]["steps"] == [LOCK], "without action items"


def test_a_warning_becomes_an_anti_pattern_with_a_failure_mode() -> None:
    beside: dict[str, Any] = {"observation": "6 of 50 merges lost an item", "analysis": "Both wait"}
    for learning, approach in [
        ("Never hold two locks while you wait", "Never hold two locks while you wait"),
        ("please do not edit generated files by hand", "Do not edit generated files by hand"),
        ("Don\u2019t clear the shared store between tests", "Don\u2019t clear the shared store between tests"),
        ("AVOID splitting the work by file type", "Avoid splitting the work by file type"),
    ]:
        found = draft_recurring(make_cluster(learning, actions=("Sort the ids",), **beside))
        assert found.type is PatternType.ANTI, learning
        expected = {
            "approach_description": approach,
            "failure_rate": 1.0,
            "occurrence_count": 1,
            "failure_mode": "incorrect_fix",
            "failure_symptoms": ["6 of 50 merges lost an item"],
            "why_it_fails": "Both wait",
            "better_alternative": {"description": "Sort the ids"},
        }
        assert {key: found.record[key] for key in expected} == expected, learning
    crept = draft_recurring(make_cluster("Never tidy up other modules", analysis="Unrelated changes broke the build"))
    assert crept.record["failure_mode"] == "scope_creep"
    for learning in ("Retry once, and never take the same connection", "Do not forget that the lock is never free"):
        found = draft_recurring(make_cluster(learning))
        assert found.type is PatternType.SUCCESS and found.record["approach"]["description"] == learning


def test_the_same_error_beside_the_learning_of_two_loops_makes_an_error_pattern() -> None:
    error = "TypeError: Cannot read property 'email' of null at src/auth.ts:42"
    found = draft_recurring(make_cluster("Add a null check before the e-mail is read", observation=error))
    assert found.type is PatternType.ERROR
    assert found.record["error_signature"]["error_type"] == "TypeError"
    assert "Cannot read property" in found.record["error_signature"]["error_pattern"]
    assert found.record["fix_approach"]["fix_category"] == "add_null_check"
    assert len(found.record["source_loops"]) == 2
    one = make_reflection(0, LOCK, observation="TypeError: x is null")
    (cluster,) = cluster_reflections([one, make_reflection(1, LOCK)], {})
    assert draft_recurring(cluster).type is PatternType.SUCCESS


def test_an_error_message_is_not_a_lesson() -> None:
    named = draft_recurring(make_cluster("TypeError: Cannot read property 'email' of null"))
    assert named.refused.startswith("it is an error message")
    met = draft_recurring(
        make_cluster("expected 401 to equal 200"), make_known_patterns(messages=("expected 401 to equal 200",))
    )
    assert met.refused.startswith("it is an error message")


def test_a_pattern_with_all_loops_is_refused_and_with_some_is_merged() -> None:
    of = make_cluster(count=3)
    record = draft_recurring(of).record
    whole = parse_pattern_record(PatternType.SUCCESS, "lock", record)
    assert (
        draft_recurring(of, make_known_patterns(whole)).refused
        == f"already known from all of these loops as {whole.id}"
    )
    some = parse_pattern_record(PatternType.SUCCESS, "lock", {**record, "source_loops": record["source_loops"][:1]})
    merge = draft_recurring(of, make_known_patterns(some))
    assert (merge.refused, merge.duplicate_of, merge.similarity) == ("", some.id, 1)
    beside = draft_recurring(of, make_known_patterns(some), merge_similar_patterns=False)
    assert (beside.duplicate_of, beside.record["related_patterns"]) == ("", [some.id])


def test_hostile_texts_become_one_capped_line_each_and_few_of_many_loops_are_in_the_trace() -> None:
    wild = "Lock [/] first\x1b[31m\nthen " + "order the ids " * 100_000
    of = make_cluster(wild, actions=("do\nthis" * 1000, *map(str, range(1000))), observation="x\n" * 100_000)
    approach = draft_recurring(of).record["approach"]
    assert "\n" not in approach["description"] and len(approach["description"]) <= 300
    assert len(approach["steps"]) == 20 and all("\n" not in step and len(step) <= 300 for step in approach["steps"])
    found = draft_recurring(make_cluster(count=40))
    assert len(found.record["source_loops"]) == 40
    assert len(found.trace) == 11 and found.trace[-1] == "and 30 more"


APPROVED = make_pattern("pat-success-clock-001", PatternType.SUCCESS, description=CLOCK)
AVOIDED = make_pattern("pat-anti-clock-001", PatternType.ANTI, description=f"AVOID: {CLOCK}")
BY_HAND = CurationState(approved={id: frozenset({"seen"}) for id in (APPROVED.id, AVOIDED.id)})


def joined(
    *lessons: Lesson,
    patterns: tuple[Pattern, ...] = (),
    curation: CurationState = BY_HAND,
    decisions: tuple[Decision, ...] = (),
) -> tuple[JoinedLesson, ...]:
    known = {pattern.id: pattern for pattern in patterns}
    snapshot = Snapshot(
        lessons={one.id: one for one in lessons}, patterns=known, curation=curation, decisions=decisions
    )
    compared = run_all(compare_lessons_in_steps(snapshot.lessons, known))
    return run_all(judge_lessons_in_steps(compared, snapshot, make_board(*patterns, curation=curation)))


def test_nearly_the_same_lesson_of_several_runners_is_one_but_short_ones_need_equal_words() -> None:
    one, other = make_agent_lesson(), make_agent_lesson(f"{CLOCK}.", "codex", uses=2)
    third = make_agent_lesson("Use the fake clock from tests/clock.ts in all cart tests", "snarktank")
    (found,) = joined(one, other, third, make_agent_lesson("Squash commits before the merge"))[:1]
    assert set(found.places) == {one, other, third}
    assert (found.runners[0], found.uses) == (found.lesson.runner, 2)
    assert len(joined(make_agent_lesson("tests failed"), make_agent_lesson("Tests failed!", "codex"))) == 1
    assert len(joined(make_agent_lesson("tests failed"), make_agent_lesson("tests passed", "codex"))) == 2


def test_of_equal_texts_the_one_that_worked_and_can_become_a_pattern_is_asked_about() -> None:
    fact = make_agent_lesson(kind=LessonKind.FACT, outcome=Outcome.SUCCESS, loaded=True)
    plain, loaded = make_agent_lesson(runner="codex"), make_agent_lesson(runner="opencode", loaded=True)
    worked = make_agent_lesson(runner="orchestrator", outcome=Outcome.SUCCESS)
    (found,) = joined(fact, plain, loaded, worked)
    assert found.places == (worked, loaded, plain, fact)
    assert found.is_loaded


def test_lessons_that_demand_the_opposite_disagree_but_not_those_with_other_numbers() -> None:
    one, other = joined(make_agent_lesson(), make_agent_lesson(NO_CLOCK, "codex"))
    assert (one.disagrees_with, other.disagrees_with) == ((other.id,), (one.id,))
    found = joined(*(make_agent_lesson(f"Wait {number} seconds for the staging server") for number in (30, 60)))
    assert [one.disagrees_with for one in found] == [(), ()]


def test_a_lesson_contradicts_an_approved_pattern_or_is_known_from_one() -> None:
    for lesson, pattern in ((NO_CLOCK, APPROVED), (CLOCK, AVOIDED)):
        (found,) = joined(make_agent_lesson(lesson), patterns=(pattern,))
        assert (found.state, found.contradicts) == (LessonState.OPEN, (pattern.id,))
    (found,) = joined(make_agent_lesson(NO_CLOCK), patterns=(APPROVED,), curation=CurationState())
    assert not found.contradicts, "nothing confirmed the pattern"
    for lesson, pattern in ((CLOCK, APPROVED), (NO_CLOCK, AVOIDED)):
        (found,) = joined(make_agent_lesson(lesson), patterns=(pattern,))
        assert (found.state, found.patterns, found.contradicts) == (LessonState.KNOWN, (pattern.id,), ())


def test_a_lesson_from_which_a_person_extracted_is_accepted() -> None:
    lesson, other = make_agent_lesson(), make_agent_lesson(runner="codex")
    made = Decision(
        id="d1", at=NOW, by="ada", verb=Verb.EXTRACT, subject=other.id, after={"patterns": ["p"], "joined": "damaged"}
    )
    (found,) = joined(lesson, other, decisions=(made,))
    assert (found.state, found.patterns) == (LessonState.ACCEPTED, ("p",))
    (found,) = joined(lesson, other, decisions=(made,), curation=CurationState(undone=frozenset({"d1"})))
    assert found.state is LessonState.OPEN


def test_a_rejected_text_stays_rejected_in_other_files_and_spellings_but_not_if_it_changes() -> None:
    rejected = CurationState(dismissed=frozenset({lesson_question_id(CLOCK)}))
    for text in (CLOCK, f"  {CLOCK.upper()}\n"):
        (found,) = joined(make_agent_lesson(text, "codex", file="AGENTS.md"), curation=rejected)
        assert found.state is LessonState.REJECTED
    (found,) = joined(make_agent_lesson(f"{CLOCK} and mail test"), curation=rejected)
    assert found.state is LessonState.OPEN


SIGN = "First check that the import is not there already"


def extracted(
    *places: Lesson,
    known: tuple[Pattern, ...] = (),
    types: Set[PatternType] = ALL_TYPES,
    **fields: Any,
) -> Extraction:
    joined = JoinedLesson(places=places, **fields)
    return extract_lesson(joined, make_known_patterns(*known), ExtractionSettings(), types)


def test_the_kind_decides_the_type() -> None:
    for kind, text, trigger, made in [
        (LessonKind.APPROACH, CLOCK, "", PatternType.SUCCESS),
        (LessonKind.APPROACH, NO_CLOCK, "", PatternType.ANTI),
        (LessonKind.WARNING, NO_CLOCK, "", PatternType.ANTI),
        (LessonKind.WARNING, SIGN, "", PatternType.SUCCESS),
        (LessonKind.FIX, CLOCK, "TypeError: clock is null", PatternType.ERROR),
        (LessonKind.FIX, CLOCK, "", PatternType.SUCCESS),
        (LessonKind.FACT, CLOCK, "", None),
    ]:
        lesson = make_agent_lesson(text, kind=kind, trigger=trigger)
        assert pattern_type(lesson) is made, (kind, text, trigger, made)
        assert [one.type for one in extracted(lesson).proposals] == ([made] if made else []), (
            kind,
            text,
            trigger,
            made,
        )


def test_the_record_has_runner_session_file_and_line_of_each_place() -> None:
    one = make_agent_lesson(at=NOW, loop_id="claude:1", title="Cart tests", why="It failed at midnight")
    other = make_agent_lesson(runner="snarktank", file="progress.txt", line=9)
    offer = extracted(one, other)
    assert (offer.source_id, offer.about) == (one.id, f"the lesson “{CLOCK}”")
    assert drafted(offer)["source_loops"] == [
        {
            "loop_id": "claude:1",
            "file": "~/.claude/memory/notes.md",
            "line": 3,
            "timestamp": "2026-02-03T00:00:00Z",
            "contributed_by": "claude",
        },
        {"loop_id": other.id, "file": "progress.txt", "line": 9, "contributed_by": "snarktank"},
    ]
    (proposal,) = offer.new
    assert proposal.trace == ("claude ~/.claude/memory/notes.md:3", "snarktank progress.txt:9")


def test_the_situation_of_an_approach_is_its_precondition_and_a_prohibition_names_what_to_avoid() -> None:
    lesson = make_agent_lesson(trigger="when a test touches dates", title="cart-clock")
    assert drafted(extracted(lesson))["preconditions"] == ["when a test touches dates"]
    assert "preconditions" not in drafted(extracted(make_agent_lesson(title="US-001")))
    sign = drafted(extracted(make_agent_lesson(SIGN, kind=LessonKind.WARNING, trigger="Adding an import")))
    assert sign["approach"]["description"] == SIGN, "advice is not turned into its opposite"
    assert sign["preconditions"] == ["Adding an import"]
    record = drafted(extracted(make_agent_lesson(NO_CLOCK, kind=LessonKind.WARNING, why="It hides the hour")))
    assert (record["approach_description"], record["why_it_fails"]) == (NO_CLOCK, "It hides the hour")
    record = drafted(extracted(make_agent_lesson("Never push to main; open a pull request.")))
    assert record["approach_description"] == "Never push to main"
    assert record["better_alternative"] == {"description": "open a pull request"}


def test_a_pattern_is_named_by_the_sentence_and_has_no_use() -> None:
    for text in [SIGN, CLOCK, NO_CLOCK, "Never push to main; open a pull request."]:
        record = drafted(extracted(make_agent_lesson(text, trigger="TypeError: x is null", at=NOW)))
        assert record["name"] == text, text
        counts = {key: record.get(key) for key in ("usage_count", "occurrence_count", "success_rate", "failure_rate")}
        assert not any(counts.values()), text
        assert "last_used" not in record, text


def test_a_fact_becomes_a_pattern_only_of_a_named_type_that_fits() -> None:
    fact = make_agent_lesson(kind=LessonKind.FACT)
    assert "it is a fact, not advice" in extracted(fact).why_nothing
    (proposal,) = extracted(fact, types={PatternType.SUCCESS}).new
    assert proposal.type is PatternType.SUCCESS
    for kind, why in [(PatternType.ERROR, "does not name the error"), (PatternType.TEMPLATE, "has no code")]:
        assert why in extracted(make_agent_lesson(), types={kind}).why_nothing, (kind, why)


def test_a_similar_pattern_gets_a_further_use_unless_it_is_of_the_same_session_or_lesson() -> None:
    fields: dict[str, Any] = {"description": CLOCK, "category": "testing"}
    twin = make_pattern("pat-success-clock-001", PatternType.SUCCESS, **fields)
    (proposal,) = extracted(make_agent_lesson(), known=(twin,)).merges
    assert proposal.duplicate_of == twin.id
    twin = replace(twin, source_loops=(make_source("claude:1"),))
    same = extracted(make_agent_lesson(loop_id="claude:1"), known=(twin,))
    assert same.why_nothing == f"already known from its session as {twin.id}"
    other = extracted(make_agent_lesson(), known=(twin,), state=LessonState.ACCEPTED, patterns=(twin.id,))
    assert other.why_nothing == f"already accepted as {twin.id}"


SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def make(kind: PatternType, when: str, lesson: str, evidence: str = "Seen twice", loop_id: str = "") -> Proposal:
    return make_lesson(kind, when, lesson, evidence, loop_id=loop_id, at=NOW, by="mcp:codex")


def parse(proposal: Proposal) -> Pattern:
    return parse_pattern_record(proposal.type, proposal.slug, proposal.record)


def test_a_reported_lesson_becomes_a_pattern_of_its_type() -> None:
    error = parse(make(PatternType.ERROR, "TypeError: Cannot read property 'id' of null", "Add a null check"))
    assert (error.error_type, error.description, error.category) == ("TypeError", "Add a null check", "add_null_check")
    assert "'id'" not in error.error_pattern and "Cannot read property" in error.error_pattern
    anti = parse(make(PatternType.ANTI, "A type error in a test", "Never cast the fixture to Any", "Hid two bugs"))
    assert anti.description == "Never cast the fixture to Any"
    assert (anti.symptoms, anti.why_it_fails) == (("A type error in a test",), "Hid two bugs")
    anti = parse(make(PatternType.ANTI, "A test needs a date", "Don't mock the clock, inject it instead", "Hid a bug"))
    assert (anti.description, anti.better_alternative) == ("Don't mock the clock", "inject it")
    situation = "The migration touches two services"
    success = parse(make(PatternType.SUCCESS, situation, "Deploy the reader first", loop_id="ralph-a"))
    assert (success.description, success.preconditions) == ("Deploy the reader first", (situation,))
    assert [(one.loop_id, one.contributed_by) for one in success.source_loops] == [("ralph-a", "mcp:codex")]
    assert parse(make(PatternType.SUCCESS, "case", "Deploy the reader first")).source_loops == ()


def test_secrets_are_masked_and_lines_joined() -> None:
    for kind in [PatternType.ERROR, PatternType.SUCCESS, PatternType.ANTI]:
        text = f"TypeError: one\ntwo {SECRET} three"
        record = str(make(kind, text, text, text).record)
        assert SECRET not in record and "\\n" not in record, kind


def test_an_incomplete_lesson_is_refused() -> None:
    for kind, when, lesson, evidence, why in [
        (PatternType.SUCCESS, " ", "x", "y", "when is empty"),
        (PatternType.SUCCESS, "x", "\n", "y", "lesson is empty"),
        (PatternType.SUCCESS, "x", "y", "", "evidence is empty"),
        (PatternType.ERROR, "??", "x", "y", "must be the error message"),
    ]:
        with pytest.raises(BadInput, match=why):
            make(kind, when, lesson, evidence)
