"""Reports on all debug sessions."""

from __future__ import annotations

import pytest

from core.records.debug_sessions import Analysis, Recurring
from core.tasks.debug_index import FixCounts, report_causes, report_fix_templates, report_recurring_failures
from tests.factories import index_sessions, make_lesson, make_run, make_session, read_example_session

NULL = "null_undefined_access"


def test_example_of_the_documentation() -> None:
    index = index_sessions(read_example_session())
    (cause,) = report_causes(index)
    assert (cause.category, cause.sessions, cause.passing, cause.failing, cause.fixes) == (
        NULL,
        1,
        1,
        0,
        FixCounts(passed=1),
    )
    (template,) = report_fix_templates(index, NULL)
    assert (template.pattern, template.recorded, template.fixes.rate) == ("null_access_without_check", (1.0,), 1.0)
    low, high = template.fixes.interval(0.9)
    assert (round(low, 2), high) == (0.23, 1.0)


def test_causes_are_sorted_by_frequency_with_their_results() -> None:
    index = index_sessions(
        make_session("a", make_run(category=NULL, fixed=True), status="passed"),
        make_session(
            "b", make_run(category=NULL, fixed=False), make_run(category="race_condition"), status="escalated"
        ),
        make_session("c", make_run(category=NULL), status="in_progress"),
    )
    first, second = report_causes(index)
    assert (first.category, first.sessions, first.passing, first.failing) == (NULL, 3, 1, 1)
    assert (first.fixes, first.fixes.rate) == (FixCounts(passed=1, failed=1), 0.5)
    assert (second.category, second.fixes.rate) == ("race_condition", None)


def test_a_cause_without_a_category_has_the_words_of_the_newest_analysis() -> None:
    analysis = Analysis(root_cause="Old orders have no currency")
    index = index_sessions(make_session("a", make_run(analysis=analysis)))
    (cause,) = report_causes(index)
    assert (cause.category, cause.root_cause) == ("", "Old orders have no currency")


def test_template_whose_fixes_fail_is_doubtful() -> None:
    sessions = [
        make_session(f"s{n}", make_run(category=NULL, fixed=n == 0), days=n, lessons=(make_lesson(),)) for n in range(3)
    ]
    sessions.append(make_session("other", make_run(category="race_condition", fixed=True), lessons=(make_lesson("q"),)))
    index = index_sessions(*sessions)
    good, bad = report_fix_templates(index, NULL)
    assert (good.pattern, good.fixes.rate, good.is_doubtful) == ("q", None, False)
    assert (bad.pattern, bad.fixes, bad.is_doubtful, bad.sessions) == (
        "p",
        FixCounts(passed=1, failed=2),
        True,
        ("s0", "s1", "s2"),
    )


@pytest.mark.parametrize(("least", "tests"), [(2, ["t", "said"]), (3, ["t", "said"]), (4, ["said"])])
def test_recurring_failures_are_counted_or_recorded(least: int, tests: list[str]) -> None:
    result = (Recurring(test="said", occurrences=4, resolution="pending"),)
    later = (Recurring(test="t", occurrences=1, resolution="resolved"),)
    index = index_sessions(
        make_session("a", make_run(), make_run(), days=2, recurring=result),
        make_session("b", make_run(), days=1, recurring=later),
    )
    found = {one.test: one for one in report_recurring_failures(index, least)}
    assert list(found) == tests  # what runs prove comes before what is only said
    if "t" in found:
        assert (found["t"].runs, found["t"].sessions, found["t"].resolution) == (3, ("b", "a"), "resolved")
    assert (found["said"].runs, found["said"].recorded, found["said"].resolution) == (0, 4, "pending")
