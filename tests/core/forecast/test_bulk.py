from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.commands import bulk
from core.demo.sample import copy_sample
from core.forecast.forecast import forecast_bulk
from core.project.project import Project
from core.records.decisions import Verb
from core.records.patterns import Maturity
from core.state.contexts import prepare_task_injection
from core.state.project_state import ProjectState

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


def contexts(view: ProjectState) -> list[str]:
    tasks = [loop.task for loop in view.snapshot.loops.values() if loop.status.active and loop.task]
    return [prepare_task_injection(view, task).context for task in tasks]


def test_bulk_forecast_matches_the_decision(tmp_path: Path) -> None:
    copy_sample(tmp_path, NOW)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    before = open_project.load()
    states = {id: before.assessment(id).state for id in before.board.ids}
    ids = [id for id, state in states.items() if state is not Maturity.CANDIDATE]
    ledger = len(before.snapshot.decisions)
    found = forecast_bulk(open_project, Verb.DEPRECATE, ids)
    assert found is not None
    assert open_project.view is before and len(open_project.view.snapshot.decisions) == ledger
    decided = open_project.decide(bulk(Verb.DEPRECATE, ids, "obsolete"))
    assert (found.asked, found.decided) == (len(ids), len(decided.decisions))
    assert sum(count for _, count in found.refused) == len(decided.refused) > 0
    turned = [id for id in ids if open_project.view.assessment(id).state is not states[id]]
    assert sum(count for _, _, count in found.turned) == len(turned)
    assert {after for _, after, _ in found.turned} == {Maturity.DEPRECATED}
    now, then = contexts(open_project.view), contexts(before)
    assert found.effect.loops == len(now)
    assert found.effect.changed_of("loop") == sum(one != other for one, other in zip(then, now, strict=True)) > 0
    assert found.effect.tokens[1] < found.effect.tokens[0]


def test_bulk_forecast_reports_a_refusal_of_all(tmp_path: Path) -> None:
    copy_sample(tmp_path, NOW)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    view = open_project.load()
    proven = [one for one in map(view.assessment, view.board.ids) if one.state is Maturity.PROVEN and one.pin is None]
    ids = [one.pattern_id for one in proven[:2]]
    found = forecast_bulk(open_project, Verb.RESET, ids)
    assert found is not None and (found.decided, found.turned) == (0, ())
    assert "is not pinned" in found.refused[0][0]
    assert forecast_bulk(open_project, Verb.DEPRECATE, ids, stop=lambda: True) is None
