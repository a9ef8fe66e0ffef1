"""An open project for reading, with a state that is updated incrementally."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import structs

from core.base.errors import DamagedError, Unwritable
from core.base.steps import run_all
from core.files.file_access import protect
from core.index.experiment import find_experiment
from core.index.project_state import ProjectState
from core.index.refresh import Index
from core.index.scores import find_board
from core.index.snapshot import IndexedSnapshot
from core.index.texts import find_texts
from core.project.adapter_files import AdapterFiles
from core.records.extractions import ALL_TYPES, Extraction
from core.records.snapshot import Delta, Snapshot
from core.retrieval.embeddings import INSTRUCTIONS, PATTERNS, SURELY_MANY, TASKS, Embeddings, is_available
from core.sources.ledger import Ledger
from core.tasks.task_links import embeddable_work
from core.trust.projects import is_trusted, require_trust

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.index.review_items import ReviewItem
    from core.index.texts import Texts
    from core.index.verdicts import IndexVerdicts
    from core.learning.scoreboard import Scoreboard
    from core.project.review_queue import ReviewQueue
    from core.questions.conflict import FoundPairs
    from core.questions.extraction.extractor import Extractor
    from core.questions.extraction.learnings import Cluster
    from core.records.findings import Finding
    from core.records.loops import LoopDetails
    from core.records.patterns import OldRecords, PatternType
    from core.records.reflections import JoinedLesson
    from core.sources.adapters.contract import AdapterRecords, AdapterReport, Delivery

_ANY_CONTEXT: Final = "## Anti-Patterns\n\n1. Any\n"  # to learn how a runner gets one


class ProjectReader:
    """Open project for reading, with its newest state.

    `by` is the reviewer's name in the ledger; `clock` returns the current time in UTC. With `cache`, the index is kept
    between runs. `findings` are problems in the settings. With `readonly`, every write in the project raises
    `ReadOnly`. Without `asks` there are no review questions, which makes a short run faster.
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
        asks: bool = True,
    ) -> None:
        if readonly:
            protect(project.aiwg)
        self.is_readonly = readonly
        self.project = project
        self.settings = settings
        self.by = by
        self.ledger = Ledger(project)
        self.index = Index(project, settings, clock=clock, is_kept=cache, findings=findings, ledger=self.ledger)
        self.adapters = AdapterFiles(project, settings, clock, cache=cache)
        self._kept_count: tuple[int, bool] | None = None  # number of questions in the index, and if it is final
        self._clock = clock
        self._lock = threading.RLock()
        self.embeddings = Embeddings(project, PATTERNS)
        self.task_embeddings = Embeddings(project, TASKS)
        self.instruction_embeddings = Embeddings(project, INSTRUCTIONS)
        self.agent = ""  # name of the agent that reports and extracts; "" for the agents named in the files
        self._settled: Snapshot | None = None  # the newest one for which the index has done what no change waits for
        self.review = self._make_review() if asks else None
        self._view = self._scored(self.index.snapshot)

    def _make_review(self) -> ReviewQueue:
        from core.project.review_queue import ReviewQueue  # a run without questions does not need it
        from core.questions.search import QuestionSearch

        here = weakref.proxy(self)  # a cycle would keep the project until the next collection
        stored = self._verdicts
        search = QuestionSearch(
            self.settings,
            lambda: here._extractor,
            lambda source_id, view: here._extractor.extract(source_id, view, ALL_TYPES, here.agent),
            stored,
        )
        return ReviewQueue(search, self.settings, self._clock, self.by, self.project.project)

    def now(self) -> datetime:
        """Current time, as an aware UTC datetime."""
        return self._clock()

    @property
    def view(self) -> ProjectState:
        """The newest state."""
        return self._view

    def load(
        self, progress: Callable[[int, int], None] | None = None, publish: Callable[[ProjectState], None] | None = None
    ) -> ProjectState:
        """Read what changed since the last run, newest first.

        `progress` is called with (files done, files in all), `publish` with partial states of a project that is read
        for the first time.
        """

        def published(snapshot: Snapshot) -> None:
            self._view = self._scored(snapshot)
            if publish is not None:
                publish(self._view)

        with self._lock:
            try:
                snapshot = self.index.load(progress, published if publish is not None else None)
            except BaseException:  # nothing may be decided on records that were not checked
                if self.review is not None:
                    self.review.earlier_count = 0
                self._view = self._scored(Snapshot())
                raise
            try:
                self._view = self._scored(snapshot)
            except DamagedError:
                self.recover()
            self._remember_patterns()
            return self._view

    def _remember_patterns(self) -> None:
        """Record once a trusted project's patterns; numbers of later ones do not count."""
        origins = self.index.origins
        if not origins.do_claims_count and not origins.has_patterns and is_trusted(self.project):
            with suppress(Unwritable):
                origins.add_patterns(self._view.snapshot.patterns.values())

    def show(self, kept: ProjectState) -> None:
        """Show the state of the last run until `load` has checked the records."""
        self._view = kept
        if self.review is not None:
            self.review.earlier_count = kept.pending_count

    def keep_questions(self) -> None:
        """Store a changed number of review questions for the next start; needs no lock."""
        newest = self._view.pending_count, self.review is not None and self.review.is_searched
        if self._view.snapshot.complete and newest != self._kept_count:
            self._kept_count = newest
            self.index.keep_questions(*newest)

    def search_next(self) -> Delta | None:
        """Do one step (at most about 10 ms) of the searches for review questions.

        Returns the changes of the state, which may be none; None if nothing is left to search.
        """
        with self._lock:
            if (settled := self._settle()) is not None:
                return settled
            view = self._view
            after = self.review.search_next(view) if self.review is not None else None
            if after is None:
                return None
            self._view = after
            return Delta(decisions=after is not view)

    def _settle(self) -> Delta | None:
        """Index for some time what no change waits for; None if nothing is left."""
        snapshot = self._view.snapshot
        if not self._view.texts.is_stored or snapshot is self._settled:
            return None
        is_settled, after, delta = self.index.settle()
        if after is not snapshot:
            self._view = self._scored(after, delta)
        if not is_settled:
            return delta
        self._settled = after
        return delta or None

    def search_all(self, seconds: float = inf) -> ProjectState:
        """Do all searches for review questions, for commands that have no idle time.

        After about `seconds` the state has what was found until then, and `review.is_searched` is not set.
        """
        with self._lock:
            if (review := self.review) is not None:
                end = monotonic() + seconds
                if not review.is_finished(self._view):
                    while self._settle() is not None or review.look(self._view):
                        if monotonic() > end:
                            self._view = review.collect(self._view)
                            return self._view
                self._view = review.finish(self._view)
            return self._view

    def check_anchors(self) -> None:
        """Compare patterns' anchors with Git history, unless done for this commit."""
        from core.index.anchors import check_in_steps

        if self.settings.review.check_anchors:
            run_all(check_in_steps(self._view.snapshot, self._verdicts))

    def apply(self, changed: Iterable[Path] | None) -> tuple[ProjectState, Delta]:
        """Read the files in `changed` (None: find them by a sweep) and update the scores."""
        with self._lock:
            return self._after(*self.index.refresh(changed))

    def read_adapted(self) -> None:
        """Read the files of agents and runners once, to their end."""
        self.replace_adapted(self.adapters.read_all())

    def adapter_reports(self) -> tuple[AdapterReport, ...]:
        """Return what each adapter found in `read_adapted`; waits for torn files."""
        found = self.adapters.check_failures()
        if found is None:
            return ()
        self.replace_adapted(found)
        return found.reports

    def replace_adapted(self, found: AdapterRecords) -> tuple[ProjectState, Delta]:
        """Replace the loops and lessons of adapters, and update the scores."""
        with self._lock:
            return self._after(*self.index.replace_adapted(found))

    def refresh(self) -> tuple[ProjectState, Delta]:
        """Update what changes with time alone: stale loops, decay of evidence."""
        with self._lock:
            return self._after(*self.index.check_time())

    def embed_missing(
        self, progress: Callable[[int, int], None] | None = None, stop: Callable[[], bool] | None = None
    ) -> int:
        """Compute missing vectors of patterns, tasks, instructions; return their number."""
        from core.questions.conflict import index_instructions

        if self.is_readonly:
            return 0
        view = self._view
        made = self.embeddings.make(view.snapshot.patterns, progress, stop)
        made += self.task_embeddings.make(embeddable_work(view.snapshot), stop=stop)
        return made + self.instruction_embeddings.make(index_instructions(view), stop=stop)

    def embed_few(self) -> tuple[int, int]:
        """Compute few missing vectors; return how many patterns and tasks lack them.

        Tasks are not counted beside very many patterns: the same command computes the vectors of both.
        """
        snapshot = self._view.snapshot
        patterns = self.embeddings.make_few(snapshot.patterns)
        if patterns > SURELY_MANY or not is_available():
            return patterns, 0
        return patterns, self.task_embeddings.make_few(embeddable_work(snapshot))

    def story(self, loop_id: str) -> LoopDetails:
        """Read the details of one loop from disk; raises UnknownRecord."""
        loop = self._view.snapshot.loops.get(loop_id)
        return self.adapters.details(loop) if loop is not None else self.index.story(loop_id)

    def extraction(self, source_id: str, types: frozenset[PatternType] = ALL_TYPES) -> Extraction:
        """Return the patterns offered by work or a learning; UnknownRecord or Refused."""
        with self._lock:
            return self._extractor.extract(source_id, self._view, types, self.agent)

    def repairs(self, only: Collection[str] = ()) -> OldRecords:
        """Return repairs of patterns that break today's rules, of the IDs `only` or all."""
        with self._lock:
            return self._extractor.find_repairs(self._view, only)

    def recurring(self) -> tuple[Cluster, ...]:
        """Return the learnings that several loops reported, without holding the lock."""
        return self._extractor.find_recurring(self._view.snapshot)

    def lessons(self) -> tuple[JoinedLesson, ...]:
        """Return the lessons that agents and runners wrote, without holding the lock."""
        return self._extractor.find_lessons(self._view) if self._view.snapshot.lessons else ()

    def instruction_pairs(self) -> FoundPairs:
        """Return contradicting or repeated agent instructions without holding the lock."""
        from core.questions.conflict import find_view_pairs_in_steps

        return run_all(find_view_pairs_in_steps(self._view))

    def unfit_learnings(self) -> Mapping[str, str]:
        """Return by ID why the first `MOST_JUDGED` recurring learnings give no candidate."""
        from core.questions.extraction.extractor import MAX_JUDGED

        found = {}
        for cluster in self.recurring()[:MAX_JUDGED]:
            with self._lock:
                found[cluster.id] = self._extractor.explain_unfit(cluster, self._view)
        return {id: why for id, why in found.items() if why}

    @cached_property
    def _extractor(self) -> Extractor:
        # Imported on use: most commands extract nothing.
        from core.questions.extraction.extractor import Extractor

        return Extractor(self.project, self.settings.extraction, self.adapters.details, self._verdicts)

    @cached_property
    def _verdicts(self) -> IndexVerdicts:
        from core.index.verdicts import IndexVerdicts
        from core.questions.search import ROOMS, verdict_settings

        return IndexVerdicts(self.index, ROOMS, verdict_settings(self.settings))

    def recover(self) -> tuple[ProjectState, Delta]:
        """Make the index again, and everything from it, after it was found damaged."""
        with self._lock:
            snapshot, delta = self.index.rebuild()
            self._view = self._scored(snapshot)
            return self._view, delta

    def _after(self, snapshot: Snapshot, delta: Delta) -> tuple[ProjectState, Delta]:
        try:
            return self._follow(snapshot, delta)
        except DamagedError:  # in what did not change
            return self.recover()

    def _follow(self, snapshot: Snapshot, delta: Delta) -> tuple[ProjectState, Delta]:
        if delta or (isinstance(snapshot, IndexedSnapshot) and not snapshot.follows(self._view.snapshot)):
            self._view = self._scored(snapshot, delta)
            return self._view, delta
        now = self._clock()
        board = self._view.board.rescored(now)
        # Snoozes end and evidence decays with time alone.
        is_same = snapshot is self._view.snapshot and not self._is_queue_old(now)
        queue = self._view.queue if is_same else self._queue(snapshot, board, now)
        delta = Delta(decisions=queue != self._view.queue)
        self._view = replace(self._view, snapshot=snapshot, board=board, queue=queue, now=now)
        return self._view, delta

    def _open_view(self, snapshot: Snapshot, now: datetime) -> tuple[Scoreboard, Texts]:
        """Return the scores and texts of a snapshot: those in the index, if it has them."""
        is_next = isinstance(snapshot, IndexedSnapshot) and snapshot.follows(self._view.snapshot)
        board = find_board(snapshot, now, self.settings, self._view.board if is_next else None)
        return board, find_texts(snapshot, board)

    def _updated_view(self, snapshot: Snapshot, delta: Delta, now: datetime) -> tuple[Scoreboard, Texts]:
        if isinstance(snapshot, IndexedSnapshot):
            return self._open_view(snapshot, now)
        board = self._view.board.updated(snapshot, delta, now)  # of a dry run
        return board, self._view.texts.suppose(snapshot, delta, board)

    def _scored(self, snapshot: Snapshot, delta: Delta | None = None) -> ProjectState:
        """Make the next state; without `delta` from nothing."""
        now = self._clock()
        if isinstance(snapshot, IndexedSnapshot) and not snapshot.follows(self._view.snapshot):
            delta = None  # the index was made again
        if delta is None:
            board, texts = self._open_view(snapshot, now)
        else:
            board, texts = self._updated_view(snapshot, delta, now)
        review = self.review if snapshot.complete else None  # asks when everything is loaded
        has_recalled = review is not None and review.recall(snapshot, now, self.task_embeddings)
        is_new = has_recalled or delta is None or not self._view.snapshot.complete
        if not snapshot.complete:
            queue: tuple[ReviewItem, ...] = ()
        elif is_new or self._affects_queue(delta or Delta(), board, now):
            queue = self._queue(snapshot, board, now)
        else:
            queue = self._view.queue
        return ProjectState(
            snapshot,
            board,
            texts,
            queue,
            self.settings,
            now,
            self.review.offers if self.review is not None else {},
            self.embeddings,
            task_embeddings=self.task_embeddings,
            instruction_embeddings=self.instruction_embeddings,
            earlier_count=self.review.earlier_count if self.review is not None else 0,
            experiment=find_experiment(self.project, self.settings),
        )

    def _affects_queue(self, delta: Delta, board: Scoreboard, now: datetime) -> bool:
        """Return whether a change may affect the queue; most of running loops cannot."""
        evidence = delta.patterns or delta.events or delta.decisions or delta.team
        other = evidence or delta.debug_sessions or delta.escalations
        return bool(other) or board.evidence is not self._view.board.evidence or self._is_queue_old(now)

    def _is_queue_old(self, now: datetime) -> bool:
        return self.review is not None and self.review.is_old(now)

    def _queue(self, snapshot: Snapshot, board: Scoreboard, now: datetime) -> tuple[ReviewItem, ...]:
        return self.review.make(snapshot, board, now) if self.review is not None else ()


def find_delivery(project: ProjectReader, loop_id: str) -> tuple[Delivery | None, str]:
    """Return how a loop's runner can be given its context; None if only by hooks.

    Also returns why there is no context now, or "". Without one the delivery only explains. Raises UnknownRecord, or
    Refused in a project that is not trusted.
    """
    from core.index.contexts import prepare_task_injection

    require_trust(project.project)
    loop = project.view.loop(loop_id)
    has_task = bool(loop.task.strip())
    context = prepare_task_injection(project.view, loop.task).context if has_task else ""
    empty = "Nothing is injected now for the task of this loop" if has_task else "This loop has no task"
    obstacle = "" if context else empty
    delivery = project.adapters.deliver(loop, context or _ANY_CONTEXT) if loop.runner else None
    if delivery is not None and obstacle:
        delivery = structs.replace(delivery, command=(), diff="")
    return delivery, obstacle
