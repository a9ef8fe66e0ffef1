"""`python -m tests.language [PATH ...]`: find words and references that docs, messages and names must not use.

Prints one line per violation, `file:line: word (use: replacement)`, and exits with 1 if there are any. Raw strings that
are not docstrings are regular expressions or data and are not checked; in `tests/` only docstrings, comments and names
are. Elsewhere the first line of a docstring has at most `MAX_TITLE` characters. `tests/language.toml` lists the allowed
exceptions.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
DEFAULT: Final = ("core", "tui", "tests", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")

WORDS: Final = {
    r"told|(?<!can't )tells?|telling": "recorded, reported, contains",
    r"stands?|stood": "is, remains",
    r"by now": "now",
    r"(?<!there )\b(?:is|are) no (?!longer\b|more\b|less\b)(?:such )?\w+": "is not a ..., invalid ...",
    r"nobody|somebody|anybody|whoever": "name the actor: the user, a reviewer, another process",
    r"so (?:many|large|much)(?! (?:that|as)\b)": "the number, the minimum",
    r"what waits": "pending",
    r"com(?:e|es|ing) out|came out": "outcome, finished with",
    r"at stake": "impact",
    r"then and now": "compare",
    r"happenings?": "notification",
    r"foret(?:ell|ells|elling|old)": "forecast, preview",
    r"rehears\w+": "dry run",
    r"learned from": "source loops",
    r"(?:take|takes|taken|taking|took) back": "undo",
    r"look again": "reload",
    r"mend(?:s|ed|ing)?": "fix",
    r"likeness": "similarity",
    r"sign of life": "last activity",
    r"others alike": "others with the same ...",
    r"to the letter": "exactly",
    r"in vain": "without success",
    r"patience": "timeout",
}
"""Regular expressions of words, and what to write instead."""
NAMES: Final = frozenset(
    {
        *("told", "tells", "said", "says", "stands", "foretell", "foretold", "rehearse", "rehearsed", "bead", "beads"),
        *("gone", "lazily", "mirrors", "happening", "happenings", "dialects", "deck"),
    }
)
"""Parts of an identifier, between underscores, that are not used."""
REFERENCES: Final = (
    r"\((?:[0-4])(?:, ?[0-4])*\)(?= [A-Za-z_`])",
    r"\b(?:of|in|to|from|by) \([0-4]\)",
    r"\bsemantics [0-9]",
    r"\bformats [A-Z]?[0-9]",
    r"\bREF-[0-9]+",
)
"""References to texts that are not in this repository."""
BARE_DECIMAL: Final = r"(?<![\w.\]/)*}])\.\d\d?(?![\w*])"
"""A number without its zero, such as `.86`; checked in prose only."""
MAX_TITLE: Final = 79
"""Characters of the first line of a docstring."""

_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_WORDS: Final = re.compile("|".join(f"(?P<w{i}>\\b(?:{word})\\b)" for i, word in enumerate(WORDS)), re.IGNORECASE)
_REPLACEMENTS: Final = tuple(WORDS.values())
_REFERENCES: Final = re.compile("|".join(REFERENCES))
_BARE: Final = re.compile(BARE_DECIMAL)
_RAW: Final = re.compile(rb"[bBfF]?[rR]['\"bBfF]")


class Violation(NamedTuple):
    """One place that breaks the rules: file relative to the repository, line, the text found, and what to use."""

    file: str
    line: int
    found: str
    use: str


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Allowed exceptions: for a file pattern, the words that it may use."""

    words: tuple[tuple[str, frozenset[str]], ...] = ()

    def allow(self, violation: Violation) -> bool:
        """Whether a violation is allowed."""
        found = violation.found.lower()
        return any(fnmatch(violation.file, file) and found in words for file, words in self.words)


def load_exceptions(path: Path = ROOT / "tests/language.toml") -> Exceptions:
    """Read the list of exceptions; every entry needs a reason."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("allow", [])
    assert all(entry["reason"] for entry in entries)
    return Exceptions(
        tuple(
            (file, frozenset(word.lower() for word in entry["words"])) for entry in entries for file in entry["files"]
        )
    )


def check_prose(text: str, file: str, line: int) -> Iterator[Violation]:
    """Violations in a docstring, comment, message or page that starts at `line`."""
    for match in _WORDS.finditer(text):
        use = _REPLACEMENTS[int((match.lastgroup or "w0")[1:])]
        yield Violation(file, line + text.count("\n", 0, match.start()), match.group(0), use)
    for match in _REFERENCES.finditer(text):
        use = "an anchor in docs/"
        yield Violation(file, line + text.count("\n", 0, match.start()), match.group(0), use)


def check_numbers(text: str, file: str, line: int) -> Iterator[Violation]:
    """Numbers without a leading zero."""
    for match in _BARE.finditer(text):
        yield Violation(file, line + text.count("\n", 0, match.start()), match.group(0), f"0{match.group(0)}")


def check_markdown(text: str, file: str) -> Iterator[Violation]:
    """Violations in a page; fenced code is checked for words only."""
    yield from check_prose(text, file, 1)
    prose = re.sub(r"```.*?```", lambda block: "\n" * block.group(0).count("\n"), text, flags=re.DOTALL)
    yield from check_numbers(re.sub(r"`[^`\n]*`|\(https?:[^)]*\)", "", prose), file, 1)


def check_python(source: str, file: str) -> Iterator[Violation]:
    """Violations in docstrings, strings, comments and defined names of a module."""
    is_test = file.startswith("tests/")
    lines = source.encode().split(b"\n")
    docstrings = set()  # statements of their own, also those below constants and fields
    for node in ast.walk(ast.parse(source)):  # a statement comes before its value
        if isinstance(node, ast.Expr):
            docstrings.add(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_prose = not is_test and not _RAW.match(lines[node.lineno - 1][node.col_offset :])
            if is_prose or node in docstrings:
                yield from check_prose(node.value, file, node.lineno)
        if isinstance(node, _DOCUMENTED) and not is_test:
            title = (ast.get_docstring(node) or "").partition("\n")[0]
            if len(title) > MAX_TITLE:
                use = f"a first line of at most {MAX_TITLE} characters"
                yield Violation(file, node.body[0].lineno, f"{title[:40]}...", use)
        if name := _defined(node):
            yield from (Violation(file, getattr(node, "lineno", 1), *found) for found in _check_name(name))
    if any(next(check_prose(line, file, 1), None) for line in source.split("\n") if "#" in line):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield from check_prose(token.string, file, token.start[0])


@cache
def _check_name(name: str) -> list[tuple[str, str]]:
    """What is found in a name, and what to use."""
    if banned := NAMES.intersection(name.lower().strip("_").split("_")):
        return [(name, f"a name without {', '.join(sorted(banned))}")]
    return [(one.found, one.use) for one in check_prose(name.strip("_").replace("_", " "), "", 1)]


def _defined(node: ast.AST) -> str:
    """Name that a node defines, or nothing."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    return node.arg if isinstance(node, ast.arg) else ""


def find_violations(paths: Sequence[str] = DEFAULT, exceptions: Exceptions | None = None) -> list[Violation]:
    """Every violation below `paths` (relative to the repository) that no exception allows, by file and line."""
    exceptions = exceptions or load_exceptions()
    found: list[Violation] = []
    for name in paths:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            relative = file.resolve().relative_to(ROOT).as_posix()
            text = file.read_text(encoding="utf-8") if file.suffix in {".py", ".md", ".yaml", ".toml"} else ""
            if file.suffix == ".py":
                found += check_python(text, relative)
            elif file.suffix == ".md":
                found += check_markdown(text, relative)
            elif not relative.startswith("tests/"):
                found += check_prose(text, relative, 1)
    return sorted(one for one in found if not exceptions.allow(one))


def main(paths: Sequence[str]) -> int:
    """Print the violations; 1 if there are any."""
    found = find_violations(paths or DEFAULT)
    for violation in found:
        sys.stdout.write(f"{violation.file}:{violation.line}: {violation.found} (use: {violation.use})\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
