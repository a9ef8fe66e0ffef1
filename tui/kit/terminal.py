"""The terminal: input driver, queue of typed keys, clipboard, and notifications."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import math
import os
import select
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from math import inf
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from textual import events
from textual.app import App, ScreenStackError
from textual.constants import ESCAPE_DELAY
from textual.widgets import Input, TextArea

from core.base.text import plural, visible
from core.records.findings import Severity
from core.records.loops import LoopStatus
from tui.kit.textual_private import HookedDriver, XTermParser

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.message_pump import MessagePump

    from core.project.notifications import Notification

_TICK_SECONDS: Final = 0.1
_PENDING_SECONDS: Final = max(1.0, 2 * ESCAPE_DELAY)  # how long after the last key the parser may wait for more
_MAX_READ: Final = 4096


class ResilientDriver(HookedDriver):
    """Skips bytes that are not UTF-8, and ends cleanly when the terminal closes.

    Textual's driver ends the app on the first invalid byte of a paste. When the terminal closes, its writer thread
    dies, and the app waits for that thread forever.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.file = _Terminal(self.file)
        self.exit_event: _SelectableEvent = _SelectableEvent()
        self._suspended = False
        self._was_terminal = os.isatty(self.fileno)

    @property
    def is_closed(self) -> bool:
        """Return True if the terminal closed without SIGHUP; every read is then empty."""
        poll = select.poll()
        poll.register(self.fileno, 0)  # a hang-up is always reported
        return self._was_terminal and bool(poll.poll(0))

    def suspend_application_mode(self) -> None:
        self._suspended = True
        super().suspend_application_mode()

    def resume_application_mode(self) -> None:
        """Resume after another program has used the terminal.

        A terminal that closes sends SIGCONT with SIGHUP; resuming then would start threads that never end.
        """
        if self._suspended:
            self._suspended = False
            super().resume_application_mode()

    def run_input_thread(self) -> None:  # Textual's wakes up ten times a second, which takes 0.1 % of a core
        """Read keys until the app ends."""
        parser = XTermParser(self.is_debugged)
        decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        read_at = -math.inf
        while not self.exit_event.is_set():
            is_quiet = monotonic() - read_at > _PENDING_SECONDS
            ready, _, _ = select.select([self.fileno, self.exit_event], [], [], None if is_quiet else _TICK_SECONDS)
            if self.fileno in ready:
                data = os.read(self.fileno, _MAX_READ)
                if not data:  # the terminal is closed, which `is_closed` reports
                    self.exit_event.wait()
                    break
                read_at = monotonic()
                for message in parser.feed(text) if (text := decode(data)) else ():
                    self.process_message(message)
            for message in parser.tick():  # a lone Esc is reported after some time
                self.process_message(message)


class _SelectableEvent(threading.Event):
    """Event for which `select` can wait."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        if not self.is_set():
            super().set()
            os.write(self._writer, b".")

    def clear(self) -> None:
        if self.is_set():
            super().clear()
            os.read(self._reader, 1)


class _Terminal:
    """Terminal file that silently discards writes after the terminal has closed."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


def flush_output() -> None:
    """Redirect output to /dev/null if the terminal is closed, to keep the exit code."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# The clipboard, through tmux or the terminal (OSC 52), also over ssh


MOST_BYTES: Final = 74_994  # UTF-8 bytes that every terminal with OSC 52 accepts: 100,000 bytes with base64 and frame
TMUX_SECONDS: Final = 2.0  # timeout of a tmux command


def copyable(text: str) -> tuple[str, bool]:
    """Return the text that can be copied, and whether it was cut.

    Control characters are made visible: a copied text may be pasted into a shell.
    """
    shown = visible(text)
    data = shown.encode()
    if len(data) <= MOST_BYTES:
        return shown, False
    return data[:MOST_BYTES].decode(errors="ignore"), True


async def load_into_tmux(text: str) -> str | None:
    """Load a text into tmux and its terminal. Return the toast, or None on failure.

    `load-buffer -w` works if `set-clipboard` is `external`, tmux's default, which blocks OSC 52 of programs in tmux.
    """
    if await _tmux("load-buffer", "-w", "-", given=text) is None:
        return None
    setting = await _tmux("show-options", "-sv", "set-clipboard")
    if setting is not None and setting.strip() == "off":
        return "to tmux alone: prefix ] pastes it; `set -s set-clipboard on` lets it reach the clipboard"
    return "to tmux (prefix ] pastes it) and to the clipboard of the terminal around it"


async def _tmux(*arguments: str, given: str = "") -> str | None:
    """Return the output of a tmux command; None without tmux, on an error or timeout."""
    process = None
    try:
        process = await asyncio.create_subprocess_exec("tmux", *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        printed, _ = await asyncio.wait_for(process.communicate(given.encode()), TMUX_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # type: ignore[union-attr]  # it was started, else nothing could take too long
        return None
    except OSError:
        return None
    return printed.decode(errors="replace") if process.returncode == 0 else None


def copy_message(text: str, way: str, *, cut: bool) -> str:
    """Return the toast after a copy: size, destination, and whether it was cut."""
    what = f"Copied {plural(len(text), 'character')}"
    if cut:
        what = f"Copied only the first {len(text):,} characters, the limit of terminals,"
    return f"{what} {way}"


def terminal_way(environment: Mapping[str, str] | None = None) -> str:
    """Describe how a copy through the terminal reaches the clipboard, for the toast."""
    environment = os.environ if environment is None else environment
    if environment.get("TMUX"):
        return "through the terminal; needs tmux option `set -s set-clipboard on`"
    if environment.get("SSH_TTY") or environment.get("SSH_CONNECTION"):
        return "over ssh through the terminal (OSC 52); if nothing arrives, allow it in the terminal's settings"
    return "through the terminal (OSC 52)"


class Copier:
    """Copies texts for an app, and reports the result with `say`."""

    def __init__(self, app: App[Any], say: Callable[[str], None]) -> None:
        self._app = app
        self._say = say

    def copy(self, text: str) -> None:
        """Copy a text. It may be untrusted."""
        copied, cut = copyable(text)
        if os.environ.get("TMUX"):
            self._app.run_worker(self._copy_in_tmux(copied, cut=cut), group="copy", exclusive=True)
        else:
            self._report(copied, None, cut=cut)

    async def _copy_in_tmux(self, text: str, *, cut: bool) -> None:
        self._report(text, await load_into_tmux(text), cut=cut)

    def _report(self, text: str, way: str | None, *, cut: bool) -> None:
        """Report a copy through tmux, or copy through the terminal if tmux failed."""
        if way is None:
            self._app.copy_to_clipboard(text)
        self._say(copy_message(text, way or terminal_way(), cut=cut))

    def selected(self) -> str:
        """Return the text selected in a field or with the mouse, or ""."""
        focused = self._app.focused
        if isinstance(focused, Input | TextArea) and focused.selected_text:
            return focused.selected_text
        return self._app.screen.get_selected_text() or ""


# Notifications by terminal bell or desktop message


MODES: Final = {
    "off": "Notifications: off",
    "bell": "Notifications: terminal bell",
    "osc9": "Notifications: desktop (OSC 9: iTerm2, WezTerm, kitty, Ghostty, Windows Terminal)",
    "osc777": "Notifications: desktop (OSC 777: foot, urxvt, VTE, Ghostty)",
}
"""Kinds of notifications, each with the toast shown when it is chosen."""
PAUSE_SECONDS: Final = 60.0  # minimum seconds between two notifications; events in between are reported in the next one

_MANY: Final = {"question in Review": "questions in Review"}


class Bell:
    """Collects events that need a decision, and notifies at most once per interval.

    A notification contains only counts and fixed words, no text from files. `mode` returns a key of `MODES`;
    `write` writes to the terminal; `clock` returns monotonic seconds; `environment` is used to detect tmux.
    """

    def __init__(
        self,
        mode: Callable[[], str],
        write: Callable[[str], None],
        clock: Callable[[], float],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._mode = mode
        self._write = write
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._waiting: Counter[str] = Counter()
        self._called = float("-inf")

    def note(self, happened: Iterable[Notification]) -> None:
        """Collect the events that need the user, and notify if enough time has passed."""
        if self._mode() == "off":
            self._waiting.clear()
            return
        self._waiting.update(kind for one in happened if (kind := _kind(one)))
        self.call_if_due()

    def call_if_due(self) -> None:
        """Notify if there are events and the last notification is long enough ago."""
        if self._waiting and self._clock() - self._called >= PAUSE_SECONDS:
            self.call(", ".join(plural(count, kind, _MANY.get(kind)) for kind, count in self._waiting.items()))
            self._waiting.clear()

    def call(self, words: str) -> None:
        self._called = self._clock()
        text = {
            "bell": "\a",
            "osc9": f"\x1b]9;ralphdeck: {words}\x1b\\",
            "osc777": f"\x1b]777;notify;ralphdeck;{words}\x1b\\",
        }.get(self._mode(), "")
        if text.startswith("\x1b") and self._environment.get("TMUX"):
            doubled = text.replace("\x1b", "\x1b\x1b")
            text = f"\x1bPtmux;{doubled}\x1b\\"
        if text:
            self._write(text)


def _kind(one: Notification) -> str:
    """Return the name of an event that needs the user, or "" for other events."""
    from core.project.notifications import NotificationKind

    if one.status is LoopStatus.CRASHED:
        return "crashed loop"
    if one.what is NotificationKind.ESCALATED:
        return "escalation"
    if one.what is NotificationKind.REFUSED:
        return "refused decision"
    return "question in Review" if one.what is NotificationKind.ASKED and one.severity is Severity.WARNING else ""


GUARD_SECONDS: Final = 0.5  # how long deciding keys are ignored after another screen has appeared
LONGEST_SECONDS: Final = 5.0  # Timeout for the effects of one key at each step: a key that hangs must not block typing.
_HELD_SECONDS: Final = 0.01
FEWEST_ROUNDS: Final = 2
MOST_ROUNDS: Final = 8  # checks of the widgets that handle a key: their messages may move the focus

Typed: TypeAlias = events.Key | events.Paste


class JumpGuard:
    """Ignores deciding keys typed before a new screen or question can be seen."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = -inf

    def arm(self) -> None:
        self._until = self._clock() + GUARD_SECONDS

    def blocks(self, typed_at: float | None) -> bool:
        """Return True if a deciding key typed at this time is ignored. None means now."""
        return (self._clock() if typed_at is None else typed_at) < self._until


class KeyQueue:
    """Holds keys and pasted texts, and posts each to `app` when its turn comes.

    Textual sends a key to the widget that has focus when the key arrives, and moves the focus later. Without the queue,
    fast typing of `/d` would deprecate a pattern, and the `p` of `Enter p` would become text. While
    `holds` returns True, the next key waits for background work that a key has started.
    """

    def __init__(self, app: App[None], holds: Callable[[], bool], clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._holds = holds
        self._clock = clock
        self._waiting: deque[tuple[Typed, float]] = deque()
        self._turn: Typed | None = None
        self.typed_at: float | None = None  # when the current key was typed; None if no key is being handled
        self._task: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether all keys have been handled."""
        return self._task is None or self._task.done()

    def has_turn(self, event: Typed) -> bool:
        return event is self._turn

    def put(self, event: Typed) -> None:
        self._waiting.append((event, self._clock()))
        if self.is_empty:
            self._task = asyncio.create_task(self._let_act(), name="typed ahead")

    def forget(self) -> None:
        self._waiting.clear()

    async def _let_act(self) -> None:
        with contextlib.suppress(ScreenStackError):  # the app starts or ends
            await self._released()
            while self._waiting:
                before = self._app.screen
                self._turn, self.typed_at = self._waiting.popleft()
                self._app.post_message(self._turn)
                await self._done()
                await self._released()
                if self._app.screen is not before:  # wait until the new screen is drawn
                    await _reached(self._app, drawn=True)
                self.typed_at = None

    async def _released(self) -> None:
        """Wait while `holds` returns True."""
        end = monotonic() + LONGEST_SECONDS
        while self._holds() and monotonic() < end:
            await asyncio.sleep(_HELD_SECONDS)

    async def _done(self) -> None:
        """Wait until the current key and all messages that it caused are processed."""
        await _reached(self._app)
        for walks in count(1):
            way: list[DOMNode] = (self._app.focused or self._app.screen).ancestors_with_self
            for pump in way:
                await _reached(pump)
            has_moved = (self._app.focused or self._app.screen) is not way[0]
            at_rest = not has_moved and not any(pump.message_queue_size for pump in way)
            if walks >= MOST_ROUNDS or (walks >= FEWEST_ROUNDS and at_rest):
                return


async def _reached(pump: MessagePump, *, drawn: bool = False) -> None:
    """Wait until a pump has processed its messages and, if `drawn`, has been redrawn."""
    arrived = asyncio.Event()
    if (pump.call_after_refresh if drawn else pump.call_later)(arrived.set):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(arrived.wait(), LONGEST_SECONDS)
