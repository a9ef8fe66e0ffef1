"""Top bar: screens, pending questions, and progress of loading and watching."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

from core.base.formatting import format_percent
from core.base.text import plural, visible_line
from core.records.findings import Severity
from core.records.loops import Liveness
from core.records.waits import needs_person
from tui.kit.actions import PLACES, SCREENS
from tui.screens.numbers import bar, to_local

if TYPE_CHECKING:
    from datetime import datetime

    from core.files.watcher import WatchState
    from core.records.snapshot import Snapshot
    from tui.kit.glyphs import Glyphs

PROGRESS_CELLS: Final = 10


class Detail(IntEnum):
    """Level of detail of the watch status, from full sentences to nothing."""

    WORDS = 0
    SHORT = 1
    BRIEF = 2
    SIGNS = 3
    NOTHING = 4


class Counts(NamedTuple):
    """What the watch status counts in a snapshot."""

    running: int
    stale: int
    errors: int
    waiting: int = 0  # loops that wait for a person
    is_empty: bool = True  # there are no loops


class TeamDetail(IntEnum):
    """Level of detail of the team, from the names of its members to nothing."""

    NAMES = 0
    WORDS = 1
    SHORT = 2
    CLOCK = 3
    WORD = 4
    NOTHING = 5


class Fit(NamedTuple):
    """A layout of the top bar: maximum `letters` of a screen name, and of the name of the `project`."""

    letters: int
    pad: str
    project: int
    detail: Detail
    team: TeamDetail


FITS: Final = (
    Fit(20, " ", 24, Detail.WORDS, TeamDetail.NAMES),
    Fit(20, " ", 24, Detail.WORDS, TeamDetail.WORDS),
    Fit(20, "", 24, Detail.WORDS, TeamDetail.WORDS),
    Fit(20, "", 12, Detail.SHORT, TeamDetail.WORDS),
    Fit(0, "", 12, Detail.WORDS, TeamDetail.WORDS),
    Fit(0, "", 12, Detail.SHORT, TeamDetail.WORDS),
    Fit(0, "", 12, Detail.BRIEF, TeamDetail.SHORT),
    Fit(0, "", 12, Detail.SIGNS, TeamDetail.CLOCK),
    Fit(0, "", 6, Detail.SIGNS, TeamDetail.CLOCK),
    Fit(0, "", 6, Detail.SIGNS, TeamDetail.WORD),
    Fit(0, "", 6, Detail.NOTHING, TeamDetail.NOTHING),
)
"""Layouts from the widest to the narrowest; the last one fits into 80 cells."""


def places(
    project: str, here: str, waiting: int, fit: Fit, *, is_counting: bool = False, under: str = ""
) -> list[tuple[Content, str]]:
    """Return the project's name and the screens with number keys, each with its click action.

    Screens with other keys are shown only while they are open. `here` is the visible screen, `under` the main screen
    below it. `waiting` is the number of pending questions, and `is_counting` whether a background search may still add
    some.
    """
    items = [(Content.styled(visible_line(project, fit.project) + fit.pad, "bold"), "")]
    for place, (key, title) in PLACES.items():
        count = f"·{waiting}{'+' * is_counting}" if place == "review" and (waiting or is_counting) else ""
        is_open = place in {here, under}
        if not (key.isdecimal() or is_open):
            continue
        text = f"{key} {title if is_open else title[: fit.letters]}".rstrip() + count
        style = "bold $accent reverse" if place == here else "$foreground" if count else "$quiet"
        items.append((Content.styled(fit.pad + text + fit.pad, style), f"go_{place}"))
        if place == under and here not in PLACES:
            items.append((Content.styled(fit.pad + SCREENS[here] + fit.pad, "bold $accent reverse"), ""))
    return items


def fitting_items(items: Sequence[tuple[Content, str]], cells: int) -> list[tuple[Content, str]]:
    """Drop items that do not fit: the project's name first, the visible screen never."""
    is_front = [any("reverse" in str(span.style) for span in content.spans) for content, _ in items]
    front = max((n for n, front in enumerate(is_front) if front), default=0)
    shown = list(items)
    while len(shown) > 1 and sum(content.cell_length + 1 for content, _ in shown) + 1 > cells:
        leaving = 0 if front > 0 else len(shown) - 1
        shown.pop(leaving)
        front -= leaving == 0
    return shown


def count_status(snapshot: Snapshot) -> Counts:
    """Count running, stale and waiting loops, and errors in files."""
    loops = snapshot.loops.values()
    active = [loop for loop in loops if loop.is_running]
    stale = sum(loop.liveness is Liveness.STALE for loop in active)
    errors = sum(finding.severity is Severity.ERROR for finding in snapshot.findings)
    return Counts(len(active) - stale, stale, errors, sum(map(needs_person, loops)), is_empty=not loops)


def watch_status(
    counts: Counts,
    progress: tuple[int, int] | None,
    watch: WatchState | None,
    glyphs: Glyphs,
    *,
    detail: Detail,
    key: str,
    is_readonly: bool = False,
    bytes_read: tuple[int, int] | None = None,
    as_of: datetime | None = None,
) -> Content:
    """Return the progress of the first load, later errors, watch mode and loops.

    `key` is the key that lists errors;
    `bytes_read` that of the transcripts of agents; `as_of` is the time of the last check, if its records are shown.
    """
    if detail is Detail.NOTHING:
        return Content("")
    if progress is not None:
        if as_of is not None:
            words, _, short, share = progress_texts("checking", *progress)
            old = f"as of {to_local(as_of):%H:%M}"
            return Content.styled((f"{old}, {words}", f"{old}, {short}", f"{old}…", share)[detail], "$warning")
        done, total = progress
        drawn = f"{bar(done, total, PROGRESS_CELLS, glyphs)} " if total and detail is Detail.WORDS else ""
        return Content.assemble((drawn, "$accent"), (progress_texts("opening", done, total)[detail], "$quiet"))
    running, stale, errors, waiting, is_empty = counts
    parts: list[tuple[str, str]] = []
    if is_readonly:
        parts.append(("ro " if detail is Detail.SIGNS else "read-only ", "$warning"))
    if errors:
        error_count = plural(errors, "error")
        brief = f"{error_count} {key} "
        parts.append(((f"{error_count} in files {key}  ", f"{brief} ", brief, f"{errors}! ")[detail], "$warning"))
    if bytes_read is not None:
        parts.append((f"{sessions_texts(*bytes_read)[detail]} ", "$quiet"))
    if watch is None or watch.mode == "events":
        parts.append((f"live {glyphs.live}" if detail is Detail.WORDS else glyphs.live, "$success"))
    elif watch.mode == "polling":
        parts.append(("poll" if detail is Detail.SIGNS else "polling", "$warning"))
    else:
        is_brief = detail is Detail.SIGNS or not is_empty
        parts.append(("not set up" if is_brief else "not set up here", "$warning"))
        if is_empty and detail is not Detail.WORDS:
            return Content.assemble(*parts)
    if waiting:
        words = f" {waiting} {'waits' if waiting == 1 else 'wait'} for you"
        parts.append(((words, words, f" {waiting} wait", f" {waiting} wait")[detail], "bold $warning"))
    count = f" {running}"
    if running or not stale:
        loops, short = f" {plural(running, 'session')} running", f" ·{count} run" if waiting else count
        parts.append(((loops, f"{count} running", short, short)[detail], "$quiet"))
    if stale:
        comma = "," if running else ""
        what = f" {plural(stale, 'session')} stale" if not running else f"{comma} {stale} stale"
        short = f"{comma} {stale} stale"
        parts.append(((what, short, short, f"{comma}{stale}?")[detail], "$warning"))
    return Content.assemble(*parts)


def progress_texts(doing: str, done: int, total: int) -> tuple[str, str, str, str]:
    """Return the progress of opening from long to short: `opening: 3 of 9 files`; `total` is 0 during the sweep."""
    if total:
        share = format_percent(done / total)
        return f"{doing}: {done:,} of {total:,} files", f"{doing} {done:,}/{total:,}", f"{doing} {share}", share
    if done:
        return f"{doing}: {done:,} files found", f"{doing} {done:,} files", f"{doing} {done:,}", f"{done:,}"
    return f"{doing}…", f"{doing}…", f"{doing}…", "…"


def sessions_texts(done: int, total: int) -> tuple[str, str, str, str]:
    """Return the progress of reading transcripts from long to short: `reading sessions: 4 of 90 MB`."""
    share = format_percent(done / max(total, 1))
    figures = f"{done >> 20:,} of {total >> 20:,} MB"
    return f"reading sessions: {figures} ", f"sessions {figures}", f"sessions {share}", share
