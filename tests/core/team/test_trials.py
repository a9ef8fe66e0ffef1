"""Trials of experiments, pooled over the projects of a team."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from core.index.trials import list_results, list_units
from core.learning.experiments import Tally, Verdict, compare_arms, tally_trials
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event, Trial
from core.records.team import TeamTrial
from core.show.metrics.sections import compare_pooled, describe_pool
from core.team.errors import InvalidCall, LevelTooLow
from core.team.server import Space
from core.trust.experiment_secret import read_or_make_secret
from tests.core.team.calls import PATTERN, Psql, call, join, make_decision, make_trial
from tests.core.team.working_copy import START, WorkingCopy, make_record
from tests.team_server import Team

A: Final = "pat-error-a-001"
MEMBER: Final = "member Carl"


def make_trials(number: int, **changes: Any) -> list[TeamTrial]:
    """Trials that all show that the lesson helps, half of them with it."""
    arms = (index % 2 == 0 for index in range(number))
    return [make_trial(**{"is_held_out": is_held_out, "outcome": is_held_out, **changes}) for is_held_out in arms]


def make_experiment(pattern_id: str, tasks: int, name: str) -> list[Event]:
    """The events of tasks in which an error returned when its lesson was held out."""
    events = []
    for number in range(tasks):
        at, is_held_out = START - timedelta(days=tasks - number), number % 2 == 0
        trial = Trial(task=f"{name}{number}@x", share=0.5, is_held_out=is_held_out)
        assigned = Event(id=f"a-{name}{number}", at=at, kind=ASSIGNED, pattern_id=pattern_id, trial=trial)
        over = replace(trial, returned=is_held_out)
        events += [assigned, replace(assigned, id=f"o-{name}{number}", kind=TRIAL_OUTCOME, success=True, trial=over)]
    return events


@pytest.fixture(autouse=True)
def _secret() -> None:
    """A secret of the experiment, which all members of these tests share."""
    read_or_make_secret()


def tally_of(copy: WorkingCopy) -> Tally:
    results = list_results(list_units(copy.open().view.snapshot, START), is_far=False)
    return tally_trials(one for one in results if one.pattern == A)


def test_a_sync_sends_each_finished_trial_once(team: Team, tmp_path: Path) -> None:
    rita, ada = WorkingCopy(tmp_path / "rita", team), WorkingCopy(tmp_path / "ada", team, "ada")
    for copy in (rita, ada):
        copy.write(make_record(A))
        copy.log(*make_experiment(A, 6, copy.role), *make_experiment("pat-unknown", 2, "u"))
    rita.log(make_experiment(A, 8, "open")[0])
    assert rita.sync().sent_trials == 12
    assert rita.sync().sent_trials == 0
    assert ada.sync().sent_trials == 12
    rita.forget_state()
    rita.sync()
    near, far = team.space("rolf").pooled_trials(10)
    assert (near.kind, near.projects, sum(cell[-1] for cell in near.cells)) == ("returned", 2, 12)
    assert (far.kind, sum(cell[-1] for cell in far.cells)) == ("succeeded", 12)
    pooled = compare_pooled(near)
    assert (pooled.given, pooled.held_out) == ((6, 0), (6, 6))
    assert pooled == compare_arms(tally_of(rita) + tally_of(ada))
    assert "in 2 projects, given: error in 0 of 6 tasks; held out: error in 6 of 6;" in f"in {describe_pool(near)}"


def count(space: Space) -> int:
    return sum(cell[-1] for pool in space.pooled_trials(10) for cell in pool.cells)


def test_trials_of_projects_are_pooled(team: Team) -> None:
    ada, rita = team.space("ada"), team.space("rita")
    ada.add_trials(join(ada), make_trials(12))
    rita.add_trials(join(rita), [*make_trials(12), *make_trials(4, kind="succeeded", outcome=True)])
    near, far = team.space("rolf").pooled_trials(10)
    assert (near.pattern_id, near.kind, near.projects, near.members) == (PATTERN, "returned", 2, 2)
    assert near.cells == ((0.5, 10, False, False, 12), (0.5, 10, True, True, 12))
    assert (far.kind, far.members) == ("succeeded", 1)
    pooled = compare_pooled(near)
    assert (pooled.given, pooled.held_out) == ((12, 0), (12, 12))
    assert pooled.verdict is Verdict.HELPS
    assert team.space("otto").pooled_trials(10) == ()
    assert len(ada.pooled_trials(1)) == 1


def test_a_trial_counts_once_and_is_never_changed(team: Team) -> None:
    ada, rita = team.space("ada"), team.space("rita")
    project = join(ada, rita)
    (trial,) = make_trials(1)
    assert ada.add_trials(project, [trial, trial]).new == 1
    assert rita.add_trials(project, make_trials(1, id=trial.id, outcome=False)).new == 0
    (pool,) = ada.pooled_trials(10)
    assert pool.cells == ((0.5, 10, True, True, 1),)


def test_trials_of_contributors_count_up_to_a_quarter_of_those_of_reviewers(team: Team) -> None:
    carl, rita = team.space("carl"), team.space("rita")
    carl.add_trials(join(carl), make_trials(50))
    assert count(carl) == 2
    rita.add_trials(join(rita), make_trials(40))
    assert count(carl) == 50


def test_trials_of_a_pattern_a_day_are_limited(team: Team) -> None:
    for role, most in (("carl", 100), ("rita", 1000)):
        space = team.space(role)
        project, trials = join(space), make_trials(most + 5)
        answer = space.add_trials(project, trials)
        assert (answer.new, len(answer.later)) == (most, 5)
        later = [trial for trial in trials if trial.id in answer.later]
        assert space.add_trials(project, later).later == answer.later
        assert space.add_trials(project, make_trials(1, pattern_id="other")).new == 1


@pytest.mark.parametrize(
    "changes",
    [{"share": 0.05}, {"share": "NaN"}, {"rate": 0}, {"rate": 20}, {"kind": "liked"}, {"pattern_id": "p" * 201}],
    ids=str,
)
def test_a_trial_with_a_value_out_of_range_is_refused(team: Team, psql: Psql, changes: dict[str, Any]) -> None:
    carl = team.space("carl")
    values = msgspec.json.encode([msgspec.to_builtins(make_trial()) | changes]).decode()
    assert "violates check constraint" in psql("carl", call(carl.info.id, "add_trials", join(carl), values))
    assert carl.pooled_trials(10) == ()


def test_trials_are_sent_by_members_of_the_project_and_only_by_the_function(team: Team, psql: Psql) -> None:
    ada, rolf, carl = team.space("ada"), team.space("rolf"), team.space("carl")
    project = join(ada)
    with pytest.raises(LevelTooLow, match="sending trials needs contributor"):
        rolf.add_trials(project, make_trials(1))
    with pytest.raises(InvalidCall, match="you have not joined the project"):
        carl.add_trials(project, make_trials(1))
    ada.add_trials(project, make_trials(1))
    answer = psql("ada", "update ralphdeck.trials set outcome = false", "delete from ralphdeck.trials")
    assert answer.count("permission denied") == 2


def test_trials_of_a_removed_member_are_withdrawn_with_its_uses(team: Team) -> None:
    ada, carl = team.space("ada"), team.space("carl")
    project = join(ada)
    carl.add_trials(join(carl), make_trials(2))
    withdrawal = make_decision(by="Ada", verb="revoke", subject=MEMBER, after={"last": str(ada.now()), "sent": "all"})
    ada.decide(project, withdrawal, [MEMBER], seen=0)
    assert count(ada) == 0
    ada.decide(project, make_decision(2, "Ada", "undo", subject="d1"), [MEMBER], seen=1)
    assert count(ada) == 2
    ada.decide(project, make_decision(3, "Ada", "redo", subject="d1"), [MEMBER], seen=2)
    assert count(ada) == 0
