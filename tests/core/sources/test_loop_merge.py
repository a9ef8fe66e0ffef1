from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from core.sources.loop_join import LoopCollection

from core.config.settings import WatchSettings
from core.records.loops import Liveness, LoopStatus
from core.sources.loop_facts import LoopFact, directory_fact
from core.sources.loops import read_crash_log
from tests.factories import (
    EXTERNAL_FOLDER,
    INTERNAL_FOLDER,
    SOURCES_NOW,
    RunningProcesses,
    archived_facts,
    external_facts,
    internal_facts,
    iso_ago,
    join_facts,
    read_facts,
    registry_facts,
)


def test_state_registry_and_heartbeat_are_one_loop() -> None:
    heartbeat = read_facts(f"{INTERNAL_FOLDER}/heartbeats/a.json", {"timestamp": 1777636740000})
    loops = join_facts(
        registry_facts({"loop_id": "a", "owner": "me", "iteration": 1}), internal_facts("a", task="t"), heartbeat
    )
    (loop,) = loops.values()
    assert (loop.id, loop.task, loop.owner, loop.sources) == ("a", "t", "me", ("loops", "registry"))
    assert loop.last_activity == SOURCES_NOW - timedelta(minutes=1)
    assert loop.files[0] == f"{INTERNAL_FOLDER}/loops/a/state.json"
    assert loop.liveness is Liveness.FRESH


def test_the_state_wins_over_the_registry_with_a_badge() -> None:
    loops = join_facts(
        internal_facts("a", status="completed", endTime=iso_ago(minutes=1)),
        registry_facts({"loop_id": "a", "status": "running"}),
    )
    assert loops["a"].status is LoopStatus.COMPLETED
    assert loops["a"].badges == ("status-disagrees",)


@pytest.mark.parametrize(
    ("parsed", "badges"),
    [
        (internal_facts("a"), ("orphan",)),
        (internal_facts("a", status="paused"), ("orphan",)),
        (internal_facts("a", status="failed"), ("unregistered",)),
        (archived_facts("a"), ()),
        (
            (*archived_facts("a"), *registry_facts({"loop_id": "a", "status": "completed"})),
            ("archived-but-registered",),
        ),
        (registry_facts({"loop_id": "a", "status": "completed"}), ("registered-only",)),
        (internal_facts("a", loopId="b"), ("id-disagrees", "orphan")),
        (internal_facts("a", startTime=iso_ago(hours=1)), ("orphan", "stale")),
        (internal_facts("a", currentPid=7), ("crashed", "orphan")),
        (external_facts("a"), ()),
    ],
)
def test_badges_show_contradictions(parsed: tuple[LoopFact, ...], badges: tuple[str, ...]) -> None:
    assert join_facts(parsed, registry_facts({"loop_id": "other"}))["a"].badges == badges


def test_without_a_registry_no_loop_is_an_orphan() -> None:
    assert join_facts(internal_facts("a"))["a"].badges == ()


def test_an_external_loop_unknown_to_its_registry_is_an_orphan() -> None:
    assert join_facts(external_facts("a"), registry_facts(root=EXTERNAL_FOLDER))["a"].badges == ("orphan",)


def test_a_directory_without_readable_state_is_a_loop_with_a_finding() -> None:
    book = LoopCollection()
    fact = directory_fact(f"{INTERNAL_FOLDER}/loops/a/", SOURCES_NOW)
    assert fact is not None
    book.replace(fact.file, [fact])
    book.join(SOURCES_NOW, WatchSettings(), RunningProcesses())
    loop = book.records["a"]
    assert (loop.status, loop.sources, loop.liveness) == (LoopStatus.UNKNOWN, ("loops",), Liveness.UNKNOWN)
    (finding,) = book.findings
    assert (finding.code, finding.file) == ("no-state", f"{INTERNAL_FOLDER}/loops/a")


def test_a_crash_log_alone_makes_a_loop() -> None:
    parsed = read_crash_log(f"{INTERNAL_FOLDER}/loops/a/crash.log", b"[2026-05-01T11:00:00Z] boom", SOURCES_NOW)
    assert join_facts((parsed,))["a"].crashes == 1


def test_a_heartbeat_alone_is_not_a_loop() -> None:
    assert join_facts(read_facts(f"{INTERNAL_FOLDER}/heartbeats/a.json", {"timestamp": 1777636740000})) == {}


def test_a_dead_process_makes_a_running_loop_crashed() -> None:
    iterations = [{"number": 1, "timestamp": iso_ago(minutes=7)}]
    loop = join_facts(internal_facts("a", currentPid=7, iterations=iterations))["a"]
    assert (loop.status, loop.raw_status, loop.badges) == (LoopStatus.CRASHED, "running", ("crashed",))
    assert (loop.ended_at, loop.ended_approximate) == (SOURCES_NOW - timedelta(minutes=7), True)


def test_a_later_crash_log_entry_is_only_mentioned() -> None:
    log = read_crash_log(f"{INTERNAL_FOLDER}/loops/a/crash.log", b"[2026-05-01T11:55:00Z] boom", SOURCES_NOW)
    loop = join_facts(internal_facts("a"), (log,))["a"]
    assert loop.status is LoopStatus.RUNNING
    assert "crash.log reports a crash" in loop.liveness_reason


@pytest.mark.parametrize(
    ("state", "ended", "approximate"),
    [
        ({"endTime": iso_ago(minutes=1)}, 1, False),
        ({"iterations": [{"timestamp": iso_ago(minutes=2)}], "lastUpdate": iso_ago(minutes=1)}, 2, True),
        ({"lastUpdate": iso_ago(minutes=3)}, 3, True),
        ({}, 10, True),
        ({"endTime": iso_ago(hours=5), "lastUpdate": iso_ago(minutes=3)}, 3, True),
        ({"endTime": "2030-01-01T00:00:00Z", "iterations": [{"timestamp": iso_ago(minutes=4)}]}, 4, True),
        ({"status": "crashed", "endTime": iso_ago(minutes=5), "lastUpdate": iso_ago(minutes=3)}, 5, False),
        (
            {"status": "crashed", "iterations": [{"timestamp": iso_ago(minutes=5)}], "lastUpdate": iso_ago(minutes=3)},
            3,
            True,
        ),
    ],
)
def test_the_end_is_recorded_or_inferred(state: dict[str, Any], ended: int, approximate: bool) -> None:
    loop = join_facts(internal_facts("a", **{"status": "completed", **state}))["a"]
    assert (loop.ended_at, loop.ended_approximate) == (SOURCES_NOW - timedelta(minutes=ended), approximate)


def test_an_archived_running_loop_has_ended() -> None:
    loop = join_facts(archived_facts("a", status="running"))["a"]
    assert (loop.status, loop.liveness, loop.archived) == (LoopStatus.RUNNING, Liveness.ENDED, True)
    assert loop.ended_at is not None


def test_future_times_are_findings_and_not_activity() -> None:
    book = LoopCollection()
    (fact,) = internal_facts("a", lastUpdate="2030-01-01T00:00:00Z", iterations=[{"timestamp": iso_ago(hours=2)}])
    book.replace(fact.file, [fact])
    book.join(SOURCES_NOW, WatchSettings(), RunningProcesses())
    assert [finding.code for finding in book.findings] == ["future-time"]
    assert book.records["a"].last_activity is None


def test_two_runs_with_one_id_are_two_loops_and_a_copy_is_one() -> None:
    two = join_facts(internal_facts("a"), archived_facts("a"))
    assert {loop.id: loop.archived for loop in two.values()} == {"a": False, "a@archive": True}
    one = join_facts(internal_facts("a", startTime=iso_ago(hours=3)), archived_facts("a"))
    assert [loop.sources for loop in one.values()] == [("archive", "loops")]


def test_ids_with_path_parts_are_only_text() -> None:
    loop = join_facts(registry_facts({"loop_id": "../../escaped", "status": "running"}))["../../escaped"]
    assert (loop.directory, loop.files) == ("", (f"{INTERNAL_FOLDER}/registry.json",))
