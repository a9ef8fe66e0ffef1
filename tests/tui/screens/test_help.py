"""The help and the dialogs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.content import Content
from textual.widgets import Input

from core.base.pattern_titles import pattern_title
from core.project.forecast import BulkForecast, ContextChange, Forecast
from core.records.decisions import VERBS, Verb
from core.records.patterns import Maturity
from tests.tui.user import User, open_dashboard
from tui.kit.actions import PLACES
from tui.kit.drawing import TextPane
from tui.kit.looks import ASCII, DRAWN
from tui.kit.user_state import BUILT_IN
from tui.screens.base_screen import SEEN_SCREENS, load_tables
from tui.screens.dialogs import AskLine, AskText, Confirm, FindingsDialog, Help, PreviewDialog, Topic, ViewList
from tui.screens.log import LogScreen
from tui.screens.previews import BulkDialog, draw_progress, name_patterns, preview


async def test_the_first_visit_of_a_place_states_its_purpose_in_one_line(sample: Path, home: Path) -> None:
    first: dict[str, Any] = {SEEN_SCREENS: ""}
    async with open_dashboard(sample, home, size=(80, 24), **first) as user:
        for place in PLACES:
            await user.go(place)
            line = user.place.query_one(".purpose")
            purpose = load_tables()[place].about.partition(". ")[0]
            assert line.size.height == 1 and f"{purpose}." in user.text().splitlines()[1]


async def test_the_help_begins_with_the_purpose_and_is_searched_by_typing(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        key = user.table.cursor_key
        assert key is not None
        await user.press("question_mark")
        assert isinstance(user.app.screen, Help)
        await user.sees("Every lesson of the project", "Columns", "how often it was used")
        await user.press("pagedown")
        await user.sees(
            f"On {key}", "under the cursor", "not now: It is not pinned", "now: deprecate → no longer given"
        )
        await user.paste("budg")
        await user.sees("No help contains 'budg'")
        await user.press("ctrl+u")
        await user.paste("whole markd")
        await user.sees("copy_whole")
        assert "Pin as proven" not in user.text()
        await user.press("escape", "escape")
        assert user.place.place == "patterns"

        await user.press("slash", "f1", "pagedown")
        await user.sees("You are typing", "letters are text", "Go to the next pane")
        await user.press("f1", "escape", "tab")
        user.place.set_focus(user.place.query_one("#patterns-text"))
        await user.press("question_mark", "pagedown")
        await user.sees(f"On the text of {key}")


async def test_a_dialog_has_help_for_its_keys(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.press("d")
        assert isinstance(user.app.screen, AskLine)
        await user.press("question_mark", "f1")
        assert isinstance(user.app.screen, Help)
        await user.sees("Help on this dialog", "Close without a decision")
        await user.press("f1")
        assert isinstance(user.app.screen, AskLine)
        assert user.app.screen.query_one(Input).value == "?", "where text is typed, ? is text"


async def test_a_dialog_that_is_closed_before_it_is_drawn_does_not_end_the_dashboard(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        title, text = Content("One pattern"), Content("one.json cannot be read")
        patterns = sorted(user.app.view.snapshot.patterns)[:2]
        dialogs = (
            FindingsDialog([text]),
            AskText(title, "text"),
            Confirm(title, verb="undo"),
            Help(Topic("nothing", "about nothing", ())),
            ViewList(user.app.user_state, BUILT_IN[0]),
            BulkDialog(Verb.DEPRECATE, patterns, VERBS[Verb.DEPRECATE], None),
        )
        for dialog in dialogs:
            user.app.push_screen(dialog)
            dialog.dismiss(None)  # it has no parts yet
            await user.settled()
            assert user.app.screen is user.place


async def test_a_key_that_cannot_act_gives_a_reason_in_empty_lists_too(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with open_dashboard(project, home) as user:
        for place, action, reason in (
            ("loops", "next_tab", "The list is empty"),
            ("patterns", "mark", "The list is empty"),
            ("patterns", "down", "The list is empty"),
            ("patterns", "back", "Nothing to leave"),
            ("patterns", "undo", "Nothing to undo"),
            ("patterns", "redo", "Nothing to redo"),
            ("review", "go_review", "Review is already open"),
        ):
            user.app.go(place)
            await user.settled()
            assert reason in (user.place.reason_against(action) or ""), (place, action)
        await user.go("patterns")
        assert "not now: p promote" in user.key_line()
        await user.press("p")
        assert "no pattern under the cursor" in user.toasts()[-1]
        await user.go("loops")
        await user.press("enter", "left", "right", "v", "l", "p", "r", "o", "y", "S", "escape")


async def test_the_help_can_be_read_in_a_small_pane_of_a_terminal(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(30, 8), place="now") as user:
        await user.press("?")
        assert isinstance(user.app.screen, Help)
        assert user.app.screen.query_one(TextPane).size.height >= 6


async def test_a_dialog_is_as_high_as_its_text_and_shows_its_keys(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24)) as user:
        for lines, shown in {4: 4, 90: 12}.items():
            dialog = PreviewDialog(Content("A question"), [Content(f"line {n}") for n in range(lines)], verb="accept")
            user.app.push_screen(dialog)
            await user.until(
                lambda: dialog.is_mounted and dialog.query_one(TextPane).size.height == shown,  # noqa: B023
                "the text",
            )
            box = dialog.query_one(".dialog")
            rows = user.text().splitlines()[box.region.y : box.region.bottom]
            assert any("a accept" in row and "esc close" in row for row in rows)
            assert box.region.bottom < 24, "the key line stays visible"
            await user.press("escape")


def changed(kind: str) -> ContextChange:
    return ContextChange(kind, "id", "title", "before", "after", (1, 2))


FORECAST = BulkForecast(
    asked=2000,
    decided=1990,
    refused=(("it is already deprecated", 7), ("\x1b[31m", 1), ("a", 1), ("b", 1)),
    turned=((Maturity.PROVEN, Maturity.DEPRECATED, 1500),),
    effect=Forecast(
        loops=4,
        paused=1,
        tasks=20,
        changed=tuple(map(changed, ["loop"] * 2 + ["paused"] + ["task"] * 5)),
        tokens=(6650, 6412),
    ),
)


def test_the_preview_lists_changes_skipped_patterns_and_recipients() -> None:
    text = preview(FORECAST, DRAWN).plain
    assert "1,500 of 2,000 patterns change state, 490 keep the state" in text
    assert "1,500  ● proven → ⊘ deprecated" in text
    assert "10 skipped" in text and "7  it is already deprecated" in text and "1  for other reasons" in text
    assert "injected text changes for 2 of 4 running loops and 5 of the last 20 tasks" in text
    assert "1 of 1 paused loop on resume" in text
    assert "6,650 → 6,412" in text
    assert "\x1b" not in text
    assert "* proven -> x deprecated" in preview(FORECAST, ASCII).plain
    assert "Computing" in preview(None, DRAWN).plain


def test_the_progress_bar_fills_and_the_write_is_reported() -> None:
    assert draw_progress(500, 2000, ASCII).plain == f"{'#' * 10}{'-' * 30}  500 of 2,000"
    assert "writing" in draw_progress(2000, 2000, ASCII).plain
    assert draw_progress(0, 2000, ASCII).plain.endswith("  reading…"), "no pattern is done while files are read"


def test_the_first_patterns_are_named_and_the_row_under_the_cursor_if_it_is_not_among_them() -> None:
    text = name_patterns(["one", "two\x1b"], 12, "three", is_tall=True).plain
    assert text.splitlines()[:3] == ["  one", "  two␛", "  and 12 more"]
    assert text.splitlines()[3] == "Not selected, though under the cursor: three"
    assert name_patterns(["one", "two"], 0, "", is_tall=False).plain == "  one · two"


def states(user: User, keys: list[str]) -> list[Maturity]:
    return [user.app.view.assessment(key).state for key in keys]


async def test_a_bulk_deprecation_of_five_is_undone_at_once(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.filter("is:injectable")
        await user.press("g", "m", "m", "m", "m", "m")
        keys = [key for key in user.table.keys if key in user.table.marked]
        before, known = states(user, keys), len(user.app.view.snapshot.decisions)
        assert len(keys) == 5
        await user.press("d")
        await user.sees("Deprecate 5 patterns?", "One undo", "5 of 5 patterns change state", "reason (required)")
        titles = [pattern_title(user.app.view.pattern(key)) for key in keys]
        await user.sees("Not selected, though under the cursor", *(title[:12] for title in titles))
        await user.sees("running loops", "of the last", "injected text changes", "tokens in total")
        await user.press("escape")
        assert states(user, keys) == before and user.table.marked == set(keys)
        await user.press("d", "enter")
        await user.sees("Type a text first")
        await user.type("obsolete")
        await user.decides("enter")
        assert set(states(user, keys)) == {Maturity.DEPRECATED}
        assert user.table.marked == frozenset()
        made = user.app.view.snapshot.decisions[known:]
        assert sorted(decision.subject for decision in made) == sorted(keys)
        assert {(decision.verb, decision.reason) for decision in made} == {(Verb.DEPRECATE, "obsolete")}
        assert len({decision.act for decision in made}) == 1
        await user.go("log")
        assert isinstance(user.place, LogScreen)
        assert "5 patterns" in user.row(user.table.keys[0]), "one row for what was decided at once"
        await user.decides("u")
        assert states(user, keys) == before


async def test_refusals_are_shown_before_the_decision_and_skipped(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("state:deprecated")
        deprecated = list(user.table.keys)
        await user.press("asterisk", "p")
        assert isinstance(user.app.screen, BulkDialog)
        await user.sees("is deprecated", "reset it first")
        await user.decides("enter")
        assert set(states(user, deprecated)) == {Maturity.DEPRECATED}

        await user.filter("state:candidate")
        withheld = [key for key in user.table.keys if user.app.view.assessment(key).quarantined]
        others = [key for key in user.table.keys if key not in withheld]
        assert withheld and others
        await user.press("asterisk", "p")
        await user.sees(f"{len(withheld)} skipped", "is in quarantine: read it and release it by itself")
        await user.decides("enter")
        assert any(f"promoted {len(others)} of" in toast for toast in user.toasts())
        assert any(f"skipped {len(withheld)} in quarantine" in toast for toast in user.toasts())
        assert set(states(user, others)) == {Maturity.PROVEN}
        assert all(user.app.view.assessment(key).quarantined for key in withheld)


async def test_the_dialog_can_be_closed_while_it_runs(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("state:established type:error")
        keys = list(user.table.keys)
        await user.press("asterisk", "p")
        async with user.engine_held():
            await user.press("enter")
            await user.sees("continue in the background")
            await user.press("escape")
            assert user.place.place == "patterns"
        await user.settled()
        assert set(states(user, keys)) == {Maturity.PROVEN}
        assert any(f"promoted {len(keys)} patterns" in toast for toast in user.toasts())
