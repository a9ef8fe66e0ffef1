"""The comparison of revisions: the caches change no output, and every difference is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.differ.comparison import PRESENT, ROOT, Outputs, Place, Printed, compare, differences
from tests.differ.trees import TREES

SPEC_EXAMPLES = next(
    tree._replace(tasks=tree.tasks[:2], moments=(0, 45)) for tree in TREES if tree.name == "spec-examples"
)


@pytest.mark.slow
def test_a_warm_cache_changes_no_output(tmp_path: Path) -> None:
    found = compare(Place(tmp_path), SPEC_EXAMPLES, {PRESENT: ROOT})
    assert list(differences(found)) == []
    warm = found[f"{PRESENT} warm"]
    assert {printed.code for printed in warm.values()} <= {0, 1}
    (first, *_) = SPEC_EXAMPLES.tasks
    context = warm[f"loop inject --task={first}"].output["context"]
    answer = warm[f"hook UserPromptSubmit {first}"].output["hookSpecificOutput"]["additionalContext"]
    assert context and context in answer


def outputs(command: str = "pattern list", **output: Any) -> Outputs:
    return {command: Printed(0, output, "")}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"context": "use the clock"}, {"context": "use the time"}, '.context is "use the time", not "use the clock"'),
        ({"score": 1}, {"score": 1.0}, ".score is 1.0, not 1"),
        ({"a": [1, 2]}, {"a": [1]}, ".a has 1 items, not 2"),
        ({"a": [{"id": "x", "n": 1}]}, {"a": [{"id": "x", "n": 2}]}, ".a.x.n is 2, not 1"),
        ({"a": [{"id": "x"}, {"id": "y"}]}, {"a": [{"id": "y"}, {"id": "x"}]}, ".a has another order"),
        ({"a": [{"id": "x"}]}, {"a": []}, '.a.x is missing: {"id": "x"}'),
        ({}, {"a": None}, ".a is new: null"),
    ],
)
def test_each_difference_is_described_with_its_place(before: dict[str, Any], after: dict[str, Any], line: str) -> None:
    found = {"old cold": outputs(**before), "old warm": outputs(**before), "present cold": outputs(**after)}
    assert list(differences(found)) == [f"pattern list: .output{line} [present cold]"]


def test_a_difference_of_several_outputs_is_described_once() -> None:
    found = {"old cold": outputs(n=1), "present cold": outputs(n=2), "present warm": outputs(n=2)}
    assert list(differences(found)) == ["pattern list: .output.n is 2, not 1 [present cold, present warm]"]
