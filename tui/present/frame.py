"""The top bar: where one is, what waits, and how live the picture is."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from textual.content import Content

from core.base.formatting import percent_text
from core.base.text import plural, visible_line
from core.records.findings import Severity
from core.records.loops import Liveness
from core.records.snapshot import Snapshot
from core.storage.watcher import WatchState
from tui.actions import PLACES, SCREENS
from tui.present.glyphs import Glyphs
from tui.present.numbers import bar

PROGRESS_CELLS: Final = 10


class Telling(IntEnum):
    """How much the pulse says."""

    WORDS = 0
    SHORT = 1
    BRIEF = 2
    SIGNS = 3
    NOTHING = 4


class Records(NamedTuple):
    """How far one big file is read.

    Attributes:
        file: Its name; untrusted.
        done: Records that are read.
        total: Records in all.
    """

    file: str
    done: int
    total: int


class Fit(NamedTuple):
    """How roomy the bar is.

    Attributes:
        letters: That the name of a place has which is not in front.
        pad: What stands around each place.
        project: Characters of the project's name.
        telling: How much the pulse says.
    """

    letters: int
    pad: str
    project: int
    telling: Telling


FITS: Final = (
    Fit(20, " ", 24, Telling.WORDS),
    Fit(20, "", 24, Telling.WORDS),
    Fit(20, "", 12, Telling.SHORT),
    Fit(4, "", 12, Telling.SHORT),
    Fit(3, "", 12, Telling.SHORT),
    Fit(3, "", 12, Telling.BRIEF),
    Fit(3, "", 12, Telling.SIGNS),
    Fit(3, "", 6, Telling.SIGNS),
    Fit(3, "", 6, Telling.NOTHING),
)
"""From the roomiest on; in 80 cells the last one shows all places, whatever there is to tell."""


def places(
    project: str, here: str, waiting: int, fit: Fit, *, is_counting: bool = False, under: str = ""
) -> list[tuple[Content, str]]:
    """The project's name, then every place with its key; each with the action that a click means.

    Args:
        project: Name of the project's folder.
        here: The place in front, or what lies over it: that follows the place.
        under: The place under what lies over it.
        waiting: Questions in Review.
        fit: How much room there is.
        is_counting: That more questions may come: what costs time to find is still looked for.
    """
    items = [(Content.styled(visible_line(project, fit.project) + fit.pad, "bold"), "")]
    for place, (key, title) in PLACES.items():
        count = f"·{waiting}{'+' * is_counting}" if place == "review" and (waiting or is_counting) else ""
        text = f"{key} {title if place == here else title[: fit.letters]}{count}"
        style = "bold $accent reverse" if place == here else "$foreground" if count else "$quiet"
        items.append((Content.styled(fit.pad + text + fit.pad, style), f"go_{place}"))
        if place == under and here not in PLACES:
            items.append((Content.styled(fit.pad + SCREENS[here] + fit.pad, "bold $accent reverse"), ""))
    return items


def in_sight(items: Sequence[tuple[Content, str]], cells: int) -> list[tuple[Content, str]]:
    """The items around the place in front that fit into `cells`; the project's name goes first."""
    front = max((n for n, (content, _) in enumerate(items) if _is_front(content)), default=0)
    shown = list(items)
    while len(shown) > 1 and sum(content.cell_length + 1 for content, _ in shown) + 1 > cells:
        leaving = 0 if front > 0 else len(shown) - 1
        shown.pop(leaving)
        front -= leaving == 0
    return shown


def _is_front(content: Content) -> bool:
    return any("reverse" in str(span.style) for span in content.spans)


def pulse(
    snapshot: Snapshot,
    progress: tuple[int, int] | None,
    watch: WatchState | None,
    glyphs: Glyphs,
    *,
    telling: Telling,
    key: str,
    is_readonly: bool = False,
    records: Records | None = None,
) -> Content:
    """How far the first load is; afterwards whether nothing is written, errors in files, how the disk is followed,
    and how many loops run.

    Args:
        telling: How much there is room for.
        key: What lists the errors.
        records: How far one big file is read, while one is.
    """
    if telling is Telling.NOTHING:
        return Content("")
    if progress is not None:
        done, total = progress
        if records is not None:
            share = f"{records.done:,}/{records.total:,}"
            brief = percent_text(records.done / max(records.total, 1))
            return Content.styled(_by(telling, reading_text(records), f"{share} records", share, brief), "$quiet")
        if not total:
            return Content.styled("reading…", "$quiet")
        if telling is Telling.SIGNS:
            return Content(percent_text(done / total))
        return Content.assemble((bar(done, total, PROGRESS_CELLS, glyphs), "$accent"), f" {done:,}/{total:,}")
    active = [loop for loop in snapshot.loops.values() if loop.status.active]
    stale = sum(loop.liveness is Liveness.STALE for loop in active)
    running = len(active) - stale
    errors = sum(finding.severity is Severity.ERROR for finding in snapshot.findings)
    parts: list[tuple[str, str]] = []
    if is_readonly:
        parts.append(("ro " if telling is Telling.SIGNS else "read-only ", "$warning"))
    if errors:
        told = plural(errors, "error")
        brief = f"{told} {key} "
        parts.append((_by(telling, f"{told} in files {key}  ", f"{brief} ", brief, f"{errors}! "), "$warning"))
    if watch is None or watch.mode == "events":
        parts.append((f"live {glyphs.live}" if telling is Telling.WORDS else glyphs.live, "$success"))
    elif watch.mode == "polling":
        parts.append(("poll" if telling is Telling.SIGNS else "polling", "$warning"))
    else:
        parts.append(("no .aiwg" if telling is Telling.SIGNS else "waiting for .aiwg", "$warning"))
        if telling is not Telling.WORDS:
            return Content.assemble(*parts)  # without files nothing runs
    count = f" {running}"
    if running or not stale:
        parts.append((_by(telling, f" {plural(running, 'loop')} running", f"{count} running", count, count), "$quiet"))
    if stale:
        comma = "," if running else ""
        what = f" {plural(stale, 'loop')} stale" if not running else f"{comma} {stale} stale"
        short = f"{comma} {stale} stale"
        parts.append((_by(telling, what, short, short, f"{comma}{stale}?"), "$warning"))
    return Content.assemble(*parts)


def reading_text(records: Records) -> str:
    """How far one big file is read: `reading patterns.json: 4,200 of 10,000 records`."""
    return f"reading {visible_line(records.file, 40)}: {records.done:,} of {records.total:,} records"


def _by(telling: Telling, *texts: str) -> str:
    """The one of these texts, from the longest on, that says so much."""
    return texts[telling]
