"""What is wrong or withheld in a project (docs/safety.md), and why a pattern has its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from core.base.scanning.engine import COUNTS
from core.base.scanning.verdict import describe_suspicions
from core.base.text import visible_line
from core.learning.bursts import format_burst
from core.records.findings import Finding, Severity
from core.records.patterns import PatternType, Suspicion
from core.sources.ledger import FILE as LEDGER

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.explanation import Explanation, LineageEvent

MANY_RECORDED: Final = 20  # Number of recorded uses that is suspicious without any observation from a loop.
_TEAM: Final = ".aiwg/ralph/shared/team/evidence.jsonl"
_EVENTS: Final = ".aiwg/ralph/shared/curation/events.jsonl"


def all_findings(state: ProjectState) -> tuple[Finding, ...]:
    """Return suspicious reports, blocked and held texts, and problems in files."""
    suspicious = []
    for burst in state.board.bursts:
        loop = state.snapshot.loops.get(burst.source)
        file = loop.files[0] if loop is not None and loop.files else _EVENTS
        suspicious.append(Finding(file, "", Severity.WARNING, "burst", format_burst(burst)))
    return (*suspicious, *_stopped_texts(state), *_half_lives(state), *_anchors(state), *state.snapshot.findings)


def _anchors(state: ProjectState) -> Iterator[Finding]:
    """Yield a finding if it is not known which files of lessons were removed."""
    if problem := state.anchor_problem:
        message = f"the files that lessons are about could not be checked: {problem}"
        yield Finding(".git", "", Severity.WARNING, "anchors-not-checked", visible_line(message, 300))


def _half_lives(state: ProjectState) -> Iterator[Finding]:
    """Yield a finding if the sums of the team have another half-life than the evidence of the project."""
    team, half_life = state.snapshot.team, state.settings.maturity.half_life_days
    if team.space and team.half_life_days != half_life:
        message = (
            f"the half-life of the team's sums is {team.half_life_days:g} days, that of this project is {half_life:g};"
            " set maturity.half_life_days to the same value, or its states differ from those of the other projects"
        )
        yield Finding(_TEAM, "line 1", Severity.INFO, "other-half-life", message)


def _stopped_texts(state: ProjectState) -> Iterator[Finding]:
    board = state.board
    for flags, code, severity, text in (
        (board.blocked, "suspect", Severity.WARNING, "{} is not injected"),
        (board.held, "held", Severity.INFO, "{} is not injected until a person approves it"),
    ):
        for row in flags.nonzero()[0].tolist():
            pattern = state.snapshot.patterns[board.ids[row]]
            stopped = text.format(visible_line(pattern.id, 80))
            message = f"{stopped}: this text {describe_suspicions(board.suspicions(pattern.id))}"
            yield Finding(pattern.file, pattern.pointer, severity, code, message)


def ledger_error(state: ProjectState) -> str:
    """Return why the decision log cannot be read, which stops injection, or ""."""
    for finding in state.snapshot.findings:
        if finding.file == LEDGER and not finding.pointer and finding.severity is Severity.ERROR:
            return f"{finding.file}: {finding.message}"
    return ""


def scan_pattern(state: ProjectState, pattern_id: str) -> tuple[Suspicion, ...]:
    """Return the scan results of a pattern, critical first; see docs/safety.md."""
    pattern = state.pattern(pattern_id)
    suspicions = state.board.suspicions(pattern.id)
    recorded = pattern.recorded_counts.uses or 0
    if recorded < MANY_RECORDED or any(one.loop_id for one in state.board.observations(pattern.id)):
        return suspicions
    excerpt = f"{recorded:,} uses"
    return (*suspicions, Suspicion(rule=COUNTS.id, severity=COUNTS.severity, field="claim", excerpt=excerpt))


def count_conflicts(state: ProjectState, pattern_id: str) -> tuple[Finding, ...]:
    """Return how the recorded counts of a pattern and its evidence disagree."""
    return state.board.reconcile(state.pattern(pattern_id).id)


def explain_pattern(state: ProjectState, pattern_id: str) -> Explanation:
    """Explain rule by rule and event by event why the pattern has its state."""
    from core.learning.explanation import explain_state  # contexts, which hooks render, explain nothing

    pattern = state.pattern(pattern_id)
    assessment, observations = state.assessment(pattern.id), state.board.all_results(pattern.id)
    is_invertible, team = pattern.type is not PatternType.ANTI, state.board.team_sums(pattern.id)
    return explain_state(assessment, observations, state.now, state.settings, invertible=is_invertible, team=team)


def pattern_lineage(state: ProjectState, pattern_id: str) -> tuple[LineageEvent, ...]:
    """Return the history of a pattern: where it came from, its uses, and decisions about it."""
    from core.learning.explanation import build_lineage

    snapshot, observations = state.snapshot, state.board.observations(pattern_id)
    return build_lineage(state.pattern(pattern_id), observations, snapshot.decisions, snapshot.loops)
