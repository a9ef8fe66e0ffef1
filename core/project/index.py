"""Incremental reading of project files into immutable snapshots and deltas."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from time import monotonic, thread_time
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from core.base.collector import collector_off
from core.base.errors import UnknownRecord
from core.base.text import plural, visible_line
from core.ledger.decision_log import DecisionLog
from core.ledger.fold import fold, with_lost_words, with_proposals
from core.ledger.verify import end_findings
from core.records.event_log import EventView
from core.records.findings import Finding, Severity
from core.records.snapshot import Delta, Snapshot
from core.records.team import NO_TEAM, TeamEvidence
from core.sources.finding_groups import FileFindings
from core.sources.liveness import Processes, system_processes
from core.sources.loop_details import read_loop_details
from core.sources.loop_facts import loop_directory
from core.sources.parallel_parser import ParallelParser, take_sweep
from core.sources.parse_cache import CachedFile, ParseCache, decode_cached
from core.sources.parsed_file import EarlierParse, ParsedFile, parse_file, parse_folder
from core.sources.record_collections import ProjectRecords
from core.sources.record_kinds import FOLDER, LEDGER, LISTED, kind_of, load_order_of
from core.sources.shared_values import SharedValues
from core.sources.sweep import Listing, can_contain_records, newest_states, scan, scan_path
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_PATTERN_BYTES, RawFile, Stamp, read_file
from core.storage.user_cache import parse_cache_file
from core.trust.last_words import Effect
from core.trust.origins import Origins
from core.trust.projects import is_joined

if TYPE_CHECKING:
    from core.adapters.adapter_records import AdapterRecords
    from core.config.paths import ProjectPaths
    from core.config.settings import Settings
    from core.ledger.ledger import Ledger
    from core.records.decisions import CurationState, Decision
    from core.records.loops import LoopDetails
    from core.records.patterns import Pattern
    from core.records.proposed_decisions import ProposedDecision
    from core.sources.record_kinds import RecordKind
    from core.sources.worker_process import EarlySweep, WorkerProcess
    from core.storage.hash_chain import Place
    from core.trust.last_words import LastWord

UNREADABLE_AFTER: Final = timedelta(seconds=1)  # when a torn file is reported; most are complete in 1 ms
_FIRST_PUBLISH: Final = 100  # states of loops before the first partial snapshot: more than a screen has lines
_PUBLISH_SECONDS: Final = 2.0  # time until the next partial snapshot; none is worth its time if less is left
_PUBLISH_SHARE: Final = 8  # at most one in this number of parts of the time goes into partial snapshots
_LEAST_SHARE: Final = 0.01  # of the work; with less, the time left is not known
_SWEEP_FROM: Final = 1000  # with more changed paths than this a sweep is faster
_MAX_NAMED: Final = 3  # patterns that a finding names
_LISTED_EVERY: Final = 10  # sweeps, of which one lists all folders: some network drives keep no times of folders
_NOTHING: Final = ParsedFile()
_Count = Callable[[int], None] | None
_Progress = Callable[[int, int], None] | None
_Take = Callable[[Snapshot], object] | None


class Library:
    """Reads a project: first `load`, then `apply` for each change. Thread-safe.

    The folders need not exist. With `cache`, parsed files are stored for the next start. `ledger` is a shared reader
    of the decision log. `processes` lists the running ones, by default of the system. `findings` are of the settings.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        settings: Settings,
        *,
        clock: Callable[[], datetime],
        cache: bool = True,
        ledger: Ledger | None = None,
        processes: Processes | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        self._paths = paths
        self._folder, self._aiwg = str(paths.project), paths.aiwg  # computed once, for speed
        self._settings = settings
        self._clock = clock
        self._processes = processes or system_processes()
        self._cache = ParseCache(parse_cache_file(paths.project)) if cache else None
        self._ledger_log = ledger.log if ledger is not None else DecisionLog()
        self.origins = ledger.origins if ledger is not None else Origins(paths.project)
        self._origins_version = 0
        self._lock = threading.RLock()
        self._snapshot = Snapshot()
        self._known: dict[str, CachedFile] = {}
        self.on_records: Callable[[str, int, int], None] | None = None
        """Called while a big file is read: its project-relative name, records read, records in all."""
        self.early: EarlySweep | None = None
        """A worker that sweeps this project; `load` uses it once."""
        self._unsaved: set[str] = set()
        self._torn: dict[str, tuple[datetime, Problem]] = {}
        self._closed: dict[str, Problem] = {}
        self._listings: dict[str, Listing] = {}
        self._scans = 0
        self.scan_seconds = 0.0
        """Processor time of the last sweep, without that of reading changed files."""
        self._earlier: dict[str, EarlierParse] = {}
        self._records = ProjectRecords()
        self._events = EventView.of(())
        self._decisions: tuple[Decision, ...] = ()
        self._places: tuple[Place, ...] = ()
        self._lost_words: Mapping[str, LastWord] = {}
        self._proposed: tuple[ProposedDecision, ...] = ()
        self._folded_proposed: tuple[ProposedDecision, ...] = ()  # those in the published snapshot
        self._team = NO_TEAM
        self._findings = FileFindings()
        self._unsorted_findings: list[Finding] = []
        self._of_settings = findings
        self._of_adapters: tuple[Finding, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @property
    def retry_paths(self) -> tuple[Path, ...]:
        """Files that were incomplete when last read; `apply` them again soon."""
        with self._lock:
            return tuple(self._paths.project / file for file in self._torn)

    def is_record(self, path: Path) -> bool:
        """Whether a path may be that of a file with records."""
        return bool((name := self._name(path)) and kind_of(name))

    def load(self, progress: _Progress = None, publish: _Take = None, prepare: _Take = None) -> Snapshot:
        """Read all files, first those that lists show, newest first; with `publish`, some loops even before the sweep.

        `progress` is called with (files done, files in all), in the sweep with (files found, 0); `publish` with partial
        snapshots (not `complete`) of loops whose state or registry entry is read: call `save` when the result is shown.
        `prepare` gets what lists show while workers parse the rest, unless it is published.
        """
        with self._lock, collector_off(), ExitStack() as stack:
            next_publish = (started := monotonic()) + _PUBLISH_SECONDS
            if publish is not None and (newest := newest_states(self._paths, _FIRST_PUBLISH)):
                self._update(newest, ())
                self._join(complete=False)
                publish(self._snapshot)
            stamps, worker = self._take_early(stack, (lambda found: progress(found, 0)) if progress else None)
            cached = self._cache.load(stamps) if self._cache else {}
            for file in self._known.keys() - stamps.keys():
                self._forget(file)
            ranks = sorted([_rank(file, stamps) for file in stamps])
            order = [rank[-1] for rank in ranks]
            listed = sum([rank[0] <= LISTED for rank in ranks])
            new = {file: stamps[file] for file in order if file not in cached}
            values = SharedValues(stamps)
            parser = stack.enter_context(
                ParallelParser(self._paths.project, new, values, self.on_records, worker, self._join_some)
            )
            for done, file in enumerate(order, start=1):
                stored = cached.pop(file, None)
                parsed = decode_cached(stored, values) if stored is not None else None
                if parsed is not None:
                    self._take(file, CachedFile(stamps[file], parsed))
                elif parser.parses(file):
                    self._take_parsed(file, stamps[file], parser)
                else:
                    self._read(file, stamps[file])
                if progress is not None and (done % 100 == 0 or done == len(order)):
                    progress(done, len(order))
                share = parser.left if parser.has_workers else 1 - done / len(order)
                left = ((begun := monotonic()) - started) * share / max(1 - share, _LEAST_SHARE)
                if publish and left > _PUBLISH_SECONDS and (done == listed or begun > next_publish):
                    self._join(complete=False)
                    publish(self._snapshot)
                    next_publish = monotonic() + max(_PUBLISH_SECONDS, _PUBLISH_SHARE * (monotonic() - begun))
                elif prepare and done == listed < len(order) and parser.has_workers:
                    self._join(complete=False)
                    prepare(self._snapshot)
            values.finish()
            self._join()
            if publish is None:
                self.save()
            return self._snapshot

    def apply(self, changed: Iterable[Path] | None) -> tuple[Snapshot, Delta]:
        """Read the files in `changed`; None finds the changed files by a sweep."""
        with self._lock:
            if changed is None:
                self._update(self._scan())
                delta = self._join()
                self.save()
                return self._snapshot, delta
            names = {name for path in changed if (name := self._name(path))}
            if len(names) > _SWEEP_FROM:
                return self.apply(None)
            for name in sorted(names):
                for folder in [folder for folder in self._closed if folder == name or folder.startswith(f"{name}/")]:
                    del self._closed[folder]
                self._update(scan_path(self._paths, name, self._closed), self._scope(name))
            delta = self._join()
            return self._snapshot, delta

    def refresh(self, now: datetime) -> tuple[Snapshot, Delta]:
        """Update what changes with time: ended processes, stale loops, incomplete files."""
        with self._lock:
            delta = self._join(now, anew=True)
            return self._snapshot, delta

    def replace_adapted(self, found: AdapterRecords) -> tuple[Snapshot, Delta]:
        """Replace the loops, lessons and findings of adapters."""
        with self._lock:
            self._records.adapted_loops = {loop.id: loop for loop in found.loops}
            self._records.lessons = {lesson.id: lesson for lesson in found.lessons}
            self._of_adapters = found.findings
            delta = self._join(complete=self._snapshot.complete)
            return self._snapshot, delta

    def save(self) -> None:
        """Store newly parsed files in the cache, if there is one."""
        with self._lock:
            changed = {file: self._known[file] for file in self._unsaved if file in self._known}
            removed = self._unsaved - changed.keys()
            self._unsaved.clear()
        if self._cache is not None and (changed or removed):
            self._cache.save(changed, removed)

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """Return all records of an ID in pattern files and copies, that in effect first."""
        return self._records.patterns.copies(pattern_id)

    def story(self, loop_id: str) -> LoopDetails:
        """Read the details of one loop from disk; raises UnknownRecord if there is none."""
        if (loop := self._snapshot.loops.get(loop_id)) is None:
            raise UnknownRecord(f"no loop {visible_line(loop_id, 120)!r} in {self._paths.project}")
        return read_loop_details(self._paths, loop)

    def _name(self, path: Path) -> str | None:
        """Return the project-relative name of a path inside `.aiwg`."""
        try:
            name = self._paths.relative(path)
        except ValueError:
            return None
        return name if name == ".aiwg" or name.startswith(".aiwg/") else None

    def _take_early(self, stack: ExitStack, progress: _Count) -> tuple[dict[str, Stamp], WorkerProcess | None]:
        """Return what the early worker found, and the worker; without one, sweep here."""
        early, self.early = self.early, None
        if early is not None:
            stack.enter_context(early.worker)
            if (sweep := take_sweep(early, progress)) is not None:
                self._closed, self._listings = sweep.unreadable, sweep.listings
                return sweep.stamps, early.worker
        return self._scan(progress), None

    def _scan(self, progress: _Count = None) -> dict[str, Stamp]:
        self._closed.clear()
        self._scans += 1
        if self._scans % _LISTED_EVERY == 0:
            self._listings.clear()
        begun = thread_time()
        found = scan(self._paths, self._closed, self._listings, progress)
        self.scan_seconds = thread_time() - begun
        return found

    def _scope(self, name: str) -> set[str]:
        """Return the known files that a change of a path affects."""
        known = self._known.keys() | self._torn.keys() if can_contain_records(name) else set()
        scope = {file for file in known if file.startswith(f"{name}/")}
        scope.update(file for file in (name, f"{loop_directory(name)}/") if file in self._known or file in self._torn)
        return scope

    def _update(self, found: Mapping[str, Stamp], scope: Iterable[str] | None = None) -> None:
        """Read the files in `found` that are new or changed, and forget those of `scope` (None: all) not in it."""
        begun, known, torn = thread_time(), self._known, self._torn
        changed = [
            file
            for file, stamp in found.items()
            if (before := known.get(file)) is None or before.stamp != stamp or file in torn
        ]
        if scope is None:
            new = sum(file not in known for file in changed)
            is_complete = len(found) - new == len(known) and not torn
            scope = () if is_complete else known.keys() | torn.keys()
            self.scan_seconds += thread_time() - begun
        for file in [file for file in scope if file not in found]:
            self._forget(file)
        for file in changed:
            self._read(file, found[file])

    def _read(self, file: str, stamp: Stamp) -> None:
        kind = kind_of(file)
        if kind is None:
            return
        if kind is FOLDER:
            self._take(file, CachedFile(stamp, parse_folder(file, stamp)))
            return
        earlier = self._earlier.get(file) if kind.limit == MAX_PATTERN_BYTES else None
        grown = self._read_growth(file, stamp, kind, earlier)
        raw = grown or read_file(f"{self._folder}/{file}", self._aiwg, kind.limit)
        if raw is None:
            self._forget(file)
            return
        if earlier is None and kind.limit == MAX_PATTERN_BYTES:
            earlier = self._earlier[file] = EarlierParse()
        if earlier is not None and kind is LEDGER:
            earlier.decisions = self._ledger_log
        progress = partial(self.on_records, file) if self.on_records is not None else None
        if isinstance(raw, Problem):
            self._take_new(file, stamp, stamp, raw)
        else:
            self._take_new(file, stamp, raw.stamp, parse_file(file, kind, raw, earlier, progress))

    def _take_parsed(self, file: str, stamp: Stamp, parser: ParallelParser) -> None:
        """Take the next outcome of a parser."""
        outcome = parser.outcome(file)
        if (parsed := outcome.parsed or outcome.problem) is None:
            self._forget(file)
        else:
            self._take_new(file, stamp, outcome.stamp or stamp, parsed)

    def _take_new(self, file: str, stamp: Stamp, read_stamp: Stamp, parsed: ParsedFile | Problem) -> None:
        """Take what a file contained when its stamp was `read_stamp`; `stamp` is that of the sweep."""
        if not isinstance(parsed, Problem):
            self._take(file, CachedFile(read_stamp, parsed))
            self._unsaved.add(file)
        elif parsed.torn:
            now = self._clock()
            written = datetime.fromtimestamp(min(max(stamp.mtime_ns / 1e9, 0.0), now.timestamp()), UTC)
            self._torn[file] = (self._torn[file][0] if file in self._torn else written, parsed)
        else:
            self._take(file, CachedFile(stamp, ParsedFile(findings=(parsed.finding(file),))))
            self._unsaved.add(file)

    def _read_growth(self, file: str, stamp: Stamp, kind: RecordKind, earlier: EarlierParse | None) -> RawFile | None:
        """Read the end of a log that only grew since it was parsed; None if it must be read whole."""
        lines, known = earlier.lines if earlier is not None else None, self._known.get(file)
        if lines is None or known is None or known.stamp.inode != stamp.inode or known.stamp.size >= stamp.size:
            return None
        raw = read_file(f"{self._folder}/{file}", self._aiwg, kind.limit, lines.resume_at)
        return raw if isinstance(raw, RawFile) and lines.is_continued_by(raw.data) else None

    def _take(self, file: str, found: CachedFile) -> None:
        self._torn.pop(file, None)
        before = self._known[file].parsed if file in self._known else _NOTHING
        self._known[file] = found
        self._spread(file, before, found.parsed)

    def _forget(self, file: str) -> None:
        self._torn.pop(file, None)
        self._earlier.pop(file, None)
        if (known := self._known.pop(file, None)) is not None:
            self._unsaved.add(file)
            self._spread(file, known.parsed, _NOTHING)

    def _spread(self, file: str, before: ParsedFile, after: ParsedFile) -> None:
        """Replace the records that `file` contributed before."""
        self._records.replace(file, before, after)
        if before.findings != after.findings:
            self._findings.replace(file, after.findings)
        if before.events != after.events:
            self._events = EventView.of(after.events)
        if before.decisions != after.decisions:
            self._decisions, self._places = after.decisions, after.places
        if before.proposed != after.proposed:
            self._proposed = after.proposed
        if before.team is not after.team:
            self._team = self._joined_team(after)

    def _join(self, now: datetime | None = None, *, complete: bool = True, anew: bool = False) -> Delta:
        """Publish the next snapshot if anything changed; unchanged mappings are reused."""
        now, before = now or self._clock(), self._snapshot
        changed = self._records.join(
            now, self._settings.watch, self._processes, force_liveness=anew, with_reflections=complete
        )
        known_origins, self._origins_version = self._origins_version, self.origins.refresh()
        has_new_origins = known_origins != self._origins_version
        curation = self._curation(before, has_new_origins=has_new_origins)
        decided = curation is not before.curation
        unreadable = {file: since for file, (since, _) in self._torn.items() if now - since > UNREADABLE_AFTER}
        found = self._all_findings(unreadable)
        if complete or before.complete:
            found += self._ledger_findings()
        if found == self._unsorted_findings:
            findings = before.findings
        else:
            findings = tuple(sorted(found, key=attrgetter("file", "pointer", "code", "message")))
            self._unsorted_findings = found
        mappings = self._records.mappings(before, changed)
        foreign = before.foreign
        if decided or has_new_origins or changed["patterns"] or not before.complete:
            foreign = self.origins.foreign(mappings["patterns"], curation)
            changed["patterns"] |= before.foreign.patterns ^ foreign.patterns
        events = self._events.without(curation.undone)
        is_same_log = events == before.events
        delta = Delta(
            **changed,
            team=before.team.changed_patterns(self._team),
            events=not is_same_log,
            decisions=decided,
            findings=findings != before.findings or unreadable != before.unreadable,
        )
        if not delta and before.complete == complete:
            return delta
        self._folded_proposed = self._proposed
        self._snapshot = Snapshot(
            number=before.number + 1,
            **mappings,
            foreign=foreign,
            events=before.events if is_same_log else events,
            withdrawn=before.withdrawn if is_same_log else events.hidden,
            decisions=self._decisions,
            curation=curation,
            team=self._team if delta.team else before.team,
            findings=findings,
            unreadable=MappingProxyType(unreadable),
            complete=complete or before.complete,
        )
        return delta

    def _joined_team(self, parsed: ParsedFile) -> TeamEvidence:
        """Return the sums of a team that the user has joined: those in a file of another project are claims."""
        if parsed.team is not None and (self.origins.do_claims_count or is_joined(self._paths.project)):
            return parsed.team
        return NO_TEAM

    def _curation(self, before: Snapshot, *, has_new_origins: bool) -> CurationState:
        """Return the result of all decisions: that of the last snapshot if neither they nor their origins changed."""
        is_same = self._decisions is before.decisions and self._proposed is self._folded_proposed
        if is_same and not has_new_origins:
            return before.curation
        claims = self.origins.claims(self._decisions, self._places)
        state = fold(self._decisions, claims, do_claims_count=self.origins.do_claims_count)
        # While the files are read, the log may be still to come.
        is_missing = not self._closed and not os.path.lexists(self._paths.ledger)
        is_read = is_missing or self._paths.relative(self._paths.ledger) in self._known
        self._lost_words = self.origins.lost_words(self._decisions, claims) if is_read else {}
        state = with_lost_words(state, self._lost_words)
        state = with_proposals(state, self._decisions, self.origins.own_proposals(self._proposed))
        return before.curation if state == before.curation else state

    def _join_some(self) -> bool:
        """Join some records in advance; returns False if there are none."""
        return self._records.join_some(self._clock(), self._settings.watch, self._processes)

    def _ledger_findings(self) -> Iterator[Finding]:
        """Return findings on the decision log: lost lines, or not a regular file."""
        name = self._paths.relative(self._paths.ledger)
        if lost := [word for word in self._lost_words.values() if word.effect is not Effect.APPROVES]:
            named = ", ".join(visible_line(word.subject, 80) for word in lost[:_MAX_NAMED])
            what = plural(len(lost), "decision that withholds a text is", "decisions that withhold texts are")
            message = f"{what} missing from the log, though made here; the texts stay withheld: {named}"
            yield Finding(name, "", Severity.WARNING, "lost-decision", message)
        if (known := self._known.get(name)) is not None:
            parsed = known.parsed
            yield from end_findings(self._paths, known.stamp, parsed.places, is_chained=parsed.is_chained)
        elif name not in self._torn and os.path.lexists(self._paths.ledger):
            message = "is not a regular file inside .aiwg: the decisions are unknown, so nothing is injected"
            yield Finding(name, "", Severity.ERROR, "not-a-file", message)
        else:
            yield from end_findings(self._paths, None, (), is_chained=False)

    def _all_findings(self, unreadable: Iterable[str]) -> list[Finding]:
        found = [*self._of_settings, *self._of_adapters, *self._findings.condensed(), *self._records.findings()]
        found += (self._torn[file][1].finding(file) for file in unreadable)
        found += (problem.finding(folder) for folder, problem in self._closed.items())
        return found


def _rank(file: str, stamps: Mapping[str, Stamp]) -> tuple[int, int, str, str]:
    """Sort key of a file; what lists show of a loop follows its state, so that the loop can be joined early."""
    if (load_order := load_order_of(file)) == LISTED:
        state = f"{file}state.json" if file[-1] == "/" else f"{loop_directory(file)}/state.json"
        if (stamp := stamps.get(state)) is not None:
            return load_order_of(state), -stamp.mtime_ns, f"{state}/{file}", file
    return load_order, -stamps[file].mtime_ns, file, file
