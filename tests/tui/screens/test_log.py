from __future__ import annotations

from pathlib import Path

import pytest

from core.decisions.commands import Deprecate, Extract, Merge, Note, Promote, Reset
from core.records.decisions import Verb, sign_unattended
from tests.tui.user import open_dashboard
from tui.kit.text_pane import TextPane

ESTABLISHED = "pat-error-unique-violation-007"


async def test_decisions_are_newest_first_and_undone_ones_struck_out(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        decisions = user.app.view.snapshot.decisions
        assert list(user.table.keys) == [d.id for d in reversed(decisions)]
        user.app.decide(Promote(ESTABLISHED))
        await user.settled()
        assert "promote" in user.row(user.table.keys[0])
        assert "established → proven" in user.row(user.table.keys[0])
        promoted = user.table.keys[0]
        await user.decides("u")
        assert user.app.view.snapshot.decisions[-1].verb is Verb.UNDO
        assert "undo" in user.row(user.table.keys[0])
        assert "promote duplicate key" in user.row(user.table.keys[0])
        drawn = user.table.render_line(user.table.position(promoted) + 1)  # type: ignore[operator]
        assert any(segment.style and segment.style.strike and "promote" in segment.text for segment in drawn)
        await user.decides("U")
        assert "redo" in user.row(user.table.keys[0])


@pytest.mark.slow
async def test_enter_opens_the_pattern_even_from_an_undo(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        user.app.decide(Promote(ESTABLISHED))
        await user.settled()
        for keys in ((), ("u",)):
            await user.go("log")
            await user.decides(*keys)
            await user.press("g", "enter")
            await user.until(lambda: user.place.place == "patterns", "Patterns in front")
            await user.until(lambda: user.table.cursor_key == ESTABLISHED, "the pattern under the cursor")


async def test_the_log_is_filtered(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        await user.filter("verb:promote by:dana")
        decisions = {d.id: d for d in user.app.view.snapshot.decisions}
        found = [decisions[key] for key in user.table.keys]
        assert found
        assert {(d.verb, d.by) for d in found} == {(Verb.PROMOTE, "dana")}


async def test_a_decision_shows_before_after_and_written_files(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        await user.filter("verb:deprecate")
        text = user.place.query_one(TextPane).plain
        for part in ("Before", "After", "Changed records", "error-patterns.json", "gateway answers preflight requests"):
            assert part in text


async def test_a_note_is_readable(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(200, 50), place="log") as user:
        await user.filter("verb:note")
        await user.sees("A good default for every move")


@pytest.mark.slow
async def test_undo_without_a_decision_is_refused_with_a_reason(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        for _ in range(len(user.app.view.snapshot.curation.undoable)):
            await user.press("u")
            await user.sees("'s decision?")
            await user.decides("y")
        assert user.app.view.snapshot.curation.undoable == ()
        assert "u undo" not in user.key_line()
        await user.decides("u")
        assert "Nothing" in user.toasts()[-1]


@pytest.mark.slow
async def test_another_persons_decision_is_undone_only_after_a_question(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="log") as user:
        before = user.app.view.snapshot.curation.undoable
        assert "u undo" not in user.key_line(), "what others decided is not offered"
        await user.press("u")
        await user.sees("Undo imre's decision?", "pat-error-cors-preflight-008")
        await user.decides("n")
        assert user.app.view.snapshot.curation.undoable == before
        await user.press("u")
        await user.sees("Undo imre's decision?")
        await user.decides("y")
        assert user.app.view.snapshot.curation.undoable == before[:-1]


LOOP = "ralph-move-the-settlement-jobs-from--18be2e49"
OTHER_LOOP = "ralph-raise-the-coverage-of-payment--202a7594"


@pytest.mark.slow
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
        await user.until(lambda: user.place.place == "loops", "Loops in front")
        await user.until(lambda: user.table.cursor_key == LOOP, "the loop under the cursor")


@pytest.mark.slow
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


@pytest.mark.slow
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
