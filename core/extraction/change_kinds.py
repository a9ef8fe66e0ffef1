"""Changes from which nothing is learned: skipped tests, suppressed checks, the environment"
" (docs/extraction.md#attempts)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from core.debug_memory.error_messages import is_test_file

if TYPE_CHECKING:
    from core.episodes.file_changes import Hunk
    from core.records.debug_sessions import Failure
    from core.records.episodes import Action

_SETTINGS: Final = re.compile(
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
_MANIFEST: Final = re.compile(
    r"(?:^|/)(?:pyproject\.toml|package\.json|go\.mod|Cargo\.toml|composer\.json|pom\.xml|build\.gradle(?:\.kts)?)$"
)
_SKIP: Final = re.compile(
    r"@?(?:pytest\.(?:mark\.)?(?:skip|skipif|xfail)|unittest\.(?:skip|expectedFailure)|skipTest|importorskip"
    r"|skipIf|skipUnless|expectedFailure)\b"
    r"|\b(?:it|test|describe|context|suite)\.(?:skip|todo|failing)\b|\bx(?:it|describe|test|context)\s*\("
    r"|\bt\.Skip(?:f|Now)?\(|#\[ignore|@(?:Ignore|Disabled)\b"
    r"|\bskip:\s*(?:true|['\"])|\{\s*skip\b|\bthis\.skip\(|\bpending\b|\bskip\s+['\"]|\bmarkTestSkipped\b"
    r"|\[(?:Fact|Theory)\(Skip|GTEST_SKIP|\bDISABLED_"
)
_ASSERTS: Final = re.compile(
    r"\b(?:assert\w*|expect\w*|should\w*|t\.(?:Error|Fatal|Fail)\w*|require\.\w+|EXPECT_\w+|ASSERT_\w+|is|ok"
    r"|verify)\b\s*[(!.\s]|\[ .* \]|\|\|\s*(?:exit|fail)"
)
_SUPPRESSED: Final = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pylint:\s*disable|pyright:\s*ignore|mypy:\s*ignore|nosec|fmt:\s*(?:off|skip)"
    r"|ruff:\s*noqa|rubocop:disable)"
    r"|//\s*(?:@ts-(?:ignore|nocheck|expect-error)|eslint-disable|nolint|NOLINT|noinspection|prettier-ignore)"
    r"|/\*\s*(?:eslint-disable|istanbul ignore)"
    r"|@SuppressWarnings|#\[allow\(|#pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored|shellcheck\s+disable"
    r"|@ts-nocheck|:\s*any\b"
)
_INSTALL: Final = re.compile(
    r"(?:^|[;&|]\s*|\s)(?:(?:python[\d.]*\s+-m\s+)?pip3?|uv(?:\s+pip)?|poetry|pipenv|conda|npm|yarn|pnpm|bun|gem"
    r"|bundle|cargo|go|apt(?:-get)?|brew|apk|dnf|composer|pipx)"
    r"\s+(?:install|add|i|ci|sync|get|update|upgrade|restore)\b|\b(?:npm|pnpm|yarn)\s+ci\b"
    r"|\bsource\s+\S*activate\b|\bexport\s+\w+=|\bchmod\s|\bvirtualenv\b|-m\s+venv\b"
)
_NO_MODULE: Final = re.compile(r"No module named ['\"]?(?P<name>[\w.-]+)")
_NOT_FOUND: Final = re.compile(
    r"(?:^|[:\s])['\"`]?(?P<name>[\w./+-]+)['\"`]?: (?:command )?not found|(?:executable file"
    r"|command) not found(?: in \$PATH)?:? ?['\"]?(?P<other>[\w./+-]*)|is not recognized as an internal"
    r"|can't open file '(?P<file>[^']+)'|Missing script: ['\"]?(?P<script>[\w:-]+)"
)
_WORD: Final = re.compile(r"[\w./+-]+")
_LITERAL: Final = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|\b\d[\d_.]*\b|\b(?:True|False|None|true|false|null"
    r"|undefined|nil)\b"
)


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
    """Return whether a change only concerns the environment, or makes a check weaker instead of passing it."""
    changed = [hunk.file for hunk in hunks] or list(files)
    if changed and all(_SETTINGS.search(file) for file in changed):
        return True
    if hunks and all(_MANIFEST.search(hunk.file) and _is_runner_section(hunk) for hunk in hunks):
        return True
    if hunks and all(_SUPPRESSED.search("\n".join(_lines(hunk, "+"))) and _is_same_code(hunk) for hunk in hunks):
        return True
    return is_weakened(hunks, files)


def is_weakened(hunks: Sequence[Hunk], files: Sequence[str]) -> bool:
    """Return whether the only changes are in tests, and skip, remove or relax what they check."""
    changed = [hunk.file for hunk in hunks] or list(files)
    is_test = [is_test_file(file) or "test" in file.rpartition("/")[2].lower() for file in changed]
    skips = any(
        len(_SKIP.findall("\n".join(_lines(hunk, "+")))) > len(_SKIP.findall("\n".join(_lines(hunk, "-"))))
        for hunk in hunks
    )
    if not changed or not (all(is_test) or skips):
        return False
    if skips:
        return True
    removed = [line for hunk in hunks for line in _lines(hunk, "-")]
    added = [line for hunk in hunks for line in _lines(hunk, "+")]
    before, after = (sum(bool(_ASSERTS.search(line)) for line in lines) for lines in (removed, added))
    if after < before or (removed and not added):
        return True
    # The same assertions with other expected values.
    return bool(before) and sorted(map(_without_literals, removed)) == sorted(map(_without_literals, added))


def _lines(hunk: Hunk, sign: str) -> list[str]:
    return [line[1:] for line in hunk.lines if line[:1] == sign]


def _without_literals(line: str) -> str:
    return "".join(_LITERAL.sub("0", line).split())


def _is_same_code(hunk: Hunk) -> bool:
    """Return whether only comments and type names differ."""
    bare = re.compile(r"(?:#|//).*$|/\*.*?\*/|:\s*any\b")
    old, new = (["".join(bare.sub("", line).split()) for line in _lines(hunk, sign)] for sign in "-+")
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
