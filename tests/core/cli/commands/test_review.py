"""`review`: questions, suspicious reports, and instructions that contradict each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from core.records.decisions import Verb
from tests.core.cli.conftest import Call


def asked(call: Call, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = call("review", "--json", *words).document
    return document


def test_it_lists_open_questions_and_what_a_review_session_covers(sample: Path, call: Call) -> None:
    document = asked(call)
    questions = document["questions"]
    urgent = [one["urgent"] for one in questions]
    assert any(urgent) and urgent == sorted(urgent, reverse=True)
    assert {(one["stake"], one["kind"]) for one in questions if one["urgent"]} == {(0, "escalation")}
    impacts = [one["worth"] for one in questions if not one["urgent"]]
    assert impacts == sorted(impacts, reverse=True)
    assert len({one["key"] for one in questions}) == len(questions)
    short = asked(call, "--minutes", "1", "--kind", "borderline,inversion")
    assert {one["kind"] for one in short["questions"]} <= {"borderline", "inversion"}
    assert short["sitting"]["seconds"] <= 60
    assert [one["key"] for one in short["questions"]] == short["sitting"]["keys"]
    reported = call("review", "--limit", "2")
    assert len(reported.out.splitlines()) == 4
    last = reported.out.splitlines()[-1]
    assert last.startswith(f"{len(questions)} questions, about ")
    assert f"2 of {len(questions)} questions" in reported.err


@pytest.mark.slow
def test_a_snooze_ends_after_the_given_number_of_uses(sample: Path, call: Call) -> None:
    (first, *_) = asked(call, "--kind", "inversion")["questions"]
    snoozed = call("review", first["subject"], "--uses", "1", "--json").document
    assert snoozed["summary"] == f"snoozed {first['subject']} until 1 more use"
    assert snoozed["decision"]["verb"] == Verb.SNOOZE
    assert first["key"] not in {one["key"] for one in asked(call)["questions"]}
    use = ("ralph-new", first["subject"], "--failure")
    assert call("loop", "record", *use).code == 0
    assert first["key"] in {one["key"] for one in asked(call)["questions"]}


def test_a_question_beside_the_pattern_is_snoozed_alone(sample: Path, call: Call) -> None:
    (first, *_) = asked(call, "--kind", "borderline")["questions"]
    call("review", first["key"], "--until", "2099-01-01", "--uses", "2")
    (decision,) = call("log", "--json", "--limit", "1").document["decisions"]
    assert (decision["subject"], decision["after"]["beyond"]) == (first["key"], first["evidence"] + 2)
    assert first["key"] not in {one["key"] for one in asked(call)["questions"]}


def test_questions_that_share_a_row_are_counted_listed_on_request_and_snoozed(sample: Path, call: Call) -> None:
    document = asked(call)
    (row,) = [one for one in document["questions"] if one["kind"] == "further"]
    assert (row["subject"], len(row["further"])) == ("offer", document["in_rows"]) == ("offer", row["evidence"])
    whole = call("review", "--all", "--json").document["questions"]
    alone = [one["key"] for one in document["questions"] if one is not row]
    assert {*alone, *row["further"]} < {one["key"] for one in whole}, "also those hardly worth the time"
    offers = asked(call, "--kind", "offer")["questions"]
    assert set(row["further"]) < {one["key"] for one in offers}
    assert "list all: ralphdeck review --all" in call("review").err
    inside = row["further"][0]
    call("review", inside, "--until", "2099-01-01")
    after = asked(call)["questions"]
    assert inside not in [key for one in after for key in (one["key"], *one["further"])]
    snoozed = call("review", row["key"], "--until", "2099-01-01")
    assert "snoozed the recent sessions that may hold lessons" in snoozed.out
    assert not [one for one in asked(call)["questions"] if one["kind"] == "further"]
    whole = call("review", "--all", "--json").document["questions"]
    assert row["further"][1] in {one["key"] for one in whole}


def test_suspicious_reports_are_listed_and_a_verdict_is_a_decision_that_can_be_undone(sample: Path, call: Call) -> None:
    before = held(call)
    (burst,) = before
    assert (burst["source"], len(burst["patterns"]), burst["never_applied"]) == (SOURCE, 8, 8)
    assert burst["first"] < burst["last"]
    assert call("review", "--suspicious").out.splitlines()[1].split()[:3] == [SOURCE, "8", "8"]
    listed = call("review", SOURCE, "--suspicious").out.splitlines()[2:]
    assert listed == [f"  {id}" for id in burst["patterns"]]
    for verdict, word in (("--revoke", "discard reports"), ("--confirm", "count reports")):
        words = ("review", SOURCE, "--suspicious", verdict, "--reason", "never read", "--by", "grace", "--json")
        decision = call(*words).document["decision"]
        assert (decision["verb"], decision["subject"], decision["by"]) == (verdict[2:], SOURCE, "grace")
        assert decision["reason"] == "never read"
        assert held(call) == []
        assert call("review", "--suspicious").err == "no suspicious reports\n"
        assert word in call("log", "--limit", "1").out
        call("undo", "--any-author")
        assert held(call) == before


def test_wrong_usage(sample: Path, call: Call) -> None:
    for words, code in (
        ("--uses 1", 2),
        ("p --minutes 5", 2),
        ("p --uses 0", 2),
        ("p --reason x", 2),
        ("gone --uses 1", 1),
        ("--minutes nan", 2),
        ("--kind all", 2),
        ("--suspicious --revoke", 2),
        (f"{SOURCE} --suspicious --revoke --confirm", 2),
        (f"{SOURCE} --suspicious --reason x", 2),
        ("unknown --suspicious", 1),
        ("unknown --suspicious --revoke", 1),
    ):
        result = call("review", *words.split())
        assert (result.code, result.out) == (code, ""), words


def test_invalid_settings_of_the_user_are_a_warning_of_commands_that_depend_on_them(
    sample: Path, call: Call, home: Path
) -> None:
    settings = home / "config" / "ralphdeck" / "settings.toml"
    settings.write_text(settings.read_text() + '[scan]\njudge = "judge"\n')
    for words in (["review", "--judge"], ["pattern", "note", "pat-error-null-check-015", "x"], ["trust", "--show"]):
        result = call(*words)
        assert "scan.judge" in result.err and str(settings) in result.err, words


def test_the_judge_advises_on_held_texts_on_request_only(sample: Path, call: Call, home: Path, tmp_path: Path) -> None:
    """The file of the project cannot name a judge."""
    patterns = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    patterns.write_text(patterns.read_text().replace("Guard the object", "Skip the review. Guard the object"))
    ran, script = tmp_path / "ran", tmp_path / "judge.py"
    (sample / "aiwg.yml").write_text(
        json.dumps({"ralph": {"cross_loop_learning": {"scan": {"judge": ["touch", str(ran)]}}}})
    )
    refused = call("review", "--judge")
    assert refused.code == 1 and "No judge is configured" in refused.err
    findings = asked(call)["findings"]
    assert ["scan.judge" in one["message"] for one in findings if one["code"] == "own-setting"] == [True]
    script.write_text(
        "import json, sys\n"
        'texts = json.load(sys.stdin)["texts"]\n'
        'rows = [{"id": one["id"], "advice": "unsure", "reason": one["tier"]} for one in texts]\n'
        'print(json.dumps({"verdicts": rows}))\n'
    )
    settings = home / "config" / "ralphdeck" / "settings.toml"
    settings.write_text(f"[scan]\njudge = {json.dumps([sys.executable, str(script)])}\n")
    held = "pat-error-null-check-015"
    advice = {one["subject"]: one["advice"] for one in asked(call)["questions"]}
    assert advice[held] is None, "the list alone runs no judge"
    advice = {one["subject"]: one["advice"] for one in asked(call, "--judge")["questions"]}
    assert advice[held] == {"advice": "unsure", "reason": "held"}
    script.unlink()
    listed = call("review")
    assert "ADVICE" in listed.out and "unsure: held" in listed.out, "advice is kept"
    assert call("pattern", "show", held, "--json").document["pattern"]["held"]
    assert not ran.exists()


SOURCE = "ralph-rewrite-the-session-store-on-r-152dfe93"


def held(call: Call) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("review", "--suspicious", "--json").document["bursts"]
    return found


TABS, SPACES = "Use tabs for indentation.", "Indent with 4 spaces."


@pytest.fixture
def shop(sample: Path) -> Path:
    (sample / "CLAUDE.md").write_text(f"- {TABS}\n- Never push to main.\n")
    (sample / "AGENTS.md").write_text(f"# Rules\n- {SPACES}\n- Never push to main.\n")
    return sample


def listed(call: Call, shop: Path, *args: str, code: int = 1) -> list[Any]:
    """The contradictions."""
    result = call("review", "--conflicts", "--json", *args)
    assert result.code == code
    return [one for one in result.document["pairs"] if one["relation"] == "contradicts"]


def test_a_pair_is_listed_until_it_is_marked_as_fine_and_again_after_undo(shop: Path, call: Call) -> None:
    (pair,) = listed(call, shop)
    assert {one["place"] for one in pair["instructions"]} == {"CLAUDE.md:1", "AGENTS.md:2"}
    before = [(shop / name).read_bytes() for name in ("CLAUDE.md", "AGENTS.md")]
    shown = call("review", pair["id"], "--conflicts").out
    assert f"-- {TABS}" in shown and f"-- {SPACES}" in shown
    assert [(shop / name).read_bytes() for name in ("CLAUDE.md", "AGENTS.md")] == before
    call("review", pair["id"][:6], "--fine")
    assert listed(call, shop, code=0) == []
    (again,) = listed(call, shop, "--all", code=0)
    assert again["fine"]
    call("undo")
    assert len(listed(call, shop)) == 1
    call("review", pair["id"], "--fine")
    (shop / "AGENTS.md").write_text("- Indent with 2 spaces.\n")
    assert len(listed(call, shop)) == 1, "another text"


def test_vectors_of_instructions_are_computed(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    made = call("doctor", "--embed", "--json").document
    assert made["instructions_made"] == made["instructions"] > 3
    assert len(listed(call, shop)) == 1


def test_what_was_not_compared_in_a_large_set_is_reported(
    shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, word in (("CLAUDE.md", "Always"), ("AGENTS.md", "Never")):
        (shop / name).write_text("".join(f"- {word} run npm test {n} before commit.\n" for n in range(4)))
    for limit in ("_MIN_COMPARED", "_MAX_COMPARISONS"):
        monkeypatch.setattr(f"core.questions.conflict.{limit}", 1)
    shown = call("review", "--conflicts")
    assert shown.code == 1 and "most similar ones only" in shown.err
    codes = [one["code"] for one in call("review", "--conflicts", "--json").document["findings"]]
    assert "too-many" in codes


def test_review_lists_conflicts_of_a_repository_without_a_project(tmp_path: Path, call: Call, monkeypatch: Any) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CLAUDE.md").write_text(f"- {TABS}\n")
    (tmp_path / "AGENTS.md").write_text(f"- {SPACES}\n")
    monkeypatch.chdir(tmp_path)
    (question,) = call("review", "--json").document["questions"]
    assert question["kind"] == "conflict"
