"""Every record of the sample and of the reference trees as text, in both sets of marks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.content import Content

from core.base.paths import ProjectPaths
from core.cli.demo.sample import copy_sample
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState
from core.index.review_items import ReviewItem
from core.project.forecast import Forecaster
from core.project.project import Project
from core.questions.answer import Answer
from core.questions.kinds import answers
from core.records.episodes import Attempt, Milestone, Quality
from core.retrieval.injection import Injection
from core.show.card_evidence import report_source
from core.show.cards import review_card
from core.show.decisions import decision_cells, decision_document, group_decisions
from core.show.loops import loop_cells, loop_document
from core.show.needs import find_need
from core.show.pages.loops import elapsed
from core.show.pages.patterns import state_line
from core.show.pages.reflections import reflection_document
from core.show.pages.tasks import milestones
from core.show.patterns import pattern_cells
from core.show.reflections import reflection_cells
from core.sources.episodes import Actions
from core.tasks.history import AttemptDetail
from tests.tui.user import NOW, TREES, copy_tree, open_project
from tui.kit.looks import ASCII, DRAWN, Glyphs
from tui.screens.context import context_lines
from tui.screens.document import document_lines, draw_cells, inline
from tui.screens.loops import quality_lines
from tui.screens.patterns import TABS, tab_blocks
from tui.screens.review_preview import Outlook, answer_rows, preview_lines

BOTH = pytest.mark.parametrize("glyphs", [DRAWN, ASCII], ids=["drawn", "ascii"])


@pytest.fixture(scope="module", params=["sample", *sorted(tree.name for tree in TREES.iterdir() if tree.is_dir())])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("project") / request.param
    if request.param == "sample":
        copy_sample(folder, NOW)
    else:
        copy_tree(request.param, folder)
    opened = open_project(folder)
    while opened.search_next() is not None:
        pass
    return opened


FakeForecasts = list[tuple[ReviewItem, list[Answer], list[Outlook]]]


@pytest.fixture(scope="module")
def forecasts(opened: Project) -> FakeForecasts:
    """Each question with two answers to it and what they would change."""
    found: FakeForecasts = []
    forecaster = Forecaster(opened)
    for item in opened.view.queue:
        offered = [given for given in answers(item, opened.view) if not given.why_not][:2]
        forecasts = [forecaster.forecast(opened.view, item, given) for given in offered]
        found.append((item, offered, [Outlook(0, forecast) for forecast in forecasts if forecast is not None]))
    return found


@pytest.fixture(scope="module")
def sample_view(tmp_path_factory: pytest.TempPathFactory) -> ProjectState:
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    return open_project(folder).view


def check(paragraphs: Iterable[Content], *, one_line: bool = False) -> None:
    """Each is something, and holds nothing that acts on a terminal."""
    for paragraph in paragraphs:
        for char in paragraph.plain:
            assert char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}, repr(char)
        if one_line:
            assert "\n" not in paragraph.plain


def test_the_reporting_source_is_named_once(sample_view: ProjectState) -> None:
    (burst,) = sample_view.board.bursts
    for source in (burst.source, "bd-9.1"):
        blocks = report_source(sample_view, replace(burst, source=source))
        lines = [line.plain for line in document_lines(blocks, sample_view.now, DRAWN)]
        assert lines.count(source) == 1
    assert lines[0] == source


def test_the_results_of_a_member_are_shown_with_their_counts_and_nothing_that_acts(sample_view: ProjectState) -> None:
    (burst,) = sample_view.board.bursts
    held = replace(burst, source="member Carl\x1b]0;x\x07", successes=1_234, failures=5)
    lines = document_lines(report_source(sample_view, held), sample_view.now, DRAWN)
    check(lines)
    text = "\n".join(line.plain for line in lines)
    assert "member Carl" in text and "1,234" in text


def lines_of(view: ProjectState, glyphs: Glyphs) -> Iterator[list[Content]]:
    for pattern in view.snapshot.patterns.values():
        for tab in TABS:
            yield document_lines(tab_blocks(view, pattern, tab), view.now, glyphs)
    for reflection in view.snapshot.reflections.values():
        yield document_lines(reflection_document(view, reflection).blocks, view.now, glyphs)
    for decision in view.snapshot.decisions:
        yield document_lines(decision_document(view, decision).blocks, view.now, glyphs)
    for item in view.queue:
        yield document_lines(review_card(view, item).blocks, view.now, glyphs)


@BOTH
def test_every_row_is_one_line(opened: Project, glyphs: Glyphs) -> None:
    view = opened.view
    assert view.snapshot.loops or view.snapshot.patterns
    for pattern in view.snapshot.patterns.values():
        cells = draw_cells(pattern_cells(pattern, view.assessment(pattern.id)), view.now, glyphs)
        check(cells.values(), one_line=True)
        assert cells["state"].plain
    for loop in view.snapshot.loops.values():
        check(draw_cells(loop_cells(view, loop, None, view.now), view.now, glyphs).values(), one_line=True)
    for reflection in view.snapshot.reflections.values():
        check(draw_cells(reflection_cells(reflection), view.now, glyphs).values(), one_line=True)
    for entry in group_decisions(reversed(view.snapshot.decisions)):
        cells = draw_cells(decision_cells(entry, view.snapshot), view.now, glyphs)
        check(cells.values(), one_line=True)


@BOTH
def test_every_detail_can_be_drawn(opened: Project, forecasts: FakeForecasts, glyphs: Glyphs) -> None:
    view = opened.view
    for lines in lines_of(view, glyphs):
        assert lines
        check(lines)
    for item, offered, outlooks in forecasts:
        named = [(key, word, given) for key, word, given in zip("ax", ("yes", "no"), offered, strict=False)]
        for width in (78, 118):
            check(answer_rows(named, outlooks, width), one_line=True)
        for given, outlook in zip(offered, outlooks, strict=True):
            check(preview_lines("yes", given, outlook, item.subject, glyphs))
    for key, loop in view.snapshot.loops.items():
        document = loop_document(view, loop, find_need(view, loop), opened.story(key))
        check(document_lines(document.blocks, view.now, glyphs))


def test_an_attempt_shows_its_milestones_and_its_quality_changes(tmp_path: Path) -> None:
    attempt = Attempt(task_id="task-001", number=1, quality=(Quality(1, 0.4), Quality(2, 0.55, 0.15)))
    (changes,) = [line.plain for line in quality_lines(attempt, ASCII, 60, 12)][-1:]
    assert changes == "change  +15 points"
    reached = (Milestone(at=NOW, event="types are green", details="tsc --noEmit [b]passes[/b]"),)
    detail = AttemptDetail(attempt=attempt, actions=Actions(ProjectPaths(tmp_path), "none"), milestones=reached)
    lines = [line.plain for line in document_lines(milestones(detail.milestones), NOW, ASCII)]
    assert lines[-1].endswith("types are green  tsc --noEmit [b]passes[/b]")


def prepared(view: ProjectState) -> Injection:
    return prepare_task_injection(view, "Fix TypeScript type errors in user validation")


def test_the_preview_equals_the_injected_context(sample_view: ProjectState) -> None:
    injection = prepared(sample_view)
    assert "\n".join(line.plain for line in context_lines(injection)) == injection.context


def test_a_pinned_pattern_shows_author_time_and_reason(sample_view: ProjectState) -> None:
    pattern = sample_view.pattern("pat-success-profile-first-009")
    line = inline(state_line(sample_view, pattern.id).parts, sample_view.now, DRAWN).plain
    assert "● proven" in line
    assert "promoted by imre, 16 Nov" in line
    assert "“measured twice by hand, the plans agree”" in line
    assert "by evidence: established" in line


def test_a_loop_without_a_valid_start_has_no_duration(sample_view: ProjectState) -> None:
    for loop in sample_view.snapshot.loops.values():
        seconds = elapsed(loop, NOW)
        assert seconds is None or seconds >= 0
