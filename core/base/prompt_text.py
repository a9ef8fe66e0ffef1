"""Untrusted text as data in a prompt: one line a field, never our layout, never the frame of a conversation."""

from __future__ import annotations

import re
from typing import Final

from core.base.text import visible_line

FENCE: Final = "```"
_FENCE: Final = re.compile("`{3,}")

_ROLES: Final = (
    "system|user|assistant|human|developer|tool|instructions?|inst|sys|think(?:ing)?|im_start|im_end"
    "|start_of_turn|end_of_turn|system[-_](?:prompt|reminder|message)|invoke"
    "|(?:tool|function)[-_](?:calls?|results?|response|use)"
)
_ROLE: Final = rf"(?:\w+:)?(?:(?i:{_ROLES})|s)(?![\w.-])"
_ROLE_TAG: Final = re.compile(
    # After a word a name that begins with a capital is a type, as in List<User>.
    rf"<(?=\s*/\s*{_ROLE}|[|\uff5c]\S|(?:{_ROLES})(?![\w.-]))|(?<!\w)<(?={_ROLE})"
)
"""What frames the turns of a conversation with a language model: tags named after a role, and `<|im_end|>`."""
_INSTRUCTION: Final = re.compile(r"\[(?=/?(?i:inst|sys)\])")
_TAG: Final = re.compile(r"<(?=[/!?|\uff5c])|(?<!\w)<(?=[A-Za-z])")
"""Any tag, comment or declaration; not the types of List<string>."""
_OPENER: Final = re.compile(r"[>|]|~~~|={2,}\s*$|[-+*](?:\s|$)|([-*_])(?:\s*\1){2,}\s*$|\[[ xX]\](?:\s|$)|\[[^\]]*\]:")
"""What opens a block of Markdown: quotation, table, fence, underline, list, rule, task, definition of a link."""
_NUMBER_OR_LABEL: Final = re.compile(
    r"\d{1,9}(?=[.)](?:\s|$))|(?:Error|Fix|Template|Steps|Source|Use|Better alternative)(?=:)"
)
_BEFORE_QUOTE: Final = re.compile(r'(\\*)("|\Z)')


def escape_inline(text: str, limit: int) -> str:
    """`text` as one line of at most about `limit` characters, to stand behind one of our labels."""
    line = visible_line(text.strip(), limit).strip()
    line = escape_delimiters(escape_fences(line).replace("**", "\\*\\*"))
    line = _TAG.sub("<\\\\", line)
    return f"\\{line}" if line.startswith("#") else line


def escape_line(text: str, limit: int) -> str:
    """`escape_inline`, to stand where a line begins: it opens no block, and is none of our labels."""
    line = escape_inline(text, limit)
    if _OPENER.match(line):
        return f"\\{line}"
    word = _NUMBER_OR_LABEL.match(line)
    return f"{word[0]}\\{line[word.end() :]}" if word else line


def escape_quoted(text: str, limit: int) -> str:
    """`escape_inline` in double quotes that only the last character closes."""
    # Backslashes elsewhere stay single: most of these texts are regexes, and are read as they stand.
    inner = _BEFORE_QUOTE.sub(lambda found: found[1] * 2 + found[2].replace('"', '\\"'), escape_inline(text, limit))
    return f'"{inner}"'


def escape_fences(line: str) -> str:
    """`line` with every backtick of what could open or close a block of code escaped."""
    return _FENCE.sub(lambda found: "\\`" * len(found[0]), line)


def escape_delimiters(line: str) -> str:
    """`line` with the marks that frame the turns of a conversation escaped, the rest as it is."""
    return _INSTRUCTION.sub("[\\\\", _ROLE_TAG.sub("<\\\\", line))
