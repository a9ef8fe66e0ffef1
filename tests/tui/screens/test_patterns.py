from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from textual.widgets import Input

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.curator import Curator
from core.records.patterns import Maturity
from tests.sample.decisions import SUSPECTED
from tests.tui.story import NOW, Story, make_app, story
from tui.present import patterns as present
from tui.present.glyphs import DRAWN
from tui.present.patterns import TABS
from tui.screens.bulk_decision import BulkDialog
from tui.screens.dialogs import AskLine
from tui.widgets.filter_line import FilterLine
from tui.widgets.text_pane import TextPane

PROMOTED = "pat-success-profile-first-009"
ESTABLISHED = "pat-error-unique-violation-007"
DEPRECATED = "pat-error-cors-preflight-008"


async def at_pattern(told: Story, key: str) -> None:
    await told.go("patterns")
    told.place.go_to(key)
    await told.pilot.pause()
    assert told.table.cursor_key == key


def state_of(told: Story, key: str) -> Maturity:
    return told.app.view.assessment(key).state


async def test_the_list_narrows_with_every_key(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        everything = len(told.table.keys)
        assert everything == 40
        await told.press("slash")
        assert told.in_focus(told.place.query_one(Input))
        counts = []
        for part in ("type:error", " uses:>3", " null"):
            await told.type(part)
            counts.append(len(told.table.keys))
        assert everything > counts[0] > counts[1] > counts[2] > 0
        await told.sees(f"{counts[2]} of 40")
        await told.press("enter")
        assert told.in_focus(told.table)
        await told.press("escape")
        assert len(told.table.keys) == 40


async def test_what_a_filter_cannot_read_is_said_and_nothing_found_says_how_to_go_on(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("colour:red")
        await told.sees("unknown field 'colour'", "nothing fits this filter; esc takes it off")
        await told.filter("uses:>")
        await told.sees("needs a number")
        assert len(told.table.keys) == 40


async def test_sorting_shows_the_first_of_the_new_order(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        orders = {told.table.keys[0]}
        for _ in range(7):
            await told.press("S")
            assert told.table.cursor_key == ESTABLISHED
            orders.add(told.table.keys[0])
        assert len(orders) > 3
        await told.press("S")
        await told.sees("score ↓")


async def test_a_heading_sorts_and_turns_around(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        header = "".join(segment.text for segment in told.table.render_line(0))
        await told.pilot.click(told.table, offset=(header.index("uses"), 0))
        await told.sees("uses ↓")
        uses = [told.app.view.assessment(key).uses for key in told.table.keys]
        assert uses == sorted(uses, reverse=True)
        header = "".join(segment.text for segment in told.table.render_line(0))
        await told.pilot.click(told.table, offset=(header.index("uses"), 0))
        await told.sees("uses ↑")
        assert [told.app.view.assessment(key).uses for key in told.table.keys] == sorted(uses)


async def test_a_promoted_pattern_changes_its_row_its_file_and_its_key(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        assert "estab" in told.row(ESTABLISHED)
        assert "promote" in told.key_line()
        await told.decides("p")
        assert state_of(told, ESTABLISHED) is Maturity.PROVEN
        assert "prov" in told.row(ESTABLISHED)
        assert any("promoted" in toast and ESTABLISHED in toast for toast in told.toasts())
        assert re.search(r"u undo:? promote", told.key_line())
        file = ProjectPaths(sample).pattern_file("error")
        assert '"state": "proven"' in json.dumps(json.loads(file.read_text()))
        assert told.table.cursor_key != ESTABLISHED, "the row moved, the cursor kept its place"
        told.place.go_to(ESTABLISHED)
        await told.decides("p")
        assert "promoted already" in told.toasts()[-1]


async def test_deprecating_wants_a_reason(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        await told.press("d")
        assert isinstance(told.app.screen, AskLine)
        await told.press("enter")
        await told.sees("a reason is needed")
        assert isinstance(told.app.screen, AskLine)
        await told.type("too slow now")
        await told.decides("enter")
        assert state_of(told, ESTABLISHED) is Maturity.DEPRECATED
        assert told.app.view.snapshot.decisions[-1].reason == "too slow now"
        told.place.go_to(ESTABLISHED)
        await told.sees("“too slow now”")


async def test_escape_takes_a_question_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        before = len(told.app.view.snapshot.decisions)
        await told.press("d")
        await told.type("no")
        await told.decides("escape")
        assert told.place.place == "patterns"
        assert len(told.app.view.snapshot.decisions) == before


async def test_reset_note_undo_and_redo(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, PROMOTED)
        computed = told.app.view.assessment(PROMOTED).computed
        await told.decides("r")
        assert state_of(told, PROMOTED) is computed
        told.place.go_to(PROMOTED)
        await told.press("c")
        await told.type("seen twice")
        await told.decides("enter")
        assert told.app.view.snapshot.curation.notes[PROMOTED][-1].reason == "seen twice" or any(
            "seen twice" in str(d) for d in told.app.view.snapshot.curation.notes[PROMOTED]
        )
        await told.decides("u")
        assert PROMOTED not in told.app.view.snapshot.curation.notes
        await told.decides("u")
        assert state_of(told, PROMOTED) is Maturity.PROVEN
        await told.decides("U")
        assert state_of(told, PROMOTED) is computed
        told.place.go_to(PROMOTED)
        told.place.show_tab(TABS.index("History"))  # type: ignore[attr-defined]
        await told.sees("undo", "redo", "seen twice")


async def test_a_key_that_cannot_act_says_why(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, DEPRECATED)
        for key, why in (
            ("p", "a deprecated pattern can't be promoted: reset it first"),
            ("d", "it is deprecated already"),
        ):
            await told.press(key)
            assert why in told.toasts()[-1]
        assert "reset" in told.key_line()
        await at_pattern(told, ESTABLISHED)
        await told.press("r")
        assert "nobody has pinned it" in told.toasts()[-1]
        await told.filter("nothing-has-this-name")
        for key, why in (
            ("p", "no pattern under the cursor"),
            ("enter", "the list is empty"),
            ("y", "the list is empty"),
        ):
            await told.press(key)
            assert why in told.toasts()[-1]


async def test_what_the_rules_deprecate_can_be_reset_once_and_then_promoted(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        view = told.app.view
        ruled = next(
            key for key in view.snapshot.patterns
            if view.assessment(key).state is Maturity.DEPRECATED and view.assessment(key).pin is None
        )  # fmt: skip
        await at_pattern(told, ruled)
        await told.press("p")
        assert "reset it first" in told.toasts()[-1]
        await told.decides("r")
        assert "nobody has pinned it" not in told.toasts()[-1]
        await told.press("r")
        assert "nobody has pinned it" in told.toasts()[-1]
        await told.decides("p")
        assert state_of(told, ruled) is Maturity.PROVEN


async def test_many_are_marked_and_decided_together(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("state:established type:error")
        keys = list(told.table.keys)
        await told.press("m", "m")
        assert told.table.marked == set(keys[:2])
        await told.sees("2 marked", "promote 2")
        await told.press("p")
        assert isinstance(told.app.screen, BulkDialog)
        await told.press("escape")
        assert state_of(told, keys[0]) is Maturity.ESTABLISHED
        assert told.table.marked == set(keys[:2])
        await told.press("p")
        await told.decides("enter")
        assert {state_of(told, key) for key in keys[:2]} == {Maturity.PROVEN}
        assert "promoted 2 patterns" in told.toasts()[-1]
        assert told.table.marked == frozenset()
        await told.decides("u")
        assert {state_of(told, key) for key in keys[:2]} == {Maturity.ESTABLISHED}


async def test_what_is_refused_among_many_is_told_and_the_rest_holds(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, DEPRECATED)
        told.table.toggle_mark([DEPRECATED, ESTABLISHED])
        await told.press("p")
        await told.decides("enter")
        assert state_of(told, ESTABLISHED) is Maturity.PROVEN
        assert state_of(told, DEPRECATED) is Maturity.DEPRECATED
        assert any("promoted 1 of 2 patterns" in toast for toast in told.toasts())
        assert any(DEPRECATED in toast for toast in told.toasts())


async def test_mark_all_marks_what_the_filter_shows(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("type:template")
        shown = set(told.table.keys)
        await told.press("M")
        assert told.table.marked == shown
        await told.press("M")
        assert told.table.marked == frozenset()


@pytest.mark.parametrize(
    ("tab", "texts"),
    [
        ("Overview", ("success rate", "Tags:", "File:")),
        ("Evidence", ("Counted today", "half-life 90 days")),
        ("Lineage", ("discovered",)),
        ("Why", ("proven",)),
        ("History", ("Nobody has decided",)),
    ],
)
async def test_each_tab_tells_its_part(sample: Path, home: Path, tab: str, texts: tuple[str, ...]) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, "pat-error-type-mismatch-003")
        for _ in range(TABS.index(tab)):
            await told.press("right_square_bracket")
        await told.press("enter")
        await told.sees(*texts)


async def test_tabs_turn_around_by_key_and_mouse(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        await told.press("left_square_bracket")
        await told.sees("Nobody has decided")
        await told.press("right_square_bracket")
        await told.sees("success rate")
        line = told.place.query_one("TabLine")
        await told.pilot.click(line, offset=(14, 1))
        await told.sees("Counted today")
        await told.press("w")
        await told.until(lambda: "needs" in told.text() or "proven" in told.place.query_one("TextPane").plain)  # type: ignore[attr-defined]


async def test_enter_opens_the_details_and_escape_goes_back_step_by_step(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("type:error")
        first = told.table.cursor_key
        await told.press("enter")
        assert not told.shows_list()
        await told.press("j", "k", "escape")
        assert told.shows_list()
        assert told.in_focus(told.table)
        assert told.table.cursor_key == first
        await told.press("tab")
        assert not told.in_focus(told.table)
        await told.press("escape")
        assert told.in_focus(told.table)
        assert told.place.query_one(FilterLine).text == "type:error"
        await told.press("escape")
        assert told.place.query_one(FilterLine).text == ""


async def test_n_goes_from_question_to_question(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        view = told.app.view
        waiting = {item.subject for item in view.queue} & view.snapshot.patterns.keys()
        seen = []
        for _ in waiting:
            await told.press("n")
            seen.append(told.table.cursor_key)
        assert set(seen) == waiting
        await told.press("N")
        assert told.table.cursor_key == seen[-2]


async def test_i_shows_the_pattern_in_a_context(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, "pat-error-type-mismatch-003")
        await told.press("i")
        await told.until(lambda: told.place.place == "context", "Context in front")
        await told.sees("## Cross-Loop Learning Context", "pat-error-type-mismatch-003")


async def test_vim_keys_move(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.press("j", "j", "k")
        assert told.table.cursor == 1
        await told.press("down", "up", "down")
        assert told.table.cursor == 2
        await told.press("G")
        assert told.table.cursor == 39
        await told.press("g", "pagedown")
        assert told.table.cursor == told.table.page
        await told.press("pageup")
        assert told.table.cursor == 0


async def test_the_id_or_the_text_is_copied(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        await told.press("y")
        assert told.app.clipboard == ESTABLISHED
        assert "copied" in told.toasts()[-1]
        await told.press("enter", "y")
        assert "success rate" in told.app.clipboard


async def test_the_order_is_kept_between_runs(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.press("S", "S")
        kept = dict(told.app.user_state.values)
        order = list(told.table.keys)
    app = make_app(sample, home)
    app.user_state.values = kept
    async with app.run_test(size=(120, 40)) as pilot:
        again = Story(app, pilot)
        await again.until(lambda: app.progress is None, "the first load")
        await again.go("patterns")
        assert list(again.table.keys) == order


async def test_a_state_that_does_not_exist_is_named(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("state:bogus")
        await told.sees("state: must be one of")


async def test_escape_in_the_filter_takes_it_off(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.press("slash", "n", "u", "l", "l")
        assert len(told.table.keys) < 40
        await told.press("escape")
        assert len(told.table.keys) == 40
        assert told.in_focus(told.table)


async def test_a_pattern_in_quarantine_says_so_in_its_row_and_is_found_by_it(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_pattern(told, ESTABLISHED)
        await told.press("Q")
        assert isinstance(told.app.screen, AskLine)
        await told.type("who wrote this")
        await told.decides("enter")
        assert told.app.view.assessment(ESTABLISHED).quarantined
        assert "◌ quar" in told.row(ESTABLISHED)
        told.place.go_to(ESTABLISHED)
        await told.sees("No loop gets it until a person has read its text: see Review.")
        await told.press("Q")
        assert "in quarantine already" in told.toasts()[-1]
        await told.filter("is:quarantined")
        assert set(told.table.keys) == {ESTABLISHED, SUSPECTED}


async def test_marked_patterns_are_archived_for_a_reason_and_come_back(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(160, 50)) as told:
        await told.go("patterns")
        await told.filter("is:injectable type:template")
        first, second = told.table.keys[:2]
        await told.press("m", "m", "D")
        await told.type("not used")
        await told.decides("enter")
        assert {first, second}.isdisjoint(told.table.keys)
        await told.decides("u")
        assert {first, second} <= set(told.table.keys)
        told.place.go_to(second)
        await told.press(*["right_square_bracket"] * TABS.index("History"))
        await told.sees("archive", "(taken back)")


@pytest.mark.parametrize(
    ("width", "seen", "unseen"),
    [
        (80, ["● prov", "Measure the query plan before adding an"], ["0.69", "pat-success"]),
        (120, ["● proven", "Measure the query plan before adding an index", "0.69–1.00"], ["pat-success", "━"]),
        (200, ["● proven", "Measure the query plan before adding an index", "0.69 ┄┄┄┄┄┄━━╋ 1.00"], ["pat-success"]),
        (260, ["● proven", "pat-success-profile-first-009", "0.69 ┄┄┄┄┄┄━━╋ 1.00"], []),
    ],
)
async def test_titles_come_before_ids_and_bars(
    sample: Path, home: Path, width: int, seen: list[str], unseen: list[str]
) -> None:
    async with story(sample, home, size=(width, 40)) as told:
        await told.go("patterns")
        row = told.row("pat-success-profile-first-009")
        assert all(text in row for text in seen), row
        assert not any(text in row for text in unseen), row


async def test_after_a_decision_the_cursor_keeps_its_place_in_the_list(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        told.table.cursor = 4
        await told.settled()
        before = list(told.table.keys)
        await told.press("d")
        await told.type("obsolete")
        await told.decides("enter")
        assert told.table.keys.index(before[4]) > 20, "the row has moved"
        assert (told.table.cursor, told.table.cursor_key) == (4, before[5])
        await told.press("j", "k")
        key = told.table.cursor_key
        Curator(ProjectPaths(sample), Settings(), by="ben").deprecate(
            told.app.view.pattern(before[0]), told.app.view.assessment(before[0]), now=NOW, reason="x"
        )
        await told.until(lambda: told.table.keys[0] != before[0], "what ben decided")
        assert told.table.cursor_key == key, "what others decide moves the row, not the cursor off its record"


async def test_after_a_sort_the_cursor_keeps_its_record(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        told.table.cursor = 7
        await told.settled()
        key = told.table.cursor_key
        await told.press("S")
        assert told.table.cursor_key == key and told.table.cursor != 7
        header = told.table.region
        await told.pilot.click(told.table, offset=(4, 0))
        await told.settled()
        assert told.table.cursor_key == key and header == told.table.region


async def test_a_pin_is_not_said_to_decay_and_a_decision_is_said_to_be_whose_it_is(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        pinned = next(key for key in told.table.keys if told.app.view.assessment(key).is_settled)
        free = next(key for key in told.table.keys if told.app.view.assessment(key).next_change is not None
                    and not told.app.view.assessment(key).is_settled)  # fmt: skip
        for key, says in ((pinned, True), (free, False)):
            assert told.table.go_to(key)
            await told.settled()
            assert ("does not change with age" in told.text()) is says
            assert ("decays to" in told.text()) is not says
        assert told.table.go_to(pinned)
        await told.press("w")
        await told.settled()
        assert "at any age: a decision holds" in told.place.query_one(TextPane).plain
        doubted = next(key for key in told.table.keys if told.app.view.assessment(key).contradicted)
        pattern = told.app.view.pattern(doubted)
        for me, whose in (("dana", "your"), ("ana", "dana's")):
            lines = "\n".join(line.plain for line in present.overview(told.app.view, pattern, DRAWN, me))
            assert f"Later evidence contradicts {whose} decision" in lines


async def test_the_list_of_findings_takes_no_more_lines_than_it_needs(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(120, 40)) as told:
        await told.press("F")
        await told.settled()
        dialog = told.app.screen.query_one(".dialog")
        lines = told.app.screen.query_one(TextPane).virtual_size.height
        assert dialog.size.height <= lines + 8 < 20
        assert "What is wrong in the files" in told.text() and "esc close" in told.text()


async def test_the_evidence_has_headings(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.press("right_square_bracket")
        await told.sees("when    new \u2192 now  how, in which loop, from what")
