"""The team in the dashboard: who is here, offline since when, questions that another member has open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.decisions.case import Decided
from core.decisions.commands import Dismiss, Note, Promote
from core.index.review_items import BORDERLINE, ReviewItem
from core.project import watch_loop
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.records.team import Lease, Presence, ProjectUses, TeamStatus
from core.team import follow
from core.team.connection import AccessDenied
from core.team.follow import hide_question
from tests.core.team.fake_space import NOW, WAIT, FakeJoined, FakeSpace, offline
from tests.tui.screens.review_steps import at_question, desk
from tests.tui.user import User, open_dashboard, open_project
from tui.kit.record_table import RecordTable
from tui.screens.frame import TeamDetail, lease_text, offline_text, top_text

MARKUP = "[bold]Ben[/] [@click=app.quit]x[/]\x1b[31m"


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> FakeSpace:
    """A space that the project of the dashboard has joined as ana."""
    for name in ("CYCLE_SECONDS", "LOCAL_SECONDS", "HINT_SECONDS", "FIRST_PAUSE"):
        monkeypatch.setattr(follow, name, 0.02)
    found = FakeSpace()
    monkeypatch.setattr(watch_loop, "find_joined", lambda project, read_now: lambda: FakeJoined(found))
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


async def test_an_unreachable_server_is_shown_and_the_dashboard_works(
    sample: Path, home: Path, space: FakeSpace
) -> None:
    async with joined(sample, home) as user:
        space.cut(offline())
        await user.until(lambda: "offline since 21:00" in top(user), "offline")
        assert "Offline: the server db.example does not answer" in user.toasts()
        await user.go("patterns")
        await user.decides("p")
        assert user.app.view.snapshot.decisions[-1].by == "ana"
        space.error = None
        await user.until(lambda: "offline" not in top(user), "online again")
        space.cut(AccessDenied("the role ana may not log in; ask the admin of the database"))
        await user.until(lambda: "offline" in top(user), "offline")
        notice = next(one for one in user.app.notices if "ask the admin" in one.text)
        assert notice.severity == "error", "a person must solve it"
        await user.press("question_mark")
        await user.sees("ask the admin")


async def test_an_open_question_of_another_member_is_marked_and_skipped(
    sample: Path, home: Path, space: FakeSpace
) -> None:
    async with joined(sample, home, (80, 24)) as user:
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


async def test_a_question_is_open_here_while_it_is_in_front_and_the_user_is_not_away(
    sample: Path, home: Path, space: FakeSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        with monkeypatch.context() as away:
            away.setattr("tui.app.AWAY_SECONDS", -1.0)
            user.app.update_lease()
            await user.until(lambda: not space.leases, "it is free")
        await user.press("tab")
        await user.until(lambda: bool(space.leases), "it is open here")
        await user.go("patterns")
        await user.until(lambda: not space.leases, "none is open")
        await user.until(lambda: len(space.present) == 1, "presence")
        follower = user.app.engine.team
    assert follower is not None
    await asyncio.to_thread(follower._thread.join, WAIT)
    assert not space.present, "the end of the dashboard ends presence"


async def test_names_of_members_and_projects_are_shown_as_text(sample: Path, home: Path, space: FakeSpace) -> None:
    space.uses = (ProjectUses("acme-api", {12: (31, 4, 44)}), ProjectUses(MARKUP, {12: (12, 3, 20)}))
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
        await user.press("escape")
        await user.go("metrics")
        sections = user.place.query_one("#metrics-sections", RecordTable)
        sections.cursor = list(sections.keys).index("team")
        await user.sees("64 uses in 2 of 2 projects in 12 weeks: 43 worked, 7 failed", "all projects", "acme-api")
        await user.sees("[bold]Ben[/]")


STATUS = TeamStatus(space="shop", client_id="me", member="Ana", is_online=True, since=NOW)


def test_the_top_bar_gets_shorter_with_the_room() -> None:
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
    assert {
        detail: tuple(top_text(one, NOW, detail).plain for one in (STATUS, three, away)) for detail in TeamDetail
    } == expected
    assert not top_text(replace(STATUS, is_online=False, since=None), NOW, TeamDetail.NAMES), "before the first answer"
    assert offline_text(replace(STATUS, is_online=False, since=NOW - timedelta(days=3)), NOW).endswith("20 Nov 12:03")


def test_a_member_with_two_dashboards_is_named_once() -> None:
    present = (Presence("me", "Ana"), Presence("2", "Ana"), Presence("3", "Ben"), Presence("4", "Ben", "x", "watch"))
    assert replace(STATUS, present=present).members_here == ("Ben",)


def test_a_lease_shows_for_how_long() -> None:
    for seconds, text in {0: "just now", -90: "just now", 60: "1 min", 7200: "120 min"}.items():
        lease = Lease("q", "c", "Ada", NOW - timedelta(seconds=seconds))
        assert lease_text(lease, NOW) == f"open at Ada, {text}"


ONE = "pat-error-unique-violation-007"


async def meanwhile(user: User, decide: Callable[[Project], Decided]) -> Decision:
    """Bob decides at another dashboard, and this one notices."""
    made = decide(open_project(user.app.project.project.project, "bob")).decisions[-1]
    await user.until(lambda: made in user.app.view.snapshot.decisions, "bob's decision")
    await user.settled()
    return made


def newest(user: User) -> Decision:
    return user.app.view.snapshot.decisions[-1]


async def test_a_decision_made_while_a_reason_is_typed_is_not_overwritten(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter(ONE)
        await user.press("d")
        await user.paste("never held")
        made = await meanwhile(user, lambda bob: bob.decide(Promote(ONE)))
        await user.sees("bob decided just now: promote", "Press esc")
        await user.decides("enter")
        assert newest(user) == made
        assert "bob decided just now" in user.toasts()[-1]
        await user.press("c")
        await user.paste("beside it")
        noted = await meanwhile(user, lambda bob: bob.decide(Note(ONE, text="bob's own")))
        await user.decides("enter")
        assert (newest(user).verb, newest(user).by) == (Verb.NOTE, "ana") and newest(user) != noted


async def test_a_bulk_decision_skips_a_pattern_decided_on_since_the_preview(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("is:injectable state:established")
        await user.press("g", "m", "m")
        first, second = [key for key in user.table.keys if key in user.table.marked]
        await user.press("d")
        await user.sees("Deprecate 2 patterns?")
        await user.paste("obsolete")
        made = await meanwhile(user, lambda bob: bob.decide(Promote(first)))
        await user.decides("enter")
        after = user.app.view.snapshot.decisions
        assert [one.subject for one in after[after.index(made) + 1 :]] == [second]
        assert any("bob decided just now" in toast for toast in user.toasts())


async def test_an_answer_with_a_reason_is_refused_after_another_answer(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await at_question(user, BORDERLINE)
        item = desk(user).item
        assert item is not None
        await user.press("d")
        await user.paste("fails too often")
        made = await meanwhile(
            user,
            lambda bob: bob.decide(Dismiss(key=item.question_key, summary="the evidence decides")),
        )
        await user.sees("bob decided just now")
        await user.decides("enter")
        assert newest(user) == made


async def test_a_decision_made_while_undo_asks_is_not_undone(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.press("u")
        await user.sees("Undo imre's decision?")
        last = newest(user)
        made = await meanwhile(user, lambda bob: bob.decide(Promote(ONE)))
        await user.decides("y")
        assert (newest(user).verb, newest(user).subject) == (Verb.UNDO, last.id)
        assert made.id not in user.app.view.snapshot.curation.undone
        assert "by imre" in user.toasts()[-1]
