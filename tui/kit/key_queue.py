"""Queue of typed keys: each one is handled after all effects of the previous one."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from itertools import count
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

from textual import events
from textual.app import App, ScreenStackError

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.message_pump import MessagePump

GUARD_SECONDS: Final = 0.5  # how long deciding keys are ignored after another screen has appeared
LONGEST_SECONDS: Final = 5.0  # Timeout for the effects of one key at each step: a key that hangs must not block typing.
_HELD_SECONDS: Final = 0.01
FEWEST_ROUNDS: Final = 2
MOST_ROUNDS: Final = 8  # checks of the widgets that handle a key: their messages may move the focus

Typed: TypeAlias = events.Key | events.Paste


class JumpGuard:
    """Ignores keys that decide, if typed before the user can have seen a new screen or question."""

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
