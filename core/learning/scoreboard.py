"""All patterns' evidence and states at once, kept as arrays so that time and events cost little."""

from __future__ import annotations

from core.learning.assessment import Assessment

__all__ = ["Assessment"]
