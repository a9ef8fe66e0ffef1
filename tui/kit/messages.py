"""Base class of messages of which only the newest matters."""

from __future__ import annotations

from textual.message import Message


class NewestMessage(Message):
    """A message that replaces unprocessed older ones of the same class."""

    def can_replace(self, message: Message) -> bool:
        return type(message) is type(self)
