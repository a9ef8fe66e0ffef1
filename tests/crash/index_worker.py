"""Brings the index of a project up to date again and again: `python -m tests.crash.index_worker PROJECT SEED`.

Between two times it changes a file or deletes the index. It prints a line after each time, and ends when it is killed.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.database import delete
from core.index.refresh import Index

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)


def write_loop(project: Path, name: str, status: str) -> Path:
    file = project / f".aiwg/ralph/loops/{name}/state.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps({"loopId": name, "status": status, "startTime": "2026-11-21T20:00:00Z"}))
    draft.replace(file)
    return file


def main() -> None:
    project, dice = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    index = Index(ProjectPaths(project), Settings(), clock=lambda: NOW)
    index.load()
    while True:
        names = [f"ralph-{sys.argv[2]}-{dice.randrange(99):08x}" for _ in range(dice.randrange(1, 30))]
        changed = [write_loop(project, name, dice.choice(("failed", "completed"))) for name in names]
        if dice.random() < 0.1:
            delete(project)
        index.refresh(changed)
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
