"""Metrics: whether lessons help, what they cost, their history (docs/metrics.md).

`dashboard` computes all figures at one moment; the other modules measure a part each. `sections` makes the rows that
the screen, the command and the exports show; their titles and notes are in `sections.yaml`.
"""

from __future__ import annotations

from typing import Final

DEFAULT_WEEKS: Final = 12  # weeks that the metrics look back and ahead
