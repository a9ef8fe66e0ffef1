"""Small makers of what decisions are about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.config.paths import ProjectPaths
from core.config.settings import Settings, WatchSettings
from core.curation.commands import Command, PatternCommand, bulk
from core.curation.curator import Curator, Target
from core.curation.decision_writer import Decided
from core.learning.assessment import RULE, Assessment
from core.learning.inversion_proposals import Inversion
from core.records.decisions import Verb
from core.records.patterns import Maturity, Pattern, PatternType

NOW = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
FILE = ".aiwg/ralph/shared/patterns/error-patterns.json"
IMPATIENT = Settings(watch=WatchSettings(retry_seconds=(0.001, 0.001)))
"""Default settings that do not wait for half-written files."""


def make_pattern(pattern_id: str = "pat-error-a-001", **changes: Any) -> Pattern:
    """An error pattern in the error file, with text `v1`."""
    values: dict[str, Any] = {
        "id": pattern_id,
        "type": PatternType.ERROR,
        "title": "TypeError: x is not a function",
        "content_hash": "v1",
        "file": FILE,
        "tags": ("auth",),
    }
    return Pattern(**(values | changes))


def make_assessment(
    successes: int = 5, failures: int = 0, computed: Maturity = Maturity.ESTABLISHED, **changes: Any
) -> Assessment:
    """What the scoreboard would say of a pattern without a pin."""
    values: dict[str, Any] = {
        "pattern_id": "pat-error-a-001",
        "successes": successes,
        "failures": failures,
        "uses": successes + failures,
        "injected_only": 0,
        "helpful": float(successes),
        "harmful": float(failures),
        "rate": None,
        "interval": (0.0, 1.0),
        "computed": computed,
        "state": computed,
        "faded": False,
        "decided_by": RULE,
        "pin": None,
        "pin_stale": False,
        "contradicted": False,
        "multiplier": 1.0,
        "score": 1.0,
        "inversion_due": False,
        "injectable": True,
        "quarantined": False,
        "last_used": None,
        "next_change": None,
    }
    return Assessment(**(values | changes))


def make_proposal(pattern_id: str = "pat-error-a-001", **changes: Any) -> Inversion:
    """An inversion of a pattern that failed 5 of 7 times."""
    values: dict[str, Any] = {
        "pattern_id": pattern_id,
        "text": "AVOID: Split by file type. Failed 5/7 times (71% failure rate)",
        "reason": "Failed 5/7 times (71% failure rate)",
        "failures": 5,
        "total": 7,
        "failure_mode": "scope_creep",
        "why_it_fails": "Files of one type depend on each other.",
        "better_alternative": "Split by feature",
        "better_pattern_id": "pat-success-split-001",
        "source_loops": ("ralph-one-00000001", "ralph-two-00000002"),
        "lint": (),
        "slug": "split-by-type",
    }
    return Inversion(**(values | changes))


def failing() -> Assessment:
    """2 successes, 5 failures: due for inversion."""
    return make_assessment(2, 5, Maturity.DEPRECATED)


def make_project(folder: Path, *ids: str) -> ProjectPaths:
    """A project whose error file holds a plain record for each id."""
    paths = ProjectPaths(folder)
    paths.patterns.mkdir(parents=True)
    records = [{"pattern_id": key, "success_rate": 1.0, "usage_count": 3} for key in ids]
    content = {"version": "1.0.0", "pattern_registry": {"error_patterns": records}}
    paths.pattern_file("error").write_text(json.dumps(content, indent=2) + "\n")
    return paths


def make_curator(paths: ProjectPaths, by: str = "alice") -> Curator:
    """A curator with settings that do not wait."""
    return Curator(paths, IMPATIENT, by=by)


def overrides(paths: ProjectPaths, pattern_type: str = "error") -> dict[str, dict[str, Any]]:
    """The overrides in a pattern file of the shape of (3), by pattern id."""
    (records,) = json.loads(paths.pattern_file(pattern_type).read_bytes())["pattern_registry"].values()
    return {record["pattern_id"]: record["override"] for record in records if "override" in record}


def decide(
    curator: Curator,
    kind: type[PatternCommand],
    pattern: Pattern,
    assessment: Assessment,
    *,
    now: datetime,
    proposal: Inversion | None = None,
    **fields: Any,
) -> Decided:
    """Make a decision about one pattern."""
    target = Target(pattern, assessment, (lambda: proposal) if proposal is not None else None)
    known = curator.settled_count()
    return curator.decide(kind(pattern.id, **fields), lambda _id: target, now=now, known=known)


def decide_many(
    curator: Curator,
    verb: Verb,
    targets: Sequence[Target],
    *,
    now: datetime,
    known: int,
    reason: str = "",
    **fields: Any,
) -> Decided:
    """Make the same decision about many patterns."""
    by_id = {target.pattern.id: target for target in targets}
    return curator.decide(bulk(verb, by_id, reason, **fields), by_id.__getitem__, now=now, known=known)


def decide_question(curator: Curator, command: Command, *, now: datetime) -> Decided:
    """Make a decision that is not about a single pattern."""
    return curator.decide(command, lambda id: make_target(id), now=now, known=curator.settled_count())


def make_target(pattern_id: str) -> Target:
    """A pattern with the default text and evidence."""
    return Target(make_pattern(pattern_id), make_assessment())
