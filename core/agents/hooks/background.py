"""Background processes: one for sessions, and one that compares all files.

The first closes abandoned sessions, writes debug sessions, and extracts patterns from tasks that ended. Of each, one
process per project works at a time; it ends when nothing is left to do.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.agents.hooks.sessions import Sessions
from core.agents.hooks.work import SessionWork
from core.base.errors import RalphdeckError, Unwritable
from core.base.paths import ProjectPaths, is_folder
from core.files.file_access import file_lock
from core.files.user_files import cache_path

if TYPE_CHECKING:
    from core.agents.hooks.sessions import Session


ABANDONED_AFTER: Final = timedelta(hours=6)  # a session without a process and an event for this time has ended
UNSEEN_AFTER: Final = timedelta(days=3)  # the same if its process cannot be checked: the machine may have slept
SETTLED_AFTER: Final = timedelta(
    minutes=5
)  # checks of a session without an event for this time go into its debug session
FORGOTTEN_AFTER: Final = timedelta(days=30)  # records of sessions without an event for this time are deleted
_LOCK: Final = ".background.lock"
_SWEEP_LOCK: Final = "sweep.lock"  # in the user's cache folder
_NICE: Final = 10
_PROBLEMS: Final = (RalphdeckError, OSError, ValueError)  # of one session or task; the others must not wait for it


def needs_background(sessions: list[Session], now: datetime) -> bool:
    """Return whether a session is abandoned, or has checks, tasks, trials to process."""
    return any(
        session.ended_tasks
        or session.finished_trials
        or _is_abandoned(session, now)
        or _lacks_debug_session(session, now)
        for session in sessions
    )


def notifies() -> bool:
    """Return whether a program of the user is notified of what needs a person."""
    from core.base.user_settings import read_user_settings

    return bool(read_user_settings().notify.command)


def is_compiled() -> bool:
    """Return whether the byte code for contexts exists, or cannot be saved.

    Without it the first prompt would compile 500 modules, a second of processor time. uv installs no byte code.
    """
    source = Path(__file__).with_name("contexts.py")
    can_save = not sys.dont_write_bytecode and os.access(source.parent, os.W_OK)
    return not can_save or Path(cache_from_source(source)).exists()


def _compile() -> None:
    """Import the modules for contexts, which saves their byte code."""
    for name in ("core.agents.hooks.contexts", "core.base.scanning.verdict"):
        import_module(name)


def _lacks_debug_session(session: Session, now: datetime) -> bool:
    """Return whether a settled session has checks that are not in the debug memory."""
    at = session.last_event
    is_settled = at is not None and (now - at > SETTLED_AFTER or not session.is_turn_open)
    return bool(session.checked) and is_settled


def _is_abandoned(session: Session, now: datetime) -> bool:
    at, limit = session.last_event, ABANDONED_AFTER if session.has_known_process else UNSEEN_AFTER
    return bool(session.attempt) and at is not None and now - at > limit and not session.is_running


def run(project: ProjectPaths, now: datetime) -> None:
    """Do the work of a project, unless another process does it already."""
    sessions = Sessions(project)
    try:
        with file_lock(project.sessions / _LOCK, 0):
            while needs_background(sessions.all(), now):
                _end_abandoned(project, sessions, now)
                _write_debug_sessions(project, sessions, now)
                if not _extract(project, sessions, now):
                    break
            for session in sessions.all():
                is_old = session.last_event is None or now - session.last_event > FORGOTTEN_AFTER
                if is_old and not session.is_running:
                    sessions.remove(session)
    except Unwritable:  # another process does the work
        return


def _end_abandoned(project: ProjectPaths, sessions: Sessions, now: datetime) -> None:
    for one in sessions.all():
        if _is_abandoned(one, now):
            with suppress(*_PROBLEMS), sessions.edit_known(one.id) as session:
                if session is not None and _is_abandoned(session, now):
                    session.abandoned = session.attempt
                    with suppress(*_PROBLEMS):  # a damaged task must not be tried again and again
                        work = SessionWork(project, session.agent, clock=lambda: now)
                        work.log_spooled(session)
                        work.end_session(session)
                    session.attempt, session.ended = 0, session.last_event


def _write_debug_sessions(project: ProjectPaths, sessions: Sessions, now: datetime) -> None:
    for one in sessions.all():
        if _lacks_debug_session(one, now):
            with suppress(*_PROBLEMS):
                SessionWork(project, one.agent, clock=lambda: now).write_debug_sessions(one)  # hooks do not wait for it
                with sessions.edit_known(one.id) as session:
                    if session is not None and session.last_event == one.last_event:
                        session.checked = one.checked


def _extract(project: ProjectPaths, sessions: Sessions, now: datetime) -> bool:
    """Record outcomes of trials, extract from ended tasks; False if none was done."""
    known = sessions.all()
    ended = [(session.id, session.agent, task) for session in known for task in session.ended_tasks]
    trials = [(session.id, session.agent, *trial) for session in known for trial in session.finished_trials.items()]
    if not ended and not trials:
        return False
    from core.agents.hooks.contexts import load_project
    from core.project.error_advice import write_task_lessons
    from core.project.finished_work import ActionLogs, record_outcomes, record_verdicts
    from core.project.watch_loop import extract_unattended, is_wanted
    from core.trust.experiment_secret import trial_key

    opened = load_project(project, "", lambda: now)
    logs = ActionLogs(opened)
    is_any_done = False
    own = trial_key(project.project)
    for session_id, agent, task, (key, seal) in trials:
        opened.by = opened.agent = agent
        with suppress(*_PROBLEMS):
            if own.is_sealed(session_id, task, key, seal):
                record_outcomes(opened, task, key, logs)
            with sessions.edit_known(session_id) as session:
                if session is not None and session.trials.get(task) == (key, seal):
                    del session.trials[task]
            is_any_done = True
    for session_id, agent, task in ended:
        opened.by = opened.agent = agent
        with suppress(*_PROBLEMS):
            record_verdicts(opened, task, logs)
            write_task_lessons(opened, task)
            if is_wanted(opened.settings.extraction):
                extract_unattended(opened, task)
            with sessions.edit_known(session_id) as session:
                if session is not None and task in session.ended_tasks:
                    session.ended_tasks.remove(task)
            is_any_done = True
    return is_any_done


def _report_needs(project: ProjectPaths) -> None:
    from core.agents.hooks.contexts import load_project
    from core.show.needs import Notifier

    notifier = Notifier(project.project)
    notifier.check(load_project(project, "", lambda: datetime.now(UTC)).view)
    notifier.wait()


# The comparison of all files with the index


def is_first_load(project: ProjectPaths) -> bool:
    """Return whether the index is being made, so that a hook would read all files."""
    import sqlite3  # imported on use: few events look for this

    from core.index.database import read_existing
    from core.index.records import COMPLETE, TEXTS, Reader

    with suppress(RalphdeckError, sqlite3.Error, ValueError):
        connection = read_existing(project.project)
        if connection is not None:
            with closing(connection):
                reader = Reader(connection, {})
                if reader.meta(COMPLETE) is not None and reader.meta(TEXTS) is not None:
                    return False
    try:
        with file_lock(cache_path(project.project, _SWEEP_LOCK), 0):
            return False
    except Unwritable:
        return True


def sweep(folder: str) -> None:
    """Update a project's index and check its pages, unless another process does so.

    It also does what no change waits for: without the weights that are fitted to past tasks, each hook fits them anew.
    """
    from core.base.steps import run_all
    from core.index.anchors import check_in_steps
    from core.index.refresh import Index
    from core.index.verdicts import IndexVerdicts
    from core.questions.search import ROOMS, verdict_settings
    from core.sources.configuration import Configuration

    project = ProjectPaths(Path(folder))
    with file_lock(cache_path(project.project, _SWEEP_LOCK), 0):
        settings = Configuration.read(project).settings
        index = Index(project, settings, clock=lambda: datetime.now(UTC))
        index.load()
        while not index.settle()[0]:
            pass
        index.check_pages()
        if settings.review.check_anchors:
            stored = IndexVerdicts(index, ROOMS, verdict_settings(settings))
            run_all(check_in_steps(index.snapshot, stored))


def main(work: str, folder: str) -> None:
    """Do the work of a process, `sessions` or `sweep`, for the project in a folder."""
    os.nice(_NICE)
    if work == "sweep":
        sweep(folder)
        return
    if not is_compiled():
        _compile()
    project = ProjectPaths(Path(folder))
    if is_folder(project.sessions):
        run(project, datetime.now(UTC))
    if notifies():
        _report_needs(project)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (RalphdeckError, OSError):  # the process has no output; a later event starts it again
        sys.exit(1)
