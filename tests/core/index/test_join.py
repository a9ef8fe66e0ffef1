"""The parts of files are joined to records, step by step as from nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.steps import group_pairs
from core.index.records import Kind
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import HOOKS, SESSION_TAG, AgentSession, Liveness, Loop, LoopStatus, Outcome, needs_person
from core.records.patterns import Pattern
from core.records.reflections import Reflection
from core.sources.loop_join import LoopFact, directory_fact
from core.sources.loops import read_crash_log
from core.sources.parsed_file import ParsedFile
from tests.factories import (
    EXTERNAL_FOLDER,
    INTERNAL_FOLDER,
    LOOP_UUID,
    SOURCES_NOW,
    JoinedFiles,
    RunningProcesses,
    archived_facts,
    external_facts,
    internal_facts,
    iso_ago,
    join_facts,
    launcher_facts,
    make_pattern,
    read_facts,
    registry_facts,
    session_facts,
)

REGISTRY = f"{INTERNAL_FOLDER}/registry.json"
CRASH_LOG = f"{INTERNAL_FOLDER}/loops/a/crash.log"
HEARTBEAT = {"timestamp": 1777636740000}
MINUTE = timedelta(minutes=1)


def files_of(*parsed: Iterable[LoopFact]) -> dict[str, ParsedFile]:
    grouped = group_pairs((fact.file, fact) for part in parsed for fact in part)
    return {file: ParsedFile(loops=tuple(facts)) for file, facts in grouped.items()}


def loops_of(joined: JoinedFiles) -> Mapping[str, Loop]:
    return joined.records(Kind.LOOP)


class TestStateOfLoops:
    """What the files of one loop say together."""

    def test_state_registry_and_heartbeat_are_one_loop(self) -> None:
        loops = join_facts(
            registry_facts({"loop_id": "a", "owner": "me", "iteration": 1}),
            internal_facts("a", task="t"),
            read_facts(f"{INTERNAL_FOLDER}/heartbeats/a.json", HEARTBEAT),
        )
        (loop,) = loops.values()
        assert (loop.id, loop.task, loop.owner, loop.sources) == ("a", "t", "me", ("loops", "registry"))
        assert (loop.last_activity, loop.liveness) == (SOURCES_NOW - MINUTE, Liveness.FRESH)
        assert loop.files[0] == f"{INTERNAL_FOLDER}/loops/a/state.json"

    def test_badges_show_contradictions(self) -> None:
        for parsed, badges in (
            (internal_facts("a"), ("orphan",)),
            (internal_facts("a", status="paused"), ("orphan",)),
            (internal_facts("a", status="failed"), ("unregistered",)),
            (archived_facts("a"), ()),
            (
                (*archived_facts("a"), *registry_facts({"loop_id": "a", "status": "completed"})),
                ("archived-but-registered",),
            ),
            (
                (*internal_facts("a", status="completed"), *registry_facts({"loop_id": "a", "status": "running"})),
                ("status-disagrees",),
            ),
            (registry_facts({"loop_id": "a", "status": "completed"}), ("registered-only",)),
            (internal_facts("a", loopId="b"), ("id-disagrees", "orphan")),
            (internal_facts("a", startTime=iso_ago(hours=1)), ("orphan", "stale")),
            (internal_facts("a", currentPid=7), ("crashed", "orphan")),
            (external_facts("a"), ()),
        ):
            assert join_facts(parsed, registry_facts({"loop_id": "other"}))["a"].badges == badges, parsed

    def test_a_loop_is_an_orphan_only_of_the_registry_of_its_tree(self) -> None:
        assert join_facts(internal_facts("a"))["a"].badges == ()
        assert join_facts(external_facts("a"), registry_facts(root=EXTERNAL_FOLDER))["a"].badges == ("orphan",)

    def test_an_archived_running_loop_has_ended_and_future_times_are_findings_and_not_activity(self) -> None:
        loop = join_facts(archived_facts("a", status="running"))["a"]
        assert (loop.status, loop.liveness, loop.archived) == (LoopStatus.RUNNING, Liveness.ENDED, True)
        joined = JoinedFiles()
        joined.store(files_of(internal_facts("a", lastUpdate="2030-01-01T00:00:00Z")))
        assert [finding.code for finding in joined.findings] == ["future-time"]
        assert loops_of(joined)["a"].last_activity != datetime(2030, 1, 1, tzinfo=UTC)

    def test_a_folder_without_a_readable_state_is_a_loop_with_a_finding(self) -> None:
        fact = directory_fact(f"{INTERNAL_FOLDER}/loops/a/", SOURCES_NOW)
        assert fact is not None
        joined = JoinedFiles()
        joined.store(files_of([fact]))
        loop = loops_of(joined)["a"]
        assert (loop.status, loop.sources, loop.liveness) == (LoopStatus.UNKNOWN, ("loops",), Liveness.UNKNOWN)
        assert [(one.code, one.file) for one in joined.findings] == [("no-state", f"{INTERNAL_FOLDER}/loops/a")]

    def test_a_dead_process_makes_a_running_loop_crashed_and_a_crash_log_is_only_mentioned(self) -> None:
        step = {"number": 1, "timestamp": iso_ago(minutes=7)}
        loop = join_facts(internal_facts("a", currentPid=7, iterations=[step]))["a"]
        assert (loop.status, loop.raw_status) == (LoopStatus.CRASHED, "running")
        assert (loop.ended_at, loop.ended_approximate) == (SOURCES_NOW - 7 * MINUTE, True)
        log = read_crash_log(CRASH_LOG, b"[2026-05-01T11:55:00Z] boom", SOURCES_NOW)
        loop = join_facts(internal_facts("a"), [log])["a"]
        assert loop.status is LoopStatus.RUNNING
        assert "crash.log reports a crash" in loop.liveness_reason
        assert join_facts([log])["a"].crashes == 1, "alone it is a loop, and a heartbeat is not"
        assert not join_facts(read_facts(f"{INTERNAL_FOLDER}/heartbeats/a.json", HEARTBEAT))

    def test_the_end_is_recorded_or_inferred(self) -> None:
        for state, minutes, approximate in (
            ({"endTime": iso_ago(minutes=1)}, 1, False),
            ({"iterations": [{"timestamp": iso_ago(minutes=2)}], "lastUpdate": iso_ago(minutes=1)}, 2, True),
            ({"lastUpdate": iso_ago(minutes=3)}, 3, True),
            ({}, 10, True),
            ({"endTime": iso_ago(hours=5), "lastUpdate": iso_ago(minutes=3)}, 3, True),
            ({"endTime": "2030-01-01T00:00:00Z", "iterations": [{"timestamp": iso_ago(minutes=4)}]}, 4, True),
            ({"status": "crashed", "endTime": iso_ago(minutes=5), "lastUpdate": iso_ago(minutes=3)}, 5, False),
        ):
            loop = join_facts(internal_facts("a", **{"status": "completed", **state}))["a"]
            assert (loop.ended_at, loop.ended_approximate) == (SOURCES_NOW - minutes * MINUTE, approximate), state


class TestIdentityOfLoops:
    """Which files are of one loop."""

    def test_two_runs_with_one_id_are_two_loops_and_a_copy_is_one(self) -> None:
        two = join_facts(internal_facts("a"), archived_facts("a"))
        assert {loop.id: loop.archived for loop in two.values()} == {"a": False, "a@archive": True}
        one = join_facts(internal_facts("a", startTime=iso_ago(hours=3)), archived_facts("a"))
        assert [loop.sources for loop in one.values()] == [("archive", "loops")]
        assert set(join_facts(internal_facts("a"), external_facts("a"))) == {"a", "a@external"}

    def test_a_uuid_may_be_the_id_of_an_internal_loop(self) -> None:
        heartbeat = read_facts(f"{INTERNAL_FOLDER}/heartbeats/{LOOP_UUID}.json", HEARTBEAT)
        assert join_facts(internal_facts(LOOP_UUID), heartbeat)[LOOP_UUID].last_activity == SOURCES_NOW - MINUTE

    def test_ids_with_path_parts_are_only_text(self) -> None:
        loop = join_facts(registry_facts({"loop_id": "../../escaped", "status": "running"}))["../../escaped"]
        assert (loop.directory, loop.files) == ("", (REGISTRY,))

    def test_launcher_and_registry_join_by_process_and_task(self) -> None:
        entry = {"loop_id": "a", "pid": 7, "task_summary": "do it", "status": "running"}
        bare = directory_fact(f"{EXTERNAL_FOLDER}/loops/launched", SOURCES_NOW)
        assert bare is not None
        launched, started = launcher_facts(7, iso_ago(hours=9)), external_facts("a")
        (loop,) = join_facts(launched, registry_facts(entry, root=EXTERNAL_FOLDER), started, [bare]).values()
        assert (loop.id, loop.aliases, loop.directory) == ("a", ("launched",), f"{EXTERNAL_FOLDER}/loops/a")
        reused = registry_facts({**entry, "task_summary": "something else"}, root=EXTERNAL_FOLDER)
        assert set(join_facts(launched, reused)) == {"a", "launched"}

    def test_session_state_joins_by_objective_and_the_nearest_start_within_five_seconds(self) -> None:
        for seconds, rows in ((4.9, 1), (5.0, 2)):
            loops = join_facts(
                external_facts("a"), session_facts(iso_ago(minutes=10, seconds=seconds), currentIteration=3)
            )
            assert len(loops) == rows, seconds
            assert loops["a"].iteration == (3 if rows == 1 else None), seconds
        loops = join_facts(
            external_facts("a", startTime=iso_ago(minutes=10, seconds=3)),
            external_facts("b", startTime=iso_ago(minutes=10, seconds=-1)),
            session_facts(iso_ago(minutes=10)),
        )
        assert (loops["a"].aliases, loops["b"].aliases) == ((), (LOOP_UUID,))

    def test_session_state_is_a_loop_that_the_launcher_finds_and_a_linked_one_is_its_loop(self) -> None:
        loops = join_facts(session_facts(iso_ago(minutes=10)), launcher_facts(7, iso_ago(minutes=10, seconds=1)))
        assert {id: loop.sources for id, loop in loops.items()} == {LOOP_UUID: ("external-state", "launcher")}
        loops = join_facts(external_facts("a"), session_facts(iso_ago(days=1), loopId="a", objective="other words"))
        assert {id: loop.sources for id, loop in loops.items()} == {"a": ("external", "external-state")}

    def test_analytics_and_heartbeat_of_a_uuid_find_their_external_loop(self) -> None:
        analytics = {
            "loop_id": LOOP_UUID,
            "task_description": "do it",
            "start_time": iso_ago(minutes=10),
            "total_iterations": 4,
            "iterations": [{"quality_score": 50}],
        }
        (loop,) = join_facts(
            read_facts(f"{INTERNAL_FOLDER}/heartbeats/{LOOP_UUID}.json", {**HEARTBEAT, "iteration": 5}),
            read_facts(f"{EXTERNAL_FOLDER}/analytics/{LOOP_UUID}.json", analytics),
            external_facts("a"),
        ).values()
        assert (loop.id, loop.aliases, loop.quality, loop.iteration) == ("a", (LOOP_UUID,), (0.5,), 5)

    def test_the_newest_fact_gives_the_status_of_an_external_loop(self) -> None:
        loops = join_facts(
            external_facts("a", lastUpdate=iso_ago(minutes=9)),
            session_facts(iso_ago(minutes=10), status="paused", lastUpdate=iso_ago(minutes=2)),
        )
        assert loops["a"].status is LoopStatus.PAUSED


class TestChangesOfLoops:
    def test_a_live_process_keeps_it_running_until_it_dies(self) -> None:
        processes = RunningProcesses({7: SOURCES_NOW - timedelta(hours=1)})
        joined = JoinedFiles(processes)
        joined.store(files_of(internal_facts("a", currentPid=7)))
        assert loops_of(joined)["a"].liveness is Liveness.ALIVE
        processes.starts.clear()
        joined.store({})
        assert not joined.changed["loops"]
        joined.store({}, checks_open=True)
        assert joined.changed["loops"] == {"a"}
        assert loops_of(joined)["a"].status is LoopStatus.CRASHED

    def test_time_alone_makes_loops_stale_and_ends_sessions(self) -> None:
        joined = JoinedFiles()
        joined.store(files_of(internal_facts("a")))
        joined.store({"s": ParsedFile(agent_sessions=(session(),))})
        joined.replace_adapted([Loop(id="x:1", status=LoopStatus.WAITING, last_activity=joined.now)])
        assert loops_of(joined)["claude:s1"].status is LoopStatus.PAUSED
        joined.now += 31 * MINUTE
        joined.store({}, checks_open=True)
        assert joined.changed["loops"] == {"a", "claude:s1", "x:1"}
        assert [loops_of(joined)[id].liveness for id in ("a", "x:1")] == [Liveness.STALE] * 2
        assert loops_of(joined)["claude:s1"].status is LoopStatus.COMPLETED

    def test_a_change_affects_only_its_own_loop(self) -> None:
        joined, other = JoinedFiles(), {"loop_id": "b", "iteration": 1}
        joined.store(files_of(internal_facts("a"), internal_facts("b"), registry_facts({"loop_id": "a"}, other)))
        before = loops_of(joined)["b"]
        joined.store(files_of(registry_facts({"loop_id": "a", "owner": "me"}, other)))
        assert joined.changed["loops"] == {"a"}
        assert loops_of(joined)["b"] is before
        joined.store({f"{INTERNAL_FOLDER}/loops/b/state.json": ParsedFile()})
        assert joined.changed["loops"] == {"b"}
        assert loops_of(joined)["b"].badges == ("registered-only",)
        joined.store({REGISTRY: ParsedFile()})
        assert joined.changed["loops"] == {"a", "b"}
        assert set(loops_of(joined)) == {"a"}


NAMES = st.sampled_from(["a", "b", LOOP_UUID])
WORDS = st.sampled_from(["running", "completed", "paused", "x", ""])
TIMES = st.sampled_from(
    [iso_ago(minutes=5), iso_ago(minutes=5, seconds=2), iso_ago(days=2), "2031-01-01T00:00:00Z", None]
)
STATES = st.fixed_dictionaries(
    {"status": WORDS, "startTime": TIMES, "endTime": TIMES, "lastUpdate": TIMES, "objective": WORDS},
    optional={"currentPid": st.integers(-1, 9), "loopId": NAMES, "currentIteration": st.integers(-1, 5)},
)
FACTS = st.one_of(
    st.builds(lambda i, s: internal_facts(i, **s), NAMES, STATES),
    st.builds(lambda i, s: archived_facts(i, **s), NAMES, STATES),
    st.builds(lambda i, s: external_facts(i, **s), NAMES, STATES),
    st.builds(lambda i, s: external_facts(i, "archive", **s), NAMES, STATES),
    st.builds(lambda s: read_facts(f"{EXTERNAL_FOLDER}/session-state.json", s), STATES),
    st.builds(lambda i, s: registry_facts({**s, "loop_id": i}), NAMES, STATES),
    st.builds(lambda i, s: registry_facts({**s, "loop_id": i}, root=EXTERNAL_FOLDER), NAMES, STATES),
    st.builds(lambda s: read_facts(f"{EXTERNAL_FOLDER}/launcher-registry.json", {"loops": {"launched": s}}), STATES),
    st.builds(lambda i, s: read_facts(f"{INTERNAL_FOLDER}/heartbeats/{i}.json", s | HEARTBEAT), NAMES, STATES),
    st.builds(lambda i, s: read_facts(f"{EXTERNAL_FOLDER}/analytics/{i}.json", {**s, "loop_id": i}), NAMES, STATES),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(FACTS, max_size=8), st.sets(st.integers(0, 7)))
def test_joining_loops_does_not_depend_on_order_or_steps(parsed: list[tuple[LoopFact, ...]], removed: set[int]) -> None:
    files = files_of(*{part[0].file: part for part in parsed if part}.values())
    steps = JoinedFiles()
    for file, content in reversed(files.items()):
        steps.store({file: content})
    for number, file in enumerate(files):
        if number in removed:
            steps.store({file: ParsedFile()})
    whole = JoinedFiles()
    whole.store({file: content for number, (file, content) in enumerate(files.items()) if number not in removed})
    assert list(loops_of(steps).items()) == list(loops_of(whole).items())
    assert set(steps.findings) == set(whole.findings)


class TestLoopsOfOtherRunners:
    def test_they_are_in_the_order_of_their_start_and_only_those_that_changed_are_reported(self) -> None:
        joined = JoinedFiles()
        joined.store(
            files_of(internal_facts("b", startTime=iso_ago(hours=1)), internal_facts("a", startTime=iso_ago(hours=3)))
        )
        codex = Loop(id="codex:1", started_at=SOURCES_NOW - timedelta(hours=2))
        joined.replace_adapted([codex])
        assert joined.changed["loops"] == {"codex:1"}
        assert list(loops_of(joined)) == ["b", "codex:1", "a"]
        joined.replace_adapted([codex, Loop(id="codex:2"), Loop(id="codex:3")])
        joined.replace_adapted([codex, Loop(id="codex:2", iteration=4)])
        assert joined.changed["loops"] == {"codex:2", "codex:3"}
        assert "codex:2" in loops_of(joined) and "codex:3" not in loops_of(joined), "missing ones are removed"

    def test_a_loop_of_aiwg_with_their_id_has_precedence_as_long_as_it_exists(self) -> None:
        joined = JoinedFiles()
        joined.replace_adapted([Loop(id="a", task="of the adapter")])
        joined.store(files_of(internal_facts("a", task="of .aiwg")))
        joined.replace_adapted([Loop(id="a", task="of the adapter, again")])
        assert loops_of(joined)["a"].task == "of .aiwg"
        joined.store({f"{INTERNAL_FOLDER}/loops/a/state.json": ParsedFile()})
        assert loops_of(joined)["a"].task == "of the adapter, again"

    def test_a_wait_without_a_known_process_is_stale_after_the_time_of_the_setting(self) -> None:
        for minutes, liveness, status, expected in (
            (29, Liveness.FRESH, LoopStatus.WAITING, Liveness.FRESH),
            (31, Liveness.FRESH, LoopStatus.WAITING, Liveness.STALE),
            (31, Liveness.IDLE, LoopStatus.WAITING, Liveness.STALE),
            (29, Liveness.IDLE, LoopStatus.WAITING, Liveness.IDLE),
            (31, Liveness.ALIVE, LoopStatus.WAITING, Liveness.ALIVE),
            (29, Liveness.STALE, LoopStatus.WAITING, Liveness.FRESH),
            (31, Liveness.FRESH, LoopStatus.RUNNING, Liveness.FRESH),
        ):
            joined = JoinedFiles()
            badges = ("stale",) if liveness is Liveness.STALE else ()
            at = joined.now - minutes * MINUTE
            joined.replace_adapted(
                [Loop(id="x:1", runner="x", status=status, liveness=liveness, last_activity=at, badges=badges)]
            )
            loop = loops_of(joined)["x:1"]
            assert (loop.liveness, loop.badges) == (expected, ("stale",) if expected is Liveness.STALE else ()), minutes
            assert needs_person(loop) is (status is LoopStatus.WAITING and expected is not Liveness.STALE), minutes


def task(id: str = "task-001", session: str = "claude:s1", **values: Any) -> Task:
    return Task(id=id, description=f"Do {id}", tags=(SESSION_TAG,), loop_id=session, created_at=SOURCES_NOW, **values)


def attempt(number: int = 1, outcome: Outcome = Outcome.UNKNOWN, task_id: str = "task-001", **values: Any) -> Attempt:
    at = SOURCES_NOW + number * MINUTE
    return Attempt(task_id=task_id, number=number, started_at=at, outcome=outcome, **values)


def session(prompt: str = "Do it", **values: Any) -> AgentSession:
    return AgentSession(
        id="claude:s1", agent="claude", session_id="s1", last_event_at=SOURCES_NOW, prompt=prompt, **values
    )


def adapter_loop(**values: Any) -> Loop:
    return Loop(id="claude:s1", runner="claude", owner="claude", sources=("claude",), **values)


def record(joined: JoinedFiles, *records: Task | Attempt | AgentSession) -> Mapping[str, Loop]:
    """Store each record in a file of its own; returns the loops."""
    for one in records:
        match one:
            case Task():
                parsed = ParsedFile(tasks=(one,))
            case Attempt():
                parsed = ParsedFile(attempts=(one,))
            case AgentSession():
                parsed = ParsedFile(agent_sessions=(one,))
        joined.store({one.id: parsed})
    return loops_of(joined)


class TestSessions:
    """Loops that hooks recorded."""

    def test_a_prompt_or_a_task_of_a_session_is_a_loop_and_other_tasks_are_not(self) -> None:
        assert record(JoinedFiles(), session(is_turn_open=True))["claude:s1"].status is LoopStatus.RUNNING
        assert not record(JoinedFiles(), session(prompt=""))
        other = Task(id="task-002", description="Do it", loop_id="x:1")
        loops = record(JoinedFiles(), task(), attempt(), other, attempt(task_id="task-002"))
        assert [*loops] == ["claude:s1"]
        assert (loops["claude:s1"].task, loops["claude:s1"].runner) == ("Do task-001", "claude")
        assert loops["claude:s1"].sources == (HOOKS,)

    def test_the_loop_of_an_adapter_and_the_session_are_one(self) -> None:
        joined = JoinedFiles()
        record(joined, task(status=TaskStatus.COMPLETED), attempt(1, Outcome.SUCCESS))
        joined.replace_adapted([adapter_loop(iteration=7)])
        (loop,) = loops_of(joined).values()
        assert (loop.iteration, loop.status) == (7, LoopStatus.COMPLETED)
        joined.replace_adapted([])
        assert loops_of(joined)["claude:s1"].sources == (HOOKS,)

    def test_attempts_of_several_sessions_are_in_the_loops_of_their_sessions(self) -> None:
        joined = JoinedFiles()
        second = attempt(2, Outcome.SUCCESS, loop_id="claude:s2")
        loops = record(joined, task(), attempt(1, Outcome.FAILURE), second)
        assert {id: loop.iterations[0].outcome for id, loop in loops.items()} == {
            "claude:s1": Outcome.FAILURE,
            "claude:s2": Outcome.SUCCESS,
        }
        assert loops["claude:s2"].started_at == second.started_at, "not when its task was created"
        joined.replace_adapted([adapter_loop(aliases=("claude:s2",), session_ids=("s1", "s2"))])
        (loop,) = loops_of(joined).values()
        assert loop.status is LoopStatus.COMPLETED, "the newest session decides"

    def test_a_session_is_removed_with_its_records(self) -> None:
        joined = JoinedFiles()
        record(joined, task(), attempt(), task("task-002", "claude:s2"), attempt(task_id="task-002"))
        before = loops_of(joined)["claude:s2"]
        record(joined, attempt(1, Outcome.SUCCESS))
        assert joined.changed["loops"] == {"claude:s1"}
        joined.store({"task-001": ParsedFile(), "task-001.1": ParsedFile()})
        assert {id: loop is before for id, loop in loops_of(joined).items()} == {"claude:s2": True}


SHARED, MEMORY = ".aiwg/ralph/shared/patterns/a.json", ".aiwg/ralph/memory/patterns/a.json"


def pattern_file(file: str, *patterns: tuple[str, str]) -> ParsedFile:
    """Return a file with patterns of these IDs and titles."""
    folder = "memory" if file == MEMORY else ""
    return ParsedFile(
        patterns=tuple(
            make_pattern(id, title=title, file=file, pointer=f"/{place}", copy_folder=folder)
            for place, (id, title) in enumerate(patterns)
        )
    )


def patterns_of(joined: JoinedFiles) -> Mapping[str, Pattern]:
    return joined.records(Kind.PATTERN)


class TestPatterns:
    def test_a_record_elsewhere_is_a_copy(self) -> None:
        for title, differs in (("one", False), ("other", True)):
            files = {SHARED: pattern_file(SHARED, ("p", "one")), MEMORY: pattern_file(MEMORY, ("p", title))}
            for order in (files, dict(reversed(files.items()))):
                joined = JoinedFiles()
                joined.store(order)
                (pattern,) = patterns_of(joined).values()
                assert pattern.title == "one"
                assert [(copy.file, copy.differs) for copy in pattern.copies] == [(MEMORY, differs)]

    def test_the_first_of_two_records_counts_and_a_copy_takes_over_when_they_are_removed(self) -> None:
        joined = JoinedFiles()
        two = pattern_file(SHARED, ("p", "one"), ("p", "other"))
        joined.store({SHARED: two, MEMORY: pattern_file(MEMORY, ("p", "one"))})
        assert patterns_of(joined)["p"].title == "one"
        assert [(one.code, one.pointer) for one in joined.findings] == [("duplicate-id", "/1")]
        joined.store({SHARED: ParsedFile()})
        assert joined.changed["patterns"] == {"p"}
        assert patterns_of(joined)["p"].copy_folder == "memory"
        joined.store({MEMORY: ParsedFile()})
        assert not patterns_of(joined)

    def test_a_dangling_reference_is_a_finding_while_it_exists(self) -> None:
        joined = JoinedFiles()
        anti = make_pattern("anti", file=SHARED, pointer="/0", better_pattern_id="p")
        joined.store({SHARED: ParsedFile(patterns=(anti,))})
        assert [finding.code for finding in joined.findings] == ["orphan-reference"]
        joined.store({MEMORY: pattern_file(MEMORY, ("p", "one"))})
        assert not joined.findings
        joined.store({MEMORY: ParsedFile()})
        assert [finding.pointer for finding in joined.findings] == ["/0"]
        joined.store({SHARED: ParsedFile()})
        assert not joined.findings

    @settings(deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from((SHARED, MEMORY, SHARED.replace("a.json", "b.json"))),
                st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(("one", "other"))), max_size=3),
            ),
            max_size=6,
        )
    )
    def test_they_are_those_of_the_present_files(self, changes: list[tuple[str, list[tuple[str, str]]]]) -> None:
        steps, present = JoinedFiles(), {}
        for file, records in changes:
            present[file] = pattern_file(file, *records)
            steps.store({file: present[file]})
        whole = JoinedFiles()
        whole.store(present)
        assert dict(patterns_of(steps)) == dict(patterns_of(whole))
        assert set(steps.findings) == set(whole.findings)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([f"{INTERNAL_FOLDER}/loops/a/reflections/reflection-{number}.json" for number in range(6)]),
            st.lists(
                st.tuples(st.sampled_from("abcdef"), st.sampled_from((None, 0, 1, 2))),
                max_size=2,
                unique_by=lambda one: one[0],
            ),
        ),
        max_size=8,
    )
)
def test_reflections_are_those_of_the_present_files_newest_first(
    changes: Sequence[tuple[str, list[tuple[str, int | None]]]],
) -> None:
    steps, present = JoinedFiles(), {}
    for file, reflections in changes:
        at = {text: None if minutes is None else SOURCES_NOW + minutes * MINUTE for text, minutes in reflections}
        found = (Reflection(id=text, shape="hook", file=file, loop_id="a", learning=text, at=at[text]) for text in at)
        present[file] = ParsedFile(reflections=tuple(found))
        before = dict(steps.records(Kind.REFLECTION))
        steps.store({file: present[file]})
        after = dict(steps.records(Kind.REFLECTION))
        assert steps.changed["reflections"] == {id for id in before | after if before.get(id) != after.get(id)}
    whole = JoinedFiles()
    whole.store(present)
    assert list(steps.records(Kind.REFLECTION).items()) == list(whole.records(Kind.REFLECTION).items())
    times = [one.at or SOURCES_NOW - MINUTE for one in whole.records(Kind.REFLECTION).values()]
    assert times == sorted(times, reverse=True)
