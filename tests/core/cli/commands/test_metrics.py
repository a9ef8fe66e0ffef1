from __future__ import annotations

import json
from pathlib import Path

from tests.core.cli.commands.test_patterns import complete
from tests.core.cli.conftest import Call

METRICS = ".aiwg/ralph/shared/effectiveness-metrics.json"


def test_the_metrics_begin_with_the_answer_and_print_no_average_of_too_few_cases(examples: Path, call: Call) -> None:
    result = call("metrics")
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0].startswith("Do lessons help? Can't tell yet: about 6 more sessions")
    assert any(line.startswith("Loops: Not enough data: about 3 more sessions per group.") for line in lines)
    assert "improvement" not in result.out
    assert any(line.startswith(f"! {METRICS}: ") and "total_patterns 47, evidence 6" in line for line in lines)


def test_the_difference_is_printed_with_its_interval(examples: Path, call: Call) -> None:
    for number in range(3):
        complete(examples, f"ralph-fix-with-{number}", 3, successful=True)
        complete(examples, f"ralph-fix-other-{number}", 5)
    out = call("metrics").out
    assert out.startswith(
        "Do lessons help? Sessions with lessons took 3.0 iterations instead of 5.0 "
        "(3 and 3 sessions; a real difference is likely)\n"
    )
    assert "\nLoops: -2.0 iterations with lessons (90 % interval -2.5 to -1.5). With lessons " in out
    document = call("metrics", "--json").document
    comparison, lessons = document["comparison"], document["lessons"]
    assert (comparison["tells"], comparison["loops_needed"], comparison["level"]) == (True, 0, 0.9)
    assert (lessons["known"], lessons["unit"], lessons["average_with"]) == (True, "iteration", 3.0)
    assert document["effectiveness_metrics"]["cross_loop_benefit"]["improvement_percentage"] == 40.0


def test_hostile_recorded_metrics_are_printed_safely(examples: Path, call: Call) -> None:
    file = examples / ".aiwg/ralph/shared/effectiveness-metrics.json"
    file.write_text(
        json.dumps({"total_patterns": "\x1b[2J" + "x" * 10_000, "patterns_by_type": {"error_patterns": []}})
    )
    out = call("metrics").out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) < 200
    assert f"! {METRICS}: 2 recorded numbers unlike the evidence" in out


def test_sections_are_printed_and_written_once(examples: Path, call: Call, tmp_path: Path) -> None:
    out = call("metrics", "--weeks", "4").out
    assert "\nPatterns: 6 lessons: " in out
    assert "\nReviewer accuracy: You have not promoted or deprecated a lesson yet." in out
    document = call("metrics", "--json").document
    assert document["weeks"] == 12
    assert [section["id"] for section in document["sections"]][:3] == ["lessons", "patterns", "evidence"]
    newest = document["sections"][1]["rows"][-1]
    assert (newest["values"], newest["n"]) == ([1, 0, 5, 0], 6)
    report = tmp_path / "report.md"
    assert call("metrics", "--export", report).out == f"wrote {report}\n"
    refused = call("metrics", "--export", report)
    assert (refused.code, "use --force to overwrite it" in refused.err) == (1, True)
    assert call("metrics", "--export", report, "--force").code == 0
    assert "must end with .md, .csv" in call("metrics", "--export", "x.svg").err
    inside = call("metrics", "--export", examples / ".aiwg/report.md")
    assert (inside.code, "belongs to the loops" in inside.err) == (1, True)
