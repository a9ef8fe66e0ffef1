"""Candidate patterns from lessons that an agent proposes (docs/agents.md#mcp-server)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.masking import mask_secrets
from core.base.polarity import read_warning
from core.base.record_text import make_slug, one_line
from core.questions.extraction.errors import parse_error
from core.questions.extraction.failures import detect_failure_mode, make_anti_pattern
from core.questions.extraction.fix_kinds import detect_domain, fix_category, make_tags, mentioned_language
from core.questions.extraction.record_parts import make_proposal, make_source, without_uses
from core.records.debug_sessions import Failure
from core.records.patterns import PatternType
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
    if kind is PatternType.ANTI:
        warned = read_warning(lesson)
        why = "; ".join(filter(None, (warned.why, evidence)))
        return _without_uses(draft_pattern(kind, when, warned.text, why, better=warned.better, **origin))
    return _without_uses(draft_pattern(kind, when, lesson, evidence, **origin))


def _without_uses(proposal: Proposal) -> Proposal:
    """Return a proposal that counts no use: an agent that proposes a lesson has not applied it."""
    return replace(proposal, record=proposal.record | without_uses(proposal.type))


def draft_pattern(kind: PatternType, when: str, text: str, why: str, *, better: str = "", **origin: Any) -> Proposal:
    """Draft a pattern of some lines; for an anti-pattern, `text` is what to avoid and `better` what to do instead.

    `when` is "" if unknown. Raises BadInput if the error message of an error pattern, `when`, is too general.
    """
    language = mentioned_language(when, text)
    if kind is PatternType.ERROR:
        error = parse_error(Failure(message=when), "a lesson", None, origin["at"])
        if error is None:
            raise BadInput("`when` of an error_fix must be the error message, such as 'TypeError: x is null'")
        category = fix_category(text, "", "", error.message)
        fields = {
            "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
            "fix_approach": {"description": text, "fix_category": category},
        }
        tags = make_tags(language, category, error.error_type, (error.file, text))
        return make_proposal(kind, make_slug(text, "error"), fields, tags=tags, **origin)
    category = analyse_task(when).category or analyse_task(text).category or "implementation"
    all_tags = (language, category, detect_domain((when, text)))
    if kind is PatternType.ANTI:
        mode = detect_failure_mode(f"{text} {why}")
        return make_anti_pattern(
            text, mode, symptoms=[when] if when else None, why=why, better=better, tags=all_tags, **origin
        )
    approach = {
        "name": one_line(when, _MAX_NAME) or None,
        "task_category": category,
        "approach": {"description": text, "steps": []},
        "preconditions": [when] if when else None,
    }
    return make_proposal(kind, make_slug(text, category), approach, tags=all_tags, **origin)
