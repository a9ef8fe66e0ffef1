from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.cli.conftest import Call


def listed(call: Call, project: Path, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("reflections", "--json", "--project", project, *args).document["reflections"]
    return found


def test_newest_first_each_once(sample: Path, call: Call) -> None:
    everything = listed(call, sample)
    moments = [reflection["at"] for reflection in everything if reflection["at"]]
    assert moments == sorted(moments, reverse=True)
    assert len({reflection["id"] for reflection in everything}) == len(everything) > 20


def test_options_narrow_the_list(sample: Path, call: Call) -> None:
    everything = listed(call, sample)
    loop = next(reflection["loop_id"] for reflection in everything if reflection["loop_id"])
    task = next(reflection["task_id"] for reflection in everything if reflection["task_id"])
    of_loop = listed(call, sample, "--loop", loop)
    assert of_loop == [reflection for reflection in everything if reflection["loop_id"] == loop]
    of_task = listed(call, sample, "--task", task)
    assert of_task == [reflection for reflection in everything if reflection["task_id"] == task]
    kinds = listed(call, sample, "--kind", "error-analysis,strategy_change")
    assert {reflection["kind"] for reflection in kinds} == {"error_analysis", "strategy_change"}
    assert listed(call, sample, "--limit", "3") == everything[:3]
    assert listed(call, sample, "--loop", "no-such-loop") == []


def test_a_line_a_reflection(sample: Path, call: Call) -> None:
    assert call("reflections", "--project", sample).out.count("\n") == len(listed(call, sample)) + 1


def test_recurring_learnings_are_narrowed_like_reflections(sample: Path, call: Call) -> None:
    def recurring(*args: str) -> list[dict[str, Any]]:
        document = call("reflections", "--recurring", "--json", "--project", sample, *args).document
        found: list[dict[str, Any]] = document["recurring"]
        return found

    everything = recurring()
    assert all(len(cluster["loops"]) >= 2 for cluster in everything)
    most = len(everything[0]["loops"])
    assert recurring("--min-loops", str(most)) == [one for one in everything if len(one["loops"]) == most]
    assert recurring("--min-loops", str(most + 1)) == []
    assert everything[0] in recurring("--loop", everything[0]["loops"][0])
    assert recurring("--limit", "1") == everything[:1]
    assert call("reflections", "--recurring", "--project", sample).out.count("\n") == len(everything) + 1
    refused = call("reflections", "--min-loops", "3", "--project", sample)
    assert refused.code == 2 and "--min-loops goes with --recurring" in refused.err
