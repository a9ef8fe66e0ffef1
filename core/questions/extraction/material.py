"""Source records of extraction, and the parts shared by all new pattern records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from core.base.errors import BadInput, UnknownRecord
from core.base.prompt_text import remove_contexts
from core.base.regexes import lazy_regex
from core.base.steps import group_in_steps, group_pairs
from core.base.text import one_line, visible_line
from core.records.debug_sessions import DebugSession
from core.records.episodes import Attempt, group_by_task
from core.records.events import Event
from core.records.extractions import LoggedAttempt, Material, Proposal
from core.records.patterns import ID_PREFIXES, Pattern, PatternType
from core.records.reflections import Reflection
from core.sources.loops import read_loop_details
from core.sources.patterns import read_patterns
from core.tasks.history import read_attempt
from core.tasks.task_links import collect_past_tasks, link_tasks

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.steps import Steps
    from core.records.loops import Iteration, Loop, LoopDetails
    from core.records.snapshot import Snapshot

_CONTROL: Final = re.compile(
    r"---\s?RALPH_STATUS\s?---(?s:.){0,4000}?---\s?END_RALPH_STATUS\s?---"
    r"|<(?P<tag>promise|ralph|command-name|command-message)\b[^<>]{0,80}>[^<]{0,500}(?:</(?P=tag)\s{0,9}>|\Z)"
    r"|</?(?:promise|ralph|command-(?:name|message|args))\b[^<>]{0,80}>"
    r"|\b(?:LOOP|TASKS?|ALL_TASKS|PROJECT|PLAN|STORY)_(?:COMPLETED?|DONE)\b"
    r"|\bEXIT_SIGNAL\s?[:=]\s?\w+"
    r"|(?:^|\n)[ \t]{0,9}/(?:[a-z][\w-]{0,60}:[a-z][\w:-]{0,60}|(?:cancel-)?ralph[\w-]{0,60}|goal|loop)(?=\s|\Z)"
    r"|(?:^|\n)[ \t]{0,9}/[a-z][\w-]{0,60}[ \t]{0,9}(?=\n|\Z)"
    r"|(?:^|\n)[ \t*_`#>-]{0,9}(?:COMPLETED?|ALL DONE|GUTTER|[Cc]ompletion promise detected)[ \t*_`.!]{0,9}(?=\n|\Z)"
)
"""Promises, reports and markers of the end, and slash commands."""
_SPACES: Final = lazy_regex(r"\s+")
_CODE: Final = frozenset(
    {
        "template_code",
        "code_template",
        "error_pattern",
        "error_message",
        "error_places",
        "task_description_pattern",
        "diff_pattern",
        "source_loops",
    }
)
_MIN_START: Final = 20  # characters from which the start of a prompt is recognised
_PROMISE_RUNNERS: Final = frozenset({"ralph-loop"})  # whose condition is the phrase that ends the loop


def remove_controls(text: str, own: Iterable[str] = ()) -> str:
    """Return a text without contexts and loop controls, as `<promise>DONE</promise>`.

    A text without them is not changed.
    `own` are the prompt and the phrases of the loop: a text or line that says only this is left out.
    """
    if not text:
        return text
    is_long = "\n" in text
    rest = _CONTROL.sub("\n" if is_long else " ", remove_contexts(text))
    cleaned = text if rest == text else rest.strip() if is_long else _SPACES.sub(" ", rest).strip()
    phrases = [words for one in own if (words := _normalize(one))]
    if not phrases:
        return cleaned
    if _is_own(cleaned, phrases):
        return ""
    lines = cleaned.split("\n")
    kept = [line for line in lines if not _is_own(line, phrases)]
    return cleaned if len(kept) == len(lines) else "\n".join(kept).strip()


def _normalize(text: str) -> str:
    return _SPACES.sub(" ", text).strip(" .!*_`\"'#>").casefold()


def _is_own(text: str, phrases: list[str]) -> bool:
    words = _normalize(text).removesuffix("\u2026")
    return any(words == one or (len(words) >= _MIN_START and one.startswith(words)) for one in phrases)


def clean_material(material: Material) -> Material:
    """Return a runner loop's material without its prompt and controlling texts."""
    loop = material.loop
    if loop is None or not loop.runner:
        return material
    task = remove_controls(loop.task)
    own = (loop.task, task, *task.splitlines(), *loop.criteria)
    criteria = () if loop.runner in _PROMISE_RUNNERS else tuple(filter(None, map(remove_controls, loop.criteria)))
    return replace(
        material,
        loop=replace(loop, task=task, criteria=criteria),
        iterations=tuple(_clean_iteration(one, own) for one in material.iterations),
    )


def _clean_iteration(iteration: Iteration, own: tuple[str, ...]) -> Iteration:
    fix = iteration.fix
    return replace(
        iteration,
        action="" if iteration.is_prompt else remove_controls(iteration.action, own),
        result=remove_controls(iteration.result, own),
        learnings=tuple(filter(None, (remove_controls(text, own) for text in iteration.learnings))),
        fix=None if fix is None else replace(fix, description=remove_controls(fix.description, own)),
    )


def clean_record(value: Any) -> Any:
    """Return a part of a record without texts that control a loop, except in code."""
    if isinstance(value, str):
        return remove_controls(value)
    if isinstance(value, Mapping):
        return {key: one if key in _CODE else clean_record(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned for one in value if (cleaned := clean_record(one)) or not isinstance(one, str)]
    return value


_NEW_RECORDS: Final[dict[PatternType, tuple[str, dict[str, float]]]] = {
    PatternType.ERROR: ("error_pattern", {"success_rate": 1.0, "usage_count": 1}),
    PatternType.SUCCESS: ("success_pattern", {"success_rate": 1.0, "usage_count": 1}),
    PatternType.ANTI: ("anti_pattern", {"failure_rate": 1.0, "occurrence_count": 1}),
    PatternType.TEMPLATE: ("code_template", {"usage_count": 1, "success_rate": 1.0}),
}
"""`type` and counts of a new record: its loop has used the pattern once."""


_MAIN_TEXTS: Final = ("approach", "approach_description", "fix_approach", "description")


def make_proposal(
    kind: PatternType,
    slug: str,
    fields: Mapping[str, Any],
    *,
    sources: Sequence[Any],
    at: datetime | None,
    tags: Iterable[str],
    trace: tuple[str, ...],
    anchors: Sequence[str] = (),
    **more_fields: Any,
) -> Proposal:
    """Propose a pattern that was used once, at `at`.

    Fields that are None, and tags that are "", are left out. `more_fields` are inserted after the counts.
    """
    record_type, counts = _NEW_RECORDS[kind]
    found = {
        "type": record_type,
        **clean_record(fields),
        "source_loops": sources,
        **counts,
        **clean_record(more_fields),
        "first_discovered": format_timestamp(at),
        "last_used": format_timestamp(at),
        "tags": list(dict.fromkeys(filter(None, tags))),
        "anchors": list(anchors) or None,
    }
    record = {name: value for name, value in found.items() if value is not None}
    emptied = any(_main_text(fields, key) and not _main_text(record, key) for key in _MAIN_TEXTS)
    refused = "its text only controls the runner" if emptied else ""
    return Proposal(type=kind, slug=slug, record=record, trace=trace, refused=refused)


def _main_text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    text = value.get("description") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) else ""


def without_uses(kind: PatternType) -> dict[str, float]:
    """Return the counts of a record that no loop has used yet."""
    return dict.fromkeys(_NEW_RECORDS[kind][1], 0) | {key: 0.0 for key in _NEW_RECORDS[kind][1] if "rate" in key}


def make_source(loop_id: str, at: datetime | None, *, by: str = "", **fields: Any) -> dict[str, Any]:
    """Return an entry of `source_loops`, without fields that are None or ""."""
    entry = {"loop_id": loop_id, **fields, "timestamp": format_timestamp(at), "contributed_by": one_line(by) or None}
    return {name: value for name, value in entry.items() if value is not None}


def find_contributor(material: Material, agent: str = "") -> str:
    """Return the first known agent: reporter, loop, `agent`, task, newest attempt."""
    names = (
        material.agent,
        material.loop.agent if material.loop else "",
        agent,
        material.task.agent if material.task else "",
        *(logged.attempt.agent for logged in reversed(material.attempts)),
    )
    return next(filter(None, names), "")


def format_timestamp(at: datetime | None) -> str | None:
    """Format a time in UTC, without fractions of seconds, for pattern files."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def find_end(material: Material) -> datetime | None:
    """Return when the work ended, or None if unknown."""
    loop, task = material.loop, material.task
    if end := (loop.ended_at if loop else None) or (task.completed_at if task else None):
        return end
    times = [iteration.at for iteration in material.iterations] + [session.updated_at for session in material.sessions]
    times += [logged.attempt.ended_at for logged in material.attempts]
    return max(filter(None, times), default=loop.last_activity if loop else None)


def parse_pattern(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """Parse a record that has no ID yet; the pattern gets the ID ""."""
    key = "template_id" if kind is PatternType.TEMPLATE else "pattern_id"
    data = msgspec.json.encode({"patterns": [{key: f"{ID_PREFIXES[kind]}-{slug}-000", **record}]})
    patterns = read_patterns("", data).patterns
    if not patterns:
        raise BadInput(f"the record of {slug!r} is not a valid pattern")
    return replace(patterns[0], id="")


_Record = TypeVar("_Record", Event, Reflection, DebugSession)
MAX_RECORDS: Final = 500  # maximum number of iterations, reflections and errors of one loop, the newest ones
MAX_ATTEMPTS: Final = 20  # maximum number of attempts at the tasks of one loop, the newest ones
MAX_ACTIONS: Final = 2_000  # maximum number of actions of these attempts together, the newest ones
MAX_SESSIONS: Final = 20
MAX_RUNS: Final = 50  # maximum number of executions of one session, the last ones
MAX_FAILURES: Final = 20  # maximum number of failures of one iteration or execution
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


class Materials:
    """Collects material from one snapshot; reads further files when needed.

    `read_details` reads the details of a loop, by default from the files in `.aiwg`.
    """

    def __init__(
        self, paths: ProjectPaths, snapshot: Snapshot, read_details: Callable[[Loop], LoopDetails] | None = None
    ) -> None:
        self._paths = paths
        self._read_details = read_details or partial(read_loop_details, paths)
        self._snapshot = snapshot

    def read(self, source_id: str) -> Material:
        """Return the material of a loop, task or debug session; raises UnknownRecord."""
        return replace(self._read(source_id), root=str(self._paths.project))

    def _read(self, source_id: str) -> Material:
        snapshot = self._snapshot
        if source_id in snapshot.loops:
            return self._of_loop(snapshot.loops[source_id])
        if source_id in snapshot.debug_sessions:
            session = snapshot.debug_sessions[source_id]
            if (own := self._of_attempt(session)) is not None:
                return own
            home = self._source(session)
            loop = snapshot.loops.get(home)
            own_task = snapshot.tasks.get(home) if loop is None else None
            return Material(source_id=session.id, loop=loop, task=own_task, sessions=(_cut_session(session),))
        if source_id in snapshot.tasks:
            task = snapshot.tasks[source_id]
            loop = snapshot.loops.get(self._links.get(task.id, ""))
            material = Material(
                source_id=task.id, loop=loop, task=task, attempts=self._logged(self._attempts_at(task.id))
            )
            return material if loop is not None else self._with_records(material)  # its other records are the loop's
        if source_id in self._ids:
            return self._of_loop(snapshot.loops[self._ids[source_id]])
        asked = visible_line(source_id, 120)
        raise UnknownRecord(f"no loop, task or debug session {asked!r} in {self._paths.project}")

    def _of_attempt(self, session: DebugSession) -> Material | None:
        """Return the material of a session made from an attempt's log; None without it."""
        attempt = self._snapshot.attempts.get(session.attempt_id)
        if attempt is None or (task := self._snapshot.tasks.get(attempt.task_id)) is None:
            return None
        logged = self._read_logs([attempt])
        loop = self._snapshot.loops.get(self._links.get(task.id, ""))
        return (
            Material(source_id=session.id, loop=loop, task=task, attempts=logged)
            if logged and logged[0].actions
            else None
        )

    def _of_loop(self, loop: Loop) -> Material:
        is_session = loop.is_from_hooks_alone or loop.is_agent_session
        of_tasks = self._attempts_at(*self._tasks.get(loop.id, ()))
        attempts = self._logged(self._attempts_of_sessions.get(loop.id, ()) if is_session else of_tasks)
        if loop.is_from_hooks_alone:
            return Material(source_id=loop.id, loop=loop, attempts=attempts)
        newest = self._read_details(loop).iterations[-MAX_RECORDS:]
        iterations = tuple(replace(one, failures=one.failures[:MAX_FAILURES]) for one in newest)
        if loop.is_agent_session:
            iterations = _without_logged(iterations, attempts)
        material = Material(source_id=loop.id, loop=loop, iterations=iterations, attempts=attempts)
        return self._with_records(clean_material(material))

    def _with_records(self, material: Material) -> Material:
        id = material.loop_id
        own = self._sessions.get(id, ())
        has_actions = {one.attempt.id: bool(one.actions) for one in material.attempts}
        if material.loop is not None and material.loop.is_agent_session:  # without attempts of others at its tasks
            own = [one for one in own if one.attempt_id in has_actions or one.attempt_id not in self._snapshot.attempts]
        own = [one for one in own if not has_actions.get(one.attempt_id)]  # a view of a log adds nothing to it
        sessions = sorted(own, key=lambda one: (one.created_at or one.updated_at or _EARLIEST, one.id))
        return replace(
            material,
            sessions=tuple(map(_cut_session, sessions[-MAX_SESSIONS:])),
            reflections=tuple(self._reflections.get(id, ())[:MAX_RECORDS]),
            errors=tuple(self._errors.get(id, ())[-MAX_RECORDS:]),
            resolved=tuple(self._resolved.get(id, ())),
        )

    def _attempts_at(self, *task_ids: str) -> Iterator[Attempt]:
        return (attempt for id in task_ids for attempt in self._attempts.get(id, ()))

    def _logged(self, attempts: Iterable[Attempt]) -> tuple[LoggedAttempt, ...]:
        """Return the newest attempts, oldest first, with at most `MAX_ACTIONS` actions."""
        ordered = sorted(
            attempts, key=lambda one: (one.started_at or one.ended_at or _EARLIEST, one.task_id, one.number)
        )
        return self._read_logs(ordered[-MAX_ATTEMPTS:])

    def _read_logs(self, attempts: Sequence[Attempt]) -> tuple[LoggedAttempt, ...]:
        logged: list[LoggedAttempt] = []
        actions_left = MAX_ACTIONS
        for attempt in reversed(attempts):
            try:
                detail = read_attempt(self._paths, attempt.task_id, attempt.number)
            except UnknownRecord:  # its folder was removed since the lists were read
                continue
            actions = detail.actions[max(len(detail.actions) - actions_left, 0) :]
            actions_left -= len(actions)
            logged.append(LoggedAttempt(attempt=attempt, steps=detail.steps, actions=actions))
        return tuple(reversed(logged))

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """Loop IDs by ID and alias."""
        return {alias: loop.id for loop in self._own_loops.values() for alias in (*loop.aliases, loop.id)}

    @cached_property
    def _sessions(self) -> Mapping[str, list[DebugSession]]:
        return self._by_source(self._snapshot.debug_sessions.values())

    @cached_property
    def _reflections(self) -> Mapping[str, list[Reflection]]:
        return self._by_source(self._snapshot.reflections.values())

    @cached_property
    def _errors(self) -> Mapping[str, list[Event]]:
        return self._by_source(event for event in self._snapshot.events if event.kind == "error")

    @cached_property
    def _resolved(self) -> Mapping[str, list[Event]]:
        return self._by_source(event for event in self._snapshot.events if event.kind == "resolved")

    @cached_property
    def descriptions(self) -> Mapping[str, str]:
        """Descriptions of loops and tasks by ID."""
        tasks = {id: task.description for id, task in collect_past_tasks(self._snapshot).items()}
        return tasks | {id: loop.task for id, loop in self._snapshot.loops.items()}

    @cached_property
    def _own_loops(self) -> Mapping[str, Loop]:
        """Loops with own records, unlike sessions that are known only by their tasks."""
        return {id: loop for id, loop in self._snapshot.loops.items() if not loop.is_from_hooks_alone}

    @cached_property
    def _links(self) -> Mapping[str, str]:
        """Loop IDs by task ID."""
        links = link_tasks(self._snapshot.tasks, self._own_loops)
        return {task_id: link.loop_id for task_id, link in links.items()}

    @cached_property
    def _tasks(self) -> Mapping[str, list[str]]:
        """Task IDs by loop ID."""
        return group_pairs((loop_id, task_id) for task_id, loop_id in self._links.items())

    @cached_property
    def _attempts(self) -> Mapping[str, Sequence[Attempt]]:
        """Attempts by task ID."""
        return group_by_task(self._snapshot.attempts.values())

    @cached_property
    def _attempts_of_sessions(self) -> Mapping[str, list[Attempt]]:
        """Attempts by the session that made them: the attempt's own, else its task's."""
        homes = {id: self._links.get(id, task.loop_id) for id, task in self._snapshot.tasks.items()}
        pairs = ((one.loop_id or homes.get(one.task_id, ""), one) for one in self._snapshot.attempts.values())
        return group_pairs((self._ids.get(loop_id, loop_id), attempt) for loop_id, attempt in pairs if loop_id)

    def prepare_in_steps(self) -> Steps[None]:
        """Group the records of the project step by step."""
        self._reflections = yield from group_in_steps(self._with_source(self._snapshot.reflections.values()))
        events = self._snapshot.events
        self._errors = yield from group_in_steps(self._with_source(one for one in events if one.kind == "error"))
        self._resolved = yield from group_in_steps(self._with_source(one for one in events if one.kind == "resolved"))

    def _by_source(self, records: Iterable[_Record]) -> Mapping[str, list[_Record]]:
        return group_pairs(self._with_source(records))

    def _with_source(self, records: Iterable[_Record]) -> Iterator[tuple[str, _Record]]:
        return ((source, record) for record in records if (source := self._source(record)))

    def _source(self, record: _Record) -> str:
        """Return the loop ID of a record; its task ID if no loop is known; else ""."""
        own = (record.loop_id, "" if isinstance(record, Event) else record.task_id)
        names = [name for name in own if name]
        source_id = next((self._ids[name] for name in names if name in self._ids), "")
        if source_id:
            return source_id
        attempts, tasks = self._snapshot.attempts, self._snapshot.tasks
        task_ids = (attempts[name].task_id if name in attempts else name for name in names)
        task_id = next((id for id in task_ids if id in tasks), "")
        return self._links.get(task_id, task_id)


def _without_logged(turns: tuple[Iteration, ...], attempts: Sequence[LoggedAttempt]) -> tuple[Iteration, ...]:
    """Return the turns before the first logged attempt; its log has more of the rest."""
    begins = [at for one in attempts if one.actions and (at := one.attempt.started_at or one.actions[0].at) is not None]
    begin = min(begins, default=None)
    return turns if begin is None else tuple(turn for turn in turns if turn.at is not None and turn.at < begin)


def _cut_session(session: DebugSession) -> DebugSession:
    runs = (replace(run, failures=run.failures[:MAX_FAILURES]) for run in session.executions[-MAX_RUNS:])
    return replace(session, executions=tuple(runs))
