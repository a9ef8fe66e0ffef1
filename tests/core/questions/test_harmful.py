"""A lesson that hurts in an experiment is a question, whatever else is known about it."""

from __future__ import annotations

from pathlib import Path

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Undo
from core.index.review_items import HARMFUL, ReviewItem
from core.project.project import Project
from core.questions.kinds import answer
from core.records.patterns import Maturity
from core.sources.events import append_events
from core.trust.experiment_secret import read_or_make_secret
from tests.conftest import WriteSample
from tests.core.index.test_trials import trial_events
from tests.factories import NOW

PATTERN = "pat-error-type-mismatch-003"


def questions(project: Project) -> list[ReviewItem]:
    return [item for item in project.view.queue if item.kind == HARMFUL]


def test_it_is_asked_at_once_and_its_answers_can_be_undone(tmp_path: Path, write_sample: WriteSample) -> None:
    write_sample(tmp_path, NOW)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    assert not questions(open_project)
    read_or_make_secret()
    append_events(open_project.project, *trial_events(PATTERN, (0.8, 0.1), 80))
    open_project.apply((open_project.project.events,))
    (item,) = questions(open_project)
    assert item.subject == PATTERN and item.is_worth_reading and "by chance" in item.reason
    for action in ("accept", "reject"):
        found = answer(item, open_project.view, action)
        assert found is not None and not found.why_not
        open_project.decide(found.command)
        assert not questions(open_project)
        is_deprecated = open_project.view.assessment(PATTERN).state is Maturity.DEPRECATED
        assert is_deprecated is (action == "accept")
        open_project.decide(Undo())
        assert questions(open_project)
