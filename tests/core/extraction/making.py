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


def step(number: int, action: str = "", result: str = "", **fields: Any) -> Iteration:
    """One iteration; it failed unless `outcome` is given."""
    at = START + timedelta(minutes=10 * number)
    return Iteration(**{"number": number, "at": at, "action": action, "result": result, **fields})


def failed(number: int, action: str = "", result: str = "", **fields: Any) -> Iteration:
    return step(number, action, result, outcome=Outcome.FAILURE, **fields)


def passed(number: int, action: str = "", result: str = "31 passing", **fields: Any) -> Iteration:
    return step(number, action, result, outcome=Outcome.SUCCESS, **fields)


def material(*iterations: Iteration, task: str = "Fix the login", **fields: Any) -> Material:
    """The material of a loop that completed, unless `status` is given."""
    loop = {
        "id": LOOP,
        "task": task,
        "status": fields.pop("status", LoopStatus.COMPLETED),
        "criteria": fields.pop("criteria", ()),
        "owner": fields.pop("owner", "software-implementer"),
    }
    return Material(source_id=LOOP, loop=Loop(**loop), iterations=iterations, **fields)


def known(*patterns: Pattern, messages: tuple[str, ...] = (), tasks: tuple[str, ...] = ()) -> KnownPatterns:
    """What a project knows: these patterns and texts."""
    by_id = {pattern.id: pattern for pattern in patterns}
    return KnownPatterns(by_id, SimilarityIndex.build(by_id), messages, tasks)


def pattern(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """A pattern of the registry, `…-000`."""
    return replace(parse_pattern(kind, slug, record), id=f"pat-{kind}-{slug}-000")
