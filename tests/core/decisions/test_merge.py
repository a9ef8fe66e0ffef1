"""Merging records: counts and lineage are united, no use is invented, lost or counted twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decisions.merge import Tally, as_read, merge_changes
from core.records.patterns import PatternType

NOW = datetime(2026, 2, 3, tzinfo=UTC)
_TEXT: dict[PatternType, dict[str, Any]] = {
    PatternType.ERROR: {"error_signature": {"error_type": "TypeError", "error_pattern": "null"}},
    PatternType.SUCCESS: {"task_category": "testing", "approach": {"description": "tests first", "steps": ["a"]}},
    PatternType.ANTI: {"approach_description": "optimise early", "failure_mode": "scope_creep"},
    PatternType.TEMPLATE: {"language": "go", "template_code": "if err != nil {}"},
}


def loop(number: int, **more: Any) -> dict[str, Any]:
    return {"loop_id": f"ralph-{number}", "timestamp": f"2026-01-{number + 1:02}T00:00:00Z", **more}


def record(number: int, kind: PatternType = PatternType.ERROR, **more: Any) -> dict[str, Any]:
    if kind is PatternType.TEMPLATE:
        return {"template_id": f"tmpl-made-{number:03}", **_TEXT[kind], **more}
    return {"pattern_id": f"pat-{kind.value}-made-{number:03}", **_TEXT[kind], **more}


def tally(changed: dict[str, Any], target: dict[str, Any], kind: PatternType) -> Tally:
    return Tally.of(as_read({**target, **changed}, kind).recorded_counts)


def test_merge_adds_counts_and_lineage_and_preserves_the_text() -> None:
    target = record(
        1,
        source_loops=[loop(1)],
        success_rate=1.0,
        usage_count=4,
        last_used="2026-01-05T00:00:00Z",
        tags=["null"],
        house_rule="keep",
    )
    other = record(
        2,
        fix_approach={"description": "another way to say it"},
        source_loops=[loop(2)],
        success_rate=0.5,
        usage_count=2,
        last_used="2026-01-09T00:00:00Z",
        tags=["null", "auth"],
        related_patterns=["pat-success-x-001", "pat-error-made-001"],
    )
    assert merge_changes(target, other, PatternType.ERROR, NOW) == {
        "usage_count": 6,
        "success_rate": 5 / 6,
        "successful_applications": 5,
        "failed_applications": 1,
        "source_loops": [loop(1), loop(2)],
        "last_used": "2026-01-09T00:00:00.000Z",
        "tags": ["null", "auth"],
        "related_patterns": ["pat-success-x-001"],
        "aliases": ["pat-error-made-002"],
        "effectiveness_trend": [
            {"timestamp": "2026-01-09T00:00:00.000Z", "success_rate_snapshot": 5 / 6, "sample_size": 6}
        ],
    }


def test_common_loop_counts_as_one_use() -> None:
    target = record(1, source_loops=[loop(1), loop(2)], success_rate=0.75, usage_count=4)
    again = {**_TEXT[PatternType.ERROR], "source_loops": [loop(2)], "success_rate": 1.0, "usage_count": 1}
    assert merge_changes(target, again, PatternType.ERROR, NOW) == {}
    new = {**again, "source_loops": [loop(3)]}
    changed = merge_changes(target, new, PatternType.ERROR, NOW)
    assert (changed["usage_count"], changed["success_rate"]) == (5, 0.8)


def test_anti_pattern_counts_failures_as_successes() -> None:
    target = record(1, PatternType.ANTI, failure_rate=0.75, occurrence_count=4, source_loops=[loop(1)])
    other = record(2, PatternType.ANTI, failure_rate=1.0, occurrence_count=1, source_loops=[loop(2)])
    changed = merge_changes(target, other, PatternType.ANTI, NOW)
    assert (changed["failure_rate"], changed["occurrence_count"]) == (0.8, 5)
    assert "usage_count" not in changed


@pytest.mark.parametrize(
    ("loops", "expected"), [(["ralph-1"], ["ralph-1", "ralph-2"]), ([loop(1)], [loop(1), loop(2)]), ([], ["ralph-2"])]
)
def test_merged_loops_use_the_form_of_the_list(loops: list[Any], expected: list[Any]) -> None:
    target = record(1, PatternType.TEMPLATE, source_loops=loops, usage_count=1)
    other = record(2, PatternType.TEMPLATE, source_loops=[loop(2)], usage_count=1)
    assert merge_changes(target, other, PatternType.TEMPLATE, NOW)["source_loops"] == expected


def test_counts_of_other_projects_are_stored_separately() -> None:
    target = record(1, usage_count=5, success_rate=1.0, origins={"aa": {"successes": 3, "failures": 0}})
    other = record(2, usage_count=2, success_rate=0.0, origins={"aa": {"successes": 0, "failures": 1}})
    assert merge_changes(target, other, PatternType.ERROR, NOW)["origins"] == {"aa": {"successes": 3, "failures": 1}}


def test_invalid_counts_are_ignored() -> None:
    target = record(1, usage_count=-3, success_rate=float("nan"), source_loops={"a": 1}, origins=[1])
    other = record(2, usage_count="many", source_loops=[None, 3, {"loop_id": []}], origins={"aa": {"successes": "x"}})
    changed = merge_changes(target, other, PatternType.ERROR, NOW)
    assert set(changed) == {"aliases", "origins"}
    assert changed["origins"] == {"aa": {"successes": 0, "failures": 0}}


_KINDS = st.sampled_from(list(PatternType))
_LOOPS = st.lists(
    st.integers(1, 6).flatmap(
        lambda n: st.sampled_from([loop(n), loop(n, outcome="failure"), {"loop_id": f"ralph-{n}"}])
    ),
    max_size=4,
    unique_by=lambda entry: entry["loop_id"],
)


@st.composite
def counted(draw: st.DrawFn, kind: PatternType, number: int) -> dict[str, Any]:
    good, bad = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    rate, uses = ("failure_rate", "occurrence_count") if kind is PatternType.ANTI else ("success_rate", "usage_count")
    made = record(number, kind, source_loops=draw(_LOOPS))
    made |= {uses: good + bad, rate: good / (good + bad) if good + bad else 0.0}
    return made


@given(st.data(), _KINDS)
def test_merged_counts_do_not_depend_on_the_direction(data: st.DataObject, kind: PatternType) -> None:
    one, two = data.draw(counted(kind, 1)), data.draw(counted(kind, 2))
    total = tally(merge_changes(one, two, kind, NOW), one, kind)
    assert total == tally(merge_changes(two, one, kind, NOW), two, kind)
    claims = Tally.of(as_read(one, kind).recorded_counts), Tally.of(as_read(two, kind).recorded_counts)
    together = claims[0] + claims[1]
    loops = min(len(one["source_loops"]), len(two["source_loops"]))
    assert together.uses - loops <= total.uses <= together.uses
    assert total.uses >= max(recorded_counts.uses for recorded_counts in claims)
    assert total.successes <= together.successes
    assert total.failures <= together.failures


@given(st.data(), _KINDS)
def test_merging_a_record_with_itself_changes_nothing(data: st.DataObject, kind: PatternType) -> None:
    one = data.draw(counted(kind, 1))
    assert merge_changes(one, one, kind, NOW) == {}


@given(st.data(), _KINDS)
def test_repeated_merge_without_counts_changes_nothing(data: st.DataObject, kind: PatternType) -> None:
    one, two = data.draw(counted(kind, 1)), data.draw(counted(kind, 2))
    after = {**one, **merge_changes(one, two, kind, NOW)}
    again = merge_changes(after, {**two, "occurrence_count": 0, "usage_count": 0}, kind, NOW)
    assert again == {}
