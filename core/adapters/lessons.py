"""Identity of lessons (docs/adapters.md#lessons)."""

from __future__ import annotations

from hashlib import sha256


def lesson_id(runner: str, text: str) -> str:
    """Return the ID of a lesson; the same for texts that differ only in spaces and case."""
    normalized = f"{runner}\n{' '.join(text.split()).casefold()}"
    return f"lesson:{sha256(normalized.encode('utf-8', 'replace')).hexdigest()[:16]}"
