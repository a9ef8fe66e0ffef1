"""The event log `shared/curation/events.jsonl`, line by line (semantics 1, source 1)."""

from __future__ import annotations

from datetime import UTC
from typing import Final

import msgspec

from core.records.events import Event
from core.records.findings import Finding, Severity
from core.sources.fields import Fields, document
from core.sources.reading import decode_json

KINDS: Final = frozenset({"injected", "applied", "extracted", "outcome", "feedback"})
_decoder: Final = msgspec.json.Decoder(Event)


def read_events(file: str, data: bytes) -> tuple[tuple[Event, ...], tuple[Finding, ...]]:
    """The events of all complete lines, in the order of the file, and what is wrong with the others.

    An id that occurs again is the same event written twice; the first one counts.
    """
    events: dict[str, Event] = {}
    findings: list[Finding] = []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        event = _read_line(line) or _read_loosely(file, place, line, findings)
        if event is None:
            continue
        if event.id in events:
            message = "an event with this id was read before; not counted again"
            findings.append(Finding(file, place, Severity.WARNING, "duplicate-id", message))
        else:
            events[event.id] = event
    return tuple(events.values()), tuple(findings)


def _read_line(line: bytes) -> Event | None:
    """The event of a line as ralphdeck writes it; None where anything about it is unusual."""
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    usual = event.at.tzinfo is UTC and event.kind in KINDS and 0 <= event.weight <= 1 and event.id
    return event if usual else None


def _read_loosely(file: str, place: str, line: bytes, findings: list[Finding]) -> Event | None:
    decoded = decode_json(line)
    findings += (Finding(file, place, p.severity, p.code, p.message) for p in decoded.problems)
    if decoded.failed:
        return None
    wrong: list[Finding] = []
    fields = document(file, decoded.value, wrong)
    event = _event(fields) if fields is not None else None
    findings += (Finding(file, place, f.severity, f.code, _at(f)) for f in wrong)
    return event


def _at(finding: Finding) -> str:
    """The message with the field in front, since the place of a line names no field."""
    return f"{finding.pointer.removeprefix('/')}: {finding.message}" if finding.pointer else finding.message


def _event(fields: Fields) -> Event | None:
    identifier, at, kind = fields.text("id"), fields.time("at"), fields.text("kind")
    if not identifier or at is None or kind not in KINDS:
        message = f"an event needs an id, a time `at` and a kind of {', '.join(sorted(KINDS))}; not counted"
        fields.add("bad-event", message, "", Severity.ERROR)
        return None
    weight = fields.number("weight")
    if weight is not None and not 0 <= weight <= 1:
        fields.add("out-of-range", "expected a weight from 0 to 1; 1 is taken", "/weight")
        weight = None
    return Event(
        id=identifier,
        at=at,
        kind=kind,
        pattern_id=fields.text("pattern_id"),
        loop_id=fields.text("loop_id"),
        success=fields.flag("success"),
        weight=1.0 if weight is None else weight,
        iteration=fields.count("iteration"),
        by=fields.text("by"),
    )
