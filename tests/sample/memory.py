"""What acme-api's loops store beside the patterns: attempts, reflections, debug sessions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from tests.sample.debugging import write_debug_sessions
from tests.sample.episodes import write_episodes
from tests.sample.loops import BY_KEY
from tests.sample.tree import Tree, iso, iso_seconds, stable_uuid


def write_memory(tree: Tree) -> None:
    """Write the whole memory."""
    write_episodes(tree)
    _write_cross_task(tree)
    _write_hook_reflections(tree)
    _write_reflexion(tree)
    write_debug_sessions(tree)


_REMEMBERED: Final = (
    ("sign-up", "debugging", 0.92, ("Add null checks at function entry", "Test the null path first")),
    ("payment-coverage", "testing", 0.93, ("Derive tests from the contract", "Freeze the clock in tests")),
    ("query-cache", "optimization", 0.7, ("Measure the plan before caching anything",)),
    (
        "job-queue",
        "migration",
        0.95,
        ("Amounts leave the service as strings", "Make the job idempotent by its id"),
    ),
    ("api-client", "refactoring", 0.94, ("Declarations decide, usages follow",)),
    ("billing-docs", "documentation", 0.92, ("Document from recorded requests",)),
)
_UNINDEXED: Final = "query-cache"
"""Missing from the index, as happens when two loops end at once."""


def _write_cross_task(tree: Tree) -> None:
    """Write the cross-task memory: the index, and one file per task."""
    index = []
    for key, task_type, quality, learnings in _REMEMBERED:
        loop = BY_KEY[key]
        identity = stable_uuid(f"memory-{key}")
        entry: dict[str, Any] = {
            "task_id": identity,
            "task_description": loop.task,
            "task_type": task_type,
            "timestamp": iso(loop.end(tree) + timedelta(seconds=2)),
            "outcome": "success" if loop.status in ("success", "completed") else "failure",
            "tags": list(loop.tags),
            "final_quality": quality,
        }
        if key != _UNINDEXED:
            index.append(entry)
        reflections = [
            {
                "iteration": number,
                "content": step.learnings,
                "type": "success_pattern" if step.quality >= 90 else "error_analysis",
                "effectiveness": "helpful",
            }
            for number, step in enumerate(loop.steps, 1)
            if step.learnings
        ]
        tree.json(
            f"ralph/memory/tasks/{identity}.json",
            {
                **entry,
                "iterations": len(loop.steps),
                "reflections": reflections,
                "key_learnings": list(learnings),
            },
        )
    newest = max(entry["timestamp"] for entry in index)
    tree.json("ralph/memory/task-index.json", {"version": "1.0.0", "last_updated": newest, "tasks": index})


def _write_hook_reflections(tree: Tree) -> None:
    """Write the YAML that the reflection hook asks agents for."""
    for key, number, outcome, reflection, change, trajectory in (
        (
            "flaky-checkout",
            3,
            "partial",
            "The failures that remain come from a session that cart.merge.test.ts leaves behind.",
            "Reset the shared fixtures between the tests, so that none finds the session of another.",
            ("Shuffled the test order with seed 4711", "Bisected to cart.merge.test.ts", "1 of 200 failed"),
        ),
        (
            "session-store",
            1,
            "failure",
            "Nobody had written down what an expired session answers, so the rewrite had to guess.",
            "Extract the interface and its tests from the old store before writing a new one.",
            ("Deleted src/session/store.ts", "Wrote the stream store", "38 tests failed"),
        ),
    ):
        loop = BY_KEY[key]
        steps = "".join(f'  - "{line}"\n' for line in trajectory)
        tree.text(
            f"ralph/reflections/loops/{loop.id}/iteration-{number}.yaml",
            f'trial_number: {number}\ntimestamp: "{iso_seconds(loop.step_end(tree, number))}"\n'
            f'loop_id: "{loop.id}"\ntrajectory:\n{steps}outcome: "{outcome}"\n'
            f'reflection: "{reflection}"\nstrategy_change: "{change}"\n',
        )
    listed = "".join(f'  - "{BY_KEY[key].id}"\n' for key in ("flaky-checkout", "session-store"))
    tree.text("ralph/reflections/index.yaml", f"loops:\n{listed}")


def _write_reflexion(tree: Tree) -> None:
    """Write the Reflexion JSON."""
    loop = BY_KEY["strict-utils"]
    at = loop.step_end(tree, 2)
    tree.json(
        f"ralph/reflections/{loop.id}/002.json",
        {
            "loop_id": loop.id,
            "iteration": 2,
            "timestamp": iso_seconds(at),
            "task_description": loop.task,
            "actor_output": {
                "actions": [
                    {
                        "type": "code_modification",
                        "description": "Changed all helpers of src/utils at once",
                        "file_path": "src/utils/helpers.ts",
                        "timestamp": iso_seconds(at - timedelta(minutes=12)),
                    }
                ],
                "rationale": "Files of one type need similar edits",
                "strategy": "Split work by file type",
                "files_modified": ["src/utils/helpers.ts", "src/utils/dates.ts"],
            },
            "evaluator_output": {
                "passed": False,
                "verification_type": "type_check",
                "results": [
                    {
                        "tool": "npx tsc --noEmit --strict",
                        "status": "fail",
                        "exit_code": 2,
                        "duration_ms": 9_400,
                    }
                ],
                "reward_signal": 0.1,
            },
            "self_reflection": {
                "reflection_text": "After grouping by file type there were more errors than before.",
                "credit_assignment": {
                    "failing_action_indices": [0],
                    "root_cause": "Shared types were changed under every group",
                    "failure_category": "wrong_strategy",
                },
                "causal_reasoning": "Each group changed the shared types to suit itself.",
                "lessons_learned": ["Settle the shared types before any file that uses them"],
                "actionable_insights": [
                    "Start over from src/utils/types.ts",
                    "Count the errors after each declaration",
                ],
            },
            "memory_metadata": {"importance": 0.8, "access_count": 1},
        },
    )
