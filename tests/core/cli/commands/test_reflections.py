from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.cli.conftest import Call


def listed(call: Call, project: Path, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("lesson", "--reflections", "--json", "--project", project, *args).document[
        "reflections"
    ]
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
    assert call("lesson", "--reflections", "--project", sample).out.count("\n") == len(listed(call, sample)) + 1


def test_recurring_learnings_are_narrowed_like_reflections(sample: Path, call: Call) -> None:
    def recurring(*args: str) -> list[dict[str, Any]]:
        document = call("lesson", "--recurring", "--json", "--project", sample, *args).document
        found: list[dict[str, Any]] = document["recurring"]
        return found

    everything = recurring()
    assert all(len(cluster["loops"]) >= 2 for cluster in everything)
    most = len(everything[0]["loops"])
    assert recurring("--min-loops", str(most)) == [one for one in everything if len(one["loops"]) == most]
    assert recurring("--min-loops", str(most + 1)) == []
    assert everything[0] in recurring("--loop", everything[0]["loops"][0])
    assert recurring("--limit", "1") == everything[:1]
    assert call("lesson", "--recurring", "--project", sample).out.count("\n") == len(everything) + 1
    refused = call("lesson", "--min-loops", "3", "--project", sample)
    assert refused.code == 2 and "--min-loops needs --recurring" in refused.err


def test_a_recurring_learning_becomes_a_pattern_with_lineage_to_all_loops_and_undo_takes_it_back(
    sample: Path, call: Call
) -> None:
    most = call("lesson", "--recurring", "--json", "--project", sample).document["recurring"][0]
    before = call("pattern", "list", "--json", "--project", sample).document["patterns"]
    preview = call("loop", "extract", most["id"], "--dry-run", "--json", "--project", sample).document["extractions"][0]
    assert preview["decided"] is None and len(preview["proposals"]) == 1
    made = call("loop", "extract", most["id"], "--json", "--project", sample).document["extractions"][0]
    assert made["proposals"] == preview["proposals"]
    (new,) = made["decided"]["decision"]["after"]["patterns"]
    shown = call("pattern", "show", new, "--json", "--project", sample).document
    pattern = shown["pattern"]
    assert [source["loop_id"] for source in pattern["source_loops"]] == most["loops"]
    assert (pattern["seen"], pattern["applied"], pattern["state"]) == (1, 0, "candidate")
    lineage = [(event["kind"], event["loop_id"]) for event in shown["lineage"]]
    assert lineage[: len(most["loops"])] == [
        ("discovered", most["loops"][0]),
        *(("merged", loop) for loop in most["loops"][1:]),
    ]
    again = call("loop", "extract", most["id"], "--json", "--project", sample).document["extractions"][0]
    assert again["decided"] is None and "already known from all of these loops" in again["proposals"][0]["refused"]
    assert call("undo", "--project", sample).code == 0
    after = call("pattern", "list", "--json", "--project", sample).document["patterns"]
    assert [pattern["id"] for pattern in after] == [pattern["id"] for pattern in before]


def test_a_learning_that_does_not_recur_is_one_line(sample: Path, call: Call) -> None:
    result = call("loop", "extract", "recurring-\x1b[31m", "--project", sample)
    assert result.code == 1 and result.out == "" and "no recurring learning" in result.err and "\x1b" not in result.err
