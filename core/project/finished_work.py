"""Finished work: its outcome, and whether it followed what it was given.

See docs/scoring.md#outcomes and #followed. At the end: what happened after the experiment gave a task a pattern or held
it out (docs/experiments.md#outcomes). Both arms are judged by the same facts of the log, whether the agent got the
pattern or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Refused, UnknownRecord
from core.learning.experiments import text_key
from core.learning.maturity import parse_moment
from core.learning.outcomes import Outcome, OutcomeSignals
from core.questions.extraction.following import judge
from core.questions.extraction.recorded_work import ActionLog, RecordedWork, list_work_ids, make_turn_actions
from core.records.events import ASSIGNED, TRIAL_OUTCOME, VERDICT, Event, Observation, event_id
from core.records.loops import FINISHED
from core.records.loops import Outcome as WorkOutcome
from core.records.patterns import PatternType
from core.retrieval.similarity import find_repeated
from core.sources.episodes import Actions
from core.tasks.log_summary import MAX_SUMMARIZED, MAX_SUMMARIZED_BYTES, parse_command
from core.tasks.task_files import TaskFolder, find_attempt_folder

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.questions.extraction.following import Judgement
    from core.records.episodes import Action, Attempt
    from core.records.loops import Loop
    from core.records.patterns import Pattern

LOOP: Final = "loop"
ATTEMPT: Final = "attempt"
REPORTED: Final = "reported"  # only known from the event log
_SUCCESS: Final = {WorkOutcome.SUCCESS: True, WorkOutcome.FAILURE: False}


class ScoredWork(Struct, frozen=True, kw_only=True):
    """Finished loop or attempt with its outcome and uses of patterns."""

    work_id: str
    kind: str  # `loop`, `attempt` or `reported`
    signals: OutcomeSignals
    outcome: Outcome
    applied: tuple[Observation, ...]  # its uses of patterns, with or without a result, except discarded reports

    @property
    def at(self) -> datetime:
        """Time at which it finished, UTC."""
        return parse_moment(self.signals.timestamp, "timestamp")


def find_scored_work(state: ProjectState, work_ids: Iterable[str] | None = None) -> tuple[ScoredWork, ...]:
    """Return the finished loops and attempts of these (None: of all), newest first."""
    wanted = list(state.board.inputs.finished() if work_ids is None else dict.fromkeys(work_ids))
    uses = find_pattern_uses(state, wanted)
    found = []
    for work_id in wanted:
        result = state.board.outcome(work_id)
        if result is not None:
            signals, outcome = result
            kind = classify_work(state, work_id)
            found.append(
                ScoredWork(work_id=work_id, kind=kind, signals=signals, outcome=outcome, applied=uses[work_id])
            )
    return tuple(sorted(found, key=lambda one: (-one.at.timestamp(), one.work_id)))


def classify_work(state: ProjectState, work_id: str) -> str:
    """Return the kind of a work item: loop, attempt, or only in the event log."""
    snapshot = state.snapshot
    return LOOP if work_id in snapshot.loops else ATTEMPT if work_id in snapshot.attempts else REPORTED


def find_pattern_uses(state: ProjectState, work_ids: Iterable[str]) -> dict[str, tuple[Observation, ...]]:
    """Return the uses of patterns by work item."""
    snapshot = state.snapshot
    found: dict[str, list[Observation]] = {work_id: [] for work_id in work_ids}
    owners = {work_id: work_id for work_id in found}
    patterns: set[str] = set()
    for work_id in found:
        loop = snapshot.loops.get(work_id)
        if loop is not None:
            owners |= dict.fromkeys(loop.aliases, work_id)
            patterns |= {use.pattern_id for use in loop.injected}
    patterns |= {event.pattern_id for event in snapshot.events if event.loop_id in owners}
    for pattern_id in sorted(patterns & snapshot.patterns.keys()):
        for use in state.board.observations(pattern_id):
            if use.kind == "applied" and use.loop_id in owners:
                found[owners[use.loop_id]].append(use)
    return {work_id: tuple(uses) for work_id, uses in found.items()}


_RECENT: Final = timedelta(days=7)
_MAX_ITERATIONS: Final = 500
_ENDED: Final = (WorkOutcome.SUCCESS, WorkOutcome.FAILURE, WorkOutcome.TIMEOUT)


class ActionLogs:
    """The logs of ended attempts, each read once for all conclusions."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._read: dict[str, ActionLog] = {}

    def read(self, attempt: Attempt) -> ActionLog:
        """Return the newest actions of an attempt; empty if its folder is gone or unsafe."""
        if attempt.id not in self._read:
            self._read[attempt.id] = ActionLog(
                _read_actions(self._project, attempt), str(self._project.project.project)
            )
        return self._read[attempt.id]


def record_verdicts(project: Project, source_id: str, logs: ActionLogs | None = None) -> None:
    """Record verdicts on all patterns that a loop, task or attempt got, each once."""
    snapshot, logs = project.view.snapshot, logs or ActionLogs(project)
    works = (source_id,) if source_id in snapshot.attempts else list_work_ids(source_id, snapshot)
    events = [event for work in works for event in _judge_work(project, work, logs)]
    if events:
        project.record(*events)


def list_unjudged(project: Project) -> list[str]:
    """Return attempts that ended in the last days with a pattern without a verdict."""
    snapshot, since = project.view.snapshot, project.now() - _RECENT
    recent = (one for one in snapshot.attempts.values() if one.outcome in _ENDED and (one.ended_at or since) > since)
    return [one.id for one in recent if _find_given(project, one.id)]


def _find_given(project: Project, work_id: str) -> dict[str, datetime]:
    """Return when a work was given each pattern that has no verdict yet."""
    about = [*project.view.inputs.about_work(work_id)]
    judged = {event.pattern_id for event in about if event.kind == VERDICT}
    given: dict[str, datetime] = {}
    for event in about:
        if event.kind == "injected" and event.pattern_id not in judged:
            given.setdefault(event.pattern_id, event.at)
    return given


def _judge_work(project: Project, work_id: str, logs: ActionLogs) -> Iterator[Event]:
    snapshot, given = project.view.snapshot, _find_given(project, work_id)
    patterns = [(snapshot.patterns[id], at) for id, at in sorted(given.items()) if id in snapshot.patterns]
    if not patterns:
        return
    attempt, loop = snapshot.attempts.get(work_id), snapshot.loops.get(work_id)
    outcome: WorkOutcome
    if attempt is not None and attempt.outcome in _ENDED:
        log, outcome = logs.read(attempt), attempt.outcome
    elif loop is not None and loop.status in FINISHED and (turns := _read_turns(project, loop)) is not None:
        success = project.view.inputs.success_of(loop)
        log, outcome = (
            turns,
            {True: WorkOutcome.SUCCESS, False: WorkOutcome.FAILURE, None: WorkOutcome.UNKNOWN}[success],
        )
    else:
        return
    works = {at: RecordedWork(log, at, outcome) for at in {at for _, at in patterns}}
    reported = {event.pattern_id for event in project.view.inputs.about_work(work_id) if event.kind == "applied"}
    for pattern, at in patterns:
        judgement = judge(pattern, works[at])
        yield _make_verdict(project, work_id, pattern, judgement, is_loop=attempt is None)
        if pattern.id not in reported and _is_use(pattern, judgement):
            yield make_event(project, "applied", work_id, pattern.id, success=judgement.has_worked)


def _is_use(pattern: Pattern, judgement: Judgement) -> bool:
    """Return whether following is a use; an error pattern also needs a proven result."""
    if not judgement.is_followed or pattern.type is PatternType.ANTI:
        return False
    return pattern.type is not PatternType.ERROR or judgement.has_worked is not None


def _read_actions(project: Project, attempt: Attempt) -> Sequence[Action]:
    try:
        folder = TaskFolder.of(project.project, attempt.task_id)
        place = find_attempt_folder(folder, attempt.number)
    except (BadInput, UnknownRecord):
        return ()
    actions = Actions(folder.project, folder.project.relative(place.actions))
    return actions[actions.find_newest(MAX_SUMMARIZED, MAX_SUMMARIZED_BYTES) :] if len(actions) else ()


def _read_turns(project: Project, loop: Loop) -> ActionLog | None:
    """Read what the iterations of a loop record; None if they cannot be read."""
    try:
        details = project.adapters.details(loop)
    except Refused:
        return None
    actions = [action for turn in details.iterations[-_MAX_ITERATIONS:] for action in make_turn_actions(turn)]
    return ActionLog(actions, str(project.project.project))


def _make_verdict(project: Project, work_id: str, pattern: Pattern, judgement: Judgement, *, is_loop: bool) -> Event:
    number = judgement.action or None
    return make_event(
        project,
        VERDICT,
        work_id,
        pattern.id,
        is_followed=judgement.is_followed,
        action=None if is_loop else number,
        iteration=number if is_loop else None,
        text=judgement.evidence,
    )


def make_event(project: Project, kind: str, work_id: str, pattern_id: str, **fields: object) -> Event:
    """Make an event of now, by this process, about a pattern in a loop or attempt."""
    now = project.now()
    return Event(
        id=event_id(now),
        at=now,
        kind=kind,
        pattern_id=pattern_id,
        loop_id=work_id,
        by=project.by,
        agent=project.agent,
        **fields,  # type: ignore[arg-type]
    )


# Trials of the experiment


def record_outcomes(project: Project, task_id: str, key: str, logs: ActionLogs) -> None:
    """Record a finished task's outcomes, once per assigned pattern; `key`: its trial."""
    if events := list(_find_outcomes(project, task_id, key, logs)):
        project.record(*events)


def _find_outcomes(project: Project, task_id: str, key: str, logs: ActionLogs) -> Iterator[Event]:
    state = project.view
    about = [event for event in state.inputs.list_trials(text_key(key)) if event.trial and event.trial.task == key]
    recorded = {event.pattern_id for event in about if event.kind == TRIAL_OUTCOME}
    assigned: dict[str, Event] = {}
    for event in about:
        if event.kind == ASSIGNED and event.pattern_id not in recorded:
            assigned.setdefault(event.pattern_id, event)
    if not assigned:
        return
    attempts = sorted(
        (one for one in state.snapshot.attempts.values() if one.task_id == task_id), key=lambda one: one.number
    )
    if not attempts:
        return
    read = [logs.read(attempt) for attempt in attempts]
    actions = [action for log in read for action in log.actions]
    is_own = state.snapshot.foreign.is_own_event
    given = {
        event.pattern_id
        for one in attempts
        for event in state.inputs.about_work(one.id)
        if event.kind == "injected" and is_own(event)
    }
    held_out = [id for id, event in assigned.items() if event.trial is not None and event.trial.is_held_out]
    given |= _find_in_agent_files(project, held_out)
    for pattern_id, event in sorted(assigned.items()):
        assert event.trial is not None
        pattern = state.snapshot.patterns.get(pattern_id)
        later = [action for action in actions if action.at is None or action.at > event.at]
        steps, minutes = _find_success(later, event.at)
        trial = replace(
            event.trial,
            returned=_has_returned(pattern, read, event.at),
            steps=steps,
            minutes=minutes,
            crossed=(pattern_id in given) is event.trial.is_held_out,
        )
        last = attempts[-1]
        yield make_event(project, TRIAL_OUTCOME, last.id, pattern_id, success=_SUCCESS.get(last.outcome), trial=trial)


def _find_in_agent_files(project: Project, pattern_ids: Iterable[str]) -> set[str]:
    """Return the patterns whose text is in a file that an agent loads by itself."""
    patterns = project.view.snapshot.patterns
    known = [patterns[id] for id in pattern_ids if id in patterns]
    if not known:
        return set()
    texts = {one.id: (one.description, one.title, one.better_alternative) for one in known}
    files = project.adapters.agent_files()
    return set(find_repeated(texts, ((file.file, file.lines[: file.loaded]) for file in files)))


def _has_returned(pattern: Pattern | None, logs: Iterable[ActionLog], since: datetime) -> bool | None:
    """Return whether a pattern's error occurred after a moment; None if it has none."""
    if pattern is None or pattern.type is not PatternType.ERROR:
        return None
    return any(log.has_error(pattern, since) for log in logs)


def _find_success(actions: Sequence[Action], since: datetime) -> tuple[int | None, float | None]:
    """Return steps and minutes to the check after which none failed; None without it."""
    found: tuple[int, Action] | None = None
    for steps, action in enumerate(actions, start=1):
        if action.success is None or not parse_command(action).check:
            continue
        if action.has_failed:
            found = None
        elif found is None:
            found = steps, action
    if found is None:
        return None, None
    steps, action = found
    return steps, (action.at - since).total_seconds() / 60 if action.at is not None else None
