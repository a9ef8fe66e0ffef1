"""The project that a server serves: opened once, up to date for each call, one call at a time."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from core.base.errors import DamagedError, ReadOnly, Refused
from core.index.experiment import with_open_tasks
from core.index.findings import ledger_error
from core.records.decisions import CLIENT
from core.trust.projects import FOR_AGENTS, is_trusted

if TYPE_CHECKING:
    from datetime import datetime

    from core.index.project_state import ProjectState
    from core.project.project import Project

MAX_CALLS: Final = 60  # calls in a minute
_MINUTE: Final = 60.0
_MAX_CLIENT: Final = 40  # characters of the name of a client
_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9._]+")


def sign(client: str) -> str:
    """Return the name that signs what a client reports: `mcp:claude-code`; the name is untrusted."""
    name = _NOT_IN_NAME.sub("-", client[: 4 * _MAX_CLIENT].lower())[:_MAX_CLIENT].strip("-._")
    return f"{CLIENT}{name or 'unknown'}"


class Session:
    """One open project for the agents of one server.

    `load` reads the records of the project; it is called once. `clock` returns monotonic seconds.
    """

    def __init__(self, project: Project, load: Callable[[], object], *, clock: Callable[[], float] = monotonic) -> None:
        self.project = project
        self.is_readonly = project.is_readonly
        self.injections: dict[tuple[str, str], tuple[str, datetime]] = {}
        """IDs and times of the injections of the last hour, by work item and digest of the task."""
        self._started = project.now()
        self._load = load
        self._clock = clock
        self._lock = threading.RLock()
        self._is_loaded = False
        self._calls: deque[float] = deque(maxlen=MAX_CALLS)

    def open(self) -> None:
        """Read the records, unless that was done before."""
        with self._lock:
            if not self._is_loaded:
                self._load()
                self._is_loaded = True

    @contextmanager
    def call(self, client: str = "", *, writes: bool = False) -> Iterator[ProjectState]:
        """Give the newest state to one call of a client.

        Raises Refused for too many calls in a minute, in a project that the user does not trust, or if the decisions
        cannot be read, because the texts that are withheld are then unknown; ReadOnly if a read-only server is asked to
        write.
        """
        if writes and self.is_readonly:
            raise ReadOnly("this server is read-only")
        with self._lock:
            self._count_call()
            if not is_trusted(self.project.project):
                raise Refused(FOR_AGENTS)
            if self._is_loaded:
                self.project.apply(None)
            else:
                self.open()
            self.project.by, self.project.agent = sign(client), sign(client).removeprefix(CLIENT)
            state = with_open_tasks(self.project.view, self.project.project)
            if problem := ledger_error(state):
                raise Refused(f"nothing is answered, because the decisions cannot be read: {problem}")
            try:
                yield state
            except DamagedError:
                self.project.recover()  # for the next call
                raise

    def own_work_id(self, client: str) -> str:
        """Return the ID of the work of a client that names no loop: one for each run of the server."""
        return f"{sign(client)}@{self._started:%Y%m%dT%H%M%S}"

    def _count_call(self) -> None:
        now = self._clock()
        if len(self._calls) == MAX_CALLS and now - self._calls[0] < _MINUTE:
            wait = max(round(_MINUTE - (now - self._calls[0])), 1)
            raise Refused(f"{MAX_CALLS} calls in the last minute; try again in {wait} s")
        self._calls.append(now)
