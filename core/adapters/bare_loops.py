"""Shell loops without a runner: headless sessions with the same prompt (docs/adapter-files.md#claude)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from core.adapters.join import HEADLESS
from core.records.loops import END_OF_TURN, Liveness, Loop, LoopDetails, LoopStatus, StateSource, Usage
from core.records.times import minute_of

MIN_SESSIONS: Final = 3  # headless sessions, one after the other with the same prompt, that are a loop
MAX_GAP: Final = timedelta(hours=6)  # between two of them; a rate limit can take five hours
FRESH: Final = timedelta(minutes=2)  # since its last record, a session without a known process may still run
_OVERLAP: Final = timedelta(seconds=5)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class BareLoops:
    """Joins the sessions of one agent; loops that did not change are the same objects as before."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[list[Loop], Loop]] = {}

    def join(self, sessions: Iterable[Loop], now: datetime) -> Iterator[Loop]:
        """Yield the loop of each session, and one for headless sessions with the same prompt in one folder."""
        groups: dict[tuple[str, str], list[Loop]] = {}
        for loop in sessions:
            if loop.task and HEADLESS in loop.tags and not loop.parent and loop.started_at is not None:
                groups.setdefault((loop.cwd, loop.task), []).append(loop)
            else:
                yield loop
        for group in groups.values():
            group.sort(key=lambda one: one.started_at or _NEVER)
            for run in _runs(group):
                if len(run) < MIN_SESSIONS:
                    yield from run
                else:
                    yield self._join_run(run, now)

    def _join_run(self, loops: list[Loop], now: datetime) -> Loop:
        first, last = loops[0], loops[-1]
        is_fresh = last.last_activity is not None and now - last.last_activity <= FRESH
        known = self._known.get(first.id)
        if known is not None and known[0] == loops and not is_fresh:
            return known[1]
        joined = _join(loops)
        if last.end_reason in END_OF_TURN:  # of the last session; why no other one followed is not recorded
            since = f"the last session ended {minute_of(last.last_activity)} UTC" if last.last_activity else ""
            joined = replace(
                joined,
                status=LoopStatus.RUNNING if is_fresh else LoopStatus.UNKNOWN,
                state_source=StateSource.INFERRED,
                liveness=Liveness.FRESH if is_fresh else last.liveness,
                liveness_reason=since,
                end_reason="",
                ended_at=None if is_fresh else last.ended_at,
            )
        if not is_fresh:
            self._known[first.id] = loops, joined
        return joined


def _join(loops: Sequence[Loop]) -> Loop:
    first, last = loops[0], loops[-1]
    files_changed = [loop.progress.files_changed for loop in loops]
    return replace(
        last,
        id=first.id,
        aliases=tuple(loop.id for loop in loops[1:]),
        raw_status=f"bare loop, {last.raw_status}".removesuffix(", "),
        tags=("bare loop", HEADLESS),
        iteration=len(loops),
        started_at=first.started_at,
        usage=sum((loop.usage for loop in loops), Usage()),
        session_ids=tuple(id for loop in loops for id in loop.session_ids),
        files=tuple(file for loop in reversed(loops) for file in loop.files),
        duration_ms=None,
        progress=replace(
            last.progress,
            files_changed=None if None in files_changed else sum(filter(None, files_changed)),
            changed_at=max((at for one in loops if (at := one.progress.changed_at)), default=None),
        ),
    )


def join_sessions(loop: Loop, sessions: Sequence[LoopDetails]) -> LoopDetails:
    """Return the details of a loop of sessions, each of which is one iteration."""
    iterations = []
    for number, session in enumerate(sessions, start=1):
        if session.iterations:
            failures = dict.fromkeys(failure for one in session.iterations for failure in one.failures)
            files = dict.fromkeys(file for one in session.iterations for file in one.files)
            last = session.iterations[-1]
            iterations.append(replace(last, number=number, failures=tuple(failures), files=tuple(files)))
    facts = dict(fact for session in sessions for fact in session.facts)
    notes = sessions[-1].notes if sessions else ()
    return LoopDetails(loop_id=loop.id, iterations=tuple(iterations), notes=notes, facts=tuple(facts.items()))


def _runs(loops: Iterable[Loop]) -> Iterator[list[Loop]]:
    """Split sessions, sorted by their starts, where one overlaps the next or a long time passes."""
    run: list[Loop] = []
    end: datetime | None = None
    for loop in loops:
        started = loop.started_at
        if run and (end is None or started is None or not end - _OVERLAP <= started <= end + MAX_GAP):
            yield run
            run = []
        run.append(loop)
        end = loop.last_activity
    if run:
        yield run
