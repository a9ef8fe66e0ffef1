"""The functions of the server, through `Space`."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from core.records.team import Level
from core.team.chain import first_head, verify
from core.team.errors import InvalidCall, LevelTooLow, NotMember
from tests.core.team.calls import AT, PATTERN, join, make_candidate, make_decision, make_text, make_use
from tests.team_server import HALF_LIFE_DAYS, Team


def test_member_sees_its_space_and_level(team: Team) -> None:
    info = team.space("carl").info
    assert (info.name, info.member, info.level) == ("acme", "Carl", Level.CONTRIBUTOR)
    assert info.half_life_days == HALF_LIFE_DAYS


def test_role_without_membership_is_refused(team: Team) -> None:
    with pytest.raises(NotMember, match="the role mallory is not a member of a space"):
        team.space("mallory")


def test_use_is_added_to_the_sums_once(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    assert space.add_events(project, [make_use()]).new == {UUID(int=1)}
    assert space.add_events(project, [make_use(), make_use(2, success=False, weight=0.5)]).new == {UUID(int=2)}
    sums = space.sums().sums[PATTERN]
    factor = 0.5 ** ((space.info.epoch - AT) / timedelta(days=HALF_LIFE_DAYS))
    assert (sums.successes, sums.failures, sums.uses, sums.undecayed) == (1, 1, 2, 1.5)
    assert sums.helpful == pytest.approx(factor)
    assert sums.harmful == pytest.approx(factor / 2)
    assert sums.last_used == AT


def test_withdrawal_subtracts_a_use_once(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    space.add_events(project, [make_use(1), make_use(2)])
    withdrawal = make_use(3, withdraws=UUID(int=1))
    assert space.add_events(project, [withdrawal, withdrawal]).new == {UUID(int=3)}
    assert space.add_events(project, [withdrawal]).new == frozenset()
    assert space.add_events(project, [make_use(4, withdraws=UUID(int=1))]).new == frozenset()
    sums = space.sums().sums[PATTERN]
    assert (sums.successes, sums.uses, sums.undecayed) == (1, 1, 1.0)


def test_sums_that_did_not_change_are_not_read_again(team: Team) -> None:
    space = team.space("carl")
    project = join(space)
    space.add_events(project, [make_use(1), make_use(2, pattern_id="b")])
    first = space.sums()
    space.add_events(project, [make_use(3, pattern_id="b")])
    second = space.sums(first.cursor)
    assert first.sums.keys() == {PATTERN, "b"}
    assert second.sums.keys() == {"b"}
    assert space.sums(second.cursor).sums == {}


def test_decisions_get_numbers_and_a_chain(team: Team) -> None:
    space = team.space("rita")
    project = join(space)
    first = space.decide(project, make_decision(1), [PATTERN], seen=0)
    second = space.decide(project, make_decision(2), ["other"], seen=0)
    assert [first.seq, second.seq] == [1, 2]
    found = space.decisions(0)
    assert [decision.member for decision in found] == ["Rita", "Rita"]
    assert verify(first_head(space.info.id), found) == space.head()


def test_decision_sent_again_gets_the_same_number(team: Team) -> None:
    space = team.space("rita")
    project = join(space)
    first = space.decide(project, make_decision(1), [PATTERN], seen=0)
    again = space.decide(project, make_decision(1), [PATTERN], seen=0)
    assert (again.seq, again.is_new) == (first.seq, False)
    assert len(space.decisions(0)) == 1


def test_second_decision_on_a_subject_gets_a_conflict(team: Team) -> None:
    rita, ada = team.space("rita"), team.space("ada")
    project, other = join(rita), join(ada)
    rita.decide(project, make_decision(1), [PATTERN], seen=0)
    receipt = ada.decide(other, make_decision(2, by="Ada", verb="deprecate"), [PATTERN], seen=0)
    (conflict,) = receipt.conflicts
    assert (receipt.seq, conflict.by, conflict.seq, conflict.kind) == (None, "Rita", 1, "decision")
    assert ada.decide(other, make_decision(2, by="Ada"), [PATTERN], seen=1).seq == 2
    assert rita.decide(project, make_decision(3), [PATTERN], seen=1, known=["d2"]).seq == 3


def test_decision_on_another_text_gets_a_conflict(team: Team) -> None:
    rita = team.space("rita")
    project = join(rita)
    rita.put_patterns([make_text(content_hash="new")])
    receipt = rita.decide(project, make_decision(), [PATTERN], seen=0, texts={PATTERN: "old"})
    (conflict,) = receipt.conflicts
    assert (conflict.kind, conflict.subject, conflict.content_hash) == ("text", PATTERN, "new")


def test_contributor_adds_patterns_but_does_not_change_them(team: Team) -> None:
    space = team.space("carl")
    text = make_text()
    assert space.put_patterns([text]) == space.put_patterns([text]) == ()
    changed = make_text(content_hash="b", expected="a")
    (conflict,) = space.put_patterns([changed])
    assert (conflict.by, conflict.content_hash) == ("Carl", "a")
    assert team.space("rita").put_patterns([changed]) == ()
    (pattern,) = space.patterns([PATTERN])
    assert (pattern.content_hash, pattern.changed_by) == ("b", "Rita")


def test_contributor_cannot_promote(team: Team) -> None:
    space = team.space("carl")
    with pytest.raises(LevelTooLow, match="your role in the space acme is contributor; promote needs reviewer"):
        space.decide(join(space), make_decision(by="Carl"), [PATTERN], seen=0)


def test_contributor_adds_candidates(team: Team) -> None:
    space = team.space("carl")
    receipt = space.decide(join(space), make_candidate(), ["loop-1"], seen=0, records=[make_text()])
    assert receipt.is_new
    assert space.changed_patterns().ids == {PATTERN}


def test_decision_must_be_signed_by_its_member(team: Team) -> None:
    space = team.space("rita")
    with pytest.raises(InvalidCall, match="signed by Ada, but your name in the space acme is Rita"):
        space.decide(join(space), make_decision(by="Ada"), [PATTERN], seen=0)


def test_question_that_someone_has_open_is_leased_to_one_client(team: Team) -> None:
    rita, ada = team.space("rita"), team.space("ada")
    one, two = uuid4(), uuid4()
    assert [lease.member for lease in rita.heartbeat(one, question="q").leases] == ["Rita"]
    seen = ada.heartbeat(two, place="Review", question="q")
    assert [lease.client_id for lease in seen.leases] == [str(one)]
    assert [client.member for client in seen.present] == ["Ada", "Rita"]
    rita.go_offline(one)
    assert [lease.member for lease in ada.heartbeat(two, question="q").leases] == ["Ada"]


def test_admin_adds_and_removes_a_member(team: Team) -> None:
    ada = team.space("ada")
    ada.set_member("nora", "Nora", Level.READER)
    assert team.space("nora").info.level is Level.READER
    ada.set_member("nora", "Nora", None)
    with pytest.raises(NotMember):
        team.space("nora")
    assert {member.name: member.level for member in ada.members()}["Nora"] is None
