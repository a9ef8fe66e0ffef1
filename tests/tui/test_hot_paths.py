"""What hooks and short commands import: every tool call and every prompt of an agent waits for it.

Each path runs once, in a sample project that was opened before. The packages that it may import are its contract:
before adding one, import it only where a rare branch needs it, or measure its cost: `python -m tests.bench --only
imports`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from tests.conftest import WriteSample
from tests.core.cli.conftest import ROOT
from tests.factories import NOW

_EVENT: Final = {"session_id": "s", "tool_use_id": "call-2", "tool_name": "Bash", "tool_input": {"command": "make"}}
_PARTS: Final = (
    "agents.hooks",
    "agents.mcp_server",
    "base.scanning",
    "cli.demo",
    "questions.extraction",
    "show.metrics",
    "show.pages",
    "sources.adapters",
)
"""Packages in rooms that a path names apart from the room, because they take long to import."""
_ENTRY: Final = "base cli files records trust"
_TASKS: Final = f"{_ENTRY} sources tasks"
_LISTS: Final = f"{_ENTRY} base.scanning index learning project sources"
_INDEX: Final = f"{_LISTS} retrieval tasks"  # what writes the index, also where nothing has changed
_PLAIN: Final = "msgspec platformdirs"
_LIGHT: Final = f"{_PLAIN} typing_extensions click"
_ARRAYS: Final = f"{_LIGHT} numpy"
_SCAN: Final = f"{_ARRAYS} re2 rapidfuzz"


class HotPath(Struct, frozen=True):
    """A command with its event, and the packages of `core` and of others that it may import."""

    words: str
    core: str
    others: str = _LIGHT
    event: Mapping[str, object] = {}
    never: str = ""  # modules of the standard library that take long, and modules of allowed packages


_UNUSED_BY_HOOKS: Final = "difflib html logging secrets shutil socket sqlite3 statistics subprocess tempfile tomllib"
_HOOK: Final = "hook --agent claude"
PATHS: Final = {
    "a tool call": HotPath(
        _HOOK,
        f"{_TASKS} agents agents.hooks",
        _PLAIN,
        {**_EVENT, "hook_event_name": "PostToolUse"},
        never=f"{_UNUSED_BY_HOOKS} inspect core.base.settings core.base.secret_patterns core.cli.json",
    ),
    "a prompt": HotPath(
        _HOOK,
        f"{_INDEX} agents agents.hooks",
        f"{_PLAIN} numpy re2 rapidfuzz",
        {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Fix the type errors of the login"},
        "scipy difflib html logging tomllib core.project.project core.cli.json",
    ),
    "the end of a turn": HotPath(
        _HOOK,
        f"{_TASKS} agents agents.hooks base.scanning learning sources.adapters",
        _PLAIN,
        {"session_id": "s", "hook_event_name": "Stop"},
        never="html logging shutil socket sqlite3 statistics tempfile tomllib",
    ),
    "task log": HotPath(
        "task log task-1 --type bash --tool Bash --success", _TASKS, never=f"{_UNUSED_BY_HOOKS} core.base.settings"
    ),
    "pattern list": HotPath(
        "pattern list",
        f"{_INDEX} show show.pages",
        _ARRAYS,
        never="scipy html logging tomllib core.cli.json",
    ),
    "pattern show": HotPath(
        "pattern show pat-error-type-mismatch-003",
        f"{_INDEX} agents decisions show show.metrics show.pages sources.adapters",
        f"{_ARRAYS} rich",
        never="scipy core.project.project core.cli.json core.retrieval.injection",
    ),
    "loop list": HotPath(
        "loop list",
        f"{_INDEX} show show.metrics show.pages sources.adapters",
        _ARRAYS,
        never="scipy difflib core.cli.json core.sources.adapters.claude core.sources.adapters.codex"
        " core.sources.adapters.frankbria",
    ),
    "loop inject": HotPath(
        "loop inject --task Fix",
        f"{_INDEX} agents sources.adapters",
        _SCAN,
        never="scipy difflib html logging tomllib core.project.project core.sources.adapters.collector",
    ),
    "pattern promote": HotPath(
        "pattern promote pat-error-null-check-015 --by ada",
        f"{_INDEX} agents decisions questions questions.extraction show show.metrics sources.adapters",
        _SCAN,
        never="scipy core.sources.adapters.collector core.questions.extraction.engine core.cli.json core.show.pages",
    ),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, write_sample: WriteSample) -> Path:
    """The sample project with a session and a task in which an attempt is open, and with its index."""
    project = tmp_path_factory.mktemp("hot") / "shop"
    write_sample(project, NOW)
    run(project, HotPath("task init Fix --id task-1", ""))
    run(project, HotPath("task start task-1", ""))
    for name, fields in (("UserPromptSubmit", {"prompt": "Fix the login"}), ("PostToolUse", {"tool_use_id": "call-1"})):
        run(project, HotPath(_HOOK, "", event={**_EVENT, "hook_event_name": name, **fields}))
    run(project, HotPath("pattern list", ""))
    return project


def run(project: Path, path: HotPath) -> set[str]:
    """Run a command in a new process; returns the names of the modules that it has imported."""
    names = project.with_name("modules")
    code = (
        f"import os, sys\nos._exit = sys.exit  # a hook ends so\nsys.argv[1:] = {path.words.split()!r}\n"
        "from tui.__main__ import main\ntry:\n    main()\n"
        f"finally:\n    open({str(names)!r}, 'w').write(' '.join(sys.modules))"
    )
    event = json.dumps({"cwd": str(project), **path.event}).encode()
    environment = os.environ | {"RALPHDECK_PROJECT": str(project)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, input=event, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return set(names.read_text(encoding="utf-8").split())


def package(module: str) -> str:
    """`core.x` for a module of a room or of one of `_PARTS`, else its first name; "" for the standard library."""
    first, _, rest = module.partition(".")
    if first == "core":
        part = next((part for part in _PARTS if f"{rest}.".startswith(f"{part}.")), rest.partition(".")[0])
        return f"core.{part}" if part else ""
    return "" if first in sys.stdlib_module_names or first.startswith("_") or find_spec_of(first) is None else first


def find_spec_of(name: str) -> object:
    """Where a package is, None for names that are only aliases of others, such as those of Jython."""
    try:
        return find_spec(name)
    except ValueError:  # `__main__`
        return None


@pytest.mark.parametrize("name", PATHS)
def test_a_hot_path_imports_only_its_packages(name: str, sample: Path) -> None:
    path = PATHS[name]
    modules = run(sample, path)
    allowed = {*path.others.split(), *(f"core.{one}" for one in path.core.split()), "tui", "sitecustomize", ""}
    assert {package(module) for module in modules} - allowed == set()
    assert modules & {*path.never.split()} == set()


def test_all_modules_that_a_hot_path_leaves_out_exist() -> None:
    names = {name for path in PATHS.values() for name in path.never.split()}
    assert [name for name in names if find_spec(name) is None] == []
