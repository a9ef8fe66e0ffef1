"""Extraction on request, with cached indexes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.base.errors import Refused, UnknownRecord
from core.base.masking import mask_secrets
from core.base.steps import Steps, run_all
from core.base.text import visible_line
from core.index.review_items import WeakenedTest
from core.index.verdicts import StoredVerdicts, VerdictsInMemory
from core.questions.extraction.attempt_fixes import find_weakened_tests
from core.questions.extraction.clustering import CLUSTER_ID, Cluster, cluster_snapshot_in_steps
from core.questions.extraction.engine import extract, extract_recurring_lesson
from core.questions.extraction.errors import extract_message
from core.questions.extraction.lesson_patterns import extract_lesson
from core.questions.extraction.lessons import Comparison, compare_lessons_in_steps, judge_lessons_in_steps
from core.questions.extraction.material import MAX_ACTIONS, Materials
from core.questions.extraction.old_rules import OldRules
from core.questions.extraction.selection import KnownPatterns
from core.questions.extraction.trigger_check import describe_failure
from core.records.extractions import ALL_TYPES, LoggedAttempt
from core.records.lessons import LESSON_ID
from core.sources.patterns import read_archives
from core.tasks.history import read_attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.base.paths import ProjectPaths
    from core.base.settings import ExtractionSettings
    from core.index.project_state import ProjectState
    from core.records.episodes import Attempt
    from core.records.extractions import Extraction
    from core.records.lessons import JoinedLesson
    from core.records.loops import Loop, LoopDetails
    from core.records.patterns import PatternType
    from core.records.repairs import OldRecords
    from core.records.snapshot import Snapshot
    from core.sources.patterns import ArchivedPattern

MAX_JUDGED: Final = 200  # maximum number of recurring learnings that are checked for a candidate, those of most loops


class Offers:
    """Extracts patterns from a project; only methods marked thread-safe are.

    `read_details` reads the details of a loop, by default from the files in `.aiwg`. `stored` keeps the groups of
    similar learnings.
    """

    def __init__(
        self,
        project: ProjectPaths,
        settings: ExtractionSettings,
        read_details: Callable[[Loop], LoopDetails] | None = None,
        stored: StoredVerdicts | None = None,
    ) -> None:
        self._stored = VerdictsInMemory() if stored is None else stored
        self._read_details = read_details
        self._project = project
        self._settings = settings
        self._indexed: tuple[Snapshot, Materials, KnownPatterns] | None = None
        self._recurring: tuple[tuple[object, ...], tuple[Cluster, ...]] | None = None
        self._is_prepared = False  # whether the indexes are made
        self._unfit: tuple[Snapshot, dict[str, str]] | None = None
        self._compared: tuple[Snapshot, tuple[Comparison, ...]] | None = None

    def extract(self, source_id: str, view: ProjectState, types: frozenset[PatternType], agent: str = "") -> Extraction:
        """Extract patterns from a loop, task, debug session, recurring learning or lesson.

        `source_id` may be a unique prefix of a loop ID. `agent` is the contributor; if "", the agent in the files is.
        Raises UnknownRecord for an unknown ID, and Refused if the loop or task has not ended, or the settings forbid
        extraction.
        """
        if not self._settings.enabled:
            raise Refused("extraction is disabled in the settings (extraction.enabled)")
        snapshot = view.snapshot
        if source_id.startswith(LESSON_ID):
            return self.extract_lesson(find_lesson(source_id, self.find_lessons(view)), view, types)
        if source_id.startswith(CLUSTER_ID):
            cluster = next((cluster for cluster in self.find_recurring(snapshot) if cluster.id == source_id), None)
            if cluster is None:
                shown = visible_line(source_id, 80)
                raise UnknownRecord(f"no recurring learning {shown!r}; see: ralphdeck reflection list --recurring")
            offer = self.extract_cluster(cluster, view)
            return replace(offer, proposals=tuple(one for one in offer.proposals if one.type in types))
        if source_id not in snapshot.debug_sessions:
            task = None if source_id in snapshot.loops else snapshot.tasks.get(source_id)
            work = task or view.loop(source_id)
            if not work.status.ended:
                raise Refused(f"{visible_line(work.id, 80)} has not ended; extract from it after it has ended")
            source_id = work.id
        materials, known = self._of_snapshot(view)
        return extract(replace(materials.read(source_id), agent=agent), known, self._settings, types)

    def find_recurring(self, snapshot: Snapshot) -> tuple[Cluster, ...]:
        """Return the recurring learnings; takes seconds if not cached. Thread-safe."""
        return run_all(self.find_recurring_in_steps(snapshot))

    def find_recurring_in_steps(self, snapshot: Snapshot) -> Steps[tuple[Cluster, ...]]:
        """Do `find_recurring` step by step."""
        key = _cache_key(snapshot)
        if (found := self._cached(key)) is None:
            found = yield from cluster_snapshot_in_steps(snapshot, self._stored)
            self._recurring = key, found
        return found

    def _cached(self, key: tuple[object, ...]) -> tuple[Cluster, ...] | None:
        known = self._recurring
        return known[1] if known is not None and known[0] == key else None

    def explain_unfit(self, cluster: Cluster, view: ProjectState) -> str:
        """Return why a recurring learning gives no candidate, or "" if it does; cached."""
        if not self._settings.enabled:
            return ""
        snapshot = view.snapshot
        if self._unfit is None or self._unfit[0] is not snapshot:
            self._unfit = snapshot, {}
        known = self._unfit[1]
        if cluster.id not in known:
            known[cluster.id] = self.extract_cluster(cluster, view).why_nothing
        return known[cluster.id]

    def extract_cluster(self, cluster: Cluster, view: ProjectState) -> Extraction:
        materials, known = self._of_snapshot(view)
        return extract_recurring_lesson(cluster, materials.descriptions, known, self._settings)

    def find_lessons(self, view: ProjectState) -> tuple[JoinedLesson, ...]:
        """Return the lessons of agents, joined and judged; 3,000 take about a second if not cached. Thread-safe."""
        return run_all(self.find_lessons_in_steps(view))

    def find_lessons_in_steps(self, view: ProjectState) -> Steps[tuple[JoinedLesson, ...]]:
        """Do `find_lessons` step by step."""
        snapshot = view.snapshot
        if (compared := self._find_compared(snapshot)) is None:
            compared = yield from compare_lessons_in_steps(snapshot.lessons, snapshot.patterns)
            self._compared = snapshot, compared
        return (yield from judge_lessons_in_steps(compared, snapshot, view.board))

    def _find_compared(self, snapshot: Snapshot) -> tuple[Comparison, ...] | None:
        if self._compared is None:
            return None
        before, compared = self._compared
        is_same = before.lessons is snapshot.lessons and before.patterns is snapshot.patterns
        return compared if is_same else None

    def extract_lesson(
        self, joined: JoinedLesson, view: ProjectState, types: frozenset[PatternType] = ALL_TYPES
    ) -> Extraction:
        _, known = self._of_snapshot(view)
        return extract_lesson(joined, known, self._settings, types)

    def find_repairs(self, view: ProjectState, only: Collection[str] = ()) -> OldRecords:
        """Return the patterns that do not keep today's rules, with a repair; those with the IDs `only`, or all."""
        return OldRules(view.snapshot, *self._of_snapshot(view), self._settings).find(only)

    def find_weakened_tests(self, attempt: Attempt) -> tuple[WeakenedTest, ...]:
        """Return the tests that passed in an attempt because they check less."""
        try:
            actions = read_attempt(self._project, attempt.task_id, attempt.number).actions
        except UnknownRecord:  # its folder was removed since the lists were read
            return ()
        logged = LoggedAttempt(attempt=attempt, actions=actions[-MAX_ACTIONS:])
        return tuple(
            WeakenedTest(
                attempt_id=attempt.id,
                task_id=attempt.task_id,
                number=fix.last.number,
                change=fix.weakening,
                diff=mask_secrets(fix.diff),
                files=fix.files,
                command=mask_secrets(fix.first.command),
                failure=mask_secrets(describe_failure(fix.failures[0])),
                words=fix.description,
                agent=attempt.agent,
            )
            for fix in find_weakened_tests(logged, str(self._project.project))
        )

    def prepare_in_steps(self, view: ProjectState) -> Steps[None]:
        """Make the indexes that `extract` uses, step by step; at once if they are those of this view."""
        materials, known = self._of_snapshot(view)
        if not self._is_prepared:
            yield from materials.prepare_in_steps()
            yield from known.prepare_in_steps()
            self._is_prepared = self._of_snapshot(view)[0] is materials

    def release(self) -> None:
        """Free the indexes of `extract`, which are made again when needed."""
        self._indexed, self._is_prepared = None, False
        extract_message.cache_clear()

    def _of_snapshot(self, view: ProjectState) -> tuple[Materials, KnownPatterns]:
        """Return the indexes of the current snapshot; computed once per snapshot."""
        if self._indexed is None or self._indexed[0] is not view.snapshot:
            known = KnownPatterns.of(view.snapshot, view.similarity, view.board.results, self._read_archived)
            self._indexed = view.snapshot, Materials(self._project, view.snapshot, self._read_details), known
            self._is_prepared = False
        return self._indexed[1:]

    def _read_archived(self) -> tuple[ArchivedPattern, ...]:
        return read_archives(self._project)[0]


def find_lesson(lesson_id: str, joined: Iterable[JoinedLesson]) -> JoinedLesson:
    """Return the lesson with this ID, or that says the same as it; raises UnknownRecord."""
    found = next((one for one in joined if any(place.id == lesson_id for place in one.places)), None)
    if found is None:
        raise UnknownRecord(f"no lesson {visible_line(lesson_id, 80)!r}; see: ralphdeck lesson list")
    return found


def _cache_key(snapshot: Snapshot) -> tuple[object, ...]:
    """Return the records that the recurring learnings depend on."""
    return snapshot.reflections, snapshot.tasks, snapshot.memory_tasks, snapshot.loops.keys()
