"""Loops: what an agent loop is doing or has done, joined from every file that knows it (formats C14)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from core.records.debug_sessions import Failure, Fix, Results


class LoopStatus(StrEnum):
    """Normalised status (formats section 5); `Loop.raw_status` keeps the word of the file."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    COMPLETING = "completing"
    RECOVERING = "recovering"
    COMPLETED = "completed"
    PARTIAL = "partial"
    """Ended with a part of its goal reached."""
    FAILED = "failed"
    LIMIT = "limit"
    ABORTED = "aborted"
    CRASHED = "crashed"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether a loop in this status does nothing more by itself."""
        return self in _ENDED

    @property
    def active(self) -> bool:
        """Whether a loop in this status is at work."""
        return self in _ACTIVE


FINISHED = frozenset({LoopStatus.COMPLETED, LoopStatus.PARTIAL, LoopStatus.FAILED, LoopStatus.LIMIT})
"""A loop that came to its end; one that was aborted or crashed may go on."""
_ENDED = FINISHED | {LoopStatus.ABORTED, LoopStatus.CRASHED}
_ACTIVE = frozenset({LoopStatus.RUNNING, LoopStatus.COMPLETING, LoopStatus.RECOVERING})


class Liveness(StrEnum):
    """What is known of the loop's process (formats C18).

    `alive`: its own pid runs. `dead`: its own pid is gone though the files say it is at work (shown as crashed).
    `stale`: at work by its files, no pid to ask, no sign for longer than the setting. `fresh`: the same with a
    recent sign. `idle`: paused, so nothing needs to run. `ended`: finished. `unknown`: nothing to judge by.
    """

    ALIVE = "alive"
    FRESH = "fresh"
    STALE = "stale"
    DEAD = "dead"
    IDLE = "idle"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """Normalised outcome of an iteration, attempt, task or use (formats section 5)."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"

    @property
    def told(self) -> str:
        """The word for it; "" where nobody knows it."""
        return "" if self is Outcome.UNKNOWN else self.value


class Iteration(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One iteration of a loop. `number` is a label: bases differ (formats C29), duplicates occur (3.12)."""

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
        """Whether it missed its goal: its outcome is a failure, or it recorded errors and no success."""
        if self.outcome is Outcome.FAILURE or self.outcome is Outcome.TIMEOUT:
            return True
        return bool(self.failures) and self.outcome is not Outcome.SUCCESS


class InjectedUse(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`cross_loop_learning.injected_patterns[]`: injected, applied and successful are three facts (semantics 1)."""

    pattern_id: str
    applied: bool = False
    successful: bool | None = None
    iteration: int | None = None
    at: datetime | None = None
    """When the use happened, where the entry or its iteration says; None = only the loop's own times bound it."""


class ExtractedPattern(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`cross_loop_learning.extracted_patterns[]`."""

    pattern_id: str
    new: bool = True
    rate: float | None = None


class Improvement(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """`cross_loop_learning.improvement_estimate`: what injected patterns spared a loop, as its agent estimates.

    Attributes:
        baseline: Iterations estimated without patterns.
        actual: Iterations that it took.
        share: 0..1 of the baseline; negative where it took longer.
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


class Loop(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One loop as one row, joined from every source that knows it.

    Attributes:
        id: The id shown and used: the directory name, else the id inside (never used as a path unchecked).
        aliases: Other ids of the same loop (launcher id, UUID of its heartbeat, id inside the file).
        task: What it should do; untrusted, may be empty.
        criteria: Completion criteria, one or many.
        status: Normalised, `crashed` where liveness proves it; `raw_status` is the word of the file.
        sources: Which files know it, of: `loops`, `archive`, `registry`, `current-loop`, `external`,
            `external-archive`, `external-registry`, `external-state`, `launcher`; sorted.
        badges: Of `orphan` (at work by its directory, unknown to an existing registry), `unregistered` (ended,
            not in the registry), `archived-but-registered`, `registered-only` (no directory), `stale`,
            `crashed`, `status-disagrees`, `id-disagrees`; sorted.
        iteration, max_iterations: Progress as labels; either may be None.
        started_at, ended_at: `ended_at` is set for every ended or crashed loop as far as any file allows
            (elapsed stops there); `ended_approximate` says that it was inferred.
        last_activity: Newest time told inside its files (heartbeat, iteration, update), not a file's mtime.
        modified_at: Newest mtime of its state and heartbeat files.
        pid: The pid that liveness was judged by, or None.
        liveness, liveness_reason: See `Liveness`; the reason is one line for a person.
        quality: 0..1 per iteration in order, from analytics, best output or iterations; may be empty.
        injected, extracted: Cross-loop learning of (0).
        improvement: What the patterns spared it, as estimated; None where no file says.
        crashes: Number of entries in its crash.log.
        files: Project-relative files that the row was made from, the state file first.
        directory: Project-relative directory of the loop, "" if it has none.
    """

    id: str
    aliases: tuple[str, ...] = ()
    task: str = ""
    criteria: tuple[str, ...] = ()
    status: LoopStatus = LoopStatus.UNKNOWN
    raw_status: str = ""
    sources: tuple[str, ...] = ()
    badges: tuple[str, ...] = ()
    archived: bool = False
    owner: str = ""
    priority: str = ""
    tags: tuple[str, ...] = ()
    iteration: int | None = None
    max_iterations: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ended_approximate: bool = False
    updated_at: datetime | None = None
    last_activity: datetime | None = None
    modified_at: datetime | None = None
    pid: int | None = None
    liveness: Liveness = Liveness.UNKNOWN
    liveness_reason: str = ""
    iterations: tuple[Iteration, ...] = ()
    quality: tuple[float, ...] = ()
    last_result: str = ""
    learnings: tuple[str, ...] = ()
    injected: tuple[InjectedUse, ...] = ()
    extracted: tuple[ExtractedPattern, ...] = ()
    improvement: Improvement | None = None
    crashes: int = 0
    duration_ms: float | None = None
    """Total time of its iterations where analytics tells (`total_time_ms`)."""
    files: tuple[str, ...] = ()
    directory: str = ""

    @property
    def agent(self) -> str:
        """The agent that works in it, as far as its files name one; "" if unknown."""
        return "" if self.owner == "unknown" else self.owner


class LoopDetails(Struct, frozen=True, kw_only=True):
    """What is read only when a loop is looked at: iteration files, analytics, best output, crash log, output tail.

    Attributes:
        loop_id: Whose story.
        iterations: Merged by number from the state file, iteration files, analytics and best output.
        notes: Titled texts beside it, e.g. ("crash.log", text), ("selection report", text); each capped.
        facts: Short label/value pairs, e.g. ("best iteration", "3"), ("tokens", "12,822"), ("trajectory", "improving").
        checkpoints: Names of checkpoint files (they are not parsed).
    """

    loop_id: str
    iterations: tuple[Iteration, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    checkpoints: tuple[str, ...] = ()
