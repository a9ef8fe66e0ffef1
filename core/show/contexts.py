"""A context's page: what a task gets, in order, and why the rest is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.base.formatting import format_decimal
from core.base.pattern_titles import pattern_title
from core.base.prompt_text import APPROVED, NO_BLOCKS, UNREVIEWED, Voice
from core.base.regexes import lazy_regex
from core.base.text import DELETED, EQUAL, INSERTED, line_changes, plural, visible
from core.index.contexts import prepare_task_injection
from core.retrieval.injection import NOTHING_IN_COMMON, STRATEGY_PART
from core.retrieval.reflections import UNTITLED_WEIGHTS, WEAK_MATCH, WEIGHTS, ChosenReflection, ReflectionLeftOut
from core.retrieval.relevance import MAX_PAST, PAST_TASKS, SEMANTIC_WEIGHTS
from core.retrieval.rendering import count_tokens
from core.retrieval.similarity import Repetition, find_repeated
from core.show.pages import document as doc
from core.show.pages.document import Cells, Column, code, fields, line, list_table
from core.show.pages.signs import state_sign

if TYPE_CHECKING:
    from core.base.settings import InjectionSettings
    from core.index.project_state import ProjectState
    from core.records.patterns import Pattern
    from core.retrieval.injection import ChosenPattern, Injection, OmittedPattern
    from core.sources.adapters.agent_files import AgentFile

PREFIX: Final = "reflection/"  # start of the key of a reflection's row
MORE_PATTERNS: Final = "more/patterns"  # keys of the summary rows
MORE_REFLECTIONS: Final = "more/reflections"
COLUMNS: Final = (
    Column(
        "rank",
        "#",
        4,
        about="place in the context; m: a reflection; + and - are what the changed values add and remove",
    ),
    Column("title", "what", 24, flex=3, about="the pattern, or what a similar task taught"),
    Column("why", "why", 19, flex=2, about="what matches the task, or why it is left out"),
    Column("score", "score", 5, align="right", keep=2, about="similarity to the task, weighted with the success rate"),
    Column("voice", "block", 10, keep=1, about="approved: guidance that a person approved; unreviewed: data"),
    Column("other", "by bound", 8, align="right", keep=0, about="rank in the other order"),
)
_MAX_SOURCES: Final = 8
_UNLIMITED: Final = 10_000  # characters
_HEAD: Final = lazy_regex(r":| \(| until |, ")  # ends the most important words of a reason
_REASONS: Final = {
    "meaning": "similar meaning",
    "words": "same words",
    "error": "same error",
    "task": "similar task",
    "category": "same category",
    "tags": "same tags",
    "language": "same language",
    "learning": "same words",
    PAST_TASKS: "worked before",
    STRATEGY_PART: "a strategy",
}
"""What a part of a relevance means, in at most 15 cells."""
_APPROVALS: Final = {APPROVED: " (a person approved its text)", UNREVIEWED: " (no person approved its text)"}
_SIGNS: Final = {"+": "good", "-": "bad"}


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
    def given(self) -> tuple[str, ...]:
        """Keys of the rows of what is injected, best first."""
        return (*self.chosen, *self.reflections)

    @cached_property
    def unfit(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of rows that resemble the task too little, by the key of their summary."""
        patterns = (key for key, one in self.left_out.items() if one.reason == NOTHING_IN_COMMON)
        reflections = (key for key, one in self.reflections_left_out.items() if one.reason.startswith(WEAK_MATCH))
        return {MORE_PATTERNS: tuple(patterns), MORE_REFLECTIONS: tuple(reflections)}

    def list_rows(self, unfolded: Collection[str] = ()) -> tuple[str, ...]:
        """Return the keys of all rows: what is injected, then what is left out.

        One row summarises all patterns, and one all reflections, that resemble the task too little, unless its key
        is `unfolded`.
        """
        rows = [*self.given]
        for more, left_out in ((MORE_PATTERNS, self.left_out), (MORE_REFLECTIONS, self.reflections_left_out)):
            unfit = self.unfit[more]
            is_folded = len(unfit) > 1 and more not in unfolded
            rows += (key for key in left_out if not is_folded or key not in unfit)
            rows += [more] * is_folded
        return tuple(dict.fromkeys(rows))

    @cached_property
    def unused(self) -> int:
        """Number of patterns and reflections that are left out."""
        return len({*self.left_out, *self.reflections_left_out} - {*self.given})

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


def context_cells(preview: Preview, key: str, state: ProjectState, room: int = _UNLIMITED) -> Cells:
    """Return the cells of a row: rank, title and what matches, or why it is left out.

    A reason that is longer than `room` is cut to its most important words; the details have all of it.
    """
    if key in preview.unfit:
        return _more_cells(preview, key)
    sign = preview.change_sign(key)
    changed = (sign or " ", f"strong {_SIGNS.get(sign, '')}".strip())
    if (lesson := preview.reflections.get(key)) is not None:
        return {
            "rank": (changed, (f"m{preview.rank[key]}", "strong")),
            "score": ((format_decimal(lesson.score), "strong"),),
            "title": (lesson.text,),
            "voice": (_voice(UNREVIEWED),),
            "why": (*_repetition(preview, key), _strongest(lesson.parts)),
        }
    if (chosen := preview.chosen.get(key)) is not None:
        rank, other = preview.rank[key], preview.ranks.get(key)
        score = chosen.lower_bound if preview.by_lower_bound else chosen.score
        return {
            "rank": (changed, (f"{rank}", "strong")),
            "other": ((f"{other or '-'}", "quiet" if other == rank else "warning"),),
            "score": ((format_decimal(score), "strong"),),
            "title": ((_title(state, key), "name"),),
            "voice": (_voice(chosen.voice),),
            "why": (*_repetition(preview, key), _strongest(chosen.parts)),
        }
    unused = preview.reflections_left_out.get(key)
    left = unused or preview.left_out[key]
    has_score = unused is not None or (left.score and not preview.by_lower_bound)
    return {
        "rank": (changed,),
        "score": ((format_decimal(left.score) if has_score else "", "quiet"),),
        "title": ((unused.text if unused is not None else _title(state, key), "quiet"),),
        "why": _reason(left.reason, room),
    }


def _more_cells(preview: Preview, key: str) -> Cells:
    """Return the cells of a summary row."""
    count = len(preview.unfit[key])
    if key == MORE_PATTERNS:
        return {"title": ((f"and {plural(count, 'pattern')}", "quiet"),), "why": (("nothing in common", "quiet"),)}
    least = format_decimal(preview.settings.min_reflection_relevance)
    return {
        "title": ((f"and {plural(count, 'reflection')}", "quiet"),),
        "why": ((f"{WEAK_MATCH}, below {least}", "quiet"),),
    }


def _title(state: ProjectState, pattern_id: str) -> str:
    pattern = state.snapshot.patterns.get(pattern_id)
    return pattern_title(pattern) if pattern is not None else pattern_id


def _reason(reason: str, room: int) -> doc.Text:
    """Return a reason, with quiet words in brackets; only its head if room is short."""
    if len(reason) > room:
        return (_HEAD.split(reason, maxsplit=1)[0],)
    words, bracket, more = reason.partition(" (")
    return (words, (f"{bracket}{more}", "quiet"))


def _voice(voice: Voice) -> doc.Part:
    return voice, "good" if voice == APPROVED else "quiet"


def _repetition(preview: Preview, key: str) -> doc.Text:
    """Return where an agent loads the same text by itself."""
    place = preview.repeated.get(key)
    return ((f"repeats {place.file}:{place.line}  ", "warning"),) if place else ()


def _strongest(parts: Mapping[str, float]) -> str:
    """Return what the largest part of a relevance means; the details have the values."""
    return _REASONS[max(parts, key=lambda name: parts[name])]


def row_details(preview: Preview, key: str, state: ProjectState) -> Iterable[doc.Block]:
    """Describe the score of a row, or why it is left out; empty for a summary row."""
    learned = preview.reflections.get(key) or preview.reflections_left_out.get(key)
    if learned is not None:
        return _reflection_details(learned)
    pattern = state.snapshot.patterns.get(key)
    if pattern is None or key in preview.unfit:
        return ()
    chosen = preview.chosen.get(key)
    return _left_out_details(preview, pattern) if chosen is None else _pattern_details(preview, chosen, pattern, state)


def _left_out_details(preview: Preview, pattern: Pattern) -> Iterable[doc.Block]:
    left = preview.left_out[pattern.id]
    yield line((pattern_title(pattern), "strong"))
    yield line(("left out: ", "warning"), left.reason)
    if left.score:
        yield line((f"Its score would be {format_decimal(left.score)}.", "quiet"))
    yield line((pattern.id, "quiet"))


def _pattern_details(
    preview: Preview, chosen: ChosenPattern, pattern: Pattern, state: ProjectState
) -> Iterable[doc.Block]:
    weights: Mapping[str, float] = {STRATEGY_PART: 1.0}
    if STRATEGY_PART not in chosen.parts:
        is_semantic = "meaning" in chosen.parts
        weights = dict((SEMANTIC_WEIGHTS if is_semantic else state.word_weights.by_type)[chosen.type])
        if PAST_TASKS in chosen.parts:
            weights[PAST_TASKS] = MAX_PAST
    yield line((pattern_title(pattern), "strong"))
    yield line(
        *_product(chosen.score, ((chosen.relevance, "relevance"), (chosen.effectiveness, "success"))),
        (" x ", "quiet"),
        f"{chosen.multiplier:g} ",
        state_sign(state.assessment(pattern.id).state) if pattern.id in state.board else None,
    )
    yield _other_rank(preview, chosen)
    yield line(("block: ", "quiet"), _voice(chosen.voice), (_APPROVALS[chosen.voice], "quiet"))
    yield _part_table(chosen.parts, weights)
    if (learned := state.word_weights.tasks) and not {"meaning", STRATEGY_PART} & chosen.parts.keys():
        yield line((f"weights fitted to {plural(learned, 'past task')}", "quiet"))
    yield line((pattern.id, "quiet"))


def _other_rank(preview: Preview, chosen: ChosenPattern) -> doc.Line:
    """Return the place in the selected order, and place and value in the other one."""
    rank, other = preview.rank[chosen.pattern_id], preview.ranks.get(chosen.pattern_id)
    orders = ("score", "lower bound")
    own, by = reversed(orders) if preview.by_lower_bound else orders
    value = chosen.score if preview.by_lower_bound else chosen.lower_bound
    place = f"number {other}" if other else "left out"
    return line(
        f"number {rank} by {own}, ",
        ("also", "quiet") if other == rank else (place, "warning"),
        (f" by {by} ({format_decimal(value)})", "quiet"),
    )


def _reflection_details(one: ChosenReflection | ReflectionLeftOut) -> Iterable[doc.Block]:
    yield line((one.text, "strong"))
    if isinstance(one, ReflectionLeftOut):
        yield line(("left out: ", "warning"), one.reason)
        yield line((f"Its score is {format_decimal(one.score)}.", "quiet"))
        yield line((one.id, "quiet"))
        return
    yield line(
        *_product(one.score, ((one.relevance, "relevance"), (one.outcome_factor, "outcome"), (one.decay, "decay")))
    )
    all_weights = WEIGHTS if one.title else UNTITLED_WEIGHTS
    yield _part_table(one.parts, {name: weight for name, weight in all_weights.items() if weight})
    more = f" and {len(one.sources) - _MAX_SOURCES:,} more" if len(one.sources) > _MAX_SOURCES else ""
    yield from fields(
        ("task", one.title or "an unknown task"),
        (
            "outcome",
            (
                one.outcome.label or "none yet",
                (", drafted from the log" if one.draft else "", "warning"),
                *(("   ", doc.Moment(one.at, is_age=True)) if one.at is not None else ()),
            ),
        ),
        ("found by", "semantic similarity" if one.is_semantic else "word match"),
        (
            plural(len(one.sources), "loop or task", "loops and tasks"),
            (", ".join(one.sources[:_MAX_SOURCES]), (more, "quiet")),
        ),
    )
    yield line((one.id, "quiet"))


def _product(score: float, factors: Sequence[tuple[float, str]]) -> doc.Text:
    """Return a score as the product of its factors."""
    terms: list[doc.Part] = [(format_decimal(score), "strong"), (" = ", "quiet")]
    for n, (value, name) in enumerate(factors):
        terms += [(" x ", "quiet")] * bool(n) + [f"{format_decimal(value)} {name}"]
    return tuple(terms)


def part_name(name: str) -> str:
    """Return the label of a part; JSON calls semantic similarity `meaning`."""
    return {"meaning": "semantic", "past_tasks": "past tasks"}.get(name, name)


def _part_table(parts: Mapping[str, float], weights: Mapping[str, float]) -> doc.Table:
    """Return a row for each part of a relevance: name, bar, value and maximum."""
    rows: list[tuple[doc.Text, ...]] = []
    for name, weight in weights.items():
        value = parts.get(name, 0.0)
        style = "" if value else "quiet"
        number = (format_decimal(value), style), (f" of {format_decimal(weight)}", "quiet")
        rows.append((((part_name(name), style),), (doc.Bar(value, weight),), number))
    return doc.Table(("", "", ""), tuple(rows))


def agent_file_lines(files: Sequence[AgentFile], repeated: Mapping[str, Repetition]) -> Iterable[doc.Line]:
    """Show the files that agents load by themselves; mark lines the context repeats."""
    if not files:
        yield line(("No agent loads a file of this project by itself.", "quiet"))
    keys = {(place.file, place.line): key.removeprefix(PREFIX) for key, place in repeated.items()}
    for n, file in enumerate(files):
        if n:
            yield line("")
        size = f"  {', '.join(file.agents)}, about {count_tokens(file.text):,} tokens"
        yield line((file.file, "strong accent"), (size, "quiet"))
        for number, text in enumerate(file.lines, start=1):
            if number == file.loaded + 1:
                unread = len(file.lines) - file.loaded
                yield line((f"not loaded: the last {plural(unread, 'line')}", "warning"))
            key = keys.get((file.file, number))
            mark = (f"  also given: {key}", "warning") if key else None
            yield line((text, "quiet" if number > file.loaded else ""), mark)


def context_document(preview: Preview, state: ProjectState, task: str) -> doc.Document:
    """Return the page of a context: the text, what is in it, and what is left out."""
    injection = preview.injection
    given, left_out = list(preview.given), [key for key in preview.list_rows() if key not in preview.given]
    method = "semantic similarity" if injection.matched_by == "meaning" else "word match"
    return doc.Document(
        f"Context of “{task}”",
        (
            line(f"{injection.tokens:,} of {preview.settings.max_tokens:,} tokens, found by {method}"),
            *doc.section("Text", code("", injection.context, "text")),
            *doc.section("In it", _row_table(preview, given, state, ("rank", "title", "why"))),
            *doc.section("Left out", _row_table(preview, left_out, state, ("title", "why"))),
        ),
    )


def _row_table(
    preview: Preview, keys: Sequence[str], state: ProjectState, columns: Sequence[str]
) -> Iterable[doc.Table]:
    if keys:
        yield list_table(COLUMNS, [context_cells(preview, key, state) for key in keys], columns)
