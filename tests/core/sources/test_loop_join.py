from __future__ import annotations

from datetime import timedelta

import pytest
from core.sources.loop_join import LoopCollection
from hypothesis import given
from hypothesis import strategies as st

from core.config.settings import WatchSettings
from core.records.loops import Liveness, LoopStatus
from core.sources.loop_facts import LoopFact, directory_fact
from tests.factories import (
    EXTERNAL_FOLDER,
    INTERNAL_FOLDER,
    LOOP_UUID,
    SOURCES_NOW,
    RunningProcesses,
    archived_facts,
    external_facts,
    internal_facts,
    iso_ago,
    join_facts,
    launcher_facts,
    read_facts,
    registry_facts,
    session_facts,
)


def test_a_live_process_keeps_it_running_until_it_dies() -> None:
    processes = RunningProcesses({7: SOURCES_NOW - timedelta(hours=1)})
    book = LoopCollection()
    (fact,) = internal_facts("a", currentPid=7)
    book.replace(fact.file, [fact])
    assert book.join(SOURCES_NOW, WatchSettings(), processes) == {"a"}
    assert book.records["a"].liveness is Liveness.ALIVE
    assert book.join(SOURCES_NOW, WatchSettings(), processes) == frozenset()
    processes.starts.clear()
    assert book.join(SOURCES_NOW, WatchSettings(), processes) == frozenset()
    assert book.join(SOURCES_NOW, WatchSettings(), processes, force_liveness=True) == {"a"}
    assert book.records["a"].status is LoopStatus.CRASHED


def test_other_changes_do_not_delay_liveness_checks() -> None:
    processes = RunningProcesses({7: SOURCES_NOW - timedelta(hours=1)})
    book = LoopCollection()
    (fact,) = internal_facts("a", currentPid=7)
    book.replace(fact.file, [fact])
    book.join(SOURCES_NOW, WatchSettings(), processes)
    processes.starts.clear()
    for second in range(1, 7):
        (busy,) = internal_facts("b", iteration=second)
        book.replace(busy.file, [busy])
        book.join(SOURCES_NOW + timedelta(seconds=second), WatchSettings(), processes)
    assert book.records["a"].status is LoopStatus.CRASHED


def test_silence_makes_a_loop_stale_without_file_changes() -> None:
    book = LoopCollection()
    (fact,) = internal_facts("a")
    book.replace(fact.file, [fact])
    book.join(SOURCES_NOW, WatchSettings(), RunningProcesses())
    assert book.join(SOURCES_NOW + timedelta(minutes=21), WatchSettings(), RunningProcesses()) == {"a"}
    assert book.records["a"].liveness is Liveness.STALE


def test_an_id_in_both_trees_gives_two_loops() -> None:
    assert set(join_facts(internal_facts("a"), external_facts("a"))) == {"a", "a@external"}


def test_a_uuid_may_be_the_id_of_an_internal_loop() -> None:
    loops = join_facts(
        internal_facts(LOOP_UUID),
        read_facts(f"{INTERNAL_FOLDER}/heartbeats/{LOOP_UUID}.json", {"timestamp": 1777636740000}),
    )
    assert loops[LOOP_UUID].last_activity == SOURCES_NOW - timedelta(minutes=1)


def test_a_change_affects_only_its_own_loop() -> None:
    book = LoopCollection()
    for loop_id in ("a", "b"):
        (fact,) = internal_facts(loop_id)
        book.replace(fact.file, [fact])
    entries = [{"loop_id": "a", "iteration": 1}, {"loop_id": "b", "iteration": 1}]
    book.replace(f"{INTERNAL_FOLDER}/registry.json", registry_facts(*entries))
    assert book.join(SOURCES_NOW, WatchSettings(), RunningProcesses()) == {"a", "b"}
    before = book.records["b"]
    book.replace(f"{INTERNAL_FOLDER}/registry.json", registry_facts({"loop_id": "a", "owner": "me"}, entries[1]))
    assert book.join(SOURCES_NOW, WatchSettings(), RunningProcesses()) == {"a"}
    assert book.records["b"] == before
    book.replace(f"{INTERNAL_FOLDER}/loops/b/state.json", ())
    assert book.join(SOURCES_NOW, WatchSettings(), RunningProcesses()) == {"b"}
    assert book.records["b"].badges == ("registered-only",)
    book.replace(f"{INTERNAL_FOLDER}/registry.json", ())
    assert book.join(SOURCES_NOW, WatchSettings(), RunningProcesses()) == {"a", "b"}
    assert set(book.records) == {"a"}


SAVED = st.sampled_from(["a", "b", LOOP_UUID])
WORDS = st.sampled_from(["running", "completed", "paused", "x", ""])
TIMES = st.sampled_from(
    [iso_ago(minutes=5), iso_ago(minutes=5, seconds=2), iso_ago(days=2), "2031-01-01T00:00:00Z", None]
)
STATES = st.fixed_dictionaries(
    {"status": WORDS, "startTime": TIMES, "endTime": TIMES, "lastUpdate": TIMES, "objective": WORDS},
    optional={"currentPid": st.integers(-1, 9), "loopId": SAVED, "currentIteration": st.integers(-1, 5)},
)
FACTS = st.one_of(
    st.builds(lambda i, s: internal_facts(i, **s), SAVED, STATES),
    st.builds(lambda i, s: archived_facts(i, **s), SAVED, STATES),
    st.builds(lambda i, s: external_facts(i, **s), SAVED, STATES),
    st.builds(lambda i, s: external_facts(i, "archive", **s), SAVED, STATES),
    st.builds(lambda s: read_facts(f"{EXTERNAL_FOLDER}/session-state.json", s), STATES),
    st.builds(lambda i, s: registry_facts({**s, "loop_id": i}), SAVED, STATES),
    st.builds(lambda i, s: registry_facts({**s, "loop_id": i}, root=EXTERNAL_FOLDER), SAVED, STATES),
    st.builds(lambda s: read_facts(f"{EXTERNAL_FOLDER}/launcher-registry.json", {"loops": {"launched": s}}), STATES),
    st.builds(
        lambda i, s: read_facts(f"{INTERNAL_FOLDER}/heartbeats/{i}.json", {"timestamp": s["endTime"]}), SAVED, STATES
    ),
    st.builds(lambda i, s: read_facts(f"{EXTERNAL_FOLDER}/analytics/{i}.json", {**s, "loop_id": i}), SAVED, STATES),
)


@pytest.mark.slow
@given(st.lists(FACTS, max_size=8))
def test_joining_does_not_depend_on_order_or_steps(parsed: list[tuple[LoopFact, ...]]) -> None:
    by_file = {part[0].file: part for part in parsed if part}
    whole = join_facts(*by_file.values())
    assert whole == join_facts(*reversed(by_file.values()))
    book = LoopCollection()
    for file, part in by_file.items():
        book.replace(file, part)
        book.join(SOURCES_NOW, WatchSettings(), RunningProcesses())
    assert book.records == whole
    early = LoopCollection()
    changed = frozenset[str]()
    for file, part in by_file.items():
        early.replace(file, part)
        early.join_some(SOURCES_NOW, WatchSettings(), RunningProcesses())
        if file == next(iter(by_file)):
            changed |= early.join(SOURCES_NOW, WatchSettings(), RunningProcesses())
    changed |= early.join(SOURCES_NOW, WatchSettings(), RunningProcesses())
    assert (early.records, early.aliases) == (book.records, book.aliases)
    assert set(early.findings) == set(book.findings)
    assert changed >= whole.keys()
    files = {file for loop in whole.values() for file in loop.files}
    assert files >= {fact.file for part in by_file.values() for fact in part if fact.directory}
    for loop in whole.values():
        assert not (loop.status.ended and loop.ended_at is None and (loop.started_at or loop.last_activity))


def test_launcher_and_registry_join_by_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "do it", "status": "running"}
    bare = directory_fact(f"{EXTERNAL_FOLDER}/loops/launched", SOURCES_NOW)
    assert bare is not None
    loops = join_facts(
        launcher_facts(7, iso_ago(hours=9)), registry_facts(entry, root=EXTERNAL_FOLDER), external_facts("a"), [bare]
    )
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.directory) == ("a", ("launched",), f"{EXTERNAL_FOLDER}/loops/a")
    assert loop.sources == ("external", "external-registry", "launcher")


def test_a_reused_process_id_joins_no_loops() -> None:
    entry = {"loop_id": "a", "pid": 7, "task_summary": "something else", "status": "running"}
    assert set(join_facts(launcher_facts(7, iso_ago(hours=9)), registry_facts(entry, root=EXTERNAL_FOLDER))) == {
        "a",
        "launched",
    }


@pytest.mark.parametrize(("seconds", "rows"), [(4.9, 1), (5.0, 2)])
def test_session_state_joins_by_objective_and_start_within_five_seconds(seconds: float, rows: int) -> None:
    loops = join_facts(external_facts("a"), session_facts(iso_ago(minutes=10, seconds=seconds), currentIteration=3))
    assert len(loops) == rows
    assert loops["a"].iteration == (3 if rows == 1 else None)


def test_the_nearer_of_two_starts_joins() -> None:
    loops = join_facts(
        external_facts("a", startTime=iso_ago(minutes=10, seconds=3)),
        external_facts("b", startTime=iso_ago(minutes=10, seconds=-1)),
        session_facts(iso_ago(minutes=10)),
    )
    assert loops["b"].aliases == (LOOP_UUID,)
    assert loops["a"].aliases == ()


def test_session_state_alone_is_a_loop_and_the_launcher_finds_it() -> None:
    loops = join_facts(session_facts(iso_ago(minutes=10)), launcher_facts(7, iso_ago(minutes=10, seconds=1)))
    assert list(loops) == [LOOP_UUID]
    assert loops[LOOP_UUID].sources == ("external-state", "launcher")


def test_a_linked_session_state_is_the_same_loop() -> None:
    loops = join_facts(external_facts("a"), session_facts(iso_ago(days=1), loopId="a", objective="other words"))
    assert list(loops) == ["a"]
    assert loops["a"].sources == ("external", "external-state")


def test_analytics_and_heartbeat_of_a_uuid_find_their_external_loop() -> None:
    analytics = {
        "loop_id": LOOP_UUID,
        "task_description": "do it",
        "start_time": iso_ago(minutes=10),
        "total_iterations": 4,
        "iterations": [{"quality_score": 50}],
    }
    loops = join_facts(
        read_facts(f"{INTERNAL_FOLDER}/heartbeats/{LOOP_UUID}.json", {"timestamp": 1777636740000, "iteration": 5}),
        read_facts(f"{EXTERNAL_FOLDER}/analytics/{LOOP_UUID}.json", analytics),
        external_facts("a"),
    )
    (loop,) = loops.values()
    assert (loop.id, loop.aliases, loop.quality, loop.iteration) == ("a", (LOOP_UUID,), (0.5,), 5)
    assert loop.last_activity == SOURCES_NOW - timedelta(minutes=1)


def test_the_newest_fact_gives_the_status_of_an_external_loop() -> None:
    loops = join_facts(
        external_facts("a", lastUpdate=iso_ago(minutes=9)),
        session_facts(iso_ago(minutes=10), status="paused", lastUpdate=iso_ago(minutes=2)),
    )
    assert loops["a"].status is LoopStatus.PAUSED


def test_the_external_registry_gives_the_pid() -> None:
    entry = {"loop_id": "a", "pid": 7, "status": "running"}
    assert join_facts(external_facts("a"), registry_facts(entry, root=EXTERNAL_FOLDER))["a"].liveness is Liveness.DEAD
