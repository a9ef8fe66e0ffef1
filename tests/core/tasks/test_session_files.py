"""Debug sessions are written in the form that readers expect, completely or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Unwritable
from core.base.paths import ProjectPaths
from core.records.debug_sessions import Analysis, Execution, Failure, Fix, Results
from core.sources.debug_sessions import read_sessions
from core.sources.parsed_file import check_records
from core.sources.record_kinds import DEBUG_SESSIONS
from core.tasks.session_files import (
    MAX_FAILURES,
    encode_execution,
    files_of_diff,
    new_record,
    save_session,
    session_path,
    summarize_diff,
)

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


_KILLED = """
import json, os, sys
from pathlib import Path
from core.base.paths import ProjectPaths
from core.tasks.session_files import save_session
left = int(sys.argv[2])
def trace(frame, event, arg):
    global left
    if event == "call" and frame.f_code.co_name in {
        "_read", "_create", "_swap", "_exchange", "_write_draft", "append_bytes", "sync_folder", "_version"
    }:
        left -= 1
        if not left:
            os._exit(9)
sys.setprofile(trace)
save_session(ProjectPaths(Path(sys.argv[1])), json.loads(sys.argv[3]), lambda present, new: new)
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 3, 4, 5, 6, 8, 10])
def test_a_kill_between_writes_leaves_the_old_or_the_new_session(tmp_path: Path, after: int) -> None:
    project = ProjectPaths(tmp_path)
    project.ralph.mkdir(parents=True)
    old, new = record(), record(RUN)
    save_session(project, old, lambda present, new: new)
    arguments = [str(tmp_path), str(after), json.dumps(new)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", _KILLED, *arguments], env=env, check=False, timeout=60)
    assert done.returncode == 9
    assert json.loads(session_path(project, ID).read_text()) in (old, new)
    save_session(project, new, lambda present, new: new)
    assert json.loads(session_path(project, ID).read_text()) == new
