from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.core.cli.conftest import Call


def test_it_prints_who_decided_and_every_rule(sample: Path, call: Call) -> None:
    out = call("pattern", "show", "pat-error-deadlock-retry-005", "--why", "--project", sample).out
    assert out.startswith("pat-error-deadlock-retry-005\nProven, because dana promoted it on ")
    assert "  decides\n" in out


def test_the_text_shows_the_weight_of_each_part(sample: Path, call: Call) -> None:
    pattern_id = "pat-error-null-check-015"
    document = call("pattern", "show", pattern_id, "--why", "--json", "--project", sample).document
    out = call("pattern", "show", pattern_id, "--why", "--project", sample).out
    assert out.count("  decides\n") == sum(rule["fired"] for rule in document["rules"]) > 0
    for event in document["events"]:
        assert f"{event['raw']:.2f} → {event['today']:.2f}" in out
    for loop in document["loops"]:
        if loop["state_without"] != document["computed_state"]:
            assert f"{loop['loop_id']}: {loop['state_without']} (" in out
    assert document["set_aside"][0]["source"] in out and "not counted: suspicious reports" in out


def test_the_parts_of_the_json_agree(sample: Path, call: Call) -> None:
    for pattern in call("pattern", "list", "--json", "--project", sample).document["patterns"][:12]:
        document = call("pattern", "show", pattern["id"], "--why", "--json", "--project", sample).document
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


@pytest.mark.slow
def test_long_evidence_is_cut_in_the_text_alone(sample: Path, call: Call) -> None:
    pattern_id = "pat-error-null-check-015"
    for number in range(25):
        call("loop", "record", f"bd-{number}", pattern_id, "--success", "--project", sample)
    known = len(call("pattern", "show", pattern_id, "--why", "--json", "--project", sample).document["events"])
    out = call("pattern", "show", pattern_id, "--why", "--project", sample).out
    assert out.count(" → ") == 1 + 20
    assert f"and {known - 20} more observation" in out


def test_json_has_numbers_for_every_test(sample: Path, call: Call) -> None:
    document = call("pattern", "show", "pat-error-deadlock-retry-005", "--why", "--json", "--project", sample).document
    assert (document["state"], document["decided_by"]) == ("proven", "human decision")
    assert (document["pin"]["by"], document["contradicted"]) == ("dana", True)
    tested = [rule for rule in document["rules"] if rule["holds"] is not None and rule["value"] is not None]
    assert {rule["state"] for rule in tested} >= {"candidate", "established", "proven", "deprecated"}
    for rule in tested:
        assert rule["distance"] == pytest.approx(rule["value"] - rule["threshold"])
