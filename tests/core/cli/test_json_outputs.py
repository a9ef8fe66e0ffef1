"""Every `--json` output of the sample project is what it was when the baseline was recorded.

Keys, types and values must be equal (fractions to 1 %); of prose (`PROSE`) only the type. To record a new baseline:

    python -m tests.core.cli.test_json_outputs
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

import click
import pytest

from core.cli.command_table import GroupPlace
from core.cli.json.documents import DOCUMENTS, json_help
from core.cli.json.wire import Wire, fields_of
from core.cli.program import cli
from tests.authors import be_person, have_names
from tests.fence_token import fix_fence_token

BASELINE: Final = Path(__file__).with_name("json_outputs.jsonl")
"""One line a command: {command, code, output}."""
ROOT: Final = Path(__file__).parents[3]
CLOCKS: Final = ("core.cli.support.project",)
"""Modules that read the clock."""

PATTERN: Final = "pat-error-null-check-015"
OTHER: Final = "pat-success-types-first-006"
DUE: Final = "pat-success-split-by-type-002"
LOOP: Final = "ralph-document-the-rest-endpoints-of-bfda210c"
RUNNING: Final = "ralph-add-rate-limiting-to-the-login-d97b384a"
PASSED: Final = "ef884591-abb7-4ff3-a97c-12f64e6a6e81"
ESCALATED: Final = "1a80442f-019a-481f-85ba-ed4f4116acb3"

SCENARIOS: Final[dict[str, Sequence[str]]] = {
    "read": (
        "loop list",
        "loop list --status running,paused",
        "loop list --archived",
        f"loop show {LOOP}",
        "pattern list",
        "pattern list --type error,anti --min-success-rate 0.8 --sort uses",
        "pattern list --state held,quarantine",
        f"pattern list --as-of 2026-11-15 --from-loop {LOOP}",
        *(f"pattern show {one}" for one in (PATTERN, OTHER, DUE, "tmpl-frozen-clock-003")),
        f"pattern show {PATTERN} --as-of 7d",
        "pattern merge --threshold 0.6",
        "pattern prune --dry-run --max-age-days 1",
        "pattern list --archived",
        "pattern export --output {folder}/exported.json --team-shared",
        "pattern merge pat-error-loop-closed-011 pat-error-event-loop-001 --dry-run",
        "doctor --repair",
        "lesson --reflections",
        "lesson --reflections --kind strategy-change --limit 3",
        "lesson --recurring",
        "lesson",
        "review --conflicts",
        'loop inject --task "Fix TypeScript type errors in user validation"',
        'loop inject --task "Speed up the report query" --top-k 3 --types error,anti',
        f"loop inject {RUNNING} --no-record",
        f"loop extract {LOOP} --dry-run",
        "loop extract task-001 --dry-run",
        "loop extract --all --dry-run",
        "review",
        "review --minutes 12",
        "review pat-success-split-by-type-002",
        "review --kind inversion --limit 1",
        "check",
        "experiment",
        "cost",
        "compile agents-md cursor skills --check",
        "scan {project}/.aiwg/ralph/shared/patterns/error-patterns.json",
        "pattern invert",
        "log",
        "log --limit 3 --verb promote",
        "log --verify",
        "log --head",
        *(f"pattern show {one} --why" for one in (PATTERN, OTHER, DUE)),
        "loop score",
        "loop score task-001.2",
        "loop score --criteria",
        f"loop score {RUNNING} --errors --all",
        "review --suspicious",
        "metrics",
        "metrics --weeks 4",
        "changes --thresholds",
        "changes maturity.half_life_days=30",
        "changes --since 30d",
        "changes --since 2026-11-01 --until 2026-11-15",
        "metrics --reviewer",
        "metrics --reviewer imre",
        "doctor",
        "task list",
        "task list --open",
        "task list --similar task-001",
        'task list --similar "Fix the flaky checkout test"',
        "metrics --tasks",
        "task show task-001",
        "task show task-001 --attempt 2",
        "task show task-001 --reflections",
        "task show task-001 --replay --attempt 2",
        "task show task-002 --replay --errors",
        "search flaky",
        "search types --in reflections --limit 2",
        "debug list",
        "debug list --status escalated",
        f"debug show {PASSED}",
        f"debug show {ESCALATED}",
        "debug list --error-type TypeError",
        "debug list --templates null_undefined_access --min-effectiveness 0",
        "debug list --escalated",
        "debug list --causes",
        "debug failure --error-type TypeError --message \"Cannot read property 'id' of null\"",
        f"debug failure --session {ESCALATED}",
        f"debug record {PASSED} --success --dry-run",
        "debug archive --dry-run",
        "debug list --archived",
    ),
    "decide": (
        f"pattern promote {PATTERN} --dry-run",
        f"pattern promote {PATTERN} --reason holds",
        f"pattern promote {PATTERN}",
        f"pattern promote {PATTERN} {OTHER}",
        f"pattern deprecate {PATTERN} {OTHER} --reason old",
        f"pattern reset {PATTERN}",
        f"pattern note {PATTERN} remark",
        f"pattern quarantine {PATTERN} --reason unclear",
        f"pattern release {PATTERN}",
        "undo",
        "undo --redo",
        f"review {DUE} --until 2099-01-01",
        f"pattern invert {DUE} --accept --dry-run",
        f"pattern invert {DUE} --reject",
        "pattern invert --auto",
        "pattern merge pat-error-loop-closed-011 pat-error-event-loop-001",
        f"pattern prune {OTHER} --reason old",
        f"pattern prune --restore {OTHER}",
        "pattern prune --max-age-days 1",
        "log --limit 30",
        "log --verify",
    ),
    "import": (
        "pattern import --input {folder}/exported.json --dry-run",
        "pattern import --input {folder}/exported.json",
        "pattern list --state held,quarantine",
    ),
    "record": (
        f"loop record {RUNNING} {PATTERN} --success",
        f"loop record bd-1 {PATTERN}",
        "loop record bd-1 --criterion type_safe --success --value 0.5",
        "loop record bd-1 --outcome --success --dry-run --duration 3m --errors 1",
        f"loop record {RUNNING} --outcome --failure --failure-mode timeout",
        f'loop record {RUNNING} --error "Type error in src/auth.ts" --tool typecheck',
        "loop score --criteria type_safe=0.9 fast=40%",
        f"loop score {RUNNING}",
        "changes learning.half_life_days=10",
        f"loop inject {RUNNING}",
        f"loop extract {LOOP}",
        "loop extract --all",
        "review --suspicious",
    ),
    "tasks": (
        'task init "Fix the flaky checkout test" --id task-900 --criteria green',
        "task start task-900 --approach direct --no-similar",
        "task log task-900 --type bash --tool Bash --failure --error red",
        "task complete task-900 --failure --reason red --suggest isolate",
        'task reflect task-900 --learning "isolate the test" --observation red',
        "task start task-900 --no-similar",
        "task complete task-900 --pause",
        "task complete task-900 --success --done",
        "task show task-900",
        "search isolate",
    ),
    "sessions": (
        f"debug record {PASSED} --success --applied {PATTERN}",
        f"debug record {ESCALATED} --escalate --reason credentials",
        "debug list --escalated",
        "debug archive",
        "debug list --archived",
        "debug archive --restore 991606f9-a5b6-4ef0-ac32-f54504fd0236",
    ),
}
"""Commands by the state of the project: those of one scenario run one after another on the same copy."""

PROSE: Final[dict[str, frozenset[str]]] = {
    name: frozenset(keys.split())
    for name, keys in {
        "": "liveness_reason meaning message nothing question reasoning refused summary takeaway trace warnings",
        "changes": "because label text",
        "check": "text",
        "debug failure": "text",
        "debug record": "missing",
        "doctor": "area name text verdict",
        "loop extract": "missing",
        "task show (?!.*--replay)": "reason",
        "loop inject": "reason",
        "log --verify": "what",
        "metrics": "label parts title",
        "pattern import": "why",
        "pattern prune --(?!restore)": "reason",
        "pattern show": "text",
        "pattern show .*--why": "decided_by",
        "pattern promote": "why",
        "review(?!.*--until)": "reason",
        "task list": "open_reason",
    }.items()
}
"""Keys of sentences that people read, by a pattern for the beginning of the command; "" holds for all."""
VARYING: Final = frozenset({"hash", "imported", "median_ms", "project", "slowest_ms", "slowest_task"})
"""Keys whose values are random, or times that reading took."""
_RANDOM_ID: Final = re.compile(r"\d{8}T\d{6,12}-[0-9a-f]{8,32}")


def normal(value: Any, command: str, folder: Path, key: str = "") -> Any:
    """A JSON value without random ids, paths of this run, and the wording of sentences."""
    prose = (keys for name, keys in PROSE.items() if re.match(name, command))
    if key in VARYING or (isinstance(value, str) and any(key in keys for keys in prose)):
        return type(value).__name__
    if isinstance(value, dict):
        return {name: normal(item, command, folder, name) for name, item in value.items()}
    if isinstance(value, list):
        value = sorted(value, key=lambda one: one["name"]) if key == "thresholds" else value
        return [normal(item, command, folder, key) for item in value]
    return _RANDOM_ID.sub("ID", value).replace(str(folder), "FOLDER") if isinstance(value, str) else value


_ENVIRONMENT: Final = {
    "RALPHDECK_USER": "ada",
    "RALPHDECK_SEMANTIC": "off",
    "RALPHDECK_TRUSTED_PATHS": "/",
    "TERM": "xterm",
}


def outputs(folder: Path) -> Iterator[dict[str, Any]]:
    """Run all scenarios below an empty folder; one line of the baseline for each command."""
    from core.cli.demo.sample import copy_sample, sample_anchor
    from core.cli.program import run

    anchor = sample_anchor()

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return anchor.astimezone(tz)

    with pytest.MonkeyPatch.context() as patch:
        for name in CLOCKS:
            patch.setattr(f"{name}.datetime", Clock)
        for name in ("HOME", *(f"XDG_{kind}_HOME" for kind in ("STATE", "CONFIG", "CACHE", "DATA"))):
            patch.setenv(name, str(folder / "home"))
        be_person(patch)
        have_names(patch, "ada")
        for name, value in _ENVIRONMENT.items():
            patch.setenv(name, value)
        for name in ("RALPHDECK_PROJECT", "RALPHDECK_AGENT", "TMUX", "NO_COLOR", "COLUMNS", "COLORTERM"):
            patch.delenv(name, raising=False)
        for scenario, commands in SCENARIOS.items():
            project = folder / scenario / "acme-api"
            copy_sample(project, anchor)
            for path in project.rglob("*"):
                os.utime(path, (anchor.timestamp(), anchor.timestamp()))
            for command in commands:
                words = shlex.split(command.format(folder=folder, project=project))
                where = [] if words[0] in {"scan"} else ["--project", str(project)]
                code, text = captured(run, [*words, "--json", *where])
                document = json.loads(text) if text.startswith("{") else text
                yield {"command": f"{scenario}: {command}", "code": code, "output": normal(document, command, folder)}


def captured(run: Any, words: list[str]) -> tuple[int, str]:
    """Exit code and stdout of one command."""
    raw = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(raw, "utf-8")) as out, contextlib.redirect_stderr(io.StringIO()):
        code = run(words)
        out.flush()
    return code, raw.getvalue().decode()


def lines(folder: Path) -> list[str]:
    """The baseline as these commands would write it."""
    return [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in outputs(folder)]


def differences(found: Any, expected: Any, path: str = "") -> Iterator[str]:
    """Where two values differ; computed numbers may differ by 1 %, because scipy replaced approximations."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in found.keys() | expected.keys():
            if key in found and key in expected:
                yield from differences(found[key], expected[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} is {'missing' if key in expected else 'new'}"
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for number, pair in enumerate(zip(found, expected, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif (
        isinstance(found, float)
        and isinstance(expected, float)
        and math.isclose(found, expected, rel_tol=0.01, abs_tol=0.001)
    ):
        return
    elif (type(found), found) != (type(expected), expected):
        yield f"{path}: {found!r}, expected {expected!r}"


_RECORDED: Final = BASELINE.read_text("utf-8") if BASELINE.exists() else ""
EXPECTED: Final = {one["command"]: one for one in map(json.loads, _RECORDED.splitlines())}


@pytest.mark.slow
def test_outputs_equal_the_baseline(tmp_path: Path) -> None:
    printed = {one["command"]: one for one in outputs(tmp_path)}
    assert printed.keys() == EXPECTED.keys()
    changed = {name: list(differences(printed[name], expected)) for name, expected in EXPECTED.items()}
    assert {name: found for name, found in changed.items() if found} == {}


def json_command(line: str) -> str:
    """The present name of the command of a line of the baseline, e.g. `loop list`."""
    words = shlex.split(line.partition(": ")[2])
    return " ".join(words[: 2 if isinstance(cli.places[words[0]], GroupPlace) else 1])


def undocumented(value: Any, struct: type[Wire], path: str = "") -> Iterator[str]:
    """The keys of a document that its Struct does not have, and the reverse."""
    fields = {field.name: field for field in fields_of(struct)}
    yield from (f"{path}.{name}" for name in fields.keys() ^ value.keys())
    for name in fields.keys() & value.keys():
        items = value[name] if isinstance(value[name], list) else [value[name]]
        for item in items if fields[name].structs else ():
            if isinstance(item, dict):
                found = [list(undocumented(item, one, f"{path}.{name}")) for one in fields[name].structs]
                yield from min(found, key=len)


def test_outputs_have_the_documented_keys() -> None:
    for command, expected in EXPECTED.items():
        name = json_command(command)
        structs = [struct for known, struct in DOCUMENTS.items() if re.match(rf"{name}($|[ ,])", known)]
        assert [] in [list(undocumented(expected["output"], struct)) for struct in structs], command


def test_every_command_with_json_documents_its_keys() -> None:
    context = click.Context(cli, info_name="ralphdeck")
    for name in cli.list_commands(context):
        group = cli.get_command(context, name)
        inner = group.list_commands(context) if isinstance(group, click.Group) else [""]
        for path in (f"{name} {one}".strip() for one in inner):
            command = group.get_command(context, path.split()[1]) if isinstance(group, click.Group) else group
            assert command is not None
            if any(parameter.name == "as_json" for parameter in command.params):
                text = json_help(path)
                assert text is not None and text.startswith("JSON: {"), path
                assert " ".join(text.split()) in " ".join(
                    command.get_help(click.Context(command, context, path)).split()
                )


if __name__ == "__main__":
    fix_fence_token()
    with tempfile.TemporaryDirectory() as scratch:
        BASELINE.write_text("".join(f"{one}\n" for one in lines(Path(scratch))), "utf-8")
