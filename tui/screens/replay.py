"""The Replay screen: an attempt at a task, action by action."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Container, Horizontal
from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.documents.signs import attempt_sign
from core.episodes.attempt_state import AttemptCondition, AttemptState, assess_attempt
from core.episodes.history import AttemptDetail, read_attempt
from core.episodes.replay import ReplayStep, ReplaySteps, find_next_error, pause_after
from core.queries.memory_links import MemoryLinks
from core.records.episodes import Action, Attempt
from tui.present import replay as present
from tui.present.document import document_lines
from tui.present.glyphs import draw
from tui.screens.base_screen import BaseScreen
from tui.screens.cross_links import CrossLinks
from tui.widgets.bars import Item, ItemLine
from tui.widgets.drawing import Drawing
from tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState

BESIDE: Final = 110  # cells of the screen from which quality and reflections are beside the action
WIDE: Final = 150  # cells of the screen from which a list of actions is on the left
TALL: Final = 34  # lines of the screen from which that list is below the action, on a narrow screen
AROUND: Final = 100  # actions that are read for the list before the current one, and after it
MOST_DIVIDED: Final = 5_000  # maximum number of actions for which the timeline shows iterations: each of them is read
LEAST_SECONDS: Final = 0.15  # minimum seconds of an action during playback
LEAST_MARKED: Final = 1.0  # minimum seconds of a pause that gets a progress bar


class ReplayScreen(CrossLinks):
    """Overlay that steps through the actions of one attempt and follows a running attempt.

    `task_id` and `number` identify the attempt. `links` belong to a snapshot that contains the attempt.
    `position` is the action to show first, counted from 0; None shows the default.
    """

    place = "replay"
    IS_OVERLAY = True
    AUTO_FOCUS = "#replay-text"

    def __init__(self, task_id: str, number: int, links: MemoryLinks, position: int | None = None) -> None:
        super().__init__()
        self.links = links
        self._first = position
        self._task_id = task_id
        self._number = self._latest = number
        self._detail: AttemptDetail | None = None
        self._steps: ReplaySteps | None = None
        self._track = present.Track()
        self._problem = ""
        self._step: ReplayStep | None = None
        self._shown = -1  # the position of `_step`
        self._listed = range(0)  # positions of the actions that were read for the list
        self._speed = present.SPEEDS.index(1.0)
        self._playing = False
        self._timer: Timer | None = None
        self._waited = 0  # filled cells of the progress bar during a pause
        self.position = 0  # the current action, from 0

    def compose_content(self) -> ComposeResult:
        yield ItemLine(id="replay-title")
        yield Drawing(id="replay-timeline")
        yield ItemLine(id="replay-place")
        with Horizontal(id="replay-body"):
            with Container(id="replay-main"):
                yield TextPane(id="replay-text")
                yield Drawing(id="replay-list")
            yield TextPane(id="replay-side")

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width >= BESIDE, "-beside")
        self.set_class(width >= WIDE, "-wide")
        self.set_class(width < WIDE and height >= TALL, "-tall")
        self._show()

    @on(TextPane.Widened)
    def _widened(self, message: TextPane.Widened) -> None:
        message.stop()
        self._show()

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Read the attempt if it has changed or is not read yet."""
        numbers = (one.number for one in view.snapshot.attempts.values() if one.task_id == self._task_id)
        self._latest = max(numbers, default=self._number)
        if delta is not None:
            self.links = self.links.updated(view.snapshot, None, delta)
        elif self.links.snapshot is not view.snapshot:
            self.links = MemoryLinks(view.snapshot, None)
        if delta is None or f"{self._task_id}.{self._number}" in delta.attempts or delta.reflections:
            project = self.services.project.project

            def read() -> tuple[AttemptDetail, present.Track] | str:
                try:
                    detail = read_attempt(project, self._task_id, self._number)
                except RalphdeckError as error:
                    return str(error)
                return detail, _track(detail)

            self.run_in_thread("replay", read, self._show_attempt)

    def _show_attempt(self, found: tuple[AttemptDetail, present.Track] | str) -> None:
        """Show the attempt or the read error. Stay at the end of a running attempt that is followed."""
        if isinstance(found, str):
            self._problem, self._step = found, None
            self._show()
            return
        is_first, follows = self._detail is None, self._is_followed
        self._problem, (self._detail, self._track) = "", found
        self._steps = ReplaySteps(self._detail)
        if is_first and self._first is not None:
            self.position = self._first
        elif follows or (is_first and self._condition.state is AttemptState.RUNNING):
            self.position = self._track.count - 1
        self._go(self.position)

    def _go(self, position: int) -> None:
        """Go to an action, and read it in a worker."""
        self.position = at = max(0, min(position, self._track.count - 1))
        self._show_place()
        if steps := self._steps:
            near = range(len(steps))[max(at - AROUND, 0) : at + AROUND]

            def read() -> tuple[ReplayStep, Sequence[Action]]:
                return steps[at], steps.actions[near.start : near.stop]

            self.run_in_thread("step", read, lambda found: self._show_step(at, near, *found))
        else:
            self._show()

    def _show_step(self, position: int, near: range, step: ReplayStep, actions: Sequence[Action]) -> None:
        other = position != self._shown
        self._step, self._shown, self._listed = step, position, near
        count, glyphs = self._track.count, self.glyphs

        def draw_list(width: int, height: int) -> list[Content]:
            top = present.first_listed(position, count, height)
            return [
                present.list_line(actions[place - near.start], width, glyphs, current=place == position)
                if place in near
                else Content("")
                for place in range(top, top + height)
            ]

        self.query_one("#replay-list", Drawing).show(draw_list)
        self._show(top=other)
        if other or self._timer is None:  # reading the same action again must not delay the next one
            self._wait()

    @property
    def _attempt(self) -> Attempt:
        """Return the attempt of the newest snapshot, or as it was last read."""
        known = self.view.snapshot.attempts.get(f"{self._task_id}.{self._number}")
        read = self._detail.attempt if self._detail is not None else None
        return known or read or Attempt(task_id=self._task_id, number=self._number)

    @property
    def _condition(self) -> AttemptCondition:
        task = self.view.snapshot.tasks.get(self._task_id)
        return assess_attempt(self._attempt, task, self._latest, self.services.now(), self.view.settings.watch)

    @property
    def _is_at_end(self) -> bool:
        return self.position >= self._track.count - 1

    @property
    def _is_followed(self) -> bool:
        """Whether the last action of a running attempt is shown."""
        return self._detail is not None and self._attempt.is_open and self._is_at_end

    def _quality(self) -> Sequence[float]:
        """Return the quality (0–1) of the iterations that ended by the current action."""
        detail, step = self._detail, self._step
        if detail is None or step is None or step.action.iteration is None:
            return ()
        ended = self._shown == self._track.count - 1 or self._shown + 1 in self._track.iterations
        last = step.action.iteration - (not ended)
        history = enumerate(detail.attempt.quality, 1)
        return [one.quality for place, one in history if (place if one.iteration is None else one.iteration) <= last]

    def _show(self, *, top: bool = False) -> None:
        if not self.is_composed:
            return
        self._show_title()
        self._show_place()
        text, side = self.query_one("#replay-text", TextPane), self.query_one("#replay-side", TextPane)
        lines = [self._nothing()]
        if self._step is not None:
            room = text.scrollable_content_region.width
            lines = document_lines(present.step_blocks(self._step), self.view.now, self.glyphs, room)
            if self._detail is not None and not self.has_class("-beside"):
                below = present.below_action(self._detail, self._quality(), self.glyphs)
                lines += document_lines(below, self.view.now, self.glyphs)
        text.show(lines, top=top or self._step is None)
        if self._detail is not None:
            width = side.scrollable_content_region.width
            about = present.beside_action(self._detail, self._quality(), self.glyphs, width, side.size.height)
            side.show(document_lines(about, self.view.now, self.glyphs), top=False)
        self.refresh_frame()

    def _nothing(self) -> Content:
        if self._problem:
            return Content.styled(visible_line(self._problem, 400), "$warning")
        if self._detail is None:
            return Content.styled("Reading…", "$quiet")
        return Content.styled("No action was logged in this attempt. See: ralphdeck task log", "$quiet")

    def _show_title(self) -> None:
        task = self.view.snapshot.tasks.get(self._task_id)
        what = visible_line((task.description if task is not None else "") or self._task_id, 300)
        mark = draw(attempt_sign(self._attempt, self._condition), self.glyphs)
        title = Content.assemble((f"Attempt {self._number}", "bold"), "  ", mark, ("   at  ", "$quiet"), what)
        room = max(self.size.width - 2, 1)
        self.query_one("#replay-title", ItemLine).show([Item(title.truncate(room, ellipsis=True))])

    def _show_place(self) -> None:
        if not self.is_composed:
            return
        track, position, glyphs = self._track, self.position, self.glyphs
        self.query_one("#replay-timeline", Drawing).show(
            lambda width, _: present.timeline(track, position, width, glyphs)
        )
        where = present.position_line(track, position, self._step if self._shown == position else None)
        follows = self._is_followed and self._condition.state is AttemptState.RUNNING
        waited = self._waited if self._timer is not None else None
        speed = present.SPEEDS[self._speed]
        how = present.playback_state(speed, waited, glyphs, playing=self._playing, follows=follows)
        self.query_one("#replay-place", ItemLine).show([Item(where)], [Item(how)])

    @on(Drawing.Clicked, "#replay-timeline")
    def _timeline_clicked(self, message: Drawing.Clicked) -> None:
        if self._track.count:
            self._jump(present.position_at(self._track, message.column, message.drawing.content_size.width))

    @on(Drawing.Clicked, "#replay-list")
    def _list_clicked(self, message: Drawing.Clicked) -> None:
        height = message.drawing.content_size.height
        position = present.first_listed(self._shown, self._track.count, height) + message.line
        if position in self._listed:
            self._jump(position)

    def _wait(self) -> None:
        """During playback, schedule the next action after the limited duration of this one."""
        self._stop_timer()
        self._waited = 0
        if not self._playing or self._step is None:
            return
        if self._is_at_end:
            self._playing = self._attempt.is_open
            self._show_place()
            self.refresh_frame()
            return
        seconds = max(pause_after(self._step, present.SPEEDS[self._speed]), LEAST_SECONDS)
        if seconds < LEAST_MARKED:
            self._timer = self.set_timer(seconds, self._play_on)
        else:
            self._timer = self.set_interval(seconds / present.WAIT_CELLS, self._wait_on)
        self._show_place()

    def _wait_on(self) -> None:
        self._waited += 1
        if self._waited < present.WAIT_CELLS:
            self._show_place()
        else:
            self._play_on()

    def _play_on(self) -> None:
        self._stop_timer()
        self._go(self.position + 1)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def action_play(self) -> None:
        """Start or stop playback. At the end, start again from the first action."""
        self._playing = not self._playing
        if self._playing and self._is_at_end and not self._attempt.is_open:
            self._go(0)
        self._wait()
        self._show_place()

    def _pace(self, by: int) -> None:
        self._speed = max(0, min(self._speed + by, len(present.SPEEDS) - 1))
        self._wait()
        self._show_place()

    action_faster = partialmethod(_pace, 1)
    action_slower = partialmethod(_pace, -1)

    def _jump(self, position: int) -> None:
        """Stop playback, and go to another action."""
        self._playing = False
        self._wait()
        self._go(position)

    def _step_by(self, actions: int) -> None:
        self._jump(self.position + actions)

    action_step_on = partialmethod(_step_by, 1)
    action_step_back = partialmethod(_step_by, -1)
    action_first = partialmethod(_jump, 0)

    def action_last(self) -> None:
        self._jump(self._track.count - 1)

    def action_next_error(self) -> None:
        found = find_next_error(self._steps, self.position) if self._steps is not None else None
        if found is not None:
            self._jump(found)

    def action_previous_error(self) -> None:
        self._jump(self._track.errors[bisect_left(self._track.errors, self.position) - 1])

    def linked_record(self) -> Attempt:
        return self._attempt

    def restorer(self) -> Callable[[], BaseScreen]:
        position = self.position if self._detail is not None else self._first
        return partial(ReplayScreen, self._task_id, self._number, self.links, position)

    def why_not(self, action: str) -> str | None:
        errors, position = self._track.errors, self.position
        if action in {"play", "step_on", "step_back", "faster", "slower", "first", "last"} and not self._track.count:
            return "No action was logged in this attempt"
        if action in {"next_error", "previous_error"} and not errors:
            return "No action failed in this attempt"
        if action == "next_error" and errors[-1] <= position:
            return "No later action failed"
        if action == "previous_error" and errors[0] >= position:
            return "No earlier action failed"
        if action == "edit_file" and self._detail is None:
            return "The attempt is still being read"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        return "pause" if action == "play" and self._playing else None

    def effect(self, action: str) -> str | None:
        return "leave replay" if action == "back" else super().effect(action)

    action_scroll_down = BaseScreen.action_page_down

    def action_edit_file(self) -> None:
        if self._detail is not None:
            self.services.edit_file(self._detail.actions.file)

    def copy_text(self) -> str:
        return self.query_one("#replay-text", TextPane).plain


def _track(detail: AttemptDetail) -> present.Track:
    """Return the positions of errors and iterations. Reads every line; call it in a worker."""
    actions = detail.actions
    begins: dict[int, int | None] = {}
    if len(actions) <= MOST_DIVIDED:
        before: int | None = None
        for position, action in enumerate(actions):
            if position == 0 or action.iteration != before:
                begins[position] = action.iteration
            before = action.iteration
    return present.Track(len(actions), actions.errors, begins)
