"""Debug sessions are written completely or not at all, and archived and restored unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Refused, UnknownRecord, Unwritable
from core.base.paths import ProjectPaths
from core.base.settings import DebugMemorySettings, Settings
from core.index.refresh import Index
from core.records.debug_sessions import Analysis, Execution, Failure, Fix, Results
from core.sources.debug_sessions import read_sessions
from core.sources.parsed_file import check_records
from core.sources.record_kinds import DEBUG_SESSIONS
from core.tasks.archive import DebugArchive, retention_period
from core.tasks.recorder import describe_run
from core.tasks.session_files import (
    MAX_FAILURES,
    encode_execution,
    files_of_diff,
    new_record,
    save_session,
    session_path,
    summarize_diff,
)
from tests.factories import DEBUG_NOW, exit_at_call, make_lesson, make_run, make_session

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
ID = "11111111-1111-4111-8111-111111111111"
DIFF = "--- a/src/a.ts\t2026\n+++ b/src/a.ts\n@@ -1 +1,2 @@\n-user.name\n+user?.name\n+  ?? ''\n"
RUN = Execution(
    attempt=1,
    at=AT,
    code_hash="abc",
    environment=(("test_framework", "jest"), ("command", "npm test"), ("exit_code", "1")),
    results=Results(total=3, passed=2, failed=1, skipped=0, duration_ms=1500),
    failures=(
        Failure(
            error_type="TypeError",
            message="user is null",
            file="src/a.ts",
            line=7,
            function="load",
            test_name="loads",
            test_file="a.test.ts",
            test_line=3,
            stack_trace="at load",
            expected="x",
            actual="y",
        ),
        Failure(error_type="KeyError", message="'total'", test_name="adds"),
    ),
    analysis=Analysis(
        root_cause="The user may be null at first.",
        category="null_undefined_access",
        strategy="Read the name only if there is one.",
        confidence=0.9,
        related=("saves",),
    ),
    fix=Fix(description="Guard the access", diff=DIFF, diff_summary="+2/-1 lines", files=("src/a.ts",), verified=True),
)


def record(*runs: Execution) -> dict[str, Any]:
    executions = [encode_execution(run) for run in runs]
    return new_record(ID, AT, file="src/a.ts", metadata={"agent": "claude", "loop_id": ""}, executions=executions)


def test_what_is_written_is_read_again_without_findings() -> None:
    [session], findings = read_sessions("s.json", record(RUN))
    assert session.executions == (RUN,)
    assert (session.id, session.file_path, session.agent, session.created_at) == (ID, "src/a.ts", "claude", AT)
    assert findings == () and check_records("s.json", DEBUG_SESSIONS, record(RUN)) == ()


def test_an_unknown_error_type_keeps_its_name_beside_the_allowed_one() -> None:
    failure = record(RUN)["executions"][0]["failures"][1]
    assert (failure["error_type"], failure["exception_type"]) == ("Other", "KeyError")


def test_long_lists_and_texts_are_cut_and_secrets_masked() -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    failures = tuple(Failure(message=f"{secret} {'x' * 99_999}", test_name=str(n)) for n in range(99))
    [encoded] = record(Execution(attempt=1, at=AT, failures=failures))["executions"]
    assert len(encoded["failures"]) == MAX_FAILURES
    assert len(json.dumps(encoded)) < 100_000 and secret not in json.dumps(encoded)


def test_a_diff_is_summarized() -> None:
    assert (summarize_diff(DIFF), files_of_diff(DIFF)) == ("+2/-1 lines", ("src/a.ts",))
    assert (summarize_diff(""), files_of_diff("--- a/x\n+++ /dev/null\n")) == ("", ("x",))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    project = ProjectPaths(tmp_path / "p")
    project.ralph.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (project.ralph / "debug-memory").symlink_to(tmp_path / "outside")
    with pytest.raises((Unwritable, ValueError)):
        save_session(project, record(RUN), lambda present, new: new)
    assert list((tmp_path / "outside").iterdir()) == []


WRITES = {"_read", "_create", "_swap", "_exchange", "_write_draft", "append_bytes", "sync_folder", "_version"}


@pytest.mark.parametrize("after", [1, 2, 3, 4, 5, 6, 8, 10])
def test_a_kill_between_writes_leaves_the_old_or_the_new_session(tmp_path: Path, after: int) -> None:
    project = ProjectPaths(tmp_path)
    project.ralph.mkdir(parents=True)
    old, new = record(), record(RUN)
    save_session(project, old, lambda present, new: new)
    assert exit_at_call(after, WRITES, lambda: save_session(project, new, lambda present, new: new)) == 9
    assert json.loads(session_path(project, ID).read_text()) in (old, new)
    save_session(project, new, lambda present, new: new)
    assert json.loads(session_path(project, ID).read_text()) == new


@pytest.mark.parametrize(
    ("report", "code", "counts"), [("1 failed, 2 passed", 0, (2, 1)), ("2 passed", 1, (2, 1)), ("3 passed", 0, (3, 0))]
)
def test_counts_are_those_of_the_report_whatever_the_exit_code_is(
    report: str, code: int, counts: tuple[int, int]
) -> None:
    run = describe_run("pytest", code, report.encode(), "", DEBUG_NOW, duration_ms=1)
    assert run.results is not None and (run.results.passed, run.results.failing or 0) == counts


SETTINGS = DebugMemorySettings()


def test_longest_retention_period_applies() -> None:
    rows: list[tuple[str, bool, str, int | None]] = [
        ("failed", False, "default_days", 30),
        ("passed", True, "on_learning_identified", 60),
        ("escalated", False, "on_escalation", 90),
        ("escalated", True, "on_escalation", 90),
        ("", False, "default_days", 30),
        ("in_progress", True, "in_progress", None),
    ]
    for status, learned, rule, days in rows:
        found = retention_period(
            make_session("s", status=status, lessons=(make_lesson(),) if learned else ()), SETTINGS
        )
        assert (found.rule, found.days) == (rule, days), status
        assert found.until == (DEBUG_NOW + timedelta(days=days) if days else None), status


def test_retention_counts_from_the_last_change() -> None:
    made = DEBUG_NOW - timedelta(days=50)
    later = made + timedelta(days=45)
    untold = make_session("s", make_run(at=later), created_at=made, updated_at=made)
    assert retention_period(untold, SETTINGS).until == later + timedelta(days=30)
    result = make_session("s", make_run(at=later), created_at=made, updated_at=made + timedelta(days=1))
    assert retention_period(result, SETTINGS).until == made + timedelta(days=31)
    assert retention_period(result, SETTINGS, restored_at=DEBUG_NOW).until == DEBUG_NOW + timedelta(days=30)
    assert retention_period(make_session("s", updated_at=None), SETTINGS).rule == "undated"
    end = datetime.max.replace(tzinfo=DEBUG_NOW.tzinfo)
    assert retention_period(make_session("s", updated_at=end), SETTINGS).until is None


def stored(id: str, days: float = 100, status: str = "failed") -> dict[str, Any]:
    at = (DEBUG_NOW - timedelta(days=days)).isoformat()
    return {"session_id": id, "file_path": "a.ts", "status": status, "updated_at": at, "executions": []}


class Memory:
    """The debug memory of an empty project."""

    def __init__(self, project: Path) -> None:
        self.paths = ProjectPaths(project)
        self.archive = DebugArchive(self.paths, by="ada")

    def write(self, name: str, *sessions: dict[str, Any]) -> Path:
        path = self.paths.aiwg / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(value) + "\n" for value in sessions))
        else:
            path.write_text(json.dumps(sessions[0]))
        return path

    def retain(self, now: datetime = DEBUG_NOW) -> dict[str, str]:
        moved, warnings = self.archive.archive_expired(SETTINGS, now)
        assert warnings == ()
        return {one.source.removeprefix(".aiwg/"): one.target.removeprefix(".aiwg/") for one in moved}

    def sessions(self) -> set[str]:
        return set(Index(self.paths, Settings(), clock=lambda: DEBUG_NOW, is_kept=False).load().debug_sessions)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("ralph/debug-memory/sessions/s.json", "ralph/debug-memory/archive/2026-11/sessions/s.json"),
        ("ralph/debug-memory/s.yaml", "ralph/debug-memory/archive/2026-11/s.yaml"),
        ("ralph/loops/ralph-a/debug-memory/s.json", "ralph/loops/ralph-a/debug-memory/archive/2026-11/s.json"),
        ("ralph-external/debug-memory/s.jsonl", "ralph-external/debug-memory/archive/2026-11/s.jsonl"),
    ],
)
def test_file_is_archived_and_restored_unchanged(memory: Memory, name: str, target: str) -> None:
    path = memory.write(name, stored("s"))
    before = path.read_bytes()
    memory.write("ralph/debug-memory/young.json", stored("young", days=29))
    assert memory.retain() == {name: target}
    assert memory.sessions() == {"young"}
    (item,) = memory.archive.list_sessions()
    assert (item.session.id, item.file, item.at, item.by) == ("s", f".aiwg/{target}", DEBUG_NOW, "ada")
    assert memory.archive.restore("s", DEBUG_NOW).moved.target == f".aiwg/{name}"
    assert path.read_bytes() == before
    assert memory.sessions() == {"s", "young"}
    assert memory.archive.list_sessions() == ()
    assert memory.retain() == {}  # it is kept for another term
    assert set(memory.retain(DEBUG_NOW + timedelta(days=31))) >= {name}


def test_file_is_archived_when_all_its_sessions_expired(memory: Memory) -> None:
    memory.write("ralph/debug-memory/all.jsonl", stored("old"), stored("young", days=1))
    (kept,) = memory.archive.plan(SETTINGS)
    assert [term.session_id for term in kept.expired(DEBUG_NOW)] == ["old"]
    assert not kept.is_due(DEBUG_NOW)
    assert memory.retain() == {}
    assert list(memory.retain(DEBUG_NOW + timedelta(days=40))) == ["ralph/debug-memory/all.jsonl"]


def test_called_session_is_kept_like_an_escalated_one(memory: Memory) -> None:
    memory.write("ralph/debug-memory/s.json", stored("s"))
    call = {"session_id": "s", "preserved_at": (DEBUG_NOW - timedelta(days=89)).isoformat()}
    memory.write("ralph/shared/curation/escalations/s.json", call)
    assert memory.retain() == {}
    (kept,) = memory.archive.plan(SETTINGS)
    assert (kept.periods[0].rule, kept.periods[0].until) == ("on_escalation", DEBUG_NOW + timedelta(days=1))
    assert set(memory.retain(DEBUG_NOW + timedelta(days=1))) == {"ralph/debug-memory/s.json"}


def test_plan_writes_nothing(memory: Memory) -> None:
    memory.write("ralph/debug-memory/s.json", stored("s"))
    before = sorted(memory.paths.aiwg.rglob("*"))
    memory.archive.plan(SETTINGS)
    assert memory.archive.list_sessions() == ()
    assert sorted(memory.paths.aiwg.rglob("*")) == before


def test_files_are_never_overwritten(memory: Memory) -> None:
    path = memory.write("ralph/debug-memory/s.json", stored("s"))
    memory.retain()
    memory.write("ralph/debug-memory/s.json", stored("other"))
    with pytest.raises(Refused, match="another file exists at"):
        memory.archive.restore("s", DEBUG_NOW)
    assert memory.retain() == {"ralph/debug-memory/s.json": "ralph/debug-memory/archive/2026-11/s-2.json"}
    assert not path.exists()
    assert {item.session.id for item in memory.archive.list_sessions()} == {"s", "other"}


def test_renamed_file_gets_its_original_name_back(memory: Memory) -> None:
    memory.write("ralph/debug-memory/s.json", stored("one"))
    memory.retain()
    memory.write("ralph/debug-memory/s.json", stored("two"))
    memory.write("ralph/debug-memory/s-2.json", stored("three"))
    assert len(set(memory.retain().values())) == 2
    assert memory.archive.restore("two", DEBUG_NOW).moved.target == ".aiwg/ralph/debug-memory/s.json"
    with pytest.raises(Refused, match="another file exists at"):
        memory.archive.restore("one", DEBUG_NOW)
    assert memory.archive.restore("three", DEBUG_NOW).moved.target == ".aiwg/ralph/debug-memory/s-2.json"


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def kill_after_moves(memory: Memory, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DebugArchive, "_sync", killed)
        with pytest.raises(KeyboardInterrupt):
            work()


def test_next_run_completes_the_journal_after_a_kill(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.write("ralph/debug-memory/s.json", stored("s"))
    kill_after_moves(memory, monkeypatch, memory.retain)
    (item,) = memory.archive.list_sessions()
    assert (item.at, item.by) == (DEBUG_NOW, "ada")
    assert memory.retain(DEBUG_NOW + timedelta(days=1)) == {}
    journal = (memory.paths.curation / "debug-memory.jsonl").read_text().splitlines()
    assert [json.loads(line).get("moved") for line in journal] == [None, "archived"]
    kill_after_moves(memory, monkeypatch, lambda: memory.archive.restore("s", DEBUG_NOW))
    assert [kept.is_due(DEBUG_NOW) for kept in memory.archive.plan(SETTINGS)] == [False]
    assert memory.retain() == {}
    assert memory.sessions() == {"s"}


def test_the_next_run_completes_an_interrupted_move(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.write("ralph/debug-memory/s.json", stored("s"))
    with monkeypatch.context() as patch:
        patch.setattr(DebugArchive, "_move", killed)
        with pytest.raises(KeyboardInterrupt):
            memory.retain()
    assert memory.archive.list_sessions() == ()
    assert list(memory.retain()) == ["ralph/debug-memory/s.json"]
    assert memory.retain() == {}
    (item,) = memory.archive.list_sessions()
    assert item.at == DEBUG_NOW


def test_newest_archived_copy_is_restored_and_others_are_named(memory: Memory) -> None:
    archive = ".aiwg/ralph/debug-memory/archive"
    memory.write("ralph/debug-memory/archive/2026-09/b.json", stored("s"))
    memory.write("ralph/debug-memory/archive/2026-10/a.json", stored("s"))
    memory.write("ralph/debug-memory/a.json", stored("s"))
    memory.retain()
    restored = memory.archive.restore("s", DEBUG_NOW)
    assert restored.moved.source == f"{archive}/2026-11/a.json"
    assert restored.others == (f"{archive}/2026-10/a.json", f"{archive}/2026-09/b.json")
    assert restored.taken == {f"{archive}/2026-10/a.json"}


def test_incomplete_and_linked_files_stay(memory: Memory, tmp_path: Path) -> None:
    memory.write("ralph/debug-memory/torn.jsonl", stored("s")).open("a").write('{"session_id": "t"')
    real = memory.write("ralph/loops/ralph-a/debug-memory/real.json", stored("r", days=1))
    real.with_name("link.json").symlink_to(real)
    outside = tmp_path / "outside"
    outside.mkdir()
    (memory.paths.ralph / "loops/ralph-b").mkdir()
    (outside / "o.json").write_text(json.dumps(stored("o")))
    (memory.paths.ralph / "loops/ralph-b/debug-memory").symlink_to(outside)
    text = json.dumps(stored("y"))
    real.with_name("broken.yaml").write_text(f"{text}\n---\n{text}\n---\nx: [\n")
    moved, warnings = memory.archive.archive_expired(SETTINGS, DEBUG_NOW + timedelta(days=31))
    assert [one.sessions for one in moved] == [("r",)]
    assert warnings in (
        (),
        (".aiwg/ralph/loops/ralph-a/debug-memory/link.json was not archived: it is a link or a special file",),
    )
    assert (outside / "o.json").exists()


def test_linked_archive_is_not_written_to(memory: Memory, tmp_path: Path) -> None:
    path = memory.write("ralph/debug-memory/s.json", stored("s"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (path.parent / "archive").symlink_to(outside)
    moved, warnings = memory.archive.archive_expired(SETTINGS, DEBUG_NOW)
    assert (moved, len(warnings), path.exists(), list(outside.iterdir())) == ((), 1, True, [])
    assert memory.archive.list_sessions() == ()


def test_files_archived_by_other_programs_are_listed(memory: Memory) -> None:
    memory.write("ralph/debug-memory/archive/old.json", stored("theirs"))
    (item,) = memory.archive.list_sessions()
    assert (item.session.id, item.at) == ("theirs", None)
    with pytest.raises(Refused, match="by hand"):
        memory.archive.restore("theirs", DEBUG_NOW)
    with pytest.raises(UnknownRecord):
        memory.archive.restore("nobody\x1b", DEBUG_NOW)
