"""Error patterns and code templates; docs/extraction.md#error-patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from core.base.record_text import make_slug, one_line
from core.debug_memory.error_messages import location_hint
from core.extraction.code import LANGUAGES, describe_placeholder, file_language, make_template
from core.extraction.fix_kinds import fix_category, fix_description, make_tags, mentioned_language
from core.extraction.fixes import Repair
from core.extraction.record_parts import find_contributor, find_end, make_proposal, make_source
from core.records.extractions import Material, Proposal
from core.records.patterns import PatternType

_SLUGS: Final = {"add_null_check": "null-check", "add_import": "missing-import"}
_VARIABLE: Final = re.compile(r"\\.\+?|\[[^]]*\]\+|\.\*")  # wildcards and escapes in a signature


def find_error_patterns(material: Material, repairs: Iterable[Repair]) -> Iterator[tuple[Proposal, Repair]]:
    """Yield a pattern for each repair, with the repair."""
    for repair in repairs:
        error, at = repair.error, repair.at or find_end(material)
        category, description, language, tags = _describe(material, repair)
        fix = {"description": description, "fix_category": category}
        if (code := make_template(repair.diff, error.message)) is not None:
            fix["code_template"] = code.code
            if language:
                fix["code_template_language"] = language
        signature: dict[str, Any] = {"error_type": error.error_type, "error_pattern": error.signature}
        if hint := location_hint(error.file, error.function):
            signature["error_location_hints"] = [hint]
        proposal = make_proposal(
            PatternType.ERROR,
            _SLUGS.get(category) or make_slug(_VARIABLE.sub(" ", error.signature), "error"),
            {"error_signature": signature, "fix_approach": fix},
            sources=[make_source(material.loop_id, at, by=find_contributor(material, repair.agent))],
            at=at,
            tags=tags,
            trace=(repair.trace,),
        )
        yield proposal, repair


def find_code_templates(material: Material, repairs: Iterable[Repair]) -> Iterator[Proposal]:
    """Yield a template for each repair whose code has placeholders."""
    for repair in repairs:
        code = make_template(repair.diff, repair.error.message)
        if code is None or not code.placeholders:
            continue
        category, description, language, tags = _describe(material, repair)
        fields = {
            "language": language if language in LANGUAGES.values() else "other",
            "template_code": code.code,
            "description": description,
            "placeholders": {name: describe_placeholder(name) for name in code.placeholders},
            "use_case": one_line(f"{repair.error.error_type}: {repair.error.signature}"),
        }
        slug = make_slug(category.removeprefix("add_").replace("_", " "), "code")
        at, sources = repair.at or find_end(material), [material.loop_id]
        yield make_proposal(
            PatternType.TEMPLATE, slug, fields, sources=sources, at=at, tags=tags, trace=(repair.trace,)
        )


def _describe(material: Material, repair: Repair) -> tuple[str, str, str, list[str]]:
    """Return category, description, language ("" if unknown) and tags of a repair."""
    error = repair.error
    category = fix_category(repair.description, repair.diff, repair.cause, error.message)
    language = file_language((error.file, *repair.files), repair.diff)
    language = language or mentioned_language(material.goal, error.message)
    places = (error.file, *repair.files[:3], repair.description, material.goal)
    tags = make_tags(language, category, error.error_type, places)
    return category, fix_description(repair.description, category, error.message), language, tags
