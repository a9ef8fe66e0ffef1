"""Files of the loops: state in two spellings, iterations, analytics, registries, the old hook."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from tests.sample.loops import BY_KEY, LOOPS, SampleLoop
from tests.sample.tree import Tree, epoch_ms, iso, iso_seconds, loop_id, stable_uuid

EXTERNAL_TASK: Final = "Upgrade Express to version 5"
LEGACY_TASK: Final = "Clean up the lint warnings of the workers"


def write_loops(tree: Tree, extracted: dict[str, list[str]]) -> None:
    """Write all internal loops with the files beside their state, and the registry of active ones.

    `extracted` gives the IDs of the patterns that each loop (by key) discovered.
    """
    for loop in LOOPS:
        state = _snake_state(tree, loop) if loop.snake else _camel_state(tree, loop)
        state["cross_loop_learning"] = _learning(loop, extracted.get(loop.key, []))
        tree.json(f"{loop.directory}/state.json", state)
        for number in range(1, len(loop.steps) + 1):
            tree.json(f"{loop.directory}/iterations/iteration-{number}.json", _iteration(tree, loop, number))
        if loop.running:
            last = tree.ago(seconds=20) if loop.pid is None else loop.end(tree)
            tree.json(
                f"ralph/heartbeats/{loop.id}.json",
                {
                    "loopId": loop.id,
                    "timestamp": epoch_ms(last),
                    "iteration": len(loop.steps) + 1,
                    "status": "running",
                },
            )
        if loop.tracked:
            _write_tracking(tree, loop)
    crashed = BY_KEY["oauth"]
    seen = iso(crashed.end(tree) + timedelta(minutes=9))
    tree.text(
        f"{crashed.directory}/crash.log",
        f"[{seen}] Process crash detected: JavaScript heap out of memory\n"
        "Error: Process crash detected: JavaScript heap out of memory\n"
        "    at ProcessMonitor.check "
        "(file:///srv/acme-api/node_modules/aiwg/tools/ralph/process-monitor.mjs:88:15)\n\n",
    )
    _write_registry(tree)


def write_other_loops(tree: Tree) -> None:
    """Write an external loop that reached its limit, and one of the old hook, which stores a single current loop."""
    _write_external(tree)
    _write_legacy(tree)


def _ended(loop: SampleLoop) -> bool:
    return loop.status not in ("running", "paused")


def _iteration(tree: Tree, loop: SampleLoop, number: int) -> dict[str, Any]:
    step = loop.steps[number - 1]
    return {
        "number": number,
        "timestamp": iso(loop.step_end(tree, number)),
        "action": step.action,
        "result": step.result,
        "verified": step.quality >= 90,
        "learnings": step.learnings,
        "duration_ms": round(step.minutes * 60_000),
    }


def _camel_state(tree: Tree, loop: SampleLoop) -> dict[str, Any]:
    start = loop.start(tree)
    state: dict[str, Any] = {
        "loopId": loop.id,
        "active": not _ended(loop),
        "task": loop.task,
        "completion": loop.criteria,
        "maxIterations": loop.maximum,
        "timeoutMinutes": 240,
        "timeoutMs": 14_400_000,
        "startTime": iso(start),
        "startTimeMs": epoch_ms(start),
        "currentIteration": len(loop.steps),
        "autoCommit": True,
        "branch": None,
        "completed": loop.status in ("success", "completed"),
        "status": loop.status,
        "iterations": [_iteration(tree, loop, number) for number in range(1, len(loop.steps) + 1)],
        "lastResult": loop.steps[-1].result,
        "learnings": loop.steps[-1].learnings,
    }
    if _ended(loop):
        state["endTime"] = iso(loop.end(tree))
    if loop.pid is not None:
        state["currentPid"] = loop.pid
    return state


def _snake_state(tree: Tree, loop: SampleLoop) -> dict[str, Any]:
    return {
        "version": "2.0.0",
        "loop_id": loop.id,
        "status": loop.status,
        "iteration": len(loop.steps),
        "task": loop.task,
        "completion_criteria": loop.criteria,
        "started_at": iso_seconds(loop.start(tree)),
        "last_updated": iso_seconds(loop.end(tree)),
        "completed_at": iso_seconds(loop.end(tree)) if _ended(loop) else None,
        "owner": loop.owner,
        "configuration": {"max_iterations": loop.maximum, "timeout_minutes": 240, "interactive": False},
        "iterations": [
            {
                "iteration": number,
                "completed_at": iso_seconds(loop.step_end(tree, number)),
                "action": step.action,
                "result": step.result,
                "status": "passed" if step.quality >= 90 else "failed",
                "notes": step.learnings,
            }
            for number, step in enumerate(loop.steps, 1)
        ],
        "metrics": {
            "total_iterations": len(loop.steps),
            "total_tokens": 41_000 * len(loop.steps),
            "total_duration_seconds": round(sum(step.minutes for step in loop.steps) * 60),
        },
    }


def _learning(loop: SampleLoop, extracted: list[str]) -> dict[str, Any]:
    learning: dict[str, Any] = {
        "injected_patterns": [
            {
                "pattern_id": use.pattern,
                "applied": use.iteration is not None,
                "successful": use.successful if use.iteration is not None and use.recorded else None,
                "iteration_used": use.iteration,
            }
            for use in loop.uses
        ],
        "extracted_patterns": [{"pattern_id": pattern, "new": True, "success_rate": 1.0} for pattern in extracted],
    }
    if loop.uses and _ended(loop):
        actual = len(loop.steps)
        baseline = actual + 2
        learning["improvement_estimate"] = {
            "baseline_iterations": baseline,
            "actual_iterations": actual,
            "improvement": f"{(baseline - actual) / baseline * 100:.1f}%",
        }
    return learning


def _write_tracking(tree: Tree, loop: SampleLoop) -> None:
    """Write analytics, best output and the memory manager's reflections, in the shapes of the aiwg tools."""
    deltas = [0] + [now.quality - before.quality for before, now in zip(loop.steps, loop.steps[1:], strict=False)]
    best = max(range(len(loop.steps)), key=lambda index: loop.steps[index].quality) + 1
    folder = f"/srv/acme-api/.aiwg/{loop.directory}"
    rows: list[dict[str, Any]] = []
    tracked = []
    for number, (step, delta) in enumerate(zip(loop.steps, deltas, strict=True), 1):
        common = {
            "iteration_number": number,
            "timestamp": iso(loop.step_end(tree, number)),
            "quality_score": step.quality,
            "quality_delta": delta,
        }
        cost = {
            "tokens_used": 38_000 + 1_700 * number,
            "token_cost_usd": round(0.19 + 0.01 * number, 3),
            "execution_time_ms": round(step.minutes * 60_000),
            "verification_status": "passed" if step.quality >= 90 else "failed",
        }
        reflections = [step.learnings] if step.learnings else []
        rows.append(
            common
            | cost
            | {
                "output_snapshot_path": f"{folder}/iterations/iteration-{number}.json",
                "reflections": reflections,
            }
        )
        share = step.quality / 100
        tracked.append(
            common
            | {"quality_delta": delta if number > 1 else None}
            | {
                "dimensions": {
                    "validation": round(share * 0.95, 2),
                    "completeness": round(share, 2),
                    "correctness": round(share * 0.98, 2),
                    "readability": 0.8,
                    "efficiency": 0.7,
                }
            }
            | cost
            | {"artifacts": [], "reflections": reflections}
        )
        if step.learnings:
            tree.json(
                f"{loop.directory}/reflections/reflection-{number}.json",
                {
                    "iteration": number,
                    "content": step.learnings,
                    "type": "success_pattern"
                    if step.quality >= 90
                    else "error_analysis"
                    if delta >= 0
                    else "strategy_change",
                    "effectiveness": "helpful" if delta > 0 else "neutral" if delta == 0 else "unhelpful",
                    "timestamp": iso(loop.step_end(tree, number)),
                },
            )
    tree.json(
        f"{loop.directory}/analytics/{loop.id}.json",
        {
            "loop_id": loop.id,
            "task_description": loop.task,
            "start_time": iso(loop.start(tree)),
            "end_time": iso(loop.step_end(tree, 1)),
            "iterations": rows,
            "total_iterations": len(rows),
            "optimal_iteration": best,
            "final_iteration": len(rows),
            "selected_iteration": best,
            "selection_reason": f"Highest quality verified iteration ({loop.steps[best - 1].quality})",
            "total_tokens": sum(row["tokens_used"] for row in rows),
            "total_cost_usd": round(sum(row["token_cost_usd"] for row in rows), 3),
            "total_time_ms": sum(row["execution_time_ms"] for row in rows),
            "diminishing_returns_detected": False,
            "diminishing_returns_iteration": None,
            "quality_trajectory": "improving" if best == len(rows) else "fluctuating",
        },
    )
    tree.json(
        f"{loop.directory}/best-output-tracking.json",
        {
            "loop_id": loop.id,
            "config": {
                "storage_path": folder,
                "selection": {
                    "mode": "highest_quality_verified",
                    "threshold": 70,
                    "require_verification": True,
                },
                "keep_all_iterations": True,
            },
            "iterations": tracked,
            "best_iteration_number": best,
            "last_updated": iso(loop.end(tree)),
        },
    )


def _write_registry(tree: Tree) -> None:
    """Write the registry of active loops as the released CLI does: the aborted loop keeps its entry."""
    listed = [loop for loop in LOOPS if loop.status in ("running", "paused", "aborted") and loop.place == "loops"]
    tree.json(
        "ralph/registry.json",
        {
            "version": "2.0.0",
            "max_concurrent_loops": 8,
            "updated_at": iso(tree.ago(seconds=20)),
            "active_loops": [
                {
                    "loop_id": loop.id,
                    "task_summary": loop.task,
                    "status": loop.status,
                    "started_at": iso(loop.start(tree)),
                    "owner": loop.owner,
                    "pid": None,
                    "iteration": len(loop.steps),
                    "max_iterations": loop.maximum,
                    "completion_criteria": loop.criteria,
                    "priority": loop.priority,
                    "tags": list(loop.tags),
                }
                for loop in listed
            ],
            "total_active": sum(loop.status != "aborted" for loop in listed),
            "total_completed": 8,
            "total_aborted": 0,
        },
    )


def _write_external(tree: Tree) -> None:
    """Write files as the orchestrator does: progress only in the top-level file, under a UUID."""
    start = tree.ago(days=6, hours=4)
    identity = stable_uuid("express-5")
    steps = (
        (
            "incomplete",
            20,
            "Replaced path patterns that Express 5 no longer parses",
            "path-to-regexp rejects '*'",
        ),
        (
            "incomplete",
            45,
            "Moved error handlers behind the routers",
            "Handlers that reject reach the error handler now",
        ),
        ("error", 45, "", ""),
        (
            "incomplete",
            70,
            "Removed the wrapper for asynchronous handlers",
            "Express 5 awaits handlers itself",
        ),
        ("incomplete", 80, "Mended 14 of 17 route tests", "req.query is a getter; three tests write to it"),
    )
    iterations = []
    for number, (status, percent, progress, learned) in enumerate(steps, 1):
        iterations.append(
            {
                "number": number,
                "sessionId": stable_uuid("express-5-session"),
                "exitCode": 0 if status != "error" else -1,
                "duration": 0 if status == "error" else 840_000 + 60_000 * number,
                "status": status,
                "analysis": {
                    "completed": False,
                    "success": None,
                    "completionPercentage": percent,
                    "shouldContinue": True,
                    "learnings": learned,
                    "nextApproach": progress,
                },
                "learnings": [learned] if learned else [],
                "filesModified": ["src/http/app.ts", "src/http/routes.ts"] if learned else [],
                "progress": progress,
            }
        )
    twin_id = loop_id(EXTERNAL_TASK)
    end = start + timedelta(minutes=84)
    common: dict[str, Any] = {
        "version": "1.0.0",
        "objective": EXTERNAL_TASK,
        "completionCriteria": "npm test passes with express@5",
        "maxIterations": 5,
        "startTime": iso(start),
        "sessionId": stable_uuid("express-5-session"),
        "currentPid": None,
    }
    config = {"model": "opus", "budgetPerIteration": 2, "timeoutMinutes": 60, "workingDir": "/srv/acme-api"}
    tree.json(
        "ralph-external/session-state.json",
        common
        | {
            "loopId": identity,
            "status": "limit_reached",
            "currentIteration": 5,
            "lastUpdate": iso(end),
            "iterations": iterations,
            "accumulatedLearnings": "\n\n".join(
                f"### Iteration {number}\n{step[3]}" for number, step in enumerate(steps, 1) if step[3]
            ),
            "filesModified": ["src/http/app.ts", "src/http/routes.ts", "test/http/routes.test.ts"],
            "config": config,
        },
    )
    tree.json(
        f"ralph-external/loops/{twin_id}/session-state.json",
        common
        | {
            "loopId": twin_id,
            "status": "limit_reached",
            "currentIteration": 0,
            "lastUpdate": iso(end),
            "iterations": [],
            "accumulatedLearnings": "",
            "filesModified": [],
            "config": config,
        },
    )
    tree.json(
        "ralph-external/registry.json",
        {
            "version": "2.0.0",
            "max_concurrent_loops": 4,
            "updated_at": iso(end),
            "active_loops": [
                {
                    "loop_id": twin_id,
                    "task_summary": EXTERNAL_TASK,
                    "status": "limit_reached",
                    "started_at": iso(start),
                    "owner": "unknown",
                    "pid": None,
                    "iteration": 0,
                    "max_iterations": 5,
                    "completion_criteria": "npm test passes with express@5",
                    "priority": "medium",
                    "tags": ["http", "express"],
                }
            ],
            "total_active": 0,
            "total_completed": 0,
            "total_aborted": 0,
        },
    )
    for number, (_, _, _, learned) in enumerate(steps, 1):
        if learned:
            tree.json(
                f"ralph-external/reflections/reflection-{number}.json",
                {
                    "iteration": number,
                    "content": learned,
                    "type": "constraint_discovery",
                    "effectiveness": "helpful",
                    "timestamp": iso(start + timedelta(minutes=16 * number)),
                },
            )


def _write_legacy(tree: Tree) -> None:
    """Write files as the hook `ralph-loop.js` does: one current loop, its iterations, a report."""
    start = tree.ago(days=16, hours=2)
    end = start + timedelta(minutes=26)
    iterations = [
        {
            "number": 1,
            "timestamp": iso(start + timedelta(minutes=12)),
            "action": "Ran ruff with its automatic repairs",
            "result": "31 warnings left of 140",
            "verified": False,
            "learnings": "The rest are unused arguments of the queue's callbacks",
            "duration_ms": 720_000,
        },
        {
            "number": 2,
            "timestamp": iso(end),
            "action": "Named unused callback arguments with an underscore",
            "result": "ruff passes",
            "verified": True,
            "learnings": None,
            "duration_ms": 840_000,
        },
    ]
    tree.json(
        "ralph/current-loop.json",
        {
            "active": False,
            "task": LEGACY_TASK,
            "completion": "ruff check workers passes",
            "maxIterations": 5,
            "timeoutMinutes": 60,
            "currentIteration": 2,
            "startTime": iso(start),
            "startTimestamp": epoch_ms(start),
            "autoCommit": True,
            "iterations": iterations,
            "status": "success",
            "lastResult": "ruff passes",
            "endTime": iso(end),
            "endTimestamp": epoch_ms(end),
            "totalDuration_ms": 1_560_000,
            "finalResult": {"success": True, "reason": "verified"},
        },
    )
    for iteration in iterations:
        tree.json(f"ralph/iterations/iteration-{iteration['number']}.json", iteration)
    tree.text(
        f"ralph/completion-{end.strftime('%Y-%m-%dT%H-%M-%S')}.md",
        f"# Ralph Loop Completion Report\n\n**Generated**: {iso(end)}\n\n## Summary\n\n"
        f"| Field | Value |\n|-------|-------|\n| **Task** | {LEGACY_TASK} |\n| **Status** | SUCCESS |\n"
        "| **Iterations** | 2 / 5 |\n| **Duration** | 26m 0s |\n\n"
        "## Completion Criteria\n\n```\nruff check workers passes\n```\n",
    )
