"""The debug memory from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call
from tests.factories import make_full_session

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
    return lambda *words: call("debug", *words)


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
    numbers = (
        "Run 7|11 of 19|3 failed|4 errors|1 skipped|62 %|1.3 s|:41|:42|confidence 89 %|5 times|claimed 81 %|6 times"
    )
    for part in f"{numbers}|verified|wont fix|major|not addressed|iteration 9".split("|"):
        assert part in text


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
    words = ("debug", "record", SETTLEMENT, "--success", "--applied", PATTERN, "--json")
    first = call(*words).document
    assert (first["applied"], len(first["records"])) == ([PATTERN], 1)
    assert first["bead"].startswith("ralph-")
    call(*words)
    why = call("pattern", "show", PATTERN, "--why", "--json").document
    assert len([seen for seen in why["events"] if seen["loop_id"] == first["bead"] and seen["success"]]) == 1
    assert call("debug", "record", SETTLEMENT, "--success", "--applied", "nobody").code == 1


TOKEN = f"ghp_{'a1B2' * 9}"


def test_each_escalation_saves_its_context_and_is_listed(sample: Path, call: Call) -> None:
    words = ("debug", "record", MAILER, "--escalate", "--reason", f"no \x1b credentials, {TOKEN}")
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
