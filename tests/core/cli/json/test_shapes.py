"""What the help says of the JSON is what is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from core.cli.json.shapes import DOCUMENTS, json_help
from core.cli.program import cli
from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"
DUE = "pat-success-split-by-type-002"


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for part in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), part)
            assert found is not None
            yield from commands(found, f"{name} {part}".strip())
    else:
        yield name, command


def keys(document: Any) -> set[str]:
    """All keys of a document, but for those that are names from the files, and those of findings."""
    if isinstance(document, list):
        return set().union(*map(keys, document))
    if not isinstance(document, dict):
        return set()
    data = {"parts", "placeholders", "by_type", "findings", "doubts", "before", "after", "record"}
    return set(document).union(*(keys(value) for key, value in document.items() if key not in data))


def documented(name: str) -> set[str]:
    """The words of the documentation that are keys."""
    listed = DOCUMENTS["pattern list"].partition("[")[2].partition("]")[0]
    came_out = DOCUMENTS["loop outcome"].partition("outcome: ")[2].partition("patterns:")[0]
    criterion = DOCUMENTS["loop record"].partition("criterion: ")[2].partition("}")[0]
    text = DOCUMENTS[name].replace("as in patterns list, and: ", f"{listed}, ")
    records = DOCUMENTS["loop record"].partition("records: ")[2].partition("]")[0]
    text = text.replace("records: [as in record]", f"records: {records}")
    text = text.replace("as in outcome, and: ", f"{came_out}, ").replace("as in record", criterion)
    text = re.sub(r": [a-z ]+", "", re.split("With a verdict|With several|With --|Without", text)[0])
    return set(re.findall(r"\w+", text))


def test_every_command_with_json_tells_its_keys() -> None:
    told = 0
    for name, command in commands(cli):
        if any(parameter.name == "as_json" for parameter in command.params):
            told += 1
            key = name if name in DOCUMENTS else "decision"
            assert command.epilog == json_help(key)
            shown = command.get_help(click.Context(command, max_content_width=80))
            assert " ".join(f"JSON: {DOCUMENTS[key]}".split()) in " ".join(shown.split())
            assert all(len(line) <= 80 for line in shown.partition("JSON:")[2].splitlines())
    assert told > 60


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("loop list", ["loops"]),
        ("pattern list", ["patterns", "list"]),
        ("pattern show", ["patterns", "show", PATTERN]),
        ("pattern duplicates", ["patterns", "duplicates", "--threshold", "0.1"]),
        ("pattern prune", ["patterns", "prune", "--dry-run", "--max-age-days", "1"]),
        ("pattern archived", ["patterns", "archived"]),
        ("reflection list", ["reflections"]),
        ("loop inject", ["inject", "--task", "Fix TypeScript type errors"]),
        ("loop extract", ["extract", "current-loop"]),
        ("decision", ["note", PATTERN, "x"]),
        ("pattern invert", ["invert"]),
        ("log", ["log"]),
        ("pattern why", ["why", PATTERN]),
        ("loop outcome", ["outcome", "bd-1", "--failure"]),
        ("loop score", ["score"]),
        ("loop errors", ["errors", "bd-1", "--add", "x"]),
        ("review suspicious", ["bursts"]),
        ("metrics", ["metrics"]),
        ("what-if", ["what-if", "maturity.half_life_days=20"]),
        ("changes", ["changes", "--since", "30d"]),
        ("accuracy", ["mirror"]),
        ("doctor", ["doctor"]),
    ],
)
def test_the_keys_told_are_the_keys_printed(name: str, words: list[str], sample: Path, call: Call) -> None:
    call("promote", PATTERN, "--project", sample)
    call("record", "bd-1", PATTERN, "--project", sample)
    call("outcome", "bd-1", "--success", "--project", sample)
    project = ["--project", str(sample)]
    printed = keys(call(*words, "--json", *project).document)
    assert printed <= documented(name)
    # What is null or empty here, as a change of state that lies ahead, has no keys of its own.
    empty = {
        "contributed_by",
        "pointer",
        "differs",
        "file",
        "key",
        "evidence",
        "source",
        "average",
        "minimum",
        "scores",
        "total",
    }
    assert documented(name) - printed <= empty | {"rule", "severity", "tier", "meaning", "field", "excerpt", "maximum"}


def test_record_prints_a_pattern_or_a_criterion(sample: Path, call: Call) -> None:
    use = call("record", "bd-1", PATTERN, "--json", "--project", sample).document
    feedback = call("record", "bd-1", "--criterion", "c", "--success", "--json", "--project", sample).document
    assert keys(use) | keys(feedback) == documented("loop record")


def test_what_if_without_arguments_prints_thresholds_alone(call: Call) -> None:
    assert keys(call("what-if", "--json").document) <= documented("what-if") | {"thresholds"}


def test_recurring_learnings_have_keys_of_their_own(sample: Path, call: Call) -> None:
    printed = keys(call("reflections", "--recurring", "--json", "--project", sample).document)
    told = DOCUMENTS["reflection list"].partition("With --recurring: ")[2].replace(": their ids", "")
    assert printed == set(re.findall(r"\w+", told))


def test_a_verdict_and_auto_print_decisions(sample: Path, call: Call) -> None:
    verdict = call("invert", DUE, "--snooze", "1", "--json", "--project", sample).document
    assert keys(verdict) == documented("decision")
    auto = call("invert", "--auto", "--json", "--project", sample).document
    assert keys(auto) == documented("decision") | {"decisions"}
