"""Loops, iterations (docs/file-formats.md#loops), agent sessions from hooks."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from core.records.debug_sessions import Failure, Fix, Results

SESSION_TAG: Final = "session"  # tag of the tasks that are made from sessions
HOOKS: Final = "hooks"  # source of the loops that hooks recorded


class AgentSession(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The facts of one session record; every text is untrusted.

    `id` is that of its loop, such as `claude:` and the agent's own `session_id`. `prompt` is its first one, and `turns`
    the number of all. `ended_at` is the time of the event that ended it. `pid` and `process_started_at` identify the
    process of the agent on the machine `space`; None and "" if unknown.
    """

    id: str
    agent: str
    session_id: str
    prompt: str = ""
    turns: int = 0
    started_at: datetime | None = None
    last_event_at: datetime | None = None
    ended_at: datetime | None = None
    is_turn_open: bool = False
    pid: int | None = None
    process_started_at: datetime | None = None
    space: str = ""
    file: str = ""


class LoopStatus(StrEnum):
    """Normalized status of a loop (docs/file-formats.md#words-and-spellings)."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    COMPLETING = "completing"
    RECOVERING = "recovering"
    COMPLETED = "completed"
    PARTIAL = "partial"  # Ended after reaching a part of its goal.
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
        """Whether the loop is running, completing or recovering."""
        return self in _ACTIVE


FINISHED = frozenset({LoopStatus.COMPLETED, LoopStatus.PARTIAL, LoopStatus.FAILED, LoopStatus.LIMIT})
"""Statuses of loops that cannot continue; aborted and crashed loops can."""
_ENDED = FINISHED | {LoopStatus.ABORTED, LoopStatus.CRASHED}
_ACTIVE = frozenset({LoopStatus.RUNNING, LoopStatus.COMPLETING, LoopStatus.RECOVERING})


class Liveness(StrEnum):
    """Whether a loop is still running (docs/file-formats.md#liveness).

    `alive`: its process exists. `dead`: its process has ended although its files say it runs (shown as crashed).
    `fresh`: its files say it runs, no process is known, and it was active recently. `stale`: the same, but without
    activity for longer than the setting. `idle`: paused. `ended`: finished. `unknown`: no data.
    """

    ALIVE = "alive"
    FRESH = "fresh"
    STALE = "stale"
    DEAD = "dead"
    IDLE = "idle"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """Normalized outcome of work (docs/file-formats.md#words-and-spellings)."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        """The outcome for display; "" if unknown."""
        return "" if self is Outcome.UNKNOWN else self.value


class Iteration(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One iteration; its `number` is a label that may start at 0 and be duplicated."""

    number: int | None = None
    at: datetime | None = None
    action: str = ""
    result: str = ""
    outcome: Outcome = Outcome.UNKNOWN
    learnings: tuple[str, ...] = ()
    duration_ms: float | None = None
    quality: float | None = None  # 0..1, from the analytics or best output files.
    files: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    fix: Fix | None = None
    results: Results | None = None
    tools: tuple[str, ...] = ()
    is_prompt: bool = False  # whether `action` is the prompt that began it, not what was done

    @property
    def failed(self) -> bool:
        """Whether its outcome is a failure, or it recorded errors and no success."""
        if self.outcome is Outcome.FAILURE or self.outcome is Outcome.TIMEOUT:
            return True
        return bool(self.failures) and not self.has_succeeded

    @property
    def has_succeeded(self) -> bool:
        """Whether its outcome is a success."""
        return self.outcome is Outcome.SUCCESS


class InjectedUse(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `cross_loop_learning.injected_patterns`."""

    pattern_id: str
    applied: bool = False
    successful: bool | None = None
    iteration: int | None = None
    at: datetime | None = None  # Time of the use, from the entry or its iteration; None if unknown.


class ExtractedPattern(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One entry of `cross_loop_learning.extracted_patterns`."""

    pattern_id: str
    new: bool = True
    rate: float | None = None


class Improvement(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Iterations saved by patterns: `cross_loop_learning.improvement_estimate`.

    `baseline` is the agent's estimate without patterns, `actual` the number with patterns. `share` is the saved share
    of the baseline: at most 1, negative if the loop took longer.
    """

    baseline: float | None = None
    actual: float | None = None
    share: float | None = None

    @property
    def text(self) -> str:
        """Such as "6 iterations estimated without patterns, 4 with: 33 % fewer"."""
        counts = []
        if self.baseline is not None:
            counts.append(f"{self.baseline:g} iterations estimated without patterns")
        if self.actual is not None:
            counts.append(f"{self.actual:g} with")
        change = ""
        if self.share is not None:
            change = f"{abs(self.share) * 100:.0f} % {'more' if self.share < 0 else 'fewer'}"
        return ": ".join(filter(None, (", ".join(counts), change)))


class StateSource(StrEnum):
    """How the status of a loop is known (docs/adapters.md#states).

    `reported`: its files say it, or its process is known. `watched`: seen while ralphdeck was running, such as a state
    file that vanished at the end. `inferred`: concluded from other signs, such as the age of the last line.
    """

    REPORTED = "reported"
    WATCHED = "watched"
    INFERRED = "inferred"


END_OF_TURN: Final = frozenset({"end_turn", "end-turn", "stop_sequence", "task_complete", "answer", "stop"})
"""Words of agents for the usual end of a turn, which is not a claim of success."""
ENDED_ITS_TURN: Final = "ended its turn"  # what people read for these words
TESTS_FAILED: Final = "tests failed"  # why a session that ended its turn after a failed test run has failed
CONTRADICTED: Final = "success-contradicted"  # badge of a loop that claims a success against its own files
CHECK_FAILED: Final = "its last check failed"  # the same, as hooks recorded it
OWN: Final = "aiwg"  # source of the loops in `.aiwg`, which have no `runner`


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens and cost of a loop; None if unknown.

    `input` excludes the cached tokens, which are `cache_read` and `cache_write`; `output` includes `reasoning`.
    `cost_usd` is what the runner or the agent reported; nothing is computed from prices.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost_usd: float | None = None

    @property
    def total(self) -> int | None:
        """All tokens that were read and written; None if none is known."""
        known = [count for count in (self.input, self.output, self.cache_read, self.cache_write) if count is not None]
        return sum(known) if known else None

    def __add__(self, other: Usage) -> Usage:
        def added(name: str) -> Any:
            known = [value for one in (self, other) if (value := getattr(one, name)) is not None]
            return sum(known) if known else None

        return Usage(**{name: added(name) for name in self.__struct_fields__})


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a runner's or agent's files show of a loop's result; None if unknown.

    `stories` and `stories_done` count the stories, tasks or checkboxes of its plan. `test_passed` is the result of the
    last test run. `files_changed` is 0 only if no tool was used that can change files. `goal_met` is the result of a
    check by someone other than the agent at work, such as the judge of a goal. `is_claimed` is set if the agent or the
    runner claimed success, such as by a promise. `changed_at` is the last meaningful change: of a file, a commit, a
    passed story or a resolved error.
    """

    stories: int | None = None
    stories_done: int | None = None
    test_passed: bool | None = None
    files_changed: int | None = None
    goal_met: bool | None = None
    is_claimed: bool = False
    changed_at: datetime | None = None

    @property
    def stories_open(self) -> int:
        """Number of stories that are known to be open."""
        return max((self.stories or 0) - self.stories_done, 0) if self.stories_done is not None else 0

    @property
    def objections(self) -> tuple[str, ...]:
        """Reasons to doubt that the goal was reached, such as "2 of 5 stories are open"."""
        reasons = []
        if self.stories_open:
            reasons.append(f"{self.stories_open} of {self.stories} stories are open")
        if self.test_passed is False:
            reasons.append("the last test run failed")
        if self.goal_met is False:
            reasons.append("the goal was judged as not met")
        if self.files_changed == 0 and not self.goal_met:
            reasons.append("no file was changed")
        return tuple(reasons)

    @property
    def proves_success(self) -> bool:
        """Whether something shows that the goal was reached, and nothing contradicts it."""
        is_plan_done = bool(self.stories) and self.stories_done is not None
        return bool(is_plan_done or self.test_passed or self.goal_met) and not self.objections


class LoopValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values about a loop that its files contain; base of `LoopFact` and `Loop`."""

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
    duration_ms: float | None = None  # Total time of the iterations, from the analytics file, or None.
    directory: str = ""


class Loop(LoopValues, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One loop, joined from all files about it (docs/file-formats.md#joining-loops).

    `id` is the name of its directory, or the ID in a file, which must be checked before it is used as a path.
    `aliases` are other IDs from the launcher, the heartbeat (a UUID) or a file. `task` is untrusted and may be empty.
    `status` is `crashed` if its process has ended; `raw_status` is the status as written. `iteration` and
    `max_iterations` are labels. `pid` is the process that determines `liveness`; `liveness_reason` explains it.

    `sources` are the sorted kinds of files about it: `loops`, `archive`, `registry`, `current-loop`, `external`,
    `external-archive`, `external-registry`, `external-state`, `launcher`. `badges`, sorted: `orphan` (running, not in
    an existing registry), `unregistered` (ended, not in the registry), `archived-but-registered`, `registered-only` (no
    directory), `stale`, `crashed`, `status-disagrees`, `id-disagrees`.

    `ended_at` is set for every ended or crashed loop if possible; `ended_approximate` means that it is inferred.
    `last_activity` is the newest time in its files (heartbeat, iteration, update); `modified_at` is the newest mtime of
    its state and heartbeat files. `quality` has a value 0..1 per iteration, from analytics, best output or iterations.
    `crashes` is the number of entries in its crash.log. `files` are project-relative, with the state file first.
    `directory` is "" if the loop has none.

    Loops of other runners have a `runner` (the name of an adapter, see docs/adapters.md), and an `id` that begins with
    it; their `owner` is the coding agent, such as `claude`. `model` is the agent's last model. `end_reason` is why it
    ended, in the runner's own word. `parent` is the ID of the loop that started it. `session_ids` are the agent's own
    IDs of its sessions; a session that a runner started is joined to the runner's loop by them. `cwd` is the
    absolute folder in which its agent works, "" for that of the project. A session of a person, not of a program, has
    the tag `interactive`. `question` is what a waiting loop asks: a question or a command to
    permit. All these are "" or () if unknown. `badges` can also contain
    `success-contradicted` (see docs/scoring.md#claims-of-other-runners).
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
    runner: str = ""
    model: str = ""
    usage: Usage = Usage()
    state_source: StateSource = StateSource.REPORTED
    end_reason: str = ""
    parent: str = ""
    session_ids: tuple[str, ...] = ()
    cwd: str = ""
    question: str = ""
    progress: Progress = Progress()

    @property
    def is_agent_session(self) -> bool:
        """Whether iterations are an agent's turns, or its sessions with one prompt."""
        return bool(self.runner) and self.runner == self.owner

    @property
    def is_conversation(self) -> bool:
        """Whether it is one session without a goal, whose messages are not steps."""
        return self.is_agent_session and len(self.session_ids) <= 1 and not self.criteria

    @property
    def is_from_hooks_alone(self) -> bool:
        """Whether no adapter has it: all that is known are the tasks that hooks recorded."""
        return self.sources == (HOOKS,)

    @property
    def is_running(self) -> bool:
        """Whether its agent may be at work."""
        return self.status.active and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether it ended, is archived or long silent, whatever its files contain."""
        return self.status.ended or self.archived or self.liveness is Liveness.ENDED

    @property
    def has_failed_check(self) -> bool:
        """Whether a test run or another check that failed is why it has failed."""
        return self.status is LoopStatus.FAILED and self.end_reason in (TESTS_FAILED, CHECK_FAILED)

    @property
    def end_words(self) -> str:
        """Why it ended, for people."""
        return ENDED_ITS_TURN if self.runner and self.end_reason in END_OF_TURN else self.end_reason

    @property
    def source_name(self) -> str:
        """Name of the adapter that found the loop; `aiwg` for loops in `.aiwg`."""
        return self.runner or OWN

    @property
    def agent(self) -> str:
        """Name of the agent that works in the loop; "" if unknown."""
        return "" if self.owner == "unknown" else self.owner

    @property
    def changed_at(self) -> datetime | None:
        """Last meaningful change: file, commit, passed story or successful iteration."""
        own = (one.at for one in self.iterations if one.at and (one.files or one.outcome is Outcome.SUCCESS))
        return max(filter(None, (self.progress.changed_at, *own)), default=None)

    @property
    def success(self) -> bool | None:
        """Whether it reached its goal; None without a result or with an uncertain one.

        Other runners' loops are successful only if their files prove it, and failed only if they report it.
        """
        if self.status not in FINISHED:
            return None
        is_completed = self.status is LoopStatus.COMPLETED
        if not self.runner:
            return is_completed
        is_certain = self.progress.proves_success if is_completed else self.state_source is not StateSource.INFERRED
        return is_completed if is_certain else None


class LoopDetails(Struct, frozen=True, kw_only=True):
    """Details of a loop that are read on demand.

    `iterations` are merged by number from the state file, iteration files, analytics and best output. `notes` are pairs
    of title and truncated text, such as ("crash.log", text). `facts` are pairs of label and value, such as ("tokens",
    "12,822"). `checkpoints` are file names; the files are not parsed.
    """

    loop_id: str
    iterations: tuple[Iteration, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    checkpoints: tuple[str, ...] = ()


RATE_LIMIT: Final = "rate limit"
WAITS_FOR_YOU: Final = "waits for you"  # status shown for a loop that needs a person
_WORDS: Final = {
    RATE_LIMIT: re.compile(r"(?:rate|usage|api|5hour|hour|quota)[ _-]?limit|quota|overloaded|\b429\b", re.IGNORECASE),
    "permission": re.compile(r"permission|approv|denied|confirm", re.IGNORECASE),
    "question": re.compile(r"question|\bask|input|answer|elicit", re.IGNORECASE),
    "blocked": re.compile(r"block|stuck|defer", re.IGNORECASE),
}


def waits_for(loop: Loop) -> str:
    """Return what a loop waits for; "" if it does not wait.

    One of `permission`, `question`, `blocked`, `rate limit` and `person`. Only a rate limit ends without a person.
    """
    if loop.status is not LoopStatus.WAITING:
        return ""
    text = f"{loop.raw_status}\n{loop.end_reason}\n{loop.liveness_reason}"
    return next((name for name, words in _WORDS.items() if words.search(text)), "person")


def needs_person(loop: Loop) -> bool:
    """Return whether another runner's loop needs a person; a stale one does not."""
    return bool(loop.runner) and loop.liveness is not Liveness.STALE and waits_for(loop) not in ("", RATE_LIMIT)
