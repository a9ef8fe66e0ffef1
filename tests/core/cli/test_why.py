from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Call


def test_it_says_who_decided_and_tests_every_rule(sample: Path, call: Call) -> None:
    out = call("why", "pat-error-deadlock-retry-005", "--project", sample).out
    assert out.startswith("pat-error-deadlock-retry-005\nState: proven, by human decision\n")
    assert "promoted by dana" in out and "harmful ratio" in out


def test_json_has_numbers_for_every_test(sample: Path, call: Call) -> None:
    document = call("why", "pat-error-deadlock-retry-005", "--json", "--project", sample).document
    assert (document["state"], document["decided_by"]) == ("proven", "human decision")
    assert (document["pin"]["by"], document["contradicted"]) == ("dana", True)
    tested = [rule for rule in document["rules"] if rule["holds"] is not None and rule["value"] is not None]
    assert {rule["state"] for rule in tested} >= {"candidate", "established", "proven", "deprecated"}
    for rule in tested:
        assert rule["distance"] == pytest.approx(rule["value"] - rule["threshold"])
