"""Two patterns that say nearly the same, side by side, and what they would be as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from textual.content import Content

from core.base.diff import DELETED, EQUAL, word_changes
from core.base.text import plural, visible_line
from core.documents.patterns import timeline
from core.forecast.forecast import Merger
from core.learning.assessment import Assessment
from core.records.patterns import Pattern
from core.state.project_state import ProjectState
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs, draw_state
from tui.present.numbers import percent

_MAX_TEXT = 2000
_STYLES = {EQUAL: "", DELETED: "$warning bold"}


def beside(view: ProjectState, one: Pattern, other: Pattern, glyphs: Glyphs) -> tuple[list[Content], list[Content]]:
    """Both patterns line by line, in the same order: first what differs, marked word by word."""
    left, right = _head(view, one, glyphs), _head(view, other, glyphs)
    for label, mine, others in sorted(_rows(one, other), key=lambda row: row[1] == row[2]):
        for lines, text, against in ((left, mine, others), (right, others, mine)):
            mark = ("  ", "$quiet") if mine == others else (f"{glyphs.differs} ", "$warning")
            lines.append(Content.assemble(mark, (f"{label}: ", "$quiet"), _compared(text, against)))
    return left, right


def _head(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    assessment = view.assessment(pattern.id)
    return [
        Content.styled(visible_line(pattern.id, 200), "bold $secondary"),
        Content.assemble(
            draw_state(assessment.shown, glyphs),
            f"   {percent(assessment.rate)} of {plural(assessment.uses, 'use')}",
            (f"   loops got it {plural(assessment.uses + assessment.injected_only, 'time')}", "$quiet"),
        ),
        Content(""),
    ]


def _rows(one: Pattern, other: Pattern) -> Iterator[tuple[str, str, str]]:
    """(label, text of the one, text of the other) of all fields that either has."""
    fields = (
        ("Title", one.title, other.title),
        ("Error type", one.error_type, other.error_type),
        ("Error", one.error_pattern, other.error_pattern),
        ("Says", one.description, other.description),
        ("Use", one.use_case, other.use_case),
        ("Category", one.category, other.category),
        ("Tasks", one.task_pattern, other.task_pattern),
    )
    lists: tuple[tuple[str, Sequence[str], Sequence[str]], ...] = (
        ("Step", one.steps, other.steps),
        ("Symptom", one.symptoms, other.symptoms),
        ("Where", one.location_hints, other.location_hints),
        ("Code", one.template_code.splitlines(), other.template_code.splitlines()),
    )
    ends = (
        ("Why it fails", one.why_it_fails, other.why_it_fails),
        ("Instead", one.better_alternative, other.better_alternative),
        ("Tags", ", ".join(one.tags), ", ".join(other.tags)),
    )
    for label, mine, others in fields:
        if (mine or others) and not (label == "Says" and mine == one.title and others == other.title):
            yield label, mine, others
    for label, all_mine, all_others in lists:
        for mine, others in zip_longest(all_mine[:50], all_others[:50], fillvalue=""):
            yield label, mine, others
    for label, mine, others in ends:
        if mine or others:
            yield label, mine, others


def _compared(text: str, against: str) -> Content:
    """A text, with the words in which the other one differs set off."""
    if not text:
        return Content.styled("none", "$quiet")
    changes = word_changes(visible_line(text, _MAX_TEXT), visible_line(against, _MAX_TEXT))
    return Content.assemble(*((piece.text, _STYLES[piece.mark]) for piece in changes if piece.mark in _STYLES))


def merged_counts(merger: Merger, glyphs: Glyphs) -> list[Content]:
    """What a merge would give: state, rate, counts and source loops, beside those of the two."""
    columns = (
        (merger.kept.id, merger.kept, merger.before[0]),
        (merger.other.id, merger.other, merger.before[1]),
        ("merged", merger.result, merger.after),
    )
    names = [_cut(name) for name, _, _ in columns]
    lines = [
        _row("", [Content.styled(name, "$secondary" if n < 2 else "bold") for n, name in enumerate(names)]),
        _row("state", [draw_state(assessment.shown, glyphs) for _, _, assessment in columns]),
        _row("success" if merger.kept.type.value != "anti" else "failure", [_rate(a) for _, _, a in columns]),
        _row("uses", [_uses(a, glyphs) for _, _, a in columns]),
        _row("loops", [Content(f"{_loops(pattern):,}") for _, pattern, _ in columns]),
    ]
    told = (
        f"a context with both would be {plural(merger.saved, 'token')} shorter" if merger.saved > 0 else "",
        f"{visible_line(merger.other.id, 80)} goes to the archive, and its id leads here",
        "undoing this one decision makes two of them again, however late",
    )
    return [*lines, *(Content.styled(f"{'':>{_LABEL}}  {text}", "$quiet") for text in told if text)]


def merged_lineage(merger: Merger, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """The life of what a merge would give, with the uses of both."""
    told = Counter(event.kind for event in merger.lineage)
    summary = ", ".join(f"{count:,} {kind}" for kind, count in told.items())
    return [
        Content.assemble((f"{'lineage':>{_LABEL}}  ", "$quiet"), summary or "nothing is known"),
        *document_lines(timeline(merger.lineage), view.now, glyphs),
    ]


_LABEL = 8
_WIDTH = 22


def _cut(name: str) -> str:
    """An id short enough for its column, its end kept: that tells one from the other."""
    shown = visible_line(name, 200)
    return shown if len(shown) < _WIDTH else f"…{shown[-_WIDTH + 2 :]}"


def _row(label: str, cells: Sequence[Content]) -> Content:
    padded = [cell.pad_right(max(0, _WIDTH - cell.cell_length)) for cell in cells]
    return Content.assemble((f"{label:>{_LABEL}}  ", "$quiet"), *padded).rstrip()


def _rate(assessment: Assessment) -> Content:
    return Content(percent(assessment.rate))


def _uses(assessment: Assessment, glyphs: Glyphs) -> Content:
    return Content.assemble(
        f"{assessment.uses:,}  ",
        (f"{assessment.successes:,} {glyphs.done}", "$success"),
        " ",
        (f"{assessment.failures:,} {glyphs.failed}", "$error"),
    )


def _loops(pattern: Pattern) -> int:
    return len({loop.loop_id for loop in pattern.source_loops})
