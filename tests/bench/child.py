"""Measurements in a fresh process: `python -m tests.bench.child load|library PROJECT` prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from tests.bench.measures import open_project, resident_mb

what, project = sys.argv[1:]
opened = open_project(Path(project))
begin, cpu = time.perf_counter(), time.process_time()
if what == "load":
    opened.load()
else:
    opened.library.load()
answer = {
    "load_ms": (time.perf_counter() - begin) * 1000,
    "cpu_ms": (time.process_time() - cpu) * 1000,
    "rss_mb": resident_mb(),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
}
print(json.dumps(answer))
