"""Events of hooks and people in acme-api's event log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from core.base.paths import ProjectPaths
from core.records.events import ErrorNote, ErrorType, Event, Signals
from core.sources.events import append_events
from tests.sample.loops import BY_KEY
from tests.sample.tree import Tree

BLAMED = (
    "pat-error-null-check-015",
    "pat-error-type-mismatch-003",
    "pat-error-jwt-expired-006",
    "pat-error-unique-violation-007",
    "pat-success-types-first-006",
    "pat-success-test-generation-001",
    "tmpl-async-error-handler-001",
    "tmpl-idempotency-key-002",
)
"""Patterns that one aborted session reports as harmful within minutes, although it never got them."""
BLAMING = "session-store"
"""The loop of that session."""
MISCOUNTED = "pat-error-field-required-012"
"""Agents used it more often than its record counts."""
_HOOK = "completion-hook"
_FEEDBACK = (
    ("type_safe", 9.0, True),
    ("type_safe", 7.0, True),
    ("type_safe", 4.2, True),
    ("type_safe", 2.0, False),
    ("type_safe", 1.0, True),
    ("no_file_conflicts", 9.0, False),
    ("no_file_conflicts", 4.2, True),
    ("no_file_conflicts", 2.0, False),
    ("tests_alongside", 7.0, True),
    ("tests_alongside", 1.0, None),
)
"""Criterion, days ago, helpful or not (None: neutral)."""


def write_events(tree: Tree) -> None:
    """Write the event log."""
    events = sorted(
        (*_feedback(tree), *_errors(tree), *_outcomes(tree), *_burst(tree), *_uncounted(tree)),
        key=lambda event: event.at,
    )
    append_events(ProjectPaths(tree.root), *events)
    for lock in tree.root.rglob("*.lock"):
        lock.unlink()


def _id(what: str) -> str:
    return f"event-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def _feedback(tree: Tree) -> Iterator[Event]:
    for criterion, days, success in _FEEDBACK:
        at = tree.ago(days=days)
        yield Event(
            id=_id(f"{criterion} {days}"),
            at=at,
            kind="feedback",
            criterion=criterion,
            success=success,
            by="reviewer-agent",
        )


def _errors(tree: Tree) -> Iterator[Event]:
    """Errors of the running loop on the invoice mailer; the first one is fixed."""
    loop = BY_KEY["invoice-mailer"]
    found = (
        (24.0, ErrorType.VALIDATION, "Property 'customer' is possibly null in src/mailer/invoice.ts", "tsc", ""),
        (11.0, ErrorType.TOOL_FAILURE, "jest: 2 of 31 tests fail in mailer.spec.ts", "jest", "After the null check"),
        (9.0, ErrorType.VALIDATION, "Missing import of CustomerError in src/mailer/invoice.ts", "tsc", ""),
    )
    for minutes, kind, message, tool, context in found:
        at = tree.ago(minutes=minutes)
        note = ErrorNote(error_type=kind, message=message, tool_name=tool, context=context)
        yield Event(id=_id(message), at=at, kind="error", loop_id=loop.id, by=_HOOK, error=note)
    at = tree.ago(minutes=12)
    first = _id(found[0][2])
    yield Event(id=_id("resolved"), at=at, kind="resolved", loop_id=loop.id, by=_HOOK, resolves=first)


def _outcomes(tree: Tree) -> Iterator[Event]:
    """A subtask that only the event log names."""
    at = tree.ago(days=2.5)
    signals = Signals(
        duration_ms=170_000,
        error_count=0,
        retry_count=0,
        files_touched=("src/billing/openapi.yaml",),
        strategy="file-based",
    )
    yield Event(id=_id("bd-41.2"), at=at, kind="outcome", loop_id="bd-41.2", success=True, by=_HOOK, signals=signals)


def _burst(tree: Tree) -> Iterator[Event]:
    loop = BY_KEY[BLAMING]
    for number, pattern in enumerate(BLAMED):
        at = tree.ago(days=2, minutes=40 - number)
        yield Event(
            id=_id(pattern),
            at=at,
            kind="feedback",
            pattern_id=pattern,
            loop_id=loop.id,
            success=False,
            by="session-review",
        )


def _uncounted(tree: Tree) -> Iterator[Event]:
    for number in range(4):
        yield Event(
            id=_id(f"{MISCOUNTED} {number}"),
            at=tree.ago(days=34 + 7 * number),
            kind="applied",
            pattern_id=MISCOUNTED,
            loop_id=f"bd-{30 + number}.1",
            success=True,
            by=_HOOK,
        )
