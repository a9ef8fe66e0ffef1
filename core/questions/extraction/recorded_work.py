"""Recorded effects of an attempt's actions: edits, programs that ran, and errors.

Also the decomposition strategies in use; docs/scoring.md#decomposition-strategies.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.regexes import lazy_regex
from core.base.shell_commands import is_read_only, parse_check
from core.base.text import visible_line
from core.learning.inversion import extract_strategies, load_expressions
from core.learning.outcomes import Verdict
from core.questions.extraction.attempt_fixes import find_failures, has_passed, is_edit
from core.questions.extraction.changes import is_document
from core.questions.extraction.triggers import clean_message
from core.records.episodes import Action
from core.records.events import Event, event_id
from core.records.extractions import Extraction, Proposal
from core.records.patterns import DECOMPOSITION_TAG, Pattern, PatternType
from core.retrieval.relevance import matches_failure
from core.retrieval.task import is_decomposition
from core.tasks.changes import Hunk, build_diff, find_shell_hunks, has_diff_output, parse_diff
from core.tasks.log_summary import parse_command

if TYPE_CHECKING:
    from core.learning.scoreboard import Scoreboard
    from core.records.debug_sessions import Failure
    from core.records.loops import Iteration, Outcome
    from core.records.snapshot import Snapshot


MAX_TEXT: Final = 20_000
"""Maximum number of characters of a fix, an edit or a command that are compared."""
_MAX_PROGRAMS: Final = 50  # of one command
_WORD: Final = lazy_regex(r"[A-Za-z_]\w{2,79}|\?\.|\?\?|<=|>=|&&|\|\||!==|===|\*\*|\.\.\.")  # names and some operators
_COMMON: Final = """\
add and any are args array assert async await bool boolean break but case catch char class const continue data def
default defer del dict elif else enum err error except exception export extends false file final finally fix float for
from func function get given idx if impl import instead int integer interface into item items key len let list log
main make map match max min mod module must mut name new nil none not null number object only out package pass print
private pub public raise result return self set should static str string struct super switch test tests that the then
this throw throws true try tuple type undefined unknown use using value values var vec void when while with yield"""
_COMMON_WORDS: Final = frozenset(_COMMON.split())
"""Words that are in code of all kinds, so that sharing one of them shows nothing."""
_STRING: Final = lazy_regex(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n<>&]|\\.)*'")  # not the lifetimes of Rust
_HASH_FILES: Final = lazy_regex(
    r"(?i).*(?:\.(?:py|pyi|sh|bash|rb|ya?ml|toml|pl|r|cfg|ini|exs?|nix)|makefile|dockerfile)$"
)
_DASH_FILES: Final = lazy_regex(r"(?i).*\.(?:sql|lua|hs|elm)$")
_QUOTED: Final = r"(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)*`)"
_HASH_COMMENT: Final = lazy_regex(rf"{_QUOTED}|(?:^|(?<=\s))#.*", re.MULTILINE)
_DASH_COMMENT: Final = lazy_regex(rf"{_QUOTED}|--(?:\s.*|$)", re.MULTILINE)
_SLASH_COMMENT: Final = lazy_regex(
    rf"{_QUOTED}|//.*|/\*(?:[^*\n]|\*(?!/))*(?:\*/|$)|^[ \t]*\*(?:[ \t/].*|$)|<!--.*?(?:-->|$)|^[ \t]*#[ \t].*",
    re.MULTILINE,
)
_DOCSTRING: Final = lazy_regex(r"^[ \t]*[rbu]?(\"\"\"|''')(?s:.*?)(?:\1|\Z)", re.MULTILINE)
_PROSE: Final = lazy_regex(
    r"^[ \t]*(?!(?:from|import|return|if|elif|assert|raise|for|while|del|global|nonlocal|not|yield|await|with|let|use"
    r"|package|func|fn|def|class|except|catch|case|else|const|var|export|delete|throw|new|pub|static|public|private|select|insert|update|create|alter)\b)"
    r"[A-Za-z][\w'’,-]*(?: [\w'’,-]+){3,}\.?[ \t]*$",
    re.MULTILINE,
)  # a line of a text inside of a docstring or comment that began before
_LAUNCHERS: Final = (
    *(("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("python", "-m"), ("python3", "-m")),
    *(("bundle", "exec"), ("npx",), ("bunx",), ("sudo",), ("env",), ("time",), ("nohup",), ("exec",), ("command",)),
)
_GIT_PLACE: Final = ("-C", "-c", "--git-dir", "--work-tree")  # options of git before its command, with a value
_HARMLESS: Final = lazy_regex(
    r"(?:git (?:add|commit|push|fetch|tag|status|log|diff|show|branch)|cd|mkdir|sleep|export|source|touch|chmod|curl"
    r"|kill|pkill|ps|ralphdeck|which|gh|node --version|exit|set|wait|test|\[)(?: |$)"
)  # programs that do not change code


_TURN_CHECK: Final = "check"  # the command of the runs in a turn


class Edit(NamedTuple):
    """One changed file of an action, without comments and code that was there before."""

    number: int  # of the action
    place: int  # of the action, from 0
    file: str
    added: str
    removed: str
    words: frozenset[str]  # names and operators that the edit adds
    is_hidden: bool = False  # whether the action does not show what it changed


class Run(NamedTuple):
    """One program that a command ran."""

    number: int  # of the action
    place: int
    program: str
    arguments: tuple[str, ...]  # without options
    options: frozenset[str]
    lead: tuple[str, ...] = ()  # the arguments before the first option, such as a subcommand
    text: str = ""


class Window(NamedTuple):
    """The actions between an error and its end (or that of the log), by place."""

    start: int
    end: int
    is_solved: bool


class ActionLog:
    """An attempt's actions with errors parsed once; `root` is the project's folder."""

    def __init__(self, actions: Sequence[Action], root: str = "") -> None:
        self.actions = actions
        self._root = root

    @cached_property
    def failed(self) -> list[tuple[int, tuple[Failure, ...]]]:
        """The failed commands by place, with their errors."""
        failed = ((place, one) for place, one in enumerate(self.actions) if has_passed(one) is False)
        return [(place, find_failures(one, self._root)) for place, one in failed]

    def find_errors(self, pattern: Pattern) -> list[int]:
        """Return the places of the actions that failed with the error of a pattern."""
        return [place for place, found in self.failed if any(is_error_of(pattern, one) for one in found)]

    def has_error(self, pattern: Pattern, since: datetime) -> bool:
        """Return whether an action failed with a pattern's error after a moment."""
        actions = (self.actions[place] for place in self.find_errors(pattern))
        return any(one.has_failed and (one.at is None or one.at > since) for one in actions)


class RecordedWork:
    """What the actions of an attempt that ended did after a moment."""

    def __init__(self, log: ActionLog, given_at: datetime, outcome: Outcome) -> None:
        self.actions = actions = log.actions
        self.outcome = outcome
        self._log = log
        after = (place for place, one in enumerate(actions) if one.at is None or one.at >= given_at)
        self.start = next(after, len(actions))  # place of the first action after it

    def find_errors(self, pattern: Pattern) -> list[int]:
        """Return where actions failed with a pattern's error, also before the moment."""
        return self._log.find_errors(pattern)

    def find_windows(self, pattern: Pattern) -> list[Window]:
        """Return the windows in which a given pattern's error had to be fixed."""
        windows = []
        for place in self.find_errors(pattern):
            command = parse_command(self.actions[place])
            later = range(place + 1, len(self.actions))
            passed = ((n, parse_command(self.actions[n])) for n in later if has_passed(self.actions[n]))
            end = next((n for n, own in passed if own.key == command.key and own.covers(command)), None)
            if end is None:
                windows.append(Window(max(place, self.start - 1), len(self.actions), False))
            elif end >= self.start:
                windows.append(Window(max(place, self.start - 1), end, True))
        return windows

    @cached_property
    def edits(self) -> list[Edit]:
        """The edits after the moment, without those of documents."""
        seen: dict[str, set[str]] = {}  # names in what earlier actions showed of a file
        edits: list[Edit] = []
        for place, action in enumerate(self.actions):
            if is_edit(action):
                if place >= self.start:
                    edits += (one for one in _find_edits(action, place, seen) if not is_document(one.file))
            elif action.target and not action.command and action.output:
                seen.setdefault(action.target, set()).update(find_words(action.output))
        return edits

    @cached_property
    def runs(self) -> list[Run]:
        """The programs that ran after the moment, also those that failed."""
        return [
            run._replace(number=action.number, place=place)
            for place, action in enumerate(self.actions[self.start :], self.start)
            for run in (parse_programs(action.command[:MAX_TEXT]) if action.command else ())
        ]

    def may_hide_edits(self, start: int, end: int) -> bool:
        """Return whether a command between two places may hide changes of files."""
        return any(_may_edit(one.command) for one in self.actions[start:end] if one.command and not is_edit(one))


def is_error_of(pattern: Pattern, failure: Failure) -> bool:
    """Return whether a failure is a pattern's error, by trigger or else by message."""
    if not pattern.error_pattern:
        return bool(pattern.error_message) and pattern.error_message == clean_message(failure)
    return matches_failure(pattern, failure)


def _find_edits(action: Action, place: int, seen: dict[str, set[str]]) -> Iterator[Edit]:
    shows_diff = has_diff_output(action)
    is_shell = bool(action.command) and not shows_diff
    hunks = find_shell_hunks(action.command) if is_shell else parse_diff("\n".join(build_diff(action)), action.target)
    if not hunks:
        yield Edit(action.number, place, action.target, "", "", frozenset(), is_hidden=True)
    for file in dict.fromkeys(hunk.file for hunk in hunks):
        own = [hunk for hunk in hunks if hunk.file == file]
        added, removed, context = (strip_comments(lines_of(own, sign), file) for sign in "+- ")
        words = find_words(added) - find_words(removed) - find_words(context)
        if not removed.strip():  # a file that was written as a whole, or new lines
            words -= seen.get(file, set())
        yield Edit(action.number, place, file, added, removed, frozenset(words))


def lines_of(hunks: Iterable[Hunk], sign: str) -> str:
    """Return the lines of hunks that begin with a sign, without it."""
    return "\n".join(line[1:] for hunk in hunks for line in hunk.lines if line[:1] == sign)[:MAX_TEXT]


def strip_comments(code: str, file: str) -> str:
    """Return code without comments and without prose, by the kind of the file."""
    if _HASH_FILES.match(file):
        code = _HASH_COMMENT.sub(_keep_quoted, _DOCSTRING.sub("", code))
    elif _DASH_FILES.match(file):
        code = _DASH_COMMENT.sub(_keep_quoted, code)
    else:
        code = _SLASH_COMMENT.sub(_keep_quoted, code)
    return _PROSE.sub("", code)


def _keep_quoted(match: re.Match[str]) -> str:
    return match[1] or ""


def find_words(code: str) -> set[str]:
    """Return distinctive names and operators in code, casefolded, without strings."""
    words = (word.casefold() for word in _WORD.findall(_STRING.sub('""', code[:MAX_TEXT])))
    return {word for word in words if word not in _COMMON_WORDS}


@lru_cache(1024)  # agents repeat their commands
def parse_programs(command: str, depth: int = 0) -> tuple[Run, ...]:
    """Return a shell command's programs, without quoted texts and here-documents."""
    head = command.split("<<", 1)[0].replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(head, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and not set(word) - set(";|&()"):
                parts.append([])
            elif len(parts) <= _MAX_PROGRAMS:
                parts[-1].append(word)
    except ValueError:  # an open quotation mark
        return ()
    runs: list[Run] = []
    for part in filter(None, map(_without_launchers, parts)):
        name = part[0].rpartition("/")[2]
        if name in ("bash", "sh", "zsh") and "-c" in part[:-1] and depth < 1:
            runs += parse_programs(part[part.index("-c") + 1], depth + 1)
        else:
            runs.append(_make_run(name, part[1:]))
    return tuple(runs)


def _without_launchers(words: list[str]) -> list[str]:
    while words:
        if re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
            words = words[1:]
            continue
        names = (words[0].rpartition("/")[2], *words[1:2])
        launcher = next((one for one in _LAUNCHERS if names[: len(one)] == one), None)
        if launcher is None or len(words) == len(launcher):
            break
        words = words[len(launcher) :]
    return words


def _make_run(program: str, words: Sequence[str]) -> Run:
    arguments: list[str] = []
    lead: list[str] = []
    options: set[str] = set()
    skips = False
    for word in words:
        if skips:
            skips = False
        elif program == "git" and not arguments and word in _GIT_PLACE:
            skips = True
        elif re.fullmatch(r"\d?[<>]+&?\d?|[<>]+.*", word):
            break  # a redirection
        elif re.fullmatch(r"-[A-Za-z]{2,}", word) and program not in ("go", "find", "java", "terraform"):
            options.update(f"-{letter}" for letter in word[1:])
        elif word.startswith("-") and len(word) > 1:
            options.add(word)
            options.add(word.partition("=")[0])
        else:
            arguments.append(word)
            if not options:
                lead.append(word)
    return Run(0, 0, program, tuple(arguments), frozenset(options), tuple(lead), " ".join((program, *words)))


def _may_edit(command: str) -> bool:
    """Return whether a command may change files: it is not known to leave code alone."""
    text = command[:MAX_TEXT]
    if is_read_only(text):
        return False
    runs = parse_programs(text)
    if not runs:
        return True
    is_check = bool(parse_check(text)[0])
    if is_check and not any("fix" in option or option in ("-w", "-i", "-u") for run in runs for option in run.options):
        return False
    names = (" ".join((run.program, *run.arguments[:1])) for run in runs)
    return not all(_HARMLESS.match(name) or is_read_only(name) or parse_check(name)[0] for name in names)


def make_turn_actions(
    turn: Iteration, errors: Sequence[Failure] | None = None, *, is_fixed: bool = False
) -> list[Action]:
    """Return an iteration as a log: a failed run, an edit, a run that passed.

    All have its number, and all runs are of one check: a transcript names the failed command only in short. With
    `is_fixed`, the last run passed although the iteration does not record that.
    """
    errors = turn.failures if errors is None else errors
    number, check = turn.number or 0, (("command", _TURN_CHECK),)
    actions: list[Action] = []
    if errors:
        printed = "\n".join(": ".join(filter(None, (one.error_type, one.message))) for one in errors)
        actions.append(Action(number=number, type="bash", params=check, success=False, error=printed, at=turn.at))
    files = turn.fix.files if turn.fix is not None and turn.fix.files else turn.files
    if files or turn.fix is not None:
        diff, words = (turn.fix.diff, turn.fix.description) if turn.fix is not None else ("", "")
        target = (("file_path", files[0]),) if files else ()
        actions.append(
            Action(number=number, type="edit", params=target, success=True, output=diff, reasoning=words, at=turn.at)
        )
    if is_fixed or turn.has_succeeded or (turn.fix is not None and turn.fix.verified):
        actions.append(Action(number=number, type="bash", params=check, success=True, at=turn.at))
    return actions


CATEGORY: Final = "architecture"  # task category of a strategy; the pattern file format has none for planning
_MAX_CONTENT: Final = 120  # maximum number of characters of a text that names a new strategy
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")
_MAX_SLUG: Final = 60
_SPACES: Final = re.compile(r"\s+")


def parse_strategies(text: str) -> tuple[str, ...]:
    """Return the common strategies in a report; if none, the report itself if short."""
    if found := extract_strategies(text):
        return tuple(found)
    name = _SPACES.sub(" ", text).strip()
    return (name,) if name and len(name) <= _MAX_CONTENT and visible_line(name) == name else ()


def find_used_strategies(work_id: str, snapshot: Snapshot, board: Scoreboard) -> tuple[str, ...]:
    """Return the strategies in a reported outcome, or else in the description."""
    outcome = board.outcome(work_id)
    if outcome is not None and outcome[0].strategy.strip():
        return parse_strategies(outcome[0].strategy)
    attempt, loop = snapshot.attempts.get(work_id), snapshot.loops.get(work_id)
    if attempt is not None:
        return tuple(extract_strategies(attempt.plan))
    if loop is not None and is_decomposition(loop.task):
        return tuple(extract_strategies(loop.task))
    return ()


def list_work_ids(source_id: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the ID of the loop, and of the attempts at its tasks or at this task."""
    tasks = {source_id, *(task.id for task in snapshot.tasks.values() if task.loop_id == source_id)}
    attempts = sorted(id for id, attempt in snapshot.attempts.items() if attempt.task_id in tasks)
    return (*([source_id] if source_id in snapshot.loops else []), *attempts)


def is_common(name: str) -> bool:
    """Return whether a strategy is a common one, whose text is known to be safe."""
    return name in load_expressions()


def find_strategies(names: Iterable[str], patterns: Mapping[str, Pattern]) -> tuple[dict[str, Pattern], list[str]]:
    """Return the patterns by strategy name, and the names without a pattern."""
    by_name = {
        _normalize_name(pattern.description or pattern.title): pattern
        for pattern in patterns.values()
        if pattern.type is PatternType.SUCCESS and DECOMPOSITION_TAG in pattern.tags
    }
    used = {name: by_name[_normalize_name(name)] for name in names if _normalize_name(name) in by_name}
    return used, [name for name in dict.fromkeys(names) if name not in used]


def propose_strategies(work_id: str, names: Sequence[str]) -> Extraction:
    """Propose patterns for new strategies. They have no counts: uses are events."""
    proposals = []
    for name in names:
        record = {
            "type": "success_pattern",
            "name": name,
            "task_category": CATEGORY,
            "approach": {"description": name, "steps": []},
            "success_rate": 0.0,
            "usage_count": 0,
            "tags": [DECOMPOSITION_TAG],
        }
        words = _NOT_SLUG.sub("-", name.lower()).strip("-")[:_MAX_SLUG].strip("-")
        slug = f"strategy-{words}" if words else "strategy"
        proposals.append(Proposal(type=PatternType.SUCCESS, slug=slug, record=record, trace=("its strategy",)))
    return Extraction(source_id=f"strategies of {work_id}", proposals=tuple(proposals))


def make_use_events(
    work_id: str, patterns: Iterable[Pattern], snapshot: Snapshot, board: Scoreboard, now: datetime, by: str
) -> Iterator[Event]:
    """Yield events for the uses of strategies that are not recorded yet.

    The result is that of the work item. A neutral outcome without success counts as a failure of the strategy.
    """
    outcome = board.outcome(work_id)
    if outcome is None:
        return
    signals, scored = outcome
    result = False if not signals.success and scored.verdict is Verdict.NEUTRAL else None
    loop = snapshot.loops.get(work_id)
    names = {work_id, *(loop.aliases if loop is not None else ())}
    for pattern in patterns:
        own = [event for event in snapshot.events if event.pattern_id == pattern.id and event.loop_id in names]
        recorded = [event.success for event in own if event.kind in ("applied", "outcome", "feedback")]
        if recorded and result in (None, recorded[-1]):
            continue
        yield Event(
            id=event_id(now), at=now, kind="applied", pattern_id=pattern.id, loop_id=work_id, success=result, by=by
        )


def _normalize_name(name: str) -> str:
    return _SPACES.sub(" ", name).strip().casefold()
