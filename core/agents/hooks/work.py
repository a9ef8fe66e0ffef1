"""Turn a session into a task with attempts (docs/agents.md#sessions).

The first tool call after a prompt opens a task for the prompt, or continues the one of the session. The end of a turn
closes the attempt if its log proves an outcome. A success completes the task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from core.agents.hooks.events import HookEvent, digest, find_copilot_text, find_text_before
from core.agents.hooks.sessions import (
    MAX_PROMPTS,
    Given,
    PromptTask,
    Session,
    Sessions,
    find_prompt_task,
    remember,
    remember_prompt_task,
    split_attempt_id,
    spooled_calls,
)
from core.base.errors import BadInput, Conflict, RalphdeckError, Refused, UnknownRecord, Unwritable
from core.base.paths import is_safe_id
from core.base.shell_commands import is_read_only
from core.base.text import visible, visible_line
from core.records.episodes import TaskStatus
from core.records.events import injected_events
from core.records.loops import SESSION_TAG
from core.records.times import iso
from core.sources.agent_sessions import loop_id_of
from core.sources.episodes import MAX_TEXT
from core.tasks.changes import edits_files
from core.tasks.protocol import Episodes
from core.tasks.task_files import TaskFolder
from core.tasks.validation import EDITING, parse_tool_event

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.records.events import Event


NO_PROMPT: Final = "Work without a prompt"  # description of a task if the agent reports no prompt
_MAX_MESSAGE: Final = 1_500  # characters of the agent's last message that are recorded
_MAX_LOG: Final = 1 << 19  # bytes of logs from which a hook writes debug sessions itself
_TASK_VARIABLE: Final = "RALPHDECK_TASK"


class SessionWork:
    """Writes the work of one agent's session into the task memory.

    If the environment names a task (`RALPHDECK_TASK`), its newest attempt gets the actions, and nothing is opened or
    closed. `warn` is called with problems that do not stop a call.
    """

    def __init__(
        self,
        project: ProjectPaths,
        agent: str,
        *,
        clock: Callable[[], datetime],
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._project = project
        self._agent = agent
        self._clock = clock
        self._warn = warn
        self._memory = Episodes(project, clock=clock, by=agent, warn=warn)
        self._named_task = os.environ.get(_TASK_VARIABLE, "").strip()

    def begin_turn(self, session: Session, prompt: str) -> bool:
        """Take a new prompt; False if it is the same event from a second set of hooks."""
        if session.is_turn_open and not session.has_acted and prompt == session.prompt:
            return False
        if prompt == session.prompt:  # its context is in the conversation, so it serves this attempt, too
            session.given.is_recorded = False
        else:
            session.given = Given()
        session.is_turn_open, session.has_acted, session.prompt = True, False, prompt
        session.first_prompt = session.first_prompt or prompt
        session.turns += 1
        known = session.tasks.get(digest(prompt))
        if known is not None and known != session.task:
            session.task, session.attempt, session.abandoned = known, 0, 0
            session.trial, _ = session.trials.get(known, ("", ""))
        return True

    def log_spooled(self, session: Session) -> None:
        """Log the tool calls that earlier events could not log."""
        for call in spooled_calls(self._project, session.id):
            with suppress(BadInput, Conflict):  # a damaged task; the call is dropped
                self.log_tool(session, call.event, call.at)

    def log_tool(self, session: Session, event: HookEvent, at: datetime | None = None) -> bool:
        """Log an event's tool call at `at` (now); False if logged before or irrelevant."""
        if event.is_own_tool:
            return False
        try:
            action = parse_tool_event(event.tool, str(self._project.project))
        except BadInput:
            return False
        if event.call and not session.remember_call(event.call, event.content):
            return False
        if action["type"] in EDITING or edits_files(str(action.get("params", {}).get("command", ""))):
            is_copilot = event.agent == "copilot" and not event.transcript
            text = find_copilot_text(event.session) if is_copilot else find_text_before(event.transcript, event.call_id)
            if text:
                action["reasoning"] = visible(text)
        if at is not None:
            action["timestamp"] = iso(at)
        session.has_acted = session.is_turn_open = True
        if self._named_task:
            logged = self._memory.log_action(self._named_task, action)
            _note_check(session, self._named_task, logged.number, action)
            return True
        if not session.attempt or not is_safe_id(session.task):
            self._open(session)
        try:
            self._memory.log_action(session.task, action, attempt=session.attempt)
        except (Refused, UnknownRecord):  # another process ended the attempt or deleted the task
            self._open(session)
            self._memory.log_action(session.task, action, attempt=session.attempt)
        _note_check(session, session.task, session.attempt, action)
        session.remember_trial(self._project.project)
        self.record_given(session)
        return True

    def _open(self, session: Session) -> None:
        """Start an attempt at the session's task, one with its prompt, or a new task."""
        if session.abandoned:
            self._reopen(session)
        known = session.tasks.get(digest(session.prompt))
        if session.task and not known and self._has_ended(session.task):
            session.task = ""
        earlier = "" if session.task else self._find_repeated(session)
        session.task = session.task or earlier
        loop_id = loop_id_of(session.agent, session.id)
        try:
            TaskFolder.of(self._project, session.task)
        except (UnknownRecord, BadInput):
            description = visible_line(session.prompt, MAX_TEXT - 1) or NO_PROMPT
            session.task = self._memory.init_task(description, tags=(SESSION_TAG,), loop_id=loop_id)
        remember_task(session)
        is_next = bool(earlier)  # the open attempt of another session is left as it is
        started = self._memory.start_attempt(
            session.task, resume=not is_next, beside=is_next, reopen=True, loop_id=loop_id
        )
        session.attempt = started.number
        self._remember_first_prompt(session)

    def _reopen(self, session: Session) -> None:
        """Reopen the attempt that was closed as abandoned, since the session goes on."""
        with suppress(Refused, UnknownRecord, BadInput, Conflict):
            self._memory.reopen_attempt(session.task, session.abandoned)
            session.ended_tasks = [task for task in session.ended_tasks if task != session.task]
        session.abandoned = 0

    def _find_repeated(self, session: Session) -> str:
        """Return an earlier task of the same prompt within a day, unless in work; or ""."""
        if session.turns > 1 or not session.prompt:
            return ""
        found = find_prompt_task(self._project, digest(session.prompt), self._clock())
        if found is None or found.session == session.id:
            return ""
        other = Sessions(self._project).find(found.session)
        return "" if other is not None and other.works_on(found.task, self._clock()) else found.task

    def _remember_first_prompt(self, session: Session) -> None:
        if session.turns <= 1 and session.prompt:
            found = PromptTask(session.task, session.id, self._clock())
            try:
                remember_prompt_task(self._project, digest(session.prompt), found)
            except Unwritable as error:
                self._warn(f"the next session with this prompt begins a new task: {error}")

    def _has_ended(self, task_id: str) -> bool:
        from core.tasks.history import strict_reader  # most events read no task

        try:
            return strict_reader(TaskFolder.of(self._project, task_id)).task().status.ended
        except (UnknownRecord, BadInput):
            return True

    def record_given(self, session: Session) -> None:
        """Record the context's lessons as injected into the attempt, or the session.

        A turn without an action, such as a question, belongs to no attempt.
        """
        given = session.given
        is_of_attempt = session.has_acted
        if given.is_recorded or not given.context or (is_of_attempt and not session.attempt):
            return
        loop_id = loop_id_of(session.agent, session.id)
        work_id = f"{session.task}.{session.attempt}" if is_of_attempt else loop_id
        self._record_injected(work_id, given.patterns, given.reflections, given.tokens)
        given.is_recorded = True

    def record_fix(self, session: Session, fix: Given) -> None:
        """Record a known fix's patterns as injected into the open attempt, each once."""
        new = [pattern for pattern in fix.patterns if pattern not in session.given.patterns]
        if not new or not session.attempt:
            return
        given = session.given
        given.patterns += new
        given.tokens.update({id: size for id, size in fix.tokens.items() if id in new})
        if given.context and not given.is_recorded:  # they are recorded with the context of the prompt
            return
        self._record_injected(f"{session.task}.{session.attempt}", new, tokens=given.tokens)

    def _record_injected(
        self,
        work_id: str,
        patterns: Sequence[str],
        reflections: Sequence[str] = (),
        tokens: Mapping[str, int] | None = None,
    ) -> None:
        from core.sources.events import append_events

        if made := injected_events(work_id, patterns, reflections, at=self._clock(), by=self._agent, tokens=tokens):
            append_events(self._project, *made)

    def record_assigned(self, events: Sequence[Event]) -> None:
        """Record what the experiment gives and holds out."""
        from core.sources.events import append_assignments

        if events:
            append_assignments(self._project, *events)

    def end_turn(self, session: Session, message: str = "") -> None:
        """Close the attempt if its log proves an outcome; success completes the task.

        Then write the debug sessions of attempts with checks; for long logs, the background process does. `message` is
        the agent's last message, which is recorded with the outcome.
        """
        session.is_turn_open = False
        if not session.has_acted:
            self.record_given(session)
        self._close_attempt(session, message)
        attempts = [attempt for id in session.checked if (attempt := split_attempt_id(id)) is not None]
        if sum(log_size(self._project, *attempt) for attempt in attempts) <= _MAX_LOG:
            self.write_debug_sessions(session)

    def _close_attempt(self, session: Session, message: str) -> None:
        if not session.attempt:
            return
        try:
            ended = self._memory.complete_attempt(
                session.task, attempt=session.attempt, reason=_shorten(message), success_completes=True
            )
            if ended.status is TaskStatus.COMPLETED:
                self._add_ended(session)
                session.trial = ""  # another prompt is another task
        except BadInput:  # the log proves nothing, so the attempt stays open
            return
        except (Refused, UnknownRecord):  # another process ended or deleted it
            pass
        session.attempt = 0

    def write_debug_sessions(self, session: Session) -> None:
        """Write the debug sessions of the attempts whose checks the debug memory lacks."""
        for attempt_id in list(session.checked):
            attempt = split_attempt_id(attempt_id)
            try:
                if attempt is not None:
                    write_debug_session(self._project, *attempt, self._clock())
            except (Conflict, Unwritable) as error:
                self._warn(f"the debug session of {attempt_id} was not written: {error}")
            else:
                session.checked.remove(attempt_id)

    def end_session(self, session: Session) -> None:
        """Close the task as failed if its newest attempt failed, else pause it."""
        self.end_turn(session)
        if not session.task or self._has_ended(session.task):
            return
        try:
            if session.attempt:
                self._memory.pause_task(session.task)
            else:
                self._memory.complete_attempt(session.task, task_done=False)
                self._add_ended(session)
                session.trial = ""
        except (Refused, UnknownRecord, BadInput):
            return

    def _add_ended(self, session: Session) -> None:
        remember(session.ended_tasks, session.task, MAX_PROMPTS)


def _note_check(session: Session, task: str, number: int, action: Mapping[str, Any]) -> None:
    """Remember an attempt with a command that may be a check for the debug memory."""
    command = (action.get("params") or {}).get("command")
    if isinstance(command, str) and command and not is_read_only(command):
        remember(session.checked, f"{task}.{number}", MAX_PROMPTS)


def _shorten(message: str) -> str:
    """Return a message's start without filler, secrets and hidden characters."""
    from core.tasks.reasons import split_reason

    return visible("\n\n".join(split_reason(message)), _MAX_MESSAGE)


def remember_task(session: Session) -> None:
    """Remember the task of the newest prompt, for the same prompt in a later turn."""
    session.tasks[digest(session.prompt)] = session.task
    for oldest in list(session.tasks)[:-MAX_PROMPTS]:
        del session.tasks[oldest]


# Debug sessions of attempts (docs/task-memory.md#sessions-of-attempts)


def log_size(project: ProjectPaths, task_id: str, number: int) -> int:
    """Return the size of the log of an attempt in bytes, 0 if there is none."""
    from core.tasks.task_files import TaskFolder, find_attempt_folder

    try:
        return find_attempt_folder(TaskFolder.of(project, task_id), number).actions.lstat().st_size
    except (RalphdeckError, OSError):
        return 0


def write_debug_session(project: ProjectPaths, task_id: str, number: int, now: datetime) -> str:
    """Write an attempt's debug session; return its ID, "" if no check failed.

    The ID is also "" if the attempt is gone. Repeating the call changes nothing, unless the log has grown. Raises
    Conflict or Unwritable.
    """
    from core.tasks.history import read_attempt
    from core.tasks.session_files import make_session, merge_records, save_session

    try:
        detail = read_attempt(project, task_id, number)
    except (UnknownRecord, BadInput):
        return ""
    record = make_session(detail.attempt, detail.actions, now, root=str(project.project))
    if record is None:
        return ""
    save_session(project, record, merge_records)
    return str(record["session_id"])
