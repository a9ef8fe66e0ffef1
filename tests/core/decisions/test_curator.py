from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import core.files.atomic_write
from core.base.errors import BadInput, Refused, Unwritable
from core.base.paths import ProjectPaths
from core.decisions.case import Decided
from core.decisions.commands import AcceptInversion, Deprecate, Note, Promote, RejectInversion, Reset, Snooze
from core.decisions.curator import Curator
from core.files.file_access import file_lock
from core.files.json_editor import JsonText
from core.records.decisions import Decision, Effect, Verb
from core.records.patterns import Maturity, PatternType, SourceLoop
from core.sources.ledger import Ledger
from tests.factories import (
    CURATION_NOW,
    PATTERN_FILE,
    decide,
    leave_draft,
    make_assessment,
    make_curator,
    make_error_pattern,
    make_failing_assessment,
    make_inversion,
    make_project,
    read_overrides,
)

A = "pat-error-a-001"
ANTI_KEYS = {"pattern_id", "approach_description", "failure_mode", "failure_rate", "occurrence_count"}


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path, A, "pat-error-b-001")


def promote(curator: Curator, **changes: Any) -> Decided:
    return decide(curator, Promote, make_error_pattern(**changes))


def deprecate(curator: Curator, reason: str = "it broke the build") -> Decided:
    return decide(curator, Deprecate, reason=reason)


def invert(curator: Curator, **changes: Any) -> Decided:
    return decide(
        curator, AcceptInversion, make_error_pattern(), make_failing_assessment(), proposal=make_inversion(**changes)
    )


def antis(paths: ProjectPaths) -> list[dict[str, Any]]:
    content = json.loads(paths.pattern_file("anti").read_bytes())
    return list(content["pattern_registry"]["anti_patterns"])


# Promote, deprecate, reset.


def test_a_promotion_is_in_the_ledger_and_in_the_record(curator: Curator, paths: ProjectPaths) -> None:
    decided = decide(curator, Promote, make_error_pattern(), make_assessment(4, 1), reason="  works\n")
    assert decided.summary == f"promoted {A}: established → proven"
    assert decided.written
    assert decided.warnings == ()
    pin = Ledger(paths).state().pins[A]
    assert (pin.state, pin.content_hash, pin.successes, pin.failures) == (Maturity.PROVEN, "v1", 4, 1)
    assert (pin.by, pin.reason, pin.at, pin.decision_id) == ("alice", "works", CURATION_NOW, decided.decision.id)
    assert read_overrides(paths) == {
        A: {
            "state": "proven",
            "reason": "works",
            "by": "alice",
            "at": "2026-05-03T12:00:00.000Z",
            "decision": decided.decision.id,
        }
    }
    assert curator.ledger.pending() == ()


def test_ids_sort_by_time_and_differ(curator: Curator) -> None:
    ids = [
        decide(curator, Note, text="x", now=CURATION_NOW + timedelta(milliseconds=number // 2)).decision.id
        for number in range(6)
    ]
    assert len(set(ids)) == 6
    assert [key[:18] for key in ids] == sorted(key[:18] for key in ids)


def test_promoting_a_candidate_with_little_evidence_warns(curator: Curator) -> None:
    decided = decide(curator, Promote, make_error_pattern(), make_assessment(1, 0, Maturity.CANDIDATE))
    assert decided.warnings == (f"{A} is a candidate with only 1 use recorded as helpful",)
    assert decided.written


def test_deprecating_needs_a_reason(curator: Curator, paths: ProjectPaths) -> None:
    with pytest.raises(BadInput, match="needs a reason"):
        deprecate(curator, " \n ")
    assert not paths.ledger.exists()
    assert deprecate(curator).summary == f"deprecated {A}: established → deprecated"
    assert read_overrides(paths)[A]["reason"] == "it broke the build"


def test_a_deprecated_pattern_is_reset_before_it_is_promoted(curator: Curator, paths: ProjectPaths) -> None:
    deprecate(curator)
    with pytest.raises(Refused, match=r"deprecated \(by alice on 3 May 2026\); reset it first"):
        promote(curator)
    decided = decide(curator, Reset)
    assert decided.summary == f"reset {A}: deprecated → established"
    assert read_overrides(paths) == {}
    assert promote(curator).written


def test_a_pattern_deprecated_by_rule_can_be_promoted_after_one_reset(curator: Curator) -> None:
    by_rule = make_assessment(2, 5, Maturity.DEPRECATED)
    with pytest.raises(Refused, match="deprecated by rule; reset it first"):
        decide(curator, Promote, make_error_pattern(), by_rule)
    decide(curator, Reset, make_error_pattern(), by_rule)
    with pytest.raises(Refused, match="is not pinned; it is deprecated by rule"):
        decide(curator, Reset, make_error_pattern(), by_rule)
    decide(curator, Promote, make_error_pattern(), by_rule)
    curator.undo(now=CURATION_NOW)
    curator.undo(now=CURATION_NOW)
    with pytest.raises(Refused, match="reset it first"):
        decide(curator, Promote, make_error_pattern(), by_rule)


@pytest.mark.parametrize(("decide", "word"), [(promote, "already promoted"), (deprecate, "already deprecated")])
def test_deciding_the_same_twice_is_refused(
    curator: Curator, paths: ProjectPaths, decide: Callable[[Curator], Decided], word: str
) -> None:
    decide(curator)
    with pytest.raises(Refused, match=word):
        decide(make_curator(paths, "bob"))


def test_a_stale_pin_counts_as_candidate_and_can_be_renewed(curator: Curator, paths: ProjectPaths) -> None:
    deprecate(curator)
    decided = promote(curator, content_hash="v2")
    assert decided.decision.before["state"] == "candidate"
    assert Ledger(paths).state().pins[A].content_hash == "v2"
    assert promote(curator, content_hash="v3").written


def test_ledger_takes_precedence_over_the_state_that_the_caller_passed(curator: Curator, paths: ProjectPaths) -> None:
    deprecate(make_curator(paths, "bob"))
    with pytest.raises(Refused, match="by bob"):
        promote(curator)
    pin = Ledger(paths).state().pins[A]
    assessment = make_assessment(state=Maturity.DEPRECATED, pin=pin)
    curator.undo(now=CURATION_NOW, any_author=True)
    assert decide(curator, Promote, make_error_pattern(), assessment).decision.before["state"] == "established"


# Notes, text, input.


def test_note_is_written_only_to_the_ledger(curator: Curator, paths: ProjectPaths) -> None:
    before = paths.pattern_file("error").read_bytes()
    decided = decide(curator, Note, text=" check again ")
    assert decided.written
    assert [note.after["text"] for note in curator.ledger.state().notes[A]] == ["check again"]
    assert paths.pattern_file("error").read_bytes() == before
    with pytest.raises(BadInput, match="empty"):
        decide(curator, Note, text=" ")


def test_unstorable_text_is_refused_or_replaced(curator: Curator, paths: ProjectPaths) -> None:
    with pytest.raises(BadInput, match="not valid Unicode"):
        promote(curator, id="pat-\ud800")
    with pytest.raises(BadInput, match="characters long"):
        deprecate(curator, "x" * 20_000)
    assert not paths.ledger.exists()
    assert deprecate(curator, "bad \udcff byte").decision.reason == "bad ? byte"


# Inversion.


def test_accepting_an_inversion_writes_a_valid_anti_pattern(curator: Curator, paths: ProjectPaths) -> None:
    pattern = make_error_pattern(
        source_loops=(SourceLoop(loop_id="ralph-one-00000001", at=CURATION_NOW, iteration=4), SourceLoop(loop_id="x"))
    )
    decided = decide(curator, AcceptInversion, pattern, make_failing_assessment(), proposal=make_inversion())
    (record,) = antis(paths)
    assert record.pop("override") == {
        "state": "established",
        "reason": "Failed 5/7 times (71% failure rate)",
        "by": "alice",
        "at": "2026-05-03T12:00:00.000Z",
        "decision": decided.decision.id,
    }
    assert record == {
        "pattern_id": "pat-anti-split-by-type-001",
        "approach_description": "AVOID: Split by file type. Failed 5/7 times (71% failure rate)",
        "failure_mode": "scope_creep",
        "why_it_fails": "Files of one type depend on each other.",
        "better_alternative": {"description": "Split by feature", "success_pattern_id": "pat-success-split-001"},
        "source_loops": [
            {"loop_id": "ralph-one-00000001", "failure_iteration": 4, "timestamp": "2026-05-03T12:00:00.000Z"},
            {"loop_id": "ralph-two-00000002"},
        ],
        "failure_rate": 5 / 7,
        "occurrence_count": 7,
        "first_discovered": "2026-05-03T12:00:00.000Z",
        "tags": ["auth"],
        "inverted_from": A,
        "aliases": [f"anti-{A}"],
    }
    assert re.fullmatch(r"pat-anti-[a-z0-9-]+-\d{3}", record["pattern_id"])
    assert record.keys() >= ANTI_KEYS
    assert read_overrides(paths)[A]["state"] == "deprecated"
    assert read_overrides(paths)[A]["reason"] == "Failed 5/7 times (71% failure rate)"
    state = curator.ledger.state()
    assert state.pins[A].state is Maturity.DEPRECATED
    assert state.inversions[A].anti_id == record["pattern_id"]
    assert decided.summary == f"inverted {A} into pat-anti-split-by-type-001: stays deprecated"


def test_rewritten_inversion_text_is_stored(curator: Curator, paths: ProjectPaths) -> None:
    invert(curator, text="AVOID: one")
    assert antis(paths)[0]["approach_description"] == "AVOID: one"
    with pytest.raises(BadInput, match="needs a text"):
        invert(curator, text=" ")


def test_lone_surrogates_in_quoted_files_do_not_prevent_an_inversion(curator: Curator, paths: ProjectPaths) -> None:
    invert(curator, text="AVOID \ud800", why_it_fails="\udfff", source_loops=("\ud800",))
    assert antis(paths)[0]["why_it_fails"] == "?"


def test_undoing_an_inversion_restores_both_and_redo_repeats_it(curator: Curator, paths: ProjectPaths) -> None:
    before = paths.pattern_file("error").read_bytes()
    invert(curator)
    (record,) = antis(paths)
    inverted = paths.pattern_file("error").read_bytes()
    assert curator.undo(now=CURATION_NOW).written
    assert paths.pattern_file("error").read_bytes() == before
    assert antis(paths) == []
    state = curator.ledger.state()
    assert (state.pins, state.inversions) == ({}, {})
    assert record in [effect.insert for effect in curator.ledger.decisions()[0].effects]
    assert curator.redo(now=CURATION_NOW).written
    assert antis(paths) == [record]
    assert paths.pattern_file("error").read_bytes() == inverted


def test_resetting_an_inverted_pattern_leaves_the_anti_pattern(curator: Curator, paths: ProjectPaths) -> None:
    invert(curator)
    decide(curator, Reset, make_error_pattern(), make_failing_assessment())
    assert set(curator.ledger.state().pins) == {"pat-anti-split-by-type-001"}
    assert read_overrides(paths) == {}
    assert len(antis(paths)) == 1
    with pytest.raises(Refused, match="already inverted into pat-anti-split-by-type-001"):
        invert(curator)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ([], "pat-anti-split-by-type-001"),
        (["001", "007"], "pat-anti-split-by-type-008"),
        (["999"], "pat-anti-split-by-type-2-001"),
    ],
)
def test_next_free_id_considers_all_pattern_files(
    curator: Curator, paths: ProjectPaths, used: list[str], expected: str
) -> None:
    records = [{"pattern_id": f"pat-anti-split-by-type-{number}", "failure_rate": 1.0} for number in used]
    (paths.patterns / "other.json").write_text(json.dumps(records))
    invert(curator)
    assert antis(paths)[0]["pattern_id"] == expected


def test_id_taken_meanwhile_is_replaced(curator: Curator, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"pattern_id": "pat-anti-split-by-type-001", "failure_rate": 1.0}
    real = core.files.atomic_write.curation_lock

    def late(paths: ProjectPaths) -> Any:
        content = {"pattern_registry": {"anti_patterns": [other]}}
        paths.pattern_file("anti").write_text(json.dumps(content))
        return real(paths)

    monkeypatch.setattr("core.decisions.apply.curation_lock", late)
    decided = invert(curator)
    monkeypatch.undo()
    assert decided.written
    assert decided.warnings == ("pat-anti-split-by-type-001 already exists: written as pat-anti-split-by-type-002",)
    assert [record["pattern_id"] for record in antis(paths)] == [
        "pat-anti-split-by-type-001",
        "pat-anti-split-by-type-002",
    ]
    curator.undo(now=CURATION_NOW)
    assert antis(paths) == [other]


def test_undo_leaves_an_anti_pattern_whose_counts_grew(curator: Curator, paths: ProjectPaths) -> None:
    invert(curator)
    path = paths.pattern_file("anti")
    path.write_text(path.read_text().replace('"occurrence_count": 7', '"occurrence_count": 8'))
    decided = curator.undo(now=CURATION_NOW)
    assert not decided.written
    assert decided.warnings == ("pat-anti-split-by-type-001 was changed since: not removed",)
    assert len(antis(paths)) == 1


@pytest.mark.parametrize(
    ("successes", "failures", "kind", "message"),
    [
        (1, 1, PatternType.ERROR, "not due for inversion: 1 of 2 uses failed"),
        (3, 4, PatternType.ERROR, "not due for inversion: 4 of 7"),
        (2, 5, PatternType.ANTI, "is an anti-pattern"),
    ],
)
def test_only_a_failing_pattern_is_inverted(
    curator: Curator, successes: int, failures: int, kind: PatternType, message: str
) -> None:
    pattern, assessment = make_error_pattern(type=kind), make_assessment(successes, failures)
    with pytest.raises(Refused, match=message):
        decide(curator, AcceptInversion, pattern, assessment, proposal=make_inversion())
    with pytest.raises(Refused, match=message):
        decide(curator, RejectInversion, pattern, assessment)


def test_rejected_inversion_is_proposed_again_after_further_failures(curator: Curator) -> None:
    decide(curator, RejectInversion, make_error_pattern(), make_assessment(2, 5))
    with pytest.raises(Refused, match="already rejected on 3 May 2026"):
        decide(curator, RejectInversion, make_error_pattern(), make_assessment(2, 7))
    decide(curator, RejectInversion, make_error_pattern(), make_assessment(2, 8))
    assert curator.ledger.state().inversions[A].failures == 8


def test_snooze_requires_an_end_in_the_future(curator: Curator) -> None:
    with pytest.raises(BadInput, match="not in the future"):
        decide(curator, Snooze, make_error_pattern(), make_failing_assessment(), until=CURATION_NOW)
    decide(curator, Snooze, make_error_pattern(), make_failing_assessment(), until=CURATION_NOW + timedelta(days=7))
    assert curator.ledger.state().inversions[A].until == CURATION_NOW + timedelta(days=7)


# Undo and redo.


def test_undo_restores_the_pin_that_was_replaced_and_the_file(curator: Curator, paths: ProjectPaths) -> None:
    first = promote(curator).decision
    pin, written = curator.ledger.state().pins[A], paths.pattern_file("error").read_bytes()
    deprecate(curator)
    decided = make_curator(paths, "bob").undo(now=CURATION_NOW, any_author=True)
    assert decided.summary == f"Undone: deprecate {A} by alice (→ proven)"
    assert decided.decision.by == "bob"
    assert curator.ledger.state().pins == {A: pin}
    assert paths.pattern_file("error").read_bytes() == written
    assert read_overrides(paths)[A]["decision"] == first.id


@pytest.mark.parametrize(
    "written",
    [
        '{"state":  "frozen", "since": 1.5}',
        '"proven"',
        "null",
        "[1, 1.00]",
        "1e400",
        '{"n": NaN}',
        '"\\ud800"',
        "9" * 40,
    ],
)
@pytest.mark.parametrize(
    "form", ['[{"pattern_id": "%s",\n "override": %s}]', '{"id":"z"}\n{"id":"%s","override":%s}\n']
)
def test_undo_restores_an_override_of_another_tool(
    curator: Curator, paths: ProjectPaths, written: str, form: str
) -> None:
    path = paths.pattern_file("error")
    path.write_text(form % (A, written))
    before = path.read_bytes()
    assert promote(curator).written
    promoted = path.read_bytes()
    assert curator.undo(now=CURATION_NOW).written
    assert path.read_bytes() == before
    assert curator.redo(now=CURATION_NOW).written
    assert path.read_bytes() == promoted
    assert curator.undo(now=CURATION_NOW).written
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["1}]", "", "[" * 65 + "]" * 65])
def test_invalid_json_in_the_ledger_changes_no_file(curator: Curator, paths: ProjectPaths, text: str) -> None:
    before = paths.pattern_file("error").read_bytes()
    effect = Effect(file=PATTERN_FILE, type="error", pattern_id=A, text={"override": text})
    curator.ledger.append(Decision(id="d", at=CURATION_NOW, by="x", verb=Verb.PROMOTE, subject=A, effects=(effect,)))
    assert len(curator.apply_pending()) == 1
    assert paths.pattern_file("error").read_bytes() == before
    assert curator.ledger.pending() == ()


def test_undo_leaves_values_changed_since(curator: Curator, paths: ProjectPaths) -> None:
    promote(curator)
    path = paths.pattern_file("error")
    path.write_text(path.read_text().replace('"proven"', '"frozen"'))
    decided = curator.undo(now=CURATION_NOW)
    assert decided.warnings == (f"override of {A} was changed since: left unchanged",)
    assert not decided.written
    assert read_overrides(paths)[A]["state"] == "frozen"
    assert curator.ledger.state().pins == {}
    assert curator.ledger.pending() == ()


def test_undo_and_redo_refuse_an_empty_history(curator: Curator) -> None:
    with pytest.raises(Refused, match="nothing to undo"):
        curator.undo(now=CURATION_NOW)
    promote(curator)
    with pytest.raises(Refused, match="nothing to redo"):
        curator.redo(now=CURATION_NOW)
    curator.undo(now=CURATION_NOW)
    decide(curator, Note, text="x")
    with pytest.raises(Refused, match="nothing to redo"):
        curator.redo(now=CURATION_NOW)


# When a file cannot be written.


def test_decision_on_a_copy_is_written_only_to_the_ledger(curator: Curator, paths: ProjectPaths) -> None:
    decided = promote(curator, id="m", copy_folder=".aiwg/ralph/memory", file=".aiwg/ralph/memory/p.json")
    assert not decided.written
    assert decided.warnings == ("the file of m cannot be changed; only the decision log was updated",)
    assert "m" in curator.ledger.state().pins
    assert curator.ledger.pending() == ()


@pytest.mark.parametrize(
    "file", ["../../etc/x.json", ".aiwg/ralph/loops/l/state.json", ".aiwg/ralph/shared/patterns/../../x.json", "x.yaml"]
)
def test_only_json_in_the_patterns_folder_is_written(curator: Curator, file: str) -> None:
    decided = promote(curator, file=file)
    assert not decided.written
    assert decided.decision.effects == ()


def test_ledger_cannot_redirect_writes_outside_the_patterns_folder(paths: ProjectPaths) -> None:
    state = paths.ralph / "loops" / "l" / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"pattern_id": "a"}')
    for number, file in enumerate((paths.relative(state), "../../outside.json", "/etc/passwd")):
        effect = Effect(file=file, type="error", pattern_id="a", set={"status": "owned"})
        ledger = Ledger(paths)
        ledger.append(
            Decision(id=f"d{number}", at=CURATION_NOW, by="x", verb=Verb.PROMOTE, subject="a", effects=(effect,))
        )
    unknown = Effect(file=PATTERN_FILE, type="nonsense", pattern_id="a", insert={"pattern_id": "a"})
    ledger.append(Decision(id="d9", at=CURATION_NOW, by="x", verb=Verb.PROMOTE, subject="a", effects=(unknown,)))
    assert len(make_curator(paths).apply_pending()) == 4
    assert state.read_text() == '{"pattern_id": "a"}'
    assert ledger.pending() == ()


def test_invalid_step_is_skipped_alone(curator: Curator, paths: ProjectPaths) -> None:
    good = Effect(file=PATTERN_FILE, type="error", pattern_id=A, set={"override": {"state": "proven"}})
    bad = Effect(file=PATTERN_FILE, type="nonsense", pattern_id=A, set={"override": {"state": "owned"}})
    for number, effect in enumerate((good, bad)):
        curator.ledger.append(
            Decision(id=f"d{number}", at=CURATION_NOW, by="x", verb=Verb.PROMOTE, subject=A, effects=(effect,))
        )
    (warning,) = curator.apply_pending()
    assert "unknown pattern type" in warning
    assert read_overrides(paths) == {A: {"state": "proven"}}
    assert curator.ledger.pending() == ()


@pytest.mark.parametrize("name", ["a.jsonl", "\x1b[2J.json", "sub/error-patterns.json", "effects.json"])
def test_ledger_creates_only_known_pattern_files(curator: Curator, paths: ProjectPaths, name: str) -> None:
    file = f"{paths.relative(paths.patterns)}/{name}"
    (paths.patterns / "sub").mkdir()
    before = sorted(paths.patterns.rglob("*"))
    effect = Effect(file=file, type="error", pattern_id="a", insert={"pattern_id": "a"})
    curator.ledger.append(Decision(id="d", at=CURATION_NOW, by="x", verb=Verb.PROMOTE, subject="a", effects=(effect,)))
    assert len(curator.apply_pending()) == 1
    assert sorted(paths.patterns.rglob("*")) == before
    assert curator.ledger.pending() == ()


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_link_to_another_file_is_not_followed(
    curator: Curator, paths: ProjectPaths, tmp_path_factory: pytest.TempPathFactory, is_inside: bool
) -> None:
    folder = paths.ralph / "loops" / "l" if is_inside else tmp_path_factory.mktemp("outside")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "state.json"
    paths.pattern_file("error").rename(target)
    paths.pattern_file("error").symlink_to(target)
    before = target.read_bytes()
    decided = promote(curator)
    assert not decided.written
    assert "cannot be changed" in decided.warnings[0]
    assert A in curator.ledger.state().pins
    assert target.read_bytes() == before


@pytest.mark.parametrize("linked", ["shared", "shared/patterns", "shared/curation"])
def test_nothing_is_written_through_a_linked_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, linked: str
) -> None:
    paths = make_project(tmp_path, A)
    curator = make_curator(paths)
    effect = Effect(file=PATTERN_FILE, type="error", pattern_id=A, set={"override": {"state": "proven"}})
    curator.ledger.append(Decision(id="d", at=CURATION_NOW, by="x", verb=Verb.PROMOTE, subject=A, effects=(effect,)))
    outside = tmp_path_factory.mktemp("outside") / "folder"
    (paths.ralph / linked).rename(outside)
    (paths.ralph / linked).symlink_to(outside)
    for folder in (outside, *(path for path in outside.rglob("*") if path.is_dir())):
        leave_draft(folder / "error-patterns.json")
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    again = make_curator(paths)
    assert "is outside" in again.apply_pending()[0]
    if linked == "shared/patterns":
        decided = promote(again)
        assert not decided.written
    else:
        with pytest.raises(Unwritable, match="is outside"):
            promote(again)
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before


def test_broken_file_is_written_after_it_was_repaired(curator: Curator, paths: ProjectPaths) -> None:
    path = paths.pattern_file("error")
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    first = promote(curator)
    assert not first.written
    assert "cannot be parsed" in first.warnings[0]
    assert path.read_bytes() == whole[:50]
    second = deprecate(curator)
    assert not second.written
    path.write_bytes(whole)
    assert curator.apply_pending() == ()
    assert read_overrides(paths)[A]["decision"] == second.decision.id
    assert curator.ledger.pending() == ()


def test_full_disk_for_the_pattern_file_is_a_warning(
    curator: Curator, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(core.files.atomic_write, "_write_draft", full)
        decided = promote(curator)
    assert not decided.written
    assert "No space left on device" in decided.warnings[0]
    assert read_overrides(paths) == {}
    decide(curator, Note, text="any next decision brings it")
    assert A in read_overrides(paths)


def test_full_disk_for_the_ledger_prevents_the_decision(
    curator: Curator, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = paths.pattern_file("error").read_bytes()

    def full(*_args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(Unwritable, match="No space left"):
            promote(curator)
    assert paths.pattern_file("error").read_bytes() == before
    assert curator.ledger.decisions() == ()
    assert promote(curator).written


def test_lock_of_another_curator_delays_only_the_file(
    curator: Curator, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = partial(file_lock, seconds=0.05)
    monkeypatch.setattr(core.files.atomic_write, "file_lock", impatient)
    with file_lock(paths.curation / "curation.lock"):
        decided = promote(curator)
    assert not decided.written
    assert "another process has kept" in decided.warnings[0]
    assert curator.apply_pending() == ()
    assert A in read_overrides(paths)


def test_unreadable_ledger_is_a_warning_at_start(curator: Curator, paths: ProjectPaths) -> None:
    paths.ledger.mkdir(parents=True)
    (warning,) = curator.apply_pending()
    assert "cannot read" in warning
    with pytest.raises(Unwritable):
        promote(curator)


def test_missing_record_is_a_warning(curator: Curator, paths: ProjectPaths) -> None:
    decided = promote(curator, id="pat-error-gone-001")
    assert not decided.written
    assert decided.warnings == (f"pat-error-gone-001 is no longer in {PATTERN_FILE}",)
    paths.pattern_file("error").unlink()
    decided = deprecate(curator)
    assert decided.warnings == (f"{PATTERN_FILE} no longer exists: {A} was not changed",)
    assert not paths.pattern_file("error").exists()
    assert curator.ledger.pending() == ()


# What stays as it was.


@pytest.mark.parametrize(
    "content",
    [
        b'[{"pattern_id":"pat-error-a-001","n":1.0,"x":1e400}]',
        b'{"pat-error-a-001": {"usage_count": 1.0, "deep": {"u": "\\u00e9"}}}\n',
        b'{\n\t"updated": 12345678901234567890123,\n\t"patterns": [\n\t\t{"id": "pat-error-a-001"}\n\t]\n}',
        b'{"pattern_id":"pat-error-b-001"}\n{"pattern_id":"pat-error-a-001","u":0.10}\n',
        b'\xef\xbb\xbf{"pattern_id": "pat-error-a-001", "fix": NaN}',
    ],
)
def test_undo_restores_every_byte(curator: Curator, paths: ProjectPaths, content: bytes) -> None:
    path = paths.pattern_file("error")
    path.write_bytes(content)
    decided = promote(curator)
    assert decided.written
    assert decided.decision.id.encode() in path.read_bytes()
    curator.undo(now=CURATION_NOW)
    assert path.read_bytes() == content


def test_file_is_parsed_once_to_decide_and_once_to_write(
    curator: Curator, paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 25,000 records takes half a second each time."""
    promote(curator, id="pat-error-b-001")
    size = paths.pattern_file("error").stat().st_size
    taken: list[int] = []
    take_apart = JsonText.__init__

    def counted(document: JsonText, data: bytes) -> None:
        taken.append(len(data))
        take_apart(document, data)

    monkeypatch.setattr(JsonText, "__init__", counted)
    promote(curator)
    assert taken.count(size) == 2
