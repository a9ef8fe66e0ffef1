"""The list of patterns: its columns, its orders, and the cells of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.base.formatting import format_percent
from core.base.pattern_titles import pattern_title
from core.records.patterns import Pattern, PatternType
from core.show.pages.document import Cells, Column, Moment, Part, Sign
from core.show.pages.signs import state_sign

if TYPE_CHECKING:
    from core.learning.maturity import Assessment

COLUMNS: Final = (
    Column("state", "state", 7, best=13, about="candidate, established, proven; deprecated or held: no agent gets it"),
    Column(
        "flags",
        "",
        2,
        keep=7,
        about="a flag: pinned by a person; !: due for inversion; a dagger: a suspect text; ?: stale",
    ),
    Column("title", "what", 34, flex=1, best=50, about="a message of the error, or the name of the pattern"),
    Column("type", "type", 12, keep=3, about="error, success, anti-pattern or template"),
    Column(
        "rate",
        "worked",
        8,
        align="right",
        about="how many of its results are successes; ~: only a rate is recorded",
    ),
    Column("given", "given", 6, align="right", keep=8, about="how often it was in a context"),
    Column("uses", "used", 6, align="right", keep=6, about="how often it was used, also without being given"),
    Column("seen", "seen", 5, align="right", keep=2, about="number of sessions that found it themselves"),
    Column("last_used", "last", 9, align="right", keep=7, about="time since its newest use"),
    Column("id", "id", 34, keep=0, keep_end=4, about="the ID, as commands take it"),
)
COMMAND_COLUMNS: Final = (
    Column("id", "id", 34, keep_end=4),
    *(column for column in COLUMNS if column.id not in ("id", "flags", "title")),
    *(column for column in COLUMNS if column.id == "title"),
)
"""The columns that a command prints: first the ID, which commands take, and last the free text."""
SORTS: Final = (
    *(("score", True), ("uses", True), ("rate", True), ("last_used", True)),
    *(("state", False), ("type", False), ("id", False), ("title", False)),
)
"""Orders with their first direction (True: descending), as `PatternCatalog.select` takes them."""
TYPES: Final = {
    PatternType.ERROR: "error",
    PatternType.SUCCESS: "success",
    PatternType.ANTI: "anti-pattern",
    PatternType.TEMPLATE: "template",
}


def pattern_cells(pattern: Pattern, assessment: Assessment, *, is_stale: bool = False) -> Cells:
    """Return a row's cells; `is_stale`: something the pattern is about was removed."""
    style = "quiet" if assessment.multiplier == 0 else ""
    name, more = pattern_title(pattern), ""
    if pattern.type is not PatternType.ERROR and pattern.description not in ("", name, pattern.title):
        more = f"  {pattern.description}"
    flags = (
        Sign("", "warning", "pin") if assessment.pin else "",
        ("!" if assessment.inversion_due else "", "warning"),
        Sign("", "warning", "suspect") if pattern.suspicions else "",
        ("?" if is_stale else "", "warning"),
    )
    return {
        "id": ((pattern.id, "quiet"),),
        "state": (state_sign(assessment.shown),),
        "flags": flags,
        "title": ((name, style), ("  stale" if is_stale else "", "warning"), (more, "quiet")),
        "type": ((TYPES[pattern.type], "quiet"),),
        "rate": (worked_text(assessment, style),),
        "given": ((f"{assessment.given:,}", style),),
        "uses": ((f"{assessment.uses:,}", style),),
        "seen": ((f"{assessment.seen:,}", style),),
        "last_used": (Moment(assessment.last_used, is_age=True),),
    }


def worked_text(assessment: Assessment, style: str = "") -> Part:
    """Return how many uses worked: `9 of 12`; `~85 %` if only a rate is recorded."""
    total = assessment.successes + assessment.failures
    if assessment.is_claimed:
        return f"~{format_percent(assessment.rate or 0.0)}", style
    return (f"{assessment.successes:,} of {total:,}", style) if total else ("—", "quiet")
