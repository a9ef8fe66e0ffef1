"""How a context reaches the runner of a loop, as a document (docs/adapters.md#delivery)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from core.show.pages.document import Block, code, line

if TYPE_CHECKING:
    from core.records.loops import Loop
    from core.sources.adapters.contract import Delivery

OWN_WAY: Final = "A loop in .aiwg gets its context from `ralphdeck loop inject`."
BY_HOOK: Final = "This runner has no own way in: its agent gets the context from the hooks of `ralphdeck connect`."


def delivery_explanation(loop: Loop, delivery: Delivery | None, obstacle: str = "") -> str:
    """Return how the context gets to the loop, after the `obstacle` that there is now."""
    way = BY_HOOK if loop.runner else OWN_WAY
    if delivery is not None:
        way = delivery.explanation
    return f"{obstacle}. When there is a context: {way}" if obstacle else way


def delivery_text(delivery: Delivery | None) -> str:
    """Return the command for a POSIX shell, or the diff to apply; "" if there is neither."""
    if delivery is None:
        return ""
    return shlex.join(delivery.command) + "\n" if delivery.command else delivery.diff


def delivery_blocks(loop: Loop, delivery: Delivery | None, obstacle: str = "") -> Iterable[Block]:
    """Describe what a person can do; nothing is written to files of the runner."""
    yield line(delivery_explanation(loop, delivery, obstacle))
    if text := delivery_text(delivery):
        yield line("")
        is_diff = delivery is not None and not delivery.command
        yield from code("Change to apply" if is_diff else "Command to run", text, "diff" if is_diff else "sh")
