from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from core.learning.evidence import LoopPatterns
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.events import Event, Observation
from core.records.loops import HOOKS, ExtractedPattern, InjectedUse, Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import Pattern, PatternType, SourceLoop
from core.records.reflections import Reflection
from core.records.snapshot import Delta, Snapshot
from core.show.filter_parser import MAX_ID_QUERY, build_id_query, parse_query
from core.show.pattern_filter import PATTERN_FIELDS
from core.show.work import (
    FIELDS,
    LAST_ROWS,
    FoundWork,
    WorkCatalog,
    WorkLinks,
    attempt_key,
    build_tree,
    earlier_key,
    iteration_key,
    lesson_key,
    parse_key,
    select_debug_sessions,
    select_tasks,
    session_key,
    task_key,
)

LOOPS = {
    loop.id: loop
    for loop in (
        Loop(
            id="ralph-fix-auth-1", task="Fix login", status=LoopStatus.RUNNING, sources=("loops", "registry"),
            tags=("Auth",), injected=(InjectedUse(pattern_id="pat-error-null-001"),), owner="test-engineer",
            iterations=(Iteration(failures=(Failure(error_type="KeyError", message="no user"),)),),
        ),
        Loop(
            id="ralph-docs-2", task="Write docs", status=LoopStatus.CRASHED, raw_status="in_progress",
            sources=("external",), badges=("crashed", "orphan"),
        ),
        Loop(
            id="ralph-old-3", task="Old thing", status=LoopStatus.COMPLETED, sources=("archive",), archived=True,
            files=("archive/old.json",),
        ),
        Loop(id="codex:4", runner="codex", status=LoopStatus.WAITING, badges=("success-contradicted",)),
    )
}  # fmt: skip
TASKS = {
    "task-001": Task(
        id="task-001", description="Add OAuth", status=TaskStatus.COMPLETED, tags=("auth",), loop_id="ralph-old-3"
    ),
    "task-002": Task(id="task-002", description="Speed up reports", status=TaskStatus.RUNNING),
}
ATTEMPTS = {
    attempt.id: attempt
    for attempt in (
        Attempt(task_id="task-001", number=2, outcome=Outcome.SUCCESS, agent="implementer"),
        Attempt(task_id="task-001", number=1, outcome=Outcome.TIMEOUT, plan="types last", agent="architect"),
        Attempt(task_id="task-002", number=1),
        Attempt(task_id="task-002", number=2, loop_id="codex:4"),
        Attempt(task_id="task-009", number=1, outcome=Outcome.FAILURE),
    )
}
SESSIONS = {
    "dm-1": DebugSession(
        id="dm-1",
        status="passed",
        file_path="src/auth/validate.ts",
        executions=(
            Execution(
                failures=(Failure(error_type="TypeError", message="no length of null"),),
                analysis=Analysis(category="null_undefined_access"),
            ),
        ),
    ),
    "dm-2": DebugSession(id="dm-2", status="escalated", agent="debugger", loop_id="ralph-docs-2"),
    "dm-3": DebugSession(id="dm-3", status="in_progress", task_id="task-001"),
}
SNAPSHOT = Snapshot(loops=LOOPS, tasks=TASKS, attempts=ATTEMPTS, debug_sessions=SESSIONS)
CATALOG = WorkCatalog(SNAPSHOT)


def injected(loop_id: str) -> list[str]:
    return [use.pattern_id for use in LOOPS[loop_id].injected]


def select(text: str, catalog: WorkCatalog = CATALOG) -> list[FoundWork]:
    query = parse_query(text, FIELDS)
    assert not query.problems
    return catalog.select(query, {"ralph-docs-2"}, injected)


def found(text: str, catalog: WorkCatalog = CATALOG) -> set[str]:
    """The last parts of the keys of all rows that match themselves."""
    chosen = select(text, catalog)
    keys = [*(one.key for one in chosen if one.own), *(key for one in chosen for key in one.below)]
    return {key.rpartition("-")[2].rpartition(":")[2] for key in keys}


def test_commands_select_tasks_by_their_attempts_and_all_debug_sessions() -> None:
    for text, ids in (("oauth", {"task-001"}), ("types outcome:timeout", {"task-001"}), ("-is:ended", {"task-002"})):
        assert select_tasks(SNAPSHOT, parse_query(text, FIELDS)) == ids, text
    assert select_tasks(SNAPSHOT, parse_query("", FIELDS)) == TASKS.keys()
    of_attempt = replace(SESSIONS["dm-1"], id="dm-4", task_id="task-001", attempt=1)
    snapshot = Snapshot(tasks=TASKS, attempts=ATTEMPTS, debug_sessions={**SESSIONS, "dm-4": of_attempt})
    for text, ids in (("null", {"dm-1", "dm-4"}), ("is:open", {"dm-3"}), ("error:type -id:1", {"dm-4"})):
        assert select_debug_sessions(snapshot, parse_query(text, FIELDS)) == ids, text


def test_a_filter_selects_loops() -> None:
    rows: list[tuple[str, set[str]]] = [
        ("login", {"1"}),
        ("engineer", {"1"}),
        ("status:in_prog -is:session", {"2"}),
        ("status:waits", {"4"}),
        ("source:ext", {"2"}),
        ("runner:codex -is:attempt", {"4"}),
        ("is:waiting", {"4"}),
        ("is:contradicted", {"4"}),
        ("is:stuck", {"2"}),
        ("id:docs", {"2"}),
        ("pattern:null", {"1"}),
        ("is:orphan", {"2"}),
        ("is:live", {"1"}),
        ("is:archived thing -is:attempt -is:session", {"3"}),
        ("error:keyerror", {"1"}),
        ("file:old.json", {"3"}),
        ("model:opus", set()),
    ]
    for text, expected in rows:
        loops = {"1", "2", "3", "4"}
        assert found(text) & loops == expected, text


def test_a_filter_selects_work_below_loops_and_of_no_loop() -> None:
    rows: list[tuple[str, set[str]]] = [
        ("oauth", {"001.1", "001.2"}),
        ("types", {"001.1"}),
        ("is:task", {"3", "4", "002", "009"}),
        ("is:session", {"1", "2", "3"}),
        ("is:open speed", {"002", "002.2"}),
        ("is:failed -is:open is:attempt", {"001.1", "009.1"}),
        ("is:escalated", {"2"}),
        ("outcome:timeout agent:arch", {"001.1"}),
        ("tag:auth is:attempt", {"001.1", "001.2"}),
        ("task:001 is:attempt", {"001.1", "001.2"}),
        ("cause:null", {"1"}),
        ("error:typeerror", {"1"}),
        ("file:validate", {"1"}),
        ("thing outcome:timeout", {"001.1"}),
        ("nowhere", set()),
    ]
    for text, expected in rows:
        assert found(text) == expected, text


def test_a_task_is_selected_by_its_agent_and_those_of_its_attempts() -> None:
    attempt = Attempt(task_id="t", number=1, agent="coder")
    catalog = WorkCatalog(Snapshot(tasks={"t": Task(id="t", agent="Planner")}, attempts={attempt.id: attempt}))
    assert [one.own for text in ("agent:plan", "agent:coder", "agent:x") for one in select(text, catalog)] == [True] * 2


def test_a_loop_is_selected_by_a_matching_attempt_and_a_text_of_its_task() -> None:
    (one,) = select("outcome:timeout")
    assert one == FoundWork("ralph-old-3", False, (attempt_key("task-001.1"),))
    query = parse_query("hidden", FIELDS)
    assert [one.key for one in CATALOG.select(query, found_ids={"task-001"})] == ["ralph-old-3"]


def test_attempts_belong_to_the_loop_that_made_them() -> None:
    assert [one.id for one in CATALOG.attempts_of["ralph-old-3"]] == ["task-001.1", "task-001.2"]
    assert [one.id for one in CATALOG.attempts_of["codex:4"]] == ["task-002.2"]
    assert CATALOG.free_tasks.keys() == {"task-002", "task-009"}
    assert CATALOG.row_above(attempt_key("task-002.1")) == task_key("task-002")
    assert CATALOG.row_above(session_key("dm-3")) == "ralph-old-3"
    assert CATALOG.row_above(session_key("dm-1")) == ""


def test_a_catalog_with_changed_records_equals_a_rebuilt_one() -> None:
    tasks = {**TASKS, "task-002": replace(TASKS["task-002"], description="Slow reports")}
    later = WorkCatalog(SNAPSHOT.with_changes(tasks=tasks), CATALOG)
    assert found("speed", later) == set()
    assert found("slow", later) == {"002", "002.2"}
    changed = replace(ATTEMPTS["task-001.1"], plan="types first", outcome=Outcome.SUCCESS)
    after = SNAPSHOT.with_changes(attempts={**ATTEMPTS, changed.id: changed})
    newer, rebuilt = CATALOG.with_changes(after, attempt_ids={changed.id}), WorkCatalog(after)
    assert newer.attempts == rebuilt.attempts and newer.attempts_of == rebuilt.attempts_of
    assert CATALOG.attempts == WorkCatalog(SNAPSHOT).attempts
    for text in ("first", "last", "outcome:success"):
        assert select(text, newer) == select(text, rebuilt)


def test_a_debug_session_made_from_an_attempt_is_listed_as_the_attempt_unless_it_needs_a_person() -> None:
    attempt = Attempt(task_id="task-001", number=1)
    session = DebugSession(id="s", task_id="task-001", attempt=1, status="passed")
    snapshot = Snapshot(attempts={attempt.id: attempt}, debug_sessions={"s": session})
    catalog = WorkCatalog(snapshot)
    assert (catalog.sessions, catalog.of_attempts) == ({}, {"task-001.1": session})
    stuck = replace(session, status="escalated")
    assert WorkCatalog(snapshot.with_changes(debug_sessions={"s": stuck})).sessions == {"s": stuck}
    assert WorkCatalog(Snapshot(debug_sessions={"s": session})).sessions == {"s": session}


def test_an_invalid_word_is_a_problem_and_a_key_of_no_known_kind_that_of_a_loop() -> None:
    for text, problem in (
        ("is:banana", "is: must be one of stuck, live"),
        ("outcome:bad", "outcome: must be one of success"),
        ("in:errors oauth", "in: works in the command palette, not in this filter"),
        ("inn:errors", "unknown field 'inn' in inn:errors; use agent, cause, error, file, id, is"),
    ):
        assert " ".join(parse_query(text, FIELDS).problems).startswith(problem)
    for key in ("", "task", "iteration/x/a", "lesson/p", "ralph/task/1"):
        assert parse_key(key).kind == "loop", key


# The tree


def no_patterns(_: str) -> LoopPatterns:
    return LoopPatterns()


def keys(unfolded: Sequence[str] = (), text: str = "") -> list[str]:
    return list(build_tree(CATALOG, select(text), unfolded, no_patterns).keys)


def test_rows_are_folded_until_the_user_unfolds_them() -> None:
    assert keys() == [*LOOPS, "task/task-002", "task/task-009", "session/dm-1"]
    assert keys(["ralph-old-3"])[2:6] == [
        "ralph-old-3",
        attempt_key("task-001.1"),
        attempt_key("task-001.2"),
        session_key("dm-3"),
    ]


def test_a_row_that_only_matches_below_is_followed_by_what_matches() -> None:
    assert keys(text="outcome:timeout") == ["ralph-old-3", attempt_key("task-001.1")]
    tree = build_tree(CATALOG, select("outcome:timeout"), (), no_patterns)
    assert tree.headings == {"ralph-old-3"}


def test_iterations_debug_sessions_and_lessons_are_below_their_loop() -> None:
    patterns = LoopPatterns(
        uses=(Observation(pattern_id="p", kind="injected", source="event-log"),),
        extracted=(ExtractedPattern(pattern_id="q"),),
    )
    own = "ralph-fix-auth-1"
    tree = build_tree(CATALOG, [FoundWork(own)], [own], lambda _: patterns)
    assert tree.keys == (own, iteration_key(own, 0), lesson_key(own, "p"), lesson_key(own, "q"))
    hooks = Loop(id="claude:a", runner="claude", sources=(HOOKS,), iterations=(Iteration(),))
    catalog = WorkCatalog(Snapshot(loops={hooks.id: hooks}))
    assert build_tree(catalog, [FoundWork(hooks.id)], [hooks.id], no_patterns).keys == (hooks.id,), "its attempts"


def test_the_last_of_very_many_attempts_follow_a_row_for_the_earlier_ones() -> None:
    attempts = {f"t.{n}": Attempt(task_id="t", number=n) for n in range(1, 1002)}
    catalog = WorkCatalog(Snapshot(attempts=attempts))
    top, earlier = task_key("t"), earlier_key(f"attempt/{task_key('t')}")
    tree = build_tree(catalog, [FoundWork(top)], [top], no_patterns)
    assert tree.keys[:2] == (top, earlier) and len(tree.keys) == 2 + LAST_ROWS
    assert tree.earlier == {earlier: 1001 - LAST_ROWS}
    assert catalog.row_above(earlier) == top
    unfolded = build_tree(catalog, [FoundWork(top)], [top, earlier], no_patterns).keys
    assert len(unfolded) == 1003 and unfolded[2] == attempt_key("t.1")


def session_at(number: int, status: LoopStatus = LoopStatus.FAILED, **fields: Any) -> Loop:
    return Loop(id=f"claude:{number}", runner="claude", owner="claude", status=status, **fields)


def repeated(*attempts: tuple[str, int, int], **status: LoopStatus) -> WorkCatalog:
    """Return a catalog of attempts: the task, the number, and the session that made it."""
    sessions = (session_at(n, status.get(f"session_{n}", LoopStatus.FAILED)) for n in {one[2] for one in attempts})
    made = [Attempt(task_id=task, number=number, loop_id=f"claude:{n}") for task, number, n in attempts]
    tasks = {task: Task(id=task, description="Add a tax", loop_id="claude:1") for task, *_ in attempts}
    return WorkCatalog(
        Snapshot(loops={one.id: one for one in sessions}, tasks=tasks, attempts={one.id: one for one in made})
    )


def test_sessions_that_attempted_one_task_are_one_row_without_other_work() -> None:
    catalog = repeated(("t", 1, 1), ("t", 2, 2))
    assert [one.key for one in select("", catalog)] == ["claude:2"]
    assert [one.number for one in catalog.attempts_of["claude:2"]] == [1, 2]
    tree = build_tree(catalog, select("", catalog), {"claude:2"}, lambda _: LoopPatterns())
    assert tree.keys[:4] == ("claude:2", "claude:1", attempt_key("t.1"), attempt_key("t.2"))
    assert catalog.row_above("claude:1") == catalog.row_above(attempt_key("t.1")) == "claude:2"
    for own_rows in (
        repeated(("t", 1, 1), ("t", 2, 2), ("u", 1, 1)),  # of two tasks
        repeated(("t", 1, 1), ("t", 2, 2), session_1=LoopStatus.WAITING),  # not ended
    ):
        assert {one.key for one in select("", own_rows)} == {"claude:1", "claude:2"}
    worked = repeated(("t", 1, 1), ("t", 2, 2), session_2=LoopStatus.COMPLETED)
    assert select("status:failed", worked) == [FoundWork("claude:2", False, ("claude:1",))]


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
