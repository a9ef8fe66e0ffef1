"""Read and append to the event log (docs/file-formats.md#event-log)."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from core.base.errors import BadInput, Unwritable
from core.files.append_log import AppendLog
from core.files.file_reader import MAX_PATTERN_BYTES, decode_json
from core.records.events import (
    ASSIGNED,
    INJECTED_REFLECTION,
    TRIAL_OUTCOME,
    VERDICT,
    ErrorNote,
    ErrorType,
    Event,
    Observation,
    Signals,
)
from core.records.findings import Finding, Severity
from core.sources.normalize import Fields, document
from core.trust.experiment_secret import trial_key
from core.trust.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.base.paths import ProjectPaths

KINDS: Final = frozenset(
    {
        *("injected", "applied", "extracted", "outcome", "feedback", "counted", "error", "resolved"),
        *(INJECTED_REFLECTION, ASSIGNED, TRIAL_OUTCOME, VERDICT),
    }
)
_OF_TRIALS: Final = (ASSIGNED, TRIAL_OUTCOME)
_NEWEST_BYTES: Final = 1 << 14  # end of the log in which others are looked for: what they added in a few seconds
_ERROR_TYPES: Final = tuple(ErrorType)
_decoder: Final = msgspec.json.Decoder(Event)


def read_events(file: str, data: bytes) -> tuple[list[Event], tuple[Finding, ...]]:
    """Read an event log's complete lines, oldest first; the first of an ID counts."""
    events: dict[str, Event] = {}
    findings: list[Finding] = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        place = f"line {number}"
        event = decode_event(file, place, line, findings) if line.strip() else None
        if event is not None and events.setdefault(event.id, event) is not event:
            message = "an earlier line has an event with this ID; skipped"
            findings.append(Finding(file, place, Severity.WARNING, "duplicate-id", message))
    return list(events.values()), tuple(findings)


def decode_event(file: str, place: str, line: bytes, findings: list[Finding]) -> Event | None:
    """Decode a line of the event log, None if invalid; add problems to `findings`."""
    return _read_line(line) or _read_tolerantly(file, place, line, findings)


def _read_line(line: bytes) -> Event | None:
    """Decode a line written by ralphdeck; None if it has another form."""
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    is_valid = event.at.tzinfo is UTC and event.kind in KINDS and event.id
    has_trial = (event.trial is not None) is (event.kind in _OF_TRIALS)
    are_sums = all(_is_recorded_sum(one, event.pattern_id) for one in event.unrecorded)
    return event if is_valid and has_trial and are_sums else None


def _is_recorded_sum(one: Observation, pattern_id: str) -> bool:
    """Whether the evidence is a total recorded in a pattern, without single events."""
    return (
        (one.at is None or one.at.tzinfo is UTC)
        and one.pattern_id == pattern_id
        and one.kind in ("discovered", "trend", "aggregate")
        and one.source in ("discovery", "trend", "aggregate")
        and one.weight == 1
        and one.count > 0
    )


def _read_tolerantly(file: str, place: str, line: bytes, findings: list[Finding]) -> Event | None:
    decoded = decode_json(line)
    findings += (Finding(file, place, p.severity, p.code, p.message) for p in decoded.problems)
    if decoded.failed:
        return None
    wrong: list[Finding] = []
    fields = document(file, decoded.value, wrong)
    event = _read_event(fields) if fields is not None else None
    for one in wrong:  # the place is only a line, so the message names the field
        field = f"{one.pointer.removeprefix('/')}: " if one.pointer else ""
        findings.append(replace(one, pointer=place, message=f"{field}{one.message}"))
    return event


def _read_event(fields: Fields) -> Event | None:
    identifier, at, kind = fields.text("id"), fields.time("at"), fields.text("kind")
    if not identifier or at is None or kind not in KINDS:
        message = f"an event needs an `id`, a time `at` and a `kind` ({', '.join(sorted(KINDS))}); skipped"
        fields.add("bad-event", message, "", Severity.ERROR)
        return None
    if kind == "counted":
        fields.add("bad-event", "only ralphdeck may write `counted` events; skipped", "", Severity.ERROR)
        return None
    weight = fields.number("weight")
    if weight is not None and not 0 <= weight <= 1:
        fields.add("out-of-range", "expected a weight from 0 to 1; 1 is used", "/weight")
        weight = None
    if kind in _OF_TRIALS:  # no other program assigns or judges
        fields.add("bad-event", f"the trial of an event of the kind {kind} is not valid; skipped", "", Severity.ERROR)
        return None
    signals, error = fields.inside("signals"), fields.inside("error")
    return fields.convert(
        Event,
        id=identifier,
        at=at,
        kind=kind,
        weight=1.0 if weight is None else weight,
        signals=signals.convert(Signals, duration_ms=signals.duration("duration_ms")) if signals else None,
        error=_read_error(error) if error else None,
    )


def _read_error(fields: Fields) -> ErrorNote:
    kind = fields.text("error_type")
    if kind not in _ERROR_TYPES:
        message = f"expected one of {', '.join(_ERROR_TYPES)}; unknown is used"
        fields.add("wrong-type", message, fields.place("error_type"))
        kind = ErrorType.UNKNOWN
    return fields.convert(ErrorNote, error_type=ErrorType(kind))


def append_events(paths: ProjectPaths, *events: Event) -> None:
    """Append all events or none, durably; trials are signed with the user's key.

    Raises BadInput if a text is not valid Unicode (a lone surrogate), and Unwritable if the log cannot be written or
    is outside the project. After an error the log is unchanged.
    """
    _require_inside(paths)
    _append(paths, AppendLog(paths.events), events)


def append_assignments(paths: ProjectPaths, *events: Event) -> None:
    """Append assignments that no other process recorded since; see `append_events`."""
    _require_inside(paths)
    log = AppendLog(paths.events)
    with log.locked():
        known = _find_newest_assignments(paths, log)
        if new := [event for event in events if (event.trial and event.trial.task, event.pattern_id) not in known]:
            _append(paths, log, new)


def _find_newest_assignments(paths: ProjectPaths, log: AppendLog) -> set[tuple[str, str]]:
    """Return task and pattern of the user's own assignments at the end of the log."""
    size = log.path.stat().st_size if log.path.is_file() else 0
    lines = log.read(max(size - _NEWEST_BYTES, 0))[0].split(b"\n")
    found = [event for line in lines if b'"assigned"' in line and (event := _read_line(line)) is not None]
    is_own = trial_key(paths.project).is_own
    return {(event.trial.task, event.pattern_id) for event in found if event.trial is not None and is_own(event)}


def _require_inside(paths: ProjectPaths) -> None:
    """Raise Unwritable if the log is outside the project or too large for more."""
    try:
        file = paths.inside(paths.relative(paths.events))
    except BadInput as error:
        raise Unwritable(str(error)) from None
    if file.is_file() and file.stat().st_size > MAX_PATTERN_BYTES:
        raise Unwritable(f"{paths.events} is larger than {MAX_PATTERN_BYTES:,} bytes; no event can be added")


def _append(paths: ProjectPaths, log: AppendLog, events: Sequence[Event]) -> None:
    try:
        if any(event.trial is not None for event in events):
            key = trial_key(paths.project)
            events = [key.sign(event) for event in events]
        lines = [msgspec.json.encode(event) for event in events]
    except UnicodeEncodeError:
        raise BadInput("a text of the event is not valid Unicode") from None
    log.append(lines)
    Origins(paths.project).add_events(events)
