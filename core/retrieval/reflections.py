"""Inverted index, choice and text of learnings (docs/retrieval.md#reflections)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.formatting import format_decimal
from core.base.prompt_text import NO_BLOCKS, Blocks, escape_inline
from core.base.scanning.verdict import find_completed_harm, find_withhold_reason
from core.base.text import plural, visible_line
from core.learning.maturity import decayed_value
from core.records.episodes import Task, TaskStatus
from core.records.loops import Loop, LoopStatus, Outcome
from core.retrieval.embeddings import ComparableWork, task_text
from core.retrieval.rendering import REFLECTIONS_ONLY, count_tokens, format_heading, join_parts
from core.retrieval.similarity import MIN_SIMILARITY, Statement, TextPool

if TYPE_CHECKING:
    from core.base.settings import InjectionSettings
    from core.records.snapshot import Snapshot

_NUMBER: Final = "#"  # precedes the number of a key learning in its ID; IDs of reflections contain none
_MEMORY: Final = "memory/"  # prefix of the source of all key learnings of a task of the cross-task memory
_BY_STATUS: Final = {TaskStatus.COMPLETED: Outcome.SUCCESS, TaskStatus.FAILED: Outcome.FAILURE}
_BY_LOOP_STATUS: Final = {
    LoopStatus.COMPLETED: Outcome.SUCCESS,
    LoopStatus.PARTIAL: Outcome.PARTIAL,
    LoopStatus.FAILED: Outcome.FAILURE,
    LoopStatus.CRASHED: Outcome.FAILURE,
    LoopStatus.LIMIT: Outcome.TIMEOUT,
}

WEIGHTS: Final[Mapping[str, float]] = {"task": 0.7, "learning": 0.3}
"""Weights of the parts. `task`: similarity of the tasks. `learning`: share of the task's rare words in the learning."""
UNTITLED_WEIGHTS: Final[Mapping[str, float]] = {"task": 0.0, "learning": 0.6}  # if the task is unknown


class Learning(Struct, frozen=True, kw_only=True, gc=False):
    """Learning of a task or loop; all texts are untrusted."""

    id: str  # ID of the reflection; `<task>#<number>` for a key learning of the cross-task memory
    text: str  # the learning, one or more lines
    source: str  # ID of the loop, else of the task
    title: str = ""  # description of the task, "" if unknown
    outcome: Outcome = Outcome.UNKNOWN  # outcome of the attempt, else of the task or loop, else of the reflection
    effectiveness: str = ""  # recorded effect of the reflection: helpful, neutral, unhelpful or ""
    at: datetime | None = None
    draft: bool = False  # whether it was only drafted from a log


def is_key_learning(learning_id: str) -> bool:
    """Return whether a learning is a key learning of the cross-task memory."""
    return _NUMBER in learning_id


def memory_source(task_id: str) -> str:
    """Return the source of all key learnings of a task of the cross-task memory."""
    return f"{_MEMORY}{task_id}"


def list_needs(source: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return a source's other dependencies: `task/<id>`, `loop/<id>`, `attempt/<id>`."""
    if source.startswith(_MEMORY):
        return (f"task/{source.removeprefix(_MEMORY)}",)
    reflection = snapshot.reflections.get(source)
    if reflection is None:
        return ()
    task_id, loop_id = reflection.task_id, reflection.loop_id
    of_task = (f"task/{task_id}", f"attempt/{task_id}.{reflection.attempt}") if task_id else ()
    return (*of_task, f"loop/{loop_id}") if loop_id else of_task


def iterate_learnings(source: str, snapshot: Snapshot) -> Iterator[tuple[Learning, str]]:
    """Yield (learning, key of its task or loop) of a source; nothing if removed."""
    if source.startswith(_MEMORY):
        memory = snapshot.memory_tasks.get(source.removeprefix(_MEMORY))
        for number, text in enumerate(memory.learnings if memory is not None else (), 1):
            if memory is not None and text.strip():
                learning = Learning(
                    id=f"{memory.id}{_NUMBER}{number}",
                    text=text,
                    source=memory.id,
                    title=memory.description,
                    outcome=memory.outcome,
                    at=memory.at,
                )
                yield learning, f"task/{memory.id}"
        return
    reflection = snapshot.reflections.get(source)
    if reflection is None or reflection.superseded or not reflection.has_learning or not reflection.text.strip():
        return
    task_id, loop_id = reflection.task_id, reflection.loop_id
    is_known_task = task_id in snapshot.tasks or task_id in snapshot.memory_tasks
    key = f"task/{task_id}" if is_known_task or not loop_id else f"loop/{loop_id}"
    work = find_work(key, snapshot)
    attempt = snapshot.attempts.get(f"{task_id}.{reflection.attempt}")
    outcomes = (attempt.outcome if attempt is not None else Outcome.UNKNOWN, work_outcome(work), reflection.outcome)
    learning = Learning(
        id=reflection.id,
        text=reflection.text,
        source=loop_id or task_id or reflection.file,
        title=work_title(work),
        outcome=next((one for one in outcomes if one is not Outcome.UNKNOWN), Outcome.UNKNOWN),
        effectiveness=reflection.effectiveness,
        at=reflection.at,
        draft=reflection.draft,
    )
    yield learning, key


def find_work(key: str, snapshot: Snapshot) -> ComparableWork | None:
    """Return the task or loop with a key; None if unknown or without a description."""
    kind, _, id = key.partition("/")
    work: ComparableWork | None = snapshot.loops.get(id)
    if kind == "task":
        work = snapshot.tasks.get(id) or snapshot.memory_tasks.get(id)
    return work if work is not None and work_title(work).strip() else None


def work_title(work: ComparableWork | None) -> str:
    if work is None:
        return ""
    return work.task if isinstance(work, Loop) else work.description


def work_outcome(work: ComparableWork | None) -> Outcome:
    if isinstance(work, Loop):
        is_certain = work.success is not None or work.status is not LoopStatus.COMPLETED
        return _BY_LOOP_STATUS.get(work.status, Outcome.UNKNOWN) if is_certain else Outcome.UNKNOWN
    if isinstance(work, Task):
        return _BY_STATUS.get(work.status, Outcome.UNKNOWN)
    return work.outcome if work is not None else Outcome.UNKNOWN


def describe_work(work: ComparableWork | None) -> tuple[str, Outcome]:
    """Return the fields of a task or loop that its learnings depend on."""
    return ("", Outcome.UNKNOWN) if work is None else (task_text(work), work_outcome(work))


class LearningMatch(Struct, frozen=True, kw_only=True, gc=False):
    """Learning that fits a task."""

    learning: Learning
    relevance: float  # 0..1, the weighted sum of the parts
    task: float  # similarity of the tasks, 0..1
    words: float  # share of the task's rare words that the learning contains, 0..1
    is_semantic: bool  # whether `task` compares vectors, not words

    @property
    def parts(self) -> dict[str, float]:
        """Contribution of each part to the relevance."""
        weights = WEIGHTS if self.learning.title else UNTITLED_WEIGHTS
        return {"task": self.task * weights["task"], "learning": self.words * weights["learning"]}


HEADING: Final = "### Reflections"
OUTCOME_FACTORS: Final[Mapping[Outcome, float]] = {
    Outcome.SUCCESS: 1.0,
    Outcome.PARTIAL: 0.9,
    Outcome.UNKNOWN: 0.8,
    Outcome.SKIPPED: 0.8,
    Outcome.FAILURE: 0.7,
    Outcome.TIMEOUT: 0.7,
}  # factor for the outcome of the attempt, task or loop
EFFECT_FACTORS: Final[Mapping[str, float]] = {"helpful": 1.0, "neutral": 0.75, "unhelpful": 0.25}
"""Factor for a recorded effect of the reflection; replaces the factor of the outcome."""
DRAFT_FACTOR: Final = 0.5  # factor for a learning drafted from a log
HELD_PREFIX: Final = "held:"  # start of the reason for a held learning that is not approved
WEAK_MATCH: Final = "weak match"  # start of the reason for a learning that resembles the task too little
MAX_LEFT_OUT: Final = 50  # omitted learnings that are listed
MAX_GROUPED: Final = 60  # best learnings among which duplicates are merged
MAX_SCANNED: Final = 20  # best entries that may be chosen
_MAX_TRIED: Final = 5  # entries over the budget that are skipped for shorter ones
_MAX_TITLE: Final = 120  # characters of the title of a task


class ChosenReflection(Struct, frozen=True, kw_only=True):
    """Chosen learning and its score."""

    id: str  # with text and title, of the learning that represents its duplicates; untrusted
    text: str
    title: str
    outcome: Outcome
    draft: bool
    sources: tuple[str, ...]  # IDs of the source loops and tasks, most relevant first
    same_ids: tuple[str, ...]  # IDs of the learning and its duplicates
    score: float  # relevance x outcome_factor x decay
    relevance: float  # 0..1, the sum of `parts`
    outcome_factor: float
    decay: float
    parts: dict[str, float]
    is_semantic: bool  # whether the tasks were compared by vectors, not by words
    at: datetime | None = None


class ReflectionLeftOut(Struct, frozen=True, kw_only=True):
    """Omitted learning with the reason and its score."""

    id: str
    text: str
    reason: str
    score: float


class ReflectionSection(Struct, frozen=True, kw_only=True):
    """Reflections section of one context."""

    chosen: tuple[ChosenReflection, ...] = ()  # best first
    left_out: tuple[ReflectionLeftOut, ...] = ()  # best first, at most `MAX_LEFT_OUT`


class ReflectionChoice:
    """Chooses reflections within their share of the budget, then within the rest.

    `now` and `half_life_days` determine the decay (docs/scoring.md#half-life). `orders` is whether texts that give
    orders are held: `settings.scan.holds_other_texts`. `approved` returns whether a person approved a held text.
    `used_scripts`: see `find_withhold_reason`.
    """

    def __init__(
        self,
        matches: Sequence[LearningMatch],
        settings: InjectionSettings,
        now: datetime,
        half_life_days: float,
        *,
        orders: bool = True,
        approved: Callable[[str], bool] = lambda _: False,
        used_scripts: frozenset[str] | None = None,
    ) -> None:
        self._settings = settings
        self._held: list[ChosenReflection] = []
        self._left_out: list[ReflectionLeftOut] = []
        self._chosen: list[ChosenReflection] = []
        self._waiting: list[ChosenReflection] = []
        if not settings.enabled:
            return
        least = settings.min_reflection_relevance
        near = [match for match in matches if match.relevance >= least]
        far = [match for match in matches if match.relevance < least][:MAX_LEFT_OUT]
        for reflection in _scored(far, now, half_life_days):
            self._leave_out(
                reflection, f"{WEAK_MATCH} {format_decimal(reflection.relevance)} (at least {format_decimal(least)})"
            )
        for place, reflection in enumerate(_merge_duplicates(_scored(near, now, half_life_days)[:MAX_GROUPED])):
            if not settings.include_reflections:
                reason = "switched off (reflections)"
            elif place >= MAX_SCANNED:
                reason = self._limit_reason()
            else:
                is_held = orders and not approved(reflection.text)
                reason = find_stop_reason(reflection.text, settings.max_field_chars, is_held, used_scripts)
            if reason:
                self._leave_out(reflection, reason)
            else:
                self._waiting.append(reflection)
            if reason.startswith(HELD_PREFIX):
                self._held.append(reflection)
        self._fill(int(settings.max_tokens * settings.reflection_share))

    @property
    def held(self) -> tuple[ChosenReflection, ...]:
        """Held learnings that would be chosen after approval, best first."""
        chosen = sorted((one.score for one in self._chosen), reverse=True)
        is_full = len(chosen) >= self._settings.max_reflections
        least = chosen[-1] if is_full and chosen else 0.0
        held = sorted((one for one in self._held if one.score >= least), key=_by_score)
        return tuple(held[: self._settings.max_reflections])

    @property
    def reserved_text(self) -> str:
        """The section for which the patterns must leave tokens free."""
        return render_reflections(self._chosen, self._settings)

    def finish(self, before: Blocks, behind: Blocks = NO_BLOCKS) -> tuple[Blocks, ReflectionSection]:
        """Return a context with its Reflections section, and the section.

        `before` are the texts before the section, and `behind` those that follow it.
        """
        settings = self._settings
        self._fill(settings.max_tokens, before, behind)
        included: list[ChosenReflection] = []
        for reflection in sorted(self._chosen, key=_by_score):
            longer = put_reflections(before, render_reflections([*included, reflection], settings), behind)
            text = put_reflections(before, render_reflections(included, settings)).fenced()
            if count_tokens(longer.fenced()) > settings.max_tokens:
                self._waiting.append(reflection)
            elif does := find_completed_harm(_block_text(len(included) + 1, reflection, settings), text):
                self._leave_out(reflection, f"together with the text before it, the context {does}")
            else:
                included.append(reflection)
        full = len(included) >= settings.max_reflections
        for reflection in sorted(self._waiting, key=_by_score):
            self._leave_out(reflection, self._limit_reason() if full else "over the token budget")
        section = render_reflections(included, settings)
        if behind.unreviewed and section and (does := find_completed_harm(behind.unreviewed, section)):
            for reflection in included:
                self._leave_out(reflection, f"together with the text after it, the context {does}")
            included, section = [], ""
        left_out = tuple(sorted(self._left_out, key=_by_score)[:MAX_LEFT_OUT])
        return put_reflections(before, section, behind), ReflectionSection(chosen=tuple(included), left_out=left_out)

    def _fill(self, budget: int, before: Blocks | None = None, behind: Blocks = NO_BLOCKS) -> None:
        """Fill a token budget: of the context, or without `before` of the section alone."""
        waiting, self._waiting = self._waiting, []
        tried = 0
        for reflection in waiting:
            more = [*self._chosen, reflection]
            if len(more) > self._settings.max_reflections or tried >= _MAX_TRIED:
                self._waiting.append(reflection)
            elif self._count(render_reflections(more, self._settings), before, behind) > budget:
                self._waiting.append(reflection)
                tried += 1
            else:
                self._chosen = more

    def _count(self, section: str, before: Blocks | None, behind: Blocks) -> int:
        return count_tokens(f"\n{section}" if before is None else put_reflections(before, section, behind).fenced())

    def _limit_reason(self) -> str:
        return f"limit of {self._settings.max_reflections} reached"

    def _leave_out(self, reflection: ChosenReflection, reason: str) -> None:
        self._left_out.append(
            ReflectionLeftOut(id=reflection.id, text=reflection.text, reason=reason, score=reflection.score)
        )


@lru_cache(4096)
def find_stop_reason(text: str, limit: int, orders: bool, used_scripts: frozenset[str] | None = None) -> str:
    """Return why the scan stops a text, whole or cut to `limit`; "" if it does not."""

    def shown(text: str) -> str:
        return visible_line(text.strip(), limit)

    if does := find_withhold_reason(text, shown, orders=False):
        return f"blocked: its text {does}"
    does = find_withhold_reason(text, shown, orders=orders, used_scripts=used_scripts)
    return f"{HELD_PREFIX} its text {does}" if does else ""


def put_reflections(before: Blocks, section: str, behind: Blocks = NO_BLOCKS) -> Blocks:
    """Insert the reflections section between two texts, in their unreviewed block."""
    first = before.unreviewed or (REFLECTIONS_ONLY if section else "")
    return Blocks(join_parts(before.approved, behind.approved), join_parts(first, section, behind.unreviewed))


def render_reflections(chosen: Sequence[ChosenReflection], settings: InjectionSettings) -> str:
    """Render the section, escaped like `render_context`; "" without reflections."""
    if not chosen:
        return ""
    blocks = (_block_text(number, one, settings) for number, one in enumerate(chosen, 1))
    return "\n".join((f"{HEADING}\n", *blocks))


def _block_text(number: int, reflection: ChosenReflection, settings: InjectionSettings) -> str:
    limit = settings.max_field_chars
    details = [reflection.outcome.label or "no outcome yet", *["drafted from the log"] * reflection.draft]
    if len(reflection.sources) > 1:
        details.append(f"learned {len(reflection.sources):,} times")
    title = "" if find_stop_reason(reflection.title, limit, True) else reflection.title.strip()
    lines = [
        format_heading(number, title or "A similar task", ", ".join(details), min(limit, _MAX_TITLE)),
        f"   - Learning: {escape_inline(reflection.text, limit)}",
    ]
    if len(reflection.sources) > 1:
        lines.append(f"   - Source: {plural(len(reflection.sources), 'loop or task', 'loops and tasks')}")
    elif not find_stop_reason(reflection.sources[0], limit, True):
        lines.append(f"   - Source: {escape_inline(reflection.sources[0], limit)}")
    return "\n".join(lines) + "\n"


def _scored(matches: Iterable[LearningMatch], now: datetime, half_life_days: float) -> list[ChosenReflection]:
    chosen = []
    for match in matches:
        learning = match.learning
        factor = EFFECT_FACTORS.get(learning.effectiveness, OUTCOME_FACTORS[learning.outcome])
        factor *= DRAFT_FACTOR if learning.draft else 1.0
        faded = 1.0 if learning.at is None else decayed_value(learning.at, now, half_life_days)
        chosen.append(
            ChosenReflection(
                id=learning.id,
                text=learning.text,
                title=learning.title,
                outcome=learning.outcome,
                draft=learning.draft,
                sources=(learning.source,),
                same_ids=(learning.id,),
                score=match.relevance * factor * faded,
                relevance=match.relevance,
                outcome_factor=factor,
                decay=faded,
                parts=match.parts,
                is_semantic=match.is_semantic,
                at=learning.at,
            )
        )
    return sorted(chosen, key=_by_score)


def _by_score(reflection: ChosenReflection | ReflectionLeftOut) -> tuple[float, str]:
    return -reflection.score, reflection.id


def _merge_duplicates(scored: Iterable[ChosenReflection]) -> Iterator[ChosenReflection]:
    """Merge duplicates into entries with all their sources, in order."""
    texts = TextPool()
    groups: list[list[ChosenReflection]] = []
    statements: list[Statement] = []
    group_of: dict[tuple[str, bool, str], int] = {}
    for reflection in scored:
        statement = Statement.of(reflection.text)
        place = group_of.get(statement.key)
        if place is None:
            alike = [row for row, _ in texts.find_similar(statement.words, MIN_SIMILARITY)]
            place = next((row for row in alike if not statement.demand.differs(statements[row].demand)), None)
        if place is None:
            place = len(groups)
            texts.add(statement.words)
            statements.append(statement)
            groups.append([])
        group_of.setdefault(statement.key, place)
        groups[place].append(reflection)
    for first, *others in groups:
        works = {one.title for one in (first, *others) if not is_key_learning(one.id)}
        own = (one for one in (first, *others) if not (is_key_learning(one.id) and one.title in works))
        sources = tuple(dict.fromkeys(source for one in own for source in one.sources))
        yield replace(first, sources=sources, same_ids=tuple(one.id for one in (first, *others))) if others else first
