"""One pattern as text, in the layout of (0) Show Pattern Details."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from core.base.text import plural
from core.cli.render.output import line, percent
from core.learning.assessment import Assessment
from core.learning.lineage import format_iterations, format_lineage
from core.metrics.effectiveness import pattern_effect
from core.records.patterns import Pattern, PatternType
from core.records.times import day_of
from core.redaction.masking import mask_secrets
from core.scanning.messages import SEVERITY_WORDS, describe_suspicions
from core.state.project_state import ProjectState

_NAMES: Final = {
    PatternType.ERROR: "Error Pattern",
    PatternType.SUCCESS: "Success Pattern",
    PatternType.ANTI: "Anti-Pattern",
    PatternType.TEMPLATE: "Code Template",
}
_MOST_SHOWN: Final = 20
"""Loops, and pieces of evidence, that the text names."""
_HAPPENINGS: Final = {"discovered": "discovered", "merged": "found again", "injected": "injected, not applied"}
_RESULTS: Final = {True: "applied successfully", False: "applied, failed", None: "applied, result unknown"}
_FAILURES: Final = {True: "failed", False: "did not fail", None: "result unknown"}
"""What the approach did that an anti-pattern warns of."""
_MARKS: Final = {True: "+", False: "-", None: " "}


def print_pattern(view: ProjectState, pattern: Pattern) -> None:
    """Print everything about `pattern`: first the block of (0), then what else is known."""
    assessment = view.assessment(pattern.id)
    line(f"Pattern: {pattern.id}")
    line(f"Type: {_NAMES[pattern.type]}")
    line(f"Created: {_time(pattern.first_discovered or _discovered(view, pattern))}")
    line(f"Last Used: {_time(assessment.last_used)}")
    line("")
    _print_effectiveness(view, pattern, assessment)
    _print_block("Source Loops", [f"- {text}" for text in _sources(view, pattern)])
    _print_approach(pattern)
    line(f"Tags: {', '.join(pattern.tags)}")
    line("")
    _print_details(view, pattern, assessment)
    line(f"File: {pattern.file}{'#' if pattern.pointer else ''}{pattern.pointer}")
    if pattern.copy_folder:
        line(f"Mirror: known only from {pattern.copy_folder}")
    for mirror in pattern.copies:
        line(f"Mirror: {mirror.file} ({'differs' if mirror.differs else 'the same'}, not counted)")
    for note in view.snapshot.curation.notes.get(pattern.id, ()):
        line(f"Note: {note.after.get('text', '')} ({note.by}, {_time(note.at)})")
    line("")
    print_why(view, pattern)
    line("")
    drawn = format_lineage(pattern, view.lineage(pattern.id), assessment)
    line("Lineage:")
    for row in drawn.splitlines()[2:]:  # without the id, and the empty line below it
        line(f"  {row}" if row else "")


def print_why(view: ProjectState, pattern: Pattern) -> None:
    """Print the state of `pattern` and what it rests on, rule by rule."""
    assessment = view.assessment(pattern.id)
    line("State: held" if assessment.held else f"State: {assessment.state.value}, by {assessment.decided_by}")
    for rule in view.why(pattern.id).lines:
        line(f" {'>' if rule.fired else ' '}{_MARKS[rule.holds]} {rule.rule:<12} {rule.text}")
    for finding in view.doubts(pattern.id):
        line(f"  ! {finding.message}")
    for one in view.scan(pattern.id):
        line(f"  ! {SEVERITY_WORDS[one.severity]}: this text {describe_suspicions((one,))}")


def print_evidence(view: ProjectState, pattern: Pattern) -> None:
    """Print what counts how much for `pattern`, what rests on one loop, and what does not count."""
    explanation, computed = view.why(pattern.id), view.assessment(pattern.id).computed
    flipping = [loop for loop in explanation.loops if loop.state_without is not computed]
    if flipping:
        line("Without one of these loops the state would be another:")
    for loop in flipping[:_MOST_SHOWN]:
        line(f"  {loop.loop_id}: {loop.state_without} (it counts {loop.helpful:.2f} and {loop.harmful:.2f})")
    _print_more(len(flipping))
    if explanation.events:
        line("Evidence, newest first; what it counted when new → today:")
    for weighed in explanation.events[:_MOST_SHOWN]:
        seen = weighed.observation
        day = day_of(seen.at) if seen.at else "no time   "
        result = "success" if seen.success else "failure"
        by = ", as the loop" if seen.inferred else ""
        source = seen.loop_id or f"{seen.source}, {plural(seen.count, 'use')}"
        line(f"  {day}  {result} {weighed.raw:.2f} → {weighed.today:.2f}  {source} ({seen.kind}{by})")
    _print_more(len(explanation.events))
    for aside in view.board.ignored_reports(pattern.id):
        word = "revoked" if aside.revoked else "held; see: ralphdeck bursts"
        line(f"  does not count: a failure told by {aside.source} ({word})")


def _print_more(count: int) -> None:
    if count > _MOST_SHOWN:
        line(f"  and {count - _MOST_SHOWN:,} more")


def _print_effectiveness(view: ProjectState, pattern: Pattern, assessment: Assessment) -> None:
    anti = pattern.type is PatternType.ANTI
    results = assessment.successes + assessment.failures
    counted = f"({assessment.successes}/{results} {'occurrences' if anti else 'applications'})"
    rate = assessment.claim_text or f"{percent(assessment.rate).replace(' ', '') or 'unknown'} {counted}"
    rows = [
        f"{'Failure' if anti else 'Success'} Rate: {rate}",
        f"Usage Count: {assessment.uses}",
        f"Average Impact: {pattern_effect(view.snapshot, view.board, pattern.id, view.settings).verdict}",
    ]
    _print_block("Effectiveness", rows)


def _discovered(view: ProjectState, pattern: Pattern) -> datetime | None:
    return next((seen.at for seen in view.observations(pattern.id) if seen.kind == "discovered"), None)


def _sources(view: ProjectState, pattern: Pattern) -> Iterator[str]:
    anti = pattern.type is PatternType.ANTI
    results = _FAILURES if anti else _RESULTS
    as_loop = {(seen.loop_id, seen.at) for seen in view.observations(pattern.id) if seen.inferred}
    named = {source.loop_id: source for source in pattern.source_loops}
    iterations = {source.loop_id: format_iterations(pattern, source) for source in pattern.source_loops}
    for event in view.lineage(pattern.id):
        named.pop(event.loop_id, None)
        more = iterations.pop(event.loop_id, "")
        ending = f", {more}" if more else ""
        if event.kind == "unrecorded":
            yield f"unrecorded: {plural(event.count, 'occurrence' if anti else 'use')}"
        elif event.kind == "applied":
            ending += ", as the loop did" if (event.loop_id, event.at) in as_loop else ""
            yield f"{event.loop_id} ({results[event.success]}{ending})"
        elif event.kind in _HAPPENINGS and (event.loop_id or event.kind != "merged"):  # else merged by a decision
            yield f"{event.loop_id or 'an unknown loop'} ({_HAPPENINGS[event.kind]}{ending})"
    for loop_id in sorted(named):
        more = iterations.get(loop_id, "")
        yield f"{loop_id} (named by the pattern, result unknown{', ' if more else ''}{more})"


def _print_approach(pattern: Pattern) -> None:
    """What it is about and what to do, by the parts of (3) that the type has."""
    template = pattern.template_code
    if pattern.type is PatternType.ERROR:
        signature = [("Type", pattern.error_type), ("Pattern", _quoted(pattern.error_pattern))]
        _print_pairs("Error Signature", signature)
        _print_pairs("Fix Approach", [("Category", pattern.category)], template)
    elif pattern.type is PatternType.SUCCESS:
        _print_pairs("Approach", [("Category", pattern.category), ("Description", pattern.description)], template)
        _print_block("Steps", [f"{n}. {step}" for n, step in enumerate(pattern.steps, 1)])
    elif pattern.type is PatternType.ANTI:
        instead = "; see ".join(filter(None, (pattern.better_alternative, pattern.better_pattern_id)))
        avoid = [("Mode", pattern.category), ("Avoid", pattern.description), ("Why", pattern.why_it_fails)]
        _print_pairs("Failure", [*avoid, ("Instead", instead), ("Inverted From", pattern.inverted_from)])
    else:
        about = pattern.description if pattern.description != pattern.use_case else ""
        code = [("Language", pattern.category), ("Description", about), ("Use", pattern.use_case)]
        _print_pairs("Code", code, template)


def _print_details(view: ProjectState, pattern: Pattern, assessment: Assessment) -> None:
    """What the block of (0) has no place for."""
    low, high = assessment.interval
    line(f"Title: {pattern.title}")
    if pattern.type is PatternType.ERROR and pattern.description:
        line(f"Description: {pattern.description}")
    if pattern.location_hints:
        line(f"Where: {', '.join(pattern.location_hints)}")
    line(f"{view.settings.interval_level * 100:g} % Interval: {percent(low)} to {percent(high)}")
    if assessment.injected_only:
        line(f"Injected, Not Applied: {assessment.injected_only}")
    line(f"Score: {assessment.score:.2f}")
    if pattern.average_iterations is not None:
        line(f"Average Iterations: {pattern.average_iterations:g}")
    if pattern.typical_iterations is not None:
        line(f"Typical Iterations: {pattern.typical_iterations.text}")
    _print_block("Diff", mask_secrets(pattern.diff_pattern).splitlines())
    for title, items in (
        ("Symptoms", pattern.symptoms),
        ("Preconditions", pattern.preconditions),
        ("Benefits", pattern.benefits),
        ("Limitations", pattern.limitations),
        ("Tools", pattern.tools),
        ("Related", pattern.related),
    ):
        _print_block(title, [f"- {item}" for item in items])


def _quoted(text: str) -> str:
    return f'"{text}"' if text else ""


def _print_pairs(title: str, pairs: list[tuple[str, str]], template: str = "") -> None:
    code = ["Template: |", *(f"  {row}" for row in mask_secrets(template).splitlines())] if template else []
    _print_block(title, [*(f"{label}: {text}" for label, text in pairs if text), *code])


def _print_block(title: str, rows: list[str]) -> None:
    if rows:
        line(f"{title}:")
        for row in rows:
            line(f"  {row}")
        line("")


def _time(moment: datetime | None) -> str:
    return "unknown" if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
