"""The indexes of extraction are built in steps."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.errors import Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.base.steps import run_all
from core.cli.demo.sample import copy_sample
from core.decisions import commands
from core.index.review_items import OFFER
from core.index.texts import Texts
from core.project.project import Project
from core.questions.extraction.engine import KnownPatterns
from core.questions.extraction.material import Materials
from core.records.snapshot import Snapshot

NOW = datetime(2026, 2, 4, tzinfo=UTC)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    return folder


def test_indexes_built_in_steps_are_those_built_at_once(sample: Path) -> None:
    paths = ProjectPaths(sample)
    view = Project(paths, Settings(), by="ada", clock=lambda: NOW, cache=False).load()
    similar = Texts(Snapshot(patterns=view.snapshot.patterns)).similarity
    known, plain = (KnownPatterns.of(view.snapshot, similar) for _ in range(2))
    run_all(known.prepare_in_steps())
    assert known.messages == plain.messages and len(plain.messages) > 3
    assert (known.tasks, known.of_loop) == (plain.tasks, plain.of_loop)
    prepared, fresh = (Materials(paths, view.snapshot) for _ in range(2))
    run_all(prepared.prepare_in_steps())
    loop_ids = [loop.id for loop in view.snapshot.loops.values() if loop.status.ended]
    assert [prepared.read(id) for id in loop_ids] == [fresh.read(id) for id in loop_ids]


def test_a_pattern_that_was_archived_is_not_extracted_again_from_the_same_work(tmp_path: Path) -> None:
    copy_sample(tmp_path, NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: NOW, cache=False)
    project.load()
    source = next(item for item in project.search_all().queue if item.kind == OFFER).subject
    pattern_id, *_ = project.decide(commands.Extract(source_id=source)).decision.after["patterns"]
    project.decide(commands.Archive(pattern_id, reason="rejected in review"))
    again = project.extraction(source)
    assert not again.new
    assert f"archived before as {pattern_id}: rejected in review" in again.why_nothing
    with pytest.raises(Refused):
        project.decide(commands.Extract(source_id=source))
