"""The index of debug sessions, its queries and reports, and the results of fixes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.index.texts import Texts
from core.records.debug_sessions import Analysis, DebugSession, Execution, Fix, Recurring, Results
from core.records.snapshot import Snapshot
from core.tasks.debug_index import (
    CAUSE,
    ERROR_TYPE,
    FILE_PATH,
    PATTERN,
    STATUS,
    TEST,
    FixCounts,
    report_causes,
    report_fix_templates,
    report_recurring_failures,
)
from core.tasks.escalations import find_recent_escalations
from tests.factories import (
    DEBUG_NOW,
    EXAMPLE_SESSION_FILE,
    index_sessions,
    make_lesson,
    make_run,
    make_session,
    read_example_session,
    sessions_by_id,
)

NULL = "null_undefined_access"
CHANGED = Fix(description="Guarded")
GREEN = Execution(results=Results(total=1, passed=1, failed=0))
RED = Execution(results=Results(total=1, passed=0, failed=1))


def ids(sessions: tuple[DebugSession, ...]) -> list[str]:
    return [session.id for session in sessions]


def test_example_answers_every_query() -> None:
    index = index_sessions(read_example_session())
    assert ids(index.find_similar("TypeError", "src/auth/%")) == ["dm-001-example"]
    assert index.find_similar("TypeError", "src/api/%") == ()
    assert index.find_similar("ReferenceError") == ()
    ((found, template),) = index.find_lessons("null_undefined_access")
    assert (found.id, template.pattern, template.effectiveness) == ("dm-001-example", "null_access_without_check", 1.0)
    assert template.fix_template == "Add null check: if (!input) return/throw"
    assert find_recent_escalations(index, Snapshot()) == ()
    for key, value in (
        (FILE_PATH, "src/auth/validate.ts"),
        (STATUS, "passed"),
        (ERROR_TYPE, "TypeError"),
        (CAUSE, "null_undefined_access"),
        (PATTERN, "null_access_without_check"),
        (TEST, "should reject null input"),
    ):
        assert ids(index.find(key, value)) == ["dm-001-example"]
        assert index.find(key, "other") == ()


@pytest.mark.parametrize(
    "name",
    [
        "ralph/debug-memory/sessions/s.json",
        "ralph/debug-memory/session-1.yaml",
        "ralph/debug-memory/sessions/all.jsonl",
        "ralph/loops/ralph-a/debug-memory/s.yml",
        "ralph-external/loops/x/debug-memory/2026/s.json",
    ],
)
def test_example_is_found_in_every_file_format_and_folder(name: str, tmp_path: Path) -> None:
    value = json.loads(EXAMPLE_SESSION_FILE.read_bytes())
    path = tmp_path / ".aiwg" / name
    path.parent.mkdir(parents=True)
    text = {".json": json.dumps(value), ".jsonl": json.dumps(value) + "\n"}.get(path.suffix) or yaml.safe_dump(value)
    path.write_text(text)
    snapshot = Index(ProjectPaths(tmp_path), Settings(), clock=lambda: DEBUG_NOW, is_kept=False).load()
    index = Texts(Snapshot(debug_sessions=snapshot.debug_sessions)).debug
    assert ids(index.find_similar("TypeError", "src/auth/%.ts")) == ["dm-001-example"]
    assert [lesson.effectiveness for _, lesson in index.find_lessons("null_undefined_access")] == [1.0]


def test_similar_sessions_are_limited_to_the_newest_ten() -> None:
    index = index_sessions(
        *(make_session(f"s{n:02}", days=n) for n in range(12)), make_session("undated", updated_at=None)
    )
    assert ids(index.find_similar("TypeError")) == [f"s{n:02}" for n in range(10)]
    assert ids(index.find_similar("TypeError", limit=20))[-1] == "undated"
    apart = make_session("apart", make_run("TypeError", "src/b.ts"), make_run("SyntaxError", "src/a.ts"))
    twice = make_session("twice", make_run("TypeError", "src/a.ts"), make_run("TypeError", "src/all.ts"))
    index = index_sessions(apart, twice, make_session("later", make_run("TypeError", "src/a.ts"), days=-1))
    assert ids(index.find_similar("TypeError", "src/a%")) == ["later", "twice"], "of one failure, each session once"


class Watched(dict[str, DebugSession]):
    """Sessions that count how often one of them was accessed."""

    looks = 0

    def __getitem__(self, id: str) -> DebugSession:
        self.looks += 1
        return super().__getitem__(id)


def test_query_reads_only_matching_sessions() -> None:
    errors = ("TypeError", "SyntaxError")
    made = [
        make_session(
            f"s{n:03}", make_run(errors[n % 2], f"src/{n % 50}.ts"), days=n, status="escalated" if n % 99 == 0 else ""
        )
        for n in range(300)
    ]
    watched = Watched(sessions_by_id(*made))
    index = Texts(Snapshot(debug_sessions=watched)).debug
    watched.looks = 0
    assert ids(index.find_similar("TypeError", "src/4%", limit=3)) == ["s004", "s040", "s042"]
    assert watched.looks < 40
    watched.looks = 0
    assert ids(index.find_similar("TypeError")) == [f"s{n:03}" for n in range(0, 20, 2)]
    assert index.find_similar("TypeError", "nowhere/%") == ()
    assert index.find_lessons("race_condition") == ()
    assert len(find_recent_escalations(index, Snapshot())) == 4
    assert watched.looks == 10 + 4


def test_template_needs_an_effectiveness_above_seventy_percent() -> None:
    lessons = tuple(make_lesson(str(value), effectiveness=value) for value in (0.7, 0.71, None))
    other = make_lesson("other", category="race_condition")
    index = index_sessions(make_session("s", lessons=(*lessons, other)))
    assert [lesson.pattern for _, lesson in index.find_lessons("null_undefined_access")] == ["0.71"]


def test_file_patterns_are_those_of_sqlite() -> None:
    files = ("src/auth/a.ts", "SRC/b.ts", "", "\u00c4b", "a(b)*[c]\\", "a\nb", "x\ud800.ts")
    index = index_sessions(*(make_session(file or "none", make_run(file=file), file_path=file) for file in files))
    for pattern, expected in (
        ("%", set(files)),
        ("src/%", {"src/auth/a.ts", "SRC/b.ts"}),
        ("src/_.ts", {"SRC/b.ts"}),
        ("\u00e4%", set()),
        ("a(b)*[c]\\", {"a(b)*[c]\\"}),
        ("%\n%", {"a\nb"}),
    ):
        found = {session.file_path for session in index.find_similar("TypeError", pattern, limit=20)}
        assert found == {session.file_path for session in index.find_in_files(pattern)} == expected, pattern
    long = index_sessions(make_session("s", make_run(file="a" * 4000)))
    assert long.find_similar("TypeError", "%a" * 20 + "b") == (), "it does not backtrack"
    for pattern in ("x" * 600, "\ud800"):
        with pytest.raises(BadInput, match="too long or not valid Unicode"):
            index.find_similar("TypeError", pattern)


def test_unverified_fix_is_judged_by_the_next_run_and_the_last_one_by_the_status() -> None:
    rows: list[tuple[tuple[Execution, ...], bool | None]] = [
        ((make_run(fix=CHANGED), GREEN), True),
        ((make_run(fix=CHANGED), RED), False),
        ((make_run(fix=CHANGED), make_run()), False),
        ((make_run(fix=CHANGED), make_run(failures=())), False),
        ((make_run(fix=CHANGED), Execution()), None),
        ((make_run(fixed=False), GREEN), False),
        ((make_run(fixed=True), RED), True),
    ]
    other = make_run(failures=(replace(make_run().failures[0], test_name="u"),))
    rows.append(((make_run(fix=CHANGED), other), None))  # another failure judges nothing
    for runs, expected in rows:
        assert make_session("s", *runs, status="in_progress").verdicts == (expected, None), runs
    of_status = {"passed": True, "failed": False, "escalated": False, "in_progress": None}
    for status, last in of_status.items():
        assert make_session("s", make_run(fix=CHANGED), status=status).verdicts == (last,)
        assert make_session("s", make_run(), status=status).verdicts == (None,)


def test_failed_sessions_without_a_pattern_count_for_the_usual_one() -> None:
    held = make_session("held", make_run(category=NULL, fixed=True), lessons=(make_lesson("guard"),))
    failed = [make_session(f"failed-{number}", make_run(category=NULL, fixed=False)) for number in range(3)]
    results = index_sessions(held, *failed).fix_results
    assert results.of_pattern(NULL, "guard") == results.of_cause(NULL) == FixCounts(passed=1, failed=3)
    assert results.effectiveness(make_lesson("guard")) == 0.25
    assert results.of_pattern(NULL, "guard").text == "worked in 1 of 4 (25 %)"


def test_session_with_another_pattern_does_not_count() -> None:
    usual = [
        make_session(f"s{number}", make_run(category=NULL, fixed=True), lessons=(make_lesson("guard"),))
        for number in (1, 2)
    ]
    other = make_session("other", make_run(category=NULL, fixed=False), lessons=(make_lesson("optional"),))
    unnamed = make_session("unnamed", make_run(category=NULL, fixed=False))
    results = index_sessions(*usual, other, unnamed).fix_results
    assert results.of_pattern(NULL, "guard") == FixCounts(passed=2, failed=1)
    assert results.of_pattern(NULL, "optional") == FixCounts(failed=1)
    assert results.of_cause(NULL) == FixCounts(passed=2, failed=2)


def test_recorded_effectiveness_is_used_without_known_results() -> None:
    results = index_sessions(
        make_session("s", make_run(category=NULL), lessons=(make_lesson(effectiveness=0.8),))
    ).fix_results
    assert results.effectiveness(make_lesson(effectiveness=0.8)) == 0.8
    assert (results.of_pattern(NULL, "p").text, FixCounts().rate) == ("", None)


def test_example_of_the_documentation() -> None:
    index = index_sessions(read_example_session())
    (cause,) = report_causes(index)
    assert (cause.category, cause.sessions, cause.passing, cause.failing, cause.fixes) == (
        NULL,
        1,
        1,
        0,
        FixCounts(passed=1),
    )
    (template,) = report_fix_templates(index, NULL)
    assert (template.pattern, template.recorded, template.fixes.rate) == ("null_access_without_check", (1.0,), 1.0)
    low, high = template.fixes.interval(0.9)
    assert (round(low, 2), high) == (0.23, 1.0)


def test_causes_are_sorted_by_frequency_with_their_results() -> None:
    index = index_sessions(
        make_session("a", make_run(category=NULL, fixed=True), status="passed"),
        make_session(
            "b", make_run(category=NULL, fixed=False), make_run(category="race_condition"), status="escalated"
        ),
        make_session("c", make_run(category=NULL), status="in_progress"),
    )
    first, second = report_causes(index)
    assert (first.category, first.sessions, first.passing, first.failing) == (NULL, 3, 1, 1)
    assert (first.fixes, first.fixes.rate) == (FixCounts(passed=1, failed=1), 0.5)
    assert (second.category, second.fixes.rate) == ("race_condition", None)


def test_a_cause_without_a_category_has_the_words_of_the_newest_analysis() -> None:
    analysis = Analysis(root_cause="Old orders have no currency")
    index = index_sessions(make_session("a", make_run(analysis=analysis)))
    (cause,) = report_causes(index)
    assert (cause.category, cause.root_cause) == ("", "Old orders have no currency")


def test_template_whose_fixes_fail_is_doubtful() -> None:
    sessions = [
        make_session(f"s{n}", make_run(category=NULL, fixed=n == 0), days=n, lessons=(make_lesson(),)) for n in range(3)
    ]
    sessions.append(make_session("other", make_run(category="race_condition", fixed=True), lessons=(make_lesson("q"),)))
    index = index_sessions(*sessions)
    good, bad = report_fix_templates(index, NULL)
    assert (good.pattern, good.fixes.rate, good.is_doubtful) == ("q", None, False)
    assert (bad.pattern, bad.fixes, bad.is_doubtful, bad.sessions) == (
        "p",
        FixCounts(passed=1, failed=2),
        True,
        ("s0", "s1", "s2"),
    )


@pytest.mark.parametrize(("least", "tests"), [(2, ["t", "said"]), (3, ["t", "said"]), (4, ["said"])])
def test_recurring_failures_are_counted_or_recorded(least: int, tests: list[str]) -> None:
    result = (Recurring(test="said", occurrences=4, resolution="pending"),)
    later = (Recurring(test="t", occurrences=1, resolution="resolved"),)
    index = index_sessions(
        make_session("a", make_run(), make_run(), days=2, recurring=result),
        make_session("b", make_run(), days=1, recurring=later),
    )
    found = {one.test: one for one in report_recurring_failures(index, least)}
    assert list(found) == tests  # what runs prove comes before what is only said
    if "t" in found:
        assert (found["t"].runs, found["t"].sessions, found["t"].resolution) == (3, ("b", "a"), "resolved")
    assert (found["said"].runs, found["said"].recorded, found["said"].resolution) == (0, 4, "pending")
