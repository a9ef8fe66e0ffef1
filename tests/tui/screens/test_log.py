from __future__ import annotations

from pathlib import Path

from core.records.decisions import Verb
from tests.tui.story import story
from tui.widgets.text_pane import TextPane

ESTABLISHED = "pat-error-unique-violation-007"


async def test_decisions_stand_newest_first_and_undone_ones_are_struck_out(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("log")
        decisions = told.app.view.snapshot.decisions
        assert list(told.table.keys) == [d.id for d in reversed(decisions)]
        told.app.decide(lambda deck: deck.promote(ESTABLISHED))
        await told.settled()
        assert "promote" in told.row(told.table.keys[0])
        assert "established → proven" in told.row(told.table.keys[0])
        promoted = told.table.keys[0]
        await told.decides("u")
        assert told.app.view.snapshot.decisions[-1].verb is Verb.UNDO
        assert "undo" in told.row(told.table.keys[0])
        assert "promote pat-error-unique" in told.row(told.table.keys[0])
        drawn = told.table.render_line(told.table.position(promoted) + 1)  # type: ignore[operator]
        assert any(segment.style and segment.style.strike and "promote" in segment.text for segment in drawn)
        await told.decides("U")
        assert "redo" in told.row(told.table.keys[0])


async def test_enter_leads_to_the_pattern_even_from_an_undo(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        told.app.decide(lambda deck: deck.promote(ESTABLISHED))
        await told.settled()
        for keys in ((), ("u",)):
            await told.go("log")
            await told.decides(*keys)
            await told.press("g", "enter")
            await told.until(lambda: told.place.place == "patterns", "Patterns in front")
            await told.until(lambda: told.table.cursor_key == ESTABLISHED, "the pattern under the cursor")


async def test_the_log_is_filtered(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("log")
        await told.filter("verb:promote by:dana")
        decisions = {d.id: d for d in told.app.view.snapshot.decisions}
        found = [decisions[key] for key in told.table.keys]
        assert found
        assert {(d.verb, d.by) for d in found} == {(Verb.PROMOTE, "dana")}


async def test_a_decision_tells_before_after_and_what_was_written(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("log")
        await told.filter("verb:deprecate")
        text = told.place.query_one(TextPane).plain
        for part in ("Before", "After", "Written", "error-patterns.json", "gateway answers preflight requests"):
            assert part in text


async def test_the_words_of_a_note_can_be_read(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(200, 50)) as told:
        await told.go("log")
        await told.filter("verb:note")
        await told.sees("A good default for every move")


async def test_there_is_always_something_to_undo_or_it_says_no(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("log")
        for _ in range(len(told.app.view.snapshot.curation.undoable)):
            await told.press("u")
            await told.sees("'s decision?")
            await told.decides("y")
        assert told.app.view.snapshot.curation.undoable == ()
        assert "undo" not in told.key_line()
        await told.decides("u")
        assert "nothing" in told.toasts()[-1]


async def test_somebody_elses_decision_is_taken_back_only_when_asked(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("log")
        before = told.app.view.snapshot.curation.undoable
        assert "u undo" not in told.key_line(), "what others decided is not offered"
        await told.press("u")
        await told.sees("Undo imre's decision?", "pat-error-cors-preflight-008")
        await told.decides("n")
        assert told.app.view.snapshot.curation.undoable == before
        await told.press("u")
        await told.sees("Undo imre's decision?")
        await told.decides("y")
        assert told.app.view.snapshot.curation.undoable == before[:-1]


LOOP = "ralph-move-the-settlement-jobs-from--18be2e49"


async def test_an_extraction_names_its_patterns_and_leads_to_its_loop_a_merge_to_what_it_kept(
    sample: Path, home: Path
) -> None:
    async with story(sample, home) as told:
        told.app.decide(lambda deck: deck.merge(ESTABLISHED, "pat-error-null-check-015"))
        await told.settled()
        await told.go("log")
        assert "with pat-error-null" in told.row(told.table.keys[0])
        assert "enter to the pattern" in told.key_line()
        told.app.decide(lambda deck: deck.extract(LOOP))
        await told.settled()
        await told.press("g")
        assert "2 patterns" in told.row(told.table.keys[0])
        text = told.place.query_one(TextPane).plain
        made = told.app.view.snapshot.decisions[-1].after["patterns"]
        assert all(id in text for id in made)
        assert "{" not in text
        assert "enter to the loop" in told.key_line()
        await told.press("enter")
        await told.until(lambda: told.place.place == "loops", "Loops in front")
        await told.until(lambda: told.table.cursor_key == LOOP, "the loop under the cursor")


async def test_the_decision_under_the_cursor_is_taken_back_unless_one_rests_on_it(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("log")
        for decide in (
            lambda deck: deck.deprecate(ESTABLISHED, reason="first"),
            lambda deck: deck.note("pat-error-null-check-015", text="beside it"),
            lambda deck: deck.reset(ESTABLISHED),
        ):
            told.app.decide(decide)
            await told.settled()
        await told.press("g", "j", "j")
        assert "rests on it" in (told.place.reason_against("undo_this") or "")
        await told.press("k")
        await told.decides("x")
        assert told.app.view.snapshot.decisions[-1].verb is Verb.UNDO
        assert "undo note pat-error-null" in " ".join(told.row(told.table.keys[0]).split())


async def test_a_log_that_is_not_as_it_was_written_says_so_at_its_top(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        await told.go("log")
        assert "not as it was written" not in told.text() and "error" not in told.text().splitlines()[0]
        ledger = told.app.project.project.ledger
        lines = ledger.read_bytes().splitlines(keepends=True)
        lines[0] = lines[0].replace(b'"reason":"', b'"reason":"Not ', 1)
        ledger.write_bytes(b"".join(lines))
        await told.sees("The log is not as it was written: line 1 was changed")
        assert any(short in told.text().splitlines()[0] for short in ("1 error", "1!"))
        await told.press("F")
        await told.sees("ledger.jsonl line 1", "was changed after it was written")
