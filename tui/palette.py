"""The command palette: an index of all records, and commands that typing finds."""

from __future__ import annotations

import asyncio
import contextlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from textual import on
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.style import Style
from textual.widgets import Input
from textual.worker import WorkerCancelled, WorkerFailed

from core.base.errors import BadInput, UnknownRecord
from core.base.pattern_titles import pattern_title
from core.base.text import ELLIPSIS, capitalized, visible_line
from core.decisions.commands import Restore
from core.index.search_words import HitKind, SearchHit, parse_search
from core.show.work import WorkLinks, session_key, task_key
from core.sources.patterns import read_archives
from tui.kit.actions import ACTIONS, OF_APP, PLACES, actions_of
from tui.kit.user_state import BUILT_IN, SavedView, own_views
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import PreviewDialog
from tui.screens.document import labelled
from tui.screens.replay import ReplayScreen
from tui.screens.services import Services
from tui.screens.text_hits import failure_note, hit_content, index_note, record_of

if TYPE_CHECKING:
    from textual.theme import Theme

    from core.index.project_state import ProjectState
    from core.records.decisions import Decision
    from core.records.patterns import Pattern
    from core.sources.patterns import ArchivedPattern


MAX_OF_A_KIND: Final = 8
MAX_RANKED: Final = 3_000  # Matching records of one kind that are ranked.
MAX_CHARS: Final = 1_000  # Searched characters of a record's text.
_SHOWN: Final = 120  # Maximum characters of the text in a row.
_BEFORE: Final = 30  # Characters before a match that is not at the beginning.
MAX_QUERY: Final = 100
ARCHIVED: Final = "archived pattern"  # Kind of the archived patterns, which no screen lists.

_BEGINNINGS: Final = re.compile(r"(?:^|[^0-9a-z])$")


@dataclass(frozen=True, slots=True)
class Target:
    """A search result: its `key` on the screen `place`, "" if archived.

    `id` and `text`, of at most `MAX_CHARS` characters, are untrusted; `rank` is the quality of the match, 0..1.
    """

    kind: str
    place: str
    key: str
    id: str
    text: str
    rank: float

    @property
    def shown(self) -> str:
        return f"{self.kind}  {visible_line(self.id, 80)}  {visible_line(self.text, _SHOWN)}"


class _Kind:
    """Records of one kind, joined to one text that is fast to search."""

    def __init__(self, name: str, place: str, records: Iterable[tuple[str, str, str]]) -> None:
        self.name, self.place = name, place
        self._records = [(key, id, text[:MAX_CHARS]) for key, id, text in records]
        lines = [f"{_flat(id)}\t{_flat(text)}" for _key, id, text in self._records]
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)][:-1]
        self._text = "\n".join(lines)

    def find(self, query: str, words: Sequence[str]) -> list[Target]:
        """Return the best records that contain all words."""
        rarest = min(words, key=self._text.count) if len(words) > 1 else words[0]
        matching = ((row, line) for row, line in self._with(rarest) if all(word in line for word in words))
        best = sorted((-_rank(line, query), row) for row, line in matching)[:MAX_OF_A_KIND]
        found = ((worse, *self._records[row]) for worse, row in best)
        return [Target(self.name, self.place, key, id, _excerpt(text, words), -worse) for worse, key, id, text in found]

    def _with(self, word: str) -> Iterator[tuple[int, str]]:
        at, count = self._text.find(word), 0
        while at >= 0 and count < MAX_RANKED:
            row = bisect_right(self._starts, at) - 1
            end = self._starts[row + 1] - 1 if row + 1 < len(self._starts) else len(self._text)
            yield row, self._text[self._starts[row] : end]
            count += 1
            at = self._text.find(word, end + 1)


class PaletteIndex:
    """Index of one snapshot; takes about 0.4 s for 100,000 patterns, in a worker."""

    def __init__(self, view: ProjectState, archived: Sequence[ArchivedPattern]) -> None:
        snapshot = view.snapshot
        self.number = snapshot.number
        self._kinds = (
            _Kind("pattern", "patterns", ((key, key, _pattern_text(p)) for key, p in snapshot.patterns.items())),
            _Kind("loop", "loops", ((key, key, loop.task) for key, loop in snapshot.loops.items())),
            _Kind("question", "review", ((q.question_key, q.subject, q.question) for q in view.queue)),
            _Kind("task", "loops", ((task_key(key), key, t.description) for key, t in snapshot.tasks.items())),
            _Kind(
                "session",
                "loops",
                (
                    (session_key(k), k, s.file_path)
                    for k, s in snapshot.debug_sessions.items()
                    if s.attempt_id not in snapshot.attempts
                ),
            ),
            _Kind("reflection", "reflections", ((key, key, r.text) for key, r in snapshot.reflections.items())),
            _Kind("lesson", "reflections", ((key, key, one.text) for key, one in snapshot.lessons.items())),
            _Kind("decision", "log", ((d.id, d.subject, _decision_text(d)) for d in reversed(snapshot.decisions))),
            _Kind(ARCHIVED, "", ((a.pattern.id, a.pattern.id, pattern_title(a.pattern)) for a in archived)),
        )

    def find(self, query: str) -> list[Target]:
        """Return at most `MAX_OF_A_KIND` matches of each kind, best first."""
        query = _flat(query[:MAX_QUERY]).strip()
        words = query.split()
        if not words:
            return []
        found = [target for kind in self._kinds for target in kind.find(query, words)]
        return sorted(found, key=lambda target: -target.rank)


def _pattern_text(pattern: Pattern) -> str:
    title, name = pattern_title(pattern), pattern.title
    texts = (title, *([name] if name != title else []), pattern.description, pattern.error_pattern, pattern.use_case)
    return " ".join((*texts, *pattern.tags))


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return the text around the first word if it would not be shown otherwise."""
    flat = " ".join(text.split())
    at = min((at for word in words if (at := flat.lower().find(word)) >= 0), default=0)
    return flat if at < _SHOWN - _BEFORE else f"{ELLIPSIS}{flat[at - _BEFORE :]}"


def _decision_text(decision: Decision) -> str:
    return f"{decision.verb.value.replace('_', ' ')} by {decision.by} {decision.reason} {decision.id}"


def _rank(line: str, query: str) -> float:
    """Return the rank of a match: best in the ID, and at the start of ID or text."""
    id, _, text = line.partition("\t")
    if id == query:
        return 1.0
    for place, (part, best) in enumerate(((id, 0.95), (text, 0.7))):
        at = part.find(query)
        if at == 0:
            return best
        if at > 0:
            return best - (0.05 if _BEGINNINGS.search(part[:at]) else 0.1) - 0.02 * place
    return 0.5


def _flat(text: str) -> str:
    return " ".join(text[:MAX_CHARS].lower().split())


BEGINS: Final = 0.96  # Rank of an action that starts with the query; only an exact ID ranks higher.
HAS: Final = 0.8  # Rank of an action that contains the query.
HAS_WORDS: Final = 0.6  # Rank of an action that contains all words of the query, but not together.
TEXTS: Final = 0.4  # Rank of the best record with all words in its texts; below those of `PaletteIndex`.
INDEX: Final = 0.1  # Rank of the note on the search index.
FIRST_PAGE: Final = 20  # maximum number of hits in texts


class Palette(CommandPalette):
    """A palette in which Enter waits for the results of the whole query."""

    is_submitted = False  # whether the user has pressed enter

    @on(Input.Submitted)
    async def _finish_searching(self) -> None:
        self.is_submitted = True
        for worker in [w for w in self.workers if w.node is self and not w.is_finished]:
            with contextlib.suppress(WorkerCancelled, WorkerFailed):
                await worker.wait()


class PaletteServices(Services, Protocol):
    """The part of the app that the palette uses."""

    themes: Mapping[str, tuple[str, Theme]]  # by name, with labels
    jumps: PaletteIndex | None  # the last built index

    def use_theme(self, name: str) -> None: ...
    def open_view(self, view: SavedView) -> None: ...


class PaletteCommands(Provider):
    """Commands of the palette: actions, saved views, themes, and records."""

    _jumps: PaletteIndex | None = None

    @property
    def _services(self) -> PaletteServices:
        return cast("PaletteServices", self.app)

    def _commands(self) -> list[tuple[str, Callable[[], Any]]]:
        """Return text and callback of actions, saved views and themes."""
        services, screen = self._services, self.screen
        found: list[tuple[str, Callable[[], Any]]] = []
        if isinstance(screen, BaseScreen):
            here = actions_of(screen.place)
            # A main screen can open What-if and Compare, which only some of them have a key for.
            elsewhere = [one for one in ACTIONS if one.id in OF_APP and one not in here and screen.place in PLACES]
            for action in (*here, *elsewhere):
                if action.group != "Move":
                    key = services.shown_key(action.id) if action in here else ""
                    text = f"{action.label}: {action.tooltip}" + (f"  ({key})" if key else "")
                    found.append((text, partial(self._act, action.id)))
        for view in (*own_views(services.user_state), *BUILT_IN):
            found.append((f"view: {_view_text(view)}", partial(services.open_view, view)))
        for name, (label, _theme) in services.themes.items():
            found.append((f"theme: {label}", partial(services.use_theme, name)))
        return found

    async def discover(self) -> Hits:
        for text, do in self._commands():
            yield DiscoveryHit(Content(text), do, text=text)

    async def search(self, query: str) -> Hits:
        try:
            async for hit in self._find(query):
                yield hit
        except Exception as error:
            yield self._note(capitalized(failure_note(error)))

    async def _find(self, query: str) -> Hits:
        typed = query.lower().strip()
        for text, do in self._commands():
            lowered = text.lower()
            if all(word in lowered for word in typed.split()):
                rank = BEGINS if lowered.startswith(typed) else HAS if typed in lowered else HAS_WORDS
                yield Hit(rank, _underline_match(text, query), do, text=text)
        index = await self._index()
        targets = await asyncio.to_thread(index.find, query)
        for target in targets:
            yield Hit(
                target.rank, _underline_match(target.shown, query), partial(self._open, target), text=target.shown
            )
        async for hit in self._search_texts(query, {(target.place, target.key) for target in targets}):
            yield hit

    async def _search_texts(self, query: str, listed: set[tuple[str, str]]) -> Hits:
        """Yield the first page of text hits: in the index, then in files that it lacks."""
        services, palette = self._services, self.app.screen
        try:
            words, filters = parse_search(query, services.project.project, services.now())
        except (BadInput, UnknownRecord) as error:
            yield self._note(f"Texts are not searched: {error}")
            return
        is_left = False

        def may_read(reads_files: bool) -> bool:
            return reads_files and not is_left and not (isinstance(palette, Palette) and palette.is_submitted)

        found: set[SearchHit] = set()
        try:
            for reads_files in (False, True):
                snapshot = services.view.snapshot
                go_on = partial(may_read, reads_files)
                find = partial(
                    services.project.index.search, words, filters, FIRST_PAGE, go_on=go_on, snapshot=snapshot
                )
                result = await asyncio.to_thread(find)
                if not reads_files and snapshot.tasks and (note := index_note(result.missing)):
                    yield self._note(note)
                for rank, hit in enumerate(result.hits):
                    record = record_of(hit, snapshot)
                    is_listed = hit.kind is HitKind.TASK and record in listed
                    if hit not in found and record is not None and not is_listed:
                        shown = hit_content(hit, words)
                        yield Hit(TEXTS - rank / 1000, shown, partial(self._open_hit, hit, record), text=shown.plain)
                found.update(result.hits)
                if result.is_indexed:
                    return
        finally:
            is_left = True  # the thread reads no more files

    def _note(self, text: str) -> Hit:
        """Return a row on the search itself."""
        return Hit(INDEX, Content.styled(text, "italic"), partial(self._services.say, text), text=text)

    def _open_hit(self, hit: SearchHit, record: tuple[str, str]) -> None:
        """Replay an attempt from an action, or go to a record."""
        services = self._services
        if hit.action is None or hit.attempt is None:
            services.open_record(*record)
            return
        links = WorkLinks(services.view.snapshot, None)
        self.app.push_screen(ReplayScreen(hit.task_id, hit.attempt, links, hit.action - 1))

    async def _index(self) -> PaletteIndex:
        """Return the index; build it in a thread unless it is up to date."""
        services = self._services
        if self._jumps is None:
            if services.jumps is None or services.jumps.number != services.view.snapshot.number:
                archived, _problems = await asyncio.to_thread(read_archives, services.project.project)
                services.jumps = await asyncio.to_thread(PaletteIndex, services.view, archived)
            self._jumps = services.jumps
        return self._jumps

    def _open(self, target: Target) -> None:
        """Go to a record; show an archived pattern, which no screen lists."""
        services = self._services
        if target.kind != ARCHIVED:
            services.open_record(target.place, target.key)
            return
        seen = services.view

        def answered(yes: bool | None) -> None:
            if yes:
                services.decide(Restore(target.id), seen)

        text = [labelled("pattern", target.id), labelled("title", target.text), Content("")]
        hint = "Archived patterns are not listed and not given to agents. Restoring can be undone."
        title = Content(f"Archived: {visible_line(target.id, 60)}")
        self.app.push_screen(PreviewDialog(title, [*text, Content.styled(hint, "$quiet")], verb="restore"), answered)

    async def _act(self, action: str) -> None:
        screen = self.app.screen
        if isinstance(screen, BaseScreen):
            await screen.run_id(action)


def _view_text(view: SavedView) -> str:
    return f"{visible_line(view.name, 60)}  ({PLACES[view.place][1]} {visible_line(view.filter, 80)})"


def _underline_match(text: str, query: str) -> Content:
    """Return the text, not parsed as markup, with the query underlined."""
    content = Content(text)
    at = text.lower().find(query.lower())
    return content.stylize(Style(underline=True, bold=True), at, at + len(query)) if at >= 0 else content
