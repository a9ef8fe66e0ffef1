"""Read escalations of debug sessions, saved by `core.debug_memory.escalations`.

See docs/file-formats.md#escalations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from core.records.debug_sessions import Escalation
from core.records.findings import Finding
from core.sources.debug_sessions import MAX_TEXT
from core.sources.fields import document


def read_escalation(file: str, value: Any) -> tuple[tuple[Escalation, ...], tuple[Finding, ...]]:
    """Read the escalation of one saved context; none if it has no session ID or time.

    Args:
        file: Project-relative, of kind `ESCALATION`.
        value: The decoded document, of any JSON type.
    """
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    session_id, at = fields.text("session_id").strip(), fields.time("preserved_at")
    if not session_id or at is None:
        fields.add("no-escalation", "an escalation needs session_id and preserved_at", fields.pointer)
        return (), tuple(findings)
    by, reason = (fields.text(name)[:MAX_TEXT] for name in ("by", "reason"))
    return (Escalation(session_id=session_id, at=at, by=by, reason=reason, file=file),), tuple(findings)


def join_escalations(calls: Iterable[Escalation]) -> dict[str, Escalation]:
    """The newest escalation of each session, with the earlier ones.

    At equal times the lower file number is earlier.
    """
    grouped: dict[str, list[Escalation]] = {}
    for call in sorted(calls, key=lambda call: (call.at, len(call.file), call.file)):
        grouped.setdefault(call.session_id, []).append(call)
    return {id: replace(calls[-1], earlier=tuple(calls[:-1])) for id, calls in grouped.items()}
