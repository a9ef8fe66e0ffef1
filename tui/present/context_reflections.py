"""The reflections of a previewed context: a row each, and why each is in it or left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from textual.content import Content

from core.base.formatting import decimal_text
from core.base.text import plural, visible_line
from core.retrieval.injection import Injection
from core.retrieval.learnings import UNTITLED_WEIGHTS, WEIGHTS
from core.retrieval.reflections import ChosenReflection, ReflectionLeftOut
from tui.present.glyphs import Cells, Glyphs
from tui.present.numbers import ago, bar

PREFIX: Final = "reflection/"
"""What the keys of reflections begin with."""
_PART_CELLS: Final = 10
_MOST_SOURCES: Final = 8


def chosen_by_key(injection: Injection) -> Mapping[str, ChosenReflection]:
    """The reflections in the context, best first."""
    return {f"{PREFIX}{one.id}": one for one in injection.reflections.chosen}


def left_out_by_key(injection: Injection) -> Mapping[str, ReflectionLeftOut]:
    """The ones that are left out, best first."""
    return {f"{PREFIX}{one.id}": one for one in injection.reflections.left_out}


def chosen_cells(one: ChosenReflection, rank: int, turned: tuple[str, str]) -> Cells:
    """The row of a reflection in the context.

    Args:
        one: The reflection.
        rank: Its place in the section, from 1.
        turned: Sign and style that mark what the knobs let in.
    """
    return {
        "rank": Content.assemble(turned, (f"m{rank}", "bold")),
        "score": Content.styled(decimal_text(one.score), "bold"),
        "id": Content(visible_line(one.text, 120)),
        "why": Content.assemble(
            ("task ", "$quiet"),
            f"{decimal_text(one.parts['task'])}  ",
            ("learning ", "$quiet"),
            decimal_text(one.parts["learning"]),
        ),
    }


def left_out_cells(one: ReflectionLeftOut, turned: tuple[str, str]) -> Cells:
    """The row of a reflection that is left out, with the reason."""
    return {
        "rank": Content.assemble(turned),
        "score": Content.styled(decimal_text(one.score), "$quiet"),
        "id": Content.styled(visible_line(one.text, 120), "$quiet"),
        "why": Content.styled(visible_line(one.reason, 300), "$quiet"),
    }


def chosen_lines(one: ChosenReflection, now: datetime, glyphs: Glyphs, *, short: bool) -> list[Content]:
    """A reflection in the context: its score part by part, and where it comes from.

    Args:
        one: The reflection.
        now: The time that its age is counted to.
        glyphs: Marks.
        short: The parts first, and as few words as possible.
    """
    relevance, outcome, decay = ("", "", "") if short else (" relevance", " outcome", " decay")
    product = Content.assemble(
        (decimal_text(one.score), "bold"),
        (" = ", "$quiet"),
        decimal_text(one.relevance),
        (f"{relevance} x ", "$quiet"),
        decimal_text(one.outcome_factor),
        (f"{outcome} x ", "$quiet"),
        f"{decimal_text(one.decay)}{decay}",
    )
    body = [product, *_part_lines(one, glyphs)]
    head = [
        Content.styled(visible_line(one.id, 200), "$secondary"),
        Content.styled(visible_line(one.text, 600), "bold"),
    ]
    found_by = "meaning" if one.is_semantic else "word match"
    origin = [
        Content.assemble(("learned at  ", "$quiet"), visible_line(one.title, 300) or "an unknown task"),
        Content.assemble(
            ("outcome  ", "$quiet"),
            one.outcome.told or "none yet",
            (", drafted from the log" if one.draft else "", "$warning"),
            (f"   {ago(one.at, now)}" if one.at is not None else "", "$quiet"),
            (f"   task found by {found_by}", "$quiet"),
        ),
        Content.assemble(
            (f"{plural(len(one.sources), 'loop or task', 'loops and tasks')}  ", "$quiet"),
            ", ".join(visible_line(source, 80) for source in one.sources[:_MOST_SOURCES]),
            (f" and {len(one.sources) - _MOST_SOURCES:,} more" if len(one.sources) > _MOST_SOURCES else "", "$quiet"),
        ),
    ]
    return [*body, *head, *origin] if short else [*head, *body, *origin]


def left_out_lines(one: ReflectionLeftOut) -> list[Content]:
    """A reflection that is left out, and why."""
    return [
        Content.styled(visible_line(one.id, 200), "$secondary"),
        Content.styled(visible_line(one.text, 600), "bold"),
        Content.assemble(("left out: ", "$warning"), visible_line(one.reason, 300)),
        Content.styled(f"It scores {decimal_text(one.score)}.", "$quiet"),
    ]


def _part_lines(one: ChosenReflection, glyphs: Glyphs) -> list[Content]:
    """Each part of the relevance: how much of what it may add it adds."""
    weights = WEIGHTS if one.title else UNTITLED_WEIGHTS
    return [
        Content.assemble(
            f"{name:<8} ",
            (bar(one.parts[name], weight, _PART_CELLS, glyphs), "$accent"),
            f" {decimal_text(one.parts[name]):>4}",
            (f" of {decimal_text(weight)}", "$quiet"),
        )
        for name, weight in weights.items()
        if weight
    ]
