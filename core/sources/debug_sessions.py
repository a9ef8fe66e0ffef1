"""Read debug sessions of `debug-memory` folders, and their escalations.

See docs/file-formats.md#debug-sessions and docs/file-formats.md#escalations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from core.base.steps import group_pairs
from core.files.file_reader import Line
from core.records import debug_sessions as records
from core.records.debug_sessions import DebugSession, Escalation
from core.records.findings import Finding, Severity
from core.records.patterns import UNNAMED
from core.sources import normalize
from core.sources.episodes import to_text
from core.sources.normalize import Fields, document
from core.sources.record_kinds import loop_directory

MAX_TEXT: Final = 16_384  # Maximum length of one text of a session (stack trace, diff), in characters.

_RESOLUTIONS: Final = frozenset({"resolved", "pending", "wont_fix", "escalated"})
_SEVERITIES: Final = frozenset({"critical", "major", "minor"})
_VERIFIED: Final = {"passed": True, "failed": False}
_MAX_DEPTH: Final = 3  # Maximum nesting depth at which sessions are looked for.
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)

Place = tuple[str | int, ...]  # Keys and indexes that lead from the root of a document to a value.


def read_sessions(file: str, value: Any) -> tuple[tuple[DebugSession, ...], tuple[Finding, ...]]:
    """Read the debug sessions in one decoded document; other content is ignored.

    A document is a session, a list of sessions, or an object that contains sessions, as in `{"sessions": […]}`. In an
    object, a session needs `executions`, because the entries of an index have session IDs too.
    """
    findings: list[Finding] = []
    sessions = []
    for _, pointer, item in session_records(value):
        if not normalize.text(item.get("session_id")).strip():
            message = "the debug session has no session_id; it is shown under a provisional ID"
            findings.append(Finding(file, pointer, Severity.ERROR, "missing-id", message))
        sessions.append(_session(Fields(file, item, findings, pointer), _id_of(file, pointer, item)))
    return tuple(sessions), tuple(findings)


def find_record(file: str, value: Any, session_id: str) -> tuple[Place, Any] | None:
    """Find a session by ID in a document; returns its path and value.

    If several records have the ID, the same record is returned as by `join_sessions`.
    """
    found: dict[str, DebugSession] = {}
    places: dict[str, tuple[Place, Any]] = {}
    for place, pointer, item in session_records(value):
        if _id_of(file, pointer, item) == session_id:
            places[pointer] = place, item
            named = {**item, "session_id": session_id}
            read = (replace(session, pointer=pointer) for session in read_sessions(file, named)[0])
            found = join_sessions([*found.values(), *read])
    return places[found[session_id].pointer] if found else None


def join_sessions(sessions: Iterable[DebugSession]) -> dict[str, DebugSession]:
    """Join sessions by ID: the last changed record is used, then the longest one."""
    joined: dict[str, DebugSession] = {}
    for session in sessions:
        other = joined.get(session.id)
        if other is None or _recency(session) >= _recency(other):
            joined[session.id] = session
    return joined


def _recency(session: DebugSession) -> tuple[datetime, int]:
    return session.changed_at or _EARLIEST, len(session.executions)


def _id_of(file: str, pointer: str, item: dict[str, Any]) -> str:
    """Return the ID of a session, or a provisional ID made from its place."""
    identifier = normalize.text(item.get("session_id")).strip()
    return identifier or UNNAMED + blake2b(f"{file}#{pointer}".encode(), digest_size=4).hexdigest()


def session_records(
    value: Any, place: Place = (), pointer: str = "", *, named: bool = False
) -> Iterator[tuple[Place, str, dict[str, Any]]]:
    """Find sessions: path, pointer and value; `named` means inside an object."""
    if isinstance(value, Line):
        value, pointer = value.value, f"line {value.number}"
    if isinstance(value, dict) and ("session_id" in value or isinstance(value.get("executions"), list)):
        if not named or "executions" in value:
            yield place, pointer, value
    elif len(place) < _MAX_DEPTH:
        fields = Fields("", {"": value}, [])
        for key, item in fields.items("") if isinstance(value, list | dict) else ():
            step = int(key) if isinstance(value, list) else key
            below = Fields("", {}, [], pointer).place(key)
            yield from session_records(item, (*place, step), below, named=named or isinstance(value, dict))


def _session(fields: Fields, identifier: str) -> DebugSession:
    empty = Fields(fields.file, {}, fields.findings, fields.pointer)
    metadata = fields.inside("metadata") or empty
    learnings = fields.inside("learnings") or empty
    task_id = metadata.text("task_id")
    return fields.convert(
        DebugSession,
        MAX_TEXT,
        id=identifier,
        status=_read_word(fields, "status", records.STATUSES),
        updated_at=fields.time("updated_at", "created_at"),
        executions=tuple(_execution(entry) for _, entry in fields.objects("executions")),
        lessons=tuple(lesson for _, entry in learnings.objects("patterns_identified") if (lesson := _lesson(entry))),
        recurring=tuple(
            entry.convert(records.Recurring, MAX_TEXT, resolution=_read_word(entry, "resolution", _RESOLUTIONS))
            for _, entry in learnings.objects("recurring_failures")
        ),
        issues=tuple(
            entry.convert(records.QualityIssue, MAX_TEXT, severity=_read_word(entry, "severity", _SEVERITIES))
            for _, entry in learnings.objects("code_quality_issues")
        ),
        recommendations=tuple(text[:MAX_TEXT] for text in learnings.texts("recommendations")),
        loop_id=loop_directory(fields.file).rpartition("/")[2] or metadata.text("loop_id") or task_id,
        agent=_text(metadata, "agent"),
        task_id=task_id,
        attempt=metadata.count("attempt"),
        iteration=metadata.count("ralph_iteration", "iteration"),
        file=fields.file,
        pointer=fields.pointer,
    )


def _execution(fields: Fields) -> records.Execution:
    environment = fields.inside("environment")
    analysis = fields.inside("analysis")
    return fields.convert(
        records.Execution,
        MAX_TEXT,
        at=fields.time("timestamp"),
        code=_text(fields, "code_snapshot"),
        environment=tuple(_environment(environment)) if environment else (),
        results=read_results(fields),
        failures=tuple(
            failure for _, entry in fields.objects("failures") if (failure := read_failure(entry, tested=True))
        ),
        analysis=_analysis(analysis) if analysis else None,
        fix=read_fix(fields),
    )


def _environment(fields: Fields) -> Iterator[tuple[str, str]]:
    for name, value in fields.mapping.items():
        for key, item in value.items() if isinstance(value, dict) else [(name, value)]:
            if text := to_text(item, MAX_TEXT):
                yield str(key), text


def _analysis(fields: Fields) -> records.Analysis:
    return fields.convert(
        records.Analysis,
        MAX_TEXT,
        category=normalize.word(fields.text("root_cause_category")),
        strategy=_text(fields, "fix_strategy"),
        confidence=fields.rate("confidence"),
        related=tuple(text[:MAX_TEXT] for text in fields.texts("related_failures")),
        similar=tuple(entry.convert(records.PastIssue, MAX_TEXT) for _, entry in fields.objects("similar_past_issues")),
    )


def _lesson(fields: Fields) -> records.Lesson | None:
    if not fields.text("pattern"):
        return None
    category, effectiveness = normalize.word(fields.text("category")), fields.rate("effectiveness")
    return fields.convert(records.Lesson, MAX_TEXT, category=category, effectiveness=effectiveness)


def read_failure(fields: Fields, *, tested: bool = False) -> records.Failure | None:
    """Read a failure of a session or an iteration; None without an error.

    `tested` means that it comes from a list of failed tests, in which the name of a test is enough.
    """
    file, line, function = "", None, ""
    place = fields.mapping.get("source_location", fields.mapping.get("location"))
    if isinstance(place, dict):
        source = Fields(fields.file, place, fields.findings, fields.pointer)
        file, line, function = _text(source, "file"), source.count("line"), _text(source, "function")
    elif isinstance(place, str):
        file, line = split_location(place)
    failure = fields.convert(
        records.Failure,
        MAX_TEXT,
        error_type=_text(fields, "exception_type", "error_type", "type", "name"),
        message=_text(fields, "error_message", "message"),
        file=file,
        line=line,
        function=function,
        stack_trace=_text(fields, "stack_trace", "stack"),
        expected=to_text(fields.mapping.get("expected"), MAX_TEXT),
        actual=to_text(fields.mapping.get("actual"), MAX_TEXT),
    )
    has_content = failure != records.Failure() if tested else failure.message or failure.error_type
    return failure if has_content else None


def split_location(location: str) -> tuple[str, int | None]:
    """Split `src/validate.ts:42` or `validate.ts:42:7` into file and line (or None)."""
    file, *numbers = location[:MAX_TEXT].strip().split(":", 1)
    if len(file) == 1 and numbers:  # the drive letter in `C:\app\a.ts:7`
        rest, *numbers = numbers[0].split(":", 1)
        file = f"{file}:{rest}"
    return file, normalize.count(numbers[0].split(":")[0]) if numbers else None


def read_results(fields: Fields) -> records.Results | None:
    """Read the `test_results` of an execution or iteration; None without any."""
    results = fields.inside("test_results") if "test_results" in fields.mapping else None
    if results is None:
        return None
    percent = results.number("coverage_percent")
    coverage = percent / 100 if percent is not None and 0 <= percent <= 100 else None
    return results.convert(records.Results, duration_ms=results.duration("duration_ms"), coverage=coverage)


def read_fix(fields: Fields) -> records.Fix | None:
    """Read `fix_applied`, an object or a description; None without one."""
    value = fields.mapping.get("fix_applied")
    if isinstance(value, str):
        return records.Fix(description=value[:MAX_TEXT]) if value.strip() else None
    fix = fields.inside("fix_applied")
    if fix is None:
        return None
    verified = _VERIFIED.get(normalize.word(fix.text("verification")))
    return fix.convert(records.Fix, MAX_TEXT, files=fix.texts("files_changed"), verified=verified)


def _text(fields: Fields, *names: str) -> str:
    return fields.text(*names)[:MAX_TEXT]


def _read_word(fields: Fields, name: str, known: Collection[str]) -> str:
    """Return a normalized word if it is in `known`, otherwise ""."""
    word = normalize.word(fields.text(name))
    return word if word in known else ""


def read_escalation(file: str, value: Any) -> tuple[tuple[Escalation, ...], tuple[Finding, ...]]:
    """Read the escalation in a saved context; skipped without session ID or time."""
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    session_id, at = fields.text("session_id").strip(), fields.time("preserved_at")
    if not session_id or at is None:
        fields.add("no-escalation", "an escalation needs session_id and preserved_at; skipped", fields.pointer)
        return (), tuple(findings)
    by, reason = (fields.text(name)[:MAX_TEXT] for name in ("by", "reason"))
    return (Escalation(session_id=session_id, at=at, by=by, reason=reason, file=file),), tuple(findings)


def join_escalations(calls: Iterable[Escalation]) -> dict[str, Escalation]:
    """Return the newest escalation of each session; it refers to the earlier ones.

    Of escalations at the same time, the one with the lower file number is earlier.
    """
    ordered = sorted(calls, key=lambda call: (call.at, len(call.file), call.file))
    grouped = group_pairs((call.session_id, call) for call in ordered)
    return {id: replace(calls[-1], earlier=tuple(calls[:-1])) for id, calls in grouped.items()}
