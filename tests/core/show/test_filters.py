"""Filters: parsing, completion, and what they select of each kind of record."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState, Decision, Verb
from core.records.events import VERDICT, Event
from core.records.loops import Outcome
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.reflections import Reflection
from core.records.snapshot import Delta, Snapshot
from core.show.decisions import DECISION_FIELDS, select_decisions
from core.show.filter_parser import MAX_QUERY, FieldKind, Fields, Query, Term, completions, parse_query
from core.show.pattern_filter import PATTERN_FIELDS, PatternCatalog
from core.show.reflections import REFLECTION_FIELDS, select_reflections
from tests.factories import (
    NOW,
    SETTINGS,
    days_ago,
    make_board,
    make_event,
    make_pattern,
    make_pin,
    make_recorded_counts,
    make_source,
)

FIELDS: Fields = {
    "status": ("running", "paused"),
    "state": ("open",),
    "uses": FieldKind.NUMBER,
    "rate": FieldKind.SHARE,
    "age": FieldKind.AGE,
    "tag": FieldKind.TEXT,
}


def test_the_last_term_is_completed_by_fields_and_values() -> None:
    rows: list[tuple[str, tuple[str, ...]]] = [
        ("", ()),
        ("word ", ()),
        ("sta", ("status:", "state:")),
        ("null -STA", ("null -status:", "null -state:")),
        ("status:", ("status:running", "status:paused")),
        ("-status:P", ("-status:paused",)),
        ("status:paused", ()),
        ("a status:running u", ("a status:running uses:",)),
        ("uses:", ("uses:>3",)),
        ("uses:5", ()),
        ("rate:", ("rate:>50%",)),
        ("age:", ("age:<7d",)),
        ("tag:a", ()),
        ("other:a", ()),
        ('"sta', ()),
    ]
    for text, expected in rows:
        assert completions(text, FIELDS) == expected, text


def make(name: str, type: PatternType = PatternType.ERROR, good: int = 0, bad: int = 0, **fields: Any) -> Pattern:
    return make_pattern(name, type, recorded_counts=make_recorded_counts(good, bad), **fields)


PATTERNS = {
    p.id: p
    for p in (
        make(
            "pat-error-null-001", good=20, bad=1, title="Null check", tags=("Auth", "typescript"), last_used=days_ago(1)
        ),
        make("pat-error-retry-002", good=2, bad=5, title="ECONNRESET", description="Retry once", last_used=days_ago(9)),
        make(
            "pat-success-split-003",
            PatternType.SUCCESS,
            good=3,
            title="Split work",
            source_loops=(make_source("loop-One"),),
        ),
        make("pat-anti-cast-004", PatternType.ANTI, good=5, bad=1, title="Any cast", category="Shortcut"),
        make("tmpl-async-005", PatternType.TEMPLATE, title="Async handler", copy_folder="packages/web"),
    )
}
CURATION = CurationState(pins={"pat-success-split-003": make_pin(Maturity.PROVEN, days_ago(3))})
BOARD = Scoreboard.build(Snapshot(patterns=PATTERNS, curation=CURATION), NOW, SETTINGS)
CATALOG = PatternCatalog(PATTERNS, BOARD)

QUERIES = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.tuples(
            st.sampled_from(["", "-", "--"]),
            st.sampled_from(["", *(f"{field}:" for field in PATTERN_FIELDS), "nope:", ":"]),
            st.sampled_from(
                ['"', '""', "<", ">=2", "50%", "e", "proven", "null", '"null check"', "é", "\ud800", "1e999"]
            ),
        ).map("".join),
        max_size=5,
    ).map(" ".join),
)


def found(text: str, sort: str = "id", descending: bool = False) -> list[str]:
    return CATALOG.select(parse_query(text, PATTERN_FIELDS), sort, descending)


def ends(ids: list[str]) -> list[str]:
    return [key[-3:] for key in ids]


def test_parse_words_fields_quotes_and_negation() -> None:
    query = parse_query('type:Error -flaky "Two Words" tag:"a b" -state:proven', PATTERN_FIELDS)
    assert query == Query(
        (
            Term("type", "error"),
            Term("", "flaky", negated=True),
            Term("", "two words"),
            Term("tag", "a b"),
            Term("state", "proven", negated=True),
        )
    )
    unknown = parse_query("colour:red", PATTERN_FIELDS)
    assert unknown.terms == (Term("", "colour:red"),)
    assert "unknown field 'colour'" in unknown.problems[0]
    assert parse_query("type: state: -uses:", PATTERN_FIELDS) == Query(())
    for needed, texts in (
        ("needs a number", ("uses:<", "uses:many", "rate:>x", "score:1e3")),
        ("needs an age, as in", ("last:7", "age:soon", "last:<-3d", "age:<9999999d")),
    ):
        for text in texts:
            query = parse_query(text, PATTERN_FIELDS)
            assert query.terms == () and needed in query.problems[0], text
    assert len(parse_query("a " * 10_000, {}).terms) == MAX_QUERY // 2


@given(QUERIES)
def test_any_query_selects_existing_records(text: str) -> None:
    query = parse_query(text, PATTERN_FIELDS)
    ids = CATALOG.select(query)
    assert len(set(ids)) == len(ids)
    assert set(ids) <= set(PATTERNS)
    for problem in query.problems:
        problem.encode("utf-8")
    for fields in (REFLECTION_FIELDS, DECISION_FIELDS):
        query = parse_query(text, fields)
        assert set(select_reflections(REFLECTIONS, query)) <= set(REFLECTIONS)
        assert set(select_decisions(DECISIONS, query)) <= {d.id for d in DECISIONS}


@given(st.sampled_from((*PATTERN_FIELDS, "")), st.sampled_from(["e", "3", ">.5", "proven", "null", "auth", "p"]))
def test_negated_term_selects_the_complement(field: str, value: str) -> None:
    term = Query((Term(field, value),))
    negated = Query((Term(field, value, negated=True),))
    assert sorted(CATALOG.select(term) + CATALOG.select(negated)) == sorted(PATTERNS)
    assert not set(CATALOG.select(term)) & set(CATALOG.select(negated))


def test_pattern_filter() -> None:
    for text, expected in (
        ("", "001 002 003 004 005"),
        ("null", "001"),
        ("NULL CHECK", "001"),
        ("check null", "001"),
        ('"check null"', ""),
        ("retry once", "002"),
        ("shortcut", "004"),
        ("type:error", "001 002"),
        ("type:t", "005"),
        ("-type:error", "003 004 005"),
        ("state:proven", "001 003"),
        ("state:depr", "002"),
        ("uses:>3", "001 002 004"),
        ("uses:3", "003"),
        ("uses:<=3", "003 005"),
        ("rate:>80%", "001 003 004"),
        ("rate:>80", "001 003 004"),
        ("rate:.95", "001"),
        ("rate:29%", "002"),
        ("-rate:>0", "005"),
        ("score:>=1", "001 003"),
        ("tag:auth", "001"),
        ("tag:TYPE -tag:python", "001"),
        ("loop:one", "003"),
        ("id:retry", "002"),
        ("is:pinned", "003"),
        ("is:due", "002"),
        ("is:mirror", "005"),
        ("-is:injectable", "002"),
        ("type:error state:proven uses:>3 null", "001"),
        ("type:error type:success", ""),
        ("is:nonsense", ""),
    ):
        assert " ".join(sorted(ends(found(text)))) == expected, text


def test_sort_order() -> None:
    rows: list[tuple[str, bool, str]] = [
        ("id", False, "004 001 002 003 005"),
        ("id", True, "005 003 002 001 004"),
        ("title", False, "005 004 002 001 003"),
        ("type", False, "001 002 003 004 005"),
        ("uses", True, "001 002 004 003 005"),
        ("rate", True, "003 001 004 002 005"),
        ("last_used", True, "001 002"),
        ("last_used", False, "002 001"),
    ]
    for sort, descending, expected in rows:
        order = " ".join(ends(found("", sort, descending)))
        assert order.startswith(expected), sort
    assert ends(found("", "rate", False))[-1] == "005", "unknown values are last in both directions"
    scores = [BOARD.assessment(key).score for key in CATALOG.select(Query(()))]
    assert scores == sorted(scores, reverse=True), "by default"
    empty = PatternCatalog({}, Scoreboard.build(Snapshot(), NOW, SETTINGS))
    assert empty.select(parse_query("uses:>3 is:mirror null -x", PATTERN_FIELDS)) == []


def test_equal_patterns_are_in_the_order_of_their_ids_whatever_came_first() -> None:
    patterns = [make(f"pat-error-same-{number:03}", good=3, title="Same") for number in (2, 3, 1)]
    sorts = ("score", "rate", "uses", "last_used", "state", "title", "type", "id")
    for sort, descending, listed in product(sorts, (True, False), (patterns, patterns[::-1])):
        by_id = {one.id: one for one in listed}
        board = Scoreboard.build(Snapshot(patterns=by_id), NOW, SETTINGS)
        order = ["003", "002", "001"] if sort == "id" and descending else ["001", "002", "003"]
        assert ends(PatternCatalog(by_id, board).select(Query(()), sort, descending)) == order, (sort, descending)


@pytest.mark.parametrize("ids_differ", [True, False])
def test_updated_catalog_equals_a_rebuilt_catalog(ids_differ: bool) -> None:
    changed = {**PATTERNS, "pat-error-null-001": make("pat-error-null-001", good=1, title="Renamed", tags=("css",))}
    ids = frozenset({"pat-error-null-001", "pat-error-retry-002", "pat-error-new-006"})
    if ids_differ:
        del changed["pat-error-retry-002"]
        changed["pat-error-new-006"] = make("pat-error-new-006", good=4, title="New one")
    snapshot = Snapshot(patterns=changed, curation=CURATION)
    board = BOARD.updated(snapshot, Delta(patterns=ids), NOW + timedelta(seconds=1))
    updated = CATALOG.updated(changed, board, ids)
    rebuilt = PatternCatalog(changed, Scoreboard.build(snapshot, NOW, SETTINGS))
    for text in ("", "null", "renamed", "new", "css", "type:error", "uses:>3", "is:pinned", "state:deprecated"):
        query = parse_query(text, PATTERN_FIELDS)
        assert updated.select(query, "id", False) == rebuilt.select(query, "id", False), text
    assert CATALOG.select(parse_query("renamed", PATTERN_FIELDS)) == []


REFLECTIONS = {
    r.id: r
    for r in (
        Reflection(
            id="1", shape="episodic", file="a", loop_id="Loop-A", kind="error_analysis", effectiveness="helpful",
            outcome=Outcome.FAILURE, learning="Raise the Timeout",
        ),
        Reflection(
            id="2", shape="hook", file="b", task_id="task-9", kind="strategy_change", effectiveness="unhelpful",
            actions=("Run the linter",), observation="Slow", analysis="Too many mocks",
        ),
    )
}  # fmt: skip


def test_reflection_filter() -> None:
    for text, expected in (
        ("", "12"),
        ("timeout", "1"),
        ("linter", "2"),
        ("mocks slow", "2"),
        ("loop-a", "1"),
        ("task-9", "2"),
        ("kind:error", "1"),
        ("kind:strategy-change", "2"),
        ("loop:a", "1"),
        ("task:9", "2"),
        ("effect:helpful", "1"),
        ("-effect:helpful", "2"),
        ("shape:hook", "2"),
        ("outcome:fail", "1"),
    ):
        assert "".join(select_reflections(REFLECTIONS, parse_query(text, REFLECTION_FIELDS))) == expected, text


DECISIONS = (
    Decision(id="1", at=days_ago(3), by="Ana", verb=Verb.PROMOTE, subject="pat-a"),
    Decision(id="2", at=days_ago(2), by="ben", verb=Verb.ACCEPT_INVERSION, subject="pat-b", reason="Failed Often"),
)


def test_decision_filter() -> None:
    for text, expected in (
        ("", "12"),
        ("verb:promote", "1"),
        ("verb:accept-inv", "2"),
        ("verb:accept_inversion", "2"),
        ("by:ana", "1"),
        ("subject:pat-b", "2"),
        ("often", "2"),
        ("-verb:promote", "2"),
        ("ana promote", "1"),
    ):
        assert "".join(select_decisions(DECISIONS, parse_query(text, DECISION_FIELDS))) == expected, text


NEWER = {**PATTERNS, "pat-error-new-006": make("pat-error-new-006", title="New one", first_discovered=days_ago(2))}
PINNED = PatternCatalog(
    NEWER,
    Scoreboard.build(Snapshot(patterns=NEWER, curation=CURATION), NOW, SETTINGS),
    CURATION.pins,
    me="Ada",
)


def test_filter_by_age_interval_and_pin() -> None:
    rows: list[tuple[str, set[str]]] = [
        ("last:<7d", {"pat-error-null-001"}),
        ("last:>1w", {"pat-error-retry-002"}),
        ("last:2w", {"pat-error-null-001", "pat-error-retry-002"}),
        ("-last:<999999y -uses:0", {"pat-success-split-003", "pat-anti-cast-004"}),
        ("age:<7d", {"pat-error-new-006"}),
        ("age:<1d", set()),
        ("low:>75%", {"pat-error-null-001"}),
        ("is:pinned by:me", {"pat-success-split-003"}),
        ("by:AD", {"pat-success-split-003"}),
        ("is:pinned by:imre", set()),
    ]
    for text, found in rows:
        query = parse_query(text, PATTERN_FIELDS)
        assert query.problems == (), text
        assert set(PINNED.select(query)) == found, text


def test_lessons_are_found_by_how_often_they_were_followed_and_by_removed_anchors() -> None:
    def given(number: int, pattern_id: str, is_followed: bool | None) -> tuple[Event, ...]:
        known = {"pattern_id": pattern_id, "loop_id": f"w{number}"}
        shown = make_event(number, "injected", days_ago(2), **known)
        return shown, make_event(number + 50, VERDICT, days_ago(1), is_followed=is_followed, **known)

    events = (*given(1, "a", True), *given(2, "a", False), *given(3, "b", False), *given(4, "c", None))
    patterns = {id: make(id) for id in "abcd"}
    board = make_board(*patterns.values(), events=events)
    catalog = PatternCatalog(patterns, board, stale={"d"})
    for text, found in (("followed:50%", "a"), ("followed:<60%", "ab"), ("-followed:<60%", "cd"), ("is:stale", "d")):
        assert {*catalog.select(parse_query(text, PATTERN_FIELDS))} == {*found}, text
    assert catalog.updated(patterns, board, ()).select(parse_query("is:stale", PATTERN_FIELDS)) == []
