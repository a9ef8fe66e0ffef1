"""Set-up of a project in words: folder, agents, trust, sessions to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.formatting import format_cost, format_count, format_duration
from core.base.text import capitalized, plural, visible_line
from core.index.records import RecordMap
from core.index.review_items import CONFLICT, EXTRACTED, HELD, LESSON, OFFER, QUARANTINE, RECURRING
from core.records.loops import Liveness, LoopStatus
from core.show.needs import describe_need, find_needs, has_later_session, need_sign
from core.show.pages.document import Document, Section, Sign, Table, Text, line
from core.show.pages.loops import Result, find_result

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.show.metrics.lesson_effect import LessonEffect, PatternResult
    from core.show.needs import Need


SHOWN_SPAN: Final = timedelta(days=30)  # sessions of this time are counted before anything is learned
MOST_PROPOSED: Final = 20  # sessions from which lessons are proposed at once, the best ones
_MOST_COUNTED: Final = 1_000


class Setup(Struct, frozen=True, kw_only=True):
    """How far a project is set up.

    `connected` are titles of agents. `writes` are the files that connecting `agent`, which is in use, would write, each
    with its purpose; empty if an agent is connected. `hooks` says how the hooks answer, "" if that is not known.
    """

    has_folder: bool = True
    connected: tuple[str, ...] = ()
    agent: str = ""
    writes: tuple[tuple[str, str], ...] = ()
    is_trusted: bool = True
    hooks: str = ""
    has_hook_problem: bool = False


def describe_empty(connected: Sequence[str], *, has_sessions: bool = False) -> str:
    """Return why a list of sessions or lessons is empty; `connected`: agents' titles."""
    if has_sessions:
        return "No lesson yet. One is found when a failing check passes after a change"
    if connected:
        return f"Connected: {', '.join(connected)}. No session yet"
    return "No session yet. To connect an agent: ralphdeck start. To look around: ralphdeck demo"


def find_offers(state: ProjectState) -> tuple[ReviewItem, ...]:
    """Return the sessions to propose lessons from, best first, of those found so far."""
    if state.snapshot.as_of is not None:
        return ()
    return tuple(item for item in state.queue if item.kind == OFFER and item.offer is not None and item.offer.new)


def is_first_start(state: ProjectState) -> bool:
    """Return whether sessions of the last 30 days exist, but no pattern or decision."""
    snapshot = state.snapshot
    is_new = not snapshot.patterns and not snapshot.curation.undoable
    return is_new and any(loop.is_agent_session for loop in _recent(state))


def count_sessions(state: ProjectState) -> int:
    """Return the number of sessions of agents of the last 30 days, at most 1,000."""
    return sum(loop.is_agent_session for loop in _recent(state))


def _recent(state: ProjectState) -> Sequence[Loop]:
    begin, loops = state.now - SHOWN_SPAN, state.snapshot.loops
    if isinstance(loops, RecordMap):
        return loops.placed_since(begin, _MOST_COUNTED)
    return [loop for loop in loops.values() if loop.started_at is not None and loop.started_at >= begin]


def offers_text(offers: Sequence[ReviewItem], *, is_searching: bool) -> str:
    """Describe offers: `9 fixes could become lessons: about 4 minutes to read`."""
    count = sum(len(item.offer.new) for item in offers if item.offer is not None)
    if not count:
        return "looking for fixes in them" if is_searching else "no fix in them could become a lesson"
    minutes = max(round(sum(item.seconds for item in offers) / 60), 1)
    more = " so far" if is_searching else ""
    lessons = "a lesson" if count == 1 else "lessons"
    return f"{plural(count, 'fix', 'fixes')} could become {lessons}{more}: about {plural(minutes, 'minute')} to read"


FIRST_SPAN: Final = timedelta(days=7)  # how far the page looks back without an earlier visit
MOST_LINES: Final = 30  # of a section; a screen shows fewer if it is small
MOST_RESULTS: Final = 4  # best and worst patterns
MOST_SESSIONS: Final = 500  # newest sessions that are counted
_LONGEST_SESSION: Final = timedelta(days=1)  # a session may have begun this long before it was active
_MAX_TITLE: Final = 80
_MAX_TEXT: Final = 200
PROPOSE: Final = "propose"  # place of a target that is the action to propose lessons from the sessions found
TRUST: Final = "trust"  # the same for the question whether the project is trusted
_PROPOSE: Final = Sign("", "accent strong", "arrow")
_STEP: Final = Sign("", "accent", "candidate")
_HELD: Final = Sign("", "warning", "held")
_LISTED: Final = frozenset({EXTRACTED, HELD, LESSON, OFFER, QUARANTINE, RECURRING, CONFLICT})
"""Kinds of questions that are lines: about a text that no person has read yet, or about files of agents."""
_WORKED, _FAILED, _UNCLEAR, _OPEN = Result.WORKED.value, Result.FAILED.value, Result.UNCLEAR.value, "open"
_RESULTS: Final = {
    _WORKED: Sign(_WORKED, "good", "done"),
    _FAILED: Sign(_FAILED, "bad", "failed"),
    _UNCLEAR: Sign(_UNCLEAR, "quiet", "unknown"),
    _OPEN: Sign(_OPEN, "good", "running"),
}


class Target(Struct, frozen=True):
    """Where a line leads: a place, with a record and tab of its details, or a filter."""

    place: str
    key: str = ""
    tab: str = ""
    filter: str = ""


class NowLine(Struct, frozen=True):
    """One line of a section, perhaps untrusted; `facts` are columns before `text`.

    A screen shows the glyph of the sign, and a terminal also its word.
    """

    sign: Sign
    title: str
    facts: tuple[str, ...] = ()
    text: str = ""
    target: Target | None = None


class NowSection(Struct, frozen=True):
    """A section; `note` follows its title, and `total` counts lines left out, too.

    `short_note` takes its place where it does not fit. `others` is what those are that are never lines,
    in the singular; "" if any may be one.
    """

    id: str
    title: str
    note: str = ""
    lines: tuple[NowLine, ...] = ()
    total: int = 0
    target: Target | None = None
    others: str = ""
    short_note: str = ""

    def rest_text(self, shown: int) -> str:
        """Return what the first `shown` lines leave out, in words; "" if nothing."""
        left_out = self.total - shown
        if left_out > 0 and shown and self.others and shown == len(self.lines):
            return plural(left_out, self.others)
        return f"and {left_out:,} more" if left_out > 0 else ""


class Now(Struct, frozen=True):
    """The page; things after `since` are new, and `span` describes that moment."""

    since: datetime
    span: str
    sections: tuple[NowSection, ...]


def make_page(
    state: ProjectState,
    since: datetime | None,
    setup: Setup,
    effect: LessonEffect | None = None,
    *,
    now: datetime | None = None,
    is_searching: bool = False,
) -> Now:
    """Return the page of a state; takes up to 0.1 s, so screens call it in a thread.

    `since` is the last visit, None for the first one. `effect` is None while it is unknown. `now` is the time for ages,
    if it is later than that of the state. `is_searching` is whether more questions may be found. Questions are not
    asked about records that are not checked yet.
    """
    now = now or state.now
    begin = now - FIRST_SPAN if since is None else min(since, now)
    span = describe_since(since, now)
    loops = recent_loops(state.snapshot, begin)
    is_new = is_first_start(state)
    sections = [_first_start(state, is_searching=is_searching) if is_new else _setup(state, setup)]
    if state.snapshot.loops:
        needs = _needs(state, now)
        sections.insert(0 if needs.lines else 1, needs)
        sections.append(_sessions(state, loops, span, now))
    has_work = bool(state.snapshot.patterns or state.snapshot.loops)
    if not is_new and has_work:
        sections.append(_effect(effect))
    # The files of agents can contradict each other before the first session.
    if (not is_new and has_work) or any(item.kind == CONFLICT for item in state.queue):
        sections.append(_review(state, is_searching=is_searching))
    if not setup.connected and any(loop.is_agent_session for loop in loops):
        sections.append(
            NowSection("connect", "No agent is connected", f"to give them lessons: {_connect_command(setup)}")
        )
    return Now(begin, span, tuple(one for one in sections if one is not None))


def describe_since(since: datetime | None, now: datetime) -> str:
    """Return `since Friday 17:40` for a title; without a last visit, the span shown."""
    if since is None:
        return f"last {plural(FIRST_SPAN.days, 'day')}"
    try:
        local, today = since.astimezone(), now.astimezone().date()
    except (OverflowError, ValueError, OSError):
        return "since the last visit"
    days = (today - local.date()).days
    clock = f"{local:%H:%M}"
    if days <= 0:
        return f"since {clock}"
    if days == 1:
        return f"since yesterday {clock}"
    day = f"{local:%A}" if days < 7 else f"{local.day} {local:%B}"
    return f"since {day} {clock}"


def recent_loops(snapshot: Snapshot, since: datetime) -> list[Loop]:
    """Return at most `MOST_SESSIONS` loops at work or active `since`, newest first."""
    loops = snapshot.loops
    if isinstance(loops, RecordMap):
        known = chain(loops.open_values(), loops.placed_since(since - _LONGEST_SESSION, MOST_SESSIONS))
    else:
        known = chain(loops.values())
    found = {loop.id: loop for loop in known if _is_open(loop) or ((at := _active_at(loop)) and at >= since)}
    return sorted(found.values(), key=lambda loop: _active_at(loop) or since, reverse=True)[:MOST_SESSIONS]


def _active_at(loop: Loop) -> datetime | None:
    return loop.ended_at or loop.last_activity or loop.updated_at or loop.started_at


def _is_open(loop: Loop) -> bool:
    is_at_rest = loop.status in (LoopStatus.WAITING, LoopStatus.PAUSED) and not loop.archived
    return (loop.is_running or is_at_rest) and loop.liveness is not Liveness.STALE


def find_word(state: ProjectState, loop: Loop) -> str:
    """Return worked, failed or unclear, or open if the loop has not ended."""
    result = find_result(state, loop)
    return result.value if result is not None else _OPEN


# How far the project is set up


def _setup(state: ProjectState, setup: Setup) -> NowSection | None:
    """Describe the next step of a project without set-up or sessions, else None."""
    if not setup.is_trusted:
        text = "Agents get nothing of what it contains until you trust it: ralphdeck trust"
        return _steps("Not trusted", (NowLine(_HELD, text, target=Target(TRUST)),))
    if state.snapshot.loops or state.snapshot.is_partial:
        return None
    if not setup.has_folder and not setup.connected:
        lines = (NowLine(_STEP, "ralphdeck start", text="sets it up, and asks before it writes"),)
        return _steps("Not set up here", lines)
    if setup.connected:
        return _connected(setup)
    return _connect(setup)


def _steps(title: str, lines: Iterable[NowLine], note: str = "") -> NowSection:
    lines = tuple(lines)
    return NowSection("setup", title, note, lines, len(lines))


def _connected(setup: Setup) -> NowSection:
    hooks = f" ({setup.hooks})" if setup.hooks and not setup.has_hook_problem else ""
    lines = [NowLine(_STEP, "Work as usual; the first session appears here while it runs.")]
    if setup.has_hook_problem:
        lines.insert(0, NowLine(_RESULTS[_FAILED], setup.hooks, text="see: ralphdeck doctor"))
    return _steps(f"Connected to {', '.join(setup.connected)}{hooks}", lines)


def _connect(setup: Setup) -> NowSection:
    command = _connect_command(setup)
    lines = [NowLine(_STEP, file, text=what) for file, what in setup.writes]
    return _steps("No agent is connected", lines, f"{command} writes, after a question:" if lines else command)


def _connect_command(setup: Setup) -> str:
    return f"ralphdeck connect {setup.agent or 'claude'}"


def _first_start(state: ProjectState, *, is_searching: bool) -> NowSection:
    """Describe the lessons that the sessions of agents offer."""
    offers, count = find_offers(state), count_sessions(state)
    title = f"{plural(count, 'session')} of the last {SHOWN_SPAN.days} days found"
    text = offers_text(offers, is_searching=is_searching)
    how = "ralphdeck start proposes them" if offers else ""
    first = NowLine(_PROPOSE if offers else _STEP, text, (), how, Target(PROPOSE) if offers else None)
    lines = [
        NowLine(_STEP, visible_line(one.headline, _MAX_TEXT), target=Target("review", item.subject))
        for item in offers
        if item.offer is not None
        for one in item.offer.new
    ]
    return NowSection("setup", title, "", (first, *lines), len(lines) + 1)


# Needs you


def _needs(state: ProjectState, now: datetime) -> NowSection:
    needs = find_needs(state)
    lines = tuple(_need(state, one, now) for one in needs[:MOST_LINES])
    return NowSection("needs", "Needs you", "" if needs else "nothing", lines, len(needs), Target("loops"))


def _need(state: ProjectState, need: Need, now: datetime) -> NowLine:
    sign, text = need_sign(need, now), describe_need(need, now)
    sign = Sign("", sign.style, sign.glyph)  # the sentence has its words
    if need.loop_id:
        loop = state.snapshot.loops[need.loop_id]
        return NowLine(sign, _title(loop), (), text, Target("loops", loop.id))
    session = state.snapshot.debug_sessions[need.session_id]
    return NowLine(sign, visible_line(session.file_path, _MAX_TITLE), (), text, Target("review", session.id))


def _title(loop: Loop) -> str:
    return visible_line(loop.task, _MAX_TITLE) or "no task recorded"


# Since the last visit


def _sessions(state: ProjectState, loops: Sequence[Loop], title: str, now: datetime) -> NowSection:
    newest = [loop for loop in loops if not _is_repeated(state, loop)]
    words = {loop.id: find_word(state, loop) for loop in newest}
    results = Counter(words.values())
    counts = ", ".join(f"{results[word]:,} {word}" for word in _RESULTS if results[word])
    tokens = sum(loop.usage.total or 0 for loop in loops)
    costs = [cost for loop in loops if (cost := loop.usage.cost_usd) is not None]
    parts = [f"{plural(len(newest), 'session')}: {counts}" if newest else "no session"]
    parts += [f"{format_count(tokens)} tokens"] * bool(tokens)
    parts += [format_cost(sum(costs))] * bool(costs)
    lines = tuple(_session(state, loop, words[loop.id], now) for loop in newest[:MOST_LINES])
    return NowSection(
        "sessions", capitalized(title), " · ".join(parts), lines, len(newest), Target("loops"), short_note=parts[0]
    )


def _session(state: ProjectState, loop: Loop, word: str, now: datetime) -> NowLine:
    own = state.attempts_of(loop)
    tasks = {one.task_id for one in own}
    attempts = len(own) if len(tasks) > 1 else sum(len(state.inputs.names.attempts_at(id)) for id in tasks)
    rounds = plural(attempts, "attempt") if attempts else plural(loop.iteration, "iteration") if loop.iteration else ""
    end = loop.ended_at or (now if _is_open(loop) else loop.last_activity)
    took = format_duration((end - loop.started_at).total_seconds()) if end and loop.started_at else ""
    facts = (rounds, took)
    return NowLine(_RESULTS[word], _title(loop), facts, _given(state, loop), Target("loops", loop.id))


def _is_repeated(state: ProjectState, loop: Loop) -> bool:
    """Return whether a session's only task was attempted again by a later session.

    The line of the later session counts the attempts of both.
    """
    is_of_one_task = loop.is_over and len({one.task_id for one in state.attempts_of(loop)}) == 1
    return is_of_one_task and has_later_session(state, loop)


def _given(state: ProjectState, loop: Loop) -> str:
    """Describe the lessons that a session was given, followed, and had held out."""
    found = state.loop_patterns(loop.id)
    given, followed, ignored = len(found.injected_ids), len(found.followed_ids), len(found.ignored_ids)
    not_followed = f", {ignored} not" if ignored and followed else ""
    verdict = f", {_followed(given, followed, ignored)}" if loop.is_over or followed or ignored else ""
    parts = [f"given {plural(given, 'lesson')}{verdict}{not_followed}"] if given else []
    held_out = len(found.held_out)
    parts += [f"{plural(held_out, 'lesson')} held out (experiment)"] if held_out else []
    return "; ".join(parts)


def _followed(given: int, followed: int, ignored: int) -> str:
    """Describe how many lessons were followed, without unknown ones."""
    if not followed:
        return "can't tell" if not ignored else "none followed" if ignored == given else f"{ignored} not followed"
    if followed < given:
        return f"{followed} followed"
    return "followed" if given == 1 else "both followed" if given == 2 else "all followed"


# Do lessons help?


def _effect(effect: LessonEffect | None) -> NowSection:
    target = Target("metrics")
    if effect is None:
        return NowSection("effect", "Do lessons help?", "reading", target=target)
    best, worst = (
        [_result(one, word) for one in found] for found, word in ((effect.best, "best"), (effect.worst, "worst"))
    )
    lines = [line for pair in zip_longest(best, worst) for line in pair if line is not None][:MOST_RESULTS]
    if effect.experiment.patterns:
        lines.insert(0, NowLine(_STEP, "Experiment", (), effect.experiment.sentence, target))
    short = effect.short_sentence
    return NowSection("effect", "Do lessons help?", effect.sentence, tuple(lines), len(lines), target, short_note=short)


def _result(found: PatternResult, word: str) -> NowLine:
    sign = Sign(word, "good", "done") if word == "best" else Sign(word, "bad", "failed")
    return NowLine(sign, visible_line(found.name, _MAX_TITLE), (found.score,), "", Target("patterns", found.pattern_id))


# To review


def _review(state: ProjectState, *, is_searching: bool) -> NowSection:
    """Show new lessons and conflicts of Review, else first questions; count the rest."""
    title, target, count = "To review", Target("review"), state.pending_count
    if state.snapshot.as_of is not None or not state.snapshot.complete:
        return NowSection("lessons", title, f"{count:,} to read" if count else "reading", (), 0, target)
    if not count:
        return NowSection("lessons", title, "still searching" if is_searching else "nothing", (), 0, target)
    items = state.worth_reading
    minutes = max(round(sum(item.seconds for item in items) / 60), 1)
    more = " so far" if is_searching else ""
    note = f"{count:,} to read{more}, about {plural(minutes, 'minute')}"
    new = [item for item in items if (item.kind if item.group is None else item.group.kind) in _LISTED]
    listed = new or items
    lines = tuple(_question(state, item) for item in listed[:MOST_LINES])
    others = "other question" if len(lines) == len(listed) else ""
    return NowSection("lessons", title, note, lines, count, target, others)


def _question(state: ProjectState, item: ReviewItem) -> NowLine:
    from core.show.cards import card_title  # imports the answers, which the first page does not need

    sign = Sign("", "accent", "proven")
    target = Target("review", item.subject)
    if item.group is not None:
        return NowLine(sign, visible_line(item.question, _MAX_TEXT), target=target)
    if item.offer is not None and item.offer.new:
        return NowLine(sign, visible_line(item.offer.new[0].headline, _MAX_TITLE), (), item.reason, target)
    if item.pairs:
        return NowLine(sign, visible_line(item.asks, _MAX_TEXT), (), item.reason, target)
    pattern = state.snapshot.patterns.get(item.subject) if item.is_about_pattern else None
    text = item.reason if pattern is None else _lesson(state, pattern) if item.kind == EXTRACTED else item.asks
    return NowLine(sign, visible_line(card_title(state, item), _MAX_TITLE), (), text, target)


def _lesson(state: ProjectState, pattern: Pattern) -> str:
    """Describe a new lesson: place, line of the fix, why, and how often it was seen."""
    places = pattern.places or pattern.location_hints
    added = (line for line in pattern.diff_pattern.splitlines() if line[:1] == "+" and line.strip("+ "))
    seen = state.assessment(pattern.id).seen
    times = f"seen {plural(seen, 'time')}" if seen > 1 else ""
    return "   ".join(filter(None, (*places[:1], " ".join(next(added, "").split()), times, pattern.description)))


# As a document


def page_document(page: Now, project: str) -> Document:
    """Return the page as a document for the terminal and the clipboard."""
    return Document(f"{project} · {page.span}", tuple(_section(one) for one in page.sections))


def _section(found: NowSection) -> Section:
    columns = 2 + max((len(one.facts) for one in found.lines), default=0)
    rows = tuple(_row(one, columns) for one in found.lines)
    rest = found.rest_text(len(rows)) if rows else ""
    blocks = (Table(("",) * (columns + 1), rows), *([line((rest, "quiet"))] if rest else ())) if rows else ()
    return Section(found.title, blocks, found.note)


def _row(found: NowLine, columns: int) -> tuple[Text, ...]:
    cells: list[Text] = [(found.sign,), (found.title,), *((fact,) for fact in found.facts)]
    return (*cells, *((),) * (columns - len(cells)), (found.text,))
