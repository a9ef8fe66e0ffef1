"""Find records in task folders by reading their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.search.words import HitKind, SearchFilters, SearchHit, SearchPlace
from core.sources import episodes as sources
from core.sources import normalize

if TYPE_CHECKING:
    from core.episodes.history import TaskFiles
    from core.records.episodes import Attempt, Task
    from core.search.task_records import TaskRecords


class Owner(Struct, frozen=True, array_like=True):
    """What filters need to know of a task; an attempt has an outcome and an agent."""

    status: TaskStatus = TaskStatus.UNKNOWN
    agent: str = ""
    attempts: dict[int, tuple[Outcome, str]] = {}  # by number


def read_owner(records: TaskRecords, task_id: str) -> Owner:
    """Read the status of a task and of its attempts; empty for an unknown task."""
    return make_owner(*records.owner(task_id))


def make_owner(task: Task, attempts: Mapping[int, Attempt]) -> Owner:
    return Owner(task.status, task.agent, {number: (one.outcome, one.agent) for number, one in attempts.items()})


def scan_task(records: TaskRecords, files: TaskFiles, filters: SearchFilters) -> Iterator[SearchHit]:
    """Yield the matching records of a task, each once."""
    # If the status of a task does not match, its other files are not opened.
    if not filters.statuses or files.task().status in filters.statuses:
        yield from drop_copies(records.documents(files))
        if filters.places & {SearchPlace.ACTIONS, SearchPlace.ERRORS}:
            for number in files.numbers:
                yield from records.log(files.path(sources.ACTIONS, number), files.task_id, number)
    else:
        records.findings += files.findings


def drop_copies(hits: Iterable[SearchHit]) -> Iterator[SearchHit]:
    """Drop entries of the trajectory and summaries whose content was found before."""
    attempts = set()
    is_found = False
    for hit in hits:
        if hit.kind in (HitKind.ATTEMPT, HitKind.ENTRY):
            if hit.attempt in attempts:
                continue
            attempts.add(hit.attempt)
        elif hit.kind is HitKind.SUMMARY and is_found:
            continue
        is_found = True
        yield hit


def is_wanted(hit: SearchHit, filters: SearchFilters, owner_of: Callable[[str], Owner]) -> bool:
    """Return whether a hit matches the filters other than the places."""
    if filters.task_id and (hit.task_id != filters.task_id or filters.attempt not in (None, hit.attempt)):
        return False
    if filters.tool and normalize.word(filters.tool) != normalize.word(hit.tool):
        return False
    if filters.since is not None and (hit.at is None or hit.at < filters.since):
        return False
    if filters.until is not None and (hit.at is None or hit.at > filters.until):
        return False
    if not (filters.statuses or filters.agent or filters.outcomes):
        return True
    owner = owner_of(hit.task_id)
    number = max(owner.attempts, default=0) if hit.attempt is None else hit.attempt
    outcome, agent = owner.attempts.get(number, (None, ""))
    if filters.statuses and owner.status not in filters.statuses:
        return False
    if filters.outcomes and outcome not in filters.outcomes:
        return False
    return not filters.agent or filters.agent.casefold() in {
        name.casefold() for name in (hit.agent, owner.agent, agent)
    }
