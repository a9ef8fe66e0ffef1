from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from core.decisions.commands import Archive, Deprecate, Quarantine, Undo
from core.index.project_state import ProjectState
from core.project.as_of import build_past_state
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity
from core.show.comparison import CONTEXT, ENDED, NEW, RATE, REMOVED, STARTED, STATE, PatternChange, compare_states
from tests.core.project.test_as_of import IDS, Clock, open_project, report, view_of
from tests.factories import NOW, days_ago, make_event, make_pattern


def by_id(before: ProjectState, after: ProjectState) -> dict[str, PatternChange]:
    return {change.pattern_id: change for change in compare_states(before, after).patterns}


def test_equal_times_have_no_changes(tmp_path: Path) -> None:
    view = open_project(tmp_path, Clock()).view
    found = compare_states(view, view)
    assert (found.patterns, found.decisions, found.loops, found.questions) == ((), (), (), ())
    assert (found.helped, found.failed, found.other) == (0, 0, 0)


def test_a_changed_state_names_its_decision_or_evidence(tmp_path: Path) -> None:
    clock = Clock()
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
    back = compare_states(view, build_past_state(view, start))
    assert {change.pattern_id: change.kind for change in back.patterns}[IDS[2]] == NEW


def test_a_decision_that_was_undone_is_not_the_cause_of_a_later_change(tmp_path: Path) -> None:
    clock = Clock()
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
    clock = Clock()
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
    clock = Clock()
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
    assert begun.until < NOW
