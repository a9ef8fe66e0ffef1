"""One open project: records, scores, decisions and event log."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from core.base.errors import Refused
from core.curation import record_changes
from core.curation.use_counts import CountResult, record_events
from core.metrics.derived_files import write_metrics
from core.project.decisions import DecidingProject
from core.records.events import INJECTED_REFLECTION, Event, injected_events
from core.records.extractions import Extraction
from core.sources.events import append_events

if TYPE_CHECKING:
    from core.adapters.agent_files import AgentFile
    from core.adapters.runner_files import RunnerFiles
    from core.curation.decision_writer import Decided
    from core.learning.scoreboard import Scoreboard
    from core.records.extractions import Proposal
    from core.records.snapshot import Snapshot
    from core.retrieval.injection import InjectedContext, Injection
    from core.state.project_state import ProjectState

    Check = Callable[[ProjectState], None]


class Project(DecidingProject):
    """Open project that records events; its methods do I/O, so call them in a worker."""

    def agent_files(self) -> tuple[AgentFile, ...]:
        """Read the files that agents load by themselves."""
        from core.adapters.agent_files import read_agent_files

        return read_agent_files(self._agent_files)

    @cached_property
    def _agent_files(self) -> RunnerFiles:
        from core.adapters.runner_files import RunnerFiles
        from core.adapters.worktrees import find_folders

        folders = find_folders(self.project.project, os.environ, has_home=self.settings.sources.home)
        return RunnerFiles(folders, "agents")

    def record(
        self, *events: Event, counted: list[CountResult] | None = None, warnings: list[str] | None = None
    ) -> ProjectState:
        """Append events durably to the event log, then update records and metrics.

        `counted` receives the change of each pattern record, `warnings` the reasons if metrics could not be written.
        """
        touched = (self.project.patterns, self.project.events)

        def read() -> tuple[Snapshot, Scoreboard]:
            state, _ = self.apply(touched)
            return state.snapshot, state.board

        with self._lock:
            self._require_checked(self._view)
            found = record_events(self.project, self.settings, events, now=self._clock(), read=read)
            if counted is not None:
                counted += found
            state, _ = self.apply(touched)
            if state.snapshot.complete and any(event.pattern_id or event.kind == "outcome" for event in events):
                failed = write_metrics(self.project, self.settings, state.snapshot, state.board, state.now)
                if warnings is not None:
                    warnings += failed
            return state

    def learn_strategies(
        self, work_id: str, *, counted: list[CountResult] | None = None, warnings: list[str] | None = None
    ) -> tuple[str, ...]:
        """Count and return the decomposition strategies that finished work used.

        A strategy without a pattern gets one. If its text is not one of the common strategies, it is held. See
        docs/scoring.md; `counted` and `warnings` are those of `record`.
        """
        from core.extraction import strategies

        with self._lock:
            self._require_checked(self._view)
            state = self._view
            names = strategies.find_used_strategies(work_id, state.snapshot, state.board)
            _, missing = strategies.find_strategies(names, state.snapshot.patterns)
            for common in (True, False):
                if own := [name for name in missing if strategies.is_common(name) is common]:
                    self._add_strategies(work_id, own, unattended=not common)
            state = self._view
            found, _ = strategies.find_strategies(names, state.snapshot.patterns)
            events = tuple(
                strategies.make_use_events(work_id, found.values(), state.snapshot, state.board, self._clock(), self.by)
            )
            if events:
                self.record(*events, counted=counted, warnings=warnings)
            return names

    def _add_strategies(self, work_id: str, names: list[str], *, unattended: bool) -> None:
        from core.extraction import strategies

        def decide(now: datetime) -> Decided:
            patterns = self._view.snapshot.patterns
            _, missing = strategies.find_strategies(names, patterns)
            proposed = strategies.propose_strategies(work_id, missing)
            return self.curator.write_records(
                lambda batch: record_changes.extract(batch, proposed, patterns, unattended=unattended),
                now=now,
                known=self._known,
            )

        with suppress(Refused):  # another process added them
            self._decide_any(decide)

    def propose(self, proposal: Proposal, source_id: str, *, by: str, reason: str, check: Check) -> Decided:
        """Add a pattern that an agent proposed; it is not injected before a person has released it.

        `by` signs it, and `reason` is shown in Review. `check` gets the newest state and may raise `Refused`.
        """

        def decide(now: datetime) -> Decided:
            check(self._view)
            patterns, proposed = self._view.snapshot.patterns, Extraction(source_id=source_id, proposals=(proposal,))
            return self.curator.write_records(
                lambda batch: record_changes.extract(batch, proposed, patterns, unattended=True, by_agent=True),
                now=now,
                known=self._known,
                reason=reason,
            )

        with self._lock, self.curator.signing(by):
            return self._decide_any(decide)

    def inject(self, loop_id: str, injection: Injection | InjectedContext, comment: str = "") -> Injected:
        """Record which patterns and reflections were injected into a loop; the events have the `comment`.

        Returns the IDs that were not recorded for this loop before. Raises BadInput if an ID is not valid Unicode,
        Unwritable if the event log cannot be written, Refused if the records are not checked yet.
        """
        with self._lock:
            self._require_checked(self._view)
            self.apply((self.project.events,))
            events = [event for event in self._view.snapshot.events if event.loop_id == loop_id]
            known = {event.pattern_id for event in events if event.kind == "injected"}
            patterns = tuple(id for id in injection.pattern_ids if id not in known)
            known = {event.reflection_id for event in events if event.kind == INJECTED_REFLECTION}
            reflections = tuple(id for id in injection.reflection_ids if id not in known)
            at = self._clock()
            new = injected_events(loop_id, patterns, reflections, at=at, by=self.by, comment=comment)
            if new:
                with self._beginning():
                    append_events(self.project, *new)
                state, _ = self.apply((self.project.events,))
                if patterns and state.snapshot.complete:
                    write_metrics(self.project, self.settings, state.snapshot, state.board, state.now)
            return Injected(patterns, reflections)


class Injected(NamedTuple):
    """Return the IDs that were recorded as injected into a loop."""

    patterns: tuple[str, ...]
    reflections: tuple[str, ...]
