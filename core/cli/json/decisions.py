"""JSON objects of decisions, questions of Review, extractions and policies."""

from __future__ import annotations

from typing import Annotated, Any

from core.cli.json.wire import Finding, Time, Wire


class Decision(Wire, frozen=True):
    """An entry of the decision log; before and after are what it changed."""

    id: str
    at: Time
    by: str
    verb: str
    subject: str
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]
    group: str | None
    decided_by: str


class Decided(Wire, frozen=True):
    """A decision; `written` is false if nothing changed or pattern files are pending."""

    decision: Decision | None
    summary: str
    warnings: list[str]
    written: bool


class Refusal(Wire, frozen=True):
    """A pattern that was refused, and why."""

    id: Annotated[str, "pattern_id"]
    why: str


class DecidedTogether(Wire, frozen=True):
    """Several decisions with one undo."""

    decisions: list[Decision]
    refused: list[Refusal]
    summary: str
    warnings: list[str]
    written: bool


class DecidedEach(Wire, frozen=True):
    """Several decisions, each with its own undo."""

    decisions: list[Decided]


class StateChange(Wire, frozen=True):
    """A pattern that would change its state."""

    id: str
    before: str
    after: str


class ContextChange(Wire, frozen=True):
    """A loop or task that would get another context."""

    kind: str
    id: str
    when: str | None


class TokenCounts(Wire, frozen=True):
    """Tokens of all contexts."""

    before: int
    after: int


class DryRun(Wire, frozen=True):
    """The forecast of a decision."""

    dry_run: bool
    summary: str
    warnings: list[str]
    refused: list[Refusal]
    turned: list[StateChange]
    added: list[str]
    gone: Annotated[list[str], "removed"]
    loops: int
    paused: int
    tasks: int
    changed: list[ContextChange]
    tokens: TokenCounts


class LoggedDecision(Decision, frozen=True):
    """An entry of the decision log."""

    undone: bool
    elsewhere: bool


class TrustDocument(Wire, frozen=True):
    """`trust`; of a trusted project, what arrived since then."""

    project: str
    trusted: bool
    since: str | None
    how: str | None
    done: str | None
    summary: str
    patterns: list[str]
    claimed: list[str]
    blocked: list[str]
    held: list[str]
    reflections: int
    fixes: int
    decisions: list[LoggedDecision]


class DecisionLog(Wire, frozen=True):
    """`log`."""

    decisions: list[LoggedDecision]
    findings: list[Finding]


class LogProblem(Wire, frozen=True):
    """A break in the hash chain."""

    line: int
    what: str


class LogVerification(Wire, frozen=True):
    """`log --verify`."""

    lines: int
    linked: int
    decisions: int
    elsewhere: int
    heads: int
    problems: list[LogProblem]
    team: SpaceVerification | None


class SpaceVerification(Wire, frozen=True):
    """Decisions of the team's space; with an `obstacle` they were not verified."""

    space: str
    decisions: int
    problem: str | None
    obstacle: str | None


class LogHead(Wire, frozen=True):
    """`log --head`."""

    kind: str
    project: str
    lines: int
    hash: str
    at: str


class Advice(Wire, frozen=True):
    """Advice of a judge on a held text: approve, reject or unsure; its own `reason`."""

    advice: str
    reason: str


class Question(Wire, frozen=True):
    """A question of the review queue; one of kind `further` is a row of questions.

    `stake` is its impact in avoided failures a week, `worth` the stake by time; `sources` are the loops of an offer.
    The subject of a row is the kind of its questions, and `further` has their keys, best first.
    """

    kind: str
    subject: str
    key: Annotated[str, "question_key"]
    question: str
    reason: str
    worth: Annotated[float, "priority"]
    stake: Annotated[float, "impact"]
    urgent: Annotated[bool, "is_urgent"]
    seconds: float
    evidence: int
    other: str | None
    proposed: ProposedDecision | None
    advice: Advice | None
    sources: list[str]
    further: list[str]


class ProposedDecision(Wire, frozen=True):
    """A decision that an agent proposes."""

    id: str
    at: Time
    by: str
    verb: str
    subjects: list[str]
    reason: str


class ReviewSession(Wire, frozen=True):
    """What a review session of some minutes covers; `share` is that of the impact."""

    minutes: float
    decisions: int
    keys: list[str]
    seconds: float
    share: float
    later: int
    not_worth_the_time: Annotated[int, "left"]


class ReviewQueue(Wire, frozen=True):
    """`review`."""

    questions: list[Question]
    sitting: ReviewSession
    findings: list[Finding]
    in_rows: int


class ReviewCard(Wire, frozen=True):
    """`review SUBJECT`; `card` is Markdown: question, evidence, what yes and no do."""

    question: Question
    card: str
    findings: list[Finding]


class Burst(Wire, frozen=True):
    """A source with suspicious reports: harmful, or held results of a team member."""

    source: str
    patterns: list[str]
    never_applied: Annotated[int, "never_given"]
    never_given: int
    first: Time
    last: Time
    successes: int
    failures: int


class BurstList(Wire, frozen=True):
    """`review --suspicious`."""

    bursts: list[Burst]
    findings: list[Finding]


class Proposal(Wire, frozen=True):
    """A pattern that a source offers; `record` is a pattern record without its id."""

    type: str
    slug: str
    headline: str
    record: dict[str, Any]
    trace: list[str]
    duplicate_of: str | None
    similarity: float | None
    refused: str | None


class Extraction(Wire, frozen=True):
    """What a loop, task or debug session offers."""

    source: Annotated[str, "source_id"]
    proposals: list[Proposal]
    nothing: Annotated[str | None, "why_nothing"]
    missing: list[str]


class ExtractionResult(Extraction, frozen=True):
    """Offers of a source, the decision, decomposition strategies by loop or attempt."""

    decided: Decided | DecidedTogether | None
    strategies: dict[str, Any]


class ExtractionList(Wire, frozen=True):
    """`loop extract`."""

    extractions: list[ExtractionResult]
    findings: list[Finding]


class PolicyRule(Wire, frozen=True):
    """A policy rule; `result` is ok, failed or off, `subjects` what breaks the rule."""

    rule: str
    setting: Any | None
    result: str
    text: str
    subjects: list[str]


class PolicyResult(Wire, frozen=True):
    """`check`."""

    kept: bool
    rules: list[PolicyRule]
