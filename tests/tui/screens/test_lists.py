"""Lists with a filter, and the log."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from core.decisions.commands import Deprecate, Extract, Merge, Note, Promote, Reset
from core.records.decisions import Verb, sign_unattended
from tests.tui.user import NOW, User, open_dashboard, set_times
from tui.kit.drawing import TextPane
from tui.kit.fields import FilterLine
from tui.screens.list_screen import ListScreen


async def test_an_unreadable_list_is_not_shown_as_empty(tmp_path: Path, home: Path) -> None:
    shared = tmp_path / "broken/.aiwg/ralph/shared"
    for name in ("patterns/error-patterns.json", "patterns/anti-patterns.json", "curation/ledger.jsonl"):
        file = shared / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{garbage\n")
    set_times(tmp_path / "broken", NOW - timedelta(days=1))  # what was written just now may be torn, and is read again
    async with open_dashboard(tmp_path / "broken", home, size=(80, 24)) as user:
        await user.sees("No session yet")
        for place, text in (
            ("patterns", "2 files cannot be read, so records may be missing (F: details)"),
            ("log", "The decision log has chain breaks: "),
        ):
            await user.go(place)
            await user.sees(text)
        await user.press("F")
        await user.sees("error-patterns.json")


async def test_the_cursor_stays_on_top_while_more_records_are_read_unless_it_was_moved(
    sample: Path, home: Path
) -> None:
    async with open_dashboard(sample, home) as user:
        place, whole = user.place, user.app.view
        assert isinstance(place, ListScreen)
        newest = list(user.table.keys)[:2]
        loops = {key: loop for key, loop in whole.snapshot.loops.items() if key not in newest}
        part = replace(whole, snapshot=whole.snapshot.with_changes(loops=loops, complete=False))
        for moved, row in ((0, 0), (1, 3)):
            user.app.view = part
            place.refresh_view(part, None)
            assert place.query_one(FilterLine)._count.plain.startswith(f"{place.total(part)} read so far")
            user.table.move(moved)
            user.app.view = whole
            place.refresh_view(whole, None)
            assert user.table.cursor == row
            assert place.query_one(FilterLine)._count.plain.startswith(f"{place.total(whole)}")


async def test_an_unreadable_file_is_named_above_the_records_of_the_others(sample: Path, home: Path) -> None:
    file = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    file.write_text(file.read_text()[: file.stat().st_size // 2])
    set_times(sample, NOW - timedelta(days=1))
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.sees("error-patterns.json cannot be read, so records may be missing (F: details)")
        assert user.table.keys
        await user.filter("state:wrong")
        await user.sees("must be one of", "error-patterns.json cannot be read")


async def test_panes_are_resized_and_keep_their_sizes(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 40), place="patterns") as user:
        await user.settled()
        before = user.table.size.height
        await user.press("plus", "plus")
        larger = user.table.size.height
        assert larger > before
        await user.press("tab", "plus")
        assert user.table.size.height < larger, "the pane that has focus grows"
        await user.press("minus")
        user.app.go("loops")
        await user.settled()
        assert user.table.size.height == before, "each screen has its own sizes"
    async with open_dashboard(sample, home, size=(80, 40), place="patterns", remembers=True) as user:
        await user.until(lambda: user.table.size.height == larger, "the sizes of the last run")
        await user.pilot.resize_terminal(160, 40)
        await user.settled()
        assert user.table.size.height > 30, "side by side the panes have other sizes"


async def test_a_list_is_sorted_by_columns_and_reversed_and_lists_more_actions(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await user.press("S")
        await user.sees("what ↑")
        await user.press("S")
        await user.sees("needs ↑")
        await user.press("S")
        await user.sees("status ↑")
        first = user.table.keys[0]
        await user.press("O")
        await user.sees("status ↓")
        assert user.table.keys[0] != first
        assert ". more" in user.key_line()
        await user.press("full_stop")
        await user.sees("More actions", "open file", "reverse order")
        await user.press("escape")
        await user.filter("nothing like this")
        await user.press("full_stop")
        assert "open file" not in user.text(), "nothing is under the cursor"


async def test_fields_and_values_of_the_filter_are_completed(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.settled()
        keys, total = user.key_line(), len(user.table.keys)
        await user.press("slash")
        await user.type("stat")
        assert user.key_line().startswith(" tab state:")
        await user.press("tab")
        assert user.place.query_one(FilterLine).text == "state:"
        assert user.key_line().startswith(" tab state:candidate  state:established")
        await user.type("pr")
        assert user.key_line().startswith(" tab state:proven   ")
        await user.press("right")
        assert user.place.query_one(FilterLine).text == "state:proven"
        assert 0 < len(user.table.keys) < total
        await user.press("tab")
        assert user.in_focus(user.table), "the filter is complete: tab goes to the list"
        await user.press("slash", "escape")
        assert user.key_line() == keys


ESTABLISHED = "pat-error-unique-violation-007"


async def opens_pattern(user: User) -> None:
    """Enter on the newest decision leads to its pattern; returns to the log."""
    await user.press("g", "enter")
    await user.arrives("patterns", ESTABLISHED)
    await user.go("log")


async def test_decisions_are_newest_first_undone_ones_struck_out_and_enter_opens_the_pattern(
    sample: Path, home: Path
) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        decisions = user.app.view.snapshot.decisions
        assert list(user.table.keys) == [d.id for d in reversed(decisions)]
        user.app.decide(Promote(ESTABLISHED))
        await user.settled()
        promoted = user.table.keys[0]
        assert "promote" in user.row(promoted) and "established → proven" in user.row(promoted)
        await opens_pattern(user)
        await user.decides("u")
        assert user.app.view.snapshot.decisions[-1].verb is Verb.UNDO
        assert "undo" in user.row(user.table.keys[0])
        assert "promote duplicate key" in user.row(user.table.keys[0])
        drawn = user.table.render_line(user.table.position(promoted) + 1)  # type: ignore[operator]
        assert any(segment.style and segment.style.strike and "promote" in segment.text for segment in drawn)
        await opens_pattern(user)
        await user.decides("U")
        assert "redo" in user.row(user.table.keys[0])


async def test_the_log_is_filtered_and_shows_what_a_decision_changed(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(200, 50), place="log") as user:
        await user.filter("verb:promote by:dana")
        decisions = {d.id: d for d in user.app.view.snapshot.decisions}
        assert {(decisions[key].verb, decisions[key].by) for key in user.table.keys} == {(Verb.PROMOTE, "dana")}
        await user.filter("verb:note")
        await user.sees("A good default for every move")
        await user.filter("verb:deprecate")
        text = user.place.query_one(TextPane).plain
        for part in ("Before", "After", "Changed records", "error-patterns.json", "gateway answers preflight requests"):
            assert part in text
        assert "scan_rules" not in text


async def test_another_persons_decision_is_undone_only_after_a_question_until_none_is_left(
    sample: Path, home: Path
) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        before = user.app.view.snapshot.curation.undoable
        assert "u undo" not in user.key_line(), "what others decided is not offered"
        await user.press("u")
        await user.sees("Undo imre's decision?", "pat-error-cors-preflight-008")
        await user.decides("n")
        assert user.app.view.snapshot.curation.undoable == before
        for number in range(len(before)):
            await user.press("u")
            await user.sees("'s decision?")
            await user.decides("y")
            if number == 0:
                assert user.app.view.snapshot.curation.undoable == before[:-1]
        assert user.app.view.snapshot.curation.undoable == ()
        assert "u undo" not in user.key_line()
        await user.decides("u")
        assert "Nothing" in user.toasts()[-1]


LOOP = "ralph-move-the-settlement-jobs-from--18be2e49"
OTHER_LOOP = "ralph-raise-the-coverage-of-payment--202a7594"


async def test_an_extraction_opens_its_loop_and_a_merge_its_remaining_pattern(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        user.app.decide(Merge(ESTABLISHED, "pat-error-null-check-015"))
        await user.settled()
        await user.go("log")
        user.app.clear_notifications()
        assert "with pat-error-null" in user.row(user.table.keys[0])
        await user.sees("enter show pattern")
        user.app.decide(Extract(LOOP))
        await user.settled()
        await user.press("g")
        made = user.app.view.snapshot.decisions[-1].after["patterns"]
        assert f"{len(made)} patterns" in user.row(user.table.keys[0])
        text = user.place.query_one(TextPane).plain
        assert all(id in text for id in made)
        assert "{" not in text
        user.app.clear_notifications()
        await user.sees("enter show loop")
        await user.press("enter")
        await user.arrives("loops", LOOP)


async def test_the_decision_under_the_cursor_is_undone_unless_a_later_one_depends_on_it(
    sample: Path, home: Path
) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        for command in (
            Deprecate(ESTABLISHED, reason="first"),
            Note("pat-error-null-check-015", text="beside it"),
            Reset(ESTABLISHED),
        ):
            user.app.decide(command)
            await user.settled()
        await user.press("g", "j", "j")
        assert "depends on it" in (user.place.reason_against("undo_this") or "")
        await user.press("k")
        await user.decides("x")
        assert user.app.view.snapshot.decisions[-1].verb is Verb.UNDO
        assert "undo note Cannot read property" in " ".join(user.row(user.table.keys[0]).split())


async def test_a_broken_hash_chain_is_reported_at_the_top(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="log") as user:
        assert "chain breaks" not in user.text() and "error" not in user.text().splitlines()[0]
        ledger = user.app.project.project.ledger
        lines = ledger.read_bytes().splitlines(keepends=True)
        lines[0] = lines[0].replace(b'"by":"imre"', b'"by":"dana"', 1)
        ledger.write_bytes(b"".join(lines))
        await user.sees("The decision log has chain breaks: line 1 was changed")
        assert any(short in user.text().splitlines()[0] for short in ("1 error", "1!"))
        await user.press("F")
        await user.sees("ledger.jsonl line 1", "was changed after it was written")


async def test_what_hooks_extracted_in_one_day_is_one_row_that_enter_divides(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        for loop in (LOOP, OTHER_LOOP):
            user.app.decide(Extract(loop, unattended=True, by=sign_unattended("ana")))
            await user.settled()
        first, second = user.app.view.snapshot.decisions[-1], user.app.view.snapshot.decisions[-2]
        count = sum(len(one.after["patterns"]) for one in (first, second))
        row = user.row(first.id)
        assert "2 sessions" in row and f"{count} patterns" in row and "hook" in row and "unattended" not in row
        user.place.go_to(second.id)
        assert user.table.cursor_key == first.id
        assert "Press enter" in (user.place.reason_against("undo_this") or "")
        await user.press("enter")
        assert list(user.table.keys[:2]) == [first.id, second.id]
        assert user.place.reason_against("undo_this") is None
        await user.filter("by:hook")
        assert list(user.table.keys[:2]) == [first.id, second.id]
