from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.config.settings import WatchSettings
from core.records.loops import Liveness, LoopStatus
from core.sources.loop_facts import LoopFact
from core.sources.loop_join import LoopCollection
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
    read_facts,
    registry_facts,
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


@hypothesis_settings(deadline=None, max_examples=200)
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
    files = {file for loop in whole.values() for file in loop.files}
    assert files >= {fact.file for part in by_file.values() for fact in part if fact.directory}
    for loop in whole.values():
        assert not (loop.status.ended and loop.ended_at is None and (loop.started_at or loop.last_activity))
