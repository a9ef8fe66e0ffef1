"""The schemas of the records on disk, stated once; see docs/file-formats.md#schemas.

The reader's findings, the check of an import and the key order of an export all come from these tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.records.patterns import PatternType

CLAIMED_RATE: Final = "claimed_rate"
"""The key that keeps a claimed rate once recorded results replace it (docs/scoring.md#claimed-rates)."""


@dataclass(frozen=True)
class Rule:
    """What one value may be.

    Attributes:
        kind: string, time, number, integer, boolean, array, object, any, or `texts`: an object of strings with
            free names.
        required: Its object is incomplete without it.
        words: The only allowed values; empty for any.
        tolerated: Further values that other documents or common tools write; not reported.
        pattern: A regular expression that the whole string must match.
        advisory: A mismatch with `pattern` is reported as information only.
        low, high: Limits of a number.
        rate: A share from 0 to 1, which other writers spell as a percentage.
        length: Shortest string, in characters.
        or_text: A plain string is accepted in place of the object.
        items: Rule for the items of an array.
        keys: Rules for the keys of an object, in their documented order; other keys are not checked.
    """

    kind: str
    required: bool = False
    words: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    pattern: str = ""
    advisory: bool = False
    low: float = -math.inf
    high: float = math.inf
    rate: bool = False
    length: int = 0
    or_text: bool = False
    items: Rule | None = None
    keys: Mapping[str, Rule] = field(default_factory=dict)


def _object(required: bool = False, /, **keys: Rule) -> Rule:
    return Rule("object", required, keys=keys)


def _objects(required: bool = False, /, **keys: Rule) -> Rule:
    return Rule("array", required, items=_object(**keys))


def _id(prefix: str) -> Rule:
    return Rule("string", True, pattern=rf"{prefix}-[a-z0-9-]+-\d{{3}}")


def _words(words: str, required: bool = False, tolerated: str = "") -> Rule:
    return Rule("string", required, tuple(words.split()), tuple(tolerated.split()))


_STRING: Final = Rule("string")
_NEEDED: Final = Rule("string", True)
_TIME: Final = Rule("time")
_NUMBER: Final = Rule("number")
_INTEGER: Final = Rule("integer")
_COUNT: Final = Rule("integer", low=0)
_TOTAL: Final = Rule("integer", True, low=0)
_SHARE: Final = Rule("number", low=0, high=1, rate=True)
_RATE: Final = Rule("number", True, low=0, high=1, rate=True)
_FLAG: Final = Rule("boolean")
_TEXTS: Final = Rule("array", items=_STRING)
_TREND: Final = _objects(timestamp=_TIME, success_rate_snapshot=_NUMBER, sample_size=_INTEGER)


def _loops(**keys: Rule) -> Rule:
    """`source_loops`: objects, or the plain loop IDs that one document's examples use."""
    return Rule("array", items=Rule("object", or_text=True, keys={"loop_id": _STRING, "timestamp": _TIME, **keys}))


_OTHERS: Final = {
    "last_used": _TIME,
    "first_discovered": _TIME,
    "effectiveness_trend": _TREND,
    "successful_applications": _COUNT,
    "failed_applications": _COUNT,
    CLAIMED_RATE: _SHARE,
    "related_patterns": _TEXTS,
    "inverted_from": _STRING,
    "aliases": _TEXTS,
    "origins": Rule("object"),
}
"""Keys that records of any type may have, behind the keys of their own schema."""

_PATTERNS: Final[Mapping[PatternType, Mapping[str, Rule]]] = {
    PatternType.ERROR: {
        "pattern_id": _id("pat-error"),
        "error_signature": _object(
            True,
            error_type=_words(
                "TypeError ReferenceError AssertionError SyntaxError RuntimeError TimeoutError ValidationError Other",
                required=True,
                tolerated="NetworkError",  # the schema of debug sessions has it
            ),
            error_pattern=_NEEDED,
            error_location_hints=_TEXTS,
        ),
        "fix_approach": _object(
            True,
            description=Rule("string", True, length=20),
            fix_category=_words(
                "add_null_check add_type_validation add_error_handling fix_logic_error add_import"
                " update_dependency refactor_code_structure other",
                required=True,
            ),
            code_template=_STRING,
            code_template_language=_STRING,
            diff_pattern=_STRING,
        ),
        "source_loops": _loops(contributed_by=_STRING),
        "success_rate": _RATE,
        "usage_count": _TOTAL,
        "last_used": _TIME,
        "first_discovered": _TIME,
        "effectiveness_trend": _TREND,
        "related_patterns": _TEXTS,
        "tags": _TEXTS,
        **_OTHERS,
    },
    PatternType.SUCCESS: {
        "pattern_id": _id("pat-success"),
        "task_category": _words(
            "implementation debugging refactoring testing documentation architecture migration optimization",
            required=True,
        ),
        "task_description_pattern": _STRING,
        "approach": _object(
            True,
            description=_NEEDED,
            steps=Rule("array", True, items=_STRING),
            tools_used=_TEXTS,
            typical_iterations=_object(average=_NUMBER, minimum=_NUMBER, maximum=_NUMBER),
        ),
        "source_loops": _loops(outcome=_words("success partial failure"), iterations_required=_INTEGER),
        "success_rate": _RATE,
        "usage_count": _TOTAL,
        "average_iterations": _NUMBER,
        "preconditions": _TEXTS,
        "benefits": _TEXTS,
        "limitations": _TEXTS,
        "tags": _TEXTS,
        **_OTHERS,
    },
    PatternType.ANTI: {
        "pattern_id": _id("pat-anti"),
        "approach_description": _NEEDED,
        "failure_mode": _words(
            "infinite_loop quality_degradation scope_creep repeated_same_error incorrect_fix breaking_change"
            " performance_regression",
            required=True,
        ),
        "failure_symptoms": _TEXTS,
        "why_it_fails": _STRING,
        "better_alternative": _object(description=_STRING, success_pattern_id=_STRING),
        "source_loops": _loops(failure_iteration=_INTEGER),
        "failure_rate": _RATE,
        "occurrence_count": _TOTAL,
        "tags": _TEXTS,
        **_OTHERS,
    },
    PatternType.TEMPLATE: {
        "template_id": _id("tmpl"),
        "language": _words("typescript javascript python go rust java other", required=True),
        "template_code": _NEEDED,
        "description": _STRING,
        "placeholders": Rule("texts"),
        "use_case": _STRING,
        "source_loops": _TEXTS,
        "usage_count": Rule("integer", True),
        "success_rate": Rule("number", rate=True),
        "tags": _TEXTS,
        **_OTHERS,
    },
}
PATTERNS: Final[Mapping[PatternType, Rule]] = {kind: Rule("object", keys=keys) for kind, keys in _PATTERNS.items()}
"""One record of each type of pattern."""

METRICS: Final = _object(
    total_patterns=_INTEGER,
    patterns_by_type=_object(
        error_patterns=_INTEGER, success_patterns=_INTEGER, anti_patterns=_INTEGER, code_templates=_INTEGER
    ),
    pattern_usage_stats=_object(
        total_applications=_INTEGER,
        successful_applications=_INTEGER,
        failed_applications=_INTEGER,
        overall_success_rate=Rule("number", rate=True),
    ),
    cross_loop_benefit=_object(
        loops_with_pattern_injection=_INTEGER,
        loops_without_pattern_injection=_INTEGER,
        average_iterations_with=_NUMBER,
        average_iterations_without=_NUMBER,
        improvement_percentage=_NUMBER,
    ),
    last_updated=_TIME,
)
"""The metrics of pattern sharing: a file of their own, or a part of a registry document."""
METRICS_FILE: Final = Rule("object", keys={**METRICS.keys, "effectiveness_metrics": METRICS})

REGISTRY: Final = _object(
    version=Rule("string", pattern=r"\d+\.\d+\.\d+"),
    effectiveness_metrics=METRICS,
    pruning_policy=_object(
        min_success_rate=Rule("number", rate=True),
        min_usage_count=_NUMBER,
        max_age_days=_INTEGER,
        archive_instead_of_delete=_FLAG,
        archive_path=_STRING,
        auto_prune=_FLAG,
        prune_interval_days=_INTEGER,
    ),
)
"""A pattern file apart from its patterns."""

TASK: Final = _object(
    id=_STRING,
    description=_STRING,
    completion_criteria=_STRING,
    created=_TIME,
    updated=_TIME,
    completed=_TIME,
    status=_words("running paused completed failed"),
    current_attempt=_INTEGER,
    total_attempts=_INTEGER,
    tags=_TEXTS,
    related_tasks=_TEXTS,
)
"""`metadata.json` of a task."""

_RESULT: Final = _words("success failure timeout", tolerated="partial")
_MILESTONES: Final = _objects(timestamp=_TIME, event=_STRING, details=_STRING)

TRAJECTORY: Final = _object(
    task_id=_STRING,
    attempts=_objects(
        attempt_id=_INTEGER,
        started=_TIME,
        ended=_TIME,
        outcome=_RESULT,
        plan=_STRING,
        actions=_INTEGER,
        iterations=_INTEGER,
        milestones=_MILESTONES,
        final_quality=_NUMBER,
        completion_percent=_NUMBER,
    ),
    milestones=_MILESTONES,
)
"""`trajectory.json` of a task."""

OUTCOME: Final = _object(
    status=_RESULT,
    reason=_STRING,
    final_quality=_NUMBER,
    completion_percent=_NUMBER,
    what_worked=_TEXTS,
    what_didnt_work=_TEXTS,
    suggestions_for_next_time=_TEXTS,
)
"""`outcome.json` of an attempt, or the `outcome` of its `attempt.json`."""

ATTEMPT: Final = _object(
    id=_INTEGER,
    task_id=_STRING,
    started=_TIME,
    ended=_TIME,
    plan=_object(approach=_STRING, steps=_TEXTS, estimated_iterations=_INTEGER),
    execution=_object(
        agent=_STRING,
        iterations=_INTEGER,
        actions_performed=_INTEGER,
        quality_history=_objects(iteration=_INTEGER, quality=_NUMBER, delta=_NUMBER),
    ),
    outcome=OUTCOME,
    what_worked=_TEXTS,
    what_didnt_work=_TEXTS,
    suggestions_for_next_time=_TEXTS,
)
"""`attempt.json` of an attempt."""

REFLECTION: Final = _object(
    timestamp=_TIME,
    attempt_id=_INTEGER,
    observation=_STRING,
    analysis=_STRING,
    learning=_STRING,
    action_items=_TEXTS,
    triggered_by=_words("failure success timeout manual"),
    reflection_type=_words("error-analysis success-pattern process-improvement"),
)
"""One line of `reflections.jsonl` of a task."""

_EXPLAINED: Final = Rule("string", True, length=20)

DEBUG_SESSION: Final = _object(
    session_id=Rule(
        # The schema's own example, `dm-001-example`, is not a UUID.
        "string",
        True,
        pattern=r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        advisory=True,
    ),
    file_path=_NEEDED,
    created_at=_TIME,
    updated_at=_TIME,
    status=_words("in_progress passed failed escalated"),
    executions=_objects(
        True,
        attempt=Rule("integer", True, low=1),
        timestamp=Rule("time", True),
        code_hash=_NEEDED,
        code_snapshot=_STRING,
        environment=_object(
            runtime=_STRING,
            runtime_version=_STRING,
            test_framework=_STRING,
            os=_STRING,
            additional=Rule("object"),
        ),
        test_results=_object(
            True,
            total=_TOTAL,
            passed=_TOTAL,
            failed=_TOTAL,
            errors=_COUNT,
            skipped=_COUNT,
            duration_ms=_COUNT,
            coverage_percent=Rule("number", low=0, high=100),
        ),
        failures=_objects(
            test_name=_NEEDED,
            test_file=_STRING,
            test_line=_INTEGER,
            error_type=_words(
                "AssertionError TypeError ReferenceError SyntaxError RuntimeError TimeoutError NetworkError"
                " ValidationError Other",
                required=True,
            ),
            error_message=_NEEDED,
            stack_trace=_STRING,
            expected=_STRING,
            actual=_STRING,
            source_location=_object(file=_STRING, line=_INTEGER, function=_STRING),
        ),
        analysis=_object(
            root_cause=_EXPLAINED,
            root_cause_category=_words(
                "null_undefined_access type_mismatch missing_validation logic_error off_by_one race_condition"
                " resource_leak missing_error_handling api_misuse configuration_error dependency_issue other"
            ),
            fix_strategy=_EXPLAINED,
            confidence=_SHARE,
            related_failures=_TEXTS,
            similar_past_issues=_objects(session_id=_STRING, file=_STRING, resolution=_STRING),
        ),
        fix_applied=_object(
            description=_NEEDED,
            diff_summary=_STRING,
            files_changed=_TEXTS,
            diff=_STRING,
            verification=_words("pending passed failed"),
        ),
    ),
    learnings=_object(
        patterns_identified=_objects(
            pattern=_NEEDED,
            category=_STRING,
            frequency=Rule("integer", True, low=1),
            fix_template=_STRING,
            effectiveness=_SHARE,
        ),
        recurring_failures=_objects(
            test=_STRING,
            occurrences=_INTEGER,
            resolution=_words("resolved pending wont_fix escalated"),
            notes=_STRING,
        ),
        code_quality_issues=_objects(
            issue=_STRING, location=_STRING, severity=_words("critical major minor"), addressed=_FLAG
        ),
        recommendations=_TEXTS,
    ),
    metadata=_object(agent=_STRING, task_id=_STRING, ralph_iteration=_INTEGER),
)
"""A debug session."""
