from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.records.loops import Liveness, Loop, LoopStatus
from core.settings import WatchSettings
from core.sources.joining import LoopBook, join_loops
from core.sources.loops import LoopFact, directory_fact, read_crash_log, read_loops

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
UUID = "f314cacf-fe09-49ac-91ed-56d8d456ffcb"
INTERNAL = ".aiwg/ralph"
EXTERNAL = ".aiwg/ralph-external"


class Running:
    """Processes with known starts, which a test may take away."""

    def __init__(self, starts: dict[int, datetime] | None = None) -> None:
        self.starts = starts or {}

    def started_at(self, pid: int) -> datetime | None:
        return self.starts.get(pid)


def ago(**span: float) -> str:
    return (NOW - timedelta(**span)).isoformat()


def facts(file: str, value: Any) -> tuple[LoopFact, ...]:
    return read_loops(file, value, NOW)[0]


def internal(loop_id: str, **state: Any) -> tuple[LoopFact, ...]:
    state = {"status": "running", "startTime": ago(minutes=10), **state}
    return facts(f"{INTERNAL}/loops/{loop_id}/state.json", state)


def archived(loop_id: str, **state: Any) -> tuple[LoopFact, ...]:
    state = {"status": "completed", "startTime": ago(hours=3), **state}
    return facts(f"{INTERNAL}/archive/{loop_id}/state.json", state)


def registry(*entries: dict[str, Any], root: str = INTERNAL) -> tuple[LoopFact, ...]:
    return facts(f"{root}/registry.json", {"active_loops": list(entries)})


def external(loop_id: str, home: str = "loops", **state: Any) -> tuple[LoopFact, ...]:
    state = {"status": "running", "objective": "do it", "startTime": ago(minutes=10), **state}
    return facts(f"{EXTERNAL}/{home}/{loop_id}/session-state.json", state)


def joined(*told: Iterable[LoopFact], processes: Running | None = None) -> dict[str, Loop]:
    return join_loops([fact for part in told for fact in part], NOW, WatchSettings(), processes or Running())


def test_state_registry_and_heartbeat_are_one_row() -> None:
    heartbeat = facts(f"{INTERNAL}/heartbeats/a.json", {"timestamp": 1777636740000})
    loops = joined(registry({"loop_id": "a", "owner": "me", "iteration": 1}), internal("a", task="t"), heartbeat)
    (loop,) = loops.values()
    assert (loop.id, loop.task, loop.owner, loop.sources) == ("a", "t", "me", ("loops", "registry"))
    assert loop.last_sign == NOW - timedelta(minutes=1)
    assert loop.files[0] == f"{INTERNAL}/loops/a/state.json"
    assert loop.liveness is Liveness.FRESH


def test_the_state_is_believed_and_the_registry_contradiction_is_shown() -> None:
    loops = joined(
        internal("a", status="completed", endTime=ago(minutes=1)),
        registry({"loop_id": "a", "status": "running"}),
    )
    assert loops["a"].status is LoopStatus.COMPLETED
    assert loops["a"].badges == ("status-disagrees",)


@pytest.mark.parametrize(
    ("told", "badges"),
    [
        (internal("a"), ("orphan",)),
        (internal("a", status="paused"), ("orphan",)),
        (internal("a", status="failed"), ("unregistered",)),
        (archived("a"), ()),
        ((*archived("a"), *registry({"loop_id": "a", "status": "completed"})), ("archived-but-registered",)),
        (registry({"loop_id": "a", "status": "completed"}), ("registered-only",)),
        (internal("a", loopId="b"), ("id-disagrees", "orphan")),
        (internal("a", startTime=ago(hours=1)), ("orphan", "stale")),
        (internal("a", currentPid=7), ("crashed", "orphan")),
        (external("a"), ()),
    ],
)
def test_badges_say_what_is_odd(told: tuple[LoopFact, ...], badges: tuple[str, ...]) -> None:
    assert joined(told, registry({"loop_id": "other"}))["a"].badges == badges


def test_without_a_registry_nobody_is_an_orphan() -> None:
    assert joined(internal("a"))["a"].badges == ()


def test_an_external_loop_unknown_to_its_registry_is_an_orphan() -> None:
    assert joined(external("a"), registry(root=EXTERNAL))["a"].badges == ("orphan",)


def test_a_loop_directory_without_readable_state_is_a_row_and_a_finding() -> None:
    book = LoopBook()
    fact = directory_fact(f"{INTERNAL}/loops/a/", NOW)
    assert fact is not None
    book.replace(fact.file, [fact])
    book.join(NOW, WatchSettings(), Running())
    loop = book.loops["a"]
    assert (loop.status, loop.sources, loop.liveness) == (LoopStatus.UNKNOWN, ("loops",), Liveness.UNKNOWN)
    (finding,) = book.findings
    assert (finding.code, finding.file) == ("no-state", f"{INTERNAL}/loops/a")


def test_a_crash_log_alone_makes_a_row_of_its_directory() -> None:
    told, _ = read_crash_log(f"{INTERNAL}/loops/a/crash.log", b"[2026-05-01T11:00:00Z] boom", NOW)
    assert joined(told)["a"].crashes == 1


def test_a_heartbeat_alone_is_no_loop() -> None:
    assert joined(facts(f"{INTERNAL}/heartbeats/a.json", {"timestamp": 1777636740000})) == {}


def test_a_dead_process_makes_a_running_loop_crashed_and_stops_its_clock() -> None:
    iterations = [{"number": 1, "timestamp": ago(minutes=7)}]
    loop = joined(internal("a", currentPid=7, iterations=iterations))["a"]
    assert (loop.status, loop.raw_status, loop.badges) == (LoopStatus.CRASHED, "running", ("crashed",))
    assert (loop.ended_at, loop.ended_approximate) == (NOW - timedelta(minutes=7), True)


def test_a_live_process_keeps_it_running_until_it_dies() -> None:
    processes = Running({7: NOW - timedelta(hours=1)})
    book = LoopBook()
    (fact,) = internal("a", currentPid=7)
    book.replace(fact.file, [fact])
    assert book.join(NOW, WatchSettings(), processes) == {"a"}
    assert book.loops["a"].liveness is Liveness.ALIVE
    assert book.join(NOW, WatchSettings(), processes) == frozenset()
    processes.starts.clear()
    assert book.join(NOW, WatchSettings(), processes) == {"a"}
    assert book.loops["a"].status is LoopStatus.CRASHED


def test_silence_makes_a_loop_stale_without_any_file_changing() -> None:
    book = LoopBook()
    (fact,) = internal("a")
    book.replace(fact.file, [fact])
    book.join(NOW, WatchSettings(), Running())
    assert book.join(NOW + timedelta(minutes=21), WatchSettings(), Running()) == {"a"}
    assert book.loops["a"].liveness is Liveness.STALE


def test_a_crash_log_entry_after_the_last_sign_is_a_hint_only() -> None:
    log, _ = read_crash_log(f"{INTERNAL}/loops/a/crash.log", b"[2026-05-01T11:55:00Z] boom", NOW)
    loop = joined(internal("a"), log)["a"]
    assert loop.status is LoopStatus.RUNNING
    assert "crash.log tells of a crash" in loop.liveness_reason


@pytest.mark.parametrize(
    ("state", "ended", "approximate"),
    [
        ({"endTime": ago(minutes=1)}, 1, False),
        ({"iterations": [{"timestamp": ago(minutes=2)}], "lastUpdate": ago(minutes=1)}, 2, True),
        ({"lastUpdate": ago(minutes=3)}, 3, True),
        ({}, 10, True),
        ({"endTime": ago(hours=5), "lastUpdate": ago(minutes=3)}, 3, True),
    ],
)
def test_the_end_is_told_or_inferred(state: dict[str, Any], ended: int, approximate: bool) -> None:
    loop = joined(internal("a", status="completed", **state))["a"]
    assert (loop.ended_at, loop.ended_approximate) == (NOW - timedelta(minutes=ended), approximate)


def test_an_archived_loop_that_says_running_has_ended() -> None:
    loop = joined(archived("a", status="running"))["a"]
    assert (loop.status, loop.liveness, loop.archived) == (LoopStatus.RUNNING, Liveness.ENDED, True)
    assert loop.ended_at is not None


def test_times_to_come_are_findings_and_no_sign_of_life() -> None:
    book = LoopBook()
    (fact,) = internal("a", lastUpdate="2030-01-01T00:00:00Z", iterations=[{"timestamp": ago(hours=2)}])
    book.replace(fact.file, [fact])
    book.join(NOW, WatchSettings(), Running())
    assert [finding.code for finding in book.findings] == ["future-time"]
    assert book.loops["a"].last_sign is None


def test_two_runs_with_one_id_are_two_rows_and_a_copy_is_one() -> None:
    two = joined(internal("a"), archived("a"))
    assert {loop.id: loop.archived for loop in two.values()} == {"a": False, "a@archive": True}
    one = joined(internal("a", startTime=ago(hours=3)), archived("a"))
    assert [loop.sources for loop in one.values()] == [("archive", "loops")]


def test_an_id_in_both_trees_is_two_rows() -> None:
    assert set(joined(internal("a"), external("a"))) == {"a", "a@external"}


def launcher(pid: int, started: str) -> tuple[LoopFact, ...]:
    entry = {
        "pid": pid,
        "objective": "do it",
        "status": "running",
        "startedAt": started,
        "lastUpdate": started,
    }
    return facts(f"{EXTERNAL}/launcher-registry.json", {"loops": {"launched": entry}})


def session(started: str, **state: Any) -> tuple[LoopFact, ...]:
    state = {"loopId": UUID, "objective": "do it", "status": "running", "startTime": started, **state}
    return facts(f"{EXTERNAL}/session-state.json", state)


def test_launcher_and_registry_join_by_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "do it", "status": "running"}
    bare = directory_fact(f"{EXTERNAL}/loops/launched", NOW)
    assert bare is not None
    loops = joined(launcher(7, ago(hours=9)), registry(entry, root=EXTERNAL), external("a"), [bare])
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.directory) == ("a", ("launched",), f"{EXTERNAL}/loops/a")
    assert loop.sources == ("external", "external-registry", "launcher")


def test_a_pid_that_came_again_joins_nothing() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "something else", "status": "running"}
    assert set(joined(launcher(7, ago(hours=9)), registry(entry, root=EXTERNAL))) == {"a", "launched"}


@pytest.mark.parametrize(("seconds", "rows"), [(4.9, 1), (5.0, 2)])
def test_session_state_joins_by_objective_and_start_within_five_seconds(seconds: float, rows: int) -> None:
    loops = joined(external("a"), session(ago(minutes=10, seconds=seconds), currentIteration=3))
    assert len(loops) == rows
    assert loops["a"].iteration == (3 if rows == 1 else None)


def test_of_two_starts_the_nearer_one_joins() -> None:
    loops = joined(
        external("a", startTime=ago(minutes=10, seconds=3)),
        external("b", startTime=ago(minutes=10, seconds=-1)),
        session(ago(minutes=10)),
    )
    assert loops["b"].aliases == (UUID,)
    assert loops["a"].aliases == ()


def test_session_state_alone_is_a_loop_and_the_launcher_finds_it() -> None:
    loops = joined(session(ago(minutes=10)), launcher(7, ago(minutes=10, seconds=1)))
    assert list(loops) == [UUID]
    assert loops[UUID].sources == ("external-state", "launcher")


def test_a_link_to_the_session_state_is_the_loop_it_leads_to() -> None:
    loops = joined(external("a"), session(ago(days=1), loopId="a", objective="other words"))
    assert list(loops) == ["a"]
    assert loops["a"].sources == ("external", "external-state")


def test_analytics_and_heartbeat_of_a_uuid_find_their_external_loop() -> None:
    analytics = {
        "loop_id": UUID,
        "task_description": "do it",
        "start_time": ago(minutes=10),
        "total_iterations": 4,
        "iterations": [{"quality_score": 50}],
    }
    loops = joined(
        facts(f"{INTERNAL}/heartbeats/{UUID}.json", {"timestamp": 1777636740000, "iteration": 5}),
        facts(f"{EXTERNAL}/analytics/{UUID}.json", analytics),
        external("a"),
    )
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.quality, loop.iteration) == ("a", (UUID,), (0.5,), 5)
    assert loop.last_sign == NOW - timedelta(minutes=1)


def test_a_uuid_may_be_the_id_of_an_internal_loop() -> None:
    loops = joined(internal(UUID), facts(f"{INTERNAL}/heartbeats/{UUID}.json", {"timestamp": 1777636740000}))
    assert loops[UUID].last_sign == NOW - timedelta(minutes=1)


def test_of_an_external_loop_the_one_who_wrote_last_tells_the_status() -> None:
    loops = joined(
        external("a", lastUpdate=ago(minutes=9)),
        session(ago(minutes=10), status="paused", lastUpdate=ago(minutes=2)),
    )
    assert loops["a"].status is LoopStatus.PAUSED


def test_the_external_registry_tells_the_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "status": "running"}
    assert joined(external("a"), registry(entry, root=EXTERNAL))["a"].liveness is Liveness.DEAD


def test_a_change_touches_only_its_own_row() -> None:
    book = LoopBook()
    for loop_id in ("a", "b"):
        (fact,) = internal(loop_id)
        book.replace(fact.file, [fact])
    entries = [{"loop_id": "a", "iteration": 1}, {"loop_id": "b", "iteration": 1}]
    book.replace(f"{INTERNAL}/registry.json", registry(*entries))
    assert book.join(NOW, WatchSettings(), Running()) == {"a", "b"}
    before = book.loops["b"]
    book.replace(f"{INTERNAL}/registry.json", registry({"loop_id": "a", "owner": "me"}, entries[1]))
    assert book.join(NOW, WatchSettings(), Running()) == {"a"}
    assert book.loops["b"] == before
    book.replace(f"{INTERNAL}/loops/b/state.json", ())
    assert book.join(NOW, WatchSettings(), Running()) == {"b"}
    assert book.loops["b"].badges == ("registered-only",)
    book.replace(f"{INTERNAL}/registry.json", ())
    assert book.join(NOW, WatchSettings(), Running()) == {"a", "b"}
    assert set(book.loops) == {"a"}


def test_ids_that_would_leave_the_tree_are_only_text() -> None:
    loop = joined(registry({"loop_id": "../../escaped", "status": "running"}))["../../escaped"]
    assert (loop.directory, loop.files) == ("", (f"{INTERNAL}/registry.json",))


KEPT = st.sampled_from(["a", "b", UUID])
WORDS = st.sampled_from(["running", "completed", "paused", "x", ""])
TIMES = st.sampled_from([ago(minutes=5), ago(minutes=5, seconds=2), ago(days=2), "2031-01-01T00:00:00Z", None])
STATES = st.fixed_dictionaries(
    {"status": WORDS, "startTime": TIMES, "endTime": TIMES, "lastUpdate": TIMES, "objective": WORDS},
    optional={"currentPid": st.integers(-1, 9), "loopId": KEPT, "currentIteration": st.integers(-1, 5)},
)
TOLD = st.one_of(
    st.builds(lambda i, s: internal(i, **s), KEPT, STATES),
    st.builds(lambda i, s: archived(i, **s), KEPT, STATES),
    st.builds(lambda i, s: external(i, **s), KEPT, STATES),
    st.builds(lambda i, s: external(i, "archive", **s), KEPT, STATES),
    st.builds(lambda s: facts(f"{EXTERNAL}/session-state.json", s), STATES),
    st.builds(lambda i, s: registry({**s, "loop_id": i}), KEPT, STATES),
    st.builds(lambda i, s: registry({**s, "loop_id": i}, root=EXTERNAL), KEPT, STATES),
    st.builds(lambda s: facts(f"{EXTERNAL}/launcher-registry.json", {"loops": {"launched": s}}), STATES),
    st.builds(lambda i, s: facts(f"{INTERNAL}/heartbeats/{i}.json", {"timestamp": s["endTime"]}), KEPT, STATES),
    st.builds(lambda i, s: facts(f"{EXTERNAL}/analytics/{i}.json", {**s, "loop_id": i}), KEPT, STATES),
)


@hypothesis_settings(deadline=None, max_examples=200)
@given(st.lists(TOLD, max_size=8))
def test_any_facts_join_to_rows_in_any_order_and_step_by_step(told: list[tuple[LoopFact, ...]]) -> None:
    by_file = {part[0].file: part for part in told if part}
    whole = joined(*by_file.values())
    assert whole == joined(*reversed(by_file.values()))
    book = LoopBook()
    for file, part in by_file.items():
        book.replace(file, part)
        book.join(NOW, WatchSettings(), Running())
    assert book.loops == whole
    files = {file for loop in whole.values() for file in loop.files}
    assert files >= {fact.file for part in by_file.values() for fact in part if fact.directory}
    for loop in whole.values():
        assert not (loop.status.ended and loop.ended_at is None and (loop.started_at or loop.last_sign))
