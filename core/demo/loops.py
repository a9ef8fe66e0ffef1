"""One played loop: it writes its files as upstream's own tools do, truncating them first."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

from core.base.errors import Conflict, Unwritable
from core.config.paths import ProjectPaths
from core.demo.counting import count_use
from core.demo.scenes import Act, Scene
from core.records.times import iso

_BEATS: Final = 3
"""An iteration is seen three times: as a sign of life, half done, and finished."""


class PlayedLoop:
    """A loop at work. `beat` does the next visible thing until `ended`.

    Attributes:
        ended: It completed or crashed.
    """

    def __init__(self, project: ProjectPaths, scene: Scene, directory: Path, state: dict[str, Any]) -> None:
        self.ended = False
        self._directory = directory
        self._project = project
        self._scene = scene
        self._state = state
        self._snake = "loop_id" in state
        self._beats = 0
        self._since: datetime | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if scene.crashes:
            # Ends by itself when this program ends: then nobody holds the other end of its stdin.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            state["current_pid" if self._snake else "currentPid"] = self._process.pid

    @classmethod
    def adopted(cls, project: ProjectPaths, scene: Scene) -> Self | None:
        """The running loop of the project that has the scene's task, if there is one."""
        for path in sorted((project.ralph / "loops").glob("*/state.json")):
            state = _read(path)
            if state.get("task") == scene.task and state.get("status") == "running":
                return cls(project, scene, path.parent, state)
        return None

    @classmethod
    def begun(cls, project: ProjectPaths, scene: Scene, suffix: str, now: datetime) -> Self:
        """A new loop; `suffix` (8 hex digits) makes its id unique."""
        slug = re.sub(r"[^a-z0-9]+", "-", scene.task.lower()).strip("-")[:30]
        identity = f"ralph-{slug}-{suffix}"
        patterns = dict.fromkeys((*scene.injected, *(act.pattern for act in scene.acts if act.pattern)))
        state = {
            "loopId": identity,
            "active": True,
            "task": scene.task,
            "completion": scene.criteria,
            "maxIterations": len(scene.acts) + 4,
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
        loop = cls(project, scene, directory, state)
        loop._save()
        loop._heartbeat("starting", now)
        loop._register(now)
        return loop

    def beat(self, now: datetime) -> None:
        """Do the next visible thing."""
        done, phase = divmod(self._beats, _BEATS)
        self._beats += 1
        if done == len(self._scene.acts):
            self._crash(now) if self._scene.crashes else self._complete(now)
            self.ended = True
            return
        act = self._scene.acts[done]
        if phase == 0:
            self._since = now
            self._heartbeat("analyzing", now)
        elif phase == 1:
            self._state["lastResult"] = f"{act.action} …"
            self._save()
            self._heartbeat("running", now)
        else:
            self._finish(act, now)

    def archive(self, now: datetime) -> None:
        """Move its folder to the archive and take it out of the registry; a crashed one is aborted first."""
        if self._state["status"] == "running":
            self._end("aborted", now)
        archive = self._project.ralph / "archive"
        archive.mkdir(exist_ok=True)
        self._directory = self._directory.rename(archive / self._directory.name)
        self._register(now, listed=False)

    def stop(self) -> None:
        """End its process, if it has one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def _iteration(self) -> int:
        return int(self._state["iteration" if self._snake else "currentIteration"])

    def _finish(self, act: Act, now: datetime) -> None:
        number = self._iteration + 1
        milliseconds = round((now - (self._since or now)).total_seconds() * 1000)
        self._state["iteration" if self._snake else "currentIteration"] = number
        entry: dict[str, Any] = {
            "number": number,
            "timestamp": iso(now),
            "action": act.action,
            "result": act.result,
            "verified": act.quality >= 90,
            "learnings": act.learned or None,
            "duration_ms": milliseconds,
        }
        self._state["iterations"].append(entry)
        self._state["lastResult"] = act.result
        self._state["learnings"] = act.learned or None
        if self._snake:
            self._state["last_updated"] = iso(now)
        if act.pattern:
            self._apply(act, number)
        _write(self._directory / "iterations" / f"iteration-{number}.json", entry)
        if act.learned:
            _write(
                self._directory / "reflections" / f"reflection-{number}.json",
                {
                    "iteration": number,
                    "content": act.learned,
                    "type": "success_pattern" if act.quality >= 90 else "error_analysis",
                    "effectiveness": "helpful" if act.worked else "unhelpful",
                    "timestamp": iso(now),
                },
            )
        self._analyse(act, number, milliseconds, now)
        self._save()
        self._heartbeat("running", now)
        self._register(now)
        if act.pattern:
            with suppress(Conflict, Unwritable):  # a curator is busy: as with real loops, not every use is counted
                count_use(self._project, act.pattern, act.worked, now)

    def _apply(self, act: Act, number: int) -> None:
        used = {"applied": True, "successful": act.worked, "iteration_used": number}
        injected = self._state["cross_loop_learning"]["injected_patterns"]
        for entry in injected:
            if entry["pattern_id"] == act.pattern and not entry["applied"]:
                entry.update(used)
                return
        injected.append({"pattern_id": act.pattern, **used})

    def _analyse(self, act: Act, number: int, milliseconds: int, now: datetime) -> None:
        path = self._directory / "analytics" / f"{self._directory.name}.json"
        analytics = _read(path) or {
            "loop_id": self._directory.name,
            "task_description": self._scene.task,
            "start_time": iso(now),
            "iterations": [],
        }
        rows = analytics["iterations"]
        rows.append(
            {
                "iteration_number": number,
                "timestamp": iso(now),
                "quality_score": act.quality,
                "quality_delta": act.quality - rows[-1]["quality_score"] if rows else 0,
                "tokens_used": 38_000 + 1_700 * number,
                "token_cost_usd": round(0.19 + 0.01 * number, 3),
                "execution_time_ms": milliseconds,
                "verification_status": "passed" if act.quality >= 90 else "failed",
                "reflections": [act.learned] if act.learned else [],
            }
        )
        best = max(rows, key=lambda row: row["quality_score"])
        analytics["total_iterations"] = len(rows)
        analytics["optimal_iteration"] = best["iteration_number"]
        analytics["total_tokens"] = sum(row["tokens_used"] for row in rows)
        analytics["total_time_ms"] = sum(row["execution_time_ms"] for row in rows)
        analytics["quality_trajectory"] = "improving" if best is rows[-1] else "fluctuating"
        _write(path, analytics)

    def _end(self, status: str, now: datetime) -> None:
        self._state["status"] = status
        if self._snake:
            self._state["completed_at"] = iso(now)
        else:
            self._state.update(active=False, completed=status == "completed", endTime=iso(now))
        self._save()

    def _complete(self, now: datetime) -> None:
        self._end("completed", now)
        self._heartbeat("shutting_down", now)
        self._register(now, listed=False)

    def _crash(self, now: datetime) -> None:
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
        _write(
            self._project.ralph / "heartbeats" / f"{self._directory.name}.json",
            {
                "loopId": self._directory.name,
                "timestamp": round(now.timestamp() * 1000),
                "iteration": self._iteration + 1,
                "status": status,
            },
        )

    def _register(self, now: datetime, *, listed: bool = True) -> None:
        """Bring the loop's entry in the registry up to date, or take it out."""
        path = self._project.ralph / "registry.json"
        registry = _read(path) or {"version": "2.0.0", "active_loops": [], "total_completed": 0}
        entries = [entry for entry in registry["active_loops"] if entry["loop_id"] != self._directory.name]
        if listed:
            known = [entry for entry in registry["active_loops"] if entry not in entries]
            entry = known[0] if known else self._entry(now)
            entry["iteration"] = self._iteration
            entries.append(entry)
        elif len(entries) < len(registry["active_loops"]):
            registry["total_completed"] += 1
        registry.update(active_loops=entries, total_active=len(entries), updated_at=iso(now))
        _write(path, registry)

    def _entry(self, now: datetime) -> dict[str, Any]:
        return {
            "loop_id": self._directory.name,
            "task_summary": self._scene.task,
            "status": "running",
            "started_at": iso(now),
            "owner": self._scene.owner,
            "pid": None,
            "iteration": 0,
            "max_iterations": self._state["maxIterations"],
            "completion_criteria": self._scene.criteria,
            "priority": "medium",
            "tags": list(self._scene.tags),
        }


def _read(path: Path) -> dict[str, Any]:
    """The object in a file of the sample or of the player; empty if there is no file."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return value


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")
