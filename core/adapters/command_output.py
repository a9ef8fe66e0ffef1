"""Errors in the output of commands that agents ran."""

from __future__ import annotations

from typing import Final

from core.adapters.values import clip
from core.base.check_reports import COLOUR
from core.base.regexes import lazy_regex

MAX_ERROR: Final = 300  # maximum length of an error
_TAIL: Final = 8_000  # characters at the end of an output that are searched
_MAX_LINE: Final = 2_000
_NAMED: Final = lazy_regex(
    r"(?:E\s{2,}|[>×✕✗●•*-]\s+)?((?:[\w.]{0,200}(?:Error|Exception|Failure|Panic)\b|panic|fatal|error)[:(\[].*)"
)
_MENTION: Final = lazy_regex(r"(?i)\b(?:error|failed|failure|fatal|not found|cannot|denied|panicked)\b")


def find_error(output: str) -> str:
    """Return the last line that names an error, else one that mentions a failure, else the last one."""
    lines = [line for line in map(str.strip, _lines(output)) if line]
    named = next((found[1] for line in reversed(lines) if (found := _NAMED.match(line))), "")
    if not named:
        named = next((line for line in reversed(lines) if _MENTION.search(line[:MAX_ERROR])), "")
    return clip(named or (lines[-1] if lines else ""), MAX_ERROR)


def _lines(output: str) -> list[str]:
    return [line[:_MAX_LINE] for line in COLOUR.sub("", output[-_TAIL:]).splitlines()]
