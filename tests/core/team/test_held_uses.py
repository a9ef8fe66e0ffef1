"""Results of a contributor count only as far as others support them, or a reviewer has confirmed them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from core.decisions.commands import CountReports, DiscardReports, Redo, Undo
from core.learning.bursts import Burst
from core.records.team import Level, TeamSums
from core.team.errors import LevelTooLow
from core.team.server import Space
from tests.core.team.calls import PATTERN, Psql, call, join, make_decision, make_use
from tests.core.team.working_copy import WorkingCopy, make_record, make_use_event
from tests.team_server import Team

A: Final = "pat-error-a-001"
RECENT: Final = datetime.now(UTC) - timedelta(hours=1)
"""Uses of now: older ones would have decayed, by the clock of the server."""
MEMBER: Final = "member Carl"


@pytest.fixture
def carl(team: Team) -> Space:
    return team.space("carl")


@pytest.fixture
def rita(team: Team, tmp_path: Path) -> WorkingCopy:
    """A reviewer's project, in which the pattern A is a candidate."""
    copy = WorkingCopy(tmp_path / "rita", team)
    copy.write(make_record(A))
    copy.log(make_use_event(1, A, "own-1"), make_use_event(2, A, "own-2", False))
    copy.sync()
    return copy


def send(space: Space, project: UUID, *, pattern: str = A, **changes: Any) -> UUID:
    """Send one result; returns its ID."""
    use = make_use(**{"pattern_id": pattern, "at": RECENT, "number": uuid4().int, **changes})
    space.add_events(project, [use])
    return use.id


def counts(space: Space, pattern: str = A) -> tuple[int, int]:
    sums = space.sums().sums.get(pattern, TeamSums(pattern_id=pattern))
    return sums.successes, sums.failures


def bursts(copy: WorkingCopy) -> list[Burst]:
    return list(copy.open().view.board.bursts)


@pytest.mark.parametrize(("success", "count"), [(True, 100), (False, 100), (True, 3), (False, 3)])
def test_a_sum_by_sql_makes_nothing_proven_or_deprecated(
    psql: Psql, carl: Space, rita: WorkingCopy, success: bool, count: int
) -> None:
    project = join(carl)
    use = {"pattern_id": A, "kind": "applied", "at": str(RECENT), "success": success, "weight": 1, "count": count}
    for _ in range(2):
        psql("carl", call(carl.info.id, "add_events", project, json.dumps([{"id": str(uuid4()), **use}])))
    rita.sync()
    assert rita.state_of_pattern(A) == "candidate"
    (burst,) = bursts(rita)
    assert (burst.source, burst.patterns) == (MEMBER, (A,))
    assert (burst.successes, burst.failures) == ((2 * count, 0) if success else (0, 2 * count))


def test_praise_for_work_that_does_not_exist_makes_nothing_proven(
    team: Team, rita: WorkingCopy, tmp_path: Path
) -> None:
    """As by eight times `loop record job-N A --success` with a sync after each."""
    carl = WorkingCopy(tmp_path / "carl", team, "carl", rita.clock)
    carl.sync()
    for number in range(8):
        carl.log(make_use_event(100 + number, A, f"job-{number}", at=RECENT))
        carl.sync()
    rita.sync()
    assert rita.state_of_pattern(A) == "established"
    assert rita.sums([A])[A]["successes"] == 3
    assert [item.question for item in rita.open(asks=True).view.queue if item.subject == MEMBER] == [
        "member Carl sent 6 unconfirmed results. Ignore them?"
    ]


def test_results_that_others_support_count_at_once(team: Team, carl: Space) -> None:
    rita = team.space("rita")
    rita.add_events(join(rita), [make_use(1, pattern_id=A, at=RECENT, count=40)])
    own = join(carl)
    carl.add_events(own, [make_use(2, pattern_id=A, at=RECENT, count=9)])
    assert counts(carl) == (49, 0)
    carl.add_events(own, [make_use(3, pattern_id=A, at=RECENT, count=2)])
    assert counts(carl) == (49, 0)


def test_old_support_weighs_as_little_as_old_evidence(team: Team, carl: Space) -> None:
    rita = team.space("rita")
    rita.add_events(join(rita), [make_use(1, pattern_id=A, at=RECENT - timedelta(days=300), count=100)])
    carl.add_events(join(carl), [make_use(2, pattern_id=A, at=RECENT, count=9)])
    assert counts(carl) == (100, 0)


def test_two_contributors_do_not_support_each_other(team: Team, carl: Space) -> None:
    team.space("ada").set_member("nora", "Nora", Level.CONTRIBUTOR)
    nora = team.space("nora")
    own, other = join(carl), join(nora)
    for _ in range(3):
        send(carl, own)
        send(nora, other)
    assert counts(carl) == (2, 0)


def test_failures_of_many_patterns_within_an_hour_are_held(carl: Space) -> None:
    own = join(carl)
    for number in range(8):
        send(carl, own, pattern=f"p{number}", success=False)
    assert [counts(carl, f"p{number}")[1] for number in range(8)] == [1] * 5 + [0] * 3
    (held,) = carl.held_uses()
    assert (held.member, held.patterns, held.successes, held.failures) == ("Carl", ("p5", "p6", "p7"), 0, 3)


def test_injections_and_uses_without_a_result_are_not_held(carl: Space) -> None:
    carl.add_events(
        join(carl), [make_use(1, kind="injected", success=None, count=50), make_use(2, success=None, count=50)]
    )
    sums = carl.sums().sums[PATTERN]
    assert (sums.injected_only, sums.uses) == (50, 50)
    assert carl.held_uses() == ()


def test_confirmed_results_count_and_an_undo_takes_them_back(carl: Space, rita: WorkingCopy) -> None:
    carl.add_events(join(carl), [make_use(1, pattern_id=A, at=RECENT, count=20)])
    rita.sync()
    project = rita.open()
    decided = project.decide(CountReports(source=MEMBER, reason="nightly jobs"))
    assert decided.summary == "confirmed the reports of member Carl on 1 pattern"
    assert list(project.view.board.bursts) == []
    rita.sync()
    assert counts(carl) == (21, 1)
    assert rita.state_of_pattern(A) == "proven"
    rita.open().decide(Undo())
    rita.sync()
    assert counts(carl) == (1, 1)
    assert [burst.successes for burst in bursts(rita)] == [20]
    rita.open().decide(Redo())
    rita.sync()
    assert counts(carl) == (21, 1)
    assert bursts(rita) == []


def test_after_a_confirmation_further_results_are_supported(carl: Space, rita: WorkingCopy) -> None:
    own = join(carl)
    carl.add_events(own, [make_use(1, pattern_id=A, at=RECENT, count=40)])
    rita.sync()
    rita.open().decide(CountReports(source=MEMBER))
    rita.sync()
    carl.add_events(own, [make_use(2, pattern_id=A, at=RECENT, count=8)])
    assert counts(carl) == (49, 1)


def test_discarded_results_never_count(carl: Space, rita: WorkingCopy) -> None:
    own, use = join(carl), make_use(1, pattern_id=A, at=RECENT, count=20)
    carl.add_events(own, [use])
    rita.sync()
    rita.open().decide(DiscardReports(source=MEMBER, reason="made up"))
    rita.sync()
    carl.add_events(own, [use])
    assert counts(carl) == (1, 1)
    assert bursts(rita) == []


def test_what_arrives_after_a_decision_is_asked_about_again(carl: Space, rita: WorkingCopy) -> None:
    own = join(carl)
    carl.add_events(own, [make_use(1, pattern_id=A, at=RECENT, count=20)])
    rita.sync()
    carl.add_events(own, [make_use(2, pattern_id=A, at=RECENT, count=30)])
    rita.open().decide(DiscardReports(source=MEMBER))
    rita.sync()
    assert [burst.successes for burst in bursts(rita)] == [30]


def test_a_withdrawn_result_is_neither_held_nor_counted_later(carl: Space, rita: WorkingCopy) -> None:
    own = join(carl)
    carl.add_events(
        own, [make_use(1, pattern_id=A, at=RECENT, count=20), make_use(2, pattern_id=A, at=RECENT, count=7)]
    )
    carl.add_events(own, [make_use(3, pattern_id=A, at=RECENT, withdraws=UUID(int=1))])
    assert [held.successes for held in carl.held_uses()] == [7]
    rita.sync()
    rita.open().decide(CountReports(source=MEMBER))
    rita.sync()
    assert counts(carl) == (8, 1)


def test_the_sender_sees_the_evidence_of_others_while_the_own_is_held(
    team: Team, rita: WorkingCopy, tmp_path: Path
) -> None:
    """Own uses that are not in the sums are not subtracted from them."""
    carl = WorkingCopy(tmp_path / "carl", team, "carl", rita.clock)
    carl.sync()
    carl.log(*(make_use_event(100 + number, A, f"job-{number}", at=RECENT) for number in range(8)))
    carl.sync()
    carl.sync()
    assert carl.sums([A])[A]["successes"] == 9
    rita.sync()
    rita.open().decide(CountReports(source=MEMBER))
    rita.sync()
    for _ in range(2):
        carl.sync()
    assert carl.sums([A])[A]["successes"] == 9
    assert rita.sums([A])[A]["successes"] == 9


@pytest.mark.parametrize("verb", ["confirm", "revoke"])
def test_a_contributor_confirms_nothing(carl: Space, verb: str) -> None:
    project = join(carl)
    carl.add_events(project, [make_use(1, pattern_id=A, at=RECENT, count=20)])
    decision = make_decision(by="Carl", verb=verb, subject=MEMBER, after={"last": "2099-01-01T00:00:00Z"})
    with pytest.raises(LevelTooLow, match=f"{verb} needs reviewer"):
        carl.decide(project, decision, [], seen=0)
    assert counts(carl) == (0, 0)


def test_two_reviewers_do_not_decide_differently(team: Team, carl: Space, rita: WorkingCopy, tmp_path: Path) -> None:
    ada = WorkingCopy(tmp_path / "ada", team, "ada", rita.clock)
    carl.add_events(join(carl), [make_use(1, pattern_id=A, at=RECENT, count=20)])
    for copy in (rita, ada):
        copy.sync()
    rita.open().decide(DiscardReports(source=MEMBER, reason="made up"))
    ada.open().decide(CountReports(source=MEMBER))
    rita.sync()
    assert "Rita had decided" in ada.sync().refused[0]
    assert counts(carl) == (1, 1)


def test_what_was_withdrawn_takes_no_room_from_other_contributors(team: Team, carl: Space) -> None:
    ada = team.space("ada")
    ada.set_member("nora", "Nora", Level.CONTRIBUTOR)
    nora = team.space("nora")
    carl.add_events(join(carl), [make_use(1, pattern_id=A, at=RECENT, count=2)])
    withdrawal = make_decision(by="Ada", verb="revoke", subject=MEMBER, after={"last": str(ada.now()), "sent": "all"})
    ada.decide(join(ada), withdrawal, [MEMBER], seen=0)
    nora.add_events(join(nora), [make_use(2, pattern_id=A, at=RECENT, count=2)])
    assert counts(ada) == (2, 0)
    assert ada.held_uses() == ()
