"""JSON of decisions, the review queue, suspicious reports, extractions and policy checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.cli.json.wire import Wire, wire

if TYPE_CHECKING:
    from core.curation.decision_writer import Decided as DecidedRecord
    from core.forecast.forecast import Forecast
    from core.records.extractions import Extraction as ExtractionRecord
    from core.review.session import Plan
    from core.state.review_items import ReviewItem
Decision: Final = wire(
    "Decision",
    "An entry of the decision log; before and after are what it changed.",
    "id at:time by verb subject reason before:object after:object group?",
)
Decided: Final = wire(
    "Decided",
    "One decision; `written` is false until the pattern files could be changed.",
    "decision:Decision? summary warnings:[text] written:bool",
)
Refusal: Final = wire("Refusal", "A pattern that was refused, and why.", "id why")
DecidedTogether: Final = wire(
    "DecidedTogether",
    "Several decisions with one undo.",
    "decisions:[Decision] refused:[Refusal] summary warnings:[text] written:bool",
)
DecidedEach: Final = wire("DecidedEach", "Several decisions, each with its own undo.", "decisions:[Decided]")
StateChange: Final = wire("StateChange", "A pattern that would change its state.", "id before after")
ContextChange: Final = wire("ContextChange", "A loop or task that would get another context.", "kind id when?")
TokenCounts: Final = wire("TokenCounts", "Tokens of all contexts.", "before:int after:int")
DryRun: Final = wire(
    "DryRun",
    "The forecast of a decision.",
    """dry_run:bool summary warnings:[text] refused:[Refusal] turned:[StateChange] added:[text] gone:[text] loops:int
    paused:int tasks:int changed:[ContextChange] tokens:TokenCounts""",
)


def decided_document(decided: DecidedRecord) -> Wire:
    """One decision, or all decisions of one act."""
    if not (decided.group or decided.refused):
        return Decided.of(decided, decision=Decision.of(decided.decision))
    return DecidedTogether.of(decided, refused=_refusals(decided))


def dry_run_document(decided: DecidedRecord, found: Forecast) -> Wire:
    """The forecast of a decision."""
    return DryRun.of(
        found,
        dry_run=True,
        summary=decided.summary,
        warnings=decided.warnings,
        refused=_refusals(decided),
        turned=[StateChange.of(id=id, before=str(before), after=str(after)) for id, before, after in found.turned],
        changed=[
            ContextChange.of(one, when="when it resumes" if one.kind == "paused" else None) for one in found.changed
        ],
        tokens=TokenCounts(*found.tokens),
    )


def _refusals(decided: DecidedRecord) -> list[Wire]:
    return [Refusal.of(one, id=one.pattern_id) for one in decided.refused]


LoggedDecision: Final = wire("LoggedDecision", "An entry of the decision log.", "undone:bool", Decision)
DecisionLog: Final = wire("DecisionLog", "`log`.", "decisions:[LoggedDecision] findings:[Finding]")
LogProblem: Final = wire("LogProblem", "A break in the hash chain.", "line:int what")
LogVerification: Final = wire(
    "LogVerification", "`log --verify`.", "lines:int linked:int decisions:int heads:int problems:[LogProblem]"
)
LogHead: Final = wire("LogHead", "`log --head`.", "kind project lines:int hash at")
Question: Final = wire(
    "Question",
    "A question of the review queue; stake is its impact in avoided failures a week, worth the stake by time.",
    "kind subject key question reason worth:number stake:number urgent:bool seconds:number evidence:int other?",
)
ReviewSession: Final = wire(
    "ReviewSession",
    "What a review session of some minutes covers; `share` is that of the impact.",
    "minutes:number decisions:int keys:[text] seconds:number share:number later:int not_worth_the_time:int",
)
ReviewQueue: Final = wire(
    "ReviewQueue", "`review list`.", "questions:[Question] sitting:ReviewSession findings:[Finding]"
)


def question(item: ReviewItem) -> Wire:
    """One question of the review queue."""
    return Question.of(item, key=item.question_key, urgent=item.is_urgent, worth=item.priority, stake=item.impact)


def review_session(plan: Plan) -> Wire:
    """What a review session covers."""
    return ReviewSession.of(
        plan, decisions=len(plan.items), keys=[item.question_key for item in plan.items], not_worth_the_time=plan.left
    )


Burst: Final = wire(
    "Burst",
    "A source with suspicious harmful reports.",
    "source patterns:[text] never_applied:int first:time last:time",
)
BurstList: Final = wire("BurstList", "`review suspicious`.", "bursts:[Burst] findings:[Finding]")
Proposal: Final = wire(
    "Proposal",
    "A pattern that a source offers; `record` is a pattern record without its id.",
    "type slug headline record:object trace:[text] duplicate_of? similarity:number? refused?",
)
Extraction: Final = wire(
    "Extraction", "What a loop, task or debug session offers.", "source proposals:[Proposal] nothing? missing:[text]"
)
ExtractionResult: Final = wire(
    "ExtractionResult",
    "What a source offers, the decision, and decomposition strategies by loop or attempt.",
    "decided:Decided|DecidedTogether? strategies:object",
    Extraction,
)
ExtractionList: Final = wire("ExtractionList", "`loop extract`.", "extractions:[ExtractionResult] findings:[Finding]")


def extraction_values(extraction: ExtractionRecord) -> dict[str, Any]:
    """The fields of `Extraction`."""
    return {
        "source": extraction.source_id,
        "proposals": extraction.proposals,
        "nothing": extraction.why_nothing,
        "missing": extraction.missing,
    }


PolicyRule: Final = wire(
    "PolicyRule",
    "A rule of a policy; `result` is ok, failed or off, subjects are what breaks the rule.",
    "rule setting:any? result text subjects:[text]",
)
PolicyResult: Final = wire("PolicyResult", "`check`.", "kept:bool rules:[PolicyRule]")
