"""Code templates: what the fixes of a loop added, for use elsewhere (0) 5_extract_code_templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.base.record_text import make_slug, one_line
from core.extraction.code import LANGUAGES, purpose, template
from core.extraction.error_fixes import places, repair_language
from core.extraction.fix_kinds import fix_category, fix_description, tags
from core.extraction.fixes import Repair
from core.extraction.record_parts import ended, first_use
from core.records.extractions import Proposal
from core.records.material import Material
from core.records.patterns import PatternType


def code_templates(material: Material, repairs: Iterable[Repair]) -> Iterator[Proposal]:
    """A template for each repair whose code has something that is no longer of this one place."""
    for repair in repairs:
        code = template(repair.diff, repair.error.message)
        if code is None or not code.placeholders:
            continue
        error = repair.error
        category = fix_category(repair.description, repair.diff, repair.cause, error.message)
        spoken = repair_language(material, repair)
        record = {
            "type": "code_template",
            "language": spoken if spoken in LANGUAGES.values() else "other",
            "template_code": code.code,
            "description": fix_description(repair.description, category, error.message),
            "placeholders": {name: purpose(name) for name in code.placeholders},
            "use_case": one_line(f"{error.error_type}: {error.signature}"),
            "source_loops": [material.loop_id],
            "usage_count": 1,
            "success_rate": 1.0,
            **first_use(repair.at or ended(material)),
            "tags": tags(spoken, category, error.error_type, places(material, repair)),
        }
        name = make_slug(category.removeprefix("add_").replace("_", " "), "code")
        yield Proposal(type=PatternType.TEMPLATE, slug=name, record=record, trace=(repair.trace,))
