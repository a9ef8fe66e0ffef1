"""Compare what two revisions print about a project, each with an empty and with a warm cache."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.differ.trees import FOLDERS, NOW, Tree

ROOT: Final = Path(__file__).parents[2]
DRIVER: Final = Path(__file__).with_name("driver.py")
PRESENT: Final = "present"
TOLERANCE: Final = 1e-9
"""Relative difference of fractions that counts as none: sums in another order differ in their last digits."""
MAX_SHOWN: Final = 6
"""Differences that are printed of one command."""
MAX_VALUE: Final = 160
"""Characters of a value in a difference."""


class Printed(NamedTuple):
    """What one command printed: its exit code, its JSON or text, and its messages."""

    code: int
    output: Any
    errors: str


Outputs = Mapping[str, Printed]
"""By command and moment."""


class Place:
    """Folder in which one project at a time is restored, so that all its paths are the same for each revision."""

    def __init__(self, folder: Path) -> None:
        self._kept = folder / "kept"
        self.root = folder / "root"

    def write(self, tree: Tree) -> None:
        """Generate a project and keep a copy of it; its user has an empty cache."""
        self._clear()
        (self.root / "project").mkdir(parents=True)
        tree.write(self.root)
        shutil.rmtree(self.root / "home" / "cache", ignore_errors=True)
        shutil.rmtree(self._kept, ignore_errors=True)
        self.root.rename(self._kept)

    def restore(self) -> None:
        """Put the files of the copy in place, with their times."""
        self._clear()
        shutil.copytree(self._kept, self.root, symlinks=True)

    def _clear(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def compare(place: Place, tree: Tree, codes: Mapping[str, Path]) -> dict[str, Outputs]:
    """Return what each revision prints about a project: first with an empty cache, then with a warm one.

    `codes` are the folders of the revisions' code by name.
    """
    place.write(tree)
    found: dict[str, Outputs] = {}
    for name, code in codes.items():
        place.restore()
        for cache, part in (("cold", "commands"), ("warm", "commands"), ("warm", "hooks")):
            outputs = run_driver(place.root, code, tree, part)
            found[f"{name} {cache}"] = {**found.get(f"{name} {cache}", {}), **outputs}
    return found


def run_driver(root: Path, code: Path, tree: Tree, part: str) -> Outputs:
    """Run the commands or the hooks of a revision in a process of its own; CalledProcessError if that fails."""
    home = root / "home"
    home.mkdir(exist_ok=True)
    project = str(root / "project")
    spec: dict[str, Any] = {"project": project, "root": str(root), "now": NOW.isoformat(), "part": part}
    spec |= {"tasks": tree.tasks, "moments": tree.moments}
    file = root / "spec.json"
    file.write_text(json.dumps(spec))
    environment = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")},
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in FOLDERS},
        "HOME": str(home),
        "PYTHONPATH": str(code),
        "RALPHDECK_READONLY": "" if part == "hooks" else "1",
        "RALPHDECK_SEMANTIC": "off",
        "RALPHDECK_TRUSTED_PATHS": "/" if tree.is_trusted else "",
        "RALPHDECK_USER": "ada",
        "TERM": "xterm",
    }
    arguments = [sys.executable, "-P", str(DRIVER), str(file)]
    done = subprocess.run(arguments, cwd=root / "project", env=environment, stdout=subprocess.PIPE, check=True)
    outputs = {}
    for one in map(json.loads, done.stdout.splitlines()):
        after = f" (after {one['moment']} days)" if one["moment"] else ""
        outputs[one["command"] + after] = Printed(one["code"], one["output"], one["errors"])
    return outputs


def differences(found: Mapping[str, Outputs]) -> Iterator[str]:
    """Describe where outputs differ from the first ones that have the command.

    The same difference of several outputs or commands is one line, which names the first command.
    """
    named: dict[str, list[str]] = {}
    for command in dict.fromkeys(command for outputs in found.values() for command in outputs):
        (_, expected), *others = [(name, outputs[command]) for name, outputs in found.items() if command in outputs]
        lines: dict[str, list[str]] = {}
        for name, printed in others:
            for line in plain_differences(expected._asdict(), printed._asdict()):
                lines.setdefault(line, []).append(name)
        for line, names in list(lines.items())[:MAX_SHOWN]:
            named.setdefault(f"{line} [{', '.join(names)}]", []).append(command)
        if len(lines) > MAX_SHOWN:
            named.setdefault(f"{len(lines) - MAX_SHOWN} more", []).append(command)
    for line, commands in named.items():
        more = f" and {len(commands) - 1} more" if len(commands) > 1 else ""
        yield f"{commands[0]}{more}: {line}"


def plain_differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Describe where two JSON values differ; records in lists are compared by their IDs."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected.keys() | found.keys():
            if key not in found:
                yield f"{path}.{key} is missing: {_shortened(expected[key])}"
            elif key not in expected:
                yield f"{path}.{key} is new: {_shortened(found[key])}"
            else:
                yield from plain_differences(expected[key], found[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        by_id, found_by_id = _by_id(expected), _by_id(found)
        if by_id is not None and found_by_id is not None:
            if by_id.keys() == found_by_id.keys() and [*by_id] != [*found_by_id]:
                yield f"{path} has another order"
            yield from plain_differences(by_id, found_by_id, path)
        else:
            if len(expected) != len(found):
                yield f"{path} has {len(found)} items, not {len(expected)}"
            for number, (one, other) in enumerate(zip(expected, found, strict=False)):
                yield from plain_differences(one, other, f"{path}[{number}]")
    elif type(expected) is type(found) and (expected == found or _is_close(expected, found)):
        return
    elif isinstance(expected, str) and isinstance(found, str):
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(expected, found, strict=False))
        start = max(0, len(list(same)) - MAX_VALUE // 4)
        yield f"{path} is {_shortened(found[start:])}, not {_shortened(expected[start:])}"
    else:
        yield f"{path} is {_shortened(found)}, not {_shortened(expected)}"


def _is_close(expected: Any, found: Any) -> bool:
    return isinstance(expected, float) and math.isclose(expected, found, rel_tol=TOLERANCE)


def _by_id(records: list[Any]) -> dict[str, Any] | None:
    """Records by ID, or None if they have none or two have the same."""
    found = {one["id"]: one for one in records if isinstance(one, dict) and isinstance(one.get("id"), str)}
    return found if len(found) == len(records) else None


def _shortened(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
