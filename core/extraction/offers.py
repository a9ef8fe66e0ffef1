"""What could be extracted by now: from loops and tasks that have ended, debug sessions, and learnings that recur."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.base.errors import Refused, UnknownRecord
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.config.settings import ExtractionSettings
from core.extraction.clustering import CLUSTER_ID, Cluster, Steps, cluster_snapshot, cluster_snapshot_in_steps
from core.extraction.engine import extract
from core.extraction.known_patterns import Known
from core.extraction.material import Materials
from core.extraction.recurring_lessons import draft
from core.records.extractions import Extraction
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot

if TYPE_CHECKING:
    from core.state.project_state import ProjectState

MOST_JUDGED: Final = 200
"""So many recurring learnings, those of most loops, are tried at once for whether they give a candidate."""
_PIECE_SECONDS: Final = 0.01
"""So long is worked at a time on what recurs."""


class Offers:
    """The offers of one project; what many of them need is worked out once. For one thread at a time."""

    def __init__(self, project: ProjectPaths, settings: ExtractionSettings) -> None:
        self._project = project
        self._settings = settings
        self._indexed: tuple[Snapshot, Materials, Known] | None = None
        self._recurring: tuple[tuple[object, ...], tuple[Cluster, ...]] | None = None
        self._gathering: tuple[tuple[object, ...], Steps[tuple[Cluster, ...]]] | None = None
        self._unfit: tuple[Snapshot, dict[str, str]] | None = None

    def of(self, source_id: str, view: ProjectState, types: frozenset[PatternType], agent: str = "") -> Extraction:
        """What a loop, a task, a debug session or a recurring learning offers; reads their files.

        Args:
            source_id: An id, of a loop also its beginning.
            view: What is known.
            types: Only these.
            agent: Who contributes what is found; "" for the agent that the files name.

        Raises:
            UnknownRecord: There is no such loop, task, session or learning.
            Refused: The loop or task has not ended, or the settings forbid it.
        """
        if not self._settings.enabled:
            raise Refused("extraction is switched off by the settings (extraction.enabled)")
        if source_id.startswith(CLUSTER_ID):
            return self._of_cluster(source_id, view, types)
        if source_id not in view.snapshot.debug_sessions:
            source_id = _ended(source_id, view)
        materials, known = self._of_snapshot(view)
        return extract(replace(materials.read(source_id), agent=agent), known, self._settings, types)

    def recurring(self, snapshot: Snapshot) -> tuple[Cluster, ...]:
        """The learnings that more than one loop told; worked out anew (some seconds for 10,000 reflections) only where
        reflections, tasks or loops are others. For any thread.
        """
        told = _told(snapshot)
        if (found := self._known_to_recur(told)) is None:
            found = cluster_snapshot(snapshot)
            self._recurring = told, found
        return found

    def gather(self, snapshot: Snapshot) -> tuple[Cluster, ...] | None:
        """`recurring`, `_PIECE_SECONDS` at a time.

        What was begun is brought to its end, whatever has changed meanwhile: where loops are at work, an end would
        never come else. So it may be what recurred when it was begun.

        Returns:
            None if it is not done yet.
        """
        told = _told(snapshot)
        if (found := self._known_to_recur(told)) is not None:
            self._gathering = None
            return found
        begun, work = self._gathering = self._gathering or (told, cluster_snapshot_in_steps(snapshot))
        end = perf_counter() + _PIECE_SECONDS
        try:
            while True:
                next(work)
                if perf_counter() >= end:
                    return None
        except StopIteration as done:
            self._recurring, self._gathering = (begun, done.value), None
            return self._recurring[1]

    def _known_to_recur(self, told: tuple[object, ...]) -> tuple[Cluster, ...] | None:
        known = self._recurring
        return known[1] if known is not None and known[0] == told else None

    def why_unfit(self, cluster: Cluster, view: ProjectState) -> str:
        """Why a recurring learning gives no candidate; empty if it gives one. Worked out once for each snapshot."""
        if not self._settings.enabled:
            return ""
        snapshot = view.snapshot
        if self._unfit is None or self._unfit[0] is not snapshot:
            self._unfit = snapshot, {}
        known = self._unfit[1]
        if cluster.id not in known:
            known[cluster.id] = self.of_cluster(cluster, view).why_nothing
        return known[cluster.id]

    def of_cluster(self, cluster: Cluster, view: ProjectState) -> Extraction:
        """What a recurring learning offers."""
        materials, known = self._of_snapshot(view)
        return draft(cluster, materials.asked, known, self._settings)

    def _of_cluster(self, cluster_id: str, view: ProjectState, types: frozenset[PatternType]) -> Extraction:
        snapshot = view.snapshot
        cluster = next((cluster for cluster in self.recurring(snapshot) if cluster.id == cluster_id), None)
        if cluster is None:
            shown = visible_line(cluster_id, 80)
            raise UnknownRecord(f"no recurring learning {shown!r} by now; see: ralphdeck reflections --recurring")
        offer = self.of_cluster(cluster, view)
        return replace(offer, proposals=tuple(one for one in offer.proposals if one.type in types))

    def _of_snapshot(self, view: ProjectState) -> tuple[Materials, Known]:
        """What loops offer and what is known, indexed once for each snapshot."""
        if self._indexed is None or self._indexed[0] is not view.snapshot:
            known = Known.of(view.snapshot, view.likeness, view.board.results)
            self._indexed = view.snapshot, Materials(self._project, view.snapshot), known
        return self._indexed[1:]


def _told(snapshot: Snapshot) -> tuple[object, ...]:
    """What recurring learnings are made of."""
    return snapshot.reflections, snapshot.tasks, snapshot.memory_tasks, snapshot.loops.keys()


def _ended(source_id: str, view: ProjectState) -> str:
    """The id of the loop or task that is meant, which must have ended."""
    task, loops = view.snapshot.tasks.get(source_id), view.snapshot.loops
    found = view.loop(source_id) if task is None or source_id in loops else task
    if not found.status.ended:
        raise Refused(f"{visible_line(found.id, 80)} has not ended; then its lessons can be extracted")
    return found.id
