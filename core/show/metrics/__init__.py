"""Metrics: effectiveness of patterns, upcoming changes, and review coverage."""

from __future__ import annotations

from typing import Final

DEFAULT_WEEKS: Final = 12  # weeks that the metrics look back and ahead
