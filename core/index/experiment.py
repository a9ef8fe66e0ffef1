"""The user's experiment in a project: share, secret, assignments and results.

Share and secret are in the user's own folders. A project can forbid the experiment (`injection.allow_experiment`), and
never start it. docs/experiments.md describes the method; `core.learning.experiments` has its statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec import Struct, structs

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.base.formatting import format_percent
from core.base.pattern_titles import pattern_title
from core.base.regexes import lazy_regex
from core.base.text import plural
from core.base.user_settings import (
    LEAST_SHARE,
    MAX_BYTES,
    MOST_SHARE,
    parse_user_settings,
    read_user_settings,
    user_settings_file,
)
from core.files.atomic_write import put
from core.files.file_access import file_lock
from core.learning.experiments import (
    MOST_STEPS,
    SAME_TASK,
    Coin,
    Comparison,
    Experiment,
    TrialResult,
    Verdict,
    compare_arms,
    describe_verdict,
    ratio_of_lengths,
    scale_length,
    secret_of_project,
    tally_trials,
    text_key,
)
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event, EventView, Trial, event_id
from core.records.patterns import PatternType
from core.trust.experiment_secret import read_or_make_secret
from core.trust.projects import trust_root

if TYPE_CHECKING:
    from datetime import (
        datetime,
    )
    from pathlib import (
        Path,
    )

    from core.base.paths import (
        ProjectPaths,
    )
    from core.base.settings import (
        Settings,
    )
    from core.index.project_state import (
        ProjectState,
    )
    from core.learning.experiments import (
        Assignment,
    )
    from core.records.patterns import (
        Pattern,
    )
    from core.records.snapshot import (
        Snapshot,
    )

_LOCK_SECONDS: Final = 5.0
_MOST_OWN: Final = 1_000  # newest own events that count
_MOST_READ: Final = 20_000  # newest events that are read: those of others must not make a call slow
_GROUP: Final = lazy_regex(r"(?m)^[ \t]*\[experiment\][ \t]*(?:#.*)?\n?")
_NEXT_GROUP: Final = lazy_regex(r"(?m)^[ \t]*\[")
_SHARE: Final = lazy_regex(r"(?m)^[ \t]*share[ \t]*=.*(?:\n|\Z)")


def find_experiment(paths: ProjectPaths, settings: Settings) -> Experiment | None:
    """Return the project's experiment; None without one or without its secret."""
    share = read_user_settings().experiment.share
    if share is None or not settings.injection.allow_experiment:
        return None
    with suppress(OSError, RalphdeckError):
        return Experiment(share, secret_of_project(read_or_make_secret(), trust_root(paths.project).name))
    return None


def is_forbidden(settings: Settings) -> bool:
    """Return whether the project forbids an experiment that its user has started."""
    return read_user_settings().experiment.share is not None and not settings.injection.allow_experiment


def explain_not_running(settings: Settings) -> str:
    """Return why a started experiment is not running; "" if the project forbids it."""
    if read_user_settings().experiment.share is not None and settings.injection.allow_experiment:
        try:
            read_or_make_secret()
        except (OSError, RalphdeckError) as error:
            return str(error)
    return ""


def set_share(share: float | None) -> Path:
    """Write the share to the user's settings, None to end it; returns the file.

    Nothing else in the file changes. Raises BadInput for an invalid share or if the file cannot be changed safely, and
    Unwritable.
    """
    if share is not None and not LEAST_SHARE <= share <= MOST_SHARE:
        raise BadInput(f"the share must be from {LEAST_SHARE} to {MOST_SHARE}, not {share:g}")
    file = user_settings_file()
    with file_lock(file.with_name(f".{file.name}.lock"), _LOCK_SECONDS):
        try:
            text = file.read_bytes()[: MAX_BYTES + 1].decode()
        except FileNotFoundError:
            text = ""
        except (OSError, ValueError) as error:
            raise BadInput(f"{file} cannot be read: {error}") from None
        changed = _with_share(text, share)
        try:
            before, after = parse_user_settings(text), parse_user_settings(changed)
        except ValueError as error:
            raise BadInput(f"{file} is not valid: {error}") from None
        others_differ = {**before, "experiment": None} != {**after, "experiment": None}
        if others_differ or after.get("experiment", {}).get("share") != share or len(changed) > MAX_BYTES:
            line = "remove the share from [experiment]" if share is None else f"add [experiment] with share = {share:g}"
            raise BadInput(f"{file} has an unexpected form; change it by hand: {line}")
        if changed != text:
            try:
                put(file, changed.encode())
            except OSError as error:
                raise Unwritable(f"cannot write {file}: {error.strerror}") from None
    return file


def _with_share(text: str, share: float | None) -> str:
    """Return the text of the settings with another share, or without one."""
    group = _GROUP.search(text)
    line = f"share = {share:g}\n" if share is not None else ""
    if group is None:
        gap = "\n" if text.strip() else ""
        return f"{text.rstrip()}\n{gap}[experiment]\n{line}".lstrip("\n") if line else text
    head, rest = text[: group.end()], text[group.end() :]
    end = found.start() if (found := _NEXT_GROUP.search(rest)) is not None else len(rest)
    own, after = rest[:end], rest[end:]
    own = _SHARE.sub(line, own, count=1) if _SHARE.search(own) is not None else line + own
    if not own.strip() and not line:  # the group had nothing else
        return text[: group.start()] + after
    return head + ("" if head.endswith("\n") else "\n") + own + after


def draw_coin(state: ProjectState, text: str, task: str = "") -> Coin | None:
    """Return the coin for a task with this text; None without an experiment.

    `task` is the key of the task if it is known, such as that of a session that goes on.
    """
    experiment = state.experiment
    if experiment is None or not (task or text.strip()):
        return None
    if not task:
        earlier = state.inputs.list_trials(experiment.key_of_text(text))
        task = experiment.key_of_task(text, state.now, earlier)
        if experiment.open_tasks and task not in experiment.open_tasks:
            return Coin(experiment, experiment.open_tasks[0], experiment.open_tasks[1:])
    return Coin(experiment, task)


def with_open_tasks(state: ProjectState, paths: ProjectPaths) -> ProjectState:
    """Return the state with the experiment and the tasks at work, newest first.

    A task is at work if something was assigned to it within a day, and its outcome is not recorded yet. Events of
    others and those dated later than now do not count.
    """
    experiment = find_experiment(paths, state.settings)
    if experiment is None:
        return state if state.experiment is None else replace(state, experiment=None)
    is_over: dict[str, bool] = {}
    snapshot = state.snapshot
    newest = islice(EventView.of(snapshot.events).newest_trials(), _MOST_READ)
    own = (event for event in newest if event.at <= state.now and snapshot.trial_key.is_own(event))
    for event in islice(own, _MOST_OWN):
        assert event.trial is not None
        if event.at <= state.now - SAME_TASK:
            break
        is_over[event.trial.task] = is_over.get(event.trial.task, False) or event.kind == TRIAL_OUTCOME
    open_tasks = tuple(task for task, has_ended in is_over.items() if not has_ended)
    return replace(state, experiment=structs.replace(experiment, open_tasks=open_tasks))


def coin_at_work(state: ProjectState) -> Coin | None:
    """Return the coin for what a task at work asks for; None if there is none."""
    experiment = state.experiment
    if experiment is None or not experiment.open_tasks:
        return None
    return Coin(experiment, experiment.open_tasks[0], experiment.open_tasks[1:])


def is_held_out(state: ProjectState, pattern: Pattern) -> bool:
    """Return whether a task at work must not get a pattern."""
    coin = coin_at_work(state)
    return coin is not None and coin.holds_out(pattern, state.assessment(pattern.id))


def make_assignments(
    state: ProjectState, task: str, assigned: Iterable[Assignment], work_id: str, by: str, at: datetime
) -> list[Event]:
    """Make the missing events about assignments of a task; none without its key."""
    if not task:
        return []
    known = {
        event.pattern_id
        for event in state.inputs.list_trials(text_key(task))
        if event.kind == ASSIGNED and event.trial is not None and event.trial.task == task
    }
    return [
        Event(
            id=event_id(at),
            at=at,
            kind=ASSIGNED,
            pattern_id=one.pattern_id,
            loop_id=work_id,
            by=by,
            trial=Trial(task=task, share=one.share, is_held_out=one.is_held_out),
        )
        for one in assigned
        if one.pattern_id not in known
    ]


_Key: TypeAlias = tuple[str, str]
_BY_TIME: Final = attrgetter("at", "kind", "id")  # an assignment comes before the outcome of the same moment


class Unit(NamedTuple):
    """One task and one pattern of the experiment.

    `work_id` is the loop that got the context, or the session. `outcome` and `success` are None until the task ends.
    """

    pattern_id: str
    work_id: str
    assigned: Trial
    outcome: Trial | None = None
    success: bool | None = None


class Medians(Struct, frozen=True):
    """Typical task length in both arms, to the check that passed; None without one."""

    given: float | None = None
    held_out: float | None = None


class PatternTrials(Struct, frozen=True, kw_only=True):
    """The arms of one pattern.

    `errors` compares how often its error returned, None for a pattern without an error. `length` compares the scaled
    numbers of steps to the check that passed; it has the verdict of a pattern without an error. `given` and `held_out`
    are the numbers of tasks that were assigned, `open` those that are not over, `crossed` those that had the pattern
    although it was held out, or did not get it although it was not: they count in the arm that the coin chose.
    """

    is_running: bool = True  # whether the experiment goes on

    pattern_id: str
    name: str  # its title: untrusted
    given: int
    held_out: int
    open: int
    crossed: int
    steps: Medians
    minutes: Medians
    errors: Comparison | None = None
    length: Comparison

    @property
    def judged(self) -> Comparison:
        """The comparison that has the verdict."""
        return self.errors or self.length

    @property
    def verdict(self) -> str:
        return describe_verdict(self.judged, is_running=self.is_running)

    @property
    def is_harmful(self) -> bool:
        return self.judged.verdict is Verdict.HURTS

    @property
    def arms(self) -> tuple[str, str]:
        """What is compared, given and held out: `error in 3 of 12` or `4 steps`."""
        if self.errors is not None:
            having, lacking = (
                f"error in {arm.total:,.0f} of {arm.trials:,}" for arm in (self.errors.given, self.errors.held_out)
            )
            return having, lacking
        having, lacking = ("—" if one is None else f"{one:g} steps" for one in (self.steps.given, self.steps.held_out))
        return having, lacking

    @property
    def counts(self) -> str:
        """The arms in words: `given: error in 3 of 12 tasks; held out: error in 9 of 14`."""
        having, lacking = self.arms
        if self.errors is not None:
            return f"given: {having} tasks; held out: {lacking}"
        return f"steps to the check that passed, given: {having}; held out: {lacking}"

    @property
    def steps_ratio(self) -> tuple[float, float, float] | None:
        """Typical steps with / without the pattern, low, high; None if an arm is empty."""
        found = self.length
        if found.difference is None:
            return None
        ratio, low, high = (ratio_of_lengths(one, MOST_STEPS) for one in (found.difference, found.low, found.high))
        return ratio, low, high

    @property
    def interval(self) -> str:
        """Effect: `-0.40 (-0.62 to -0.11)`, `0.5 times (0.3 to 0.8)`, or "" if unknown."""
        found, ratio = self.errors, self.steps_ratio
        if found is not None and found.difference is not None:
            return f"{found.difference:+.2f} ({found.low:+.2f} to {found.high:+.2f})"
        return f"{ratio[0]:.1f} times ({ratio[1]:.1f} to {ratio[2]:.1f})" if found is None and ratio is not None else ""


class ExperimentReport(Struct, frozen=True, kw_only=True):
    """The user's own trials in a project.

    `not_counted` is the number of other trials in the event log: another person recorded them, or this user on another
    machine, in another copy of the project, or with another secret.
    """

    patterns: tuple[PatternTrials, ...] = ()  # those with a verdict first, then those with most trials
    success: Comparison | None = None  # shares of tasks that succeeded, over all patterns
    is_running: bool = True  # whether lessons are held out now
    not_counted: int = 0

    @property
    def trials(self) -> int:
        return sum(one.given + one.held_out for one in self.patterns)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if not self.patterns:
            return "no task was assigned yet"
        counts = dict.fromkeys((Verdict.HELPS, Verdict.HURTS, Verdict.NO_DIFFERENCE), 0)
        for one in self.patterns:
            if one.judged.verdict in counts:
                counts[one.judged.verdict] += 1
        parts = [f"{plural(counts[Verdict.HELPS], 'lesson')} helped"] * bool(counts[Verdict.HELPS])
        parts += [f"{plural(counts[Verdict.HURTS], 'lesson')} hurt"] * bool(counts[Verdict.HURTS])
        parts += [f"{counts[Verdict.NO_DIFFERENCE]:,} made no difference"] * bool(counts[Verdict.NO_DIFFERENCE])
        undecided = len(self.patterns) - sum(counts.values())
        yet = " yet" * self.is_running
        parts += [f"no verdict{yet} on {plural(undecided, 'lesson')}"] * bool(undecided)
        stopped = "" if self.is_running else "stopped; "
        return f"{stopped}{', '.join(parts)} ({plural(self.trials, 'trial')})"


NO_EXPERIMENT: Final = ExperimentReport()


def measure_experiment(snapshot: Snapshot, now: datetime, *, is_running: bool = True) -> ExperimentReport:
    """Compare the tasks with and without each pattern that was assigned until `now`."""
    units, not_counted = _find_units(snapshot, now)
    if not units and not not_counted:
        return NO_EXPERIMENT
    by_pattern: dict[str, list[Unit]] = {}
    for unit in units:
        by_pattern.setdefault(unit.pattern_id, []).append(unit)
    patterns = snapshot.patterns
    found = [_measure_pattern(id, patterns.get(id), own, is_running=is_running) for id, own in by_pattern.items()]
    found.sort(key=lambda one: (not _has_verdict(one), -one.given - one.held_out, one.pattern_id))
    tally = tally_trials(list_results(units, is_far=True))
    success = compare_arms(tally, is_higher_better=True) if tally else None
    return ExperimentReport(patterns=tuple(found), success=success, is_running=is_running, not_counted=not_counted)


def find_harmful(snapshot: Snapshot, now: datetime) -> list[PatternTrials]:
    """Return the patterns that hurt, without the other results."""
    return [one for one in measure_experiment(snapshot, now).patterns if one.is_harmful]


def describe_success(comparison: Comparison, *, is_running: bool) -> str:
    """Describe the success of tasks in both arms, with the verdict."""
    having, lacking = (
        "—" if arm.rate is None else format_percent(arm.rate) for arm in (comparison.given, comparison.held_out)
    )
    return f"given: {having}, held out: {lacking}; {describe_verdict(comparison, is_running=is_running)}"


def measure_pattern(state: ProjectState, pattern: Pattern) -> PatternTrials | None:
    """Compare the tasks with and without a pattern; None if it was not assigned."""
    units = list(_collect_units(state.inputs.list_trials_of(pattern.id), state.now).values())
    is_running = state.experiment is not None
    return _measure_pattern(pattern.id, pattern, units, is_running=is_running) if units else None


def list_units(snapshot: Snapshot, now: datetime) -> list[Unit]:
    """Return the user's own trials until `now` in order of assignment, each once."""
    return _find_units(snapshot, now)[0]


def _find_units(snapshot: Snapshot, now: datetime) -> tuple[list[Unit], int]:
    """Return the user's own trials, and the number of the others in the event log."""
    own: list[Event] = []
    others: set[_Key] = set()
    for event in EventView.of(snapshot.events).trials:
        if snapshot.trial_key.is_own(event):
            own.append(event)
        else:
            others.add(_key_of(event))
    units = _collect_units(own, now)
    return [_with_loop(unit, snapshot) for unit in units.values()], len(others - units.keys())


def _collect_units(own: Iterable[Event], now: datetime) -> dict[_Key, Unit]:
    """Return the trials of the user's own events until `now`, each once."""
    units: dict[_Key, Unit] = {}
    for event in sorted(own, key=_BY_TIME):  # times are signed, the order of the lines is not
        key, trial = _key_of(event), event.trial
        if trial is None or event.at > now:
            continue
        known = units.get(key)
        if event.kind == ASSIGNED:
            units.setdefault(key, Unit(event.pattern_id, event.loop_id, trial))
        elif known is not None and known.outcome is None and _is_same_arm(known.assigned, trial):
            units[key] = known._replace(outcome=trial, success=event.success)
    return units


def _key_of(event: Event) -> _Key:
    """Return the task and the pattern of a trial."""
    return event.trial.task if event.trial is not None else "", event.pattern_id


def _with_loop(unit: Unit, snapshot: Snapshot) -> Unit:
    """Return a trial with the success of its loop if no hook recorded an outcome."""
    loop = snapshot.loops.get(unit.work_id) if unit.outcome is None else None
    if loop is None or not loop.status.ended or loop.runner:  # hooks record the outcomes of agents' sessions
        return unit
    return unit._replace(outcome=unit.assigned, success=loop.success)  # loops have no near outcome


def _is_same_arm(assigned: Trial, outcome: Trial) -> bool:
    return assigned.is_held_out is outcome.is_held_out


def list_results(units: Iterable[Unit], *, is_far: bool) -> Iterator[TrialResult]:
    """Yield whether finished trials succeeded (far), or whether the error returned.

    A task with an unknown result counts as one without success: whether a result is known may depend on the lesson.
    """
    for unit in units:
        if unit.outcome is not None:
            outcome = unit.success is True if is_far else unit.outcome.returned
            if outcome is not None:
                yield _result(unit, outcome)


def _result(unit: Unit, outcome: float) -> TrialResult:
    """Return a trial with one of its outcomes, 0..1."""
    trial = unit.assigned
    return TrialResult(
        task=trial.task,
        pattern=unit.pattern_id,
        share=trial.share,
        is_held_out=trial.is_held_out,
        outcome=float(outcome),
    )


def _measure_pattern(pattern_id: str, pattern: Pattern | None, units: list[Unit], *, is_running: bool) -> PatternTrials:
    has_error = any(unit.outcome is not None and unit.outcome.returned is not None for unit in units)
    has_error = has_error or (pattern is not None and pattern.type is PatternType.ERROR)
    lengths = [
        _result(unit, scale_length(unit.outcome.steps, MOST_STEPS))
        for unit in units
        if unit.outcome is not None and unit.outcome is not unit.assigned
    ]
    outcomes = [unit.outcome for unit in units if unit.outcome is not None]
    held_out = sum(unit.assigned.is_held_out for unit in units)
    return PatternTrials(
        is_running=is_running,
        pattern_id=pattern_id,
        name=pattern_title(pattern) if pattern is not None else pattern_id,
        given=len(units) - held_out,
        held_out=held_out,
        open=len(units) - len(outcomes),
        crossed=sum(one.crossed for one in outcomes),
        steps=Medians(*(_median(one.steps for one in outcomes if one.is_held_out is arm) for arm in (False, True))),
        minutes=Medians(*(_median(one.minutes for one in outcomes if one.is_held_out is arm) for arm in (False, True))),
        errors=_compare(tuple(list_results(units, is_far=False))) if has_error else None,
        length=_compare(tuple(lengths)),
    )


@lru_cache(maxsize=256)
def _compare(results: tuple[TrialResult, ...]) -> Comparison:
    """Compare the arms of a pattern; cached, because it takes some milliseconds."""
    return compare_arms(tally_trials(results))


def _median(values: Iterable[float | None]) -> float | None:
    from statistics import median  # hooks, which import this module, measure nothing

    known = [value for value in values if value is not None]
    return median(known) if known else None


def _has_verdict(found: PatternTrials) -> bool:
    return found.judged.verdict is not Verdict.UNDECIDED
