"""Comparisons of two states: changes, pages, and what other thresholds would do."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.pattern_titles import pattern_title
from core.base.settings import Settings, find_threshold, with_threshold
from core.cli.demo.sample import copy_sample
from core.decisions.commands import Archive, Deprecate, Quarantine, Undo
from core.index.project_state import ProjectState
from core.learning.threshold_replay import Course, PatternDifference, Replay
from core.project.as_of import build_past_state
from core.project.project import Project
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity
from core.show.comparison import (
    CONTEXT,
    ENDED,
    NEW,
    RATE,
    REMOVED,
    STARTED,
    STATE,
    PatternChange,
    StateComparison,
    by_consequence,
    change_cells,
    compare_states,
    comparison_document,
    difference_cells,
    list_changes,
    replay_summary,
    what_if_document,
)
from core.show.pages.document import plain_text
from core.show.pages.markdown import to_markdown
from tests.core.project.test_as_of import IDS, START, open_project, report, view_of
from tests.core.project.views import STEP, Clock
from tests.factories import NOW, days_ago, make_event, make_pattern
from tests.tui.user import NOW as SAMPLE_NOW


def by_id(before: ProjectState, after: ProjectState) -> dict[str, PatternChange]:
    return {change.pattern_id: change for change in compare_states(before, after).patterns}


def test_a_changed_state_names_its_decision_or_evidence(tmp_path: Path) -> None:
    clock = Clock(START, STEP)
    project = open_project(tmp_path, clock)
    start = clock()
    project.decide(Deprecate(IDS[0], reason="too slow"))
    for _ in range(3):
        report(project, clock, IDS[1], False)
    project.decide(Archive(IDS[2], reason="old"))
    view, _ = project.refresh()
    found = compare_states(build_past_state(view, start), view)
    changed = {change.pattern_id: change for change in found.patterns}
    assert {id: change.kind for id, change in changed.items()} == {IDS[0]: STATE, IDS[1]: STATE, IDS[2]: REMOVED}
    assert changed[IDS[0]].because == "deprecate by ana: too slow"
    assert (changed[IDS[1]].because, changed[IDS[1]].by) == ("3 more failed", "")
    assert changed[IDS[2]].because == "archive by ana: old"
    assert (found.helped, found.failed) == (0, 3)
    assert [one.by for one in found.decisions] == ["ana", "ana"]
    assert [decision.verb for decision in found.decisions] == ["archive", "deprecate"]
    assert found.states_before[Maturity.ESTABLISHED] == 3
    assert found.states_after[Maturity.DEPRECATED] == 2
    same = compare_states(view, view)
    assert not (same.patterns or same.decisions or same.loops or same.questions)
    assert (same.helped, same.failed, same.other) == (0, 0, 0)
    back = compare_states(view, build_past_state(view, start))
    assert {change.pattern_id: change.kind for change in back.patterns}[IDS[2]] == NEW


def test_a_decision_that_was_undone_is_not_the_cause_of_a_later_change(tmp_path: Path) -> None:
    clock = Clock(START, STEP)
    project = open_project(tmp_path, clock)
    start = clock()
    project.decide(Deprecate(IDS[0], reason="too slow"))
    project.decide(Undo())
    for _ in range(3):
        report(project, clock, IDS[0], False)
    view, _ = project.refresh()
    changed = by_id(build_past_state(view, start), view)
    assert (changed[IDS[0]].kind, changed[IDS[0]].because, changed[IDS[0]].by) == (STATE, "3 more failed", "")


def test_an_undo_is_labelled_as_an_undo(tmp_path: Path) -> None:
    clock = Clock(START, STEP)
    project = open_project(tmp_path, clock)
    project.decide(Archive(IDS[0], reason="old"))
    middle = clock()
    project.decide(Undo())
    view, _ = project.refresh()
    changed = by_id(build_past_state(view, middle), view)
    assert (changed[IDS[0]].kind, changed[IDS[0]].because) == (NEW, "undo of archive by ana")


def test_changes_are_sorted_by_effect_on_loops() -> None:
    def seen(number: int, id: str, when: datetime, success: bool) -> object:
        return make_event(number, "applied", when, pattern_id=id, loop_id=f"l{number}", success=success)

    events = tuple(
        seen(number, id, days_ago(10.5 - number), success)
        for number, (id, success) in enumerate([("rises", True)] * 6 + [("moves", True)] * 4 + [("moves", False)])
    )
    patterns = [make_pattern(id, first_discovered=days_ago(90)) for id in ("moves", "rises")]
    view = view_of(*patterns, events=events)
    found = compare_states(build_past_state(view, days_ago(9)), view).patterns
    assert [change.pattern_id for change in found] == ["rises", "moves"]
    assert found[0].weight > found[1].weight > 0
    only_rate = compare_states(build_past_state(view, days_ago(1)), view).patterns
    assert [(change.pattern_id, change.kind) for change in only_rate] == [("moves", RATE)]


def test_a_pattern_no_longer_injected_is_listed(tmp_path: Path) -> None:
    clock = Clock(START, STEP)
    project = open_project(tmp_path, clock)
    start = clock()
    for _ in range(2):
        report(project, clock, IDS[1], True)
    middle = clock()
    project.decide(Quarantine(IDS[1], reason="odd"))
    view, _ = project.refresh()
    assert not compare_states(build_past_state(view, start), build_past_state(view, middle)).patterns
    change = by_id(build_past_state(view, middle), view)[IDS[1]]
    assert change.kind in {STATE, CONTEXT}
    assert (change.after is not None and not change.after.injectable, change.by) == (True, "ana")


@pytest.mark.parametrize(("days", "kinds"), [(6, [ENDED]), (3, [ENDED]), (0.5, [])])
def test_loops_that_begin_and_end(days: float, kinds: list[str]) -> None:
    loop = Loop(id="a", status=LoopStatus.COMPLETED, started_at=days_ago(5), ended_at=days_ago(1))
    view = view_of(loops={"a": loop})
    assert [change.kind for change in compare_states(build_past_state(view, days_ago(days)), view).loops] == kinds
    begun = compare_states(build_past_state(view, days_ago(6)), build_past_state(view, days_ago(2)))
    assert [(change.kind, change.at) for change in begun.loops] == [(STARTED, days_ago(5))]
    assert plain_text(change_cells(begun.loops[0], view)["change"]).startswith("started ")
    for change in compare_states(build_past_state(view, days_ago(days)), view).loops:
        assert plain_text(change_cells(change, view)["change"]).startswith("ended ")
    assert begun.until < NOW


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ProjectState:
    folder: Path = tmp_path_factory.mktemp("sample")
    copy_sample(folder, SAMPLE_NOW)
    return Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: SAMPLE_NOW, cache=False).load()


@pytest.fixture(scope="module")
def found(view: ProjectState) -> StateComparison:
    return compare_states(build_past_state(view, SAMPLE_NOW - timedelta(days=9)), view)


def words(found: StateComparison, kind: str, view: ProjectState) -> dict[str, str]:
    change = next(one for one in found.patterns if one.kind == kind)
    return {id: plain_text(cell) for id, cell in change_cells(change, view).items()}


def test_a_pattern_has_its_title_both_states_and_the_reason(found: StateComparison, view: ProjectState) -> None:
    first = found.patterns[0]
    row = {id: plain_text(cell) for id, cell in change_cells(first, view).items()}
    assert row["title"] == "Object of type Decimal is not JSON serializable"
    assert row["change"] == "candidate → proven" and "more helped" in row["why"] and row["id"] == first.pattern_id
    assert " % → " in words(found, RATE, view)["change"]


def test_a_new_pattern_names_the_session_that_it_was_found_in(found: StateComparison, view: ProjectState) -> None:
    row = words(found, NEW, view)
    assert row["change"].startswith("new → ")
    assert row["why"].startswith(("found in “", "extract by hook"))


def test_every_change_has_a_row_with_a_title(found: StateComparison, view: ProjectState) -> None:
    changes = list_changes(found)
    assert {key.split()[0] for key in changes} == {"pattern", "question", "decision", "loop"}
    for change in changes.values():
        cells = change_cells(change, view)
        assert plain_text(cells["title"]) and plain_text(cells["change"])
    assert sum(isinstance(change, PatternChange) for change in changes.values()) == len(found.patterns)


def test_the_page_counts_and_lists_what_changed(found: StateComparison, view: ProjectState) -> None:
    page = to_markdown(comparison_document(found, view, 2))
    assert f"{found.count(STATE)} patterns changed state" in page and "1 decided by hook" in page
    assert f"and {len(found.patterns) - 2} more patterns" in page
    for heading in ("## Patterns", "## Questions", "## Decisions", "## Sessions"):
        assert heading in page
    assert "| state | then | now | change |" in page


TODAY = Settings()
CANDIDATE, ESTABLISHED, PROVEN, DEPRECATED = Maturity


def course(state: Maturity, *, inverts: bool = False, days: int | None = 3) -> Course:
    since = None if days is None else SAMPLE_NOW - timedelta(days=days)
    return Course(state=state, since=since, inverts=inverts, inverted_at=since if inverts else None)


def turn(pattern_id: str, before: Course, after: Course, *, pinned: bool = False) -> PatternDifference:
    return PatternDifference(pattern_id=pattern_id, before=before, after=after, pinned=pinned)


def replay(
    *turns: PatternDifference, before: tuple[int, ...] = (11, 12, 10, 7), after: tuple[int, ...] = (14, 12, 7, 7)
) -> Replay:
    return Replay(
        turns=turns,
        before=dict(zip(Maturity, before, strict=True)),
        after=dict(zip(Maturity, after, strict=True)),
        events=1240,
    )


def test_changes_with_the_most_context_recipients_are_first() -> None:
    turns = (
        turn("a-pinned", course(PROVEN), course(DEPRECATED, inverts=True), pinned=True),
        turn("b-one-up", course(CANDIDATE), course(ESTABLISHED)),
        turn("c-two-up", course(CANDIDATE), course(PROVEN)),
        turn("d-back", course(DEPRECATED), course(CANDIDATE)),
        turn("e-inverts", course(DEPRECATED), course(DEPRECATED, inverts=True)),
    )
    ranked = [found.pattern_id for found in by_consequence(replay(*turns), TODAY)]
    assert ranked == ["e-inverts", "d-back", "c-two-up", "b-one-up", "a-pinned"]


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([], "Nothing changes"),
        ([turn("a", course(PROVEN), course(CANDIDATE))], "1 of 40 patterns changes state"),
        (
            [
                turn("a", course(PROVEN), course(CANDIDATE)),
                turn("b", course(DEPRECATED), course(CANDIDATE, inverts=True)),
            ],
            "2 of 40 patterns change state, 1 would invert",
        ),
        (
            [turn("a", course(DEPRECATED), course(DEPRECATED, inverts=True))],
            "No pattern changes state, 1 would invert",
        ),
        (
            [turn("a", course(DEPRECATED, inverts=True), course(DEPRECATED))],
            "No pattern changes state, 1 would no longer invert",
        ),
    ],
)
def test_the_headline_summarizes_the_changes(turns: list[PatternDifference], message: str) -> None:
    assert replay_summary(replay(*turns)) == message


def cells(found: PatternDifference, view: ProjectState) -> dict[str, str]:
    return {name: plain_text(parts) for name, parts in difference_cells(found, view).items()}


def test_a_changed_pattern_shows_both_states_and_the_time(view: ProjectState) -> None:
    pattern = next(iter(view.snapshot.patterns.values()))
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE)), view) == {
        "id": pattern.id,
        "change": "proven → candidate",
        "why": "since 2026-11-18 21:00:00 UTC",
        "title": pattern_title(pattern),
    }
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE, days=None)), view)["why"] == ""
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE, days=600)), view)["why"].startswith("since 2025-03")


@pytest.mark.parametrize(
    ("before", "after", "pinned", "note"),
    [
        (False, True, False, "would invert since 2026-11-18 21:00:00 UTC"),
        (False, True, True, "pinned, inverts since 2026-11-18 21:00:00 UTC"),
        (True, False, False, "would no longer invert"),
        (True, False, True, "pinned, no longer inverts"),
        (True, True, True, "pinned: state stays"),
    ],
)
def test_inversions_and_pins_are_noted(view: ProjectState, before: bool, after: bool, pinned: bool, note: str) -> None:
    was, then = course(DEPRECATED, inverts=before), course(DEPRECATED, inverts=after)
    found = cells(turn("gone", was, then, pinned=pinned), view)
    assert (found["change"], found["why"], found["title"]) == ("deprecated", note, "gone")


def test_an_undated_inversion_is_noted_without_a_day(view: ProjectState) -> None:
    undated = Course(state=DEPRECATED, since=None, inverts=True, inverted_at=None)
    assert cells(turn("gone", course(DEPRECATED), undated), view)["why"] == "would invert"


def test_the_page_has_the_tried_value_the_counts_and_each_change(view: ProjectState) -> None:
    known = find_threshold("maturity.half_life_days")
    settings = with_threshold(TODAY, known.name, "30")
    hostile = turn("pat\x1b[2J\n[bold]x", course(PROVEN), course(CANDIDATE))
    page = to_markdown(what_if_document(replay(hostile), [known], settings, view))
    assert "half\\_life\\_days: 90 → 30" in page and "\x1b" not in page
    assert "1 of 40 patterns changes state" in page and "1,240 results replayed" in page
    assert "| candidate | 11 | 14 | +3 |" in page and "proven → candidate" in page
