"""One open project: records, scores, decisions (all through `decide`), event log."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from core.base.errors import AlreadyDone, Conflict, RalphdeckError, Refused, StaleDecision, UnknownRecord
from core.base.formatting import shorten_id
from core.base.scanning.verdict import find_stopping_severity
from core.base.text import plural, visible_line
from core.base.user_settings import read_user_settings, user_settings_file
from core.decisions import commands, record_changes
from core.decisions.apply import FreeIds
from core.decisions.case import clean, verb_text
from core.decisions.conflicts import ExpectedState
from core.decisions.curator import Curator, Target
from core.decisions.merge import as_read
from core.decisions.pattern_registry import OVERRIDE, Registry
from core.decisions.record_changes import PRUNE
from core.decisions.undo import affected_ids
from core.decisions.use_counts import CountResult, make_counted_events, record_events
from core.files.file_access import check_writable
from core.files.user_files import team_file
from core.index.experiment import make_assignments
from core.project.reader import ProjectReader
from core.records.decisions import TURNS, Author, Decision, Verb, author_of, held_text_question_id
from core.records.events import INJECTED_REFLECTION, Event, event_id, injected_events
from core.records.extractions import Extraction
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.reflections import LESSON_ID
from core.records.snapshot import UNCHECKED
from core.records.times import parse_time
from core.show.metrics.effectiveness import Pruning, select_prunable, write_derived, write_metrics
from core.sources.events import append_assignments, append_events
from core.sources.patterns import read_archives

if TYPE_CHECKING:
    from core.base.settings import PruningSettings
    from core.decisions.case import Decided, Progress
    from core.decisions.curator import DecisionGate
    from core.decisions.import_plan import Arriving, ImportPlan
    from core.index.project_state import ProjectState
    from core.learning.bursts import Burst
    from core.learning.experiments import Assignment
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import CurationState
    from core.records.extractions import Proposal
    from core.records.snapshot import Snapshot
    from core.retrieval.injection import InjectedContext, Injection
    from core.team.gate import TeamGate
    from core.team.texts import OpenProject

    Check = Callable[[ProjectState], None]

_TRIES: Final = 5  # attempts to make a decision while other processes keep deciding


class _AddStrategies(commands.Command, frozen=True, kw_only=True):
    """Add missing patterns for the decomposition strategies of finished work."""

    verb = Verb.EXTRACT
    work_id: str
    names: tuple[str, ...]
    unattended: bool


class _Propose(commands.Command, frozen=True, kw_only=True):
    """Add a pattern that an agent proposed, unless `check` raises `Refused`."""

    verb = Verb.EXTRACT
    extraction: Extraction
    check: Check


class Project(ProjectReader):
    """Open project that decides and records events; it does I/O: call it in a worker.

    Each decision reads the newest files and then writes. When `decide` returns, `state` includes the decision.
    """

    began: Callable[[Path], str] = staticmethod(lambda folder: "")
    """Called with the folder of the project after a write made `.aiwg`; returns a note for the user."""

    _known = 0  # number of decisions in the log when the present attempt began

    @cached_property
    def curator(self) -> Curator:
        """The curator, which writes the decisions."""
        curator = Curator(self.project, self.settings, by=self.by, ledger=self.ledger)
        curator.gate = AuthorGate(weakref.proxy(self), self._team_gate)
        return curator

    @cached_property
    def _team_gate(self) -> JoinedGate:
        return JoinedGate(weakref.proxy(self))

    def apply_pending(self) -> tuple[str, ...]:
        """Finish an interrupted decision; returns warnings for the user."""
        if self.is_readonly:
            return ()
        with self._lock:
            warnings = self.curator.apply_pending()
            self.apply((self.project.ledger, self.project.patterns))
            return warnings

    def decide(
        self, command: commands.Command, *, expected_state: ProjectState | None = None, progress: Progress | None = None
    ) -> Decided:
        """Make a decision.

        `expected_state` is the state that the user saw; None means the newest one. `progress` is called with (patterns
        done, patterns in all).

        Raises Refused if the records of the newest or the seen state are not checked yet.

        Raises Proposed if an agent decides: its decision waits for a person.

        Raises Conflict if the same pattern or question was decided, or the text of the pattern changed, since
        `expected_state`. Nothing is written then; a bulk decision only leaves this pattern out. Raises RalphdeckError
        if the decision is refused, invalid or cannot be written; see `Curator`.
        """
        expected = nullcontext() if expected_state is None else self.curator.deciding_on(self._expected(expected_state))
        with self._lock, expected:
            self._require_checked(expected_state or self._view)
            if command.question and command.question in self.ledger.state().dismissed:
                raise Conflict(f"{shorten_id(command.question)} was answered meanwhile; review it again")
            command = self._for_author(command)
            signer = command.by if isinstance(command, commands.Extract) else ""
            try:
                with self.curator.signing(signer):
                    return self._decide_checked(command, progress)
            except Conflict:
                if not signer:
                    self._team_gate.catch_up()  # so that the user sees what has changed
                raise

    def _for_author(self, command: commands.Command) -> commands.Command:
        """Return the author's command; raises Proposed if an agent's waits for a person."""
        if author_of(self.by) is not Author.AGENT:
            return command
        if isinstance(command, commands.ExtractMany):
            return replace(command, commands=tuple(replace(one, unattended=True) for one in command.commands))
        if isinstance(command, commands.Extract) and not command.source_id.startswith(LESSON_ID):
            return replace(command, unattended=True)  # Review asks about each new pattern
        from core.decisions.proposals import propose

        check_writable(self.project.ledger)
        self.apply((self.project.ledger, self.project.patterns))
        with self._beginning():
            proposed = propose(self.ledger, self._view, command, by=self.by, now=self._clock())
        self.apply((self.project.ledger,))
        raise proposed

    def _decide_checked(self, command: commands.Command, progress: Progress | None = None) -> Decided:
        """Carry out a command on the newest files; repeat if another process decided."""
        if self.is_readonly:
            check_writable(self.project.ledger)
        touched = (self.project.ledger, self.project.patterns, self.project.events)
        with self._lock:
            self._require_checked(self._view)
            with self._beginning() as notes:
                for left in reversed(range(_TRIES)):
                    self._known = self.curator.settled_count()
                    self.apply(touched)
                    try:
                        decided = self._decide_now(command, self._clock(), progress)
                        break
                    except StaleDecision:
                        if not left:
                            raise
                    finally:
                        self.apply(touched)
                decided = self._with_derived(decided)
        return replace(decided, warnings=(*decided.warnings, *notes)) if notes else decided

    @contextmanager
    def _beginning(self) -> Iterator[list[str]]:
        """Call `began` if a write in this block makes `.aiwg`; its note is in the list."""
        is_new = not self.project.aiwg.exists()
        notes: list[str] = []
        try:
            yield notes
        finally:
            if is_new and self.project.aiwg.is_dir():
                notes += filter(None, [self.began(self.project.project)])

    def _require_checked(self, state: ProjectState) -> None:
        if state.snapshot.as_of is not None:
            raise Refused(UNCHECKED)

    def _decide_now(self, command: commands.Command, now: datetime, progress: Progress | None) -> Decided:
        patterns = self._view.snapshot.patterns
        match command:
            case commands.Extract():
                return self._extract(command, now)
            case commands.ExtractMany():
                return self._extract_many(command, now, progress)
            case _AddStrategies():
                return self._add_strategies(command, now)
            case _Propose():
                return self._add_proposal(command, now)
            case commands.ImportPatterns():
                return self._import_patterns(command, now)
            case commands.Merge():
                return self._merge(command, now)
            case commands.PrunePatterns():
                reasons = [(patterns[one.pattern_id], one.reason) for one in self.pruning(command.policy)]
                with self.curator.transaction(now, self._known) as act:
                    act.add(record_changes.archive(act.batch(command.reason), reasons, PRUNE))
                return act.decided
            case commands.Restore():
                with self.curator.transaction(now, self._known) as act:
                    act.add(record_changes.restore(act.batch(command.reason), command.pattern_id, patterns))
                return act.decided
            case commands.JudgeReports():
                command = replace(command, burst=self._burst(command.source, command.burst))
            case commands.ApproveReflection():
                command = self._reflection_approval(command)
        return self.curator.decide(command, self._target, now=now, known=self._known, progress=progress)

    def _expected(self, shown: ProjectState) -> ExpectedState:
        def has_changed(pattern_id: str) -> bool:
            before, now = shown.snapshot.patterns.get(pattern_id), self._view.snapshot.patterns.get(pattern_id)
            return (before and before.content_hash) != (now and now.content_hash)

        return ExpectedState(len(shown.snapshot.decisions), has_changed)

    def _target(self, pattern_id: str) -> Target:
        state = self._view
        pattern = state.pattern(pattern_id)
        return Target(pattern, state.assessment(pattern.id), lambda: state.board.proposal(pattern.id))

    def _burst(self, source: str, expected: Burst | None) -> Burst:
        for burst in self._view.board.bursts:
            if burst.source == source:
                if expected is not None and burst != expected:
                    raise Conflict(f"the reports of {visible_line(source, 80)} changed; review them again")
                return burst
        raise UnknownRecord(
            f"{visible_line(source, 80)!r} has no suspicious reports to decide; see: ralphdeck review --suspicious"
        )

    def _reflection_approval(self, command: commands.ApproveReflection) -> commands.ApproveText:
        """Return the approval of a held reflection; raises if the reflection is not held."""
        from core.retrieval.reflections import HELD_PREFIX, find_stop_reason

        name = visible_line(command.reflection_id, 80)
        learning = self._view.learnings.find(command.reflection_id)
        if learning is None:
            raise UnknownRecord(f"no pattern and no reflection {name!r}; see: ralphdeck lesson --reflections")
        limit, used = self.settings.injection.max_field_chars, self._view.board.used_scripts
        stopped = find_stop_reason(learning.text, limit, True, used)
        if not stopped.startswith(HELD_PREFIX):
            raise Refused(f"{name} cannot be approved: {stopped or 'it is not held'}")
        key = held_text_question_id(learning.id, learning.text)
        return commands.ApproveText(key=key, text=learning.text, about=f"the reflection {name}", reason=command.reason)

    def _extract(self, command: commands.Extract, now: datetime) -> Decided:
        extraction = self.extraction(command.source_id, command.types)
        if command.expected is not None and extraction != command.expected:
            if self.review is not None:
                self.review.forget(command.source_id)
            raise Conflict(f"the patterns offered by {visible_line(command.source_id, 80)} changed; review them again")
        decided = self._add_extraction(extraction, now, reason=command.reason, unattended=command.unattended)
        if not command.source_id.startswith(LESSON_ID):  # accepting a lesson uses no pattern
            self._log_extraction(decided.decision)
        if self.review is not None:
            self.review.remove(command.source_id)
        return decided

    def _extract_many(self, command: commands.ExtractMany, now: datetime, progress: Progress | None) -> Decided:
        """Extract from several sources in one act; what two offer is extracted once."""
        patterns, seen = self._view.snapshot.patterns, set[tuple[str, str]]()
        extractions: list[tuple[Extraction, bool]] = []
        for number, one in enumerate(command.commands, 1):
            extraction = self.extraction(one.source_id, one.types)
            keys = [(proposal.type.value, proposal.headline) for proposal in extraction.proposals]
            new = tuple(p for key, p in zip(keys, extraction.proposals, strict=True) if key not in seen)
            seen.update(keys)
            extraction = replace(extraction, proposals=new)
            if extraction.new or extraction.merges:
                extractions.append((extraction, one.unattended))
            if progress is not None:
                progress(number, len(command.commands))
        if not extractions:
            raise AlreadyDone("what these sessions show was proposed already")
        reason = clean(command.reason, "reason")
        with self.curator.transaction(now, self._known, is_group=len(extractions) > 1, is_whole=False) as act:
            for extraction, unattended in extractions:
                with act.skipping(extraction.source_id):
                    act.add(record_changes.extract(act.batch(reason), extraction, patterns, unattended=unattended))
        decided = act.decided
        for decision in decided.decisions:
            self._log_extraction(decision)
        if self.review is not None:
            for extraction, _ in extractions:
                self.review.remove(extraction.source_id)
        count = sum(len(decision.after["found"]) for decision in decided.decisions)
        where = plural(len(decided.decisions), "session")
        return replace(decided, summary=f"proposed {plural(count, 'lesson')} of {where}")

    def _add_extraction(
        self, extraction: Extraction, now: datetime, *, reason: str = "", unattended: bool, by_agent: bool = False
    ) -> Decided:
        patterns = self._view.snapshot.patterns
        with self.curator.transaction(now, self._known) as act:
            batch = act.batch(reason)
            act.add(record_changes.extract(batch, extraction, patterns, unattended=unattended, by_agent=by_agent))
        return act.decided

    def _log_extraction(self, decision: Decision) -> None:
        events = (
            Event(
                id=event_id(decision.at),
                at=parse_time(found["at"]) or decision.at,
                kind="extracted",
                pattern_id=pattern_id,
                loop_id=found["loop"],
                by=decision.by,
                decision=decision.id,
            )
            for pattern_id, found in decision.after["found"].items()
        )
        self._append_events(*events)

    def _append_events(self, *events: Event) -> None:
        append_events(self.project, *events)

    def import_plan(self, name: str, data: bytes) -> ImportPlan:
        """Return what `ImportPatterns` would change, without writing."""
        from core.decisions.import_plan import read_import
        from core.decisions.merge import known_origin

        with self._lock:
            ids = FreeIds(self.project)
            return self._plan_import(read_import(name, data), Registry(self.project), ids, known_origin(self.project))

    def _import_patterns(self, command: commands.ImportPatterns, now: datetime) -> Decided:
        from core.decisions.import_plan import read_import
        from core.decisions.merge import project_origin

        arriving = read_import(command.name, command.data)
        origin = project_origin(self.project, self.settings.watch.retry_seconds)
        with self.curator.transaction(now, self._known) as act:
            batch = act.batch(command.reason)
            plan = self._plan_import(arriving, batch.registry, batch.ids, origin)
            act.add(record_changes.import_patterns(batch, plan, self._view.snapshot.patterns))
        self._record_merged_counts(act.decided.decision, act.decided.decision.after["joined"])
        return act.decided

    def _plan_import(self, arriving: Arriving, registry: Registry, ids: FreeIds, origin: str) -> ImportPlan:
        from core.decisions.import_plan import LocalRegistry, plan_import

        snapshot = self._view.snapshot
        archives, _ = read_archives(self.project)
        ids.reserve(pattern.id for pattern, _ in arriving.records)
        known = LocalRegistry(
            patterns=snapshot.patterns,
            records=registry.records(snapshot.patterns.values()),
            imported=snapshot.curation.imported,
            archived=frozenset(archived.pattern.id for archived in archives),
            index=self._view.similarity,
            threshold=self.settings.extraction.similarity_threshold,
            origin=origin,
        )
        return plan_import(arriving, known, ids.next, self._clock())

    def _merge(self, command: commands.Merge, now: datetime) -> Decided:
        target, other = self._view.pattern(command.target_id), self._view.pattern(command.other_id)
        with self.curator.transaction(now, self._known) as act:
            act.add(record_changes.merge(act.batch(command.reason), target, other))
        self._record_merged_counts(act.decided.decision, (target.id,))
        return act.decided

    def _record_merged_counts(self, decision: Decision, pattern_ids: Iterable[str]) -> None:
        state, _ = self.apply((self.project.ledger, self.project.patterns))
        if events := make_counted_events(state.snapshot, state.board, pattern_ids, decision):
            self._append_events(*events)

    def pruning(self, policy: PruningSettings | None = None) -> tuple[Pruning, ...]:
        """Return what a pruning policy (default: that of the settings) would archive now."""
        with self._lock:
            return select_prunable(self._view.snapshot, self._view.board, policy or self.settings.pruning)

    def _with_derived(self, decided: Decided) -> Decided:
        """Update index and metrics unless only overrides changed; adds their warnings."""
        effects = (effect for decision in decided.decisions for effect in decision.effects)
        if not any(
            effect.insert is not None or effect.remove or {*effect.set, *effect.text, *effect.unset} - {OVERRIDE}
            for effect in effects
        ):
            return decided
        state = self._view
        failed = write_derived(self.project, self.settings, state.snapshot, state.board, state.now)
        return replace(decided, warnings=(*decided.warnings, *failed))

    def record(
        self, *events: Event, counted: list[CountResult] | None = None, warnings: list[str] | None = None
    ) -> ProjectState:
        """Append events durably to the event log, then update records and metrics.

        `counted` receives the change of each pattern record, `warnings` the reasons if metrics could not be written.
        """
        touched = (self.project.patterns, self.project.events)

        def read() -> tuple[Snapshot, Scoreboard]:
            state, _ = self.apply(touched)
            return state.snapshot, state.board

        with self._lock:
            self._require_checked(self._view)
            found = record_events(self.project, self.settings, events, now=self._clock(), read=read)
            if counted is not None:
                counted += found
            state, _ = self.apply(touched)
            if state.snapshot.complete and any(event.pattern_id or event.kind == "outcome" for event in events):
                failed = write_metrics(self.project, self.settings, state.snapshot, state.board, state.now)
                if warnings is not None:
                    warnings += failed
            return state

    def learn_strategies(
        self, work_id: str, *, counted: list[CountResult] | None = None, warnings: list[str] | None = None
    ) -> tuple[str, ...]:
        """Count and return the decomposition strategies that finished work used.

        A strategy without a pattern gets one. If its text is not one of the common strategies, it is held. See
        docs/scoring.md; `counted` and `warnings` are those of `record`.
        """
        from core.questions.extraction import recorded_work

        with self._lock:
            self._require_checked(self._view)
            state = self._view
            names = recorded_work.find_used_strategies(work_id, state.snapshot, state.board)
            _, missing = recorded_work.find_strategies(names, state.snapshot.patterns)
            for common in (True, False):
                if own := tuple(name for name in missing if recorded_work.is_common(name) is common):
                    with suppress(Refused):  # another process added them
                        self._decide_checked(_AddStrategies(work_id=work_id, names=own, unattended=not common))
            state = self._view
            found, _ = recorded_work.find_strategies(names, state.snapshot.patterns)
            events = tuple(
                recorded_work.make_use_events(
                    work_id, found.values(), state.snapshot, state.board, self._clock(), self.by
                )
            )
            if events:
                self.record(*events, counted=counted, warnings=warnings)
            return names

    def _add_strategies(self, command: _AddStrategies, now: datetime) -> Decided:
        from core.questions.extraction import recorded_work

        _, missing = recorded_work.find_strategies(command.names, self._view.snapshot.patterns)
        proposed = recorded_work.propose_strategies(command.work_id, missing)
        return self._add_extraction(proposed, now, unattended=command.unattended)

    def propose(self, proposal: Proposal, source_id: str, *, by: str, reason: str, check: Check) -> Decided:
        """Add a pattern that an agent proposed; not injected until a person releases it.

        `by` signs it, and `reason` is shown in Review. `check` gets the newest state and may raise `Refused`.
        """
        extraction = Extraction(source_id=source_id, proposals=(proposal,))
        with self._lock, self.curator.signing(by):
            return self._decide_checked(_Propose(extraction=extraction, check=check, reason=reason))

    def _add_proposal(self, command: _Propose, now: datetime) -> Decided:
        command.check(self._view)
        return self._add_extraction(command.extraction, now, reason=command.reason, unattended=True, by_agent=True)

    def assign(self, work_id: str, task: str, assigned: Sequence[Assignment]) -> None:
        """Record what the experiment gives and holds out, before the work gets the rest.

        `task` is the key of the task; if it is "", nothing is recorded. Raises Unwritable if the event log cannot be
        written, Refused if the records are not checked yet.
        """
        if task and assigned:
            with self._lock:
                self._require_checked(self._view)
                self.apply((self.project.events,))
                at = self._clock()
                events = make_assignments(self._view, task, assigned, work_id, self.by, at)
                if events:
                    with self._beginning():
                        append_assignments(self.project, *events)
                    self.apply((self.project.events,))

    def inject(self, loop_id: str, injection: Injection | InjectedContext, comment: str = "") -> Injected:
        """Record patterns and reflections as injected into a loop, with the `comment`.

        Returns the IDs that were not recorded for this loop before. Raises BadInput if an ID is not valid Unicode,
        Unwritable if the event log cannot be written, Refused if the records are not checked yet.
        """
        with self._lock:
            self._require_checked(self._view)
            self.apply((self.project.events,))
            events = [event for event in self._view.snapshot.events if event.loop_id == loop_id]
            known = {event.pattern_id for event in events if event.kind == "injected"}
            patterns = tuple(id for id in injection.pattern_ids if id not in known)
            known = {event.reflection_id for event in events if event.kind == INJECTED_REFLECTION}
            reflections = tuple(id for id in injection.reflection_ids if id not in known)
            at = self._clock()
            tokens = self._view.count_tokens(patterns)
            new = injected_events(loop_id, patterns, reflections, at=at, by=self.by, comment=comment, tokens=tokens)
            if new:
                with self._beginning():
                    append_events(self.project, *new)
                state, _ = self.apply((self.project.events,))
                if patterns and state.snapshot.complete:
                    write_metrics(self.project, self.settings, state.snapshot, state.board, state.now)
            return Injected(patterns, reflections)


class Injected(NamedTuple):
    """Return the IDs that were recorded as injected into a loop."""

    patterns: tuple[str, ...]
    reflections: tuple[str, ...]


_INJECTED: Final = (Maturity.PROVEN, Maturity.ESTABLISHED)


class AuthorGate:
    """Accepts what the author of the decisions may decide; then the team decides.

    An agent may add candidates. A script may do what `decisions.scripts` of the user's own settings allows.
    """

    def __init__(self, project: OpenProject, team: DecisionGate) -> None:
        self._project = project
        self._team = team

    @property
    def note(self) -> str:
        return self._team.note

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        refusals = self._refusals(decisions)
        left = [one for one in decisions if one.id not in refusals]
        if refusals and (is_whole or not left):
            raise Refused(next(iter(refusals.values())))
        return {**refusals, **self._team.admit(left, is_whole=is_whole)}

    def _refusals(self, decisions: Sequence[Decision]) -> dict[str, str]:
        others = [one for one in decisions if not adds_candidates(one)]
        author = author_of(decisions[0].by)
        if not others or author is Author.PERSON:
            return {}
        if author is Author.AGENT:
            raise Refused(f"an agent cannot {verb_text(others[0])}: a person has to decide that")
        allowed = read_user_settings().decisions.scripts
        if allowed == "none":
            raise Refused("a script decides nothing here (decisions.scripts is none); decide at a terminal")
        return {} if allowed == "all" else dict(self._releases(decisions))

    def _releases(self, decisions: Sequence[Decision]) -> Iterator[tuple[str, str]]:
        """Yield the decisions that let a stopped text through, with a refusal."""
        known = self._project.ledger.by_id()
        ledger = self._project.ledger
        before, after = ledger.state(), ledger.state_with(decisions)
        texts = self._project.view.snapshot.patterns
        for decision in decisions:
            about = affected_ids(decision)
            if decision.verb in TURNS and (other := known.get(decision.subject)) is not None:
                about = about | affected_ids(other)
            patterns = [texts[one] for one in about if one in texts]
            patterns += [
                as_read({**effect.insert, "id": effect.pattern_id}, PatternType(effect.type))
                for effect in decision.effects
                if effect.insert is not None
            ]
            released = any(self._is_stopped(one, before) and not self._is_stopped(one, after) for one in patterns)
            if released or (decision.verb is not Verb.UNDO and after.approved_texts - before.approved_texts):
                yield (
                    decision.id,
                    "a script releases no text that is held, blocked or in quarantine: read it and decide at a "
                    f'terminal, or set scripts = "all" in the group decisions of {user_settings_file()}',
                )

    def _is_stopped(self, pattern: Pattern, curation: CurationState) -> bool:
        """Whether a text waits for a person to read it; it may be deprecated, too."""
        pin = curation.pins.get(pattern.id)
        if pin is not None and pin.state in _INJECTED and pin.content_hash == pattern.content_hash:
            return False
        arrival = curation.arrivals.get(pattern.id)
        if arrival is not None and arrival.blocks and arrival.needs_review(pattern.content_hash):
            return True
        return find_stopping_severity(pattern, curation, self._project.settings.scan) is not None


def adds_candidates(decision: Decision) -> bool:
    """Whether a decision only adds candidates and uses, not an agent's lesson."""
    return decision.verb is Verb.EXTRACT and not decision.subject.startswith(LESSON_ID)


class JoinedGate:
    """Accepts all decisions unless a team is joined; imports `core.team` only then."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._gate: TeamGate | None = None
        self._stamp: tuple[int, int] | None = None  # of the file with the joined projects
        self._problem = ""  # why the gate of a team cannot be opened

    @property
    def note(self) -> str:
        return self._gate.note if self._gate is not None else self._problem

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        gate = self._find_gate()
        return gate.admit(decisions, is_whole=is_whole) if gate is not None else {}

    def catch_up(self) -> None:
        """Receive what others have decided, after a conflict."""
        if self._gate is not None:
            self._gate.catch_up()

    def _find_gate(self) -> TeamGate | None:
        try:
            status = team_file().stat()
        except OSError:
            stamp = None
        else:
            stamp = status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            self._stamp = stamp
            if self._gate is not None:
                self._gate.close()
            self._gate, self._problem = None, ""
            try:
                self._gate = self._open_gate() if stamp is not None else None
            except RalphdeckError as error:  # it is sent by the next sync that can use these files
                self._problem = f"not sent to the team: {error}"
                self._stamp = None  # the next decision tries again
        return self._gate

    def _open_gate(self) -> TeamGate | None:
        from core.team.connection import find_joined

        joined = find_joined(self._project.project.project)
        if joined is None:
            return None
        from core.team.gate import TeamGate

        return TeamGate(self._project, joined)
