"""Whether a command about a pattern is allowed at present: the rules of `rules`, asked before a decision."""

from __future__ import annotations

from datetime import UTC

from core.base.errors import BadInput, Refused
from core.curation.case import Case
from core.curation.commands import Archive, PatternCommand
from core.curation.rules import PATTERN_RULES
from core.records.decisions import CurationState
from core.records.patterns import Maturity
from core.state.project_state import ProjectState


def why_refused(command: PatternCommand, state: ProjectState) -> str:
    """Why a command about one pattern is refused at present, "" if it is allowed; a missing reason does not count.

    Raises:
        UnknownRecord: The pattern does not exist.
    """
    pattern = state.pattern(command.pattern_id)
    if isinstance(command, Archive):
        return "" if pattern.is_registered else "its file is not written to"
    rule = PATTERN_RULES.get(type(command))
    if rule is None:
        return ""
    assessment, curation = state.assessment(pattern.id), state.snapshot.curation
    case = Case(
        pattern=pattern,
        assessment=assessment,
        state=curation,
        settings=state.settings,
        was_reset=was_reset(pattern.id, assessment.computed, curation),
        written=None,
        writable=pattern.is_registered,
        anti_file="",
        id="",
        at=state.now.astimezone(UTC),
        by="",
        reason=command.reason or "given with the decision",
        label="it",
    )
    try:
        rule(case, command)
    except (Refused, BadInput) as error:
        return str(error)
    return ""


def was_reset(pattern_id: str, computed: Maturity, curation: CurationState) -> bool:
    """Whether a pattern that the rules deprecate was reset by a person, so that it may be promoted."""
    return computed is Maturity.DEPRECATED and pattern_id not in curation.pins and pattern_id in curation.reset
