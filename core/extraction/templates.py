"""Code template patterns from the repairs of a loop; docs/extraction.md#code-templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.base.record_text import make_slug, one_line
from core.extraction.code import LANGUAGES, describe_placeholder, make_template
from core.extraction.error_fixes import detect_language, list_places
from core.extraction.fix_kinds import fix_category, fix_description, make_tags
from core.extraction.fixes import Repair
from core.extraction.record_parts import find_end, make_use_dates
from core.records.extractions import Proposal
from core.records.material import Material
from core.records.patterns import PatternType


def find_code_templates(material: Material, repairs: Iterable[Repair]) -> Iterator[Proposal]:
    """Yield a template for each repair whose code has placeholders."""
    for repair in repairs:
        code = make_template(repair.diff, repair.error.message)
        if code is None or not code.placeholders:
            continue
        error = repair.error
        category = fix_category(repair.description, repair.diff, repair.cause, error.message)
        language = detect_language(material, repair)
        record = {
            "type": "code_template",
            "language": language if language in LANGUAGES.values() else "other",
            "template_code": code.code,
            "description": fix_description(repair.description, category, error.message),
            "placeholders": {name: describe_placeholder(name) for name in code.placeholders},
            "use_case": one_line(f"{error.error_type}: {error.signature}"),
            "source_loops": [material.loop_id],
            "usage_count": 1,
            "success_rate": 1.0,
            **make_use_dates(repair.at or find_end(material)),
            "tags": make_tags(language, category, error.error_type, list_places(material, repair)),
        }
        name = make_slug(category.removeprefix("add_").replace("_", " "), "code")
        yield Proposal(type=PatternType.TEMPLATE, slug=name, record=record, trace=(repair.trace,))
