"""The cases of all adapters: what each finds in them, alone and beside others, damaged, and at every moment of a run.

What an adapter finds in a case is in `recorded_cases.jsonl`: all fields of loops, details, lessons and findings that
are not the default, and of a loop whose processes run those that differ (`alive`). To record it, then read the diff:

    python -m tests.core.sources.adapters.test_cases
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.records.loops import Loop, LoopStatus
from core.sources.adapters.adapter_table import own_adapters
from core.sources.adapters.contract import Adapter
from core.sources.adapters.join import join_loops
from tests.core.sources.adapters.fixtures import (
    ANY_JSON,
    DATA,
    NOW,
    Case,
    check_damages,
    check_replacements,
    open_case,
    plain,
)
from tests.e2e import play_frankbria, play_guardrails, play_open_ralph, play_ralph_loop, play_snarktank
from tests.e2e.play_runner import Steps

ADAPTERS = {adapter.name: adapter for adapter in own_adapters()}
CASES = sorted(f"{case.parent.name}/{case.name}" for case in DATA.glob("*/*") if case.is_dir())


SHARED = (
    "frankbria/running",
    "guardrails/iannuttall",
    "open-ralph/running",
    "orchestrator/one",
    "ralph-tui/crashed-lock",
    "snarktank/open",
)


"""Cases in one project; the first four are in `.ralph/`."""


PLANS = {("snarktank", "ralph-tui")}  # adapters that read the plan of another runner; `join_loops` joins these loops


def owner_of(case: str) -> str:
    return case.partition("/")[0].removesuffix("-memory").removesuffix("-memories")


def anew(name: str) -> Adapter:
    """Return an adapter that has read nothing."""
    return next(adapter for adapter in own_adapters() if adapter.name == name)


def open_shared(name: str, tmp_path: Path, *more: str) -> Case:
    """Open the project of all shared cases; where two have the same file, that of the adapter itself stays."""
    others = [case for case in (*SHARED, *more) if owner_of(case) != name]
    own = [case for case in (*SHARED, *more) if owner_of(case) == name]
    return [open_case(anew(name), case, tmp_path / "case") for case in (*others, *own)][-1]


def described(loops: dict[str, Loop]) -> dict[str, tuple[object, ...]]:
    return {id: (loop.status, loop.end_reason, loop.task, loop.iteration, loop.usage) for id, loop in loops.items()}


def test_all_cases_are_of_an_adapter() -> None:
    assert {owner_of(case) for case in CASES} <= ADAPTERS.keys()
    assert {owner_of(case) for case in SHARED} <= ADAPTERS.keys()


RECORDED = Path(__file__).with_name("recorded_cases.jsonl")
"""A line for each loop, its details, how it gets a context, each lesson and finding: {case, kind, its fields}."""
PIDS = (101, 4242, 4243, 4343, 4821)
"""Processes in the files of the cases."""
PROGRAMS = ("ralph.sh", "ralph-loop.sh", "ralph_loop.sh")
MAX_LESSONS = 20
CONTEXT = (
    "### Error Patterns\n\n1. **Flaky seed** (80% success, 4 uses)\n   - Fix: pin the seed\n\n"
    "### Anti-Patterns to Avoid\n\n1. **Mocking the clock globally** (70% failure rate)\n   - Tests leak\n"
)


def record(name: str, folder: Path) -> list[str]:
    """Return lines with all that an adapter finds in a case."""
    case = open_case(anew(owner_of(name)), name, folder)
    found: list[tuple[str, Any]] = [("fingerprint", list(case.adapter.fingerprint(case.folders)))]
    loops = {id: plain(loop) for id, loop in case.loops().items()}
    for id, loop in case.loops().items():
        details = plain(case.anew().details(loop))  # as a program that has not looked at the lists
        if details.get("iterations") == loops[id].get("iterations"):
            details.pop("iterations", None)
        found += [("loop", loops[id]), ("details", details)]
        delivery = case.adapter.deliver(loop, CONTEXT, case.files)
        found += [("delivery", plain(delivery))] if delivery is not None else []
        assert case.adapter.deliver(loop, " ", case.files) is None
    found += [("lesson", plain(lesson)) for lesson in case.lessons()[:MAX_LESSONS]]
    found += [("finding", plain(finding)) for finding in case.files.findings]
    alive = case.anew()
    alive.processes.starts = dict.fromkeys(PIDS, NOW - timedelta(hours=3))
    alive.processes.programs = {(program, alive.project): 42 for program in PROGRAMS}
    for id, loop in alive.loops().items():
        before, now = loops.get(id, {}), plain(loop)
        changed = {key: now.get(key) for key in {**before, **now} if now.get(key) != before.get(key)}
        found += [("alive", {"id": id, **changed})] if changed else []
    lines = [json.dumps({"case": name, kind: value}, ensure_ascii=False) for kind, value in found]
    for place, path in (("PROJECT", case.project), ("HOME", case.home), ("ROOT", case.root)):
        lines = [line.replace(str(path), f"@{place}@") for line in lines]
        lines = [line.replace(re.sub(r"[^A-Za-z0-9]", "-", str(path)), f"@{place}_SLUG@") for line in lines]
    return lines


@pytest.mark.parametrize("name", CASES)
def test_an_adapter_finds_in_a_case_what_is_recorded(name: str, tmp_path: Path) -> None:
    expected = [one for line in RECORDED.read_text("utf-8").splitlines() if (one := json.loads(line))["case"] == name]
    assert [json.loads(line) for line in record(name, tmp_path / "case")] == expected


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_an_adapter_finds_nothing_in_the_cases_of_others(name: str, tmp_path: Path) -> None:
    others = [case for case in CASES if owner_of(case) != name and (name, owner_of(case)) not in PLANS]
    for number, case in enumerate(others):
        opened = open_case(anew(name), case, tmp_path / str(number))
        opened.set_folders(home=None)
        assert opened.use() == ({}, []), f"{name} reads files of {case}"
        assert opened.adapter.fingerprint(opened.folders) == (), f"{name} recognizes files of {case}"


@pytest.mark.parametrize("name", sorted(owner_of(case) for case in SHARED))
def test_each_runner_is_found_as_if_it_were_alone(name: str, tmp_path: Path) -> None:
    (case,) = (case for case in SHARED if owner_of(case) == name)
    alone, shared = open_case(anew(name), case, tmp_path / "alone"), open_shared(name, tmp_path)
    one, many = alone.use(), shared.use()
    assert one[0]
    plans = {id for id, loop in many[0].items() if loop.files[:1] == ("prd.json",) and name == "snarktank"}
    assert described({id: loop for id, loop in many[0].items() if id not in plans}) == described(one[0])
    assert [lesson.id for lesson in many[1]] == [lesson.id for lesson in one[1]]


def test_no_file_of_a_state_belongs_to_two_loops(tmp_path: Path) -> None:
    files: Counter[str] = Counter()
    for name in ADAPTERS:
        opened = open_shared(name, tmp_path / name)
        files.update({loop.files[0] for loop in opened.loops().values() if loop.files})
    assert len(files) >= len(SHARED)
    assert max(files.values()) == 1


@pytest.mark.parametrize("name", ["claude/goal-met", "codex/exec", "opencode/db"])
def test_a_session_that_is_over_is_built_once(opened: Case) -> None:
    first = opened.loops()
    opened.now += timedelta(days=1)
    assert all(loop is first[id] for id, loop in opened.loops().items())


PLAN = "scripts/ralph/prd.json"
OTHER_PLAN = '{"stories": [{"id": 1, "status": "open"}]}'


@pytest.mark.parametrize(
    ("name", "file", "other"),
    [
        ("frankbria/flat-0.9", "status.json", '{"status": "running"}'),
        ("frankbria/running", ".ralph/status.json", '{"status": "running"}'),
        ("ralph-loop/active", ".claude/ralph-loop.local.md", "# My own notes"),
        ("snarktank/complete", "prd.json", OTHER_PLAN),
        ("snarktank/open", PLAN, OTHER_PLAN),
        ("snarktank/prose-json", "prd.json", OTHER_PLAN),
    ],
)
def test_a_runner_is_recognized_by_the_content_of_its_file(name: str, file: str, other: str, opened: Case) -> None:
    assert opened.adapter.fingerprint(opened.folders) == (file,)
    (opened.project / file).write_text(f"{other}\n")
    assert opened.adapter.fingerprint(opened.folders) == ()
    assert opened.anew().loops() == {}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("frankbria/torn-status", ".ralph/status.json"),
        ("open-ralph/running", ".ralph/ralph-loop.state.json"),
        ("snarktank/open", PLAN),
    ],
)
def test_a_torn_file_keeps_the_last_good_state(name: str, file: str, opened: Case) -> None:
    before = described(opened.loops())
    path = opened.project / file
    for data in (b"", path.read_bytes()[:80]):
        path.write_bytes(data)
        assert described(opened.loops()) == before
    path.unlink()
    assert all(loop.status is not LoopStatus.RUNNING for loop in opened.loops().values())


@pytest.mark.parametrize(
    ("name", "variable", "folder"),
    [
        ("claude/goal-met", "CLAUDE_CONFIG_DIR", ".claude"),
        ("codex/exec", "CODEX_HOME", ".codex"),
        ("opencode/db", "XDG_DATA_HOME", ".local/share"),
    ],
)
def test_the_folder_of_an_agent_can_be_set_and_is_private(
    name: str, variable: str, folder: str, opened: Case, tmp_path: Path
) -> None:
    before, moved = described(opened.loops()), tmp_path / "moved"
    (opened.home / folder).rename(moved)
    opened.set_folders(environment={variable: str(moved)})
    assert described(opened.loops()) == before
    (found,) = opened.adapter.fingerprint(opened.folders)
    assert found.startswith(str(moved))
    opened.set_folders(home=None)
    assert opened.use() == ({}, [])
    assert opened.adapter.fingerprint(opened.folders) == ()


FILES: dict[str, tuple[str, ...]] = {
    "beads/issues": ("project/.beads/issues.jsonl",),
    "claude/goal-met": ("home/**/*",),
    "claude/job-blocked": ("home/**/*",),
    "claude/permission-prompt": ("home/**/*",),
    "claude/subagent": ("home/**/*",),
    "claude-memory/new-frontmatter": ("home/**/memory/*",),
    "claude-memory/no-frontmatter": ("home/**/memory/*",),
    "claude-memory/old-frontmatter": ("home/**/memory/*",),
    "codex/exec": ("home/.codex/sessions/**/*.jsonl",),
    "codex-memories/ascending": ("home/.codex/memories/raw_memories.md", "home/.codex/memories_1.sqlite"),
    "codex-memories/no-raw": ("home/.codex/memories/MEMORY.md", "home/.codex/memories/rollout_summaries/*"),
    "frankbria/running": (
        "project/.ralph/status.json",
        "project/.ralph/progress.json",
        "project/.ralph/logs/ralph.log",
        "project/.ralph/logs/metrics.jsonl",
        "project/.ralph/logs/claude_output_*.log",
        "project/.ralph/.response_analysis",
        "project/.ralph/queue.json",
    ),
    "guardrails/agrimsingh": (
        "project/.ralph/guardrails.md",
        "project/.ralph/progress.md",
        "project/.ralph/activity.log",
    ),
    "guardrails/iannuttall": (
        "project/.ralph/guardrails.md",
        "project/.ralph/progress.md",
        "project/.ralph/activity.log",
    ),
    "open-ralph/running": (
        "project/.ralph/ralph-loop.state.json",
        "project/.ralph/ralph-history.json",
        "project/.ralph/ralph-tasks.md",
    ),
    "opencode/db": ("home/.local/share/opencode/opencode.db",),
    "orchestrator/one": (
        "project/.ralph/events*.jsonl",
        "project/.ralph/loops.json",
        "project/.ralph/loop.lock",
        "project/.ralph/current-loop-id",
        "project/.ralph/history.jsonl",
        "project/.ralph/agent/memories.md",
        "project/.ralph/agent/tasks.jsonl",
        "project/ralph.yml",
    ),
    "ralph-loop/active": ("project/.claude/ralph-loop.local.md", "home/.claude/projects/**/*.jsonl"),
    "ralph-tui/registry": ("home/.config/ralph-tui/sessions.json",),
    "ralph-tui/running": (
        "project/.ralph-tui/session.json",
        "project/.ralph-tui/ralph.lock",
        "project/.ralph-tui/progress.md",
        "project/.ralph-tui/iterations/*.log",
        "project/prd.json",
    ),
    "snarktank/complete": ("project/prd.json", "project/progress.txt"),
}


"""Files of each case; those of one pattern are damaged at once."""


PID = 4242


"""Process of the sessions of Claude Code, which runs."""


each_file = pytest.mark.parametrize(
    ("name", "pattern"), [(name, pattern) for name, patterns in FILES.items() for pattern in patterns]
)


def open_files(name: str, pattern: str, tmp_path: Path) -> tuple[Case, list[Path]]:
    case = open_case(anew(owner_of(name)), name, tmp_path / "case")
    case.processes.starts[PID] = NOW
    paths = [path for path in case.root.glob(pattern) if path.is_file()]
    assert paths
    return case, paths


def test_all_adapters_with_cases_are_checked() -> None:
    assert {owner_of(case) for case in CASES} == {owner_of(name) for name in FILES}


@each_file
def test_damaged_files_never_raise_and_are_not_changed(name: str, pattern: str, tmp_path: Path) -> None:
    case, paths = open_files(name, pattern, tmp_path)
    check_damages(case, *paths)


@each_file
def test_what_is_not_a_file_is_not_read(name: str, pattern: str, tmp_path: Path) -> None:
    case, paths = open_files(name, pattern, tmp_path)
    check_replacements(case, *paths)


PLAYS: dict[str, tuple[Steps, tuple[str, ...]]] = {
    "frankbria": (play_frankbria.steps, ("ralph_loop.sh",)),
    "guardrails": (play_guardrails.steps, ("ralph-loop.sh",)),
    "open-ralph": (play_open_ralph.steps, ()),
    "ralph-loop": (play_ralph_loop.steps, ()),
    "snarktank": (play_snarktank.steps, ("ralph.sh",)),
}


ENDS = {
    "frankbria": (LoopStatus.FAILED, "stagnation_detected"),
    "guardrails": (LoopStatus.COMPLETED, "✅ TASK COMPLETE"),
    "open-ralph": (LoopStatus.LIMIT, "2 of 2 iterations"),
    "ralph-loop": (LoopStatus.COMPLETED, "promise"),
    "snarktank": (LoopStatus.COMPLETED, "all 2 stories pass"),
}


class Desk:
    """A project that all adapters read, with a clock that goes on at each write."""

    def __init__(self, folder: Path) -> None:
        (folder / "project" / "scripts" / "ralph").mkdir(parents=True)
        (folder / "project" / "scripts" / "ralph" / "ralph.sh").write_text("")
        self.now = NOW
        self.cases = {adapter.name: Case(adapter, folder) for adapter in own_adapters()}
        self.project = folder.resolve() / "project"

    def tick(self) -> datetime:
        self.now += timedelta(seconds=5)
        return self.now

    def start(self, name: str) -> Iterator[str]:
        steps, programs = PLAYS[name]
        for program in programs:
            self.cases[name].processes.programs[program, self.project] = 4821
        return steps(self.project, self.project.parent / "home", self.tick)

    def stop(self, name: str) -> None:
        self.cases[name].processes.programs.clear()

    def loops(self) -> dict[str, list[Loop]]:
        """Return all loops by runner, joined as in the program."""
        found: dict[str, list[Loop]] = {}
        for case in self.cases.values():
            case.now = self.now
        everything = [loop for case in self.cases.values() for loop in case.loops().values()]
        for loop in join_loops(everything, self.project).loops:
            found.setdefault(loop.runner, []).append(loop)
        return found


def test_five_runners_at_once_are_five_loops_that_run_until_their_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    running = {name: desk.start(name) for name in PLAYS}
    while running:
        for name in list(running):
            if next(running[name], "done") == "done":
                desk.stop(name)
                del running[name]
        found = desk.loops()
        assert all(len(loops) == 1 for loops in found.values())
        assert {found[name][0].status for name in running if name in found} <= {LoopStatus.RUNNING}
    ended = {name: loop for name, (loop,) in desk.loops().items()}
    assert {name: (loop.status, loop.end_reason) for name, loop in ended.items()} == ENDS
    lessons = {lesson.text for case in desk.cases.values() for lesson in case.lessons()}
    assert lessons == {play_snarktank.PATTERN, *play_snarktank.LEARNINGS, play_guardrails.SIGN}
    reported = ended["frankbria"]
    assert reported.usage.cost_usd == play_frankbria.COST * play_frankbria.ITERATIONS
    assert (reported.session_ids, len(reported.iterations)) == ((play_frankbria.SESSION,), play_frankbria.ITERATIONS)


@pytest.fixture
def opened(name: str, tmp_path: Path) -> Case:
    case = open_case(anew(owner_of(name)), name, tmp_path / "case")
    case.processes.starts[PID] = NOW
    return case


@pytest.mark.parametrize("name", [name for name in FILES if name.partition("/")[0] != "opencode"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(data=st.data())
def test_values_of_any_type_in_any_field_never_raise(name: str, opened: Case, data: st.DataObject) -> None:
    paths = [path for pattern in FILES[name] for path in opened.root.glob(pattern) if path.is_file()]
    texts = {path: path.read_text() for path in paths if path.suffix != ".sqlite"}
    path = data.draw(st.sampled_from(sorted(texts)))
    lines = texts[path].split("\n") if path.suffix in (".jsonl", ".log") else [texts[path]]
    for number, line in enumerate(lines):
        with suppress(ValueError):  # a text, or a torn line
            lines[number] = json.dumps(replace_any(json.loads(line), data))
    path.write_text("\n".join(lines))
    opened.anew().use()
    path.write_text(texts[path])


def replace_any(value: Any, data: st.DataObject) -> Any:
    """Replace a value, one in it, or none by another of any type."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    if not items or data.draw(st.booleans()):
        return data.draw(ANY_JSON)
    key, inner = data.draw(st.sampled_from(items))
    changed = value.copy()
    changed[key] = replace_any(inner, data)
    return changed


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"  # as in conftest.py: some files have local times
    time.tzset()
    with tempfile.TemporaryDirectory() as scratch:
        lines = [line for case in CASES for line in record(case, Path(scratch) / case)]
    RECORDED.write_text("".join(f"{line}\n" for line in lines), "utf-8")
