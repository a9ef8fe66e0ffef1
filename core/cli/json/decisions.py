"""JSON of decisions, the review queue, suspicious reports, extractions and policy checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.cli.json import objects
from core.cli.json.wire import Wire

if TYPE_CHECKING:
    from core.curation.decision_writer import Decided as DecidedRecord
    from core.forecast.forecast import Forecast
    from core.records.extractions import Extraction as ExtractionRecord
    from core.review.session import Plan
    from core.state.review_items import ReviewItem


def decided_document(decided: DecidedRecord) -> Wire:
    """One decision, or all decisions of one act."""
    if not (decided.group or decided.refused):
        return objects.Decided.of(decided, decision=objects.Decision.of(decided.decision))
    return objects.DecidedTogether.of(decided, refused=_refusals(decided))


def dry_run_document(decided: DecidedRecord, found: Forecast) -> Wire:
    """The forecast of a decision."""
    return objects.DryRun.of(
        found,
        dry_run=True,
        gone=found.removed,
        summary=decided.summary,
        warnings=decided.warnings,
        refused=_refusals(decided),
        turned=[
            objects.StateChange.of(id=id, before=str(before), after=str(after)) for id, before, after in found.turned
        ],
        changed=[
            objects.ContextChange.of(one, when="when it resumes" if one.kind == "paused" else None)
            for one in found.changed
        ],
        tokens=objects.TokenCounts(*found.tokens),
    )


def _refusals(decided: DecidedRecord) -> list[Wire]:
    return [objects.Refusal.of(one, id=one.pattern_id) for one in decided.refused]


def question(item: ReviewItem) -> Wire:
    """One question of the review queue."""
    return objects.Question.of(
        item, key=item.question_key, urgent=item.is_urgent, worth=item.priority, stake=item.impact
    )


def review_session(plan: Plan) -> Wire:
    """What a review session covers."""
    return objects.ReviewSession.of(
        plan, decisions=len(plan.items), keys=[item.question_key for item in plan.items], not_worth_the_time=plan.left
    )


def extraction_values(extraction: ExtractionRecord) -> dict[str, Any]:
    """The fields of `Extraction`."""
    return {
        "source": extraction.source_id,
        "proposals": extraction.proposals,
        "nothing": extraction.why_nothing,
        "missing": extraction.missing,
    }
