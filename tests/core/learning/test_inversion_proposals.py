"""Proposals of inversion: what they name, where it failed, and what to do instead."""

from __future__ import annotations

import pytest

from core.learning.inversion_proposals import Alternatives, detect_failure_mode, make_inversion_slug
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import PatternType
from tests.factories import days_ago, make_board, make_pattern, make_recorded_counts, make_use


@pytest.mark.parametrize(
    ("id", "slug"),
    [
        ("pat-error-null-check-001", "null-check"),
        ("tmpl-async-handler-012", "async-handler"),
        ("pattern-123", "123"),
        ("Übel/../../x", "bel-x"),
        ("🙂", "pattern"),
    ],
)
def test_the_slug_comes_from_the_id_and_is_safe(id: str, slug: str) -> None:
    assert make_inversion_slug(id) == slug


def failing(id: str, *errors: str, **fields: object) -> Loop:
    steps = tuple(Iteration(result=error, outcome=Outcome.FAILURE) for error in errors)
    return Loop(id=id, iterations=steps, **fields)  # type: ignore[arg-type]


def test_the_failure_mode_comes_from_the_failing_loops() -> None:
    def mode(*loops: Loop) -> str:
        return detect_failure_mode(loops)[0]

    assert mode(failing("a", "Found 12 errors", "found 8  errors")) == "repeated_same_error"
    assert mode(failing("a", "x"), failing("b", "x")) == "repeated_same_error"
    assert mode(failing("a", "x", status=LoopStatus.LIMIT), failing("b", "y")) == "infinite_loop"
    assert mode(failing("a", "x", quality=(0.8, 0.6))) == "quality_degradation"
    assert mode(failing("a", "x"), failing("b", "y")) == "incorrect_fix"
    assert mode() == "incorrect_fix"


def test_a_proposal_names_failures_loops_and_the_alternative() -> None:
    bad = make_pattern(
        "pat-success-split-001",
        PatternType.SUCCESS,
        description="Split by file type",
        category="refactoring",
        tags=("Auth",),
        recorded_counts=make_recorded_counts(2, 5),
    )
    good = make_pattern(
        "pat-success-other-001",
        PatternType.SUCCESS,
        description="Split by feature",
        category="refactoring",
        tags=("auth",),
        recorded_counts=make_recorded_counts(9, 0),
    )
    weak = make_pattern(
        "pat-success-weak-001", PatternType.SUCCESS, category="refactoring", recorded_counts=make_recorded_counts(1, 0)
    )
    loops = {
        loop.id: loop
        for loop in (
            Loop(id="late", ended_at=days_ago(1), injected=(make_use(bad.id, False),)),
            Loop(id="early", ended_at=days_ago(2), injected=(make_use(bad.id, False),)),
        )
    }
    proposal = make_board(bad, good, weak, loops=loops).proposal(bad.id)
    assert proposal.text == "AVOID: Split by file type. Failed 5/7 times (71% failure rate)"
    assert proposal.source_loops == ("early", "late")
    assert (proposal.better_pattern_id, proposal.better_alternative) == (good.id, "Split by feature")
    assert proposal.slug == "split"


def test_alternatives_are_sorted_by_common_tags_score_and_id() -> None:
    subject = make_pattern(category="testing", tags=("x", "y"))
    one, two, three = (
        make_pattern(id, PatternType.SUCCESS, category="testing", tags=tags)
        for id, tags in (("b", ("x",)), ("a", ("x",)), ("c", ()))
    )
    assert Alternatives([(one, 1.0), (two, 1.0), (three, 9.0)]).best_for(subject) is two
    assert Alternatives([(one, 1.1), (two, 1.0)]).best_for(subject) is one
    assert Alternatives([(one, 1.0), (two, 1.0)]).alternatives_for(subject) == (two, one)
    assert Alternatives([]).best_for(subject) is None
