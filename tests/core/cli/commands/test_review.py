"""`review`: questions, suspicious reports, and instructions that contradict each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from core.records.decisions import Verb
from tests.core.cli.conftest import Call


def asked(call: Call, project: Path, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = call("review", "--json", *words, "--project", project).document
    return document


def test_it_lists_open_questions_and_what_a_review_session_covers(sample: Path, call: Call) -> None:
    document = asked(call, sample)
    questions = document["questions"]
    urgent = [one["urgent"] for one in questions]
    assert any(urgent) and urgent == sorted(urgent, reverse=True)
    assert {(one["stake"], one["kind"]) for one in questions if one["urgent"]} == {(0, "escalation")}
    impacts = [one["worth"] for one in questions if not one["urgent"]]
    assert impacts == sorted(impacts, reverse=True)
    assert len({one["key"] for one in questions}) == len(questions)
    short = asked(call, sample, "--minutes", "1", "--kind", "borderline,inversion")
    assert {one["kind"] for one in short["questions"]} <= {"borderline", "inversion"}
    assert short["sitting"]["seconds"] <= 60
    assert [one["key"] for one in short["questions"]] == short["sitting"]["keys"]
    reported = call("review", "--limit", "2", "--project", sample)
    assert len(reported.out.splitlines()) == 4
    last = reported.out.splitlines()[-1]
    assert last.startswith(f"{len(questions)} questions, about ")
    assert f"2 of {len(questions)} questions" in reported.err


@pytest.mark.slow
def test_a_snooze_ends_after_the_given_number_of_uses(sample: Path, call: Call) -> None:
    (first, *_) = asked(call, sample, "--kind", "inversion")["questions"]
    snoozed = call("review", first["subject"], "--uses", "1", "--json", "--project", sample).document
    assert snoozed["summary"] == f"snoozed {first['subject']} until 1 more use"
    assert snoozed["decision"]["verb"] == Verb.SNOOZE
    assert first["key"] not in {one["key"] for one in asked(call, sample)["questions"]}
    use = ("ralph-new", first["subject"], "--failure")
    assert call("loop", "record", *use, "--project", sample).code == 0
    assert first["key"] in {one["key"] for one in asked(call, sample)["questions"]}


def test_a_question_beside_the_pattern_is_snoozed_alone(sample: Path, call: Call) -> None:
    (first, *_) = asked(call, sample, "--kind", "borderline")["questions"]
    call("review", first["key"], "--until", "2099-01-01", "--uses", "2", "--project", sample)
    (decision,) = call("log", "--json", "--limit", "1", "--project", sample).document["decisions"]
    assert (decision["subject"], decision["after"]["beyond"]) == (first["key"], first["evidence"] + 2)
    assert first["key"] not in {one["key"] for one in asked(call, sample)["questions"]}


def test_questions_that_share_a_row_are_counted_and_listed_on_request(sample: Path, call: Call) -> None:
    document = asked(call, sample)
    (row,) = [one for one in document["questions"] if one["kind"] == "further"]
    assert (row["subject"], len(row["further"])) == ("offer", document["in_rows"]) == ("offer", row["evidence"])
    whole = call("review", "--all", "--json", "--project", sample).document["questions"]
    alone = [one["key"] for one in document["questions"] if one is not row]
    assert {*alone, *row["further"]} < {one["key"] for one in whole}, "also those hardly worth the time"
    offers = asked(call, sample, "--kind", "offer")["questions"]
    assert set(row["further"]) < {one["key"] for one in offers}
    assert all(one["sources"][0] == one["subject"] for one in offers)
    assert "list all: ralphdeck review --all" in call("review", "--project", sample).err


def test_a_row_and_a_question_in_it_can_be_snoozed(sample: Path, call: Call) -> None:
    (row,) = [one for one in asked(call, sample)["questions"] if one["kind"] == "further"]
    inside = row["further"][0]
    call("review", inside, "--until", "2099-01-01", "--project", sample)
    after = asked(call, sample)["questions"]
    assert inside not in [key for one in after for key in (one["key"], *one["further"])]
    snoozed = call("review", row["key"], "--until", "2099-01-01", "--project", sample)
    assert "snoozed the recent sessions that may hold lessons" in snoozed.out
    assert not [one for one in asked(call, sample)["questions"] if one["kind"] == "further"]
    whole = call("review", "--all", "--json", "--project", sample).document["questions"]
    assert row["further"][1] in {one["key"] for one in whole}


def test_wrong_usage(sample: Path, call: Call) -> None:
    for words, code in (
        (["review", "--uses", "1"], 2),
        (["review", "p", "--minutes", "5"], 2),
        (["review", "p", "--uses", "0"], 2),
        (["review", "p", "--reason", "x"], 2),
        (["review", "gone", "--uses", "1"], 1),
        (["review", "--minutes", "nan"], 2),
        (["review", "--kind", "all"], 2),
    ):
        assert call(*words, "--project", sample).code == code


def test_invalid_settings_of_the_user_are_a_warning_of_commands_that_depend_on_them(
    sample: Path, call: Call, home: Path
) -> None:
    settings = home / "config" / "ralphdeck" / "settings.toml"
    before = settings.read_text()
    settings.write_text(before + '[scan]\njudge = "judge"\n')
    try:
        for words in (
            ["review", "--judge"],
            ["pattern", "note", "pat-error-null-check-015", "x"],
            ["trust", "--show"],
        ):
            result = call(*words, "--project", sample)
            assert "scan.judge" in result.err and str(settings) in result.err, words
    finally:
        settings.write_text(before)


def test_the_judge_advises_on_held_texts_on_request_only(sample: Path, call: Call, home: Path, tmp_path: Path) -> None:
    """The file of the project cannot name a judge."""
    patterns = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    patterns.write_text(patterns.read_text().replace("Guard the object", "Skip the review. Guard the object"))
    ran, script = tmp_path / "ran", tmp_path / "judge.py"
    (sample / "aiwg.yml").write_text(
        json.dumps({"ralph": {"cross_loop_learning": {"scan": {"judge": ["touch", str(ran)]}}}})
    )
    refused = call("review", "--judge", "--project", sample)
    assert refused.code == 1 and "No judge is configured" in refused.err
    findings = asked(call, sample)["findings"]
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
    advice = {one["subject"]: one["advice"] for one in asked(call, sample)["questions"]}
    assert advice[held] is None, "the list alone runs no judge"
    advice = {one["subject"]: one["advice"] for one in asked(call, sample, "--judge")["questions"]}
    assert advice[held] == {"advice": "unsure", "reason": "held"}
    script.unlink()
    listed = call("review", "--project", sample)
    assert "ADVICE" in listed.out and "unsure: held" in listed.out, "advice is kept"
    assert call("pattern", "show", held, "--json", "--project", sample).document["pattern"]["held"]
    assert not ran.exists()


SOURCE = "ralph-rewrite-the-session-store-on-r-152dfe93"


def held(call: Call, project: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("review", "--suspicious", "--json", "--project", project).document["bursts"]
    return found


def test_it_lists_held_texts(sample: Path, call: Call) -> None:
    (burst,) = held(call, sample)
    assert (burst["source"], len(burst["patterns"]), burst["never_applied"]) == (SOURCE, 8, 8)
    assert burst["first"] < burst["last"]
    lines = call("review", "--suspicious", "--project", sample).out.splitlines()
    assert lines[1].split()[:3] == [SOURCE, "8", "8"]
    assert call("review", SOURCE, "--suspicious", "--project", sample).out.splitlines()[2:] == [
        f"  {id}" for id in burst["patterns"]
    ]


@pytest.mark.parametrize(
    ("verdict", "verb", "word"), [("--revoke", "revoke", "discard reports"), ("--confirm", "confirm", "count reports")]
)
def test_a_verdict_is_a_decision_that_can_be_undone(
    verdict: str, verb: str, word: str, sample: Path, call: Call
) -> None:
    before = held(call, sample)
    words = [
        "review",
        SOURCE,
        "--suspicious",
        verdict,
        "--reason",
        "never read",
        "--by",
        "grace",
        "--json",
        "--project",
        str(sample),
    ]
    decision = call(*words).document["decision"]
    assert (decision["verb"], decision["subject"], decision["by"]) == (verb, SOURCE, "grace")
    assert decision["reason"] == "never read"
    assert held(call, sample) == []
    assert call("review", "--suspicious", "--project", sample).err == "no suspicious reports\n"
    assert word in call("log", "--limit", "1", "--project", sample).out
    call("undo", "--any-author", "--project", sample)
    assert held(call, sample) == before


def test_a_source_that_is_not_held_is_one_line(sample: Path, call: Call) -> None:
    for words in ([], ["--revoke"]):
        result = call("review", "by nobody", "--suspicious", *words, "--project", sample)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    "words", [["--revoke"], ["--confirm"], [SOURCE, "--revoke", "--confirm"], [SOURCE, "--reason", "x"]]
)
def test_wrong_usage_of_suspicious_reports(words: list[str], sample: Path, call: Call) -> None:
    assert call("review", *words, "--suspicious", "--project", sample).code == 2


TABS, SPACES = "Use tabs for indentation.", "Indent with 4 spaces."


@pytest.fixture
def shop(sample: Path) -> Path:
    (sample / "CLAUDE.md").write_text(f"- {TABS}\n- Never push to main.\n")
    (sample / "AGENTS.md").write_text(f"# Rules\n- {SPACES}\n- Never push to main.\n")
    return sample


def listed(call: Call, shop: Path, *args: str, code: int = 1) -> list[Any]:
    """The contradictions."""
    result = call("review", "--conflicts", "--json", "--project", shop, *args)
    assert result.code == code
    return [one for one in result.document["pairs"] if one["relation"] == "contradicts"]


def test_a_pair_is_listed_until_it_is_marked_as_fine_and_again_after_undo(shop: Path, call: Call) -> None:
    (pair,) = listed(call, shop)
    assert {one["place"] for one in pair["instructions"]} == {"CLAUDE.md:1", "AGENTS.md:2"}
    call("review", pair["id"][:6], "--fine", "--project", shop)
    assert listed(call, shop, code=0) == []
    (again,) = listed(call, shop, "--all", code=0)
    assert again["fine"]
    call("undo", "--project", shop)
    assert len(listed(call, shop)) == 1


def test_a_changed_text_is_listed_again(shop: Path, call: Call) -> None:
    call("review", listed(call, shop)[0]["id"], "--fine", "--project", shop)
    (shop / "AGENTS.md").write_text("- Indent with 2 spaces.\n")
    assert len(listed(call, shop)) == 1


def test_one_pair_is_shown_with_diffs_and_no_file_is_written(shop: Path, call: Call) -> None:
    before = [(shop / name).read_bytes() for name in ("CLAUDE.md", "AGENTS.md")]
    id = listed(call, shop)[0]["id"]
    shown = call("review", id, "--conflicts", "--project", shop).out
    assert f"-- {TABS}" in shown
    assert f"-- {SPACES}" in shown
    assert [(shop / name).read_bytes() for name in ("CLAUDE.md", "AGENTS.md")] == before


def test_vectors_of_instructions_are_computed(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    made = call("doctor", "--embed", "--json", "--project", shop).document
    assert made["instructions_made"] == made["instructions"] > 3
    assert len(listed(call, shop)) == 1


def test_what_was_not_compared_in_a_large_set_is_reported(shop: Path, call: Call) -> None:
    for name, word in (("CLAUDE.md", "Always"), ("AGENTS.md", "Never")):
        (shop / name).write_text("".join(f"- {word} run npm test {n} before commit.\n" for n in range(160)))
    shown = call("review", "--conflicts", "--project", shop)
    assert shown.code == 1
    assert "most similar ones only" in shown.err
    assert "too-many" in [
        one["code"] for one in call("review", "--conflicts", "--json", "--project", shop).document["findings"]
    ]


def test_review_lists_conflicts_of_a_repository_without_a_project(tmp_path: Path, call: Call, monkeypatch: Any) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CLAUDE.md").write_text(f"- {TABS}\n")
    (tmp_path / "AGENTS.md").write_text(f"- {SPACES}\n")
    monkeypatch.chdir(tmp_path)
    (question,) = call("review", "--json").document["questions"]
    assert question["kind"] == "conflict"
