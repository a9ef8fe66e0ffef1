"""Demo scripts, read from `sample_data/demo/`, and the loops that follow them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from core.base.errors import Conflict, Unwritable
from core.base.paths import PATTERN_FILES, ProjectPaths
from core.cli.demo.sample import SAMPLE
from core.files.atomic_write import curation_lock, rewrite
from core.records.times import iso
from core.sources.keys import RecordText
from core.sources.pattern_text import find, merge_records

_FOLDER: Final[Path] = SAMPLE / "demo"


class IterationScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Iteration of a loop: `quality` 0..100, and the ID of the applied pattern or ""."""

    action: str
    result: str
    quality: int
    learning: str = ""
    pattern: str = ""
    worked: bool = True  # Whether the pattern helped.


class LoopScript(Struct, frozen=True, forbid_unknown_fields=True):
    """All further iterations of a loop, which may already be running in the sample."""

    task: str
    iterations: tuple[IterationScript, ...]
    criteria: str = ""
    owner: str = "software-implementer"
    tags: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    """IDs of patterns that are injected when the loop starts, even if no iteration applies them."""
    crashes: bool = False  # Whether the loop's process dies after the last iteration; otherwise the loop completes.


class LoopScripts(Struct, frozen=True, forbid_unknown_fields=True):
    """Scripts of loops that run in the sample, and of loops that start later."""

    running: tuple[LoopScript, ...]
    new: tuple[LoopScript, ...]


class ActionScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Action that the simulated agent logs."""

    type: str
    target: str  # The file, command, search pattern or task description, by `type`.
    reasoning: str
    expected: str
    output: str = ""
    error: str = ""  # Why the action failed; "" if it succeeded.
    change: tuple[str, str] | None = None  # Old and new text of an edit.
    quality: float | None = None
    """Quality of the work after this action, 0..1, if the action ends the iteration; otherwise None."""


class AttemptScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Attempt at a task; without an approach, it continues the sample's open attempt."""

    actions: tuple[ActionScript, ...]
    succeeds: bool
    reason: str
    learning: str = ""
    """Learning of the agent's reflection; if "", the agent writes no reflection and the draft remains."""
    approach: str = ""
    steps: tuple[str, ...] = ()
    iteration: int = 1  # Number of the attempt's first iteration.


class TaskScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Task with its attempts; `id` is that of a sample task, or "" for a new task."""

    attempts: tuple[AttemptScript, ...]
    id: str = ""
    description: str = ""
    criteria: str = ""
    tags: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_loop_scripts() -> LoopScripts:
    """Read `loops.yaml` once and cache the scripts."""
    return msgspec.yaml.decode((_FOLDER / "loops.yaml").read_bytes(), type=LoopScripts)


@lru_cache(maxsize=1)
def load_task_scripts() -> tuple[TaskScript, ...]:
    """Read `tasks.yaml` once and cache the scripts."""
    return msgspec.yaml.decode((_FOLDER / "tasks.yaml").read_bytes(), type=tuple[TaskScript, ...])


_STEPS: Final = 3  # Number of calls to `advance` per iteration: it starts, reports progress, and ends.
_RETRY_SECONDS: Final = (0.02, 0.1)


class PlayedLoop:
    """Simulated loop; `ended` is set once it has completed or crashed."""

    def __init__(self, project: ProjectPaths, script: LoopScript, directory: Path, state: dict[str, Any]) -> None:
        self.ended = False
        self._directory = directory
        self._project = project
        self._script = script
        self._state = state
        self._is_snake_case = "loop_id" in state
        self._count_key = "iteration" if self._is_snake_case else "currentIteration"
        self._steps = 0
        self._started_at: datetime | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if script.crashes:
            # This process waits on its stdin, so it exits at the latest when this program exits.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            state["current_pid" if self._is_snake_case else "currentPid"] = self._process.pid

    @classmethod
    def find_running(cls, project: ProjectPaths, script: LoopScript) -> Self | None:
        """Return the project's running loop with the task of `script`, or None."""
        for path in sorted((project.ralph / "loops").glob("*/state.json")):
            state = _read(path)
            if state.get("task") == script.task and state.get("status") == "running":
                return cls(project, script, path.parent, state)
        return None

    @classmethod
    def create(cls, project: ProjectPaths, script: LoopScript, suffix: str, now: datetime) -> Self:
        """Create a loop and its files; `suffix` (8 hex digits) makes its ID unique."""
        slug = re.sub(r"[^a-z0-9]+", "-", script.task.lower()).strip("-")[:30]
        identity = f"ralph-{slug}-{suffix}"
        patterns = dict.fromkeys((*script.injected, *(one.pattern for one in script.iterations if one.pattern)))
        state = {
            "loopId": identity,
            "active": True,
            "task": script.task,
            "completion": script.criteria,
            "maxIterations": len(script.iterations) + 4,
            "startTime": iso(now),
            "startTimeMs": round(now.timestamp() * 1000),
            "currentIteration": 0,
            "completed": False,
            "status": "running",
            "iterations": [],
            "lastResult": None,
            "learnings": None,
            "cross_loop_learning": {
                "injected_patterns": [
                    {"pattern_id": pattern, "applied": False, "successful": None, "iteration_used": None}
                    for pattern in patterns
                ],
                "extracted_patterns": [],
            },
        }
        directory = project.ralph / "loops" / identity
        directory.mkdir(parents=True)
        loop = cls(project, script, directory, state)
        loop._save()
        loop._heartbeat("starting", now)
        loop._register(now)
        return loop

    def advance(self, now: datetime) -> None:
        """Run the next step of the script."""
        done, phase = divmod(self._steps, _STEPS)
        self._steps += 1
        if done == len(self._script.iterations):
            self._finish(now)
            return
        iteration = self._script.iterations[done]
        if phase == 0:
            self._started_at = now
            self._heartbeat("analyzing", now)
        elif phase == 1:
            self._state["lastResult"] = f"{iteration.action} …"
            self._save()
            self._heartbeat("running", now)
        else:
            self._finish_iteration(iteration, now)

    def archive(self, now: datetime) -> None:
        """Archive and unregister the loop; abort it first if it has crashed."""
        if self._state["status"] == "running":
            self._end("aborted", now)
        archive = self._project.ralph / "archive"
        archive.mkdir(exist_ok=True)
        self._directory = self._directory.rename(archive / self._directory.name)
        self._register(now, listed=False)

    def stop(self) -> None:
        """Kill the loop's process, if it has one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _finish_iteration(self, iteration: IterationScript, now: datetime) -> None:
        number = self._state[self._count_key] + 1
        milliseconds = round((now - (self._started_at or now)).total_seconds() * 1000)
        self._state[self._count_key] = number
        entry: dict[str, Any] = {
            "number": number,
            "timestamp": iso(now),
            "action": iteration.action,
            "result": iteration.result,
            "verified": iteration.quality >= 90,
            "learnings": iteration.learning or None,
            "duration_ms": milliseconds,
        }
        self._state["iterations"].append(entry)
        self._state.update(lastResult=iteration.result, learnings=iteration.learning or None)
        if self._is_snake_case:
            self._state["last_updated"] = iso(now)
        if iteration.pattern:
            self._apply_pattern(iteration, number)
        _write(self._directory / "iterations" / f"iteration-{number}.json", entry)
        if iteration.learning:
            reflection = {
                "iteration": number,
                "content": iteration.learning,
                "type": "success_pattern" if iteration.quality >= 90 else "error_analysis",
                "effectiveness": "helpful" if iteration.worked else "unhelpful",
                "timestamp": iso(now),
            }
            _write(self._directory / "reflections" / f"reflection-{number}.json", reflection)
        self._analyse(iteration, number, milliseconds, now)
        self._save()
        self._heartbeat("running", now)
        self._register(now)
        if iteration.pattern:
            with suppress(Conflict, Unwritable):  # another writer has the lock; real loops lose the use as well
                count_use(self._project, iteration.pattern, iteration.worked, now)

    def _apply_pattern(self, iteration: IterationScript, number: int) -> None:
        used = {"applied": True, "successful": iteration.worked, "iteration_used": number}
        injected = self._state["cross_loop_learning"]["injected_patterns"]
        for entry in injected:
            if entry["pattern_id"] == iteration.pattern and not entry["applied"]:
                entry.update(used)
                return
        injected.append({"pattern_id": iteration.pattern, **used})

    def _analyse(self, iteration: IterationScript, number: int, milliseconds: int, now: datetime) -> None:
        path = self._directory / "analytics" / f"{self._directory.name}.json"
        analytics = _read(path) or {
            "loop_id": self._directory.name,
            "task_description": self._script.task,
            "start_time": iso(now),
            "iterations": [],
        }
        rows = analytics["iterations"]
        rows.append(
            {
                "iteration_number": number,
                "timestamp": iso(now),
                "quality_score": iteration.quality,
                "quality_delta": iteration.quality - rows[-1]["quality_score"] if rows else 0,
                "tokens_used": 38_000 + 1_700 * number,
                "token_cost_usd": round(0.19 + 0.01 * number, 3),
                "execution_time_ms": milliseconds,
                "verification_status": "passed" if iteration.quality >= 90 else "failed",
                "reflections": [iteration.learning] if iteration.learning else [],
            }
        )
        best = max(rows, key=lambda row: row["quality_score"])
        analytics.update(
            total_iterations=len(rows),
            optimal_iteration=best["iteration_number"],
            total_tokens=sum(row["tokens_used"] for row in rows),
            total_time_ms=sum(row["execution_time_ms"] for row in rows),
            quality_trajectory="improving" if best is rows[-1] else "fluctuating",
        )
        _write(path, analytics)

    def _end(self, status: str, now: datetime) -> None:
        self._state["status"] = status
        if self._is_snake_case:
            self._state["completed_at"] = iso(now)
        else:
            self._state.update(active=False, completed=status == "completed", endTime=iso(now))
        self._save()

    def _finish(self, now: datetime) -> None:
        """Complete the loop, or let it crash, as its script requires."""
        self.ended = True
        if not self._script.crashes:
            self._end("completed", now)
            self._heartbeat("shutting_down", now)
            self._register(now, listed=False)
            return
        self.stop()
        with (self._directory / "crash.log").open("a", encoding="utf-8") as log:
            log.write(
                f"[{iso(now)}] Process crash detected: JavaScript heap out of memory\n"
                "Error: Process crash detected: JavaScript heap out of memory\n"
                "    at ProcessMonitor.check (process-monitor.mjs:88:15)\n\n"
            )

    def _save(self) -> None:
        _write(self._directory / "state.json", self._state)

    def _heartbeat(self, status: str, now: datetime) -> None:
        beat = {
            "loopId": self._directory.name,
            "timestamp": round(now.timestamp() * 1000),
            "iteration": self._state[self._count_key] + 1,
            "status": status,
        }
        _write(self._project.ralph / "heartbeats" / f"{self._directory.name}.json", beat)

    def _register(self, now: datetime, *, listed: bool = True) -> None:
        """Write the loop's registry entry if `listed`; otherwise remove the entry."""
        path = self._project.ralph / "registry.json"
        registry = _read(path) or {"version": "2.0.0", "active_loops": [], "total_completed": 0}
        known = {entry["loop_id"]: entry for entry in registry["active_loops"]}
        entry = known.pop(self._directory.name, None)
        if listed:
            entry = entry or {
                "loop_id": self._directory.name,
                "task_summary": self._script.task,
                "status": "running",
                "started_at": iso(now),
                "owner": self._script.owner,
                "pid": None,
                "iteration": 0,
                "max_iterations": self._state["maxIterations"],
                "completion_criteria": self._script.criteria,
                "priority": "medium",
                "tags": list(self._script.tags),
            }
            known[self._directory.name] = entry | {"iteration": self._state[self._count_key]}
        elif entry is not None:
            registry["total_completed"] += 1
        registry.update(active_loops=list(known.values()), total_active=len(known), updated_at=iso(now))
        _write(path, registry)


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty dict if the file does not exist."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return value


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")


def count_use(project: ProjectPaths, pattern_id: str, worked: bool, now: datetime) -> None:
    """Count one use in the pattern's record; do nothing if it does not exist.

    For an anti-pattern, `worked` means that avoiding the approach was right.
    """
    with curation_lock(project):
        for name in PATTERN_FILES.values():
            path = project.patterns / name
            record = find(RecordText(path.read_bytes()), pattern_id) if path.exists() else None
            if record is not None:
                fields = _new_counts(record.value, worked, now)
                rewrite(
                    path, partial(_set_fields, pattern_id, fields), merge=merge_records, retry_seconds=_RETRY_SECONDS
                )
                return


def _new_counts(record: dict[str, Any], worked: bool, now: datetime) -> dict[str, Any]:
    rate_key, count_key = "success_rate", "usage_count"
    if "failure_rate" in record:
        rate_key, count_key = "failure_rate", "occurrence_count"
    uses = record[count_key] + 1
    good = int(record[rate_key] * record[count_key] + 0.5) + worked
    fields = {rate_key: round(good / uses, 2), count_key: uses, "last_used": iso(now)}
    if "successful_applications" in record:
        fields |= {"successful_applications": good, "failed_applications": uses - good}
    return fields


def _set_fields(pattern_id: str, fields: dict[str, Any], data: bytes | None) -> bytes | None:
    document = RecordText(data) if data is not None else None
    record = find(document, pattern_id) if document is not None else None
    if document is None or record is None:
        return data
    for key, value in fields.items():
        document.set(record.path, key, value)
    return document.encode()
