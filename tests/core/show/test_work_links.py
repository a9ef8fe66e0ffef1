from __future__ import annotations

from datetime import UTC, datetime

from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.loops import ExtractedPattern, InjectedUse, Loop
from core.records.patterns import Pattern, PatternType, SourceLoop
from core.records.reflections import Reflection
from core.records.snapshot import Delta, Snapshot
from core.show.filter_parser import MAX_ID_QUERY, build_id_query, parse_query
from core.show.pattern_filter import PATTERN_FIELDS
from core.show.work import WorkCatalog, WorkLinks

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
TASK = Task(id="task-001", loop_id="ralph-a1")
ALONE = Task(id="task-002", description="another loop")
FIRST, SECOND = Attempt(task_id="task-001", number=1), Attempt(task_id="task-001", number=2)
IN_LOOP = DebugSession(id="dm-1", loop_id="uuid-a1")
OF_TASK = DebugSession(id="dm-2", task_id="task-001")
STRAY = DebugSession(id="dm-3", loop_id="missing")


def pattern(id: str, *loops: str) -> Pattern:
    return Pattern(
        id=id, type=PatternType.ERROR, title=id, source_loops=tuple(SourceLoop(loop_id=loop) for loop in loops)
    )


def make_links(*events: Event) -> WorkLinks:
    snapshot = Snapshot(
        patterns={
            one.id: one for one in (pattern("p-extracted", "ralph-a1"), pattern("p-session", "dm-2"), pattern("p-used"))
        },
        loops={
            "ralph-a1": Loop(
                id="ralph-a1",
                aliases=("uuid-a1",),
                injected=(InjectedUse(pattern_id="p-used"), InjectedUse(pattern_id="p-not-in-the-registry")),
                extracted=(ExtractedPattern(pattern_id="p-extracted"),),
            )
        },
        tasks={task.id: task for task in (TASK, ALONE)},
        attempts={attempt.id: attempt for attempt in (FIRST, SECOND)},
        debug_sessions={session.id: session for session in (IN_LOOP, OF_TASK, STRAY)},
        reflections={
            "r-2": Reflection(id="r-2", shape="episodic", file="", task_id="task-001", attempt=2),
            "r-1": Reflection(id="r-1", shape="episodic", file="", task_id="task-001", attempt=1),
            "r-0": Reflection(id="r-0", shape="hook", file="", loop_id="ralph-a1"),
        },
        events=events,
    )
    return WorkLinks(snapshot, WorkCatalog(snapshot))


def test_loop_of_each_record() -> None:
    links = make_links()
    assert links.loop_of(TASK) == links.task_loop(TASK)[0] == "ralph-a1"
    assert links.task_loop(ALONE) == ("", "")
    assert links.loop_of(IN_LOOP) == "ralph-a1"
    assert links.loop_of(OF_TASK) == "ralph-a1"
    assert links.loop_of(STRAY) == ""


def test_patterns_extracted_from_or_used_by_each_record() -> None:
    applied = Event(id="e-1", at=NOW, kind="applied", pattern_id="p-session", loop_id="task-001.2")
    links = make_links(applied)
    assert links.patterns_of(TASK) == ("p-session", "p-extracted", "p-used")
    assert links.patterns_of(FIRST) == ("p-extracted", "p-used")
    assert links.patterns_of(SECOND) == ("p-session",)
    assert links.patterns_of(OF_TASK) == ("p-session",)
    assert links.patterns_of(IN_LOOP) == ("p-extracted", "p-used")
    assert links.patterns_of(STRAY) == ()
    assert links.patterns_of(ALONE) == ()


def test_reflections_on_each_record_newest_first() -> None:
    links = make_links()
    assert [one.id for one in links.reflections_of(TASK)] == ["r-2", "r-1"]
    assert [one.id for one in links.reflections_of(FIRST)] == ["r-1"]
    assert [one.id for one in links.reflections_of(OF_TASK)] == ["r-2", "r-1"]
    assert [one.id for one in links.reflections_of(IN_LOOP)] == ["r-0"]
    assert links.reflections_of(STRAY) == ()


def test_id_query_is_cut_at_the_maximum_length() -> None:
    ids = [f"pat-error-null-check-{number:03d}" for number in range(40)]
    text, omitted = build_id_query(ids)
    assert omitted == len(ids) - len(text.split(",")) > 0 and build_id_query(ids[:2])[1] == 0
    assert len(text) <= MAX_ID_QUERY
    (term,) = parse_query(text, PATTERN_FIELDS).terms
    assert term.field == "id"
    assert ids[: len(term.value.split(","))] == term.value.split(",")
    assert len(term.value.split(",")) > 5


def test_updated_links_rebuild_only_changed_indexes() -> None:
    links = make_links()
    assert links.patterns_of(SECOND) == ("p-extracted", "p-used")
    newer = Snapshot(
        patterns={"p-new": pattern("p-new", "task-001.2")},
        tasks={"task-001": TASK},
        attempts={SECOND.id: SECOND},
    )
    catalog = WorkCatalog(newer)
    later = links.updated(newer, catalog, Delta(patterns=frozenset({"p-new"})))
    assert later.patterns_of(SECOND) == ("p-new",)
    assert later.loop_of(TASK) == "ralph-a1", "the delta contains no loops"
    assert links.updated(newer, catalog, Delta(loops=frozenset({"ralph-a1"}))).loop_of(TASK) == ""
