"""Place 7: a walk through all sections, what is behind their rows, and exports."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from textual.widgets import Static

from core.demo.sample import copy_sample
from core.metrics.dashboard import build_dashboard
from core.metrics.sections import build_figures
from tests.tui.user import NOW, User, open_dashboard
from tui.screens.metrics import MetricsScreen

SECTIONS = [
    "Patterns",
    "Evidence",
    "Success",
    "Iterations",
    "Upcoming changes",
    "Review coverage",
    "Questions",
    "Failure causes",
    "Reviewer accuracy",
    "Tokens",
]


async def export(user: User, name: str) -> None:
    await user.press("E", "ctrl+u")
    await user.paste(name)
    await user.press("enter")
    await user.settled()


@pytest.mark.slow
async def test_all_sections_of_metrics_can_be_visited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "acme"
    copy_sample(project, NOW)
    async with open_dashboard(project, tmp_path, size=(80, 24), place="metrics") as user:
        place = user.place
        assert isinstance(place, MetricsScreen)
        figures = {figure.title: figure for figure in build_figures(build_dashboard(user.app.view, "ana"))}
        assert list(figures) == SECTIONS
        for title in SECTIONS:
            shown = str(place.query_one("#metrics-takeaway", Static).render())
            assert shown == figures[title].takeaway
            assert place.rows.keys or figures[title].missing[:40] in user.text()
            await user.press("j")
        await user.press("g", "right_square_bracket", "right_square_bracket")
        assert place.sections.cursor_key == "success"
        assert "▲ 16 Nov" in user.text()
        await user.press("plus")
        await user.settled()
        assert "of 52" not in user.text()
        assert len(place.rows.keys) == 52
        await user.press("plus")
        assert user.toasts()[-1] == "This is the longest time range"
        await user.press("minus", "minus")
        await user.settled()
        assert len(place.rows.keys) == 4

        await export(user, "report.md")
        await export(user, "numbers.csv")
        assert (tmp_path / "report.md").read_text().startswith("# Metrics of acme\n")
        assert len(list(csv.reader((tmp_path / "numbers.csv").open()))) > 30
        await export(user, "acme/.aiwg/report.md")
        assert "belongs to the loops" in user.toasts()[-1]
        (tmp_path / "report.md").write_text("mine")
        await export(user, "report.md")
        await user.press("n")
        assert (tmp_path / "report.md").read_text() == "mine"
        await user.press("P", "ctrl+u")
        await user.paste("screen.svg")
        await user.press("enter")
        await user.settled()
        picture = (tmp_path / "screen.svg").read_text()
        assert "Success" in picture
        assert "font-face" not in picture

        await user.press("enter", "enter")
        await user.sees("3 Patterns")
        assert user.place.place == "patterns"
        await user.go("metrics")
        await user.press("escape", "G", "k", "k", "enter", "enter")
        assert user.place.place == "memory"
        await user.go("metrics")
        await user.press("escape", "k", "enter", "enter")
        assert user.place.place == "review"


async def test_other_sections_are_tiles_if_there_is_space(tmp_path: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with open_dashboard(project, tmp_path, size=(200, 50), glyphs="ascii", place="metrics") as user:
        await user.sees("No patterns yet.", "No results in the last 12 weeks.", "No open questions.")
        await user.press("enter")
        assert user.toasts()[-1] == "This section has no rows"


async def test_a_movement_without_effect_is_explained(tmp_path: Path, home: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with open_dashboard(tmp_path / "empty", home, size=(80, 24), place="metrics") as user:
        reasons = {"g": "the first row", "G": "", "pagedown": "the last row"}
        for key, why in reasons.items():
            await user.press(key)
            assert why in user.toasts()[-1]
