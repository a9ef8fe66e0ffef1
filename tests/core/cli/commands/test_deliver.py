from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.core.cli.conftest import Call

LOOP = "snarktank:scripts/ralph/types"
PLAN = {"branchName": "ralph/types", "description": "Fix TypeScript type errors in user validation", "userStories": []}


@pytest.fixture
def project(sample: Path) -> Path:
    folder = sample / "scripts/ralph"
    folder.mkdir(parents=True)
    stories = [{"id": "US-001", "title": "Type the user", "passes": False, "priority": 1}]
    (folder / "prd.json").write_text(json.dumps(PLAN | {"userStories": stories}))
    (folder / "progress.txt").write_text("# Ralph Progress Log\n## Codebase Patterns\n- Use zod\n---\n")
    return sample


def test_a_change_of_the_runners_file_can_be_applied(call: Call, project: Path) -> None:
    before = (project / "scripts/ralph/progress.txt").read_text()
    result = call("loop", "inject", LOOP, "--deliver", "--project", project)
    assert (project / "scripts/ralph/progress.txt").read_text() == before
    subprocess.run(["patch", "-p1"], input=result.out.encode(), cwd=project, check=True, stdout=subprocess.DEVNULL)
    after = (project / "scripts/ralph/progress.txt").read_text()
    assert "- Use zod\n" in after
    assert "<!-- BEGIN ralphdeck -->" in after


def test_a_loop_in_aiwg_has_its_own_command(call: Call, project: Path) -> None:
    loops = call("loop", "list", "--source", "aiwg", "--json", "--project", project).document["loops"]
    found = call("loop", "inject", loops[0]["id"], "--deliver", "--json", "--project", project).document
    assert found["command"] == []
    assert found["diff"] is None
    assert "ralphdeck loop inject" in found["explanation"]


def test_an_unknown_loop_is_an_error(call: Call, project: Path) -> None:
    assert call("loop", "inject", "codex:none", "--deliver", "--project", project).code == 1


def test_without_a_context_the_way_is_explained(call: Call, project: Path) -> None:
    plan = project / "scripts/ralph/prd.json"
    for description, obstacle in (("Zzyzx", "Nothing is injected now for the task of this loop"), ("", "")):
        plan.write_text(json.dumps(json.loads(plan.read_text()) | {"description": description}))
        result = call("loop", "inject", LOOP, "--deliver", "--project", project)
        assert (result.code, result.out) == (0, "")
        assert f"{obstacle}. When there is a context: Each iteration reads the Codebase Patterns first" in result.err
