"""Texts under review: as injected, their origin, and their changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.diff import DELETED, INSERTED, field_changes, word_changes
from core.base.text import plural, visible, visible_line
from core.curation.text_approval import find_approved_pattern
from core.documents.document import Block, Moment, fields, line
from core.documents.patterns import suspicion_lines
from core.documents.signs import TYPE_WORDS, state_sign
from core.questions.proposals import describe_proposal
from core.records.decisions import Verb
from core.records.suspicions import Severity
from core.retrieval.rendering import INTRODUCTION, TITLE, render_context
from core.scanning.scan import find_stopped_sentences, scan_text
from tui.present.numbers import percent
from tui.present.review_evidence import conflicts, pattern_name

if TYPE_CHECKING:
    from core.records.decisions import Decision
    from core.records.patterns import Pattern
    from core.records.proposed_decisions import ProposedDecision
    from core.state.project_state import ProjectState
    from core.state.review_items import HeldText, WeakenedTest

_ARRIVALS: Final = {
    "import": "imported", "extraction": "extracted", "proposal": "proposed",
    "quarantine": "put into quarantine",
}  # fmt: skip
MAX_CHARS: Final = 20_000
_MAX_LOOPS: Final = 12
_FIELDS: Final = {
    "title": "title", "description": "description", "use": "use_case", "category": "category",
    "error type": "error_type", "error": "error_pattern", "where": "location_hints", "tasks": "task_pattern",
    "steps": "steps", "template": "template_code", "placeholders": "placeholders", "diff": "diff_pattern",
    "tools": "tools", "preconditions": "preconditions", "benefits": "benefits", "limitations": "limitations",
    "symptoms": "symptoms", "why it fails": "why_it_fails", "instead": "better_alternative better_pattern_id",
    "tags": "tags", "related": "related", "also called": "aliases",
}  # fmt: skip
"""Label and fields of every text of a pattern."""
_MARKERS: Final = {DELETED: ("[-", "-]", "$error"), INSERTED: ("{+", "+}", "$success bold")}
"""Delimiters of deleted and inserted words, as in `wdiff`, and their styles."""


def pattern_origin(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    """Describe the origin of a pattern, its counts, and the safety findings."""
    assessment, recorded = view.assessment(pattern.id), pattern.recorded_counts
    approved = (("   after approval ", "quiet"), state_sign(assessment.computed)) if assessment.quarantined else ()
    yield from pattern_name(pattern, TYPE_WORDS[pattern.type])
    yield line("")
    yield from fields(("Now", (state_sign(assessment.shown), *approved)))
    if (arrival := view.snapshot.curation.arrivals.get(pattern.id)) is not None:
        decision = next((one for one in view.snapshot.decisions if one.id == arrival.decision_id), None)
        is_own = decision is None or decision.verb is Verb.QUARANTINE
        yield from fields(
            ("Origin", (f"{_ARRIVALS.get(arrival.kind, arrival.kind)} by {arrival.by}, ", Moment(arrival.at, ""))),
            ("From", "" if is_own or decision is None else decision.subject),
            ("Reason", arrival.reason),
        )
    yield from suspicion_lines(view, pattern)
    yield line("")
    counts = "no counts" if recorded.uses is None else f"{percent(recorded.rate)} of {plural(recorded.uses, 'use')}"
    yield from fields(("Here", assessment.counts_text), ("Counts in the file", counts))
    yield from conflicts(view, pattern)
    yield from fields(
        ("Source loops", ", ".join(loop.loop_id for loop in pattern.source_loops[:_MAX_LOOPS]) or "none"),
        ("File", pattern.file),
    )


def exact_text(view: ProjectState, pattern: Pattern) -> list[Content]:
    """Return the injected and the stored texts; sentences to review are underlined."""
    rules = {one.rule: one.severity for one in pattern.suspicions if one.severity.stops}
    block = render_context([(pattern, view.assessment(pattern.id))], view.settings.injection)
    shown = block.removeprefix(f"{TITLE}\n\n{INTRODUCTION}\n\n").rstrip("\n")
    lines = [_underlined(visible_line(row, MAX_CHARS), rules) for row in shown.split("\n")]
    rest = [(label, [text for text in texts if text and text not in shown]) for label, texts in _texts(pattern)]
    if any(texts for _, texts in rest):
        lines += [Content(""), Content.styled("Stored, not injected:", "$quiet")]
    for label, texts in rest:
        for n, text in enumerate(texts):
            first, *others = visible(text, MAX_CHARS).split("\n")
            lines.append(Content.assemble((f"{label if not n else '':>14}  ", "$quiet"), _underlined(first, rules)))
            lines += [Content.assemble(f"{'':>16}", _underlined(row, rules)) for row in others]
    return lines


def _texts(pattern: Pattern) -> Iterable[tuple[str, Sequence[str]]]:
    for label, names in _FIELDS.items():
        values = [getattr(pattern, name) for name in names.split()]
        texts = [text for value in values for text in ([value] if isinstance(value, str) else value)]
        yield label, [text if isinstance(text, str) else ": ".join(text) for text in texts]


def held_text_lines(held: HeldText) -> list[Content]:
    """Return a held text of a reflection; sentences to review are underlined."""
    rules = {one.rule: one.severity for one in scan_text(held.text) if one.severity.stops}
    return [_underlined(row, rules) for row in visible(held.text, MAX_CHARS).split("\n")]


def held_text_origin(held: HeldText) -> Iterable[Block]:
    """Describe the origin of a held text, and the loops and tasks that would get it."""
    yield line((held.id, "name"), "   reflection")
    yield line("")
    yield from fields(
        ("Task", held.title or "a task without a text"),
        ("Source", ", ".join(held.sources) or "unknown"),
        ("Would be injected for", ", ".join(held.readers)),
    )
    yield line("")
    yield line((f"This text {held.does}. It is left out of every context until you approve it.", "warning"))


def proposed_decision(proposed: ProposedDecision, decisions: Sequence[Decision]) -> Iterable[Block]:
    """Describe a decision that an agent proposes about something else than one pattern."""
    yield line((proposed.verb.replace("_", " "), "name"), f"   proposed by {proposed.by}")
    yield line("")
    yield from fields(*describe_proposal(proposed, decisions))


def weakened_test_lines(weakened: WeakenedTest) -> list[Content]:
    """Return the change of a test as a diff; only its description if no lines are known."""
    rows = visible(weakened.diff, MAX_CHARS).split("\n") if weakened.diff else [f"The test was {weakened.change}."]
    styles = {"-": "$error", "+": "$success", "@": "$quiet"}
    return [Content.styled(row, styles.get(row[:1], "$text")) for row in rows]


def weakened_test_source(weakened: WeakenedTest) -> Iterable[Block]:
    """Describe the attempt that changed a test, and the failure before it."""
    yield line((weakened.attempt_id, "name"), f"   attempt{f' by {weakened.agent}' if weakened.agent else ''}")
    yield line("")
    yield from fields(
        ("Command", weakened.command),
        ("Failure", weakened.failure),
        ("Then", f"the test was {weakened.change}, and the command passed"),
        ("Files", ", ".join(weakened.files)),
        ("Reason", weakened.words or "none was recorded"),
    )


def _underlined(row: str, rules: Mapping[str, Severity]) -> Content:
    """Underline the sentences that match one of the scan rules."""
    content = Content(row)
    if rules:
        colour = "$error" if Severity.BLOCKED in rules.values() else "$warning"
        for start, end in find_stopped_sentences(row, rules):
            content = content.stylize(f"bold underline {colour}", start, end)
    return content


def approved_changes(view: ProjectState, pattern: Pattern) -> list[Content]:
    """Return the fields that differ from the approved text, if it is stored."""
    text = find_approved_pattern(view, pattern.id)
    if text is None:
        return [Content.styled("The approved text was not stored; below is the current one.", "$warning")]
    changes = field_changes(text, pattern)
    legend = (("[-deleted-]", _MARKERS[DELETED][2]), " ", ("{+inserted+}", _MARKERS[INSERTED][2]))
    lines = [Content.assemble(plural(len(changes), "field"), " changed   ", *legend)]
    for change in changes:
        lines += [Content(""), Content.styled(change.name.replace("_", " "), "bold $secondary")]
        lines += words_changed(change.before, change.after)
    return lines


def words_changed(before: str, after: str) -> list[Content]:
    """Return both texts in one: deleted words in `[- -]`, inserted words in `{+ +}`."""
    parts: list[Content] = []
    for change, text in word_changes(before[:MAX_CHARS], after[:MAX_CHARS]):
        shown = visible(text)
        if change in _MARKERS and (word := shown.strip()):
            opening, closing, style = _MARKERS[change]
            lead, trail = shown[: shown.index(word)], shown[shown.index(word) + len(word) :]
            gap = trail or " " * (change == DELETED)
            parts.append(Content.assemble(lead, (f"{opening}{word}{closing}", style), gap))
        else:
            parts.append(Content(shown))
    return list(Content.assemble(*parts).split("\n", allow_blank=True))
