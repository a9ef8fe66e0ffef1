"""Undo of one decision that is not the last one, and of whole acts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import core.storage.atomic_write
from core.base.errors import Refused, UnknownRecord
from core.config.paths import ProjectPaths
from core.curation.curator import Asked, Curator, Decided
from core.ledger.verify import verify_ledger
from core.project.project import Project
from core.records.decisions import CurationState, Verb
from core.records.events import Event, event_id
from tests.core.curation.making import (
    IMPATIENT,
    NOW,
    failing,
    make_assessment,
    make_curator,
    make_pattern,
    make_project,
    make_proposal,
    overrides,
)

IDS = ("pat-error-a-001", "pat-error-b-001", "pat-error-c-001")
A, B, C = (make_pattern(key) for key in IDS)


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path, *IDS)


@pytest.fixture
def curator(paths: ProjectPaths) -> Curator:
    return make_curator(paths)


def many(curator: Curator, verb: Verb, ids: Sequence[str] = IDS) -> Decided:
    asked = [Asked(make_pattern(key), make_assessment()) for key in ids]
    return curator.decide_many(verb, asked, now=NOW, known=curator.caught_up(), reason="because")


def test_an_older_decision_is_taken_back_alone(curator: Curator, paths: ProjectPaths) -> None:
    first = curator.promote(A, make_assessment(), now=NOW)
    curator.deprecate(B, make_assessment(), now=NOW, reason="hides the cause")
    curator.note(A, text="nothing rests on a note, nor a note on anything", now=NOW)
    taken = curator.undo(now=NOW, name=first.decision.id)
    assert taken.summary == f"took back the promotion of {A.id}: proven → established"
    assert overrides(paths).keys() == curator.ledger.state().pins.keys() == {B.id}
    assert curator.redo(now=NOW).decision.subject == first.decision.id
    assert overrides(paths).keys() == {A.id, B.id}
    assert curator.undo(now=NOW).decision.subject == first.decision.id  # what was repeated last goes first
    assert curator.undo(now=NOW).summary == f"took back the note of {A.id}"


def test_what_something_rests_on_stays(curator: Curator) -> None:
    first = curator.promote(A, make_assessment(), now=NOW)
    later = curator.deprecate(A, make_assessment(), now=NOW, reason="hides the cause")
    told = rf"the deprecation of {A.id} by alice on 3 May 2026 rests on it; take that back first: {later.decision.id}"
    with pytest.raises(Refused, match=told):
        curator.undo(now=NOW, name=first.decision.id)
    curator.undo(now=NOW, name=later.decision.id)
    curator.undo(now=NOW, name=first.decision.id)
    with pytest.raises(Refused, match="taken back already"):
        curator.undo(now=NOW, name=first.decision.id)


def test_one_of_a_group_or_the_group_is_named(curator: Curator, paths: ProjectPaths) -> None:
    group = many(curator, Verb.PROMOTE)
    curator.undo(now=NOW, name=group.decisions[1].id)
    assert overrides(paths).keys() == {A.id, C.id}
    assert curator.undo(now=NOW, name=group.decision.group).summary == "took back the promotion of 2 patterns"
    assert overrides(paths) == {}
    assert curator.redo(now=NOW).summary == "repeated the promotion of 2 patterns"
    assert curator.redo(now=NOW).decision.subject == group.decisions[1].id
    assert overrides(paths).keys() == {*IDS}


def test_only_decisions_are_named(curator: Curator) -> None:
    curator.promote(A, make_assessment(), now=NOW)
    undone = curator.undo(now=NOW)
    with pytest.raises(Refused, match="itself an undo"):
        curator.undo(now=NOW, name=undone.decision.id)
    with pytest.raises(UnknownRecord, match="no decision 2026"):
        curator.undo(now=NOW, name="2026")


def stored(paths: ProjectPaths) -> dict[str, Any]:
    """All records of all pattern files, by id; a file that holds none is as good as no file."""
    found: dict[str, Any] = {}
    for path in sorted([*paths.patterns.glob("*.json"), *paths.archive.glob("*.json")]):
        for records in json.loads(path.read_bytes())["pattern_registry"].values():
            found |= {f"{path.name} {record['pattern_id']}": record for record in records}
    return found


def acts(paths: ProjectPaths, curator: Curator, moment: Callable[[], Any]) -> dict[str, Callable[[int], Decided]]:
    """Everything that can be done, by name; on one of the patterns, or on a decision counted from the end."""
    here = [key for key in IDS if f"error-patterns.json {key}" in stored(paths)]

    def named(number: int) -> Decided:
        decisions = curator.ledger.decisions()
        name = decisions[-1 - number % len(decisions)] if decisions else None
        return curator.undo(now=moment(), name=(name.group or name.id) if name else "none")

    def pattern(number: int) -> Any:
        if not here:
            raise UnknownRecord("all of them are archived")
        return make_pattern(here[number % len(here)])

    def every(verb: Verb) -> Decided:
        return many(curator, verb, here)

    good = make_assessment()
    return {
        "promote": lambda n: curator.promote(pattern(n), good, now=moment()),
        "deprecate": lambda n: curator.deprecate(pattern(n), good, now=moment(), reason="x"),
        "reset": lambda n: curator.reset(pattern(n), good, now=moment()),
        "quarantine": lambda n: curator.quarantine(pattern(n), good, now=moment(), reason="x"),
        "release": lambda n: curator.release(pattern(n), good, now=moment()),
        "invert": lambda n: curator.accept_inversion(pattern(n), failing(), make_proposal(pattern(n).id), now=moment()),
        "archive": lambda n: curator.archive(
            ((pattern(n), "old"),), subject=pattern(n).id, now=moment(), known=curator.caught_up()
        ),
        "promote all": lambda n: every(Verb.PROMOTE),
        "archive all": lambda n: every(Verb.ARCHIVE),
        "undo": lambda n: curator.undo(now=moment()),
        "redo": lambda n: curator.redo(now=moment()),
        "undo this": named,
    }


_NAMES = st.sampled_from(
    [
        *("promote", "deprecate", "reset", "quarantine", "release", "invert", "archive", "promote all", "archive all"),
        *("undo", "redo", "undo this"),
    ]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=st.lists(st.tuples(_NAMES, st.integers(0, 5)), max_size=12))
def test_whatever_was_done_when_all_is_undone_it_ends_where_it_began(
    done: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.storage.atomic_write, "_LOOK_AGAIN_SECONDS", ())
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    paths = make_project(tmp_path_factory.mktemp("project"), *IDS)
    curator, now = make_curator(paths), NOW
    before = stored(paths)

    def moment() -> Any:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    for name, number in done:
        try:
            assert acts(paths, curator, moment)[name](number).written
        except (Refused, UnknownRecord):
            continue
        pins = {key: pin.decision_id for key, pin in curator.ledger.state().pins.items()}
        assert {key: value["decision"] for key, value in overrides(paths).items()}.items() <= pins.items()
    while curator.ledger.state().undoable:
        assert curator.undo(now=moment()).written
    assert stored(paths) == before
    state = curator.ledger.state()
    assert replace(state, undone=frozenset(), redoable=(), acts={}) == CurationState()
    assert verify_ledger(paths).problems == ()


def test_an_unmerge_leaves_each_pattern_the_uses_that_it_had_since(tmp_path: Path) -> None:
    now = NOW

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    paths = make_project(tmp_path, *IDS[:2])
    deck = Project(paths, IMPATIENT, by="alice", clock=clock, cache=False)
    deck.load()

    def use(pattern_id: str, loop_id: str) -> None:
        at = clock()
        deck.record(Event(id=event_id(at), at=at, kind="applied", pattern_id=pattern_id, loop_id=loop_id, success=True))

    def counts() -> list[int]:
        uses = [record["usage_count"] for record in stored(paths).values() if "archived" not in record]
        assert uses == [deck.view.assessment(key).uses for key in IDS[: len(uses)]]
        return uses

    use(A.id, "one")
    use(B.id, "two")
    assert counts() == [4, 4]
    merged = deck.merge(A.id, B.id)
    use(A.id, "three")
    assert counts() == [9]
    use(B.id, "four")  # by the name that it had
    taken = deck.undo(merged.decision.id)
    assert (taken.written, taken.warnings) == (True, ())
    use(A.id, "five")
    use(B.id, "six")
    assert counts() == [6, 6]
    assert len(stored(paths)) == 2
