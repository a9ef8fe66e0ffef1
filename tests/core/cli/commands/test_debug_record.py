"""`debug record --start`, `run`, `analyse`, `fix` and `end` record a session of the debug memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.index.refresh import Index
from core.records.debug_sessions import DebugSession
from tests.core.cli.conftest import ROOT, Call
from tests.factories import DEBUG_NOW

ID = "11111111-1111-4111-8111-111111111111"
CAUSE = ["--cause", "total() reads line.vat, which is None", "--strategy", "Count a missing VAT as 0 in total()"]
FAIL = "print('TypeError: line.vat is null at src/cart.py:7'); print('1 failed, 2 passed'); raise SystemExit(3)"
PASS = "print('3 passed')"
JEST = {
    "numTotalTests": 3,
    "numPassedTests": 2,
    "numFailedTests": 1,
    "numPendingTests": 0,
    "testResults": [
        {
            "name": "cart.test.ts",
            "status": "failed",
            "assertionResults": [
                {"status": "failed", "fullName": "adds VAT", "failureMessages": ["TypeError: vat is null"]}
            ],
        }
    ],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".aiwg" / "ralph").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def started(project: Path, call: Call) -> str:
    """A session without a run."""
    return call(
        "debug", "record", "--start", "--id", ID, "--agent", "debugger", "--file", str(project / "src/cart.py")
    ).out.strip()


def read(project: Path) -> DebugSession:
    """Read a session as every reader does; there is no finding about its file."""
    index = Index(ProjectPaths(project), Settings(), clock=lambda: DEBUG_NOW, is_kept=False)
    snapshot = index.load()
    assert not [finding for finding in snapshot.findings if "debug-memory" in finding.file]
    return snapshot.debug_sessions[ID]


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def test_a_session_from_start_to_end(started: str, project: Path, call: Call) -> None:
    failing = call("debug", "run", started, *python(FAIL))
    assert failing.code == 3 and "TypeError: line.vat is null" in failing.out
    assert call("debug", "record", started, "--category", "null_undefined_access", *CAUSE).code == 0
    assert call("debug", "record", started, "--fix", "Count a missing VAT as 0", "--file", "src/cart.py").code == 0
    assert read(project).executions[0].fix is not None and read(project).verdicts == (None,)
    assert call("debug", "run", started, *python(PASS)).code == 0
    ended = call("debug", "record", started, "--end", "resolved", "--json")
    assert (ended.document["status"], ended.document["changed"]) == ("passed", True)
    session = read(project)
    first, second = session.executions
    assert (session.status, session.file_path, session.agent) == ("passed", "src/cart.py", "debugger")
    assert first.results is not None and (first.results.passed, first.results.failed) == (2, 1)
    assert [(one.error_type, one.message, one.file, one.line) for one in first.failures] == [
        ("TypeError", "line.vat is null", "src/cart.py", 7)
    ]
    assert dict(first.environment)["exit_code"] == "3" and dict(second.environment)["exit_code"] == "0"
    assert first.analysis is not None and first.analysis.category == "null_undefined_access"
    assert session.verdicts == (True, None) and session.lessons[0].fix_template == "Count a missing VAT as 0"
    [row] = call("debug", "list", "--error-type", "TypeError", "--json").document["sessions"]
    assert row["id"] == ID
    offer = call("debug", "failure", "--message", "TypeError: line.vat is null", "--json").document
    assert [fix["session"] for fix in offer["fixes"]] == [ID]


def test_a_fix_that_did_not_help_is_marked_by_the_next_run(started: str, project: Path, call: Call) -> None:
    call("debug", "run", started, *python(FAIL))
    call("debug", "record", started, "--fix", "Clear the cache")
    call("debug", "run", started, *python(FAIL))
    raw = json.loads((project / f".aiwg/ralph/debug-memory/{ID}.json").read_text())
    assert raw["executions"][0]["fix_applied"]["verification"] == "failed"
    assert call("debug", "record", started, "--end", "auto").code == 2
    assert call("debug", "record", started, "--end", "resolved").code == 1


def test_a_report_is_read_without_running_anything(started: str, project: Path, call: Call) -> None:
    (project / "report.json").write_text(json.dumps(JEST))
    document = call("debug", "run", started, "--input", "report.json", "--json").document
    assert (document["exit_code"], document["results"]["passed"]) == (None, 2)
    assert [one.test_name for one in read(project).executions[0].failures] == ["adds VAT"]
    (project / "report.json").write_text("hello")
    refused = call("debug", "run", started, "--input", "report.json")
    assert refused.code == 1 and "neither counts nor failures" in refused.err
    assert len(read(project).executions) == 1


def test_a_json_report_on_stdout_is_parsed_and_passed_on(started: str, project: Path, call: Call) -> None:
    code = f"import sys; sys.stderr.write('FAIL noise\\n'); print({json.dumps(JEST)!r}); raise SystemExit(1)"
    result = call("debug", "run", started, *python(code))
    assert result.document == JEST and "FAIL noise" in result.err
    with_json = call("debug", "run", started, "--json", *python(PASS))
    assert with_json.document["results"]["passed"] == 3 and "3 passed" in with_json.err
    assert [one.message for one in read(project).executions[0].failures] == ["vat is null"]


def test_a_command_that_cannot_be_started_is_not_recorded(started: str, project: Path, call: Call) -> None:
    result = call("debug", "run", started, "--", "no-such-command")
    assert result.code == 1 and "cannot run no-such-command" in result.err
    assert read(project).executions == ()


def test_nothing_is_run_if_the_run_could_not_be_recorded(started: str, project: Path, call: Call) -> None:
    code = "import pathlib; pathlib.Path('ran').touch()"
    assert call("--readonly", "debug", "run", started, *python(code)).code == 1
    assert call("debug", "run", "no-such-session", *python(code)).code == 1
    call("debug", "record", started, "--end", "abandoned")
    assert call("debug", "run", started, *python(code)).code == 1
    assert not (project / "ran").exists()


def test_the_diff_of_a_fix_names_its_files_and_is_masked(started: str, project: Path, call: Call) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    call("debug", "run", started, *python(FAIL))
    (project / "fix.diff").write_text(f"--- a/src/cart.py\n+++ b/src/cart.py\n@@ -1 +1 @@\n-a\n+token = '{secret}'\n")
    call("debug", "record", started, "--fix", "Use the token", "--diff", "fix.diff")
    fix = read(project).executions[0].fix
    assert fix is not None and fix.files == ("src/cart.py",) and fix.diff_summary == "+1/-1 lines"
    assert secret not in fix.diff and "token = " in fix.diff


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([ID, "--cause", "short", "--strategy", "x" * 20], "the format needs 20"),
        ([ID, *CAUSE], "no run with a failure"),
        ([ID, "--fix", "Guard it"], "no run with a failure"),
        (["--start", "--id", "abc"], "is not a UUID"),
        ([ID, "--end", "resolved", "--reason", "x"], "--reason needs --end escalated"),
    ],
)
def test_what_cannot_be_recorded_is_explained(started: str, call: Call, arguments: list[str], problem: str) -> None:
    result = call("debug", "record", *arguments)
    assert result.code in (1, 2) and problem in result.err


def test_calls_can_be_repeated(started: str, project: Path, call: Call) -> None:
    assert call("debug", "record", "--start", "--id", ID).out.strip() == started
    call("debug", "run", started, *python(FAIL))
    for _ in range(2):
        call("debug", "record", started, *CAUSE)
        call("debug", "record", started, "--fix", "Count a missing VAT as 0")
    assert len(read(project).executions) == 1
    ended = [
        call("debug", "record", started, "--end", "escalated", "--reason", "why", "--json").document for _ in range(2)
    ]
    assert [one["changed"] for one in ended] == [True, False]
    assert len(list((project / ".aiwg/ralph/shared/curation/escalations").iterdir())) == 1
    assert [row["id"] for row in call("debug", "list", "--escalated", "--json").document["sessions"]] == [ID]


def test_a_session_of_another_program_keeps_its_other_bytes(project: Path, call: Call) -> None:
    file = project / ".aiwg/ralph/debug-memory/all.json"
    file.parent.mkdir()
    file.write_text('{"sessions": [{"sessionId": "' + ID + '", "filePath": "a.ts", "executions": [], "mine": 1.50}]}')
    assert call("debug", "run", ID, *python(FAIL)).code == 3
    text = file.read_text()
    assert '"mine": 1.50' in text and '"errorMessage": "line.vat is null"' in text
    assert len(read(project).executions) == 1


def test_a_yaml_session_is_refused_before_anything_is_run(project: Path, call: Call) -> None:
    file = project / ".aiwg/ralph/debug-memory/s.yaml"
    file.parent.mkdir()
    file.write_text("session_id: s\nfile_path: a.ts\nexecutions: []\n")
    result = call("debug", "run", "s", *python("open('ran', 'w')"))
    assert result.code == 1 and "is YAML" in result.err and not (project / "ran").exists()


@pytest.mark.slow
def test_runs_of_two_processes_are_both_recorded(started: str, project: Path) -> None:
    command = [sys.executable, "-m", "core.cli", "debug", "run", ID, "--project", str(project), "--", sys.executable]
    running = [
        subprocess.Popen(
            [*command, "-c", FAIL, str(number)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for number in range(2)
    ]
    for process in running:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 3, err
    runs = read(project).executions
    assert [run.attempt for run in runs] == [1, 2]
    assert len({dict(run.environment)["command"] for run in runs}) == 2
