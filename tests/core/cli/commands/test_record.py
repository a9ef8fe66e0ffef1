from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.sources.events import append_events
from tests.core.cli.conftest import Call
from tests.core.team.working_copy import make_use_event

PATTERN = "pat-error-null-check-015"
RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"


def logged(project: Path) -> list[dict[str, Any]]:
    text = (project / ".aiwg/ralph/shared/curation/events.jsonl").read_text()
    events = (json.loads(line) for line in text.splitlines())
    return [event for event in events if event["kind"] != "counted"]


PENDING = "with the outcome of the work as result, once it has one"


def test_a_use_is_recorded_and_its_effect_printed(sample: Path, call: Call) -> None:
    result = call("loop", "record", "task-001.3", PATTERN, "--success", "--by", "hook")
    assert (result.code, result.err) == (0, "")
    first, second, third = result.out.splitlines()
    assert first == f"recorded: task-001.3 followed {PATTERN}, which worked"
    assert second.startswith(f"{PATTERN}: stays established, helpful ")
    assert third == "  updated its record: 80 % (4/5), 5 uses, in .aiwg/ralph/shared/patterns/error-patterns.json"
    event = logged(sample)[-1]
    assert (event["kind"], event["pattern_id"], event["loop_id"]) == ("applied", PATTERN, "task-001.3")
    assert (event["success"], event["by"]) == (True, "hook")


def test_json_has_the_event_and_the_state_before_and_after(sample: Path, call: Call) -> None:
    words = ("loop", "record", RUNNING, PATTERN, "--failure", "--iteration", "7", "--at", "2026-03-01T12:00:00+02:00")
    document = call(*words, "--json").document
    assert (document["held"], document["warnings"], document["criterion"]) == (False, [], None)
    event, pattern = document["event"], document["pattern"]
    assert (event["loop_id"], event["success"], event["iteration"], event["by"]) == (RUNNING, False, 7, "ada")
    assert event["at"] == "2026-03-01T10:00:00.000Z"
    after = call("pattern", "show", PATTERN, "--why", "--json").document
    assert [after[key] for key in ("state", "failures")] == [pattern["state"], pattern["failures"]]
    other = call("loop", "record", "bd-123.1", PATTERN, "--success")
    assert other.code == 0
    assert other.err == "Warning: no loop or attempt bd-123.1; treated as a work item of another tool\n"
    assert logged(sample)[-1]["loop_id"] == "bd-123.1"


def test_what_cannot_be_recorded_writes_nothing(sample: Path, call: Call) -> None:
    before = logged(sample)
    for words in (
        "",
        f"{PATTERN} --criterion type_safe",
        f"{PATTERN} --success --failure",
        f"{PATTERN} --neutral",
        f"{PATTERN} --value 0.5",
        f"{PATTERN} --context x",
        f"{PATTERN} --iteration -1",
        f"{PATTERN} --at yesterday",
        f"{PATTERN} --at 2999-01-01T00:00:00Z",
        "--criterion type_safe",
        "--criterion= --success",
        "--criterion type_safe --success --neutral",
        "--criterion type_safe --success --value 1.5",
        "--criterion type_safe --success --iteration 1",
    ):
        result = call("loop", "record", "bd-1", *words.split())
        assert (result.code, result.out) == (2, ""), words
    for work in ("", " ", "\udcff", "bd-1\nbd-2", "bd\x1b[31m", "bd\u202e1"):
        result = call("loop", "record", work, PATTERN, "--success")
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1) and "internal error" not in result.err
    unknown = call("loop", "record", RUNNING, "pat-none-001", "--success", "--json")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (1, "", 1)
    assert "not valid Unicode" in call("loop", "record", "bd-1", "--criterion", "x\udcff", "--success").err
    assert logged(sample) == before


def test_a_unique_prefix_of_a_loop_id_is_enough(sample: Path, call: Call) -> None:
    document = call("loop", "record", "ralph-fix-null", PATTERN, "--json").document
    assert document["event"]["loop_id"] == RUNNING
    refused = call("loop", "record", "ralph-", PATTERN, "--json")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert "and 10 others); use a longer id" in refused.err


def test_without_a_flag_the_result_is_that_of_the_loop(sample: Path, call: Call) -> None:
    other = "pat-error-jwt-expired-006"
    assert PENDING in call("loop", "record", RUNNING, other).out
    found = call("loop", "record", "task-001.3", PATTERN).out
    assert "with the outcome of the work as result, helpful" in found


def test_without_a_flag_a_recorded_result_stays(sample: Path, call: Call) -> None:
    assert "is already recorded: it worked" in call("loop", "record", RUNNING, PATTERN).out

    def reported(*words: str) -> str:
        return call("loop", "record", "bd-7", PATTERN, *words).out.splitlines()[0]

    reported("--failure", "--iteration", "1")
    assert reported().endswith("whose result is already recorded: it failed")
    assert reported("--iteration", "1").endswith("whose result is already recorded: it failed")
    assert reported("--iteration", "2").endswith(PENDING)
    assert reported().endswith("it failed"), "the work item has one result, which iteration 2 does not have yet"
    reported("--success", "--iteration", "2")
    assert reported("--iteration", "2").endswith("whose result is already recorded: it worked")


def test_a_report_after_a_pin_prints_the_state_by_rule(sample: Path, call: Call) -> None:
    call("pattern", "promote", PATTERN)
    out = call("loop", "record", "bd-1", PATTERN, "--failure").out
    assert "stays proven (pinned; by rule established → deprecated)" in out


@pytest.mark.slow
def test_a_newly_proposed_inversion_is_announced(sample: Path, call: Call) -> None:
    pattern_id = "pat-success-type-fixing-003"
    failures = (make_use_event(n, pattern_id, f"bd-{n}", success=False, at=datetime.now(UTC)) for n in range(17))
    append_events(ProjectPaths(sample), *failures)
    reported = call("loop", "record", "bd-17", pattern_id, "--failure").out
    assert f"its inversion is proposed now; see: ralphdeck pattern invert {pattern_id}" in reported
    due = call("pattern", "invert", "--json").document["proposals"]
    assert pattern_id in {proposal["id"] for proposal in due}


def test_nothing_starts_without_a_project(tmp_path: Path, call: Call) -> None:
    for words in (["--criterion", "x", "--success"], ["--outcome", "--success"], ["--error", "boom"]):
        result = call("loop", "record", "bd-1", *words, "--json", "--project", tmp_path)
        assert (result.code, result.out) == (1, "")
        assert result.err == f"Error: no .aiwg in {tmp_path}; name a project with --project\n"
    assert list(tmp_path.iterdir()) == []


def test_feedback_on_a_criterion_moves_its_weight(sample: Path, call: Call) -> None:
    def given(*words: str) -> Any:
        return call("loop", "record", "bd-1", "--criterion", "clear_names", *words, "--json").document

    assert given("--neutral")["criterion"]["no_data"] is True
    assert given("--success", "--context", "reads well")["criterion"]["weight"] == 1.0
    document = given("--failure", "--value", "50%")
    assert document["pattern"] is None
    assert (document["event"]["success"], document["event"]["weight"]) == (False, 0.5)
    criterion = document["criterion"]
    assert criterion["weight"] == pytest.approx(1 / 1.5, abs=1e-4)
    assert (criterion["helpful_count"], criterion["harmful_count"], criterion["deprecated"]) == (1, 1, False)
    given("--failure")
    scored = call("loop", "score", "--json").document["criteria"]
    (found,) = [weight for weight in scored if weight["criterion"] == "clear_names"]
    assert (found["deprecated"], found["effective_weight"]) == (True, 0.0)
    plain = call("loop", "record", "bd-1", "--criterion", "clear_names", "--failure").out
    assert plain.splitlines()[0] == "recorded: clear_names harmful in bd-1"
    assert plain.endswith("deprecated: its effective weight is 0\n")


def test_recorded_results_are_shown_beside_the_claimed_rate(examples: Path, call: Call) -> None:
    pattern = "pat-anti-premature-optimization-001"  # 85 % of 4, of which one failure is recorded
    for number, result in enumerate(("--success", "--success", "--failure")):
        assert call("loop", "record", f"bd-{number}", pattern, result).code == 0
    shown = call("pattern", "show", pattern).out
    assert "3 of 4 recorded" in shown and "bd-2" in shown
    found = call("pattern", "show", pattern, "--json").document["pattern"]
    assert (found["success_rate"], found["claimed_rate"], found["usage_count"]) == (0.75, 0.85, 7)
    data = json.loads((examples / ".aiwg/ralph/shared/patterns/anti-patterns.json").read_text())
    (record,) = data["pattern_registry"]["anti_patterns"]
    assert (record["failure_rate"], record["claimed_rate"], record["occurrence_count"]) == (0.75, 0.85, 7)
