"""Report to a program of the user which sessions newly need a person (docs/settings.md#notify).

The command comes from the user's own settings, never from a file of a project. It gets JSON on standard input.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.base.errors import BadInput, RalphdeckError
from core.base.masking import mask_secrets
from core.base.text import visible_line
from core.base.user_settings import read_user_settings, user_settings_file
from core.files.user_command import CommandFailed, run_user_command
from core.files.user_files import UserStore, project_key, state_file
from core.show.needs import Need, NeedKind, describe_need, find_needs

if TYPE_CHECKING:
    from core.index.project_state import ProjectState

SECONDS: Final = 30.0  # time limit of one call
PAUSE_SECONDS: Final = 30.0  # between two calls of one process
MAX_NEEDS: Final = 50  # of one call, the most urgent first; the others follow in the next ones
_MAX_TEXT: Final = 400  # characters of a text
_MAX_PATH: Final = 4096  # characters of the path of the project
_MAX_PROJECTS: Final = 200  # projects whose needs are stored, those reported last
_MAX_KEPT: Final = 1_000  # needs of a project that are reported and stored, the most urgent ones
_TABLE: Final = "notified"

log = logging.getLogger(__name__)


class ReportedNeed(Struct, frozen=True):
    """A need in the request. `loop_id` or `session_id` may be ""; `text` is one sentence. Texts may be untrusted."""

    kind: str
    title: str
    text: str
    since: datetime | None
    loop_id: str
    session_id: str


class NeedReport(Struct, frozen=True):
    """The request: what newly needs a person in a project."""

    version: int
    project: str
    needs: tuple[ReportedNeed, ...]


class Notifier:
    """Runs the command once for each need, also if several processes watch the project.

    A need that has ended may be reported again later. One thread calls `check`; another one runs the command, and kills
    it when the program ends. `clock` returns monotonic seconds.
    """

    def __init__(
        self, project: Path, command: Sequence[str] | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self.command = tuple(read_user_settings().notify.command if command is None else command)
        self._project = project
        self._clock = clock
        self._next = float("-inf")  # when the command may run again
        self._known: frozenset[str] | None = None  # the needs at the last check, if all were reported
        self._running: threading.Thread | None = None

    def check(self, state: ProjectState) -> None:
        """Report the needs of a state that were not reported yet; a failure is logged and not repeated."""
        is_whole = state.snapshot.complete and state.snapshot.as_of is None
        is_busy = self._clock() < self._next or (self._running is not None and self._running.is_alive())
        if not self.command or not is_whole or is_busy:
            return
        needs = {need_key(need): need for need in find_needs(state)[:_MAX_KEPT]}
        if needs.keys() == self._known:
            return
        new, is_rest = self._remember(list(needs))
        self._known = None if is_rest else frozenset(needs)
        if new:
            self._next = self._clock() + PAUSE_SECONDS
            report = make_report(self._project, state, [needs[key] for key in new])
            # Not a daemon: the program waits for it, and it ends when the main thread has ended.
            self._running = threading.Thread(target=self._send, args=(report,), name="ralphdeck-notify")
            self._running.start()

    @classmethod
    def for_loop(cls, project: Path) -> Callable[[ProjectState], object] | None:
        """Return `check` of a notifier; None if the user has set no command."""
        notifier = cls(project)
        return notifier.check if notifier.command else None

    def wait(self) -> None:
        """Wait until the command has ended."""
        if self._running is not None:
            self._running.join()

    def _remember(self, keys: Sequence[str]) -> tuple[Sequence[str], bool]:
        """Store which of the present needs are reported; return those to report now, and whether some are left."""
        from tinydb import where

        project = project_key(self._project)
        try:
            with UserStore(state_file()).transaction() as tables:
                table = tables.table(_TABLE)
                reported = {
                    key for row in table.search(where("project") == project) for key in _texts(row.get("needs"))
                }
                new = [key for key in keys if key not in reported]
                sent = new[:MAX_NEEDS]
                kept = [key for key in keys if key in reported or key in sent]
                if reported != set(kept):
                    table.remove(where("project") == project)
                    table.remove(doc_ids=[row.doc_id for row in table][: -_MAX_PROJECTS + 1])
                    table.insert({"project": project, "needs": kept})
        except RalphdeckError as error:  # without a memory the same need would be reported again and again
            log.warning("cannot notify: %s", error)
            return (), False
        return sent, len(new) > len(sent)

    def _send(self, report: NeedReport) -> None:
        try:
            send_report(self.command, report)
        except RalphdeckError as error:
            log.warning("the notify command %s", error)


def report_all_needs(project: Path, state: ProjectState) -> None:
    """Run the command for all that needs a person now, also if it was reported before.

    Raises BadInput if the user has set none, and CommandFailed if it fails.
    """
    command = read_user_settings().notify.command
    if not command:
        raise BadInput(f"No notify command is set. Set command in the group notify of {user_settings_file()}.")
    try:
        send_report(command, make_report(project, state, find_needs(state)))
    except CommandFailed as error:
        raise CommandFailed(f"The notify command {error}") from None


def need_key(need: Need) -> str:
    """Return what identifies a need: another question of the same session is another need."""
    texts = (need.kind.value, need.loop_id, need.session_id, need.text if need.kind is NeedKind.ASKS else "")
    return blake2b("\0".join(texts).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def make_report(project: Path, state: ProjectState, needs: Sequence[Need]) -> NeedReport:
    """Return the request about some needs, with secrets masked and no control characters."""
    return NeedReport(
        1, visible_line(str(project), _MAX_PATH), tuple(_report(state, need) for need in needs[:MAX_NEEDS])
    )


def send_report(command: Sequence[str], report: NeedReport, seconds: float = SECONDS) -> None:
    """Run the command; what it prints is dropped. Raises CommandFailed, see `run_user_command`."""
    main = threading.main_thread()
    run_user_command(command, msgspec.json.encode(report) + b"\n", seconds, lambda: not main.is_alive(), reads=False)


def _report(state: ProjectState, need: Need) -> ReportedNeed:
    loop, session = state.snapshot.loops.get(need.loop_id), state.snapshot.debug_sessions.get(need.session_id)
    title = loop.task if loop is not None else session.file_path if session is not None else ""
    return ReportedNeed(
        kind=need.kind.value,
        title=_text(title),
        text=_text(describe_need(need, state.now)),
        since=need.since,
        loop_id=_text(need.loop_id),
        session_id=_text(need.session_id),
    )


def _text(text: str) -> str:
    return visible_line(mask_secrets(text), _MAX_TEXT)


def _texts(value: object) -> list[str]:
    """Return the texts of a list that was read from a file."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
