"""What a piece of advice names that recorded actions can show: commands, files and code.

See docs/scoring.md#followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.regexes import lazy_regex
from core.questions.extraction.recorded_work import find_words, parse_programs

if TYPE_CHECKING:
    from core.questions.extraction.recorded_work import Edit, RecordedWork, Run

_MAX_TEXT: Final = 2_000
_PROGRAM_NAMES: Final = """\
alembic bun bundle cargo chmod composer curl deno docker dotnet eslint flake8 git go gofmt golangci-lint gradle hatch
helm jest just kubectl make mix mocha mvn mypy node npm npx nox php pip pip3 pnpm poe poetry pre-commit prettier psql
pyright pytest python python3 rails rake rm ruff rustup sed sh task terraform tox tsc uv vitest wget yarn"""
_PROGRAMS: Final = frozenset(_PROGRAM_NAMES.split())
_QUOTED: Final = lazy_regex(r"`([^`\n]{1,200})`")
_BARE_COMMAND: Final = lazy_regex(
    r"(?<![\w`/.-])(?:(?:git|npm|pnpm|yarn|pip|cargo|docker|kubectl|terraform|poetry|uv)"
    r" (?!(?:and|or|to|in|with|on|for|is|the|a|as|has|was|that|will|does|by)\b)[a-z][\w:-]{1,30}"
    r"|go (?:test|build|run|mod|get|vet|generate|fmt)|pytest|rm(?= -))(?: -{1,2}[\w-]{1,40}(?:=[\w./-]{1,60})?){0,6}"
)
_PATH: Final = lazy_regex(
    r"(?<![\w`/.@-])(?:[\w.@*-]{1,60}/){0,12}(?:[\w.@*-]{0,60}\.(?:pyi?|[jt]sx?|mjs|go|rs|java|kt|rb|php|[ch]|cpp|cs|sql"
    r"|json|ya?ml|toml|lock|md|txt|cfg|ini|env|proto|html|s?css|sh|xml|snap)\b"
    r"|(?<=/)(?=[\s,;:)]|\.?$)|(?<=/)\*{1,2}(?!\w))"
)
_FOLDER: Final = lazy_regex(
    r"(?<![\w`/.@-])(?:src|lib|app|gen|generated|dist|build|vendor|migrations|config)(?:/[\w.@*-]{1,60}){1,12}"
)
_NAME: Final = lazy_regex(
    r"(?<![\w`./-])(?:@[A-Za-z_][\w.]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?|[A-Za-z_]\w*\(\)|[a-z0-9]+_[a-z0-9_]+"
    r"|[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]+)+)(?![\w/])"
)
_EDITING: Final = lazy_regex(
    r"\b(?:hand-?)?(?:edit|chang|modif|touch|writ|overwrit|patch|updat|adjust|rewrit|regenerat)\w*", re.IGNORECASE
)
_CONDITION: Final = lazy_regex(
    r"\b(?:without|unless|before|after|until|when|while|if|except|outside|during|for|than|twice|because|only|again|once"
    r"|on|to|in|inside|from|at|into|every|all|more|too|alone|first)\b",
    re.IGNORECASE,
)
_FILLER: Final = lazy_regex(
    r"\b(?:by hand|(?:in|inside|under|to|on|of|from) (?=\x00)|directly|manually|in place)", re.IGNORECASE
)
_SHOWING_OPTIONS: Final = frozenset({"--help", "--version", "--dry-run", "--just-print", "--collect-only", "--check"})
"""Options with which programs of all kinds change nothing."""
_PRINTING_WITH_N: Final = frozenset({"make", "rsync"})  # programs whose option -n only prints what they would do
_SHOWING_COMMANDS: Final = frozenset({"help", "list", "show", "status"})  # as in `git stash list`
_PLACEHOLDER: Final = lazy_regex(
    r"<[^<>]*>|\{\{?[^{}]*\}\}?|\[[^\[\]]*\]|(?<!\S)\.\.\.|…|(?<=\s)[A-Z][A-Z_]{2,}(?=\s|$)"
)


class Match(Enum):
    """How well an action matches what a text names."""

    YES = "yes"
    UNCLEAR = "unclear"
    OTHER = "other"  # the same kind of action in another way
    NO = "no"


class Signs(NamedTuple):
    """What a text names."""

    commands: tuple[Run, ...]
    paths: tuple[str, ...]  # files and folders, maybe with `*`, which the text is about editing
    code: tuple[str, ...]
    is_conditional: bool  # whether other words of the text limit when it applies

    def __bool__(self) -> bool:
        return bool(self.commands or self.paths or self.code)


def find_signs(text: str) -> Signs:
    """Return what a text names, each kind in its order."""
    text = text[:_MAX_TEXT]
    commands: list[Run] = []
    paths: list[str] = []
    code: list[str] = []
    for quoted in _QUOTED.findall(text):
        command = _parse_command(quoted)
        if command is not None:
            commands.append(command)
        elif _PATH.fullmatch(quoted.strip()) or _FOLDER.fullmatch(quoted.strip()) or quoted.strip().endswith("/"):
            paths.append(quoted.strip())
        else:
            code.append(quoted.strip())
    rest = _QUOTED.sub("\0", text)
    for regex, found in ((_BARE_COMMAND, None), (_PATH, paths), (_FOLDER, paths), (_NAME, code)):
        for named in regex.finditer(rest):
            if found is not None:
                found.append(named[0].strip())
            elif (command := _parse_command(named[0])) is not None:
                commands.append(command)
        rest = regex.sub("\0", rest)
    if not _EDITING.search(rest):
        paths = []
    is_conditional = _CONDITION.search(_FILLER.sub("", rest)) is not None
    return Signs(tuple(commands), tuple(filter(None, paths)), tuple(filter(None, code)), is_conditional)


def _parse_command(text: str) -> Run | None:
    """Return the program that a text runs, without placeholders; None if it is not a command."""
    runs = parse_programs(_PLACEHOLDER.sub(" ", text))
    if not runs:
        return None
    run = runs[-1]
    first = text.split()[0].rpartition("/")[2]
    is_known = run.program in _PROGRAMS and (
        bool(run.arguments or run.options) or run.program in ("pytest", "tox", "nox")
    )
    is_shell = first in _PROGRAMS or text.startswith("./")
    return run if (is_known and is_shell) or text.startswith("./") else None


def match_run(sign: Run, run: Run) -> Match:
    """Compare a program that ran with one that a text names."""
    if sign.program != run.program:
        return Match.NO
    if run.arguments[: len(sign.lead)] != sign.lead:
        return Match.NO
    if _only_shows(run, sign):
        return Match.UNCLEAR
    if sign.options <= run.options:
        return Match.YES if {*sign.arguments} <= {*run.arguments} else Match.UNCLEAR
    names_of_values = {option.partition("=")[0] for option in sign.options - run.options if "=" in option}
    if names_of_values & run.options:  # the same option with another value
        return Match.UNCLEAR
    letters = {option[2] for option in sign.options - run.options if option.startswith("--")}
    names = {option[1] for option in sign.options - run.options if re.fullmatch(r"-\w", option)}
    is_alias = any(option[1:2] in letters for option in run.options if option[:2] != "--") or any(
        option[2:3] in names for option in run.options if option[:2] == "--"
    )
    return Match.UNCLEAR if is_alias else Match.OTHER


def _only_shows(run: Run, sign: Run) -> bool:
    """Return whether a program only showed something, such as its help, and the text does not name that."""
    options = _SHOWING_OPTIONS | ({"-n"} if run.program in _PRINTING_WITH_N else frozenset())
    following = run.arguments[len(sign.lead) : len(sign.lead) + 1]
    is_listing = following != sign.arguments[len(sign.lead) :][:1] and bool(_SHOWING_COMMANDS.intersection(following))
    return is_listing or bool((run.options - sign.options) & options)


def match_path(path: str, file: str) -> bool:
    """Return whether a file is the one that a path names, or is in its folder."""
    path, file = path.removeprefix("./").casefold(), file.removeprefix("./").casefold()
    if path.endswith(("/", "/*", "/**")):
        folder = path.rstrip("*").rstrip("/")
        return f"/{folder}/" in f"/{file}"
    if "*" in path:
        return fnmatchcase(file, path) or fnmatchcase(file, f"*/{path}")
    return file == path or file.endswith(f"/{path}") or f"/{path}/" in f"/{file}"


def match_code(code: str, text: str) -> bool:
    """Return whether a text contains code, with any spaces."""
    tokens = re.findall(r"\w+|[^\w\s]", code.removesuffix("()"))
    if not tokens or not any(map(str.isalnum, "".join(tokens))):
        return False
    joined = r"\s*".join(map(re.escape, tokens))
    start, end = (r"(?<!\w)" if tokens[0][0].isalnum() else "", r"(?!\w)" if tokens[-1][-1].isalnum() else "")
    return re.search(f"{start}{joined}{end}", text) is not None


def is_specific(code: str) -> bool:
    """Return whether code is more than a word that is in code of all kinds."""
    return bool(find_words(code)) or len(re.findall(r"\w+|[^\w\s]", code)) > 1


class Found(NamedTuple):
    """An action that does what a text names, maybe in another way."""

    match: Match
    number: int
    what: str
    is_run: bool = False


def find_actions(signs: Signs, work: RecordedWork) -> Iterator[Found]:
    """Yield the actions that do what a text names: edits, then programs.

    If it names files and something else, both must be in the same action.
    """
    for edit in work.edits:
        is_place = any(match_path(path, edit.file) for path in signs.paths)
        if signs.paths and not signs.code and not signs.commands and is_place:
            yield Found(Match.YES, edit.number, f"edited {edit.file}")
        elif not signs.paths or is_place:
            yield from (_match_edit(code, edit) for code in signs.code if is_specific(code))
    for run in work.runs:
        for sign in signs.commands:
            match = match_run(sign, run)
            if signs.paths and not any(match_path(path, word) for path in signs.paths for word in run.arguments):
                match = Match.NO
            yield Found(match, run.number, f"ran {run.text}", is_run=True)


def _match_edit(code: str, edit: Edit) -> Found:
    is_added, is_removed = match_code(code, edit.added), match_code(code, edit.removed)
    if is_added and not is_removed:
        line = next((line for line in edit.added.splitlines() if match_code(code, line)), code)
        return Found(Match.YES, edit.number, f"edited {edit.file}: {line.strip()}")
    match = Match.OTHER if is_removed and not is_added else Match.NO
    return Found(match, edit.number, f"removed {code} from {edit.file}")


def find_in_order(steps: Sequence[Signs], work: RecordedWork) -> list[Found]:
    """Return for each step the action that does it, in the order of the steps; a step without one is left out."""
    done = {n: [one for one in find_actions(step, work) if one.match is Match.YES] for n, step in enumerate(steps)}
    found: list[Found] = []
    last = 0
    for n in range(len(steps)):
        own = min((one for one in done[n] if one.number > last), key=lambda one: one.number, default=None)
        if own is not None:
            found.append(own)
            last = own.number
    return found
