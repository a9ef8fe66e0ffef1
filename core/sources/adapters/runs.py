"""Runs of programs that call an agent in a loop: where their files are, and the loop of what they say.

An adapter of a runner names its files, decodes them, and says in one `State` how a run is
(docs/adapters.md#runs-of-a-runner). All else is here, also the memory of state files that vanish at the end of a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import Struct

from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, StateSource
from core.records.times import newest
from core.sources.adapters.contract import Adapter
from core.sources.adapters.values import MAX_LABEL, cut, head_of

if TYPE_CHECKING:
    from core.sources.adapters.contract import Folders, Moment
    from core.sources.adapters.runner_files import RunnerFiles

MAX_REMEMBERED: Final = 200  # loops of one runner
MAX_NOTE: Final = 64_000  # characters of a note in the details of a loop
_KEY: Final = "vanishing"
_BADGES: Final = {Liveness.STALE: "stale", Liveness.DEAD: "crashed"}


class State(Struct, frozen=True):
    """How a run is: its status, the reason in the words of the runner, and whether and why it still runs."""

    status: LoopStatus = LoopStatus.UNKNOWN
    reason: str = ""
    liveness: Liveness = Liveness.UNKNOWN
    why: str = ""
    source: StateSource = StateSource.INFERRED
    pid: int | None = None
    question: str = ""


class RunnerAdapter(Adapter):
    """Base of the adapters of runners.

    `marks` are files of the project, with the words that their first 4 KiB contain if this runner wrote them.
    """

    marks: ClassVar[Mapping[str, tuple[bytes, ...]]] = {}

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        root = folders.project
        heads = ((name, head_of(root / name, root), words) for name, words in self.marks.items())
        return next(((name,) for name, head, words in heads if head and all(word in head for word in words)), ())

    def make_loop(
        self,
        id: str,
        root: Path,
        state: State,
        files: RunnerFiles,
        moment: Moment,
        *,
        written: Iterable[Path] = (),
        last: datetime | None = None,
        ended: datetime | None = None,
        is_exact: bool = False,
        badges: Iterable[str] = (),
        **values: Any,
    ) -> Loop:
        """Return the loop of a run in a working tree; `values` are further fields of `Loop`.

        `written` are its files, the one with its state first. `last` is its last sign, and `ended` its end if it ended,
        which is a guess unless `is_exact`. Badges for its liveness are added to `badges`.
        """
        written = [path for path in written if files.exists(path)]
        shown = {*badges, *((_BADGES[state.liveness],) if state.liveness in _BADGES else ())}
        has_ended = state.status.ended or (state.status is LoopStatus.UNKNOWN and state.liveness is Liveness.ENDED)
        usual: dict[str, Any] = {
            "modified_at": newest(*map(files.modified_at, written)),
            "files": tuple(map(files.shown, written)),
        }
        return Loop(
            id=id,
            runner=self.name,
            sources=(self.name,),
            status=state.status,
            state_source=state.source,
            end_reason=cut(state.reason, MAX_LABEL),
            liveness=Liveness.ENDED if state.status.ended and state.liveness is Liveness.UNKNOWN else state.liveness,
            liveness_reason=state.why,
            question=state.question,
            pid=state.pid,
            badges=tuple(sorted(shown)),
            cwd=files.folders.cwd_of(root),
            last_activity=min(last, moment.now) if last is not None else None,
            ended_at=ended if has_ended else None,
            ended_approximate=has_ended and not is_exact,
            **(usual | values),
        )

    def make_details(
        self, loop: Loop, notes: Iterable[tuple[str, str]], facts: Iterable[tuple[str, str]] = (), **values: Any
    ) -> LoopDetails:
        """Return the details of a run, without notes and facts that are empty."""
        return LoopDetails(
            loop_id=loop.id,
            notes=tuple((title, text) for title, text in notes if text.strip()),
            facts=tuple((label, cut(value, MAX_LABEL)) for label, value in facts if value.strip()),
            **({"iterations": loop.iterations} | values),
        )


class Seen(Struct):
    """The last content of a state file; `missing_since` is when it was first missing, None while it exists."""

    state: dict[str, Any]
    seen_at: datetime
    missing_since: datetime | None = None


def remember_states(files: RunnerFiles, current: Mapping[str, dict[str, Any]], now: datetime) -> dict[str, Seen]:
    """Return the present states by ID, and those that were seen before; keeps them for later runs of the program."""
    known = dict(_remembered(files))
    for identifier, seen in known.items():
        if identifier not in current and seen.missing_since is None:
            seen.missing_since = now
    for identifier, state in current.items():
        old = known.get(identifier)
        is_same = old is not None and old.state == state and old.missing_since is None
        known[identifier] = old if old is not None and is_same else Seen(state, now)
    newest = sorted(known.items(), key=lambda item: item[1].seen_at)[-MAX_REMEMBERED:]
    value = {identifier: msgspec.to_builtins(seen) for identifier, seen in newest}
    if value != (files.remembered(_KEY) or {}):
        files.remember(_KEY, value)
    return dict(newest)


def _remembered(files: RunnerFiles) -> Iterator[tuple[str, Seen]]:
    value = files.remembered(_KEY)
    for identifier, seen in value.items() if isinstance(value, dict) else ():
        try:
            yield str(identifier), msgspec.convert(seen, Seen)
        except (msgspec.ValidationError, TypeError, ValueError):
            continue
