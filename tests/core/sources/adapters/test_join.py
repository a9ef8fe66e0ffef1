"""Sessions and plans joined to the runners' loops, and claims of success, and what contradicts them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import core.sources.adapters.join as module
from core.learning.outcomes import WorkReport, loop_signals
from core.records.debug_sessions import Failure
from core.records.loops import (
    CONTRADICTED,
    TESTS_FAILED,
    Iteration,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
    Progress,
    StateSource,
    Usage,
)
from core.retrieval.reflections import work_outcome
from core.sources.adapters.collector import Collector
from core.sources.adapters.join import Joined, check_claim, is_session, join_details, join_loops
from core.sources.adapters.ralph_tui import RalphTuiAdapter
from tests.core.sources.adapters.fixtures import NOW as CASE_NOW
from tests.core.sources.adapters.fixtures import open_case
from tests.e2e.play_claude import FAILURE, Records, lines, slug
from tests.factories import NOW, make_event

PROJECT = Path("/project")
MINUTE = timedelta(minutes=1)


def session(name: str, start: float, end: float, **fields: Any) -> Loop:
    """A session of Claude Code that began and ended at these minutes."""
    values = {
        "status": LoopStatus.COMPLETED,
        "started_at": NOW + start * MINUTE,
        "ended_at": NOW + end * MINUTE,
        "last_activity": NOW + end * MINUTE,
        "usage": Usage(input=10, output=5),
        "model": "sonnet",
        "tags": ("headless",),
    }
    agent = str(fields.pop("agent", "claude"))
    return Loop(
        **{"id": f"{agent}:{name}", "runner": agent, "owner": agent, "session_ids": (name,), **values, **fields}
    )


def runner(name: str, start: float, end: float, **fields: Any) -> Loop:
    values = {
        "status": LoopStatus.LIMIT,
        "started_at": NOW + start * MINUTE,
        "ended_at": NOW + end * MINUTE,
        "last_activity": NOW + end * MINUTE,
    }
    return Loop(**{"id": f"runner:{name}", "runner": "runner", **values, **fields})


def join(*loops: Loop) -> dict[str, Loop]:
    return {loop.id: loop for loop in join_loops(loops, PROJECT).loops}


def test_sessions_in_the_time_of_a_loop_are_joined_and_others_are_not() -> None:
    found = join(
        runner("one", 0, 30),
        session("before", -5, 3),
        session("first", 0, 10, model="opus"),
        session("second", 11, 29, model="haiku"),
        session("outlives", 20, 40),
        session("later", 35, 40),
    )
    assert set(found) == {"runner:one", "claude:before", "claude:outlives", "claude:later"}
    one = found["runner:one"]
    assert (one.session_ids, one.owner, one.model) == (("first", "second"), "claude", "haiku")
    assert (one.usage, one.iteration) == (Usage(input=20, output=10), 2)
    assert one.aliases == ("claude:first", "claude:second")


def test_a_session_is_joined_to_a_loop_of_its_time_folder_and_agent() -> None:
    copied = {"ended_approximate": True, "modified_at": NOW + 500 * MINUTE}
    rows: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
        ({}, {"cwd": "/project"}, True),
        ({}, {"cwd": "/other"}, False),
        ({}, {"tags": ("interactive",)}, False),
        ({}, {"tags": ()}, False),
        ({"owner": "claude"}, {"tags": ()}, True),
        ({"owner": "claude"}, {"agent": "codex"}, False),
        ({}, {"started_at": None}, False),
        ({}, copied, True),  # although the file is newer
        ({"ended_at": NOW - 600 * MINUTE, "ended_approximate": True, "modified_at": NOW + 30 * MINUTE}, {}, True),
    ]
    for loop, fields, is_joined in rows:
        assert (len(join(runner("one", 0, 10, **loop), session("a", 1, 2, **fields))) == 1) is is_joined, fields
    named = session("a", 500, 600, tags=("interactive",))
    assert list(join(runner("one", 0, 10, session_ids=("a",)), named)) == ["runner:one"], "at any time"


def test_nothing_is_joined_while_two_loops_run_in_one_folder_and_a_finding_reports_it() -> None:
    loops = [runner("one", 0, 10, files=("x.json",)), runner("two", 5, 20), session("a", 2, 3)]
    found = join_loops([*loops, session("b", 6, 7), session("c", 8, 9)], PROJECT)
    assert [loop.id for loop in found.loops] == ["claude:b", "claude:c", "runner:one", "runner:two"]
    assert [loop.badges for loop in found.loops] == [("not-joined",), ("not-joined",), (), ()]
    reason = "not joined: runner:one and runner:two ran in its folder when it began"
    assert all(loop.liveness_reason.endswith(reason) for loop in found.loops[:2])
    (finding,) = found.findings
    assert (finding.file, finding.code) == ("x.json", "ambiguous-sessions")
    assert finding.message == (
        "2 sessions are not joined: the loops runner:one and runner:two ran at the same time in the same folder"
    )


def test_two_loops_with_other_agents_or_folders_are_not_ambiguous() -> None:
    found = join(
        runner("one", 0, 10, owner="claude"),
        runner("two", 0, 10, owner="codex"),
        runner("three", 0, 10, owner="claude", cwd="/project/tree"),
        session("a", 1, 2),
        session("b", 1, 2, agent="codex"),
        session("c", 1, 2, cwd="/project/tree"),
    )
    assert {id: loop.session_ids for id, loop in found.items()} == {
        "runner:one": ("a",),
        "runner:two": ("b",),
        "runner:three": ("c",),
    }


def test_each_session_of_a_loop_that_does_not_report_its_end_extends_it() -> None:
    one = runner("one", 0, 5, status=LoopStatus.UNKNOWN, ended_at=None)
    found = join(one, session("a", 1, 20), session("b", 21, 40), session("c", 60, 70))
    assert set(found) == {"runner:one", "claude:c"}


def test_a_session_between_two_iterations_has_another_origin() -> None:
    iterations = tuple(
        Iteration(number=n, at=NOW + at * MINUTE, duration_ms=300_000) for n, at in enumerate((5, 25), start=1)
    )
    one = runner("one", 0, 30, iterations=iterations)
    assert set(join(one, session("a", 0, 4), session("b", 10, 12), session("c", 26, 29))) == {"runner:one", "claude:b"}


def test_failures_of_a_session_are_those_of_the_iteration_that_it_began_in() -> None:
    failure = Failure(message="exit 1")
    iterations = (
        Iteration(number=1, at=NOW + 10 * MINUTE, duration_ms=600_000),
        Iteration(number=2, at=NOW + 20 * MINUTE, duration_ms=600_000, failures=(Failure(message="own"),)),
    )
    turns = (Iteration(number=1, failures=(failure,)),)
    one = runner("one", 0, 30, iterations=iterations)
    found = join(one, session("a", 1, 9, iterations=turns), session("b", 11, 19, iterations=turns))["runner:one"]
    assert [iteration.failures for iteration in found.iterations] == [(failure,), (Failure(message="own"),)]


def test_sessions_are_the_iterations_of_a_runner_that_records_none() -> None:
    turns = (Iteration(failures=(Failure(message="exit 1"),)), Iteration())
    failed = session("b", 12, 14, status=LoopStatus.FAILED, iterations=turns)
    found = join(runner("one", 0, 30), session("a", 1, 9, last_result="done"), failed)["runner:one"]
    assert found.iterations == (
        Iteration(number=1, at=NOW + 9 * MINUTE, result="done", duration_ms=480_000),
        Iteration(
            number=2,
            at=NOW + 14 * MINUTE,
            outcome=Outcome.FAILURE,
            duration_ms=120_000,
            failures=(Failure(message="exit 1"),),
        ),
    )


def test_details_of_a_loop_have_the_failures_of_its_sessions() -> None:
    failure = Failure(message="exit 1")
    own = (Iteration(number=1, at=NOW + 10 * MINUTE, duration_ms=600_000),)
    one, subagent = session("a", 1, 9), session("x", 2, 3, parent="claude:a")
    read = [
        (found, LoopDetails(loop_id=found.id, iterations=(Iteration(failures=(failure,)),)))
        for found in (one, subagent)
    ]
    found = join_details(LoopDetails(loop_id="runner:one", iterations=own, facts=(("a", "b"),)), read)
    assert [iteration.failures for iteration in found.iterations] == [(failure,)]
    assert found.facts == (("a", "b"),)
    (made,) = join_details(LoopDetails(loop_id="runner:one"), read).iterations
    assert (made.number, made.failures) == (1, (failure,))


def test_own_tokens_of_a_runner_count_the_same_tokens_again() -> None:
    own = Usage(input=8, output=2, cost_usd=0.5)
    few = join(runner("one", 0, 10, usage=own), session("a", 1, 2, usage=Usage(input=10, output=5, cost_usd=1.0)))
    assert few["runner:one"].usage == Usage(input=10, output=5, cost_usd=0.5)
    most = Usage(input=800, output=200)
    many = join(runner("one", 0, 10, usage=most), session("a", 1, 2, usage=Usage(input=10, cost_usd=1.0)))
    assert many["runner:one"].usage == Usage(input=800, output=200, cost_usd=1.0)


def test_subagents_go_where_their_session_goes() -> None:
    child = session("a/x", 1, 2, parent="claude:a", session_ids=("x",))
    grandchild = session("a/y", 50, 60, parent="claude:a/x", session_ids=("y",))
    fork = session("f", 50, 60, parent="claude:a", tags=("interactive",))
    alone = session("b/x", 50, 51, parent="claude:b", session_ids=("z",))
    found = join(runner("one", 0, 10), session("a", 1, 3), child, grandchild, session("b", 40, 60), alone, fork)
    assert set(found) == {"runner:one", "claude:b", "claude:b/x", "claude:f"}
    one = found["runner:one"]
    assert (one.usage, one.iteration) == (Usage(input=30, output=15), 1)


def test_parents_in_a_circle_end() -> None:
    one, two = session("a", 1, 2, parent="claude:b"), session("b", 1, 2, parent="claude:a")
    assert set(join(runner("one", 0, 10), one, two)) == {"runner:one", "claude:a", "claude:b"}


def test_a_running_or_waiting_session_shows_what_an_open_loop_does() -> None:
    one = runner("one", 0, 5, status=LoopStatus.UNKNOWN, ended_at=None, liveness=Liveness.UNKNOWN)
    alive: dict[str, Any] = {"ended_at": None, "liveness": Liveness.ALIVE, "liveness_reason": "process 7 runs"}
    current = session("a", 4, 5, status=LoopStatus.RUNNING, **alive)
    found = join(one, current)["runner:one"]
    assert (found.status, found.state_source) == (LoopStatus.RUNNING, StateSource.INFERRED)
    assert (found.liveness, found.liveness_reason) == (Liveness.ALIVE, "its session claude:a: process 7 runs")
    one = runner("one", 0, 5, status=LoopStatus.RUNNING, ended_at=None, liveness=Liveness.ALIVE)
    waiting = session("a", 4, 5, status=LoopStatus.WAITING, ended_at=None, liveness=Liveness.FRESH)
    assert join(one, waiting)["runner:one"].status is LoopStatus.WAITING
    for status in (LoopStatus.PAUSED, LoopStatus.FAILED):
        kept = runner("one", 0, 5, status=status, session_ids=("a",))
        assert join(kept, current)["runner:one"].status is status


def test_evidence_of_the_last_session_contradicts_the_claim_of_a_runner() -> None:
    one = runner("one", 0, 30, status=LoopStatus.COMPLETED, progress=Progress(stories=1, stories_done=1))
    good = session("a", 1, 9, progress=Progress(test_passed=True, files_changed=2, changed_at=NOW + 8 * MINUTE))
    bad = session("b", 12, 14, progress=Progress(test_passed=False, files_changed=0))
    assert join(one, good)["runner:one"].success
    found = join(one, good, bad)["runner:one"]
    assert found.badges == ("success-contradicted",)
    assert (found.progress.files_changed, found.progress.changed_at) == (2, NOW + 8 * MINUTE)
    assert found.success is None


def test_changes_of_no_session_are_only_certain_if_all_are_known() -> None:
    def changed(*counts: int | None) -> int | None:
        sessions = [
            session(f"{n}", n, n, progress=Progress(files_changed=count)) for n, count in enumerate(counts, start=1)
        ]
        return join(runner("one", 0, 30), *sessions)["runner:one"].progress.files_changed

    assert (changed(0, 0), changed(0, None), changed(1, None)) == (0, None, 1)


def test_an_iteration_without_a_duration_began_at_the_end_of_the_one_before() -> None:
    failure = Failure(message="exit 1")
    iterations = tuple(Iteration(number=n, at=NOW + at * MINUTE) for n, at in enumerate((5, 25), start=1))
    one = runner("one", 0, 30, iterations=iterations)
    found = join(one, session("a", 10, 20, iterations=(Iteration(failures=(failure,)),)))["runner:one"]
    assert [iteration.failures for iteration in found.iterations] == [(), (failure,)]


def test_a_loop_that_is_only_the_plan_of_another_loop_is_joined_to_the_newest_one() -> None:
    plan = runner("plan", 0, 60, runner="plans", files=("prd.json",), progress=Progress(stories=2, stories_done=1))
    old = runner("old", -60, -50, files=("old.json", "prd.json"))
    new = runner("new", 0, 50, files=("new.json", "prd.json"))
    found = join(plan, old, new, session("a", 1, 2))
    assert set(found) == {"runner:old", "runner:new"}
    assert found["runner:new"].progress.stories_open == 1
    assert found["runner:new"].session_ids == ("a",)


def test_sessions_in_working_trees_below_the_folder_of_a_loop_are_joined() -> None:
    rows: list[tuple[str, bool]] = [
        ("/project/.some-runner/worktrees/one", True),
        ("/project/worktrees/one/src", True),
        ("/project/.worktrees/one", True),
        ("/project/src", False),
        ("/elsewhere/worktrees/one", False),
        ("worktrees", False),
    ]
    for cwd, is_joined in rows:
        assert (len(join(runner("one", 0, 10), session("a", 1, 2, cwd=cwd))) == 1) is is_joined, cwd


def test_loops_of_the_project_and_sessions_without_a_runner_stay_the_same_objects() -> None:
    own, alone = Loop(id="own", status=LoopStatus.COMPLETED), session("a", 1, 2)
    assert join(own, alone) == {"own": own, "claude:a": alone}
    assert join(own, alone)["claude:a"] is alone


def test_the_work_grows_with_the_number_of_sessions_and_loops_and_not_with_their_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    original: Callable[[Loop], Any] = module._last_sign

    def counted(loop: Loop) -> Any:
        nonlocal calls
        calls += 1
        return original(loop)

    monkeypatch.setattr(module, "_last_sign", counted)
    loops = [runner(f"{n}", n * 10, n * 10 + 9) for n in range(100)]
    together = [runner(f"all{n}", 0, 10_000, cwd="/project/all") for n in range(100)]
    sessions = [session(f"{n}", n, n + 0.5, cwd=cwd) for n in range(1000) for cwd in ("", "/project/all")]
    join_loops([*loops, *together, *sessions], PROJECT)
    assert calls <= 4 * (len(loops) + len(together) + len(sessions))


_MINUTES = st.integers(0, 60)
_NAMES = st.integers(0, 99).map(str)


_USAGES = st.builds(
    Usage, input=st.none() | st.integers(0, 1000), output=st.none() | st.integers(0, 1000), cost_usd=st.none()
)


_SESSIONS = st.lists(
    st.builds(
        lambda name, start, length, usage, cwd, parent, tags: session(
            name, start, start + length, usage=usage, cwd=cwd, parent=parent, tags=tags
        ),
        _NAMES,
        _MINUTES,
        _MINUTES,
        _USAGES,
        st.sampled_from(("", "/project", "/tree")),
        st.just("") | _NAMES.map(lambda name: f"claude:{name}"),
        st.sampled_from(((), ("headless",), ("headless",), ("interactive",))),
    ),
    max_size=12,
    unique_by=lambda one: one.id,
)


_RUNNERS = st.lists(
    st.builds(
        lambda name, start, length, status, cwd, ids: runner(
            name, start, start + length, status=status, cwd=cwd, session_ids=tuple(ids)
        ),
        _NAMES,
        _MINUTES,
        _MINUTES,
        st.sampled_from((LoopStatus.LIMIT, LoopStatus.UNKNOWN, LoopStatus.RUNNING)),
        st.sampled_from(("", "/project", "/tree")),
        st.lists(_NAMES, max_size=2),
    ),
    max_size=6,
    unique_by=lambda one: one.id,
)


def _total(loops: list[Loop]) -> int:
    return sum(loop.usage.total or 0 for loop in loops)


@given(sessions=_SESSIONS, runners=_RUNNERS, data=st.data())
def test_each_session_is_in_one_loop_and_no_token_is_lost_in_any_order(
    sessions: list[Loop], runners: list[Loop], data: st.DataObject
) -> None:
    loops = [*sessions, *runners]
    found = join_loops(loops, PROJECT)
    assert found == join_loops(data.draw(st.permutations(loops)), PROJECT)
    assert _total(found.loops) == _total(loops)
    _check_parts(sessions, found)


def _check_parts(sessions: list[Loop], found: Joined) -> None:
    ids = [loop.id for loop in found.loops]
    assert ids == sorted(set(ids))
    owners = [alias for loop in found.loops for alias in loop.aliases]
    assert sorted([*(loop.id for loop in found.loops if is_session(loop)), *(a for a in owners if ":" in a)]) == sorted(
        one.id for one in sessions
    )


PROVEN = Progress(stories=2, stories_done=2, test_passed=True, files_changed=3, goal_met=True)


def loop(status: LoopStatus = LoopStatus.COMPLETED, progress: Progress = PROVEN, **fields: Any) -> Loop:
    return Loop(id="some:1", runner="some", status=status, progress=progress, ended_at=NOW, **fields)


@pytest.mark.parametrize(
    ("progress", "reason"),
    [
        (Progress(stories=5, stories_done=3), "2 of 5 stories are open"),
        (Progress(test_passed=False, goal_met=True), "the last test run failed"),
        (Progress(goal_met=False, test_passed=True), "the goal was judged as not met"),
        (Progress(files_changed=0, test_passed=True), "no file was changed"),
        (Progress(stories=2, stories_done=1, test_passed=False), "1 of 2 stories are open, the last test run failed"),
    ],
)
def test_a_contradicted_success_gets_a_badge_and_the_reasons_and_is_not_scored(progress: Progress, reason: str) -> None:
    found = check_claim(loop(progress=progress, badges=("stale",)))
    assert (found.status, found.badges) == (LoopStatus.COMPLETED, ("stale", CONTRADICTED))
    assert found.liveness_reason == f"success is claimed, but {reason}"
    assert found.success is None
    assert loop_signals(found, WorkReport()) is None


def test_only_a_success_with_evidence_is_scored() -> None:
    proofs: list[dict[str, Any]] = [
        {"stories": 2, "stories_done": 2},
        {"test_passed": True},
        {"goal_met": True},
        {"goal_met": True, "files_changed": 0},
    ]
    for proof in proofs:
        found = loop(progress=Progress(**proof))
        assert check_claim(found) is found
        signals = loop_signals(found, WorkReport())
        assert signals is not None and signals.success
    for nothing in (Progress(), Progress(is_claimed=True), Progress(stories=0, stories_done=0)):
        found = check_claim(loop(progress=nothing))
        assert (found.badges, loop_signals(found, WorkReport()), work_outcome(found)) == ((), None, "unknown")


def test_a_promise_of_a_loop_that_runs_is_contradicted_by_open_stories() -> None:
    progress = Progress(stories=2, stories_done=1, is_claimed=True)
    assert check_claim(loop(LoopStatus.RUNNING, progress)).badges == (CONTRADICTED,)
    assert check_claim(loop(LoopStatus.RUNNING, Progress(stories=2, stories_done=1))).badges == ()


def test_a_session_claims_something_only_with_a_goal() -> None:
    done, failed = (LoopStatus.COMPLETED, "end_turn"), (LoopStatus.FAILED, TESTS_FAILED)
    for progress, expected in (
        (Progress(files_changed=0), done),
        (Progress(test_passed=True, files_changed=0), done),
        (Progress(test_passed=False), failed),
    ):
        found = check_claim(loop(progress=progress, owner="some", end_reason="end_turn"))
        assert ((found.status, found.end_reason), found.badges) == (expected, ())
    found = check_claim(loop(progress=Progress(test_passed=False), owner="some", criteria=("npm test exits 0",)))
    assert found.badges == (CONTRADICTED,)


def test_success_of_loops_of_this_project_and_of_inferred_states() -> None:
    for status, success in ((LoopStatus.COMPLETED, True), (LoopStatus.LIMIT, False), (LoopStatus.RUNNING, None)):
        assert Loop(id="a", status=status).success is success, "loops of this project need no proof"
    assert loop(LoopStatus.FAILED).success is False
    assert loop(LoopStatus.FAILED, state_source=StateSource.INFERRED).success is None
    assert Progress(stories=1, stories_done=4).stories_open == 0


def test_the_report_of_a_person_outweighs_a_claim() -> None:
    event = make_event(1, "outcome", NOW, loop_id="some:1", pattern_id="", success=True)
    signals = loop_signals(loop(progress=Progress()), WorkReport((event,)))
    assert signals is not None and signals.success


START = datetime(2026, 11, 20, 11, 20, 5, tzinfo=UTC)


def test_the_failures_of_a_session_are_in_the_iteration_that_started_it(tmp_path: Path) -> None:
    case = open_case(RalphTuiAdapter(), "ralph-tui/limit", tmp_path / "case")
    times = (START + timedelta(seconds=n) for n in range(100))
    make = Records(case.project, now=lambda: next(times), entrypoint="sdk-cli", promptSource="sdk")
    call = make.tool("Bash", command="npm test")
    records = [make.prompt("Round totals once"), call, make.result(call, FAILURE, failed=True), make.answer("Stopped.")]
    transcript = case.home / ".claude" / "projects" / slug(case.project) / f"{make.session}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(lines(records))
    collector, later = (Collector(case.folders, clock=lambda: CASE_NOW, processes=case.processes) for _ in range(2))
    (loop,) = collector.read_all().loops
    assert loop.session_ids == (make.session,)
    for reader in (collector, later):  # the second one is asked about a loop that another process has stored
        first, second = reader.details(loop).iterations
        assert "clock.now is not a function" in str([one.message for one in first.failures])
        assert [one.message for one in second.failures] == ["exit 1"]
        reader.close()


def test_a_plan_that_another_runner_works_on_is_not_a_loop_of_its_own(tmp_path: Path) -> None:
    case = open_case(RalphTuiAdapter(), "ralph-tui/crashed-lock", tmp_path / "case")
    collector = Collector(case.folders, clock=lambda: CASE_NOW, processes=case.processes)
    (loop,) = collector.read_all().loops
    assert loop.runner == "ralph-tui"
    assert any(alias.startswith("snarktank:") for alias in loop.aliases)
    collector.close()
