"""Whether later actions followed a lesson; docs/scoring.md#followed.

First what a piece of advice names that actions can show: commands, files and code. Then one rule for each type of
pattern, in the table at the end. In doubt there is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.polarity import read_warning
from core.base.regexes import lazy_regex
from core.base.text import one_line, visible_line
from core.questions.extraction.recorded_work import (
    MAX_TEXT,
    Edit,
    RecordedWork,
    Run,
    find_words,
    parse_programs,
    strip_comments,
)
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from core.tasks.error_messages import is_test_file

if TYPE_CHECKING:
    from core.questions.extraction.recorded_work import Window

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
    for regex, names in ((_BARE_COMMAND, None), (_PATH, paths), (_FOLDER, paths), (_NAME, code)):
        for named in regex.finditer(rest):
            if names is not None:
                names.append(named[0].strip())
            elif (command := _parse_command(named[0])) is not None:
                commands.append(command)
        rest = regex.sub("\0", rest)
    if not _EDITING.search(rest):
        paths = []
    is_conditional = _CONDITION.search(_FILLER.sub("", rest)) is not None
    return Signs(tuple(commands), tuple(filter(None, paths)), tuple(filter(None, code)), is_conditional)


def _parse_command(text: str) -> Run | None:
    """Return a command's program, without placeholders; None if not a command."""
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
    """Return whether a program only showed what the text does not name, such as help."""
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


class MatchedAction(NamedTuple):
    """An action that does what a text names, maybe in another way."""

    match: Match
    number: int
    what: str
    is_run: bool = False


def find_actions(signs: Signs, work: RecordedWork) -> Iterator[MatchedAction]:
    """Yield the actions that do what a text names: edits, then programs.

    If it names files and something else, both must be in the same action.
    """
    for edit in work.edits:
        is_place = any(match_path(path, edit.file) for path in signs.paths)
        if signs.paths and not signs.code and not signs.commands and is_place:
            yield MatchedAction(Match.YES, edit.number, f"edited {edit.file}")
        elif not signs.paths or is_place:
            yield from (_match_edit(code, edit) for code in signs.code if is_specific(code))
    for run in work.runs:
        for sign in signs.commands:
            match = match_run(sign, run)
            if signs.paths and not any(match_path(path, word) for path in signs.paths for word in run.arguments):
                match = Match.NO
            yield MatchedAction(match, run.number, f"ran {run.text}", is_run=True)


def _match_edit(code: str, edit: Edit) -> MatchedAction:
    is_added, is_removed = match_code(code, edit.added), match_code(code, edit.removed)
    if is_added and not is_removed:
        line = next((line for line in edit.added.splitlines() if match_code(code, line)), code)
        return MatchedAction(Match.YES, edit.number, f"edited {edit.file}: {line.strip()}")
    match = Match.OTHER if is_removed and not is_added else Match.NO
    return MatchedAction(match, edit.number, f"removed {code} from {edit.file}")


def find_in_order(steps: Sequence[Signs], work: RecordedWork) -> list[MatchedAction]:
    """Return each step's action, in the order of the steps; unmatched ones left out."""
    done = {n: [one for one in find_actions(step, work) if one.match is Match.YES] for n, step in enumerate(steps)}
    actions: list[MatchedAction] = []
    last = 0
    for n in range(len(steps)):
        own = min((one for one in done[n] if one.number > last), key=lambda one: one.number, default=None)
        if own is not None:
            actions.append(own)
            last = own.number
    return actions


_HOLE: Final = lazy_regex(r"\{\{[^{}]{0,80}\}\}")
_FILE: Final = lazy_regex(r"(?:@@|\+\+\+)\s+(?:b/)?([\w./@+-]{1,300})(?:\s+@@.*)?$")
_IDENTIFIER: Final = lazy_regex(r"[A-Za-z_]\w*")
_TURN: Final = lazy_regex(
    r"[,;:]?\s+(?:not|instead of|rather than|and never|and not|never|over)\s+|[;.]\s+(?:do not|don't|never|avoid)\s+",
    re.IGNORECASE,
)
_ORDER: Final = lazy_regex(r"\b(?:before|after)\b", re.IGNORECASE)
_TOOL: Final = lazy_regex(r"\w+\s*\((.{1,200})\)")  # `Bash (npm test)`
_MAX_EVIDENCE: Final = 120
_HIGH_SHARE: Final = 0.75  # of the steps of a success pattern, in order
_HALF: Final = 0.5  # of the names that a fix adds
_MOST: Final = 0.6  # of the names in a template
_MIN_NAME: Final = 3  # letters of a name that alone shows a fix


class Judgement(NamedTuple):
    """Whether a lesson was followed (None: can't tell), and the action that shows it.

    `has_worked` is the result of following it, if the log proves one.
    """

    is_followed: bool | None
    action: int = 0
    evidence: str = ""
    has_worked: bool | None = None


UNCLEAR: Final = Judgement(None)


def judge(pattern: Pattern, work: RecordedWork) -> Judgement:
    """Judge whether a pattern that was given to an attempt was followed in it."""
    if work.start >= len(work.actions):
        return UNCLEAR
    judgement = _RULES[pattern.type](pattern, work)
    return judgement._replace(evidence=visible_line(one_line(judgement.evidence), _MAX_EVIDENCE))


class Comparison(NamedTuple):
    """Whether an edit follows a fix: False if it has nothing of it, None if unclear."""

    is_alike: bool | None
    shown: str = ""  # the line or the names that both have


class Fix:
    """The code that a pattern adds, for comparisons with edits."""

    def __init__(self, pattern: Pattern) -> None:
        diff = pattern.diff_pattern[:MAX_TEXT].splitlines()
        self.file = next((found[1] for text in diff if (found := _FILE.match(text))), "")
        name = self.file or f"x.{pattern.template_language or 'py'}"
        added, removed, context = (
            strip_comments("\n".join(line[1:] for line in diff if line[:1] == sign and line[:3] != sign * 3), name)
            for sign in "+- "
        )
        template = strip_comments(_HOLE.sub(" ", pattern.template_code[:MAX_TEXT]), name)
        self.removed = _squeeze(removed)
        self.lines = _squeeze(added) - self.removed | _squeeze(template)
        self.added = find_words(added) - find_words(removed) - find_words(context) | find_words(template)
        self.words = self.added - find_words(pattern.error_message)  # those that a mention of the error does not have
        self.shapes = {shape for line in added.splitlines() if (shape := _shape(line))}
        self.has_code = bool(self.lines)
        named = find_signs(pattern.description)
        self.commands = named.commands
        # Names of code in plain words are those with a capital that begin no sentence.
        capitalized = re.findall(r"(?<=[a-z,] )[A-Z][A-Za-z0-9]{2,40}\b", pattern.description[:MAX_TEXT])
        mentions = " ".join(one for one in named.code if is_specific(one)) + " ".join(capitalized)
        self.mentions = find_words(mentions) - find_words(pattern.error_message) - find_words(removed)

    def compare(self, edits: Sequence[Edit]) -> Comparison:
        """Compare the edits of one action, or several together."""
        words = frozenset[str]().union(*(edit.words for edit in edits))
        for edit in edits:
            for line in edit.added.splitlines():
                if (squeezed := "".join(line.split())) in self.lines and self._is_distinctive(squeezed, line, edit):
                    return Comparison(True, line.strip())
        if not self.has_code:
            named = self.mentions & words
            return Comparison(True, ", ".join(sorted(named))) if named else Comparison(None)
        common = self.words & words
        # The only name of a fix shows it by itself, unless it is short.
        is_enough = len(self.words) == 1 and any(not one[0].isalpha() or len(one) >= _MIN_NAME for one in common)
        if len(common) >= _HALF * len(self.words) and (len(common) > 1 or is_enough):
            return Comparison(True, ", ".join(sorted(common)))
        shapes = {shape for edit in edits for line in edit.added.splitlines() if (shape := _shape(line))}
        is_unclear = (self.added | self.mentions) & words or shapes & self.shapes or not self.added
        return Comparison(None if is_unclear else False)

    def _is_distinctive(self, squeezed: str, line: str, edit: Edit) -> bool:
        """Return whether a line that is also in the fix is not in fixes of all kinds."""
        if squeezed in _squeeze(edit.removed):
            return False
        return bool(find_words(line) & self.added) or bool(_squeeze(edit.removed) & self.removed)


def _squeeze(text: str) -> set[str]:
    """Return the lines with at least one letter or digit, without spaces."""
    lines = ("".join(line.split()) for line in text.splitlines())
    return {line for line in lines if any(map(str.isalnum, line))}


def _shape(line: str) -> str:
    """Return a line with its own names replaced; "" if nothing else is left."""
    shape = _IDENTIFIER.sub(lambda word: "\0" if find_words(word[0]) or len(word[0]) < 3 else word[0], line)
    shape = "".join(re.sub(r"\d+|\"[^\"]*\"|'[^']*'", "\0", shape).split())
    return shape if sum(map(str.isalpha, shape)) > 3 or re.search(r"[^\w\s\x00.,()=:;]{2}|or|and", shape) else ""


def _judge_error(pattern: Pattern, work: RecordedWork) -> Judgement:
    """Judge an error pattern: compare the edits until its error is gone with its fix."""
    windows = work.find_windows(pattern)
    fix = Fix(pattern)
    edits = [edit for edit in work.edits if _is_within(edit.place, windows)]
    actions = [[*own] for _, own in groupby(edits, key=lambda edit: edit.place)]
    code = [[edit for edit in own if not is_test_file(edit.file) or is_test_file(fix.file)] for own in actions]
    tried = [(own[0], fix.compare(own)) for own in code if own]
    followed = [(edit, found.shown) for edit, found in tried if found.is_alike]
    if not followed and tried:
        comparison = fix.compare([edit for own in code for edit in own])
        followed = [(tried[-1][0], comparison.shown)] if comparison.is_alike else []
    if followed:
        (edit, line_shown), last = followed[0], followed[-1][0]
        worked = _find_result(edit, last, work.find_errors(pattern), windows, work.outcome)
        return Judgement(True, edit.number, f"edited {edit.file}: {line_shown}", worked)
    for run in work.runs:
        if _is_within(run.place, windows, has_end=True) and any(
            match_run(sign, run) is Match.YES for sign in fix.commands
        ):
            return Judgement(True, run.number, f"ran {run.text}")
    is_unlike = all(fix.compare(own).is_alike is False and not any(one.is_hidden for one in own) for own in actions)
    if not edits or not is_unlike or not _is_cured_otherwise(work, windows, edits, fix):
        return UNCLEAR
    line = next((line.strip() for line in edits[-1].added.splitlines() if line.strip()), "lines removed")
    return Judgement(False, edits[-1].number, f"edited {edits[-1].file} in another way: {line}")


def _is_within(place: int, windows: Iterable[Window], *, has_end: bool = False) -> bool:
    """Return whether an action is in a window; with `has_end`, the passing run too."""
    return any(one.start < place < one.end + has_end for one in windows)


def _find_result(
    first: Edit, last: Edit, errors: Sequence[int], windows: Sequence[Window], end: Outcome
) -> bool | None:
    """Return whether a fix worked; False only if its error recurred and all failed."""
    if all(one.is_solved for one in windows):
        return True if last.place > errors[-1] else None
    return False if end is Outcome.FAILURE and first.place < errors[-1] else None


def _is_cured_otherwise(work: RecordedWork, windows: Sequence[Window], edits: Sequence[Edit], fix: Fix) -> bool:
    """Return whether other edits cured the error, or ended the attempt at its place."""
    if any(work.may_hide_edits(one.start + 1, one.end) for one in windows):
        return False
    if all(one.is_solved for one in windows):
        return True
    failed, last = work.actions[windows[-1].start], edits[-1]
    name = last.file.rpartition("/")[2]
    is_there = last.file == fix.file or (bool(name) and name in f"{failed.error}\n{failed.output}")
    return is_there and not any(run.place > last.place for run in work.runs)


def _judge_warning(pattern: Pattern, work: RecordedWork) -> Judgement:
    """Judge an anti-pattern: an action does what it warns of, or does it otherwise."""
    warned = read_warning(pattern.description or pattern.title)
    wrong = find_signs(warned.approach)
    better = find_signs(pattern.better_alternative or warned.better)
    if not wrong:
        return UNCLEAR
    actions = [*find_actions(wrong, work)]
    done = [one for one in actions if one.match is Match.YES]
    if done:
        return UNCLEAR if wrong.is_conditional else Judgement(False, done[0].number, done[0].what)
    # An edit that does not show its change may do what the text names.
    may_touch = any(edit.is_hidden for edit in work.edits) and bool(wrong.paths or wrong.code)
    if may_touch or any(one.match is Match.UNCLEAR for one in actions):
        return UNCLEAR
    others = [one for one in find_actions(better, work) if one.match is Match.YES]
    has_lead = any(sign.lead for sign in wrong.commands)  # another `git push` is one, another `rm` is not
    others += [one for one in actions if one.match is Match.OTHER and (not one.is_run or has_lead)]
    first = min(others, key=lambda one: one.number, default=None)
    return Judgement(True, first.number, first.what) if first is not None else UNCLEAR


def _judge_advice(pattern: Pattern, work: RecordedWork) -> Judgement:
    """Judge a success pattern by the share of steps done in order, or its sentence."""
    steps = [signs for step in pattern.steps if (signs := find_signs(step))]
    if not steps:
        steps = [signs for tool in pattern.tools if (signs := find_signs(_TOOL.sub(r"`\1`", tool))).commands]
    if len(steps) > 1:
        return _judge_steps(steps, work)
    return _judge_sentence(pattern.description or pattern.title, work)


def _judge_steps(steps: Sequence[Signs], work: RecordedWork) -> Judgement:
    actions = find_in_order(steps, work)
    share = len(actions) / len(steps)
    if share >= _HIGH_SHARE:
        return Judgement(True, actions[-1].number, f"{len(actions)} of {len(steps)} steps; {actions[-1].what}")
    has_ended = work.outcome in (Outcome.SUCCESS, Outcome.FAILURE)
    is_any_done = any(one.match is not Match.NO for step in steps for one in find_actions(step, work))
    if is_any_done or not has_ended or not work.edits or any(edit.is_hidden for edit in work.edits):
        return UNCLEAR
    return Judgement(False, work.edits[-1].number, f"none of {len(steps)} steps")


def _judge_sentence(text: str, work: RecordedWork) -> Judgement:
    """Judge advice: `Run make gen before npm test` or `Use npm ci, not npm install`."""
    parts = _TURN.split(text[:MAX_TEXT], maxsplit=1)
    advice, other = find_signs(parts[0]), find_signs(parts[1] if len(parts) > 1 else "")
    if len(advice.commands) == 2 and (order := _ORDER.search(parts[0])):
        is_leading = not find_signs(parts[0][: order.start()]).commands  # `After X, run Y`
        is_in_order = (order[0].lower() == "before") is not is_leading
        return _judge_order(*(advice.commands if is_in_order else advice.commands[::-1]), work)
    if len(advice.commands) > 1:
        return UNCLEAR
    actions = [*find_actions(advice, work)]
    done = [one for one in actions if one.match is Match.YES]
    wrong = [one for one in find_actions(other, work) if one.match is Match.YES]
    if done:
        return UNCLEAR if wrong else Judgement(True, done[0].number, done[0].what)
    if wrong and not other.is_conditional and not advice.is_conditional:
        return Judgement(False, wrong[0].number, wrong[0].what)
    otherwise = [one for one in actions if one.match is Match.OTHER and one.is_run]
    is_clear = not advice.is_conditional and not any(one.match is Match.UNCLEAR for one in actions)
    return Judgement(False, otherwise[0].number, otherwise[0].what) if otherwise and is_clear else UNCLEAR


def _judge_order(first: Run, then: Run, work: RecordedWork) -> Judgement:
    """Judge whether one program ran before another."""
    firsts = [run for run in work.runs if match_run(first, run) is Match.YES]
    later = [run for run in work.runs if match_run(then, run) is Match.YES]
    if firsts and later and work.runs.index(firsts[0]) < work.runs.index(later[0]):
        return Judgement(True, firsts[0].number, f"ran {firsts[0].text}")
    is_unclear = any(match_run(first, run) in (Match.UNCLEAR, Match.OTHER) for run in work.runs)
    if firsts or not later or is_unclear:
        return UNCLEAR
    return Judgement(False, later[0].number, f"ran {later[0].text} alone")


def _judge_template(pattern: Pattern, work: RecordedWork) -> Judgement:
    """Judge a template by its names in one action's code; absence shows nothing."""
    words = find_words(_HOLE.sub(" ", pattern.template_code[:MAX_TEXT]))
    for edit in work.edits:
        common = words & edit.words
        if len(common) > 1 and len(common) >= _MOST * len(words) and not is_test_file(edit.file):
            return Judgement(True, edit.number, f"edited {edit.file}: {', '.join(sorted(common))}")
    return UNCLEAR


_RULES: Final[Mapping[PatternType, Callable[[Pattern, RecordedWork], Judgement]]] = {
    PatternType.ERROR: _judge_error,
    PatternType.ANTI: _judge_warning,
    PatternType.SUCCESS: _judge_advice,
    PatternType.TEMPLATE: _judge_template,
}
