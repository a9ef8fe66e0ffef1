"""The top bar, toasts, problems in files, and sizes of panes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from types import MappingProxyType

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.watcher import WatchMode, WatchState
from core.index.project_state import ProjectState
from core.index.review_items import ReviewItem
from core.index.texts import Texts
from core.learning.scoreboard import Scoreboard
from core.project.notifications import NotificationKind, find_notifications
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, Loop, LoopStatus
from core.records.snapshot import Delta, Snapshot
from tests.factories import DEBUG_NOW
from tui.kit.actions import PLACES
from tui.kit.bars import Item, TopBar
from tui.kit.looks import DRAWN
from tui.screens.base_screen import resized
from tui.screens.frame import FITS, Detail, count_status, findings_lines, fitting_items, places, toasts, watch_status

BROKEN = Snapshot(findings=tuple(Finding(f"{n}.json", "", Severity.ERROR, "bad-json", "no JSON") for n in range(118)))
NOTHING = count_status(Snapshot())


def drawn(width: int, *, here: str, snapshot: Snapshot, watch: WatchState | None, is_readonly: bool) -> str:
    """The roomiest bar that there is room for."""
    for fit in FITS:
        texts = [content for content, _ in places("a-project-with-a-long-name", here, 1028, fit, is_counting=True)]
        counts = count_status(snapshot)
        status = watch_status(counts, None, watch, DRAWN, detail=fit.detail, key="F", is_readonly=is_readonly)
        bar = [*texts, *([status] if status else [])]
        if TopBar.cells([Item(content) for content in bar]) <= width:
            return " ".join(content.plain for content in bar)
    raise AssertionError("no bar fits")


def test_the_open_screen_is_named_at_any_width() -> None:
    for here, mode, snapshot, is_readonly in product(PLACES, WatchMode, (Snapshot(), BROKEN), (False, True)):
        bar = drawn(80, here=here, snapshot=snapshot, watch=WatchState(mode, "", 0), is_readonly=is_readonly)
        row = f"{here}, {mode}, {is_readonly}: {bar}"
        assert all(f"{key} " in bar or f"{key}·" in bar for key, _ in PLACES.values() if key.isdecimal()), row
        assert " ".join(PLACES[here]) in bar, row
        assert "·1028+" in bar, f"more questions may come; {row}"
    for here, width in product(PLACES, (30, 40, 60)):
        items = fitting_items(places("a-project", here, 28, FITS[-1]), width)
        assert PLACES[here][1] in " ".join(content.plain for content, _ in items), (here, width)
        assert TopBar.cells([Item(content) for content, _ in items]) <= width, (here, width)


def test_errors_show_a_word_and_a_key_when_there_is_space() -> None:
    def status_text(width: int) -> str:
        return drawn(width, here="log", snapshot=BROKEN, watch=None, is_readonly=False)

    assert "118 errors in files F" in status_text(160)
    assert "118 errors in files F" in status_text(100)
    assert "118 errors F" in status_text(74)
    assert "118!" in status_text(44)


def running(*liveness: Liveness) -> Snapshot:
    loops = [Loop(id=f"loop-{n}", status=LoopStatus.RUNNING, liveness=one) for n, one in enumerate(liveness)]
    return Snapshot(loops={loop.id: loop for loop in loops})


def test_a_loop_without_recent_activity_is_not_called_running() -> None:
    for text, liveness in {
        "1 session running": [Liveness.FRESH],
        "4 sessions stale": [Liveness.STALE] * 4,
        "1 session running, 2 stale": [Liveness.FRESH, Liveness.STALE, Liveness.STALE],
    }.items():
        status = watch_status(count_status(running(*liveness)), None, None, DRAWN, detail=Detail.WORDS, key="F").plain
        assert status.endswith(f" {text}")
        assert ("running" in status) is (Liveness.FRESH in liveness)


def test_loops_of_runners_are_counted_without_an_aiwg_folder() -> None:
    waiting = {f"claude:{n}": Loop(id=f"claude:{n}", runner="claude", status=LoopStatus.WAITING) for n in range(2)}
    loops = {**running(Liveness.FRESH).loops, **waiting}

    def status_text(snapshot: Snapshot, detail: Detail) -> str:
        watch = WatchState(WatchMode.WAITING, "", 0)
        return watch_status(count_status(snapshot), None, watch, DRAWN, detail=detail, key="F").plain

    assert status_text(Snapshot(loops=loops), Detail.WORDS) == "not set up 2 wait for you 1 session running"
    assert status_text(Snapshot(loops=loops), Detail.SIGNS).startswith("not set up 2 wait")
    assert status_text(Snapshot(), Detail.SHORT) == "not set up here"


def test_the_progress_of_opening_has_figures_in_all_phases() -> None:
    def status_texts(*progress: int) -> list[str]:
        done, total = progress
        return [
            watch_status(NOTHING, (done, total), None, DRAWN, detail=detail, key="F").plain
            for detail in (Detail.WORDS, Detail.SHORT, Detail.BRIEF, Detail.SIGNS)
        ]

    swept = ["opening: 12,000 files found", "opening 12,000 files", "opening 12,000", "12,000"]
    assert status_texts(12_000, 0) == swept
    opening = ["▮▮▯▯▯▯▯▯▯▯ opening: 12,000 of 60,000 files", "opening 12,000/60,000", "opening 20 %", "20 %"]
    assert status_texts(12_000, 60_000) == opening


def test_a_screen_on_top_is_named_in_the_bar() -> None:
    items = places("a-project", "past", 0, FITS[0], under="metrics")
    texts = [content.plain.strip() for content, _ in items]
    assert texts[texts.index("M Metrics") + 1] == "Compare"
    assert [content.plain.strip() for content, _ in fitting_items(items, 12)] == ["Compare"]


def test_records_of_the_last_run_are_marked_until_they_are_checked() -> None:
    as_of = datetime(2026, 11, 21, 12, 3).astimezone()

    def status_text(detail: Detail, progress: tuple[int, int]) -> str:
        return watch_status(NOTHING, progress, None, DRAWN, detail=detail, key="F", as_of=as_of).plain

    assert status_text(Detail.WORDS, (0, 0)) == "as of 12:03, checking…"
    assert status_text(Detail.WORDS, (12_000, 0)) == "as of 12:03, checking: 12,000 files found"
    assert status_text(Detail.WORDS, (12_000, 60_000)) == "as of 12:03, checking: 12,000 of 60,000 files"
    assert status_text(Detail.SHORT, (12_000, 60_000)) == "as of 12:03, checking 20 %"
    assert status_text(Detail.BRIEF, (12_000, 60_000)) == "as of 12:03…"
    assert status_text(Detail.SIGNS, (12_000, 60_000)) == "20 %"


def test_waiting_and_running_loops_have_their_words_at_80_columns() -> None:
    waiting = Loop(id="x:1", runner="x", status=LoopStatus.WAITING, raw_status="question", liveness=Liveness.FRESH)
    old = Loop(id="x:2", runner="x", status=LoopStatus.WAITING, raw_status="question", liveness=Liveness.STALE)
    running_one = Loop(id="a", status=LoopStatus.RUNNING, liveness=Liveness.ALIVE)
    snapshot = Snapshot(loops={one.id: one for one in (waiting, old, running_one)})
    assert count_status(snapshot).waiting == 1
    watch = WatchState(WatchMode.EVENTS, "", 0)
    texts = [drawn(width, here="log", snapshot=snapshot, watch=watch, is_readonly=False) for width in (60, 80, 160)]
    assert "1 wait · 1 run" in texts[0], texts[0]
    assert "1 waits for you" in texts[1]


NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


def view(*loops: Loop, decisions: tuple[Decision, ...] = (), questions: tuple[str, ...] = ()) -> ProjectState:
    snapshot = Snapshot(loops=MappingProxyType({loop.id: loop for loop in loops}), decisions=decisions, complete=True)
    queue = tuple(ReviewItem(kind="inversion", subject=key, question="?", reason="", priority=0.5) for key in questions)
    board = Scoreboard.build(Snapshot(), NOW, Settings())
    return ProjectState(snapshot, board, Texts(snapshot), queue, Settings(), NOW, {})


def loop(key: str, status: LoopStatus, task: str = "") -> Loop:
    return Loop(id=key, task=task or f"task {key}", status=status)


def shown(before: ProjectState, after: ProjectState) -> list[tuple[str, str]]:
    delta = Delta(loops=frozenset(before.snapshot.loops) | frozenset(after.snapshot.loops), decisions=True)
    return [(text, severity) for text, severity in toasts(find_notifications(before, after, delta, {"mine"}), {"mine"})]


RUNNING, DONE, FAILED, CRASHED = LoopStatus.RUNNING, LoopStatus.COMPLETED, LoopStatus.FAILED, LoopStatus.CRASHED


def test_loops_that_fail_are_named_or_counted_and_others_not_reported() -> None:
    assert shown(view(loop("a", RUNNING)), view(loop("a", FAILED))) == [("failed: task a", "error")]
    both = view(loop("a", RUNNING), loop("b", RUNNING))
    assert shown(both, view(loop("a", FAILED), loop("b", FAILED))) == [("2 loops failed", "error")]
    before = view(loop("a", RUNNING), loop("b", RUNNING), loop("c", RUNNING))
    after = view(loop("a", DONE), loop("b", CRASHED), loop("c", LoopStatus.LIMIT), loop("d", RUNNING))
    assert sorted(shown(before, after)) == [("crashed: task b", "error"), ("hit its limit: task c", "error")]
    assert shown(view(), view(loop("old", DONE))) == []
    assert shown(view(loop("a", FAILED)), view(loop("a", CRASHED))) == []
    assert shown(view(loop("a", RUNNING)), view()) == []
    ((text, _),) = shown(view(loop("a", RUNNING)), view(loop("a", FAILED, task="\x1b[31mred\u202e")))
    assert not {"\x1b", "\u202e"} & {*text}


def test_a_loop_whose_folder_was_made_before_its_state_has_started() -> None:
    before, after = view(loop("a", LoopStatus.UNKNOWN)), view(Loop(id="a", task="Fix", status=RUNNING, iteration=1))
    (found,) = find_notifications(before, after, Delta(loops=frozenset("a")))
    assert found.what is NotificationKind.STARTED


def test_decisions_of_others_new_questions_and_escalations_are_reported() -> None:
    ours = Decision(id="mine", at=NOW, by="ana", verb=Verb.PROMOTE, subject="pat-a")
    theirs = Decision(id="2", at=NOW, by="ana", verb=Verb.ACCEPT_INVERSION, subject="pat-b")
    assert shown(view(), view(decisions=(ours, theirs))) == [("ana: accept inversion pat-b", "information")]
    assert shown(view(questions=("a",)), view(questions=("a", "b"))) == [("1 new question in Review", "warning")]
    assert shown(view(questions=("a", "b")), view(questions=("a",))) == []
    item = ReviewItem(
        kind="escalation", subject="s", question="An agent is stuck: seen?", reason="\x1bwhy", priority=0.9
    )
    (line,) = shown(view(), replace(view(), queue=(item,)))
    assert line == ("An agent is stuck: seen? \N{SYMBOL FOR ESCAPE}why", "warning")


def test_a_note_on_other_records_follows_only_problems(tmp_path: Path) -> None:
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False)
    assert [line.plain for line in findings_lines(project.load())] == ["No file problems."]
    (tmp_path / ".aiwg/ralph/loops/ralph-a").mkdir(parents=True)
    lines = [line.plain for line in findings_lines(project.load())]
    assert lines[0].startswith("warning .aiwg/ralph/loops/ralph-a")
    assert lines[-1] == "Other records are not affected, and ralphdeck never overwrites an invalid file."


def test_a_pane_takes_its_step_from_the_others_until_one_would_be_too_small() -> None:
    assert resized([24, 16], 0, "vertical", grow=True) == [26, 14]
    assert resized([24, 16], 1, "vertical", grow=True) == [22, 18]
    assert resized([24, 16], 0, "vertical", grow=False) == [22, 18]
    assert resized([40, 40, 40], 1, "horizontal", grow=True) == [37, 46, 37]
    assert resized([20, 5], 0, "vertical", grow=True) == [21, 4]
    assert resized([21, 4], 0, "vertical", grow=True) == [21, 4]
    assert resized([21, 60], 0, "horizontal", grow=False) == [21, 60]
    for first in range(4, 60):
        assert sum(resized([first, 17, 23], 2, "vertical", grow=True)) == first + 40
