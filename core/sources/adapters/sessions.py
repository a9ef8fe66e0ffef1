"""Sessions of agents: turns, one state with events as methods, and their loops.

An adapter of an agent says where its transcripts are, turns each line into calls of `Session`, and names the statuses
in its own words (docs/adapters.md#sessions-of-an-agent). All else is here, also loops of headless sessions that a
shell script starts (docs/adapter-files.md#claude).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import clip
from core.base.shell_commands import find_error, is_read_only, is_test_run, parse_check, parse_results
from core.records.debug_sessions import Failure, Fix, Results
from core.records.loops import (
    END_OF_TURN,
    Iteration,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Outcome,
    Progress,
    StateSource,
    Usage,
)
from core.records.times import minute_of, parse_time
from core.sources.adapters.beads import closed_issues
from core.sources.adapters.contract import Adapter
from core.sources.adapters.join import HEADLESS
from core.sources.adapters.runner_files import MAX_LABEL, MAX_TEXT
from core.sources.liveness import State, check_liveness

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.runner_files import Fold, RunnerFiles

QUIET_AFTER: Final = timedelta(minutes=10)  # without a new line, a session is stale, and a finished answer is final
LOST_AFTER: Final = timedelta(days=1)  # without a new line, nothing is known about a turn without an end
MAX_TURNS: Final = 50  # of one session, the last ones
MAX_MESSAGE: Final = 600  # characters of a message
MAX_FAILURES: Final = 10  # of one turn, the last ones
MAX_FILES: Final = 200
MAX_DIFF: Final = 1_500  # characters
MAX_TOOLS: Final = 20
COMPLETE: Final = "task_complete"  # a turn that ended as usual
_MAX_COMMAND: Final = 200
_MAX_KNOWN: Final = 64  # calls that are remembered
_MAX_RECENT: Final = 16  # messages that may be written again
_MAX_COUNT: Final = 1 << 53
MIN_SESSIONS: Final = 3  # headless sessions, one after the other with the same prompt, that are a loop
MAX_GAP: Final = timedelta(hours=6)  # between two of them; a rate limit can take five hours
FRESH: Final = timedelta(minutes=2)  # since its last record, a session without a known process may still run
_OVERLAP: Final = timedelta(seconds=5)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Failed(Struct, array_like=True, gc=False):
    """A command that failed."""

    command: str
    error: str
    at: str = ""
    is_fixed: bool = False  # the same check passed later in the turn


class TestRun(Struct, array_like=True, gc=False):
    """A run of tests and its result."""

    command: str
    has_passed: bool
    passed: int | None = None
    failed: int | None = None

    @property
    def text(self) -> str:
        """Such as "pytest -q: passed"."""
        return f"{self.command}: {'passed' if self.has_passed else 'failed'}"


class Turn(Struct, array_like=True):
    """One turn: what a prompt started, up to its end."""

    id: str = ""
    started: str = ""
    ended: str = ""
    end: str = ""  # event that ended it, or the reason
    is_reported: bool = False  # its start was written, so that its end will be too
    prompt: str = ""
    text: str = ""  # last message of the agent
    error: str = ""
    error_kind: str = ""
    tools: list[str] = []
    files: list[str] = []
    failures: list[Failed] = []
    failed: int = 0  # number of failures
    diff: str = ""  # changes after a failure
    test: TestRun | None = None
    words: str = ""  # what the agent said since its last call of a tool
    reason: str = ""  # what it said directly before its last change after a failure

    def add_text(self, text: str) -> None:
        """Note what the agent said."""
        self.text, self.words = text or self.text, text or self.words

    def add_tool(self, name: str, is_change: bool = False) -> None:
        """Note a call of a tool, which may change files."""
        if is_change and self.failures and self.words:
            self.reason = self.words
        self.words = ""
        if name not in self.tools and len(self.tools) < MAX_TOOLS:
            self.tools.append(name)

    def add_change(self, file: str, old: str, new: str) -> None:
        """Add a replaced text of a file to the diff, if something failed before."""
        if not self.failures or len(self.diff) >= MAX_DIFF:
            return
        from difflib import unified_diff  # not needed for lists of loops

        lines = unified_diff(old.splitlines(), new.splitlines(), file, file, lineterm="", n=1)
        self.diff = clip("\n".join(filter(None, (self.diff, *lines))), MAX_DIFF)

    def add_file(self, name: str) -> None:
        if name not in self.files and len(self.files) < MAX_FILES:
            self.files.append(name)


def note_command(turn: Turn, command: str, exit_code: int | None, output: str, at: str) -> bool:
    """Note the result of a command, or of a patch if ""; return whether it failed.

    `output` is only needed for failures and test runs.
    """
    is_search = exit_code == 1 and bool(command) and is_read_only(command)  # such as `grep` without a match
    has_failed = bool(exit_code) and not is_search
    if has_failed:
        turn.failures.append(Failed(clip(command, _MAX_COMMAND), find_error(output) or f"exit code {exit_code}", at))
        del turn.failures[:-MAX_FAILURES]
        turn.failed += 1
    if command and exit_code is not None and is_test_run(command):
        if not has_failed:
            check = parse_check(command)[0]
            for failure in turn.failures:
                failure.is_fixed = failure.is_fixed or parse_check(failure.command)[0] == check
        results = parse_results(output)
        counts = (results.passed, results.failing) if results is not None else (None, None)
        turn.test = TestRun(clip(command, _MAX_COMMAND), not has_failed, *counts)
    return has_failed


def can_change_files(command: str) -> bool:
    """Return whether a command may change files, so not only reads or only checks."""
    return bool(command) and not is_read_only(command) and not parse_check(command)[0]


def make_iteration(number: int, turn: Turn) -> Iteration:
    """Return a turn as an iteration; its outcome is that of its last test run."""
    started, ended = parse_time(turn.started), parse_time(turn.ended)
    test = turn.test
    outcome = Outcome.UNKNOWN
    if turn.error or test is not None:
        outcome = Outcome.SUCCESS if test is not None and test.has_passed and not turn.error else Outcome.FAILURE
    is_fixed = outcome is Outcome.SUCCESS and any(one.is_fixed for one in turn.failures)
    words = turn.reason or turn.text
    fix = Fix(description=words, diff=turn.diff, files=tuple(turn.files), verified=True)
    end = "" if turn.end == COMPLETE else turn.end
    is_counted = test is not None and (test.passed is not None or test.failed is not None)
    return Iteration(
        number=number,
        at=ended or started,
        action=turn.text or turn.prompt,
        is_prompt=not turn.text,
        result="; ".join(filter(None, (test.text if test is not None else "", turn.error, end))),
        outcome=outcome,
        duration_ms=max((ended - started).total_seconds() * 1000, 0) if started and ended else None,
        files=tuple(turn.files),
        failures=tuple(Failure(message=one.error) for one in turn.failures),
        fix=fix if is_fixed and (words or turn.diff) else None,
        results=Results(passed=test.passed, failed=test.failed) if test is not None and is_counted else None,
        tools=tuple(turn.tools),
    )


class Session(Struct):
    """What a transcript shows about its session; times are as written."""

    id: str = ""
    started: str = ""
    last: str = ""  # time of the last line
    cwd: str = ""
    parent: str = ""  # session that started this one
    model: str = ""
    task: str = ""
    phase: str = ""  # the last event: prompt, work, answer, error or a word of the agent
    turns: list[Turn] = []
    turn_count: int = 0
    tokens: list[int] = []  # input (with cached), output, cached and thoughts, of messages that are not in `recent`
    recent: dict[str, list[int]] = {}  # the same of the last messages, by ID: they may be written again
    known_calls: list[str] = []  # IDs of the last calls that were noted
    files: list[str] = []
    has_other_changes: bool = False  # a command ran that can change files
    test: TestRun | None = None
    changed: str = ""  # time of the last change of a file, a commit or a resolved error

    @property
    def turn(self) -> Turn:
        """The last turn."""
        return self.turns[-1] if self.turns else Turn()

    @property
    def usage(self) -> Usage:
        """Sum of all messages; cached tokens are part of the input, thoughts are not."""
        counts = [*self.recent.values(), *([self.tokens] if self.tokens else ())]
        if not counts:
            return Usage()
        given, output, cached, thoughts = (sum(column) for column in zip(*counts, strict=True))
        return Usage(input=max(given - cached, 0), output=output + thoughts, cache_read=cached, reasoning=thoughts)

    @property
    def progress(self) -> Progress:
        return Progress(
            test_passed=self.test.has_passed if self.test is not None else None,
            files_changed=len(self.files) or None,
            changed_at=parse_time(self.changed),
        )

    def begin_turn(self, at: str, prompt: str = "") -> Turn:
        self.turns.append(Turn(started=at, prompt=clip(prompt, MAX_MESSAGE)))
        self.turn_count += 1
        del self.turns[:-MAX_TURNS]
        return self.turns[-1]

    def open_turn(self, at: str) -> Turn:
        """Return the last turn; begin one if there is none."""
        return self.turns[-1] if self.turns else self.begin_turn(at)

    def prompt(self, at: str, text: str) -> None:
        """A person, or a program, wrote a prompt, which begins a turn."""
        self.begin_turn(at, text)
        self.task, self.phase = self.task or text, "prompt"

    def say(self, at: str, text: str, *, is_last: bool) -> Turn:
        """The agent wrote a message; it is the last one of the turn if it calls no tool."""
        turn = self.open_turn(at)
        turn.add_text(clip(text, MAX_MESSAGE))
        turn.ended = at
        self.phase, turn.end = ("answer", COMPLETE) if is_last else ("work", "")
        return turn

    def fail(self, at: str, text: str) -> None:
        """The agent reported an error of its own."""
        turn = self.open_turn(at)
        turn.error, turn.ended, self.phase = clip(text, MAX_MESSAGE) or "error", at, "error"

    def stop(self, at: str, word: str) -> None:
        """The turn ended in another way."""
        turn = self.open_turn(at)
        turn.end, turn.ended, self.phase = word, at, word

    def spend(self, message: str, counts: Iterable[int | None]) -> None:
        """Note a message's tokens, which replace those noted for it before."""
        self.recent.pop(message[:MAX_LABEL], None)
        self.recent[message[:MAX_LABEL]] = [min(max(count or 0, 0), _MAX_COUNT) for count in counts]
        if len(self.recent) > _MAX_RECENT:
            oldest = self.recent.pop(next(iter(self.recent)))
            self.tokens = [sum(pair) for pair in zip(self.tokens or [0] * len(oldest), oldest, strict=True)]

    def is_new(self, call: str) -> bool:
        """Return whether the result of a call was not noted yet; it is from now on."""
        call = call[:MAX_LABEL]
        if call in self.known_calls:
            return False
        self.known_calls.append(call)
        del self.known_calls[:-_MAX_KNOWN]
        return True

    def ran(self, at: str, command: str, exit_code: int | None, output: str) -> bool:
        """Note a command's result, or a patch's if it is ""; return whether it failed."""
        turn = self.open_turn(at)
        has_failed = note_command(turn, command, exit_code, output, at)
        if not has_failed and can_change_files(command):
            self.has_other_changes = True
        self.test = turn.test or self.test
        return has_failed

    def edited(self, at: str, file: str) -> None:
        """The agent changed a file."""
        name = file[:MAX_LABEL].removeprefix(f"{self.cwd}/") if self.cwd else file[:MAX_LABEL]
        self.open_turn(at).add_file(name)
        if name not in self.files and len(self.files) < MAX_FILES:
            self.files.append(name)
        self.changed = at


def waiting_status(session: Session, quiet: timedelta) -> State:
    """Return the status of a quiet session whose agent writes no starts and ends."""
    if session.phase == "answer":
        return State(LoopStatus.COMPLETED if quiet > QUIET_AFTER else LoopStatus.PAUSED, session.phase)
    is_known = bool(session.phase) and quiet <= LOST_AFTER
    return State(LoopStatus.RUNNING if is_known else LoopStatus.UNKNOWN)


class SessionAdapter(Adapter):
    """Base of the adapters of agents whose transcripts are folded into a `Session`."""

    fold: ClassVar[Fold[Any]]

    def transcripts(self, files: RunnerFiles) -> Iterator[tuple[Path, str, str]]:
        """Yield the project's transcripts, each with working folder and parent ID or ""."""
        raise NotImplementedError

    def status(self, session: Any, quiet: timedelta) -> State:
        """Return the status of a session without a new line for some time."""
        return waiting_status(session, quiet)

    def notes(self, session: Any) -> Iterator[tuple[str, str]]:
        """Yield titles and texts for the details of a session; empty ones are not shown."""
        yield from ()

    def facts(self, session: Any) -> Iterator[tuple[str, str]]:
        """Yield labels and values for the details of a session; empty ones are not shown."""
        yield "session", session.id

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        found: dict[str, Loop] = {}
        for path, cwd, parent in self.transcripts(files):
            folded = files.fold(path, self.fold)
            if folded is not None and folded.state.id:
                session = replace(folded.state, cwd=folded.state.cwd or cwd, parent=folded.state.parent or parent)
                last, written = parse_time(session.last), folded.stamp.modified_at
                activity = last if last is not None and last <= moment.now else min(written, moment.now)
                status = self.status(session, moment.now - activity)
                loop = self.make_loop(session, status, activity, moment, files.shown(path), modified_at=written)
                found[loop.id] = loop
        return list(found.values())

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        folded = files.fold(files.folders.path_of(loop.files[0]), self.fold) if loop.files else None
        return self.session_details(loop, folded.state if folded is not None else None, files)

    def session_details(self, loop: Loop, session: Session | None, files: RunnerFiles) -> LoopDetails:
        """Return the turns, notes and facts of a session."""
        if session is None:
            return LoopDetails(loop_id=loop.id)
        turns = enumerate(session.turns, start=session.turn_count - len(session.turns) + 1)
        facts = [(label, value) for label, value in self.facts(session) if value]
        return LoopDetails(
            loop_id=loop.id,
            iterations=tuple(make_iteration(number, turn) for number, turn in turns),
            notes=tuple((title, text) for title, text in self.notes(session) if text),
            facts=(*facts, *closed_issues(files, loop.session_ids)),
        )

    def make_loop(
        self,
        session: Session,
        found: State,
        activity: datetime | None,
        moment: Moment,
        file: str,
        modified_at: datetime | None = None,
        **values: Any,
    ) -> Loop:
        """Return the loop of a session; `values` are fields that differ from the usual."""
        name, status = self.name, found.status
        liveness, why = check_liveness(status, None, activity, modified_at, moment)
        usual: dict[str, Any] = {
            "id": f"{name}:{session.id}",
            "model": session.model,
            "task": clip(session.task, MAX_TEXT),
            "tags": ("subagent",) if session.parent else (),
            "raw_status": session.phase,
            "end_reason": found.reason if status.ended else "",
            "liveness": liveness,
            "liveness_reason": why,
            "badges": ("stale",) if liveness is Liveness.STALE else (),
            "iteration": session.turn_count or None,
            "started_at": parse_time(session.started),
            "ended_at": activity if status.ended else None,
            "last_result": session.turn.text,
            "usage": session.usage,
            "cwd": session.cwd,
            "progress": session.progress,
        }
        return Loop(
            runner=name,
            sources=(name,),
            owner=name,
            status=status,
            state_source=found.source,
            updated_at=activity,
            last_activity=activity,
            modified_at=modified_at,
            parent=f"{name}:{session.parent}" if session.parent else "",
            session_ids=(session.id,),
            files=(file,),
            **(usual | values),
        )


class BareLoops:
    """Joins an agent's sessions; unchanged loops are the same objects as before."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[list[Loop], Loop]] = {}

    def join(self, sessions: Iterable[Loop], now: datetime) -> Iterator[Loop]:
        """Yield each session's loop; one for headless ones with equal prompt and folder."""
        groups: dict[tuple[str, str], list[Loop]] = {}
        for loop in sessions:
            if loop.task and HEADLESS in loop.tags and not loop.parent and loop.started_at is not None:
                groups.setdefault((loop.cwd, loop.task), []).append(loop)
            else:
                yield loop
        for group in groups.values():
            group.sort(key=lambda one: one.started_at or _NEVER)
            for run in _runs(group):
                if len(run) < MIN_SESSIONS:
                    yield from run
                else:
                    yield self._join_run(run, now)

    def _join_run(self, loops: list[Loop], now: datetime) -> Loop:
        first, last = loops[0], loops[-1]
        is_fresh = last.last_activity is not None and now - last.last_activity <= FRESH
        known = self._known.get(first.id)
        if known is not None and known[0] == loops and not is_fresh:
            return known[1]
        joined = _join(loops)
        if last.end_reason in END_OF_TURN:  # of the last session; why no other one followed is not recorded
            since = f"the last session ended {minute_of(last.last_activity)} UTC" if last.last_activity else ""
            joined = replace(
                joined,
                status=LoopStatus.RUNNING if is_fresh else LoopStatus.UNKNOWN,
                state_source=StateSource.INFERRED,
                liveness=Liveness.FRESH if is_fresh else last.liveness,
                liveness_reason=since,
                end_reason="",
                ended_at=None if is_fresh else last.ended_at,
            )
        if not is_fresh:
            self._known[first.id] = loops, joined
        return joined


def _join(loops: Sequence[Loop]) -> Loop:
    first, last = loops[0], loops[-1]
    files_changed = [loop.progress.files_changed for loop in loops]
    return replace(
        last,
        id=first.id,
        aliases=tuple(loop.id for loop in loops[1:]),
        raw_status=f"bare loop, {last.raw_status}".removesuffix(", "),
        tags=("bare loop", HEADLESS),
        iteration=len(loops),
        started_at=first.started_at,
        usage=sum((loop.usage for loop in loops), Usage()),
        session_ids=tuple(id for loop in loops for id in loop.session_ids),
        files=tuple(file for loop in reversed(loops) for file in loop.files),
        duration_ms=None,
        progress=replace(
            last.progress,
            files_changed=None if None in files_changed else sum(filter(None, files_changed)),
            changed_at=max((at for one in loops if (at := one.progress.changed_at)), default=None),
        ),
    )


def join_sessions(loop: Loop, sessions: Sequence[LoopDetails]) -> LoopDetails:
    """Return the details of a loop of sessions, each of which is one iteration."""
    iterations = []
    for number, session in enumerate(sessions, start=1):
        if session.iterations:
            failures = dict.fromkeys(failure for one in session.iterations for failure in one.failures)
            files = dict.fromkeys(file for one in session.iterations for file in one.files)
            last = session.iterations[-1]
            iterations.append(replace(last, number=number, failures=tuple(failures), files=tuple(files)))
    facts = dict(fact for session in sessions for fact in session.facts)
    notes = sessions[-1].notes if sessions else ()
    return LoopDetails(loop_id=loop.id, iterations=tuple(iterations), notes=notes, facts=tuple(facts.items()))


def _runs(loops: Iterable[Loop]) -> Iterator[list[Loop]]:
    """Split sessions sorted by start where two overlap or a long time passes."""
    run: list[Loop] = []
    end: datetime | None = None
    for loop in loops:
        started = loop.started_at
        if run and (end is None or started is None or not end - _OVERLAP <= started <= end + MAX_GAP):
            yield run
            run = []
        run.append(loop)
        end = loop.last_activity
    if run:
        yield run
