"""Issues and memories of beads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.sources.adapters.beads import BeadsAdapter, closed_issues
from core.sources.adapters.codex import CodexAdapter
from tests.core.sources.adapters.fixtures import DAMAGES, DATA, Case, open_case

SESSION = "019fa000-0000-7000-8000-000000000001"
FACTS = [
    ("closed issue shop-a1b2", "Round totals once (fixed in money.py)"),
    ("closed issue shop-e5f6", "Pin the seed"),
]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return open_case(BeadsAdapter(), "beads/issues", tmp_path)


def issues(case: Case) -> Path:
    return case.project / ".beads/issues.jsonl"


def test_issues_are_facts_of_the_session_that_closed_them(case: Case) -> None:
    assert list(closed_issues(case.files, (SESSION,))) == FACTS
    assert not list(closed_issues(case.files, ()))


def test_the_details_of_a_session_show_the_issues_that_it_closed(tmp_path: Path) -> None:
    case = open_case(CodexAdapter(), "codex/exec", tmp_path)
    shutil.copytree(DATA / "beads/issues/project/.beads", case.project / ".beads")
    assert list(case.details().facts)[-2:] == FACTS


def test_closed_issues_of_a_damaged_export_do_not_raise(case: Case) -> None:
    good = issues(case).read_bytes()
    for damage in DAMAGES.values():
        issues(case).write_bytes(damage(good))
        list(closed_issues(case.anew().files, (SESSION,)))
