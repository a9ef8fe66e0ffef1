"""Write debug sessions in the form of docs/task-memory.md#form.

A new session is a JSON file of its own in `.aiwg/ralph/debug-memory`. Secrets in its texts are masked, and texts are
limited to what readers use. One lock per folder orders the writers of this program; a change by another program is
merged (docs/reliability.md#replacing-files).
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.errors import BadInput, Refused, Unwritable
from core.base.masking import mask_secrets
from core.base.paths import safe_component
from core.base.shell_commands import is_read_only, is_recorded_run, parse_results
from core.base.text import one_line, replace_surrogates, visible_line
from core.files.atomic_write import rewrite, take_theirs
from core.files.file_access import check_writable, file_lock
from core.files.file_reader import MAX_BYTES
from core.files.json_editor import BadJson, JsonText
from core.files.json_editor import Path as Place
from core.records.debug_sessions import (
    ERROR_TYPES,
    FAILED,
    IN_PROGRESS,
    PASSED,
    Analysis,
    Execution,
    Failure,
    Fix,
    Results,
)
from core.records.loops import Outcome
from core.records.times import iso
from core.sources.debug_sessions import MAX_TEXT, find_record
from core.sources.keys import RecordText
from core.tasks.changes import build_diff
from core.tasks.command_errors import find_failures
from core.tasks.error_messages import is_test_file
from core.tasks.log_summary import ActionCommand, parse_command
from core.tasks.reasons import find_reason, join_sentences, split_reason

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.debug_sessions import DebugSession
    from core.records.episodes import Action, Attempt


MAX_RUNS: Final = 50  # maximum number of executions of one session that are written, the last ones
MAX_FAILURES: Final = 20  # maximum number of failures of one execution
MAX_TRACE: Final = 4_000  # maximum length of a stack trace, in characters
MAX_LINE: Final = 2_000  # maximum length of a message, a name or a path, in characters
MIN_SENTENCE: Final = 20  # minimum length of a root cause and of a strategy in the format, in characters
FOLDER: Final = "debug-memory"
_OTHER: Final = "Other"
_NAMED: Final = ("runtime", "runtime_version", "test_framework", "os")  # names of `environment` in the format
_VERIFICATION: Final = {True: "passed", False: "failed", None: "pending"}
_RETRY_SECONDS: Final = (0.05, 0.1, 0.2)
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {}, ())

Record = dict[str, Any]
Edit = Callable[[JsonText, Place, Mapping[str, Any]], None]
"""Changes the record at a place of a document; applied to its own result it must change nothing."""


def session_path(paths: ProjectPaths, session_id: str) -> Path:
    """Return the file of a new session; BadInput for an unsafe ID or linked folder."""
    folder = paths.ralph / FOLDER
    return paths.unlinked(paths.relative(folder / f"{safe_component(session_id)}.json"))


def new_record(
    session_id: str, at: datetime, *, file: str = "", metadata: Mapping[str, Any], executions: Sequence[Record] = ()
) -> Record:
    """Return the record of a new session; empty metadata are left out."""
    return {
        "session_id": session_id,
        "file_path": clean_text(file, MAX_LINE),
        "created_at": iso(at),
        "updated_at": iso(at),
        "status": IN_PROGRESS,
        "executions": list(executions),
        "metadata": _without_empty(
            {name: clean_text(value, MAX_LINE) if isinstance(value, str) else value for name, value in metadata.items()}
        ),
    }


def encode_execution(run: Execution) -> Record:
    """Return an execution in the form of the format; `code` must be absent."""
    environment: Record = {name: value for name, value in run.environment if name in _NAMED}
    additional = {name: clean_text(value, MAX_LINE) for name, value in run.environment if name not in _NAMED}
    record: Record = {
        "attempt": run.attempt,
        "timestamp": iso(run.at) if run.at is not None else None,
        "code_hash": run.code_hash,
        "environment": environment | ({"additional": additional} if additional else {}),
        "test_results": encode_results(run.results) if run.results is not None else None,
        "failures": [encode_failure(failure) for failure in run.failures[:MAX_FAILURES]],
        "analysis": encode_analysis(run.analysis) if run.analysis is not None else None,
        "fix_applied": encode_fix(run.fix) if run.fix is not None else None,
    }
    return {name: value for name, value in record.items() if name == "code_hash" or value not in _EMPTY}


def encode_results(results: Results) -> Record:
    """Return the counts of a run; unknown total, passed, failed are derived or 0."""
    failed, passed = results.failed or 0, results.passed or 0
    total = results.total if results.total is not None else passed + failed + (results.errors or 0)
    counts = {"errors": results.errors, "skipped": results.skipped}
    duration = None if results.duration_ms is None else round(results.duration_ms)
    return {"total": total, "passed": passed, "failed": failed, **_without_empty({**counts, "duration_ms": duration})}


def encode_failure(failure: Failure) -> Record:
    """Return a failure; a type unknown to the format is "Other" + `exception_type`."""
    name = failure.error_type
    is_known = name in ERROR_TYPES
    message = failure.message or failure.test_name or "no message"
    place = {"file": failure.file, "line": failure.line, "function": failure.function}
    return {
        "test_name": clean_text(failure.test_name or failure.test_file or failure.file or "the check", MAX_LINE),
        **_without_empty(
            {"test_file": clean_text(failure.test_file, MAX_LINE), "test_line": failure.test_line},
        ),
        "error_type": name if is_known else _OTHER,
        **({"exception_type": clean_text(name, MAX_LINE)} if name and not is_known else {}),
        "error_message": clean_text(message, MAX_LINE),
        **_without_empty(
            {
                "stack_trace": clean_text(failure.stack_trace, MAX_TRACE),
                "expected": clean_text(failure.expected, MAX_LINE),
                "actual": clean_text(failure.actual, MAX_LINE),
                "source_location": _without_empty(place) if failure.file else None,
            }
        ),
    }


def encode_analysis(analysis: Analysis) -> Record:
    """Return an analysis; cause and strategy need `MIN_SENTENCE` characters."""
    return {
        "root_cause": clean_text(analysis.root_cause, MAX_LINE),
        **_without_empty({"root_cause_category": analysis.category}),
        "fix_strategy": clean_text(analysis.strategy, MAX_LINE),
        **_without_empty(
            {"confidence": analysis.confidence, "related_failures": [*map(clean_text, analysis.related)]},
        ),
    }


def encode_fix(fix: Fix) -> Record:
    """Return a fix; without a known result, its verification is pending."""
    return {
        "description": clean_text(fix.description, MAX_LINE),
        **_without_empty(
            {
                "diff_summary": fix.diff_summary or summarize_diff(fix.diff),
                "files_changed": [clean_text(file, MAX_LINE) for file in fix.files],
                "diff": clean_text(fix.diff),
            }
        ),
        "verification": _VERIFICATION[fix.verified],
    }


def summarize_diff(diff: str) -> str:
    """Return counts of added and removed lines as `+5/-2 lines`; "" without a diff."""
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return f"+{added}/-{removed} lines" if added or removed else ""


def files_of_diff(diff: str) -> tuple[str, ...]:
    """Return the files that a unified diff changes, each once."""
    lines = (line for line in diff.splitlines() if line.startswith(("+++ ", "--- ")))
    names = (line[4:].partition("\t")[0].strip() for line in lines)
    found = (name[2:] if name.startswith(("a/", "b/")) else name for name in names if name != "/dev/null")
    return tuple(dict.fromkeys(found))


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text to write, without secrets and lone surrogates, up to `limit`."""
    return replace_surrogates(mask_secrets(text[: 2 * limit]))[:limit]


def _without_empty(values: Mapping[str, Any]) -> Record:
    return {name: value for name, value in values.items() if value not in _EMPTY}


def _encode(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


@contextmanager
def locked_folder(paths: ProjectPaths) -> Iterator[None]:
    """Lock the debug memory for writing, and create its folder."""
    folder = paths.ralph / FOLDER
    try:
        paths.unlinked(paths.relative(folder))
    except BadInput as error:
        raise Unwritable(str(error)) from None
    with file_lock(folder / ".debug-memory.lock"):
        yield


def save_session(paths: ProjectPaths, record: Record, merge: Callable[[Record, Record], Record]) -> bool:
    """Write a session to its own file; return whether the file changed.

    `merge` gets the present record and the new one, and returns the one to be written. Raises Conflict if the present
    file cannot be parsed, and Unwritable if it cannot be written.
    """
    path = session_path(paths, record["session_id"])
    is_changed = False

    def change(present: bytes | None) -> bytes:
        nonlocal is_changed
        wanted = record
        if present is not None:
            known = JsonText(present).value
            if not isinstance(known, dict):
                raise BadJson("it does not contain a JSON object")
            wanted = merge(known, record)
            if wanted == known:
                return present
        is_changed = True
        return _encode(wanted)

    with locked_folder(paths):
        rewrite(path, change, merge=take_theirs, retry_seconds=_RETRY_SECONDS)
    return is_changed


def edit_session(paths: ProjectPaths, session: DebugSession, edit: Edit) -> None:
    """Change a session's record in its file; everything else keeps its bytes.

    Raises Refused if it is a YAML file, gone, reached through a link, without the session or too long, Conflict if it
    cannot be parsed, and Unwritable if it cannot be written.
    """
    path = check_editable(paths, session)
    shown = visible_line(session.file, 160)

    def change(data: bytes | None) -> bytes:
        if data is None:
            raise Refused(f"{shown} no longer exists")
        document = RecordText(data)
        located = find_record(session.file, document.value, session.id)
        if located is None:
            raise Refused(f"debug session {visible_line(session.id, 80)} is no longer in {shown}")
        edit(document, *located)
        after = document.encode()
        if len(after) > MAX_BYTES:
            raise Refused(f"{shown} would become longer than {MAX_BYTES:,} bytes; start another session")
        return after

    with locked_folder(paths):
        rewrite(path, change, merge=take_theirs, retry_seconds=_RETRY_SECONDS)


def check_editable(paths: ProjectPaths, session: DebugSession) -> Path:
    """Return a session's file; Refused for YAML or a link, ReadOnly if read-only."""
    if session.file.endswith((".yaml", ".yml")):
        shown = visible_line(session.file, 160)
        raise Refused(
            f"{shown} is YAML, to which nothing is added; start another session: ralphdeck debug record --start"
        )
    path = locate_file(paths, session)
    check_writable(path)
    return path


def locate_file(paths: ProjectPaths, session: DebugSession) -> Path:
    """Return a session's file; Refused outside of the project or through a link."""
    try:
        path = paths.inside(session.file)
    except BadInput as error:
        raise Refused(str(error)) from None
    if path != paths.aiwg.resolve().joinpath(*session.file.split("/")[1:]):
        raise Refused(f"{visible_line(session.file, 160)} is reached through a link; it was not changed")
    return path


# Sessions of attempts (docs/task-memory.md#sessions-of-attempts)

COMMAND: Final = "command"  # keys of `environment.additional`
EXIT_CODE: Final = "exit_code"
RECORDED_BY: Final = "recorded_by"  # key of a run, analysis or fix that a command wrote; a session keeps it
_SPACE: Final = uuid.UUID("6f1d3f0e-6c0b-4c55-9d43-6f6a4d0c2b11")  # name space of the IDs
_MAX_ACTIONS: Final = 5_000  # newest actions of an attempt that are read
_MAX_OUTPUT: Final = 20_000  # end of an output that is searched for failures, in characters
_MAX_COMMAND: Final = 300
_STATUS: Final = {Outcome.SUCCESS: PASSED, Outcome.FAILURE: FAILED, Outcome.TIMEOUT: FAILED, Outcome.PARTIAL: FAILED}
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:?|exit status) (-?\d{1,6})\b", re.IGNORECASE)
_NO_RUNNER: Final = re.compile(
    r"No module named '?(?:pytest|unittest|tox|nox|mypy|ruff|flake8)\b"
    r"|(?:command not found|: not found|is not recognized as an internal .{1,80}|No such file or directory)\s*$",
    re.MULTILINE,
)
_CAUSES: Final = {
    "null_undefined_access": re.compile(
        r"'NoneType' object|NullPointerException|nil pointer dereference|\b(?:of|is) (?:null|undefined)\b"
    ),
    "dependency_issue": re.compile(r"No module named|Cannot find (?:module|package)|ModuleNotFoundError"),
    "type_mismatch": re.compile(
        r"unsupported operand type|can only concatenate|Incompatible types?\b|is not assignable to type"
    ),
}  # root cause categories, by what a message states
_NOT_RUN: Final = frozenset({126, 127})  # exit codes of a shell that could not run a command


def session_id(task_id: str, number: int, started_at: datetime | None) -> str:
    """Return the ID of the session of an attempt; always the same for one attempt."""
    return str(uuid.uuid5(_SPACE, f"{task_id}.{number} {iso(started_at) if started_at is not None else ''}"))


def make_session(attempt: Attempt, actions: Sequence[Action], now: datetime, *, root: str = "") -> Record | None:
    """Return the debug session of an attempt; None if none of its checks failed.

    Only checks that failed at least once are part of it. `root` is the project folder, which is removed from texts.
    """
    newest = list(actions[-_MAX_ACTIONS:])
    runs = _find_runs(newest)
    if not any(newest[place].has_failed for place, _ in runs):
        return None
    executions = [*_executions(attempt, newest, runs, root)]
    failing = [failure for run in executions for failure in run.failures]
    changed = [file for run in executions if run.fix is not None for file in run.fix.files]
    metadata: dict[str, Any] = {
        "agent": attempt.agent,
        "task_id": attempt.task_id,
        "attempt": attempt.number,
    }
    record = new_record(
        session_id(attempt.task_id, attempt.number, attempt.started_at),
        executions[0].at or attempt.started_at or now,
        file=find_main_file(failing, changed),
        metadata=metadata,
        executions=[encode_execution(run) for run in executions[-MAX_RUNS:]],
    )
    ended = attempt.ended_at or attempt.last_action_at or executions[-1].at or now
    return record | {"updated_at": iso(ended), "status": _STATUS.get(attempt.outcome, IN_PROGRESS)}


def merge_records(present: Record, new: Record) -> Record:
    """Add runs, analyses, fixes, lessons and escalation by commands to a new record."""
    known = {entry.get("timestamp"): entry for entry in present.get("executions", ()) if isinstance(entry, dict)}
    executions = []
    for entry in new["executions"]:
        before = known.get(entry["timestamp"], {})
        parts = {name: before[name] for name in ("analysis", "fix_applied") if _is_by_command(before.get(name))}
        executions.append({**entry, **parts})
    times = {entry["timestamp"] for entry in executions}
    executions += [entry for at, entry in known.items() if at not in times and _is_by_command(entry)]
    executions.sort(key=lambda entry: str(entry.get("timestamp")))
    kept = {name: value for name, value in present.items() if name not in new}
    is_escalated = present.get("status") == "escalated" and new["status"] != PASSED
    numbered = [{**entry, "attempt": number} for number, entry in enumerate(executions, 1)]
    return {**new, **kept, "executions": numbered, **({"status": present["status"]} if is_escalated else {})}


def _is_by_command(value: Any) -> bool:
    return isinstance(value, dict) and RECORDED_BY in value


def _find_runs(actions: Sequence[Action]) -> list[tuple[int, ActionCommand]]:
    """Return place and command of each run of a check that ever failed, in order.

    A check is a test, build, type check or linter, or any command that failed and was run again after a change.
    """
    runs: defaultdict[tuple[str, ...], list[tuple[int, ActionCommand]]] = defaultdict(list)
    edits = [place for place, action in enumerate(actions) if action.changed_file]
    for place, action in enumerate(actions):
        is_run = action.command and not is_recorded_run(action.command) and not is_read_only(action.command)
        has_result = action.success is not None or action.has_failed
        if is_run and has_result and not (action.has_failed and _could_not_run(action)):
            command = parse_command(action)
            runs[command.key].append((place, command))
    found: list[tuple[int, ActionCommand]] = []
    for own in runs.values():
        failed = next((place for place, _ in own if actions[place].has_failed), None)
        is_repeated = failed is not None and any(failed < edit < own[-1][0] for edit in edits)
        if failed is not None and (own[0][1].check or is_repeated):
            found += own
    return sorted(found, key=lambda run: run[0])


def _could_not_run(action: Action) -> bool:
    """Return whether a check failed only because it is not installed."""
    code = _exit_code(action)
    return code in _NOT_RUN or bool(_NO_RUNNER.search(f"{action.error[-_MAX_OUTPUT:]}\n{action.output[-_MAX_OUTPUT:]}"))


def _executions(
    attempt: Attempt, actions: Sequence[Action], runs: Sequence[tuple[int, ActionCommand]], root: str
) -> Iterator[Execution]:
    digest, code_hash = hashlib.sha256(), ""
    before = 0
    last_edit = max((place for place, action in enumerate(actions) if action.changed_file), default=-1)
    ends = [place for place, _ in runs[1:]] + [len(actions)]
    for number, ((place, command), end) in enumerate(zip(runs, ends, strict=True), 1):
        for action in actions[before:place]:
            if action.changed_file:
                digest.update("\n".join((action.target, *build_diff(action))).encode("utf-8", "replace"))
                code_hash = digest.hexdigest()
        before = place
        action = actions[place]
        failures = tuple(_failures(action, root)) if action.has_failed else ()
        code = _exit_code(action)
        run = Execution(
            attempt=number,
            at=action.at,
            code_hash=code_hash,
            environment=(
                ("test_framework", " ".join(command.check) or command.whole[0].split(" ", 1)[0]),
                (COMMAND, _relative(one_line(action.command, _MAX_COMMAND), root)),
                *(((EXIT_CODE, str(code)),) if code is not None else ()),
            ),
            results=_results(action, failures),
            failures=failures,
        )
        changes = [one for one in actions[place + 1 : end] if one.changed_file] if failures else []
        if changes:
            fix = _fix(changes, attempt, is_last=place < last_edit < end, root=root)
            fix = replace(fix, verified=_verdict(actions, runs[number:], command, failures, root))
            run = replace(run, fix=fix, analysis=_analysis(changes, fix, failures))
        yield run


def _verdict(
    actions: Sequence[Action],
    later: Iterable[tuple[int, ActionCommand]],
    command: ActionCommand,
    failures: Sequence[Failure],
    root: str,
) -> bool | None:
    """Return whether the check's next run passed; None if none or another failure."""
    following = next((actions[place] for place, other in later if other.covers(command)), None)
    if following is None:
        return None
    if not following.has_failed:
        return True
    again = {_problem(failure) for failure in _failures(following, root)}
    return False if again & {_problem(failure) for failure in failures} else None


def _problem(failure: Failure) -> tuple[str, str]:
    return ("", failure.test_name) if failure.test_name else (failure.error_type, failure.message)


def _failures(action: Action, root: str) -> Iterator[Failure]:
    error, output = action.error[-_MAX_OUTPUT:], action.output[-_MAX_OUTPUT:]
    what = _relative(one_line(action.command, _MAX_COMMAND), root)
    for failure in find_failures(error, output, root):
        yield replace(
            failure,
            test_name=failure.test_name or what,
            message=_relative(failure.message, root),
            stack_trace=_relative(failure.stack_trace, root),
        )


def _results(action: Action, failures: Sequence[Failure]) -> Results:
    """Return counts in the output, else one test for each failure, at least one."""
    counted = parse_results(action.output) or parse_results(action.error)
    if counted is not None and counted.green is not action.has_failed:
        return counted
    failed = max(len(failures), 1) if action.has_failed else 0
    return Results(total=failed or 1, passed=0 if failed else 1, failed=failed)


def _fix(changes: Sequence[Action], attempt: Attempt, *, is_last: bool, root: str) -> Fix:
    """Return the fix after a failing run, by reasons, else last message, else lines."""
    diff = "\n".join(part for change in changes for part in build_diff(change))[:MAX_TEXT]
    reason = " ".join(_reasons(changes)) or (find_reason((attempt.reason,)) if is_last else "")
    files = tuple(dict.fromkeys(_relative(change.target, root) for change in changes if change.target))
    return Fix(
        description=_relative(reason or _describe_lines(diff, files), root), diff=_relative(diff, root), files=files
    )


def _reasons(changes: Sequence[Action]) -> list[str]:
    """Return what the agent wrote before each change, without greetings, successes."""
    return list(dict.fromkeys(text for change in changes if (text := join_sentences(split_reason(change.reasoning)))))


def _describe_lines(diff: str, files: Sequence[str]) -> str:
    """Describe a change by its first replaced line: `cart.py: "a" instead of "b"`."""
    lines = diff.splitlines()
    removed = next((line[1:].strip() for line in lines if line.startswith("-") and not line.startswith("---")), "")
    added = next((line[1:].strip() for line in lines if line.startswith("+") and line[1:2] not in ("+", "")), "")
    where = f"{files[0]}: " if files else ""
    if added:
        return one_line(f"{where}{added}{f' instead of {removed}' if removed else ''}")
    return one_line(f"{where}removed {removed}" if removed else f"changed {', '.join(files[:3])}")


def _analysis(changes: Sequence[Action], fix: Fix, failures: Sequence[Failure]) -> Analysis | None:
    """Return the agent's text before the change, cause first; None if too short."""
    sentences = [sentence for reason in _reasons(changes) for sentence in split_reason(reason)]
    if not sentences:
        return None
    first, *rest = sentences
    strategy = " ".join(rest)
    cause = first if len(strategy) >= MIN_SENTENCE else fix.description
    strategy = strategy if len(strategy) >= MIN_SENTENCE else fix.description
    if min(len(cause), len(strategy)) < MIN_SENTENCE:
        return None
    return Analysis(root_cause=cause, strategy=strategy, category=_category(failures))


def _category(failures: Sequence[Failure]) -> str:
    """Return the root cause category that a failure's message states, or ""."""
    texts = [f"{failure.error_type}: {failure.message}" for failure in failures]
    return next((name for name, words in _CAUSES.items() if any(words.search(text) for text in texts)), "")


def _exit_code(action: Action) -> int | None:
    """Return the exit code in the error or output of a command; 0 if it succeeded."""
    if action.success:
        return 0
    found = _EXIT.search(action.error[:_MAX_OUTPUT]) or _EXIT.search(action.output[-_MAX_OUTPUT:])
    return int(found[1]) if found else None


def find_main_file(failures: Iterable[Failure], changed: Sequence[str]) -> str:
    """Return a session's main file: if possible, a changed one with an error."""
    places = [failure.file for failure in failures if failure.file and not failure.file.startswith(("/", "../"))]
    sources = [file for file in places if not is_test_file(file)]
    both = (file for file in sources if file in changed)
    tests = (failure.test_file for failure in failures if failure.test_file)
    return next((file for one in (both, changed, sources, places, tests) for file in one), "")


def _relative(text: str, root: str) -> str:
    return text.replace(f"{root.rstrip('/')}/", "") if root else text
