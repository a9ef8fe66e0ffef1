from __future__ import annotations

from pathlib import Path

from core.records.decisions import Verb
from core.records.patterns import Maturity
from tests.tui.story import Story, story
from tui.screens.bulk_decision import BulkDialog
from tui.screens.log import LogScreen


def states(told: Story, keys: list[str]) -> list[Maturity]:
    return [told.app.view.assessment(key).state for key in keys]


async def test_five_are_deprecated_at_once_and_one_undo_takes_it_back(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        await told.go("patterns")
        await told.filter("is:injectable")
        await told.press("g", "m", "m", "m", "m", "m")
        keys = [key for key in told.table.keys if key in told.table.marked]
        before, known = states(told, keys), len(told.app.view.snapshot.decisions)
        assert len(keys) == 5
        await told.press("d")
        await told.sees("Deprecate 5 patterns?", "One undo", "5 of 5 patterns change state")
        await told.sees("running loops", "of the last", "get another context", "tokens of all of them")
        await told.press("enter")
        await told.sees("this is needed")
        await told.type("obsolete")
        await told.decides("enter")
        assert set(states(told, keys)) == {Maturity.DEPRECATED}
        assert told.table.marked == frozenset()
        made = told.app.view.snapshot.decisions[known:]
        assert sorted(decision.subject for decision in made) == sorted(keys)
        assert {(decision.verb, decision.reason) for decision in made} == {(Verb.DEPRECATE, "obsolete")}
        assert len({decision.act for decision in made}) == 1
        await told.go("log")
        assert isinstance(told.place, LogScreen)
        assert len(set(told.table.keys) & {decision.id for decision in made}) == 5
        await told.decides("u")
        assert states(told, keys) == before


async def test_what_would_be_refused_is_told_before(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("state:deprecated")
        deprecated = list(told.table.keys)
        await told.press("M", "p")
        assert isinstance(told.app.screen, BulkDialog)
        await told.sees("is deprecated", "reset it first")
        await told.decides("enter")
        assert set(states(told, deprecated)) == {Maturity.DEPRECATED}


async def test_promoting_many_skips_what_is_in_quarantine_and_says_so_before_and_after(
    sample: Path, home: Path
) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("state:candidate")
        withheld = [key for key in told.table.keys if told.app.view.assessment(key).quarantined]
        others = [key for key in told.table.keys if key not in withheld]
        assert withheld and others
        await told.press("M", "p")
        await told.sees(f"{len(withheld)} skipped", "is in quarantine: read it and release it by itself")
        await told.decides("enter")
        assert any(f"promoted {len(others)} of" in toast for toast in told.toasts())
        assert any(f"skipped {len(withheld)} in quarantine" in toast for toast in told.toasts())
        assert set(states(told, others)) == {Maturity.PROVEN}
        assert all(told.app.view.assessment(key).quarantined for key in withheld)


async def test_the_dialog_can_be_left_while_it_runs(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        await told.filter("state:established type:error")
        keys = list(told.table.keys)
        await told.press("M", "p")
        async with told.engine_held():
            await told.press("enter")
            await told.sees("leave it running")
            await told.press("escape")
            assert told.place.place == "patterns"
        await told.settled()
        assert set(states(told, keys)) == {Maturity.PROVEN}
        assert any(f"promoted {len(keys)} patterns" in toast for toast in told.toasts())
