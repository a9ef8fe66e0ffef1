from __future__ import annotations

from pathlib import Path

import click
import pytest

from core.cli.support.options import DURATION
from tests.core.cli.conftest import Call

RUNNING = "ralph-fix-null-customer-crash-in-the-644aee36"
PATTERN = "pat-error-null-check-015"


def events(project: Path) -> bytes:
    return (project / ".aiwg/ralph/shared/curation/events.jsonl").read_bytes()


def test_the_example_of_the_document(sample: Path, call: Call) -> None:
    words = "loop record bd-123.1 --outcome --success --duration 180000 --errors 0 --retries 0"
    more = ["--file", "src/auth.ts", "--file", "src/api.ts", "--strategy", "We'll split by file type"]
    document = call(*words.split(), *more, "--json").document
    outcome = document["outcome"]
    assert (outcome["id"], outcome["kind"], outcome["verdict"], outcome["raw"]) == (
        "bd-123.1",
        "reported",
        "helpful",
        1,
    )
    assert outcome["parts"] == {"success": 1.0, "duration": 1.0, "errors": 1.0, "retries": 1.0}
    assert outcome["signals"]["files_touched"] == ["src/auth.ts", "src/api.ts"]
    assert (document["strategies"], document["recorded"]) == (["Split by file type"], True)
    assert call("loop", "score", "bd-123.1", "--json").document["outcomes"][0]["raw"] == outcome["raw"]


def test_it_prints_the_reasoning_and_changed_patterns(sample: Path, call: Call) -> None:
    for pattern_id in (PATTERN, "pat-error-deadlock-retry-005"):
        call("loop", "record", "bd-7", pattern_id)
    result = call("loop", "record", "bd-7", "--outcome", "--failure", "--duration", "2h", "--errors", "5")
    first, *rest = result.out.splitlines()
    assert first == "bd-7: harmful, 0.22: failure 0.00, 2 h 0.20, 5 errors 0.20, retries not known"
    assert rest[0].startswith(f"{PATTERN}: established → deprecated, helpful ")
    assert rest[1] == "state unchanged: 1 followed pattern"


def test_omitted_values_come_from_the_folder(sample: Path, call: Call) -> None:
    before = call("loop", "score", "task-001.3", "--json").document["outcomes"][0]
    after = call("loop", "record", "task-001.3", "--outcome", "--errors", "2", "--json").document["outcome"]
    assert (before["kind"], after["kind"]) == ("attempt", "attempt")
    assert before["signals"]["error_count"] == 1 and after["signals"]["error_count"] == 2
    for key in ("success", "duration_ms", "retry_count"):
        assert after["signals"][key] == before["signals"][key]


def test_a_dry_run_prints_the_same_and_writes_nothing(sample: Path, call: Call) -> None:
    call("loop", "record", "bd-7", PATTERN)
    before = events(sample)
    words = ["loop", "record", "bd-7", "--outcome", "--failure", "--json"]
    tried = call(*words, "--dry-run").document
    assert events(sample) == before
    done = call(*words).document
    assert events(sample) != before
    assert (tried["recorded"], done["recorded"]) == (False, True)
    assert tried["outcome"]["reasoning"] == done["outcome"]["reasoning"]
    changes = [[(p["id"], p["state_before"], p["state"]) for p in document["patterns"]] for document in (tried, done)]
    assert changes[0] == changes[1] == [(PATTERN, "established", "deprecated")]


def test_an_older_report_yields_to_a_newer_one_with_a_warning(sample: Path, call: Call) -> None:
    call("loop", "record", "bd-9", "--outcome", "--success")
    late = call("loop", "record", "bd-9", "--outcome", "--failure", "--at", "2026-01-01T00:00:00Z", "--json")
    assert late.document["outcome"]["signals"]["success"] is True
    assert "a newer report on its outcome takes precedence" in late.err


def test_an_unfinished_work_item_needs_a_result(sample: Path, call: Call) -> None:
    before = events(sample)
    for work in ("bd-1", RUNNING):
        result = call("loop", "record", work, "--outcome", "--errors", "1")
        assert (result.code, result.out) == (1, "")
        assert result.err.splitlines()[-1].endswith("give --success or --failure")
    assert events(sample) == before
    assert call("loop", "record", RUNNING, "--outcome", "--success").code == 0
    assert call("loop", "score", RUNNING, "--json").document["outcomes"][0]["kind"] == "loop"


def test_durations() -> None:
    valid = {"12m": 720_000, "90s": 90_000, "1h30m": 5_400_000, "450ms": 450, "450": 450, "1.5h": 5_400_000, "0": 0}
    for text, milliseconds in {**valid, "1m30s500ms": 90_500}.items():
        assert DURATION.convert(text, None, None) == milliseconds, text
    for text in ("", "soon", "-1", "1x", "nan", "1h30", "30m1h", "1e3", "٣m", "9" * 50, "m"):
        with pytest.raises(click.BadParameter):
            DURATION.convert(text, None, None)


def test_wrong_usage(sample: Path, call: Call) -> None:
    for words in ("--success --failure", "--success --errors -1", f"--success --retries {'9' * 20}", "--at 2999-01-01"):
        assert call("loop", "record", "bd-1", "--outcome", *words.split()).code == 2, words
    endless = call("loop", "record", "bd-1", "--outcome", "--success", "--duration", "9" * 30)
    assert (endless.code, endless.out) == (1, "") and "duration_ms" in endless.err and "internal" not in endless.err
