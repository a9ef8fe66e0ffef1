"""One-line descriptions of what questions are about."""

from __future__ import annotations

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import Pin
from core.records.extractions import Extraction


def call_text(call: Escalation) -> str:
    """Why a person was called, and by whom, in one line: `needs credentials — by ada`."""
    by = f"by {visible_line(call.by, 40) or 'unknown'}"
    return f"{visible_line(call.reason, 200)} — {by}" if call.reason else f"called {by}"


def stuck_text(session: DebugSession) -> str:
    """What an escalated session could not fix, in one line."""
    run = session.newest_failing
    if run is None:
        return "no failed run is recorded"
    failure = run.failures[0]
    more = f", and {plural(len(run.failures) - 1, 'further failure')}" if len(run.failures) > 1 else ""
    error = f"{failure.error_type}: {failure.message}".strip(": ")
    return visible_line(error or failure.test_name or "unnamed failure", 160) + more


def offer_text(offer: Extraction) -> str:
    """One line: `3 patterns to extract, 1 further use of known ones`."""
    new, further = len(offer.new), len(offer.merges)
    parts = [f"{plural(new, 'pattern')} to extract"] if new else []
    parts += [f"{plural(further, 'further use')} of known ones"] if further else []
    return ", ".join(parts)


def decided(pin: Pin) -> str:
    """Who decided what and when."""
    return f"{pin.verb} by {visible_line(pin.by, 40)} on {format_day(pin.at)}"
