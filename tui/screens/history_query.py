"""Base of What if and Compare: fields that query history, and a result list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from textual import on
from textual.message import Message

from tui.screens.base_screen import BaseScreen
from tui.widgets.bars import Item
from tui.widgets.record_table import RecordTable
from tui.widgets.value_field import ValueField

PAUSE_SECONDS: Final = 0.1
"""Seconds without typing before the query starts."""


class HistoryQueryScreen(BaseScreen):
    """An overlay. Only the newest query is answered, one at a time."""

    AUTO_FOCUS = "ValueField Input"

    def __init__(self) -> None:
        super().__init__()
        self._asked = self._answered = 0
        """Number of the newest query, and of the one whose result is shown; others are dropped."""
        self._at_work = False

    def question(self, number: int) -> Callable[[], Message]:
        """The current query: run in a thread, it returns the message with the result."""
        raise NotImplementedError

    @property
    def table(self) -> RecordTable:
        """The result."""
        return self.query_one(RecordTable)

    @property
    def fields(self) -> list[ValueField]:
        return list(self.query(ValueField))

    @property
    def field(self) -> ValueField | None:
        """The field with focus."""
        return next((field for field in self.fields if field.has_focus_within), None)

    def ask(self) -> None:
        """Start a new query."""
        self._asked += 1
        if not self._at_work:
            self._at_work = True
            self.run_worker(self._answer(), group="asking", exclusive=True)

    async def _answer(self) -> None:
        number = 0
        while number != self._asked:
            number = self._asked
            await asyncio.sleep(PAUSE_SECONDS)
            if number == self._asked:
                self.post_message(await asyncio.to_thread(self.question(number)))
        self._at_work = False

    @on(RecordTable.Chosen)
    def _chosen(self, message: RecordTable.Chosen) -> None:
        message.stop()
        self.action_open()

    def action_open(self) -> None:
        """Focus the list, or open the record under the cursor."""
        raise NotImplementedError

    def _key_items(self) -> tuple[list[Item], list[Item]]:
        offered, right = super()._key_items()
        return offered, [self._key_item("back", "leave"), *right]

    def action_back(self) -> None:
        self.dismiss()
