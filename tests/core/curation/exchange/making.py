"""Projects in memory that exchange their patterns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from core.curation.exchange.export import Entry, Exported, export
from core.curation.exchange.import_file import read_import
from core.curation.exchange.import_plan import Action, ImportPlan, Registry, plan_import
from core.curation.merge import as_read
from core.records.patterns import PatternType
from core.retrieval.similarity import SimilarityIndex

NOW = datetime(2026, 2, 3, tzinfo=UTC)
KIND = PatternType.ERROR


def error(
    number: int, uses: int = 4, rate: float = 1.0, fix: str = "Check for null first", **more: Any
) -> dict[str, Any]:
    """An error pattern of (3); its text depends on its number."""
    return {
        "pattern_id": f"pat-error-made-{number:03}",
        "error_signature": {"error_type": "TypeError", "error_pattern": f"value {number} of .* is null"},
        "fix_approach": {"description": f"{fix} ({number})", "fix_category": "add_null_check"},
        "success_rate": rate,
        "usage_count": uses,
        **more,
    }


class Numbers:
    """Free ids from 500 up."""

    def __init__(self) -> None:
        self.last = 499

    def next(self, prefix: str, slug: str) -> str:
        self.last += 1
        return f"{prefix}-{slug}-{self.last:03}"


class Project:
    """A registry of error patterns that can be exported and imported into."""

    def __init__(self, origin: str, *records: dict[str, Any]) -> None:
        self.origin = origin * 16
        self.records = {record["pattern_id"]: record for record in records}
        self.imported: dict[str, dict[str, Any]] = {}
        self.archived: frozenset[str] = frozenset()
        self._ids = Numbers()

    def export(self, *, team_shared: bool = False) -> Exported:
        """All of it."""
        entries = [Entry(KIND, record) for record in self.records.values()]
        return export(entries, self.origin, team_shared=team_shared)

    def plan(self, data: bytes, file: str = "team.json") -> ImportPlan:
        """What an import would do."""
        patterns = {id: as_read(record, KIND) for id, record in self.records.items()}
        known = Registry(
            patterns=patterns,
            records=self.records,
            imported=self.imported,
            archived=self.archived,
            index=SimilarityIndex.build(patterns),
            threshold=0.8,
            origin=self.origin,
        )
        return plan_import(read_import(file, data), known, self._ids, NOW)

    def take(self, data: bytes) -> list[Action]:
        """Import; what became of each record."""
        plan = self.plan(data)
        for row in plan.changes:
            if row.record is not None:
                self.records[row.target] = row.record
            else:
                kept = {**self.records[row.target], **row.set}
                self.records[row.target] = {key: value for key, value in kept.items() if key not in row.unset}
            self.imported[row.target] = row.theirs
        return [row.action for row in plan.rows]

    def use(self, pattern_id: str, times: int) -> None:
        """Count so many successes more."""
        record = self.records[pattern_id]
        successes = round(record["success_rate"] * record["usage_count"]) + times
        uses = record["usage_count"] + times
        self.records[pattern_id] = {**record, "usage_count": uses, "success_rate": successes / uses}

    def uses(self, pattern_id: str) -> int:
        """How many uses its record counts."""
        return int(self.records[pattern_id]["usage_count"])


def file_of(*records: Any) -> bytes:
    """A file of (3) that no ralphdeck wrote."""
    return json.dumps({"version": "1.0.0", "pattern_registry": {"error_patterns": records}}).encode()
