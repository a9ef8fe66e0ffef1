"""The adapter of snarktank/ralph, which reads prd.json and progress.txt."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.prompt_text import LABELS, Blocks
from core.records.loops import LoopStatus
from core.sources.adapters.runner_files import MAX_PLANS
from core.sources.adapters.snarktank import SnarktankAdapter
from tests.core.sources.adapters.fixtures import Case, open_case

CONTEXT = (
    "## Cross-Loop Learning Context\n\nPatterns from previous loops that may help with this task:\n\n"
    "### Error Patterns\n\n1. **Flaky seed** (80% success, 4 uses)\n   - Fix: pin the seed\n"
)


SCRIPTS = "scripts/ralph"


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(SnarktankAdapter(), f"snarktank/{case}", tmp_path / "case")


def test_a_limited_number_of_plans_of_a_folder_is_read(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    (case.project / "tasks").mkdir()
    for number in range(MAX_PLANS + 5):
        (case.project / "tasks" / f"prd-{number}.json").write_bytes(b'{"branchName":}')
    assert len({finding.file for finding in case.findings() if finding.code == "bad-plan"}) == MAX_PLANS
    assert len(case.loops()) == 1


def test_a_script_in_another_folder_does_not_run_this_plan(tmp_path: Path) -> None:
    case = open_("complete", tmp_path)
    prd = case.project / "prd.json"
    prd.write_text(prd.read_text().replace('"passes": true', '"passes": false'))
    case.processes.programs["ralph.sh", case.project / SCRIPTS] = 42
    assert case.loop().status is LoopStatus.UNKNOWN
    case.processes.programs["ralph.sh", case.project] = 43
    assert case.loop().pid == 43


def test_a_passed_story_without_entry_is_an_iteration(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    (case.project / SCRIPTS / "progress.txt").unlink()
    (iteration,) = case.loop().iterations
    assert (iteration.action, iteration.result) == ("US-001 Round totals once", "Done in money.py")
    assert case.lessons() == []


def test_plans_are_found_beside_each_other_and_in_working_trees(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    tree = case.root / "tree"
    shutil.copytree(case.project, tree)
    (case.project / "tasks").mkdir()
    for name in ("prd-a.json", "prd-b.json", "notes.json"):
        shutil.copy(case.project / SCRIPTS / "prd.json", case.project / "tasks" / name)
    case.set_folders(worktrees=(tree,))
    loops = case.loops()
    assert loops[f"snarktank:{tree}/scripts/ralph/cart-rounding"].cwd == str(tree)
    assert sorted(loops) == sorted(
        [
            "snarktank:scripts/ralph/cart-rounding",
            "snarktank:tasks/prd-a/cart-rounding",
            "snarktank:tasks/prd-b/cart-rounding",
            f"snarktank:{tree}/scripts/ralph/cart-rounding",
        ]
    )


@pytest.mark.parametrize("data", ['"' + '\\"' * 200_000, "," * 400_000, "//" * 200_000, '"\\\n' * 100_000])
def test_a_plan_of_signs_only_is_read_in_one_pass(tmp_path: Path, data: str) -> None:
    case = open_("complete", tmp_path)
    (case.project / "prd.json").write_text('{"userStories": []' + data + "}")
    assert len(case.use()[0]) <= 1


def test_a_damaged_plan_is_a_finding_and_other_files_are_not(tmp_path: Path) -> None:
    case = open_("complete", tmp_path)
    (case.project / "prd.json").write_text('{"userStories": [{"id": 1}')
    (case.project / "tasks").mkdir()
    (case.project / "tasks" / "prd.json").write_text("{not a plan")
    assert [(one.file, one.code) for one in case.findings()][:1] == [("prd.json", "bad-plan")]


@pytest.mark.parametrize(("case", "folder"), [("open", SCRIPTS), ("complete", "."), ("prose-json", ".")])
def test_a_context_is_delivered_as_a_change_of_the_patterns(tmp_path: Path, case: str, folder: str) -> None:
    opened = open_(case, tmp_path)
    lessons = opened.lessons()
    apply(opened, CONTEXT)
    log = (opened.project / folder / "progress.txt").read_text()
    patterns = log.partition("## Codebase Patterns\n")[2].partition("---")[0]
    assert "- **Flaky seed** (80% success, 4 uses)\n   - Fix: pin the seed\n" in patterns
    assert [one.text for one in opened.lessons()] == [one.text for one in lessons], "it is not read back"
    assert opened.adapter.deliver(opened.loop(), CONTEXT, opened.files) is None, "it is there already"
    apply(opened, CONTEXT.replace("Flaky", "Other"))
    log = (opened.project / folder / "progress.txt").read_text()
    assert ("Flaky seed" in log, log.count("**Other seed**")) == (False, 1)


def test_the_blocks_of_a_context_are_delivered_with_their_fences(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    lessons = case.lessons()
    blocks = Blocks(CONTEXT, CONTEXT.replace("Flaky", "Slow"))
    apply(case, blocks.fenced("1" * 16))
    log = (case.project / SCRIPTS / "progress.txt").read_text()
    assert (
        f"<approved-{'1' * 16}>\n{LABELS['approved']}\n\n- **Flaky seed** (80% success, 4 uses)\n"
        f"   - Fix: pin the seed\n</approved-{'1' * 16}>\n<unreviewed-{'1' * 16}>\n{LABELS['unreviewed']}\n\n- **Slow"
    ) in log
    assert [one.text for one in case.lessons()] == [one.text for one in lessons], "it is not read back"
    again = case.adapter.deliver(case.loop(), blocks.fenced("2" * 16), case.files)
    assert again is None, "only the token differs"
    swapped = Blocks(blocks.unreviewed, blocks.approved).fenced("2" * 16)
    assert case.adapter.deliver(case.loop(), swapped, case.files) is not None


def apply(case: Case, context: str) -> None:
    """Apply the change that delivers a context; the adapter itself writes nothing."""
    before = {path: path.read_bytes() for path in case.project.rglob("*") if path.is_file()}
    delivery = case.adapter.deliver(case.loop(), context, case.files)
    assert delivery is not None
    assert {path: path.read_bytes() for path in case.project.rglob("*") if path.is_file()} == before
    subprocess.run(["git", "apply", "-"], input=delivery.diff, text=True, cwd=case.project, check=True)


@given(log=st.text(alphabet=st.sampled_from("#- \n*:UuS0129T[]Learnings"), max_size=200))
def test_any_progress_log_can_be_read(tmp_path_factory: pytest.TempPathFactory, log: str) -> None:
    case = open_("complete", tmp_path_factory.mktemp("log"))
    (case.project / "progress.txt").write_text(f"## Codebase Patterns\n{log}\n## US-001\nLearnings:\n{log}")
    case.use()
