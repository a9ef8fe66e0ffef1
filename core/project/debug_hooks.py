"""(4) hooks on_success and on_escalation, on an open project; on_failure is in `core.project.debug_advice`.

They write what (4) names and nothing else: the use of patterns into the event log and the registry, what a session
learned into its own `learnings`, and the context of an escalation into `shared/curation/escalations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import Conflict, Refused, Unwritable
from core.curation.curator import Decided
from core.curation.use_counts import Counted
from core.debug_memory.escalations import preserve_context
from core.debug_memory.lessons import LessonUpdate, check_success, lessons, write_lessons
from core.extraction.material import read_material
from core.records.debug_sessions import DebugSession, Lesson
from core.records.events import Event, event_id
from core.records.extractions import Extraction

if TYPE_CHECKING:
    from core.project.project import Project
    from core.state.project_state import ProjectState


class SuccessResult(Struct, frozen=True, kw_only=True):
    """What came of a session that succeeded.

    Attributes:
        file: Of the session.
        work_id: The loop or attempt that the uses of patterns are recorded for.
        applied: Ids of the patterns that helped.
        counted: What became of the records of these patterns.
        extraction: What the session offers the registry; None where that is switched off.
        decided: The decision that put it there; None if there was nothing new.
        warnings: What could not be done, one line each.
    """

    session_id: str
    file: str
    work_id: str
    applied: tuple[str, ...]
    learned: LessonUpdate
    counted: tuple[Counted, ...] = ()
    extraction: Extraction | None = None
    decided: Decided | None = None
    warnings: tuple[str, ...] = ()


def on_success(deck: Project, session_id: str, applied: Sequence[str] = (), *, dry_run: bool = False) -> SuccessResult:
    """(4) update_fix_effectiveness and extract_learnings.

    The patterns that helped get a success each; the session's lessons go into its file; then what it offers goes into
    the registry, where Review asks about what is new, since nobody has looked at it. Calling it again changes nothing.

    Args:
        deck: The project, loaded.
        session_id: The session, or the beginning of its id.
        applied: Ids of the patterns of the registry that helped.
        dry_run: Only tell what would be done; nothing is written.

    Raises:
        UnknownRecord: There is no such session or pattern.
        Refused: The session did not succeed.
        Unwritable: The event log cannot be written; then nothing is done.
    """
    view = deck.view
    session = view.debug_session(session_id)
    check_success(session)
    patterns = tuple(dict.fromkeys(view.pattern(id).id for id in applied))
    work_id = _work_id(view, session)
    found = lessons(session, view.debug)
    if dry_run:
        learned = _learned(deck, session, found, dry_run=True)
        told = SuccessResult(
            session_id=session.id, file=session.file, work_id=work_id, applied=patterns, learned=learned
        )
        return _extracted(deck, told, dry_run=True)
    counted: list[Counted] = []
    warnings: list[str] = []
    if patterns:
        now = deck.now()
        uses = (
            Event(
                id=event_id(now),
                at=now,
                kind="applied",
                pattern_id=id,
                loop_id=work_id,
                success=True,
                iteration=session.iteration,
                by=deck.by,
                agent=deck.agent or session.agent,
            )
            for id in patterns
        )
        deck.record(*uses, counted=counted, warnings=warnings)
    learned = _learned(deck, session, found, dry_run=False)
    deck.apply((deck.project.project / session.file,))
    told = SuccessResult(
        session_id=session.id,
        file=session.file,
        work_id=work_id,
        applied=patterns,
        learned=learned,
        counted=tuple(counted),
        warnings=tuple(warnings),
    )
    return _extracted(deck, told, dry_run=False)


def _learned(deck: Project, session: DebugSession, found: Sequence[Lesson], *, dry_run: bool) -> LessonUpdate:
    try:
        return write_lessons(deck.project, session, found, deck.settings.watch.retry_seconds, dry_run=dry_run)
    except (Conflict, Unwritable) as error:
        return LessonUpdate(lessons=tuple(found), problem=str(error))


def _extracted(deck: Project, told: SuccessResult, *, dry_run: bool) -> SuccessResult:
    try:
        extraction = deck.extraction(told.session_id)
    except Refused as error:
        return replace(told, warnings=(*told.warnings, str(error)))
    if dry_run or not (extraction.new or extraction.merges):
        return replace(told, extraction=extraction)
    try:
        decided = deck.extract(told.session_id, unattended=True, reason="debug success")
    except Refused as error:
        # Of two calls at once the later one finds that the earlier has put it there.
        extraction = deck.extraction(told.session_id)
        left = (str(error),) if extraction.new or extraction.merges else ()
        return replace(told, extraction=extraction, warnings=(*told.warnings, *left))
    return replace(told, extraction=extraction, decided=decided)


def _work_id(view: ProjectState, session: DebugSession) -> str:
    """The loop that a session belongs to, else the newest attempt at its task; else what it names itself."""
    loop = view.snapshot.loop_called(session.loop_id)
    if loop is not None:
        return loop.id
    tasks = {session.task_id, session.loop_id} - {""}
    attempts = (one for one in view.snapshot.attempts.values() if one.task_id in tasks)
    newest = max(attempts, key=lambda one: one.number, default=None)
    return newest.id if newest is not None else session.loop_id or session.id


class EscalationCall(Struct, frozen=True, kw_only=True):
    """A call for a person, and where the context of its session is kept."""

    session_id: str
    file: Path


def on_escalation(deck: Project, session_id: str, *, reason: str = "") -> EscalationCall:
    """(4) notify_human and preserve_full_context: what surrounds the session is kept, and Review asks about it.

    Each call is kept by itself: one for a session that somebody has answered about already asks again.

    Raises:
        UnknownRecord: There is no such session.
        Refused: Too many calls for it are kept.
        Unwritable: The context cannot be written.
    """
    session = deck.view.debug_session(session_id)
    snapshot = deck.view.snapshot
    loop = snapshot.loop_called(session.loop_id)
    material = read_material(deck.project, snapshot, loop.id) if loop is not None else None
    file = preserve_context(deck.project, snapshot, session, material, now=deck.now(), by=deck.by, reason=reason)
    deck.apply((file,))
    return EscalationCall(session_id=session.id, file=file)
