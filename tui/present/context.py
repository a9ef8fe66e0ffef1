"""Preview of an injected context: the text, its difference, and the score of each pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msgspec.structs import replace
from textual.content import Content

from core.base.diff import DELETED, EQUAL, INSERTED, line_changes
from core.base.formatting import format_decimal
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
from core.review.context_recipients import LOOP, Recipient
from core.state.contexts import prepare_task_injection
from core.state.project_state import ProjectState
from tui.present.context_reflections import (
    PART_CELLS,
    chosen_by_key,
    chosen_cells,
    left_out_by_key,
    left_out_cells,
    part_lines,
    part_name,
    product,
)
from tui.present.glyphs import Cells, Glyphs, draw_state
from tui.present.numbers import bar


@dataclass(frozen=True)
class Preview:
    """The context of a task under trial settings, and under the project's settings.

    Attributes:
        settings: The trial settings.
        injection: The context under them.
        own: The context under the project's settings, as `inject` prints it.
        ranks: Rank of each pattern, from 1, in the other order: by lower bound or by score.
    """

    settings: InjectionSettings
    injection: Injection
    own: Injection
    ranks: Mapping[str, int]

    @staticmethod
    def prepare(view: ProjectState, task: str, settings: InjectionSettings) -> Preview:
        """Compute the preview; about 40 ms for 10,000 patterns."""
        injection = prepare_task_injection(view, task, settings)
        own = injection if settings == view.settings.injection else prepare_task_injection(view, task)
        other = replace(settings, order="score" if settings.order == "lower-bound" else "lower-bound")
        ranking = prepare_task_injection(view, task, other).chosen
        return Preview(settings, injection, own, {one.pattern_id: rank for rank, one in enumerate(ranking, 1)})

    @property
    def by_lower_bound(self) -> bool:
        """Whether the trial settings rank by lower bound instead of score."""
        return self.settings.order == "lower-bound"

    @cached_property
    def chosen(self) -> dict[str, ChosenPattern]:
        """Injected patterns by ID, best first."""
        return {one.pattern_id: one for one in self.injection.chosen}

    @cached_property
    def left_out(self) -> dict[str, OmittedPattern]:
        """Patterns left out by ID, best first."""
        return {one.pattern_id: one for one in self.injection.left_out}

    @cached_property
    def reflections(self) -> Mapping[str, ChosenReflection]:
        """Injected reflections by key, best first."""
        return chosen_by_key(self.injection)

    @cached_property
    def reflections_left_out(self) -> Mapping[str, ReflectionLeftOut]:
        """Reflections left out by key, best first."""
        return left_out_by_key(self.injection)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of all rows: injected patterns and reflections, then the ones left out."""
        rows = (self.chosen, self.reflections, self.left_out, self.reflections_left_out)
        return tuple(dict.fromkeys(key for keys in rows for key in keys))

    @cached_property
    def rank(self) -> dict[str, int]:
        """Rank of each injected pattern, from 1."""
        return {id: rank for rank, id in enumerate(self.chosen, 1)}

    @cached_property
    def own_ids(self) -> frozenset[str]:
        """Keys injected under the project's settings."""
        return frozenset((*(one.pattern_id for one in self.own.chosen), *chosen_by_key(self.own)))

    @property
    def differs(self) -> bool:
        """Whether the trial settings change the text."""
        return self.injection.context != self.own.context

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Lines of both texts with a sign: `+` added, `-` removed, ` ` unchanged."""
        signs = {EQUAL: " ", DELETED: "-", INSERTED: "+"}
        changes = line_changes(*(visible(one.context) for one in (self.own, self.injection)))
        return tuple((signs[piece.mark], piece.text.rstrip("\n")) for piece in changes)

    def change_sign(self, key: str) -> str:
        """Return `+` for a row that the trial settings add, `-` for one they remove, else ""."""
        is_in = key in self.chosen or key in self.reflections
        return {(True, False): "+", (False, True): "-"}.get((is_in, key in self.own_ids), "")


def profile_line(injection: Injection) -> Content:
    """Return the category, languages and likely errors found in the task."""
    profile = injection.profile
    errors = f"likely {', '.join(profile.error_types)}" if profile.error_types else ""
    parts = (profile.category or "no category", ", ".join(profile.languages), errors)
    return Content.styled(visible_line(" · ".join(filter(None, parts)), 120), "$secondary")


def size_items(injection: Injection, settings: InjectionSettings) -> tuple[Content, Content]:
    """Return the used part of the token budget, and the bytes."""
    return (
        Content.assemble((f"{injection.tokens:,}", "bold"), (f" of {settings.max_tokens:,} tokens", "$quiet")),
        Content.styled(f"{injection.bytes:,} bytes", "$quiet"),
    )


def difference_line(preview: Preview) -> Content:
    """Return what the trial settings change: `+12 -4 lines, 2 patterns added, 1 removed`."""
    if not preview.differs:
        return Content.styled("the text stays the same", "$quiet")
    signs = [sign for sign, _line in preview.lines]
    changes: list[str] = []
    own_reflections = chosen_by_key(preview.own).keys()
    for noun, now, own in (
        ("pattern", preview.chosen.keys(), preview.own_ids - own_reflections),
        ("reflection", preview.reflections.keys(), preview.own_ids & own_reflections),
    ):
        added, removed = len(now - own), len(own - now)
        changes += [f"{plural(added, noun)} added"] * bool(added)
        changes += [f"{removed if added else plural(removed, noun)} removed"] * bool(removed)
    return Content.assemble(
        (f"+{signs.count('+')}", "bold $success"),
        " ",
        (f"-{signs.count('-')}", "bold $error"),
        (f" lines{''.join(f', {text}' for text in changes)}", "$quiet"),
    )


def context_lines(injection: Injection) -> list[Content]:
    """Return the exact text with highlighted headings."""
    if not injection.context:
        return [
            Content.styled("Nothing is injected for this task.", "$warning"),
            Content.styled("The list shows the reason for each pattern.", "$quiet"),
        ]
    return [_line(line) for line in visible(injection.context).split("\n")]


def _line(line: str) -> Content:
    return Content.styled(line, "bold $accent" if line.startswith("## ") else "bold" if line.startswith("### ") else "")


_SIGNS: Final = {"+": "$success", "-": "$error"}


def difference(preview: Preview) -> tuple[list[Content], list[Content]]:
    """Return the lines of both texts, and the sign of each."""
    lines = [Content.styled(line, _SIGNS[sign]) if sign in _SIGNS else _line(line) for sign, line in preview.lines]
    signs = [Content.styled(f"{sign} ", f"bold {_SIGNS.get(sign, '')}".strip()) for sign, _line in preview.lines]
    return lines, signs


def match_line(injection: Injection) -> Content:
    """Return how the patterns were found."""
    return Content.assemble(
        ("found by ", "$quiet"), "semantic similarity" if injection.matched_by == "meaning" else "word match"
    )


def embedding_line(done: int, total: int, glyphs: Glyphs) -> Content:
    """Return the progress of embedding the patterns."""
    drawn = (bar(done, total, PART_CELLS, glyphs), "$accent")
    return Content.assemble(("embedding: ", "$quiet"), drawn, f" {done:,} of {plural(total, 'pattern')}")


def count_line(preview: Preview) -> Content:
    """Return how many rows are injected and left out."""
    count = len(preview.chosen) + len(preview.reflections)
    return Content.styled(f"{count:,} injected, {len(preview.keys) - count:,} left out", "$quiet")


def score_cells(preview: Preview, pattern_id: str, glyphs: Glyphs) -> Cells:
    """Return the cells of a pattern or reflection: rank and score, or why it is left out."""
    sign = preview.change_sign(pattern_id)
    changed = (sign or " ", f"bold {_SIGNS.get(sign, '')}".strip())
    if (lesson := preview.reflections.get(pattern_id)) is not None:
        return chosen_cells(lesson, list(preview.reflections).index(pattern_id) + 1, changed)
    if (unused := preview.reflections_left_out.get(pattern_id)) is not None:
        return left_out_cells(unused, changed)
    if (chosen := preview.chosen.get(pattern_id)) is None:
        left = preview.left_out[pattern_id]
        score = format_decimal(left.score) if left.score and not preview.by_lower_bound else ""
        return {
            "rank": Content.assemble(changed),
            "score": Content.styled(score, "$quiet"),
            "id": Content.styled(visible_line(pattern_id, 120), "$quiet"),
            "why": Content.styled(visible_line(left.reason, 300), "$quiet"),
        }
    rank, other = preview.rank[pattern_id], preview.ranks.get(pattern_id)
    parts = sorted(((value, name) for name, value in chosen.parts.items() if value), reverse=True)
    return {
        "rank": Content.assemble(changed, (f"{rank}", "bold")),
        "other": Content.styled(f"{other or '-'}", "$quiet" if other == rank else "$warning"),
        "score": Content.styled(format_decimal(chosen.lower_bound if preview.by_lower_bound else chosen.score), "bold"),
        "id": Content.styled(visible_line(pattern_id, 120), "$secondary"),
        "why": Content("").join(
            Content.assemble((f"{part_name(name)} ", "$quiet"), f"{format_decimal(value)}  ") for value, name in parts
        ),
    }


def choice_cells(choice: Recipient) -> Cells:
    """Return the cells of a task that can be selected."""
    return {
        "kind": Content.styled(choice.kind, "$success" if choice.kind == LOOP else "$quiet"),
        "task": Content(visible_line(choice.task, 300)),
    }


def detail_lines(
    preview: Preview, pattern: Pattern, view: ProjectState, glyphs: Glyphs, *, short: bool
) -> list[Content]:
    """Return the score of a pattern part by part, or why it is left out; `short` puts the parts first."""
    head = [
        Content.styled(visible_line(pattern.id, 200), "$secondary"),
        Content.styled(visible_line(pattern.title, 300), "bold"),
    ]
    if (chosen := preview.chosen.get(pattern.id)) is not None:
        state = draw_state(view.assessment(pattern.id).state, glyphs) if pattern.id in view.board else Content("")
        factors = ((chosen.relevance, "relevance"), (chosen.effectiveness, "success"))
        score = product(chosen.score, factors, short=short)
        body = [
            Content.assemble(score, (" x ", "$quiet"), f"{chosen.multiplier:g} ", state),
            _other_rank(preview, chosen),
            *part_lines(chosen.parts, _weights(chosen), glyphs),
        ]
    else:
        left = preview.left_out[pattern.id]
        body = [Content.assemble(("left out: ", "$warning"), visible_line(left.reason, 300))]
        body += [Content.styled(f"Its score would be {format_decimal(left.score)}.", "$quiet")] * bool(left.score)
    return [*body, *head] if short else [*head, *body]


def _weights(chosen: ChosenPattern) -> Mapping[str, float]:
    if STRATEGY_PART in chosen.parts:
        return {STRATEGY_PART: 1.0}
    return (SEMANTIC_WEIGHTS if "meaning" in chosen.parts else WEIGHTS)[chosen.type]


def _other_rank(preview: Preview, chosen: ChosenPattern) -> Content:
    """Return the rank, and the value and rank in the other order."""
    rank, other = preview.rank[chosen.pattern_id], preview.ranks.get(chosen.pattern_id)
    by, value = ("score", chosen.score) if preview.by_lower_bound else ("lower bound", chosen.lower_bound)
    return Content.assemble(
        ("rank ", "$quiet"),
        f"{rank}",
        (f", by {by} ", "$quiet"),
        f"{format_decimal(value)} ",
        (f"rank {other}" if other else "left out", "$quiet" if other == rank else "$warning"),
    )


def loop_choices(loops: Sequence[Loop]) -> list[tuple[str, Content]]:
    """Return ID and label of the running loops, to choose from."""
    return [
        (one.id, Content.assemble(visible_line(one.task, 90) or "no task", (f"  {visible_line(one.id, 60)}", "$quiet")))
        for one in loops
    ]


def recorded(new: Injected, injection: Injection, loop_id: str) -> str:
    """Return a toast about the injections recorded for a loop."""
    loop = visible_line(loop_id, 60)
    counts = (
        (len(new.patterns), len(injection.chosen), "pattern"),
        (len(new.reflections), len(injection.reflections.chosen), "reflection"),
    )
    if not any(count for count, _, _ in counts):
        known = " and ".join(plural(total, noun) for _, total, noun in counts if total)
        return f"already recorded: {known} injected into {loop}"
    added = " and ".join(plural(count, noun) for count, _, noun in counts if count)
    before = sum(total - count for count, total, _ in counts)
    known = f"; {before:,} already recorded" if before else ""
    return f"recorded: {added} injected into {loop}{known}. y copies the text"
