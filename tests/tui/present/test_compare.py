from __future__ import annotations

from core.records.patterns import Maturity
from tui.present.compare import Counts, count_lines
from tui.present.glyphs import ASCII, DRAWN


def counts(*numbers: int) -> Counts:
    return dict(zip(Maturity, numbers, strict=True))


BEFORE, AFTER = counts(11, 12, 10, 7), counts(14, 12, 7, 7)
NONE, LARGE, MOVED = counts(0, 0, 0, 0), counts(100_000, 0, 0, 0), counts(0, 100_000, 0, 0)


def test_counts_before_and_after_have_glyph_word_and_number() -> None:
    lines = count_lines(BEFORE, AFTER, 60, DRAWN, short=False).plain.splitlines()
    assert [line.split("▮")[0].strip() for line in lines] == [
        "○ candidate   11 → 14 +3",
        "◐ established 12 → 12",
        "● proven      10 →  7 -3",
        "⊘ deprecated   7 →  7",
    ]
    assert [(line.count("▮"), line.count("▯")) for line in lines] == [(33, 0), (28, 0), (16, 8), (16, 0)]
    assert max(len(line) for line in lines) == 60
    short = count_lines(BEFORE, AFTER, 78, ASCII, short=True).plain.splitlines()
    assert [line.split() for line in short] == [
        ["o", "candidate", "11", "->", "14", "+3", "+", "established", "12", "->", "12"],
        ["*", "proven", "10", "->", "7", "-3", "x", "deprecated", "7", "->", "7"],
    ]


def test_counts_of_any_size_are_aligned() -> None:
    lines = count_lines(LARGE, MOVED, 60, DRAWN, short=False).plain.splitlines()
    assert len({line.index("→") for line in lines}) == 1
    assert "100,000 →       0 -100,000" in lines[0]
    assert count_lines(NONE, NONE, 60, DRAWN, short=False)
    assert "▮" not in count_lines(LARGE, MOVED, 10, DRAWN, short=False).plain
