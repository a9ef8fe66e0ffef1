"""Questions of the review queue as paragraphs."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from core.forecast import Forecast
from core.learning.bursts import Burst, dated
from core.learning.proposing import Inversion
from core.records.events import Observation
from core.records.patterns import Pattern
from core.review.items import (
    BURST,
    CONTRADICTED,
    DUPLICATE,
    ESCALATION,
    EXTRACTED,
    INVERSION,
    OFFER,
    QUARANTINE,
    STALE_PIN,
    ReviewItem,
)
from core.text import plural, visible_line
from core.view import View
from tui.present.arrivals import exact_text, origin
from tui.present.debugging import failing_lines, tried_lines
from tui.present.layout import UNBROKEN, labelled
from tui.present.marks import Glyphs, result_mark, state_mark
from tui.present.merging import beside, merged_counts, merged_lineage
from tui.present.numbers import moment_text, percent
from tui.present.offers import loop_lines, proposal_lines
from tui.present.patterns import state_line

KINDS = {
    INVERSION: "Make it an anti-pattern?",
    CONTRADICTED: "Does this decision still hold?",
    STALE_PIN: "The text has changed: does this decision still hold?",
    BURST: "Do these marks count?",
    QUARANTINE: "May loops get this text?",
    EXTRACTED: "Keep what nobody has read?",
    DUPLICATE: "Are these two one pattern?",
    OFFER: "Extract what this loop has learned?",
    ESCALATION: "An agent is stuck. Seen?",
}


def head(item: ReviewItem, number: int, total: int, glyphs: Glyphs) -> tuple[Content, Content]:
    """What is asked, and how much hangs on it."""
    filled = round(item.worth * 5)
    worth = "high" if item.worth >= 0.66 else "some" if item.worth >= 0.33 else "little"
    return (
        Content.assemble(
            (KINDS.get(item.kind, visible_line(item.kind, 40)), "bold"), (f"   {number} of {total}", "$quiet")
        ),
        Content.assemble(
            (f"worth: {worth} ", "$quiet"),
            (glyphs.full * filled, "$accent"),
            (glyphs.empty * (5 - filled), "$quiet"),
        ),
    )


def sides(
    view: View, item: ReviewItem, glyphs: Glyphs, widths: tuple[int, int] = (UNBROKEN, UNBROKEN)
) -> tuple[str, str, list[Content], list[Content]]:
    """Headings and text of the two sides: what it is about and why it is asked, and what is proposed or in doubt.

    Args:
        widths: Cells that each side has.
    """
    left, right, about, beside_it = _sides(view, item, glyphs, widths)
    if item.kind != DUPLICATE:  # where both sides tell the same, line by line
        about = [Content.styled(visible_line(item.reason, 1000), "$warning"), Content(""), *about]
    return left, right, about, beside_it


def _sides(
    view: View, item: ReviewItem, glyphs: Glyphs, widths: tuple[int, int]
) -> tuple[str, str, list[Content], list[Content]]:
    if item.session is not None:
        about = tried_lines(item.session, view, glyphs, widths[0])
        failing = failing_lines(item.session, view, glyphs, widths[1])
        return "what was tried", "what fails, why, and what was learned", about, failing
    if item.burst is not None:
        return "blamed patterns", "who blames them", blamed(view, item.burst, glyphs), suspicion(view, item.burst)
    if item.offer is not None:
        heading = "what it offers, and where each part comes from"
        return "loop", heading, loop_lines(view, item.subject, glyphs), proposal_lines(item.offer, glyphs)
    if item.kind in (QUARANTINE, EXTRACTED):
        pattern = view.pattern(item.subject)
        heading = "what a loop would get, to the letter" if item.kind == QUARANTINE else "what loops get, to the letter"
        return "where it comes from", heading, origin(view, pattern, glyphs), exact_text(view, pattern)
    if item.kind == DUPLICATE:
        kept, other = beside(view, view.pattern(item.subject), view.pattern(item.other), glyphs)
        return "this one stays", f"this one goes into it: {percent(item.likeness)} alike", kept, other
    about = subject(view, item, glyphs)
    if item.inversion is not None:
        return "pattern", "would become", about, proposal(item.inversion, view)
    return "pattern", "the decision", about, standing(view, item, glyphs)


def subject(view: View, item: ReviewItem, glyphs: Glyphs) -> list[Content]:
    """The pattern in question, with its uses, failures first."""
    pattern = view.pattern(item.subject)
    assessment = view.assessment(pattern.id)
    lines = [
        Content.styled(visible_line(pattern.title, 400), "bold"),
        Content.styled(visible_line(pattern.id, 200), "$secondary"),
        *_text(pattern),
        Content(""),
        state_line(assessment, view.now, glyphs),
        Content.assemble(
            (percent(assessment.rate), "bold"),
            f" of {plural(assessment.successes + assessment.failures, 'use')}",
            (
                f", injected in {plural(assessment.exposures, 'further loop')}" if assessment.exposures else "",
                "$quiet",
            ),
        ),
        Content(""),
    ]
    ordered = sorted(view.observations(pattern.id), key=lambda seen: (seen.success is not False, seen.success is None))
    for seen in ordered[:40]:
        count = f"{seen.count:,} x " if seen.count > 1 else ""
        where = f"iteration {seen.iteration}, " if seen.iteration is not None else ""
        came_out = f": {what}" if (what := _what_came_out(view, seen)) else ""
        lines += [
            Content.assemble(
                result_mark(seen.success, glyphs), f" {count}{visible_line(seen.loop_id, 80) or seen.source}"
            ),
            Content.styled(f"  {where}{moment_text(seen.at, view.now)}{came_out}", "$quiet"),
        ]
    return lines


def blamed(view: View, burst: Burst, glyphs: Glyphs) -> list[Content]:
    """The patterns that a burst blames, with the state that they have while its marks are held."""
    lines: list[Content] = []
    for id in burst.patterns:
        known = view.snapshot.patterns.get(id)
        if known is None:
            lines.append(Content.assemble((visible_line(id, 120), "$secondary"), ("  not in the registry", "$warning")))
            continue
        assessment = view.assessment(id)
        lines += [
            Content.assemble(state_mark(assessment.state, glyphs), f"  {visible_line(known.title, 200)}"),
            Content.assemble(
                (f"  {visible_line(id, 120)}", "$secondary"),
                (
                    f"  {percent(assessment.rate)} of {plural(assessment.successes + assessment.failures, 'use')}",
                    "$quiet",
                ),
            ),
        ]
    return lines


def suspicion(view: View, burst: Burst) -> list[Content]:
    """What is known of who gives the marks."""
    loop = view.snapshot.loops.get(burst.source)
    first, last = dated(burst.first), dated(burst.last)
    when = f"{moment_text(first, view.now)} to {moment_text(last, view.now)}" if first and last else "not dated"
    lines = [
        *([Content.styled(visible_line(loop.task, 400), "bold")] if loop and loop.task else []),
        Content.styled(visible_line(burst.source, 200), "$secondary"),
        Content(""),
        labelled("Marks", f"{plural(len(burst.patterns), 'pattern')}, {when}"),
        labelled("Never had", f"{burst.never_applied:,} of them, as far as anything tells"),
    ]
    if loop is not None:
        lines.append(labelled("The loop", loop.status.value))
    if (found := view.outcome(burst.source)) is not None:
        lines.append(labelled("Came out", found[1].reasoning))
    lines += [
        Content(""),
        Content.styled(
            "One source rarely knows that much harm of that many patterns at once. Until you decide, "
            "none of these marks counts.",
            "$quiet",
        ),
    ]
    return lines


def _what_came_out(view: View, seen: Observation) -> str:
    """What the iteration that used the pattern came to, where its loop says."""
    loop = view.snapshot.loops.get(seen.loop_id)
    if loop is None or seen.iteration is None:
        return ""
    results = [iteration.result for iteration in loop.iterations if iteration.number == seen.iteration]
    return visible_line(results[-1], 120) if results else ""


def _text(pattern: Pattern) -> list[Content]:
    return [Content(visible_line(pattern.description, 1000))] if pattern.description != pattern.title else []


def proposal(inversion: Inversion, view: View) -> list[Content]:
    """What the pattern would become."""
    lines = [
        Content.styled(visible_line(inversion.text, 1000), "bold"),
        Content(""),
        labelled("New id", f"pat-anti-{inversion.slug}-, with the next free number"),
        labelled("Failure mode", inversion.failure_mode.replace("_", " ")),
        labelled("Why it fails", inversion.why_it_fails),
    ]
    if inversion.better_alternative or inversion.better_pattern_id:
        better = view.snapshot.patterns.get(inversion.better_pattern_id)
        rate = f" ({percent(view.assessment(better.id).rate)})" if better is not None else ""
        lines.append(labelled("Instead", f"{inversion.better_alternative} {inversion.better_pattern_id}{rate}".strip()))
    else:
        lines.append(Content.styled("Instead: no success pattern fits; name one by rewriting", "$quiet"))
    if inversion.lint:
        lines += [
            Content(""),
            *(Content.styled(f"! {visible_line(text, 300)}", "$warning") for text in inversion.lint),
        ]
    else:
        lines.append(Content.styled("lint: reads well", "$success"))
    return lines


def standing(view: View, item: ReviewItem, glyphs: Glyphs) -> list[Content]:
    """The decision in doubt, and what the evidence says against it."""
    assessment = view.assessment(item.subject)
    pin = assessment.pin
    lines = [
        Content(visible_line(item.question, 500)),
        Content(""),
        Content.assemble(("Now: ", "$quiet"), state_mark(assessment.state, glyphs)),
        Content.assemble(("By evidence: ", "$quiet"), state_mark(assessment.computed, glyphs)),
    ]
    if pin is not None:
        since_good, since_bad = view.board.later_results(item.subject)
        lines += [
            labelled("Decided", f"{moment_text(pin.at, view.now)} by {pin.by}"),
            labelled("Reason given", pin.reason or "none"),
            Content.assemble(
                ("Since then: ", "$quiet"),
                (f"{since_good} {glyphs.done}", "$success"),
                "  ",
                (f"{since_bad} {glyphs.failed}", "$error"),
            ),
        ]
    return lines


def consequence_lines(result: Forecast, view: View, glyphs: Glyphs) -> list[Content]:
    """What an answer would change: counts and states, and what the running loops get."""
    lines: list[Content] = []
    if result.answer == "see":
        return [Content.styled("It changes nothing for the loops.", "$quiet")]
    if result.merger is not None:
        lines += merged_counts(result.merger, glyphs)
    if result.answer == "confirm" or (result.answer == "release" and result.turned):
        lines += _turned_lines(result, glyphs)
    given = f"{plural(result.running, 'running loop')}"
    if result.changed:
        text = f"If you {result.answer}: {len(result.changed)} of {given} would get another context."
        lines.append(Content.styled(text, "bold"))
    elif result.running:
        lines.append(Content.styled(f"{given}: none would get another context.", "$quiet"))
    elif result.before != result.after:
        lines.append(Content.styled("No loop runs now. The next ones that this pattern fits will differ:", "$quiet"))
    else:
        lines.append(Content.styled("No loop runs now.", "$quiet"))
    if result.merger is not None:
        lines += merged_lineage(result.merger, view, glyphs)
    return lines + diff_lines(result.before, result.after)


def key_lines(key: Callable[[str], str], snooze_days: int) -> list[Content]:
    """What the keys do at a question that changes nothing for the loops.

    Args:
        key: The key of an action, for people.
    """
    told = (
        ("accept", "you have seen it: not asked again, unless it is escalated anew"),
        ("snooze", f"asked again in {plural(snooze_days, 'day')}; until then it stays among the escalations of Memory"),
        ("open", "to the session in Memory, with every run in full"),
        ("edit_file", "its file in your editor"),
    )
    return [Content.assemble((f"{key(action):>7}  ", "$secondary"), text) for action, text in told]


def _turned_lines(result: Forecast, glyphs: Glyphs) -> list[Content]:
    if not result.turned:
        return [Content.styled(f"If you {result.answer}: no pattern changes its state.", "$quiet")]
    many = plural(len(result.turned), "pattern")
    lines = [Content.styled(f"If you {result.answer}: {many} would change state.", "bold")]
    for id, before, after in result.turned:
        lines.append(
            Content.assemble(
                (f"  {visible_line(id, 80)}  ", "$secondary"),
                state_mark(before, glyphs),
                f" {glyphs.arrow} ",
                state_mark(after, glyphs),
            )
        )
    return lines


def diff_lines(before: str, after: str) -> list[Content]:
    """A line diff of two contexts, only what differs and one line around it."""
    from difflib import unified_diff

    lines: list[Content] = []
    for line in list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]:
        style = {"+": "$success", "-": "$error", "@": "$quiet"}.get(line[:1], "$quiet")
        lines.append(Content.styled(visible_line(line, 400), style))
    return lines
