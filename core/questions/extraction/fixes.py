"""Repairs, also those in reflections; docs/extraction.md#error-patterns.

Also the category, description and tags of a fix, and the code that it adds as a template.
"""

from __future__ import annotations

import builtins
import keyword
import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml
from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.base.polarity import parse_warning
from core.base.regexes import lazy_regex
from core.base.steps import group_pairs
from core.base.text import one_line, replace_surrogates, strip_label
from core.questions.extraction.attempt_fixes import AttemptFix, find_fixes, find_recorded_fix
from core.questions.extraction.changes import is_environment_error
from core.questions.extraction.recorded_work import make_turn_actions
from core.questions.extraction.triggers import (
    Sighting,
    classify_error_type,
    count_failing,
    describe_failure,
    extract_message,
    find_errors,
    is_comparison,
    parse_error,
)
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure, Fix
from core.records.episodes import Action, Attempt
from core.records.extractions import LoggedAttempt
from core.records.loops import Iteration, Outcome
from core.retrieval.task import analyse_task
from core.tasks.command_errors import find_command_errors
from core.tasks.error_messages import generalize_message
from core.tasks.log_summary import parse_command
from core.tasks.reasons import join_sentences, split_reason

if TYPE_CHECKING:
    from core.records.events import Event
    from core.records.extractions import Material
    from core.records.reflections import Reflection


_MAX_REASONS: Final = 3
_VAGUE: Final = frozenset({"AssertionError", "Other"})  # types of errors that may only show the effect of another one


class Repair(Struct, frozen=True, kw_only=True):
    """An error, and the change after which it was gone and the tests passed."""

    error: Sighting
    description: str  # the loop's own description of the change
    diff: str = ""
    files: tuple[str, ...] = ()
    cause: str = ""  # root cause category of a debug session, or ""
    trace: str  # the records of error and fix, for display
    at: datetime | None = None  # when it was fixed
    agent: str = ""  # who fixed it, or ""
    failures: tuple[Failure, ...] = ()  # for a fix of an attempt or debug session: the errors that it removed


def find_repairs(material: Material) -> tuple[Repair, ...]:
    """Return all repairs; those with code are first."""
    is_session = material.loop is not None and material.loop.is_agent_session
    repairs = [
        *(repair for session in material.sessions for repair in _of_session(session)),
        *(_of_turns(material) if is_session else _of_iterations(material.iterations)),
        *_of_log(material.errors, material.resolved, material.iterations),
    ]
    return tuple(sorted(repairs, key=lambda repair: not repair.diff))


def drop_same_fixes(repairs: Iterable[Repair]) -> list[Repair]:
    """Return one repair for each fix: of the first error that is not an assertion."""
    best: dict[tuple[str, str], Repair] = {}
    for repair in repairs:
        fix = (one_line(repair.description).casefold(), repair.diff or repair.trace)
        chosen = best.get(fix)
        if chosen is None or (chosen.error.error_type in _VAGUE and repair.error.error_type not in _VAGUE):
            best[fix] = repair
    return list(best.values())


def has_passed(iteration: Iteration) -> bool:
    """Return whether the tests pass at the end of an iteration."""
    green = iteration.results.green if iteration.results is not None else None
    return iteration.outcome is Outcome.SUCCESS if green is None else green


def describe_action(iteration: Iteration) -> str:
    """Return the iteration's own description of what it did, or ""."""
    return strip_label(iteration.fix.description if iteration.fix and iteration.fix.description else iteration.action)


def _of_iterations(iterations: Sequence[Iteration]) -> Iterator[Repair]:
    """Yield the errors of each iteration that the next one fixed permanently."""
    errors_of = [tuple(find_errors(iteration)) for iteration in iterations]
    last_pass = max((index for index, iteration in enumerate(iterations) if has_passed(iteration)), default=-1)
    last = {error.signature: index for index, errors in enumerate(errors_of) for error in errors}
    for index, errors in enumerate(errors_of):
        after = next((later for later in _find_fixing(iterations, index) if later <= last_pass), None)
        if after is None:
            continue
        iteration = iterations[after]
        fix = iteration.fix or Fix()
        for error in errors:
            if last[error.signature] == index:
                same = error.iteration == iteration.number
                yield Repair(
                    error=error,
                    description=describe_action(iteration),
                    diff=fix.diff,
                    files=fix.files or iteration.files,
                    trace=error.where if same else f"{error.where} → {iteration.number}",
                    at=iteration.at or error.at,
                )


def _of_turns(material: Material) -> Iterator[Repair]:
    """Yield the fixes in an agent's turns, each read as a log: fail, edit, pass.

    The transcript of a session names the failed command only in short, so that all runs are those of one check.
    """
    failures: tuple[Failure, ...] = ()
    for place, turn in enumerate(material.iterations, 1):
        failures = turn.failures or failures  # a turn may fix what failed in an earlier one
        if turn.fix is None or not failures:
            continue
        removed = (Failure(message=turn.fix.error),) if turn.fix.error else failures
        number = turn.number if turn.number is not None else place
        attempt = Attempt(task_id=material.loop_id, number=number, reason=turn.action)
        logged = LoggedAttempt(attempt=attempt, actions=tuple(make_turn_actions(turn, removed, is_fixed=True)))
        for repair in find_logged_repairs([logged], material.root):
            yield replace(repair, trace=f"iteration {number}")


def _find_fixing(iterations: Sequence[Iteration], index: int) -> Iterator[int]:
    """Yield the index of the iteration that fixed the errors of iteration `index`."""
    here = iterations[index]
    if here.fix is not None and here.fix.verified is not False and has_passed(here):
        yield index
    if index + 1 == len(iterations):
        return
    following = iterations[index + 1]
    before, after = count_failing(here), count_failing(following)
    better = before is not None and after is not None and after < before
    verified = following.fix.verified if following.fix is not None else None
    if describe_action(following) and verified is not False and (has_passed(following) or verified or better):
        yield index + 1


def _of_session(session: DebugSession) -> Iterator[Repair]:
    """Yield verified fixes, and those whose errors the next run did not repeat."""
    runs = session.executions
    followings = (*runs[1:], None)  # one more than needed if there are no runs
    for execution, following, held in zip(runs, followings, session.verdicts, strict=False):
        fix, command = execution.fix, dict(execution.environment).get("command", "")
        again = {_signature(failure) for failure in following.failures} if following is not None else set()
        failures = [failure for failure in execution.failures if _signature(failure) not in again]
        if fix is None or not held or not failures:
            continue
        failures.sort(key=lambda one: (one.error_type in _VAGUE, is_comparison(describe_failure(one))))
        printed = "\n".join(f"{describe_failure(one)}\n{one.stack_trace}" for one in failures)
        params = (("command", command),)
        first = Action(number=1, type="bash", params=params, success=False, error=printed, at=execution.at)
        last = Action(number=2, type="bash", params=params, success=True, at=following.at if following else None)
        files = fix.files or ((session.file_path,) if session.file_path else ())
        recorded = find_recorded_fix(first, last, failures, fix.diff, files, _words_of(execution, fix))
        if recorded is None or recorded.weakening:
            continue
        number = f", attempt {execution.attempt}" if execution.attempt is not None else ""
        where = f"debug session {session.id}{number}"
        repair = _make_repair(recorded, where, trace=where, at=recorded.last.at or execution.at, agent=session.agent)
        cause = execution.analysis.category if execution.analysis is not None else ""
        yield replace(repair, error=replace(repair.error, iteration=session.iteration), cause=cause)


def fails_with(execution: Execution, signature: str) -> bool:
    errors = (parse_error(failure, "", None, None) for failure in execution.failures)
    return any(error is not None and error.signature == signature for error in errors)


def _signature(failure: Failure) -> str:
    return generalize_message(failure.message) or failure.message.strip()


def _words_of(run: Execution, fix: Fix) -> str:
    """Return the recorded cause and what was done about it, one sentence each."""
    analysis = run.analysis or Analysis()
    done = _sentences(fix.description) or _sentences(analysis.strategy)
    cause = [one for one in _sentences(analysis.root_cause)[:1] if one not in done]
    return join_sentences([*cause, *done[: 1 if cause else 2]])


def _sentences(text: str) -> list[str]:
    """Return a text's sentences; an announcement is kept if it is the only one."""
    plain = one_line(mask_secrets(strip_label(text)))
    return split_reason(strip_label(text)) or ([plain] if plain else [])


def _of_log(errors: Sequence[Event], resolved: Sequence[Event], iterations: Sequence[Iteration]) -> Iterator[Repair]:
    """Yield logged errors that were resolved; the iteration's action is the fix."""
    fixed_at = {event.resolves: event.at for event in resolved}
    timed = [iteration for iteration in iterations if iteration.at is not None]
    ends = [iteration.at for iteration in timed if iteration.at is not None]
    if ends != sorted(ends):
        return
    for event in errors:
        at = fixed_at.get(event.id)
        place = bisect_left(ends, at) if at is not None else len(timed)
        if event.error is None or place == len(timed) or not describe_action(timed[place]):
            continue
        iteration = timed[place]
        where = f"error log {event.id}, resolved"
        error = parse_error(Failure(message=event.error.message), where, iteration.number, event.at)
        if error is not None:
            yield Repair(
                error=error,
                description=describe_action(iteration),
                diff=iteration.fix.diff if iteration.fix else "",
                files=iteration.files,
                trace=f"{where}; iteration {iteration.number}",
                at=at,
                agent=event.agent,
            )


def find_logged_repairs(attempts: Sequence[LoggedAttempt], root: str = "") -> Iterator[Repair]:
    """Yield fixes in logs of attempts, newest first; `root` is the project folder."""
    for turns in reversed(_group_turns(attempts)):
        of_turns = [repair for one in reversed(turns) for repair in _find_turn_repairs([one], root)]
        yield from of_turns or (_find_turn_repairs(turns, root) if len(turns) > 1 else ())


def _group_turns(attempts: Sequence[LoggedAttempt]) -> list[list[LoggedAttempt]]:
    """Group the attempts that one session made at a task, up to each that succeeded.

    Between a check that failed and the change that fixes it, the session may have ended its turn. Only if no turn has a
    fix of its own are they read as one.
    """
    groups: list[list[LoggedAttempt]] = []
    for logged in attempts:
        before, now = groups[-1][-1].attempt if groups else None, logged.attempt
        is_same = before is not None and (before.task_id, before.loop_id) == (now.task_id, now.loop_id)
        if before is not None and is_same and before.outcome is not Outcome.SUCCESS:
            groups[-1].append(logged)
        else:
            groups.append([logged])
    return groups


def _find_turn_repairs(turns: Sequence[LoggedAttempt], root: str) -> Iterator[Repair]:
    attempt = turns[-1].attempt
    attempts = {id(action): one.attempt for one in turns for action in one.actions}
    actions = tuple(action for one in turns for action in one.actions)
    for fix in find_fixes(replace(turns[-1], actions=actions), root):
        began, ended = attempts[id(fix.first)], attempts[id(fix.last)]
        where = f"{describe_attempt(began)}, action {fix.first.number}"
        is_same = began is ended
        to = fix.last.number if is_same else f"{describe_attempt(ended)}, action {fix.last.number}"
        trace = f"{describe_attempt(began)}, action{'s' * is_same} {fix.first.number} → {to}"
        at = fix.last.at or fix.first.at or attempt.ended_at
        yield _make_repair(fix, where, trace=trace, at=at, agent=attempt.agent)


def _make_repair(fix: AttemptFix, where: str, *, trace: str, at: datetime | None, agent: str) -> Repair:
    failure = fix.failures[0]
    error = parse_error(failure, where, fix.first.iteration, fix.first.at) or Sighting(
        error_type=classify_error_type(failure.error_type, failure.message),
        message=failure.message,
        signature=failure.message,
        where=where,
        file=failure.file,
        iteration=fix.first.iteration,
        at=fix.first.at,
    )
    return Repair(
        error=replace(error, file=error.file or failure.test_file),
        description=fix.description,
        diff=fix.diff,
        files=fix.files,
        trace=trace,
        at=at,
        agent=agent,
        failures=fix.failures,
    )


def find_repeated_errors(logged: LoggedAttempt, least: int) -> Iterator[tuple[Sequence[Sighting], Sequence[str]]]:
    """Yield errors that occur `least` times or more, with reasons of changes between."""
    met = group_pairs(
        (error.signature, (place, error))
        for place, action in enumerate(logged.actions)
        if action.has_failed and (error := _sighting(logged.attempt, action)) is not None
    )
    for times in met.values():
        if len(times) >= least:
            between = logged.actions[times[0][0] + 1 : times[-1][0]]
            if reasons := describe_changes(action for action in between if action.changed_file):
                yield [error for _, error in times], reasons


def list_tools(actions: Iterable[Action]) -> tuple[str, ...]:
    """Return the tools of successful actions, each once, e.g. `Bash (npm test)`."""
    used: dict[str, None] = {}
    for action in actions:
        name = one_line(action.tool or action.type, 80)
        if name and not action.has_failed:
            check = " ".join(parse_command(action).check)
            used.setdefault(f"{name} ({one_line(check, 80)})" if check else name)
    return tuple(used)


def list_files(actions: Iterable[Action]) -> tuple[str, ...]:
    changed = (one_line(action.target) for action in actions if action.changed_file)
    return tuple(dict.fromkeys(filter(None, changed)))


def describe_changes(changes: Iterable[Action]) -> list[str]:
    """Return the recorded reasons of changes, each once."""
    reasons = dict.fromkeys(filter(None, (strip_label(action.reasoning) for action in changes)))
    return list(reasons)[-_MAX_REASONS:]


def describe_attempt(attempt: Attempt) -> str:
    """Describe an attempt as `task-001, attempt 2`."""
    return f"{attempt.task_id}, attempt {attempt.number}"


def _sighting(attempt: Attempt, action: Action) -> Sighting | None:
    """Return a failed action's error; None if absent or due to the environment."""
    failures = find_command_errors(action.error, action.output)
    if not failures or is_environment_error(action, failures):
        return None
    where = f"{describe_attempt(attempt)}, action {action.number}"
    return parse_error(failures[0], where, action.iteration, action.at)


_MAX_WARNINGS: Final = 5


class WarnedApproach(NamedTuple):
    approach: str
    why: str
    better: str
    reflection: Reflection


def describe_place(reflection: Reflection) -> str:
    """Return e.g. `iteration 2` or `attempt 2`; "" if unknown."""
    places = (("attempt", reflection.attempt), ("iteration", reflection.iteration))
    return next((f"{label} {number}" for label, number in places if number is not None), "")


def describe_reflection(reflection: Reflection) -> str:
    """Return e.g. `reflection on iteration 2`."""
    return f"reflection on {place}" if (place := describe_place(reflection)) else "reflection"


def find_reflected_repairs(material: Material) -> Iterator[Repair]:
    """Yield errors and the fixes that reflections recommend, if the goal was reached."""
    is_completed = material.loop is not None and material.loop.success
    if not is_completed and all(logged.attempt.outcome is not Outcome.SUCCESS for logged in material.attempts):
        return
    for reflection in _usable_reflections(material):
        if reflection.draft:  # it repeats what the log shows, and the log is material, too
            continue
        message = next(filter(None, map(extract_message, (reflection.observation, reflection.analysis))), "")
        advice = strip_label(reflection.learning) or _actions(reflection)
        if not message or not advice or extract_message(advice) or parse_warning(advice):
            continue
        where = describe_reflection(reflection)
        if error := parse_error(Failure(message=message), where, reflection.iteration, reflection.at):
            yield Repair(error=error, description=advice, trace=where, at=reflection.at)


def find_warnings(material: Material) -> list[WarnedApproach]:
    """Return the warnings in reflections, each once, newest first."""
    warnings: dict[str, WarnedApproach] = {}
    for reflection in _usable_reflections(material):
        learning = strip_label(reflection.learning)
        if warned := parse_warning(learning):
            why = "; ".join(filter(None, (warned.why, one_line(reflection.analysis))))
            approach = WarnedApproach(warned.text, why, warned.better or _actions(reflection), reflection)
            warnings.setdefault(warned.approach.casefold(), approach)
    return list(warnings.values())[:_MAX_WARNINGS]


def find_reflected_steps(material: Material) -> list[str]:
    """Return the steps in reflections on successes, oldest first."""
    steps: dict[str, None] = {}
    for reflection in reversed(tuple(_usable_reflections(material))):
        if reflection.kind == "success_pattern" or reflection.trigger == "success":
            texts = (*reflection.actions, "" if reflection.actions else reflection.learning)
            steps |= dict.fromkeys(filter(None, map(strip_label, texts)))
    return list(steps)


def find_reason(material: Material, iteration: int | None) -> str:
    """Return the reason of a failed iteration from its reflections, or ""."""
    if iteration is None:
        return ""
    own = (one for one in _usable_reflections(material) if one.iteration == iteration)
    return next((text for one in own if (text := one_line(one.analysis) or strip_label(one.learning))), "")


def _usable_reflections(material: Material) -> Iterator[Reflection]:
    """Yield the reflections with a lesson, without unhelpful ones, newest first."""
    return (one for one in material.reflections if one.has_learning and one.effectiveness != "unhelpful")


def _actions(reflection: Reflection) -> str:
    return one_line("; ".join(filter(None, map(strip_label, reflection.actions))))


_MAX_DIFF: Final = 20_000
_MAX_LINES: Final = 30
_MAX_CODE: Final = 2_000  # maximum number of characters of a template
_MAX_IDENTIFIERS: Final = 8

_TABLES: Final[dict[str, Any]] = yaml.load(Path(__file__).with_name("code.yaml").read_bytes(), yaml.CSafeLoader)
LANGUAGES: Final[dict[str, str]] = {end: name for name, ends in _TABLES["languages"].items() for end in ends}
_PURPOSES: Final[dict[str, str]] = _TABLES["purposes"]
_KEYWORDS: Final = frozenset(_TABLES["keywords"].split())
_IDENTIFIER: Final = r"[A-Za-z_$][\w$]{0,80}"
_TESTED: Final = lazy_regex(
    rf"(?<![\w$.])({_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,6}})\s*"
    r"(?:\?\.|(?:===?|!==?|is\s+not|is)\s*(?:null|undefined|None|nil)\b)"
    rf"|(?:\bif\s*\(\s*!|\bif\s+not\s+)({_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,6}})\s*[):]"
)
_TEXT: Final = lazy_regex(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`")
_IMPORT: Final = lazy_regex(r"\s*(?:import|from|export\s.*\sfrom|(?:const|let|var)\s.*=\s*require\()")
_QUOTED: Final = lazy_regex(rf"['\"`]({_IDENTIFIER})['\"`]")
_UNKNOWN_NAME: Final = lazy_regex(rf"\b({_IDENTIFIER}) is not defined\b|\bname ['\"]({_IDENTIFIER})['\"]")
_JS_NAMES: Final = frozenset(
    {
        *("const", "let", "var", "function", "return", "if", "else", "for", "of", "in", "new", "await", "async"),
        *("null", "undefined", "true", "false", "this", "typeof", "throw", "try", "catch"),
    }
)
_COMMON_NAMES: Final = {
    "python": frozenset({*keyword.kwlist, *dir(builtins), "self", "cls"}),
    "javascript": _JS_NAMES,
    "typescript": _JS_NAMES,
}
"""Names by language that do not belong to one place."""
_HOLE: Final = lazy_regex(r"\{\{\s?(\w{1,40})\s?\}\}")
_BOUND: Final = lazy_regex(rf"\b(?:as|const|let|var|for)\s+({_IDENTIFIER})|^\s*({_IDENTIFIER})\s*=(?!=)", re.MULTILINE)
"""A name that a template itself defines."""
_COMMENT: Final = lazy_regex(r"(?:#|//).*")
_ROLES: Final = (
    ("module", re.compile(r"\bmodule\b|\bimport", re.IGNORECASE)),
    ("property", re.compile(r"\bpropert|\battribute\b|\breading\b|\bfield\b|\bkey\b", re.IGNORECASE)),
    ("type", re.compile(r"\btypes?\b|\bassignable\b", re.IGNORECASE)),
)


class Template(Struct, frozen=True, kw_only=True):
    """Code with placeholders, which are listed in the order of their first use."""

    code: str
    placeholders: tuple[str, ...] = ()


def make_template(diff: str, message: str) -> Template | None:
    """Generalize the added code of a diff; None if it adds no code or too much.

    `diff` is a unified diff, or only its lines that start with `+`; untrusted. The names that are quoted in `message`,
    the message of the fixed error, become placeholders.
    """
    code = replace_surrogates(_extract_added(diff))
    if not code:
        return None
    code = "".join(_replace_in_line(line) for line in code.splitlines(keepends=True))
    for name, placeholder in _find_names(code, message):
        code = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])(?!\}}\}})", f"{{{{{placeholder}}}}}", code)
    used = dict.fromkeys(re.findall(r"\{\{([a-z]+\d?)\}\}", code))
    return Template(code=code, placeholders=tuple(used))


def make_clean_template(diff: str, language: str) -> Template | None:
    """Generalize the code that a diff adds; None unless that is beyond doubt.

    Each name that belongs to this place becomes a placeholder. There is no template if the code is one line, has texts
    or members, calls functions that are not built in, or has more than a few such names.
    """
    code = replace_surrogates(_extract_added(diff))
    bare = _COMMENT.sub("", code)
    if not code or bare != code or _TEXT.search(code) or _IMPORT.search(code) or re.search(r"[{}`$@]|\\", code):
        return None
    removed = "\n".join(line[1:] for line in diff.splitlines() if line.startswith("-"))
    common = _COMMON_NAMES.get(language, frozenset())
    names = dict.fromkeys(name for name in re.findall(rf"(?<![\w$]){_IDENTIFIER}", code) if name not in common)
    is_member = any(re.search(rf"\.\s*{name}|{name}\s*[.(]", code) for name in map(re.escape, names))
    is_number = re.search(r"(?<![\w.])(?:[2-9]|\d{2,}|\d+\.\d+)(?![\w.])", code)
    words = len(re.findall(_IDENTIFIER, code))
    is_short = code.count("\n") < 2 or words < 2 * len(names) + 1
    if not names or not common or is_member or is_number or is_short or len(names) > 2:
        return None
    if not all(re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", removed) or code.count(name) > 1 for name in names):
        return None
    for number, name in enumerate(names, 1):
        placeholder = "variable" if number == 1 else f"variable{number}"
        code = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])(?!\}}\}})", f"{{{{{placeholder}}}}}", code)
    return Template(code=code, placeholders=tuple(dict.fromkeys(re.findall(r"\{\{([a-z]+\d?)\}\}", code))))


def has_partial_holes(code: str, language: str) -> bool:
    """Return whether a placeholder is not a whole name, or names of one place remain."""
    filled = _HOLE.sub(r"hole_\1", code[:_MAX_CODE])
    holes = {f"hole_{name}" for name in _HOLE.findall(code[:_MAX_CODE])}
    if not holes:
        return False
    bare = _COMMENT.sub("", _TEXT.sub(" ", filled))
    common = _COMMON_NAMES.get(language, _JS_NAMES) | _KEYWORDS
    common |= {name for bound in _BOUND.findall(bare) for name in bound if name not in holes}
    return {name for name in re.findall(rf"(?<![\w$.]){_IDENTIFIER}", bare) if name not in common} != holes


def added_lines(diff: str) -> str:
    return "\n".join(line[1:] for line in diff[:_MAX_DIFF].splitlines() if _is_added(line))


def file_language(files: Iterable[str], diff: str = "") -> str:
    """Return the language of the first file or diff header with a known suffix."""
    headers = re.findall(r"^\+\+\+ (?:b/)?(\S{1,300})", diff[:_MAX_DIFF], re.MULTILINE)
    for file in (*files, *headers):
        ending = PurePosixPath(file[-300:].replace("\\", "/")).suffix.removeprefix(".").lower()
        if ending in LANGUAGES:
            return LANGUAGES[ending]
    return ""


def describe_placeholder(placeholder: str) -> str:
    return _PURPOSES.get(placeholder.rstrip("0123456789"), _PURPOSES["name"])


def _is_added(line: str) -> bool:
    return line.startswith("+") and not line.startswith("+++")


def _extract_added(diff: str) -> str:
    """Return the longest run of added lines, dedented; "" if it is too long."""
    lines = diff[:_MAX_DIFF].splitlines()
    runs = [[line[1:] for line in run] for added, run in groupby(lines, _is_added) if added]
    longest = max(runs, key=len, default=[])
    code = textwrap.dedent("\n".join(longest)).strip("\n").rstrip()
    return f"{code}\n" if code.strip() and len(longest) <= _MAX_LINES and len(code) <= _MAX_CODE else ""


def _replace_in_line(line: str) -> str:
    """Replace string literals with sentences, and imported modules, by placeholders."""
    if _IMPORT.match(line):
        return _TEXT.sub(lambda found: f"{found[0][0]}{{{{module}}}}{found[0][-1]}", line)
    return _TEXT.sub(lambda found: f"{found[0][0]}{{{{message}}}}{found[0][-1]}" if " " in found[0] else found[0], line)


def _find_names(code: str, message: str) -> list[tuple[str, str]]:
    """Return the names specific to this error with their placeholders, longest first."""
    roles: dict[str, str] = {}
    for match in _TESTED.finditer(code):
        roles.setdefault(match[1] or match[2], "variable")
    for match in _UNKNOWN_NAME.finditer(message):
        roles.setdefault(match[1] or match[2], "name")
    role = next((name for name, words in _ROLES if words.search(message)), "name")
    for name in _QUOTED.findall(message):
        roles.setdefault(name, role)
    counts: dict[str, int] = {}
    named = []
    for name, kind in list(roles.items())[:_MAX_IDENTIFIERS]:
        if name.lower() in _KEYWORDS or not re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", code):
            continue
        counts[kind] = counts.get(kind, 0) + 1
        named.append((name, kind if counts[kind] == 1 else f"{kind}{counts[kind]}"))
    return sorted(named, key=lambda pair: -len(pair[0]))


_MAX_MESSAGE: Final = 160
MIN_DESCRIPTION: Final = 20  # minimum length of a description in the pattern file format, in characters


def _compile_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


_KINDS: Final[dict[str, dict[str, str]]] = yaml.load(
    Path(__file__).with_name("fix_kinds.yaml").read_bytes(), yaml.CSafeLoader
)
_IN_CODE: Final = {category: lazy_regex(signs, re.MULTILINE) for category, signs in _KINDS["code"].items()}
_IN_WORDS: Final = {category: _compile_words(words) for category, words in _KINDS["words"].items()}
_DOMAINS: Final = {tag: _compile_words(words) for tag, words in _KINDS["domains"].items()}
_GUARD: Final = _compile_words(r"guard\w*|early return")
_MISSING_VALUE: Final = lazy_regex(r"\b(?:null|undefined|none|nil|nonetype)\b", re.IGNORECASE)
_ONLY_FILES: Final = re.compile(r"(?:Change \S{1,400}(?:; |$))+")
"""A fix of which only the changed files are known."""
_ONLY_RESULTS: Final = re.compile(r"`[^`]{1,400}` failed with .{1,600} until \S{1,400} changed\.?")
"""A fix of which only the command, its error and the changed file are known."""
_PROPERTY: Final = lazy_regex(r"\bpropert|\breading\b|\battribute\b|\baccess|nil pointer", re.IGNORECASE)


def fix_category(description: str, diff: str, cause: str, message: str) -> str:
    """Return the category of a fix by its code, its root cause, or its description."""
    code = added_lines(diff)
    for category, signs in _IN_CODE.items():
        if code and signs.search(code):
            return category
    if cause in _KINDS["causes"]:
        return _KINDS["causes"][cause]
    if _GUARD.search(description) and _MISSING_VALUE.search(message):
        return "add_null_check"
    return next((category for category, words in _IN_WORDS.items() if words.search(description)), "other")


def fix_description(description: str, category: str, message: str, diff: str = "") -> str:
    """Return the description of a fix: "" without any, a standard one if too vague.

    Without words it is the first added line, and a short one names the error.
    """
    text = one_line(description)
    line = next((line.strip() for line in added_lines(diff).splitlines() if line.strip()), "")
    if category in ("add_null_check", "add_import") and (not text or _IN_WORDS[category].search(text)):
        if category == "add_import":
            return "Import the missing name before it is used"
        return f"Add null check before {'property access' if _PROPERTY.search(message) else 'the value is used'}"
    text = text if has_reason(text) else ""
    if len(text) >= MIN_DESCRIPTION:
        return text
    text = text or (f"Add `{line}`" if line else "")
    return one_line(f'{text}, which removed the error "{one_line(message, _MAX_MESSAGE)}"') if text else ""


def has_reason(description: str) -> bool:
    """Return whether a description has more than its category and changed files."""
    text = one_line(description)
    for lead in _KINDS["leads"].values():
        if text == lead or text.startswith((f"{lead}: ", f"{lead}, ")):
            text = text[len(lead) :].lstrip(":, ")
    text = text.removesuffix("as the loop did").removesuffix(", ")
    return bool(text) and not _ONLY_FILES.fullmatch(text) and not _ONLY_RESULTS.fullmatch(text)


def make_tags(language: str, category: str, error_type: str, places: Iterable[str]) -> list[str]:
    """Return the tags that are known: language, kind of fix, and domain."""
    kind = _KINDS["tags"].get(category) or _KINDS["tags"].get(error_type, "")
    return list(dict.fromkeys(filter(None, (language, kind, detect_domain(places)))))


def detect_domain(places: Iterable[str]) -> str:
    """Return the domain tag of paths and texts; the end of a path has priority."""
    for place in places:
        is_path = "/" in place and " " not in place
        for part in reversed(PurePosixPath(place[-300:]).parts if is_path else (place[:300],)):
            name = re.sub(r"(?<=[a-z])(?=[A-Z])|_|\.", " ", part)
            if tag := next((tag for tag, words in _DOMAINS.items() if words.search(name)), ""):
                return tag
    return ""


def mentioned_language(*texts: str) -> str:
    """Return the first language that the texts mention, or ""."""
    return next((name for text in texts for name in analyse_task(one_line(text)).languages), "")
