"""Measured in a process of its own: `python -m tests.bench.child load|library PROJECT` prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from tests.bench.measures import opened, resident_mb

what, project = sys.argv[1:]
deck = opened(Path(project))
begin = time.perf_counter()
if what == "load":
    deck.load()
else:
    deck.library.load()
taken = (time.perf_counter() - begin) * 1000
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(json.dumps({"load_ms": taken, "rss_mb": resident_mb(), "peak_mb": peak}))
