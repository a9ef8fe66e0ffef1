"""Fixes in the log of an attempt: a command fails, edits follow, and it passes.

See docs/extraction.md#attempts. One fix gives one record, whatever the number of its errors and edits.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.regexes import lazy_regex
from core.base.shell_commands import command_result, is_read_only, parse_results
from core.base.text import one_line, safe_matcher
from core.questions.extraction.changes import (
    Weakening,
    find_weakening,
    is_document,
    is_environment_error,
    is_install,
    is_undone,
    is_unrelated,
    teaches_nothing,
)
from core.questions.extraction.triggers import describe_failure, is_comparison
from core.records.debug_sessions import Failure
from core.records.episodes import Action
from core.retrieval.relevance import list_places
from core.tasks.changes import (
    Hunk,
    build_diff,
    compare_texts,
    edits_files,
    find_shell_hunks,
    has_diff_output,
    parse_diff,
    text_pairs,
)
from core.tasks.command_errors import find_command_errors
from core.tasks.error_messages import generalize_message, is_test_file
from core.tasks.log_summary import ActionCommand, parse_command, pick_error_line
from core.tasks.reasons import describe_hunks, find_reason, join_sentences, split_reason

if TYPE_CHECKING:
    from core.records.extractions import LoggedAttempt

_TOKEN: Final = lazy_regex(r"\w+|[^\w\s]")
_MAX_LINE: Final = 20_000  # line number up to which changes are followed


def find_net_changes(edits: Iterable[Action]) -> list[Hunk]:
    """Return the net hunks, without edits that a later one reverts or replaces."""
    files: dict[str, _File] = {}
    for action in edits:
        for hunk in hunks_of(action):
            files.setdefault(hunk.file, _File(hunk.file)).add(hunk)
        if not has_diff_output(action):
            for old, new in text_pairs(dict(action.params)):
                files.setdefault(action.target, _File(action.target)).replace(old, new)
    return [hunk for file in files.values() for hunk in file.net()]


def find_replacements(diff: str) -> frozenset[tuple[str, str]]:
    """Return the replacements in a diff: words and signs, with one space between.

    The unchanged parts of the lines are left out, so that the same change is found in other code.
    """
    pairs = set()
    for is_changed, block in groupby(diff.splitlines(), key=lambda line: line[:1] in ("+", "-")):
        lines = [line for line in block if is_changed and line[:3] not in ("+++", "---")]
        old, new = (_TOKEN.findall("\n".join(line[1:] for line in lines if line[0] == sign)) for sign in "-+")
        for kind, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                pairs.add((" ".join(old[start:end]), " ".join(new[first:last])))
    return frozenset(pairs)


def hunks_of(action: Action) -> list[Hunk]:
    """Return the hunks in an edit's output or, unless text pairs, in its parameters."""
    if has_diff_output(action):
        return parse_diff(action.output, action.target)
    if action.command and (hunks := find_shell_hunks(action.command)):
        return hunks
    return [] if [*text_pairs(dict(action.params))] else parse_diff("\n".join(build_diff(action)), action.target)


class _File:
    """A file known only by its hunks; unchanged lines are their original numbers."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: list[int | str] = list(range(1, _MAX_LINE))
        self._until = 0  # index after the last change; all lines from there on are as they were
        self._original: dict[int, str] = {}
        self._regions: list[tuple[str, str]] = []  # texts before and after, of edits without line numbers
        self._loose: list[Hunk] = []  # hunks whose place is unknown

    def add(self, hunk: Hunk) -> None:
        has_new = any(line[:1] != "-" for line in hunk.lines)
        place = hunk.new_start - 1 if has_new else hunk.new_start
        if (hunk.new_start <= 0 and has_new) or place + len(hunk.lines) >= _MAX_LINE or not self._fits(hunk, place):
            self._loose.append(hunk)
            return
        start, count = place, len(self._lines)
        for line in hunk.lines:
            kind, text = line[:1], line[1:]
            if kind == "+":
                self._lines.insert(place, text)
                place += 1
                continue
            at = self._lines[place]
            if isinstance(at, int):
                self._original[at] = text
            if kind == "-":
                del self._lines[place]
            else:
                place += 1
        moved = len(self._lines) - count if start < self._until else 0
        self._until = max(self._until + moved, place)

    def _fits(self, hunk: Hunk, place: int) -> bool:
        """Return whether the lines before the change are those that are known."""
        for line in hunk.lines:
            if line[:1] == "+":
                continue
            at = self._lines[place]
            text = self._original.get(at) if isinstance(at, int) else at
            if text is not None and text != line[1:]:
                return False
            place += 1
        return True

    def replace(self, old: str, new: str) -> None:
        for n, (before, after) in enumerate(self._regions):
            if old and old in after:
                self._regions[n] = before, after.replace(old, new, 1)
                return
            if after and after in old:
                self._regions[n] = old.replace(after, before, 1), new
                return
        self._regions.append((old, new))

    def net(self) -> Iterator[Hunk]:
        yield from self._changed_blocks()
        for before, after in self._regions:
            yield from compare_texts(self._name, before, after)
        yield from self._loose

    def _changed_blocks(self) -> Iterator[Hunk]:
        removed: list[str] = []
        added: list[str] = []
        before, expected = 0, 1
        for at in self._lines[: self._until + 1]:
            if isinstance(at, str):
                added.append(at)
                continue
            removed += [self._original.get(number, "") for number in range(expected, at)]
            if removed or added:
                yield from self._block(before, removed, added, at)
                removed, added = [], []
            before, expected = at, at + 1

    def _block(self, before: int, removed: Sequence[str], added: Sequence[str], after: int) -> Iterator[Hunk]:
        """Yield the lines that really differ, with one known line around them."""
        old = [*self._context(before), *removed, *self._context(after)]
        new = [*self._context(before), *added, *self._context(after)]
        lead = len(self._context(before))
        diff = difflib.unified_diff(old, new, lineterm="", n=1)
        for hunk in parse_diff("\n".join([*diff][2:]), self._name):
            yield hunk._replace(old_start=before + hunk.old_start - lead, new_start=before + hunk.new_start - lead)

    def _context(self, number: int) -> tuple[str, ...]:
        line = self._original.get(number)
        return () if line is None else (line,)


MAX_DIFF_LINES: Final = 10  # maximum number of changed lines in the diff of a lesson
MAX_EDITS: Final = 50  # maximum number of edits of one fix, the last ones
_MAX_RUNS: Final = 200  # maximum number of runs of one command
_MIN_NAME: Final = 3  # shorter words are not taken for names that an edit added
_MAX_COMMAND: Final = 80  # characters of a command in the message of an error without one
_ONLY_A_CODE: Final = lazy_regex(
    r"no message|(?:process |command )?(?:exit(?:ed)?|failed)(?: with)?(?: exit)?(?: code| status)?:? ?-?\d{0,5}\.?",
    re.IGNORECASE,
)


class AttemptFix(Struct, frozen=True, kw_only=True):
    """One fix: the errors, the net change that removed them, and why.

    If the change made a test check less, its description may be empty.
    """

    failures: tuple[Failure, ...]  # of the first failed run, the most specific first; never empty
    description: str
    diff: str  # the most relevant lines of the change
    files: tuple[str, ...]
    first: Action  # the failed run
    last: Action  # the run that passed, or that no longer had the errors
    weakening: Weakening = Weakening.NONE


class _Run(Struct):
    """One run of a command that has a result."""

    place: int
    command: ActionCommand
    has_failed: bool
    failures: tuple[Failure, ...] = ()
    output: str = ""  # of a failed run


class _Stage(NamedTuple):
    """A failed run, edits, and the run without its errors, though maybe with others."""

    run: _Run
    edits: Sequence[int]
    fixed: _Run


def find_fixes(logged: LoggedAttempt, root: str = "") -> list[AttemptFix]:
    """Return an attempt's fixes that teach something, in order of their passing runs."""
    return [fix for fix in _find_changes(logged, root) if not fix.weakening]


def find_weakening_changes(logged: LoggedAttempt, root: str = "") -> list[AttemptFix]:
    """Return the changes of an attempt that made a test pass by checking less."""
    return [fix for fix in _find_changes(logged, root) if fix.weakening]


def _find_changes(logged: LoggedAttempt, root: str) -> list[AttemptFix]:
    actions = logged.actions
    used: set[int] = set()
    fixes: list[AttemptFix] = []
    windows, failed = _find_windows(actions, root)
    for runs in windows:
        edits = [n for n in range(runs[0].place + 1, runs[-1].place) if is_edit(actions[n]) and n not in used]
        for stage in _split_stages(actions, runs, edits, failed):
            own = stage.edits
            last = [run for run in runs if run.has_failed and own and stage.run.place <= run.place < own[-1]][-1:]
            is_other = bool(last) and not _marks(stage.run.failures) & _marks(last[0].failures)
            if fix := _make_fix(logged, stage, has_other_error=is_other):
                used |= set(own)
                fixes.append(fix)
    return fixes


def _find_windows(actions: Sequence[Action], root: str) -> tuple[list[list[_Run]], list[_Run]]:
    """Return the runs of each command repeated after it failed, and all failed runs.

    The last run of a command passed, unless the command still failed at the end.
    """
    waiting: dict[tuple[str, ...], list[_Run]] = {}
    failed: list[_Run] = []
    windows: list[list[_Run]] = []
    for place, action in enumerate(actions):
        is_run = bool(action.command) and not (is_read_only(action.command) or edits_files(action.command))
        if not is_run or (is_passed := has_passed(action)) is None:
            continue
        command = parse_command(action)
        if not is_passed:
            run = _Run(place, command, True, find_failures(action, root), f"{action.error}\n{action.output}")
            failed.append(run)
            if len(own := waiting.setdefault(command.key, [])) < _MAX_RUNS:
                own.append(run)
            continue
        for key, own in list(waiting.items()):
            # A chain of commands counts as the failed one that it contains.
            parts = [set(run.command.parts) for run in own if run.command.parts]
            if key != command.key and not any(some <= set(command.parts) for some in parts):
                continue
            covered = [run for run in own if command.covers(run.command) or _names(command, run)]
            if not covered:
                continue
            if any(is_edit(actions[n]) for n in range(covered[-1].place + 1, place)):  # else it passes by chance
                windows.append([*covered, _Run(place, command, False)])
            waiting[key] = [run for run in own if run not in covered]
            if not waiting[key]:
                del waiting[key]
    passed = [runs for runs in windows if not _recurs(runs[0].failures, runs[-1], failed)]
    return passed + [own for own in waiting.values() if len(own) > 1], failed


def is_edit(action: Action) -> bool:
    """Return whether an action changed files, by a tool or by a shell command."""
    return action.changed_file or (not action.has_failed and edits_files(action.command))


def has_passed(action: Action) -> bool | None:
    """Return whether a command passed; None if neither exit code nor report shows it."""
    if action.has_failed:
        return False
    return command_result(action.command, f"{action.output}\n{action.error}", action.success)


def _names(command: ActionCommand, run: _Run) -> bool:
    """Return whether a command runs only some tests, and all that failed in a run.

    If the tests are unknown, the output of the run must name all files of the command.
    """
    if not command.check or command.check != run.command.check or not run.failures:
        return False
    if not any(one.test_file or one.test_name for one in run.failures):
        files = [word.partition("::")[0].rpartition("/")[2] for word in command.words if not word.startswith("-")]
        return bool(files) and all(file in run.output for file in files)
    words = " ".join(command.words)
    names = [{one.test_file.rpartition("/")[2], one.test_name.rpartition("::")[2]} - {""} for one in run.failures]
    return all(own and any(name in words for name in own) for own in names)


def _recurs(failures: Sequence[Failure], fixed: _Run, failed: Sequence[_Run]) -> bool:
    """Return whether errors returned after `fixed`; a comparison, in the same test."""
    marks = _marks(failures)
    own = (one.message for one in failures if not is_comparison(describe_failure(one)))
    again = [safe_matcher(pattern) for message in own if (pattern := generalize_message(message))]
    later = (run for run in failed if run.place > fixed.place)
    return any(
        marks & _marks(run.failures) or any(one.matches(other.message) for one in again for other in run.failures)
        for run in later
    )


def _marks(failures: Iterable[Failure]) -> set[str]:
    """Return the tests of failures, or else their messages without numbers."""
    marks = set()
    for failure in failures:
        test = [place for place in list_places(failure) if "::" in place and failure.test_name]
        marks.add(test[0] if test else re.sub(r"\d+", "0", failure.message))
    return marks


def _split_stages(
    actions: Sequence[Action], runs: Sequence[_Run], edits: Sequence[int], failed: Sequence[_Run]
) -> Iterator[_Stage]:
    """Split a series of runs where errors were fixed and others remained or appeared.

    If the last run failed, too, only the errors that were fixed before it are a stage.
    """
    start = runs[0]
    for before, run in pairwise(runs):
        own = [n for n in edits if start.place < n < run.place]
        if not run.has_failed:
            # Whether the errors of the first run return is known for the whole series.
            if start is runs[0] or not _recurs(start.failures, run, failed):
                yield _Stage(start, own[-MAX_EDITS:], run)
            return
        later = [n for n in edits if n > run.place]
        is_edited = any(n > before.place for n in own)
        if not is_edited or not start.failures or not run.failures or _is_replaced(actions, own, later):
            continue
        fixed = _find_vanished(start, run)
        if not fixed or _recurs(fixed, run, failed):
            is_removed = _is_elsewhere(actions, start, run, own) or _was_hidden(actions, start, run, own)
            if runs[-1].has_failed or not is_removed:
                continue
            fixed = start.failures
        yield _Stage(_Run(start.place, start.command, True, fixed), own[-MAX_EDITS:], run)
        start = run


def _find_vanished(before: _Run, after: _Run) -> tuple[Failure, ...]:
    """Return the tests that no longer fail; () if others do, or if any is unnamed."""
    marks, marks_after = _marks(before.failures), _marks(after.failures)
    every = (*before.failures, *after.failures)
    if not marks_after < marks or not after.command.covers(before.command) or not all(one.test_name for one in every):
        return ()
    for run, named in ((before, marks), (after, marks_after)):
        counted = parse_results(run.output)
        if counted is None or counted.failing != len(named):
            return ()
    return tuple(one for one in before.failures if not _marks((one,)) & marks_after)


def _is_elsewhere(actions: Sequence[Action], before: _Run, after: _Run, edits: Sequence[int]) -> bool:
    """Return whether the first error is gone and the others are in untouched files."""
    if _marks(before.failures[:1]) & _marks(after.failures):
        return False
    edited = {hunk.file for n in edits for hunk in hunks_of(actions[n])} | {actions[n].target for n in edits}
    fixed = [one for one in before.failures if not _marks((one,)) & _marks(after.failures)]
    touched = edited | {file for one in fixed for file in (one.file, one.test_file)}
    files = [{one.file, one.test_file} - {""} for one in after.failures]
    return all(own_files and not own_files & touched for own_files in files)


def _was_hidden(actions: Sequence[Action], before: _Run, after: _Run, edits: Sequence[int]) -> bool:
    """Return whether the edits fixed all errors, and unrelated hidden ones appeared.

    A comparison of values may only be another effect of the same error.
    """
    if any(is_comparison(describe_failure(one)) for one in (*before.failures, *after.failures)):
        return False
    errors = [{generalize_message(describe_failure(one)) for one in run.failures} for run in (before, after)]
    added = {word for word in _added_tokens(actions, edits) if len(word) >= _MIN_NAME and word.isidentifier()}
    named = {word for one in after.failures for word in re.findall(r"\w+", one.message)}
    return not errors[0] & errors[1] and not added & named


def _is_replaced(actions: Sequence[Action], edits: Sequence[int], later: Sequence[int]) -> bool:
    """Return whether a later edit removes tokens that these edits added to its lines."""
    added = {line for n in edits for line in _lines(actions[n], "+")}
    for n in later:
        if any(one in other or other in one for one in _lines(actions[n], "-") for other in added):
            removed = {token for old, _ in _replacements(actions[n]) for token in old.split()}
            if removed & _added_tokens(actions, edits):
                return True
    return False


def _lines(action: Action, sign: str) -> set[str]:
    """Return the stripped lines that an edit added (`+`) or removed (`-`)."""
    lines = (line for hunk in hunks_of(action) for line in hunk.lines if line[:1] == sign)
    return {line[1:].strip() for line in lines} - {""}


def _added_tokens(actions: Sequence[Action], edits: Sequence[int]) -> set[str]:
    return {token for n in edits for _, new in _replacements(actions[n]) for token in new.split()}


def _replacements(action: Action) -> frozenset[tuple[str, str]]:
    return find_replacements(render_hunks(hunks_of(action)))


def _make_fix(logged: LoggedAttempt, stage: _Stage, *, has_other_error: bool) -> AttemptFix | None:
    actions = logged.actions
    run, edits, fixed = stage
    first, last = actions[run.place], actions[fixed.place]
    between = [actions[n] for n in range(run.place + 1, fixed.place)]
    if not edits or is_environment_error(first, run.failures):
        return None
    if any(is_install(one) for one in between) and any(
        re.search(r"(?i)module|package|command|cannot find|not found|import", one.message) for one in run.failures
    ):
        return None
    changes = [actions[n] for n in edits]
    hunks = find_net_changes(changes)
    hunks = [hunk for hunk in hunks if not is_document(hunk.file)] or hunks
    if not hunks and any(map(hunks_of, changes)):
        return None  # all edits were reverted
    targets = [action.target for action in changes]
    commands = [action.command for action in changes if action.command]
    earlier = (hunk for action in actions[: run.place] if is_edit(action) for hunk in hunks_of(action))
    if is_undone(hunks, earlier, commands):
        return None
    failures = run.failures or (Failure(message=f"`{one_line(first.command, _MAX_COMMAND)}` failed"),)
    end = "" if fixed.has_failed else logged.attempt.reason  # after a partial success, it is about the rest
    words = _find_words(changes, end, has_other_error=has_other_error)
    return _judge_fix(first, last, failures, hunks, targets, commands, words)


def find_recorded_fix(
    first: Action, last: Action, failures: Sequence[Failure], diff: str, files: Sequence[str], words: str
) -> AttemptFix | None:
    """Return the fix between two runs, from the recorded diff, files and words."""
    if is_environment_error(first, failures):
        return None
    hunks = parse_diff(diff, next(iter(files), "")) or _without_headers(diff, next(iter(files), ""))
    hunks = [hunk for hunk in hunks if not is_document(hunk.file)] or hunks
    return _judge_fix(first, last, tuple(failures), hunks, files, (), words)


def _without_headers(diff: str, file: str) -> list[Hunk]:
    """Return the changed lines of a diff that has no line with their numbers."""
    lines = tuple(line for line in diff.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---"))
    return [Hunk(file, 0, 0, lines)] if lines else []


def _judge_fix(
    first: Action,
    last: Action,
    failures: tuple[Failure, ...],
    hunks: Sequence[Hunk],
    targets: Sequence[str],
    commands: Sequence[str],
    words: str,
) -> AttemptFix | None:
    """Return a fix with its most relevant lines; None if it gives no lesson."""
    weakening = find_weakening(hunks, targets, commands)
    if not weakening and (teaches_nothing(hunks, targets) or is_unrelated(first, failures, hunks, targets)):
        return None
    chosen = choose_lines(hunks, failures)
    description = words or describe_hunks(chosen)
    if not description and not weakening:
        return None
    return AttemptFix(
        failures=failures,
        description=description,
        diff=render_hunks(chosen),
        files=tuple(dict.fromkeys(filter(None, (*(hunk.file for hunk in chosen), *targets)))),
        first=first,
        last=last,
        weakening=weakening,
    )


def _find_words(edits: Sequence[Action], end: str, *, has_other_error: bool) -> str:
    """Return the reason before the last edit, else at the end, else before others.

    If the first edit removed the error and the last one another error, both have a reason.
    """
    reasons = list(dict.fromkeys(action.reasoning for action in reversed(edits) if action.reasoning))
    if has_other_error and len(reasons) > 1 and not _is_replaced(edits, [0], range(1, len(edits))):
        first, last = (split_reason(text)[:1] for text in (reasons[-1], reasons[0]))
        if first and last:
            return join_sentences((*first, *last))
    return find_reason((*reasons[:1], end)) or find_reason(reasons[1:])


def find_failures(action: Action, root: str) -> tuple[Failure, ...]:
    """Return a failed command's errors, else its most informative line."""
    if failures := find_command_errors(action.error, action.output, root):
        return failures
    line = pick_error_line(action.error, action.output)
    return () if _ONLY_A_CODE.fullmatch(line) else (Failure(message=line),)


def choose_lines(hunks: Sequence[Hunk], failures: Sequence[Failure]) -> list[Hunk]:
    """Return the hunks nearest the errors, of at most `MAX_DIFF_LINES` changed lines."""
    files = [one.file for one in failures if one.file]
    functions = [one.function for one in failures if one.function]
    words = {word for one in failures[:3] for word in re.findall(r"\w{3,}", one.message)}

    def rank(item: tuple[int, Hunk]) -> tuple[bool, bool, bool, bool, int, int]:
        number, hunk = item
        text = "\n".join(hunk.lines)
        near = any(name in text for name in functions) or any(re.search(rf"\b{re.escape(w)}\b", text) for w in words)
        is_import = all(
            re.match(r"[+-]\s*(?:import|from|#include|use|using|require|const .*require)\b|[+-]\s*$", line)
            for line in hunk.lines
            if line[:1] in "+-"
        )
        size = sum(line[:1] in "+-" for line in hunk.lines)
        return is_test_file(hunk.file), hunk.file not in files, not near, is_import, size, number

    lines_left, chosen = MAX_DIFF_LINES, list[tuple[int, Hunk]]()
    for number, hunk in sorted(enumerate(hunks), key=rank):
        size = sum(line[:1] in "+-" for line in hunk.lines)
        if is_test_file(hunk.file) and any(not is_test_file(one.file) for _, one in chosen):
            continue
        if size <= lines_left:
            chosen.append((number, hunk))
            lines_left -= size
        elif not chosen:
            chosen.append((number, _cut(hunk)))
            break
    return [hunk for _, hunk in sorted(chosen, key=lambda item: item[0])]


def _cut(hunk: Hunk) -> Hunk:
    """Return a long hunk with some of its removed and some of its added lines."""
    removed = [line for line in hunk.lines if line[:1] == "-" and line[1:].strip()]
    added = [line for line in hunk.lines if line[:1] == "+" and line[1:].strip()]
    less = min(len(removed), max(MAX_DIFF_LINES - len(added), MAX_DIFF_LINES // 3))
    return hunk._replace(lines=(*removed[:less], *added[: MAX_DIFF_LINES - less]))


def render_hunks(hunks: Sequence[Hunk]) -> str:
    """Render hunks as a diff with the file names, without line numbers."""
    lines: list[str] = []
    last = ""
    for hunk in hunks:
        if hunk.file != last:
            lines.append(f"@@ {hunk.file} @@")
        elif lines:
            lines.append("@@")
        lines += hunk.lines
        last = hunk.file
    return "\n".join(lines)
