"""What leaves the machine, and what never does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.decisions.merge import as_read
from core.records.decisions import SYNC, Decision, Effect, Verb, escalation_question_id, text_hash
from core.records.patterns import PatternType
from core.team.sharing import Sharing, is_shared
from tests.factories import NOW

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


def make_decision(verb: Verb = Verb.PROMOTE, subject: str = ID, **fields: Any) -> Decision:
    return Decision(id="d1", at=NOW, by="ada", verb=verb, subject=subject, **fields)


def test_a_record_has_no_counts_loops_secrets_or_paths(sharing: Sharing) -> None:
    shared = sharing.pattern(PatternType.ERROR, RECORD)
    text = msgspec.json.encode(shared.record).decode()
    assert [one for one in PRIVATE if one in text] == []
    assert shared.record["tags"] == ["login"] and shared.record["pattern_id"] == ID
    assert {one.kind for one in sharing.masked} == {"secret", "path"}


def test_the_hashes_are_those_of_the_local_and_of_the_masked_text(sharing: Sharing) -> None:
    shared = sharing.pattern(PatternType.ERROR, RECORD)
    assert shared.local_hash == as_read(RECORD, PatternType.ERROR).content_hash
    assert shared.shared_hash == as_read(shared.record, PatternType.ERROR).content_hash != shared.local_hash


def test_a_text_without_anything_private_stays_the_same(sharing: Sharing) -> None:
    record = {**RECORD, "fix_approach": {"description": "Set the token"}}
    shared = sharing.pattern(PatternType.ERROR, record)
    assert shared.local_hash == shared.shared_hash
    assert sharing.pattern(PatternType.ERROR, shared.record).record == shared.record


def test_a_decision_refers_to_the_masked_text(sharing: Sharing) -> None:
    hashes = sharing.pattern(PatternType.ERROR, RECORD)
    decision = make_decision(
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
    decision = make_decision(
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
    shared = sharing.decision(make_decision(Verb.UNDO, "d0", effects=(effect,)))
    assert shared is not None
    assert shared.effects[0].text == {"fix_approach": '{"description": "Use «path»"}'}


def test_an_archived_record_keeps_its_note_without_the_file(sharing: Sharing) -> None:
    note = {"at": "2026-02-03", "reason": "old, see /home/ada/x", "by": "ada", "from": "f.json", "decision": "d1"}
    effect = Effect(file="a.json", type="error", pattern_id=ID, insert={**RECORD, "archived": note}, beside=True)
    shared = sharing.decision(make_decision(Verb.ARCHIVE, effects=(effect,)))
    assert shared is not None and shared.effects[0].insert is not None
    assert shared.effects[0].insert["archived"] == {"at": "2026-02-03", "reason": "old, see «path»", "by": "ada"}


@pytest.mark.parametrize(
    "decision",
    [
        make_decision(Verb.REVOKE, "loop-1"),
        make_decision(Verb.CONFIRM, "loop-1"),
        make_decision(Verb.DISMISS, escalation_question_id("s1", None)),
        make_decision(Verb.DISMISS, "lesson 0123456789abcdef"),
        make_decision(Verb.RELEASE, "text 0123 of x", after={"text_hash": text_hash("x")}),
        Decision(id="d2", at=NOW, by=SYNC, verb=Verb.IMPORT, subject="team"),
    ],
)
def test_decisions_about_one_project_stay_there(sharing: Sharing, decision: Decision) -> None:
    assert not is_shared(decision)
    assert sharing.decision(decision) is None
