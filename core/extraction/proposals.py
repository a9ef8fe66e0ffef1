"""Candidate patterns from lessons that an agent proposes (docs/agents.md#mcp-server)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import BadInput
from core.base.record_text import make_slug, one_line
from core.extraction.errors import parse_error
from core.extraction.failures import detect_failure_mode, make_anti_pattern
from core.extraction.fix_kinds import detect_domain, fix_category, make_tags, mentioned_language
from core.extraction.own_reflections import parse_warning
from core.extraction.record_parts import make_proposal, make_source
from core.records.debug_sessions import Failure
from core.records.patterns import PatternType
from core.redaction.masking import mask_secrets
from core.retrieval.task import analyse_task

if TYPE_CHECKING:
    from core.records.extractions import Proposal

_MAX_NAME: Final = 120  # characters of the name of an approach


def make_lesson(
    kind: PatternType, when: str, lesson: str, evidence: str, *, loop_id: str, at: datetime, by: str
) -> Proposal:
    """Turn a lesson into a pattern, with its secrets masked.

    `when` is the situation, or for an error pattern the error message. `loop_id` is that of the work where it was
    learned, or "". Raises BadInput if a text is empty, or if an error message is too general to be recognised.
    """
    when, lesson, evidence = (one_line(mask_secrets(text)) for text in (when, lesson, evidence))
    for name, text in (("when", when), ("lesson", lesson), ("evidence", evidence)):
        if not text:
            raise BadInput(f"{name} is empty")
    origin: dict[str, Any] = {
        "sources": [make_source(loop_id, at, by=by)] if loop_id else [],
        "at": at,
        "trace": (f"proposed by {by}",),
    }
    language = mentioned_language(when, lesson)
    if kind is PatternType.ERROR:
        error = parse_error(Failure(message=when), "a proposal", None, at)
        if error is None:
            raise BadInput("`when` of an error_fix must be the error message, such as 'TypeError: x is null'")
        category = fix_category(lesson, "", "", error.message)
        fields = {
            "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
            "fix_approach": {"description": lesson, "fix_category": category},
        }
        tags = make_tags(language, category, error.error_type, (error.file, lesson))
        return make_proposal(kind, make_slug(lesson, "error"), fields, tags=tags, **origin)
    category = analyse_task(when).category or analyse_task(lesson).category or "implementation"
    if kind is PatternType.ANTI:
        return make_anti_pattern(
            parse_warning(lesson) or lesson,
            detect_failure_mode(f"{lesson} {evidence}"),
            symptoms=[when],
            why=evidence,
            better="",
            tags=(language, category, detect_domain((when, lesson))),
            **origin,
        )
    approach = {
        "name": one_line(when, _MAX_NAME),
        "task_category": category,
        "approach": {"description": lesson, "steps": []},
        "preconditions": [when],
    }
    approach_tags = (language, category, detect_domain((when, lesson)))
    return make_proposal(kind, make_slug(lesson, category), approach, tags=approach_tags, **origin)
