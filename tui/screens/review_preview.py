"""Effects of answers: forecasts, a line for each answer, and changes of prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.formatting import format_percent
from core.base.prompt_text import LABELS
from core.base.text import DELETED, INSERTED, line_changes, plural, visible_line
from core.questions.context_recipients import LOOP, PAUSED
from core.retrieval.rendering import INTRODUCTION, REFLECTIONS_ONLY, TITLE
from tui.kit.looks import Glyphs, draw_state
from tui.screens.question_order import Key, key_of

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.project.forecast import ContextChange, Forecast, Forecaster, Merger
    from core.questions.answer import Answer

BY_WORDS: Final = "~"  # Marks a forecast by word match that will be repeated by semantic similarity.
_FRAME: Final = frozenset({*REFLECTIONS_ONLY.split("\n"), INTRODUCTION, *LABELS.values(), TITLE}) - {""}
_FENCES: Final = tuple(f"<{slash}{voice}-" for slash in ("", "/") for voice in LABELS)
_MAX_NAMED: Final = 3  # Contexts with the same change that are named.
_GAP: Final = 2  # cells between the effect of an answer and its count
_LEAST_EFFECT: Final = 12  # cells of an effect that are shown beside any count
_OUTDATED: Final = -1  # a number that no snapshot has


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of an answer for snapshot `number`, or the `problem` that prevents it."""

    number: int
    forecast: Forecast | None
    problem: str = ""


class Forecasts:
    """Cache of forecasts by question and answer; outdated ones stay until replaced."""

    def __init__(self) -> None:
        self._known: dict[tuple[Key, str, str], Outlook] = {}
        """Forecasts by identity and subject of the question, and action of the answer."""

    def of(self, item: ReviewItem, action: str) -> Outlook | None:
        return self._known.get((key_of(item), item.subject, action))

    def store(self, item: ReviewItem, action: str, outlook: Outlook) -> None:
        self._known[key_of(item), item.subject, action] = outlook

    def forget(self, item: ReviewItem, action: str) -> None:
        """Discard the forecast of an answer that has changed."""
        self._known.pop((key_of(item), item.subject, action), None)

    def mark_unembedded(self) -> None:
        """Mark forecasts that were made without embeddings as outdated."""
        for asked, outlook in self._known.items():
            if outlook.forecast is not None and outlook.forecast.by_words is not None:
                self._known[asked] = replace(outlook, number=_OUTDATED)

    def keep(self, items: Iterable[ReviewItem]) -> None:
        """Discard the forecasts of all other questions."""
        keys = {key_of(item) for item in items}
        self._known = {asked: outlook for asked, outlook in self._known.items() if asked[0] in keys}

    def missing(self, item: ReviewItem, answers: Sequence[Answer], number: int) -> list[tuple[ReviewItem, Answer]]:
        """Return the answers to forecast for a snapshot, first those without a forecast."""
        found = [(answer, self.of(item, answer.action)) for answer in answers if answer.matters and not answer.why_not]
        unknown = [answer for answer, outlook in found if outlook is None]
        outdated = [answer for answer, outlook in found if outlook is not None and outlook.number != number]
        return [(item, answer) for answer in unknown + outdated]


def compute_outlook(
    forecaster: Forecaster, view: ProjectState, item: ReviewItem, answer: Answer, stop: Callable[[], bool]
) -> Outlook | None:
    """Forecast one answer. Return None if `stop` returned True meanwhile."""
    number = view.snapshot.number
    try:
        found = forecaster.forecast(view, item, answer, stop=stop)
    except RalphdeckError as error:
        return Outlook(number, None, str(error))
    return Outlook(number, found) if found is not None else None


def answer_rows(
    answers: Sequence[tuple[str, str, Answer]], outlooks: Sequence[Outlook | None], width: int
) -> list[Content]:
    """Return a line for each answer: key, word, effect, number of changed prompts.

    `answers` are (key, word, answer); an outlook is None while it is computed.
    """
    counts = [_count_text(answer, outlook) for (_, _, answer), outlook in zip(answers, outlooks, strict=True)]
    starts = [Content.assemble((key, "$accent bold"), "  ", (f"{word:<3}  ", "bold")) for key, word, _ in answers]
    room = width - max(start.cell_length for start in starts)
    widest = max(len(visible_line(answer.effect, 200)) for _, _, answer in answers)
    room = min(room - max(count.cell_length for count in counts) - _GAP, widest)
    rows: list[Content] = []
    for start, count, (_, _, answer) in zip(starts, counts, answers, strict=True):
        if answer.why_not:
            rows.append(Content.assemble(start, (f"not now: {visible_line(answer.why_not, 200)}", "$quiet")))
            continue
        effect = Content(visible_line(answer.effect, 200))
        if count:
            effect = effect.truncate(max(room, _LEAST_EFFECT), ellipsis=True).pad_right(
                max(room - effect.cell_length, 0) + _GAP
            )
        rows.append(Content.assemble(start, effect, count).rstrip())
    return rows


def _count_text(answer: Answer, outlook: Outlook | None) -> Content:
    """Return the number of prompts that change: `4 of 21 prompts change`."""
    if not answer.matters:
        return Content("")
    if outlook is None:
        return Content.styled("…", "$quiet")
    found = outlook.forecast
    if found is None:
        return Content.styled(f"! {visible_line(outlook.problem, 60)}", "$warning")
    compared, changed = found.loops + found.paused + found.tasks, len(found.changed)
    verb = "change" if changed > 1 else "changes"
    of = f"{f'{changed:,}' if changed else 'none'} of {plural(compared, 'prompt')}"
    text = f"{of} {verb}" if compared else "no session and no task yet"
    text = f"{BY_WORDS if found.by_words is not None else ''}{text}"
    return Content.styled(text, "$quiet")


def preview_lines(word: str, answer: Answer, outlook: Outlook | None, about: str, glyphs: Glyphs) -> list[Content]:
    """Describe what an answer changes, with diffs of prompts; no line if nothing.

    `word` is yes, no or the label of the answer, `about` the ID of the pattern in question.
    """
    if answer.why_not or not answer.matters:
        return []
    if outlook is None:
        return [Content.styled(f"Computing what {word} changes…", "$quiet")]
    found = outlook.forecast
    if found is None:
        return [Content.styled(visible_line(outlook.problem, 400), "$warning")]
    lines = [Content.styled(f"{BY_WORDS} {found.by_words.text}", "$warning")] if found.by_words is not None else []
    if found.merger is not None:
        lines += _merger_lines(found.merger, glyphs)
    for id, before, after in found.turned:
        change = (draw_state(before, glyphs), f" {glyphs.arrow} ", draw_state(after, glyphs))
        name = "state" if id == about else visible_line(id, 80)
        lines.append(Content.assemble((f"{name}  ", "$secondary"), *change, _rank_text(found, id, glyphs)))
    for changes in group_same_changes(found.changed):
        lines += _change_lines(word, changes)
    return lines


def _rank_text(found: Forecast, id: str, glyphs: Glyphs) -> Content:
    """Return the rank among all patterns before and after, if it changes."""
    for one, before, after in found.places:
        if one == id and before.rank != after.rank:
            ranks = [f"{place.rank:,}" if place.rank is not None else "none" for place in (before, after)]
            return Content.assemble(("   rank ", "$quiet"), f" {glyphs.arrow} ".join(ranks))
    return Content("")


def _merger_lines(merger: Merger, glyphs: Glyphs) -> Iterator[Content]:
    after = merger.after
    yield Content.assemble(
        ("merged  ", "$quiet"),
        draw_state(after.shown, glyphs),
        f"  {format_percent(after.rate)} of {plural(after.uses, 'use')}",
    )
    saved = f"a prompt with both becomes {plural(merger.saved, 'token')} shorter; " if merger.saved > 0 else ""
    text = f"{saved}{visible_line(merger.other.id, 80)} is archived, and its ID refers to the merged one"
    yield Content.styled(text, "$quiet")


def group_same_changes(changed: Sequence[ContextChange]) -> list[list[ContextChange]]:
    """Group the contexts that change in the same lines."""
    groups: dict[tuple[str, ...], list[ContextChange]] = {}
    for change in changed:
        key = tuple(line.plain for line in diff_lines(change.before, change.after))
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def _change_lines(word: str, changes: Sequence[ContextChange]) -> Iterator[Content]:
    """Yield the names of the contexts that change in the same way, and the diff."""
    kinds = {LOOP: "running session", PAUSED: "paused session, on resume"}
    names = [
        f"{kinds[change.kind]} “{visible_line(change.title, 60)}”"
        if change.kind in kinds
        else f"“{visible_line(change.title, 60)}”"
        for change in changes[:_MAX_NAMED]
    ]
    more = f" and {plural(len(changes) - _MAX_NAMED, 'more session')}" if len(changes) > _MAX_NAMED else ""
    prompts = "prompt" if len(changes) == 1 else "prompts"
    yield Content.assemble((f"{word.capitalize()} changes the {prompts} of ", "$quiet"), ", ".join(names) + more, ":")
    yield from (line.pad_left(2) for line in diff_lines(changes[0].before, changes[0].after))


def _is_frame(row: str) -> bool:
    """Whether a line of a context is around its patterns: titles, voices and fences."""
    return row.strip() in _FRAME or row.startswith(_FENCES)


def diff_lines(before: str, after: str) -> list[Content]:
    """Return the changed lines of contexts, marked `-` and `+`, without their frame."""
    signs = {DELETED: ("-", "$error"), INSERTED: ("+", "$success")}
    pieces = [piece for piece in line_changes(before, after) if piece.mark in signs and not _is_frame(piece.text)]
    while pieces and not pieces[0].text.strip():
        del pieces[0]
    return [
        Content.styled(f"{signs[piece.mark][0]} {visible_line(piece.text.rstrip(), 400)}", signs[piece.mark][1])
        for piece in pieces
    ]
