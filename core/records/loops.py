"""Loops and their iterations (docs/file-formats.md#loops)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from core.records.debug_sessions import Failure, Fix, Results


class LoopStatus(StrEnum):
    """Normalized status (docs/file-formats.md#words-and-spellings)."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    COMPLETING = "completing"
    RECOVERING = "recovering"
    COMPLETED = "completed"
    PARTIAL = "partial"
    """Ended after reaching a part of its goal."""
    FAILED = "failed"
    LIMIT = "limit"
    ABORTED = "aborted"
    CRASHED = "crashed"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the loop has ended."""
        return self in _ENDED

    @property
    def active(self) -> bool:
        """Whether the loop is running."""
        return self in _ACTIVE


FINISHED = frozenset({LoopStatus.COMPLETED, LoopStatus.PARTIAL, LoopStatus.FAILED, LoopStatus.LIMIT})
"""Statuses of loops that reached their end; aborted and crashed loops may continue."""
_ENDED = FINISHED | {LoopStatus.ABORTED, LoopStatus.CRASHED}
_ACTIVE = frozenset({LoopStatus.RUNNING, LoopStatus.COMPLETING, LoopStatus.RECOVERING})


class Liveness(StrEnum):
    """State of the loop's process (docs/file-formats.md#liveness).

    `alive`: its process runs. `dead`: its process is gone although its files show it as running (shown as crashed).
    `stale`: running by its files, no known process, silent for longer than the setting. `fresh`: the same with recent
    activity. `idle`: paused. `ended`: finished. `unknown`: no data.
    """

    ALIVE = "alive"
    FRESH = "fresh"
    STALE = "stale"
    DEAD = "dead"
    IDLE = "idle"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """Normalized outcome (docs/file-formats.md#words-and-spellings)."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        """Its word; "" if unknown."""
        return "" if self is Outcome.UNKNOWN else self.value


class Iteration(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One iteration. `number` is a label: it may start at 0 and have duplicates."""

    number: int | None = None
    at: datetime | None = None
    action: str = ""
    result: str = ""
    outcome: Outcome = Outcome.UNKNOWN
    learnings: tuple[str, ...] = ()
    duration_ms: float | None = None
    quality: float | None = None
    """0..1, from analytics or best output."""
    files: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    fix: Fix | None = None
    results: Results | None = None
    tools: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether its outcome is a failure, or it recorded errors and no success."""
        if self.outcome is Outcome.FAILURE or self.outcome is Outcome.TIMEOUT:
            return True
        return bool(self.failures) and self.outcome is not Outcome.SUCCESS


class InjectedUse(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `cross_loop_learning.injected_patterns`."""

    pattern_id: str
    applied: bool = False
    successful: bool | None = None
    iteration: int | None = None
    at: datetime | None = None
    """Time of the use, from the entry or its iteration; None if unknown."""


class ExtractedPattern(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `cross_loop_learning.extracted_patterns`."""

    pattern_id: str
    new: bool = True
    rate: float | None = None


class Improvement(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`cross_loop_learning.improvement_estimate`: iterations saved by patterns.

    `baseline` is the agent's estimate without patterns, `share` the saved share of it, up to 1; negative if it took
    longer.
    """

    baseline: float | None = None
    actual: float | None = None
    share: float | None = None

    @property
    def text(self) -> str:
        """`6 iterations estimated without patterns, 4 with: 33 % fewer`."""
        counts = []
        if self.baseline is not None:
            counts.append(f"{self.baseline:g} iterations estimated without patterns")
        if self.actual is not None:
            counts.append(f"{self.actual:g} with")
        change = ""
        if self.share is not None:
            change = f"{abs(self.share) * 100:.0f} % {'more' if self.share < 0 else 'fewer'}"
        return ": ".join(filter(None, (", ".join(counts), change)))


class LoopValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values that files record about a loop, for `LoopFact` and `Loop`."""

    task: str = ""
    criteria: tuple[str, ...] = ()
    status: LoopStatus = LoopStatus.UNKNOWN
    raw_status: str = ""
    owner: str = ""
    priority: str = ""
    tags: tuple[str, ...] = ()
    iteration: int | None = None
    max_iterations: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    updated_at: datetime | None = None
    modified_at: datetime | None = None
    pid: int | None = None
    iterations: tuple[Iteration, ...] = ()
    quality: tuple[float, ...] = ()
    last_result: str = ""
    learnings: tuple[str, ...] = ()
    injected: tuple[InjectedUse, ...] = ()
    extracted: tuple[ExtractedPattern, ...] = ()
    improvement: Improvement | None = None
    crashes: int = 0
    duration_ms: float | None = None
    """Total time of its iterations from analytics, or None."""
    directory: str = ""


class Loop(LoopValues, frozen=True, kw_only=True, omit_defaults=True):
    """One loop, joined from all files about it (docs/file-formats.md#joining-loops).

    `id` is the name of its directory, else the ID in a file (never used as a path unchecked); `aliases` are other IDs:
    of the launcher, of the heartbeat (a UUID), in the file. `task` is untrusted and may be empty. `status` is `crashed`
    if its process is gone; `raw_status` is the word of the file. `iteration` and `max_iterations` are labels. `pid` is
    the one used for its liveness; the reason is one line for people.

    `sources` are the sorted kinds of files about it: `loops`, `archive`, `registry`, `current-loop`, `external`,
    `external-archive`, `external-registry`, `external-state`, `launcher`. `badges`, sorted: `orphan` (running, not in
    an existing registry), `unregistered` (ended, not in the registry), `archived-but-registered`, `registered-only` (no
    directory), `stale`, `crashed`, `status-disagrees`, `id-disagrees`.

    `ended_at` is set for every ended or crashed loop if possible; inferred if `ended_approximate`. `last_activity` is
    the newest time in its files (heartbeat, iteration, update); `modified_at` is the newest mtime of its state and
    heartbeat files. `quality` is 0..1 per iteration in order, from analytics, best output or iterations. `crashes` is
    the number of entries in its crash.log. `files` are project-relative, the state file first; `directory` is ""
    without one.
    """

    id: str
    aliases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    badges: tuple[str, ...] = ()
    archived: bool = False
    ended_approximate: bool = False
    last_activity: datetime | None = None
    liveness: Liveness = Liveness.UNKNOWN
    liveness_reason: str = ""
    files: tuple[str, ...] = ()

    @property
    def agent(self) -> str:
        """The agent that works in it; "" if unknown."""
        return "" if self.owner == "unknown" else self.owner


class LoopDetails(Struct, frozen=True, kw_only=True):
    """Details of a loop that are read on demand.

    `iterations` are merged by number from the state file, iteration files, analytics and best output. `notes` are
    titles and truncated texts, such as ("crash.log", text). `facts` are labels and values, such as ("tokens",
    "12,822"). `checkpoints` are names of files, which are not parsed.
    """

    loop_id: str
    iterations: tuple[Iteration, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    checkpoints: tuple[str, ...] = ()
