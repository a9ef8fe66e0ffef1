"""Look-ups of the records behind the evidence: records by what they name, and events by pattern and by work.

Look-ups are mappings, in memory or read from tables when they are used, and contain no rule of the evidence. An entry
that is not there may also be empty.
"""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from core.base.grouping import group_pairs
from core.learning.bursts import report_of_event, source_of
from core.learning.evidence import find_origin, is_about_pattern
from core.learning.finished_work import is_report
from core.records.patterns import PatternType

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession
    from core.records.episodes import Attempt, Task
    from core.records.events import Event
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Delta, Snapshot

_AT: Final = attrgetter("at")
_Value = TypeVar("_Value")


class Link(IntEnum):
    """What a record can be found by, as it is stored."""

    USED = 0  # loops by a pattern that they list as injected
    FOUND = 1  # loops by a pattern that they record as new
    ALIAS = 2  # loops by alias
    TASK = 3  # tasks by the loop that they name
    ATTEMPT = 4  # attempts by task
    SESSION = 5  # attempts by the session of an agent that they name
    MENTION = 6  # debug sessions by the loop, task and attempt that they name
    WARNING = 7  # anti-patterns by the pattern that they were made from
    ORIGIN = 8  # patterns by the loop that found them first
    HEIR = 9  # patterns by the ID of one that was merged into them
    SCRIPT = 10  # patterns by the scripts other than Latin of their texts


Links: TypeAlias = Mapping[Link, Mapping[str, Sequence[str]]]
"""Sorted IDs of records, by kind of link and the name that they contain."""
_Names: TypeAlias = Iterator[tuple[Link, str]]


def _links_of_loop(loop: Loop) -> _Names:
    yield from ((Link.USED, use.pattern_id) for use in loop.injected)
    yield from ((Link.FOUND, entry.pattern_id) for entry in loop.extracted if entry.new)
    yield from ((Link.ALIAS, alias) for alias in loop.aliases)


def _links_of_pattern(pattern: Pattern) -> _Names:
    origin = find_origin(pattern)
    if origin is not None:
        yield Link.ORIGIN, origin.loop_id
    if pattern.type is PatternType.ANTI:
        yield Link.WARNING, pattern.inverted_from
    yield from ((Link.HEIR, alias) for alias in pattern.aliases)
    yield from ((Link.SCRIPT, script) for script in pattern.scripts)


def _links_of_task(task: Task) -> _Names:
    yield Link.TASK, task.loop_id


def _links_of_attempt(attempt: Attempt) -> _Names:
    yield Link.ATTEMPT, attempt.task_id
    yield Link.SESSION, attempt.loop_id


def _links_of_session(session: DebugSession) -> _Names:
    yield from ((Link.MENTION, name) for name in (session.loop_id, session.task_id, session.attempt_id))


WORK: Final = ("loops", "tasks", "attempts")
"""Collections whose records name each other."""
LINKED: Final[Mapping[str, Callable[[Any], _Names]]] = {
    "loops": _links_of_loop,
    "tasks": _links_of_task,
    "attempts": _links_of_attempt,
    "debug_sessions": _links_of_session,
    "patterns": _links_of_pattern,
}
"""Collections of a snapshot whose records are found by links, with what yields those of a record."""


def links_of(collection: str, record: object) -> set[tuple[Link, str]]:
    """Return the links by which a record of one of the collections in `LINKED` is found; none without a record."""
    return {link for link in LINKED[collection](record) if link[1]} if record is not None else set()


def build_links(snapshot: Snapshot, collections: Iterable[str] = LINKED) -> Links:
    """Build the links of all records of some collections."""
    found: dict[Link, defaultdict[str, list[str]]] = {link: defaultdict(list) for link in Link}
    for name in collections:
        records: Mapping[str, Any] = getattr(snapshot, name)
        for id, record in records.items():
            for link, key in links_of(name, record):
                found[link][key].append(id)
    return {link: {key: sorted(ids) for key, ids in keys.items()} for link, keys in found.items()}


def find_link_changes(
    before: Snapshot, after: Snapshot, delta: Delta
) -> Iterator[tuple[str, set[tuple[Link, str]], set[tuple[Link, str]]]]:
    """Yield the ID of each changed record with the links that it lost and gained."""
    for name in LINKED:
        for id in getattr(delta, name):
            old, new = (links_of(name, getattr(snapshot, name).get(id)) for snapshot in (before, after))
            if old != new:
                yield id, old - new, new - old


def change_links(links: Links, before: Snapshot, after: Snapshot, delta: Delta) -> Links:
    """Return the links of a later snapshot; the cost depends on what changed."""
    changed: dict[Link, dict[str, list[str]]] = {}
    for id, lost, gained in find_link_changes(before, after, delta):
        for link, key in (*lost, *gained):
            ids = changed.setdefault(link, {}).setdefault(key, [*links[link].get(key, ())])
            if (link, key) in lost:
                ids.remove(id)
            else:
                ids.append(id)
    return {
        link: _with_changes(keys, {key: sorted(ids) for key, ids in changed.get(link, {}).items()})
        for link, keys in links.items()
    }


def _with_changes(known: Mapping[str, _Value], changes: dict[str, _Value]) -> Mapping[str, _Value]:
    """Return a mapping with some entries replaced or added, without reading the others."""
    # A ChainMap only writes to its first mapping, but is typed as if all were dicts.
    return ChainMap(changes, cast("dict[str, _Value]", known)) if changes else known


@dataclass(frozen=True)
class EventIndex:
    """Events, oldest first, by what they are about."""

    by_pattern: Mapping[str, Sequence[Event]]
    by_work: Mapping[str, Sequence[Event]]  # by the names of `work_names`
    reports: Mapping[str, Sequence[Event]]  # those about a work item as a whole, by the work ID in them
    doubtful: Mapping[str, int]
    """By source, at least the number of its harmful reports and of its uses without a result."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventIndex:
        known = tuple(events)
        return cls(
            by_pattern=group_pairs((event.pattern_id, event) for event in known if event.pattern_id),
            by_work=group_pairs((name, event) for event in known for name in work_names(event)),
            reports=group_pairs((event.loop_id, event) for event in known if is_report(event)),
            doubtful=Counter(source_of(event) for event in known if is_doubtful(event)),
        )

    def extended(self, events: Sequence[Event]) -> EventIndex:
        """Return the index of a log with more events."""
        added = EventIndex.of(events)
        doubtful = {name: self.doubtful.get(name, 0) + count for name, count in added.doubtful.items()}
        return EventIndex(
            by_pattern=_extend(self.by_pattern, added.by_pattern),
            by_work=_extend(self.by_work, added.by_work),
            reports=_extend(self.reports, added.reports),
            doubtful=_with_changes(self.doubtful, doubtful),
        )


_Events: TypeAlias = Mapping[str, Sequence["Event"]]


def _extend(known: _Events, added: _Events) -> _Events:
    changed: dict[str, Sequence[Event]] = {
        name: sorted([*known.get(name, ()), *events], key=_AT) for name, events in added.items()
    }
    return _with_changes(known, changed)


def work_names(event: Event) -> tuple[str, ...]:
    """Return under which names an event about a pattern or reflection is found: its work ID, and its source.

    The source of a harmful report can have another name, see `source_of`.
    """
    names = (event.loop_id,) if event.loop_id and is_about_pattern(event) else ()
    if report_of_event(event) is not None and (source := source_of(event)) not in names:
        names = (*names, source)
    return names


def is_unresolved(event: Event) -> bool:
    """Return whether an event reports a pattern as applied without a result."""
    return event.success is None and event.kind == "applied" and bool(event.pattern_id and event.loop_id)


def is_doubtful(event: Event) -> bool:
    """Return whether an event is a harmful report, or becomes one if its work fails."""
    return report_of_event(event) is not None or is_unresolved(event)
