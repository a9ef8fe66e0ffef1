"""Opening a project: its own settings hold for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.authors import have_names
from tests.core.cli.conftest import Call

SETTINGS: Final = """\
ralph:
  cross_loop_learning:
    injection: {top_k_patterns: 1}
    maturity: {min_helpful: 1, max_harmful: 0.5}
    learning: {helpful_threshold: 1, harmful_threshold: 1}
"""


@pytest.fixture
def configured(sample: Path) -> Path:
    """The sample project with settings of its own."""
    (sample / "aiwg.yml").write_text(SETTINGS)
    return sample


def test_patterns_are_judged_and_injected_by_the_settings_of_the_project(configured: Path, call: Call) -> None:
    document = call("pattern", "list", "--json").document
    states = {pattern["id"]: pattern["state"] for pattern in document["patterns"]}
    replayed = call("changes", "min_helpful=5", "max_harmful=.15", "--json").document
    turned = {turn["id"]: turn["before"] for turn in replayed["turns"]}
    assert turned
    assert turned.items() <= states.items()
    injected = call("loop", "inject", "--task", "Fix TypeScript type errors", "--json").document
    assert len(injected["patterns"]) == 1


def test_loops_are_scored_by_the_settings_of_the_project(configured: Path, call: Call) -> None:
    loops = call("loop", "list", "--json").document["loops"]
    verdicts = {loop["outcome"]["verdict"] for loop in loops if loop["outcome"] and loop["outcome"]["raw"] < 1}
    assert verdicts == {"harmful"}


def test_thresholds_are_listed_as_they_hold_in_the_project(
    configured: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def value(*project: str | Path) -> float:
        listed = call("changes", "--thresholds", "--json", *project).document["thresholds"]
        return float(next(known["value"] for known in listed if known["name"] == "maturity.min_helpful"))

    assert value("--project", configured) == 1
    monkeypatch.delenv("RALPHDECK_PROJECT")
    assert value() == 5
    assert call("changes", "--thresholds", "--project", configured / "nowhere").code == 1


def test_the_decider_comes_from_option_environment_settings_or_system(
    sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def signed(*by: str) -> str:
        document = call("pattern", "note", "pat-error-null-check-015", "x", "--json", *by).document
        return str(document["decision"]["by"])

    settings = "ralph:\n  cross_loop_learning:\n    curation:\n      actor: {}\n"
    (sample / "aiwg.yml").write_text(settings.format("Grace Hopper"))
    assert (signed("--by", "eve"), signed()) == ("eve", "ada")  # $RALPHDECK_USER
    monkeypatch.delenv("RALPHDECK_USER")
    assert signed() == "Grace Hopper"
    assert "decisions are signed Grace Hopper (from curation.actor)" in call("doctor").out
    (sample / "aiwg.yml").write_text(settings.format('"two\\nlines"'))
    have_names(monkeypatch, "uma", "ada")
    assert signed() == "uma"
