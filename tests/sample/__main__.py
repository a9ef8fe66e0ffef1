"""`python -m tests.sample`: generate `sample_data/` at the date in `sample_data/anchor.txt`."""

from __future__ import annotations

import shutil
from pathlib import Path

from core.records.times import parse_time
from tests.sample import write_sample

FOLDER = Path(__file__).parents[2] / "sample_data"

anchor = parse_time((FOLDER / "anchor.txt").read_text(encoding="ascii").strip())
if anchor is None:
    raise SystemExit("sample_data/anchor.txt holds no time")
shutil.rmtree(FOLDER / ".aiwg", ignore_errors=True)
write_sample(FOLDER, anchor)
