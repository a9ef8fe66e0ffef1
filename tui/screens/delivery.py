"""Dialog that shows how the runner of a loop can be given a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from core.base.errors import RalphdeckError
from core.project.reader import find_delivery
from core.show.pages.loops import delivery_blocks, delivery_text
from tui.screens.dialogs import LongTextDialog
from tui.screens.document import document_lines

if TYPE_CHECKING:
    from core.records.loops import Loop
    from core.sources.adapters.contract import Delivery
    from tui.screens.base_screen import BaseScreen


class DeliveryDialog(LongTextDialog[bool | None]):
    """Shows a command or a change. The result is True if the user copies it."""

    ABOUT = "A person runs the command or applies the change: ralphdeck never writes to files of a runner."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", tooltip="Copy the command or the change"),
        Binding("escape,q", "cancel", "close", tooltip="Close"),
    ]

    def action_copy(self) -> None:
        self.dismiss(True)


def show_delivery(screen: BaseScreen, loop: Loop) -> None:
    """Find in a thread how the context gets to the loop, and show it."""
    project = screen.services.project

    def find() -> tuple[Delivery | None, str] | RalphdeckError:
        try:
            return find_delivery(project, loop.id)
        except RalphdeckError as error:
            return error

    def show(found: tuple[Delivery | None, str] | RalphdeckError) -> None:
        if isinstance(found, RalphdeckError):
            screen.services.say(str(found), severity="warning")
        elif screen.is_current:
            delivery, obstacle = found
            text = document_lines(delivery_blocks(loop, delivery, obstacle), screen.view.now, screen.glyphs)
            dialog = DeliveryDialog(Content("Deliver the context"), text)
            screen.ask_user(dialog, lambda copies: screen.services.copy(delivery_text(delivery)) if copies else None)

    screen.run_in_thread("delivery", find, show)
