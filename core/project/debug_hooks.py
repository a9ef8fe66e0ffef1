"""The hooks on success and on escalation of a debug session.

`on_success` writes the uses of patterns to the event log and the registry, and the lessons to the session's file;
`on_escalation` writes the context of the session (docs/debug-memory.md#hooks).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import Conflict, Refused, Unwritable
from core.curation.commands import Extract
from core.curation.decision_writer import Decided
from core.curation.use_counts import CountResult
from core.debug_memory.escalations import preserve_context
from core.debug_memory.lessons import LessonUpdate, check_success, collect_lessons, write_lessons
from core.extraction.material import Materials
from core.records.debug_sessions import DebugSession, Lesson
from core.records.events import Event, event_id
from core.records.extractions import Extraction

if TYPE_CHECKING:
    from core.project.project import Project
    from core.state.project_state import ProjectState


class SuccessResult(Struct, frozen=True, kw_only=True):
    """The outcome of `on_success`."""

    session_id: str
    file: str
    work_id: str  # the loop or attempt for which the uses of patterns are recorded
    applied: tuple[str, ...]  # IDs of the patterns that helped
    learned: LessonUpdate
    counted: tuple[CountResult, ...] = ()  # changes of the records of these patterns
    extraction: Extraction | None = None  # patterns that the session offers; None if extraction is disabled
    decided: Decided | None = None  # the decision that added them to the registry; None if there was nothing new
    warnings: tuple[str, ...] = ()  # steps that failed, one line each


def on_success(
    project: Project, session_id: str, applied: Sequence[str] = (), *, dry_run: bool = False
) -> SuccessResult:
    """Record that patterns helped, write lessons, and extract patterns.

    New patterns are added to the registry and get a review question. A second call changes nothing. `applied` are IDs
    of registry patterns that helped. With `dry_run`, writes nothing and returns what would be done.

    Raises UnknownRecord if the session or a pattern does not exist, Refused if the session did not succeed, Unwritable
    if the event log cannot be written; nothing is done then.
    """
    state = project.view
    session = state.debug_session(session_id)
    check_success(session)
    patterns = tuple(dict.fromkeys(state.pattern(id).id for id in applied))
    result = SuccessResult(
        session_id=session.id,
        file=session.file,
        work_id=_work_id(state, session),
        applied=patterns,
        learned=LessonUpdate(lessons=()),
    )
    found = collect_lessons(session, state.debug)
    if dry_run:
        result = replace(result, learned=_write_lessons(project, session, found, dry_run=True))
        return _extract(project, result, dry_run=True)
    counted: list[CountResult] = []
    warnings: list[str] = []
    if patterns:
        now = project.now()
        uses = (
            Event(
                id=event_id(now),
                at=now,
                kind="applied",
                pattern_id=id,
                loop_id=result.work_id,
                success=True,
                iteration=session.iteration,
                by=project.by,
                agent=project.agent or session.agent,
            )
            for id in patterns
        )
        project.record(*uses, counted=counted, warnings=warnings)
    learned = _write_lessons(project, session, found, dry_run=False)
    project.apply((project.project.project / session.file,))
    result = replace(result, learned=learned, counted=tuple(counted), warnings=tuple(warnings))
    return _extract(project, result, dry_run=False)


def _write_lessons(project: Project, session: DebugSession, found: Sequence[Lesson], *, dry_run: bool) -> LessonUpdate:
    try:
        return write_lessons(project.project, session, found, project.settings.watch.retry_seconds, dry_run=dry_run)
    except (Conflict, Unwritable) as error:
        return LessonUpdate(lessons=tuple(found), problem=str(error))


def _extract(project: Project, result: SuccessResult, *, dry_run: bool) -> SuccessResult:
    try:
        extraction = project.extraction(result.session_id)
    except Refused as error:
        return replace(result, warnings=(*result.warnings, str(error)))
    if dry_run or not (extraction.new or extraction.merges):
        return replace(result, extraction=extraction)
    try:
        decided = project.decide(Extract(result.session_id, unattended=True, reason="debug success"))
    except Refused as error:
        # Of two concurrent calls the later one finds that the earlier one has added the patterns.
        extraction = project.extraction(result.session_id)
        remaining = (str(error),) if extraction.new or extraction.merges else ()
        return replace(result, extraction=extraction, warnings=(*result.warnings, *remaining))
    return replace(result, extraction=extraction, decided=decided)


def _work_id(state: ProjectState, session: DebugSession) -> str:
    loop = state.snapshot.loop_called(session.loop_id)
    if loop is not None:
        return loop.id
    tasks = {session.task_id, session.loop_id} - {""}
    attempts = (one for one in state.snapshot.attempts.values() if one.task_id in tasks)
    newest = max(attempts, key=lambda one: one.number, default=None)
    return newest.id if newest is not None else session.loop_id or session.id


class EscalationCall(Struct, frozen=True, kw_only=True):
    """A call for a human, and the file with the preserved context."""

    session_id: str
    file: Path


def on_escalation(project: Project, session_id: str, *, reason: str = "") -> EscalationCall:
    """Preserve the context of a session and add a review question about it.

    Each call has its own file; a new call for a session whose escalation was acknowledged asks again. Raises
    UnknownRecord if the session does not exist, Refused if it has too many calls, Unwritable if the context cannot be
    written.
    """
    session = project.view.debug_session(session_id)
    snapshot = project.view.snapshot
    loop = snapshot.loop_called(session.loop_id)
    material = Materials(project.project, snapshot).read(loop.id) if loop is not None else None
    file = preserve_context(
        project.project, snapshot, session, material, now=project.now(), by=project.by, reason=reason
    )
    project.apply((file,))
    return EscalationCall(session_id=session.id, file=file)
