"""Costs of contexts and sessions, and the files with derived values."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.events import VERDICT
from core.records.instructions import Loading
from core.records.loops import Loop, LoopStatus, Usage
from core.records.snapshot import Snapshot
from core.show.metrics.context_cost import RepeatedLine, measure_cost, measure_files, measure_lesson, sum_by_agent
from core.show.metrics.dashboard import build_dashboard, list_week_starts
from core.show.metrics.effectiveness import (
    compare_metrics,
    compute_effectiveness,
    index_path,
    metrics_path,
    read_recorded_metrics,
    write_derived,
    write_metrics,
)
from core.show.metrics.sections import build_figures, section_markdown
from core.show.metrics.sessions import GROUPINGS, daily_usage, group_usage, has_usage, sum_usage
from core.sources.adapters.agent_files import AgentFile
from tests.agent_lessons import add_lessons
from tests.core.show.test_effectiveness import DOCUMENT
from tests.factories import (
    CURATION_NOW,
    NOW,
    SETTINGS,
    make_error_pattern,
    make_event,
    make_pattern,
    make_recorded_counts,
)

WEEK = timedelta(days=7)


def state() -> ProjectState:
    """Return a project in which p was given in two sessions and followed in one, and q in another one."""
    events = [
        make_event(1, "injected", CURATION_NOW - 2 * WEEK, pattern_id="p", loop_id="t.1", tokens=40),
        make_event(2, VERDICT, CURATION_NOW - 2 * WEEK, pattern_id="p", loop_id="t.1", is_followed=True),
        make_event(3, "applied", CURATION_NOW - 2 * WEEK, pattern_id="p", loop_id="t.1", success=True),
        make_event(4, "injected", CURATION_NOW - WEEK / 2, pattern_id="p", loop_id="t.2", tokens=60),
        make_event(5, VERDICT, CURATION_NOW - WEEK / 2, pattern_id="p", loop_id="t.2", is_followed=False),
        make_event(6, "injected", CURATION_NOW - WEEK / 2, pattern_id="q", loop_id="t.2"),
    ]
    patterns = {id: make_error_pattern(id) for id in ("p", "q")}
    return ProjectState.open(Snapshot(patterns=patterns, events=tuple(events)), Settings(), CURATION_NOW)


def test_the_tokens_of_a_lesson_are_those_that_were_recorded() -> None:
    found = measure_cost(state())
    cost = {one.pattern_id: one for one in found.lessons}
    p, q = cost["p"], cost["q"]
    assert (p.given, p.tokens, p.weekly, p.is_estimated) == (2, 100, 50.0, False)
    assert (p.counts.followed, p.counts.not_followed, p.prevented) == (1, 1, 1)
    assert q.is_estimated and q.tokens == state().count_tokens(["q"])["q"], "its size was not recorded"
    assert p.share + q.share == 1 and found.tokens == 100 + q.tokens
    assert [(one.work_id, one.lessons) for one in found.sessions] == [("t.2", 2), ("t.1", 1)]


def test_only_contexts_since_a_moment_count_each_in_its_week() -> None:
    found = measure_cost(state(), CURATION_NOW - WEEK)
    assert {one.pattern_id: one.given for one in found.lessons} == {"p": 1, "q": 1}
    assert [one.prevented for one in found.lessons if one.pattern_id == "p"] == [0]
    found = measure_cost(state(), CURATION_NOW - 3 * WEEK)
    q = state().count_tokens(["q"])["q"]
    assert found.by_week == ((0, 0), (1, 40), (2, 60 + q), (0, 0))
    assert measure_cost(state(), CURATION_NOW - 2 * WEEK).by_week[0] == (1, 40), "from the first moment on"
    largest = max(measure_cost(state()).lessons, key=lambda one: one.tokens)
    found = measure_cost(state(), most=1)
    assert [one.pattern_id for one in found.lessons] == [largest.pattern_id]
    assert found.tokens == measure_cost(state()).tokens


def test_metrics_and_the_command_count_the_same_tokens() -> None:
    view = state()
    starts = list_week_starts(CURATION_NOW, 4)
    whole, shown = measure_cost(view, starts[0]), build_dashboard(view, "ada", 4).costs
    assert (shown.tokens, shown.given) == (whole.tokens, whole.given) == (measure_cost(view).tokens, 3)
    assert len(shown.by_week) == 4 and sum(week.tokens for week in shown.by_week) == shown.tokens
    for id in ("p", "q"):
        (cost,) = (one for one in whole.lessons if one.pattern_id == id)
        assert measure_lesson(view, view.snapshot.patterns[id]) == (cost.given, cost.tokens)


def test_the_files_of_each_agent_are_summed_apart() -> None:
    files = [
        AgentFile(agents=("Claude Code",), file="CLAUDE.md", lines=("Run the tests first",), loaded=1),
        AgentFile(agents=("Codex", "Cursor"), file="AGENTS.md", lines=("Run the tests",), loaded=1),
        AgentFile(agents=("Cursor",), file="ts.mdc", lines=("Use tabs",), loaded=1),
    ]
    costs = measure_files(files, {})
    size = {one.file: one.tokens for one in costs}
    assert {one.agent: one.tokens for one in sum_by_agent(costs)} == {
        "Claude Code": size["CLAUDE.md"],
        "Codex": size["AGENTS.md"],
        "Cursor": size["AGENTS.md"] + size["ts.mdc"],
    }


def test_lines_of_agents_files_that_repeat_a_line_or_a_lesson_are_named() -> None:
    lesson = make_error_pattern("p", description="Lock the mutex of the cache before each write")
    one = AgentFile(agents=("Claude Code",), file="CLAUDE.md", lines=("Run the tests before each commit",), loaded=1)
    lines = ("- run the tests  before each commit", "Lock the mutex of the cache before each write", "# Short")
    other = AgentFile(agents=("Codex",), file="AGENTS.md", lines=lines, loaded=3)
    found = {cost.file: cost for cost in measure_files([one, other], {"p": lesson})}
    assert found["CLAUDE.md"].repeated == () and found["CLAUDE.md"].tokens > 0
    assert found["AGENTS.md"].repeated == (RepeatedLine(line=1, other="CLAUDE.md:1"), RepeatedLine(line=2, other="p"))


def test_what_only_some_sessions_load_is_counted_apart() -> None:
    skill = ("---", "name: db", "---", "Migrate the database by hand.")
    files = [
        AgentFile(agents=("Cursor",), file="ts.mdc", lines=("Use tabs.",), loaded=1, loading=Loading.PATH),
        AgentFile(agents=("Codex",), file="SKILL.md", lines=skill, loaded=4, head=3, loading=Loading.REQUEST),
    ]
    costs = {one.file: one for one in measure_files(files, {})}
    assert (costs["ts.mdc"].tokens, costs["ts.mdc"].on_demand) == (0, 3)
    assert costs["SKILL.md"].tokens > 0 and costs["SKILL.md"].on_demand > 0


TODAY = datetime(2026, 11, 20, 12, tzinfo=UTC)

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
        last_activity=st.none() | st.integers(0, 40).map(lambda days: TODAY - timedelta(days=days)),
    ),
    max_size=12,
)


@given(loops, st.sampled_from(list(GROUPINGS)))
def test_groups_add_up_to_all_loops_with_usage(found: list[Loop], by: str) -> None:
    groups = group_usage(found, by)
    known = [loop for loop in found if has_usage(loop)]
    assert sum((group.usage for group in groups), Usage()) == sum_usage(known)
    assert sum(group.loops for group in groups) == len(known)


def test_unknown_tokens_stay_unknown_and_the_total_has_each_token_once() -> None:
    assert sum_usage([Loop(id="a"), Loop(id="b", usage=Usage(input=3))]) == Usage(input=3)
    assert sum_usage([Loop(id="a")]).total is None
    assert Usage(input=10, cache_read=20, cache_write=5, output=7, reasoning=3).total == 42


def test_a_loop_counts_on_the_day_of_its_end_and_later_days_are_listed_without_one() -> None:
    def used(days: int, **more: Any) -> Loop:
        return Loop(id="a", usage=Usage(output=5), last_activity=TODAY - timedelta(days=days), **more)

    ended = used(0, started_at=TODAY - timedelta(days=3), ended_at=TODAY - timedelta(days=1))
    assert [group.name for group in group_usage([ended], "day")] == ["2026-11-19"]
    assert [(day.name, day.loops) for day in daily_usage([used(2)], TODAY, 4)] == [
        ("2026-11-18", 1),
        ("2026-11-19", 0),
        ("2026-11-20", 0),
    ]
    assert daily_usage([used(9)], TODAY, 4) == ()


def test_the_section_shows_the_cost_of_each_day_and_splits_the_tokens_by_source(tmp_path: Path) -> None:
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: TODAY, cache=False)
    used = Usage(input=90_000, cost_usd=2.5)
    found = [
        Loop(id="claude:1", runner="claude", usage=used, last_activity=TODAY - timedelta(days=2)),
        Loop(id="codex:1", runner="codex", usage=Usage(output=500), last_activity=TODAY),
    ]
    add_lessons(project, loops=found)
    (section,) = (one for one in build_figures(build_dashboard(project.view, "ada")) if one.id == "usage")
    assert section.takeaway == (
        "90.5 k tokens and $2.50 of reported cost in 3 days, by 2 sessions: claude 90.0 k · $2.50, codex 500"
    )
    assert [(row.label, row.extra) for row in section.rows] == [("18 Nov", "$2.50"), ("19 Nov", ""), ("20 Nov", "")]
    assert "| 18 Nov | 90,000 | 0 | 0 | 0 | $2.50 | 1 |".replace("$", "\\$") in section_markdown(section)


PATTERNS = {
    one.id: one
    for one in (
        make_pattern(
            "pat-error-b-002",
            recorded_counts=make_recorded_counts(3, 1),
            tags=("sql",),
            file="x.json",
            title="half \ud800 \u202e",
        ),
        make_pattern("pat-error-a-001", category="other"),
        make_pattern("pat-error-mirrored-001", copy_folder="memory/patterns"),
    )
}
SNAPSHOT = Snapshot(patterns=PATTERNS, complete=True)
BOARD = Scoreboard.build(SNAPSHOT, NOW, SETTINGS)


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    found = ProjectPaths(tmp_path)
    found.patterns.mkdir(parents=True)
    return found


def write(paths: ProjectPaths, days: int = 0, snapshot: Snapshot = SNAPSHOT) -> tuple[str, ...]:
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    return write_derived(paths, SETTINGS, snapshot, board, NOW + timedelta(days=days))


def test_derived_files_are_created_and_stable(paths: ProjectPaths) -> None:
    assert write(paths) == ()
    metrics = json.loads(metrics_path(paths).read_text())
    assert list(metrics) == list(DOCUMENT)
    assert set(metrics["cross_loop_benefit"].values()) == {0}
    index = json.loads(index_path(paths).read_text())
    assert list(index) == ["version", "updated_at", "patterns"]
    assert [entry["pattern_id"] for entry in index["patterns"]] == ["pat-error-a-001", "pat-error-b-002"]
    assert index["patterns"][1] == {
        "pattern_id": "pat-error-b-002",
        "type": "error",
        "title": "half \ud800 \u202e",
        "category": "",
        "tags": ["sql"],
        "content_hash": "seen",
        "file": "x.json",
    }
    assert index_path(paths).read_text().count("\n    {") == 2, "a line each"
    before = [path.read_bytes() for path in (metrics_path(paths), index_path(paths))]
    assert write(paths, days=3) == ()
    assert [path.read_bytes() for path in (metrics_path(paths), index_path(paths))] == before


@pytest.mark.parametrize("wrapped", [False, True])
def test_only_changed_keys_are_written(paths: ProjectPaths, wrapped: bool) -> None:
    mine = {**DOCUMENT, "mine": [1, 2], "pattern_usage_stats": {"kept": 1.50, "total_applications": 4}}
    text = json.dumps({"effectiveness_metrics": mine, "other": {}} if wrapped else mine, indent=3)
    metrics_path(paths).write_text(text.replace("1.5", "1.50"))
    loops = {"a": Loop(id="a", status=LoopStatus.COMPLETED, iteration=5)}
    write(paths, snapshot=Snapshot(patterns=PATTERNS, loops=loops, complete=True))
    text = metrics_path(paths).read_text()
    assert "1.50" in text
    written = json.loads(text)
    written = written["effectiveness_metrics"] if wrapped else written
    assert list(written) == list(mine)
    assert written["mine"] == [1, 2]
    assert written["last_updated"] == "2026-02-03T00:00:00.000Z"
    assert written["pattern_usage_stats"] == {
        "kept": 1.5,
        "total_applications": 4,
        "successful_applications": 3,
        "failed_applications": 1,
        "overall_success_rate": 0.75,
    }
    assert written["cross_loop_benefit"] == {
        "loops_with_pattern_injection": 0,
        "loops_without_pattern_injection": 1,
        "average_iterations_without": 5.0,
        "completed_loops_with": 0,
        "completed_loops_without": 1,
        "failed_loops_with": 0,
        "failed_loops_without": 0,
    }


@pytest.mark.parametrize("content", [b"[1]", b"7", b"", b'{"a": ', b"\xff\xfe", b"[" * 100_000])
def test_a_file_with_other_content_is_not_changed(paths: ProjectPaths, content: bytes) -> None:
    metrics_path(paths).write_bytes(content)
    (warning,) = write(paths)
    assert str(metrics_path(paths)) in warning and warning.endswith("it was not changed")
    assert metrics_path(paths).read_bytes() == content
    assert read_recorded_metrics(paths) == {}


def test_a_link_out_of_the_project_is_not_followed(
    paths: ProjectPaths, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (paths.ralph / "memory").symlink_to(outside)
    (warning,) = write(paths)
    assert "is outside of" in warning
    assert list(outside.iterdir()) == []


def test_recorded_metrics_are_compared_with_the_evidence(paths: ProjectPaths) -> None:
    found = compute_effectiveness(SNAPSHOT, BOARD, NOW)
    write_metrics(paths, SETTINGS, SNAPSHOT, BOARD, NOW)
    assert compare_metrics(read_recorded_metrics(paths), found) == ()
    changed = {"total_patterns": True, "pattern_usage_stats": {"failed_applications": "few"}, "patterns_by_type": 3}
    metrics_path(paths).write_text(json.dumps({"effectiveness_metrics": changed}))
    assert [one[1:] for one in compare_metrics(read_recorded_metrics(paths), found)] == [
        ("total_patterns", True, 2),
        ("pattern_usage_stats.failed_applications", "few", 1),
    ]
    metrics_path(paths).unlink()
    for metrics, recorded in (({"total_patterns": 7}, [{"total_patterns": 7}]), (None, [])):
        document = {"version": "1.0.0", "pattern_registry": {}, "effectiveness_metrics": metrics}
        paths.pattern_file("error").write_text(json.dumps(document))
        assert [*read_recorded_metrics(paths).values()] == recorded, "in a file of patterns"
