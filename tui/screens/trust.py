"""The dialog that shows what a project brings, and asks if agents may get it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from textual.binding import Binding, BindingType
from textual.content import Content

from core.base.pattern_titles import pattern_title
from core.base.text import plural, visible_line
from core.decisions.case import about_text, verb_text
from core.project import trust
from core.records.times import day_of
from core.show.pages.signs import reason_text
from tui.screens.dialogs import LongTextDialog

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.project.trust import Arrivals

MAX_LISTED: Final = 200  # lessons or decisions that the dialog lists
_MARKS: Final = {"blocked": "$error", "held": "$warning", "claimed": "$quiet"}
Choice = Literal["trust", "confirm", "decline"]


def arrival_lines(arrivals: Arrivals, view: ProjectState) -> Iterator[Content]:
    """Yield the dialog's lines: decisions, then lessons, those the scan stops first."""
    yield Content(f"{'Not accepted yet' if arrivals.is_trusted else 'This repository brings'}: {arrivals.summary}.")
    if not arrivals.is_trusted:
        yield Content.styled("Until you trust it, agents get nothing from it. You can look at everything.", "$quiet")
    if arrivals.decisions:
        yield Content("")
        yield Content.styled("Decisions made elsewhere: without effect here, except that quarantine holds", "bold")
        known = {one.id: one for one in view.snapshot.decisions}
        for decision in arrivals.decisions[-MAX_LISTED:]:
            subject = visible_line(about_text(decision, known), 120)
            yield Content.assemble(
                (f"{day_of(decision.at)}  ", "$quiet"),
                f"{visible_line(decision.by, 40)}: {verb_text(decision)} {subject}",
                (f"  {visible_line(reason_text(decision), 120)}", "$quiet"),
            )
            if decision.id in arrivals.releases:
                text = visible_line(view.snapshot.patterns[decision.subject].description, 200)
                yield Content.styled(f"    releases a text that the scan stops: {text}", "$error")
        yield from _rest(len(arrivals.decisions), "decision")
    if arrivals.patterns:
        yield Content("")
        yield Content.styled("Lessons", "bold")
        marks = {name: mark for mark in reversed(_MARKS) for name in getattr(arrivals, mark)}
        order = sorted(arrivals.patterns, key=lambda name: [*_MARKS, ""].index(marks.get(name, "")))
        for name in order[:MAX_LISTED]:
            mark = marks.get(name, "")
            title = visible_line(pattern_title(view.snapshot.patterns[name]), 200)
            yield Content.assemble(
                (f"{mark:8}", _MARKS.get(mark, "")), f"{title}  ", (visible_line(name, 80), "$quiet")
            )
        yield from _rest(len(order), "lesson")


def _rest(count: int, noun: str) -> Iterator[Content]:
    if count > MAX_LISTED:
        yield Content.styled(f"and {plural(count - MAX_LISTED, noun)} more", "$quiet")


class TrustDialog(LongTextDialog[Choice | None]):
    """Asks whether agents may get what a project brings; None to look at it first."""

    HELP_TITLE = "trust"
    ABOUT = (
        "A repository can bring lessons, numbers and decisions that you did not write. The answer is stored in your "
        "own state folder. In a shell: ralphdeck trust."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "choose('trust')", "trust", tooltip="Agents may get these lessons; decisions stay unconfirmed"),
        Binding("c", "choose('confirm')", "with decisions", tooltip="Accept all, and let these decisions count here"),
        Binding("d", "choose('decline')", "never", tooltip="Agents get nothing, and this is not asked again"),
        Binding("escape,q,l", "cancel", "later", tooltip="Look first; agents get nothing new until you decide"),
    ]

    def __init__(self, arrivals: Arrivals, view: ProjectState) -> None:
        title = "Accept what came from elsewhere?" if arrivals.is_trusted else "Trust this project?"
        super().__init__(Content(title), list(arrival_lines(arrivals, view)))
        self._arrivals = arrivals

    def _is_offered(self, choice: str) -> bool:
        """Return whether a choice makes a difference."""
        if choice == "confirm":
            return bool(self._arrivals.decisions)
        return not self._arrivals.is_trusted or (choice == "trust" and bool(self._arrivals.patterns))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "choose" or self._is_offered(str(parameters[0]))

    def _shown_keys(self) -> dict[str, tuple[str, str]]:
        keys = super()._shown_keys()
        hidden = {f"choose('{choice}')" for choice in ("trust", "confirm", "decline") if not self._is_offered(choice)}
        return {action: key for action, key in keys.items() if action not in hidden}

    def on_mount(self) -> None:
        """Ignore keys that were typed before the user can have seen this dialog."""
        self.services.jump_guard.arm()
        self.call_after_refresh(self.services.jump_guard.arm)  # it is seen only when it is drawn

    def action_choose(self, choice: Choice) -> None:
        if self._is_read():
            self.dismiss(choice)

    def action_cancel(self) -> None:
        if self._is_read():
            self.dismiss(None)

    def _is_read(self) -> bool:
        """Return whether a key is an answer; users who type on have not read it yet."""
        is_early = self.services.jump_guard.blocks(self.services.key_queue.typed_at)
        if is_early:
            self.services.jump_guard.arm()
        return not is_early


def answer(arrivals: Arrivals, choice: Choice, project: Project) -> str:
    """Carry out the user's choice; returns a text for a toast. Raises RalphdeckError."""
    if choice == "decline":
        trust.decline(project)
        return "Agents get nothing from this project"
    trust.trust(project, "question")
    if choice == "trust":
        return "This project is trusted"
    trust.confirm(project)
    project.apply_pending()
    decisions = plural(len(arrivals.decisions), "decision")
    return f"This project is trusted, and {decisions} made elsewhere count here"


def confirm_one(decision_id: str, project: Project) -> str:
    """Confirm one decision made elsewhere; return a toast. Raises RalphdeckError."""
    trust.confirm(project, [decision_id])
    project.apply_pending()
    return "The decision now counts here"
