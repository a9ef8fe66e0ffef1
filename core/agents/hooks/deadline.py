"""Ends hooks that take too long (docs/agents.md#hooks); starts background work.

Processor time is limited, because it is what the hook itself costs. A busy machine makes a hook wait, so the limit of
elapsed time is longer, above all at a prompt, whose context is worth the wait.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from core.agents.agent_table import Moment
from core.base.errors import BadInput
from core.files.atomic_write import put
from core.files.file_access import make_folder, open_regular

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

PROCESSOR_SECONDS: Final = 2.0
PROMPT_SECONDS: Final = 6.0  # elapsed time; agents end a hook after 10 s
OTHER_SECONDS: Final = 4.0
ANSWER_SECONDS: Final = 3.0  # elapsed time to save and send an answer that is complete
_POLL_SECONDS: Final = 0.05
_LOG: Final = "gave-up.jsonl"
_MAX_BYTES: Final = 1 << 16  # of the log
_MAX_TEXT: Final = 200
_COUNTED: Final = timedelta(days=7)


class Deadline:
    """Limits of a hook; calls `give_up` once with the reason, from another thread.

    `elapsed` and `processor` are clocks in seconds; `processor` starts with the process.
    """

    def __init__(
        self,
        give_up: Callable[[str], None],
        *,
        elapsed: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = lambda: sum(os.times()[:4]),
    ) -> None:
        self._give_up = give_up
        self._elapsed = elapsed
        self._processor = processor
        self._began = elapsed()
        self._seconds = PROMPT_SECONDS
        self._lock = threading.Lock()
        self._has_ended = False
        self._is_answering = False

    def start(self) -> None:
        """Watch the limits in a thread."""
        threading.Thread(target=self._watch, daemon=True).start()

    def set_moment(self, moment: Moment) -> None:
        """Set the limit of elapsed time for an event; until then it is that of a prompt."""
        self._seconds = PROMPT_SECONDS if moment is Moment.PROMPT else OTHER_SECONDS

    def begin_answer(self) -> None:
        """Grant time to save and send an answer; else one recorded as sent may be lost."""
        with self._lock:
            self._is_answering = True
            self._seconds = self._elapsed() - self._began + ANSWER_SECONDS

    def check(self) -> None:
        """Give up if a limit is exceeded."""
        with self._lock:
            elapsed, processor = self._elapsed() - self._began, self._processor()
            is_costly = processor >= PROCESSOR_SECONDS and not self._is_answering
            if self._has_ended or not (is_costly or elapsed >= self._seconds):
                return
            self._has_ended = True
            why = "too much processor time" if is_costly else "the machine or the disk is busy"
            self._give_up(f"not finished in time: {why} ({processor:.1f} s of {elapsed:.1f} s)")

    def _watch(self) -> None:
        while not self._has_ended:
            time.sleep(_POLL_SECONDS)
            self.check()


class GiveUp(Struct, omit_defaults=True):
    """A hook that ended without doing its work."""

    at: Annotated[datetime, Meta(tz=True)]
    agent: str
    event: str
    reason: str


_decoder: Final = msgspec.json.Decoder(GiveUp)


def record_give_up(project: ProjectPaths, agent: str, event: str, reason: str, at: datetime) -> None:
    """Log a hook that gave up; only the newest stay. Raises OSError or BadInput."""
    line = msgspec.json.encode(GiveUp(at, agent, event[:_MAX_TEXT], reason[:_MAX_TEXT])) + b"\n"
    folder = project.unlinked(project.relative(project.sessions))
    make_folder(folder)
    path = folder / _LOG
    handle = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, line)
        size = os.fstat(handle).st_size
    finally:
        os.close(handle)
    if size > _MAX_BYTES:
        lines = _read_lines(project)
        put(path, b"".join(lines[-(len(lines) // 2) :]))


def count_give_ups(project: ProjectPaths, now: datetime) -> dict[str, int]:
    """Count hooks that gave up in 7 days by reason without numbers, most first."""
    counts: Counter[str] = Counter()
    for line in _read_lines(project):
        try:
            found = _decoder.decode(line)
        except (ValueError, RecursionError):
            continue
        if now - _COUNTED < found.at <= now:
            counts[found.reason.partition(" (")[0]] += 1
    return dict(counts.most_common())


def _read_lines(project: ProjectPaths) -> list[bytes]:
    try:
        path = project.unlinked(project.relative(project.sessions)) / _LOG
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            return file.read(2 * _MAX_BYTES).splitlines(keepends=True)
    except (OSError, BadInput):
        return []


# Work of `core.agents.hooks.background`, in a process of its own


def start_background(project: ProjectPaths) -> None:
    """Start the process for sessions without waiting; OSError if it cannot start."""
    start_detached("sessions", project)


def start_sweep(project: ProjectPaths) -> None:
    """Start a process that compares all files; a second one ends at once."""
    with suppress(OSError):
        start_detached("sweep", project)


def start_detached(work: str, project: ProjectPaths) -> None:
    """Start work for a project's folder; `-P` prevents imports from that folder."""
    import subprocess  # takes 2 ms to import, and most events start no process

    subprocess.Popen(
        [sys.executable, "-P", "-m", "core.agents.hooks.background", work, str(project.project)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
