"""Files are parsed the same by other processes, by this one, and where they changed."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path

import pytest

from core.config.paths import ProjectPaths
from core.index import parse as parsing
from core.index.parse import FileParts, parse_all
from core.sources.parsed_file import EarlierParse
from core.sources.sweep import scan

TREES = Path(__file__).parents[2] / "trees"
PATTERNS = ".aiwg/ralph/shared/patterns/error-patterns.json"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TREES / "spec-examples", tmp_path / "project"))


def parse(project: Path, **options: dict[str, EarlierParse]) -> dict[str, FileParts]:
    files = list(scan(ProjectPaths(project)).items())
    return {found.path: found for found in parse_all(str(project), files, **options)}


def test_this_process_parses_what_killed_workers_did_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = parse(project)

    def submit(*_: object) -> None:
        raise BrokenExecutor

    monkeypatch.setattr(parsing, "POOL_FROM", 0)
    monkeypatch.setattr(parsing, "_count_workers", lambda: 1)
    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    assert parse(project) == expected


def test_a_changed_pattern_file_is_parsed_like_a_new_one(project: Path) -> None:
    earlier = {PATTERNS: EarlierParse()}
    parse(project, earlier=earlier)
    document = json.loads((project / PATTERNS).read_text())
    (records,) = document["pattern_registry"].values() if "pattern_registry" in document else document.values()
    records.insert(0, {**records[-1], "pattern_id": "pat-error-new-001"})
    (project / PATTERNS).write_text(json.dumps(document))
    assert parse(project, earlier=earlier) == parse(project)
