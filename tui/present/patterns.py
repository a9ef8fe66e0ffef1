"""Patterns as cells and paragraphs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from textual.content import Content

from core.base.formatting import decimal_text
from core.base.text import plural, visible, visible_line
from core.learning.explanation import decayed_weight
from core.learning.lineage import LineageEvent, format_iterations
from core.learning.scoreboard import Assessment
from core.records.decisions import TURNS, Decision
from core.records.events import Observation
from core.records.patterns import Pattern, PatternType
from core.scanning.messages import SEVERITY_WORDS, describe_rule
from core.state.project_state import ProjectState
from tui.present.decisions import decision_line
from tui.present.glyphs import STATE_STYLES, TYPE_LETTERS, Cells, Glyphs, result_mark, standing_mark
from tui.present.layout import labelled
from tui.present.numbers import ago, interval_bar, interval_text, moment_text, percent, until

STATE_CELLS: Final = 13
"""Cells of the longest state in full."""
INTERVAL_CELLS: Final = 19
"""Cells of an interval with its bar."""
WEIGHT_CELLS: Final = 11
"""Cells of what a piece of evidence counted when it was new, and now."""
TABS = ("Overview", "Evidence", "Lineage", "Why", "History")


def pattern_cells(
    pattern: Pattern,
    assessment: Assessment,
    now: datetime,
    glyphs: Glyphs,
    *,
    short: bool = False,
    with_bar: bool = True,
) -> Cells:
    """One row of the table.

    Args:
        short: Whether there is room for a short form of the state only.
        with_bar: Whether there is room for a bar of the interval.
    """
    low, high = assessment.interval
    flags = (glyphs.pin if assessment.pin else "") + ("!" if assessment.inversion_due else "")
    flags += glyphs.suspect if pattern.suspicions else ""
    quiet = "$quiet" if assessment.multiplier == 0 else ""
    return {
        "state": standing_mark(assessment, glyphs, short=short),
        "flags": Content.styled(flags, "$warning"),
        "type": Content.styled(TYPE_LETTERS[pattern.type], "$quiet"),
        "id": Content.styled(visible_line(pattern.id, 120), quiet),
        "title": Content.styled(visible_line(_what(pattern), 200), quiet),
        "rate": Content.styled(f"{'~' * assessment.is_claimed}{percent(assessment.rate)}", quiet),
        "interval": Content.styled(
            interval_bar(low, high, assessment.rate, 9, glyphs) if with_bar else interval_text(low, high), "$quiet"
        ),
        "uses": Content.styled(f"{assessment.uses:,}", quiet),
        "last_used": Content.styled(ago(assessment.last_used, now), "$quiet"),
        "score": Content.styled(decimal_text(assessment.score), quiet),
    }


def pattern_words(pattern: Pattern, assessment: Assessment, now: datetime) -> dict[str, str]:
    """What a row says, by name, in words that need no screen around them."""
    low, high = assessment.interval
    flags = (
        "pinned" * bool(assessment.pin),
        "due for inversion" * assessment.inversion_due,
        "suspect text" * bool(pattern.suspicions),
    )
    return {
        "state": assessment.shown,
        "flags": ", ".join(filter(None, flags)),
        "type": TYPE_WORDS[pattern.type],
        "id": pattern.id,
        "what": _what(pattern),
        "success rate": assessment.claim_text or percent(assessment.rate),
        "90 % interval": f"{percent(low)} to {percent(high)}",
        "uses": f"{assessment.uses:,}",
        "last used": ago(assessment.last_used, now) if assessment.last_used else "never",
        "score": decimal_text(assessment.score),
    }


def below_text(pattern: Pattern) -> Content:
    """The second line of a row: the words that the first one has no column for."""
    what = visible_line(_what(pattern), 400)
    more = [visible_line(text, 400) for text in (pattern.title, pattern.description) if text]
    told = next((text for text in more if text != what), what)
    tags = " ".join(f"#{visible_line(tag, 40)}" for tag in pattern.tags[:6])
    return Content.styled(f"{told}   {tags}".rstrip(), "$quiet")


def _what(pattern: Pattern) -> str:
    """What the pattern is about, in its own words: the id beside it has the short name already."""
    return (pattern.error_pattern if pattern.type is PatternType.ERROR else pattern.description) or pattern.title


def _whose(by: str, me: str) -> str:
    return "your" if by == me else f"{visible_line(by, 40)}'s"


def overview(view: ProjectState, pattern: Pattern, glyphs: Glyphs, me: str = "") -> list[Content]:
    """What the pattern is, its numbers, and its text.

    Args:
        me: Who looks at it, "" for unknown.
    """
    assessment = view.assessment(pattern.id)
    lines = [
        Content.styled(visible_line(pattern.title, 400), "bold"),
        Content.assemble(
            (visible_line(pattern.id, 200), "$secondary"),
            f"   {TYPE_WORDS[pattern.type]}",
            _also(pattern.category),
        ),
        Content(""),
        state_line(assessment, view.now, glyphs),
        rate_line(pattern, assessment, glyphs),
    ]
    if assessment.contradicted:
        whose = _whose(assessment.pin.by, me) if assessment.pin is not None else "this"
        lines.append(Content.styled(f"Later evidence contradicts {whose} decision: see Review.", "$warning"))
    if assessment.inversion_due:
        lines.append(Content.styled("Fails so often that it is due for inversion: see Review.", "$warning"))
    if assessment.quarantined:
        until_when = "until a person has read its text"
        if assessment.blocked:
            until_when = "unless a person releases it for a reason"
        elif assessment.held:
            until_when = "until a person approves this text, which gives orders"
        lines.append(Content.styled(f"No loop gets it {until_when}: see Review.", "$warning"))
    lines += suspicion_lines(view, pattern, glyphs)
    if pattern.copy_folder:
        lines.append(Content.styled(f"Known only from a mirror: {visible_line(pattern.copy_folder, 80)}", "$warning"))
    for mirror in pattern.copies:
        word = "differs" if mirror.differs else "same"
        lines.append(Content.styled(f"Also in {visible_line(mirror.file, 100)} ({word}, not counted)", "$quiet"))
    lines += [Content(""), *body(pattern)]
    if pattern.tags:
        lines += [Content(""), labelled("Tags", ", ".join(pattern.tags))]
    lines.append(labelled("File", f"{pattern.file}{'#' if pattern.pointer else ''}{pattern.pointer}"))
    return lines


def suspicion_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """What the scan of the text has found, a line each."""
    lines = []
    for one in view.scan(pattern.id):
        style, word = "$error" if one.critical else "$warning", SEVERITY_WORDS[one.severity]
        excerpt = f"  “{visible_line(' '.join(one.excerpt.split()), 100)}”" if one.excerpt else ""
        lines.append(Content.styled(f"{glyphs.suspect} {word}: this text {describe_rule(one)}{excerpt}", style))
    return lines


TYPE_WORDS = {
    PatternType.ERROR: "error pattern",
    PatternType.SUCCESS: "success pattern",
    PatternType.ANTI: "anti-pattern",
    PatternType.TEMPLATE: "code template",
}
DESCRIPTION_LABELS = {
    PatternType.ERROR: "Fix",
    PatternType.SUCCESS: "Approach",
    PatternType.ANTI: "Approach",
    PatternType.TEMPLATE: "About",
}
"""What the description of each type is called on screen; an anti-pattern describes the approach to avoid."""


def _also(text: str) -> str:
    return f"   {visible_line(text, 60)}" if text else ""


def state_line(assessment: Assessment, now: datetime, glyphs: Glyphs) -> Content:
    """State, and who or what decided it."""
    parts: list[Content | str | tuple[str, str]] = [standing_mark(assessment, glyphs)]
    if assessment.faded:
        parts.append(("  faded: its evidence is old", "$quiet"))
    pin = assessment.pin
    if pin is not None:
        parts.append(f"  {glyphs.pin} {pin.verb} by {visible_line(pin.by, 40)} on {moment_text(pin.at, now)}")
        if pin.reason:
            parts.append((f"  “{visible_line(pin.reason, 200)}”", "$quiet"))
        if assessment.pin_stale:
            parts.append(("  stale: the text has changed since", "$warning"))
        if assessment.computed != assessment.state:
            parts.append((f"  (by evidence: {assessment.computed.value})", "$quiet"))
    else:
        parts.append((f"  by {assessment.decided_by}", "$quiet"))
    if assessment.is_settled:
        parts.append(("  does not change with age", "$quiet"))
    elif assessment.next_change is not None and not assessment.quarantined:
        when, state = assessment.next_change
        parts.append((f"  decays to {state.value} in {until(when, now)} if unused", "$quiet"))
    return Content.assemble(*parts)


def rate_line(pattern: Pattern, assessment: Assessment, glyphs: Glyphs) -> Content:
    """The rate with its interval, and the counts that it comes of."""
    is_warning = pattern.type is PatternType.ANTI
    right, wrong = (" right", " wrong") if is_warning else ("", "")
    low, high = assessment.interval
    words = "of its warnings were right" if is_warning else "success rate"
    return Content.assemble(
        (assessment.claim_text or percent(assessment.rate), "bold"),
        f" {words} " if not assessment.claim_text else "   ",
        (interval_bar(low, high, assessment.rate, 15, glyphs), "$quiet"),
        f"  {plural(assessment.uses, 'warning' if is_warning else 'use')}: ",
        (f"{assessment.successes:,} {glyphs.done}{right}", "$success"),
        "  ",
        (f"{assessment.failures:,} {glyphs.failed}{wrong}", "$error"),
        (f"  injected only {assessment.injected_only:,}" if assessment.injected_only else "", "$quiet"),
        (f"  score {decimal_text(assessment.score)}", "$quiet"),
    )


def body(pattern: Pattern) -> list[Content]:
    """All its text, labelled by what it is."""
    lines: list[Content] = []

    def text(label: str, value: str) -> None:
        if value:
            lines.append(labelled(label, value))

    def items(label: str, values: Sequence[str], numbered: bool = False) -> None:
        if values:
            lines.append(Content.styled(f"{label}:", "$quiet"))
            for n, value in enumerate(values, 1):
                lines.append(Content(f"  {f'{n}.' if numbered else '-'} {visible_line(value, 1000)}"))

    def code(label: str, value: str) -> None:
        if value:
            lines.append(Content.styled(f"{label}:", "$quiet"))
            lines.extend(Content.styled(f"  {line}", "$secondary") for line in visible(value, 20_000).split("\n"))

    if pattern.error_pattern:
        text(
            "Error",
            f"{pattern.error_type}: {pattern.error_pattern}" if pattern.error_type else pattern.error_pattern,
        )
    text("Where", ", ".join(pattern.location_hints))
    if pattern.description != pattern.use_case:
        text(DESCRIPTION_LABELS[pattern.type], pattern.description)
    text("Use", pattern.use_case)
    items("Steps", pattern.steps, numbered=True)
    items("Symptoms", pattern.symptoms)
    text("Why it fails", pattern.why_it_fails)
    text("Instead", "; see ".join(filter(None, (pattern.better_alternative, pattern.better_pattern_id))))
    if pattern.typical_iterations is not None:
        text("Iterations", pattern.typical_iterations.text)
    elif pattern.average_iterations is not None:
        text("Iterations", f"{pattern.average_iterations:g} on average")
    items("Needs", pattern.preconditions)
    items("Benefits", pattern.benefits)
    items("Limits", pattern.limitations)
    text("Tools", ", ".join(pattern.tools))
    text("Tasks", pattern.task_pattern)
    code(
        f"Template ({visible_line(pattern.template_language, 20)})" if pattern.template_language else "Template",
        pattern.template_code,
    )
    code("Diff", pattern.diff_pattern)
    for name, stands_for in pattern.placeholders:
        lines.append(labelled(f"  {{{{{visible_line(name, 40)}}}}}", stands_for))
    sources = ((source.loop_id, format_iterations(pattern, source)) for source in pattern.source_loops)
    items("Source loops", [f"{loop_id}: {iterations}" for loop_id, iterations in sources if iterations])
    text("Inverted from", pattern.inverted_from)
    text("Related", ", ".join(pattern.related))
    return lines


def evidence(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Every observation, newest first, with what it weighs today."""
    observations = view.observations(pattern.id)
    assessment = view.assessment(pattern.id)
    lines = [
        Content.assemble(
            ("Counted today (half-life ", "$quiet"),
            (f"{view.settings.maturity.half_life_days:g} days", "$quiet"),
            ("): ", "$quiet"),
            (f"helpful {decimal_text(assessment.helpful)}", "$success"),
            "  ",
            (f"harmful {decimal_text(assessment.harmful)}", "$error"),
            (f"   of {assessment.successes:,} and {assessment.failures:,} in all", "$quiet"),
        ),
        *(Content.styled(visible_line(finding.message, 300), "$warning") for finding in view.doubts(pattern.id)),
        Content(""),
    ]
    if not observations:
        lines.append(Content.styled("No use of this pattern is recorded anywhere yet.", "$quiet"))
    else:
        weights = f"new {glyphs.arrow} now"
        lines.append(
            Content.styled(f"  {'when':>13}  {weights:>{WEIGHT_CELLS}}  how, in which loop, from what", "$quiet")
        )
    for seen in reversed(observations):
        lines += _observation_lines(view, seen, glyphs)
    for aside in view.board.ignored_reports(pattern.id):
        why = "revoked by a decision" if aside.revoked else "held: part of a burst, see Review"
        lines.append(
            Content.assemble(
                (f"{glyphs.failed} {moment_text(aside.report.at, view.now):>13}  harmful mark", "$quiet"),
                (f"  {visible_line(aside.source, 80)}", "$secondary"),
                (f"  does not count: {why}", "$warning"),
            )
        )
    return lines


def _observation_lines(view: ProjectState, seen: Observation, glyphs: Glyphs) -> list[Content]:
    """One piece of evidence: what it counted when it was new, and today; a result taken from its loop says why."""
    count = f" x{seen.count:,}" if seen.count > 1 else ""
    worth = ""
    if seen.success is not None:
        new, today = decayed_weight(seen, view.now, view.settings.maturity)
        worth = f"{new:,.3g} {glyphs.arrow} {decimal_text(today)}"
    lines = [
        Content.assemble(
            result_mark(seen.success, glyphs),
            f" {moment_text(seen.at, view.now):>13}  {worth:>{WEIGHT_CELLS}}  {seen.kind}{count}",
            (f"  {visible_line(seen.loop_id, 80)}" if seen.loop_id else "", "$secondary"),
            (f"  iteration {seen.iteration}" if seen.iteration is not None else "", "$quiet"),
            (f"  {seen.source}{', from a rate' if seen.derived else ''}", "$quiet"),
        )
    ]
    if seen.inferred and (found := view.outcome(seen.loop_id)) is not None:
        lines.append(
            Content.styled(
                f"{'':>{WEIGHT_CELLS + 19}}no result of its own; the loop was {visible_line(found[1].reasoning, 200)}",
                "$quiet",
            )
        )
    return lines


def lineage_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """The life of the pattern as a drawn timeline, oldest first."""
    events = view.lineage(pattern.id)
    if not events:
        return [Content.styled("Nothing is known of where it came from.", "$quiet")]
    return timeline(events, view.now, glyphs)


def timeline(events: Sequence[LineageEvent], now: datetime, glyphs: Glyphs) -> list[Content]:
    """What happened to a pattern, one below the other."""
    drawn = glyphs.name == "drawn"
    knots = {"discovered": "◆", "inverted": "◆", "merged": "◆"} if drawn else {}
    knots["decided"] = glyphs.pin
    lines: list[Content] = []
    for n, event in enumerate(events):
        last = n + 1 == len(events)
        line = ("└" if last else "├") if drawn else "+"
        lines.append(
            Content.assemble(
                (f" {knots.get(event.kind, line)} ", "$accent"),
                (f"{moment_text(event.at, now):>13} ", "$quiet"),
                result_mark(event.success, glyphs),
                f" {visible_line(event.text or event.kind, 200)}",
            )
        )
        if event.loop_id:
            bar = " " if last else "│" if drawn else "|"
            lines.append(
                Content.assemble((f" {bar} ", "$accent"), " " * 16, (visible_line(event.loop_id, 80), "$secondary"))
            )
    return lines


def why_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Which rule decided, and how far each other state is."""
    assessment = view.assessment(pattern.id)
    lines = [state_line(assessment, view.now, glyphs), Content("")]
    for rule in view.why(pattern.id).lines:
        mark = result_mark(rule.holds, glyphs)
        lines.append(
            Content.assemble(
                mark,
                " ",
                (f"{rule.rule:<14}", STATE_STYLES.get(rule.state, "") if rule.state else "bold"),
                f" {rule.text}",
                ("  decides" if rule.fired else "", "$accent"),
            )
        )
    return lines


def history_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """What people decided about it, newest first."""
    own = [d for d in view.snapshot.decisions if _about(d, pattern, view.snapshot.decisions)]
    if not own:
        return [Content.styled("Nobody has decided anything about this pattern yet.", "$quiet")]
    return [decision_line(d, view, glyphs) for d in reversed(own)]


def _about(decision: Decision, pattern: Pattern, decisions: Sequence[Decision]) -> bool:
    after = decision.after
    several = [after.get("anti_id"), *(id for key in ("patterns", "joined") for id in _list(after.get(key)))]
    if decision.subject == pattern.id or pattern.id in several:
        return True
    if decision.verb in TURNS:
        return any(d.id == decision.subject and _about(d, pattern, ()) for d in decisions)
    return False


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
