"""The folder `shared/`: pattern files with lineage, archive, metrics, and an outdated copy."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any, Final

from tests.sample.loops import BY_KEY, LOOPS, SampleLoop, Use
from tests.sample.patterns import ANTIS, ERRORS, SUCCESSES, TEMPLATES, UNREAD, Sample
from tests.sample.tree import Tree, iso, iso_seconds

ALL_PATTERNS: Final = ERRORS + SUCCESSES + ANTIS + TEMPLATES
_PATTERNS: Final = "ralph/shared/patterns"


def extracted_by_loop() -> dict[str, list[str]]:
    """Loop key -> IDs of the patterns it discovered."""
    found: dict[str, list[str]] = {}
    for sample in ALL_PATTERNS:
        found.setdefault(sample.discovered_by, []).append(sample.key)
    return found


def recorded_uses(pattern: str) -> list[tuple[SampleLoop, Use]]:
    """The loops that applied a pattern, oldest first."""
    uses = [(loop, use) for loop in LOOPS for use in loop.uses if use.pattern == pattern and use.iteration is not None]
    return sorted(uses, key=lambda pair: -pair[0].started)


def write_shared(tree: Tree) -> None:
    """Write everything of this module."""
    _write_patterns(tree)
    _write_archive(tree)
    _write_mirror(tree)
    _write_metrics(tree)


def _write_patterns(tree: Tree) -> None:
    errors = [error_record(tree, sample) for sample in ERRORS if sample.key != UNREAD]
    successes = [_success_record(tree, sample) for sample in SUCCESSES]
    antis = [_anti_record(tree, sample) for sample in ANTIS]
    templates = [_template_record(tree, sample) for sample in TEMPLATES]
    tree.json(
        f"{_PATTERNS}/error-patterns.json",
        {"version": "1.0.0", "pattern_registry": {"error_patterns": errors}},
    )
    tree.json(
        f"{_PATTERNS}/success-patterns.json",
        {"version": "1.0.0", "pattern_registry": {"success_patterns": successes}},
    )
    # An agent wrote this file without the `pattern_registry` level; readers support both shapes.
    tree.json(f"{_PATTERNS}/anti-patterns.json", {"version": "1.0.0", "anti_patterns": antis})
    tree.json(
        f"{_PATTERNS}/code-templates.json",
        {"version": "1.0.0", "pattern_registry": {"code_templates": templates}},
    )


def _rate(part: int, whole: int) -> float:
    return round(part / whole, 2)


def _discovered(tree: Tree, sample: Sample) -> datetime:
    return BY_KEY[sample.discovered_by].end(tree) + timedelta(seconds=3)


def _used_at(tree: Tree, loop: SampleLoop, use: Use) -> datetime:
    return loop.step_end(tree, use.iteration or 1)


def _last_used(tree: Tree, sample: Sample) -> datetime:
    recorded = [_used_at(tree, loop, use) for loop, use in recorded_uses(sample.key)]
    named = [tree.ago(days=sample.last_used_days)] if sample.last_used_days is not None else []
    return max([_discovered(tree, sample), *recorded, *named])


def _trend(tree: Tree, sample: Sample) -> dict[str, Any]:
    if not sample.trend:
        return {}
    return {
        "effectiveness_trend": [
            {
                "timestamp": iso_seconds(tree.ago(days=days)),
                "success_rate_snapshot": rate,
                "sample_size": size,
            }
            for days, rate, size in sample.trend
        ]
    }


def error_record(tree: Tree, sample: Sample) -> dict[str, Any]:
    """The record of an error pattern."""
    discoverer = BY_KEY[sample.discovered_by]
    sources = [(discoverer, _discovered(tree, sample))] + [
        (loop, _used_at(tree, loop, use)) for loop, use in recorded_uses(sample.key)
    ]
    return {
        "pattern_id": sample.key,
        **copy.deepcopy(sample.body),
        "source_loops": [
            {"loop_id": loop.id, "timestamp": iso_seconds(at), "contributed_by": loop.owner} for loop, at in sources
        ],
        "success_rate": _rate(sample.successes, sample.successes + sample.failures),
        "usage_count": sample.successes + sample.failures,
        "successful_applications": sample.successes,
        "failed_applications": sample.failures,
        "first_discovered": iso_seconds(_discovered(tree, sample)),
        "last_used": iso_seconds(_last_used(tree, sample)),
        **_trend(tree, sample),
    }


def _success_record(tree: Tree, sample: Sample) -> dict[str, Any]:
    discoverer = BY_KEY[sample.discovered_by]
    sources: list[dict[str, Any]] = [
        {
            "loop_id": discoverer.id,
            "outcome": "success",
            "iterations_required": len(discoverer.steps),
            "timestamp": iso_seconds(_discovered(tree, sample)),
        }
    ]
    for loop, use in recorded_uses(sample.key):
        sources.append(
            {
                "loop_id": loop.id,
                "outcome": "success" if use.successful else "failure",
                "iterations_required": use.iteration,
                "timestamp": iso_seconds(_used_at(tree, loop, use)),
            }
        )
    return {
        "pattern_id": sample.key,
        **copy.deepcopy(sample.body),
        "source_loops": sources,
        "success_rate": _rate(sample.successes, sample.successes + sample.failures),
        "usage_count": sample.successes + sample.failures,
        "last_used": iso_seconds(_last_used(tree, sample)),
        **_trend(tree, sample),
    }


def _anti_record(tree: Tree, sample: Sample) -> dict[str, Any]:
    discoverer = BY_KEY[sample.discovered_by]
    return {
        "pattern_id": sample.key,
        **copy.deepcopy(sample.body),
        "source_loops": [
            {
                "loop_id": discoverer.id,
                "failure_iteration": max(1, len(discoverer.steps) - 1),
                "timestamp": iso_seconds(_discovered(tree, sample)),
            }
        ]
        + [
            {
                "loop_id": loop.id,
                "failure_iteration": use.iteration,
                "timestamp": iso_seconds(_used_at(tree, loop, use)),
            }
            for loop, use in recorded_uses(sample.key)
        ],
        "failure_rate": _rate(sample.successes, sample.successes + sample.failures),
        "occurrence_count": sample.successes + sample.failures,
        "last_used": iso_seconds(_last_used(tree, sample)),
        **_trend(tree, sample),
    }


def _template_record(tree: Tree, sample: Sample) -> dict[str, Any]:
    return {
        "template_id": sample.key,
        **copy.deepcopy(sample.body),
        "source_loops": [
            BY_KEY[sample.discovered_by].id,
            *(loop.id for loop, use in recorded_uses(sample.key) if use.successful),
        ],
        "usage_count": sample.successes + sample.failures,
        "success_rate": _rate(sample.successes, sample.successes + sample.failures),
        "last_used": iso_seconds(_last_used(tree, sample)),
    }


def _write_archive(tree: Tree) -> None:
    """Write a pattern that was pruned two months ago; it is not part of the registry."""
    archived = tree.ago(days=64)
    tree.json(
        f"ralph/shared/archive/{archived.strftime('%Y-%m')}-patterns.json",
        {
            "version": "1.0.0",
            "pattern_registry": {
                "error_patterns": [
                    {
                        "pattern_id": "pat-error-npm-cache-002",
                        "error_signature": {
                            "error_type": "Other",
                            "error_pattern": "EINTEGRITY .*",
                            "error_location_hints": ["package-lock.json"],
                        },
                        "fix_approach": {
                            "description": "Delete the lock file and the package cache, then install again",
                            "fix_category": "update_dependency",
                        },
                        "source_loops": [],
                        "success_rate": 0.33,
                        "usage_count": 3,
                        "last_used": iso_seconds(tree.ago(days=170)),
                        "first_discovered": iso_seconds(tree.ago(days=260)),
                        "tags": ["npm"],
                        "archived_at": iso_seconds(archived),
                        "archived_reason": "unused for 106 days, success rate below 0.5",
                    }
                ]
            },
        },
    )


def _write_mirror(tree: Tree) -> None:
    """Write an older copy of two error patterns to `memory/patterns`; one of them has changed since."""
    same = error_record(tree, ERRORS[0])
    older = error_record(tree, ERRORS[1])
    older["usage_count"] = 2
    older["success_rate"] = 1.0
    older["successful_applications"] = 2
    older["failed_applications"] = 0
    older["fix_approach"]["description"] = "Add a null check before every property access in the function"
    tree.json(
        "ralph/memory/patterns/error-patterns.json",
        {"version": "1.0.0", "pattern_registry": {"error_patterns": [same, older]}},
    )


def _write_metrics(tree: Tree) -> None:
    """Write the effectiveness metrics as of the last extraction."""
    successes = sum(sample.successes for sample in ALL_PATTERNS)
    failures = sum(sample.failures for sample in ALL_PATTERNS)
    ended = [loop for loop in LOOPS if loop.status in ("success", "completed", "failed")]
    with_patterns = [len(loop.steps) for loop in ended if loop.uses]
    without = [len(loop.steps) for loop in ended if not loop.uses]
    average_with = sum(with_patterns) / len(with_patterns)
    average_without = sum(without) / len(without)
    tree.json(
        "ralph/shared/effectiveness-metrics.json",
        {
            "total_patterns": len(ALL_PATTERNS),
            "patterns_by_type": {
                "error_patterns": len(ERRORS),
                "success_patterns": len(SUCCESSES),
                "anti_patterns": len(ANTIS),
                "code_templates": len(TEMPLATES),
            },
            "pattern_usage_stats": {
                "total_applications": successes + failures,
                "successful_applications": successes,
                "failed_applications": failures,
                "overall_success_rate": _rate(successes, successes + failures),
            },
            "cross_loop_benefit": {
                "loops_with_pattern_injection": len(with_patterns),
                "loops_without_pattern_injection": len(without),
                "average_iterations_with": round(average_with, 1),
                "average_iterations_without": round(average_without, 1),
                "improvement_percentage": round((average_without - average_with) / average_without * 100, 1),
            },
            "last_updated": iso(BY_KEY["billing-docs"].end(tree) + timedelta(seconds=5)),
        },
    )
