from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest
from msgspec.structs import replace

from core.decisions.commands import Promote
from core.decisions.merge import as_read
from core.index.experiment import list_results, list_units
from core.learning.experiments import Tally, Verdict, compare_arms, tally_trials
from core.records.decisions import SYNC, Decision, Effect, Verb, escalation_question_id, text_hash
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event, Trial
from core.records.patterns import PatternType
from core.records.team import TeamTrial
from core.show.metrics.sections import compare_pooled, describe_pool
from core.team.connection import InvalidCall, LevelTooLow
from core.team.server import Space
from core.team.sharing import Sharing, is_shared
from core.team.sync import Prefer
from core.trust.experiment_secret import read_or_make_secret
from tests.core.team.working_copy import (
    PATTERN,
    START,
    Clock,
    Psql,
    WorkingCopy,
    call,
    join,
    make_decision,
    make_record,
    make_trial,
    make_use_event,
)
from tests.factories import NOW
from tests.team_server import Team

A, B = "pat-error-a-001", "pat-error-b-001"
NO_USES = {"success_rate": 0, "usage_count": 0}
"""What a record that was received has of the counts that its schema requires."""


@pytest.fixture
def carl(team: Team, tmp_path: Path) -> WorkingCopy:
    return WorkingCopy(tmp_path / "carl", team, "carl")


def test_patterns_their_changes_and_uses_reach_the_other_project(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A, usage_count=0))
    ada.log(make_use_event(1, A, "loop-1"), make_use_event(2, A, "loop-2", False))
    sent = ada.sync()
    assert (sent.sent_texts, sent.sent_uses, sent.conflicts) == (1, 2, ())
    received = rita.sync()
    assert (received.received_texts, received.sent_uses) == (1, 0)
    assert rita.records()[A]["fix_approach"] == ada.records()[A]["fix_approach"]
    assert rita.records()[A] == {**ada.records()[A], **NO_USES}
    rita.log(make_use_event(3, A, "loop-3"))
    rita.sync()
    ada.sync()
    clock = Clock()
    for copy in (ada, rita):
        copy.clock = clock
    sums = ada.sums([A])
    assert sums[A]["successes"] == 2 and sums[A]["failures"] == 1
    for name, value in rita.sums([A])[A].items():
        assert value == pytest.approx(sums[A][name], rel=1e-6), name
    assert ada.sync().is_empty
    ada.write(make_record(A, "Check for undefined"))
    assert ada.sync().sent_texts == 1
    assert rita.sync().received_texts == 1
    assert rita.records()[A]["fix_approach"] == ada.records()[A]["fix_approach"]
    assert rita.sync().is_empty


def test_sums_that_were_lost_are_written_again(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A), make_record(B))
    ada.log(make_use_event(1, A, "loop-1"), make_use_event(2, B, "loop-1"))
    ada.sync()
    rita.sync()
    file = rita.paths.team_evidence
    before = file.read_bytes()
    for damage in (b"", b"{}", None):
        file.unlink() if damage is None else file.write_bytes(damage)
        rita.sync()
        assert file.read_bytes() == before


def test_two_texts_for_one_pattern_are_a_conflict_until_one_is_preferred(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A, "Check for null"))
    rita.write(make_record(A, "Restart"))
    rita.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    for _ in range(2):
        cycle = rita.sync()
        assert (cycle.conflicts, cycle.sent_uses) == ((A,), 0)
    assert rita.records()[A]["fix_approach"] == {"description": f"Restart in {A}"}
    assert rita.sync(Prefer.TEAM).conflicts == ()
    assert rita.records()[A]["fix_approach"] == {"description": f"Check for null in {A}"}
    assert "Restart" in rita.paths.ledger.read_text()
    rita.sync()
    ada.sync()
    assert rita.sync().is_empty and ada.sync().is_empty
    ada.write(make_record(A, "Check for undefined"))
    rita.write(make_record(A, "Reboot"))
    ada.sync()
    assert rita.sync(Prefer.LOCAL).conflicts == ()
    assert "Check for undefined" in rita.paths.ledger.read_text()
    ada.sync()
    assert ada.records()[A]["fix_approach"] == {"description": f"Reboot in {A}"}
    assert rita.sync().sent_decisions == 1  # the note
    assert ada.sync().received_decisions == 1
    assert rita.sync().is_empty and ada.sync().is_empty


def test_the_text_of_a_contributor_is_held_until_a_person_releases_it(carl: WorkingCopy, rita: WorkingCopy) -> None:
    carl.write(make_record(A))
    carl.sync()
    rita.sync()
    assert rita.state_of_pattern(A) == "quarantine"
    assert carl.state_of_pattern(A) == "candidate"


def test_decisions_before_joining_as_a_contributor_stay_in_the_project(carl: WorkingCopy, rita: WorkingCopy) -> None:
    carl.write(make_record(A))
    carl.open().decide(Promote(A))
    assert carl.sync().refused == ()
    assert carl.state_of_pattern(A) == "proven"
    assert carl.sync().is_empty
    rita.sync()
    assert rita.state_of_pattern(A) == "quarantine"


def test_a_conflict_ends_when_the_local_text_is_that_of_the_team(ada: WorkingCopy, carl: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.sync()
    carl.sync()
    carl.write(make_record(A, "Ignore the error"))
    assert carl.sync().conflicts == (A,)
    assert ada.sync().is_empty, "a contributor cannot change a text"
    carl.write(make_record(A))
    assert carl.sync().conflicts == ()
    carl.write(make_record(A, "Restart"))
    ada.write(make_record(A, "Check for undefined"))
    ada.sync()
    assert carl.sync().conflicts == (A,)
    carl.write(make_record(A, "Check for undefined"))
    assert carl.sync().conflicts == () == carl.sync().conflicts


def test_a_reader_receives_and_sends_nothing(ada: WorkingCopy, team: Team, tmp_path: Path) -> None:
    rolf = WorkingCopy(tmp_path / "rolf", team, "rolf")
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    rolf.write(make_record(B))
    rolf.log(make_use_event(2, B, "loop-2"))
    cycle = rolf.sync()
    assert (cycle.received_texts, cycle.sent_texts, cycle.sent_uses) == (1, 0, 0)
    assert rolf.records().keys() == {A, B}


def test_clock_skew_of_a_day_changes_no_sums(ada: WorkingCopy, rita: WorkingCopy, team: Team) -> None:
    now = team.space("ada").now()
    ada.clock, rita.clock = Clock(now + timedelta(days=1)), Clock(now)
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1", at=now + timedelta(days=1)))
    ada.sync()
    rita.sync()
    rita.log(make_use_event(2, A, "loop-2", at=now - timedelta(days=3)))
    rita.sync()
    ada.sync()
    ada.clock = rita.clock = Clock(now + timedelta(days=2))
    one, two = (copy.sums([A])[A] for copy in (ada, rita))
    assert one["successes"] == two["successes"] == 2
    assert one["helpful"] == pytest.approx(two["helpful"], rel=0.02)  # rita's server counts the use from its arrival


def test_thousands_of_uses_made_offline_are_sent_in_one_sync(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(*(make_record(f"pat-error-p-{n:03}") for n in range(1, 101)))
    ada.sync()
    at = START - timedelta(days=1)
    ada.log(*(make_use_event(n, f"pat-error-p-{n % 100 + 1:03}", f"loop-{n}", at=at) for n in range(4_500)))
    assert ada.sync().sent_uses == 4_500
    rita.sync()
    assert sum(one["successes"] for one in rita.sums(rita.records()).values()) == 4_500


def test_a_use_that_changed_while_the_state_was_lost_counts_once(ada: WorkingCopy, rita: WorkingCopy) -> None:
    ada.write(make_record(A))
    ada.log(make_use_event(1, A, "loop-1", None, kind="injected"), make_use_event(2, A, "loop-2"))
    ada.sync()
    ada.log(make_use_event(3, A, "loop-1", kind="outcome"))
    ada.forget_state()
    ada.sync()
    rita.sync()
    assert (rita.sums([A])[A]["uses"], rita.sums([A])[A]["injected_only"]) == (2, 0)
    ada.forget_state()
    assert ada.sync().withdrawn_uses == 0
    rita.sync()
    assert (rita.sums([A])[A]["uses"], rita.sums([A])[A]["injected_only"]) == (2, 0)


def test_what_a_restored_server_has_lost_is_sent_again(ada: WorkingCopy, rita: WorkingCopy, team: Team) -> None:
    ada.write(make_record(A), make_record(B))
    ada.log(make_use_event(1, A, "loop-1"))
    ada.sync()
    administrator = team.connect("postgres")
    backup = administrator.execute("select pattern_id, uses from ralphdeck.sums").fetchall()
    ada.log(make_use_event(1, A, "loop-1"), make_use_event(2, A, "loop-2"), make_use_event(3, B, "loop-2", False))
    ada.sync()
    with administrator.transaction():
        for table in ("events", "sums", "project_sums", "project_members", "projects"):
            administrator.execute(f"delete from ralphdeck.{table}".encode())
        administrator.execute("delete from ralphdeck.patterns where pattern_id = %s", (B,))
        administrator.execute(
            "create or replace function ralphdeck.server_identity() returns text language sql as $$ select 'other' $$"
        )
    assert backup == [(A, 1)]
    again = ada.sync()
    assert (again.sent_uses, again.sent_texts) == (3, 1)
    assert rita.sync().received_texts == 2
    assert {id: sums["uses"] for id, sums in rita.sums([A, B]).items()} == {A: 2, B: 1}
    assert ada.sync().is_empty


def test_counts_in_a_decision_of_the_space_are_not_taken(team: Team, rita: WorkingCopy) -> None:
    space, project = team.space("carl"), uuid4()
    space.join_project(project, "loops")
    record = make_record(A, usage_count=1000, success_rate=1.0, successful_applications=1000)
    decision = Decision(
        id="d1",
        at=START,
        by="Carl",
        verb=Verb.EXTRACT,
        subject="loop-1",
        after={"patterns": [A], "hashes": {A: "h"}, "joined": [], "found": {}},
        effects=(Effect(file="error-patterns.json", type="error", pattern_id=A, insert=record),),
    )
    assert space.decide(project, msgspec.json.encode(decision).decode(), [A], seen=0).seq == 1
    rita.sync()
    assert rita.records()[A] == {**make_record(A), **NO_USES}
    assert rita.sums([A])[A]["uses"] == 0


ID = "pat-error-login-001"
TOKEN = "ghp_" + "a1B2c3D4" * 5
LOOP = "ralph-fix-login-1a2b3c4d"
RECORD: dict[str, Any] = {
    "pattern_id": ID,
    "error_signature": {"error_type": "TypeError", "error_pattern": "login failed"},
    "fix_approach": {"description": f"Set the token {TOKEN} in /home/ada/shop/.env, as in {LOOP}"},
    "source_loops": [{"loop_id": LOOP, "contributed_by": "Ada Lovelace"}],
    "usage_count": 7,
    "success_rate": 0.5,
    "last_used": "2026-01-01T00:00:00Z",
    "effectiveness_trend": [{"sample_size": 3}],
    "origins": {"a" * 16: {"successes": 1}},
    "override": {"state": "proven", "by": "ada"},
    "tags": ["login"],
    "related_patterns": ["pat-error-other-001"],
    "my_private_key": "x",
}
PRIVATE = (TOKEN, "/home/ada", LOOP, "Ada Lovelace", "usage_count", "override", "my_private_key", "source_loops")


@pytest.fixture
def sharing() -> Sharing:
    return Sharing("0123456789abcdef", [LOOP, "nightly-7"], ["Ada Lovelace"])


def decide(verb: Verb = Verb.PROMOTE, subject: str = ID, **fields: Any) -> Decision:
    return Decision(id="d1", at=NOW, by="ada", verb=verb, subject=subject, **fields)


def test_a_record_has_no_counts_loops_secrets_or_paths(sharing: Sharing) -> None:
    shared = sharing.pattern(PatternType.ERROR, RECORD)
    text = msgspec.json.encode(shared.record).decode()
    assert [one for one in PRIVATE if one in text] == []
    assert shared.record["tags"] == ["login"] and shared.record["pattern_id"] == ID
    assert {one.kind for one in sharing.masked} == {"secret", "path"}
    assert shared.local_hash == as_read(RECORD, PatternType.ERROR).content_hash
    assert shared.shared_hash == as_read(shared.record, PatternType.ERROR).content_hash != shared.local_hash
    harmless = sharing.pattern(PatternType.ERROR, {**RECORD, "fix_approach": {"description": "Set the token"}})
    assert harmless.local_hash == harmless.shared_hash
    assert sharing.pattern(PatternType.ERROR, harmless.record).record == harmless.record


def test_a_decision_refers_to_the_masked_text(sharing: Sharing) -> None:
    hashes = sharing.pattern(PatternType.ERROR, RECORD)
    decision = decide(
        reason=f"seen in nightly-7 by ada@example.com with {TOKEN}",
        after={"content_hash": hashes.local_hash, "seen_text": {"fix_approach": RECORD["fix_approach"]}},
        effects=(Effect(file="f.json", type="error", pattern_id=ID, set={"override": {"state": "proven"}}),),
    )
    shared = sharing.decision(decision)
    assert shared is not None
    text = msgspec.json.encode(shared).decode()
    assert [one for one in (*PRIVATE, "nightly-7", "ada@example.com") if one in text] == []
    assert shared.after["content_hash"] == hashes.shared_hash
    assert shared.effects == ()


def test_an_extraction_names_no_loop(sharing: Sharing) -> None:
    decision = decide(
        Verb.EXTRACT,
        LOOP,
        after={"patterns": [ID], "hashes": {ID: "h"}, "found": {ID: {"loop": LOOP, "at": None}}, "about": "Fix login"},
        effects=(Effect(file="f.json", type="error", pattern_id=ID, insert=RECORD),),
        inverse=(Effect(file="f.json", type="error", pattern_id=ID, remove=True),),
    )
    shared = sharing.decision(decision)
    assert shared is not None
    text = msgspec.json.encode(shared).decode()
    assert [one for one in (*PRIVATE, "Fix login") if one in text] == []
    assert shared.effects[0].insert is not None and shared.inverse == decision.inverse
    assert shared.after["patterns"] == [ID]


def test_an_undo_restores_the_masked_text(sharing: Sharing) -> None:
    texts = {"fix_approach": '{"description": "Use /home/ada/x"}', "usage_count": "3"}
    effect = Effect(file="f.json", type="error", pattern_id=ID, text=texts)
    shared = sharing.decision(decide(Verb.UNDO, "d0", effects=(effect,)))
    assert shared is not None
    assert shared.effects[0].text == {"fix_approach": '{"description": "Use «path»"}'}


def test_an_archived_record_keeps_its_note_without_the_file(sharing: Sharing) -> None:
    note = {"at": "2026-02-03", "reason": "old, see /home/ada/x", "by": "ada", "from": "f.json", "decision": "d1"}
    effect = Effect(file="a.json", type="error", pattern_id=ID, insert={**RECORD, "archived": note}, beside=True)
    shared = sharing.decision(decide(Verb.ARCHIVE, effects=(effect,)))
    assert shared is not None and shared.effects[0].insert is not None
    assert shared.effects[0].insert["archived"] == {"at": "2026-02-03", "reason": "old, see «path»", "by": "ada"}


@pytest.mark.parametrize(
    "decision",
    [
        decide(Verb.REVOKE, "loop-1"),
        decide(Verb.CONFIRM, "loop-1"),
        decide(Verb.DISMISS, escalation_question_id("s1", None)),
        decide(Verb.DISMISS, "lesson 0123456789abcdef"),
        decide(Verb.RELEASE, "text 0123 of x", after={"text_hash": text_hash("x")}),
        Decision(id="d2", at=NOW, by=SYNC, verb=Verb.IMPORT, subject="team"),
    ],
)
def test_decisions_about_one_project_stay_there(sharing: Sharing, decision: Decision) -> None:
    assert not is_shared(decision)
    assert sharing.decision(decision) is None


TRIED: Final = "pat-error-a-001"
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
    return tally_trials(one for one in results if one.pattern == TRIED)


def test_a_sync_sends_each_finished_trial_once(team: Team, tmp_path: Path) -> None:
    rita, ada = WorkingCopy(tmp_path / "rita", team), WorkingCopy(tmp_path / "ada", team, "ada")
    for copy in (rita, ada):
        copy.write(make_record(TRIED))
        copy.log(*make_experiment(TRIED, 6, copy.role), *make_experiment("pat-unknown", 2, "u"))
    rita.log(make_experiment(TRIED, 8, "open")[0])
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


def test_a_trial_with_a_value_out_of_range_is_refused(team: Team, psql: Psql) -> None:
    carl = team.space("carl")
    project = join(carl)
    rows: list[dict[str, Any]] = [
        *({"share": value} for value in (0.05, "NaN")),
        *({"rate": value} for value in (0, 20)),
        {"kind": "liked"},
        {"pattern_id": "p" * 201},
    ]
    for changes in rows:
        values = msgspec.json.encode([msgspec.to_builtins(make_trial()) | changes]).decode()
        assert "violates check constraint" in psql("carl", call(carl.info.id, "add_trials", project, values)), changes
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
