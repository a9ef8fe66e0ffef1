from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.project.project import Project
from core.records.loops import Loop, Usage
from core.show.metrics.dashboard import build_dashboard
from core.show.metrics.sections import build_figures, section_markdown
from core.show.metrics.sessions import GROUPINGS, daily_usage, group_usage, has_usage, sum_usage
from tests.agent_lessons import add_lessons

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)

usages = st.builds(
    Usage,
    input=st.none() | st.integers(0, 10**12),
    output=st.none() | st.integers(0, 10**12),
    cache_read=st.none() | st.integers(0, 10**12),
    reasoning=st.none() | st.integers(0, 10**12),
    cost_usd=st.none() | st.integers(0, 1000).map(float),
)
loops = st.lists(
    st.builds(
        Loop,
        id=st.uuids().map(str),
        usage=usages,
        runner=st.sampled_from(("", "claude", "codex")),
        owner=st.sampled_from(("", "claude")),
        last_activity=st.none() | st.integers(0, 40).map(lambda days: NOW - timedelta(days=days)),
    ),
    max_size=12,
)


@given(loops, st.sampled_from(list(GROUPINGS)))
def test_groups_add_up_to_all_loops_with_usage(found: list[Loop], by: str) -> None:
    groups = group_usage(found, by)
    known = [loop for loop in found if has_usage(loop)]
    assert sum((group.usage for group in groups), Usage()) == sum_usage(known)
    assert sum(group.loops for group in groups) == len(known)


def test_unknown_tokens_stay_unknown() -> None:
    assert sum_usage([Loop(id="a"), Loop(id="b", usage=Usage(input=3))]) == Usage(input=3)
    assert sum_usage([Loop(id="a")]).total is None


def test_total_has_each_token_once() -> None:
    assert Usage(input=10, cache_read=20, cache_write=5, output=7, reasoning=3).total == 42


def test_a_loop_counts_on_the_day_of_its_end() -> None:
    loop = Loop(
        id="a",
        usage=Usage(output=5),
        started_at=NOW - timedelta(days=3),
        ended_at=NOW - timedelta(days=1),
        last_activity=NOW,
    )
    assert [group.name for group in group_usage([loop], "day")] == ["2026-11-19"]


def test_days_without_a_loop_are_listed_after_the_first_one_with_a_loop() -> None:
    loop = Loop(id="a", usage=Usage(output=5), last_activity=NOW - timedelta(days=2))
    days = daily_usage([loop], NOW, 4)
    assert [(day.name, day.loops) for day in days] == [
        ("2026-11-18", 1),
        ("2026-11-19", 0),
        ("2026-11-20", 0),
    ]


def test_no_days_are_listed_without_usage_in_the_range() -> None:
    assert daily_usage([Loop(id="a", usage=Usage(output=5), last_activity=NOW - timedelta(days=9))], NOW, 4) == ()


def test_the_section_shows_the_cost_of_each_day_and_splits_the_tokens_by_source(tmp_path: Path) -> None:
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: NOW, cache=False)
    used = Usage(input=90_000, cost_usd=2.5)
    found = [
        Loop(id="claude:1", runner="claude", usage=used, last_activity=NOW - timedelta(days=2)),
        Loop(id="codex:1", runner="codex", usage=Usage(output=500), last_activity=NOW),
    ]
    add_lessons(project, loops=found)
    (section,) = (one for one in build_figures(build_dashboard(project.view, "ada")) if one.id == "usage")
    assert section.takeaway == (
        "90.5 k tokens and $2.50 of reported cost in 3 days, by 2 sessions: claude 90.0 k · $2.50, codex 500"
    )
    assert [(row.label, row.extra) for row in section.rows] == [("18 Nov", "$2.50"), ("19 Nov", ""), ("20 Nov", "")]
    assert "| 18 Nov | 90,000 | 0 | 0 | 0 | $2.50 | 1 |".replace("$", "\\$") in section_markdown(section)
