"""Repairs of patterns that today's rules of extraction would not make like this."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from core.records.patterns import Pattern


class Problem(StrEnum):
    """Why a pattern does not keep today's rules."""

    TRIGGER = "trigger"
    TEXT = "text"
    TEMPLATE = "template"
    REPEATED = "repeated"

    @property
    def about(self) -> str:
        return _ABOUT[self]


_ABOUT: Final = {
    Problem.TRIGGER: "unspecific trigger",
    Problem.TEXT: "text without a reason",
    Problem.TEMPLATE: "template with partial placeholders",
    Problem.REPEATED: "repeats another pattern of the same fix",
}


class TextChange(NamedTuple):
    """Part of a pattern before and after a repair; "" is nothing."""

    part: str  # trigger, places, text, template or diff
    before: str
    after: str


class RecordRepair(Struct, frozen=True, kw_only=True):
    """Proposed repair of one pattern.

    `changes` has new values by key and subkey of the record; None removes a subkey. Without changes, the pattern is
    archived. `because` explains the proposal. `other_sources` are source loops with another fix, which has no
    pattern of its own yet.
    """

    pattern: Pattern
    problems: tuple[Problem, ...]
    changes: dict[str, dict[str, Any]] = {}
    because: str = ""
    other_sources: tuple[str, ...] = ()

    @property
    def is_archived(self) -> bool:
        return not self.changes

    @property
    def reason(self) -> str:
        """The problems and what follows from them, in one line."""
        problems = ", ".join(problem.about for problem in self.problems)
        return f"{problems}; {self.because}" if self.because else problems

    @property
    def text_changes(self) -> list[TextChange]:
        """The parts that differ after the repair; none if the pattern is archived."""
        signature, fix = (self.changes.get(key, {}) for key in ("error_signature", "fix_approach"))
        pattern = self.pattern
        rows = (
            ("trigger", pattern.error_pattern, signature.get("error_pattern", pattern.error_pattern)),
            ("places", ", ".join(pattern.places), ", ".join(signature.get("error_places") or ())),
            ("text", pattern.description, fix.get("description", pattern.description)),
            ("template", pattern.template_code, fix.get("code_template", pattern.template_code) or ""),
            ("diff", pattern.diff_pattern, fix.get("diff_pattern", pattern.diff_pattern) or ""),
        )
        return [TextChange(*row) for row in rows if row[1] != row[2]]


class OldRecords(Struct, frozen=True):
    """Proposed repairs, and the IDs of patterns with problems that a person approved or edited."""

    repairs: tuple[RecordRepair, ...]
    left: tuple[str, ...]

    def count(self, problem: Problem) -> int:
        return sum(problem in repair.problems for repair in self.repairs)
