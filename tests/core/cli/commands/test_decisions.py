from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call
from tests.core.meaning import meaning

ESTABLISHED = "pat-error-null-check-015"
PROVEN = "pat-success-types-first-006"
CANDIDATE = "pat-anti-unbounded-retry-007"


def state(call: Call, pattern_id: str) -> tuple[str, bool]:
    patterns = call("pattern", "list", "--json").document["patterns"]
    (found,) = [pattern for pattern in patterns if pattern["id"] == pattern_id]
    return found["state"], found["pinned"]


def record(project: Path, pattern_id: str) -> dict[str, Any]:
    text = (project / ".aiwg/ralph/shared/patterns/error-patterns.json").read_text()

    def find(value: Any) -> Any:
        if isinstance(value, dict) and value.get("pattern_id") == pattern_id:
            return value
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return next((found for child in children if (found := find(child))), None)

    found: dict[str, Any] = find(json.loads(text))
    return found


def test_promote_undo_redo_reset(sample: Path, call: Call) -> None:
    assert state(call, ESTABLISHED) == ("established", False)
    assert call("undo", "--redo").code == 1, "nothing to redo"
    result = call("pattern", "promote", ESTABLISHED, "--reason", "holds")
    assert (result.code, result.err) == (0, "")
    assert ESTABLISHED in result.out and "proven" in result.out and result.out.count("\n") == 1
    assert state(call, ESTABLISHED) == ("proven", True)
    assert record(sample, ESTABLISHED)["override"]["state"] == "proven"
    for words, after in ((["undo"], ("established", False)), (["undo", "--redo"], ("proven", True))):
        assert call(*words).code == 0
        assert state(call, ESTABLISHED) == after
    assert call("pattern", "reset", ESTABLISHED).code == 0
    assert state(call, ESTABLISHED) == ("established", False)
    assert "override" not in record(sample, ESTABLISHED)


def test_the_log_prints_who_decided_and_what_is_undone(sample: Path, call: Call) -> None:
    call("pattern", "promote", ESTABLISHED, "--reason", "holds", "--by", "grace")
    call("undo", "--any-author")
    document = call("log", "--limit", "2", "--json").document
    undo, promotion = document["decisions"]
    assert (undo["verb"], undo["by"], undo["subject"]) == ("undo", "ada", promotion["id"])
    assert (promotion["by"], promotion["undone"], undo["undone"]) == ("grace", True, False)
    plain = call("log", "--verb", "undo", "--by", "ada").out
    assert "promote Cannot read property" in plain and ESTABLISHED in plain and plain.count("\n") == 2


def test_undo_refuses_the_decision_of_another_person(sample: Path, call: Call) -> None:
    call("pattern", "promote", ESTABLISHED, "--by", "grace")
    refused = call("undo")
    newest = call("log", "--limit", "1", "--json").document["decisions"][0]
    assert (refused.code, newest["verb"]) == (1, "promote")
    for part in ("made by grace:", ESTABLISHED, "--any-author", newest["id"]):
        assert part in refused.err
    assert state(call, ESTABLISHED) == ("proven", True)
    assert call("undo", newest["id"]).code == 0
    assert state(call, ESTABLISHED) == ("established", False)
    call("pattern", "promote", ESTABLISHED, "--by", "grace")
    assert "Undone: promote pat-error-null-check-015 by grace" in call("undo", "--any-author").out


def test_promoting_a_promoted_pattern_exits_with_0(sample: Path, call: Call) -> None:
    call("pattern", "promote", ESTABLISHED)
    known = call("log", "--json").document["decisions"]
    again = call("pattern", "promote", ESTABLISHED)
    assert (again.code, again.err) == (0, "") and "already promoted (by ada" in again.out
    assert call("pattern", "promote", ESTABLISHED, "--dry-run").code == 0
    both = call("pattern", "promote", ESTABLISHED, PROVEN)
    assert both.code == 0 and "promoted 1 of 2 patterns" in both.out
    document = call("pattern", "promote", ESTABLISHED, "--json").document
    assert document["decision"] is None and "already" in document["summary"]
    assert len(call("log", "--json").document["decisions"]) == len(known) + 1


def test_a_decision_without_effect_writes_nothing_and_reports_that_its_reason_is_lost(sample: Path, call: Call) -> None:
    for pattern, verbs in ((ESTABLISHED, ("promote",)), (CANDIDATE, ("quarantine", "release"))):
        for verb in verbs:
            assert call("pattern", verb, pattern, "--reason", "first").code == 0
            known = call("log", "--json").document["decisions"]
            again = call("pattern", verb, pattern, "--reason", "second", "--json")
            assert (again.code, again.document["decision"], again.document["written"]) == (0, None, False)
            assert "reason was not stored" in again.document["summary"]
            assert call("log", "--json").document["decisions"] == known
    both = call("pattern", "promote", ESTABLISHED, PROVEN, "--reason", "holds in auth")
    assert both.code == 0 and f"{ESTABLISHED} is already promoted" in both.err and "reason was not stored" in both.err


def test_promoting_many_skips_quarantined_patterns_with_a_message(sample: Path, call: Call) -> None:
    call("pattern", "quarantine", CANDIDATE, "--reason", "who wrote this?")
    for args in (("--dry-run",), ()):
        result = call("pattern", "promote", ESTABLISHED, CANDIDATE, *args)
        assert result.code == 1
        assert f"{CANDIDATE} is in quarantine" in result.err
    assert "promoted 1 of 2 patterns; skipped 1 in quarantine" in result.out
    assert state(call, ESTABLISHED) == ("proven", True)
    assert state(call, CANDIDATE)[1] is False
    assert call("pattern", "promote", CANDIDATE).code == 0


def test_a_deprecated_pattern_is_re_enabled_by_one_command_with_one_undo(sample: Path, call: Call) -> None:
    call("pattern", "deprecate", ESTABLISHED, "--reason", "hides the cause")
    refused = call("pattern", "promote", ESTABLISHED, "--json")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1) and "reset it first" in refused.err
    done = call("pattern", "promote", ESTABLISHED, "--re-enable")
    assert (done.code, done.out) == (0, f"re-enabled {ESTABLISHED}: deprecated → proven\n")
    assert record(sample, ESTABLISHED)["override"]["state"] == "proven"
    call("undo")
    assert state(call, ESTABLISHED) == ("deprecated", True)
    assert record(sample, ESTABLISHED)["override"]["state"] == "deprecated"


def test_the_log_is_newest_first_and_narrowed_by_options(sample: Path, call: Call) -> None:
    def verbs(*args: str) -> list[str]:
        decisions = call("log", "--json", *args).document["decisions"]
        assert [d["at"] for d in decisions] == sorted((d["at"] for d in decisions), reverse=True)
        return [d["verb"] for d in decisions]

    everything = verbs()
    assert set(verbs("--verb", "promote,note")) == {"promote", "note"}
    assert verbs("--limit", "1") == everything[:1]
    assert verbs("--by", "nobody") == []


def test_several_patterns_are_one_decision(sample: Path, call: Call) -> None:
    refused = call("pattern", "promote", ESTABLISHED, "pat-error-nobody-001", CANDIDATE, "--json")
    assert refused.code == 1
    document = refused.document
    assert set(document) == {"decisions", "refused", "summary", "warnings", "written"}
    assert document["summary"] == "promoted 2 of 3 patterns"
    assert [decision["subject"] for decision in document["decisions"]] == [ESTABLISHED, CANDIDATE]
    assert [one["id"] for one in document["refused"]] == ["pat-error-nobody-001"]
    assert "no pattern 'pat-error-nobody-001'" in refused.err
    taken = call("undo")
    assert (taken.code, taken.out) == (0, "Undone: promote 2 patterns\n")
    assert state(call, ESTABLISHED) == ("established", False)


def test_a_dry_run_prints_the_changes_and_writes_nothing(sample: Path, call: Call) -> None:
    ledger = sample / ".aiwg/ralph/shared/curation/ledger.jsonl"
    before = ledger.read_bytes()
    result = call("pattern", "promote", ESTABLISHED, "--dry-run")
    assert (result.code, result.err) == (0, "")
    assert f"Would promote {ESTABLISHED}: established → proven" in result.out
    assert "of 1 paused loop (on resume)" in result.out
    assert "another context for" in result.out
    result = call("pattern", "deprecate", ESTABLISHED, "nothing", "--reason", "r", "--dry-run", "--json")
    reported = result.document
    assert result.code == 1
    assert reported["turned"] == [{"id": ESTABLISHED, "before": "established", "after": "deprecated"}]
    assert [refusal["id"] for refusal in reported["refused"]] == ["nothing"]
    assert reported["paused"] == 1
    assert {one["when"] for one in reported["changed"] if one["kind"] == "paused"} <= {"when it resumes"}
    assert {one["when"] for one in reported["changed"] if one["kind"] != "paused"} == {None}
    assert reported["changed"] and reported["tokens"]["before"] != reported["tokens"]["after"]
    assert "nothing changed" in call("pattern", "reset", ESTABLISHED, "--dry-run").out
    assert ledger.read_bytes() == before
    assert state(call, ESTABLISHED) == ("established", False)


def test_a_dry_run_uses_semantic_search_like_inject_and_saves_no_vector(
    sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("pattern", "promote", ESTABLISHED, "--dry-run", "--json")
    by_words = call(*words).document
    with meaning():
        reported = call(*words)
        assert reported.err == "" and reported.document["tokens"] != by_words["tokens"]
        assert not (sample / ".aiwg/ralph/memory/embeddings").exists()
        monkeypatch.setattr("core.retrieval.embeddings.MAX_ON_DEMAND", 10)
        reported = call(*words)
        assert reported.document["tokens"] == by_words["tokens"]
        assert reported.err.startswith("40 patterns found by words only")
