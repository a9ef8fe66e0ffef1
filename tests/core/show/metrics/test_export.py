"""Exports of metrics, with escaped texts from files."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import BadInput
from core.base.paths import project_at
from core.base.settings import Settings
from core.files.atomic_write import export_file, file_exists
from core.project.project import Project
from core.show.metrics.dashboard import Dashboard, build_dashboard
from core.show.metrics.sections import build_figures, export_metrics, section_markdown, to_csv
from tests.factories import HOSTILE_LABEL, make_bars

NOW = datetime(2026, 2, 5, tzinfo=UTC)
TREES = Path(__file__).parents[3] / "trees"


@pytest.fixture(scope="module")
def found() -> Dashboard:
    opened = Project(project_at(TREES / "spec-examples"), Settings(), by="ana", clock=lambda: NOW, cache=False)
    opened.load()
    return build_dashboard(opened.view, "ana", 4)


def test_every_format_contains_every_section(found: Dashboard) -> None:
    figures = build_figures(found)
    report = export_metrics(found, ".md", "acme").decode()
    cells = list(csv.reader(io.StringIO(export_metrics(found, ".csv", "acme").decode())))
    assert cells[0] == ["section", "row", "part", "value", "low", "high", "n"]
    assert {line[0] for line in cells[1:]} == {figure.id for figure in figures if figure.rows}
    for figure in figures:
        assert f"## {figure.title}\n" in report
        assert figure.rows or figure.missing


def test_example_metrics_have_the_expected_figures(found: Dashboard) -> None:
    by_id = {figure.id: figure for figure in build_figures(found)}
    assert by_id["patterns"].rows[-1].count == 6
    assert by_id["evidence"].rows[-1].label == "2 Feb"
    assert by_id["mirror"].takeaway == "You have not promoted or deprecated a lesson yet."
    assert found.iterations.difference is None
    assert "Not enough data" in by_id["iterations"].takeaway


def test_figures_of_an_empty_project_say_what_is_missing(tmp_path: Path) -> None:
    opened = Project(project_at(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    opened.load()
    figures = build_figures(build_dashboard(opened.view, "ana", 12))
    assert all(not figure.rows and figure.missing for figure in figures)
    assert "No use in the last 12 weeks." in [figure.takeaway for figure in figures]


def test_hostile_names_stay_text(found: Dashboard) -> None:
    figure = make_bars(HOSTILE_LABEL, "@SUM(A1)", "plain")
    cells = list(csv.reader(io.StringIO(to_csv(found, [figure], ""))))
    assert [line[1][:2] for line in cells[1:]] == ["'=", "'@", "pl"]
    assert "\x1b" not in "".join(cells[1])
    report = section_markdown(figure)
    assert "\x1b" not in report
    assert "\\<script\\>" in report
    assert len([line for line in report.splitlines() if line.startswith("#")]) == 1
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {4}


def test_a_file_is_named_outside_of_aiwg_with_a_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = project_at(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert export_file("report.MD", project, (".md",)) == tmp_path / "report.MD"
    (tmp_path / ".aiwg").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".aiwg")
    assert file_exists(tmp_path / "link")
    assert not file_exists(tmp_path / ("x" * 300))
    for name in (".aiwg/report.md", "link/report.md", "report.txt", "report", "a\0.md"):
        with pytest.raises(BadInput):
            export_file(name, project, (".md",))
