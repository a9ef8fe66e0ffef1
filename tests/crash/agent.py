"""An agent that writes a pattern file as other programs do: `python agent.py FILE NAME KIND`, until stdin ends.

It takes only the lock that agents share, reads the file, adds a record of its own and writes the whole file again. KIND
`rename` writes a temporary file and renames it, KIND `truncate` writes the file itself, in two halves. Prints the ID of
every record once it is written.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import sys
import time
from pathlib import Path


def add_record(path: Path, identifier: str, kind: str) -> None:
    """Read the file, add a record, write the file."""
    content = json.loads(path.read_bytes())
    content["pattern_registry"]["error_patterns"].append({"pattern_id": identifier, "usage_count": 1})
    data = json.dumps(content, indent=2).encode() + b"\n"
    if kind == "rename":
        draft = path.with_name(f"{path.name}.{identifier}.tmp")
        draft.write_bytes(data)
        draft.rename(path)
    else:
        with path.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            file.write(data[len(data) // 2 :])


def main() -> None:
    """Write until stdin ends."""
    path, name, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    chance = random.Random(name)
    number = 0
    with path.with_name("agents.lock").open("w") as lock:
        while not select.select([sys.stdin], [], [], 0)[0]:
            number += 1
            identifier = f"pat-error-{name}-{number:03d}"
            fcntl.flock(lock, fcntl.LOCK_EX)
            add_record(path, identifier, kind)
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.write(1, f"{identifier}\n".encode())
            time.sleep(chance.uniform(0.05, 0.15))


if __name__ == "__main__":
    main()
