"""What acme-api's loops remember beside the patterns: attempts, reflections, debug sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from tests.sample.loops import BY_KEY
from tests.sample.tree import Tree, iso, iso_seconds, stable_uuid


def write_memory(tree: Tree) -> None:
    """Everything of this module."""
    _write_episodes(tree)
    _write_cross_task(tree)
    _write_hook_reflections(tree)
    _write_reflexion(tree)
    _write_debug_sessions(tree)


def _write_episodes(tree: Tree) -> None:
    """Episodic memory (1): a task that needed three attempts, and one still running."""
    started = tree.ago(days=12, hours=5)
    oauth = _Episode(
        "task-001",
        "Add OAuth settings to AuthConfig",
        "npx tsc --noEmit passes and the partner login works in e2e",
        ["auth", "oauth", "typescript"],
        "completed",
    )
    oauth.attempt(
        started,
        minutes=30,
        outcome="timeout",
        approach="Implement the flow first, add types where the compiler asks for them",
        steps=["Write the callback handler", "Extend AuthConfig as needed", "Run the e2e tests"],
        quality=(0.2, 0.3, 0.3),
        observation="The attempt ran out of time with nine files half edited.",
        analysis="Each property was added where it was needed, so the same type was changed five times.",
        learning="Work in smaller steps and settle the types before the first use.",
        items=["Limit an iteration to one file", "List the new properties before editing"],
        kind="process-improvement",
    )
    oauth.attempt(
        started + timedelta(hours=1),
        minutes=34,
        outcome="failure",
        approach="Types first, then the handler",
        steps=["Extend AuthConfig", "Run tsc", "Write the handler", "Run the e2e tests"],
        quality=(0.4, 0.5, 0.6),
        observation="Three type errors about missing properties on AuthConfig after the handler was written.",
        analysis="The interface was extended, but the loader that fills it from the environment was not.",
        learning="When a settings type grows, change its loader in the same step.",
        items=["Extend loadAuthConfig together with AuthConfig", "Add the loader to the checklist"],
        kind="error-analysis",
    )
    oauth.attempt(
        started + timedelta(hours=2, minutes=10),
        minutes=26,
        outcome="success",
        approach="Types and loader first, then the handler",
        steps=["Extend AuthConfig and loadAuthConfig", "Run tsc", "Write the handler", "Run the e2e tests"],
        quality=(0.5, 0.8, 1.0),
        observation="All 14 e2e tests of the partner login pass.",
        analysis="With type and loader settled, the handler needed no change to either.",
        learning="Keep types first, and count the loader as part of the type.",
        items=[],
        kind="success-pattern",
    )
    oauth.write(tree, related=["task-002"])

    cart = _Episode(
        "task-002",
        "Make cart merging safe when two devices log in at once",
        "pytest and vitest pass with 50 concurrent merges",
        ["checkout", "postgres", "concurrency"],
        "running",
    )
    cart.attempt(
        tree.ago(hours=7),
        minutes=48,
        outcome="failure",
        approach="Lock the cart row and retry on deadlock",
        steps=["Lock both carts", "Retry on deadlock", "Run 50 merges at once"],
        quality=(0.3, 0.4),
        observation="6 of 50 concurrent merges lost an item, 11 needed more than three retries.",
        analysis="Both devices lock their own cart first and then wait for the other one.",
        learning="Lock the carts in the order of their ids; then no retry is needed at all.",
        items=["Sort the ids before locking", "Drop the retry wrapper from mergeCarts"],
        kind="error-analysis",
    )
    cart.write(tree, related=["task-001"])
    tree.json(
        "ralph/index/by-status.json",
        {"running": ["task-002"], "paused": [], "completed": ["task-001"], "failed": []},
    )
    tree.json("ralph/index/by-agent.json", {"software-implementer": ["task-001", "task-002"]})


class _Episode:
    """One task of the episodic memory, collected attempt by attempt."""

    def __init__(self, identity: str, description: str, criteria: str, tags: list[str], status: str) -> None:
        self._identity = identity
        self._description = description
        self._criteria = criteria
        self._tags = tags
        self._status = status
        self._attempts: list[dict[str, Any]] = []
        self._reflections: list[dict[str, Any]] = []
        self._files: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], str, datetime]] = {}

    def attempt(
        self,
        started: datetime,
        *,
        minutes: int,
        outcome: str,
        approach: str,
        steps: list[str],
        quality: Sequence[float],
        observation: str,
        analysis: str,
        learning: str,
        items: list[str],
        kind: str,
    ) -> None:
        """The next attempt, with the reflection that followed it."""
        number = len(self._attempts) + 1
        ended = started + timedelta(minutes=minutes)
        succeeded = outcome == "success"
        result = {
            "status": outcome,
            "reason": observation,
            "final_quality": quality[-1],
            "completion_percent": round(quality[-1] * 100),
            "what_worked": [analysis] if succeeded else [],
            "what_didnt_work": [] if succeeded else [approach],
            "suggestions_for_next_time": items,
        }
        attempt = {
            "id": number,
            "task_id": self._identity,
            "started": iso_seconds(started),
            "ended": iso_seconds(ended),
            "plan": {"approach": approach, "steps": steps, "estimated_iterations": len(steps)},
            "execution": {
                "agent": "software-implementer",
                "iterations": len(quality),
                "actions_performed": 4 * len(quality),
                "quality_history": [
                    {"iteration": index, "quality": value, "delta": round(value - before, 2)}
                    for index, (before, value) in enumerate(zip((quality[0], *quality), quality, strict=False), 1)
                ],
            },
            "outcome": result,
        }
        self._attempts.append(
            {
                "attempt_id": number,
                "started": iso_seconds(started),
                "ended": iso_seconds(ended),
                "outcome": outcome,
                "plan": approach,
                "actions": 4 * len(quality),
                "iterations": len(quality),
            }
        )
        self._reflections.append(
            {
                "timestamp": iso_seconds(ended + timedelta(minutes=1)),
                "attempt_id": number,
                "observation": observation,
                "analysis": analysis,
                "learning": learning,
                "action_items": items,
                "triggered_by": outcome,
                "reflection_type": kind,
            }
        )
        self._files[f"{number:03d}"] = (attempt, result, steps, approach, started)

    def write(self, tree: Tree, *, related: list[str]) -> None:
        """All files of the task's folder."""
        folder = f"ralph/tasks/{self._identity}"
        last = self._attempts[-1]
        metadata = {
            "id": self._identity,
            "description": self._description,
            "completion_criteria": self._criteria,
            "created": self._attempts[0]["started"],
            "updated": last["ended"],
            "status": self._status,
            "current_attempt": len(self._attempts),
            "total_attempts": len(self._attempts),
            "tags": self._tags,
            "related_tasks": related,
        }
        if self._status == "completed":
            metadata["completed"] = last["ended"]
        tree.json(f"{folder}/metadata.json", metadata)
        quality = self._files[f"{len(self._attempts):03d}"][1]["final_quality"]
        tree.json(
            f"{folder}/trajectory.json",
            {
                "task_id": self._identity,
                "attempts": self._attempts,
                "milestones": [
                    {
                        "timestamp": last["ended"],
                        "event": f"attempt {last['attempt_id']} ended",
                        "details": self._reflections[-1]["observation"],
                    }
                ],
                "final_quality": quality,
                "completion_percent": round(quality * 100),
            },
        )
        tree.jsonl(f"{folder}/reflections.jsonl", self._reflections)
        for name, (attempt, result, steps, approach, started) in self._files.items():
            base = f"{folder}/attempts/{name}"
            tree.json(f"{base}/attempt.json", attempt)
            tree.json(f"{base}/outcome.json", result)
            plan = "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))
            tree.text(f"{base}/plan.md", f"# Plan for attempt {int(name)}\n\n{approach}.\n\n{plan}")
            tree.jsonl(f"{base}/actions.jsonl", _actions(steps, started, result["status"] == "success"))


def _actions(steps: list[str], started: datetime, succeeded: bool) -> list[dict[str, Any]]:
    kinds = (("read", "Read"), ("edit", "Edit"), ("edit", "Edit"), ("bash", "Bash"))
    return [
        {
            "timestamp": iso_seconds(started + timedelta(minutes=4 * number)),
            "iteration": 1 + number // 2,
            "type": kind,
            "tool": tool,
            "params": {"command": "npm test"} if tool == "Bash" else {"file_path": "src/auth/config.ts"},
            "success": succeeded or number < len(steps) - 1,
            "output": "",
            "error": None if succeeded or number < len(steps) - 1 else "exit 1",
            "reasoning": step,
            "expected_outcome": "The next step has what it needs",
        }
        for number, (step, (kind, tool)) in enumerate(zip(steps, kinds, strict=False))
    ]


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
"""Lost from the index, as happens when two loops end at once (formats C19)."""


def _write_cross_task(tree: Tree) -> None:
    """Cross-task memory: the index, and one file a task."""
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
    """The yaml that the reflection hook asks agents for."""
    for key, number, outcome, reflection, change, trajectory in (
        (
            "flaky-checkout",
            3,
            "partial",
            "The failures that remain come from a session that cart.merge.test.ts leaves behind.",
            "Give every test its own session store instead of clearing the shared one.",
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
    """The Reflexion json of the documents."""
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
                "lessons_learned": ["Settle the declarations before any file that uses them"],
                "actionable_insights": [
                    "Start over from src/utils/types.ts",
                    "Count the errors after each declaration",
                ],
            },
            "memory_metadata": {"importance": 0.8, "access_count": 1},
        },
    )


def _write_debug_sessions(tree: Tree) -> None:
    """Debug memory (4): one passed, one still in progress, one escalated."""
    mailer = tree.ago(minutes=20)
    _session(
        tree,
        "debug-mailer",
        "src/billing/mailer.ts",
        "in_progress",
        BY_KEY["invoice-mailer"].id,
        2,
        [
            _execution(
                1,
                mailer,
                (18, 16, 2),
                "TypeError",
                "Cannot read properties of null (reading 'email')",
                ("src/billing/mailer.ts", 58, "sendInvoice"),
                "null_undefined_access",
                "sendInvoice reads customer.email although the customer of a closed account is null",
                "Return a skipped result for closed accounts before the address is read",
                "passed",
            ),
            _execution(
                2,
                mailer + timedelta(minutes=11),
                (18, 17, 1),
                "TypeError",
                "Type 'null' is not assignable to type 'Customer'",
                ("src/billing/types.ts", 12, "MailResult"),
                "type_mismatch",
                "MailResult declares its customer as required although skipped mails have none",
                "Make the customer optional in MailResult and require it where it is read",
                "pending",
            ),
        ],
        [
            (
                "null_customer_of_closed_account",
                "null_undefined_access",
                2,
                "Skip before reading the address",
                1.0,
            )
        ],
        ["Model closed accounts as a state of the customer, not as null"],
    )
    settle = tree.ago(days=24)
    _session(
        tree,
        "debug-settlement",
        "workers/settlement.py",
        "passed",
        BY_KEY["job-queue"].id,
        4,
        [
            _execution(
                1,
                settle,
                (122, 119, 3),
                "RuntimeError",
                "Event loop is closed",
                ("workers/settlement.py", 31, "client"),
                "resource_leak",
                "The HTTP client was created at import time, before the event loop of the test existed",
                "Create the client inside the running loop and close it in the same fixture",
                "passed",
            )
        ],
        [("client_created_before_loop", "resource_leak", 3, "async with factory() as client", 1.0)],
        ["Forbid clients at module level by a lint rule"],
    )
    report = tree.ago(days=8)
    _session(
        tree,
        "debug-report",
        "src/reports/monthly.ts",
        "escalated",
        BY_KEY["monthly-report"].id,
        6,
        [
            _execution(
                1,
                report,
                (9, 7, 2),
                "TimeoutError",
                "Timed out fetching a new connection from the connection pool",
                ("src/reports/monthly.ts", 77, "loadLedger"),
                "api_misuse",
                "The report keeps its connection while it waits for a second one from the same pool",
                "Raise the limit of the pool until both connections fit",
                "failed",
            )
        ],
        [("nested_pool_checkout", "api_misuse", 4, "Pass the open connection down", 0.5)],
        ["Ask a person who may change the locking order of the settlement job"],
    )
    tree.text(
        "ralph/debug-memory/patterns/learned-patterns.yaml",
        "patterns_identified:\n- pattern: client_created_before_loop\n  category: resource_leak\n"
        "  frequency: 3\n"
        "  fix_template: 'async with factory() as client'\n  effectiveness: 1.0\n",
    )


def _execution(
    attempt: int,
    at: datetime,
    tests: tuple[int, int, int],
    error_type: str,
    message: str,
    where: tuple[str, int, str],
    category: str,
    cause: str,
    strategy: str,
    verification: str,
) -> dict[str, Any]:
    file, line, function = where
    total, passed, failed = tests
    python = file.endswith(".py")
    return {
        "attempt": attempt,
        "timestamp": iso_seconds(at),
        "code_hash": stable_uuid(f"{file}-{attempt}").replace("-", "") * 2,
        "environment": {
            "runtime": "python" if python else "node",
            "runtime_version": "3.12.4" if python else "20.11.0",
            "test_framework": "pytest" if python else "vitest",
        },
        "test_results": {
            "total": total,
            "passed": passed,
            "failed": failed,
            "errors": 0,
            "duration_ms": 4_300,
        },
        "failures": [
            {
                "test_name": f"{function} handles what the report describes",
                "test_file": f"tests/{file}" if python else file.replace("src/", "test/").replace(".ts", ".test.ts"),
                "error_type": error_type,
                "error_message": message,
                "source_location": {"file": file, "line": line, "function": function},
            }
        ],
        "analysis": {
            "root_cause": cause,
            "root_cause_category": category,
            "fix_strategy": strategy,
            "confidence": 0.85,
        },
        "fix_applied": {
            "description": strategy,
            "diff_summary": "+6/-2 lines",
            "files_changed": [file],
            "verification": verification,
        },
    }


def _session(
    tree: Tree,
    name: str,
    file: str,
    status: str,
    loop: str,
    iteration: int,
    executions: list[dict[str, Any]],
    patterns: list[tuple[str, str, int, str, float]],
    recommendations: list[str],
) -> None:
    tree.json(
        f"ralph/debug-memory/sessions/{stable_uuid(name)}.json",
        {
            "session_id": stable_uuid(name),
            "file_path": file,
            "created_at": executions[0]["timestamp"],
            "updated_at": executions[-1]["timestamp"],
            "status": status,
            "executions": executions,
            "learnings": {
                "patterns_identified": [
                    {
                        "pattern": pattern,
                        "category": category,
                        "frequency": frequency,
                        "fix_template": fix,
                        "effectiveness": effectiveness,
                    }
                    for pattern, category, frequency, fix, effectiveness in patterns
                ],
                "recurring_failures": [],
                "recommendations": recommendations,
            },
            "metadata": {"agent": "debugger", "task_id": loop, "ralph_iteration": iteration},
        },
    )
