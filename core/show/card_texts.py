"""Texts that a person approves: exactly as agents get them, what a scan marks in them, and their changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from core.base.diff import DELETED, INSERTED, DiffPiece, field_changes, word_changes
from core.base.formatting import format_percent
from core.base.pattern_titles import pattern_title
from core.base.scanning.scan import find_stopped_sentences, scan_text
from core.base.text import plural, visible, visible_line
from core.decisions.text_approval import find_approved_pattern
from core.questions.extraction.errors import is_named_in
from core.records.suspicions import Severity
from core.retrieval.rendering import INTRODUCTION, TITLE, render_context
from core.show.pages.document import Block, Line, Part, line
from core.show.pages.signs import state_sign

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern

MAX_CHARS: Final = 20_000
_MAX_COMPARED: Final = 2000  # Characters of a field that are compared with those of a similar pattern.
_MAX_ITEMS: Final = 50
_LABEL_CELLS: Final = 14
_FIELDS: Final = {
    "title": "title", "description": "description", "use": "use_case", "category": "category",
    "error type": "error_type", "error": "error_pattern", "where": "location_hints", "tasks": "task_pattern",
    "steps": "steps", "template": "template_code", "placeholders": "placeholders", "diff": "diff_pattern",
    "tools": "tools", "preconditions": "preconditions", "benefits": "benefits", "limitations": "limitations",
    "symptoms": "symptoms", "why it fails": "why_it_fails", "instead": "better_alternative better_pattern_id",
    "tags": "tags", "related": "related", "also called": "aliases",
}  # fmt: skip
"""Label and fields of every text of a pattern."""
_COMPARED: Final = {
    "Title": "title", "Error type": "error_type", "Error": "error_pattern", "Description": "description",
    "Use": "use_case", "Category": "category", "Tasks": "task_pattern", "Step": "steps", "Symptom": "symptoms",
    "Where": "location_hints", "Code": "template_code", "Diff": "diff_pattern", "Why it fails": "why_it_fails",
    "Instead": "better_alternative", "Tags": "tags",
}  # fmt: skip
"""Label and field of the texts of two similar patterns."""
_MARKERS: Final = {DELETED: ("[-", "-]", "bad"), INSERTED: ("{+", "+}", "good strong")}
"""Delimiters of deleted and inserted words, as in `wdiff`, and their styles."""


def exact_text(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Return the text that agents get, then all that is stored besides; sentences that a rule stops are marked."""
    rules = {one.rule: one.severity for one in pattern.suspicions if one.severity.stops}
    block = render_context([(pattern, state.assessment(pattern.id))], state.settings.injection)
    shown = block.removeprefix(f"{TITLE}\n\n{INTRODUCTION}\n\n").rstrip("\n")
    for row in shown.split("\n"):
        yield _marked(visible_line(row, MAX_CHARS), rules)
    given = {row.strip() for row in shown.split("\n")}
    rest = [
        (label, [text for text in texts if text and text not in shown and not _is_given(text, given)])
        for label, texts in _texts(pattern)
        if label != "error type" or not is_named_in(pattern.error_type, pattern.error_message)
    ]
    if any(texts for _, texts in rest):
        yield line("")
        yield line(("Stored, and not given to agents:", "quiet"))
    for label, texts in rest:
        for n, text in enumerate(texts):
            first, *others = visible(text, MAX_CHARS).split("\n")
            yield _marked(first, rules, (f"{label if not n else '':>{_LABEL_CELLS}}  ", "quiet"))
            yield from (_marked(row, rules, " " * (_LABEL_CELLS + 2)) for row in others)


def _texts(pattern: Pattern) -> Iterable[tuple[str, Sequence[str]]]:
    for label, names in _FIELDS.items():
        values = [getattr(pattern, name) for name in names.split()]
        texts = [text for value in values for text in ([value] if isinstance(value, str) else value)]
        yield label, [text if isinstance(text, str) else ": ".join(text) for text in texts]


def _is_given(text: str, rows: Set[str]) -> bool:
    """Whether each line of a text is one of the rows, which may be indented."""
    return all(row.strip() in rows for row in text.split("\n"))


def marked_text(text: str) -> Iterator[Line]:
    """Return a text in which the sentences that a rule stops are marked."""
    rules = {one.rule: one.severity for one in scan_text(text) if one.severity.stops}
    return (_marked(row, rules) for row in visible(text, MAX_CHARS).split("\n"))


def _marked(row: str, rules: Mapping[str, Severity], label: Part = "") -> Line:
    """Mark the sentences of a row that match one of the scan rules."""
    parts: list[Part] = [label]
    style = f"marked {'bad' if Severity.BLOCKED in rules.values() else 'warning'}"
    at = 0
    for start, end in find_stopped_sentences(row, rules) if rules else ():
        parts += [row[at:start], (row[start:end], style)]
        at = end
    return line(*parts, row[at:])


def approved_changes(state: ProjectState, pattern: Pattern) -> Iterator[Block]:
    """Return the fields that differ from the approved text, if it is stored."""
    text = find_approved_pattern(state, pattern.id)
    if text is None:
        yield line(("The approved text was not stored; below is the current one.", "warning"))
        return
    changes = field_changes(text, pattern)
    legend = (("[-deleted-]", _MARKERS[DELETED][2]), " ", ("{+inserted+}", _MARKERS[INSERTED][2]))
    yield line(plural(len(changes), "field"), " changed   ", *legend)
    for change in changes:
        yield line((change.name.replace("_", " "), "name"))
        yield from words_changed(change.before, change.after)


def words_changed(before: str, after: str) -> list[Line]:
    """Return both texts in one: deleted words in `[- -]`, inserted words in `{+ +}`."""
    rows: list[list[Part]] = [[]]
    for piece in word_changes(before[:MAX_CHARS], after[:MAX_CHARS]):
        for text, style in _pieces(piece):
            for n, part in enumerate(text.split("\n")):
                if n:
                    rows.append([])
                rows[-1].append((part, style) if style else part)
    return [line(*parts) for parts in rows]


def _pieces(piece: DiffPiece) -> Iterator[tuple[str, str]]:
    """Yield the parts of a piece of a comparison, with their styles."""
    shown = visible(piece.text)
    word = shown.strip()
    if piece.mark not in _MARKERS or not word:
        yield shown, ""
        return
    opening, closing, style = _MARKERS[piece.mark]
    lead, trail = shown[: shown.index(word)], shown[shown.index(word) + len(word) :]
    yield lead, ""
    yield f"{opening}{word}{closing}", style
    yield trail or " " * (piece.mark == DELETED), ""


def side_by_side(state: ProjectState, one: Pattern, other: Pattern, similarity: str) -> Iterator[Block]:
    """Compare two similar patterns: their counts, the fields that differ with both texts, then the equal ones."""
    for label, pattern in (("Stays", one), ("Merged into it", other)):
        assessment = state.assessment(pattern.id)
        rate = "—" if assessment.rate is None else format_percent(assessment.rate)
        yield line((f"{label:<{_LABEL_CELLS}}  ", "quiet"), (pattern_title(pattern), "strong"))
        yield line(
            " " * (_LABEL_CELLS + 2),
            state_sign(assessment.shown),
            f"   {rate}   ",
            (assessment.counts_text, "quiet"),
            (f"   {pattern.id}", "quiet"),
        )
    yield line("")
    yield line((f"{similarity} similar   ", "strong"), *_legend())
    rows = list(_rows(one, other))
    for label, mine, others in rows:
        if mine != others:
            yield line((label, "name"))
            yield from words_changed(visible_line(others, _MAX_COMPARED), visible_line(mine, _MAX_COMPARED))
    if any(mine == others for _, mine, others in rows):
        yield line("")
        yield line(("The same in both:", "quiet"))
    for label, mine, others in rows:
        if mine == others:
            yield line((f"{label}: ", "quiet"), mine)


def _legend() -> tuple[Part, ...]:
    return ("[-only in the merged one-]", _MARKERS[DELETED][2]), " ", ("{+only in the one that stays+}", "good strong")


def _rows(one: Pattern, other: Pattern) -> Iterator[tuple[str, str, str]]:
    """Yield label and both texts of each field that at least one pattern has."""
    same_titles = one.description == one.title and other.description == other.title
    for label, name in _COMPARED.items():
        if same_titles and name == "description":
            continue
        mine, others = (_items(name, getattr(pattern, name)) for pattern in (one, other))
        for pair in zip_longest(mine[:_MAX_ITEMS], others[:_MAX_ITEMS], fillvalue=""):
            if any(pair):
                yield label, *pair


def _items(name: str, value: str | Sequence[str]) -> Sequence[str]:
    """Return the lines of code, the items of a list, or a text as one item."""
    if name in {"template_code", "diff_pattern"}:
        return str(value).splitlines()
    return [value] if isinstance(value, str) else [", ".join(value)] if name == "tags" else value
