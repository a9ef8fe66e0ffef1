"""The debug memory from the command line."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.base.errors import Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Dismiss, SnoozeQuestion, Undo
from core.project.project import Project
from tests.core.cli.conftest import Call
from tests.factories import DEBUG_NOW, make_error_record, make_full_session, make_pattern_file

EXAMPLE = "dm-001-example"
SESSIONS = ".aiwg/ralph/debug-memory/sessions"
MESSAGE = "Cannot read property 'name' of null"
MAILER = "f9b78063-aed0-4736-9e65-33eecba3295e"
SETTLEMENT = "da34c67e-dba9-42e0-8acd-f12668a93c1f"
PATTERN = "pat-error-null-check-015"


def ids(document: dict[str, Any]) -> list[str]:
    return [session["id"] for session in document["sessions"]]


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted((folder / ".aiwg").rglob("*")) if path.is_file()}


@pytest.fixture
def debug(examples: Path, call: Call) -> Any:
    """`ralphdeck debug …` on the documents' examples."""
    return lambda *words: call("debug", *words, "--project", examples)


def test_a_fix_that_held_in_one_of_four_sessions_works_in_25_percent_everywhere(tmp_path: Path, call: Call) -> None:
    category = "null_undefined_access"
    for number, status in enumerate(("passed", "failed", "failed", "escalated")):
        value = make_full_session() | {"session_id": f"s{number}", "status": status, "learnings": {}}
        (run,) = value["executions"]
        run["failures"][0] |= {"error_type": "TypeError", "error_message": MESSAGE}
        run["analysis"]["root_cause_category"] = category
        run["fix_applied"] = {"description": "Guard it"}
        path = tmp_path / SESSIONS / f"s{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def debug(*words: str) -> Any:
        return call("debug", *words, "--project", tmp_path)

    (lesson,) = debug("record", "s0", "--success", "--json").document["lessons"]
    assert lesson["effectiveness"] == 0.25
    (cause,) = debug("list", "--causes", "--json").document["causes"]
    assert (cause["fixes"]["held"], cause["fixes"]["failed"], cause["fixes"]["rate"]) == (1, 3, 0.25)
    assert "25 %" in debug("list", "--causes").out
    (template,) = debug("list", "--templates", category, "--min-effectiveness", "0", "--json").document["templates"]
    assert (template["effectiveness"], template["fixes"]["rate"]) == (0.25, 0.25)
    fixes = debug("failure", "--message", f"TypeError: {MESSAGE}", "--json").document["fixes"]
    assert {(fix["fix"], fix["held"], fix["results"]["rate"]) for fix in fixes} == {("Guard it", True, 0.25)}
    text = debug("failure", "--message", f"TypeError: {MESSAGE}").out
    assert "Fix: Guard it (verified; worked in 1 of 4 (25 %) over all sessions)" in text
    assert "worked in 1 of 4 (25 %)" in debug("show", "s0").out


def test_the_example_of_the_document_through_every_query(debug: Any) -> None:
    for words in (
        ("list", "--status", "passed", "--file", "SRC/auth/%", "--category", "Null-undefined access"),
        ("list", "--error-type", "typeerror", "--file", "src/auth/%"),
    ):
        assert ids(debug(*words, "--json").document) == [EXAMPLE]
        assert EXAMPLE in debug(*words).out
    (template,) = debug("list", "--templates", "null_undefined_access", "--json").document["templates"]
    assert (template["pattern"], template["claimed"]) == ("null_access_without_check", [1.0])
    assert (template["fixes"]["held"], template["fixes"]["rate"]) == (1, 1.0)
    assert "1/1" in debug("list", "--templates", "null_undefined_access").out
    assert debug("list", "--templates", "null_undefined_access", "--min-effectiveness", "1").err == "no fix templates\n"
    (cause,) = debug("list", "--causes", "--json").document["causes"]
    assert (cause["category"], cause["sessions"], cause["passing"]) == ("null_undefined_access", 1, 1)
    assert debug("list", "--escalated", "--since", "7d").err == "no debug sessions\n"
    assert debug("list", "--error-type", "SyntaxError").err == "known error types: TypeError\nno debug sessions\n"
    known = "known categories of patterns: null_undefined_access\nno fix templates\n"
    assert debug("list", "--templates", "null").err == known
    shown = debug("show", "dm-001").out
    assert "fix: verified  Added early return for null/undefined input   +3/-0 lines" in shown
    assert debug("show", "nobody").code == 1


def test_the_known_fix_is_offered_as_data_and_nothing_is_written(debug: Any, examples: Path) -> None:
    before = files(examples)
    part = debug("failure", "--error-type", "TypeError", "--message", MESSAGE)
    assert part.code == 0
    assert "   - Fix: Added early return for null/undefined input (verified)\n" in part.out
    assert "   - Template: Add null check: if (!input) return/throw\n" in part.out
    assert "## Cross-Loop Learning Context" in part.out  # the registry knows this error, too
    document = debug("failure", "--error-type", "TypeError", "--message", MESSAGE, "--json").document
    assert document["text"] == part.out
    assert document["patterns"][0]["error_pattern"] == "Cannot read property '.*' of null"
    # A session is not offered to itself.
    own = debug("failure", "--session", EXAMPLE, "--json").document
    assert (own["error"]["error_type"], own["fixes"]) == ("TypeError", [])
    unknown = debug("failure", "--error-type", "NoSuchError", "--message", "qqq")
    assert (unknown.code, unknown.out, unknown.err) == (0, "", "no known fix\n")
    report = examples / "report.json"
    report.write_text(json.dumps({"failures": [{"test_name": "t", "error_message": f"TypeError: {MESSAGE}"}]}))
    assert debug("failure", "--input", report).out == part.out
    report.write_text("all tests pass")
    assert debug("failure", "--input", report).err == "no error in the input\n"
    assert debug("failure").code == 2
    assert debug("failure", "--session", EXAMPLE, "--message", "x").code == 2
    assert files(examples) == before


def test_every_field_of_a_session_is_shown(tmp_path: Path, call: Call) -> None:
    path = tmp_path / SESSIONS / "s.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(make_full_session()))
    text = call("debug", "show", "told-id", "--project", tmp_path).out
    document = json.dumps(call("debug", "show", "told-id", "--json", "--project", tmp_path).document)
    for part in sorted(set(re.findall(r"told-[\w-]+", path.read_text()))):
        assert part in text and part in document
    for part in (
        "Run 7",
        "11 of 19",
        "3 failed",
        "4 errors",
        "1 skipped",
        "62 %",
        "1.3 s",
        ":41",
        ":42",
        "confidence 89 %",
    ):
        assert part in text
    for part in (
        "verified",
        "5 times",
        "claimed 81 %",
        "6 times",
        "wont fix",
        "major",
        "not addressed",
        "iteration 9",
    ):
        assert part in text


def test_quarantined_or_deprecated_patterns_are_never_offered(debug: Any, examples: Path, call: Call) -> None:
    words = ("failure", "--error-type", "TypeError", "--message", MESSAGE, "--json")
    for verb in ("deprecate", "quarantine"):
        offered = [pattern["id"] for pattern in debug(*words).document["patterns"]]
        if not offered:
            break
        assert call("pattern", verb, offered[0], "--reason", "x", "--project", examples).code == 0
        assert offered[0] not in [pattern["id"] for pattern in debug(*words).document["patterns"]]


def test_a_success_writes_lessons_keeps_all_else_and_extracts(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / SESSIONS
    folder.mkdir(parents=True)
    example = json.loads(
        (Path(__file__).parents[3] / "trees/spec-examples" / SESSIONS / f"{EXAMPLE}.json").read_bytes()
    )
    del example["learnings"]["patterns_identified"]
    text = json.dumps({**example, "mine": 1.50, "note": "\u00e4"}, indent=3)
    path = folder / f"{EXAMPLE}.json"
    path.write_text(text)
    words = ("debug", "record", EXAMPLE, "--success", "--project", tmp_path)
    dry = call(*words, "--dry-run", "--json").document
    assert path.read_text() == text
    assert [proposal["type"] for proposal in dry["extraction"]["proposals"]] == ["error"]
    shown = call(*words, "--dry-run").out
    assert f"nothing is written; would write 1 lesson to {SESSIONS}/{EXAMPLE}.json\n" in shown
    done = call(*words, "--json").document
    assert (done["lessons_written"], done["file_changed"]) == (True, True)
    after = path.read_text()
    assert '"mine": 1.5' in after and "\\u00e4" in after and after.startswith('{\n   "session_id"')
    assert json.loads(after)["learnings"] == {
        "recommendations": example["learnings"]["recommendations"],
        "patterns_identified": [
            {
                "pattern": "null_undefined_access",
                "category": "null_undefined_access",
                "frequency": 1,
                "fix_template": "Added early return for null/undefined input",
                "effectiveness": 1.0,
            }
        ],
    }
    record = done["extraction"]["proposals"][0]["record"]
    assert record["error_signature"]["error_pattern"] == r"Cannot read property 'length' of null\b"
    assert record["fix_approach"]["fix_category"] == "add_null_check"
    assert done["decided"]["decision"]["verb"] == "extract"
    again = call(*words)
    assert again.code == 0
    assert again.out.endswith(f"{SESSIONS}/{EXAMPLE}.json already has 1 lesson\nthe registry has all of it already\n")
    assert path.read_text() == after
    path.write_text(text)
    assert f"\nwrote 1 lesson to {SESSIONS}/{EXAMPLE}.json\n" in call(*words).out
    assert call("undo", "--project", tmp_path).code == 0


def test_a_pattern_that_helped_gets_one_success(sample: Path, call: Call) -> None:
    words = ("debug", "record", SETTLEMENT, "--success", "--applied", PATTERN, "--json", "--project", sample)
    first = call(*words).document
    assert (first["applied"], len(first["records"])) == ([PATTERN], 1)
    assert first["bead"].startswith("ralph-")
    call(*words)
    why = call("pattern", "show", PATTERN, "--why", "--json", "--project", sample).document
    assert len([seen for seen in why["events"] if seen["loop_id"] == first["bead"] and seen["success"]]) == 1
    assert call("debug", "record", SETTLEMENT, "--success", "--applied", "nobody", "--project", sample).code == 1


def test_lessons_are_appended_to_yaml_and_a_failed_session_adds_none(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / SESSIONS
    folder.mkdir(parents=True)
    fix = {"description": "Guarded the access", "verification": "passed"}
    run = {
        "attempt": 1,
        "failures": [{"test_name": "t", "error_type": "E", "error_message": "it broke badly"}],
        "analysis": {"root_cause": "x" * 20, "root_cause_category": "logic_error"},
        "fix_applied": fix,
    }
    for id, status in (("y", "passed"), ("f", "failed")):
        value = {"session_id": id, "file_path": "a.py", "status": status, "executions": [run]}
        (folder / f"{id}.yaml").write_text(yaml.safe_dump(value))
    before = (folder / "y.yaml").read_text()
    reported = "nothing is written; would write 1 lesson to"
    assert reported in call("debug", "record", "y", "--success", "--dry-run", "--project", tmp_path).out
    assert (folder / "y.yaml").read_text() == before
    done = call("debug", "record", "y", "--success", "--json", "--project", tmp_path).document
    assert (done["lessons"][0]["pattern"], done["lessons_written"], done["file_changed"]) == ("logic_error", True, True)
    after = (folder / "y.yaml").read_text()
    assert after.startswith(before) and yaml.safe_load(after)["learnings"]["patterns_identified"] == done["lessons"]
    again = call("debug", "record", "y", "--success", "--json", "--project", tmp_path).document
    assert (again["lessons_written"], again["file_changed"], (folder / "y.yaml").read_text()) == (True, False, after)
    refused = call("debug", "record", "f", "--success", "--project", tmp_path)
    assert (refused.code, "is failed" in refused.err) == (1, True)


TOKEN = f"ghp_{'a1B2' * 9}"


def test_each_escalation_saves_its_context_and_is_listed(sample: Path, call: Call) -> None:
    words = ("debug", "record", MAILER, "--escalate", "--reason", f"no \x1b credentials, {TOKEN}", "--project", sample)
    path = Path(call(*words).out.strip())
    assert path == sample / f".aiwg/ralph/shared/curation/escalations/{MAILER}.json"
    assert TOKEN not in path.read_text()
    kept = json.loads(path.read_bytes())
    assert kept["session"]["session_id"] == MAILER
    assert kept["loop"]["iterations"] and kept["loop"]["injected_patterns"]
    assert kept["reason"].startswith("no \x1b credentials") and kept["by"] == "ada"
    before = path.read_bytes()
    again = Path(call(*words, "--json").document["file"])
    assert again.name == f"{MAILER}-2.json"
    assert path.read_bytes() == before
    about = ("--project", sample)
    assert call("debug", "show", MAILER, *about).out.count("context kept in .aiwg/ralph/shared/curation/") == 2
    reported = call("debug", "list", "--escalated", *about).out
    assert "credentials" in reported and again.name in reported and "\x1b" not in reported
    (listed,) = (
        one for one in call("debug", "list", "--escalated", "--json", *about).document["sessions"] if one["call"]
    )
    assert (listed["id"], listed["escalated"], listed["call"]["by"]) == (MAILER, True, "ada")
    assert listed["call"]["context"] == again.relative_to(sample).as_posix()
    assert MAILER in ids(call("debug", "list", "--status", "escalated", "--json", *about).document)


def test_the_decision_on_an_escalation_is_printed(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / SESSIONS
    folder.mkdir(parents=True)
    value = {"session_id": "s-1", "file_path": "src/\x1bstuck.ts", "status": "escalated", "executions": []}
    (folder / "s.json").write_text(json.dumps(value))
    opened = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False)
    opened.load()
    (item,) = opened.view.queue
    snoozed = opened.decide(
        SnoozeQuestion(key=item.question_key, until=DEBUG_NOW + timedelta(days=1), about=item.about)
    )
    place = "escalation at src/\N{SYMBOL FOR ESCAPE}stuck.ts"
    assert snoozed.summary.startswith(f"snoozed {place} until ")
    assert opened.decide(Undo()).summary == f"Undone: snooze {place}"
    reported = call("log", "--project", tmp_path).out
    assert reported.count(place) == 2 and "s-1" not in reported
    with pytest.raises(Refused, match="escalation at"):
        for _ in range(2):
            opened.decide(Dismiss(key=item.question_key, summary="seen", about=item.about))


def test_an_unsafe_id_is_not_used_as_a_path(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / SESSIONS
    folder.mkdir(parents=True)
    evil = "../../../evil\x1b]0;x"
    value = {"session_id": evil, "file_path": "a", "status": "escalated", "executions": []}
    (folder / "e.json").write_text(json.dumps(value))
    result = call("debug", "record", evil, "--escalate", "--project", tmp_path)
    assert (result.code, "\x1b" in result.out) == (0, False)
    (kept,) = (tmp_path / ".aiwg/ralph/shared/curation/escalations").iterdir()
    assert re.fullmatch(r"session-[0-9a-f]{32}\.json", kept.name)
    assert "\x1b" not in call("debug", "list", "--project", tmp_path).out


def test_retention_from_the_command_line(debug: Any, examples: Path) -> None:
    before = files(examples)
    plan = debug("archive", "--dry-run", "--json").document["plan"]
    assert {term["rule"] for kept in plan for term in kept["terms"]} == {"on_learning_identified"}
    assert "2 files would be archived" in debug("archive", "--dry-run").err
    assert files(examples) == before
    moved = debug("archive", "--json").document["moved"]
    assert [one["session_ids"] for one in moved] == [[EXAMPLE], [EXAMPLE]]
    assert debug("list").err == "no debug sessions\n"
    assert EXAMPLE in debug("list", "--archived").out
    archived = debug("record", EXAMPLE[:6], "--escalate")
    assert archived.code == 1 and f"restore it with: ralphdeck debug archive --restore {EXAMPLE}" in archived.err
    assert debug("archive", "--restore", "dm-002").code == 1
    restored = debug("archive", "--restore", EXAMPLE[:6])
    assert restored.code == 0
    (message,) = restored.err.splitlines()
    assert message.endswith("stays archived; restore again to get that file too")
    assert sum(one["to"] in message for one in moved) == 1
    assert ids(debug("list", "--json").document) == [EXAMPLE]
    assert debug("archive").err == "no debug session has expired\n"
    young = {"session_id": "young", "status": "in_progress", "executions": []}
    old = {"session_id": "old", "updated_at": "2020-01-01", "executions": []}
    (examples / SESSIONS / "two.json").write_text(json.dumps([young, old]))
    stays = f"{SESSIONS}/two.json stays: 1 of its 2 sessions is due, and files move as a whole\n"
    for words in ((), ("--dry-run",)):
        assert debug("archive", *words).err == f"no debug session has expired\n{stays}"


@pytest.mark.parametrize(("message", "is_given"), [("TypeError: value 7 is null", True), ("value 8 is null", False)])
def test_a_pattern_without_a_trigger_is_found_by_its_very_message(
    tmp_path: Path, call: Call, message: str, is_given: bool
) -> None:
    signature = {"error_type": "TypeError", "error_message": "TypeError: value 7 is null"}
    file = tmp_path / ".aiwg/ralph/shared/patterns/error-patterns.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(make_pattern_file(make_error_record(1, error_signature=signature)))
    done = call("debug", "failure", "--error-type", "TypeError", "--message", message, "--json", "--project", tmp_path)
    assert [one["id"] for one in done.document["patterns"]] == ["pat-error-made-001"] * is_given
