"""Reflections of a previewed context, and scores part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from textual.content import Content

from core.base.formatting import format_decimal
from core.base.text import plural, visible_line
from core.retrieval.injection import Injection
from core.retrieval.learnings import UNTITLED_WEIGHTS, WEIGHTS
from core.retrieval.reflections import ChosenReflection, ReflectionLeftOut
from tui.present.glyphs import Cells, Glyphs
from tui.present.numbers import ago, bar

PREFIX: Final = "reflection/"
"""Start of the keys of reflections."""
PART_CELLS: Final = 10
"""Cells of the bar of one part of a score."""
_MAX_SOURCES: Final = 8


def chosen_by_key(injection: Injection) -> Mapping[str, ChosenReflection]:
    """Return the injected reflections, best first."""
    return {f"{PREFIX}{one.id}": one for one in injection.reflections.chosen}


def left_out_by_key(injection: Injection) -> Mapping[str, ReflectionLeftOut]:
    """Return the reflections left out, best first."""
    return {f"{PREFIX}{one.id}": one for one in injection.reflections.left_out}


def chosen_cells(one: ChosenReflection, rank: int, changed: tuple[str, str]) -> Cells:
    """Return the cells of an injected reflection.

    Args:
        rank: Position among the reflections, from 1.
        changed: Sign and style of what the trial settings add.
    """
    parts = (("task ", "$quiet"), format_decimal(one.parts["task"]), ("  learning ", "$quiet"))
    return {
        "rank": Content.assemble(changed, (f"m{rank}", "bold")),
        "score": Content.styled(format_decimal(one.score), "bold"),
        "id": Content(visible_line(one.text, 120)),
        "why": Content.assemble(*parts, format_decimal(one.parts["learning"])),
    }


def left_out_cells(one: ReflectionLeftOut, changed: tuple[str, str]) -> Cells:
    """Return the cells of a reflection that is left out."""
    return {
        "rank": Content.assemble(changed),
        "score": Content.styled(format_decimal(one.score), "$quiet"),
        "id": Content.styled(visible_line(one.text, 120), "$quiet"),
        "why": Content.styled(visible_line(one.reason, 300), "$quiet"),
    }


def chosen_lines(one: ChosenReflection, now: datetime, glyphs: Glyphs, *, short: bool) -> list[Content]:
    """Return the score of an injected reflection part by part, and its origin; `short` puts the parts first."""
    factors = ((one.relevance, "relevance"), (one.outcome_factor, "outcome"), (one.decay, "decay"))
    weights = {name: weight for name, weight in (WEIGHTS if one.title else UNTITLED_WEIGHTS).items() if weight}
    body = [product(one.score, factors, short=short), *part_lines(one.parts, weights, glyphs)]
    more = f" and {len(one.sources) - _MAX_SOURCES:,} more" if len(one.sources) > _MAX_SOURCES else ""
    origin = [
        Content.assemble(("task  ", "$quiet"), visible_line(one.title, 300) or "an unknown task"),
        Content.assemble(
            ("outcome  ", "$quiet"),
            one.outcome.label or "none yet",
            (", drafted from the log" if one.draft else "", "$warning"),
            (f"   {ago(one.at, now)}" if one.at is not None else "", "$quiet"),
            (f"   task found by {'semantic similarity' if one.is_semantic else 'word match'}", "$quiet"),
        ),
        Content.assemble(
            (f"{plural(len(one.sources), 'loop or task', 'loops and tasks')}  ", "$quiet"),
            ", ".join(visible_line(source, 80) for source in one.sources[:_MAX_SOURCES]),
            (more, "$quiet"),
        ),
    ]
    return [*body, *_head(one), *origin] if short else [*_head(one), *body, *origin]


def left_out_lines(one: ReflectionLeftOut) -> list[Content]:
    """Return a reflection that is left out, and the reason."""
    return [
        *_head(one),
        Content.assemble(("left out: ", "$warning"), visible_line(one.reason, 300)),
        Content.styled(f"Its score is {format_decimal(one.score)}.", "$quiet"),
    ]


def _head(one: ChosenReflection | ReflectionLeftOut) -> list[Content]:
    texts = ((visible_line(one.id, 200), "$secondary"), (visible_line(one.text, 600), "bold"))
    return [Content.styled(text, style) for text, style in texts]


def product(score: float, factors: Sequence[tuple[float, str]], *, short: bool) -> Content:
    """Return a score as the product of its factors; `short` leaves out their names."""
    terms = [f"{format_decimal(value)}{'' if short else f' {name}'}" for value, name in factors]
    joined = Content.styled(" x ", "$quiet").join(map(Content, terms))
    return Content.assemble((format_decimal(score), "bold"), (" = ", "$quiet"), joined)


def part_name(name: str) -> str:
    """Return the label of a part of the relevance; JSON calls semantic similarity `meaning`."""
    return "semantic" if name == "meaning" else name


def part_lines(parts: Mapping[str, float], weights: Mapping[str, float], glyphs: Glyphs) -> list[Content]:
    """Return each part of a relevance: its value, and the most it can add."""
    names = {name: part_name(name) for name in weights}
    widest = max(map(len, names.values()))
    lines = []
    for name, weight in weights.items():
        value = parts.get(name, 0.0)
        style = "" if value else "$quiet"
        lines.append(
            Content.assemble(
                (f"{names[name]:<{widest}} ", style),
                (bar(value, weight, PART_CELLS, glyphs), "$accent" if value else "$quiet"),
                (f" {format_decimal(value):>4}", style),
                (f" of {format_decimal(weight)}", "$quiet"),
            )
        )
    return lines
