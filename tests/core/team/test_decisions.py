"""Decisions of a space: one order, a hash chain that every client can verify, and nothing twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from msgspec.structs import replace

from core.records.team import SpaceDecision
from core.team.connection import ChainBroken, InvalidCall
from core.team.decisions import first_head, link_hash, verify
from tests.core.team.working_copy import AT, PATTERN, join, make_decision, make_text
from tests.team_server import Team

REVIEWERS = 20
SPACE_HEAD = first_head(UUID(int=7))


def make_chain(count: int) -> list[SpaceDecision]:
    """A valid chain of decisions."""
    found, previous = [], SPACE_HEAD.hash
    for seq in range(1, count + 1):
        payload = make_decision(seq)
        previous = link_hash(previous, seq, AT, "Rita", payload)
        found.append(
            SpaceDecision(
                seq=seq, id=f"d{seq}", payload=payload, member="Rita", project="web", recorded_at=AT, hash=previous
            )
        )
    return found


def test_chain_is_verified_in_parts() -> None:
    chain = make_chain(6)
    middle = verify(SPACE_HEAD, chain[:3])
    assert verify(middle, chain[3:]) == verify(SPACE_HEAD, chain)


def test_changed_decision_breaks_the_chain() -> None:
    rows: list[dict[str, object]] = [
        {"payload": make_decision(3, reason="other")},
        {"payload": make_decision(3) + " "},
        {"member": "Ada"},
        {"recorded_at": AT + timedelta(microseconds=1)},
        {"id": "d9"},
        {"hash": b"x" * 32},
    ]
    for change in rows:
        chain = make_chain(5)
        chain[2] = replace(chain[2], **change)
        with pytest.raises(ChainBroken, match="decision 3 of the space, or one before it, was changed"):
            verify(SPACE_HEAD, chain)


def test_removed_decision_breaks_the_chain() -> None:
    chain = make_chain(5)
    with pytest.raises(ChainBroken, match="decision 3 is missing in the space; the next one is 4"):
        verify(SPACE_HEAD, chain[:2] + chain[3:])
    renumbered = [*chain[:2], replace(chain[3], seq=3)]
    with pytest.raises(ChainBroken, match="was changed"):
        verify(SPACE_HEAD, renumbered)


def test_reordered_decisions_break_the_chain() -> None:
    chain = make_chain(5)
    chain[1], chain[2] = replace(chain[2], seq=2), replace(chain[1], seq=3)
    with pytest.raises(ChainBroken):
        verify(SPACE_HEAD, chain)


def test_member_and_payload_are_not_confused() -> None:
    """No two decisions have the same bytes: moving a letter from the payload to the name changes the hash."""
    assert link_hash(b"", 1, AT, "Rita", "x{}") != link_hash(b"", 1, AT, "Ritax", "{}")


def test_decisions_of_many_reviewers_form_one_chain(team: Team) -> None:
    spaces = [team.space("rita" if number % 2 else "ada") for number in range(REVIEWERS)]
    project = join(*spaces[:2])

    def decide(number: int) -> int | None:
        space = spaces[number % REVIEWERS]
        payload = make_decision(number, by=space.info.member)
        return space.decide(project, payload, [f"pattern {number}"], seen=0).seq

    with ThreadPoolExecutor(REVIEWERS) as pool:
        numbers = list(pool.map(decide, range(REVIEWERS * 5)))
    assert sorted(filter(None, numbers)) == list(range(1, len(numbers) + 1))
    space = spaces[0]
    assert verify(first_head(space.info.id), space.decisions(0)) == space.head()


def test_server_and_client_hash_the_same_bytes(team: Team) -> None:
    payload = make_decision(1, reason='é \u2028 \U0001f600 " \\ \n\t', after={"text": "\\u0000"})
    space = team.space("rita")
    space.decide(join(space), payload, [PATTERN], seen=0)
    (decision,) = space.decisions(0)
    assert decision.payload == payload
    assert verify(first_head(space.info.id), [decision]) == space.head()


def test_one_of_two_decisions_on_a_subject_at_once_gets_the_conflict(team: Team) -> None:
    spaces = [team.space("rita"), team.space("ada")] * 5
    project = join(*spaces[:2])

    def decide(number: int) -> int | None:
        payload = make_decision(number, by=spaces[number].info.member)
        return team.space(spaces[number].info.member.lower()).decide(project, payload, [PATTERN], seen=0).seq

    with ThreadPoolExecutor(len(spaces)) as pool:
        numbers = list(pool.map(decide, range(len(spaces))))
    assert [number for number in numbers if number is not None] == [1]


def test_same_decision_on_many_connections_at_once_is_recorded_once(team: Team) -> None:
    spaces = [team.space("rita") for _ in range(10)]
    project = join(spaces[0])
    with ThreadPoolExecutor(10) as pool:
        receipts = list(pool.map(lambda one: one.decide(project, make_decision(1), [PATTERN], seen=0), spaces))
    assert {receipt.seq for receipt in receipts} == {1}
    assert [receipt.is_new for receipt in receipts].count(True) == 1
    assert spaces[0].head().seq == 1


def test_decision_changes_texts_with_it_or_not_at_all(team: Team) -> None:
    rita, ada = team.space("rita"), team.space("ada")
    project = join(rita, ada)
    rita.put_patterns([make_text("a"), make_text("b")])
    records = [make_text("a", "new"), make_text("b", "", record=None)]
    refused = ada.decide(
        project, make_decision(1, "Ada"), ["a"], seen=0, texts={"a": "a", "b": "other"}, records=records
    )
    assert [conflict.subject for conflict in refused.conflicts] == ["b"]
    assert {one.pattern_id: one.content_hash for one in rita.patterns("ab")} == {"a": "a", "b": "a"}
    assert ada.decide(project, make_decision(1, "Ada"), ["a"], seen=0, texts={"a": "a", "b": "a"}, records=records).seq
    changed = {one.pattern_id: (one.content_hash, one.record) for one in rita.patterns("ab")}
    assert changed == {"a": ("new", "{}"), "b": ("", None)}


def test_bytes_of_a_decision_that_are_not_json_are_refused(team: Team) -> None:
    rita = team.space("rita")
    with pytest.raises(InvalidCall):
        rita.decide(join(rita), "{", [PATTERN], seen=0)
    assert rita.head().seq == 0
