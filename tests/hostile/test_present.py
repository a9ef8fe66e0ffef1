"""Every function that renders a record, on every record of the hostile projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TypeVar

import pytest
from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState
from core.project.notifications import find_notifications as happened
from core.project.project import Project
from core.questions.kinds import answers
from core.records.extractions import Extraction, Proposal
from core.records.patterns import PatternType
from core.records.snapshot import Delta
from core.show.card_evidence import exact_text, side_by_side
from core.show.cards import review_card
from core.show.contexts import Preview, context_cells, row_details
from core.show.decisions import Entry, decision_cells, decision_document
from core.show.loops import (
    attempt_cells,
    iteration_cells,
    lesson_cells,
    loop_cells,
    loop_document,
    offer_blocks,
    proposal_blocks,
    second_line,
    session_cells,
    task_cells,
)
from core.show.needs import describe_need, find_need, find_needs, need_sign
from core.show.pages import tasks
from core.show.pages.loops import lesson_blocks, reflection_rows
from core.show.pages.markdown import to_markdown
from core.show.pages.patterns import pattern_document
from core.show.pages.reflections import reflection_document
from core.show.patterns import pattern_cells
from core.show.reflections import reflection_cells
from core.show.work import WorkCatalog, WorkLinks
from core.tasks.attempts import AttemptState, ReplaySteps, assess_attempt
from core.tasks.history import read_attempt
from tests.e2e.stream import harmless
from tests.factories import forecast
from tests.hostile.conftest import EAST, WEST
from tests.hostile.payloads import PAYLOADS
from tui.kit.looks import DRAWN, Glyphs
from tui.screens import frame, replay
from tui.screens.context import context_lines, profile_line
from tui.screens.document import document_lines, draw_cells, inline
from tui.screens.loops import attempt_lines, task_lines
from tui.screens.patterns import TABS, tab_blocks
from tui.screens.review_preview import Outlook, answer_rows, preview_lines

in_zones = pytest.mark.parametrize(
    ("opened", "glyphs"),
    [("texts", EAST), ("types", EAST), ("types", WEST)],
    indirect=True,
    ids=["texts", "east", "west"],
)
"""The times of the texts are valid, in every zone."""
T = TypeVar("T")
WIDTH, TALL = 60, 40
PATTERNS, STORIES, TASKS, FORECASTS = 90, 30, 10, 1
"""Number of records that are rendered where rendering is slow."""


def check(contents: Iterable[Content], *, where: str) -> None:
    """Check that every character draws only itself and every style is known. Widgets handle line breaks and tabs."""
    for content in contents:
        bad = sorted({char for char in content.plain if char not in "\n\t" and not harmless(char)})
        assert not bad, f"{bad!r} in {where}: {content.plain[:200]!r}"
        for span in content.spans:
            assert "@" not in str(span.style), f"a style that acts in {where}: {span.style}"


def spread(values: Iterable[T], most: int) -> Iterator[T]:
    """At most `most` of the values, evenly distributed."""
    known = list(values)
    return islice(known, 0, None, max(1, -(-len(known) // most)))


@in_zones
def test_patterns_are_harmless(view: ProjectState, glyphs: Glyphs) -> None:
    for key, pattern in spread(view.snapshot.patterns.items(), PATTERNS):
        cells = draw_cells(pattern_cells(pattern, view.assessment(key)), view.now, glyphs)
        check(cells.values(), where=f"the row of {key[:80]!r}")
        for tab in TABS:
            check(
                document_lines(tab_blocks(view, pattern, tab), view.now, glyphs),
                where=f"{tab} of {key[:80]!r}",
            )
        markdown = to_markdown(pattern_document(view, pattern))
        check([Content(markdown)], where=f"Markdown of {key[:80]!r}")


@in_zones
def test_loops_are_harmless(opened: Project, view: ProjectState, glyphs: Glyphs) -> None:
    for loop in view.snapshot.loops.values():
        where = f"the row of {loop.id[:80]!r}"
        check(
            draw_cells(loop_cells(view, loop, find_need(view, loop), view.now), view.now, glyphs).values(), where=where
        )
        check([inline(second_line(loop), view.now, glyphs)], where=where)
        for iteration in loop.iterations:
            check(draw_cells(iteration_cells(iteration), view.now, glyphs).values(), where=where)
        patterns = view.loop_patterns(loop.id)
        for id in patterns.injected_ids:
            uses = [use for use in patterns.uses if use.pattern_id == id]
            cells = lesson_cells(id, view.snapshot.patterns.get(id), uses)
            check(draw_cells(cells, view.now, glyphs).values(), where=where)
            check(document_lines(lesson_blocks(view, loop, id), view.now, glyphs), where=where)
    for need in find_needs(view):
        check([inline((need_sign(need, view.now), describe_need(need, view.now)), view.now, glyphs)], where="a need")
    for loop in spread(view.snapshot.loops.values(), STORIES):
        document = loop_document(view, loop, find_need(view, loop), opened.story(loop.id))
        check([Content(to_markdown(document))], where=f"Markdown of {loop.id[:80]!r}")
        check(document_lines(document.blocks, view.now, glyphs), where=f"details of {loop.id[:80]!r}")


@in_zones
def test_reflections_are_harmless(view: ProjectState, glyphs: Glyphs) -> None:
    for reflection in view.snapshot.reflections.values():
        check(draw_cells(reflection_cells(reflection), view.now, glyphs).values(), where=f"row of {reflection.file!r}")
        check(
            document_lines(reflection_document(view, reflection).blocks, view.now, glyphs),
            where=f"text of {reflection.file!r}",
        )
    check(
        document_lines(reflection_rows(list(view.snapshot.reflections.values())), view.now, glyphs),
        where="reflections of a loop",
    )


@in_zones
def test_tasks_and_attempts_are_harmless(opened: Project, view: ProjectState, glyphs: Glyphs) -> None:
    snapshot, catalog = view.snapshot, WorkCatalog(view.snapshot)
    links = WorkLinks(snapshot, catalog)
    for task in catalog.tasks.values():
        own, where = catalog.attempts.get(task.id, ()), f"task {task.id[:80]!r}"
        row = task_cells(task, own, AttemptState.LEFT, ())
        check(draw_cells(row, view.now, glyphs).values(), where=where)
        states = {one.id: assess_attempt(one, task, own[-1].number, view.now, view.settings.watch) for one in own}
        reflected = links.reflections_of(task)
        blocks = [*tasks.reflection_blocks(reflected, of_task=True), *tasks.task_notes(task, reflected)]
        check(document_lines(blocks, view.now, glyphs, WIDTH), where=where)
        check([inline(second_line(task), view.now, glyphs)], where=where)
        overview = task_lines(task, own, lambda one: states[one.id], glyphs, WIDTH, TALL)  # noqa: B023
        check(document_lines(overview, view.now, glyphs, WIDTH), where=where)
        for one in own:
            row = attempt_cells(one, states[one.id], task.description)
            check(draw_cells(row, view.now, glyphs).values(), where=where)
            parts = attempt_lines(one, task, states[one.id], glyphs, WIDTH, TALL)
            check(document_lines(parts, view.now, glyphs, WIDTH), where=where)
            check([inline(second_line(one), view.now, glyphs)], where=where)
            try:
                detail = read_attempt(opened.project, one.task_id, one.number)
            except RalphdeckError as error:
                check([Content(visible_line(str(error)))], where=where)
                continue
            ends = (*tasks.plan_tab(one, detail), *tasks.last_actions(detail, "enter"))
            check(document_lines(ends, view.now, glyphs), where=where)
            for side in (
                replay.beside_action(detail, [0.5], glyphs, WIDTH, TALL),
                replay.below_action(detail, [0.5], glyphs),
            ):
                check(document_lines(side, view.now, glyphs), where=where)
            for step in spread(ReplaySteps(detail), TASKS):
                check(document_lines(replay.step_blocks(step), view.now, glyphs, WIDTH), where=where)
                check([replay.list_line(step.action, WIDTH, glyphs, current=True)], where=where)


@in_zones
def test_debug_sessions_are_harmless(view: ProjectState, glyphs: Glyphs) -> None:
    for session in view.snapshot.debug_sessions.values():
        where = f"session {session.id[:80]!r}"
        row = session_cells(session, None, view.now, is_below=True)
        check(draw_cells(row, view.now, glyphs).values(), where=where)
        check([inline(second_line(session), view.now, glyphs)], where=where)
        blocks = (*tasks.runs(view, session), *tasks.lessons(view, session))
        check(document_lines(blocks, view.now, glyphs, WIDTH), where=where)


@in_zones
def test_decisions_are_harmless(view: ProjectState, glyphs: Glyphs) -> None:
    for made in view.snapshot.decisions:
        check(
            draw_cells(decision_cells(Entry((made,)), view.snapshot), view.now, glyphs).values(),
            where="a row of the log",
        )
        check(document_lines(decision_document(view, made).blocks, view.now, glyphs), where="a decision")


def test_questions_are_harmless(opened: Project) -> None:
    while opened.search_next() is not None:
        pass
    view = opened.view
    for item in spread(view.queue, PATTERNS):
        where = f"{item.kind} of {item.subject[:80]!r}"
        check([Content(item.question), Content(item.asks), Content(item.reason)], where=f"the question, {where}")
        card = review_card(view, item)
        check([Content(card.title), *document_lines(card.blocks, view.now, DRAWN)], where=where)
    for item in spread(view.queue, FORECASTS):
        try:
            given = answers(item, view)[0]
            states = forecast(opened, item, given)
        except RalphdeckError:
            continue  # the pane shows an error instead
        check(preview_lines("yes", given, Outlook(0, states), item.subject, DRAWN), where="a forecast")
        check(answer_rows([("a", "yes", given)], [Outlook(0, states)], 118), where="an answer")


@in_zones
def test_unreviewed_texts_are_harmless(view: ProjectState, glyphs: Glyphs) -> None:
    patterns_of = list(spread(view.snapshot.patterns.values(), 100))
    for pattern in patterns_of:
        where = f"the text of {pattern.id[:80]!r}"
        check(document_lines(exact_text(view, pattern), view.now, glyphs), where=where)
    for one, other in pairwise(patterns_of):
        compared = document_lines(side_by_side(view, one, other, "90 %"), view.now, glyphs)
        check(compared, where=f"{one.id[:80]!r} beside {other.id[:80]!r}")


@in_zones
def test_extraction_offers_are_harmless(view: ProjectState, glyphs: Glyphs) -> None:
    proposals = [
        Proposal(
            type=kind,
            slug=payload.text,
            record={
                "error_signature": {"error_type": payload.text, "error_pattern": payload.text},
                "approach_description": payload.text,
                "use_case": payload.text,
                "approach": {"description": payload.text, "steps": [payload.text]},
                "tags": [payload.text],
            },
            trace=(payload.text,),
            duplicate_of=payload.text if number % 2 else "",
            refused=payload.text if number % 3 else "",
        )
        for number, payload in enumerate(PAYLOADS)
        for kind in PatternType
    ]
    offer = Extraction(source_id=PAYLOADS[0].text, proposals=tuple(proposals))
    check(document_lines(proposal_blocks(offer), view.now, glyphs), where="proposals")
    check(document_lines(offer_blocks(offer, "e"), view.now, glyphs), where="an offer")


def test_contexts_are_harmless(view: ProjectState) -> None:
    tasks = [payload.text for payload in PAYLOADS] + [loop.task for loop in view.snapshot.loops.values()]
    for task in spread(tasks, TASKS):
        injection = prepare_task_injection(view, f"{task} fix the approach for name")
        check([profile_line(injection)], where=f"the profile of {task[:80]!r}")
        check(context_lines(injection), where=f"the context of {task[:80]!r}")
        preview = Preview.prepare(view, f"{task} fix the approach for name", view.settings.injection)
        for id in islice((*preview.chosen, *preview.left_out), 20):
            where = f"the score of {id[:80]!r} for {task[:80]!r}"
            check(draw_cells(context_cells(preview, id, view), view.now, DRAWN).values(), where=where)
            check(document_lines(row_details(preview, id, view), view.now, DRAWN), where=where)


def test_notifications_are_harmless(opened: Project, view: ProjectState) -> None:
    empty = Project(opened.project, opened.settings, by="ana", clock=opened.now, cache=False).view
    snapshot = view.snapshot
    delta = Delta(frozenset(snapshot.patterns), frozenset(snapshot.loops), decisions=True)
    check(
        [Content(text) for text, _ in frame.toasts(happened(empty, view, delta, frozenset()), frozenset())],
        where="a toast",
    )


def test_findings_are_harmless(view: ProjectState) -> None:
    for finding in view.snapshot.findings:
        check([Content(finding.message)], where=f"{finding.code} in {finding.file[:80]!r}")
