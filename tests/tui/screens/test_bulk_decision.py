from __future__ import annotations

from pathlib import Path

import pytest

from core.records.decisions import Verb
from core.records.patterns import Maturity
from tests.tui.user import User, open_dashboard
from tui.screens.bulk_decision import BulkDialog
from tui.screens.log import LogScreen


def states(user: User, keys: list[str]) -> list[Maturity]:
    return [user.app.view.assessment(key).state for key in keys]


@pytest.mark.slow
async def test_a_bulk_deprecation_of_five_is_undone_at_once(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.filter("is:injectable")
        await user.press("g", "m", "m", "m", "m", "m")
        keys = [key for key in user.table.keys if key in user.table.marked]
        before, known = states(user, keys), len(user.app.view.snapshot.decisions)
        assert len(keys) == 5
        await user.press("d")
        await user.sees("Deprecate 5 patterns?", "One undo", "5 of 5 patterns change state")
        await user.sees("running loops", "of the last", "injected text changes", "tokens in total")
        await user.press("enter")
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
        assert len(set(user.table.keys) & {decision.id for decision in made}) == 5
        await user.decides("u")
        assert states(user, keys) == before


@pytest.mark.slow
async def test_refusals_are_shown_before_the_decision(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.filter("state:deprecated")
        deprecated = list(user.table.keys)
        await user.press("asterisk", "p")
        assert isinstance(user.app.screen, BulkDialog)
        await user.sees("is deprecated", "reset it first")
        await user.decides("enter")
        assert set(states(user, deprecated)) == {Maturity.DEPRECATED}


@pytest.mark.slow
async def test_promoting_many_skips_and_reports_quarantined_patterns(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
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


@pytest.mark.slow
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
