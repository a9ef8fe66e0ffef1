"""Schemas of the records on disk (docs/file-formats.md#schemas); `core.sources.schema` explains the notation.

Not a YAML file, whose parser would take 15 ms in each command.
"""

from __future__ import annotations

from typing import Any, Final

_TREND: Final[Any] = [{"timestamp": "time", "success_rate_snapshot": "number", "sample_size": "integer"}]
# Of pattern sharing, in a file of their own or in a registry file.
_METRICS: Final[Any] = {
    "total_patterns": "integer",
    "patterns_by_type": {
        "error_patterns": "integer",
        "success_patterns": "integer",
        "anti_patterns": "integer",
        "code_templates": "integer",
    },
    "pattern_usage_stats": {
        "total_applications": "integer",
        "successful_applications": "integer",
        "failed_applications": "integer",
        "overall_success_rate": "plain rate",
    },
    "cross_loop_benefit": {
        "loops_with_pattern_injection": "integer",
        "loops_without_pattern_injection": "integer",
        "average_iterations_with": "number",
        "average_iterations_without": "number",
        "improvement_percentage": "number",
    },
    "last_updated": "time",
}
# outcome.json of an attempt, or `outcome` in its attempt.json
_OUTCOME: Final[Any] = {
    "status": "success | failure | timeout | (partial)",
    "reason": "string",
    "final_quality": "number",
    "completion_percent": "number",
    "what_worked": ["string"],
    "what_didnt_work": ["string"],
    "suggestions_for_next_time": ["string"],
}
_MILESTONES: Final[Any] = [{"timestamp": "time", "event": "string", "details": "string"}]
SCHEMA_TABLE: Final[dict[str, dict[str, Any]]] = {
    # Keys that patterns of any type may have, after the keys of their own schema.
    "common": {
        "last_used": "time",
        "first_discovered": "time",
        "effectiveness_trend": _TREND,
        "successful_applications": "count",
        "failed_applications": "count",
        "claimed_rate": "rate",
        "related_patterns": ["string"],
        "inverted_from": "string",
        "aliases": ["string"],
        "origins": "object",
    },
    "error": {
        "pattern_id!": "error pattern ID",
        "error_signature!": {
            "error_type!": (
                "TypeError | ReferenceError | AssertionError | SyntaxError | RuntimeError | TimeoutError"
                " | ValidationError | Other | (NetworkError)"
            ),
            "error_pattern!": "string",
            "error_message": "string",
            "error_places": ["string"],
            "error_location_hints": ["string"],
        },
        "fix_approach!": {
            "description!": "sentence",
            "fix_category!": (
                "add_null_check | add_type_validation | add_error_handling | fix_logic_error | add_import"
                " | update_dependency | refactor_code_structure | other"
            ),
            "code_template": "string",
            "code_template_language": "string",
            "diff_pattern": "string",
        },
        "source_loops": ["loop ID", {"loop_id": "string", "timestamp": "time", "contributed_by": "string"}],
        "success_rate!": "rate",
        "usage_count!": "count",
        "last_used": "time",
        "first_discovered": "time",
        "effectiveness_trend": _TREND,
        "related_patterns": ["string"],
        "tags": ["string"],
    },
    "success": {
        "pattern_id!": "success pattern ID",
        "task_category!": (
            "implementation | debugging | refactoring | testing | documentation | architecture | migration"
            " | optimization"
        ),
        "task_description_pattern": "string",
        "approach!": {
            "description!": "string",
            "steps!": ["string"],
            "tools_used": ["string"],
            "typical_iterations": {"average": "number", "minimum": "number", "maximum": "number"},
        },
        "source_loops": [
            "loop ID",
            {
                "loop_id": "string",
                "timestamp": "time",
                "outcome": "success | partial | failure",
                "iterations_required": "integer",
            },
        ],
        "success_rate!": "rate",
        "usage_count!": "count",
        "average_iterations": "number",
        "preconditions": ["string"],
        "benefits": ["string"],
        "limitations": ["string"],
        "tags": ["string"],
    },
    "anti": {
        "pattern_id!": "anti-pattern ID",
        "approach_description!": "string",
        "failure_mode!": (
            "infinite_loop | quality_degradation | scope_creep | repeated_same_error | incorrect_fix"
            " | breaking_change | performance_regression"
        ),
        "failure_symptoms": ["string"],
        "why_it_fails": "string",
        "better_alternative": {"description": "string", "success_pattern_id": "string"},
        "source_loops": ["loop ID", {"loop_id": "string", "timestamp": "time", "failure_iteration": "integer"}],
        "failure_rate!": "rate",
        "occurrence_count!": "count",
        "tags": ["string"],
    },
    "template": {
        "template_id!": "template ID",
        "language!": "typescript | javascript | python | go | rust | java | other",
        "template_code!": "string",
        "description": "string",
        "placeholders": "strings by name",
        "use_case": "string",
        "source_loops": ["string"],
        "usage_count!": "integer",
        "success_rate": "plain rate",
        "tags": ["string"],
    },
    "metrics": _METRICS,
    "metrics_file": _METRICS | {"effectiveness_metrics": _METRICS},
    # Without its patterns.
    "registry": {
        "version": "version",
        "effectiveness_metrics": _METRICS,
        "pruning_policy": {
            "min_success_rate": "plain rate",
            "min_usage_count": "number",
            "max_age_days": "integer",
            "archive_instead_of_delete": "boolean",
            "archive_path": "string",
            "auto_prune": "boolean",
            "prune_interval_days": "integer",
        },
    },
    # metadata.json
    "task": {
        "id": "string",
        "description": "string",
        "completion_criteria": "string",
        "created": "time",
        "updated": "time",
        "completed": "time",
        "status": "running | paused | completed | failed",
        "current_attempt": "integer",
        "total_attempts": "integer",
        "tags": ["string"],
        "related_tasks": ["string"],
    },
    # trajectory.json of a task
    "trajectory": {
        "task_id": "string",
        "attempts": [
            {
                "attempt_id": "integer",
                "started": "time",
                "ended": "time",
                "outcome": "success | failure | timeout | (partial)",
                "plan": "string",
                "actions": "integer",
                "iterations": "integer",
                "milestones": _MILESTONES,
                "final_quality": "number",
                "completion_percent": "number",
            }
        ],
        "milestones": _MILESTONES,
    },
    "outcome": _OUTCOME,
    # attempt.json
    "attempt": {
        "id": "integer",
        "task_id": "string",
        "started": "time",
        "ended": "time",
        "plan": {"approach": "string", "steps": ["string"], "estimated_iterations": "integer"},
        "execution": {
            "agent": "string",
            "iterations": "integer",
            "actions_performed": "integer",
            "quality_history": [{"iteration": "integer", "quality": "number", "delta": "number"}],
        },
        "outcome": _OUTCOME,
        "what_worked": ["string"],
        "what_didnt_work": ["string"],
        "suggestions_for_next_time": ["string"],
    },
    # one line of reflections.jsonl of a task
    "reflection": {
        "timestamp": "time",
        "attempt_id": "integer",
        "observation": "string",
        "analysis": "string",
        "learning": "string",
        "action_items": ["string"],
        "triggered_by": "failure | success | timeout | manual",
        "reflection_type": "error-analysis | success-pattern | process-improvement",
    },
    "debug_session": {
        "session_id!": "UUID",
        "file_path!": "string",
        "created_at": "time",
        "updated_at": "time",
        "status": "in_progress | passed | failed | escalated",
        "executions!": [
            {
                "attempt!": "positive integer",
                "timestamp!": "time",
                "code_hash!": "string",
                "code_snapshot": "string",
                "environment": {
                    "runtime": "string",
                    "runtime_version": "string",
                    "test_framework": "string",
                    "os": "string",
                    "additional": "object",
                },
                "test_results!": {
                    "total!": "count",
                    "passed!": "count",
                    "failed!": "count",
                    "errors": "count",
                    "skipped": "count",
                    "duration_ms": "count",
                    "coverage_percent": "percent",
                },
                "failures": [
                    {
                        "test_name!": "string",
                        "test_file": "string",
                        "test_line": "integer",
                        "error_type!": (
                            "AssertionError | TypeError | ReferenceError | SyntaxError | RuntimeError | TimeoutError"
                            " | NetworkError | ValidationError | Other"
                        ),
                        "exception_type": "string",
                        "error_message!": "string",
                        "stack_trace": "string",
                        "expected": "string",
                        "actual": "string",
                        "source_location": {"file": "string", "line": "integer", "function": "string"},
                    }
                ],
                "analysis": {
                    "root_cause!": "sentence",
                    "root_cause_category": (
                        "null_undefined_access | type_mismatch | missing_validation | logic_error | off_by_one"
                        " | race_condition | resource_leak | missing_error_handling | api_misuse"
                        " | configuration_error | dependency_issue | other"
                    ),
                    "fix_strategy!": "sentence",
                    "confidence": "rate",
                    "related_failures": ["string"],
                    "similar_past_issues": [{"session_id": "string", "file": "string", "resolution": "string"}],
                },
                "fix_applied": {
                    "description!": "string",
                    "diff_summary": "string",
                    "files_changed": ["string"],
                    "diff": "string",
                    "verification": "pending | passed | failed",
                },
            }
        ],
        "learnings": {
            "patterns_identified": [
                {
                    "pattern!": "string",
                    "category": "string",
                    "frequency!": "positive integer",
                    "fix_template": "string",
                    "effectiveness": "rate",
                }
            ],
            "recurring_failures": [
                {
                    "test": "string",
                    "occurrences": "integer",
                    "resolution": "resolved | pending | wont_fix | escalated",
                    "notes": "string",
                }
            ],
            "code_quality_issues": [
                {
                    "issue": "string",
                    "location": "string",
                    "severity": "critical | major | minor",
                    "addressed": "boolean",
                }
            ],
            "recommendations": ["string"],
        },
        "metadata": {
            "agent": "string",
            "task_id": "string",
            "loop_id": "string",
            "attempt": "integer",
            "ralph_iteration": "integer",
        },
    },
}
