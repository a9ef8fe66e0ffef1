"""Schemas of the records on disk (docs/file-formats.md#schemas).

Used for the findings of readers, the check of imports and the key order of exports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.records.patterns import PatternType
from core.sources.schema_rules import (
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    RATE,
    REQUIRED_COUNT,
    REQUIRED_RATE,
    REQUIRED_STRING,
    STRING,
    TEXTS,
    TIME,
    TREND,
    Rule,
    id_rule,
    obj,
    objects,
    words,
)

CLAIMED_RATE: Final = "claimed_rate"
"""Key of a claimed rate after recorded results replaced it (docs/scoring.md#claimed-rates)."""


def _loops(**keys: Rule) -> Rule:
    """Rule of `source_loops`: objects or plain loop IDs."""
    return Rule("array", items=Rule("object", or_text=True, keys={"loop_id": STRING, "timestamp": TIME, **keys}))


_OTHERS: Final = {
    "last_used": TIME,
    "first_discovered": TIME,
    "effectiveness_trend": TREND,
    "successful_applications": COUNT,
    "failed_applications": COUNT,
    CLAIMED_RATE: RATE,
    "related_patterns": TEXTS,
    "inverted_from": STRING,
    "aliases": TEXTS,
    "origins": Rule("object"),
}
"""Keys that patterns of any type may have, after the keys of their own schema."""

_PATTERNS: Final[Mapping[PatternType, Mapping[str, Rule]]] = {
    PatternType.ERROR: {
        "pattern_id": id_rule("pat-error"),
        "error_signature": obj(
            True,
            error_type=words(
                "TypeError ReferenceError AssertionError SyntaxError RuntimeError TimeoutError ValidationError Other",
                required=True,
                tolerated="NetworkError",  # the schema of debug sessions has it
            ),
            error_pattern=REQUIRED_STRING,
            error_location_hints=TEXTS,
        ),
        "fix_approach": obj(
            True,
            description=Rule("string", True, length=20),
            fix_category=words(
                "add_null_check add_type_validation add_error_handling fix_logic_error add_import"
                " update_dependency refactor_code_structure other",
                required=True,
            ),
            code_template=STRING,
            code_template_language=STRING,
            diff_pattern=STRING,
        ),
        "source_loops": _loops(contributed_by=STRING),
        "success_rate": REQUIRED_RATE,
        "usage_count": REQUIRED_COUNT,
        "last_used": TIME,
        "first_discovered": TIME,
        "effectiveness_trend": TREND,
        "related_patterns": TEXTS,
        "tags": TEXTS,
        **_OTHERS,
    },
    PatternType.SUCCESS: {
        "pattern_id": id_rule("pat-success"),
        "task_category": words(
            "implementation debugging refactoring testing documentation architecture migration optimization",
            required=True,
        ),
        "task_description_pattern": STRING,
        "approach": obj(
            True,
            description=REQUIRED_STRING,
            steps=Rule("array", True, items=STRING),
            tools_used=TEXTS,
            typical_iterations=obj(average=NUMBER, minimum=NUMBER, maximum=NUMBER),
        ),
        "source_loops": _loops(outcome=words("success partial failure"), iterations_required=INTEGER),
        "success_rate": REQUIRED_RATE,
        "usage_count": REQUIRED_COUNT,
        "average_iterations": NUMBER,
        "preconditions": TEXTS,
        "benefits": TEXTS,
        "limitations": TEXTS,
        "tags": TEXTS,
        **_OTHERS,
    },
    PatternType.ANTI: {
        "pattern_id": id_rule("pat-anti"),
        "approach_description": REQUIRED_STRING,
        "failure_mode": words(
            "infinite_loop quality_degradation scope_creep repeated_same_error incorrect_fix breaking_change"
            " performance_regression",
            required=True,
        ),
        "failure_symptoms": TEXTS,
        "why_it_fails": STRING,
        "better_alternative": obj(description=STRING, success_pattern_id=STRING),
        "source_loops": _loops(failure_iteration=INTEGER),
        "failure_rate": REQUIRED_RATE,
        "occurrence_count": REQUIRED_COUNT,
        "tags": TEXTS,
        **_OTHERS,
    },
    PatternType.TEMPLATE: {
        "template_id": id_rule("tmpl"),
        "language": words("typescript javascript python go rust java other", required=True),
        "template_code": REQUIRED_STRING,
        "description": STRING,
        "placeholders": Rule("texts"),
        "use_case": STRING,
        "source_loops": TEXTS,
        "usage_count": Rule("integer", True),
        "success_rate": Rule("number", rate=True),
        "tags": TEXTS,
        **_OTHERS,
    },
}
PATTERNS: Final[Mapping[PatternType, Rule]] = {kind: Rule("object", keys=keys) for kind, keys in _PATTERNS.items()}
"""Schema of a pattern by type."""

METRICS: Final = obj(
    total_patterns=INTEGER,
    patterns_by_type=obj(
        error_patterns=INTEGER, success_patterns=INTEGER, anti_patterns=INTEGER, code_templates=INTEGER
    ),
    pattern_usage_stats=obj(
        total_applications=INTEGER,
        successful_applications=INTEGER,
        failed_applications=INTEGER,
        overall_success_rate=Rule("number", rate=True),
    ),
    cross_loop_benefit=obj(
        loops_with_pattern_injection=INTEGER,
        loops_without_pattern_injection=INTEGER,
        average_iterations_with=NUMBER,
        average_iterations_without=NUMBER,
        improvement_percentage=NUMBER,
    ),
    last_updated=TIME,
)
"""Metrics of pattern sharing, in a file of their own or in a registry file."""
METRICS_FILE: Final = Rule("object", keys={**METRICS.keys, "effectiveness_metrics": METRICS})

REGISTRY: Final = obj(
    version=Rule("string", pattern=r"\d+\.\d+\.\d+"),
    effectiveness_metrics=METRICS,
    pruning_policy=obj(
        min_success_rate=Rule("number", rate=True),
        min_usage_count=NUMBER,
        max_age_days=INTEGER,
        archive_instead_of_delete=FLAG,
        archive_path=STRING,
        auto_prune=FLAG,
        prune_interval_days=INTEGER,
    ),
)
"""A registry file without its patterns."""

TASK: Final = obj(
    id=STRING,
    description=STRING,
    completion_criteria=STRING,
    created=TIME,
    updated=TIME,
    completed=TIME,
    status=words("running paused completed failed"),
    current_attempt=INTEGER,
    total_attempts=INTEGER,
    tags=TEXTS,
    related_tasks=TEXTS,
)
"""`metadata.json` of a task."""

_RESULT: Final = words("success failure timeout", tolerated="partial")
_MILESTONES: Final = objects(timestamp=TIME, event=STRING, details=STRING)

TRAJECTORY: Final = obj(
    task_id=STRING,
    attempts=objects(
        attempt_id=INTEGER,
        started=TIME,
        ended=TIME,
        outcome=_RESULT,
        plan=STRING,
        actions=INTEGER,
        iterations=INTEGER,
        milestones=_MILESTONES,
        final_quality=NUMBER,
        completion_percent=NUMBER,
    ),
    milestones=_MILESTONES,
)
"""`trajectory.json` of a task."""

OUTCOME: Final = obj(
    status=_RESULT,
    reason=STRING,
    final_quality=NUMBER,
    completion_percent=NUMBER,
    what_worked=TEXTS,
    what_didnt_work=TEXTS,
    suggestions_for_next_time=TEXTS,
)
"""`outcome.json` of an attempt, or the `outcome` of its `attempt.json`."""

ATTEMPT: Final = obj(
    id=INTEGER,
    task_id=STRING,
    started=TIME,
    ended=TIME,
    plan=obj(approach=STRING, steps=TEXTS, estimated_iterations=INTEGER),
    execution=obj(
        agent=STRING,
        iterations=INTEGER,
        actions_performed=INTEGER,
        quality_history=objects(iteration=INTEGER, quality=NUMBER, delta=NUMBER),
    ),
    outcome=OUTCOME,
    what_worked=TEXTS,
    what_didnt_work=TEXTS,
    suggestions_for_next_time=TEXTS,
)
"""`attempt.json` of an attempt."""

REFLECTION: Final = obj(
    timestamp=TIME,
    attempt_id=INTEGER,
    observation=STRING,
    analysis=STRING,
    learning=STRING,
    action_items=TEXTS,
    triggered_by=words("failure success timeout manual"),
    reflection_type=words("error-analysis success-pattern process-improvement"),
)
"""One line of `reflections.jsonl` of a task."""

_EXPLAINED: Final = Rule("string", True, length=20)

DEBUG_SESSION: Final = obj(
    session_id=Rule(
        # The example in the format's description, `dm-001-example`, is not a UUID.
        "string",
        True,
        pattern=r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        advisory=True,
    ),
    file_path=REQUIRED_STRING,
    created_at=TIME,
    updated_at=TIME,
    status=words("in_progress passed failed escalated"),
    executions=objects(
        True,
        attempt=Rule("integer", True, low=1),
        timestamp=Rule("time", True),
        code_hash=REQUIRED_STRING,
        code_snapshot=STRING,
        environment=obj(
            runtime=STRING,
            runtime_version=STRING,
            test_framework=STRING,
            os=STRING,
            additional=Rule("object"),
        ),
        test_results=obj(
            True,
            total=REQUIRED_COUNT,
            passed=REQUIRED_COUNT,
            failed=REQUIRED_COUNT,
            errors=COUNT,
            skipped=COUNT,
            duration_ms=COUNT,
            coverage_percent=Rule("number", low=0, high=100),
        ),
        failures=objects(
            test_name=REQUIRED_STRING,
            test_file=STRING,
            test_line=INTEGER,
            error_type=words(
                "AssertionError TypeError ReferenceError SyntaxError RuntimeError TimeoutError NetworkError"
                " ValidationError Other",
                required=True,
            ),
            error_message=REQUIRED_STRING,
            stack_trace=STRING,
            expected=STRING,
            actual=STRING,
            source_location=obj(file=STRING, line=INTEGER, function=STRING),
        ),
        analysis=obj(
            root_cause=_EXPLAINED,
            root_cause_category=words(
                "null_undefined_access type_mismatch missing_validation logic_error off_by_one race_condition"
                " resource_leak missing_error_handling api_misuse configuration_error dependency_issue other"
            ),
            fix_strategy=_EXPLAINED,
            confidence=RATE,
            related_failures=TEXTS,
            similar_past_issues=objects(session_id=STRING, file=STRING, resolution=STRING),
        ),
        fix_applied=obj(
            description=REQUIRED_STRING,
            diff_summary=STRING,
            files_changed=TEXTS,
            diff=STRING,
            verification=words("pending passed failed"),
        ),
    ),
    learnings=obj(
        patterns_identified=objects(
            pattern=REQUIRED_STRING,
            category=STRING,
            frequency=Rule("integer", True, low=1),
            fix_template=STRING,
            effectiveness=RATE,
        ),
        recurring_failures=objects(
            test=STRING,
            occurrences=INTEGER,
            resolution=words("resolved pending wont_fix escalated"),
            notes=STRING,
        ),
        code_quality_issues=objects(
            issue=STRING, location=STRING, severity=words("critical major minor"), addressed=FLAG
        ),
        recommendations=TEXTS,
    ),
    metadata=obj(agent=STRING, task_id=STRING, ralph_iteration=INTEGER),
)
"""A debug session."""
