"""Patterns as documents: overview, evidence, lineage, rules, decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_age, format_count, format_decimal, format_percent
from core.base.pattern_titles import (
    describe_change,
    list_anchor_texts,
    name_anchor,
    pattern_title,
    select_main,
    short_commit,
)
from core.base.scanning.verdict import SEVERITY_WORDS, describe_rule
from core.base.text import plural
from core.index.experiment import measure_pattern
from core.index.project_state import count_conflicts, explain_pattern, pattern_lineage, scan_pattern
from core.learning.explanation import LineageEvent, decayed_weight, describe_team_sums, loop_results
from core.learning.following import FollowCounts
from core.records.decisions import TURNS, Decision
from core.records.patterns import Pattern, PatternType, SourceLoop
from core.show.metrics.effectiveness import compare_pattern
from core.show.pages import document as doc
from core.show.pages.document import code, fields, items, limited, line, more, section
from core.show.pages.signs import TYPE_WORDS, decision_line, result_sign, state_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.learning.maturity import Assessment
    from core.records.events import Observation

DESCRIPTION_LABELS: Final = {
    PatternType.ERROR: "Fix",
    PatternType.SUCCESS: "Approach",
    PatternType.ANTI: "Approach",
    PatternType.TEMPLATE: "About",
}
"""Label of the description by type; an anti-pattern describes the approach to avoid."""
_USES: Final = {"applied": "used", "injected": "given", "aggregate": "used", "trend": "used"}
_SOURCES: Final = {
    "aggregate": "counts in its file, claimed",
    "trend": "success trend in its file, claimed",
    "discovery": "found in this loop",
    "event-log": "event log",
}
"""Words for the kinds and sources of `Observation`, which --json uses."""
_KNOTS: Final = frozenset({"discovered", "inverted", "merged"})
_MAX_LOOPS: Final = 20
_MAX_OBSERVATIONS: Final = 20


def pattern_document(state: ProjectState, pattern: Pattern, me: str = "") -> doc.Document:
    """Describe a pattern; decisions of the user `me` are called "your"."""
    source_loops = [
        f"{one.loop_id} ({one.result}){': ' if one.iterations else ''}{one.iterations}"
        for one in loop_results(pattern, pattern_lineage(state, pattern.id))
    ]
    effect = compare_pattern(state.snapshot, state.board, pattern.id, state.settings)
    return doc.Document(
        f"Pattern {pattern.id}",
        (
            *overview(state, pattern, me),
            *fields(("Average impact", effect.verdict)),
            doc.Section("Why this state", tuple(rules(state, pattern))),
            *section("Source loops", limited(source_loops, "loop", _MAX_LOOPS)),
            doc.Section("Evidence", tuple(evidence(state, pattern, _MAX_OBSERVATIONS))),
            doc.Section("Lineage", tuple(lineage(state, pattern))),
            doc.Section("Decisions", tuple(decisions(state, pattern))),
        ),
    )


def overview(state: ProjectState, pattern: Pattern, me: str = "") -> Iterable[doc.Block]:
    assessment = state.assessment(pattern.id)
    title = pattern_title(pattern)
    yield line((title, "strong"))
    if not title.endswith(pattern.title):
        yield line((pattern.title, "quiet"))
    yield line((pattern.id, "name"), f"   {TYPE_WORDS[pattern.type]}", pattern.category and f"   {pattern.category}")
    yield line("")
    yield state_line(state, pattern.id)
    yield rate_line(pattern, assessment)
    yield from warnings(state, pattern, me)
    yield line("")
    yield from body(pattern)
    notes = state.snapshot.curation.notes.get(pattern.id, ())
    yield from fields(
        ("About", ", ".join(list_anchor_texts(pattern, state.stale.get(pattern.id, ())))),
        ("Tags", ", ".join(pattern.tags)),
        ("Created", doc.Moment(pattern.first_discovered)),
        ("Last used", doc.Moment(assessment.last_used)),
        *(("Note", f"{one.after.get('text', '')} ({one.by})") for one in notes),
        ("File", f"{pattern.file}{'#' if pattern.pointer else ''}{pattern.pointer}"),
        ("Copy of", pattern.copy_folder),
        *(
            ("Also in", f"{copy.file} ({'differs' if copy.differs else 'same'}, not counted)")
            for copy in pattern.copies
        ),
    )


def state_line(state: ProjectState, pattern_id: str) -> doc.Line:
    assessment = state.assessment(pattern_id)
    pin = assessment.pin
    parts: list[doc.Part] = [state_sign(assessment.shown)]
    if assessment.faded:
        parts.append(("  faded: its evidence is old", "quiet"))
    if pin is not None:
        parts += ["  ", doc.Sign(f"{pin.verb} by {pin.by}, ", "", "pin"), doc.Moment(pin.at, "")]
        parts += [(f"  “{pin.reason}”", "quiet")] * bool(pin.reason)
        parts += [("  stale: the text has changed since", "warning")] * assessment.pin_stale
        if assessment.computed != assessment.state:
            parts.append((f"  (by evidence: {assessment.computed.value})", "quiet"))
    elif assessment.quarantined:
        parts.append((f"  not given to agents until {'approved' if assessment.held else 'released'}", "quiet"))
    else:
        parts.append((f"  by {assessment.decided_by}", "quiet"))
        parts += [("  proven once a person approves its text", "quiet")] * assessment.is_capped
    if assessment.is_settled:
        parts.append(("  does not change with age", "quiet"))
    elif not assessment.quarantined and (change := state.board.next_change(pattern_id)) is not None:
        at, following = change
        parts += [(f"  decays to {following.value} ", "quiet"), doc.Moment(at, is_age=True), (" if unused", "quiet")]
    return doc.Line(tuple(parts))


def rate_line(pattern: Pattern, assessment: Assessment) -> doc.Line:
    is_anti = pattern.type is PatternType.ANTI
    seen = f", seen {plural(assessment.seen, 'time')}" if assessment.seen or not is_anti else ""
    if assessment.rate is None and not assessment.claim_text:
        return line(("No result yet", "strong"), f"  given {assessment.given:,}{seen}")
    right, wrong = (" right", " wrong") if is_anti else ("", "")
    uses = plural(assessment.uses, "result") if is_anti else f"used {assessment.uses:,}"
    low, high = assessment.interval
    rate = "" if assessment.rate is None else format_percent(assessment.rate)
    return line(
        (assessment.claim_text or rate, "strong"),
        "   " if assessment.claim_text else " of its warnings were right " if is_anti else " success rate ",
        doc.Interval(low, high, assessment.rate),
        f"  given {assessment.given:,}, {uses}: ",
        (f"{assessment.successes:,} ", "good"),
        result_sign(True),
        (right, "good"),
        (f"  {assessment.failures:,} ", "bad"),
        result_sign(False),
        (wrong, "bad"),
        seen,
        (f"  score {format_decimal(assessment.score)}", "quiet"),
    )


def warnings(state: ProjectState, pattern: Pattern, me: str = "") -> Iterable[doc.Line]:
    """Describe contradiction, inversion, quarantine, and safety findings."""
    assessment = state.assessment(pattern.id)
    if assessment.contradicted:
        by = assessment.pin.by if assessment.pin is not None else ""
        whose = ("your" if by == me else f"{by}'s") if by else "this"
        yield line((f"Later evidence contradicts {whose} decision: see Review.", "warning"))
    if assessment.inversion_due:
        yield line(("Its failure rate is high enough for an inversion: see Review.", "warning"))
    if assessment.warning_id:
        yield line((f"Not given to agents: {assessment.warning_id} warns of the same fix.", "warning"))
    if assessment.quarantined:
        action = "has read its text"
        if assessment.blocked:
            action = "releases it with a reason"
        elif assessment.held:
            action = "approves this text, which gives orders"
        yield line((f"Not given to agents until a person {action}: see Review.", "warning"))
    for one in select_main(state.stale.get(pattern.id, ())):
        if one.is_removed and one.anchor in pattern.anchors:
            yield line((f"{describe_change(one, state.now)}.", "warning"))
    yield from suspicion_lines(state, pattern)


def suspicion_lines(state: ProjectState, pattern: Pattern) -> Iterable[doc.Line]:
    for one in scan_pattern(state, pattern.id):
        excerpt = f"  “{' '.join(one.excerpt.split())}”" if one.excerpt else ""
        text = f"{SEVERITY_WORDS[one.severity]}: this text {describe_rule(one)}{excerpt}"
        yield line(doc.Sign(text, "bad" if one.critical else "warning", "suspect"))


def body(pattern: Pattern, title: str = "") -> Iterable[doc.Block]:
    """Describe the text by field, without a field that only repeats `title`."""
    description = pattern.description if pattern.description not in (pattern.use_case, title) else ""
    iterations = pattern.typical_iterations.text if pattern.typical_iterations is not None else ""
    if not iterations and pattern.average_iterations is not None:
        iterations = f"{pattern.average_iterations:g} on average"
    language = f" ({pattern.template_language})" if pattern.template_language else ""
    yield from fields(
        ("Error", pattern.error_message if pattern.error_message != pattern.title else ""),
        ("Trigger" if pattern.error_message else "Error", _trigger(pattern)),
        ("Where", ", ".join(pattern.location_hints)),
        (DESCRIPTION_LABELS[pattern.type], description),
        ("Use", pattern.use_case if pattern.use_case != title else ""),
    )
    yield from items("Steps", pattern.steps, is_numbered=True)
    yield from items("Symptoms", pattern.symptoms)
    yield from fields(
        ("Why it fails", pattern.why_it_fails),
        ("Instead", "; see ".join(filter(None, (pattern.better_alternative, pattern.better_pattern_id)))),
        ("Iterations", iterations),
    )
    yield from items("Preconditions", pattern.preconditions)
    yield from items("Benefits", pattern.benefits)
    yield from items("Limitations", pattern.limitations)
    yield from fields(("Tools", ", ".join(pattern.tools)), ("Tasks", pattern.task_pattern))
    yield from code(f"Template{language}", pattern.template_code)
    yield from code("Diff", pattern.diff_pattern, "diff")
    yield from fields(*((f"{{{{{name}}}}}", text) for name, text in pattern.placeholders), indent=2)
    yield from fields(("Inverted from", pattern.inverted_from), ("Related", ", ".join(pattern.related)))


def _trigger(pattern: Pattern) -> str:
    if not pattern.error_pattern:
        return ""
    places = f" in {', '.join(pattern.places)}" if pattern.places else ""
    name = "" if pattern.error_message else pattern.error_type
    return f"{': '.join(filter(None, (name, pattern.error_pattern)))}{places}"


def evidence(state: ProjectState, pattern: Pattern, limit: int | None = None) -> Iterable[doc.Block]:
    """Describe at most `limit` observations, newest first, with their weights."""
    assessment = state.assessment(pattern.id)
    yield line(
        (f"Weighed by age (half-life {state.settings.maturity.half_life_days:g} days): ", "quiet"),
        (f"{format_decimal(assessment.helpful)} of {plural(assessment.successes, 'success', 'successes')}", "good"),
        ", ",
        (f"{format_decimal(assessment.harmful)} of {plural(assessment.failures, 'failure')}", "bad"),
    )
    if (team := state.board.team_sums(pattern.id)) is not None:
        yield line((describe_team_sums(team, state.now), "quiet"))
    if pattern.id in state.snapshot.foreign.patterns:
        is_new = pattern.id in state.snapshot.foreign.arrived
        why = "ralphdeck did not write it, and you have not accepted it (ralphdeck trust)" if is_new else "trust.claims"
        yield line((f"The numbers in its file do not count: {why}", "warning"))
    elif claimed := state.board.claimed_uses(pattern.id):
        yield line(
            (f"{plural(claimed, 'use is', 'uses are')} claimed: only the file of the pattern reports them", "quiet")
        )
    yield from (line((finding.message, "warning")) for finding in count_conflicts(state, pattern.id))
    yield from followed(state, pattern, limit)
    if (trials := measure_pattern(state, pattern)) is not None:
        yield line(
            ("Experiment: ", "quiet"),
            (trials.verdict, "bad" if trials.is_harmful else "strong"),
            (f"   {trials.counts}   {trials.interval}", "quiet"),
        )
    yield line("")
    observations = state.board.observations(pattern.id)
    rows = [_observation(state, one) for one in list(reversed(observations))[:limit]]
    rows += [
        (
            (result_sign(False),),
            (doc.Moment(one.report.at),),
            (),
            (("harmful report", "quiet"),),
            ((one.source, "name"),),
            ((f"not counted: {set_aside_reason(one.revoked)}", "warning"),),
        )
        for one in state.board.ignored_reports(pattern.id)
    ]
    if rows:
        yield doc.Table(("", "when", "new → today", "use", "loop", "source"), tuple(rows), right=(1, 2))
    else:
        where = " in this project" if team is not None else ""
        yield line((f"No use of this pattern is recorded{where}.", "quiet"))
    if limit is not None:
        yield from more(len(observations), "observation", limit)


def followed(state: ProjectState, pattern: Pattern, limit: int | None) -> Iterable[doc.Block]:
    """Describe follow counts and, newest first, each session's action that shows it."""
    verdicts = state.board.verdicts(pattern.id)
    if not verdicts:
        return
    yield line("")
    yield line((FollowCounts.of(verdicts).text.capitalize(), "strong"), (_cost(state, pattern), "quiet"))
    shown = [one for one in reversed(verdicts) if one.is_followed is not None]
    rows = [
        (
            (result_sign(one.is_followed), f" {one.word}"),
            (doc.Moment(one.at),),
            ((one.work_id, "name"),),
            (one.place,),
            ((one.evidence, "quiet"),),
        )
        for one in shown[:limit]
    ]
    if rows:
        yield doc.Table(("verdict", "given", "session", "where", "evidence"), tuple(rows))
    if limit is not None:
        yield from more(len(shown), "verdict", limit)


def _cost(state: ProjectState, pattern: Pattern) -> str:
    """Describe the tokens of the pattern in all contexts."""
    from core.show.metrics.context_cost import measure_lesson  # imports NumPy

    given, tokens = measure_lesson(state, pattern)
    return f"   about {format_count(tokens)} tokens, {round(tokens / given):,} each time" if given else ""


def set_aside_reason(is_revoked: bool) -> str:
    return "revoked by a decision" if is_revoked else "suspicious reports, see Review"


def _observation(state: ProjectState, use: Observation) -> tuple[doc.Text, ...]:
    weight = ""
    if use.success is not None and use.is_use:
        new, today = decayed_weight(use, state.now, state.settings.maturity)
        weight = f"{format_decimal(new)} → {format_decimal(today)}"
    source = _SOURCES.get(use.source, use.source)
    if use.derived:
        source += ", computed from a rate"
    if use.inferred and (found := state.board.outcome(use.loop_id)) is not None:
        source += f"; result of the whole loop: {found[1].reasoning}"
    where = f"{use.loop_id}{f', iteration {use.iteration}' if use.iteration is not None else ''}"
    count = f" x{use.count:,}" if use.count > 1 else ""
    return (
        (result_sign(None if use.is_sighting else use.success),),
        (doc.Moment(use.at),),
        (weight,),
        (f"{_use_word(use)}{count}",),
        ((where, "name"),),
        ((source, "quiet"),),
    )


def _use_word(use: Observation) -> str:
    if use.kind == "applied" and use.given:
        return "followed"
    if use.is_sighting:
        return "seen" if use.seen else "found again, when given"
    return _USES.get(use.kind, use.kind)


def lineage(state: ProjectState, pattern: Pattern) -> Iterable[doc.Block]:
    return timeline(pattern_lineage(state, pattern.id)) or [line(("No origin is recorded.", "quiet"))]


def timeline(events: Sequence[LineageEvent]) -> list[doc.Line]:
    """Describe lineage events: a line for each with its loop below."""
    lines: list[doc.Line] = []
    for n, event in enumerate(events, 1):
        is_last = n == len(events)
        branch = "pin" if event.kind == "decided" else "knot" if event.kind in _KNOTS else ""
        glyph = branch or ("branch_end" if is_last else "branch")
        sign = result_sign(event.success)
        lines.append(
            line(
                doc.Sign("", "accent", glyph),
                " ",
                doc.Moment(event.at),
                " ",
                sign,
                f" {event.text or event.kind}",
                indent=1,
            )
        )
        if event.loop_id:
            bar = " " if is_last else doc.Sign("", "accent", "branch_bar")
            lines.append(line(bar, "    ", (event.loop_id, "name"), indent=1))
    return lines


def rules(state: ProjectState, pattern: Pattern) -> Iterable[doc.Block]:
    """Describe the verdict, state and its rules, with the distance to other states."""
    verdict, *lines = explain_pattern(state, pattern.id).lines
    yield line((verdict.text, "strong"))
    yield line("")
    yield state_line(state, pattern.id)
    yield line("")
    rows: list[tuple[doc.Text, ...]] = [
        (
            (result_sign(True) if rule.fired else "",),
            ((rule.label, rule.state.value if rule.state else "strong"),),
            (rule.text, ("  decides" if rule.fired else "", "accent")),
        )
        for rule in lines
    ]
    yield doc.Table(("", "", ""), tuple(rows))


def explanation(state: ProjectState, pattern: Pattern) -> Iterable[doc.Block]:
    """Describe the rules of the state, decisive loops, and the evidence."""
    yield from rules(state, pattern)
    yield from suspicion_lines(state, pattern)
    computed = state.assessment(pattern.id).computed
    flipping = [loop for loop in explain_pattern(state, pattern.id).loops if loop.state_without is not computed]
    rows = [
        f"{one.loop_id}: {one.state_without} (helpful {one.helpful:.2f}, harmful {one.harmful:.2f})" for one in flipping
    ]
    yield from section("Without one of these loops the state would differ", limited(rows, "loop", _MAX_LOOPS))
    yield from section("Evidence", evidence(state, pattern, _MAX_OBSERVATIONS))
    yield from section("Anchors", anchor_states(state, pattern))


def decisions(state: ProjectState, pattern: Pattern) -> Iterable[doc.Block]:
    made = state.snapshot.decisions
    own = [decision_line(state, one) for one in reversed(made) if _is_about(one, pattern, made)]
    return own or [line(("No decision about this pattern yet.", "quiet"))]


def anchor_states(state: ProjectState, pattern: Pattern) -> Iterable[doc.Line]:
    """Describe a pattern's anchors, and what Git shows: there, renamed or removed."""
    changes = {one.anchor: one for one in state.stale.get(pattern.id, ())}
    is_checked = bool(pattern.anchors) and state.has_checked_anchors
    for anchor in pattern.anchors:
        if (one := changes.get(anchor)) is not None:
            what = f"{one.change} to {name_anchor(one.to)} in" if one.to else "missing since"
            since = f"{what} commit {short_commit(one)}, {format_age(one.at, state.now)}"
            yield line((name_anchor(anchor), "name"), (f"  {since}", "warning"))
        else:
            yield line((name_anchor(anchor), "name"), ("  current" if is_checked else "", "good"))
    if not pattern.anchors:
        yield line(("It has no anchors: no file or name is known that it is about.", "quiet"))
    elif state.anchor_problem:
        yield line((f"Not checked with Git: {state.anchor_problem}", "warning"))
    elif not is_checked:
        yield line(("Not compared with the newest commit yet.", "quiet"))
    yield line(("To change them: ", "quiet"), f"ralphdeck pattern anchors {pattern.id} --add FILE#NAME")


def anchors(state: ProjectState, pattern: Pattern) -> Iterable[doc.Block]:
    """Describe the files, tests and functions that a pattern or its record names."""
    yield from anchor_states(state, pattern)
    yield line("")
    yield from items("Given only for errors in", pattern.places)
    yield from items("Hints on the place", pattern.location_hints)
    if not pattern.places and not pattern.location_hints:
        yield line(("Its trigger names no file: it is given for every error or task that matches.", "quiet"))
    yield from items("Sessions that it comes from", [_source(loop) for loop in pattern.source_loops])
    yield from fields(("Record", f"{pattern.file}{'#' if pattern.pointer else ''}{pattern.pointer}"))


def _source(loop: SourceLoop) -> doc.Text:
    iteration = f", iteration {loop.iteration}" if loop.iteration is not None else ""
    return ((f"{loop.loop_id}{iteration}", "name"), "  ", doc.Moment(loop.at))


def _is_about(decision: Decision, pattern: Pattern, made: Sequence[Decision]) -> bool:
    several = [value for key in ("patterns", "joined") if isinstance(value := decision.after.get(key), list)]
    if pattern.id in (decision.subject, decision.after.get("anti_id")) or any(pattern.id in ids for ids in several):
        return True
    return decision.verb in TURNS and any(one.id == decision.subject and _is_about(one, pattern, ()) for one in made)
