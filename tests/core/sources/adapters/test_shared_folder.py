"""Several runners in one project, most of them in the same folder `.ralph/`: each adapter finds only its own files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from core.records.loops import Loop
from core.sources.adapters.adapter_table import own_adapters
from core.sources.adapters.contract import Adapter
from tests.core.sources.adapters.fixtures import DATA, Case, open_case

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


@pytest.mark.parametrize("case", CASES)
def test_other_adapters_find_nothing_in_a_case(case: str, tmp_path: Path) -> None:
    owner = owner_of(case)
    for name in ADAPTERS.keys() - {owner}:
        if (name, owner) not in PLANS:
            opened = open_case(anew(name), case, tmp_path / name)
            opened.set_folders(home=None)
            assert opened.use() == ({}, []), f"{name} reads files of {owner}"
            assert opened.adapter.fingerprint(opened.folders) == (), f"{name} recognizes files of {owner}"


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
