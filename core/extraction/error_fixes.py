"""Error patterns from the repairs of a loop; docs/extraction.md#error-patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from core.base.record_text import make_slug
from core.debug_memory.error_signatures import location_hint
from core.extraction.code import file_language, make_template
from core.extraction.fix_kinds import fix_category, fix_description, make_tags, mentioned_language
from core.extraction.fixes import Repair
from core.extraction.record_parts import find_contributor, find_end, make_source, make_use_dates
from core.records.extractions import Proposal
from core.records.material import Material
from core.records.patterns import PatternType

_SLUGS: Final = {"add_null_check": "null-check", "add_import": "missing-import"}
_VARIABLE: Final = re.compile(r"\\.\+?|\[[^]]*\]\+|\.\*")
"""Wildcards and escapes in a signature."""


def find_error_patterns(material: Material, repairs: Iterable[Repair]) -> Iterator[tuple[Proposal, Repair]]:
    """Yield a pattern for each repair, with the repair; two may be about the same error."""
    for repair in repairs:
        error = repair.error
        category = fix_category(repair.description, repair.diff, repair.cause, error.message)
        code = make_template(repair.diff, error.message)
        language = detect_language(material, repair)
        fix: dict[str, str] = {
            "description": fix_description(repair.description, category, error.message),
            "fix_category": category,
        }
        if code is not None:
            fix["code_template"] = code.code
            if language:
                fix["code_template_language"] = language
        signature: dict[str, object] = {"error_type": error.error_type, "error_pattern": error.signature}
        if hint := location_hint(error.file, error.function):
            signature["error_location_hints"] = [hint]
        at = repair.at or find_end(material)
        by = find_contributor(material, repair.agent)
        record = {
            "type": "error_pattern",
            "error_signature": signature,
            "fix_approach": fix,
            "source_loops": [make_source(material, at, by=by)],
            "success_rate": 1.0,
            "usage_count": 1,
            **make_use_dates(at),
            "tags": make_tags(language, category, error.error_type, list_places(material, repair)),
        }
        name = _SLUGS.get(category) or make_slug(_VARIABLE.sub(" ", error.signature), "error")
        yield Proposal(type=PatternType.ERROR, slug=name, record=record, trace=(repair.trace,)), repair


def detect_language(material: Material, repair: Repair) -> str:
    """Return the language of a repair by its files, else by the words of the task; "" if unknown."""
    by_file = file_language((repair.error.file, *repair.files), repair.diff)
    return by_file or mentioned_language(material.goal, repair.error.message)


def list_places(material: Material, repair: Repair) -> tuple[str, ...]:
    """Return paths and texts that show which part of the program a repair is about, the most specific first."""
    return (repair.error.file, *repair.files[:3], repair.description, material.goal)
