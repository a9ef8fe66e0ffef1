"""Texts that nobody has read yet: where they come from, and what a loop would get of them, to the letter."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from core.base.text import plural, visible, visible_line
from core.documents.patterns import suspicion_lines
from core.documents.signs import TYPE_WORDS
from core.records.decisions import Verb
from core.records.patterns import Pattern
from core.records.suspicions import Severity
from core.retrieval.rendering import INTRODUCTION, TITLE, render_context
from core.scanning.scan import scan_text
from core.scanning.sentences import find_stopped_sentences
from core.state.project_state import ProjectState
from core.state.review_items import HeldText
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs, draw_state
from tui.present.layout import labelled
from tui.present.numbers import moment_text, percent

_CAME = {"import": "imported", "extraction": "extracted, unattended", "quarantine": "put into quarantine"}
_MAX_FIELD = 20_000


def origin(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Where a pattern comes from, and what it claims of itself."""
    assessment = view.assessment(pattern.id)
    arrival = view.snapshot.curation.arrivals.get(pattern.id)
    lines = [
        Content.styled(visible_line(pattern.title, 400), "bold"),
        Content.assemble((visible_line(pattern.id, 200), "$secondary"), f"   {TYPE_WORDS[pattern.type]}"),
        Content(""),
        Content.assemble(
            ("Now: ", "$quiet"),
            draw_state(assessment.shown, glyphs),
            *((("   once approved ", "$quiet"), draw_state(assessment.computed, glyphs)) * assessment.quarantined),
        ),
    ]
    if arrival is not None:
        came = f"{_CAME.get(arrival.kind, visible_line(arrival.kind, 40))}, {moment_text(arrival.at, view.now)}"
        lines.append(labelled("Came in", f"{came}, by {visible_line(arrival.by, 60)}"))
        decision = next((one for one in view.snapshot.decisions if one.id == arrival.decision_id), None)
        if decision is not None and decision.verb is not Verb.QUARANTINE:
            lines.append(labelled("From", decision.subject))
        if arrival.reason:
            lines.append(labelled("Because", arrival.reason))
    lines += document_lines(suspicion_lines(view, pattern), view.now, glyphs)
    recorded_counts = pattern.recorded_counts
    claimed = (
        f"{percent(recorded_counts.rate)} of {plural(recorded_counts.uses, 'use')}"
        if recorded_counts.uses is not None
        else "no counts"
    )
    seen = sum(one.count for one in view.observations(pattern.id) if one.loop_id)
    lines += [
        Content(""),
        labelled("It claims", claimed),
        labelled("Loops here tell of", plural(seen, "use")),
        *(Content.styled(f"! {visible_line(finding.message, 300)}", "$warning") for finding in view.doubts(pattern.id)),
        labelled("Loops named", ", ".join(loop.loop_id for loop in pattern.source_loops[:12]) or "none"),
        labelled("File", pattern.file),
    ]
    return lines


def exact_text(view: ProjectState, pattern: Pattern) -> list[Content]:
    """What a loop would get, to the letter, then what else is in the record; sentences that the scan stops marked."""
    rules = {one.rule: one.severity for one in pattern.suspicions if one.severity.stops}
    block = render_context([(pattern, view.assessment(pattern.id))], view.settings.injection)
    shown = block.removeprefix(f"{TITLE}\n\n{INTRODUCTION}\n\n").rstrip("\n")
    lines = [_marked(visible_line(line, _MAX_FIELD), rules) for line in shown.split("\n")]
    rest = [(label, [text for text in texts if text and text not in shown]) for label, texts in _fields(pattern)]
    if any(texts for _, texts in rest):
        lines += [Content(""), Content.styled("In its record, and not in that text:", "$quiet")]
    for label, texts in rest:
        for n, text in enumerate(texts):
            first, *more = visible(text, _MAX_FIELD).split("\n")
            lines.append(Content.assemble((f"{label if not n else '':>14}  ", "$quiet"), _marked(first, rules)))
            lines += [Content.assemble(f"{'':>16}", _marked(line, rules)) for line in more]
    return lines


def held_text_lines(held: HeldText) -> list[Content]:
    """A text that is not a pattern, to the letter, with the sentences underlined that give orders."""
    rules = {one.rule: one.severity for one in scan_text(held.text) if one.severity.stops}
    return [_marked(line, rules) for line in visible(held.text, _MAX_FIELD).split("\n")]


def held_text_origin(held: HeldText) -> list[Content]:
    """Where such a text comes from, and who would get it."""
    return [
        Content.assemble((visible_line(held.id, 200), "$secondary"), "   reflection"),
        Content(""),
        labelled("Learned at", held.title or "a task without a text"),
        labelled("Learned by", ", ".join(held.sources) or "unknown"),
        labelled("Would be injected for", ", ".join(held.readers)),
        Content(""),
        Content.styled(f"This text {held.does}. It is left out of every context until you approve it.", "$warning"),
    ]


def _marked(line: str, rules: Mapping[str, Severity]) -> Content:
    """A shown line with the sentences underlined that one of these rules stops."""
    content = Content(line)
    if rules:
        colour = "$error" if Severity.BLOCKED in rules.values() else "$warning"
        for start, end in find_stopped_sentences(line, rules):
            content = content.stylize(f"bold underline {colour}", start, end)
    return content


def _fields(pattern: Pattern) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Every text of a pattern, as it stands in its record."""
    return (
        ("title", (pattern.title,)),
        ("description", (pattern.description,)),
        ("use", (pattern.use_case,)),
        ("category", (pattern.category,)),
        ("error type", (pattern.error_type,)),
        ("error", (pattern.error_pattern,)),
        ("where", pattern.location_hints),
        ("tasks", (pattern.task_pattern,)),
        ("steps", pattern.steps),
        ("template", (pattern.template_code,)),
        ("placeholders", tuple(f"{name}: {meaning}" for name, meaning in pattern.placeholders)),
        ("diff", (pattern.diff_pattern,)),
        ("tools", pattern.tools),
        ("needs", pattern.preconditions),
        ("benefits", pattern.benefits),
        ("limits", pattern.limitations),
        ("symptoms", pattern.symptoms),
        ("why it fails", (pattern.why_it_fails,)),
        ("instead", (pattern.better_alternative, pattern.better_pattern_id)),
        ("tags", pattern.tags),
        ("related", pattern.related),
        ("also called", pattern.aliases),
    )
