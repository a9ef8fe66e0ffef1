"""The debug memory of acme-api, written from `debugging.yaml`: what failed and how it was fixed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml

from tests.sample.loops import BY_KEY
from tests.sample.tree import Tree, iso_seconds, stable_uuid

_FILE: Final = Path(__file__).with_name("debugging.yaml")
_NODE: Final = {"runtime": "node", "runtime_version": "20.11.0", "test_framework": "vitest", "os": "linux"}
_PYTHON: Final = {"runtime": "python", "runtime_version": "3.12.4", "test_framework": "pytest", "os": "linux"}
_MIRRORED: Final = "client_created_before_loop"
"""The pattern that `patterns/learned-patterns.yaml` repeats."""


def write_debug_sessions(tree: Tree) -> None:
    """Write one file per session: most in `debug-memory/sessions`, one of them in YAML, one beside its loop."""
    data, known_errors = yaml.safe_load_all(_FILE.read_text(encoding="utf-8"))
    data |= {one["file"]: _known_error(tree, one) for one in known_errors}
    for name, session in data.items():
        loop = BY_KEY[session["loop"]]
        folder = f"{loop.directory}/debug-memory" if session.get("in_loop") else "ralph/debug-memory/sessions"
        document = _session(tree, name, session)
        if session.get("yaml"):
            text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
            tree.text(f"{folder}/session-{name}.yaml", text)
        else:
            tree.json(f"{folder}/{document['session_id']}.json", document)
    mirrored = [
        _pattern(pattern) for session in data.values() for pattern in session["patterns"] if pattern[0] == _MIRRORED
    ]
    tree.text(
        "ralph/debug-memory/patterns/learned-patterns.yaml",
        yaml.safe_dump({"patterns_identified": mirrored}, sort_keys=False),
    )


def _known_error(tree: Tree, data: dict[str, Any]) -> dict[str, Any]:
    """A session that fixed one error: a run fails for each of its fixes, and the last fix holds."""
    *failed, held = data["fixes"]
    failure = {name: data[name] for name in ("test", "type", "message")} | {"where": [data["file"], *data["at"]]}
    fixes = [(text, "failed") for text in failed] + [(held, "passed")]
    runs = [
        {
            "at": 6 * number,
            "tests": [data["tests"], data["tests"] - 1, 1],
            "ms": 900 * data["tests"],
            "failures": [failure],
            "fix": {"description": text, "summary": "+2/-1 lines", "verification": result},
        }
        for number, (text, result) in enumerate(fixes)
    ]
    runs.append({"at": 6 * len(runs), "tests": [data["tests"], data["tests"], 0], "ms": 900 * data["tests"]})
    loop = BY_KEY[data["loop"]]
    return {
        "file": data["file"],
        "status": "passed",
        "loop": data["loop"],
        "task": "loop",
        "iteration": data["iteration"],
        "ago": {"minutes": (tree.now - loop.step_end(tree, data["iteration"] - 1)).total_seconds() / 60 - 1},
        "executions": runs,
        "patterns": [],
        "recommendations": [],
    }


def _identity(name: str) -> str:
    return stable_uuid(f"debug-{name}")


def _session(tree: Tree, name: str, data: dict[str, Any]) -> dict[str, Any]:
    started = tree.ago(**data["ago"])
    loop = BY_KEY[data["loop"]]
    executions = [
        _execution(data["file"], number, started + timedelta(minutes=run["at"]), run)
        for number, run in enumerate(data["executions"], 1)
    ]
    metadata = {
        "agent": data.get("agent", "debugger"),
        "task_id": loop.id if data["task"] == "loop" else data["task"],
        "ralph_iteration": data["iteration"],
    }
    return {
        "session_id": _identity(name),
        "file_path": data["file"],
        "created_at": executions[0]["timestamp"],
        "updated_at": executions[-1]["timestamp"],
        "status": data["status"],
        "executions": executions,
        "learnings": _learnings(data),
        "metadata": metadata,
    }


def _execution(file: str, number: int, at: datetime, run: dict[str, Any]) -> dict[str, Any]:
    total, passed, failed = run["tests"]
    results = {"total": total, "passed": passed, "failed": failed, "errors": 0, "skipped": 0, "duration_ms": run["ms"]}
    if "coverage" in run:
        results["coverage_percent"] = run["coverage"]
    execution: dict[str, Any] = {
        "attempt": number,
        "timestamp": iso_seconds(at),
        "code_hash": stable_uuid(f"{file}-{number}").replace("-", "") * 2,
        "environment": dict(_PYTHON if file.endswith(".py") else _NODE),
        "test_results": results,
        "failures": [_failure(file, failure) for failure in run.get("failures", [])],
    }
    if "cause" in run:
        execution["analysis"] = {
            "root_cause": run["cause"],
            "root_cause_category": run["category"],
            "fix_strategy": run["strategy"],
            "confidence": run["confidence"],
            "related_failures": run.get("related", []),
            "similar_past_issues": [
                {"session_id": _identity(name), "resolution": resolution} for name, resolution in run.get("similar", [])
            ],
        }
    if fix := run.get("fix"):
        execution["fix_applied"] = {
            "description": fix["description"],
            "diff_summary": fix["summary"],
            "files_changed": fix.get("files", [file]),
            **({"diff": fix["diff"]} if "diff" in fix else {}),
            "verification": fix["verification"],
        }
    return execution


def _failure(file: str, data: dict[str, Any]) -> dict[str, Any]:
    source, line, function = data["where"]
    test_file = f"tests/{file}" if file.endswith(".py") else source.replace("src/", "test/").replace(".ts", ".test.ts")
    failure = {
        "test_name": data["test"],
        "test_file": test_file,
        "error_type": data["type"],
        "error_message": data["message"],
        "stack_trace": data.get("stack"),
        "expected": data.get("expected"),
        "actual": data.get("actual"),
        "source_location": {"file": source, "line": line, "function": function},
    }
    return {name: value for name, value in failure.items() if value is not None}


def _learnings(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "patterns_identified": [_pattern(pattern) for pattern in data["patterns"]],
        "recurring_failures": [
            {"test": test, "occurrences": occurrences, "resolution": resolution, "notes": notes}
            for test, occurrences, resolution, notes in data.get("recurring", [])
        ],
        "code_quality_issues": [
            {"issue": issue, "location": location, "severity": severity, "addressed": addressed}
            for issue, location, severity, addressed in data.get("issues", [])
        ],
        "recommendations": data["recommendations"],
    }


def _pattern(data: list[Any]) -> dict[str, Any]:
    return dict(zip(("pattern", "category", "frequency", "fix_template", "effectiveness"), data, strict=True))
