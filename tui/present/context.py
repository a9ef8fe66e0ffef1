"""Preview of an injected context: text, difference, and scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.content import Content

from core.base.context_blocks import APPROVED, FENCE, NO_BLOCKS, UNREVIEWED, Voice
from core.base.diff import DELETED, EQUAL, INSERTED, line_changes
from core.base.formatting import format_decimal
from core.base.text import plural, visible, visible_line
from core.questions.context_recipients import LOOP, Recipient
from core.retrieval import learnings
from core.retrieval.injection import STRATEGY_PART
from core.retrieval.reflections import ChosenReflection, ReflectionLeftOut
from core.retrieval.relevance import MAX_PAST, PAST_TASKS, SEMANTIC_WEIGHTS
from core.retrieval.similarity import Repetition, find_repeated
from core.state.contexts import prepare_task_injection
from tui.present.glyphs import Cells, Glyphs, draw_state
from tui.present.numbers import ago, bar

if TYPE_CHECKING:
    from core.adapters.agent_files import AgentFile
    from core.config.settings import InjectionSettings
    from core.records.patterns import Pattern
    from core.retrieval.injection import ChosenPattern, Injection, OmittedPattern
    from core.state.project_state import ProjectState

PREFIX: Final = "reflection/"
PART_CELLS: Final = 10  # Cells of the bar of one part of a score.
_MAX_SOURCES: Final = 8
_FENCE: Final = re.compile(FENCE)
_SIGNS: Final = {"+": "$success", "-": "$error"}


@dataclass(frozen=True)
class Preview:
    """The context under trial `settings`, and `own`: under the project's settings.

    `ranks` has the rank of each pattern, from 1, in the order that is not selected: by lower bound or by score.
    `repeated` has the keys of injected rows whose text is in a file that an agent loads by itself.
    """

    settings: InjectionSettings
    injection: Injection
    own: Injection
    ranks: Mapping[str, int]
    repeated: Mapping[str, Repetition] = field(default_factory=dict)

    @staticmethod
    def prepare(
        view: ProjectState, task: str, settings: InjectionSettings, files: Sequence[AgentFile] = (), token: str = ""
    ) -> Preview:
        """Compute the preview; about 40 ms for 10,000 patterns.

        `files` are those that agents load by themselves. `token` is for the fences of the texts, "" for a new one.
        """
        token = NO_BLOCKS.choose_token(token)
        injection = prepare_task_injection(view, task, settings, token=token)
        own = injection
        if settings != view.settings.injection:
            own = prepare_task_injection(view, task, token=token)
        other = replace(settings, order="score" if settings.order == "lower-bound" else "lower-bound")
        ranking = prepare_task_injection(view, task, other, token=token).chosen
        ranks = {one.pattern_id: rank for rank, one in enumerate(ranking, 1)}
        return Preview(settings, injection, own, ranks, _find_repeated(view, injection, files))

    @property
    def by_lower_bound(self) -> bool:
        """Whether the trial settings rank by lower bound instead of score."""
        return self.settings.order == "lower-bound"

    @cached_property
    def chosen(self) -> Mapping[str, ChosenPattern]:
        """Injected patterns by ID, best first."""
        return {one.pattern_id: one for one in self.injection.chosen}

    @cached_property
    def left_out(self) -> Mapping[str, OmittedPattern]:
        """Patterns left out by ID, best first."""
        return {one.pattern_id: one for one in self.injection.left_out}

    @cached_property
    def reflections(self) -> Mapping[str, ChosenReflection]:
        """Injected reflections by key, best first."""
        return {f"{PREFIX}{one.id}": one for one in self.injection.reflections.chosen}

    @cached_property
    def reflections_left_out(self) -> Mapping[str, ReflectionLeftOut]:
        """Reflections left out by key, best first."""
        return {f"{PREFIX}{one.id}": one for one in self.injection.reflections.left_out}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of all rows: first what is injected, then what is left out."""
        return tuple(dict.fromkeys((*self.chosen, *self.reflections, *self.left_out, *self.reflections_left_out)))

    @cached_property
    def rank(self) -> dict[str, int]:
        """Rank of each injected pattern, and of each injected reflection, from 1."""
        return {key: rank for keys in (self.chosen, self.reflections) for rank, key in enumerate(keys, 1)}

    @cached_property
    def own_keys(self) -> tuple[frozenset[str], frozenset[str]]:
        """Keys of the patterns and reflections injected under the project's settings."""
        reflections = frozenset(f"{PREFIX}{one.id}" for one in self.own.reflections.chosen)
        return frozenset(one.pattern_id for one in self.own.chosen), reflections

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
        """Return `+` if the settings add a row, `-` if they remove it, otherwise ""."""
        was_in = any(key in keys for keys in self.own_keys)
        return {(True, False): "+", (False, True): "-"}.get((key in self.rank, was_in), "")


def _find_repeated(view: ProjectState, injection: Injection, files: Sequence[AgentFile]) -> Mapping[str, Repetition]:
    patterns = view.snapshot.patterns
    texts: dict[str, tuple[str, ...]] = {f"{PREFIX}{one.id}": (one.text,) for one in injection.reflections.chosen}
    for one in injection.chosen:
        if (pattern := patterns.get(one.pattern_id)) is not None:
            texts[pattern.id] = (pattern.description, pattern.title, pattern.better_alternative)
    return find_repeated(texts, ((file.file, file.lines[: file.loaded]) for file in files))


def profile_line(injection: Injection) -> Content:
    """Return category, languages and likely errors detected in the task."""
    profile = injection.profile
    errors = f"likely {', '.join(profile.error_types)}" if profile.error_types else ""
    parts = (profile.category or "no category", ", ".join(profile.languages), errors)
    return Content.styled(visible_line(" · ".join(filter(None, parts)), 120), "$secondary")


def size_items(injection: Injection, settings: InjectionSettings) -> tuple[Content, Content]:
    return (
        Content.assemble((f"{injection.tokens:,}", "bold"), (f" of {settings.max_tokens:,} tokens", "$quiet")),
        Content.styled(f"{injection.bytes:,} bytes", "$quiet"),
    )


def difference_line(preview: Preview) -> Content:
    """Return a summary of the changes: `+12 -4 lines, 2 patterns added`."""
    if not preview.differs:
        return Content.styled("the text stays the same", "$quiet")
    signs = [sign for sign, _line in preview.lines]
    changes = ""
    present = (("pattern", preview.chosen.keys()), ("reflection", preview.reflections.keys()))
    for (noun, now), own in zip(present, preview.own_keys, strict=True):
        added, removed = len(now - own), len(own - now)
        changes += f", {plural(added, noun)} added" if added else ""
        changes += f", {removed if added else plural(removed, noun)} removed" if removed else ""
    return Content.assemble(
        (f"+{signs.count('+')}", "bold $success"),
        " ",
        (f"-{signs.count('-')}", "bold $error"),
        (f" lines{changes}", "$quiet"),
    )


def context_lines(injection: Injection) -> list[Content]:
    if not injection.context:
        reasons = "The list shows the reason for each pattern." if injection.left_out else "There are no patterns yet."
        return [Content.styled("Nothing is injected for this task.", "$warning"), Content.styled(reasons, "$quiet")]
    return [_line(line) for line in visible(injection.context).split("\n")]


def _line(line: str) -> Content:
    if line.startswith("## ") or _FENCE.fullmatch(line):
        return Content.styled(line, "bold $accent")
    return Content.styled(line, "bold" if line.startswith("### ") else "")


def difference(preview: Preview) -> tuple[list[Content], list[Content]]:
    """Return the lines of both texts, and the sign of each line."""
    lines = [Content.styled(line, _SIGNS[sign]) if sign in _SIGNS else _line(line) for sign, line in preview.lines]
    signs = [Content.styled(f"{sign} ", f"bold {_SIGNS.get(sign, '')}".strip()) for sign, _line in preview.lines]
    return lines, signs


def match_line(injection: Injection) -> Content:
    method = "semantic similarity" if injection.matched_by == "meaning" else "word match"
    return Content.assemble(("found by ", "$quiet"), method)


def embedding_line(done: int, total: int, glyphs: Glyphs) -> Content:
    drawn = (bar(done, total, PART_CELLS, glyphs), "$accent")
    return Content.assemble(("embedding: ", "$quiet"), drawn, f" {done:,} of {plural(total, 'pattern')}")


def count_line(preview: Preview) -> Content:
    count = len(preview.chosen) + len(preview.reflections)
    return Content.styled(f"{count:,} injected, {len(preview.keys) - count:,} left out", "$quiet")


def score_cells(preview: Preview, key: str, glyphs: Glyphs) -> Cells:
    """Return the cells of a row: rank and score, or why it is left out."""
    sign = preview.change_sign(key)
    changed = (sign or " ", f"bold {_SIGNS.get(sign, '')}".strip())
    if (lesson := preview.reflections.get(key)) is not None:
        return {
            "rank": Content.assemble(changed, (f"m{preview.rank[key]}", "bold")),
            "score": Content.styled(format_decimal(lesson.score), "bold"),
            "id": Content(visible_line(lesson.text, 120)),
            "voice": _voice(UNREVIEWED),
            "why": _repetition(preview, key)
            + _parts([("task", lesson.parts["task"]), ("  learning", lesson.parts["learning"])]),
        }
    if (chosen := preview.chosen.get(key)) is not None:
        rank, other = preview.rank[key], preview.ranks.get(key)
        score = chosen.lower_bound if preview.by_lower_bound else chosen.score
        parts = sorted(((value, name) for name, value in chosen.parts.items() if value), reverse=True)
        return {
            "rank": Content.assemble(changed, (f"{rank}", "bold")),
            "other": Content.styled(f"{other or '-'}", "$quiet" if other == rank else "$warning"),
            "score": Content.styled(format_decimal(score), "bold"),
            "id": Content.styled(visible_line(key, 120), "$secondary"),
            "voice": _voice(chosen.voice),
            "why": _repetition(preview, key) + _parts([(part_name(name), value) for value, name in parts], gap="  "),
        }
    unused = preview.reflections_left_out.get(key)
    left = unused or preview.left_out[key]
    has_score = unused is not None or (left.score and not preview.by_lower_bound)
    return {
        "rank": Content.assemble(changed),
        "score": Content.styled(format_decimal(left.score) if has_score else "", "$quiet"),
        "id": Content.styled(visible_line(unused.text if unused is not None else key, 120), "$quiet"),
        "why": Content.styled(visible_line(left.reason, 300), "$quiet"),
    }


def _voice(voice: Voice) -> Content:
    return Content.styled(voice, "$success" if voice == APPROVED else "$quiet")


def _repetition(preview: Preview, key: str) -> Content:
    """Return where an agent loads the same text by itself."""
    place = preview.repeated.get(key)
    return Content.styled(f"repeats {visible_line(place.file, 60)}:{place.line}  " if place else "", "$warning")


def _parts(parts: Sequence[tuple[str, float]], gap: str = "") -> Content:
    named = (Content.assemble((f"{name} ", "$quiet"), f"{format_decimal(value)}{gap}") for name, value in parts)
    return Content("").join(named)


def choice_cells(choice: Recipient) -> Cells:
    return {
        "kind": Content.styled(choice.kind, "$success" if choice.kind == LOOP else "$quiet"),
        "task": Content(visible_line(choice.task, 300)),
    }


def detail_lines(
    preview: Preview, pattern: Pattern, view: ProjectState, glyphs: Glyphs, *, short: bool
) -> list[Content]:
    """Describe the score of a pattern, or why it is left out; `short`: score first."""
    head = _head(pattern.id, visible_line(pattern.title, 300))
    if (chosen := preview.chosen.get(pattern.id)) is not None:
        weights: Mapping[str, float] = {STRATEGY_PART: 1.0}
        if STRATEGY_PART not in chosen.parts:
            is_semantic = "meaning" in chosen.parts
            weights = dict((SEMANTIC_WEIGHTS if is_semantic else view.word_weights.by_type)[chosen.type])
            if PAST_TASKS in chosen.parts:
                weights[PAST_TASKS] = MAX_PAST
        state = draw_state(view.assessment(pattern.id).state, glyphs) if pattern.id in view.board else Content("")
        factors = ((chosen.relevance, "relevance"), (chosen.effectiveness, "success"))
        score = product(chosen.score, factors, short=short)
        body = [
            Content.assemble(score, (" x ", "$quiet"), f"{chosen.multiplier:g} ", state),
            _other_rank(preview, chosen),
            Content.assemble(("block ", "$quiet"), _voice(chosen.voice)),
            *part_lines(chosen.parts, weights, glyphs),
        ]
        if (learned := view.word_weights.tasks) and not {"meaning", STRATEGY_PART} & chosen.parts.keys():
            body.append(Content.styled(f"weights fitted to {plural(learned, 'past task')}", "$quiet"))
    else:
        left = preview.left_out[pattern.id]
        body = [Content.assemble(("left out: ", "$warning"), visible_line(left.reason, 300))]
        body += [Content.styled(f"Its score would be {format_decimal(left.score)}.", "$quiet")] * bool(left.score)
    return [*body, *head] if short else [*head, *body]


def _head(id: str, text: str) -> list[Content]:
    return [Content.styled(visible_line(id, 200), "$secondary"), Content.styled(text, "bold")]


def _other_rank(preview: Preview, chosen: ChosenPattern) -> Content:
    """Return the rank, and value and rank in the order that is not selected."""
    rank, other = preview.rank[chosen.pattern_id], preview.ranks.get(chosen.pattern_id)
    by, value = ("score", chosen.score) if preview.by_lower_bound else ("lower bound", chosen.lower_bound)
    return Content.assemble(
        ("rank ", "$quiet"),
        f"{rank}",
        (f", by {by} ", "$quiet"),
        f"{format_decimal(value)} ",
        (f"rank {other}" if other else "left out", "$quiet" if other == rank else "$warning"),
    )


def reflection_lines(
    one: ChosenReflection | ReflectionLeftOut, now: datetime, glyphs: Glyphs, *, short: bool
) -> list[Content]:
    """Describe the score and origin of a reflection, or why it is left out."""
    head = _head(one.id, visible_line(one.text, 600))
    if isinstance(one, ReflectionLeftOut):
        reason = Content.assemble(("left out: ", "$warning"), visible_line(one.reason, 300))
        return [*head, reason, Content.styled(f"Its score is {format_decimal(one.score)}.", "$quiet")]
    factors = ((one.relevance, "relevance"), (one.outcome_factor, "outcome"), (one.decay, "decay"))
    all_weights = learnings.WEIGHTS if one.title else learnings.UNTITLED_WEIGHTS
    weights = {name: weight for name, weight in all_weights.items() if weight}
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
    return [*body, *head, *origin] if short else [*head, *body, *origin]


def product(score: float, factors: Sequence[tuple[float, str]], *, short: bool) -> Content:
    """Return a score as the product of its factors; `short` leaves out their names."""
    terms = [f"{format_decimal(value)}{'' if short else f' {name}'}" for value, name in factors]
    joined = Content.styled(" x ", "$quiet").join(map(Content, terms))
    return Content.assemble((format_decimal(score), "bold"), (" = ", "$quiet"), joined)


def part_name(name: str) -> str:
    """Return the label of a part; JSON calls semantic similarity `meaning`."""
    return {"meaning": "semantic", "past_tasks": "past tasks"}.get(name, name)


def part_lines(parts: Mapping[str, float], weights: Mapping[str, float], glyphs: Glyphs) -> list[Content]:
    """Return a line per part of a relevance: its value and its maximum."""
    widest = max(len(part_name(name)) for name in weights)
    lines = []
    for name, weight in weights.items():
        value = parts.get(name, 0.0)
        style = "" if value else "$quiet"
        drawn = (bar(value, weight, PART_CELLS, glyphs), "$accent" if value else "$quiet")
        number = (f" {format_decimal(value):>4}", style)
        label = (f"{part_name(name):<{widest}} ", style)
        lines.append(Content.assemble(label, drawn, number, (f" of {format_decimal(weight)}", "$quiet")))
    return lines
