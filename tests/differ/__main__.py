"""Compare what this code and another revision print about projects: `python -m tests.differ REVISION [PROJECT ...]`.

Prints all differences, and nothing if there are none. The exit code is 1 with differences, else 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.differ.comparison import PRESENT, ROOT, Outputs, Place, compare, differences
from tests.differ.trees import TREES, Copied, Tree


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differ", description=__doc__)
    parser.add_argument("revision", help=f"Git revision to compare with; {PRESENT!r} compares only the caches")
    parser.add_argument("projects", nargs="*", type=Path, metavar="PROJECT", help="folder with a folder .aiwg")
    parser.add_argument("--only", action="append", metavar="NAME", help="only projects whose name starts so")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write all outputs as JSON, one file a project")
    options = parser.parse_args()
    trees = [*TREES, *(Tree(project.resolve().name, Copied(project.resolve())) for project in options.projects)]
    count = 0
    with tempfile.TemporaryDirectory(prefix="differ-") as folder, _checked_out(options.revision) as code:
        codes = {PRESENT: ROOT} if code is None else {options.revision: code, PRESENT: ROOT}
        for tree in trees:
            if options.only and not tree.name.startswith(tuple(options.only)):
                continue
            begin = time.perf_counter()
            found = compare(Place(Path(folder)), tree, codes)
            if options.save:
                _save(options.save, tree.name, found)
            for line in differences(found):
                count += 1
                print(f"{tree.name}: {line}", flush=True)  # noqa: T201
            commands = sum(map(len, found.values()))
            print(f"{tree.name}: {commands} outputs, {time.perf_counter() - begin:.0f} s", file=sys.stderr)  # noqa: T201
    return 1 if count else 0


@contextmanager
def _checked_out(revision: str) -> Iterator[Path | None]:
    """The code of a revision in a temporary Git work tree; None for the present code alone."""
    if revision == PRESENT:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="differ-code-") as folder:
        code = Path(folder) / "code"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", str(code), revision], cwd=ROOT, check=True)
        try:
            yield code
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(code)], cwd=ROOT, check=True)


def _save(folder: Path, name: str, found: dict[str, Outputs]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for label, outputs in found.items():
        file = folder / f"{name} {label.replace('/', '-')}.json"
        document = {command: printed._asdict() for command, printed in outputs.items()}
        file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
