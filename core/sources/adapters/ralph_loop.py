"""The plugin ralph-loop (ralph-wiggum); docs/adapter-files.md#ralph-loop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.base.regexes import lazy_regex
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, Progress, StateSource
from core.records.times import minute_of, newest, parse_time
from core.sources.adapters.claude import session_folders
from core.sources.adapters.claude_session import Session
from core.sources.adapters.claude_transcript import STOP_BLOCK_CAP, SessionFold
from core.sources.adapters.runner_files import MAX_LABEL, compact_time, cut, head_of, split_front_matter
from core.sources.adapters.runs import RunnerAdapter, Seen, State, remember_states
from core.sources.normalize import Fields

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

PATTERN: Final = "ralph-loop*.local.md"
CAPPED: Final = f"the agent's own cap of {STOP_BLOCK_CAP} Stop blocks; raise CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
ENDLESS: Final = "no-limit"  # badge of a loop without a limit of iterations
TWO_SESSIONS: Final = "two-sessions"  # badge of a loop that another session of the project may continue
_FOLDERS: Final = (".claude", ".sisyphus")
_RECENT: Final = timedelta(minutes=2)
_LEFT: Final = timedelta(minutes=10)  # after which a session that rests has ended
_AT_REST: Final = ("answer", "turn-end", "interrupted", "api-error", "limit")
_MAX_SESSIONS: Final = 10  # newest ones of each working tree that are read
_MAX_BYTES: Final = 256 << 10
_FIELD: Final = lazy_regex(r"([a-z_]{1,40}):\s*(.*)")
_NO_VALUE: Final = ("", "null", "~")
_LEFT_BEHIND: Final = "left behind"  # why a loop is not known whose state file its session did not delete


class _Found(Struct):
    """A loop's own session, and how many others blocked their end since it began."""

    own: Session | None = None
    others: int = 0


class RalphLoopAdapter(RunnerAdapter):
    """Reads state file and session of the loop; a vanished state is remembered."""

    name = "ralph-loop"
    title = "Claude plugin ralph-loop"
    versions = "to 2.1 of Claude Code, and forks"
    contains = "prompt, promise, counter and limit; its session has the rest"
    lacks = "iterations, lessons, why it ended"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        for folder in _FOLDERS:
            for path in sorted((folders.project / folder).glob(PATTERN))[:2]:
                head = head_of(path, folders.project)
                if b"\niteration:" in head and b"\nmax_iterations:" in head:
                    return (f"{folder}/{path.name}",)
        return ()

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        states = dict(_states(files))
        for identifier, seen in remember_states(files, states, moment.now).items():
            root = Path(str(seen.state.get("root")))
            if root in files.folders.roots:
                yield self._loop(identifier, root, seen, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        return self.make_details(loop, (("Prompt", loop.task),))

    def _loop(self, identifier: str, root: Path, seen: Seen, files: RunnerFiles, moment: Moment) -> Loop:
        fields = Fields("", _numbers(seen.state), [])
        path = Path(fields.text("file"))
        started = fields.time("started_at")
        iteration, limit = fields.count("iteration"), fields.count("max_iterations")
        session_id, promise = (_value(fields, name) for name in ("session_id", "completion_promise"))
        sessions = _sessions(root, session_id, started, files)
        session = sessions.own
        last = parse_time(session.last) if session is not None else None
        is_open = seen.missing_since is None
        written_at = files.modified_at(path) if is_open else seen.seen_at
        is_claimed = bool(promise and session and f"<promise>{promise}</promise>" in session.last_text)
        badges = set()
        if is_open:
            state = _open_state(fields, session, last, written_at, moment.now)
            badges |= {ENDLESS} if limit == 0 else set()
            badges |= {TWO_SESSIONS} if sessions.others else set()
        else:
            state = _ended_state(iteration, limit, is_claimed, session)
        if state.reason == _LEFT_BEHIND:
            files.report(path, "was left behind by a session that has ended; delete it", "stale-state-file")
        if TWO_SESSIONS in badges:
            files.report(path, "can be continued by another session of the project, too", "shared-state-file")
        ids = (session_id, session.session_id if session is not None else "")
        return self.make_loop(
            identifier,
            root,
            state,
            files,
            moment,
            written=(path,) if is_open else (),
            last=newest(last, written_at),
            ended=last or seen.seen_at,
            badges=badges,
            task=fields.text("prompt"),
            criteria=(promise,) if promise else (),
            owner="opencode" if session_id.startswith("ses_") else "claude",
            model=cut(session.model, MAX_LABEL) if session is not None else "",
            iteration=iteration,
            max_iterations=limit or None,
            started_at=started,
            modified_at=written_at,
            session_ids=tuple(dict.fromkeys(filter(None, ids))),
            progress=Progress(is_claimed=is_claimed),
        )


def _states(files: RunnerFiles) -> Iterator[tuple[str, dict[str, Any]]]:
    for root in files.folders.roots:
        for folder in _FOLDERS:
            for path in files.names(root / folder, PATTERN):
                state = _parse(files.text(path, _MAX_BYTES))
                if "iteration" not in state or "max_iterations" not in state:
                    continue
                state |= {"root": str(root), "file": str(path)}
                started = compact_time(str(state.get("started_at", "")))
                name = path.name.removesuffix(".local.md").removeprefix("ralph-loop").strip(".-")
                session = "" if state.get("session_id") in _NO_VALUE else str(state.get("session_id", ""))[:8]
                parts = (started or "loop", name[:40] or session)
                yield f"ralph-loop:{files.folders.prefix_of(root)}{'-'.join(filter(None, parts))}", state


def _parse(text: str) -> dict[str, Any]:
    """Return the fields of the front matter, and the text below it as `prompt`."""
    lines = text.replace("\r\n", "\n").split("\n")
    head, size = split_front_matter(lines, len(lines))
    if not size:
        return {}
    state: dict[str, Any] = {}
    for line in head:
        if found := _FIELD.fullmatch(line.strip()):
            value = found[2].strip()
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            state[found[1]] = cut(value[1:-1] if is_quoted else value)
    state["prompt"] = cut("\n".join(lines[size:]))
    return state


def _numbers(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state whose numbers, which are texts in the file, are numbers."""
    return {
        key: int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value
        for key, value in state.items()
    }


def _value(fields: Fields, name: str) -> str:
    text = fields.text(name)
    return text if text not in _NO_VALUE else ""


def _open_state(
    fields: Fields, session: Session | None, last: datetime | None, written_at: datetime | None, now: datetime
) -> State:
    """Return the state of a loop whose file exists."""
    if fields.count("iteration") is None or fields.count("max_iterations") is None:
        return State(reason="corrupt", why="its numbers cannot be read; the plugin will delete it")
    if fields.flag("active") is False:
        return State(LoopStatus.UNKNOWN, "not active", Liveness.IDLE, "its file says so", StateSource.REPORTED)
    is_resting = session is not None and session.phase in _AT_REST
    if session is not None and is_resting and session.blocks >= STOP_BLOCK_CAP:
        return State(LoopStatus.LIMIT, CAPPED, Liveness.ENDED, CAPPED)
    sign = newest(last, written_at)
    if sign is None:
        return State(LoopStatus.RUNNING, why="no time in its files")
    since = f"last sign {minute_of(sign)} UTC"
    age = now - sign
    if age <= (_RECENT if is_resting else _LEFT):
        return State(LoopStatus.RUNNING, "", Liveness.FRESH, since, StateSource.REPORTED)
    if is_resting and age > _LEFT:
        why = "its session has ended; delete its state file, or the next session continues the loop"
        return State(LoopStatus.UNKNOWN, _LEFT_BEHIND, Liveness.STALE, why)
    return State(LoopStatus.RUNNING, "", Liveness.STALE if age > _LEFT else Liveness.FRESH, since)


def _ended_state(iteration: int | None, limit: int | None, is_claimed: bool, session: Session | None) -> State:
    """Return the end of a loop whose file vanished."""
    status, reason = LoopStatus.UNKNOWN, "ended, and no file contains why"
    if limit and iteration is not None and iteration >= limit:
        status, reason = LoopStatus.LIMIT, f"iteration {iteration} of {limit}"
    elif is_claimed:
        status, reason = LoopStatus.COMPLETED, "promise"
    elif session is not None and "cancel-ralph" in next((one for one in session.commands[::-1] if "ralph" in one), ""):
        status, reason = LoopStatus.ABORTED, "/cancel-ralph"
    return State(status, reason, Liveness.ENDED, "its state file is gone")


def _sessions(root: Path, session_id: str, started: datetime | None, files: RunnerFiles) -> _Found:
    """Return the named session, else the newest since the start that blocked its end."""
    found = _Found()
    paths = [path for folder in session_folders(files) for path in files.names(folder, "*.jsonl")]
    recent = [(at, path) for path in paths if (at := files.modified_at(path)) and (started is None or at >= started)]
    for _, path in sorted(recent, reverse=True)[:_MAX_SESSIONS] if started or session_id else ():
        if (folded := files.fold(path, SessionFold())) is None:
            continue
        session: Session = folded.state
        if session_id and path.stem == session_id:
            found.own = session
        elif session.cwd == str(root) and session.blocks:
            if session_id or found.own is not None:
                found.others += 1
            else:
                found.own = session
    if session_id and found.own is None:
        named = next((path for path in paths if path.stem == session_id), None)
        folded = files.fold(named, SessionFold()) if named is not None else None
        found.own = folded.state if folded is not None else None
    return found
