"""Records of agents' sessions: task, what was given, and unlogged tool calls.

One small JSON file per session in `.aiwg/ralph/sessions`, named after a digest of the session's ID; beside it a folder
with the tool calls that could not be logged, because the session was locked or the hook gave up, and one file with the
tasks by the first prompts of sessions. The folder is private to one machine. A damaged or foreign file counts as a new
session, or as empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from core.agents.agent_table import AGENTS, AgentProcess, Moment, find_agent_process
from core.agents.hooks.events import MAX_PROMPT, FailedCall, HookEvent, digest
from core.base.errors import BadInput
from core.base.masking import mask_values
from core.base.paths import is_safe_id
from core.base.regexes import lazy_regex
from core.files.atomic_write import put
from core.files.file_access import as_unwritable, file_lock, make_folder, open_regular
from core.sources.episodes import MAX_ATTEMPTS
from core.sources.liveness import is_running, process_space, system_processes

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


_Record = TypeVar("_Record")
MAX_CALLS: Final = 500  # tool calls that are remembered, to count each once
MAX_ANSWERED: Final = 200  # errors that were answered with a fix, to answer each once
MAX_PROMPTS: Final = 50  # prompts whose task is remembered, for loops that repeat a prompt
_MAX_BYTES: Final = 1 << 20
MAX_TRIES: Final = 3  # events that try to deliver the same context
_MAX_OWED: Final = 3  # errors whose fix is not delivered yet, the newest ones
_LOCK_SECONDS: Final = 3.0
_SILENT_AFTER: Final = timedelta(minutes=30)  # longer than most commands run
_ATTEMPT: Final = lazy_regex(r"(?P<task>.{1,200})\.(?P<number>[1-9][0-9]{0,5})")  # ID of an attempt
_UNDATED: Final = datetime.min.replace(tzinfo=UTC)


class Given(Struct, omit_defaults=True):
    """The context that was delivered for a prompt, and whether it is recorded."""

    context: str = ""
    patterns: list[str] = field(default_factory=list)  # IDs
    reflections: list[str] = field(default_factory=list)  # IDs
    tokens: dict[str, int] = field(default_factory=dict)  # size of each pattern in the context
    is_recorded: bool = False


class Owed(Struct, omit_defaults=True):
    """What a session still has to get: no event could carry it, or a hook gave up."""

    prompt: str = ""  # gets the context for its text
    errors: list[FailedCall] = field(default_factory=list)  # get their known fixes
    tries: int = 0  # events that tried to deliver it

    def add_prompt(self, prompt: str) -> None:
        """Owe the context for a prompt, beside that for an earlier one."""
        self.prompt = f"{self.prompt}\n\n{prompt}"[-MAX_PROMPT:].strip()
        self.tries = 0

    def add_error(self, error: FailedCall) -> None:
        """Owe the known fix of an error."""
        self.errors = [*self.errors, error][-_MAX_OWED:]
        self.tries = 0

    def take(self, other: Owed) -> Owed:
        """Remove what `other` contains, and return it, so that it is delivered once."""
        taken = Owed(other.prompt if other.prompt == self.prompt else "", [e for e in other.errors if e in self.errors])
        if taken.prompt:
            self.prompt = ""
        self.errors = [one for one in self.errors if one not in taken.errors]
        return taken


class Session(Struct, omit_defaults=True):
    """What is known about one session of an agent."""

    agent: str
    id: str
    started: Annotated[datetime, Meta(tz=True)] | None = None  # time of its first event
    last_event: Annotated[datetime, Meta(tz=True)] | None = None
    ended: Annotated[datetime, Meta(tz=True)] | None = None  # time of its end, None if it began again
    process: AgentProcess | None = None
    turns: int = 0  # number of its prompts
    first_prompt: str = ""
    prompt: str = ""  # the newest one
    is_turn_open: bool = False  # whether the agent works on the newest prompt
    has_acted: bool = False  # whether a tool was called since the newest prompt
    task: str = ""  # ID of the task of the newest prompt, "" before the first tool call
    attempt: Annotated[int, Meta(ge=0, le=MAX_ATTEMPTS)] = 0  # number of the open attempt, 0 if none is open
    abandoned: Annotated[int, Meta(ge=0, le=MAX_ATTEMPTS)] = 0  # the attempt that was closed without an event, or 0
    tasks: dict[str, str] = field(default_factory=dict)  # ID of the task by digest of the prompt
    context: str = ""  # the newest one that was delivered
    given: Given = field(default_factory=Given)
    owed: Owed = field(default_factory=Owed)
    given_for: list[str] = field(default_factory=list)  # digests of the prompts that got a context since a compaction
    calls: list[str] = field(default_factory=list)  # the newest tool calls: digest of the ID, and of the content
    answered: list[str] = field(default_factory=list)  # digests of the errors answered with a fix
    checked: list[str] = field(default_factory=list)  # IDs of attempts with checks that the debug memory lacks
    has_warned: bool = False  # whether the agent got the notice that the project is not trusted
    trial: str = ""  # key of the task of the newest prompt in the experiment, "" without one
    trials: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Such keys without a recorded outcome by ID of the task, each with the `seal` of `TrialKey`."""
    ended_tasks: Annotated[list[str], Meta(max_length=MAX_PROMPTS)] = field(default_factory=list)
    """IDs of tasks from which patterns are not extracted yet."""

    @property
    def finished_trials(self) -> dict[str, tuple[str, str]]:
        """Keys and seals of the tasks in the experiment that are over, by ID of the task."""
        is_over = self.ended is not None
        done = self.ended_tasks
        return {id: key for id, key in self.trials.items() if is_over or id in done or id != self.task}

    def remember_trial(self, project: Path) -> None:
        """Remember which task of the experiment the task of the newest prompt is."""
        known, _ = self.trials.get(self.task, ("", ""))
        if self.task and self.trial and self.trial != known:
            from core.trust.experiment_secret import trial_key  # most sessions have no trial

            # A repository can bring records of sessions; without the seal, their outcomes would be signed as own ones.
            self.trials[self.task] = self.trial, trial_key(project).seal(self.id, self.task, self.trial)
            for oldest in list(self.trials)[:-MAX_PROMPTS]:
                del self.trials[oldest]

    @property
    def has_known_process(self) -> bool:
        """Whether the agent's process is known and runs on this machine or container."""
        return self.process is not None and self.process.space == process_space()

    @property
    def is_running(self) -> bool:
        """Whether the session has not ended and its process runs."""
        return self.ended is None and _is_alive(self.process)

    def remember_call(self, call: str, content: str) -> bool:
        """Remember a tool call by digests; False if the last one with its ID is the same."""
        entry = f"{call} {content}".strip()
        last = next((known for known in reversed(self.calls) if known.startswith(call)), "")
        if last in (entry, call):
            return False
        self.calls = [*(known for known in self.calls if known != last), entry][-MAX_CALLS:]
        return True

    @property
    def call_ids(self) -> frozenset[str]:
        """Digests of the IDs of the newest tool calls."""
        return frozenset(known.partition(" ")[0] for known in self.calls)

    def works_on(self, task: str, now: datetime) -> bool:
        """Return whether the agent works on a task now.

        It does not if its process has ended, or if that is unknown and no event came for some time.
        """
        if self.ended is not None or self.task != task or not self.is_turn_open:
            return False
        if self.has_known_process:
            return _is_alive(self.process)
        return self.last_event is not None and now - self.last_event <= _SILENT_AFTER


_decoder: Final = msgspec.json.Decoder(Session)


def remember(values: list[str], value: str, most: int) -> bool:
    """Add a value to a list of the newest `most` values; False if it is in the list."""
    if value in values:
        return False
    values.append(value)
    del values[:-most]
    return True


class Sessions:
    """The session records of a project; BadInput if their folder is a link."""

    def __init__(self, project: ProjectPaths) -> None:
        self._folder = project.unlinked(project.relative(project.sessions))

    @contextmanager
    def edit(self, event: HookEvent, now: datetime) -> Iterator[Session]:
        """Read an event's session under a lock, save it at the end; raises Unwritable."""
        with self.edit_known(event.session, Session(event.agent, event.session)) as session:
            assert session is not None
            _note_event(session, event, now)
            yield session

    @contextmanager
    def edit_known(self, session_id: str, new: Session | None = None) -> Iterator[Session | None]:
        """Read a session under a lock, `new` if it has no record, and save it at the end."""
        path = self._path(session_id)
        with file_lock(_lock_file(path), _LOCK_SECONDS):
            session = _read(path) or new
            yield session
            if session is not None:
                save_record(path, msgspec.json.encode(session))

    def all(self) -> list[Session]:
        """Return all sessions, newest event first."""
        try:
            files = [path for path in self._folder.iterdir() if path.suffix == ".json"]
        except OSError:
            return []
        read = ((path, _read(path)) for path in files)
        found = [session for path, session in read if session is not None and self._path(session.id) == path]
        return sorted(found, key=lambda session: session.last_event or _UNDATED, reverse=True)

    def find(self, session_id: str) -> Session | None:
        """Return the session with an ID, None if there is no record of it."""
        return _read(self._path(session_id))

    def remove(self, session: Session) -> None:
        """Delete the record of a session, and its tool calls that were not logged."""
        import shutil  # takes 2 ms to import; this is rare

        path = self._path(session.id)
        if path.with_suffix(".calls").is_dir():
            shutil.rmtree(path.with_suffix(".calls"), ignore_errors=True)
        with suppress(OSError):
            path.unlink()
            _lock_file(path).unlink()

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{digest(session_id)}.json"


def _note_event(session: Session, event: HookEvent, now: datetime) -> None:
    """Note the event's time, the end of the session, and the agent's process."""
    session.started = session.started or now
    session.last_event = now
    if event.moment is Moment.SESSION_END:
        session.ended = now
    elif event.moment in (Moment.START, Moment.PROMPT):
        session.ended = None
    if event.moment is Moment.START or not _is_alive(session.process):
        session.process = find_agent_process(event.agent) or session.process


def _is_alive(process: AgentProcess | None) -> bool:
    """Return whether a process is known, and runs on this machine."""
    is_here = process is not None and process.space == process_space()
    return process is not None and is_here and is_running(process.pid, process.started, system_processes())


def _lock_file(record: Path) -> Path:
    """Return the lock of one session, so that sessions do not wait for each other."""
    return record.with_suffix(".lock")


def last_event(project: ProjectPaths) -> tuple[str, datetime] | None:
    """Return the agent and the time of the newest hook event in a project, or None."""
    with suppress(BadInput):
        for session in Sessions(project).all():
            if (at := session.last_event) is not None:
                return session.agent, at
    return None


def _read(path: Path) -> Session | None:
    session = read_record(path, _decoder, _MAX_BYTES)
    if session is None or session.agent not in AGENTS:
        return None
    session.checked = [id for id in session.checked if split_attempt_id(id) is not None]
    session.ended_tasks = [id for id in session.ended_tasks if is_safe_id(id)]
    session.trials = {id: key for id, key in session.trials.items() if is_safe_id(id)}
    return session


def split_attempt_id(attempt_id: str) -> tuple[str, int] | None:
    """Return task and number of an attempt such as `task-001.2`, else None."""
    match = _ATTEMPT.fullmatch(attempt_id)
    return (match["task"], int(match["number"])) if match is not None and is_safe_id(match["task"]) else None


def save_record(path: Path, data: bytes) -> None:
    """Replace a record; raises Unwritable if the disk or permissions prevent it."""
    with as_unwritable(path):
        put(path, data)


def read_record(path: Path, decoder: msgspec.json.Decoder[_Record], limit: int) -> _Record | None:
    """Read a file of at most `limit` bytes; None if there is none or it is damaged."""
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            return decoder.decode(file.read(limit))
    except (OSError, ValueError, RecursionError):
        return None


# Tool calls that are not logged yet

MAX_SPOOLED: Final = 50  # calls of one session; each is logged durably, which takes some milliseconds

_SUFFIX: Final = ".call"


class SpooledCall(Struct, frozen=True):
    """The event of a tool call, and its time."""

    at: Annotated[datetime, Meta(tz=True)]
    event: HookEvent


_call_decoder: Final = msgspec.json.Decoder(SpooledCall)


def spool_call(project: ProjectPaths, event: HookEvent, at: datetime) -> bool:
    """Keep a tool call, secrets masked; False if too long or too many in the session.

    Raises Unwritable, OSError or BadInput if it cannot be written.
    """
    folder = _folder(project, event.session)
    try:
        data = msgspec.json.encode(SpooledCall(at, event))
        if len(data) <= _MAX_BYTES:
            data = msgspec.json.encode(SpooledCall(at, replace(event, tool=mask_values(event.tool))))
    except ValueError:  # a text that is not valid Unicode
        return False
    if len(data) > _MAX_BYTES or len(_files(folder)) >= MAX_SPOOLED:
        return False
    make_folder(folder)
    save_record(folder / f"{at.astimezone(UTC):%Y%m%dT%H%M%S%f}-{os.urandom(4).hex()}{_SUFFIX}", data)
    return True


def spooled_calls(project: ProjectPaths, session: str) -> Iterator[SpooledCall]:
    """Yield the calls of a session, oldest first; delete each before the next one."""
    folder = _folder(project, session)
    for path in _files(folder):
        call = read_record(path, _call_decoder, _MAX_BYTES)
        if call is not None and _is_call_of(session, call.event):
            yield call
        with suppress(OSError):
            path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _is_call_of(session: str, event: HookEvent) -> bool:
    return event.session == session and event.agent in AGENTS and event.moment is Moment.TOOL


def _folder(project: ProjectPaths, session: str) -> Path:
    return project.unlinked(project.relative(project.sessions / f"{digest(session)}.calls"))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)[:MAX_SPOOLED]
    except OSError:
        return []


# Tasks by the first prompts of sessions: a prompt that a new process repeats is another attempt at the same task

REPEATED_WITHIN: Final = timedelta(days=1)
MAX_FIRST_PROMPTS: Final = 500  # the newest ones
_NAME: Final = "prompts.json"
_MAX_PROMPT_BYTES: Final = 1 << 18


class PromptTask(Struct, frozen=True):
    """The task of a prompt, and the session that worked on it last."""

    task: str
    session: str
    at: Annotated[datetime, Meta(tz=True)]


_prompt_decoder: Final = msgspec.json.Decoder(dict[str, PromptTask])


def find_prompt_task(project: ProjectPaths, prompt: str, now: datetime) -> PromptTask | None:
    """Return the task of a prompt, by its digest, if a session began with it lately."""
    found = _read_prompt_tasks(_file(project)).get(prompt)
    return found if found is not None and abs(now - found.at) <= REPEATED_WITHIN else None


def remember_prompt_task(project: ProjectPaths, prompt: str, task: PromptTask) -> None:
    """Remember a task by the digest of a session's first prompt; raises Unwritable."""
    path = _file(project)
    with file_lock(path.with_suffix(".lock"), _LOCK_SECONDS):
        tasks = _read_prompt_tasks(path)
        tasks.pop(prompt, None)
        tasks[prompt] = task
        save_record(path, msgspec.json.encode(_newest(tasks)))


def _newest(tasks: dict[str, PromptTask]) -> dict[str, PromptTask]:
    """Return the last entries that fit into the file, by order: times may be wrong."""
    newest = list(reversed(tasks.items()))[:MAX_FIRST_PROMPTS]
    sizes = accumulate(len(msgspec.json.encode({prompt: task})) for prompt, task in newest)
    fitting = sum(size < _MAX_PROMPT_BYTES for size in sizes)
    return dict(reversed(newest[:fitting]))


def _file(project: ProjectPaths) -> Path:
    return project.unlinked(project.relative(project.sessions)) / _NAME


def _read_prompt_tasks(path: Path) -> dict[str, PromptTask]:
    return read_record(path, _prompt_decoder, _MAX_PROMPT_BYTES) or {}
