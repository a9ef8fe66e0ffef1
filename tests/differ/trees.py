"""Generated projects for the comparison of two revisions.

Each function of `TREES` writes a folder `project` and, if agents or the user have files, a folder `home` beside it.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import copy_sample, sample_anchor
from core.cli.program import run
from core.records.team import TeamSums
from core.sources.adapters.adapter_table import own_adapters
from core.sources.events import append_events
from core.sources.team_evidence import TeamEvidenceWriter
from tests.authors import be_person, have_names
from tests.bench import trees as generated
from tests.core.cli.test_json_outputs import captured
from tests.core.sources.adapters.fixtures import DAMAGES, DATA, open_case
from tests.hostile.tree import write_texts, write_types

NOW: Final = sample_anchor()
"""The time at which all projects end."""
REFERENCE: Final = Path(__file__).parents[1] / "trees"
SOURCE: Final = 20261121
"""Seed of everything random in the generated projects."""
LOOPS: Final = 300
PATTERNS: Final = 800
EVENTS: Final = 2000
FOLDERS: Final = ("STATE", "CONFIG", "CACHE", "DATA")
MOMENTS: Final = (0, 1, 45)
"""Days after `NOW` at which all lists are printed: states, snoozes and ages change with time alone."""
TASKS: Final = (
    "Fix TypeScript type errors in user validation",
    "TypeError: Cannot read properties of null (reading 'name')",
    "Speed up the report query",
    "Fix the flaky checkout test",
    "Add rate limiting to the login endpoint",
    "Refactor the session store",
    "Migrate the orders table to the new schema",
    "Document the REST endpoints",
    "Write tests for the invoice export",
    "Design the retry queue for webhooks",
    "Split the validation module into small parts and test each",
    "Fix the login test",
    "UNIQUE constraint failed: users.email",
    "jwt expired",
    "npm ERR! ERESOLVE unable to resolve dependency tree",
    "Deadlock found when trying to get lock; try restarting transaction",
    "Handle timeout of the payment webhook in src/payments/refunds.ts",
    "Add OAuth settings to AuthConfig",
    "cache query timeout null undefined type token session",
    "zebra",
)
"""Tasks whose contexts are compared."""
DECISIONS: Final = """
pattern promote pat-error-null-check-015 --reason holds
pattern promote pat-success-types-first-006 --reason "used daily"
pattern deprecate pat-error-null-check-015 --reason "hides the cause"
pattern reset pat-success-types-first-006
pattern note pat-error-type-mismatch-003 "read it again"
pattern quarantine pat-error-unique-violation-007 --reason unclear
pattern quarantine pat-error-jwt-expired-006 --reason unclear
pattern release pat-error-jwt-expired-006 --reason "read the text"
undo
undo --redo
pattern promote pat-anti-any-cast-003
undo
pattern invert pat-success-split-by-type-002 --accept
pattern merge pat-error-loop-closed-011 pat-error-event-loop-001
pattern prune pat-success-test-generation-001 --reason old
pattern prune pat-error-cors-preflight-008 --reason old
pattern prune --restore pat-success-test-generation-001
pattern invert pat-error-gateway-reset-004 --reject
review pat-error-import-cycle-013 --until 2099-01-01
review pat-anti-catch-all-006 --until {soon}
review ralph-rewrite-the-session-store-on-r-152dfe93 --suspicious --revoke --reason "one loop reports all"
loop extract ralph-set-up-contract-tests-for-the--c7dec1eb
loop extract --all
pattern export --output {root}/exported.json --team-shared
pattern import --input {root}/exported.json
pattern deprecate pat-error-decimal-json-016 tmpl-async-error-handler-001 --reason "bulk decision"
undo
loop record bd-1 pat-error-jwt-expired-006 --success
loop record bd-2 pat-error-jwt-expired-006 --failure
loop record bd-1 --outcome --success --duration 3m --errors 1
loop record bd-1 --criterion type_safe --success --value 0.5
"""
"""Commands that decide or record, one after another on the sample project; some are refused."""


class Tree(NamedTuple):
    """A generated project: whether the user's environment trusts it, the tasks that get a context, and the moments."""

    name: str
    write: Callable[[Path], None]
    is_trusted: bool = True
    tasks: tuple[str, ...] = TASKS
    moments: tuple[int, ...] = MOMENTS


def write_sample(root: Path) -> None:
    """The sample project: patterns in all states, archived loops, tasks, debug sessions, escalations, lessons."""
    with _user(root):
        copy_sample(root / "project", NOW)


def write_decided(root: Path) -> None:
    """The sample project after decisions of all kinds, undone and redone."""
    write_sample(root)
    with _user(root) as call:
        soon = (NOW + timedelta(days=20)).isoformat()
        for line in DECISIONS.strip().splitlines():
            call(*shlex.split(line.format(root=root, soon=soon)))
    (root / "exported.json").unlink()


def write_team(root: Path) -> None:
    """The sample project with the sums of a team: for known patterns, an unknown one, and results that are old."""
    write_decided(root)
    paths = ProjectPaths(root / "project")
    ids = sorted(re.findall(r'"(?:pattern|template)_id": "([^"]+)"', paths.pattern_file("error").read_text()))
    half_life, epoch = Settings().maturity.half_life_days, NOW - timedelta(days=300)
    source, sums = random.Random(SOURCE), []
    for id in (*ids, "pat-error-elsewhere-001"):
        at = NOW - timedelta(days=source.randrange(200))
        good, bad, old = source.randrange(30), source.randrange(6), source.randrange(3)
        factor = 2.0 ** ((at - epoch) / timedelta(days=half_life))
        sums.append(
            TeamSums(
                pattern_id=id,
                successes=good,
                failures=bad,
                uses=good + bad,
                helpful=good * factor,
                harmful=bad * factor,
                undecayed=min(old, good + bad),
                last_used=at,
            )
        )
    TeamEvidenceWriter(paths).update("web", epoch, half_life, sums)


def write_clone(root: Path) -> None:
    """The project of `write_team` as another user gets it: nothing is trusted, all decisions were made elsewhere."""
    write_team(root)
    shutil.rmtree(root / "home")
    for name in (".project-key", ".trust-key"):
        for file in (root / "project" / ".aiwg").rglob(name):
            file.unlink()


def write_trusted_clone(root: Path) -> None:
    """The same after the user trusted it and confirmed every third decision."""
    write_clone(root)
    with _user(root, is_trusted=False) as call:
        call("trust", "--yes")
        shown = json.loads(call("trust", "--show", "--json"))
        ids = [one["id"] for one in shown["decisions"]][::3]
        call("trust", "--yes", "--confirm", ",".join(ids))
        call("pattern", "quarantine", "pat-error-type-mismatch-003", "--reason", "unclear")


def write_damaged(root: Path) -> None:
    """The sample project in which every third file is damaged, each in another way."""
    write_decided(root)
    files = sorted(file for file in (root / "project" / ".aiwg").rglob("*.json*") if file.is_file())
    damages = {name: change for name, change in DAMAGES.items() if name not in ("huge line", "deep")}
    ways: Mapping[str, Callable[[bytes], bytes]] = damages | {
        "UTF-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
        "UTF-32": lambda data: data.decode("utf-8", "replace").encode("utf-32"),
        "Windows-1252": lambda data: data.replace(b"e", b"\xe9"),
        "duplicate keys": lambda data: data.replace(b"{", b'{"task": "first", "task": "second", ', 1),
        "the same IDs": lambda data: re.sub(rb"(pat-[a-z]+)-[a-z-]+-\d{3}", rb"\1-same-001", data),
    }
    for file, change in zip(files[::3], itertools.cycle(ways.values()), strict=False):
        file.write_bytes(change(file.read_bytes()))


def write_generated(root: Path) -> None:
    """Some hundred loops and patterns of random words, and events."""
    project = root / "project"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated, "NOW", NOW)
        generated.write_loops(project, LOOPS)
        generated.write_patterns(project, PATTERNS)
        made = tuple(generated.events(PATTERNS, EVENTS))
    with _user(root) as call:
        append_events(ProjectPaths(project), *made)
        listed = json.loads(call("pattern", "list", "--json"))["patterns"]
        ids = random.Random(SOURCE).sample(sorted(one["id"] for one in listed), 40)
        for verb, id in zip(itertools.cycle(("promote", "deprecate", "quarantine", "note")), ids, strict=False):
            call("pattern", verb, id, *(["remark"] if verb == "note" else ["--reason", "seed"]))
        call("undo")


def adapter_trees() -> Iterator[Tree]:
    """The cases of all adapters, as many in one project as have no file in common."""
    projects: list[dict[str, str]] = []
    for folder in sorted(DATA.glob("*/*")):
        files = [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]
        place = next((one for one in projects if not one.keys() & set(files)), None)
        if place is None:
            projects.append(place := {})
        place |= dict.fromkeys(files, f"{folder.parent.name}/{folder.name}")
    for number, place in enumerate(projects, start=1):
        yield Tree(f"agents-{number}", _Cases(tuple(dict.fromkeys(place.values()))), tasks=TASKS[:2])


@dataclass(frozen=True)
class _Cases:
    """Writes cases of adapters into one project with the patterns and decisions of the sample project."""

    cases: tuple[str, ...]

    def __call__(self, root: Path) -> None:
        write_sample(root)
        ralph = root / "project" / ".aiwg" / "ralph"
        for folder in [one for one in ralph.iterdir() if one.is_dir() and one.name != "shared"]:
            shutil.rmtree(folder)
        for case in self.cases:
            open_case(own_adapters()[0], case, root, now=NOW, modified_at=NOW)  # the files alone are used


@dataclass(frozen=True)
class Copied:
    """Copies a project."""

    source: Path

    def __call__(self, root: Path) -> None:
        shutil.copytree(self.source, root / "project", symlinks=True, dirs_exist_ok=True)


def write_hostile_texts(root: Path) -> None:
    """Every text field of every kind of record contains every hostile text."""
    write_texts(root / "project")


def write_hostile_types(root: Path) -> None:
    """One value at a time has a wrong type, for every kind of record."""
    write_types(root / "project")


TREES: Final = (
    Tree("sample", write_sample),
    Tree("upstream", Copied(REFERENCE / "upstream")),
    Tree("spec-examples", Copied(REFERENCE / "spec-examples")),
    Tree("decided", write_decided),
    Tree("team", write_team),
    Tree("clone", write_clone, is_trusted=False),
    Tree("trusted-clone", write_trusted_clone, is_trusted=False),
    Tree("damaged", write_damaged),
    Tree("hostile-texts", write_hostile_texts),
    Tree("hostile-types", write_hostile_types),
    Tree("generated", write_generated),
    *adapter_trees(),
)


@contextmanager
def _user(root: Path, *, is_trusted: bool = True) -> Iterator[Callable[..., str]]:
    """Run commands as a person whose home is `root/home`; each is a minute later, and the last one at `NOW`."""
    with pytest.MonkeyPatch.context() as patch:
        minutes = itertools.count(-600)

        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return (NOW + timedelta(minutes=min(next(minutes), 0))).astimezone(tz)

        patch.setattr("core.cli.support.project.datetime", Clock)
        be_person(patch)
        have_names(patch, "ada")
        patch.setenv("HOME", str(root / "home"))
        for name in FOLDERS:
            patch.setenv(f"XDG_{name}_HOME", str(root / "home" / name.lower()))
        patch.setenv("RALPHDECK_USER", "ada")
        patch.setenv("RALPHDECK_SEMANTIC", "off")
        patch.setenv("RALPHDECK_TRUSTED_PATHS", "/" if is_trusted else "")

        def call(*words: Any) -> str:
            return captured(run, [*map(str, words), "--project", str(root / "project")])[1]

        yield call
