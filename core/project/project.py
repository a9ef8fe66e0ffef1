"""One open project: library, scores, index and curator behind one door, for the command line and the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from core.base.errors import Conflict, Refused
from core.base.text import visible_line
from core.config.settings import PruningSettings
from core.curation.apply import FreeIds
from core.curation.conflicts import Seen
from core.curation.curator import Decided
from core.curation.pattern_registry import Registry
from core.curation.record_changes import PRUNE
from core.curation.use_counts import Counted, brought_counts, record_events
from core.learning.scoreboard import Assessment, Scoreboard
from core.metrics.derived_files import write_metrics
from core.metrics.pruning import Pruning, select_prunable
from core.project.decisions import Decider
from core.records.decisions import Decision
from core.records.events import INJECTED_REFLECTION, Event, event_id
from core.records.extractions import ALL_TYPES, Extraction
from core.records.patterns import Pattern, PatternType
from core.records.snapshot import Snapshot
from core.records.times import parse_time
from core.retrieval.injection import Injection
from core.sources.archives import read_archives
from core.sources.event_log import append_events
from core.state.project_state import ProjectState

if TYPE_CHECKING:  # what only an import of patterns needs is imported with it
    from core.curation.exchange.import_file import Arriving
    from core.curation.exchange.import_plan import ImportPlan


class Project(Decider):
    """An open project. Its methods read and write files: call them from a worker, one at a time or many.

    See `Reader` for what is read, `Decider` for what is decided about one pattern or question; here is what takes whole
    records in or out, and what is recorded of their use.
    """

    def rehearsed(self, decide: Callable[[Project], Decided], view: ProjectState | None = None) -> ProjectState:
        """What the view would be after a decision; nothing is written, and this deck stays as it is.

        Args:
            decide: Makes the decision, on the deck that it is given.
            view: The one to start from; the newest by default.

        Raises:
            RalphdeckError: What the decision would raise.
        """
        # What only shows a project decides nothing.
        from core.forecast.dry_run import rehearse

        return rehearse(
            decide,
            view or self._view,
            self.project,
            by=self.by,
            copies=self.library.copies,
            extraction=self.extraction,
        )

    def decide(self, decide: Callable[[Project], Decided], *, seen: ProjectState) -> Decided:
        """Decide for a person who looks at `seen`.

        Raises:
            Conflict: Somebody decided on the same since, or the text of a pattern is another one by now; nothing is
                written. Of many patterns only this one is refused.
        """
        shown = seen.snapshot.patterns

        def is_other(pattern_id: str) -> bool:
            now = self._view.snapshot.patterns
            return _text_hash(shown, pattern_id) != _text_hash(now, pattern_id)

        with self._lock, self.curator.seeing(Seen(len(seen.snapshot.decisions), is_other)):
            return decide(self)

    def extract(
        self,
        source_id: str,
        types: frozenset[PatternType] = ALL_TYPES,
        *,
        seen: Extraction | None = None,
        unattended: bool = False,
        reason: str = "",
        by: str = "",
    ) -> Decided:
        """Put what a loop, a debug session or a recurring learning teaches into the registry, as one decision.

        Args:
            source_id: The loop, session or learning.
            types: Only these.
            seen: The extraction as the person saw it; `Conflict` if it is another one by now.
            unattended: Nobody has looked at it: Review asks about what is new.
            reason: Why.
            by: Who signs, if not who opened the project.
        """

        def decide(now: datetime) -> Decided:
            extraction = self.extraction(source_id, types)
            if seen is not None and extraction != seen:
                self._prospects.doubt()
                raise Conflict(f"{visible_line(source_id, 80)} offers something else by now; look again")
            with self.curator.signing(by):
                decided = self.curator.extract(
                    extraction,
                    self._view.snapshot.patterns,
                    now=now,
                    known=self._known,
                    reason=reason,
                    unattended=unattended,
                )
            self._log_extraction(decided.decision)
            self._prospects.take(source_id)
            self._probes.take(source_id)
            return decided

        return self._decide_any(decide)

    def _log_extraction(self, decision: Decision) -> None:
        """(0) 8_update_effectiveness_metrics: log extraction event."""
        self._append_events(
            *(
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
        )

    def _append_events(self, *events: Event) -> None:
        append_events(self.project, *events)

    def import_plan(self, name: str, data: bytes) -> ImportPlan:
        """What importing a file of patterns would change; nothing is written.

        Args:
            name: Of the file, without folders.
            data: Its content.
        """
        from core.curation.exchange.import_file import read_import
        from core.curation.exchange.origins import known_origin

        with self._lock:
            ids = FreeIds(self.project)
            return self._import_plan(read_import(name, data), Registry(self.project), ids, known_origin(self.project))

    def import_patterns(self, name: str, data: bytes, *, reason: str = "") -> Decided:
        """Import a file of patterns, as one decision; see `import_plan`. What is new waits in quarantine."""
        from core.curation.exchange.import_file import read_import
        from core.curation.exchange.origins import project_origin

        arriving = read_import(name, data)
        origin = project_origin(self.project, self.settings.watch.retry_seconds)

        def decide(now: datetime) -> Decided:
            decided = self.curator.import_patterns(
                lambda batch: self._import_plan(arriving, batch.registry, batch.ids, origin),
                self._view.snapshot.patterns,
                now=now,
                known=self._known,
                reason=reason,
            )
            self._keep_brought_counts(decided.decision, decided.decision.after["joined"])
            return decided

        return self._decide_any(decide)

    def _import_plan(self, arriving: Arriving, registry: Registry, ids: FreeIds, origin: str) -> ImportPlan:
        from core.curation.exchange.import_plan import Registry as Known
        from core.curation.exchange.import_plan import plan_import

        snapshot = self._view.snapshot
        archives, _ = read_archives(self.project)
        ids.reserve(arriving.ids)
        known = Known(
            patterns=snapshot.patterns,
            records=registry.records(snapshot.patterns.values()),
            imported=snapshot.curation.imported,
            archived=frozenset(archived.pattern.id for archived in archives),
            index=self._view.likeness,
            threshold=self.settings.extraction.similarity_threshold,
            origin=origin,
        )
        return plan_import(arriving, known, ids, self._clock())

    def merge(self, kept_id: str, other_id: str, *, reason: str = "") -> Decided:
        """Make one pattern of two that say the same; the other one is archived."""

        def decide(now: datetime) -> Decided:
            kept, other = self._view.pattern(kept_id), self._view.pattern(other_id)
            decided = self.curator.merge(kept, other, now=now, known=self._known, reason=reason)
            self._keep_brought_counts(decided.decision, (kept.id,))
            return decided

        return self._decide_any(decide)

    def _keep_brought_counts(self, decision: Decision, pattern_ids: Iterable[str]) -> None:
        view, _ = self.apply((self.project.ledger, self.project.patterns))
        if events := brought_counts(view.snapshot, view.board, pattern_ids, decision):
            self._append_events(*events)

    def archive(self, pattern_id: str, *, reason: str) -> Decided:
        """Move a pattern out of the registry into the archive."""

        def archive(pattern: Pattern, _assessment: Assessment, now: datetime) -> Decided:
            reasons = ((pattern, reason),)
            known = self._known
            return self.curator.archive(reasons, subject=pattern.id, now=now, known=known, reason=reason)

        return self._decide(pattern_id, archive)

    def pruning(self, policy: PruningSettings | None = None) -> tuple[Pruning, ...]:
        """What the policy of (3), the project's own by default, would archive now."""
        with self._lock:
            return select_prunable(self._view.snapshot, self._view.board, policy or self.settings.pruning)

    def prune(self, policy: PruningSettings | None = None, *, reason: str = "") -> Decided:
        """Archive what `pruning` names, as one decision."""

        def decide(now: datetime) -> Decided:
            patterns = self._view.snapshot.patterns
            reasons = [(patterns[prune.pattern_id], prune.reason) for prune in self.pruning(policy)]
            return self.curator.archive(reasons, subject=PRUNE, now=now, known=self._known, reason=reason)

        return self._decide_any(decide)

    def restore(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Bring a pattern back from the archive."""

        def decide(now: datetime) -> Decided:
            patterns = self._view.snapshot.patterns
            return self.curator.restore(pattern_id, patterns, now=now, known=self._known, reason=reason)

        return self._decide_any(decide)

    def record(
        self, *events: Event, counted: list[Counted] | None = None, warnings: list[str] | None = None
    ) -> ProjectState:
        """Write events down; durable, and counted in the view, on return. Records and metrics follow.

        Args:
            counted: Gets what became of the record of each pattern.
            warnings: Gets why the metrics could not be written.
        """
        touched = (self.project.patterns, self.project.events)

        def read() -> tuple[Snapshot, Scoreboard]:
            view, _ = self.apply(touched)
            return view.snapshot, view.board

        with self._lock:
            found = record_events(self.project, self.settings, events, now=self._clock(), read=read)
            if counted is not None:
                counted += found
            view, _ = self.apply(touched)
            if view.snapshot.complete and any(event.pattern_id or event.kind == "outcome" for event in events):
                failed = write_metrics(self.project, self.settings, view.snapshot, view.board, view.now)
                if warnings is not None:
                    warnings += failed
            return view

    def learn_strategies(
        self, work_id: str, *, counted: list[Counted] | None = None, warnings: list[str] | None = None
    ) -> tuple[str, ...]:
        """Count the decomposition strategies that a finished loop or attempt used; see docs/scoring.md.

        A strategy without a pattern gets one; a text that is not one of the common strategies waits for approval.

        Args:
            work_id: The loop or attempt.
            counted, warnings: See `record`.

        Returns:
            The names of its strategies.
        """
        from core.extraction import strategies

        with self._lock:
            view = self._view
            names = strategies.find_used_strategies(work_id, view.snapshot, view.board)
            _, missing = strategies.find_strategies(names, view.snapshot.patterns)
            for common in (True, False):
                if own := [name for name in missing if strategies.is_common(name) is common]:
                    self._add_strategies(work_id, own, unattended=not common)
            view = self._view
            found, _ = strategies.find_strategies(names, view.snapshot.patterns)
            events = tuple(
                strategies.make_use_events(work_id, found.values(), view.snapshot, view.board, self._clock(), self.by)
            )
            if events:
                self.record(*events, counted=counted, warnings=warnings)
            return names

    def _add_strategies(self, work_id: str, names: list[str], *, unattended: bool) -> None:
        from core.extraction import strategies

        def decide(now: datetime) -> Decided:
            patterns = self._view.snapshot.patterns
            _, missing = strategies.find_strategies(names, patterns)
            proposed = strategies.propose_strategies(work_id, missing)
            return self.curator.extract(proposed, patterns, now=now, known=self._known, unattended=unattended)

        with suppress(Refused):  # another process added them
            self._decide_any(decide)

    def inject(self, loop_id: str, injection: Injection) -> Injected:
        """Record which patterns and reflections a loop got, so that their effect can be measured.

        Returns:
            Those that were not on record for this loop yet.

        Raises:
            BadInput: An id is no valid Unicode.
            Unwritable: The event log cannot be written.
        """
        with self._lock:
            self.apply((self.project.events,))
            events = [event for event in self._view.snapshot.events if event.loop_id == loop_id]
            known = {event.pattern_id for event in events if event.kind == "injected"}
            patterns = tuple(one.pattern_id for one in injection.chosen if one.pattern_id not in known)
            known = {event.reflection_id for event in events if event.kind == INJECTED_REFLECTION}
            reflections = tuple(one.id for one in injection.reflections.chosen if one.id not in known)
            at = self._clock()

            def made(kind: str, *, pattern_id: str = "", reflection_id: str = "") -> Event:
                return Event(
                    id=event_id(at),
                    at=at,
                    kind=kind,
                    pattern_id=pattern_id,
                    loop_id=loop_id,
                    by=self.by,
                    reflection_id=reflection_id,
                )

            new = [made("injected", pattern_id=id) for id in patterns]
            new += [made(INJECTED_REFLECTION, reflection_id=id) for id in reflections]
            if new:
                append_events(self.project, *new)
                self.apply((self.project.events,))
            return Injected(patterns, reflections)


class Injected(NamedTuple):
    """IDs that were recorded as injected into a loop."""

    patterns: tuple[str, ...]
    reflections: tuple[str, ...]


def _text_hash(patterns: Mapping[str, Pattern], pattern_id: str) -> str | None:
    pattern = patterns.get(pattern_id)
    return None if pattern is None else pattern.content_hash
