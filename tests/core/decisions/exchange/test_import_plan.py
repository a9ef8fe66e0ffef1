"""Patterns that travel between projects: the same bytes, and every use counted once."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.decisions.exchange.export import Entry, export
from core.decisions.exchange.import_plan import Action, text_of
from core.decisions.merge import as_read
from core.records.patterns import PatternType
from tests.factories import ExchangeProject, make_error_record, make_pattern_file

ONE, TWO = "pat-error-made-001", "pat-error-made-002"


def test_an_import_into_an_empty_project_exports_the_same_bytes() -> None:
    source = ExchangeProject(
        "a",
        make_error_record(1, source_loops=["ralph-a"]),
        make_error_record(2, 3, 1 / 3, house_rule={"b": 1, "a": [2]}),
    )
    target = ExchangeProject("b")
    data = source.export().data
    assert target.take(data) == [Action.NEW, Action.NEW]
    assert target.export().data == data


def test_importing_twice_changes_nothing() -> None:
    source, target = (
        ExchangeProject("a", make_error_record(1), make_error_record(2)),
        ExchangeProject("b", make_error_record(2, fix="Something quite different")),
    )
    data = source.export().data
    assert target.take(data) == [Action.NEW, Action.CONFLICT]
    before = dict(target.records)
    assert set(target.take(data)) == {Action.SAME}
    assert target.records == before


def test_reimported_counts_are_counted_once() -> None:
    source, target = ExchangeProject("a", make_error_record(1, 10)), ExchangeProject("b")
    target.take(source.export().data)
    target.use(ONE, 3)
    source.use(ONE, 2)
    assert source.take(target.export().data) == [Action.COUNTS]
    assert source.uses(ONE) == 15
    assert target.take(source.export().data) == [Action.COUNTS]
    assert target.uses(ONE) == 15
    assert source.take(target.export().data) == [Action.SAME]


LOOPS = [{"loop_id": "ralph-x-00000001", "timestamp": "2026-01-01T00:00:00Z"}]


def test_copies_of_one_project_share_their_uses() -> None:
    for first in ("ab", "ba", "both"):
        one, two = (ExchangeProject(name, make_error_record(1, 18, 15 / 18, source_loops=LOOPS)) for name in "ab")
        sent = {"a": one.export().data, "b": two.export(team_shared=True).data}
        if first in ("ba", "both"):
            one.take(sent["b"])
        if first in ("ab", "both"):
            two.take(sent["a"])
        assert (one.uses(ONE), two.uses(ONE)) == (18, 18)
        one.use(ONE, 2)
        two.use(ONE, 3)
        for giver, taker in [(one, two), (two, one)] * 2:
            taker.take(giver.export().data)
        assert (one.uses(ONE), two.uses(ONE)) == (23, 23)
        assert one.take(sent["b"]) == [Action.SAME]
        assert one.take(two.export().data) == [Action.SAME]
        third = ExchangeProject("c", make_error_record(1, 4))
        for data in (sent["a"], two.export().data, sent["b"], one.export().data):
            third.take(data)
        assert third.uses(ONE) == 27
        last = ExchangeProject("d", make_error_record(1, 20, 17 / 20, source_loops=LOOPS))
        last.take(one.export().data)
        two.take(last.export().data)
        assert (last.uses(ONE), two.uses(ONE)) == (25, 25)


def test_imported_loops_do_not_identify_a_copy() -> None:
    source, one, two = (
        ExchangeProject("a", make_error_record(1, 0, 0.0, source_loops=LOOPS)),
        ExchangeProject("b"),
        ExchangeProject("c"),
    )
    for target, times in ((one, 2), (two, 3)):
        target.take(source.export().data)
        target.use(ONE, times)
    one.take(two.export().data)
    source.use(ONE, 1)
    source.take(one.export().data)
    assert (one.uses(ONE), source.uses(ONE)) == (5, 6)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), max_size=8), st.booleans())
def test_exchange_between_copies_adds_no_uses(steps: list[tuple[int, int, int]], met: bool) -> None:
    projects = [ExchangeProject(name, make_error_record(1, 5, source_loops=LOOPS)) for name in ("abc" if met else "ab")]
    if met:
        for one, other in permutations(projects, 2):
            other.take(one.export().data)
    used = 5
    for who, whom, times in steps:
        giver, taker = who % len(projects), whom % len(projects)
        projects[taker].use(ONE, times)
        used += times
        if giver != taker:
            projects[taker].take(projects[giver].export().data)
        assert all(project.uses(ONE) <= used for project in projects)
    for one, other in [*permutations(projects, 2)] * 2:
        other.take(one.export().data)
        assert all(project.uses(ONE) <= used for project in projects)
    assert not met or [project.uses(ONE) for project in projects] == [used] * 3


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), max_size=8))
def test_repeated_exchange_counts_each_use_once(steps: list[tuple[int, int, int]]) -> None:
    projects = [ExchangeProject(name) for name in "abc"]
    projects[0].records[ONE] = make_error_record(1, 5)
    used = 5
    for giver, taker, times in steps:
        if ONE in projects[taker].records:
            projects[taker].use(ONE, times)
            used += times
        if giver != taker and ONE in projects[giver].records:
            projects[taker].take(projects[giver].export().data)
        assert all(project.uses(ONE) <= used for project in projects if project.records)
    for one, other in [*permutations(projects, 2)] * 2:
        if one.records:
            other.take(one.export().data)
    assert [project.uses(ONE) for project in projects] == [used] * 3


def test_import_of_a_backup_restores_own_counts() -> None:
    source = ExchangeProject("a", make_error_record(1, 10))
    data = source.export().data
    source.records.clear()
    assert source.take(data) == [Action.NEW]
    assert source.export().data == data


def test_file_without_origins_adds_only_its_increase() -> None:
    target = ExchangeProject("a", make_error_record(1, 4, source_loops=["ralph-ours"]))
    theirs = make_error_record(1, 6, source_loops=["ralph-theirs"])
    assert target.take(make_pattern_file(theirs)) == [Action.COUNTS]
    assert target.uses(ONE) == 10
    assert target.take(make_pattern_file(theirs)) == [Action.SAME]
    assert target.take(make_pattern_file({**theirs, "usage_count": 8})) == [Action.COUNTS]
    assert target.uses(ONE) == 12


def test_file_that_names_local_loops_adds_no_uses() -> None:
    for loops in ([], ["ralph-ours"]):
        target = ExchangeProject("a", make_error_record(1, 4, source_loops=["ralph-ours"]))
        target.take(make_pattern_file(make_error_record(1, 6, source_loops=loops)))
        assert target.uses(ONE) == 6


def test_counts_without_an_origin_stay_without_one() -> None:
    data = make_pattern_file(make_error_record(1, 6))
    one, two = ExchangeProject("a"), ExchangeProject("b")
    one.take(data)
    two.take(data)
    one.take(two.export().data)
    assert one.uses(ONE) == 6


def test_newer_text_replaces_an_unchanged_one() -> None:
    source, target = ExchangeProject("a", make_error_record(1, note="old")), ExchangeProject("b")
    target.take(source.export().data)
    source.records[ONE] = {**make_error_record(1, 5, fix="A better way to do it"), "note": "new"}
    plan = target.plan(source.export().data)
    assert [row.action for row in plan.rows] == [Action.TEXT]
    assert plan.rows[0].content_hash
    target.take(source.export().data)
    ours, theirs = target.records[ONE], source.records[ONE]
    assert (ours["fix_approach"], ours["note"], ours["usage_count"]) == (theirs["fix_approach"], "new", 5)


def test_locally_changed_text_stays_and_theirs_gets_a_new_id() -> None:
    source, target = ExchangeProject("a", make_error_record(1)), ExchangeProject("b")
    target.take(source.export().data)
    target.records[ONE]["fix_approach"] = {"description": "Our own better way of doing it", "fix_category": "other"}
    assert target.take(source.export().data) == [Action.SAME]
    source.records[ONE]["fix_approach"] = {"description": "Their own better way of doing it", "fix_category": "other"}
    plan = target.plan(source.export().data)
    assert (plan.rows[0].action, plan.rows[0].target) == (Action.CONFLICT, "pat-error-made-500")
    assert plan.rows[0].record is not None
    assert plan.rows[0].record["related_patterns"] == [ONE]


def test_same_text_under_another_id_adds_an_alias_and_counts() -> None:
    target = ExchangeProject("a", make_error_record(1, 4, source_loops=["ralph-x"]))
    other = {**make_error_record(1, 2, source_loops=["ralph-y"]), "pattern_id": TWO}
    assert target.take(make_pattern_file(other)) == [Action.DUPLICATE]
    assert target.uses(ONE) == 6
    assert target.records[ONE]["aliases"] == [TWO]
    assert target.take(make_pattern_file(other)) == [Action.SAME]


def test_two_imported_records_of_one_local_record_both_count() -> None:
    target = ExchangeProject("a", make_error_record(1, 4, source_loops=["ralph-x"]))
    others = [
        {**make_error_record(1, 2, source_loops=[f"ralph-{n}"]), "pattern_id": f"pat-error-made-00{n}"} for n in (2, 3)
    ]
    data = make_pattern_file(*others)
    assert target.take(data) == [Action.DUPLICATE, Action.DUPLICATE]
    assert target.uses(ONE) == 8
    assert target.records[ONE]["aliases"] == [TWO, "pat-error-made-003"]


def test_similar_pattern_is_imported_and_listed() -> None:
    target = ExchangeProject("a", make_error_record(1))
    plan = target.plan(
        make_pattern_file({**make_error_record(2), "error_signature": make_error_record(1)["error_signature"]})
    )
    assert plan.rows[0].action is Action.NEW
    assert [id for id, _ in plan.rows[0].similar] == [ONE]


def test_import_does_not_restore_archived_patterns() -> None:
    target = ExchangeProject("a")
    target.archived = frozenset({ONE})
    assert target.take(make_pattern_file(make_error_record(1))) == [Action.REFUSED]
    assert not target.records


def test_export_is_sorted_and_omits_local_keys() -> None:
    records = [
        make_error_record(2, override={"state": "proven"}, archived={"at": "now"}),
        make_error_record(1, zeta=1, alpha=float("nan")),
    ]
    template = {"template_id": "tmpl-a-001", "template_code": "x", "language": "go", "usage_count": 0}
    entries = [Entry(PatternType.TEMPLATE, template), *(Entry(PatternType.ERROR, record) for record in records)]
    data = export(entries, "a" * 16).data
    assert export(entries[::-1], "a" * 16).data == data
    assert data.endswith(b"}\n")
    content: dict[str, Any] = json.loads(data)
    one, two = content["pattern_registry"]["error_patterns"]
    assert list(one) == [*make_error_record(1), "origins", "alpha", "zeta"]
    assert (one["alpha"], one["origins"]) == (None, {"a" * 16: {"successes": 4, "failures": 0}})
    assert "override" not in two
    assert "archived" not in two
    assert content["pattern_registry"]["code_templates"][0]["origins"] == {"a" * 16: {"successes": 0, "failures": 0}}


def test_placeholder_order_is_ignored_but_preserved() -> None:
    kind = PatternType.TEMPLATE
    placeholders = {"zeta": "the value", "alpha": "the name"}
    template = {"template_id": "tmpl-a-001", "template_code": "x", "language": "go", "placeholders": placeholders}
    turned = {**template, "placeholders": dict(reversed(placeholders.items()))}
    assert text_of(as_read(template, kind)) == text_of(as_read(turned, kind))
    (sent,) = json.loads(export([Entry(kind, template)], "a" * 16).data)["pattern_registry"]["code_templates"]
    assert as_read(sent, kind).content_hash == as_read(template, kind).content_hash
