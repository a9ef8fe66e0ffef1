"""Decomposition strategies in use; docs/scoring.md#decomposition-strategies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.base.text import visible_line
from core.learning.outcomes import Verdict
from core.learning.strategies import extract_strategies, load_expressions
from core.records.events import Event, event_id
from core.records.extractions import Extraction, Proposal
from core.records.patterns import DECOMPOSITION_TAG, Pattern, PatternType
from core.retrieval.task import is_decomposition

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard
    from core.records.snapshot import Snapshot

CATEGORY: Final = "architecture"  # task category of a strategy; the pattern file format has none for planning
_MAX_CONTENT: Final = 120  # maximum number of characters of a text that names a new strategy
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")
_MAX_SLUG: Final = 60
_SPACES: Final = re.compile(r"\s+")


def parse_strategies(text: str) -> tuple[str, ...]:
    """Return the common strategies in a report; if none, the report itself if short."""
    if found := extract_strategies(text):
        return tuple(found)
    name = _SPACES.sub(" ", text).strip()
    return (name,) if name and len(name) <= _MAX_CONTENT and visible_line(name) == name else ()


def find_used_strategies(work_id: str, snapshot: Snapshot, board: Scoreboard) -> tuple[str, ...]:
    """Return the strategies in a reported outcome, or else in the description."""
    outcome = board.outcome(work_id)
    if outcome is not None and outcome[0].strategy.strip():
        return parse_strategies(outcome[0].strategy)
    attempt, loop = snapshot.attempts.get(work_id), snapshot.loops.get(work_id)
    if attempt is not None:
        return tuple(extract_strategies(attempt.plan))
    if loop is not None and is_decomposition(loop.task):
        return tuple(extract_strategies(loop.task))
    return ()


def list_work_ids(source_id: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the ID of the loop, and of the attempts at its tasks or at this task."""
    tasks = {source_id, *(task.id for task in snapshot.tasks.values() if task.loop_id == source_id)}
    attempts = sorted(id for id, attempt in snapshot.attempts.items() if attempt.task_id in tasks)
    return (*([source_id] if source_id in snapshot.loops else []), *attempts)


def is_common(name: str) -> bool:
    """Return whether a strategy is a common one, whose text is known to be safe."""
    return name in load_expressions()


def find_strategies(names: Iterable[str], patterns: Mapping[str, Pattern]) -> tuple[dict[str, Pattern], list[str]]:
    """Return the patterns by strategy name, and the names without a pattern."""
    by_name = {
        _normalize_name(pattern.description or pattern.title): pattern
        for pattern in patterns.values()
        if pattern.type is PatternType.SUCCESS and DECOMPOSITION_TAG in pattern.tags
    }
    used = {name: by_name[_normalize_name(name)] for name in names if _normalize_name(name) in by_name}
    return used, [name for name in dict.fromkeys(names) if name not in used]


def propose_strategies(work_id: str, names: Sequence[str]) -> Extraction:
    """Propose patterns for new strategies. They have no counts: uses are events."""
    proposals = []
    for name in names:
        record = {
            "type": "success_pattern",
            "name": name,
            "task_category": CATEGORY,
            "approach": {"description": name, "steps": []},
            "success_rate": 0.0,
            "usage_count": 0,
            "tags": [DECOMPOSITION_TAG],
        }
        words = _NOT_SLUG.sub("-", name.lower()).strip("-")[:_MAX_SLUG].strip("-")
        slug = f"strategy-{words}" if words else "strategy"
        proposals.append(Proposal(type=PatternType.SUCCESS, slug=slug, record=record, trace=("its strategy",)))
    return Extraction(source_id=f"strategies of {work_id}", proposals=tuple(proposals))


def make_use_events(
    work_id: str, patterns: Iterable[Pattern], snapshot: Snapshot, board: Scoreboard, now: datetime, by: str
) -> Iterator[Event]:
    """Yield events for the uses of strategies that are not recorded yet.

    The result is that of the work item. A neutral outcome without success counts as a failure of the strategy.
    """
    outcome = board.outcome(work_id)
    if outcome is None:
        return
    signals, scored = outcome
    result = False if not signals.success and scored.verdict is Verdict.NEUTRAL else None
    loop = snapshot.loops.get(work_id)
    names = {work_id, *(loop.aliases if loop is not None else ())}
    for pattern in patterns:
        own = [event for event in snapshot.events if event.pattern_id == pattern.id and event.loop_id in names]
        recorded = [event.success for event in own if event.kind in ("applied", "outcome", "feedback")]
        if recorded and result in (None, recorded[-1]):
            continue
        yield Event(
            id=event_id(now), at=now, kind="applied", pattern_id=pattern.id, loop_id=work_id, success=result, by=by
        )


def _normalize_name(name: str) -> str:
    return _SPACES.sub(" ", name).strip().casefold()
