"""Memories of Claude Code and Codex as lessons."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.records.loops import Outcome
from core.records.reflections import Lesson, LessonKind
from core.sources.adapters.claude import ClaudeAdapter
from core.sources.adapters.codex import CodexAdapter
from core.sources.adapters.memories import parse_outcome
from tests.core.sources.adapters.fixtures import NOW, Case, open_case
from tests.e2e.play_claude import slug


def opened(name: str, tmp_path: Path) -> Case:
    return open_case(ClaudeAdapter(), f"claude-memory/{name}", tmp_path / "case")


def folder_of(case: Case) -> Path:
    return case.home / ".claude" / "projects" / slug(case.project) / "memory"


def by_file(lessons: list[Lesson]) -> dict[str, Lesson]:
    return {lesson.file.rpartition("/")[2]: lesson for lesson in lessons}


def messages(case: Case) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in case.findings()]


def test_a_memory_has_its_session_and_the_line_of_its_text(tmp_path: Path) -> None:
    case = opened("new-frontmatter", tmp_path)
    lesson = by_file(case.lessons())["cart-tests-need-fake-clock.md"]
    assert lesson.text == "Use the fake clock of tests/clock.ts in every cart test."
    assert (lesson.title, lesson.kind) == ("cart-tests-need-fake-clock", LessonKind.APPROACH)
    assert lesson.why == "a run at 00:10 UTC failed on the due date."
    assert lesson.trigger == "when a test touches dates; see [[ci-runs-in-utc]]."
    assert lesson.loop_id == "claude:5b1d0c7e-0000-4000-8000-000000000001"
    assert lesson.at == datetime(2026, 11, 20, 9, 5, 2, tzinfo=UTC)
    assert not lesson.loaded
    path = folder_of(case) / "cart-tests-need-fake-clock.md"
    assert lesson.file == f"~/{path.relative_to(case.home).as_posix()}"
    assert path.read_text().splitlines()[lesson.line - 1] == lesson.text


def test_the_type_of_a_memory_and_its_wording_give_its_kind(tmp_path: Path) -> None:
    kinds = {name: lesson.kind for name, lesson in by_file(opened("new-frontmatter", tmp_path).lessons()).items()}
    assert kinds["no-push.md"] is LessonKind.WARNING
    assert kinds["team.md"] is LessonKind.FACT
    assert kinds["unlisted.md"] is LessonKind.FACT


def test_an_old_frontmatter_that_is_not_valid_yaml_is_read(tmp_path: Path) -> None:
    (lesson,) = opened("old-frontmatter", tmp_path).lessons()
    assert (lesson.title, lesson.kind) == ("ci-runs-in-utc", LessonKind.FACT)
    assert lesson.loop_id == "claude:5b1d0c7e-0000-4000-8000-000000000002"
    assert lesson.at == NOW


def test_files_without_a_frontmatter_give_a_lesson_per_entry(tmp_path: Path) -> None:
    lessons = opened("no-frontmatter", tmp_path).lessons()
    assert [(one.text, one.kind, one.line, one.loaded) for one in lessons] == [
        ("Always run `npm test` before a commit", LessonKind.APPROACH, 3, True),
        ("Never edit dist/ by hand", LessonKind.WARNING, 4, True),
        ("The database is PostgreSQL 17", LessonKind.FACT, 5, True),
        ("Use `DEBUG=cart npm test` to see the totals", LessonKind.APPROACH, 3, False),
        ("Do not run two test runs at once", LessonKind.WARNING, 4, False),
    ]


def test_only_the_first_200_lines_of_the_index_are_loaded(tmp_path: Path) -> None:
    case = opened("index-300-lines", tmp_path)
    lessons = case.lessons()
    assert [lesson.loaded for lesson in lessons[199:201]] == [True, False]
    assert len(lessons) == 300
    message = "has 300 lines; Claude Code loads only the first 200"
    assert ("memory-index-too-long", message) in messages(case)


def test_only_the_first_25_kb_of_the_index_are_loaded(tmp_path: Path) -> None:
    case = opened("index-300-lines", tmp_path)
    (folder_of(case) / "MEMORY.md").write_text(f"- {'x' * 1021}\n" * 30)
    assert ("memory-index-too-long", "has 30 lines; Claude Code loads only the first 25") in messages(case)


def test_an_index_and_files_that_disagree_are_findings(tmp_path: Path) -> None:
    case = opened("new-frontmatter", tmp_path)
    found = messages(case)
    assert ("memory-index-disagrees", "lists files that do not exist: gone.md") in found
    assert ("memory-index-disagrees", "does not list unlisted.md") in found
    assert [lesson.text for lesson in case.lessons() if lesson.loaded] == [], "a title alone teaches nothing"


def test_a_memory_that_was_not_changed_for_90_days_is_a_finding(tmp_path: Path) -> None:
    assert ("old-memory", "1 memory not changed for 90 days: team.md") in messages(opened("new-frontmatter", tmp_path))


def test_working_trees_share_the_memories_of_the_repository(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    (case.project / ".git").mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {case.project}/.git/worktrees/tree\n")
    below = case.project / "packages"
    below.mkdir()
    expected = case.lessons()
    for folder in (tree, below):
        case.set_folders(project=folder)
        assert case.lessons() == expected


@pytest.mark.parametrize(
    ("settings", "place", "shown"),
    [
        ("home/.claude/settings.json", "home/notes", "~/notes/ci.md"),
        ("project/.claude/settings.local.json", "project/notes", "notes/ci.md"),
    ],
)
def test_the_agent_can_keep_its_memories_elsewhere(settings: str, place: str, shown: str, tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    folder_of(case).rename(case.root / place)
    assert case.lessons() == []
    path = case.root / settings
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"autoMemoryDirectory": str(case.root / place)}))
    assert [lesson.file for lesson in case.lessons()] == [shown]


@pytest.mark.parametrize("named", ["~/notes", "@PROJECT@/../home/notes"])
def test_settings_that_a_repository_can_contain_name_no_notes_outside_of_it(named: str, tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    folder_of(case).rename(case.home / "notes")
    path = case.project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"autoMemoryDirectory": named.replace("@PROJECT@", str(case.project))}))
    assert case.lessons() == []


def test_shared_settings_of_the_repository_cannot_move_the_memories(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    folder_of(case).rename(case.home / "notes")
    (case.project / ".claude").mkdir()
    (case.project / ".claude" / "settings.json").write_text(json.dumps({"autoMemoryDirectory": "~/notes"}))
    assert case.lessons() == []


def test_no_memories_are_read_without_the_home_folder(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    case.set_folders(home=None)
    assert case.lessons() == []


def test_a_memory_that_is_rewritten_gives_the_new_text(tmp_path: Path) -> None:
    case = opened("old-frontmatter", tmp_path)
    case.lessons()
    path = folder_of(case) / "ci.md"
    path.write_text(path.read_text().replace("laptops do not", "so do laptops"))
    assert [lesson.text for lesson in case.lessons()] == ["The CI runs in UTC, so do laptops."]


ID = "codex:019fa000-0000-7000-8000-000000000001"
OTHER_ID = "codex:019fa000-0000-7000-8000-000000000002"
Open = Callable[[str], Case]


@pytest.fixture
def open_memories(tmp_path: Path) -> Open:
    return lambda case: open_case(CodexAdapter(), f"codex-memories/{case}", tmp_path)


def by_text(case: Case) -> dict[str, Lesson]:
    return {one.text: one for one in case.lessons()}


def test_the_bullets_of_raw_memories_are_lessons(open_memories: Open) -> None:
    found = by_text(open_memories("ascending"))
    assert {text: one.kind for text, one in found.items()} == {
        "the user asked for one commit per change": LessonKind.FACT,
        "totals are rounded once, in money.py, not in the templates": LessonKind.APPROACH,
        "never format a total in a template; templates get texts": LessonKind.WARNING,
        "pin the seed first": LessonKind.APPROACH,
        "pass a Decimal to quantize": LessonKind.FIX,
        "the cart template gets its totals as texts": LessonKind.APPROACH,
    }


def test_a_lesson_has_its_session_task_place_and_uses(open_memories: Open) -> None:
    case = open_memories("ascending")
    lesson = by_text(case)["totals are rounded once, in money.py, not in the templates"]
    assert (lesson.loop_id, lesson.title, lesson.outcome, lesson.uses) == (ID, "Fix the rounding", Outcome.SUCCESS, 3)
    assert lesson.at == datetime(2026, 11, 20, 10, 2, 5, tzinfo=UTC)
    assert lesson.file == "~/.codex/memories/raw_memories.md"
    text = (case.home / ".codex/memories/raw_memories.md").read_text().splitlines()
    assert text[lesson.line - 1] == f"- {lesson.text}"
    assert not lesson.loaded


def test_the_outcome_is_that_of_the_task(open_memories: Open) -> None:
    lesson = by_text(open_memories("ascending"))["the cart template gets its totals as texts"]
    assert (lesson.title, lesson.outcome) == ("Show cents", Outcome.PARTIAL)


def test_a_failure_names_when_the_lesson_applies(open_memories: Open) -> None:
    found = by_text(open_memories("ascending"))
    assert found["pin the seed first"].trigger == "pytest without -p no:randomly gave other failures each time"
    fix = found["pass a Decimal to quantize"]
    assert fix.trigger == "decimal.InvalidOperation in tests/test_cart.py."
    assert fix.why == "quantize with a float."


def test_the_other_order_without_rollout_paths_is_read(open_memories: Open) -> None:
    found = by_text(open_memories("latest-first"))
    web = found["run the web tests with npm test -- --run"]
    assert (web.loop_id, web.outcome, web.title) == (OTHER_ID, Outcome.UNKNOWN, "fix the rounding of the cart")
    assert found["pin the seed first"].loop_id == ID
    assert found["pin the seed first"].uses is None


def test_spaces_before_an_outcome_and_headings_in_other_languages_are_accepted(open_memories: Open) -> None:
    (lesson,) = open_memories("leading-space").lessons()
    assert (lesson.text, lesson.outcome) == ("总额只在 money.py 中四舍五入一次", Outcome.FAILURE)


def test_without_raw_memories_the_handbook_and_the_summaries_are_read(open_memories: Open) -> None:
    found = by_text(open_memories("no-raw"))
    assert {text: (one.kind, one.loop_id, one.outcome) for text, one in found.items()} == {
        "change money.py": (LessonKind.APPROACH, ID, Outcome.SUCCESS),
        "totals are rounded once, in money.py": (LessonKind.APPROACH, ID, Outcome.SUCCESS),
        'when a change is done, the user asked: "one commit, please" -> commit each change alone': (
            *(LessonKind.FACT, ID, Outcome.SUCCESS),
        ),
        "Money is Decimal; quantize once, in money.py": (LessonKind.APPROACH, ID, Outcome.SUCCESS),
        "The cart shows cents only with locale data": (LessonKind.APPROACH, OTHER_ID, Outcome.FAILURE),
        "load the rates first": (LessonKind.FIX, OTHER_ID, Outcome.FAILURE),
    }


def test_the_handbook_of_old_versions_belongs_to_the_project_of_its_summaries(open_memories: Open) -> None:
    found = by_text(open_memories("old-handbook"))
    assert "Use yarn" not in found
    lesson = found["Round totals in money.py only"]
    assert (lesson.loop_id, lesson.file) == (ID, "~/.codex/memories/MEMORY.md")


def test_the_uses_of_an_older_table_are_unknown(open_memories: Open) -> None:
    case = open_memories("ascending")
    with closing(sqlite3.connect(case.home / ".codex" / "memories_1.sqlite")) as database:
        database.execute("ALTER TABLE stage1_outputs DROP COLUMN usage_count")
        database.commit()
    assert {one.uses for one in case.lessons()} == {None}
    assert not case.files.findings


def test_memories_that_did_not_change_are_parsed_once(open_memories: Open) -> None:
    case = open_memories("ascending")
    first, second = case.lessons()[0], case.lessons()[0]
    assert first is second
    path = case.home / ".codex/memories/raw_memories.md"
    path.write_text(path.read_text().replace("one commit per change", "two commits per change"))
    assert case.lessons()[0].text == "the user asked for two commits per change"


def test_the_words_for_outcomes_are_known() -> None:
    rows: list[tuple[str, Outcome]] = [
        ("success", Outcome.SUCCESS),
        ("Show cents, partial", Outcome.PARTIAL),
        ("failed", Outcome.FAILURE),
        ("fail", Outcome.FAILURE),
        ("uncertain", Outcome.UNKNOWN),
        ("", Outcome.UNKNOWN),
    ]
    for text, outcome in rows:
        assert parse_outcome(text) is outcome, text
