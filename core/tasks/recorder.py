"""Record debug sessions, from start to end (docs/task-memory.md#commands)."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.errors import BadInput, Refused
from core.base.paths import is_safe_id
from core.base.shell_commands import find_error, parse_check, parse_results
from core.base.text import one_line, visible_line
from core.base.validation import find_matching_ids, require_one
from core.files.file_access import open_regular
from core.files.file_reader import decode_json
from core.records.debug_sessions import ENDS, IN_PROGRESS, RESOLVED, ROOT_CAUSES, Execution, Failure, Results
from core.records.times import iso
from core.sources.debug_sessions import find_record, join_sessions, read_results, read_sessions
from core.sources.normalize import Fields
from core.tasks.archive import read_debug_files, read_session_file
from core.tasks.command_errors import parse_report
from core.tasks.session_files import (
    COMMAND,
    EXIT_CODE,
    MIN_SENTENCE,
    RECORDED_BY,
    check_editable,
    edit_session,
    encode_analysis,
    encode_execution,
    encode_fix,
    find_main_file,
    new_record,
    save_session,
    session_path,
)
from core.tasks.task_files import set_members

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.files.json_editor import JsonText
    from core.files.json_editor import Path as Place
    from core.records.debug_sessions import Analysis, DebugSession, Fix

_RUNS: Final = "executions"
_MAX_CODE: Final = 8 << 20  # size of a source file that is hashed, in bytes


class DebugRecorder:
    """Writes the debug sessions of one project.

    `clock` returns the current time, aware UTC. `by` is who records. All methods raise `BadInput` for an invalid
    argument, `UnknownRecord` for an unknown session, `Refused` if the state of the session forbids the call, `Conflict`
    if its file cannot be parsed, and `Unwritable` if it cannot be written or locked.
    """

    def __init__(self, project: ProjectPaths, *, clock: Callable[[], datetime], by: str = "") -> None:
        self._project = project
        self._clock = clock
        self._by = by

    def find(self, name: str) -> DebugSession:
        """Return the session with this ID or unambiguous prefix."""
        if is_safe_id(name):
            with suppress(BadInput):
                file = self._project.relative(session_path(self._project, name))
                found = {session.id: session for session in read_session_file(self._project, file)[0]}
                if name in found:
                    return found[name]
        files = read_debug_files(self._project).sessions.values()
        known = join_sessions(session for sessions in files for session in sessions)
        matching = find_matching_ids(name, known)
        return known[require_one(matching, name, what="debug session", command="debug list", known=known)]

    def start(
        self,
        *,
        file: str = "",
        task_id: str = "",
        loop_id: str = "",
        agent: str = "",
        iteration: int | None = None,
        session_id: str = "",
    ) -> str:
        """Start a session and return its ID; an existing `session_id` is used as it is."""
        made = session_id or str(uuid.uuid4())
        try:
            made = str(uuid.UUID(made))
        except ValueError:
            raise BadInput(f"{visible_line(made, 80)!r} is not a UUID such as {uuid.UUID(int=0)}") from None
        metadata = {"agent": agent, "task_id": task_id, "loop_id": loop_id, "ralph_iteration": iteration}
        record = new_record(made, self._clock(), file=file, metadata=metadata)
        save_session(self._project, record, lambda present, _: present)
        return made

    def check_can_run(self, session: DebugSession) -> None:
        """Raise Refused or Unwritable before a command runs whose run cannot be added."""
        _check_open({"session_id": session.id, "status": session.status})
        check_editable(self._project, session)

    def add_run(self, session: DebugSession, run: Execution) -> int:
        """Add a run, verify the earlier fixes that it decides; return the run's number."""
        added: dict[str, Any] = {}
        file = session.file_path or find_main_file(run.failures, ())
        run = replace(run, code_hash=self._hash_code(session, file))

        def edit(document: JsonText, place: Place, record: Mapping[str, Any]) -> None:
            _check_open(record)
            entries = _runs_of(record)
            if added not in entries:
                numbers = [entry.get("attempt") for entry in entries if isinstance(entry, dict)]
                number = max((one for one in numbers if isinstance(one, int)), default=0) + 1
                added.clear()
                added.update(self._signed(encode_execution(replace(run, attempt=number))))
                if isinstance(record.get(_RUNS), list):
                    document.append((*place, _RUNS), dict(added))
                else:
                    document.set(place, _RUNS, [dict(added)])
            changes: dict[str, Any] = {"status": IN_PROGRESS, "updated_at": iso(run.at or self._clock())}
            set_members(document, place, changes | ({"file_path": file} if file else {}))
            _verify_fixes(document, session)

        edit_session(self._project, session, edit)
        return int(added["attempt"])

    def analyse(self, session: DebugSession, analysis: Analysis) -> int:
        """Set the analysis of the newest failing run; returns the number of the run."""
        for name, text in (("cause", analysis.root_cause), ("strategy", analysis.strategy)):
            if len(text.strip()) < MIN_SENTENCE:
                raise BadInput(f"the {name} has {len(text.strip())} characters; the format needs {MIN_SENTENCE}")
        if analysis.category and analysis.category not in ROOT_CAUSES:
            shown = visible_line(analysis.category, 60)
            raise BadInput(f"Invalid category {shown!r}. Use one of {', '.join(ROOT_CAUSES)}.")
        return self._set_part(session, "analysis", encode_analysis(analysis))

    def fix(self, session: DebugSession, fix: Fix) -> int:
        """Set the fix of the newest failing run, to be verified; return the run's number."""
        if not fix.description.strip():
            raise BadInput("the description of the fix is empty")
        return self._set_part(session, "fix_applied", encode_fix(fix))

    def end(self, session: DebugSession, how: str) -> bool:
        """End a session as resolved, escalated, abandoned; return whether it changed.

        Raises Refused if a resolved session has no run, or its last run failed.
        """
        last = session.executions[-1].results if session.executions else None
        if how == RESOLVED and (last is None or not last.green):
            reason = "its last run did not pass" if last is not None else "it has no run"
            raise Refused(f"debug session {visible_line(session.id, 80)} is not resolved: {reason}")
        if session.status == ENDS[how]:
            return False

        def edit(document: JsonText, place: Place, _record: Mapping[str, Any]) -> None:
            set_members(document, place, {"status": ENDS[how], "updated_at": at})

        at = iso(self._clock())
        edit_session(self._project, session, edit)
        return True

    def _signed(self, part: Mapping[str, Any]) -> dict[str, Any]:
        return {**part, **({RECORDED_BY: self._by} if self._by else {})}

    def _set_part(self, session: DebugSession, name: str, part: Mapping[str, Any]) -> int:
        value = self._signed(part)
        at = iso(self._clock())
        number = 0

        def edit(document: JsonText, place: Place, record: Mapping[str, Any]) -> None:
            nonlocal number
            entries = _runs_of(record)
            failing = [n for n, entry in enumerate(entries) if isinstance(entry, dict) and entry.get("failures")]
            if not failing:
                raise Refused(f"debug session {visible_line(session.id, 80)} has no run with a failure")
            index = failing[-1]
            run = (*place, _RUNS, index)
            present = entries[index].get(name)
            known = present if isinstance(present, dict) else {}
            if {**known, "verification": ""} != {**value, "verification": ""}:
                document.set(run, name, value)
                set_members(document, place, {"updated_at": at})
            _verify_fixes(document, session)
            attempt = entries[index].get("attempt")
            number = attempt if isinstance(attempt, int) else index + 1

        edit_session(self._project, session, edit)
        return number

    def _hash_code(self, session: DebugSession, main: str) -> str:
        """Return the hash of a session's main file and fixed files; "" if unreadable."""
        files = (main, *(file for run in session.executions if run.fix for file in run.fix.files))
        digest, is_known = hashlib.sha256(), False
        root = self._project.project.resolve()
        for file in sorted(set(filter(None, files))):
            with suppress(OSError, ValueError, RuntimeError):
                path = (root / file).resolve()
                if path.is_relative_to(root):
                    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as opened:
                        digest.update(file.encode("utf-8", "replace") + b"\n" + opened.read(_MAX_CODE))
                        is_known = True
        return digest.hexdigest() if is_known else ""


def _check_open(record: Mapping[str, Any]) -> None:
    status = record.get("status")
    if status in ENDS.values():
        shown = visible_line(str(record.get("session_id")), 80)
        raise Refused(f"debug session {shown} has ended ({status}); start another one: ralphdeck debug record --start")


def _runs_of(record: Mapping[str, Any]) -> list[Any]:
    entries = record.get(_RUNS)
    if entries is not None and not isinstance(entries, list):
        raise Refused("the executions of the session have an unknown structure; nothing was changed")
    return entries or []


def _verify_fixes(document: JsonText, session: DebugSession) -> None:
    """Set the verification of pending fixes whose result the following run shows."""
    located = find_record(session.file, document.value, session.id)
    if located is None:
        return
    place, record = located
    [read] = read_sessions(session.file, {**record, "session_id": session.id})[0]
    for index, (run, worked) in enumerate(zip(read.executions, read.verdicts, strict=True)):
        is_last = index + 1 == len(read.executions)
        if run.fix is not None and run.fix.verified is None and worked is not None and not is_last:
            at = (*place, _RUNS, index, "fix_applied")
            if isinstance(_runs_of(record)[index].get("fix_applied"), dict):
                document.set(at, "verification", "passed" if worked else "failed")


# Runs of checks: counts and failures from reports or output

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
    """Return the run of a report (JSON or console); None without counts or failures."""
    results, failures = read_counts(report), parse_report(report, root)
    if results is None and not failures:
        return None
    return Execution(at=at, results=results or _count(len(failures)), failures=failures)


def describe_run(
    command: str, exit_code: int, output: bytes, root: str, at: datetime, *, report: bytes = b"", duration_ms: float
) -> Execution:
    """Return the run of a command; `report` is its stdout, which may be JSON.

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
    """Return counts of Jest, Vitest, pytest, an execution or console output; or None."""
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
    """Return counts of a check that prints none: a test per failure, at least one."""
    return Results(total=failures or 1, passed=0 if failures else 1, failed=failures)
