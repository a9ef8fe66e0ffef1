"""Every record of the sample and of the reference trees as text, in both sets of marks."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.content import Content

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.demo.sample import copy_sample
from core.documents.decisions import decision_document
from core.documents.loops import elapsed
from core.documents.patterns import state_line
from core.documents.reflections import reflection_document
from core.documents.tasks import milestones
from core.episodes.history import AttemptDetail
from core.forecast.forecast import ContextChange, Forecaster
from core.project.project import Project
from core.questions.answers import Answer, answers
from core.records.episodes import Attempt, Milestone, Quality
from core.retrieval.injection import Injection
from core.show.patterns import pattern_cells
from core.sources.actions import Actions
from core.state.contexts import prepare_task_injection
from core.state.project_state import ProjectState
from core.state.review_items import ReviewItem
from tests.tui.user import NOW, TREES, copy_tree
from tui.present import decisions, loops, memory_tasks, reflections, review, review_evidence
from tui.present.document import document_lines, draw_cells, inline
from tui.present.glyphs import ASCII, DRAWN, Glyphs
from tui.present.review_answers import Outlook, answer_rows, diff_lines, group_same_changes, what_changes
from tui.present.review_texts import words_changed
from tui.screens.context import context_lines
from tui.screens.patterns import TABS, tab_blocks

BOTH = pytest.mark.parametrize("glyphs", [DRAWN, ASCII], ids=["drawn", "ascii"])


@pytest.fixture(scope="module", params=["sample", *sorted(tree.name for tree in TREES.iterdir() if tree.is_dir())])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("project") / request.param
    if request.param == "sample":
        copy_sample(folder, NOW)
    else:
        copy_tree(request.param, folder)
    opened = Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False)
    opened.load()
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
    return Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False).load()


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
        blocks = review_evidence.report_source(sample_view, replace(burst, source=source))
        lines = [line.plain for line in document_lines(blocks, sample_view.now, DRAWN)]
        assert lines.count(source) == 1
    assert lines[0] == source


def test_the_results_of_a_member_are_shown_with_their_counts_and_nothing_that_acts(sample_view: ProjectState) -> None:
    (burst,) = sample_view.board.bursts
    held = replace(burst, source="member Carl\x1b]0;x\x07", successes=1_234, failures=5)
    lines = document_lines(review_evidence.report_source(sample_view, held), sample_view.now, DRAWN)
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
        yield from review.sides(view, item, review.Desk(glyphs=glyphs, key=lambda action: action))[2:]


@BOTH
def test_every_row_is_one_line(opened: Project, glyphs: Glyphs) -> None:
    view = opened.view
    assert view.snapshot.loops or view.snapshot.patterns
    for pattern in view.snapshot.patterns.values():
        cells = draw_cells(pattern_cells(pattern, view.assessment(pattern.id)), view.now, glyphs)
        check(cells.values(), one_line=True)
        assert cells["state"].plain
    for loop in view.snapshot.loops.values():
        found = view.board.outcome(loop.id)
        row = loops.loop_cells(loop, found[1] if found else None, view.board.loop_patterns(loop.id), view.now, glyphs)
        check(row.values(), one_line=True)
    for reflection in view.snapshot.reflections.values():
        check(reflections.reflection_cells(reflection, view.now).values(), one_line=True)
    for decision in view.snapshot.decisions:
        check(decisions.decision_cells(decision, view, glyphs).values(), one_line=True)


@pytest.mark.slow
@BOTH
def test_every_detail_can_be_drawn(opened: Project, forecasts: FakeForecasts, glyphs: Glyphs) -> None:
    view = opened.view
    for lines in lines_of(view, glyphs):
        assert lines
        check(lines)
    for item, offered, outlooks in forecasts:
        for width in (78, 118):
            check(
                answer_rows(offered, outlooks, ["a", "x"][: len(offered)], item.subject, glyphs, width), one_line=True
            )
        for given, outlook in zip(offered, outlooks, strict=True):
            check(what_changes(given, outlook, view, glyphs))
    for key, loop in view.snapshot.loops.items():
        for story in (None, opened.story(key)):
            for tab in loops.TABS:
                check(document_lines(loops.tab_blocks(loop, tab, story, view), view.now, glyphs))


def test_an_attempt_shows_its_milestones_and_its_quality_changes(tmp_path: Path) -> None:
    attempt = Attempt(task_id="task-001", number=1, quality=(Quality(1, 0.4), Quality(2, 0.55, 0.15)))
    (changes,) = [line.plain for line in memory_tasks.quality_lines(attempt, ASCII, 60)][-1:]
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


def test_the_impact_of_a_question_is_drawn(sample_view: ProjectState) -> None:
    for number, item in enumerate(sample_view.queue, start=1):
        head, priority = review.head(item, number, str(len(sample_view.queue))), review.impact_bar(item, DRAWN)
        assert f"{number} of {len(sample_view.queue)}" in head.plain
        assert priority.plain.count(DRAWN.full) == (0 if item.is_urgent else round(item.priority * 5))
        assert ("agent blocked" in priority.plain) is item.is_urgent


def test_each_impact_bar_has_its_own_word(sample_view: ProjectState) -> None:
    item = sample_view.queue[-1]
    words: dict[int, set[str]] = {}
    for hundredth in range(101):
        bar = review.impact_bar(
            dataclasses.replace(item, priority=hundredth / 100, is_urgent=False), DRAWN, short=True
        ).plain
        words.setdefault(bar.count(DRAWN.full), set()).add(bar.split()[0])
    assert [words[cells] for cells in range(6)] == [{"low"}, {"low"}, {"medium"}, {"medium"}, {"high"}, {"high"}]


def test_a_diff_shows_only_what_differs() -> None:
    before, after = "a\nb\nc\nd\ne\nf", "a\nb\nX\nd\ne\nf"
    assert [line.plain for line in diff_lines(before, after)] == ["- c", "+ X"]
    assert diff_lines(before, before) == []


def test_removed_and_added_words_are_marked_without_colour() -> None:
    def marked(before: str, after: str) -> list[str]:
        return [line.plain for line in words_changed(before, after)]

    assert marked("Guard the object now", "Guard no object") == ["Guard [-the-] {+no+} object [-now-] "]
    assert marked("one\ntwo", "one\n2") == ["one", "[-two-] {+2+}"]
    assert marked("same", "same") == ["same"]


def test_equal_context_changes_are_listed_once() -> None:
    changes = [
        ContextChange("loop", id, f"task {id}", f"head {id}\nold", f"head {id}\n{new}", (1, 1))
        for id, new in (("a", "new"), ("b", "other"), ("c", "new"))
    ]
    assert [[change.id for change in group] for group in group_same_changes(changes)] == [["a", "c"], ["b"]]


def test_a_loop_without_a_valid_start_has_no_duration(sample_view: ProjectState) -> None:
    for loop in sample_view.snapshot.loops.values():
        seconds = elapsed(loop, NOW)
        assert seconds is None or seconds >= 0


def test_a_long_id_is_shortened_beside_its_question(sample_view: ProjectState) -> None:
    item = next(item for item in sample_view.queue if item.asks and len(item.subject) > 20)
    whole, fitted = (review.head(item, 3, "28", id_cells=cells).plain for cells in (80, 12))
    assert whole.endswith(f"  {item.subject}")
    assert fitted.endswith(f"  {item.subject[:11]}…")
    assert len(whole) - len(fitted) == len(item.subject) - 12
