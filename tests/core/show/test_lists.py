"""Lists of loops, patterns and decisions: titles, cells and rows; the overview of a loop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from core.index.project_state import ProjectState
from core.learning.evidence import LoopPatterns
from core.learning.following import WorkVerdict
from core.records.debug_sessions import ESCALATED, Analysis, DebugSession, Execution, Failure, Fix, Results
from core.records.decisions import (
    EDIT_ANSWERS,
    Decision,
    Verb,
    anchor_question_id,
    duplicate_question_id,
    edited_file_question_id,
    extraction_question_id,
    held_text_question_id,
    sign_unattended,
)
from core.records.episodes import Attempt, Quality, Task, TaskStatus
from core.records.events import Observation
from core.records.loops import (
    CHECK_FAILED,
    CONTRADICTED,
    ExtractedPattern,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
    Progress,
    Usage,
)
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.show.decisions import Entry, decision_cells, decision_document, group_decisions
from core.show.loops import (
    attempt_cells,
    lesson_cells,
    lessons_text,
    loop_cells,
    loop_document,
    loop_rank,
    needs_column,
    session_cells,
    task_cells,
)
from core.show.needs import Need, NeedKind, find_need
from core.show.pages.document import Fields, Moment, Sign, Sparkline, Text, list_words, plain_text
from core.show.pages.loops import Result, elapsed, find_result, overview, patterns, usage_text, use_result
from core.show.pages.markdown import blocks_markdown, to_markdown
from core.show.pages.patterns import body, decisions
from core.show.patterns import COLUMNS, pattern_cells
from core.tasks.attempts import AttemptCondition, AttemptState
from tests.factories import (
    NOW,
    SETTINGS,
    days_ago,
    example_patterns,
    make_assessment,
    make_event,
    make_pattern,
    make_use,
)
from tui.kit.looks import DRAWN
from tui.screens.document import document_lines


def state_of(*loops: Loop, **records: Any) -> ProjectState:
    return ProjectState.open(Snapshot(loops={loop.id: loop for loop in loops}, **records), SETTINGS, NOW)


def plain(text: Text) -> str:
    parts = [part.text if isinstance(part, Sign) else part[0] if isinstance(part, tuple) else part for part in text]
    return "".join(part for part in parts if isinstance(part, str))


def test_a_session_that_ended_worked_or_failed_or_is_unclear() -> None:
    rows: list[tuple[dict[str, Any], Result | None]] = [
        ({"status": LoopStatus.RUNNING}, None),
        ({"status": LoopStatus.PAUSED}, None),
        ({"status": LoopStatus.COMPLETED}, Result.WORKED),
        ({"status": LoopStatus.FAILED}, Result.FAILED),
        ({"status": LoopStatus.ABORTED}, Result.UNCLEAR),
        ({"status": LoopStatus.PARTIAL}, Result.UNCLEAR),
        ({"status": LoopStatus.COMPLETED, "badges": (CONTRADICTED,)}, Result.UNCLEAR),
        ({"status": LoopStatus.COMPLETED, "runner": "codex"}, Result.UNCLEAR),
        ({"status": LoopStatus.COMPLETED, "runner": "codex", "progress": Progress(test_passed=True)}, Result.WORKED),
        ({"status": LoopStatus.RUNNING, "archived": True, "liveness": Liveness.ENDED}, Result.UNCLEAR),
        ({"status": LoopStatus.RUNNING, "liveness": Liveness.ENDED}, Result.UNCLEAR),
    ]
    for fields, result in rows:
        loop = Loop(id="a", ended_at=NOW, **fields)
        assert find_result(state_of(loop), loop) is result, fields
    loop = Loop(id="a", status=LoopStatus.ABORTED, ended_at=NOW)
    report = make_event(1, "outcome", NOW, pattern_id="", loop_id="a", success=True)
    assert find_result(state_of(loop, events=(report,)), loop) is Result.WORKED, "a report decides"


def test_a_row_has_the_status_and_the_last_activity() -> None:
    def cells(**fields: Any) -> tuple[str, Text]:
        loop = Loop(id="a", **fields)
        found = loop_cells(state_of(loop), loop, None, NOW)
        return plain(found["status"]), found["sign"]

    ended: dict[str, Any] = {"status": LoopStatus.FAILED, "ended_at": NOW}
    assert cells(runner="claude", end_reason=CHECK_FAILED, **ended) == ("tests failed", (Moment(NOW, is_age=True),))
    assert cells(status=LoopStatus.RUNNING, archived=True)[0].startswith("no result"), "whatever its files say"
    known: dict[str, Any] = {"status": LoopStatus.RUNNING, "last_activity": days_ago(1)}
    assert plain(cells(liveness=Liveness.DEAD, **known)[1]) == "no process"
    assert cells(**known)[1] == (Moment(days_ago(1), "", is_age=True),)
    assert cells(liveness=Liveness.STALE, **known)[1] == (Moment(days_ago(1), "warning", is_age=True),)


def test_the_column_of_needs_is_as_wide_as_the_widest() -> None:
    narrow = needs_column([], NOW).width
    need = Need(kind=NeedKind.SAME_ERROR, loop_id="a", since=NOW, count=4444, text="x")
    assert needs_column([need], NOW).width == len("same error x4444") + 2 > narrow


def test_the_use_of_a_lesson_is_described_in_words() -> None:
    def words(kind: str, verdict: WorkVerdict | None = None, **fields: Any) -> str:
        return plain(use_result(Observation(pattern_id="p", kind=kind, source="event-log", **fields), verdict))

    assert words("injected") == "given"
    for is_followed, expected in ((False, "given, not followed"), (None, "given")):
        assert words("injected", WorkVerdict(pattern_id="p", work_id="w", is_followed=is_followed)) == expected
    assert words("applied", success=True) == "followed, worked"
    assert words("applied", inferred=True) == "followed, no result, as the session"


def test_the_needs_of_a_loop_are_in_its_row_and_first_in_its_details() -> None:
    loop = Loop(id="a", task="Migrate", status=LoopStatus.RUNNING)
    need = Need(kind=NeedKind.SAME_ERROR, loop_id="a", since=NOW - timedelta(minutes=38), count=4, text="TimeoutError")
    state = state_of(loop)
    assert plain(loop_cells(state, loop, need, NOW)["needs"]) == "same error x4"
    document = loop_document(state, loop, need, LoopDetails(loop_id="a"))
    assert document.title == "Migrate"
    assert "TimeoutError" in str(document.blocks[0])


def test_an_escalated_session_shows_its_question_what_was_tried_and_how_to_answer() -> None:
    analysis = Analysis(root_cause="the form sends no key", strategy="Ask the back office")
    runs = (Execution(analysis=analysis, fix=Fix(description="Make a key", files=("src/keys.ts",))), Execution())
    session = DebugSession(id="s", loop_id="c:1", file_path="src/refunds.ts", status=ESCALATED, executions=runs)
    fields: dict[str, Any] = {"id": "c:1", "runner": "claude", "owner": "claude", "session_ids": ("abc-1",)}
    loop = Loop(status=LoopStatus.RUNNING, **fields)
    state = state_of(loop, debug_sessions={"s": session})
    text = to_markdown(loop_document(state, loop, find_need(state, loop), LoopDetails(loop_id="c:1")))
    known = ("the form sends no key", "Ask the back office", "src/refunds.ts, src/keys.ts", "Make a key")
    assert all(one in text for one in (*known, "claude --resume abc-1"))


def test_lessons_are_given_followed_and_found_each_with_its_name_and_result() -> None:
    uses = tuple(
        Observation(pattern_id=id, kind=kind, source="event-log") for id, kind in (("a", "injected"), ("b", "applied"))
    )
    found = LoopPatterns(uses=uses, extracted=(ExtractedPattern(pattern_id="c"),))
    assert plain(lessons_text(found)) == "1/2, 1 found"
    assert plain(lessons_text(LoopPatterns(uses=uses[:1]), found=3)) == "1 given, 3 found"
    assert lessons_text(LoopPatterns()) == ()
    use = Observation(pattern_id="p", kind="applied", source="event-log", success=True, at=NOW)
    cells = lesson_cells("p", make_pattern("p", title="Freeze the clock"), [use])
    assert "followed  Freeze the clock" in plain(cells["task"]) and "worked" in plain(cells["status"])
    assert "found  p" in plain(lesson_cells("p", None, [])["task"])


def test_sessions_that_need_a_person_are_first_then_running_ones_then_the_newest() -> None:
    asks = Need(kind=NeedKind.ASKS)
    order = [
        loop_rank(Loop(id="asks", status=LoopStatus.WAITING, started_at=days_ago(9)), asks),
        loop_rank(Loop(id="failed", status=LoopStatus.FAILED), Need(kind=NeedKind.TESTS_FAILED)),
        loop_rank(Loop(id="runs", status=LoopStatus.RUNNING, started_at=days_ago(5)), None),
        loop_rank(Loop(id="paused", status=LoopStatus.PAUSED, started_at=days_ago(1)), None),
        loop_rank(Loop(id="new", status=LoopStatus.COMPLETED, started_at=days_ago(1)), None),
        loop_rank(Loop(id="archived", status=LoopStatus.RUNNING, archived=True, started_at=days_ago(2)), None),
        loop_rank(Loop(id="old", status=LoopStatus.COMPLETED, started_at=days_ago(3)), None),
    ]
    assert order == sorted(order)


def test_a_task_row_summarizes_its_attempts() -> None:
    task = Task(id="old", description="Add OAuth", status=TaskStatus.COMPLETED)
    attempts = [Attempt(task_id="old", number=n, quality=(Quality(1, 0.5),)) for n in (0, 1)]
    cells = task_cells(task, attempts, AttemptState.ENDED, ())
    assert plain(cells["iteration"]) == "2 attempts" and "needs" not in cells
    assert cells["quality"] == (Sparkline((0.5, 0.5), 8),)
    assert plain(cells["status"]) == "completed"


def test_a_running_task_without_activity_is_shown_as_unfinished() -> None:
    task = Task(id="new", status=TaskStatus.RUNNING)
    assert plain(task_cells(task, [Attempt(task_id="new", number=1)], AttemptState.LEFT, ())["status"]) == "unfinished"
    assert plain(task_cells(task, (), None, ())["status"]) == "not started"


def test_an_attempt_without_a_plan_has_the_title_of_its_task() -> None:
    attempt, left = Attempt(task_id="t", number=1, outcome=Outcome.FAILURE), AttemptCondition(AttemptState.LEFT, "")
    assert plain(attempt_cells(attempt, left, "Add OAuth")["task"]).split() == ["attempt", "1", "Add", "OAuth"]


def test_a_debug_session_shows_its_file_its_failures_and_the_share_of_passed_tests() -> None:
    run = Execution(results=Results(total=4, passed=3, failed=1), failures=(Failure(message="total is null"),))
    session = DebugSession(id="s", file_path="src/cart.ts", status="failed", executions=(run,))
    cells = session_cells(session, None, NOW, is_below=True)
    assert "src/cart.ts  total is null" in plain(cells["task"])
    assert (plain(cells["iteration"]), plain(cells["needs"])) == ("1 run", "")
    assert cells["quality"] == (Sparkline((0.75,), 8),)


def test_the_lessons_of_a_loop_are_listed_with_their_iteration() -> None:
    loop = Loop(id="a", injected=(make_use("p", True, iteration=2), make_use("q", None, iteration=None)))
    text = blocks_markdown(patterns(state_of(loop, patterns={"p": make_pattern("p")}), loop))
    assert text.count("iteration") == 1 and "iteration 2" in text and "not in the registry" in text


def rows(loop: Loop) -> dict[str, Any]:
    blocks = list(overview(state_of(loop), loop, None))
    return dict(row for block in blocks if isinstance(block, Fields) for row in block.rows)


def test_stories_and_the_last_change_of_a_runner_are_in_the_overview() -> None:
    progress = Progress(stories=5, stories_done=3, changed_at=days_ago(1))
    found = rows(Loop(id="ralph-tui:a", runner="ralph-tui", progress=progress))
    assert "3 of 5 done" in str(found["Stories"])
    (moment,) = found["Last change"]
    assert isinstance(moment, Moment) and moment.at == days_ago(1)
    assert not {"Stories", "Last change"} & rows(Loop(id="a", updated_at=NOW)).keys()
    crashed = Loop(id="a", status=LoopStatus.CRASHED, badges=("crashed", "orphan"))
    text = str(list(overview(state_of(crashed), crashed, None)))
    assert "not in the registry" in text and "  crashed" not in text, "the status says so"


def test_a_waiting_session_has_its_question_and_the_command_that_opens_it() -> None:
    waiting = Loop(
        id="claude:a-1",
        runner="claude",
        owner="claude",
        status=LoopStatus.WAITING,
        raw_status="AskUserQuestion",
        question="Which clock?",
        session_ids=("a-1",),
        cwd="/shop/api",
    )
    found = rows(waiting)
    assert found["Waits for"] == ("question: Which clock?",)
    assert next(str(part) for part in found["Answer with"]) == "claude --resume a-1"
    assert "/shop/api" in str(found["Answer with"])
    codex = replace(waiting, runner="codex", owner="codex")
    assert "codex resume a-1" in str(rows(codex)["Answer with"])
    for other in (
        replace(waiting, session_ids=("-x; rm",)),
        replace(waiting, runner="open-ralph"),
        replace(waiting, status=LoopStatus.RUNNING),
    ):
        assert "Answer with" not in rows(other)


def test_an_unknown_end_has_no_running_time() -> None:
    loop = Loop(id="x:1", runner="x", raw_status="odd", started_at=days_ago(3), last_activity=days_ago(2))
    texts = str(list(overview(state_of(loop), loop, None)))
    assert "took" in texts and "running for" not in texts and "reported as odd" in texts
    assert elapsed(loop, NOW) == 24 * 3600


def test_tokens_are_input_output_and_cached() -> None:
    text = usage_text(Usage(input=11_000, cache_read=30_000, output=900))
    assert text == "41.9 k: 11.0 k input, 30.0 k cached input, 900 output"


def test_the_overview_leaves_out_values_without_content() -> None:
    ended = Loop(
        id="a",
        owner="unknown",
        status=LoopStatus.LIMIT,
        liveness_reason="its files report the status limit",
        ended_at=NOW,
        started_at=days_ago(1),
    )
    assert not {"Agent", "Last activity"} & rows(ended).keys()
    crashed = replace(ended, status=LoopStatus.CRASHED, liveness_reason="process 1 is gone", owner="claude")
    assert {"Agent", "Last activity"} <= rows(crashed).keys()


def test_values_of_files_have_labels_and_units_for_people() -> None:
    facts = (
        ("best iteration", "6"),
        ("selected iteration", "6"),
        ("iteration time", "2 h"),
        ("trajectory", "improving"),
    )
    loop = Loop(id="a", status=LoopStatus.RUNNING)
    blocks = list(overview(state_of(loop), loop, LoopDetails(loop_id="a", facts=facts)))
    found = dict(row for block in blocks if isinstance(block, Fields) for row in block.rows)
    assert found["Time at work"] == ("2 h",) and found["Quality"] == ("improving",)
    assert "Best iteration" in found and not any("elected iteration" in label for label in found)


def test_an_error_is_called_by_its_message_not_by_the_expression_for_it() -> None:
    pattern = make_pattern(error_pattern=r'got "str \| None"', error_message='got "str | None"')
    assert list_words(COLUMNS, pattern_cells(pattern, make_assessment()))["what"] == 'got "str | None"'


def test_a_row_shows_whether_a_lesson_is_stale() -> None:
    for is_stale in (True, False):
        cells = pattern_cells(make_pattern(), make_assessment(), is_stale=is_stale)
        assert ("stale" in list_words(COLUMNS, cells)["what"]) is is_stale
        assert (("?", "warning") in cells["flags"]) is is_stale


def test_a_row_counts_the_results_that_worked() -> None:
    words = list_words(COLUMNS, pattern_cells(make_pattern(), make_assessment(successes=9, failures=3, uses=14)))
    assert words["worked"] == "9 of 12" and words["used"] == "14"
    unused = make_assessment(successes=0, failures=0, uses=0, rate=None)
    assert list_words(COLUMNS, pattern_cells(make_pattern(), unused))["worked"] == "—"


def body_lines(pattern: Pattern) -> list[str]:
    return [line.plain for line in document_lines(body(pattern), NOW, DRAWN)]


def lines_of(**fields: object) -> list[str]:
    return body_lines(make_pattern(**fields))  # type: ignore[arg-type]


def test_the_parts_of_a_pattern_have_labels() -> None:
    lines = body_lines(example_patterns()["pat-anti-premature-optimization-001"])
    assert "Approach: Optimizing code before tests pass or requirements are met" in lines
    assert "Why it fails: Optimization distracts from primary goal and adds complexity" in lines
    assert lines_of(type=PatternType.ANTI, description="Split by file type") == ["Approach: Split by file type"]
    lines = lines_of(type=PatternType.TEMPLATE, description="Wraps a call", use_case="Calls that fail")
    assert lines == ["About: Wraps a call", "Use: Calls that fail"]
    shown = body_lines(example_patterns()["pat-success-test-generation-001"])
    assert "Iterations: 2.5 on average, 1 to 5" in shown


def decision(number: int, verb: Verb = Verb.PROMOTE, *, days: int = 0, hook: bool = False, group: str = "") -> Decision:
    after = {"patterns": ["a", "b"], "hashes": {}} if hook else {}
    by = sign_unattended("ana") if hook else "ana"
    at = NOW - timedelta(days=days, minutes=number)
    verb = Verb.EXTRACT if hook else verb
    return Decision(id=f"d{number}", at=at, by=by, verb=verb, subject=f"pat-{number}", after=after, group=group)


def words(entry: Entry, snapshot: Snapshot | None = None) -> dict[str, str]:
    return {id: plain_text(cell) for id, cell in decision_cells(entry, snapshot or Snapshot()).items()}


def test_decisions_of_one_act_are_one_row() -> None:
    made = [decision(1, group="g"), decision(2, group="g"), decision(3)]
    first, second = group_decisions(made)
    assert [one.id for one in first.decisions] == ["d1", "d2"] and second.key == "d3"
    assert words(first)["subject"] == "2 patterns" and not first.is_several_acts


def test_what_hooks_extracted_in_one_day_is_one_row() -> None:
    made = [decision(1, hook=True), decision(2, hook=True), decision(3, hook=True, days=1), decision(4)]
    today, yesterday, other = group_decisions(made)
    row = words(today)
    assert (row["verb"], row["subject"], row["change"], row["by"]) == ("extract", "2 sessions", "4 patterns", "hook")
    assert today.is_several_acts and yesterday.key == "d3" and words(other)["by"] == "ana"


def test_undone_and_unfolded_extractions_have_rows_of_their_own() -> None:
    made = [decision(1, hook=True), decision(2, hook=True), decision(3, hook=True)]
    assert [len(entry.decisions) for entry in group_decisions(made, undone={"d2"})] == [1, 1, 1]
    assert [entry.key for entry in group_decisions(made, unfolded={"d1", "d2", "d3"})] == ["d1", "d2", "d3"]


def test_a_row_has_the_title_of_its_pattern_before_the_id() -> None:
    pattern = make_pattern(id="pat-1", error_pattern="", error_message="x is None")
    promoted = decision(1)
    undo = Decision(id="d2", at=NOW, by="ana", verb=Verb.UNDO, subject="d1")
    snapshot = Snapshot(patterns={"pat-1": pattern}, decisions=(promoted, undo))
    assert words(Entry((promoted,)), snapshot)["subject"] == "x is None  pat-1"
    assert words(Entry((undo,)), snapshot)["subject"] == "promote x is None  pat-1"
    state = ProjectState.open(snapshot, SETTINGS, NOW)
    assert "\npromote pat-1" in to_markdown(decision_document(state, undo))
    lines = blocks_markdown(decisions(state, pattern))
    assert "promote" in lines and "undo" in lines, "a decision about a pattern and its undo"
    assert "No decision" in blocks_markdown(decisions(state, make_pattern("pat-2")))


def test_a_dismissed_question_is_shown_with_the_word_of_the_answer() -> None:
    def word(question: str) -> str:
        dismissed = Decision(id="d1", at=NOW, by="ana", verb=Verb.DISMISS, subject=question)
        return words(Entry((dismissed,)))["verb"]

    assert word(duplicate_question_id("a", "b")) == "keep both"
    assert word(extraction_question_id("loop")) == "never extract"
    assert word(anchor_question_id("pat-1", True, "0a1b")) == word("trigger of pat-1") == "keep"
    assert word(anchor_question_id("pat-1", False, "0a1b")) == word("counts of pat-1") == "leave"
    assert word(held_text_question_id("r1", "text")) == "leave out"
    assert [word(edited_file_question_id("A.md", answer=one)) for one in EDIT_ANSWERS] == [
        "leave",
        "restore",
        "take over",
    ]
    assert word("pat-1") == "dismiss"
