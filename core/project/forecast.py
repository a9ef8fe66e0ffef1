"""Forecast by a dry run which contexts and states a decision would change.

A dry run makes a decision in memory and scores the result. Decisions are appended to a copy of the ledger in memory.
The code that writes pattern files is applied to the affected records alone, and the usual reader parses the result. So
a forecast cannot differ from the decision.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.base.text import visible_line
from core.decisions.apply import Outcomes, Step, apply_steps, pattern_path, steps_of
from core.decisions.commands import Command, bulk
from core.decisions.curator import Curator
from core.decisions.pattern_registry import Registry, Stored, UnitOfWork, check_storable
from core.files.file_reader import MAX_PATTERN_BYTES, Problem, read_file
from core.files.json_editor import BadJson
from core.index.project_state import pattern_lineage
from core.index.review_items import DUPLICATE, ReviewItem
from core.learning.maturity import HELD, QUARANTINE, STATES, Assessment
from core.project.project import Project
from core.questions.context_recipients import (
    LOOP,
    PAUSED,
    TASK,
    ContextCache,
    Recipient,
    find_changed_rows,
    list_recipients,
    same_texts,
)
from core.records.decisions import Decision
from core.records.events import EventView
from core.records.extractions import ALL_TYPES, Extraction
from core.records.snapshot import Delta, Snapshot
from core.retrieval.rendering import count_tokens, render_context
from core.sources.keys import RecordText
from core.sources.ledger import Ledger
from core.sources.pattern_text import find, slice_file
from core.sources.patterns import join_copies, read_patterns

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.decisions.case import Decided
    from core.index.project_state import ProjectState
    from core.learning.explanation import LineageEvent
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Codes
    from core.questions.answer import Answer
    from core.records.decisions import Verb
    from core.records.events import Event
    from core.records.patterns import Pattern, PatternType
    from core.retrieval.embeddings import Coverage, Embeddings
    from core.retrieval.injection import InjectedContext
    from core.sources.ledger import DecisionLog


SHOWN: Final[tuple[str, ...]] = (*STATES, QUARANTINE, HELD)
"""The states as shown to users, including quarantine and held."""
SUPPOSED: Final = "supposed"  # Placeholder reason for a dry run that requires one; no context shows it.
_NAMED: Final = 80  # Maximum length of an ID in refusals.

Stop = Callable[[], bool]  # Called between contexts; returns True to stop.


@dataclass(frozen=True, slots=True)
class Merger:
    """The result of merging two patterns; `target` is kept.

    `before` has the assessments of both, the kept one first; `after` and `lineage` are those of the result. `saved` is
    the estimated number of tokens by which a context gets shorter than with both.
    """

    target: Pattern
    other: Pattern
    result: Pattern
    before: tuple[Assessment, Assessment]
    after: Assessment
    lineage: tuple[LineageEvent, ...]
    saved: int


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A context that would change.

    `kind`, `id` and `title` are those of the recipient (see `Recipient`). `before` and `after` are the exact texts, ""
    if nothing is injected; `tokens` has the estimated tokens of both.
    """

    kind: str
    id: str
    title: str
    before: str
    after: str
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class PatternRank:
    """How often a pattern is injected, and its rank by score.

    `given` is the number of compared contexts that contain it. `rank` starts at 1, and equal scores share the best
    rank; None if the pattern does not exist.
    """

    given: int
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The effect of a decision.

    `action` is that of the answer, "" for a decision that answers no question. `loops`, `paused` and `tasks` are the
    numbers of compared contexts of running loops, paused loops and past tasks. `changed` has those that would change,
    in this order; `tokens` are the totals before and after. `turned` has (ID, before, after) of patterns whose shown
    state (`SHOWN`) would change, `added` and `removed` the IDs that would enter or leave the registry, `places` the
    ranks before and after by pattern ID. `by_words` is the embedding coverage if vectors are missing, which can still
    change contexts when computed.
    """

    action: str = ""
    loops: int
    paused: int = 0
    tasks: int
    changed: tuple[ContextChange, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    turned: tuple[tuple[str, str, str], ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    places: tuple[tuple[str, PatternRank, PatternRank], ...] = ()
    merger: Merger | None = None
    by_words: Coverage | None = None

    def changed_of(self, kind: str) -> int:
        return sum(change.kind == kind for change in self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForecast:
    """The effect of one decision about many patterns.

    `refused` has (reason, number of patterns) and `turned` (state before, state after, number of patterns), the most
    frequent first.
    """

    asked: int
    decided: int
    refused: tuple[tuple[str, int], ...]
    turned: tuple[tuple[str, str, int], ...]
    effect: Forecast


def forecast_bulk(
    project: Project, verb: Verb, pattern_ids: Sequence[str], stop: Stop = lambda: False
) -> BulkForecast | None:
    """Forecast a verb about many patterns by a dry run; None if `stop` ended it."""
    state, asked = project.view, len(set(pattern_ids))
    try:
        found = Forecaster(project)._effect(state, bulk(verb, pattern_ids, SUPPOSED), stop)
    except RalphdeckError as error:
        effect = Forecast(loops=0, tasks=0)
        return BulkForecast(asked=asked, decided=0, refused=((str(error), asked),), turned=(), effect=effect)
    if found is None:
        return None
    effect, run = found
    # Equal reasons are counted, whatever the pattern.
    reasons = Counter(one.why.replace(visible_line(one.pattern_id, _NAMED), "it") for one in run.decided.refused)
    turned = Counter((before, after) for _, before, after in effect.turned)
    return BulkForecast(
        asked=asked,
        decided=len(run.decided.decisions),
        refused=tuple(reasons.most_common()),
        turned=tuple((before, after, count) for (before, after), count in turned.most_common()),
        effect=effect,
    )


class Forecaster:
    """Forecasts answers and caches the contexts that they share. Thread-safe."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._contexts = ContextCache()
        self._lock = threading.Lock()

    def forecast(
        self, state: ProjectState, item: ReviewItem, answer: Answer, typed: str = "", stop: Stop = lambda: False
    ) -> Forecast | None:
        """Dry-run an answer and compare the contexts; None if `stop` ended it.

        Contexts are cached while `state` stays the same. `typed` is the reason, or the text of a rewrite, if already
        typed. Raises `RalphdeckError`, with the reason as message, if the answer is refused.
        """
        about = tuple(id for id in (item.subject, item.other) if id) if item.is_about_pattern else ()
        if not answer.matters:
            return _of_readers(_readers(state, about), action=answer.action)
        typed = typed or (SUPPOSED if answer.needs_reason else "")
        with self._lock:
            found = self._effect(state, answer.with_text(typed), stop, about)
        if found is None:
            return None
        effect, run = found
        return replace(effect, action=answer.action, merger=_merger(state, run.state, item, answer))

    def effect(self, state: ProjectState, command: Command) -> tuple[Forecast, DryRun]:
        """Forecast a decision that answers no question; may raise its `RalphdeckError`."""
        with self._lock:
            found = self._effect(state, command, lambda: False)
        assert found is not None  # without `stop` it always finishes
        return found

    def _effect(
        self, state: ProjectState, command: Command, stop: Stop, about: tuple[str, ...] = ()
    ) -> tuple[Forecast, DryRun] | None:
        """Dry-run a decision; compare contexts, and the ranks of patterns in `about`."""
        by_words, contexts = state.coverage, self._contexts
        run = dry_run(self._project, command, state)
        after, same = run.state, same_texts(state, run.state)
        changed = find_changed_rows(state, after) if same else None
        readers = _readers(state, about)
        compared: dict[str, tuple[InjectedContext, InjectedContext]] = {}
        for task in dict.fromkeys(reader.task for reader in readers):
            if stop():
                return None
            now = contexts.current_context(state, task)
            compared[task] = now, contexts.dry_run_context(after, task, same=same, changed=changed)
        pairs = [(reader, *compared[reader.task]) for reader in readers]
        known, come = state.snapshot.patterns.keys(), after.snapshot.patterns.keys()
        given, supposed = [one.pattern_ids for _, one, _ in pairs], [two.pattern_ids for _, _, two in pairs]
        effect = _of_readers(
            readers,
            changed=tuple(
                ContextChange(reader.kind, reader.id, reader.task, one.context, two.context, (one.tokens, two.tokens))
                for reader, one, two in pairs
                if one.context != two.context
            ),
            tokens=(sum(one.tokens for _, one, _ in pairs), sum(two.tokens for _, _, two in pairs)),
            turned=tuple(_state_changes(state, after)),
            added=tuple(sorted(come - known)),
            removed=tuple(sorted(known - come)),
            places=tuple((id, _rank(state, id, given), _rank(after, id, supposed)) for id in about),
            by_words=by_words,
        )
        return effect, run


def _of_readers(readers: tuple[Recipient, ...], **found: Any) -> Forecast:
    kinds = Counter(reader.kind for reader in readers)
    return Forecast(loops=kinds[LOOP], paused=kinds[PAUSED], tasks=kinds[TASK], **found)


def _readers(state: ProjectState, about: tuple[str, ...]) -> tuple[Recipient, ...]:
    """Return the context recipients; if there are none, the topic of a pattern."""
    found = list_recipients(state.snapshot)
    pattern = state.snapshot.patterns.get(about[0]) if about and not found else None
    if pattern is None:
        return found
    return (Recipient("topic", pattern.id, f"{pattern.title} {pattern.description}"),)


def shown_codes(board: Scoreboard) -> Codes:
    """Return the shown state of every row as an index into `SHOWN`."""
    is_withheld = np.where(board.held, SHOWN.index(HELD), SHOWN.index(QUARANTINE))
    return np.where(board.quarantined, is_withheld, board.state_codes).astype(np.int8)


def _state_changes(state: ProjectState, after: ProjectState) -> Iterator[tuple[str, str, str]]:
    """Yield (ID, before, after) of patterns that change their shown state."""
    ids = after.board.ids
    if ids != state.board.ids:
        ids = tuple(id for id in ids if id in state.board)
    one = shown_codes(state.board)[state.board.rows_of(ids)]
    two = shown_codes(after.board)[after.board.rows_of(ids)]
    for place in np.flatnonzero(one != two).tolist():
        yield ids[place], SHOWN[one[place]], SHOWN[two[place]]


def _rank(state: ProjectState, pattern_id: str, given: list[tuple[str, ...]]) -> PatternRank:
    if pattern_id not in state.board:
        return PatternRank(0, None)
    score = state.board.score
    better = int(np.count_nonzero(score > score[state.board.row(pattern_id)]))
    return PatternRank(sum(pattern_id in ids for ids in given), better + 1)


def _merger(state: ProjectState, after: ProjectState, item: ReviewItem, answer: Answer) -> Merger | None:
    """Return the result of a merge; only `accept` keeps the subject of the question."""
    if item.kind != DUPLICATE:
        return None
    ids = (item.subject, item.other) if answer.action == "accept" else (item.other, item.subject)
    target, other = map(state.pattern, ids)
    return Merger(
        target=target,
        other=other,
        result=after.pattern(target.id),
        before=(state.assessment(target.id), state.assessment(other.id)),
        after=after.assessment(target.id),
        lineage=pattern_lineage(after, target.id),
        saved=_tokens(state, target.id, other.id) - _tokens(after, target.id),
    )


def _tokens(state: ProjectState, *pattern_ids: str) -> int:
    """Estimate the tokens of a context of these patterns, whatever their states."""
    items = [(state.pattern(id), state.assessment(id)) for id in pattern_ids]
    return count_tokens(render_context(items, state.settings.injection))


# The dry run.


class DryRun(NamedTuple):
    """A decision, and the state after it; queue and offers are those from before."""

    decided: Decided
    state: ProjectState


def dry_run(project: Project, command: Command, state: ProjectState | None = None) -> DryRun:
    """Make a decision in memory, starting from `state`, by default the newest one.

    Raises `RalphdeckError` as the decision itself would; the project is not changed.
    """
    before = state or project.view
    stage = _Stage(project, before)
    decided = stage.decide(command)
    after = stage.view
    unchanged = {name: getattr(before, name) for name in ("queue", "offers", "task_embeddings")}
    return DryRun(decided, replace(after, **unchanged, embeddings=_embeddings(before, stage.changed_patterns)))


def _embeddings(view: ProjectState, new: Mapping[str, Pattern]) -> Embeddings[Pattern] | None:
    """Return embeddings that include new and changed texts, like the next injection.

    While older texts lack vectors, none are added: the new texts would be ranked by a different method than the others.
    """
    if view.embeddings is None or not view.embeddings.missing(new) or view.coverage is not None:
        return view.embeddings
    return view.embeddings.supposing(new)


class _Stage(Project):
    """A project whose writes stay in memory."""

    def __init__(self, project: Project, state: ProjectState) -> None:
        super().__init__(
            project.project, state.settings, by=project.by, clock=lambda: state.now, cache=False, asks=False
        )
        self._real = project
        self.ledger = _MemoryLedger(project.project, state.snapshot)
        self._memory = _MemoryRecords(project, state, self.ledger)
        self.curator = _MemoryCurator(project, state, self._memory, self.ledger)
        self._view = state

    @property
    def changed_patterns(self) -> Mapping[str, Pattern]:
        """The changed and added patterns."""
        patterns = self._view.snapshot.patterns
        return {id: patterns[id] for id in self._memory.changed if id in patterns}

    def extraction(self, source_id: str, types: frozenset[PatternType] = ALL_TYPES) -> Extraction:
        """Return what the real project extracts."""
        return self._real.extraction(source_id, types)

    def _for_author(self, command: Command) -> Command:
        """Return the command as for a person; an agent would only propose it."""
        return command

    def apply(self, changed: Iterable[Path] | None) -> tuple[ProjectState, Delta]:
        """Update the scores with everything added so far; `changed` is ignored."""
        return self._after(*self._memory.refresh())

    def _append_events(self, *events: Event) -> None:
        self._memory.add_events(events)

    def _with_derived(self, decided: Decided) -> Decided:
        return decided


class _MemoryRecords:
    """A snapshot with decisions, events and changed records added to it."""

    def __init__(self, project: Project, state: ProjectState, ledger: Ledger) -> None:
        self._ledger = ledger
        self._snapshot = state.snapshot
        self._all_copies = project.index.copies
        self._changed: dict[str, tuple[Pattern, ...]] = {}
        self._new_events: tuple[Event, ...] = ()
        self.touched: set[str] = set()
        """IDs of patterns whose records changed since the last `apply`."""
        self.changed: set[str] = set()
        """IDs of all patterns that changed."""

    def add_events(self, events: Iterable[Event]) -> None:
        self._new_events = (*self._new_events, *events)

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """Return all current records of an ID."""
        changed = self._changed.get(pattern_id)
        return self._all_copies(pattern_id) if changed is None else changed

    def put(self, file: str, pattern_id: str, records: Iterable[Pattern]) -> None:
        """Replace the records of an ID in `file`."""
        others = (copy for copy in self.copies(pattern_id) if copy.file != file)
        self._changed[pattern_id] = (*others, *records)
        self.touched.add(pattern_id)

    def refresh(self) -> tuple[Snapshot, Delta]:
        """Return the snapshot with everything added so far."""
        before = self._snapshot
        joined = ((id, join_copies(self.copies(id))) for id in self.touched)
        moved = {id: pattern for id, pattern in joined if pattern != before.patterns.get(id)}
        self.touched.clear()
        self.changed |= moved.keys()
        decisions, curation = self._ledger.decisions(), self._ledger.state()
        decided = len(decisions) != len(before.decisions)
        new_events, self._new_events = self._new_events, ()
        delta = Delta(patterns=frozenset(moved), events=bool(new_events), decisions=decided)
        if delta:
            self._snapshot = before.with_changes(
                number=before.number + 1,
                patterns=_replace_patterns(before.patterns, moved) if moved else before.patterns,
                events=EventView.of(before.events).extended(new_events) if new_events else before.events,
                decisions=decisions,
                curation=curation,
            )
        return self._snapshot, delta


def _replace_patterns(known: Mapping[str, Pattern], moved: Mapping[str, Pattern | None]) -> Mapping[str, Pattern]:
    """Return patterns with some replaced or added, and without those that are None."""
    changed = {**known, **moved}
    return MappingProxyType({id: pattern for id, pattern in changed.items() if pattern is not None})


class _MemoryLedger(Ledger):
    """A ledger in memory that begins with the decisions of a snapshot."""

    def __init__(self, paths: ProjectPaths, snapshot: Snapshot) -> None:
        super().__init__(paths)
        self.log.by_id = {decision.id: decision for decision in snapshot.decisions}
        self._folded = self.log.decisions, (), snapshot.curation
        self._made_elsewhere = snapshot.curation.claims

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Do nothing: memory needs no lock."""
        yield

    def claims(self) -> frozenset[str]:
        """Return those of the snapshot: what is decided in memory is an own decision."""
        return self._made_elsewhere

    def append(self, *decisions: Decision) -> None:
        """Append decisions as they would be read from disk."""
        for one in decisions:
            self.log.by_id[one.id] = msgspec.convert(msgspec.json.decode(msgspec.json.encode(one)), Decision)

    def _log(self) -> DecisionLog:
        return self.log


class _MemoryCurator(Curator):
    """A curator that writes to a `_MemoryRecords`."""

    def __init__(self, project: Project, state: ProjectState, memory: _MemoryRecords, ledger: Ledger) -> None:
        super().__init__(project.project, state.settings, by=project.by, ledger=ledger)
        self._memory = memory
        self._done = len(ledger.decisions())

    def open_files(self) -> UnitOfWork:
        return _DryUnit(self.paths, self.ledger)

    def write_pending(self) -> Outcomes:
        """Apply the new decisions to the records in memory."""
        new = self.ledger.decisions()[self._done :]
        self._done += len(new)
        archive = f"{self.paths.relative(self.paths.archive)}/"
        known = self.ledger.by_id() if new else {}
        steps: dict[str, list[Step]] = {}
        for decision in new:
            for file in dict.fromkeys(effect.file for effect in decision.effects):
                if not file.startswith(archive):  # archived records are not part of the registry
                    steps.setdefault(file, []).extend(steps_of(decision, file, known))
        return tuple(outcome for file, todo in steps.items() for outcome in self._change(file, todo))

    def _change(self, file: str, steps: list[Step]) -> Outcomes:
        ids = dict.fromkeys(step.effect.pattern_id for step in steps)
        before = {id: [copy for copy in self._memory.copies(id) if copy.file == file] for id in ids}
        data = _text(self.paths, file, [copy for copies in before.values() for copy in copies])
        after, outcomes = apply_steps(data, steps, lambda taken: self.open_files().ids.like(taken))
        found: dict[str, list[Pattern]] = {id: [] for id in ids}
        for pattern in read_patterns(file, after).patterns if after is not None else ():
            if pattern.id in ids or not self._memory.copies(pattern.id):
                found.setdefault(pattern.id, []).append(pattern)
        for id, records in found.items():
            # Positions in files do not change in memory; a new record has none yet.
            pointers = [copy.pointer for copy in before.get(id, ())] + [""] * len(records)
            pairs = zip(records, pointers, strict=False)
            self._memory.put(file, id, [msgspec.structs.replace(one, pointer=pointer) for one, pointer in pairs])
        return outcomes


class _DryUnit(UnitOfWork):
    """The pattern files, read record by record."""

    @cached_property
    def registry(self) -> Registry:
        return _RecordRegistry(self._paths)

    def written_override(self, pattern: Pattern) -> str | None:
        """Return None; a dry run never undoes, so nothing needs the stored override."""
        return None

    def text(self, pattern: Pattern) -> dict[str, Any]:
        """Return {}; a dry run never restores texts, so nothing needs them."""
        return {}


class _RecordRegistry(Registry):
    """The records of pattern files, each read on its own if possible."""

    def record(self, pattern: Pattern) -> Stored:
        if not pattern.copy_folder and pattern.pointer:
            with suppress(BadInput, BadJson):
                pattern_path(self._paths, pattern.file)
                data = _text(self._paths, pattern.file, [pattern])
                document = RecordText(data or b"")
                record = find(document, pattern.id)
                if record is not None:
                    check_storable(record.value, pattern.id)
                    return Stored(pattern.file, record.value, document.text_at(record.path))
        return super().record(pattern)


def _text(paths: ProjectPaths, file: str, copies: Collection[Pattern]) -> bytes | None:
    """Read only these records of a file, or all of it; None if it does not exist."""
    raw = read_file(paths.inside(file), paths.aiwg, MAX_PATTERN_BYTES)
    if isinstance(raw, Problem):
        raise Unwritable(f"cannot read {visible_line(file, 160)}: it {raw.message}")
    if raw is None:
        return None
    part = slice_file(raw.data, [copy.pointer for copy in copies])
    if part is None:
        return raw.data
    # If another process wrote the file since, other records may be in these positions.
    found = sorted(pattern.id for pattern in read_patterns(file, part).patterns)
    return part if found == sorted(copy.id for copy in copies) else raw.data
