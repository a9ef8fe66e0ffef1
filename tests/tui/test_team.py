"""The team in the dashboard: who is here, offline since when, questions that another member has open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.index.review_items import ReviewItem
from core.project import gates
from core.records.team import Lease, Presence, ProjectUses, TeamStatus
from core.team import follow
from core.team.errors import AccessDenied
from core.team.follow import hide_question
from tests.core.team.fake_space import NOW, WAIT, FakeJoined, FakeSpace, offline
from tests.tui.screens.review_steps import desk
from tests.tui.user import User, open_dashboard
from tui.kit.record_table import RecordTable
from tui.screens.frame import TeamDetail, lease_text, offline_text, top_text

MARKUP = "[bold]Ben[/] [@click=app.quit]x[/]\x1b[31m"


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> FakeSpace:
    """A space that the project of the dashboard has joined as ana."""
    for name in ("CYCLE_SECONDS", "LOCAL_SECONDS", "HINT_SECONDS", "FIRST_PAUSE"):
        monkeypatch.setattr(follow, name, 0.02)
    found = FakeSpace()
    monkeypatch.setattr(gates, "find_joined", lambda project, read_now: lambda: FakeJoined(found))
    return found


@asynccontextmanager
async def joined(sample: Path, home: Path, size: tuple[int, int] = (160, 40)) -> AsyncIterator[User]:
    async with open_dashboard(sample, home, size=size) as user:
        await user.until(lambda: user.app.team is not None and user.app.team.last_sync is not None, "the first sync")
        yield user


def top(user: User) -> str:
    return user.text().splitlines()[0]


def hidden(item: ReviewItem | None) -> str:
    assert item is not None
    return hide_question("shop", item.question_key)


async def test_without_a_team_the_top_bar_shows_nothing(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(160, 40)) as user:
        assert user.app.engine.team is None
        assert "team" not in top(user)
        await user.press("question_mark")
        assert "Team" not in user.text()


async def test_members_appear_in_the_top_bar_and_leave_it(sample: Path, home: Path, space: FakeSpace) -> None:
    async with joined(sample, home) as user:
        assert "team shop " in top(user)
        space.add("Ada")
        await user.sees("team shop: Ada here")
        for name in ("Ben", "Cleo"):
            space.add(name)
        await user.sees("team shop: 4 here")
        await user.press("question_mark")
        await user.type("ada")
        await user.press("escape")
        await user.sees("you are ana, reviewer", "Cleo", "acme-web, dashboard")
        await user.press("escape")
        for name in ("Ada", "Ben", "Cleo"):
            space.remove(name)
        await user.until(lambda: "here" not in top(user), "all have left")


@pytest.mark.parametrize(("size", "text"), [((50, 24), "offline 21:00"), ((160, 40), "offline since 21:00")])
async def test_an_unreachable_server_is_shown_and_the_dashboard_works(
    sample: Path, home: Path, space: FakeSpace, size: tuple[int, int], text: str
) -> None:
    async with joined(sample, home, size) as user:
        space.cut(offline())
        await user.until(lambda: text in top(user), text)
        assert "Offline: the server db.example does not answer" in user.toasts()
        await user.go("patterns")
        await user.decides("p")
        assert user.app.view.snapshot.decisions[-1].by == "ana"
        space.error = None
        await user.until(lambda: "offline" not in top(user), "online again")


async def test_a_problem_that_a_person_must_solve_is_an_error(sample: Path, home: Path, space: FakeSpace) -> None:
    async with joined(sample, home) as user:
        space.cut(AccessDenied("the role ana may not log in; ask the admin of the database"))
        await user.until(lambda: "offline" in top(user), "offline")
        notice = next(iter(user.app.notices))
        assert notice.severity == "error"
        assert "ask the admin" in notice.text
        await user.press("question_mark")
        await user.sees("ask the admin")


@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_an_open_question_of_another_member_is_marked_and_skipped(
    sample: Path, home: Path, space: FakeSpace, size: tuple[int, int]
) -> None:
    async with joined(sample, home, size) as user:
        await user.go("review")
        first, second, third = desk(user).questions.items[:3]
        space.add("Ada", question=hidden(second), since=NOW - timedelta(minutes=2))
        await user.until(lambda: user.app.lease_on(second.question_key) is not None, "the lease")
        await user.press("n")
        assert desk(user).item == third
        assert "Skipped 1 question open at other members; N goes back" in user.toasts()
        await user.press("N")
        assert desk(user).item == second
        await user.sees("open at Ada, 2 min")
        space.remove("Ada")
        await user.until(lambda: "open at Ada" not in user.text(), "Ada has left")
        await user.until(lambda: hidden(second) in space.leases, "it is open here")
        await user.press("N")
        assert desk(user).item == first


async def test_a_question_is_open_here_while_it_is_in_front(sample: Path, home: Path, space: FakeSpace) -> None:
    def is_held(item: ReviewItem | None) -> Callable[[], bool]:
        return lambda: [*space.leases] == [hidden(item)]

    async with joined(sample, home) as user:
        await user.go("review")
        first = desk(user).item
        await user.until(is_held(first), "the first question is open here")
        await user.press("n")
        await user.until(is_held(desk(user).item), "the next one is")
        await user.press("full_stop")
        await user.until(lambda: len(user.app.screen_stack) > 1, "the dialog")
        assert is_held(user.app.screen_stack[0].item)(), "a dialog does not end it"  # type: ignore[attr-defined]
        await user.press("escape")
        await user.go("patterns")
        await user.until(lambda: not space.leases, "none is open")


async def test_the_end_of_the_dashboard_ends_presence(sample: Path, home: Path, space: FakeSpace) -> None:
    async with joined(sample, home) as user:
        await user.until(lambda: len(space.present) == 1, "presence")
        follower = user.app.engine.team
    assert follower is not None
    await asyncio.to_thread(follower._thread.join, WAIT)
    assert not space.present


async def test_a_question_is_free_again_when_the_user_is_away(
    sample: Path, home: Path, space: FakeSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joined(sample, home) as user:
        await user.go("review")
        await user.until(lambda: bool(space.leases), "it is open here")
        monkeypatch.setattr("tui.app.AWAY_SECONDS", -1.0)
        user.app.update_lease()
        await user.until(lambda: not space.leases, "it is free")
        monkeypatch.setattr("tui.app.AWAY_SECONDS", 600.0)
        await user.press("tab")
        await user.until(lambda: bool(space.leases), "it is open here")


async def test_names_of_members_are_shown_as_text(sample: Path, home: Path, space: FakeSpace) -> None:
    async with joined(sample, home, (200, 40)) as user:
        space.add(MARKUP, project=MARKUP)
        await user.sees("[bold]Ben[/] [@clic… here")
        await user.go("review")
        item = desk(user).questions.items[1]
        space.add(MARKUP, project=MARKUP, question=hidden(item))
        await user.until(lambda: user.app.lease_on(item.question_key) is not None, "the lease")
        await user.press("n", "N")
        await user.sees("open at [bold]Ben[/] [@clic…")
        await user.press("question_mark")
        await user.sees("Team", "[@click=app.quit]")
        assert "\x1b" not in user.text()


STATUS = TeamStatus(space="shop", client_id="me", member="Ana", is_online=True, since=NOW)


@pytest.mark.parametrize("detail", TeamDetail)
def test_the_top_bar_gets_shorter_with_the_room(detail: TeamDetail) -> None:
    three = replace(STATUS, present=tuple(Presence(name, name) for name in ("Ada", "Ben", "Cleo")), differing=1)
    away = replace(STATUS, is_online=False, to_send=4, problem="x")
    expected = {
        TeamDetail.NAMES: ("team shop", "team shop: 4 here, 1 conflict", "offline since 12:03, 4 to send"),
        TeamDetail.WORDS: ("team shop", "team shop: 4 here, 1 conflict", "offline since 12:03, 4 to send"),
        TeamDetail.SHORT: ("", "4 here, 1 conflict", "offline since 12:03, 4 to send"),
        TeamDetail.CLOCK: ("", "4 here, 1 conflict", "offline 12:03"),
        TeamDetail.WORD: ("", "4 here, 1 conflict", "offline"),
        TeamDetail.NOTHING: ("", "", ""),
    }
    assert tuple(top_text(one, NOW, detail).plain for one in (STATUS, three, away)) == expected[detail]


def test_a_member_with_two_dashboards_is_named_once() -> None:
    present = (Presence("me", "Ana"), Presence("2", "Ana"), Presence("3", "Ben"), Presence("4", "Ben", "x", "watch"))
    assert replace(STATUS, present=present).members_here == ("Ben",)


def test_nothing_is_shown_before_the_first_answer() -> None:
    assert not top_text(replace(STATUS, is_online=False, since=None), NOW, TeamDetail.NAMES)


def test_an_older_time_has_its_day() -> None:
    assert offline_text(replace(STATUS, is_online=False, since=NOW - timedelta(days=3)), NOW).endswith("20 Nov 12:03")


@pytest.mark.parametrize(("seconds", "text"), [(0, "just now"), (-90, "just now"), (60, "1 min"), (7200, "120 min")])
def test_a_lease_shows_for_how_long(seconds: int, text: str) -> None:
    lease = Lease("q", "c", "Ada", NOW - timedelta(seconds=seconds))
    assert lease_text(lease, NOW) == f"open at Ada, {text}"


async def test_metrics_show_the_projects_of_the_team(sample: Path, home: Path, space: FakeSpace) -> None:
    space.uses = (ProjectUses("acme-api", {12: (31, 4, 44)}), ProjectUses(MARKUP, {12: (12, 3, 20)}))
    async with joined(sample, home) as user:
        await user.go("metrics")
        sections = user.place.query_one("#metrics-sections", RecordTable)
        sections.cursor = list(sections.keys).index("team")
        await user.sees("64 uses in 2 of 2 projects in 12 weeks: 43 worked, 7 failed", "all projects", "acme-api")
        await user.sees("[bold]Ben[/]")
