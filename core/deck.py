"""One open project: library, scores, index and curator behind one door, for the command line and the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from core.curation.batches import PRUNE
from core.curation.counting import Counted, brought_counts, record_events
from core.curation.curator import Asked, Curator, Decided, Refusal
from core.curation.derived import write_derived, write_metrics
from core.curation.prospects import Prospects
from core.curation.registry import Registry
from core.curation.rules import OVERRIDE, More
from core.curation.settling import FreeIds
from core.debug_memory.index import LazyDebugIndex
from core.debug_memory.waiting import escalated
from core.embeddings import PATTERNS, TASKS, Embeddings
from core.episodes.similar import past_tasks
from core.errors import Conflict, MovedOn, UnknownRecord
from core.exchange.arriving import Arriving, read_import
from core.exchange.importing import ImportPlan, plan_import
from core.exchange.importing import Registry as Known
from core.exchange.origins import known_origin, project_origin
from core.extraction.proposals import ALL_TYPES, Extraction
from core.learning.bursts import Burst
from core.learning.scoreboard import Assessment, Scoreboard
from core.library import Library
from core.paths import ProjectPaths
from core.pruning import Prune, to_prune
from core.records.decisions import Decision, Verb
from core.records.events import Event, event_id
from core.records.findings import Finding
from core.records.loops import LoopStory
from core.records.patterns import Pattern, PatternType
from core.records.times import parse_time
from core.retrieval.index import LazyIndex
from core.retrieval.ranking import Injection
from core.review.items import ReviewItem
from core.review.probes import Probes
from core.review.queue import Found, review_queue
from core.settings import PruningSettings, Settings
from core.similarity import LazySimilarity
from core.snapshot import Delta, Snapshot
from core.sources.archives import read_archives
from core.sources.event_log import append_events
from core.sources.protection import check_writable, protect
from core.text import visible_line
from core.view import View

if TYPE_CHECKING:
    from core.extraction.offers import Offers
    from core.recurring import Cluster

_TRIES: Final = 5
"""How often a decision is worked out anew because others decided meanwhile."""


class Deck:
    """An open project. Its methods read and write files: call them from a worker, one at a time or many.

    Args:
        project: Where the files are.
        settings: All thresholds.
        by: Who decides, as the ledger will name them.
        clock: The present moment, aware UTC.
        cache: Whether to keep parsed files between runs.
        findings: What is wrong with the settings, to be told with the rest.
        readonly: Nothing is written in the project, by this process: whatever would raises `ReadOnly`.
    """

    def __init__(
        self,
        project: ProjectPaths,
        settings: Settings,
        *,
        by: str,
        clock: Callable[[], datetime],
        cache: bool = True,
        findings: tuple[Finding, ...] = (),
        readonly: bool = False,
    ) -> None:
        if readonly:
            protect(project.aiwg)
        self.is_readonly = readonly
        self.project = project
        self.settings = settings
        self.by = by
        self.library = Library(project, settings, clock=clock, cache=cache, findings=findings)
        self.curator = Curator(project, settings, by=by)
        self._clock = clock
        self._lock = threading.RLock()
        self.embeddings = Embeddings(project, PATTERNS)
        self.task_embeddings = Embeddings(project, TASKS)
        self._prospects = Prospects(settings.extraction)
        self._probes = Probes(settings)
        self._known = 0
        self._view = self._scored(self.library.snapshot)

    def now(self) -> datetime:
        """The present moment, aware UTC."""
        return self._clock()

    @property
    def view(self) -> View:
        """The newest view; share it freely."""
        return self._view

    def load(
        self,
        progress: Callable[[int, int], None] | None = None,
        publish: Callable[[View], None] | None = None,
    ) -> View:
        """Read everything, newest first.

        Args:
            progress: Told (files done, files in all).
            publish: Given a view now and then while the rest still loads.
        """

        def published(snapshot: Snapshot) -> None:
            self._view = self._scored(snapshot)
            if publish is not None:
                publish(self._view)

        with self._lock:
            snapshot = self.library.load(progress, published if publish else None)
            # What is read last, reflections, is no evidence: then the scores last published still hold.
            same = _same_evidence(snapshot, self._view.snapshot)
            self._view = self._scored(snapshot, Delta() if same else None)
            return self._view

    def look_further(self) -> Delta | None:
        """Work out one more thing that could be asked in Review; for idle moments, at most some 10 ms of work
        but for a big registry's first search for duplicates.

        Returns:
            What it changes in the view, perhaps nothing; None if nothing is left to look at.
        """
        with self._lock:
            view = self._view
            changed = self._prospects.look(view.snapshot, view.lazy_likeness, self.extraction)
            if changed is None:
                changed = self._probes.look(view.snapshot, view.board, self.recurring, self.extraction)
            if changed is None:
                return None
            if not changed:
                return Delta()
            queue = self._queue(view.snapshot, view.board, view.now)
            self._view = replace(view, queue=queue, offers=self._prospects.offers)
            return Delta(decisions=True)

    def apply(self, changed: Iterable[Path] | None) -> tuple[View, Delta]:
        """Read what changed (None: find out by a sweep) and score what that touches."""
        with self._lock:
            return self._after(*self.library.apply(changed))

    def settle(self) -> tuple[str, ...]:
        """Write what an interrupted decision left unwritten; returns warnings for a person."""
        if self.is_readonly:
            return ()
        with self._lock:
            warnings = self.curator.settle()
            self.apply((self.project.ledger, self.project.patterns))
            return warnings

    def refresh(self) -> tuple[View, Delta]:
        """Judge again what changes by time alone: liveness of loops, decay of evidence."""
        with self._lock:
            return self._after(*self.library.refresh(self._clock()))

    def embed_missing(
        self, progress: Callable[[int, int], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> int:
        """Make the vectors that patterns lack, see `Embeddings.make`, then those that tasks lack; every view uses
        them as they come.
        """
        if self.is_readonly:
            return 0
        made = self.embeddings.make(self._view.snapshot.patterns, progress, stop)
        return made + self.task_embeddings.make(past_tasks(self._view.snapshot), stop=stop)

    def story(self, loop_id: str) -> LoopStory:
        """The details of one loop, read now."""
        return self.library.story(loop_id)

    def rehearsed(self, decide: Callable[[Deck], Decided], view: View | None = None) -> View:
        """What the view would be after a decision; nothing is written, and this deck stays as it is.

        Args:
            decide: Makes the decision, on the deck that it is given.
            view: The one to start from; the newest by default.

        Raises:
            RalphdeckError: What the decision would raise.
        """
        # What only shows a project decides nothing.
        from core.rehearsal import rehearse

        return rehearse(
            decide,
            view or self._view,
            self.project,
            by=self.by,
            copies=self.library.copies,
            extraction=self.extraction,
        )

    def decide(self, decide: Callable[[Deck], Decided], *, seen: View) -> Decided:
        """Decide for a person who looks at `seen`.

        Raises:
            Conflict: Somebody decided on the same since; nothing is written. Of many patterns only this one is refused.
        """
        with self._lock, self.curator.seeing(len(seen.snapshot.decisions)):
            return decide(self)

    # Decisions. Each reads the newest files first, writes, and returns what was decided; `view` shows it.

    def promote(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Pin a pattern as proven."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.promote(p, a, now=now, reason=reason))

    def deprecate(self, pattern_id: str, *, reason: str) -> Decided:
        """Pin a pattern as deprecated: never injected until reset."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.deprecate(p, a, now=now, reason=reason))

    def reset(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Take the pin off: the arithmetic decides again."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.reset(p, a, now=now, reason=reason))

    def accept_inversion(
        self, pattern_id: str, *, text: str | None = None, better: str | None = None, reason: str = ""
    ) -> Decided:
        """Make the pattern an anti-pattern, with `text` instead of the proposed wording if given.

        Args:
            pattern_id: The pattern.
            text: The anti-pattern in other words.
            better: Id of the pattern to do instead, "" for none; None for the one that is proposed.
            reason: Why.
        """

        def accept(pattern: Pattern, assessment: Assessment, now: datetime) -> Decided:
            proposal = self._view.inversion(pattern.id)
            if text is not None:
                proposal = proposal.worded(text)
            if better is not None:
                proposal = proposal.instead(self._view.pattern(better) if better else None)
            return self.curator.accept_inversion(pattern, assessment, proposal, now=now, reason=reason)

        return self._decide(pattern_id, accept)

    def reject_inversion(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Keep the pattern as it is until some more failures come."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.reject_inversion(p, a, now=now, reason=reason))

    def snooze(
        self, pattern_id: str, *, until: datetime | None = None, uses: int | None = None, reason: str = ""
    ) -> Decided:
        """Ask again about a pattern after `until`, or once so many more uses of it are known: what comes first."""
        return self._decide(
            pattern_id, lambda p, a, now: self.curator.snooze(p, a, until=until, uses=uses, now=now, reason=reason)
        )

    def note(self, pattern_id: str, *, text: str) -> Decided:
        """Write a remark beside a pattern."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.note(p, text=text, now=now))

    def decide_many(
        self,
        verb: Verb,
        pattern_ids: Iterable[str],
        *,
        reason: str = "",
        until: datetime | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Decided:
        """Decide the same about many patterns, as one act that one undo takes back; see `Curator.decide_many`.

        Args:
            verb: promote, deprecate, reset, quarantine, release, archive, note, snooze, accept or reject an inversion.
            pattern_ids: The patterns; one that is not known is told with what is refused.
            reason: Why; of a note its text.
            until: The end of a snooze.
            progress: Told (patterns done, patterns in all).
        """
        wanted = tuple(dict.fromkeys(pattern_ids))

        def decide(now: datetime) -> Decided:
            asked: dict[str, Asked] = {}
            unknown: list[Refusal] = []
            for name in wanted:
                try:
                    pattern = self._view.pattern(name)
                    proposal = self._view.inversion(pattern.id) if verb is Verb.ACCEPT_INVERSION else None
                    asked[pattern.id] = Asked(pattern, self._view.assessment(pattern.id), proposal)
                except UnknownRecord as error:
                    unknown.append(Refusal(name, str(error)))
            return self.curator.decide_many(
                verb,
                tuple(asked.values()),
                now=now,
                known=self._known,
                reason=reason,
                until=until,
                unknown=unknown,
                progress=progress,
            )

        return self._decide_any(decide)

    def revoke(self, source: str, *, seen: Burst | None = None, reason: str = "") -> Decided:
        """Let none of the marks of a burst count.

        Args:
            source: Who gave the marks.
            seen: The burst as the person saw it; `Conflict` if it is another one by now.
        """
        return self._decide_any(lambda now: self.curator.revoke(self._burst(source, seen), now=now, reason=reason))

    def confirm(self, source: str, *, seen: Burst | None = None, reason: str = "") -> Decided:
        """Let the marks of a burst count; see `revoke`."""
        return self._decide_any(lambda now: self.curator.confirm(self._burst(source, seen), now=now, reason=reason))

    def snooze_question(
        self,
        question: str,
        *,
        until: datetime | None = None,
        more: More | None = None,
        about: str = "",
        reason: str = "",
    ) -> Decided:
        """Ask again after `until`, or with `more` evidence, what `ReviewItem.question_key` names; `about` is
        `ReviewItem.about`.
        """
        return self._decide_any(
            lambda now: self.curator.snooze_question(
                question, until=until, more=more, now=now, about=about, reason=reason
            )
        )

    def dismiss(self, question: str, summary: str, *, about: str = "", reason: str = "") -> Decided:
        """Never ask again what `ReviewItem.question_key` names; `summary` says what that means, `about` see there."""
        return self._decide_any(
            lambda now: self.curator.dismiss(question, summary, now=now, about=about, reason=reason)
        )

    def quarantine(self, pattern_id: str, *, reason: str) -> Decided:
        """Keep a pattern out of every context until somebody has seen its text."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.quarantine(p, a, now=now, reason=reason))

    def release(self, pattern_id: str, *, seen_hash: str = "", reason: str = "") -> Decided:
        """Let a pattern's text be injected.

        Args:
            pattern_id: The pattern.
            seen_hash: `content_hash` of the text that the person saw; `Conflict` if it is another one by now.
            reason: Why.
        """

        def release(pattern: Pattern, assessment: Assessment, now: datetime) -> Decided:
            if seen_hash and pattern.content_hash != seen_hash:
                raise Conflict(f"the text of {visible_line(pattern.id, 80)} is another one by now; look again")
            return self.curator.release(pattern, assessment, now=now, reason=reason)

        return self._decide(pattern_id, release)

    def restore_text(self, pattern_id: str, *, reason: str = "") -> Decided:
        """Put the text back that the standing decision on a pattern was about."""
        return self._decide(pattern_id, lambda p, a, now: self.curator.restore_text(p, a, now=now, reason=reason))

    def extraction(self, source_id: str, types: frozenset[PatternType] = ALL_TYPES) -> Extraction:
        """What could be extracted from a finished loop or task, a debug session or a recurring learning; reads
        their files, writes nothing.

        Raises:
            UnknownRecord: There is no such loop, task, session or learning.
            Refused: The loop or task has not ended, or the settings forbid it.
        """
        with self._lock:
            return self._offers.of(source_id, self._view, types)

    def recurring(self) -> tuple[Cluster, ...]:
        """The learnings that more than one loop told; see `Offers.recurring`."""
        with self._lock:
            return self._offers.recurring(self._view.snapshot)

    def unfit_learnings(self) -> Mapping[str, str]:
        """The recurring learnings that give no candidate, by id, and why; see `Offers.unfit`."""
        with self._lock:
            return self._offers.unfit(self._view)

    @cached_property
    def _offers(self) -> Offers:
        # Most commands extract nothing.
        from core.extraction.offers import Offers

        return Offers(self.project, self.settings.extraction)

    def extract(
        self,
        source_id: str,
        types: frozenset[PatternType] = ALL_TYPES,
        *,
        seen: Extraction | None = None,
        unattended: bool = False,
        reason: str = "",
    ) -> Decided:
        """Put what a loop, a debug session or a recurring learning teaches into the registry, as one decision.

        Args:
            source_id: The loop, session or learning.
            types: Only these.
            seen: The extraction as the person saw it; `Conflict` if it is another one by now.
            unattended: Nobody has looked at it: Review asks about what is new.
            reason: Why.
        """

        def decide(now: datetime) -> Decided:
            extraction = self.extraction(source_id, types)
            if seen is not None and extraction != seen:
                self._prospects.doubt()
                raise Conflict(f"{visible_line(source_id, 80)} offers something else by now; look again")
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
        with self._lock:
            ids = FreeIds(self.project)
            return self._import_plan(read_import(name, data), Registry(self.project), ids, known_origin(self.project))

    def import_patterns(self, name: str, data: bytes, *, reason: str = "") -> Decided:
        """Import a file of patterns, as one decision; see `import_plan`. What is new waits in quarantine."""
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

    def pruning(self, policy: PruningSettings | None = None) -> tuple[Prune, ...]:
        """What the policy of (3), the project's own by default, would archive now."""
        with self._lock:
            return to_prune(self._view.snapshot, self._view.board, policy or self.settings.pruning)

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

    def _burst(self, source: str, seen: Burst | None = None) -> Burst:
        for burst in self._view.board.bursts:
            if burst.source == source:
                if seen is not None and burst != seen:
                    raise Conflict(f"the marks of {visible_line(source, 80)} are others by now; look again")
                return burst
        raise UnknownRecord(f"no burst of {visible_line(source, 80)!r} waits for a verdict; see: ralphdeck bursts")

    def record(self, *events: Event, counted: list[Counted] | None = None, warnings: list[str] | None = None) -> View:
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

    def inject(self, loop_id: str, injection: Injection) -> tuple[str, ...]:
        """Write down which patterns a loop got (semantics 6.6).

        Returns:
            Those that it had not got before; the others stand written already.

        Raises:
            BadInput: An id is no valid Unicode.
            Unwritable: The event log cannot be written.
        """
        with self._lock:
            self.apply((self.project.events,))
            known = {
                event.pattern_id
                for event in self._view.snapshot.events
                if event.kind == "injected" and event.loop_id == loop_id
            }
            new = tuple(chosen.pattern_id for chosen in injection.chosen if chosen.pattern_id not in known)
            at = self._clock()
            events = [
                Event(id=event_id(at), at=at, kind="injected", pattern_id=id, loop_id=loop_id, by=self.by) for id in new
            ]
            if events:
                append_events(self.project, *events)
                self.apply((self.project.events,))
            return new

    def undo(self, decision_id: str = "") -> Decided:
        """Take the newest standing decision back, with all of its group; or the decision or group of an id, unless
        one that was made later rests on it.
        """
        return self._decide_any(lambda now: self.curator.undo(now=now, name=decision_id))

    def redo(self) -> Decided:
        """Repeat the decision that was taken back last."""
        return self._decide_any(lambda now: self.curator.redo(now=now))

    def _decide(self, pattern_id: str, decide: Callable[[Pattern, Assessment, datetime], Decided]) -> Decided:
        def decide_now(now: datetime) -> Decided:
            pattern = self._view.pattern(pattern_id)
            return decide(pattern, self._view.assessment(pattern.id), now)

        return self._decide_any(decide_now)

    def _decide_any(self, decide: Callable[[datetime], Decided]) -> Decided:
        if self.is_readonly:
            check_writable(self.project.ledger)
        with self._lock:
            touched = (self.project.ledger, self.project.patterns, self.project.events)
            for left in reversed(range(_TRIES)):
                self._known = self.curator.caught_up()
                self.apply(touched)
                try:
                    return self._with_derived(self._applied(decide, touched))
                except MovedOn:
                    if not left:
                        raise
            raise AssertionError

    def _applied(self, decide: Callable[[datetime], Decided], touched: Iterable[Path]) -> Decided:
        try:
            return decide(self._clock())
        finally:
            self.apply(touched)

    def _with_derived(self, decided: Decided) -> Decided:
        """After a decision that wrote more than overrides into records index and metrics follow."""
        effects = (effect for decision in decided.decisions for effect in decision.effects)
        if not any(
            effect.insert is not None or effect.remove or {*effect.set, *effect.text, *effect.unset} - {OVERRIDE}
            for effect in effects
        ):
            return decided
        view = self._view
        failed = write_derived(self.project, self.settings, view.snapshot, view.board, view.now)
        return msgspec.structs.replace(decided, warnings=(*decided.warnings, *failed))

    def _after(self, snapshot: Snapshot, delta: Delta) -> tuple[View, Delta]:
        if delta:
            self._view = self._scored(snapshot, delta)
            return self._view, delta
        now = self._clock()
        board = self._view.board.rescored(now)
        queue = self._queue(snapshot, board, now)
        # With time alone a snooze ends, or a pattern fades out of the queue: other questions stand.
        delta = Delta(decisions=queue != self._view.queue)
        self._view = replace(self._view, snapshot=snapshot, board=board, queue=queue, now=now)
        return self._view, delta

    def _scored(self, snapshot: Snapshot, delta: Delta | None = None) -> View:
        now = self._clock()
        if delta is None:
            board = Scoreboard.build(snapshot, now, self.settings)
            index = LazyIndex(snapshot.patterns)
            likeness = LazySimilarity(snapshot.patterns)
            debug = LazyDebugIndex(snapshot.debug_sessions)
        else:
            board = self._view.board.updated(snapshot, delta, now)
            index, likeness = self._view.lazy_index, self._view.lazy_likeness
            debug = self._view.lazy_debug
            if delta.debug_sessions:
                debug = debug.updated(snapshot.debug_sessions, delta.debug_sessions)
            if delta.patterns:
                index = index.updated(snapshot.patterns, delta.patterns)
                likeness = likeness.updated(snapshot.patterns, delta.patterns)
                self._prospects.doubt()
        queue = self._queue(snapshot, board, now)
        return View(
            snapshot,
            board,
            index,
            likeness,
            queue,
            self.settings,
            now,
            self._prospects.offers,
            self.embeddings,
            lazy_debug=debug,
        )

    def _queue(self, snapshot: Snapshot, board: Scoreboard, now: datetime) -> tuple[ReviewItem, ...]:
        prospects, probes = self._prospects, self._probes
        return review_queue(
            snapshot.patterns,
            board,
            snapshot.curation,
            now,
            self.settings,
            Found(
                alike=prospects.alike,
                offers=prospects.offers,
                recurring=probes.recurring,
                broad=probes.broad,
                unreconciled=probes.unreconciled,
            ),
            [found for one in snapshot.debug_sessions.values() if (found := escalated(one, snapshot)) is not None],
        )


def _same_evidence(one: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots give the same scores."""
    return (
        one.events == other.events
        and one.curation == other.curation
        and one.loops == other.loops
        and one.tasks == other.tasks
        and one.attempts == other.attempts
        and one.debug_sessions == other.debug_sessions
        and one.escalations == other.escalations
        and one.patterns == other.patterns
    )
