"""Changes from which nothing is learned: suppressed checks, unrelated files, the environment.

See docs/extraction.md#attempts; for weaker tests, see `weakened_tests`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from core.base.regexes import lazy_regex
from core.questions.extraction.weakened_tests import changed_lines

if TYPE_CHECKING:
    from core.records.debug_sessions import Failure
    from core.records.episodes import Action
    from core.tasks.changes import Hunk

_SETTINGS: Final = lazy_regex(
    r"(?:^|/)(?:pytest\.ini|tox\.ini|setup\.cfg|noxfile\.py|\.coveragerc|\.?ruff\.toml|\.?mypy\.ini|\.flake8"
    r"|\.pylintrc|pyrightconfig\.json"
    r"|requirements[\w.-]*\.(?:txt|in)|constraints[\w.-]*\.txt|Pipfile(?:\.lock)?|poetry\.lock|uv\.lock"
    r"|package-lock\.json|yarn\.lock|pnpm-lock\.yaml"
    r"|(?:jest|vitest|vite|karma|cypress|playwright|babel|eslint|prettier)\.config\.\w+|\.mocharc[\w.]*"
    r"|\.eslintrc[\w.]*|\.prettierrc[\w.]*|\.babelrc"
    r"|\.nvmrc|\.node-version|\.python-version|\.tool-versions|\.env(?:\.[\w-]+)?|\.envrc|\.npmrc|go\.sum"
    r"|Cargo\.lock|Gemfile(?:\.lock)?|\.rspec)$"
)
"""Settings of test runners and linters, lists of dependencies, and the environment."""
_MANIFEST: Final = lazy_regex(
    r"(?:^|/)(?:pyproject\.toml|package\.json|go\.mod|Cargo\.toml|composer\.json|pom\.xml|build\.gradle(?:\.kts)?)$"
)
_SUPPRESSED: Final = lazy_regex(
    r"#\s*(?:noqa|type:\s*ignore|pylint:\s*disable|pyright:\s*ignore|mypy:\s*ignore|nosec|fmt:\s*(?:off|skip)"
    r"|ruff:\s*noqa|rubocop:disable)"
    r"|//\s*(?:@ts-(?:ignore|nocheck|expect-error)|eslint-disable|nolint|NOLINT|noinspection|prettier-ignore)"
    r"|/\*\s*(?:eslint-disable|istanbul ignore)"
    r"|@SuppressWarnings|#\[allow\(|#pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored|shellcheck\s+disable"
    r"|@ts-nocheck|:\s*any\b"
)
_INSTALL: Final = lazy_regex(
    r"(?:^|[;&|]\s*|\s)(?:(?:python[\d.]*\s+-m\s+)?pip3?|uv(?:\s+pip)?|poetry|pipenv|conda|npm|yarn|pnpm|bun|gem"
    r"|bundle|cargo|go|apt(?:-get)?|brew|apk|dnf|composer|pipx)"
    r"\s+(?:install|add|i|ci|sync|get|update|upgrade|restore)\b|\b(?:npm|pnpm|yarn)\s+ci\b"
    r"|\bsource\s+\S*activate\b|\bexport\s+\w+=|\bchmod\s|\bvirtualenv\b|-m\s+venv\b"
)
_NO_MODULE: Final = lazy_regex(r"No module named ['\"]?(?P<name>[\w.-]+)")
_NOT_FOUND: Final = lazy_regex(
    r"(?:^|[:\s])['\"`]?(?P<name>[\w./+-]+)['\"`]?: (?:command )?not found|(?:executable file"
    r"|command) not found(?: in \$PATH)?:? ?['\"]?(?P<other>[\w./+-]*)|is not recognized as an internal"
    r"|can't open file '(?P<file>[^']+)'|Missing script: ['\"]?(?P<script>[\w:-]+)"
)
_WORD: Final = lazy_regex(r"[\w./+-]+")
_DOCUMENT: Final = lazy_regex(
    r"(?:^|/)(?:README|CHANGELOG|CHANGES|NOTES|TODO|LICENSE)[^/]*$|\.(?:md|rst|txt|adoc)$", re.IGNORECASE
)
_TRANSIENT: Final = lazy_regex(
    r"\b(?:ETIMEDOUT|ECONNRESET|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRINUSE|ENOSPC)\b"
    r"|(?i:connection (?:refused|reset|aborted|timed out)|connect(?:ion)? time-?d? ?out|failed to connect"
    r"|network is unreachable|could not resolve (?:host|proxy)"
    r"|name resolution|name or service not known|no route to host|no such host"
    r"|(?:read|operation|handshake|i/o|request|gateway) time(?:d )?-?out|timeout was reached|max retries exceeded"
    r"|(?:502|503|504|429) (?:bad gateway|service unavailable|gateway time-?out|too many requests)|rate limit"
    r"|address already in use|port \d{1,5} is (?:already )?in use|no space left on device|disk quota exceeded"
    r"|cannot allocate memory|too many open files|temporarily unavailable|temporary failure)"
)
"""Errors of the network or the machine, which may be gone at the next run."""
_CONNECTING: Final = lazy_regex(
    r"(?i)time_?out|retr(?:y|ies)|backoff|\bport\b|host|\burl|socket|proxy|connect|listen|close|bind\(|fetch|request|session"
    r"|mock|patch"
)
_UNDO: Final = lazy_regex(r"(?:^|[;&|]\s*)git\s+(?:checkout|restore|revert|reset|stash)\b(?!\s+(?:pop|apply))")


def is_environment_error(action: Action, failures: Iterable[Failure]) -> bool:
    """Return whether a command failed before it did its work: a program or module that it names is missing.

    An error of a script or program that the command runs is not meant, even if it is the same message.
    """
    words = set(_WORD.findall(action.command))
    names = {word.rpartition("/")[2] for word in words}
    for text in (*(one.message for one in failures), *_first_lines(action)):
        if (found := _NO_MODULE.search(text)) and found["name"].partition(".")[0] in {
            name.partition(".")[0] for name in names
        }:
            return True
        if found := _NOT_FOUND.search(text):
            missing = next(
                (name for name in (found["name"], found["other"], found["file"], found["script"]) if name), ""
            )
            if not missing or missing.rpartition("/")[2] in names:
                return True
    return False


def _first_lines(action: Action) -> list[str]:
    lines = [line for line in f"{action.error}\n{action.output}".split("\n") if line.strip()]
    return lines[:3] if len(lines) <= 6 else []


def is_install(action: Action) -> bool:
    """Return whether a command installed a dependency or changed the environment."""
    return bool(action.command) and not action.has_failed and _INSTALL.search(action.command) is not None


def teaches_nothing(hunks: Sequence[Hunk], files: Sequence[str]) -> bool:
    """Return whether a change only concerns the environment, or suppresses a check instead of passing it."""
    changed = [hunk.file for hunk in hunks] or list(files)
    if changed and all(_SETTINGS.search(file) for file in changed):
        return True
    if hunks and all(_MANIFEST.search(hunk.file) and _is_runner_section(hunk) for hunk in hunks):
        return True
    return bool(hunks) and all(
        _SUPPRESSED.search("\n".join(changed_lines(hunk, "+"))) is not None and _is_same_code(hunk) for hunk in hunks
    )


def is_document(file: str) -> bool:
    """Return whether a file is a text for people, such as README.md."""
    return _DOCUMENT.search(file) is not None


def is_unrelated(run: Action, failures: Sequence[Failure], hunks: Sequence[Hunk], files: Sequence[str]) -> bool:
    """Return whether a change has nothing to do with a failed run, so that its success has another reason.

    This is so for documents, and for any change if the network or the machine failed, unless the run names a changed
    file. A change of code that connects is related to an error of the network.
    """
    changed = {hunk.file for hunk in hunks} or set(files)
    printed = f"{run.command}\n{run.error}\n{run.output}"
    if any(name and name in printed for name in (file.rpartition("/")[2] for file in changed)):
        return False
    if changed and all(map(is_document, changed)):
        return True
    is_transient = any(_TRANSIENT.search(f"{one.error_type}: {one.message}") for one in failures)
    lines = "\n".join(line for hunk in hunks for sign in "-+" for line in changed_lines(hunk, sign))
    return is_transient and _CONNECTING.search(lines) is None


def is_undone(hunks: Sequence[Hunk], earlier: Iterable[Hunk], commands: Sequence[str]) -> bool:
    """Return whether a change only reverts earlier ones; `commands` are those of its edits by the shell."""
    if not hunks:
        return bool(commands) and all(_UNDO.search(command) for command in commands)
    before: dict[str, dict[str, set[str]]] = {}
    for hunk in earlier:
        lines = before.setdefault(hunk.file, {"-": set(), "+": set()})
        for sign, known in lines.items():
            known.update(_bare_lines(hunk, sign))
    return all(
        hunk.file in before
        and set(_bare_lines(hunk, "+")) <= before[hunk.file]["-"]
        and set(_bare_lines(hunk, "-")) <= before[hunk.file]["+"]
        for hunk in hunks
    )


def _bare_lines(hunk: Hunk, sign: str) -> list[str]:
    return [bare for line in changed_lines(hunk, sign) if (bare := line.strip())]


def _is_same_code(hunk: Hunk) -> bool:
    """Return whether only comments and type names differ."""
    bare = re.compile(r"(?:#|//).*$|/\*.*?\*/|:\s*any\b")
    old, new = (["".join(bare.sub("", line).split()) for line in changed_lines(hunk, sign)] for sign in "-+")
    return [line for line in old if line] == [line for line in new if line]


def _is_runner_section(hunk: Hunk) -> bool:
    text = "\n".join(hunk.lines)
    return (
        re.search(
            r"tool\.(?:pytest|ruff|mypy|coverage|pyright)|testpaths|pythonpath|addopts|\"(?:jest|mocha"
            r"|eslintConfig|devDependencies|dependencies)\"|dependencies|^[+-]\s*\"[@\w/-]+\": \"[\^~]?\d",
            text,
            re.MULTILINE,
        )
        is not None
    )
