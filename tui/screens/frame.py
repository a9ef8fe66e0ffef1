"""Top bar: screens, pending questions, progress; problems in files, and toasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content

from core.base.formatting import format_percent
from core.base.text import plural, visible_line
from core.records.findings import Finding, Severity
from core.records.loops import Liveness, needs_person
from core.sources.ledger import FILE as LEDGER
from tui.kit.actions import PLACES, SCREENS
from tui.screens.document import bar, moment_text, to_local

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from core.files.watcher import WatchState
    from core.index.project_state import ProjectState
    from core.project.notifications import Notification
    from core.records.loops import LoopStatus
    from core.records.snapshot import Snapshot
    from core.records.team import Lease, TeamStatus
    from tui.kit.looks import Glyphs

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
    """A layout of the top bar."""

    letters: int  # maximum of a screen name
    pad: str
    project: int  # maximum of the name of the project
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
    """Return the project's name and the screens with number keys and click actions.

    Screens with other keys are shown only while they are open. `here` is the visible screen, `under` the main screen
    below it. `waiting` is the number of pending questions; with `is_counting`, a background search may add some.
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
    """Return `opening: 3 of 9 files` from long to short; `total` is 0 in the sweep."""
    if total:
        share = format_percent(done / total)
        return f"{doing}: {done:,} of {total:,} files", f"{doing} {done:,}/{total:,}", f"{doing} {share}", share
    if done:
        return f"{doing}: {done:,} files found", f"{doing} {done:,} files", f"{doing} {done:,}", f"{done:,}"
    return f"{doing}…", f"{doing}…", f"{doing}…", "…"


def sessions_texts(done: int, total: int) -> tuple[str, str, str, str]:
    """Return the progress from long to short: `reading sessions: 4 of 90 MB`."""
    share = format_percent(done / max(total, 1))
    figures = f"{done >> 20:,} of {total >> 20:,} MB"
    return f"reading sessions: {figures} ", f"sessions {figures}", f"sessions {share}", share


# The team: who is here, open questions, and the state of the connection


NAME_CELLS: Final = 20
MAX_NAMED: Final = 2  # other members that are named in the top bar
_MINUTE: Final = timedelta(minutes=1)


def top_text(status: TeamStatus, now: datetime, detail: TeamDetail) -> Content:
    """Return the team's part of the top bar: members present, or offline since when."""
    if detail is TeamDetail.NOTHING or (not status.is_online and status.since is None):
        return Content("")
    if status.offline_since is not None:
        return Content.styled(offline_text(status, now, detail), "$warning")
    space = f"team {visible_line(status.space, NAME_CELLS)}" if detail < TeamDetail.SHORT else ""
    others = [visible_line(name, NAME_CELLS) for name in status.members_here]
    here = f"{len(others) + 1} here" if others else ""
    if detail is TeamDetail.NAMES and 0 < len(others) <= MAX_NAMED:
        here = f"{' and '.join(others)} here"
    text = Content.styled(": ".join(filter(None, (space, here))), "$foreground" if others else "$quiet")
    if not status.differing:
        return text
    return Content.assemble(text, (f"{', ' if text else ''}{plural(status.differing, 'conflict')}", "$warning"))


def offline_text(status: TeamStatus, now: datetime, detail: TeamDetail = TeamDetail.NAMES) -> str:
    """Return since when the project is offline, and how much has to be sent."""
    if status.offline_since is None or detail >= TeamDetail.WORD:
        return "offline"
    since = clock_text(status.offline_since, now)
    if detail is TeamDetail.CLOCK:
        return f"offline {since}"
    return f"offline since {since}" + (f", {status.to_send:,} to send" if status.to_send else "")


def clock_text(moment: datetime, now: datetime) -> str:
    """Return a local time of day: `12:03`; with the day if it is not today."""
    local = to_local(moment)
    return f"{local:%H:%M}" if local.date() == to_local(now).date() else moment_text(moment, now)


def lease_text(lease: Lease, now: datetime) -> str:
    """Return where and for how long a question is open: `open at Ada, 2 min`."""
    minutes = (now - lease.since) // _MINUTE
    return f"open at {visible_line(lease.member, NAME_CELLS)}, {f'{minutes:,} min' if minutes > 0 else 'just now'}"


def help_rows(status: TeamStatus, now: datetime) -> list[tuple[str, str]]:
    """Return label and text of each line about the team in the help."""
    space = visible_line(status.space, 80)
    role = f", {visible_line(status.level, NAME_CELLS)}" if status.level else ""
    rows = [("space", f"{space}; you are {visible_line(status.member, 40)}{role}" if status.member else space)]
    if status.is_online:
        rows += [
            (visible_line(one.member, NAME_CELLS), f"{visible_line(one.project, 60)}, {visible_line(one.place, 20)}")
            for one in status.present
            if one.client_id != status.client_id
        ]
    elif status.since is not None:
        rows.append(("connection", f"{offline_text(status, now)}: {visible_line(status.problem, 300)}"))
    if status.last_sync is not None:
        rows.append(("last sync", moment_text(status.last_sync, now)))
    if status.differing:
        conflicts = f"{plural(status.differing, 'pattern')} with another text in the space; see: ralphdeck team status"
        rows.append(("conflicts", conflicts))
    return rows


# What came from elsewhere


def count_arrivals(snapshot: Snapshot) -> int:
    """Return the number of lessons and decisions from elsewhere, not accepted yet."""
    return len(snapshot.curation.pending_claims) + len(snapshot.foreign.arrived)


def trust_mark(view: ProjectState, key: str, *, is_trusted: bool) -> Content:
    """Return the top bar's mark; empty if trusted and nothing is from elsewhere."""
    if not is_trusted:
        return Content.styled(f"not trusted: {key}  ", "$warning")
    count = count_arrivals(view.snapshot)
    return Content.styled(f"{count:,} from elsewhere: {key}  ", "$warning") if count else Content("")


def arrival_text(before: ProjectState, view: ProjectState, key: str) -> str:
    """Return a toast if more came from elsewhere than before, else ""."""
    count = count_arrivals(view.snapshot)
    if count <= count_arrivals(before.snapshot):
        return ""
    return f"{plural(count, 'lesson or decision', 'lessons and decisions')} from elsewhere without effect; press {key}"


_STYLES = {Severity.ERROR: "$error", Severity.WARNING: "$warning", Severity.INFO: "$quiet"}
"""Style by severity, the worst first."""
MAX_FINDINGS = 2000


def findings_lines(view: ProjectState) -> list[Content]:
    """List unreadable files, then all findings, errors first."""
    from core.index.project_state import all_findings  # the first frame does not wait for it

    findings, unreadable = all_findings(view), view.snapshot.unreadable
    if not findings and not unreadable:
        return [Content.styled("No file problems.", "$success")]
    lines: list[Content] = []
    reported = {finding.file for finding in findings if finding.severity is Severity.ERROR}
    for name, since in unreadable.items():
        if name not in reported:
            since_text = f"  since {moment_text(since, since)}"
            lines.append(Content.assemble(("unreadable ", "$error"), visible_line(name, 200), (since_text, "$quiet")))
    ordered = sorted(findings, key=lambda finding: list(_STYLES).index(finding.severity))
    for one in ordered[:MAX_FINDINGS]:
        place = visible_line(f"{one.file} {one.pointer}".strip(), 300)
        what = f"        {visible_line(one.message, 400)} ({visible_line(one.code, 40)})"
        lines.append(Content.assemble((f"{one.severity.value:<8}", _STYLES[one.severity]), place))
        lines.append(Content.styled(what, "$quiet"))
    if len(ordered) > MAX_FINDINGS:
        lines.append(Content.styled(f"and {plural(len(ordered) - MAX_FINDINGS, 'more finding')}", "$quiet"))
    note = Content.styled("Other records are not affected, and ralphdeck never overwrites an invalid file.", "$quiet")
    return [*lines, Content(""), note]


def unreadable(findings: Iterable[Finding], parts: Sequence[str], key: str) -> str:
    """Return a warning if paths with one of `parts` are unreadable, or ""."""
    errors = {found.file for found in findings if found.severity is Severity.ERROR}
    files = [file for file in errors if any(part in file for part in parts)]
    if not files:
        return ""
    subject = visible_line(PurePath(files[0]).name, 100) if len(files) == 1 else plural(len(files), "file")
    return f"{subject} cannot be read, so records may be missing ({key}: details)"


def log_doubt(view: ProjectState, findings_key: str) -> str:
    """Return a warning if the hash chain of the decision log is broken, or ""."""
    found = [one for one in view.snapshot.findings if one.file == LEDGER and one.severity is Severity.ERROR]
    if not found:
        return ""
    first = f"{found[0].pointer} {found[0].message}".strip()
    more = f", and {plural(len(found) - 1, 'more break')} ({findings_key}: details)" if len(found) > 1 else ""
    return f"The decision log has chain breaks: {visible_line(first, 160)}{more}"


_LEVELS: Final[dict[Severity, SeverityLevel]] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "information",
}


def toasts(found: Sequence[Notification], mine: Container[str]) -> list[tuple[str, SeverityLevel]]:
    """Return text and level of each toast, the most important first.

    Toasts hide other text, so there is none for loops that start or succeed, nor for decisions in `mine`, made in
    this dashboard.
    """
    from core.project.notifications import NotificationKind, ended_word  # a list does not wait for these

    lines: list[tuple[str, SeverityLevel]] = []
    broken = [one for one in found if one.severity is Severity.ERROR]
    ended: Counter[LoopStatus] = Counter(one.status for one in broken if one.status is not None)
    for one in broken:
        if one.status is not None and one.status in ended:
            count = ended.pop(one.status)
            text = one.text if count == 1 else f"{plural(count, 'loop')} {ended_word(one.status)}"
            lines.append((text, _LEVELS[one.severity]))
    lines += [
        (one.text, "information") for one in found if one.what is NotificationKind.DECIDED and one.subject not in mine
    ]
    urgent = (NotificationKind.REFUSED, NotificationKind.ESCALATED)
    lines += [(one.text, _LEVELS[one.severity]) for one in found if one.what in urgent]
    if asked := sum(one.what is NotificationKind.ASKED and one.severity is Severity.WARNING for one in found):
        lines.append((f"{plural(asked, 'new question')} in Review", "warning"))
    return lines
