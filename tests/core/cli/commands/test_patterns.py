"""`pattern list` and `pattern show`, with the evidence behind a state."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.sources.events import append_events
from tests.core.cli.conftest import Call
from tests.core.team.working_copy import make_use_event

NULL = "pat-error-null-check-015"


def listed(call: Call, *args: str) -> list[dict[str, Any]]:
    result = call("pattern", "list", "--json", *args)
    assert result.code == 0, result.err
    patterns: list[dict[str, Any]] = result.document["patterns"]
    return patterns


def test_iterations_and_use_cases_are_shown(examples: Path, call: Call) -> None:
    shown = call("pattern", "show", "pat-success-test-generation-001").out
    assert "Iterations: 2.5 on average, 1 to 5\n" in shown
    assert "ralph-add-auth-tests-c3d4e5f6 (found): took 3 iterations" in shown
    anti = call("pattern", "show", "pat-anti-premature-optimization-001").out
    assert "ralph-optimize-early-e5f6a7b8 (found): failed in iteration 12" in anti
    unknown = call("pattern", "show", "no\x1b[2Jsuch")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (1, "", 1) and "\x1b" not in unknown.err


def test_options_narrow_the_list(sample: Path, call: Call) -> None:
    everything = listed(call)
    tags = next(p["tags"] for p in everything if len(p["tags"]) > 1)
    options: dict[str, Callable[[dict[str, Any]], bool]] = {
        "--type error,anti": lambda p: p["type"] in {"error", "anti"},
        "--type error --type template": lambda p: p["type"] in {"error", "template"},
        "--state proven": lambda p: p["state"] == "proven",
        "--tag TypeScript": lambda p: "typescript" in p["tags"],
        f"--tag {tags[0]} --tag {tags[1]}": lambda p: {*tags[:2]} <= {*p["tags"]},
        "--min-success-rate 0.8": lambda p: p["success_rate"] >= 0.8,
        "--max-success-rate 60%": lambda p: p["success_rate"] <= 0.6,
    }
    for words, holds in options.items():
        wanted = {p["id"] for p in everything if p["success_rate"] is not None and holds(p)}
        assert wanted and {p["id"] for p in listed(call, *words.split())} == wanted, words
    for sort, key in (("score", "score"), ("uses", "usage_count"), ("last-used", "last_used"), ("id", "id")):
        values = [p[key] for p in listed(call, "--sort", sort) if p[key] is not None]
        assert values == sorted(values, reverse=sort != "id")


def test_from_loop_exports_patterns_that_the_loop_found_or_used(examples: Path, call: Call) -> None:
    def ids(loop: str) -> set[str]:
        return {p["id"] for p in listed(call, "--from-loop", loop)}

    assert "pat-error-null-check-015" in ids("ralph-fix-auth-a1b2c3d4")
    assert "pat-error-null-check-015" in ids("ralph-fix-api-d4e5f6a7")
    assert ids("no-such-loop") == set()


OVERVIEW = """\
Cannot read property '…' of null
TypeError: null check
pat-error-null-check-015   error pattern   add_null_check

candidate  faded: its evidence is old  by rule
75 % success rate (0.35–0.95)  given 2, used 4: 3 ✓  1 ✗, seen 1 time  score 0.38

Error: TypeError: Cannot read property '.*' of null
Where: *.ts:validate*
Fix: Add null check before property access
Template (typescript):
  if ({{variable}} == null) {
    throw new ValidationError("{{message}}");
  }
Tags: typescript, null-safety, validation
Created: 2026-02-02 15:00 UTC
Last used: 2026-02-02 19:15 UTC
"""


def complete(project: Path, loop_id: str, iteration: int, successful: bool | None = None) -> None:
    """A loop that completed; it applied the pattern of the example, unless nothing is said of that."""
    use = {"pattern_id": "pat-error-null-check-015", "applied": True, "successful": successful}
    state = {
        "loop_id": loop_id,
        "task": "Fix the crash",
        "status": "completed",
        "iteration": iteration,
        "started_at": "2026-02-02T14:00:00Z",
        "completed_at": "2026-02-02T19:15:00Z",
        "cross_loop_learning": {"injected_patterns": [] if successful is None else [use]},
    }
    folder = project / ".aiwg/ralph/loops" / loop_id
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_text(json.dumps(state))


def test_show_lists_the_lineage(examples: Path, call: Call) -> None:
    shown = call("pattern", "show", "pat-error-null-check-015").out
    lineage = shown[shown.index("\nLineage:") : shown.index("\nDecisions:")]
    assert [line.split()[-1] for line in lineage.splitlines() if " ralph-" in line] == [
        "ralph-fix-auth-a1b2c3d4",
        "ralph-fix-validation-b2c3d4e5",
        "ralph-fix-user-c3d4e5f6",
        "ralph-fix-api-d4e5f6a7",
    ]
    assert "├ 2026-02-02 18:00 UTC ✓ used" in lineage and "└ 2026-02-02 19:15 UTC ✗ used" in lineage


def test_show_begins_with_the_overview(examples: Path, call: Call) -> None:
    words = ["pattern", "show", "pat-error-null-check-015"]
    few = call(*words).out
    impact = "Average impact: not enough data: about 3 more sessions per group"
    assert few.startswith(OVERVIEW) and impact in few
    complete(examples, "ralph-fix-validation-b2c3d4e5", 3, successful=True)
    complete(examples, "ralph-fix-user-c3d4e5f6", 3, successful=True)
    complete(examples, "ralph-fix-api-d4e5f6a7", 3, successful=False)
    for number in range(3):
        complete(examples, f"ralph-fix-other-{number}", 5)
    assert "\nAverage impact: -2.0 iterations\n" in call(*words).out


def test_the_uses_of_a_team_are_a_line_of_their_own(examples: Path, call: Call) -> None:
    id, words = "pat-error-null-check-015", ("--project", examples)
    assert call("pattern", "show", id, "--json", *words).document["team"] is None
    lines = (
        {"kind": "space", "space": "web", "epoch": "2026-01-01T00:00:00Z", "half_life_days": 90},
        {"pattern_id": id, "successes": 12, "failures": 3, "uses": 16, "helpful": 12, "harmful": 3, "undecayed": 15}
        | {"last_used": "2026-01-01T00:00:00Z"},
    )
    folder = examples / ".aiwg/ralph/shared/team"
    folder.mkdir()
    (folder / "evidence.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    team = call("pattern", "show", id, "--json", *words).document["team"]
    assert (team["successes"], team["failures"], team["uses"]) == (12, 3, 16)
    assert team["helpful"] == pytest.approx(4 * team["harmful"]) and 0 < team["helpful"] < 12
    for flags in ((), ("--why",)):
        assert (
            "other projects of the team: 12 helpful, 3 harmful, newest "
            in call("pattern", "show", id, *flags, *words).out
        )
    rules = call("pattern", "show", id, "--why", "--json", *words).document["rules"]
    assert "team" in [one["rule"] for one in rules]


def test_the_text_shows_the_weight_of_each_part(sample: Path, call: Call) -> None:
    pattern_id = "pat-error-null-check-015"
    document = call("pattern", "show", pattern_id, "--why", "--json").document
    out = call("pattern", "show", pattern_id, "--why").out
    assert out.count("  decides\n") == sum(rule["fired"] for rule in document["rules"]) > 0
    for event in document["events"]:
        assert f"{event['raw']:.2f} → {event['today']:.2f}" in out
    for loop in document["loops"]:
        if loop["state_without"] != document["computed_state"]:
            assert f"{loop['loop_id']}: {loop['state_without']} (" in out
    assert document["set_aside"][0]["source"] in out and "not counted: suspicious reports" in out


def test_the_parts_of_the_json_agree(sample: Path, call: Call) -> None:
    for pattern in call("pattern", "list", "--json").document["patterns"][:5]:
        document = call("pattern", "show", pattern["id"], "--why", "--json").document
        for word, success in (("helpful", True), ("harmful", False)):
            today = [event["today"] for event in document["events"] if event["success"] is success]
            assert sum(today) == pytest.approx(document[word], abs=1e-4)
        times = [event["at"] for event in document["events"] if event["at"]]
        assert times == sorted(times, reverse=True)
        first, following = document["calendar"][:1], document["next_change"]
        assert [one["state"] for one in first] == ([following["state"]] if following else [])
        for one in first:  # two ways to compute the same time
            assert abs(datetime.fromisoformat(one["at"]) - datetime.fromisoformat(following["at"])) < timedelta(
                seconds=1
            )
        assert all(step["result"] in {"success", "failure"} and step["count"] > 0 for step in document["steps"])


def test_long_evidence_is_cut_in_the_text_alone(sample: Path, call: Call) -> None:
    uses = (make_use_event(number, NULL, f"bd-{number}") for number in range(25))
    append_events(ProjectPaths(sample), *uses)
    known = len(call("pattern", "show", NULL, "--why", "--json").document["events"])
    out = call("pattern", "show", NULL, "--why").out
    assert out.count(" → ") == 1 + 20
    assert f"and {known - 20} more observation" in out


def test_json_has_numbers_for_every_test(sample: Path, call: Call) -> None:
    document = call("pattern", "show", "pat-error-deadlock-retry-005", "--why", "--json").document
    assert (document["state"], document["decided_by"]) == ("proven", "human decision")
    out = call("pattern", "show", "pat-error-deadlock-retry-005", "--why").out
    assert out.startswith("pat-error-deadlock-retry-005\nProven, because dana promoted it on ") and "  decides\n" in out
    assert (document["pin"]["by"], document["contradicted"]) == ("dana", True)
    tested = [rule for rule in document["rules"] if rule["holds"] is not None and rule["value"] is not None]
    assert {rule["state"] for rule in tested} >= {"candidate", "established", "proven", "deprecated"}
    for rule in tested:
        assert rule["distance"] == pytest.approx(rule["value"] - rule["threshold"])
