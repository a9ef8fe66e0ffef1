"""The adapter of snarktank/ralph, which reads prd.json and progress.txt."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.prompt_text import LABELS, Blocks
from core.records.loops import CONTRADICTED, Liveness, LoopStatus, Outcome, StateSource
from core.records.reflections import LessonKind
from core.sources.adapters.join import check_claim
from core.sources.adapters.snarktank import SnarktankAdapter
from core.sources.adapters.values import MAX_PLANS
from tests.core.sources.adapters.fixtures import Case, open_case

CONTEXT = (
    "## Cross-Loop Learning Context\n\nPatterns from previous loops that may help with this task:\n\n"
    "### Error Patterns\n\n1. **Flaky seed** (80% success, 4 uses)\n   - Fix: pin the seed\n"
)


SCRIPTS = "scripts/ralph"


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(SnarktankAdapter(), f"snarktank/{case}", tmp_path / "case")


@pytest.mark.parametrize(
    ("case", "runs", "expected"),
    [
        ("open", False, (LoopStatus.UNKNOWN, StateSource.INFERRED, "stopped, 1 of 2 stories")),
        ("open", True, (LoopStatus.RUNNING, StateSource.REPORTED, "")),
        ("complete", False, (LoopStatus.COMPLETED, StateSource.REPORTED, "all 2 stories pass")),
        ("completed-but-open", False, (LoopStatus.UNKNOWN, StateSource.INFERRED, "stopped, 1 of 2 stories")),
        ("prose-json", False, (LoopStatus.UNKNOWN, StateSource.INFERRED, "stopped, 1 of 2 stories")),
    ],
)
def test_the_state_comes_from_stories_and_the_process(
    tmp_path: Path, case: str, runs: bool, expected: tuple[LoopStatus, StateSource, str]
) -> None:
    opened = open_(case, tmp_path)
    if runs:
        opened.processes.programs["ralph.sh", opened.project] = 42
    loop = opened.loop()
    assert (loop.status, loop.state_source, loop.end_reason) == expected
    assert loop.pid == (42 if runs else None)
    assert (loop.liveness is Liveness.ALIVE) is runs


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


def test_a_loop_has_its_stories_times_and_entries(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    loop = case.loop()
    assert loop.id == "snarktank:scripts/ralph/cart-rounding"
    assert loop.task == "Round once"
    assert loop.criteria == ("US-001 Round totals once", "US-002 Show cents")
    assert (loop.progress.stories, loop.progress.stories_done) == (2, 1)
    assert loop.started_at == datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert loop.last_activity == datetime(2026, 11, 20, 9, 40, tzinfo=UTC)
    assert (loop.owner, loop.session_ids) == ("amp", ("T-1",))
    assert loop.files == (f"{SCRIPTS}/prd.json", f"{SCRIPTS}/progress.txt")
    (iteration,) = loop.iterations
    assert (iteration.number, iteration.action) == (1, "US-001 Round totals once")
    assert iteration.outcome is Outcome.SUCCESS
    assert iteration.files == ("shop/money.py", "shop/cart.py")


def test_details_have_the_text_of_entries_and_stories(tmp_path: Path) -> None:
    details = open_("open", tmp_path).details()
    (iteration,) = details.iterations
    assert iteration.result.startswith("Moved rounding to money.py")
    assert iteration.learnings == ("The templates formatted, they must not round", "Run pytest with -p no:randomly")
    assert details.facts == (("stories", "1 of 2 stories"), ("branch", "ralph/cart-rounding"), ("project", "Shop"))
    notes = dict(details.notes)
    assert notes["Stories"] == "[x] US-001 Round totals once\n[ ] US-002 Show cents"
    assert notes["Notes of US-001"] == "Done in money.py"
    assert notes["progress.txt"].startswith("# Ralph Progress Log")


def test_a_passed_story_without_entry_is_an_iteration(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    (case.project / SCRIPTS / "progress.txt").unlink()
    (iteration,) = case.loop().iterations
    assert (iteration.action, iteration.result) == ("US-001 Round totals once", "Done in money.py")
    assert case.lessons() == []


def test_a_plan_without_entries_has_not_started(tmp_path: Path) -> None:
    case = open_("archive", tmp_path)
    assert case.loops()["snarktank:scripts/ralph/invoices"].end_reason == "not started, 0 of 2 stories"


def test_a_promise_with_open_stories_is_marked(tmp_path: Path) -> None:
    loop = check_claim(open_("completed-but-open", tmp_path).loop())
    assert loop.badges == ("completed-but-open", CONTRADICTED)
    assert loop.success is None
    assert check_claim(open_("complete", tmp_path / "other").loop()).success is True


def test_archived_runs_are_loops_of_their_own(tmp_path: Path) -> None:
    loops = open_("archive", tmp_path).loops()
    partly = loops["snarktank:scripts/ralph/archive/2026-11-20-cart-rounding"]
    assert (partly.archived, partly.status, partly.end_reason) == (True, LoopStatus.UNKNOWN, "archived, 1 of 2 stories")
    assert partly.ended_at == datetime(2026, 11, 20, 9, 40, tzinfo=UTC)
    done = loops["snarktank:scripts/ralph/archive/2026-11-18-search"]
    assert (done.status, done.ended_at) == (LoopStatus.COMPLETED, datetime(2026, 11, 18, tzinfo=UTC))
    assert len(loops) == 3


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


def test_lessons_are_the_patterns_and_then_the_learnings_of_stories(tmp_path: Path) -> None:
    case = open_("complete", tmp_path)
    found = [(one.text, one.title, one.line, one.loaded, one.kind) for one in case.lessons()]
    approach, warning = LessonKind.APPROACH, LessonKind.WARNING
    assert found == [
        ("Money is Decimal; quantize once, in money.py", "Codebase Patterns", 5, True, approach),
        ("Never format prices in the templates", "Codebase Patterns", 6, True, warning),
        ("The templates formatted, they must not round", "US-001", 14, False, warning),
        ("Run pytest with -p no:randomly", "US-001", 15, False, approach),
        ("prices need `format_price`", "US-002", 20, False, approach),
    ]
    learning = case.lessons()[2]
    assert (learning.file, learning.loop_id) == ("progress.txt", "snarktank:cart-rounding")
    assert (learning.at, learning.outcome) == (datetime(2026, 11, 20, 9, 40, tzinfo=UTC), Outcome.SUCCESS)


def test_a_lesson_in_two_runs_is_one_lesson(tmp_path: Path) -> None:
    lessons = open_("archive", tmp_path).lessons()
    texts = [lesson.text for lesson in lessons]
    assert texts[:2] == ["Money is Decimal; quantize once, in  money.py", "The index is rebuilt by `make index`"]
    assert len(texts) == 5
    assert len({lesson.id for lesson in lessons}) == 5


def test_prose_comments_and_commas_around_json_do_not_matter(tmp_path: Path) -> None:
    case = open_("prose-json", tmp_path)
    loop = case.loop()
    assert loop.task == "Round once, see https://example.com/rounding"
    assert loop.criteria == ("US-001 Round, then [show]", "2 Show cents")
    assert dict(case.details().notes)["Notes of US-001"] == "a, ]"


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


def test_a_context_without_patterns_is_not_delivered(tmp_path: Path) -> None:
    case = open_("open", tmp_path)
    assert case.adapter.deliver(case.loop(), "## Cross-Loop Learning Context\n", case.files) is None


def apply(case: Case, context: str) -> None:
    """Apply the change that delivers a context; the adapter itself writes nothing."""
    before = {path: path.read_bytes() for path in case.project.rglob("*") if path.is_file()}
    delivery = case.adapter.deliver(case.loop(), context, case.files)
    assert delivery is not None
    assert {path: path.read_bytes() for path in case.project.rglob("*") if path.is_file()} == before
    subprocess.run(["git", "apply", "-"], input=delivery.diff, text=True, cwd=case.project, check=True)


def test_nothing_is_delivered_to_an_archived_run(tmp_path: Path) -> None:
    case = open_("archive", tmp_path)
    loop = case.loops()["snarktank:scripts/ralph/archive/2026-11-18-search"]
    assert case.adapter.deliver(loop, CONTEXT, case.files) is None


@given(log=st.text(alphabet=st.sampled_from("#- \n*:UuS0129T[]Learnings"), max_size=200))
def test_any_progress_log_can_be_read(tmp_path_factory: pytest.TempPathFactory, log: str) -> None:
    case = open_("complete", tmp_path_factory.mktemp("log"))
    (case.project / "progress.txt").write_text(f"## Codebase Patterns\n{log}\n## US-001\nLearnings:\n{log}")
    case.use()
