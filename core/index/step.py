"""One transaction of an index update: changed files, joins, and what follows."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from core.base.text import plural, visible_line
from core.files.file_reader import Problem, Stamp
from core.index.database import count_change, get_meta, set_meta
from core.index.join import Joiner
from core.index.logs import LogContent, LogState, forget_events, update_events
from core.index.parse import LOGS, FileParts
from core.index.records import (
    COMPLETE,
    CURATION,
    DECIDED,
    FINDINGS,
    FOREIGN,
    LOG,
    NUMBER,
    ORIGINS,
    SWEPT,
    TEAM,
    Kind,
    LookUp,
    Reader,
    RecordMap,
    View,
    encode,
)
from core.index.snapshot import IndexedSnapshot, find_delta, read_curation
from core.index.sweep import origins_key
from core.records.findings import Finding, Severity
from core.records.team import NO_TEAM, TeamEvidence
from core.sources.fold import fold, with_lost_words, with_proposals
from core.sources.ledger import end_findings
from core.sources.liveness import Moment, process_space
from core.sources.parsed_file import condense
from core.sources.record_kinds import EVENTS, Format, is_text, kind_of
from core.trust.own_records import Effect
from core.trust.projects import is_joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.index.database import Database
    from core.index.logs import Logs
    from core.index.snapshot import ProjectFiles
    from core.index.sweep import Sweep
    from core.learning.scoreboard import Scoreboard
    from core.records.decisions import CurationState
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.sources.liveness import Processes
    from core.trust.origins import Origins

UNREADABLE_AFTER: Final = timedelta(seconds=1)  # when a torn file is reported; most are complete in 1 ms
_CLOSED: Final = "folder:"  # prefix of what findings about folders that cannot be listed are about
_SETTINGS: Final = "settings"  # those with which patterns were scored
_LOG_PROBLEMS: Final = "decision log"  # what findings about lines that are missing are about
_MAX_NAMED: Final = 3  # patterns that a finding names


class Sources(NamedTuple):
    """What an index is made from; `files` makes the fields of snapshots it lacks."""

    paths: ProjectPaths
    settings: Settings
    logs: Logs
    files: ProjectFiles
    origins: Origins
    processes: Processes


def is_log(path: str) -> bool:
    """Return whether a file is read line by line, only where it grew."""
    kind = kind_of(path)
    return kind is not None and kind.format in LOGS


class Step:
    """Writes within one open transaction; call `finish` last."""

    def __init__(self, database: Database, sources: Sources, now: datetime) -> None:
        connection, decoded = database.writer, database.decoded
        self._database = database
        self._connection = connection
        self._sources = sources
        self._now = now
        stale_after = timedelta(minutes=sources.settings.watch.stale_after_minutes)
        moment = Moment(now=now, processes=sources.processes, stale_after=stale_after, space=process_space())
        self.joiner = Joiner(connection, decoded, moment)
        self._reader = Reader(connection, decoded)
        self._torn = LookUp(self._reader, "SELECT path, is_reported FROM torn WHERE 1", "path")
        self._has_new_decisions = False
        self._has_news = False
        self._is_sweep = False
        self.scored: tuple[Snapshot, Scoreboard] | None = None
        """The records and scores in memory after all patterns were scored, for the indexes of texts."""

    def take_sweep(self, found: Sweep) -> None:
        """Write the folders that were listed, and forget what files that are gone said."""
        self._is_sweep = found.paths is None
        sql = "INSERT OR REPLACE INTO folder VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._connection.executemany("DELETE FROM folder WHERE path = ?", ((path,) for path in found.left))
        self._connection.executemany(sql, found.listed)
        for path in found.removed:
            self._forget(path)
        self._mark_tasks((*found.changed, *found.removed, *(found.paths or ())))
        rows = self._connection.execute(
            "SELECT DISTINCT about FROM finding WHERE about >= 'folder:' AND about < 'folder;'"
        )
        for about in [about for (about,) in rows]:
            folder = about.removeprefix(_CLOSED)
            if folder not in found.unreadable and found.has_checked(folder):
                self.joiner.report(about, ())
        for folder, problem in found.unreadable.items():
            self.joiner.report(f"{_CLOSED}{folder}", (problem.finding(folder),))

    def _mark_tasks(self, changed: Iterable[str]) -> None:
        """Note tasks with changes; a search reads their files until they are indexed."""
        folder = self._sources.paths.relative(self._sources.paths.tasks)
        tasks = {path[len(folder) + 1 :].split("/")[0] for path in changed if path.startswith(f"{folder}/")}
        sql = (
            "INSERT INTO search_unit (path, task, is_current, stamps) VALUES (?, ?, 0, x'')"
            " ON CONFLICT (path) DO UPDATE SET is_current = 0"
        )
        self._connection.executemany(sql, ((f"{folder}/{task}", task) for task in tasks if is_text(task)))

    def take(self, file: FileParts, stamp: Stamp) -> None:
        """Store a file (`stamp`: of the sweep); a torn one keeps its last good content."""
        if file.problem is not None and file.problem.torn:
            self._keep_torn(file.path, stamp, file.problem)
        elif file.stamp is None:
            self._forget(file.path)
        else:
            self.joiner.store(file, file.stamp)
            self._forget_torn(file.path)

    def take_log(self, path: str, stamp: Stamp) -> None:
        """Read a log where it grew."""
        found: tuple[Stamp, LogContent | LogState] | Problem | None
        if kind_of(path) is EVENTS:
            found = update_events(self._connection, self._sources.paths)
        else:
            found = self._sources.logs.read(path, stamp)
        if found is None:
            self._forget(path)
        elif isinstance(found, Problem):
            self.take(FileParts(path, stamp, problem=found), stamp)
        else:
            self.take(FileParts(path, found[0], findings=condense(found[1].findings)), stamp)
        if not isinstance(found, Problem) or not found.torn:
            parsed = found[1] if isinstance(found, tuple) else None
            self._note_log(path, parsed if isinstance(parsed, LogContent) else None, stamp)

    def finish(self, *, checks_open: bool, is_complete: bool) -> None:
        """Join what changed, fold the decisions, and number the result."""
        completes = is_complete and not self._is_complete
        is_partial = not is_complete and not self._is_complete
        self.joiner.join(checks_open=checks_open, is_partial=is_partial, completes=completes)
        self._decide()
        self._check_torn()
        if self._is_sweep:
            set_meta(self._connection, SWEPT, self._now.isoformat().encode())
        if completes:
            set_meta(self._connection, COMPLETE, b"1")
            self._has_news = True
        if self.joiner.has_new_findings:
            count_change(self._connection, FINDINGS)
        if self.has_changed:
            count_change(self._connection, NUMBER)
        if self._is_complete:
            self._derive()

    def _derive(self) -> None:
        """Update scores and texts whose inputs changed; not the texts of a first load."""
        settings = self._sources.settings
        key = msgspec.msgpack.encode(msgspec.to_builtins(settings))
        is_same = key == get_meta(self._connection, _SETTINGS)
        if is_same and not self.has_changed:
            return
        # Imported on use: they import numpy, and most commands find nothing that changed.
        from core.index.scores import fill_scores, find_board, has_scores, read_records, update_scores
        from core.index.texts import forget_texts, update_texts

        set_meta(self._connection, _SETTINGS, key)
        after = IndexedSnapshot(self._reader, self._sources.files)
        if not has_scores(self._reader, settings):
            # In memory: scoring everything looks up records many times.
            snapshot = read_records(after)
            self.scored = snapshot, fill_scores(self._reader, snapshot, self._now, settings)
            forget_texts(self._connection)
            return
        # The change is not committed, so another connection still sees the records before it.
        before = IndexedSnapshot(View(self._database.read(), self._database.decoded), self._sources.files)
        if delta := find_delta(before, after):
            changed_work = update_scores(before, after, delta, self._now, settings)
            board = find_board(after, self._now, settings)
            update_texts(before, after, delta, board, changed_work)

    @property
    def has_changed(self) -> bool:
        """Whether a view shows anything else than before."""
        return self._has_news or self.joiner.has_new_findings or any(self.joiner.changed.values())

    @property
    def _is_complete(self) -> bool:
        return get_meta(self._connection, COMPLETE) is not None

    def _forget(self, path: str) -> None:
        self._forget_torn(path)
        self.joiner.forget(path)
        if is_log(path):
            if kind_of(path) is EVENTS:
                forget_events(self._connection)
            self._sources.logs.forget(path)
            self._note_log(path, None, None)

    # Files that are being written

    def _keep_torn(self, path: str, stamp: Stamp, problem: Problem) -> None:
        written = min(max(stamp.mtime_ns / 1e9, 0.0), self._now.timestamp())
        sql = "INSERT INTO torn VALUES (?, ?, 0, ?) ON CONFLICT DO UPDATE SET problem = excluded.problem"
        self._connection.execute(sql, (path, written, encode(problem)))
        self._torn.add(path, False)

    def _forget_torn(self, path: str) -> None:
        if self._torn.get(path) is None:
            return
        sql = "DELETE FROM torn WHERE path = ? RETURNING is_reported"
        self.joiner.has_new_findings |= any(row[0] for row in self._connection.execute(sql, (path,)))

    def _check_torn(self) -> None:
        """Report the files that stay incomplete, and forget those that are gone."""
        rows = self._connection.execute("SELECT path, since, is_reported FROM torn").fetchall()
        for path, since, is_reported in rows:
            if not os.path.lexists(self._sources.paths.project / path):
                self._forget(path)
            elif (late := self._now.timestamp() - since > UNREADABLE_AFTER.total_seconds()) != bool(is_reported):
                self._connection.execute("UPDATE torn SET is_reported = ? WHERE path = ?", (late, path))
                self.joiner.has_new_findings = True

    # Logs

    def _note_log(self, path: str, parsed: LogContent | None, stamp: Stamp | None) -> None:
        """Note that a log changed, and write the sums of a team."""
        kind = kind_of(path)
        if kind is not None:
            set_meta(self._connection, f"{LOG}{kind.name}", msgspec.msgpack.encode(stamp))
            self._has_news = True
            self._has_new_decisions |= kind.format is Format.DECISION_LOG
            if kind.format is Format.TEAM_EVIDENCE:
                self._write_team(parsed.team if parsed is not None else None)

    def _write_team(self, sent: TeamEvidence | None) -> None:
        """Write the sums of a joined team; those in files of other projects are claims."""
        is_usable = self._sources.origins.do_claims_count or is_joined(self._sources.paths.project)
        team = sent if sent is not None and is_usable else NO_TEAM
        value = msgspec.msgpack.encode(msgspec.structs.replace(team, sums={}))
        is_same = value == get_meta(self._connection, TEAM)
        if self.joiner.replace_all(Kind.TEAM_SUMS, team.sums) or not is_same:
            set_meta(self._connection, TEAM, value)
            self._has_news = True

    # Decisions

    def _decide(self) -> None:
        """Fold the decisions if they, or what the user says about their origin, changed."""
        origins, changed_patterns = self._sources.origins, self.joiner.changed["patterns"]
        foreign_before = get_meta(self._connection, FOREIGN)
        key = origins_key(self._sources.paths, origins, self._reader)
        has_new_origins = key != get_meta(self._connection, ORIGINS)
        if not self._has_new_decisions and not has_new_origins and not changed_patterns:
            return
        origins.refresh()
        curation = read_curation(self._reader)
        if self._has_new_decisions or has_new_origins:
            folded = self._fold(curation)
            set_meta(self._connection, ORIGINS, key)
            self.joiner.report(_LOG_PROBLEMS, tuple(self._find_log_problems(folded)))
            if folded != curation or get_meta(self._connection, CURATION) is None:
                curation, self._has_news = folded, True
                self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (CURATION, encode(curation)))
        patterns: RecordMap[Pattern] = RecordMap(self._reader, Kind.PATTERN)
        found = origins.foreign(patterns, curation)
        foreign = msgspec.msgpack.encode((sorted(found.patterns), sorted(found.arrived)))
        if foreign != foreign_before:
            set_meta(self._connection, FOREIGN, foreign)
            self._has_news = True
        if has_new_origins:
            paths = self._sources.paths
            log = self._sources.logs.read(paths.relative(paths.team_evidence))
            self._write_team(log[1].team if isinstance(log, tuple) else None)

    def _fold(self, before: CurationState) -> CurationState:
        """Return the result of all decisions; `before` if the log is incomplete now."""
        origins, paths = self._sources.origins, self._sources.paths
        found = self._sources.logs.read(paths.relative(paths.ledger))
        if isinstance(found, Problem) and found.torn:
            return before
        log = found[1] if isinstance(found, tuple) else LogContent()
        set_meta(self._connection, DECIDED, b"%d" % len(log.decisions))
        claims = origins.claims(log.decisions, log.places)
        state = fold(log.decisions, claims, do_claims_count=origins.do_claims_count)
        # A log that exists but cannot be read now has not lost its lines.
        is_read = isinstance(found, tuple) or not os.path.lexists(paths.ledger)
        lost = origins.lost_words(log.decisions, claims) if is_read else {}
        return with_proposals(with_lost_words(state, lost), log.decisions, origins.own_proposals(log.proposed))

    def _find_log_problems(self, curation: CurationState) -> Iterator[Finding]:
        """Yield findings on the decision log: lost lines, or not a regular file."""
        paths, origins = self._sources.paths, self._sources.origins
        name = paths.relative(paths.ledger)
        found = self._sources.logs.read(name)
        log = found[1] if isinstance(found, tuple) else LogContent()
        lost = origins.lost_words(log.decisions, curation.claims)
        if words := [word for word in lost.values() if word.effect is not Effect.APPROVES]:
            named = ", ".join(visible_line(word.subject, 80) for word in words[:_MAX_NAMED])
            what = plural(len(words), "decision that withholds a text is", "decisions that withhold texts are")
            message = f"{what} missing from the log, though made here; the texts stay withheld: {named}"
            yield Finding(name, "", Severity.WARNING, "lost-decision", message)
        row = self._reader.row("SELECT inode, size, mtime, ctime FROM file WHERE path = ?", name)
        is_incomplete = isinstance(found, Problem) and found.torn
        if isinstance(found, tuple):
            yield from end_findings(paths, found[0], log.places, is_chained=log.is_chained)
        elif row is None and not is_incomplete and os.path.lexists(paths.ledger):
            message = "is not a regular file inside .aiwg: the decisions are unknown, so nothing is injected"
            yield Finding(name, "", Severity.ERROR, "not-a-file", message)
        elif not is_incomplete:
            yield from end_findings(paths, Stamp(*row) if row is not None else None, (), is_chained=False)
