"""Analysis of a task description: category, languages, likely errors, words (docs/retrieval.md#task)."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from core.retrieval.words import MAX_CHARS, content_words

CATEGORIES: Final = (
    "implementation",
    "debugging",
    "refactoring",
    "testing",
    "documentation",
    "architecture",
    "migration",
    "optimization",
)
"""Values of `task_category` in the pattern file format."""


class TaskProfile(Struct, frozen=True, kw_only=True):
    """Result of the analysis of a task.

    Attributes:
        text: Description of the task; untrusted.
        category: One of `CATEGORIES`, "" if none was recognised.
        languages: Mentioned languages of `LANGUAGES`, by name.
        error_types: Errors that the text names (`TypeError`), then errors that its words suggest.
        named_errors: Errors that the text names.
        words: Content words, see `core.retrieval.words`.
        decomposition: Whether the task is to split work into parts, see `is_decomposition`.
    """

    text: str
    category: str
    languages: tuple[str, ...]
    error_types: tuple[str, ...]
    named_errors: tuple[str, ...]
    words: frozenset[str]
    decomposition: bool = False


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


# Words for each category. The verb that opens a task counts most, except verbs of implementation, which open tasks of
# every kind ("add tests", "write docs"); of two equal categories the one mentioned first wins.
_CATEGORY_WORDS: Final = {
    "debugging": _any(
        r"fix(?:es|ed|ing)?|bugs?|debug(?:s|ged|ging)?|errors?|exceptions?|crash(?:es|ed|ing)?"
        r"|fail(?:s|ed|ing|ures?)?|broken|breaks|issues?|investigat\w+|diagnos\w+|troubleshoot\w*|repair\w*"
        r"|resolv(?:e|es|ing)|stack ?traces?|flaky|regressions?|root cause|wrong|hangs?|hotfix|doesn't work"
        r"|not working|\w+(?:Error|Exception)"
    ),
    "testing": _any(
        r"tests?|testing|unit[ -]tests?|e2e|end[ -]to[ -]end|coverage|specs?|mock(?:s|ed|ing)?|assert\w*"
        r"|fixtures?|tdd|pytest|jest|vitest|snapshot tests?"
    ),
    "refactoring": _any(
        r"refactor\w*|clean(?: |-)?up|simplif\w+|restructur\w+|renam(?:e|es|ing)|extract(?:s|ing)?|dedup\w*"
        r"|decoupl\w+|inline|split up|tidy|moderni[sz]e|technical debt|dead code|duplication"
    ),
    "documentation": _any(
        r"document(?:s|ed|ing|ation)?|docs?|docstrings?|readme|changelog|tutorials?|guides?|manual|jsdoc"
        r"|tsdoc|comments?|explain\w*|api reference"
    ),
    "migration": _any(
        r"migrat\w+|upgrad\w+|port(?:ing)?(?: \w+)? to|convert\w*|switch(?:ing)? (?:from|to)"
        r"|move (?:from|to|over)|bump\w*|deprecat\w+ api|replac\w+ \w+ with|schema change"
    ),
    "optimization": _any(
        r"optimi[sz]\w*|performan\w+|speed(?:s|ing)?(?: up)?|faster|slow(?:er|ness)?|latency|throughput"
        r"|memory usage|memory leaks?|bottlenecks?|profil(?:e|ing)|cach(?:e|ing)"
        r"|reduce (?:memory|time|size|load)|n\+1"
    ),
    "architecture": _any(
        r"architect\w*|design(?:s|ed|ing)?|adr|diagrams?|system design|blueprint|modulari[sz]\w*"
        r"|microservices?|boundaries|interfaces? between|trade-?offs?"
    ),
    "implementation": _any(
        r"add(?:s|ed|ing)?|implement\w*|creat(?:e|es|ing)|build(?:s|ing)?|develop\w*|introduc\w+|features?"
        r"|support\w*|writ(?:e|es|ing)|integrat\w+|endpoints?|generat(?:e|es|ing)|enable|allow|provide|expose"
        r"|scaffold\w*"
    ),
}
_PARTS: Final = (
    r"(?:sub-?tasks?|sub-tasks?|tasks?|steps?|beads?|issues?|tickets?|stories|work ?packages?|agents?|workers?|parts?"
    r"|pieces|chunks|milestones?|phases)"
)
_WORK: Final = r"(?:task|work|epic|story|project|issue|ticket|job|feature|goal|plan|migration|implementation)"
_DECOMPOSITION: Final = _any(
    r"decompos(?:e|es|ed|ing|ition|itions)|sub-?tasks?|sub tasks?|work breakdown|break(?:s|ing)? (?:\w+ ){0,4}down"
    r"|break ?down|breakdown"
    rf"|(?:split|splits|splitting|divid(?:e|es|ing)|partition(?:s|ing)?|slic(?:e|es|ing)) (?:\S+ ){{0,6}}?into"
    rf" (?:\S+ ){{0,3}}?{_PARTS}"
    rf"|(?:split|splits|splitting|divid(?:e|es|ing)|partition(?:s|ing)?) (?:up )?(?:the |this |that |our |its )"
    rf"(?:\w+ )?{_WORK}"
    rf"|plan (?:the |out |all )?{_PARTS}|plan the (?:work|swarm)"
)
_OPENING_BONUS: Final = 2.0
_IMPLEMENTATION_WEIGHT: Final = 0.6

_LANGUAGE_SIGNS: Final = {
    "go": re.compile(r"\bgolang\b|\.go\b|\bgo\.mod\b|\bgo (?:test|build|vet|mod|module|code|service)\b|\bin Go\b"),
    "java": re.compile(r"\bjava\b|\.java\b|\b(?:maven|gradle|junit|spring boot)\b", re.IGNORECASE),
    "javascript": re.compile(r"\bjavascript\b|\bnode(?:\.js|js)\b|\.[cm]?jsx?\b|\beslint\b", re.IGNORECASE),
    "python": re.compile(
        r"\bpython\d?\b|\.pyi?\b|\b(?:pytest|mypy|pip|django|flask|fastapi|pydantic)\b", re.IGNORECASE
    ),
    "rust": re.compile(r"\brust\b|\.rs\b|\b(?:cargo|rustc|clippy|borrow checker)\b", re.IGNORECASE),
    "typescript": re.compile(r"\btypescript\b|\.tsx?\b|\btsc\b|\btsconfig\b", re.IGNORECASE),
}

LANGUAGES: Final = tuple(_LANGUAGE_SIGNS)
"""Values of `language` in the pattern file format, without `other`."""

_NAMED_ERROR: Final = re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Exception)\b")
_ERROR_WORDS: Final = {
    "TypeError": _any(
        r"type[ -]?(?:errors?|mismatch\w*|check\w*)|typing|null(?:able|s)?|undefined|none ?type"
        r"|not assignable|optional"
    ),
    "ReferenceError": _any(r"not defined|undeclared|unresolved (?:names?|references?)|missing imports?"),
    "AssertionError": _any(
        r"assert\w*|expected .{1,80}? (?:received|got|to be)|(?:failing|broken|red) tests?|tests? fail\w*"
    ),
    "SyntaxError": _any(r"syntax(?: errors?)?|pars(?:e|ing) errors?|unexpected tokens?|indentation"),
    "RuntimeError": _any(r"run-?time errors?|panics?|segfaults?|crash(?:es|ed|ing)?"),
    "TimeoutError": _any(r"time[ -]?outs?|timed out|times out|deadlocks?|hang(?:s|ing)?"),
    "ValidationError": _any(r"validat\w+|invalid (?:input|data|payload)s?|schema errors?"),
    "NetworkError": _any(r"network errors?|connection (?:refused|reset|errors?)|econn\w+|dns|socket errors?"),
}


def analyse_task(text: str) -> TaskProfile:
    """Analyse the first 8,192 characters of a task description by its words."""
    start = text[:MAX_CHARS]
    named = tuple(dict.fromkeys(_NAMED_ERROR.findall(start)))
    likely = tuple(name for name, words in _ERROR_WORDS.items() if name not in named and words.search(start))
    return TaskProfile(
        text=text,
        category=_category(start) or ("debugging" if named or likely else ""),
        languages=tuple(name for name, sign in _LANGUAGE_SIGNS.items() if sign.search(start)),
        error_types=named + likely,
        named_errors=named,
        words=frozenset(content_words(start)),
        decomposition=is_decomposition(start),
    )


def is_decomposition(text: str) -> bool:
    """Whether a task is to split work: it contains "decompose", "break down", "subtasks", "split into tasks" ..."""
    return _DECOMPOSITION.search(text[:MAX_CHARS]) is not None


def _category(text: str) -> str:
    opening = re.search(r"[^\W_]+", text)
    best, most = "", (0.0, 0)
    for category, words in _CATEGORY_WORDS.items():
        matches = list(words.finditer(text))
        if not matches:
            continue
        score = float(len({match[0].lower() for match in matches}))
        if category == "implementation":
            score *= _IMPLEMENTATION_WEIGHT
        elif opening and matches[0].start() == opening.start():
            score += _OPENING_BONUS
        if (score, -matches[0].start()) > most:
            best, most = category, (score, -matches[0].start())
    return best
