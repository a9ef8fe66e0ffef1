"""Events about experiments and verdicts that arrive by Git in a trusted project, without a new lesson."""

from __future__ import annotations

import dataclasses
import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core.base.settings import Settings
from core.index.experiment import with_open_tasks
from core.index.project_state import ProjectState
from core.project.project import Project
from core.records.events import ASSIGNED, VERDICT, Event
from core.sources.events import append_assignments, append_events
from core.trust.experiment_secret import read_or_make_secret, secret_file, trial_key
from tests.core.index.test_trials import trial_events
from tests.core.trust.conftest import MakePerson
from tests.core.trust.people import HARMLESS, Person, write_patterns
from tests.factories import NOW, make_event

OWN = "pat-success-own-001"


@pytest.fixture
def project(author: Person) -> Person:
    """A person with a trusted project, one lesson in it, and an experiment."""
    write_patterns(author.folder, own=HARMLESS)
    author.run("trust", "--yes")
    author.run("experiment", "start", "--share", "0.5")
    author.run("experiment")
    return author


def make_trials(rates: tuple[float, float], count: int) -> list[Event]:
    """Return the events of trials that are long over, since commands use the time of the machine."""
    return [replace(event, at=event.at - timedelta(days=3_650)) for event in trial_events(OWN, rates, count)]


def record(person: Person, *events: Event) -> None:
    person.act()
    append_events(person.paths, *events)


def write(person: Person, *events: Event) -> None:
    """Write lines as another person does, without a code or a digest of this user."""
    person.paths.events.parent.mkdir(parents=True, exist_ok=True)
    with person.paths.events.open("ab") as log:
        log.writelines(msgspec.json.encode(event) + b"\n" for event in events)


def status(person: Person) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(person.run("experiment", "--json").out)
    return shown


def opened(person: Person) -> ProjectState:
    person.act()
    project = Project(person.paths, Settings(), by="ada", clock=lambda: NOW, cache=False, asks=False)
    project.load()
    return project.view


def test_trials_that_arrive_by_pull_are_counted_apart_and_change_no_verdict(
    project: Person, make_person: MakePerson, tmp_path: Path
) -> None:
    project.commit()
    other = make_person("mallory", tmp_path / "other")
    project.git("clone", "-q", str(project.folder), str(other.folder))
    other.act()
    read_or_make_secret()
    record(other, *make_trials((0.9, 0.1), 100))
    assert status(other)["patterns"][0]["verdict"] == "hurts"
    other.commit()
    project.git("pull", "-q", str(other.folder), "main")
    shown = status(project)
    assert (shown["patterns"], shown["success"], shown["not_counted"]) == ([], None, 100)
    assert "100 trials were recorded by another person" in project.run("experiment").out
    assert not json.loads(project.run("review", "--json").out)["questions"]


def test_trials_of_a_copy_of_the_project_or_of_another_secret_do_not_count(project: Person, tmp_path: Path) -> None:
    project.commit()
    project.git("worktree", "add", "-q", str(tmp_path / "tree"))
    project.act()
    assert trial_key(tmp_path / "tree") == trial_key(project.folder), "a worktree shares the trials"
    record(project, *make_trials((0.1, 0.9), 20))
    folder = tmp_path / "fork" / project.folder.name
    shutil.copytree(project.folder, folder)
    assert status(dataclasses.replace(project, folder=folder))["not_counted"] == 20
    assert status(project)["not_counted"] == 0 and status(project)["patterns"]
    secret_file().unlink()
    shown = status(project)
    assert (shown["patterns"], shown["not_counted"]) == ([], 20)


def test_only_own_assignments_of_the_last_day_are_tasks_at_work(project: Person) -> None:
    own, forged, future = (one for one in trial_events(OWN, (0, 0), 3) if one.kind == ASSIGNED)
    record(project, replace(own, at=NOW), replace(future, at=NOW + timedelta(days=1)))
    write(project, replace(forged, at=NOW), replace(forged, id="older", at=NOW - timedelta(days=300)))
    assert own.trial is not None
    for name, at in (("future", NOW + timedelta(days=30_000)), ("now", NOW)):  # many forged ones do not hide it
        experiment = with_open_tasks(opened(project), project.paths).experiment
        assert experiment is not None and experiment.open_tasks == (own.trial.task,)
        write(project, *(replace(forged, id=f"{name}-{number}", at=at) for number in range(1_100)))
    experiment = with_open_tasks(opened(project), project.paths).experiment
    assert experiment is not None and experiment.open_tasks == (own.trial.task,)


def test_a_forged_assignment_does_not_take_the_place_of_an_own_one(project: Person) -> None:
    events = [one for one in make_trials((0, 0), 3) if one.kind == ASSIGNED]
    write(project, *(replace(one, id=f"forged-{one.id}") for one in events))
    project.act()
    append_assignments(project.paths, *events)
    append_assignments(project.paths, *(replace(one, id=f"again-{one.id}") for one in events))
    assert [one["given"] + one["held_out"] for one in status(project)["patterns"]] == [3]
    assert len(opened(project).snapshot.events) == 6


def test_a_verdict_that_was_made_elsewhere_does_not_count(project: Person) -> None:
    names = {"pattern_id": OWN, "loop_id": "task-001.1"}
    record(project, make_event(1, "injected", NOW, **names))
    write(project, make_event(2, VERDICT, NOW, **names, is_followed=False))
    assert verdicts_of(project) == [None]
    record(project, make_event(3, VERDICT, NOW, **names, is_followed=True))
    assert verdicts_of(project) == [True]


def verdicts_of(person: Person) -> list[bool | None]:
    state = opened(person)
    return [one.is_followed for one in state.inputs.verdicts(state.snapshot.patterns[OWN])]
