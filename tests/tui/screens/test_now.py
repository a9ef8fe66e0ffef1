"""The Now screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from core.records.decisions import Verb
from core.show.now import Now, NowLine, NowSection, Target
from core.show.pages.document import Sign
from tests.fix_sessions.transcripts import leave_transcripts
from tests.tui.user import NOW, User, make_app, open_dashboard
from tui.kit.looks import Glyphs
from tui.screens.now import Row, draw_row, lay_out

SHOWN = "Do lessons help?"


@asynccontextmanager
async def open_now(project: Path, home: Path, **how: Any) -> AsyncIterator[User]:
    async with open_dashboard(project, home, place="now", **how) as user:
        await user.sees("acme-api", SHOWN)
        yield user


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without `.aiwg`, in which an agent has fixed three failing checks."""
    person = tmp_path / "person"
    monkeypatch.setenv("HOME", str(person))
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    leave_transcripts(project, person, NOW, 3)
    return project


async def test_it_is_the_first_screen_whatever_was_open_last(sample: Path, home: Path) -> None:
    async with open_now(sample, home) as user:
        await user.go("patterns")
    app = make_app(sample, home, place="now")
    assert app._first_place == "now"
    async with open_now(sample, home) as user:
        await user.sees("Needs you", "Last 7 days", SHOWN, "To review")


async def test_a_line_opens_its_record_a_title_its_place_and_back_returns(sample: Path, home: Path) -> None:
    async with open_now(sample, home) as user:
        key = next(key for key in user.table.keys if key.startswith("sessions:"))
        user.table.go_to(key)
        await user.press("enter")
        await user.arrives("loops")
        assert user.table.cursor_key == key.partition(":")[2]
        await user.press("escape")
        await user.arrives("now")
        assert user.table.cursor_key == key


async def test_sections_are_reached_by_brackets_copied_and_dated_after_an_absence(sample: Path, home: Path) -> None:
    async with open_now(sample, home) as user:
        await user.press("g", "right_square_bracket")
        assert user.table.cursor_key == "sessions"
        await user.press("k")
        assert not str(user.table.cursor_key).startswith("gap:")
        await user.press("j")
        assert user.table.cursor_key == "sessions"
        await user.press("left_square_bracket")
        assert user.table.cursor_key == "needs"


async def test_a_small_terminal_shows_each_section(sample: Path, home: Path) -> None:
    async with open_now(sample, home, size=(80, 24)) as user:
        await user.sees("Needs you", "Last 7 days", SHOWN, "To review", "more")
        await user.pilot.resize_terminal(120, 50)
        await user.settled()
        assert user.text().count(" more") < 2 and "4 Loops" in user.text()


async def test_the_page_follows_changes(sample: Path, home: Path) -> None:
    async with open_now(sample, home) as user:
        before = user.place.copy_markdown()
        key = next(key for key in user.table.keys if key.startswith("lessons:pat-"))
        user.table.go_to(key)
        await user.press("enter")
        await user.arrives("review")
        await user.decides("a")
        await user.press("1")
        await user.until(lambda: user.place.copy_markdown() != before, "other lessons")


async def test_lessons_are_proposed_from_sessions_that_were_left_and_one_undo_removes_them(
    shop: Path, home: Path
) -> None:
    async with open_dashboard(shop, home, place="now", searches=True) as user:
        await user.sees("3 sessions of the last 30 days found", "3 fixes could become lessons", "propose lessons")
        await user.decides("a")
        await user.until(lambda: len(user.app.view.snapshot.patterns) == 3, "the lessons")
        (act,) = {decision.group for decision in user.app.view.snapshot.decisions}
        assert act and all(one.verb is Verb.EXTRACT for one in user.app.view.snapshot.decisions)
        await user.sees("To review", "3 to read")
        await user.searched()
        assert "could become lessons" not in user.text()
        assert {item.kind for item in user.app.view.queue} == {"extracted"}
        await user.decides("u")
        await user.until(lambda: not user.app.view.snapshot.patterns, "the lessons to be removed")


async def test_enter_on_the_offer_proposes_the_lessons_too(shop: Path, home: Path) -> None:
    async with open_dashboard(shop, home, place="now", searches=True) as user:
        await user.sees("could become lessons")
        user.table.go_to("setup:propose")
        await user.decides("enter")
        await user.until(lambda: bool(user.app.view.snapshot.patterns), "the lessons")


async def test_nothing_is_proposed_read_only(shop: Path, home: Path) -> None:
    async with open_dashboard(shop, home, place="now", searches=True, readonly=True) as user:
        await user.sees("could become lessons")
        await user.press("a")
        assert "Read-only" in user.toasts()[-1]
        assert not (shop / ".aiwg").exists()


def make_page(*counts: int) -> Now:
    sign = Sign("", "", "done")
    sections = tuple(
        NowSection(
            f"s{number}",
            f"Section {number}",
            lines=tuple(NowLine(sign, f"line {n}", target=Target("loops", str(n))) for n in range(count)),
            total=count,
        )
        for number, count in enumerate(counts)
    )
    return Now(NOW, "today", sections)


def test_sections_fit_into_every_height_and_no_line_is_lost_without_a_count() -> None:
    for counts, height in product([(0, 0, 0, 0), (1, 30, 4, 30), (30, 30, 30, 30), (2, 3, 4, 5)], range(1, 60)):
        rows = lay_out(make_page(*counts), height)
        assert len(rows) <= max(height, len(counts)), (counts, height)
        for number, count in enumerate(counts):
            own = [row for row in rows.values() if row is not None and row.section.id == f"s{number}"]
            lines = sum(row.line is not None for row in own)
            left_out = sum(count - row.shown for row in own if row.shown)
            assert own[0].line is None and (lines + left_out == count or len(own) <= 3), (counts, height, number)


def test_a_long_title_is_cut_before_the_text_beside_it() -> None:
    text = "given 2 lessons, none followed"
    line = NowLine(Sign("worked", "good", "done"), "Add a function " * 20, ("1 attempt", "12 m"), text)
    section = NowSection("sessions", "Last 7 days", lines=(line,), total=1)
    for width in (78, 98, 118, 198):
        drawn = draw_row(Row(section, line), width, Glyphs())
        assert drawn.cell_length <= width and drawn.plain.endswith(text)
