"""A context without what is held out is the whole context less these patterns and the learnings that say the same."""

from __future__ import annotations

from pathlib import Path

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.contexts import prepare_delivery, prepare_task_injection
from core.learning.assignment import Coin, Experiment
from core.learning.evidence import find_origin
from core.project.project import Project
from core.retrieval.injection import HELD_OUT
from tests.conftest import WriteSample
from tests.factories import NOW


def test_nothing_takes_the_place_of_what_is_held_out(tmp_path: Path, write_sample: WriteSample) -> None:
    write_sample(tmp_path, NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    state = project.load()
    patterns, removed = state.snapshot.patterns, 0
    for number, task in enumerate(dict.fromkeys(loop.task for loop in state.snapshot.loops.values() if loop.task)):
        coin = Coin(Experiment(0.5, b"%d" % number), "t")
        whole, rest = prepare_task_injection(state, task), prepare_task_injection(state, task, coin=coin)
        given = prepare_delivery(state, task, coin=coin)
        assert (given.pattern_ids, given.reflection_ids) == (rest.pattern_ids, rest.reflection_ids)
        held_out = {one.pattern_id for one in rest.assigned if one.is_held_out}
        assert set(rest.pattern_ids) == set(whole.pattern_ids) - held_out
        assert held_out == {one.pattern_id for one in rest.left_out if one.reason == HELD_OUT}
        works = {origin.loop_id for id in held_out if (origin := find_origin(patterns[id])) is not None}
        kept = [one.id for one in whole.reflections.chosen if works.isdisjoint(one.sources)]
        assert list(rest.reflection_ids) == kept
        removed += len(whole.reflection_ids) - len(kept)
    assert removed
