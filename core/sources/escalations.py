"""The calls of (4) on_escalation: what `core.debug_memory.escalations` keeps is the record that somebody called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from core.records.debug_sessions import Escalation
from core.records.findings import Finding
from core.sources.debug_sessions import MAX_TEXT
from core.sources.fields import document


def read_escalation(file: str, value: Any) -> tuple[tuple[Escalation, ...], tuple[Finding, ...]]:
    """The call that one kept context tells of; none if it does not say for which session, or when.

    Args:
        file: Project-relative, of `Kind.ESCALATION`.
        value: The decoded document, of any JSON type.
    """
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    session_id, at = fields.text("session_id").strip(), fields.time("preserved_at")
    if not session_id or at is None:
        fields.add("no-escalation", "says for no session that it was escalated, or not when", fields.pointer)
        return (), tuple(findings)
    by, reason = (fields.text(name)[:MAX_TEXT] for name in ("by", "reason"))
    return (Escalation(session_id=session_id, at=at, by=by, reason=reason, file=file),), tuple(findings)


def join_escalations(calls: Iterable[Escalation]) -> dict[str, Escalation]:
    """By session: the newest call, which holds those before it; of one moment those with lower numbers are older."""
    grouped: dict[str, list[Escalation]] = {}
    for call in sorted(calls, key=lambda call: (call.at, len(call.file), call.file)):
        grouped.setdefault(call.session_id, []).append(call)
    return {id: replace(calls[-1], earlier=tuple(calls[:-1])) for id, calls in grouped.items()}
