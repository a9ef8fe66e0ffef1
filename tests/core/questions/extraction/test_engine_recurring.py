"""Extraction of a candidate from a recurring learning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.base.settings import ExtractionSettings
from core.questions.extraction.engine import KnownPatterns
from core.questions.extraction.learnings import Cluster, cluster_reflections, extract_recurring_lesson
from core.records.extractions import Proposal
from core.records.patterns import PatternType
from core.records.reflections import Reflection
from tests.factories import make_known_patterns, parse_pattern_record

START = datetime(2026, 2, 2, 15, 0, tzinfo=UTC)
LOCK = "Lock the carts in the order of their ids; then no retry is needed"
ASKED = {"loop-0": "Fix TypeScript deadlock in the checkout", "loop-1": "Debug the merge of carts"}


def make_reflection(number: int, learning: str, **more: Any) -> Reflection:
    at = START + timedelta(hours=number)
    values = {"id": f"r-{number}", "shape": "hook", "file": "f", "loop_id": f"loop-{number}", "at": at, "iteration": 3}
    return Reflection(**{**values, "learning": learning, **more})


def cluster(learning: str = LOCK, count: int = 2, **more: Any) -> Cluster:
    (found,) = cluster_reflections([make_reflection(number, learning, **more) for number in range(count)], {})
    return found


def drafted(of: Cluster, knows: KnownPatterns | None = None, **settings: Any) -> Proposal:
    extraction = extract_recurring_lesson(of, ASKED, knows or make_known_patterns(), ExtractionSettings(**settings))
    assert extraction.source_id == of.id
    (proposal,) = extraction.proposals
    return proposal


def test_a_recommendation_is_a_success_pattern_with_all_source_loops_and_one_use() -> None:
    found = drafted(cluster(count=3, actions=("Sort the ids", "Drop the retry wrapper")))
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


def test_without_action_items_the_learning_is_the_step() -> None:
    assert drafted(cluster()).record["approach"]["steps"] == [LOCK]


@pytest.mark.parametrize(
    ("learning", "approach"),
    [
        ("Never hold two locks while you wait", "Never hold two locks while you wait"),
        ("please do not edit generated files by hand", "Do not edit generated files by hand"),
        ("Don\u2019t clear the shared store between tests", "Don\u2019t clear the shared store between tests"),
        ("AVOID splitting the work by file type", "Avoid splitting the work by file type"),
    ],
)
def test_a_warning_becomes_an_anti_pattern(learning: str, approach: str) -> None:
    beside: dict[str, Any] = {"observation": "6 of 50 merges lost an item", "analysis": "Both wait"}
    found = drafted(cluster(learning, actions=("Sort the ids",), **beside))
    record = found.record
    assert (found.type, record["approach_description"]) == (PatternType.ANTI, approach)
    assert (record["failure_rate"], record["occurrence_count"], record["failure_mode"]) == (1.0, 1, "incorrect_fix")
    assert record["failure_symptoms"] == ["6 of 50 merges lost an item"]
    assert (record["why_it_fails"], record["better_alternative"]) == ("Both wait", {"description": "Sort the ids"})


def test_a_negation_inside_a_learning_is_not_a_warning() -> None:
    for learning in ("Retry once, and never take the same connection", "Do not forget that the lock is never free"):
        found = drafted(cluster(learning))
        assert found.type is PatternType.SUCCESS and found.record["approach"]["description"] == learning


def test_anti_patterns_have_a_failure_mode() -> None:
    found = drafted(cluster("Never tidy up other modules", analysis="Unrelated changes broke the build"))
    assert found.record["failure_mode"] == "scope_creep"


def test_the_same_error_beside_the_learning_makes_an_error_pattern() -> None:
    error = "TypeError: Cannot read property 'email' of null at src/auth.ts:42"
    found = drafted(cluster("Add a null check before the e-mail is read", observation=error))
    assert found.type is PatternType.ERROR
    assert found.record["error_signature"]["error_type"] == "TypeError"
    assert "Cannot read property" in found.record["error_signature"]["error_pattern"]
    assert found.record["fix_approach"]["fix_category"] == "add_null_check"
    assert len(found.record["source_loops"]) == 2


def test_an_error_of_only_one_loop_gives_no_error_pattern() -> None:
    one = make_reflection(0, LOCK, observation="TypeError: x is null")
    (found,) = cluster_reflections([one, make_reflection(1, LOCK)], {})
    assert drafted(found).type is PatternType.SUCCESS


def test_an_error_message_is_not_a_lesson() -> None:
    named = drafted(cluster("TypeError: Cannot read property 'email' of null"))
    assert named.refused.startswith("it is an error message")
    met = drafted(cluster("expected 401 to equal 200"), make_known_patterns(messages=("expected 401 to equal 200",)))
    assert met.refused.startswith("it is an error message")


def test_a_pattern_with_all_loops_is_refused_and_with_some_is_merged() -> None:
    of = cluster(count=3)
    record = drafted(of).record
    whole = parse_pattern_record(PatternType.SUCCESS, "lock", record)
    assert drafted(of, make_known_patterns(whole)).refused == f"already known from all of these loops as {whole.id}"
    some = parse_pattern_record(PatternType.SUCCESS, "lock", {**record, "source_loops": record["source_loops"][:1]})
    merge = drafted(of, make_known_patterns(some))
    assert (merge.refused, merge.duplicate_of, merge.similarity) == ("", some.id, 1)
    beside = drafted(of, make_known_patterns(some), merge_similar_patterns=False)
    assert (beside.duplicate_of, beside.record["related_patterns"]) == ("", [some.id])


def test_hostile_texts_become_one_capped_line_each() -> None:
    wild = "Lock [/] first\x1b[31m\nthen " + "order the ids " * 100_000
    of = cluster(wild, actions=("do\nthis" * 1000, *map(str, range(1000))), observation="x\n" * 100_000)
    found = drafted(of)
    approach = found.record["approach"]
    assert "\n" not in approach["description"] and len(approach["description"]) <= 300
    assert len(approach["steps"]) == 20 and all("\n" not in step and len(step) <= 300 for step in approach["steps"])


def test_all_loops_are_source_loops_and_few_are_in_the_trace() -> None:
    found = drafted(cluster(count=40))
    assert len(found.record["source_loops"]) == 40
    assert len(found.trace) == 11 and found.trace[-1] == "and 30 more"
