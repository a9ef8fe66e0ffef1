"""Find the files that a shell command edits, and describe the change as far as the command shows it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from core.base.regex_table import LazyRegex
from core.base.regexes import lazy_regex
from core.base.shell_commands import parse_check
from core.tasks.file_changes import Hunk

_MAX_TEXT: Final = 20_000
_MAX_LINES: Final = 400
_FILE: Final = r"(?P<file>[\w./@+-]{1,300})"
_IN_PLACE: Final = LazyRegex(
    r"(?:^|[;&|\n]\s*)(?:g?sed|perl|ruby)\s+(?:-\S+\s+){0,4}-\w*i\S*\s+(?P<rest>(?:'[^'\n]{0,1000}'"
    r"|\"[^\"\n]{0,1000}\"|[^;&|\n'\"]){1,200})",
    literals=("sed", "perl", "ruby"),
)
_HEREDOC: Final = LazyRegex(
    r"(?:cat|tee)\s[^\n]{0,300}?<<-?\s*(?P<quote>['\"]?)(?P<end>\w{1,40})(?P=quote)[^\n]{0,300}\n(?P<body>(?s:.*?))\n(?P=end)\s*(?:\n|$)",
    literals=("<<",),
)
_TARGET: Final = lazy_regex(rf"(?:>{{1,2}}\s*|\btee\s+(?:-a\s+)?){_FILE}")
_PRINTED: Final = LazyRegex(rf"(?:^|[;&|\n]\s*)(?:echo|printf)\s[^;&|\n>]{{0,2000}}>{{1,2}}\s*{_FILE}", literals=(">",))
_APPLIED: Final = LazyRegex(
    r"(?:^|[;&|\n]\s*)(?:git\s+(?:apply|am|checkout|restore|revert|cherry-pick|stash\s+pop)|patch\s+-|mv\s|cp\s|rm\s)",
    literals=("git", "patch", "mv", "cp", "rm"),
)
_SCRIPT: Final = LazyRegex(
    r"\bpython[\d.]*\s+(?:-\s*)?<<|\bpython[\d.]*\s+-c\b|\bnode\s+-e\b", literals=("python", "node")
)
_WRITING: Final = LazyRegex(
    r"\.write_text\(|\bopen\([^()\n]{1,200},\s*['\"](?:w|a|r\+)|\.writelines?\(|writeFileSync\("
)
_SUBSTITUTION: Final = LazyRegex(
    r"['\"]?(?:\d{0,6}\s*)?s(?P<mark>[/|#,@!:])(?P<old>(?:(?!(?P=mark))(?:\\."
    r"|[^\\\n])){1,300})(?P=mark)(?P<new>(?:(?!(?P=mark))(?:\\.|[^\\\n])){0,300})(?P=mark)"
)
_ESCAPED: Final = lazy_regex(r"\\([^\w\s])")


@lru_cache(1024)
def edits_files(command: str) -> bool:
    """Return whether a shell command edits files, and does not only print, check or look at something."""
    text = command[:_MAX_TEXT]
    if not text or parse_check(text)[0]:
        return False
    forms = (_IN_PLACE, _HEREDOC, _PRINTED, _APPLIED)
    is_script = _SCRIPT.search(text) is not None and _WRITING.search(text) is not None
    return "*** Begin Patch" in text or is_script or any(form.search(text) for form in forms)


def find_shell_hunks(command: str) -> list[Hunk]:
    """Return the changes that a command shows: substitutions of sed, and here-documents; their lines are unknown."""
    text = command[:_MAX_TEXT]
    found = []
    for edit in _IN_PLACE.compiled.finditer(text):
        rest = edit["rest"]
        file = next((word for word in reversed(rest.split()) if re.fullmatch(r"[\w./@+-]{1,300}", word)), "")
        for change in _SUBSTITUTION.compiled.finditer(rest):
            old, new = (_ESCAPED.sub(r"\1", change[name]) for name in ("old", "new"))
            found.append(Hunk(file, 0, 0, tuple([f"-{old}"] + [f"+{new}"] * bool(new))))
    for written in _HEREDOC.compiled.finditer(text):
        head = written[0].split("\n", 1)[0]
        if target := _TARGET.search(head):
            lines = written["body"].split("\n")[:_MAX_LINES]
            found.append(Hunk(target["file"], 0, 1, tuple(f"+{line}" for line in lines)))
    return found
