"""The preview of an injected context: the text, what differs from the project's own, and the score of each pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msgspec.structs import replace
from textual.content import Content

from core.base.diff import DELETED, EQUAL, INSERTED, line_changes
from core.base.formatting import decimal_text
from core.base.text import plural, visible, visible_line
from core.config.settings import InjectionSettings
from core.project.project import Injected
from core.records.loops import Loop
from core.records.patterns import Pattern
from core.retrieval.decomposition import STRATEGY_PART
from core.retrieval.injection import Injection
from core.retrieval.ranking import ChosenPattern, OmittedPattern
from core.retrieval.reflections import ChosenReflection, ReflectionLeftOut
from core.retrieval.relevance import SEMANTIC_WEIGHTS, WEIGHTS
from core.review.context_recipients import LOOP, Reader
from core.state.project_state import ProjectState
from tui.present.context_reflections import chosen_by_key, chosen_cells, left_out_by_key, left_out_cells
from tui.present.glyphs import Cells, Glyphs, draw_state
from tui.present.numbers import bar

_PART_CELLS: Final = 10
"""Width of the bar of one part of the relevance."""


@dataclass(frozen=True)
class Preview:
    """What a task gets under some settings, beside what it gets now.

    Attributes:
        settings: The knobs.
        injection: What they lead to.
        own: What the project's own settings lead to: what `inject` prints now.
        ranks: Place of each pattern, from 1, if the other order counted: the lower bound, or the score.
    """

    settings: InjectionSettings
    injection: Injection
    own: Injection
    ranks: Mapping[str, int]

    @staticmethod
    def prepare(view: ProjectState, task: str, settings: InjectionSettings) -> Preview:
        """Work it out; some 40 ms for 10,000 patterns."""
        injection = view.injection(task, settings)
        own = injection if settings == view.settings.injection else view.injection(task)
        other = replace(settings, order="score" if settings.order == "lower-bound" else "lower-bound")
        ranking = view.injection(task, other).chosen
        return Preview(settings, injection, own, {one.pattern_id: rank for rank, one in enumerate(ranking, 1)})

    @property
    def by_lower_bound(self) -> bool:
        """Whether the lower bound counts under the knobs, not the score."""
        return self.settings.order == "lower-bound"

    @cached_property
    def chosen(self) -> dict[str, ChosenPattern]:
        """The patterns that are injected, best first."""
        return {one.pattern_id: one for one in self.injection.chosen}

    @cached_property
    def left_out(self) -> dict[str, OmittedPattern]:
        """The others, most deserving first."""
        return {one.pattern_id: one for one in self.injection.left_out}

    @cached_property
    def reflections(self) -> Mapping[str, ChosenReflection]:
        """The reflections in the context by key, best first."""
        return chosen_by_key(self.injection)

    @cached_property
    def reflections_left_out(self) -> Mapping[str, ReflectionLeftOut]:
        """The other ones by key, best first."""
        return left_out_by_key(self.injection)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """All rows: patterns and reflections in the context, then those that are left out."""
        rows = (self.chosen, self.reflections, self.left_out, self.reflections_left_out)
        return tuple(dict.fromkeys(key for keys in rows for key in keys))

    @cached_property
    def rank(self) -> dict[str, int]:
        """Place of each injected pattern, from 1."""
        return {id: rank for rank, id in enumerate(self.chosen, 1)}

    @cached_property
    def own_ids(self) -> frozenset[str]:
        """Keys of the patterns and reflections that are injected now."""
        return frozenset((*(one.pattern_id for one in self.own.chosen), *chosen_by_key(self.own)))

    @property
    def differs(self) -> bool:
        """Whether the knobs lead to another text."""
        return self.injection.context != self.own.context

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The lines of both texts, each with `+` if it comes, `-` if it goes, ` ` if it stays."""
        signs = {EQUAL: " ", DELETED: "-", INSERTED: "+"}
        changes = line_changes(*(visible(one.context) for one in (self.own, self.injection)))
        return tuple((signs[piece.mark], piece.text.rstrip("\n")) for piece in changes)

    def turned(self, key: str) -> str:
        """`+` for a pattern or reflection that the knobs let in, `-` for one that they leave out, else nothing."""
        is_in = key in self.chosen or key in self.reflections
        return {(True, False): "+", (False, True): "-"}.get((is_in, key in self.own_ids), "")


def profile_line(injection: Injection) -> Content:
    """What the task was understood as."""
    profile = injection.profile
    parts = [profile.category or "no category", ", ".join(profile.languages)]
    if profile.error_types:
        parts.append("likely " + ", ".join(profile.error_types))
    return Content.styled(visible_line(" · ".join(filter(None, parts)), 120), "$secondary")


def size_items(injection: Injection, settings: InjectionSettings) -> tuple[Content, Content]:
    """How much of the budget the context takes, and its bytes."""
    return (
        Content.assemble((f"{injection.tokens:,}", "bold"), (f" of {settings.max_tokens:,} tokens", "$quiet")),
        Content.styled(f"{injection.bytes:,} bytes", "$quiet"),
    )


def difference_line(preview: Preview) -> Content:
    """What the knobs change: `+12 -4 lines, 2 patterns come, 1 goes`."""
    if not preview.differs:
        return Content.styled("the text stays the same", "$quiet")
    signs = [sign for sign, _line in preview.lines]
    changes: list[str] = []
    for noun, now in (("pattern", preview.chosen.keys()), ("reflection", preview.reflections.keys())):
        own = {key for key in preview.own_ids if (key in chosen_by_key(preview.own)) == (noun == "reflection")}
        come, go = len(now - own), len(own - now)
        changes += [f"{plural(come, noun)} {'comes' if come == 1 else 'come'}"] * bool(come)
        if go:
            changes.append(f"{go if come else plural(go, noun)} {'goes' if go == 1 else 'go'}")
    return Content.assemble(
        (f"+{signs.count('+')}", "bold $success"),
        " ",
        (f"-{signs.count('-')}", "bold $error"),
        (" lines", "$quiet"),
        (f", {', '.join(changes)}" if changes else "", "$quiet"),
    )


def context_lines(injection: Injection) -> list[Content]:
    """The exact text, headings set off."""
    if not injection.context:
        return [
            Content.styled("This task gets nothing injected.", "$warning"),
            Content.styled("Beside each pattern stands why it is left out.", "$quiet"),
        ]
    return [_line(line) for line in visible(injection.context).split("\n")]


def _line(line: str) -> Content:
    style = "bold $accent" if line.startswith("## ") else "bold" if line.startswith("### ") else ""
    return Content.styled(line, style)


_SIGNS: Final = {"+": "$success", "-": "$error"}


def difference(preview: Preview) -> tuple[list[Content], list[Content]]:
    """The text with what comes and goes, and the mark of each line."""
    lines = [Content.styled(line, _SIGNS[sign]) if sign in _SIGNS else _line(line) for sign, line in preview.lines]
    marks = [Content.styled(f"{sign} ", f"bold {_SIGNS.get(sign, '')}".strip()) for sign, _line in preview.lines]
    return lines, marks


# Why these


def found_line(injection: Injection) -> Content:
    """How the patterns were found."""
    how = "meaning" if injection.matched_by == "meaning" else "word match"
    return Content.assemble(("why these: found by ", "$quiet"), how)


def embedding_line(done: int, total: int, glyphs: Glyphs) -> Content:
    """How far the work on what patterns mean has come."""
    return Content.assemble(
        ("meaning: ", "$quiet"),
        (bar(done, total, _PART_CELLS, glyphs), "$accent"),
        f" {done:,} of {plural(total, 'pattern')}",
    )


def count_line(preview: Preview) -> Content:
    """How many are let in and left out."""
    let_in = len(preview.chosen) + len(preview.reflections)
    return Content.styled(f"{let_in:,} in, {len(preview.keys) - let_in:,} left out", "$quiet")


def score_cells(preview: Preview, pattern_id: str, glyphs: Glyphs) -> Cells:
    """One row of the list: a pattern or reflection with what it is ranked by, or why it is left out."""
    sign = preview.turned(pattern_id)
    turned = (sign or " ", f"bold {_SIGNS.get(sign, '')}".strip())
    if (learned := preview.reflections.get(pattern_id)) is not None:
        return chosen_cells(learned, list(preview.reflections).index(pattern_id) + 1, turned)
    if (unused := preview.reflections_left_out.get(pattern_id)) is not None:
        return left_out_cells(unused, turned)
    if (chosen := preview.chosen.get(pattern_id)) is None:
        left = preview.left_out[pattern_id]
        return {
            "rank": Content.assemble(turned),
            "score": Content.styled(
                decimal_text(left.score) if left.score and not preview.by_lower_bound else "", "$quiet"
            ),
            "id": Content.styled(visible_line(pattern_id, 120), "$quiet"),
            "why": Content.styled(visible_line(left.reason, 300), "$quiet"),
        }
    rank, other = preview.rank[pattern_id], preview.ranks.get(pattern_id)
    return {
        "rank": Content.assemble(turned, (f"{rank}", "bold")),
        "other": Content.styled(f"{other or '-'}", "$quiet" if other == rank else "$warning"),
        "score": Content.styled(decimal_text(chosen.lower_bound if preview.by_lower_bound else chosen.score), "bold"),
        "id": Content.styled(visible_line(pattern_id, 120), "$secondary"),
        "why": _parts_in_short(chosen),
    }


def choice_cells(choice: Reader) -> Cells:
    """The row of a task that can be taken, and whose it is."""
    running = choice.kind == LOOP
    return {
        "kind": Content.styled("loop" if running else choice.kind, "$success" if running else "$quiet"),
        "task": Content(visible_line(choice.task, 300)),
    }


def _parts_in_short(chosen: ChosenPattern) -> Content:
    parts = sorted(((value, name) for name, value in chosen.parts.items() if value), reverse=True)
    pieces: list[Content | str | tuple[str, str]] = []
    for value, name in parts:
        pieces += [(f"{name} ", "$quiet"), f"{decimal_text(value)}  "]
    return Content.assemble(*pieces)


def detail_lines(
    preview: Preview, pattern: Pattern, view: ProjectState, glyphs: Glyphs, *, short: bool
) -> list[Content]:
    """One pattern: its score part by part, or why it is left out.

    Args:
        short: The parts first, and as few words as possible.
    """
    head = [
        Content.styled(visible_line(pattern.id, 200), "$secondary"),
        Content.styled(visible_line(pattern.title, 300), "bold"),
    ]
    if (chosen := preview.chosen.get(pattern.id)) is not None:
        state = draw_state(view.assessment(pattern.id).state, glyphs) if pattern.id in view.board else Content("")
        body = [
            _product(chosen, state, short=short),
            _other_rank(preview, chosen),
            *_part_lines(chosen, glyphs),
        ]
    else:
        left = preview.left_out[pattern.id]
        body = [Content.assemble(("left out: ", "$warning"), visible_line(left.reason, 300))]
        if left.score:
            body.append(Content.styled(f"It would have scored {decimal_text(left.score)}.", "$quiet"))
    return [*body, *head] if short else [*head, *body]


def _product(chosen: ChosenPattern, state: Content, *, short: bool) -> Content:
    """How the score comes about (semantics 6.3)."""
    relevance, success = ("", "") if short else (" relevance", " success")
    return Content.assemble(
        (decimal_text(chosen.score), "bold"),
        (" = ", "$quiet"),
        decimal_text(chosen.relevance),
        (f"{relevance} x ", "$quiet"),
        decimal_text(chosen.effectiveness),
        (f"{success} x ", "$quiet"),
        f"{chosen.multiplier:g} ",
        state,
    )


def _part_lines(chosen: ChosenPattern, glyphs: Glyphs) -> list[Content]:
    """Each part of the relevance: how much of what it may add it adds."""
    weights = (SEMANTIC_WEIGHTS if "meaning" in chosen.parts else WEIGHTS)[chosen.type]
    if STRATEGY_PART in chosen.parts:
        weights = {STRATEGY_PART: 1.0}
    widest = max(map(len, weights))
    lines = []
    for name, weight in weights.items():
        value = chosen.parts.get(name, 0.0)
        lines.append(
            Content.assemble(
                (f"{name:<{widest}} ", "" if value else "$quiet"),
                (bar(value, weight, _PART_CELLS, glyphs), "$accent" if value else "$quiet"),
                (f" {decimal_text(value):>4}", "" if value else "$quiet"),
                (f" of {decimal_text(weight)}", "$quiet"),
            )
        )
    return lines


def _other_rank(preview: Preview, chosen: ChosenPattern) -> Content:
    """Its rank, and what counts in the other order with the rank there."""
    rank, other = preview.rank[chosen.pattern_id], preview.ranks.get(chosen.pattern_id)
    by, value = ("score", chosen.score) if preview.by_lower_bound else ("lower bound", chosen.lower_bound)
    return Content.assemble(
        ("rank ", "$quiet"),
        f"{rank}",
        (f", by {by} ", "$quiet"),
        f"{decimal_text(value)} ",
        (f"rank {other}" if other else "left out", "$quiet" if other == rank else "$warning"),
    )


# A loop's record


def loop_choices(loops: Sequence[Loop]) -> list[tuple[str, Content]]:
    """Running loops to choose from: id, and what to show."""
    return [
        (
            loop.id,
            Content.assemble(visible_line(loop.task, 90) or "no task", ("  " + visible_line(loop.id, 60), "$quiet")),
        )
        for loop in loops
    ]


def recorded(new: Injected, injection: Injection, loop_id: str) -> str:
    """What was written into a loop's record, for a toast."""
    loop = visible_line(loop_id, 60)
    counts = (
        (len(new.patterns), len(injection.chosen), "pattern"),
        (len(new.reflections), len(injection.reflections.chosen), "reflection"),
    )
    if not any(count for count, _, _ in counts):
        known = " and ".join(plural(total, noun) for _, total, noun in counts if total)
        return f"nothing new: {loop} has all {known} on record as injected"
    added = " and ".join(plural(count, noun) for count, _, noun in counts if count)
    known_before = sum(total - count for count, total, _ in counts)
    known = f"; {known_before:,} were on record" if known_before else ""
    return f"recorded: {added} injected into {loop}{known}. y copies the text"
