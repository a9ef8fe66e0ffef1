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


def listed(call: Call, project: Path, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("lesson", "--json", "--project", project, *args).document["lessons"]
    return found


def test_lessons_that_say_the_same_are_one_row_with_all_places(sample: Path, call: Call) -> None:
    found = {one["id"]: one for one in listed(call, sample)}
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
        return [one["id"] for one in listed(call, sample, *args)]

    assert ids("--runner", "snarktank") == [OURS.id]
    assert ids("--kind", "fact") == [FACT.id]
    assert set(ids("--state", "contradicts")) == {OURS.id, OPPOSITE.id}
    assert ids("--loaded") == [OURS.id]
    assert ids("--state", "rejected,known") == []
    assert len(ids("--limit", "1")) == 1


def test_the_list_is_a_table(sample: Path, call: Call) -> None:
    result = call("lesson", "--project", sample, "--runner", "snarktank")
    assert result.out.splitlines()[0].split()[:2] == ["ID", "STATE"]
    assert "open, contradicts" in result.out and CLOCK[:30] in result.out


def test_show_has_places_reasons_and_contradictions(sample: Path, call: Call) -> None:
    result = call("lesson", OURS.id.removeprefix("lesson:")[:6], "--project", sample)
    for text in (CLOCK, "It failed at midnight", "~/.claude/memory/notes.md:3", "progress.txt:9", "claude:1", NO_CLOCK):
        assert text in result.out, text
    assert call("lesson", TWIN.id, "--json", "--project", sample).document["lesson"]["id"] == OURS.id
    unknown = call("lesson", "lesson:zzz", "--project", sample)
    assert unknown.code != 0 and "see: ralphdeck lesson" in unknown.err


def test_an_accepted_lesson_is_a_pattern_until_undo(sample: Path, call: Call) -> None:
    accepted = call("lesson", OURS.id, "--accept", "--reason", "so we do", "--project", sample)
    assert (accepted.code, accepted.out) == (0, f"extracted 1 pattern from the lesson “{CLOCK}”\n")
    (pattern_id,) = next(one for one in listed(call, sample) if one["state"] == "accepted")["patterns"]
    log = call("log", "--limit", "1", "--project", sample).out
    assert f"the lesson “{CLOCK[:20]}" in log and "so we do" in log
    assert call("lesson", OURS.id, "--accept", "--project", sample, "--json").document["written"] is False
    assert "is already accepted" in call("lesson", OURS.id, "--reject", "--project", sample).err
    shown = call("pattern", "show", pattern_id, "--json", "--project", sample).document["pattern"]
    assert shown["description"] == CLOCK
    assert call("undo", "--project", sample).code == 0
    assert {one["state"] for one in listed(call, sample)} == {"open"}


def test_a_fact_is_accepted_with_a_type_only(sample: Path, call: Call) -> None:
    refused = call("lesson", FACT.id, "--accept", "--project", sample)
    assert refused.code == 1 and "it is a fact, not advice" in refused.err
    assert call("lesson", FACT.id, "--accept", "--type", "success", "--project", sample).code == 0


def test_a_rejected_lesson_names_the_files_to_change_and_changes_none(sample: Path, call: Call) -> None:
    rejected = call("lesson", OURS.id, "--reject", "--reason", "not any more", "--project", sample)
    assert (rejected.code, rejected.out) == (0, f"rejected the lesson “{CLOCK}”\n")
    for place in ("~/.claude/memory/notes.md:3", "progress.txt:9"):
        assert f"delete it in {place}" in rejected.err
    (found,) = listed(call, sample, "--state", "rejected")
    assert found["id"] == OURS.id
    assert "delete it yourself in:" in call("lesson", TWIN.id, "--project", sample).out
    assert "nothing changed" in call("lesson", OURS.id, "--reject", "--project", sample).out
    assert "the lesson" in call("log", "--verb", "dismiss", "--project", sample).out


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
    for args in ((), *((one.id, *flags) for one in found for flags in ((), ("--accept",), ("--reject",)))):
        result = call("lesson", *args, "--project", sample)
        assert result.code in {0, 1}, result.err
        for raw in ("\x1b", "\x07", "\x9b", "\u202e"):
            assert raw not in result.out + result.err
        if result.code == 0:
            decided.add(args[1:])
    assert decided == {(), ("--accept",), ("--reject",)}
    call("lesson", "--json", "--project", sample)


def test_lists_accept_the_filters_of_their_screens(sample: Path, call: Call) -> None:
    for command, text, option in (
        (["lesson"], "is:loaded", ["--loaded"]),
        (["lesson", "--reflections"], "kind:strategy-change", ["--kind", "strategy-change"]),
        (["log"], "verb:promote", ["--verb", "promote"]),
    ):
        filtered = call(*command, "--filter", text, "--json", "--project", sample)
        assert filtered.code == 0 and filtered == call(*command, *option, "--json", "--project", sample), command
        wrong = call(*command, "--filter", "no-such:field nosuch:x", "--project", sample)
        assert wrong.code == 2 and "unknown field 'nosuch'" in wrong.err, command


def listed_reflections(call: Call, project: Path, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call("lesson", "--reflections", "--json", "--project", project, *args).document[
        "reflections"
    ]
    return found


def test_newest_first_each_once(sample: Path, call: Call) -> None:
    everything = listed_reflections(call, sample)
    moments = [reflection["at"] for reflection in everything if reflection["at"]]
    assert moments == sorted(moments, reverse=True)
    assert len({reflection["id"] for reflection in everything}) == len(everything) > 20


def test_options_narrow_the_list_of_reflections(sample: Path, call: Call) -> None:
    everything = listed_reflections(call, sample)
    loop = next(reflection["loop_id"] for reflection in everything if reflection["loop_id"])
    task = next(reflection["task_id"] for reflection in everything if reflection["task_id"])
    of_loop = listed_reflections(call, sample, "--loop", loop)
    assert of_loop == [reflection for reflection in everything if reflection["loop_id"] == loop]
    of_task = listed_reflections(call, sample, "--task", task)
    assert of_task == [reflection for reflection in everything if reflection["task_id"] == task]
    kinds = listed_reflections(call, sample, "--kind", "error-analysis,strategy_change")
    assert {reflection["kind"] for reflection in kinds} == {"error_analysis", "strategy_change"}
    assert listed_reflections(call, sample, "--limit", "3") == everything[:3]
    assert listed_reflections(call, sample, "--loop", "no-such-loop") == []


def test_a_line_a_reflection(sample: Path, call: Call) -> None:
    assert (
        call("lesson", "--reflections", "--project", sample).out.count("\n")
        == len(listed_reflections(call, sample)) + 1
    )


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
