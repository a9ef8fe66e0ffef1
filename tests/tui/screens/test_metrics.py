"""Place 7: a walk through all sections, what is behind their rows, and exports."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from textual.widgets import Static

from core.demo.sample import copy_sample
from core.metrics.dashboard import metrics_of
from core.metrics.sections import figures_of
from tests.tui.story import NOW, Story, story
from tui.screens.metrics import MetricsScreen

SECTIONS = ["Patterns", "Evidence", "Success", "Iterations", "Coming", "Judged", "Questions", "Causes", "Mirror"]


async def export(told: Story, name: str) -> None:
    await told.press("E", "ctrl+u")
    await told.paste(name)
    await told.press("enter")
    await told.settled()


async def test_a_walk_through_the_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "acme"
    copy_sample(project, NOW)
    async with story(project, tmp_path, size=(80, 24)) as told:
        await told.go("metrics")
        place = told.place
        assert isinstance(place, MetricsScreen)
        figures = {figure.title: figure for figure in figures_of(metrics_of(told.app.view, "ana"))}
        assert list(figures) == SECTIONS
        for title in SECTIONS:
            shown = str(place.query_one("#metrics-takeaway", Static).render())
            assert shown == figures[title].takeaway
            assert place.rows.keys or figures[title].missing[:40] in told.text()
            await told.press("j")
        await told.press("g", "right_square_bracket", "right_square_bracket")
        assert place.sections.cursor_key == "success"
        assert "▲ 16 Nov" in told.text()
        await told.press("plus")
        await told.settled()
        assert "of 52" not in told.text()
        assert len(place.rows.keys) == 52
        await told.press("plus")
        assert told.toasts()[-1] == "this is the longest time"
        await told.press("minus", "minus")
        await told.settled()
        assert len(place.rows.keys) == 4

        await export(told, "report.md")
        await export(told, "numbers.csv")
        assert (tmp_path / "report.md").read_text().startswith("# Metrics of acme\n")
        assert len(list(csv.reader((tmp_path / "numbers.csv").open()))) > 30
        await export(told, "acme/.aiwg/report.md")
        assert "belongs to the loops" in told.toasts()[-1]
        (tmp_path / "report.md").write_text("mine")
        await export(told, "report.md")
        await told.press("n")
        assert (tmp_path / "report.md").read_text() == "mine"
        await told.press("P", "ctrl+u")
        await told.paste("screen.svg")
        await told.press("enter")
        await told.settled()
        picture = (tmp_path / "screen.svg").read_text()
        assert "Success" in picture
        assert "font-face" not in picture

        await told.press("enter", "enter")
        await told.sees("2 Patterns")
        assert told.place.place == "patterns"
        await told.go("metrics")
        await told.press("escape", "G", "k", "enter", "enter")
        assert told.place.place == "memory"
        await told.go("metrics")
        await told.press("escape", "k", "enter", "enter")
        assert told.place.place == "review"


async def test_other_sections_stand_beside_where_there_is_room(tmp_path: Path) -> None:
    project = tmp_path / "empty"
    project.mkdir()
    async with story(project, tmp_path, size=(200, 50), glyphs="ascii") as told:
        await told.go("metrics")
        await told.sees(
            "No patterns yet.", "No results in the last 12 weeks.", "No open question: everything is decided."
        )
        await told.press("enter")
        assert told.toasts()[-1] == "this section has no rows"


async def test_a_movement_that_leads_nowhere_says_why(tmp_path: Path, home: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with story(tmp_path / "empty", home, size=(80, 24)) as told:
        await told.go("metrics")
        said = {"g": "the first row", "G": "", "pagedown": "the last row"}
        for key, why in said.items():
            await told.press(key)
            assert why in told.toasts()[-1]
