"""`ralphdeck lesson`, `show`, `accept` and `reject`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.cli.commands import lessons
from core.records.loops import Outcome
from core.records.reflections import LessonKind
from tests.agent_lessons import CLOCK, NO_CLOCK, find_when_loaded, make_agent_lesson
from tests.core.cli.conftest import Call
from tests.hostile.payloads import PAYLOADS

OURS = make_agent_lesson(loaded=True, uses=2, loop_id="claude:1", outcome=Outcome.SUCCESS, why="It failed at midnight")
TWIN = make_agent_lesson(f"{CLOCK}.", "snarktank", file="progress.txt", line=9)
OPPOSITE = make_agent_lesson(NO_CLOCK, "codex")
FACT = make_agent_lesson("The staging server is in Oslo", kind=LessonKind.FACT)


@pytest.fixture(autouse=True)
def _lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    find_when_loaded(monkeypatch, OURS, TWIN, OPPOSITE, FACT)


def listed(call: Call, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("lesson", "--json", *args).document["lessons"]
    return found


def test_lessons_that_say_the_same_are_one_row_with_all_places(sample: Path, call: Call) -> None:
    found = {one["id"]: one for one in listed(call)}
    assert found.keys() == {OURS.id, OPPOSITE.id, FACT.id}
    ours = found[OURS.id]
    assert ours["runners"] == ["claude", "snarktank"]
    assert ours["places"][1] == {
        "runner": "snarktank",
        "file": "progress.txt",
        "line": 9,
        "at": None,
        "loop_id": None,
        "outcome": "unknown",
        "loaded": False,
        "uses": None,
        "text": f"{CLOCK}.",
    }
    assert (ours["state"], ours["loaded"], ours["uses"], ours["danger"]) == ("open", True, 2, None)
    assert ours["disagrees_with"] == [OPPOSITE.id]


def test_options_narrow_the_list(sample: Path, call: Call) -> None:
    def ids(*args: str) -> list[str]:
        return [one["id"] for one in listed(call, *args)]

    assert ids("--runner", "snarktank") == [OURS.id]
    assert ids("--kind", "fact") == [FACT.id]
    assert set(ids("--state", "contradicts")) == {OURS.id, OPPOSITE.id}
    assert ids("--loaded") == [OURS.id]
    assert ids("--state", "rejected,known") == []
    assert len(ids("--limit", "1")) == 1
    table = call("lesson", "--runner", "snarktank").out
    assert table.splitlines()[0].split()[:2] == ["ID", "STATE"]
    assert "open, contradicts" in table and CLOCK[:30] in table


def test_reflections_are_listed_newest_first_each_once(sample: Path, call: Call) -> None:
    everything = listed_reflections(call)
    moments = [reflection["at"] for reflection in everything if reflection["at"]]
    assert moments == sorted(moments, reverse=True)
    assert len({reflection["id"] for reflection in everything}) == len(everything) > 20
    assert call("lesson", "--reflections").out.count("\n") == len(everything) + 1


def test_show_has_places_reasons_and_contradictions(sample: Path, call: Call) -> None:
    result = call("lesson", OURS.id.removeprefix("lesson:")[:6])
    for text in (CLOCK, "It failed at midnight", "~/.claude/memory/notes.md:3", "progress.txt:9", "claude:1", NO_CLOCK):
        assert text in result.out, text
    assert call("lesson", TWIN.id, "--json").document["lesson"]["id"] == OURS.id
    unknown = call("lesson", "lesson:zzz")
    assert unknown.code != 0 and "see: ralphdeck lesson" in unknown.err


def test_an_accepted_lesson_is_a_pattern_until_undo(sample: Path, call: Call) -> None:
    accepted = call("lesson", OURS.id, "--accept", "--reason", "so we do")
    assert (accepted.code, accepted.out) == (0, f"extracted 1 pattern from the lesson “{CLOCK}”\n")
    (pattern_id,) = next(one for one in listed(call) if one["state"] == "accepted")["patterns"]
    log = call("log", "--limit", "1").out
    assert f"the lesson “{CLOCK[:20]}" in log and "so we do" in log
    assert call("lesson", OURS.id, "--accept", "--json").document["written"] is False
    assert "is already accepted" in call("lesson", OURS.id, "--reject").err
    shown = call("pattern", "show", pattern_id, "--json").document["pattern"]
    assert shown["description"] == CLOCK
    assert call("undo").code == 0
    assert {one["state"] for one in listed(call)} == {"open"}


def test_a_fact_is_accepted_with_a_type_only(sample: Path, call: Call) -> None:
    refused = call("lesson", FACT.id, "--accept")
    assert refused.code == 1 and "it is a fact, not advice" in refused.err
    assert call("lesson", FACT.id, "--accept", "--type", "success").code == 0


def test_a_rejected_lesson_names_the_files_to_change_and_changes_none(sample: Path, call: Call) -> None:
    rejected = call("lesson", OURS.id, "--reject", "--reason", "not any more")
    assert (rejected.code, rejected.out) == (0, f"rejected the lesson “{CLOCK}”\n")
    for place in ("~/.claude/memory/notes.md:3", "progress.txt:9"):
        assert f"delete it in {place}" in rejected.err
    (found,) = listed(call, "--state", "rejected")
    assert found["id"] == OURS.id
    assert "delete it yourself in:" in call("lesson", TWIN.id).out
    assert "nothing changed" in call("lesson", OURS.id, "--reject").out
    assert "the lesson" in call("log", "--verb", "dismiss").out


@pytest.mark.slow
def test_hostile_lessons_are_printed_visibly(sample: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"trigger": "t", "why": "w", "title": "i", "file": "f", "runner": "r", "loop_id": "l"}
    found = []
    for number, payload in enumerate(PAYLOADS):
        fields = {name: f"{payload.text} {letter}" for name, letter in names.items()}
        found.append(make_agent_lesson(f"{payload.text} number {number}", **fields))
    find_when_loaded(monkeypatch, *found)
    monkeypatch.setattr(lessons, "_open_project", cache(lessons._open_project))  # loads the project once for all
    decided = set()
    verdicts = (one for number, one in enumerate(("--accept", "--reject") * len(found)) if number % 2 in (0, 1))
    for args in ((), *((one.id, *flag) for one in found for flag in ((), (next(verdicts),)))):
        result = call("lesson", *args)
        assert result.code in {0, 1}, result.err
        assert not set("\x1b\x07\x9b\u202e") & set(result.out + result.err)
        if result.code == 0:
            decided.add(args[1:])
    assert decided == {(), ("--accept",), ("--reject",)}


def test_lists_accept_the_filters_of_their_screens(sample: Path, call: Call) -> None:
    for command, text, option in (
        (["lesson"], "is:loaded", ["--loaded"]),
        (["lesson", "--reflections"], "kind:strategy-change", ["--kind", "strategy-change"]),
        (["log"], "verb:promote", ["--verb", "promote"]),
    ):
        filtered = call(*command, "--filter", text, "--json")
        assert filtered.code == 0 and filtered == call(*command, *option, "--json"), command
        wrong = call(*command, "--filter", "no-such:field nosuch:x")
        assert wrong.code == 2 and "unknown field 'nosuch'" in wrong.err, command


def listed_reflections(call: Call, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("lesson", "--reflections", "--json", *args).document["reflections"]
    return found


def test_options_narrow_the_list_of_reflections(sample: Path, call: Call) -> None:
    everything = listed_reflections(call)
    loop = next(reflection["loop_id"] for reflection in everything if reflection["loop_id"])
    task = next(reflection["task_id"] for reflection in everything if reflection["task_id"])
    of_loop = listed_reflections(call, "--loop", loop)
    assert of_loop == [reflection for reflection in everything if reflection["loop_id"] == loop]
    of_task = listed_reflections(call, "--task", task)
    assert of_task == [reflection for reflection in everything if reflection["task_id"] == task]
    kinds = listed_reflections(call, "--kind", "error-analysis,strategy_change")
    assert {reflection["kind"] for reflection in kinds} == {"error_analysis", "strategy_change"}
    assert listed_reflections(call, "--limit", "3") == everything[:3]
    assert listed_reflections(call, "--loop", "no-such-loop") == []


def test_recurring_learnings_are_narrowed_like_reflections(sample: Path, call: Call) -> None:
    def recurring(*args: str) -> list[dict[str, Any]]:
        document = call("lesson", "--recurring", "--json", *args).document
        found: list[dict[str, Any]] = document["recurring"]
        return found

    everything = recurring()
    assert all(len(cluster["loops"]) >= 2 for cluster in everything)
    most = len(everything[0]["loops"])
    assert recurring("--min-loops", str(most)) == [one for one in everything if len(one["loops"]) == most]
    assert recurring("--min-loops", str(most + 1)) == []
    assert everything[0] in recurring("--loop", everything[0]["loops"][0])
    assert recurring("--limit", "1") == everything[:1]
    assert call("lesson", "--recurring").out.count("\n") == len(everything) + 1
    refused = call("lesson", "--min-loops", "3")
    assert refused.code == 2 and "--min-loops needs --recurring" in refused.err
    unknown = call("loop", "extract", "recurring-\x1b[31m")
    assert (unknown.code, unknown.out) == (1, "")
    assert "no recurring learning" in unknown.err and "\x1b" not in unknown.err


def test_a_recurring_learning_becomes_a_pattern_with_lineage_to_all_loops_and_undo_takes_it_back(
    sample: Path, call: Call
) -> None:
    most = call("lesson", "--recurring", "--json").document["recurring"][0]
    before = call("pattern", "list", "--json").document["patterns"]
    preview = call("loop", "extract", most["id"], "--dry-run", "--json").document["extractions"][0]
    assert preview["decided"] is None and len(preview["proposals"]) == 1
    made = call("loop", "extract", most["id"], "--json").document["extractions"][0]
    assert made["proposals"] == preview["proposals"]
    (new,) = made["decided"]["decision"]["after"]["patterns"]
    shown = call("pattern", "show", new, "--json").document
    pattern = shown["pattern"]
    assert [source["loop_id"] for source in pattern["source_loops"]] == most["loops"]
    assert (pattern["seen"], pattern["applied"], pattern["state"]) == (1, 0, "candidate")
    lineage = [(event["kind"], event["loop_id"]) for event in shown["lineage"]]
    assert lineage[: len(most["loops"])] == [
        ("discovered", most["loops"][0]),
        *(("merged", loop) for loop in most["loops"][1:]),
    ]
    again = call("loop", "extract", most["id"], "--json").document["extractions"][0]
    assert again["decided"] is None and "already known from all of these loops" in again["proposals"][0]["refused"]
    assert call("undo").code == 0
    after = call("pattern", "list", "--json").document["patterns"]
    assert [pattern["id"] for pattern in after] == [pattern["id"] for pattern in before]
