"""Lineage: the history of a pattern across all loops; docs/scoring.md#lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.text import plural, visible_line
from core.learning.evidence import AGGREGATE, TREND, round_half_up
from core.records.decisions import TURNS, Decision, Verb
from core.records.patterns import Pattern, PatternType, SourceLoop

if TYPE_CHECKING:
    from core.learning.assessment import Assessment
    from core.records.events import Observation
    from core.records.loops import Loop

_RESULTS: Final = {True: "applied, helped", False: "applied, failed", None: "applied, result unknown"}
_FAILURES: Final = {True: "the approach failed", False: "the approach did not fail", None: "result unknown"}
"""Results of an anti-pattern: True means that the approach it warns of failed."""
_SOURCE_RESULTS: Final = {True: "applied successfully", False: "applied, failed", None: "applied, result unknown"}
_SOURCE_FAILURES: Final = {True: "failed", False: "did not fail", None: "result unknown"}
_SOURCE_KINDS: Final = {"discovered": "discovered", "merged": "found again"}
_LABELS: Final = {True: "Failed:", False: "Worked:", None: "Seen:"}  # labels for uses of an anti-pattern
_UNDATED: Final = datetime.min.replace(tzinfo=UTC)
_WIDTH: Final = len("Discovered: ")


class LineageEvent(Struct, frozen=True):
    """One event in the history of a pattern.

    `at` is UTC, None if unknown. `kind` is discovered, merged (found again by another loop, or combined with another
    pattern), applied, injected (not applied), unrecorded (uses known only as a count), inverted or decided. `loop_id`
    is "" if unknown. `success` is the result of an applied use; None if unknown. `text` is untrusted, since it may
    quote IDs, tasks and reasons. `count` is the number of uses, 1 except for unrecorded ones.
    """

    at: datetime | None
    kind: str
    loop_id: str = ""
    success: bool | None = None
    text: str = ""
    count: int = 1


class LoopResult(Struct, frozen=True):
    """A loop that discovered or applied a pattern, with the results of its uses."""

    loop_id: str
    result: str
    iterations: str = ""


def build_lineage(
    pattern: Pattern, observations: Sequence[Observation], decisions: Iterable[Decision], loops: Mapping[str, Loop]
) -> tuple[LineageEvent, ...]:
    """Return all events, oldest first; undated events except a discovery are last.

    A source loop without a recorded use is one of the uses that only the record counts; it gets a result if all of
    those have the same one. Any further source loop is shown without a use.
    """
    words = _FAILURES if pattern.type is PatternType.ANTI else _RESULTS
    iterations = {source.loop_id: format_iterations(pattern, source) for source in pattern.source_loops}
    events = [_observed(use, loops, words, iterations) for use in observations if use.source not in (TREND, AGGREGATE)]
    events += _unrecorded(pattern, observations, loops)
    events += _decision_events(pattern, decisions)
    if pattern.inverted_from:
        at = pattern.first_discovered or min((source.at for source in pattern.source_loops if source.at), default=None)
        events.append(LineageEvent(at, "inverted", text=f"made from {pattern.inverted_from}"))
    is_known = bool(pattern.inverted_from) or any(event.kind == "discovered" for event in events)
    if events and not is_known and pattern.first_discovered:
        events.append(LineageEvent(pattern.first_discovered, "discovered", text="by an unknown loop"))
    ordered = sorted(events, key=_order)
    discoveries = [place for place, event in enumerate(ordered) if event.kind == "discovered"]
    for place in discoveries[1:]:
        ordered[place] = replace(ordered[place], kind="merged", text="found again")
    return tuple(ordered)


def _order(event: LineageEvent) -> tuple[bool, datetime, bool, str]:
    undated_last = event.at is None and event.kind != "discovered"
    return undated_last, event.at or _UNDATED, event.kind != "discovered", event.loop_id


def format_iterations(pattern: Pattern, source: SourceLoop) -> str:
    """Describe the iterations of a source loop, e.g. `took 3 iterations`, or ""."""
    if source.iteration is None:
        return ""
    if pattern.type is PatternType.ANTI:
        return f"failed in iteration {source.iteration}"
    return f"took {plural(source.iteration, 'iteration')}" if pattern.type is PatternType.SUCCESS else ""


def loop_results(pattern: Pattern, lineage: Sequence[LineageEvent]) -> list[LoopResult]:
    """Return each loop of the lineage that did more than get the pattern, with its results, in order of time."""
    words = _SOURCE_FAILURES if pattern.type is PatternType.ANTI else _SOURCE_RESULTS
    iterations = {source.loop_id: format_iterations(pattern, source) for source in pattern.source_loops}
    results: dict[str, list[str]] = {}
    for event in lineage:
        if event.loop_id and event.kind in ("discovered", "merged", "applied"):
            result = words[event.success] if event.kind == "applied" else _SOURCE_KINDS[event.kind]
            results.setdefault(event.loop_id, []).append(result)
    return [
        LoopResult(loop_id, "; ".join(dict.fromkeys(texts)), iterations.get(loop_id, ""))
        for loop_id, texts in results.items()
    ]


def _join(what: str, iterations: str) -> str:
    """Join phrases, and drop a repeated word: `applied, helped, took 3 iterations`."""
    last = what.rpartition(" ")[2]
    if iterations.startswith(f"{last} "):
        return f"{what}{iterations.removeprefix(last)}"
    return f"{what}, {iterations}" if iterations else what


def _observed(
    use: Observation, loops: Mapping[str, Loop], results: Mapping[bool | None, str], iterations: Mapping[str, str]
) -> LineageEvent:
    kind = "applied" if use.kind == "feedback" else use.kind
    words = {"discovered": "discovered", "injected": "injected, not applied"}.get(kind) or results[use.success]
    if use.iteration is not None:
        words += f" in iteration {use.iteration}"
    elif more := iterations.get(use.loop_id):
        words = _join(words, more)
    loop = loops.get(use.loop_id)
    if loop is not None and loop.task:
        words += f": {loop.task}"
    return LineageEvent(use.at, kind, use.loop_id, use.success, words)


def _unrecorded(pattern: Pattern, observations: Sequence[Observation], loops: Mapping[str, Loop]) -> list[LineageEvent]:
    """Return events for uses without a record, and for further source loops."""
    recorded = {use.loop_id for use in observations}
    recorded |= {alias for id in recorded if id in loops for alias in loops[id].aliases}
    summed = [use for use in observations if use.source in (TREND, AGGREGATE)]
    left = sum(use.count for use in summed)
    results = {use.success for use in summed}
    success = results.pop() if len(results) == 1 else None
    anti = pattern.type is PatternType.ANTI
    events: list[LineageEvent] = []
    for source in pattern.source_loops:
        if source.loop_id in recorded:
            continue
        recorded.add(source.loop_id)
        if left:
            left -= 1
            result = {"success": True, "failure": False}.get(source.outcome, success)
            what = "applied"
            if anti:
                result = True if source.iteration is not None else success
                what = _FAILURES[result]
            text = f"{_join(what, format_iterations(pattern, source))}, recorded only as a count"
            events.append(LineageEvent(source.at, "applied", source.loop_id, result, text))
        else:
            events.append(LineageEvent(source.at, "merged", source.loop_id, text="found again"))
    if left:
        text = f"+{plural(left, 'occurrence' if anti else 'use')} without a record"
        newest = max((use.at for use in summed if use.at), default=None)
        events.append(LineageEvent(newest, "unrecorded", text=text, count=left))
    return events


def _decision_events(pattern: Pattern, decisions: Iterable[Decision]) -> list[LineageEvent]:
    own: dict[str, Decision] = {}
    events: list[LineageEvent] = []
    for decision in decisions:
        subjects = (decision.subject, decision.after.get("anti_id"), decision.after.get("merged"))
        if pattern.id in subjects or any(_lists(decision, key, pattern.id) for key in ("patterns", "joined")):
            own[decision.id] = decision
        elif decision.verb not in TURNS or decision.subject not in own:
            continue
        by = f" by {decision.by}" if decision.by else ""
        reason = f": {decision.reason}" if decision.reason else ""
        kind, what = _describe_decision(decision, pattern.id)
        if decision.subject in own and decision.verb in TURNS:
            what += f" {own[decision.subject].verb.value.replace('_', ' ')}"
        events.append(LineageEvent(decision.at, kind, text=f"{what}{by}{reason}"))
    return events


def _lists(decision: Decision, key: str, pattern_id: str) -> bool:
    listed = decision.after.get(key)
    return isinstance(listed, list | tuple) and pattern_id in listed


def _describe_decision(decision: Decision, pattern_id: str) -> tuple[str, str]:
    """Return kind and text of the event for a decision about a pattern."""
    subject, its_own = decision.subject, decision.subject == pattern_id
    verb = decision.verb.value.replace("_", " ")
    if decision.verb is Verb.ACCEPT_INVERSION:
        return "inverted", f"inverted to {decision.after.get('anti_id', '')}" if its_own else f"inverted from {subject}"
    if decision.verb is Verb.MERGE:
        return "merged", f"{decision.after.get('merged', '')} into it" if its_own else f"into {subject}"
    if decision.verb in (Verb.EXTRACT, Verb.IMPORT):
        joined = ", joined to it" if _lists(decision, "joined", pattern_id) else ""
        return "decided", f"{verb} from {subject}{joined}"
    if its_own or decision.verb in TURNS:
        return "decided", verb
    return "decided", f"{verb} ({subject})"


def format_lineage(pattern: Pattern, events: Sequence[LineageEvent], assessment: Assessment) -> str:
    """Format the lineage as printable plain text that ends with a newline."""
    anti = pattern.type is PatternType.ANTI
    lines = [f"Pattern: {visible_line(pattern.id, 200)}", ""]
    for event in events:
        when = f" ({event.at:%Y-%m-%dT%H:%M:%SZ})" if event.at else ""
        label, mark = f"{event.kind.capitalize()}:", ""
        if event.kind == "applied" and anti:
            label = _LABELS[event.success]
        elif event.kind == "applied":
            mark = {True: " ✓", False: " ✗", None: " ?"}[event.success]
        what = event.loop_id if event.kind in ("discovered", "applied", "injected", "merged") else event.text
        lines.append(f"{label.ljust(_WIDTH)}{visible_line(what or event.text, 200)}{when}{mark}")
    if assessment.rate is not None:
        counted = f"({assessment.successes:,}/{assessment.successes + assessment.failures:,})"
        rate = assessment.claim_text or f"{round_half_up(assessment.rate * 100)}% {counted}"
        lines += ["", f"{'Failure' if anti else 'Success'} rate: {rate}"]
    return "\n".join(lines) + "\n"
