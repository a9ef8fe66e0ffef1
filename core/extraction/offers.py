"""What could be extracted by now: from loops and tasks that have ended, debug sessions, and learnings that recur."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.episodes.similar import past_tasks
from core.errors import Refused, UnknownRecord
from core.extraction.engine import extract
from core.extraction.known import Known
from core.extraction.material import Materials
from core.extraction.proposals import Extraction
from core.extraction.recurring import draft
from core.paths import ProjectPaths
from core.records.patterns import PatternType
from core.recurring import CLUSTER_ID, Cluster, recurring_in
from core.settings import ExtractionSettings
from core.snapshot import Snapshot
from core.text import visible_line

if TYPE_CHECKING:
    from core.view import View

MOST_JUDGED: Final = 200
"""So many recurring learnings, those of most loops, are tried at once for whether they give a candidate."""


class Offers:
    """The offers of one project; what many of them need is worked out once. For one thread at a time."""

    def __init__(self, project: ProjectPaths, settings: ExtractionSettings) -> None:
        self._project = project
        self._settings = settings
        self._indexed: tuple[Snapshot, Materials, Known] | None = None
        self._recurring: tuple[tuple[object, ...], tuple[Cluster, ...]] | None = None
        self._unfit: tuple[Snapshot, Mapping[str, str]] | None = None

    def of(self, source_id: str, view: View, types: frozenset[PatternType]) -> Extraction:
        """What a loop, a task, a debug session or a recurring learning offers; reads their files.

        Args:
            source_id: An id, of a loop also its beginning.
            view: What is known.
            types: Only these.

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
        return extract(materials.read(source_id), known, self._settings, types)

    def recurring(self, snapshot: Snapshot) -> tuple[Cluster, ...]:
        """The learnings that more than one loop told; worked out anew (half a second for 10,000 reflections) only
        where reflections, tasks or loops are others.
        """
        told = (snapshot.reflections, snapshot.tasks, snapshot.memory_tasks, snapshot.loops.keys())
        if self._recurring is None or self._recurring[0] != told:
            self._recurring = told, recurring_in(snapshot)
        return self._recurring[1]

    def unfit(self, view: View) -> Mapping[str, str]:
        """The recurring learnings that give no candidate, by id, and why; of the first `MOST_JUDGED`. Worked out once
        for each snapshot.
        """
        snapshot = view.snapshot
        if not self._settings.enabled:
            return {}
        if self._unfit is None or self._unfit[0] is not snapshot:
            asked, known = _asked(snapshot), self._of_snapshot(view)[1]
            judged = (draft(one, asked, known, self._settings) for one in self.recurring(snapshot)[:MOST_JUDGED])
            self._unfit = snapshot, {offer.source_id: offer.why_nothing for offer in judged if offer.why_nothing}
        return self._unfit[1]

    def _of_cluster(self, cluster_id: str, view: View, types: frozenset[PatternType]) -> Extraction:
        snapshot = view.snapshot
        cluster = next((cluster for cluster in self.recurring(snapshot) if cluster.id == cluster_id), None)
        if cluster is None:
            shown = visible_line(cluster_id, 80)
            raise UnknownRecord(f"no recurring learning {shown!r} by now; see: ralphdeck reflections --recurring")
        offer = draft(cluster, _asked(snapshot), self._of_snapshot(view)[1], self._settings)
        return replace(offer, proposals=tuple(one for one in offer.proposals if one.type in types))

    def _of_snapshot(self, view: View) -> tuple[Materials, Known]:
        """What loops offer and what is known, indexed once for each snapshot."""
        if self._indexed is None or self._indexed[0] is not view.snapshot:
            known = Known.of(view.snapshot, view.likeness)
            self._indexed = view.snapshot, Materials(self._project, view.snapshot), known
        return self._indexed[1:]


def _asked(snapshot: Snapshot) -> dict[str, str]:
    """What loops and tasks were to do, by id."""
    asked = {id: task.description for id, task in past_tasks(snapshot).items()}
    return asked | {id: loop.task for id, loop in snapshot.loops.items()}


def _ended(source_id: str, view: View) -> str:
    """The id of the loop or task that is meant, which must have ended."""
    task, loops = view.snapshot.tasks.get(source_id), view.snapshot.loops
    found = view.loop(source_id) if task is None or source_id in loops else task
    if not found.status.ended:
        raise Refused(f"{visible_line(found.id, 80)} has not ended; then its lessons can be extracted")
    return found.id
