from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Call

RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"
PATTERN = "pat-error-null-check-015"


def events(project: Path) -> bytes:
    return (project / ".aiwg/ralph/shared/curation/events.jsonl").read_bytes()


def test_the_example_of_the_document(sample: Path, call: Call) -> None:
    words = [
        "loop",
        "record",
        "bd-123.1",
        "--outcome",
        "--success",
        "--duration",
        "180000",
        "--errors",
        "0",
        "--retries",
        "0",
    ]
    more = ["--file", "src/auth.ts", "--file", "src/api.ts", "--strategy", "We'll split by file type"]
    document = call(*words, *more, "--json", "--project", sample).document
    outcome = document["outcome"]
    assert (outcome["id"], outcome["kind"], outcome["verdict"], outcome["raw"]) == (
        "bd-123.1",
        "reported",
        "helpful",
        pytest.approx(1.0),
    )
    assert outcome["parts"] == {"success": 1.0, "duration": 1.0, "errors": 1.0, "retries": 1.0}
    assert outcome["signals"]["files_touched"] == ["src/auth.ts", "src/api.ts"]
    assert document["strategies"] == ["Split by file type"]
    assert document["recorded"] is True
    assert (
        call("loop", "score", "bd-123.1", "--json", "--project", sample).document["outcomes"][0]["raw"]
        == outcome["raw"]
    )


def test_it_prints_the_reasoning_and_changed_patterns(sample: Path, call: Call) -> None:
    for pattern_id in (PATTERN, "pat-error-deadlock-retry-005"):
        call("loop", "record", "bd-7", pattern_id, "--project", sample)
    result = call(
        "loop", "record", "bd-7", "--outcome", "--failure", "--duration", "2h", "--errors", "5", "--project", sample
    )
    first, *rest = result.out.splitlines()
    assert first == "bd-7: harmful, 0.22: failure 0.00, 2 h 0.20, 5 errors 0.20, retries not known"
    assert rest[0].startswith(f"{PATTERN}: established → deprecated, helpful ")
    assert rest[1] == "state unchanged: 1 followed pattern"


def test_omitted_values_come_from_the_folder(sample: Path, call: Call) -> None:
    before = call("loop", "score", "task-001.3", "--json", "--project", sample).document["outcomes"][0]
    after = call("loop", "record", "task-001.3", "--outcome", "--errors", "2", "--json", "--project", sample).document[
        "outcome"
    ]
    assert (before["kind"], after["kind"]) == ("attempt", "attempt")
    assert before["signals"]["error_count"] == 1 and after["signals"]["error_count"] == 2
    for key in ("success", "duration_ms", "retry_count"):
        assert after["signals"][key] == before["signals"][key]


def test_a_dry_run_prints_the_same_and_writes_nothing(sample: Path, call: Call) -> None:
    call("loop", "record", "bd-7", PATTERN, "--project", sample)
    before = events(sample)
    words = ["loop", "record", "bd-7", "--outcome", "--failure", "--json", "--project", sample]
    tried = call(*words, "--dry-run").document
    assert events(sample) == before
    done = call(*words).document
    assert events(sample) != before
    assert (tried["recorded"], done["recorded"]) == (False, True)
    assert tried["outcome"]["reasoning"] == done["outcome"]["reasoning"]
    changes = [[(p["id"], p["state_before"], p["state"]) for p in document["patterns"]] for document in (tried, done)]
    assert changes[0] == changes[1] == [(PATTERN, "established", "deprecated")]


def test_an_older_report_yields_to_a_newer_one_with_a_warning(sample: Path, call: Call) -> None:
    call("loop", "record", "bd-9", "--outcome", "--success", "--project", sample)
    late = call(
        "loop",
        "record",
        "bd-9",
        "--outcome",
        "--failure",
        "--at",
        "2026-01-01T00:00:00Z",
        "--json",
        "--project",
        sample,
    )
    assert late.document["outcome"]["signals"]["success"] is True
    assert "a newer report on its outcome takes precedence" in late.err


@pytest.mark.parametrize("work", ["bd-1", RUNNING])
def test_an_unfinished_work_item_needs_a_result(work: str, sample: Path, call: Call) -> None:
    before = events(sample)
    result = call("loop", "record", work, "--outcome", "--errors", "1", "--project", sample)
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines()[-1].endswith("give --success or --failure")
    assert events(sample) == before


def test_a_running_loop_may_be_reported(sample: Path, call: Call) -> None:
    assert call("loop", "record", RUNNING, "--outcome", "--success", "--project", sample).code == 0
    assert call("loop", "score", RUNNING, "--json", "--project", sample).document["outcomes"][0]["kind"] == "loop"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("12m", 720_000),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("450ms", 450),
        ("450", 450),
        ("1.5h", 5_400_000),
        ("0", 0),
        ("1m30s500ms", 90_500),
    ],
)
def test_durations(text: str, ms: float, sample: Path, call: Call) -> None:
    words = ["loop", "record", "bd-1", "--outcome", "--success", "--duration", text, "--dry-run", "--json"]
    assert call(*words, "--project", sample).document["outcome"]["signals"]["duration_ms"] == ms


@pytest.mark.parametrize("text", ["", "soon", "-1", "1x", "nan", "1h30", "30m1h", "1e3", "٣m", "9" * 50, "m"])
def test_an_invalid_duration_is_wrong_usage(text: str, sample: Path, call: Call) -> None:
    result = call(
        "loop", "record", "bd-1", "--outcome", "--success", f"--duration={text}", "--dry-run", "--project", sample
    )
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    "words",
    [
        ["--success", "--failure"],
        ["--success", "--errors", "-1"],
        ["--success", "--retries", "9" * 20],
        ["--success", "--at", "2999-01-01"],
    ],
)
def test_wrong_usage(words: list[str], sample: Path, call: Call) -> None:
    assert call("loop", "record", "bd-1", "--outcome", *words, "--project", sample).code == 2


def test_a_duration_beyond_all_time_is_one_line(sample: Path, call: Call) -> None:
    result = call("loop", "record", "bd-1", "--outcome", "--success", "--duration", "9" * 30, "--project", sample)
    assert (result.code, result.out) == (1, "")
    assert "duration_ms" in result.err and "internal" not in result.err
