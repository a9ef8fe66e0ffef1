"""Error patterns: what the repairs of a loop teach about an error (0) 2_identify_error_fix_pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from core.base.record_text import make_slug
from core.debug_memory.error_signatures import location_hint
from core.extraction.code import language, template
from core.extraction.fix_kinds import fix_category, fix_description, languages_of, tags
from core.extraction.fixes import Repair
from core.extraction.record_parts import contributor, ended, first_use, source
from core.records.extractions import Proposal
from core.records.material import Material
from core.records.patterns import PatternType

_SLUGS: Final = {"add_null_check": "null-check", "add_import": "missing-import"}
_VARIABLE: Final = re.compile(r"\\.\+?|\[[^]]*\]\+|\.\*")
"""The parts of a signature that vary, and what is escaped."""


def error_patterns(material: Material, repairs: Iterable[Repair]) -> Iterator[tuple[Proposal, Repair]]:
    """A pattern for each repair, and the repair; two may be about the same error."""
    for repair in repairs:
        error = repair.error
        category = fix_category(repair.description, repair.diff, repair.cause, error.message)
        code = template(repair.diff, error.message)
        spoken = repair_language(material, repair)
        fix: dict[str, str] = {
            "description": fix_description(repair.description, category, error.message),
            "fix_category": category,
        }
        if code is not None:
            fix["code_template"] = code.code
            if spoken:
                fix["code_template_language"] = spoken
        signature: dict[str, object] = {"error_type": error.error_type, "error_pattern": error.signature}
        if hint := location_hint(error.file, error.function):
            signature["error_location_hints"] = [hint]
        at = repair.at or ended(material)
        by = contributor(material, repair.agent)
        record = {
            "type": "error_pattern",
            "error_signature": signature,
            "fix_approach": fix,
            "source_loops": [source(material, at, by=by)],
            "success_rate": 1.0,
            "usage_count": 1,
            **first_use(at),
            "tags": tags(spoken, category, error.error_type, places(material, repair)),
        }
        name = _SLUGS.get(category) or make_slug(_VARIABLE.sub(" ", error.signature), "error")
        yield Proposal(type=PatternType.ERROR, slug=name, record=record, trace=(repair.trace,)), repair


def repair_language(material: Material, repair: Repair) -> str:
    """The language that a repair is written in, by its files, else by the words of the task; "" if not known."""
    by_file = language((repair.error.file, *repair.files), repair.diff)
    return by_file or languages_of(material.goal, repair.error.message)


def places(material: Material, repair: Repair) -> tuple[str, ...]:
    """Paths and texts that tell what part of the program a repair is about, the most telling one first."""
    return (repair.error.file, *repair.files[:3], repair.description, material.goal)
