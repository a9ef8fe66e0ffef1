"""Two similar patterns side by side, and the result of merging them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.diff import DELETED, EQUAL, word_changes
from core.base.text import plural, visible_line
from core.documents.patterns import timeline
from core.records.patterns import Pattern, PatternType
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs, draw_state
from tui.present.numbers import percent

if TYPE_CHECKING:
    from core.forecast.forecast import Merger
    from core.learning.assessment import Assessment
    from core.state.project_state import ProjectState

_MAX_CHARS: Final = 2000
_MAX_ITEMS: Final = 50
_STYLES: Final = {EQUAL: "", DELETED: "$warning bold"}
_FIELDS: Final = {
    "Title": "title", "Error type": "error_type", "Error": "error_pattern", "Description": "description",
    "Use": "use_case", "Category": "category", "Tasks": "task_pattern", "Step": "steps", "Symptom": "symptoms",
    "Where": "location_hints", "Code": "template_code", "Why it fails": "why_it_fails",
    "Instead": "better_alternative", "Tags": "tags",
}  # fmt: skip
"""Label and field of the texts that are compared."""
_LABEL_CELLS: Final = 8
_CELLS: Final = 22


def side_by_side(
    view: ProjectState, one: Pattern, other: Pattern, glyphs: Glyphs
) -> tuple[list[Content], list[Content]]:
    """Return both patterns, one field per line, with differences marked."""
    left, right = _head(view, one, glyphs), _head(view, other, glyphs)
    for label, mine, others in sorted(_rows(one, other), key=lambda row: row[1] == row[2]):
        for lines, text, against in ((left, mine, others), (right, others, mine)):
            sign = ("  ", "$quiet") if mine == others else (f"{glyphs.differs} ", "$warning")
            lines.append(Content.assemble(sign, (f"{label}: ", "$quiet"), _compared(text, against)))
    return left, right


def _head(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    assessment = view.assessment(pattern.id)
    rate, counts = f"   {percent(assessment.rate)}", (f"   {assessment.counts_text}", "$quiet")
    summary = Content.assemble(draw_state(assessment.shown, glyphs), rate, counts)
    return [Content.styled(visible_line(pattern.id, 200), "bold $secondary"), summary, Content("")]


def _rows(one: Pattern, other: Pattern) -> Iterator[tuple[str, str, str]]:
    """Yield label and both texts of each field that at least one pattern has."""
    same_titles = one.description == one.title and other.description == other.title
    for label, name in _FIELDS.items():
        if same_titles and name == "description":
            continue
        mine, others = (_items(name, getattr(pattern, name)) for pattern in (one, other))
        for pair in zip_longest(mine[:_MAX_ITEMS], others[:_MAX_ITEMS], fillvalue=""):
            if any(pair):
                yield label, *pair


def _items(name: str, value: str | Sequence[str]) -> Sequence[str]:
    """Return the lines of code, the items of a list, or a text as one item."""
    if name == "template_code":
        return str(value).splitlines()
    return [value] if isinstance(value, str) else [", ".join(value)] if name == "tags" else value


def _compared(text: str, against: str) -> Content:
    """Return a text in which the words that `against` lacks are marked."""
    if not text:
        return Content.styled("none", "$quiet")
    changes = word_changes(visible_line(text, _MAX_CHARS), visible_line(against, _MAX_CHARS))
    return Content.assemble(*((piece.text, _STYLES[piece.mark]) for piece in changes if piece.mark in _STYLES))


def merged_counts(merger: Merger, glyphs: Glyphs) -> list[Content]:
    """Return state, rate and counts of both patterns and of the merged pattern."""
    names = [_cut(merger.target.id), _cut(merger.other.id), "merged"]
    patterns, assessments = (merger.target, merger.other, merger.result), (*merger.before, merger.after)
    rate = "failure" if merger.target.type is PatternType.ANTI else "success"
    lines = [
        _row("", [Content.styled(name, "$secondary" if n < 2 else "bold") for n, name in enumerate(names)]),
        _row("state", [draw_state(one.shown, glyphs) for one in assessments]),
        _row(rate, [Content(percent(one.rate)) for one in assessments]),
        _row("uses", [_uses(one, glyphs) for one in assessments]),
        _row("loops", [Content(f"{len({loop.loop_id for loop in one.source_loops}):,}") for one in patterns]),
    ]
    notes = (
        f"a context with both becomes {plural(merger.saved, 'token')} shorter" if merger.saved > 0 else "",
        f"{visible_line(merger.other.id, 80)} is archived; its ID refers to the merged pattern",
        "undo separates them again at any time",
    )
    return [*lines, *(Content.styled(f"{'':>{_LABEL_CELLS}}  {text}", "$quiet") for text in notes if text)]


def merged_lineage(merger: Merger, view: ProjectState, glyphs: Glyphs) -> list[Content]:
    """Return the lineage of the merged pattern, with the uses of both."""
    counts = Counter(event.kind for event in merger.lineage)
    summary = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    head = Content.assemble((f"{'lineage':>{_LABEL_CELLS}}  ", "$quiet"), summary or "nothing recorded")
    return [head, *document_lines(timeline(merger.lineage), view.now, glyphs)]


def _cut(name: str) -> str:
    """Shorten an ID to its column at the start, because IDs differ at the end."""
    shown = visible_line(name, 200)
    return shown if len(shown) < _CELLS else f"…{shown[-_CELLS + 2 :]}"


def _row(label: str, cells: Sequence[Content]) -> Content:
    padded = [cell.pad_right(max(0, _CELLS - cell.cell_length)) for cell in cells]
    return Content.assemble((f"{label:>{_LABEL_CELLS}}  ", "$quiet"), *padded).rstrip()


def _uses(assessment: Assessment, glyphs: Glyphs) -> Content:
    good = (f"{assessment.successes:,} {glyphs.done} ", "$success")
    return Content.assemble(f"{assessment.uses:,}  ", good, (f"{assessment.failures:,} {glyphs.failed}", "$error"))
