"""Debug sessions as details."""

from __future__ import annotations

from textual.content import Content

from core.documents import debug_sessions as documents
from core.records.debug_sessions import DebugSession
from core.state.project_state import ProjectState
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs
from tui.present.layout import UNBROKEN


def session_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """Return all runs with results, failures, causes and fixes."""
    return document_lines(documents.runs(view, session), view.now, glyphs, width)


def attempted_fix_lines(
    session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN
) -> list[Content]:
    """Return each run in short: result, cause, and fix."""
    return document_lines(documents.attempted_fixes(view, session), view.now, glyphs, width)


def last_failure_lines(
    session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN
) -> list[Content]:
    """Return the newest failures in full, and the lessons."""
    return document_lines(documents.last_failure(view, session), view.now, glyphs, width)


def lesson_lines(session: DebugSession, view: ProjectState, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """Return what the session learned."""
    return document_lines(documents.lessons(view, session), view.now, glyphs, width)
