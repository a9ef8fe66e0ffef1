"""The question whether agents may get what a project brings from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.paths import TRUSTED_PATHS, ProjectPaths
from core.trust.own_records import OwnRecords
from core.trust.projects import find_answer, is_trusted
from tests.tui.user import User, open_dashboard
from tui.screens.trust import TrustDialog


@pytest.fixture(autouse=True)
def _trust_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUSTED_PATHS)


@pytest.fixture
def elsewhere(sample: Path) -> Path:
    """The sample project, as if a colleague had made all decisions in it."""
    OwnRecords(sample, "decisions").path.unlink(missing_ok=True)
    return sample


async def _choose(user: User, key: str) -> None:
    await user.until(lambda: isinstance(user.app.screen, TrustDialog), "the question")
    await user.press(key)
    await user.until(lambda: not isinstance(user.app.screen, TrustDialog), "the answer")
    await user.settled()


async def test_a_new_project_asks_first_and_no_key_typed_before_it_was_seen_answers(
    elsewhere: Path, home: Path
) -> None:
    seconds = [0.0]
    async with open_dashboard(elsewhere, home, clock=lambda: seconds[0]) as user:
        await user.until(lambda: isinstance(user.app.screen, TrustDialog), "the question")
        assert "Decisions made elsewhere" in user.text()
        for key in "tdl":  # the user types on
            await user.press(key)
            seconds[0] += 0.4
        assert isinstance(user.app.screen, TrustDialog)
        seconds[0] += 0.6
        await user.press("escape")
        await user.settled()
        assert "not trusted" in user.text()
        assert find_answer(ProjectPaths(elsewhere)) is None
        await user.press("C")
        await user.until(lambda: isinstance(user.app.screen, TrustDialog), "the question")
        seconds[0] += 1.0
        await _choose(user, "c")
        assert not user.app.view.snapshot.curation.claims
        assert user.app.view.snapshot.curation.pins


async def test_trust_confirms_no_decision_and_each_is_confirmed_in_the_log(elsewhere: Path, home: Path) -> None:
    async with open_dashboard(elsewhere, home, place="log") as user:
        await _choose(user, "t")
        assert is_trusted(ProjectPaths(elsewhere))
        assert "not trusted" not in user.text()
        assert user.app.view.snapshot.curation.claims
        assert not user.app.view.snapshot.curation.pins
        assert "elsewh" in user.row(user.table.keys[0])
        claims = user.app.view.snapshot.curation.claims
        first = user.table.cursor_key
        await user.press("a")
        await user.until(lambda: len(user.app.view.snapshot.curation.claims) == len(claims) - 1, "one decision")
        assert first not in user.app.view.snapshot.curation.claims


async def test_a_declined_project_is_not_asked_about_again(elsewhere: Path, home: Path) -> None:
    async with open_dashboard(elsewhere, home) as user:
        await _choose(user, "d")
    async with open_dashboard(elsewhere, home) as user:
        await user.settled()
        assert not isinstance(user.app.screen, TrustDialog)
        assert "not trusted" in user.text()


async def test_what_arrives_in_a_trusted_project_is_marked_and_asked_about_on_demand(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await _choose(user, "t")
        assert "from elsewhere" not in user.text()
    own = OwnRecords(sample, "decisions").path
    lines = own.read_bytes().split(b"\n")
    own.write_bytes(b"\n".join(line for line in lines[:4] if not line.startswith(b"@")) + b"\n")
    async with open_dashboard(sample, home) as user:
        await user.settled()
        assert "from elsewhere" in user.text()
        await user.press("C")
        await _choose(user, "c")
        assert "from elsewhere" not in user.text()


async def test_a_folder_without_records_is_not_asked_about(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    async with open_dashboard(folder, home) as user:
        await user.settled()
        assert not isinstance(user.app.screen, TrustDialog)
        assert "not trusted" not in user.text()
    (folder / ".aiwg/ralph").mkdir(parents=True)
    async with open_dashboard(folder, home) as user:
        await user.settled()
        assert not isinstance(user.app.screen, TrustDialog)


async def test_it_does_not_open_over_a_card_of_review(elsewhere: Path, home: Path) -> None:
    async with open_dashboard(elsewhere, home, place="review") as user:
        await user.settled()
        assert not isinstance(user.app.screen, TrustDialog) and "not trusted" in user.text()
