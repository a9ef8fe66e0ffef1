from __future__ import annotations

from core.forecast.forecast import BulkForecast, ContextChange, Forecast
from core.records.patterns import Maturity
from tui.present.bulk import preview, progress
from tui.present.glyphs import ASCII, DRAWN


def changed(kind: str) -> ContextChange:
    return ContextChange(kind, "id", "title", "before", "after", (1, 2))


FORECAST = BulkForecast(
    asked=2000,
    decided=1990,
    refused=(("it is already deprecated", 7), ("\x1b[31m", 1), ("a", 1), ("b", 1)),
    turned=((Maturity.PROVEN, Maturity.DEPRECATED, 1500),),
    effect=Forecast(
        loops=4,
        paused=1,
        tasks=20,
        changed=tuple(map(changed, ["loop"] * 2 + ["paused"] + ["task"] * 5)),
        tokens=(6650, 6412),
    ),
)


def test_the_preview_lists_changes_skipped_patterns_and_recipients() -> None:
    text = preview(FORECAST, DRAWN).plain
    assert "1,500 of 2,000 patterns change state, 490 keep the state" in text
    assert "1,500  ● proven → ⊘ deprecated" in text
    assert "10 skipped" in text and "7  it is already deprecated" in text and "1  for other reasons" in text
    assert "injected text changes for 2 of 4 running loops and 5 of the last 20 tasks" in text
    assert "1 of 1 paused loop on resume" in text
    assert "6,650 → 6,412" in text
    assert "\x1b" not in text
    assert "* proven -> x deprecated" in preview(FORECAST, ASCII).plain
    assert "Computing" in preview(None, DRAWN).plain


def test_the_progress_bar_fills_and_the_write_is_reported() -> None:
    assert progress(500, 2000, ASCII).plain == f"{'#' * 10}{'-' * 30}  500 of 2,000"
    assert "writing" in progress(2000, 2000, ASCII).plain
    assert progress(0, 2000, ASCII).plain.endswith("  reading…"), "no pattern is done while files are read"
