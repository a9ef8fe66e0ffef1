"""The user's experiment in a project: its share, the secret of its coin, and the log of what it assigns.

Share and secret are in the user's own folders. A project can forbid the experiment (`injection.allow_experiment`), and
never start it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import structs

from core.base.errors import BadInput, RalphdeckError, Unwritable
from core.base.regexes import lazy_regex
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
from core.learning.experiments import SAME_TASK, Coin, Experiment, secret_of_project, text_key
from core.records.event_log import EventView
from core.records.events import ASSIGNED, TRIAL_OUTCOME, Event, Trial, event_id
from core.trust.experiment_secret import read_or_make_secret
from core.trust.projects import trust_root

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.learning.experiments import Assignment
    from core.records.patterns import Pattern

_LOCK_SECONDS: Final = 5.0
_MOST_OWN: Final = 1_000  # newest own events that count
_MOST_READ: Final = 20_000  # newest events that are read: those of others must not make a call slow
_GROUP: Final = lazy_regex(r"(?m)^[ \t]*\[experiment\][ \t]*(?:#.*)?\n?")
_NEXT_GROUP: Final = lazy_regex(r"(?m)^[ \t]*\[")
_SHARE: Final = lazy_regex(r"(?m)^[ \t]*share[ \t]*=.*(?:\n|\Z)")


def find_experiment(paths: ProjectPaths, settings: Settings) -> Experiment | None:
    """Return the experiment in a project; None if there is none, or if its secret can be neither read nor made."""
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
    """Return why an experiment that the user has started holds nothing out; "" if the project alone forbids it."""
    if read_user_settings().experiment.share is not None and settings.injection.allow_experiment:
        try:
            read_or_make_secret()
        except (OSError, RalphdeckError) as error:
            return str(error)
    return ""


def set_share(share: float | None) -> Path:
    """Write the share to the user's settings, None to end the experiment; returns the file.

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
    """Return the state with the present experiment and the tasks at work, newest first.

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
    """Make the events about the assignments of a task that are not in the event log yet; none without its key."""
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
