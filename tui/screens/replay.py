"""The Replay screen: an attempt, action by action, with links as in Loops."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial, partialmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Container, Horizontal
from textual.content import Content

from core.base.errors import RalphdeckError
from core.base.formatting import format_duration, format_percent
from core.base.text import plural, visible_line
from core.records.episodes import Action, Attempt
from core.show.filter_parser import build_id_query
from core.show.pages.document import Block, Moment, Section, Sign, code, fields, line, section
from core.show.pages.signs import attempt_sign
from core.show.pages.tasks import VERDICT_SIGNS, action_text, error_line, reflection_blocks
from core.show.work import WorkLinks
from core.tasks.attempts import (
    AttemptCondition,
    AttemptState,
    ReplayStep,
    ReplaySteps,
    assess_attempt,
    find_next_error,
    pause_after,
)
from tui.kit.bars import Item, ItemLine
from tui.kit.drawing import Drawing, TextPane
from tui.kit.looks import ASCII, Glyphs, draw
from tui.screens.base_screen import BaseScreen
from tui.screens.document import Drawable, Run, bar, document_lines, inline, line_chart, sparkline

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

    from core.index.project_state import ProjectState
    from core.records.snapshot import Delta
    from core.show.work import Remembered
    from core.tasks.history import AttemptDetail


QUOTE: Final = '"'  # ends a quoted value in a filter


class CrossLinks(BaseScreen):
    """Mixin with links from a memory record to loop, patterns and reflections."""

    def linked_record(self) -> Remembered | None:
        """Return the record that the link keys act on, or None."""
        raise NotImplementedError

    links: WorkLinks  # the index of related records

    def why_not(self, action: str) -> str | None:
        record = self.linked_record()
        match action:
            case "to_loop" if record is None or not self.links.loop_of(record):
                return "Its loop is unknown"
            case "to_patterns" if record is None or not self.links.patterns_of(record):
                return "No pattern was extracted from it or used in it"
            case "to_reflections" if record is None or not any(
                one.has_learning for one in self.links.reflections_of(record)
            ):
                return "There are no reflections on it yet"
        return super().why_not(action)

    def action_to_loop(self) -> None:
        if record := self.linked_record():
            self.services.open_record("loops", self.links.loop_of(record))

    def action_to_patterns(self) -> None:
        """Open the related pattern, or the list of patterns filtered to the related ones."""
        if record := self.linked_record():
            found = self.links.patterns_of(record)
            if len(found) == 1:
                self.services.open_record("patterns", found[0])
            else:
                text, left = build_id_query(found)
                self.services.open_filtered("patterns", text, found[0])
                if left:
                    left_out = f"The filter is too long to include {plural(left, 'more pattern')}"
                    self.services.say(left_out, severity="warning")

    def action_to_reflections(self) -> None:
        """Open the newest reflection on the same task or loop."""
        if record := self.linked_record():
            newest = next(one for one in self.links.reflections_of(record) if one.has_learning)
            field, value = ("task", newest.task_id) if newest.task_id else ("loop", newest.loop_id)
            self.services.open_filtered("reflections", f'{field}:"{value.partition(QUOTE)[0]}"', newest.id)


BESIDE: Final = 110  # cells of the screen from which quality and reflections are beside the action
WIDE: Final = 150  # cells of the screen from which a list of actions is on the left
TALL: Final = 34  # lines of the screen from which that list is below the action, on a narrow screen
AROUND: Final = 100  # actions that are read for the list before the current one, and after it
MOST_DIVIDED: Final = 5_000  # maximum number of actions for which the timeline shows iterations: each of them is read
LEAST_SECONDS: Final = 0.15  # minimum seconds of an action during playback
LEAST_MARKED: Final = 1.0  # minimum seconds of a pause that gets a progress bar
CHART_LINES: Final = {36: 9, 22: 7, 12: 5, 0: 3}
"""Height of a chart by the minimum height of its pane; odd, so that 50 % has a line."""
SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_MAX_PARAM_LINES: Final = 20
_SPARKS: Final = 8
WAIT_CELLS: Final = 5  # Cells of the bar that fills until the next action.
_UNUSED: Final = datetime.min.replace(tzinfo=UTC)  # Placeholder for the current time in texts without timestamps.
_IN_DIFF: Final = frozenset(
    {"old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "oldString", "newString"}
    | {"diff", "patch", "content", "file_text", "contents", "edits"}
)
"""Names of parameters that are not listed, because the diff shows them."""


def chart_lines(height: int) -> int:
    """Return the number of lines of a chart in a pane of `height` lines."""
    return next(lines for least, lines in CHART_LINES.items() if height >= least)


@dataclass(frozen=True, slots=True)
class Track:
    """A timeline: number of actions, and positions of the failed ones in `errors`.

    `iterations` maps the position of the first action of each iteration to the number of the iteration; it is empty for
    very long attempts.
    """

    count: int = 0
    errors: Sequence[int] = ()
    iterations: Mapping[int, int | None] = field(default_factory=dict)


def timeline(track: Track, position: int, width: int, glyphs: Glyphs) -> tuple[Content, Content]:
    """Return the timeline in `width` cells, and the iteration numbers below it.

    An action takes several cells, or several actions share a cell.
    """
    if not track.count or width <= 0:
        return Content(""), Content("")
    plain = glyphs is ASCII
    done, ahead = ("=", "-") if plain else ("━", "─")
    at = cell(track, position, width)
    end = (position + 1) * width // track.count
    cells = [(done, "$accent") if x < end else (ahead, "$quiet") for x in range(width)]
    for start in track.iterations:
        cells[cell(track, start, width)] = ("|" if plain else "┃", "$foreground")
    for x in _cells_of(track, track.errors, width):
        cells[x] = (glyphs.failed, "$error bold")
    mark, style = cells[at]
    cells[at] = (mark if mark == glyphs.failed else glyphs.running, f"{style} reverse")
    return Content.assemble(*cells), _numbers(track, width)


def cell(track: Track, position: int, width: int) -> int:
    return min(position * width // max(track.count, 1), width - 1)


def _cells_of(track: Track, positions: Sequence[int], width: int) -> Iterable[int]:
    """Return the cells that contain any of these sorted positions."""
    if len(positions) <= width:
        return {cell(track, position, width) for position in positions}
    firsts = [bisect_left(positions, -(-x * track.count // width)) for x in range(width + 1)]
    return [x for x in range(width) if firsts[x] < firsts[x + 1]]


def position_at(track: Track, x: int, width: int) -> int:
    return min(x * track.count // max(width, 1), max(track.count - 1, 0))


def _numbers(track: Track, width: int) -> Content:
    """Return iteration numbers below first actions; the first in words if it fits."""
    line = ""
    starts = sorted((cell(track, start, width), number) for start, number in track.iterations.items() if number)
    for (at, number), (end, _) in pairwise([*starts, (width, 0)]):
        words = f"iteration {number}"
        label = words if not line and at + len(words) < end else str(number)
        if len(line) + bool(line) <= at and at + len(label) <= width:
            line = f"{line:<{at}}{label}"
    return Content.styled(line, "$quiet")


def position_line(track: Track, position: int, step: ReplayStep | None) -> Content:
    """Return the number of the action, its iteration, and the time since the start."""
    if not track.count:
        return Content.styled("no action recorded", "$quiet")
    errors = f", {plural(len(track.errors), 'error')}" if track.errors else ""
    total = (f" of {plural(track.count, 'action')}{errors}", "$quiet")
    iteration = f"   iteration {step.action.iteration}" if step and step.action.iteration is not None else ""
    elapsed = f"   after {format_duration(step.elapsed)}" if step and step.elapsed is not None else ""
    return Content.assemble((f"{position + 1:,}", "bold"), total, iteration, (elapsed, "$quiet"))


def playback_state(speed: float, waited: int | None, glyphs: Glyphs, *, playing: bool, follows: bool) -> Content:
    """Return the playback state and speed: following new actions, playing or paused.

    `waited` is the elapsed part of the pause before the next action, 0 to `WAIT_CELLS`; None without a pause.
    """
    if follows:
        state = (f"{glyphs.live} following new actions", "$success")
    elif playing:
        state = (f"{glyphs.play} playing", "$accent bold")
    else:
        state = (f"{glyphs.paused} paused", "$quiet")
    filling = f"  {bar(waited, WAIT_CELLS, WAIT_CELLS, glyphs)}" if playing and waited is not None else ""
    pace = "" if follows else f"  {speed:g}x"
    return Content.assemble(state, (pace, "$foreground" if playing else "$quiet"), (filling, "$accent"))


def first_listed(position: int, count: int, height: int) -> int:
    """Return the first position of a list that has `position` in the middle."""
    return max(min(position - height // 2, count - height), 0)


def list_line(action: Action, width: int, glyphs: Glyphs, *, current: bool) -> Content:
    """Return the row of an action in the list, `width` cells wide."""
    bar = ("▌" if current and glyphs is not ASCII else glyphs.running if current else " ", "$accent")
    text = inline(action_text(action), _UNUSED, glyphs)
    line = Content.assemble(bar, text).truncate(width, ellipsis=True)
    return line.pad_right(max(width - line.cell_length, 0)).stylize("on $panel bold") if current else line


def step_blocks(step: ReplayStep) -> Iterable[Block]:
    """Describe one action: tool, reason, expectation, result, input, diff and output."""
    action, diff, verdict = step.action, step.diff, VERDICT_SIGNS[step.verdict]
    yield line(
        verdict,
        (f"   {action.tool or action.type or 'action'}   ", "strong"),
        Moment(action.at) if action.at is not None else None,
        (f"   next after {format_duration(step.pause)}", "quiet") if step.pause is not None else None,
    )
    inputs = [(f"input {name}", text) for name, text in action.params if not (diff and name in _IN_DIFF)]
    is_long = "\n" in step.real
    summary = error_line(action) if is_long and action.has_failed else step.real
    result = Sign(summary or verdict.text, "", verdict.glyph)
    rows = [("why", action.reasoning), ("expected", action.expected), *inputs]
    short = [row for row in rows if "\n" not in row[1]]
    yield from fields(("result", result if not is_long or action.has_failed else None), *short)
    for name, text in (*rows, ("printed" if action.has_failed else "result", step.real)):
        if "\n" in text:
            yield from code(name, _head_of(text), "")
    yield from section("Change", code("", "\n".join(diff), "diff"))
    for title, text in (("Error", action.error), ("Output", action.output)):
        if text and text.strip() != step.real:
            yield from section(title, code("", text, ""))


def _head_of(text: str) -> str:
    rows = text.split("\n")
    left = len(rows) - _MAX_PARAM_LINES
    return "\n".join([*rows[:_MAX_PARAM_LINES], f"… {plural(left, 'more line')}"]) if left > 0 else text


def beside_action(
    detail: AttemptDetail, quality: Sequence[float], glyphs: Glyphs, width: int, height: int
) -> Iterable[Drawable]:
    """Describe `quality`, the values 0..1 up to this action, and the reflections."""
    total = len(detail.attempt.quality)
    yield line(("Quality so far", "strong"), (f"   {format_percent(quality[-1])}" if quality else "", "quiet"))
    progress = Content.styled(f"{len(quality)} of {plural(total, 'iteration')}", "$quiet")
    chart = line_chart([Run(quality, progress, total)], width, chart_lines(height), glyphs)
    yield from chart or [_unmeasured(total)]
    yield _reflections(detail)


def below_action(detail: AttemptDetail, quality: Sequence[float], glyphs: Glyphs) -> Iterable[Drawable]:
    """Describe the same as `beside_action` in less height: quality on one line."""
    total = len(detail.attempt.quality)
    drawn = _unmeasured(total)
    if quality:
        progress = (f"{len(quality)} of {plural(total, 'iteration')}", "$quiet")
        sparks = (sparkline(quality, _SPARKS, glyphs), "$secondary")
        drawn = Content.assemble(sparks, f" {format_percent(quality[-1])}   ", progress)
    yield Content("")
    yield Content.assemble(("Quality so far   ", "bold"), drawn)
    yield _reflections(detail)


def _unmeasured(total: int) -> Content:
    return Content.styled("not measured yet" if total else "never measured", "$quiet")


def _reflections(detail: AttemptDetail) -> Block:
    return Section("Reflections on this attempt", tuple(reflection_blocks(detail.reflections, of_task=False)))


class ReplayScreen(CrossLinks):
    """Overlay that steps through the actions of an attempt and follows a running one.

    `task_id` and `number` identify the attempt. `links` belong to a snapshot that contains the attempt.
    `position` is the action to show first, counted from 0; None shows the default.
    """

    place = "replay"
    IS_OVERLAY = True
    AUTO_FOCUS = "#replay-text"

    def __init__(self, task_id: str, number: int, links: WorkLinks, position: int | None = None) -> None:
        super().__init__()
        self.links = links
        self._first = position
        self._task_id = task_id
        self._number = self._latest = number
        self._detail: AttemptDetail | None = None
        self._steps: ReplaySteps | None = None
        self._track = Track()
        self._problem = ""
        self._step: ReplayStep | None = None
        self._shown = -1  # the position of `_step`
        self._listed = range(0)  # positions of the actions that were read for the list
        self._speed = SPEEDS.index(1.0)
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
            self.links = WorkLinks(view.snapshot, None)
        if delta is None or f"{self._task_id}.{self._number}" in delta.attempts or delta.reflections:
            project = self.services.project.project

            def read() -> tuple[AttemptDetail, Track] | str:
                from core.tasks.history import read_attempt  # not imported with the list of loops

                try:
                    detail = read_attempt(project, self._task_id, self._number)
                except RalphdeckError as error:
                    return str(error)
                return detail, _track(detail)

            self.run_in_thread("replay", read, self._show_attempt)

    def _show_attempt(self, found: tuple[AttemptDetail, Track] | str) -> None:
        """Show the attempt or the error; stay at the end of a running, followed attempt."""
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
            top = first_listed(position, count, height)
            return [
                list_line(actions[place - near.start], width, glyphs, current=place == position)
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
            lines = document_lines(step_blocks(self._step), self.view.now, self.glyphs, room)
            if self._detail is not None and not self.has_class("-beside"):
                below = below_action(self._detail, self._quality(), self.glyphs)
                lines += document_lines(below, self.view.now, self.glyphs)
        text.show(lines, top=top or self._step is None)
        if self._detail is not None:
            width = side.scrollable_content_region.width
            about = beside_action(self._detail, self._quality(), self.glyphs, width, side.size.height)
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
        self.query_one("#replay-timeline", Drawing).show(lambda width, _: timeline(track, position, width, glyphs))
        where = position_line(track, position, self._step if self._shown == position else None)
        follows = self._is_followed and self._condition.state is AttemptState.RUNNING
        waited = self._waited if self._timer is not None else None
        speed = SPEEDS[self._speed]
        how = playback_state(speed, waited, glyphs, playing=self._playing, follows=follows)
        self.query_one("#replay-place", ItemLine).show([Item(where)], [Item(how)])

    @on(Drawing.Clicked, "#replay-timeline")
    def _timeline_clicked(self, message: Drawing.Clicked) -> None:
        if self._track.count:
            self._jump(position_at(self._track, message.column, message.drawing.content_size.width))

    @on(Drawing.Clicked, "#replay-list")
    def _list_clicked(self, message: Drawing.Clicked) -> None:
        height = message.drawing.content_size.height
        position = first_listed(self._shown, self._track.count, height) + message.line
        if position in self._listed:
            self._jump(position)

    def _wait(self) -> None:
        """During playback, schedule the next action after this one's limited duration."""
        self._stop_timer()
        self._waited = 0
        if not self._playing or self._step is None:
            return
        if self._is_at_end:
            self._playing = self._attempt.is_open
            self._show_place()
            self.refresh_frame()
            return
        seconds = max(pause_after(self._step, SPEEDS[self._speed]), LEAST_SECONDS)
        if seconds < LEAST_MARKED:
            self._timer = self.set_timer(seconds, self._play_on)
        else:
            self._timer = self.set_interval(seconds / WAIT_CELLS, self._wait_on)
        self._show_place()

    def _wait_on(self) -> None:
        self._waited += 1
        if self._waited < WAIT_CELLS:
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
        self._speed = max(0, min(self._speed + by, len(SPEEDS) - 1))
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


def _track(detail: AttemptDetail) -> Track:
    """Return positions of errors and iterations; reads all lines, so use a worker."""
    actions = detail.actions
    begins: dict[int, int | None] = {}
    if len(actions) <= MOST_DIVIDED:
        before: int | None = None
        for position, action in enumerate(actions):
            if position == 0 or action.iteration != before:
                begins[position] = action.iteration
            before = action.iteration
    return Track(len(actions), actions.errors, begins)
