from __future__ import annotations

import json
import re
from pathlib import Path

from textual.widgets import Input, Static

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Deprecate
from core.decisions.curator import Curator
from core.records.patterns import Maturity
from core.show.filter_parser import FieldKind
from core.show.pattern_filter import PATTERN_FIELDS
from tests.factories import decide
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.drawing import TextPane
from tui.kit.fields import FilterLine
from tui.kit.looks import DRAWN
from tui.screens.dialogs import AskLine
from tui.screens.document import document_lines
from tui.screens.patterns import TABS, tab_blocks

PROMOTED = "pat-success-profile-first-009"
ESTABLISHED = "pat-error-unique-violation-007"
DEPRECATED = "pat-error-cors-preflight-008"


async def at_pattern(user: User, key: str) -> None:
    await user.go("patterns")
    user.place.go_to(key)
    await user.pilot.pause()
    assert user.table.cursor_key == key


def state_of(user: User, key: str) -> Maturity:
    return user.app.view.assessment(key).state


async def test_the_list_narrows_with_every_key_and_escape_clears_the_filter(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        everything = len(user.table.keys)
        assert everything == 40
        await user.press("slash")
        assert user.in_focus(user.place.query_one(Input))
        counts = []
        for part in ("type:error", " uses:>3", " null"):
            await user.type(part)
            counts.append(len(user.table.keys))
        assert everything > counts[0] > counts[1] > counts[2] > 0
        await user.sees(f"{counts[2]} of 40")
        await user.press("enter")
        assert user.in_focus(user.table)
        await user.press("escape")
        assert len(user.table.keys) == 40 and user.in_focus(user.table)
        await user.filter("colour:red")
        await user.sees("unknown field 'colour'", "No matches. Esc clears the filter.")
        await user.filter("uses:>")
        await user.sees("needs a number")
        assert len(user.table.keys) == 40


async def test_the_problem_of_a_filter_is_shown_whole_until_the_filter_is_valid(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.filter("minimum_success_rate_of_the_pattern:>0.5 null")
        note = user.place.query_one(".filter-note", Static)
        known = ", ".join(sorted(name for name, kind in PATTERN_FIELDS.items() if kind is not FieldKind.PALETTE))
        term = "minimum_success_rate_of_the_pattern:>0.5"
        whole = f"unknown field 'minimum_success_rate_of_the_pattern' in {term}; use {known}"
        rows = user.text().splitlines()[note.region.y : note.region.bottom]
        assert len(rows) > 1 and " ".join(row.strip() for row in rows) == whole
        await user.filter("null")
        assert not note.display


async def test_a_list_is_sorted_by_key_and_by_heading_and_the_order_is_saved(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await at_pattern(user, ESTABLISHED)
        orders = {user.table.keys[0]}
        for _ in range(7):
            await user.press("S")
            assert user.table.cursor_key == ESTABLISHED, "the cursor stays on its record"
            orders.add(user.table.keys[0])
        assert len(orders) > 3
        await user.press("S")
        await user.sees("by score")
        header = "".join(segment.text for segment in user.table.render_line(0))
        for arrow, is_descending in (("↓", True), ("↑", False)):
            await user.pilot.click(user.table, offset=(header.index("used "), 0))
            await user.sees(f"used {arrow}")
            uses = [user.app.view.assessment(key).uses for key in user.table.keys]
            assert uses == sorted(uses, reverse=is_descending)
        order = list(user.table.keys)
    async with open_dashboard(sample, home, place="patterns", remembers=True) as user:
        assert list(user.table.keys) == order


async def test_deprecating_needs_a_reason_and_other_decisions_are_undone_and_redone(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await at_pattern(user, ESTABLISHED)
        before = len(user.app.view.snapshot.decisions)
        await user.press("d")
        await user.type("no")
        await user.decides("escape")
        assert user.place.place == "patterns"
        assert len(user.app.view.snapshot.decisions) == before
        await user.press("d")
        assert isinstance(user.app.screen, AskLine)
        await user.press("enter")
        await user.sees("Type a text first")
        assert isinstance(user.app.screen, AskLine)
        await user.type("too slow now")
        await user.decides("enter")
        assert state_of(user, ESTABLISHED) is Maturity.DEPRECATED
        assert user.app.view.snapshot.decisions[-1].reason == "too slow now"
        user.place.go_to(ESTABLISHED)
        await user.sees("“too slow now”")

        await at_pattern(user, PROMOTED)
        computed = user.app.view.assessment(PROMOTED).computed
        await user.decides("r")
        assert state_of(user, PROMOTED) is computed
        user.place.go_to(PROMOTED)
        await user.press("c")
        await user.type("seen twice")
        await user.decides("enter")
        assert "seen twice" in str(user.app.view.snapshot.curation.notes[PROMOTED][-1])
        await user.decides("u")
        assert PROMOTED not in user.app.view.snapshot.curation.notes
        await user.decides("u")
        assert state_of(user, PROMOTED) is Maturity.PROVEN
        await user.decides("U")
        assert state_of(user, PROMOTED) is computed
        user.place.go_to(PROMOTED)
        user.place.show_tab(TABS.index("History"))  # type: ignore[attr-defined]
        await user.sees("undo", "redo", "seen twice")


async def test_promoting_changes_the_row_and_the_file_and_is_refused_with_a_reason(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        view = user.app.view
        ruled = next(
            key for key in view.snapshot.patterns
            if view.assessment(key).state is Maturity.DEPRECATED and view.assessment(key).pin is None
        )  # fmt: skip
        await at_pattern(user, ESTABLISHED)
        assert "estab" in user.row(ESTABLISHED) and "promote" in user.key_line()
        await user.press("r")
        assert "It is not pinned" in user.toasts()[-1]
        await user.decides("p")
        assert state_of(user, ESTABLISHED) is Maturity.PROVEN
        assert "prov" in user.row(ESTABLISHED)
        assert any("promoted" in toast and ESTABLISHED in toast for toast in user.toasts())
        assert re.search(r"u undo:? promote", user.key_line())
        file = ProjectPaths(sample).pattern_file("error")
        assert '"state": "proven"' in json.dumps(json.loads(file.read_text()))
        assert user.table.cursor_key != ESTABLISHED, "the row moved, the cursor kept its place"
        await at_pattern(user, ruled)
        await user.press("p")
        assert "reset it first" in user.toasts()[-1]
        await user.decides("r")
        await user.decides("p")
        assert state_of(user, ruled) is Maturity.PROVEN
        await user.filter("nothing-has-this-name")
        for key, why in (("p", "no pattern under the cursor"), ("enter", "The list is empty")):
            await user.press(key)
            assert why in user.toasts()[-1]


async def test_each_tab_shows_its_part_and_tabs_turn_around_by_key_and_mouse(sample: Path, home: Path) -> None:
    shown = {
        "Overview": ("success rate", "Tags:", "File:"),
        "Evidence": ("Weighed by age", "half-life 90 days", "when  new \u2192 today  use"),
        "Lineage": ("found",),
        "Why": ("proven",),
        "History": ("No decision about this pattern",),
        "Anchors": ("Hints on the place", "Record:"),
    }
    async with open_dashboard(sample, home, place="patterns") as user:
        await at_pattern(user, "pat-error-type-mismatch-003")
        await user.press("enter")
        for tab in TABS:
            await user.sees(*shown[tab])
            await user.press("right_square_bracket")
        await user.sees("success rate")
        await user.press("left_square_bracket", "left_square_bracket")
        await user.sees("No decision about this pattern")
        await user.press("escape", "right_square_bracket", "right_square_bracket")
        line = user.place.query_one("TabLine")
        await user.pilot.click(line, offset=(14, 1))
        await user.sees("Weighed by age")
        await user.press("w")
        await user.until(lambda: "needs" in user.text() or "proven" in user.place.query_one("TextPane").plain)  # type: ignore[attr-defined]


async def test_enter_opens_the_details_and_escape_goes_back_step_by_step(sample: Path, home: Path) -> None:
    key = "pat-error-null-check-015"
    async with open_dashboard(sample, home, place="patterns", size=(80, 24)) as user:
        await user.filter(f"id:{key}")
        await user.press("y")
        assert user.app.clipboard == key and "Copied" in user.toasts()[-1]
        await user.press("enter", "down", "down")
        pane = user.place.query_one(TextPane)
        assert pane.scroll_y > 0 and user.table.cursor_key == key
        assert user.place.reason_against("open") is not None, "enter does nothing there, so it is not among the keys"
        await user.press("y")
        assert "success rate" in user.app.clipboard
        await user.decides("p")
        assert key in user.app.view.snapshot.curation.pins
        assert not user.shows_list()
        await user.press("escape")
        assert user.shows_list() and user.in_focus(user.table) and user.table.cursor_key == key
        await user.press("tab")
        assert not user.in_focus(user.table)
        await user.press("escape")
        assert user.in_focus(user.table) and user.place.query_one(FilterLine).text
        await user.press("escape")
        assert user.place.query_one(FilterLine).text == ""
        await user.press("i")
        await user.arrives("context")


async def test_keys_move_select_all_filtered_rows_and_go_from_question_to_question(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.press("j", "j", "k")
        assert user.table.cursor == 1
        await user.press("down", "up", "down")
        assert user.table.cursor == 2
        await user.press("G")
        assert user.table.cursor == 39
        await user.press("g", "pagedown")
        assert user.table.cursor == user.table.page
        await user.press("pageup")
        assert user.table.cursor == 0
        await user.filter("type:template")
        shown = set(user.table.keys)
        await user.press("asterisk")
        assert user.table.marked == shown
        await user.press("asterisk")
        assert user.table.marked == frozenset()

        await user.press("escape")
        view = user.app.view
        waiting = {item.subject for item in view.queue} & view.snapshot.patterns.keys()
        seen = []
        for _ in waiting:
            await user.press("n")
            seen.append(user.table.cursor_key)
        assert set(seen) == waiting
        await user.press("N")
        assert user.table.cursor_key == seen[-2]


async def test_a_quarantined_pattern_is_marked_and_found_by_filter(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await at_pattern(user, ESTABLISHED)
        await user.press("Q")
        assert isinstance(user.app.screen, AskLine)
        await user.type("who wrote this")
        await user.decides("enter")
        assert user.app.view.assessment(ESTABLISHED).quarantined
        assert "◌ quar" in user.row(ESTABLISHED)
        user.place.go_to(ESTABLISHED)
        await user.sees("Not given to agents until a person has read its text: see Review.")
        await user.press("Q")
        assert "already in quarantine" in user.toasts()[-1]
        await user.filter("is:quarantined")
        assert set(user.table.keys) == {ESTABLISHED, "pat-success-openapi-first-007"}


async def test_titles_have_priority_over_types_and_ids(sample: Path, home: Path) -> None:
    rows: list[tuple[int, list[str], list[str]]] = [
        (80, ["● proven", "Profile first  Measure the query", "5 of 5"], ["pat-success", " success "]),
        (120, ["● proven", "Profile first  Measure the query plan", "5 of 5", " success "], ["pat-success"]),
        (200, ["● proven", "Profile first  Measure the query plan", "5 of 5"], ["pat-success"]),
        (260, ["● proven", "pat-success-profile-first-009", "5 of 5"], []),
    ]
    async with open_dashboard(sample, home, place="patterns") as user:
        for width, seen, unseen in rows:
            await user.pilot.resize_terminal(width, 40)
            await user.settled()
            row = user.row("pat-success-profile-first-009")
            assert all(text in row for text in seen), row
            assert not any(text in row for text in unseen), row


async def test_the_cursor_keeps_its_position_after_a_decision(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        user.table.cursor = 4
        await user.settled()
        before = list(user.table.keys)
        await user.press("d")
        await user.type("obsolete")
        await user.decides("enter")
        assert user.table.keys.index(before[4]) > 20, "the row has moved"
        assert (user.table.cursor, user.table.cursor_key) == (4, before[5])
        await user.press("j", "k")
        key = user.table.cursor_key
        ben = Curator(ProjectPaths(sample), Settings(), by="ben")
        decide(
            ben, Deprecate, user.app.view.pattern(before[0]), user.app.view.assessment(before[0]), now=NOW, reason="x"
        )
        await user.until(lambda: user.table.keys[0] != before[0], "what ben decided")
        assert user.table.cursor_key == key, "what others decide moves the row, not the cursor off its record"


async def test_a_pin_shows_no_decay_and_a_decision_shows_its_author(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        pinned = next(key for key in user.table.keys if user.app.view.assessment(key).is_settled)
        free = next(key for key in user.table.keys if user.app.view.board.next_change(key) is not None
                    and not user.app.view.assessment(key).is_settled)  # fmt: skip
        for key, is_shown in ((pinned, True), (free, False)):
            assert user.table.go_to(key)
            await user.settled()
            assert ("does not change with age" in user.text()) is is_shown
            assert ("decays to" in user.text()) is not is_shown
        assert user.table.go_to(pinned)
        await user.press("w")
        await user.settled()
        assert "at any age (pinned)" in user.place.query_one(TextPane).plain
        doubted = next(key for key in user.table.keys if user.app.view.assessment(key).contradicted)
        pattern = user.app.view.pattern(doubted)
        for me, whose in (("dana", "your"), ("ana", "dana's")):
            lines = "\n".join(
                line.plain
                for line in document_lines(tab_blocks(user.app.view, pattern, "Overview", me), user.app.view.now, DRAWN)
            )
            assert f"Later evidence contradicts {whose} decision" in lines


async def test_the_list_of_findings_is_as_high_as_its_content(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(120, 40)) as user:
        await user.press("F")
        await user.settled()
        dialog = user.app.screen.query_one(".dialog")
        lines = user.app.screen.query_one(TextPane).virtual_size.height
        assert dialog.size.height <= lines + 8 < 20
        assert "File problems" in user.text() and "esc close" in user.text()
