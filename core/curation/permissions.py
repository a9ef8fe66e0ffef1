"""Checks before a decision whether it is allowed."""

from __future__ import annotations

from datetime import UTC

from core.base.errors import BadInput, Refused
from core.curation.case import Case
from core.curation.commands import Archive, PatternCommand
from core.curation.rules import PATTERN_RULES
from core.state.project_state import ProjectState


def why_refused(command: PatternCommand, state: ProjectState) -> str:
    """Why a command is refused, "" if allowed; a missing reason does not count.

    Raises `UnknownRecord` if the pattern does not exist.
    """
    pattern = state.pattern(command.pattern_id)
    if isinstance(command, Archive):
        return "" if pattern.is_registered else "its file is not written to"
    rule = PATTERN_RULES.get(type(command))
    if rule is None:
        return ""
    case = Case(
        pattern=pattern,
        assessment=state.assessment(pattern.id),
        state=state.snapshot.curation,
        settings=state.settings,
        writable=pattern.is_registered,
        at=state.now.astimezone(UTC),
        reason=command.reason or "given with the decision",
        label="it",
    )
    try:
        rule(case, command)
    except (Refused, BadInput) as error:
        return str(error)
    return ""
