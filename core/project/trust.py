"""Records from elsewhere, and user answers (docs/safety.md#trusted-projects)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.scanning.verdict import highest_severity
from core.base.text import plural
from core.decisions.merge import known_origin
from core.records.decisions import TURNS, Decision, Verb
from core.records.patterns import Severity
from core.trust.projects import is_trusted, revoke_answer, save_answer

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.project.reader import ProjectReader
    from core.records.patterns import Pattern


_RELEASING: Final = frozenset({Verb.RELEASE, Verb.PROMOTE})


class Arrivals(Struct, frozen=True, kw_only=True):
    """What a project contains that this user's program did not write.

    `patterns` are the IDs of patterns from elsewhere; `claimed` are those with uses that only files report, `blocked`
    and `held` those that the scan stops. `reflections` and `fixes` count records of tasks and debug sessions.
    `decisions` were made elsewhere, are in effect there, and are not confirmed here. Of a trusted project, patterns and
    the counts are only what arrived since.
    """

    is_trusted: bool
    patterns: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    reflections: int = 0
    fixes: int = 0
    decisions: tuple[Decision, ...] = ()
    releases: tuple[str, ...] = ()
    """IDs of those decisions that release or promote a text that the scan stops."""

    def __bool__(self) -> bool:
        """Whether there is anything to decide on."""
        return bool(not self.is_trusted or self.patterns or self.decisions)

    @property
    def has_records(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self.patterns or self.decisions or self.reflections or self.fixes)

    @property
    def summary(self) -> str:
        """One line: `12 lessons (1 blocked by the scan), 3 decisions made elsewhere`."""
        marks = [
            (self.claimed, "with uses that only files report"),
            (self.blocked, "blocked by the scan"),
            (self.held, "held by the scan"),
        ]
        details = ", ".join(f"{len(found):,} {what}" for found, what in marks if found)
        lessons = plural(len(self.patterns), "lesson") + (f" ({details})" if details else "")
        counts = [
            lessons if self.patterns else "",
            plural(self.reflections, "reflection") if self.reflections else "",
            plural(self.fixes, "record") + " of debugging" if self.fixes else "",
            self._decisions_text(),
        ]
        return ", ".join(filter(None, counts)) or "nothing yet"

    def _decisions_text(self) -> str:
        if not self.decisions:
            return ""
        text = f"{plural(len(self.decisions), 'decision')} made elsewhere"
        stopped = plural(len(self.releases), "releases a text", "release texts")
        return f"{text} ({stopped} that the scan stops)" if self.releases else text


def _stops(pattern: Pattern | None, state: ProjectState) -> Severity | None:
    """Return the severity with which the scan stops a text despite decisions, if any."""
    if pattern is None:
        return None
    severity = highest_severity(pattern, state.snapshot.curation, state.settings.scan)
    return severity if severity in (Severity.BLOCKED, Severity.HELD) else None


def has_recorded_uses(pattern: Pattern) -> bool:
    """Return whether the record of a pattern reports uses."""
    counts = pattern.recorded_counts
    return bool(counts.uses or counts.successes or counts.failures)


def find_arrivals(project: ProjectReader) -> Arrivals:
    """Return what a loaded project brings from elsewhere."""
    state, trusted = project.view, is_trusted(project.project)
    snapshot, curation = state.snapshot, state.snapshot.curation
    names = sorted(snapshot.foreign.arrived if trusted else snapshot.patterns.keys() - curation.own_patterns)
    severities = {name: highest_severity(snapshot.patterns[name], curation, state.settings.scan) for name in names}
    decisions = tuple(one for one in snapshot.decisions if one.id in curation.pending_claims)
    return Arrivals(
        is_trusted=trusted,
        patterns=tuple(names),
        claimed=tuple(name for name in names if has_recorded_uses(snapshot.patterns[name])),
        blocked=tuple(name for name, severity in severities.items() if severity is Severity.BLOCKED),
        held=tuple(name for name, severity in severities.items() if severity is Severity.HELD),
        reflections=0 if trusted else len(snapshot.reflections),
        fixes=0 if trusted else len(snapshot.debug_sessions),
        decisions=decisions,
        releases=tuple(
            one.id
            for one in decisions
            if one.verb in _RELEASING and _stops(snapshot.patterns.get(one.subject), state) is not None
        ),
    )


def trust(project: ProjectReader, how: str) -> None:
    """Trust a loaded project: its contents may be given to agents, and count.

    Raises Unwritable. The decisions made elsewhere are confirmed by `confirm`. `how`: see `TrustedProject`.
    """
    project.index.origins.add_patterns(project.view.snapshot.patterns.values())
    save_answer(project.project, how, project.now(), project_id=known_origin(project.project))
    project.apply(())


def decline(project: ProjectReader) -> None:
    """Give nothing of a project to agents, and do not ask again. Raises Unwritable."""
    save_answer(project.project, "question", project.now(), answer="declined")


def revoke(project: ProjectReader) -> bool:
    """Revoke trust; the user is asked again. False if unanswered; raises Unwritable."""
    return revoke_answer(project.project, project.now())


def confirm(
    project: ProjectReader, decision_ids: Collection[str] | None = None, *, approves: bool = True
) -> tuple[str, ...]:
    """Adopt decisions from elsewhere, with undo and redo of them; None adopts all.

    Returns the IDs of those confirmed. Without `approves`, those about a text that the scan holds or blocks are left
    out. Raises Unwritable.
    """
    state = project.view
    curation, patterns = state.snapshot.curation, state.snapshot.patterns

    def is_allowed(decision: Decision) -> bool:
        return approves or _stops(patterns.get(decision.subject), state) is None

    claims = [one for one in state.snapshot.decisions if one.id in curation.claims]
    chosen = [one for one in claims if decision_ids is None or one.id in decision_ids]
    confirmed = {one.id: one for one in chosen if one.verb not in TURNS and is_allowed(one)}
    turns = [one.id for one in claims if one.verb in TURNS and (decision_ids is None or one.subject in confirmed)]
    project.ledger.confirm([*confirmed, *turns])
    project.apply((project.project.ledger, project.project.patterns))
    return tuple(confirmed)
