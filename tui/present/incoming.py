"""Texts that no person has reviewed: their origin, and the exact text a loop would get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.content import Content

from core.base.formatting import format_percent
from core.base.text import plural, visible, visible_line
from core.documents.document import Block, Moment, fields, line
from core.documents.patterns import suspicion_lines
from core.documents.signs import TYPE_WORDS, state_sign
from core.records.decisions import Verb
from core.records.patterns import Pattern
from core.records.suspicions import Severity
from core.retrieval.rendering import INTRODUCTION, TITLE, render_context
from core.scanning.scan import find_stopped_sentences, scan_text
from core.state.findings import count_conflicts
from core.state.project_state import ProjectState
from core.state.review_items import HeldText
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs

_ARRIVALS: Final = {"import": "imported", "extraction": "extracted automatically", "quarantine": "put into quarantine"}
_MAX_CHARS: Final = 20_000
_MAX_LOOPS: Final = 12


def origin_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Return where a pattern comes from, its recorded counts, and the findings of the scan."""
    assessment, recorded = view.assessment(pattern.id), pattern.recorded_counts
    arrival = view.snapshot.curation.arrivals.get(pattern.id)
    approved = (("   after approval ", "quiet"), state_sign(assessment.computed)) if assessment.quarantined else ()
    rate = "—" if recorded.rate is None else format_percent(recorded.rate)
    counts = f"{rate} of {plural(recorded.uses, 'use')}" if recorded.uses is not None else "no counts"
    uses = sum(one.count for one in view.observations(pattern.id) if one.loop_id)
    blocks: list[Block] = [
        line((pattern.title, "strong")),
        line((pattern.id, "name"), f"   {TYPE_WORDS[pattern.type]}"),
        line(""),
        *fields(("Now", (state_sign(assessment.shown), *approved))),
    ]
    if arrival is not None:
        kind = _ARRIVALS.get(arrival.kind, arrival.kind)
        decision = next((one for one in view.snapshot.decisions if one.id == arrival.decision_id), None)
        is_own = decision is None or decision.verb is Verb.QUARANTINE
        blocks += fields(
            ("Origin", (f"{kind} by {arrival.by}, ", Moment(arrival.at, ""))),
            ("From", "" if is_own or decision is None else decision.subject),
            ("Reason", arrival.reason),
        )
    blocks += [
        *suspicion_lines(view, pattern),
        line(""),
        *fields(
            ("Recorded counts", counts),
            ("Uses by loops here", plural(uses, "use")),
        ),
        *(line((f"! {finding.message}", "warning")) for finding in count_conflicts(view, pattern.id)),
        *fields(
            ("Source loops", ", ".join(loop.loop_id for loop in pattern.source_loops[:_MAX_LOOPS]) or "none"),
            ("File", pattern.file),
        ),
    ]
    return document_lines(blocks, view.now, glyphs)


def exact_text(view: ProjectState, pattern: Pattern) -> list[Content]:
    """Return the injected text, then the other texts of the record; sentences that stop the scan are underlined."""
    rules = {one.rule: one.severity for one in pattern.suspicions if one.severity.stops}
    block = render_context([(pattern, view.assessment(pattern.id))], view.settings.injection)
    shown = block.removeprefix(f"{TITLE}\n\n{INTRODUCTION}\n\n").rstrip("\n")
    lines = [_underlined(visible_line(row, _MAX_CHARS), rules) for row in shown.split("\n")]
    rest = [(label, [text for text in texts if text and text not in shown]) for label, texts in _fields(pattern)]
    if any(texts for _, texts in rest):
        lines += [Content(""), Content.styled("Stored, not injected:", "$quiet")]
    for label, texts in rest:
        for n, text in enumerate(texts):
            first, *others = visible(text, _MAX_CHARS).split("\n")
            lines.append(Content.assemble((f"{label if not n else '':>14}  ", "$quiet"), _underlined(first, rules)))
            lines += [Content.assemble(f"{'':>16}", _underlined(row, rules)) for row in others]
    return lines


def held_text_lines(held: HeldText) -> list[Content]:
    """Return a text that is not a pattern, with the sentences underlined that give orders."""
    rules = {one.rule: one.severity for one in scan_text(held.text) if one.severity.stops}
    return [_underlined(row, rules) for row in visible(held.text, _MAX_CHARS).split("\n")]


def held_text_origin(held: HeldText) -> list[Content]:
    """Return where such a text comes from, and which loops and tasks would get it."""
    rows = (
        ("Task", held.title or "a task without a text"),
        ("Source", ", ".join(held.sources) or "unknown"),
        ("Would be injected for", ", ".join(held.readers)),
    )
    return [
        Content.assemble((visible_line(held.id, 200), "$secondary"), "   reflection"),
        Content(""),
        *(Content.assemble((f"{label}: ", "$quiet"), visible_line(text, 2000)) for label, text in rows),
        Content(""),
        Content.styled(f"This text {held.does}. It is left out of every context until you approve it.", "$warning"),
    ]


def _underlined(row: str, rules: Mapping[str, Severity]) -> Content:
    """Underline the sentences that one of the rules stops."""
    content = Content(row)
    if rules:
        colour = "$error" if Severity.BLOCKED in rules.values() else "$warning"
        for start, end in find_stopped_sentences(row, rules):
            content = content.stylize(f"bold underline {colour}", start, end)
    return content


def _fields(pattern: Pattern) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return every text of a pattern as stored in its record."""
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
        ("placeholders", tuple(f"{name}: {text}" for name, text in pattern.placeholders)),
        ("diff", (pattern.diff_pattern,)),
        ("tools", pattern.tools),
        ("preconditions", pattern.preconditions),
        ("benefits", pattern.benefits),
        ("limitations", pattern.limitations),
        ("symptoms", pattern.symptoms),
        ("why it fails", (pattern.why_it_fails,)),
        ("instead", (pattern.better_alternative, pattern.better_pattern_id)),
        ("tags", pattern.tags),
        ("related", pattern.related),
        ("also called", pattern.aliases),
    )
