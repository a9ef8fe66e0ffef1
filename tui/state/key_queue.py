"""What is typed faster than the screen can follow: each key acts on what the one before it has led to."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import Final, TypeAlias

from textual import events
from textual.app import App, ScreenStackError
from textual.dom import DOMNode
from textual.message_pump import MessagePump

LONGEST_SECONDS: Final = 5.0
"""How long a key may keep the next one waiting, at each place that it passes; one that hangs must not end typing."""
_HELD_SECONDS: Final = 0.01
FEWEST_ROUNDS: Final = 2
MOST_ROUNDS: Final = 8
"""How often the way of a key is walked behind it. What it does there may send messages, and these move the focus."""

Typed: TypeAlias = events.Key | events.Paste


class KeyQueue:
    """Keys and pasted texts that wait for their turn.

    Textual sends each key to what has focus when the key arrives, looks for its action later, and moves the focus
    later still: of `/d`, typed fast, the `d` would deprecate a pattern, of `Enter p` the `p` would be text.

    Args:
        app: Whose keys; each is posted to it again when its turn has come.
        holds: Whether something that a key has begun, and that no message tells of, must end before the next one.
        clock: Monotonic seconds, for `typed_at`.
    """

    def __init__(self, app: App[None], holds: Callable[[], bool], clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._holds = holds
        self._clock = clock
        self._waiting: deque[tuple[Typed, float]] = deque()
        self._turn: Typed | None = None
        self.typed_at: float | None = None
        """When the key that acts now was typed; None while none does."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether all that was typed has done what it does."""
        return self._task is None or self._task.done()

    def has_turn(self, event: Typed) -> bool:
        """Whether it is the one to act now."""
        return event is self._turn

    def put(self, event: Typed) -> None:
        """Let one wait for its turn."""
        self._waiting.append((event, self._clock()))
        if self.is_empty:
            self._task = asyncio.create_task(self._let_act(), name="typed ahead")

    def forget(self) -> None:
        """What waits still is not to act any more."""
        self._waiting.clear()

    async def _let_act(self) -> None:
        with contextlib.suppress(ScreenStackError):  # the app comes or goes
            while self._waiting:
                before = self._app.screen
                self._turn, self.typed_at = self._waiting.popleft()
                self._app.post_message(self._turn)
                await self._done()
                end = monotonic() + LONGEST_SECONDS
                while self._holds() and monotonic() < end:
                    await asyncio.sleep(_HELD_SECONDS)
                if self._app.screen is not before:  # what goes on there may wait until that is drawn
                    await _reached(self._app, drawn=True)
                self.typed_at = None

    async def _done(self) -> None:
        """Wait until the key that has its turn, and all that it has sent, has arrived."""
        await _reached(self._app)
        for walks in count(1):
            way: list[DOMNode] = (self._app.focused or self._app.screen).ancestors_with_self
            for pump in way:
                await _reached(pump)
            at_rest = (self._app.focused or self._app.screen) is way[0] and not any(
                pump.message_queue_size for pump in way
            )
            if walks >= MOST_ROUNDS or (walks >= FEWEST_ROUNDS and at_rest):
                return


async def _reached(pump: MessagePump, *, drawn: bool = False) -> None:
    """Wait until all that has been sent to it so far has arrived, and is drawn if that is asked for."""
    arrived = asyncio.Event()
    if (pump.call_after_refresh if drawn else pump.call_later)(arrived.set):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(arrived.wait(), LONGEST_SECONDS)
