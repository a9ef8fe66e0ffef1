"""Values for calls of the server of a team."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

from core.records.team import PatternText, TeamTrial, TeamUse
from core.team.server import Space

Psql = Callable[..., str]
"""Runs SQL statements as a role; see the fixture `psql`."""
AT: Final = datetime(2025, 3, 20, 12, tzinfo=UTC)  # before the clock of every server
PATTERN: Final = "pat-error-timeout-001"


def make_use(number: int = 1, **changes: Any) -> TeamUse:
    values: dict[str, Any] = {"pattern_id": PATTERN, "kind": "applied", "at": AT, "success": True}
    return TeamUse(id=UUID(int=number), **(values | changes))


def make_trial(**changes: Any) -> TeamTrial:
    values: dict[str, Any] = {"pattern_id": PATTERN, "kind": "returned", "share": 0.5, "rate": 10}
    return TeamTrial(**{**values, "id": uuid4(), "is_held_out": True, "outcome": True} | changes)


def make_decision(number: int = 1, by: str = "Rita", verb: str = "promote", **keys: Any) -> str:
    return json.dumps({"id": f"d{number}", "by": by, "verb": verb, "subject": PATTERN, **keys})


def make_text(pattern_id: str = PATTERN, content_hash: str = "a", **changes: Any) -> PatternText:
    return PatternText(
        **{"pattern_id": pattern_id, "type": "error", "record": "{}", "content_hash": content_hash} | changes
    )


def make_candidate(number: int = 1, pattern_id: str = PATTERN, **changes: Any) -> str:
    """The decision of a loop that adds a pattern, which no person has read."""
    place = {"file": ".aiwg/ralph/shared/patterns/error-patterns.json", "type": "error", "pattern_id": pattern_id}
    keys: dict[str, Any] = {
        "subject": "loop-1",
        "after": {"patterns": [pattern_id], "hashes": {pattern_id: "a"}},
        "effects": [{**place, "insert": {"id": pattern_id}}],
        "inverse": [{**place, "remove": True}],
    }
    return make_decision(number, "Carl (script)", "extract", **(keys | changes))


def join(*spaces: Space, name: str = "web") -> UUID:
    """Let members join a new project to the space; returns its ID."""
    project = uuid4()
    for space in spaces:
        space.join_project(project, name)
    return project


def call(space: UUID, function: str, *arguments: object) -> str:
    quoted = (f"'{value}'" if isinstance(value, str | UUID) else str(value) for value in arguments)
    values = ", ".join(quoted).replace("None", "null")
    return f"select ralphdeck.{function}('{space}', {values})"


def decide(space: UUID, project: UUID, payload: str) -> str:
    return call(space, "decide", project, payload, "{x}", 0, "{}", "{}", "[]")
