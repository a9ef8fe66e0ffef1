"""Costs of lessons and of the files that agents load."""

from __future__ import annotations

from datetime import timedelta

from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.records.events import VERDICT
from core.records.instructions import Loading
from core.records.snapshot import Snapshot
from core.show.metrics.context_cost import RepeatedLine, measure_cost, measure_files, measure_lesson, sum_by_agent
from core.show.metrics.dashboard import build_dashboard, list_week_starts
from core.sources.adapters.agent_files import AgentFile
from tests.factories import CURATION_NOW, make_error_pattern, make_event

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


def test_only_contexts_since_a_moment_count() -> None:
    found = measure_cost(state(), CURATION_NOW - WEEK)
    assert {one.pattern_id: one.given for one in found.lessons} == {"p": 1, "q": 1}
    assert [one.prevented for one in found.lessons if one.pattern_id == "p"] == [0]


def test_metrics_and_the_command_count_the_same_tokens() -> None:
    view = state()
    starts = list_week_starts(CURATION_NOW, 4)
    whole, shown = measure_cost(view, starts[0]), build_dashboard(view, "ada", 4).costs
    assert (shown.tokens, shown.given) == (whole.tokens, whole.given) == (measure_cost(view).tokens, 3)
    assert len(shown.by_week) == 4 and sum(week.tokens for week in shown.by_week) == shown.tokens
    for id in ("p", "q"):
        (cost,) = (one for one in whole.lessons if one.pattern_id == id)
        assert measure_lesson(view, view.snapshot.patterns[id]) == (cost.given, cost.tokens)


def test_a_context_counts_in_its_week() -> None:
    found = measure_cost(state(), CURATION_NOW - 3 * WEEK)
    q = state().count_tokens(["q"])["q"]
    assert found.by_week == ((0, 0), (1, 40), (2, 60 + q), (0, 0))


def test_only_the_lessons_with_most_tokens_are_described() -> None:
    found = measure_cost(state(), most=1)
    largest = max(measure_cost(state()).lessons, key=lambda one: one.tokens)
    assert [one.pattern_id for one in found.lessons] == [largest.pattern_id]
    assert found.tokens == measure_cost(state()).tokens


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
