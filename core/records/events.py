"""Events of the event log, and the evidence derived from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

_Count = Annotated[int, Meta(ge=0, le=10**15)]
_Weight = Annotated[float, Meta(ge=0, le=1)]
EVENT_LOG: Final = "event-log"
"""Source of the observations that come from the event log."""
INJECTED_REFLECTION: Final = "injected-reflection"
"""Kind of the event that is recorded when a reflection is injected into a loop's context."""
ASSIGNED: Final = "assigned"
"""Kind of the event that is recorded before a pattern of the experiment is given or held out."""
TRIAL_OUTCOME: Final = "trial-outcome"
"""Kind of the event that records what happened in a task after an assignment."""
VERDICT: Final = "verdict"
"""Kind of the event that records whether work that ended had followed a pattern that it was given."""
_CODE_CHARS: Final = 32  # hexadecimal digits of the code of a trial: 128 bits


def event_id(at: datetime) -> str:
    """Return a new unique ID that sorts by time."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{os.urandom(8).hex()}"


class Signals(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Details of an outcome besides its success; None and "" mean unknown.

    `error_count` includes resolved errors; `retry_count` is the number of attempts before the last one.
    """

    duration_ms: Annotated[float, Meta(ge=0, le=10**15)] | None = None
    error_count: _Count | None = None
    retry_count: _Count | None = None
    files_touched: tuple[str, ...] = ()
    strategy: str = ""
    failure_mode: str = ""
    failure_details: str = ""


class ErrorType(StrEnum):
    """Type of a recorded error."""

    VALIDATION = "validation"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    TOOL_FAILURE = "tool_failure"
    UNKNOWN = "unknown"


class ErrorNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded error; every text is untrusted."""

    error_type: ErrorType
    message: str
    stack_trace: str = ""
    tool_name: str = ""
    context: str = ""


class Trial(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One task and one pattern in the experiment (docs/experiments.md).

    `task` is the key of the task. `share` is the probability, 0..1, with which the pattern was held out, and
    `is_held_out` whether it was. The others belong to the outcome: `returned` is whether the error of the pattern
    occurred after the assignment, `steps` and `minutes` are those from there to the first check that passed, and
    `crossed` is whether the task had the pattern although it was held out, or did not get it although it was not.
    None means unknown. `code` proves who recorded it, see `TrialKey`.
    """

    task: str
    share: _Weight
    is_held_out: bool = False
    returned: bool | None = None
    steps: _Count | None = None
    minutes: Annotated[float, Meta(ge=0, le=10**9)] | None = None
    crossed: bool = False
    code: str = ""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of `shared/curation/events.jsonl` (docs/file-formats.md#event-log).

    `kind` is injected, applied, extracted, outcome, feedback, counted, error, resolved, injected-reflection, assigned,
    trial-outcome or verdict.
    `loop_id` is the ID of a work item (loop or attempt). An outcome without `pattern_id` applies to the whole work
    item. `success` (of applied, outcome and feedback) is None if unknown; for feedback on a criterion, None means
    neutral. `weight` is 0..1. `by` recorded the event; `agent` reported it. `criterion` is the subject of feedback that
    is not about a pattern, and `text` the comment. `resolves`, of kind resolved, is the ID of the error event.

    A verdict has `is_followed`, which is None if that is unclear, and the number of the `action` (of an attempt) or
    the `iteration` (of a loop) that shows it, with its description as `text`. It is not a use.
    `tokens`, of kind injected, is the estimated size of the pattern in the context.

    `decision` is the ID of the decision that caused the event; if it is undone, the event does not count. `unrecorded`,
    of kind counted, is the evidence found only in the pattern's record when ralphdeck started to update its counts.
    `trial` belongs to the kinds assigned and trial-outcome; their `success` is that of the whole task.
    """

    id: str
    at: datetime
    kind: str
    pattern_id: str = ""
    loop_id: str = ""
    success: bool | None = None
    weight: _Weight = 1.0
    iteration: int | None = None
    by: str = ""
    agent: str = ""
    criterion: str = ""
    text: str = ""
    signals: Signals | None = None
    error: ErrorNote | None = None
    resolves: str = ""
    decision: str = ""
    reflection_id: str = ""
    unrecorded: tuple[Observation, ...] = ()
    trial: Trial | None = None
    is_followed: bool | None = None
    action: _Count | None = None
    tokens: _Count | None = None


class TrialKey(Struct, frozen=True):
    """The key with which the user's ralphdeck signs trials of one project; without a secret, no trial is an own one.

    A code is valid for one event as a whole: it can be neither changed nor copied to another task, pattern or time.
    """

    secret: bytes = b""

    def sign(self, event: Event) -> Event:
        """Return the event of a trial with its code."""
        if event.trial is None or not self.secret:
            return event
        # As a reader of the log decodes it: a whole number for a float has other bytes.
        event = msgspec.json.decode(msgspec.json.encode(event), type=Event)
        assert event.trial is not None
        return replace(event, trial=replace(event.trial, code=self._make_code(event, event.trial)))

    def is_own(self, event: Event) -> bool:
        """Return whether this key has signed the event."""
        from hmac import compare_digest  # most processes read no trial

        trial = event.trial
        if trial is None or not trial.code or not self.secret:
            return False
        return compare_digest(trial.code.encode(errors="replace"), self._make_code(event, trial).encode())

    def seal(self, session: str, task: str, trial: str) -> str:
        """Return a code for the fact that a task of a session is this task of the experiment; "" without a secret."""
        return self._digest(msgspec.json.encode((session, task, trial))) if self.secret else ""

    def is_sealed(self, session: str, task: str, trial: str, code: str) -> bool:
        """Return whether `code` is the one of `seal`."""
        from hmac import compare_digest  # most processes read no trial

        wanted = self.seal(session, task, trial)
        return bool(wanted) and compare_digest(wanted.encode(), code.encode(errors="replace"))

    def _make_code(self, event: Event, trial: Trial) -> str:
        return self._digest(msgspec.json.encode(replace(event, trial=replace(trial, code=""))))

    def _digest(self, message: bytes) -> str:
        from hmac import digest

        return digest(self.secret, message, "sha256").hex()[:_CODE_CHARS]


NO_TRIAL_KEY: Final = TrialKey()


class Observation(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Evidence: one use of a pattern in a work item, or the sum of `count` uses.

    `kind` is discovered, applied, injected, feedback, trend or aggregate; `source` is event-log, loop, discovery,
    trend, aggregate or inversion. `at` is None if no file contains a time; such evidence does not decay. `success` is
    None for an injection without result. `weight` is 0..1. `count` exceeds 1 only for trend and aggregate. `derived`
    means that `count` was computed from a rate. `inferred` means that the result of the whole loop is used. `given` is
    how often the work item was given the pattern; `seen` is 1 if it found the pattern itself.
    """

    pattern_id: str
    kind: str
    source: str
    loop_id: str = ""
    at: datetime | None = None
    success: bool | None = None
    weight: _Weight = 1.0
    count: _Count = 1
    iteration: int | None = None
    derived: bool = False
    inferred: bool = False
    given: _Count = 0
    seen: _Count = 0

    @property
    def is_claim(self) -> bool:
        """Whether only the file of the pattern reports it; docs/scoring.md#claims."""
        return self.source in ("aggregate", "trend")

    @property
    def is_sighting(self) -> bool:
        """Whether a work item found the pattern and did not apply it; docs/scoring.md#sightings."""
        return self.kind == "discovered" and self.source == EVENT_LOG

    @property
    def is_use(self) -> bool:
        return self.kind != "injected" and not self.is_sighting


def injected_events(
    work_id: str,
    patterns: Iterable[str],
    reflections: Iterable[str],
    *,
    at: datetime,
    by: str,
    comment: str = "",
    tokens: Mapping[str, int] | None = None,
) -> list[Event]:
    """Make the events that record what a loop or attempt was given, by IDs; `tokens` are the sizes of patterns."""
    sizes = tokens or {}
    make = partial(Event, at=at, loop_id=work_id, by=by, text=comment)
    return [
        *(make(id=event_id(at), kind="injected", pattern_id=id, tokens=sizes.get(id)) for id in patterns),
        *(make(id=event_id(at), kind=INJECTED_REFLECTION, reflection_id=id) for id in reflections),
    ]
