"""Make an execution of a run of a check: counts and failures from its report or its output."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from core.base.record_text import one_line
from core.base.shell_commands import parse_check
from core.files.file_reader import decode_json
from core.records.debug_sessions import Execution, Failure, Results
from core.sources.adapters.command_output import find_error, parse_results
from core.sources.debug_sessions import read_results
from core.sources.fields import Fields
from core.tasks.command_errors import parse_report

COMMAND: Final = "command"  # keys of `environment.additional`
EXIT_CODE: Final = "exit_code"
_MAX_COMMAND: Final = 300
_JEST: Final = {
    "total": "numTotalTests",
    "passed": "numPassedTests",
    "failed": "numFailedTests",
    "errors": "numRuntimeErrorTestSuites",
    "skipped": "numPendingTests",
}  # keys of the report of Jest and Vitest
_PYTEST: Final = {"total": "total", "passed": "passed", "failed": "failed", "errors": "error", "skipped": "skipped"}
"""Keys of `summary` in the report of pytest-json-report."""


def read_run(report: bytes, root: str, at: datetime) -> Execution | None:
    """Return the run that a report describes: JSON or console output; None if it has neither counts nor failures."""
    results, failures = read_counts(report), parse_report(report, root)
    if results is None and not failures:
        return None
    return Execution(at=at, results=results or _count(len(failures)), failures=failures)


def describe_run(
    command: str, exit_code: int, output: bytes, root: str, at: datetime, *, report: bytes = b"", duration_ms: float
) -> Execution:
    """Return the run of a command; `report` is its standard output, which may be JSON.

    A failed command without a known failure has one, with the line of the output that names an error. A run has failed
    if the exit code or the report says so: `pytest || true` hides failures from the exit code.
    """
    text = output.decode("utf-8", "replace")
    source = report if isinstance(decode_json(report).value, dict | list) else output
    counted = read_counts(source)
    failures = parse_report(source, root) if exit_code or (counted is not None and counted.failing) else ()
    if exit_code and not failures:
        failures = (Failure(test_name=command, message=find_error(text) or f"exit code {exit_code}"),)
    if counted is None:
        counted = _count(len(failures))
    elif exit_code and not counted.failing:
        counted = replace(counted, errors=len(failures))
    check = " ".join(parse_check(command)[0]) or command.split(" ", 1)[0]
    environment = (("test_framework", check), (COMMAND, one_line(command, _MAX_COMMAND)), (EXIT_CODE, str(exit_code)))
    return Execution(
        at=at,
        environment=environment,
        results=replace(counted, duration_ms=duration_ms),
        failures=tuple(one if one.test_name else replace(one, test_name=command) for one in failures),
    )


def read_counts(data: bytes) -> Results | None:
    """Return the counts in a report of Jest, Vitest or pytest, an execution, or console output; None without any."""
    value = decode_json(data).value
    if not isinstance(value, dict):
        return None if isinstance(value, list) else parse_results(data.decode("utf-8", "replace"))
    fields = Fields("", value, [])
    if "numTotalTests" in value:
        return _results(fields, _JEST)
    if (summary := fields.inside("summary")) is not None:
        return _results(summary, _PYTEST)
    return read_results(fields)


def _results(fields: Fields, names: dict[str, str]) -> Results:
    counts: dict[str, Any] = {name: fields.count(key) for name, key in names.items()}
    return Results(**{**counts, "passed": counts["passed"] or 0, "failed": counts["failed"] or 0})


def _count(failures: int) -> Results:
    """Return the counts of a check that prints none: one test for each failure, at least one."""
    return Results(total=failures or 1, passed=0 if failures else 1, failed=failures)
