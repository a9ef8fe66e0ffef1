"""Material for the tests of extraction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from core.extraction.known_patterns import KnownPatterns
from core.extraction.record_parts import parse_pattern
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.material import Material
from core.records.patterns import Pattern, PatternType
from core.retrieval.similarity import SimilarityIndex

START = datetime(2026, 2, 2, 14, 30, tzinfo=UTC)
LOOP = "ralph-fix-auth-a1b2c3d4"


def step(number: int, action: str = "", result: str = "", **told: Any) -> Iteration:
    """One iteration; it failed unless `outcome` is given."""
    at = START + timedelta(minutes=10 * number)
    return Iteration(**{"number": number, "at": at, "action": action, "result": result, **told})


def failed(number: int, action: str = "", result: str = "", **told: Any) -> Iteration:
    return step(number, action, result, outcome=Outcome.FAILURE, **told)


def passed(number: int, action: str = "", result: str = "31 passing", **told: Any) -> Iteration:
    return step(number, action, result, outcome=Outcome.SUCCESS, **told)


def material(*iterations: Iteration, task: str = "Fix the login", **told: Any) -> Material:
    """The material of a loop that completed, unless `status` is given."""
    loop = {
        "id": LOOP,
        "task": task,
        "status": told.pop("status", LoopStatus.COMPLETED),
        "criteria": told.pop("criteria", ()),
        "owner": told.pop("owner", "software-implementer"),
    }
    return Material(source_id=LOOP, loop=Loop(**loop), iterations=iterations, **told)


def known(*patterns: Pattern, messages: tuple[str, ...] = (), tasks: tuple[str, ...] = ()) -> KnownPatterns:
    """What a project knows: these patterns and texts."""
    by_id = {pattern.id: pattern for pattern in patterns}
    return KnownPatterns(by_id, SimilarityIndex.build(by_id), messages, tasks)


def pattern(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """A pattern of the registry, `…-000`."""
    return replace(parse_pattern(kind, slug, record), id=f"pat-{kind}-{slug}-000")
