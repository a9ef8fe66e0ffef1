"""One group of rows in a fresh process: `python -m tests.bench.child GROUP FOLDER SIZES ROW...`, JSON lines out."""

from __future__ import annotations

import sys
from math import isnan
from pathlib import Path

import msgspec

from tests.bench.place import Place, Sizes
from tests.bench.rows import ROWS

group, folder, sizes, *wanted = sys.argv[1:]
place = Place(Path(folder), msgspec.json.decode(sizes, type=Sizes))
for row in ROWS:
    if row.group == group and row.key in wanted:
        try:
            measured = row.take(place)
        except Exception as error:  # the other rows are measured all the same
            print(f"{row.key} failed: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if isnan(measured.value):
            print(f"{row.key} not measured: {measured.note}", file=sys.stderr)
            continue
        print(msgspec.json.encode([row.key, measured]).decode(), flush=True)
