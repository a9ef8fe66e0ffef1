"""Write debug sessions in the form of docs/debug-memory.md#form.

A new session is a JSON file of its own in `.aiwg/ralph/debug-memory`. Secrets in its texts are masked, and texts are
limited to what readers use. One lock per folder orders the writers of this program; a change by another program is
merged (docs/reliability.md#replacing-files).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import BadInput, Refused, Unwritable
from core.base.masking import mask_secrets
from core.base.paths import safe_component
from core.base.record_text import replace_surrogates
from core.base.text import visible_line
from core.files.atomic_write import rewrite, take_theirs
from core.files.file_access import check_writable, file_lock
from core.files.file_reader import MAX_BYTES
from core.files.json_editor import BadJson, JsonText
from core.files.json_editor import Path as Place
from core.records.debug_sessions import ERROR_TYPES, IN_PROGRESS, Analysis, Execution, Failure, Fix, Results
from core.records.times import iso
from core.sources.debug_sessions import MAX_TEXT, find_record
from core.sources.keys import RecordText

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.debug_sessions import DebugSession

MAX_RUNS: Final = 50  # maximum number of executions of one session that are written, the last ones
MAX_FAILURES: Final = 20  # maximum number of failures of one execution
MAX_TRACE: Final = 4_000  # maximum length of a stack trace, in characters
MAX_LINE: Final = 2_000  # maximum length of a message, a name or a path, in characters
MIN_SENTENCE: Final = 20  # minimum length of a root cause and of a strategy in the format, in characters
FOLDER: Final = "debug-memory"
_OTHER: Final = "Other"
_NAMED: Final = ("runtime", "runtime_version", "test_framework", "os")  # names of `environment` in the format
_VERIFICATION: Final = {True: "passed", False: "failed", None: "pending"}
_RETRY_SECONDS: Final = (0.05, 0.1, 0.2)
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {}, ())

Record = dict[str, Any]
Edit = Callable[[JsonText, Place, Mapping[str, Any]], None]
"""Changes the record at a place of a document; applied to its own result it must change nothing."""


def session_path(paths: ProjectPaths, session_id: str) -> Path:
    """Return the file of a new session; BadInput if the ID is unsafe or the folder is a link."""
    folder = paths.ralph / FOLDER
    return paths.unlinked(paths.relative(folder / f"{safe_component(session_id)}.json"))


def new_record(
    session_id: str, at: datetime, *, file: str = "", metadata: Mapping[str, Any], executions: Sequence[Record] = ()
) -> Record:
    """Return the record of a new session; empty metadata are left out."""
    return {
        "session_id": session_id,
        "file_path": clean_text(file, MAX_LINE),
        "created_at": iso(at),
        "updated_at": iso(at),
        "status": IN_PROGRESS,
        "executions": list(executions),
        "metadata": _without_empty(
            {name: clean_text(value, MAX_LINE) if isinstance(value, str) else value for name, value in metadata.items()}
        ),
    }


def encode_execution(run: Execution) -> Record:
    """Return an execution in the form of the format; `code` must be absent."""
    environment: Record = {name: value for name, value in run.environment if name in _NAMED}
    additional = {name: clean_text(value, MAX_LINE) for name, value in run.environment if name not in _NAMED}
    record: Record = {
        "attempt": run.attempt,
        "timestamp": iso(run.at) if run.at is not None else None,
        "code_hash": run.code_hash,
        "environment": environment | ({"additional": additional} if additional else {}),
        "test_results": encode_results(run.results) if run.results is not None else None,
        "failures": [encode_failure(failure) for failure in run.failures[:MAX_FAILURES]],
        "analysis": encode_analysis(run.analysis) if run.analysis is not None else None,
        "fix_applied": encode_fix(run.fix) if run.fix is not None else None,
    }
    return {name: value for name, value in record.items() if name == "code_hash" or value not in _EMPTY}


def encode_results(results: Results) -> Record:
    """Return the counts of a run; total, passed and failed are required, so unknown ones are derived or 0."""
    failed, passed = results.failed or 0, results.passed or 0
    total = results.total if results.total is not None else passed + failed + (results.errors or 0)
    counts = {"errors": results.errors, "skipped": results.skipped}
    duration = None if results.duration_ms is None else round(results.duration_ms)
    return {"total": total, "passed": passed, "failed": failed, **_without_empty({**counts, "duration_ms": duration})}


def encode_failure(failure: Failure) -> Record:
    """Return a failure; a type that the format lacks becomes "Other", with the real name as `exception_type`."""
    name = failure.error_type
    is_known = name in ERROR_TYPES
    message = failure.message or failure.test_name or "no message"
    place = {"file": failure.file, "line": failure.line, "function": failure.function}
    return {
        "test_name": clean_text(failure.test_name or failure.test_file or failure.file or "the check", MAX_LINE),
        **_without_empty(
            {"test_file": clean_text(failure.test_file, MAX_LINE), "test_line": failure.test_line},
        ),
        "error_type": name if is_known else _OTHER,
        **({"exception_type": clean_text(name, MAX_LINE)} if name and not is_known else {}),
        "error_message": clean_text(message, MAX_LINE),
        **_without_empty(
            {
                "stack_trace": clean_text(failure.stack_trace, MAX_TRACE),
                "expected": clean_text(failure.expected, MAX_LINE),
                "actual": clean_text(failure.actual, MAX_LINE),
                "source_location": _without_empty(place) if failure.file else None,
            }
        ),
    }


def encode_analysis(analysis: Analysis) -> Record:
    """Return an analysis; cause and strategy need `MIN_SENTENCE` characters."""
    return {
        "root_cause": clean_text(analysis.root_cause, MAX_LINE),
        **_without_empty({"root_cause_category": analysis.category}),
        "fix_strategy": clean_text(analysis.strategy, MAX_LINE),
        **_without_empty(
            {"confidence": analysis.confidence, "related_failures": [*map(clean_text, analysis.related)]},
        ),
    }


def encode_fix(fix: Fix) -> Record:
    """Return a fix; without a known result, its verification is pending."""
    return {
        "description": clean_text(fix.description, MAX_LINE),
        **_without_empty(
            {
                "diff_summary": fix.diff_summary or summarize_diff(fix.diff),
                "files_changed": [clean_text(file, MAX_LINE) for file in fix.files],
                "diff": clean_text(fix.diff),
            }
        ),
        "verification": _VERIFICATION[fix.verified],
    }


def summarize_diff(diff: str) -> str:
    """Return the number of added and removed lines such as `+5/-2 lines`; "" without a diff."""
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return f"+{added}/-{removed} lines" if added or removed else ""


def files_of_diff(diff: str) -> tuple[str, ...]:
    """Return the files that a unified diff changes, each once."""
    lines = (line for line in diff.splitlines() if line.startswith(("+++ ", "--- ")))
    names = (line[4:].partition("\t")[0].strip() for line in lines)
    found = (name[2:] if name.startswith(("a/", "b/")) else name for name in names if name != "/dev/null")
    return tuple(dict.fromkeys(found))


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text to be written: without secrets and lone surrogates, and not longer than `limit`."""
    return replace_surrogates(mask_secrets(text[: 2 * limit]))[:limit]


def _without_empty(values: Mapping[str, Any]) -> Record:
    return {name: value for name, value in values.items() if value not in _EMPTY}


def _encode(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


@contextmanager
def locked_folder(paths: ProjectPaths) -> Iterator[None]:
    """Lock the debug memory for writing, and create its folder."""
    folder = paths.ralph / FOLDER
    try:
        paths.unlinked(paths.relative(folder))
    except BadInput as error:
        raise Unwritable(str(error)) from None
    with file_lock(folder / ".debug-memory.lock"):
        yield


def save_session(paths: ProjectPaths, record: Record, merge: Callable[[Record, Record], Record]) -> bool:
    """Write a session to its own file; return whether the file changed.

    `merge` gets the present record and the new one, and returns the one to be written. Raises Conflict if the present
    file cannot be parsed, and Unwritable if it cannot be written.
    """
    path = session_path(paths, record["session_id"])
    is_changed = False

    def change(present: bytes | None) -> bytes:
        nonlocal is_changed
        wanted = record
        if present is not None:
            known = JsonText(present).value
            if not isinstance(known, dict):
                raise BadJson("it does not contain a JSON object")
            wanted = merge(known, record)
            if wanted == known:
                return present
        is_changed = True
        return _encode(wanted)

    with locked_folder(paths):
        rewrite(path, change, merge=take_theirs, retry_seconds=_RETRY_SECONDS)
    return is_changed


def edit_session(paths: ProjectPaths, session: DebugSession, edit: Edit) -> None:
    """Change the record of a session in its file; everything else in the file keeps its bytes.

    Raises Refused if it is a YAML file, gone, reached through a link, without the session or too long, Conflict if it
    cannot be parsed, and Unwritable if it cannot be written.
    """
    path = check_editable(paths, session)
    shown = visible_line(session.file, 160)

    def change(data: bytes | None) -> bytes:
        if data is None:
            raise Refused(f"{shown} no longer exists")
        document = RecordText(data)
        located = find_record(session.file, document.value, session.id)
        if located is None:
            raise Refused(f"debug session {visible_line(session.id, 80)} is no longer in {shown}")
        edit(document, *located)
        after = document.encode()
        if len(after) > MAX_BYTES:
            raise Refused(f"{shown} would become longer than {MAX_BYTES:,} bytes; start another session")
        return after

    with locked_folder(paths):
        rewrite(path, change, merge=take_theirs, retry_seconds=_RETRY_SECONDS)


def check_editable(paths: ProjectPaths, session: DebugSession) -> Path:
    """Return the file of a session; Refused if it is YAML or reached through a link, ReadOnly in a read-only folder."""
    shown = visible_line(session.file, 160)
    if session.file.endswith((".yaml", ".yml")):
        raise Refused(f"{shown} is YAML, to which nothing is added; start another session: ralphdeck debug start")
    try:
        path = paths.inside(session.file)
    except BadInput as error:
        raise Refused(str(error)) from None
    if path != paths.aiwg.resolve().joinpath(*session.file.split("/")[1:]):
        raise Refused(f"{shown} is reached through a link; it was not changed")
    check_writable(path)
    return path
