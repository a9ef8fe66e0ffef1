"""Escaping of untrusted text for prompts: no line breaks, layout, turn markers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.base.regexes import lazy_regex
from core.base.text import visible_line

FENCE: Final = "```"
_FENCE: Final = re.compile("`{3,}")

_ROLES: Final = (
    "system|user|assistant|human|developer|tool|instructions?|inst|sys|think(?:ing)?|im_start|im_end"
    "|start_of_turn|end_of_turn|system[-_](?:prompt|reminder|message)|invoke"
    r"|(?:tool|function)[-_](?:calls?|results?|response|use)|(?:approved|unreviewed)-[\w.-]*"
)
_ROLE: Final = rf"(?:\w+:)?(?:(?i:{_ROLES})|s)(?![\w.-])"
_ROLE_TAG: Final = re.compile(
    # After a word, a name with a capital is a type, as in List<User>.
    rf"<(?=\s*/\s*{_ROLE}|[|\uff5c]\S|(?:{_ROLES})(?![\w.-]))|(?<!\w)<(?={_ROLE})"
)
"""Frames of the turns of a conversation with a language model, and of a context: tags named so, and `<|im_end|>`."""
_INSTRUCTION: Final = re.compile(r"\[(?=/?(?i:inst|sys)\])")
_TAG: Final = re.compile(r"<(?=[/!?|\uff5c])|(?<!\w)<(?=[A-Za-z])")
"""Any tag, comment or declaration, but not a type as in List<string>."""
_OPENER: Final = lazy_regex(r"[>|]|~~~|={2,}\s*$|[-+*](?:\s|$)|([-*_])(?:\s*\1){2,}\s*$|\[[ xX]\](?:\s|$)|\[[^\]]*\]:")
"""Start of a Markdown block: quotation, table, fence, underline, list, rule, task, link definition."""
_NUMBER_OR_LABEL: Final = lazy_regex(
    r"\d{1,9}(?=[.)](?:\s|$))|(?:Error|Fix|Template|Steps|Source|Use|Better alternative)(?=:)"
)
_BEFORE_QUOTE: Final = lazy_regex(r'(\\*)("|\Z)')


@lru_cache(2048)  # forecasts render the same texts many times
def escape_inline(text: str, limit: int) -> str:
    """Escape `text` as one line of about `limit` characters, for use after a label."""
    line = visible_line(text.strip(), limit).strip()
    line = escape_delimiters(escape_fences(line).replace("**", "\\*\\*"))
    line = _TAG.sub("<\\\\", line)
    return f"\\{line}" if line.startswith("#") else line


def escape_line(text: str, limit: int) -> str:
    """Escape like `escape_inline`, also against Markdown blocks and fake labels."""
    line = escape_inline(text, limit)
    if _OPENER.match(line):
        return f"\\{line}"
    word = _NUMBER_OR_LABEL.match(line)
    return f"{word[0]}\\{line[word.end() :]}" if word else line


def escape_quoted(text: str, limit: int) -> str:
    """Escape like `escape_inline`, in double quotes."""
    # Other backslashes stay single, since most of these texts are regexes.
    inner = _BEFORE_QUOTE.sub(lambda found: found[1] * 2 + found[2].replace('"', '\\"'), escape_inline(text, limit))
    return f'"{inner}"'


def escape_fences(line: str) -> str:
    """Escape backticks that could open or close a code block."""
    return _FENCE.sub(lambda found: "\\`" * len(found[0]), line)


def escape_delimiters(line: str) -> str:
    """Escape tags and markers that begin or end a turn of a conversation."""
    return _INSTRUCTION.sub("[\\\\", _ROLE_TAG.sub("<\\\\", line))
