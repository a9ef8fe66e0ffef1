"""Generate large projects quickly: many small files, and pattern files of any length."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.bench.words import text, words

if TYPE_CHECKING:
    from core.records.events import Event

NOW: Final = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
"""All times in the projects are before last midnight, so every process of a run uses the same time."""
FILES_PER_LOOP: Final = 6
_STATUSES: Final = ("completed", "completed", "completed", "failed", "aborted", "paused", "running")
_AT_WORK: Final = 28
"""Number of newest loops that may be running or paused."""


def _stamp(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat(timespec="seconds").replace("+00:00", "Z")


def loop_name(number: int) -> str:
    """ID of a generated loop."""
    return f"ralph-task-number-{number}-{number:08x}"


def write_loops(project: Path, count: int) -> None:
    """Write `count` loops of `FILES_PER_LOOP` files each, the oldest ones first; every fourth is archived."""
    source = random.Random(1)
    for number in reversed(range(count)):  # the newest loops have the newest files
        name = loop_name(number)
        place = "archive" if number % 4 == 3 else "loops"
        folder = project / ".aiwg" / "ralph" / place / name
        days = number / 40
        iterations = [_iteration(source, index, days) for index in (1, 2, 3)]
        for below in ("iterations", "analytics", "reflections"):
            (folder / below).mkdir(parents=True)
        _write(folder / "state.json", _state(source, number, name, days, iterations))
        for iteration in iterations:
            _write(folder / "iterations" / f"iteration-{iteration['number']}.json", iteration)
        _write(folder / "analytics" / f"{name}.json", _analytics(name, days))
        _write(
            folder / "reflections" / "reflection-1.json",
            {
                "iteration": 1,
                "content": text(source, 12),
                "type": "error_analysis",
                "effectiveness": "helpful",
                "timestamp": _stamp(days),
            },
        )


def write_patterns(project: Path, count: int) -> None:
    """Write `count` patterns to the four files, replacing those of an earlier call."""
    source = random.Random(2)
    folder = project / ".aiwg" / "ralph" / "shared" / "patterns"
    folder.mkdir(parents=True, exist_ok=True)
    quarter = count // 4
    for name, key, make in (
        ("error-patterns.json", "error_patterns", _error),
        ("success-patterns.json", "success_patterns", _success),
        ("anti-patterns.json", "anti_patterns", _anti),
        ("code-templates.json", "code_templates", _template),
    ):
        records = [make(source, number) for number in range(quarter)]
        _write(folder / name, {"version": "1.0.0", "pattern_registry": {key: records}})


def events(patterns: int, count: int) -> Iterator[Event]:
    """`count` applications of error patterns, spread over a year."""
    from core.records.events import Event

    for number in range(count):
        yield Event(
            id=f"e{number}",
            at=NOW - timedelta(seconds=31 * (count - number)),
            kind="applied",
            pattern_id=error_id(number * 7919 % (patterns // 4)),
            loop_id=f"ralph-gone-{number:08x}",
            success=number % 6 != 0,
        )


def _write(path: Path, value: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 (twice as fast as pathlib)
        file.write(json.dumps(value))


def _iteration(source: random.Random, number: int, days: float) -> dict[str, Any]:
    return {
        "number": number,
        "timestamp": _stamp(days - number / 200),
        "action": text(source, 7),
        "result": f"{4 - number} failing: {text(source, 6)}",
        "verified": number == 3,
        "learnings": text(source, 9),
        "duration_ms": 61_000 * number,
    }


def _state(
    source: random.Random, number: int, name: str, days: float, iterations: list[dict[str, Any]]
) -> dict[str, Any]:
    status = _STATUSES[number % (len(_STATUSES) if number < _AT_WORK else 5)]
    return {
        "loopId": name,
        "active": status == "running",
        "task": f"Task {number}: {text(source, 8)}",
        "completion": "npm test passes",
        "maxIterations": 10,
        "startTime": _stamp(days),
        "currentIteration": 3,
        "status": status,
        "iterations": iterations,
        "lastResult": iterations[-1]["result"],
        "learnings": iterations[-1]["learnings"],
        "endTime": _stamp(days - 0.02),
        "cross_loop_learning": {
            "injected_patterns": [
                {
                    "pattern_id": error_id(number * 31 % 2500),
                    "applied": True,
                    "successful": number % 5 != 0,
                    "iteration_used": 2,
                },
                {"pattern_id": error_id(number * 37 % 2500), "applied": False},
            ],
            "extracted_patterns": [],
        },
    }


def _analytics(name: str, days: float) -> dict[str, Any]:
    return {
        "loop_id": name,
        "iterations": [
            {"iteration_number": number, "timestamp": _stamp(days), "quality_score": 40 + 15 * number}
            for number in (1, 2, 3)
        ],
        "total_time_ms": 366_000,
    }


def error_id(number: int) -> str:
    """ID of a generated error pattern."""
    return f"pat-error-case-{number // 900}-{number % 900:03d}"


def success_id(number: int) -> str:
    """ID of a generated success pattern."""
    return f"pat-success-way-{number // 900}-{number % 900:03d}"


def _counts(number: int) -> dict[str, Any]:
    uses = 1 + number % 23
    return {
        "usage_count": uses,
        "success_rate": round((uses - uses // 7) / uses, 2),
        "last_used": _stamp(number % 400),
    }


def _error(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "pattern_id": error_id(number),
        "error_signature": {
            "error_type": "TypeError",
            "error_pattern": f"Cannot {text(source, 3)} of .*",
            "error_location_hints": [f"src/{text(source, 1)}/*.ts"],
        },
        "fix_approach": {
            "description": text(source, 12),
            "fix_category": "fix_logic_error",
            "code_template": f"if ({{{{value}}}} == null) {{ // {text(source, 20)}\n}}",
            "code_template_language": "typescript",
        },
        "source_loops": [{"loop_id": loop_name(number % 10_000), "timestamp": _stamp(number % 400)}],
        "first_discovered": _stamp(number % 400 + 1),
        "tags": words(source, 3),
        **_counts(number),
    }


def _success(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "pattern_id": success_id(number),
        "task_category": "debugging",
        "task_description_pattern": f"(?i){text(source, 1)}.*{text(source, 1)}",
        "approach": {"description": text(source, 7), "steps": [text(source, 6) for _ in range(4)]},
        "source_loops": [],
        "average_iterations": 2.5,
        "tags": words(source, 3),
        **_counts(number),
    }


def _anti(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "pattern_id": f"pat-anti-trap-{number // 900}-{number % 900:03d}",
        "approach_description": text(source, 7),
        "failure_mode": "repeated_same_error",
        "failure_symptoms": [text(source, 6)],
        "why_it_fails": text(source, 12),
        "better_alternative": {"description": text(source, 8)},
        "source_loops": [],
        "failure_rate": 0.8,
        "occurrence_count": 5 + number % 9,
        "tags": words(source, 3),
    }


def _template(source: random.Random, number: int) -> dict[str, Any]:
    return {
        "template_id": f"tmpl-piece-{number // 900}-{number % 900:03d}",
        "language": "typescript",
        "template_code": f"const {{{{name}}}} = {text(source, 25)};",
        "use_case": text(source, 8),
        "placeholders": {"name": text(source, 3)},
        "source_loops": [],
        "tags": words(source, 3),
        **_counts(number),
    }
