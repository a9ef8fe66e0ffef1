"""Rendering of the injected context (docs/retrieval.md#rendering)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from core.base.masking import mask_secrets
from core.base.prompt_text import (
    FENCE,
    Blocks,
    escape_delimiters,
    escape_fences,
    escape_inline,
    escape_line,
    escape_quoted,
)
from core.base.scanning.verdict import find_withhold_reason
from core.base.text import plural, visible_line
from core.learning.evidence import round_half_up
from core.learning.maturity import Assessment
from core.records.patterns import Pattern, PatternType

if TYPE_CHECKING:
    from core.base.settings import InjectionSettings

TITLE: Final = "## Cross-Loop Learning Context"
INTRODUCTION: Final = "Patterns from previous loops that may help with this task:"
REFLECTIONS_ONLY: Final = f"{TITLE}\n\nReflections from previous loops that may help with this task:\n"
"""Text before the Reflections section in a context without patterns."""
SECTIONS: Final = {
    PatternType.ERROR: "### Error Patterns",
    PatternType.SUCCESS: "### Success Patterns",
    PatternType.ANTI: "### Anti-Patterns to Avoid",
    PatternType.TEMPLATE: "### Code Templates",
}  # headings in the order of the sections

MAX_STEPS: Final = 12
MAX_TEMPLATE_LINES: Final = 40

_LANGUAGE_NAME: Final = re.compile(r"[A-Za-z0-9+#.-]{1,20}")
Item = tuple[Pattern, Assessment]


def render_context(items: Sequence[Item], settings: InjectionSettings) -> str:
    r"""Render patterns, best first in each section; "" without patterns.

    Every field is one line, cut to `settings.max_field_chars`. A backslash escapes text that could pass for layout or
    for a marker of a conversation: `\# heading`, `Fix\: label`, `<\system>`, `<\/system>`, `<\|im_end|>`, `[\INST]`. In
    the code of a template, only code fences and conversation markers are escaped.
    """
    if not items:
        return ""
    lines = [TITLE, "", INTRODUCTION]
    for kind, heading in SECTIONS.items():
        own = [item for item in items if item[0].type is kind]
        if own:
            lines += ["", heading]
        for number, (pattern, assessment) in enumerate(own, 1):
            lines += ["", *_render_entry(number, pattern, assessment, settings.max_field_chars)]
    return "\n".join(lines) + "\n"


def render_patterns(items: Iterable[Item], settings: InjectionSettings) -> Blocks:
    """Render patterns like `render_context`, approved texts in their own block."""
    approved: list[Item] = []
    unreviewed: list[Item] = []
    for item in items:
        (approved if item[1].approved else unreviewed).append(item)
    return Blocks(render_context(approved, settings), render_context(unreviewed, settings))


def join_parts(*parts: str) -> str:
    """Join the parts of a block by empty lines; each is "" or ends with a newline."""
    return "\n".join(filter(None, parts))


def count_tokens(text: str) -> int:
    """Estimate the number of tokens of `text` for a language model.

    The larger of 4/3 of the words and 1/4 of the UTF-8 bytes, rounded up: prose has about 3 words per 4 tokens, code
    and other scripts have about 4 bytes per token.
    """
    words, size = len(text.split()), len(text.encode("utf-8", "replace"))
    return max(-(-4 * words // 3), -(-size // 4))


def count_entry_tokens(item: Item, settings: InjectionSettings) -> int:
    """Estimate the tokens of one pattern in a context."""
    return count_tokens(render_context([item], settings).partition(SECTIONS[item[0].type])[2])


def entry_name(pattern: Pattern) -> str:
    """Return the text of the first line of an entry."""
    return pattern.description or pattern.title if pattern.type is PatternType.SUCCESS else pattern.title


def render_fields(pattern: Pattern, limit: int) -> list[str]:
    """Render the fields of a pattern as the items of a list below its first line."""
    name = entry_name(pattern)
    lines: list[str] = []
    match pattern.type:
        case PatternType.ERROR:
            if error := pattern.error_message or pattern.error_pattern:
                lines.append(f"   - Error: {escape_quoted(error, limit)}")
            if pattern.description:
                lines.append(f"   - Fix: {escape_inline(pattern.description, limit)}")
            lines += _code("Diff", pattern.diff_pattern, "diff", limit)
            lines += _template(pattern, limit)
        case PatternType.SUCCESS:
            steps = pattern.steps[:MAX_STEPS]
            if steps:
                lines.append("   - Steps:")
            lines += (f"     {place}. {escape_line(step, limit)}" for place, step in enumerate(steps, 1))
        case PatternType.ANTI:
            better, better_id = pattern.better_alternative, pattern.better_pattern_id
            texts = (pattern.description, better if better_id else "")
            lines += (f"   - {escape_line(text, limit)}" for text in texts if text.lower() not in name.lower())
            if better_id or better:  # below a heading about what to avoid, a text without a label is one of them
                lines.append(f"   - Better alternative: {escape_inline(better_id or better, limit)}")
        case PatternType.TEMPLATE:
            use = pattern.use_case or pattern.description
            if pattern.description not in ("", name, use):
                lines.append(f"   - {escape_line(pattern.description, limit)}")
            if use not in ("", name):
                lines.append(f"   - Use: {escape_inline(use, limit)}")
            lines += _template(pattern, limit)
    return lines


def _render_entry(number: int, pattern: Pattern, assessment: Assessment, limit: int) -> list[str]:
    name, detail = entry_name(pattern), plural(assessment.uses, "use")
    average = pattern.average_iterations if pattern.type is PatternType.SUCCESS else None
    if average is not None and math.isfinite(average) and 0 < average < 10_000:
        detail = f"avg {round_half_up(average * 10) / 10:g} iterations"
    if assessment.rate is None:
        detail = "no result yet"
        if assessment.seen and not assessment.uses:
            detail = f"seen {plural(assessment.seen, 'time')}, not applied yet"
    elif pattern.type is PatternType.ANTI:
        detail = f"{round_half_up(assessment.rate * 100)}% failure rate"
    else:
        detail = f"{round_half_up(assessment.rate * 100)}% success, {detail}"
    if assessment.given > assessment.uses:
        detail += f"; given {assessment.given:,}"
    if assessment.uses and assessment.seen > 1:
        detail += f"; seen {plural(assessment.seen, 'time')}"
    heading = format_heading(number, name, detail, limit)
    return [heading, *render_fields(pattern, limit), *_source(pattern, assessment, limit)]


def format_heading(number: int, name: str, detail: str, limit: int) -> str:
    """Format the first line of an entry: number, bold name, detail in parentheses."""
    return f"{number}. {format_bold(name, limit)} ({detail})"


def format_bold(name: str, limit: int) -> str:
    """Format a name in bold."""
    # A single asterisk or backslash at either end would break the bold text.
    escaped = name.replace("\\", "\\\\").replace("*", "\\*")
    return f"**{escape_inline(escaped, limit)}**"


def _source(pattern: Pattern, assessment: Assessment, limit: int) -> list[str]:
    """Format the source: the ID of a single loop, or the number of uses.

    The approval of a text does not cover the IDs of its loops.
    """
    if pattern.type is PatternType.ANTI:
        return []
    count, noun = max(assessment.uses, assessment.seen), "previous loop"
    if pattern.type is PatternType.SUCCESS:
        count, noun = max(assessment.successes, assessment.seen), "successful loop"
    if count <= 1 and len(pattern.source_loops) == 1:
        # The scan of a pattern does not cover the IDs of its loops.
        loop_id = pattern.source_loops[0].loop_id
        is_named = not assessment.approved and not _is_harmful(loop_id, limit)
        return [f"   - Source: {escape_inline(loop_id, limit) if is_named else plural(1, noun)}"]
    return [f"   - Source: {plural(count, noun)}"] if count else []


@lru_cache(4096)
def _is_harmful(text: str, limit: int) -> bool:
    return bool(find_withhold_reason(text, lambda part: escape_inline(part, limit)))


def _template(pattern: Pattern, limit: int) -> list[str]:
    language = pattern.template_language
    if not language and pattern.type is PatternType.TEMPLATE:
        language = pattern.category
    return _code("Template", pattern.template_code, language, limit)


def _code(label: str, text: str, language: str, limit: int) -> list[str]:
    code = mask_secrets(text).replace("\r\n", "\n").strip("\n").split("\n")
    if not any(map(str.strip, code)):
        return []
    fence = FENCE + (language if _LANGUAGE_NAME.fullmatch(language) else "")
    lines = [escape_delimiters(escape_fences(visible_line(line.expandtabs(4), limit))) for line in code]
    if len(lines) > MAX_TEMPLATE_LINES:
        lines[MAX_TEMPLATE_LINES:] = [f"… {len(lines) - MAX_TEMPLATE_LINES:,} more lines"]
    return [f"   - {label}:", *(f"     {line}".rstrip() for line in (fence, *lines, FENCE))]
