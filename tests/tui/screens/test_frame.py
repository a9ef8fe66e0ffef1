"""The top bar names every screen and shows the status."""

from __future__ import annotations

from datetime import datetime

import pytest

from core.files.watcher import WatchMode, WatchState
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, Loop, LoopStatus
from core.records.snapshot import Snapshot
from tui.kit.actions import PLACES
from tui.kit.bars import Item, TopBar
from tui.kit.glyphs import DRAWN
from tui.screens.frame import FITS, Detail, count_status, fitting_items, places, watch_status

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


@pytest.mark.parametrize("here", PLACES)
@pytest.mark.parametrize("mode", ["events", "polling", "waiting"])
def test_the_open_screen_is_named_at_80_columns(here: str, mode: WatchMode) -> None:
    watch = WatchState(mode, "", 0)
    for snapshot in (Snapshot(), BROKEN):
        for is_readonly in (False, True):
            bar = drawn(80, here=here, snapshot=snapshot, watch=watch, is_readonly=is_readonly)
            assert all(f"{key} " in bar or f"{key}·" in bar for key, _ in PLACES.values() if key.isdecimal())
            assert " ".join(PLACES[here]) in bar
            assert "·1028+" in bar, "more questions may come"


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


@pytest.mark.parametrize(
    ("liveness", "text"),
    [
        ([Liveness.FRESH], "1 session running"),
        ([Liveness.STALE] * 4, "4 sessions stale"),
        ([Liveness.FRESH, Liveness.STALE, Liveness.STALE], "1 session running, 2 stale"),
    ],
)
def test_a_loop_without_recent_activity_is_not_called_running(liveness: list[Liveness], text: str) -> None:
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


@pytest.mark.parametrize("here", PLACES)
@pytest.mark.parametrize("width", [30, 40, 60])
def test_the_open_screen_is_named_in_narrow_terminals(here: str, width: int) -> None:
    items = fitting_items(places("a-project", here, 28, FITS[-1]), width)
    assert PLACES[here][1] in " ".join(content.plain for content, _ in items)
    assert TopBar.cells([Item(content) for content, _ in items]) <= width


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
