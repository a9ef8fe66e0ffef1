"""The agent protocol of (1): what an agent does at a task becomes `tasks/<id>/`, step by step.

Every call is durable when it returns, and is safe to repeat after a kill: it completes what is there already. Writers
of one task exclude each other. An attempt is open until its `outcome.json` is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from core.base.errors import BadInput, Conflict, Refused, UnknownRecord, Unwritable
from core.base.validation import check_choice, check_count, check_flag, check_text
from core.config.paths import ProjectPaths, safe_component
from core.episodes import validation
from core.episodes.action_log import append, check_log_metrics, count, repair_log, update_metrics
from core.episodes.folders import AttemptFolder, TaskFolder, find_attempt_folder, store_file
from core.episodes.json_files import check_editable, edit_object, put, read_object
from core.episodes.lifecycle.completion import check_task_end, determine_outcome, end, repeat_end
from core.episodes.lifecycle.creation import create_task
from core.episodes.lifecycle.propagation import (
    LISTS,
    MILESTONES,
    TASK_STATUS,
    check_milestones,
    propagate_all,
    record_milestones,
)
from core.episodes.lifecycle.start import (
    AttemptIntent,
    StartedAttempt,
    begin,
    create_attempt,
    find_resumable,
    index,
    resume_attempt,
)
from core.episodes.log_summary import LogSummary
from core.episodes.reflection_drafts import TRIGGERS, TYPE_OF, TYPES, attempt_trigger, parts_of_draft, reflection_line
from core.episodes.strict_reader import ROOM, StrictReader
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_BYTES, Stamp
from core.storage.json_editor import JsonText

_OUTCOMES: Final = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT)
"""(1) `outcome`."""
_MOST_REFLECTED: Final = MAX_BYTES // 4 * 3
"""Bytes of `reflections.jsonl` up to which further ones are taken: what is drafted of attempts to come has the rest."""


@dataclass(frozen=True, slots=True)
class LogResult:
    """What `log_actions` has written down.

    Attributes:
        actions: How many the attempt has now, as far as `attempt.json` has counted.
        added: How many of these are new.
    """

    number: int
    actions: int
    added: int


@dataclass(frozen=True, slots=True)
class CompletedAttempt:
    """An attempt that ended.

    Attributes:
        derived: Whether nobody said how it came out, and the log did.
        again: Whether it had ended before; what was said of it then stays.
        status: That of the task.
        reflections: Those on this attempt, drafts among them.
    """

    number: int
    outcome: Outcome
    derived: bool
    again: bool
    status: TaskStatus
    log: LogSummary
    reflections: tuple[Reflection, ...]


class Episodes:
    """The episodic memory of one project, to be written.

    Every method may raise `BadInput` for what is given, `UnknownRecord` for a task or attempt that is not there,
    `Refused` where the protocol forbids it, `Conflict` where a file cannot be understood (it is left as it is, and the
    message names it) and `Unwritable` where the disk, a lock or a permission forbids it.

    Args:
        clock: The present moment, aware UTC.
        by: The agent, where a call that begins a task or an attempt names none.
        warn: Gets what stops nobody, but should be known: why the index does not tell how a task stands.
    """

    def __init__(
        self,
        project: ProjectPaths,
        *,
        clock: Callable[[], datetime],
        by: str = "",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._project = project
        self._clock = clock
        self._by = by
        self._warn = warn

    def init_task(
        self,
        description: str,
        *,
        criteria: str = "",
        tags: Sequence[str] = (),
        related: Sequence[str] = (),
        agent: str = "",
        loop_id: str = "",
        task_id: str | None = None,
    ) -> str:
        """(1) `init_task`: make the folder of a task, and return its id.

        Args:
            criteria: When it is done.
            related: Ids of other tasks.
            task_id: Its id; by default the next free `task-NNN`. A task of this id that nobody has begun, with
                the same description, is this one.
        """
        now = iso(self._clock())
        agent = validation.text(agent or self._by, "agent", validation.MAX_ID)
        metadata: dict[str, Any] = {
            "description": validation.required_text(description, "description"),
            "completion_criteria": validation.text(criteria, "criteria"),
            "created": now,
            "updated": now,
            "status": TaskStatus.RUNNING.value,
            "current_attempt": 0,
            "total_attempts": 0,
            "tags": validation.texts(tags, "tags"),
            "related_tasks": [validation.task_id(id, "related") for id in related],
        }
        metadata |= {"agent": agent} if agent else {}
        metadata |= {"loop_id": validation.text(loop_id, "loop_id", validation.MAX_ID)} if loop_id else {}
        validation.check_total_size(metadata, "criteria, tags and related tasks")
        made = create_task(self._project, metadata, None if task_id is None else validation.task_id(task_id, "task_id"))
        folder = TaskFolder.of(self._project, made)
        try:
            index(folder, TaskStatus.RUNNING)
        except (Conflict, Unwritable) as error:  # the folder is the task; who is told of no id would make another one
            folder.warnings.append(f"{made} is not in the index yet: {error}")
        self._pass_on(folder)
        return made

    def _pass_on(self, folder: TaskFolder) -> None:
        for text in dict.fromkeys(folder.warnings):
            self._warn(text)

    @contextmanager
    def _locked(self, folder: TaskFolder) -> Iterator[None]:
        """Keep all other writers of a task out; warnings are passed on once they may write again."""
        try:
            with folder.locked():
                yield
        finally:
            self._pass_on(folder)

    def start_attempt(
        self,
        task_id: str,
        *,
        agent: str = "",
        approach: str = "",
        steps: Sequence[str] = (),
        estimated_iterations: int | None = None,
        similar: Sequence[tuple[str, str]] = (),
        orders: bool = True,
        abandon: bool = False,
        resume: bool = False,
        reopen: bool = False,
    ) -> StartedAttempt:
        """(1) `start_attempt`; at a paused task it goes on with the attempt that was open.

        Args:
            agent: Who works at it; by default that of the task.
            similar: Task and learning, from other tasks, for the plan.
            orders: Whether the plan leaves out texts of other attempts that give orders.
            abandon: Close an attempt that was left open, as a timeout.
            resume: Go on with it instead, as an agent does that was killed and begins again.
            reopen: Also if the task is completed or failed.
        """
        if estimated_iterations is not None:
            check_count(estimated_iterations, "estimated_iterations", validation.MAX_ITERATION)
        if abandon and resume:
            raise BadInput("an attempt that was left open is either resumed or abandoned")
        intent = AttemptIntent(
            agent=validation.text(agent or self._by, "agent", validation.MAX_ID),
            approach=validation.text(approach, "approach"),
            steps=validation.texts(steps, "steps"),
            estimated_iterations=estimated_iterations,
            similar=validation.similar(similar),
            orders=orders,
        )
        validation.check_total_size([intent.approach, intent.steps], "approach and steps")
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            now, reader = self._clock(), StrictReader(folder)
            reader.check(room=2 * ROOM)  # and for its end
            status = reader.task().status
            if status.ended and not reopen:
                raise Refused(f"{task_id} is {status.value}; to try again, reopen it (--reopen)")
            propagate_all(folder, seen_at=now)
            open_one = find_resumable(folder, abandon=abandon, resume=resume, now=now)
            started = resume_attempt(folder, open_one) if open_one is not None else create_attempt(folder, intent, now)
            begin(folder, started.number, now=now)
            return started

    def log_action(self, task_id: str, action: Mapping[str, Any], *, attempt: int | None = None) -> LogResult:
        """(1) `log_action`: append one action to the log of an attempt; see `log_actions`."""
        return self.log_actions(task_id, [action], attempt=attempt)

    def log_actions(
        self,
        task_id: str,
        actions: Sequence[Mapping[str, Any]],
        *,
        attempt: int | None = None,
        iteration: int | None = None,
        quality: float | None = None,
        results: Mapping[str, bytes] | None = None,
        milestones: Sequence[Mapping[str, Any]] = (),
    ) -> LogResult:
        """Append actions to the log of an attempt, all or none, and count them.

        Actions that are the last of the log already are not written twice, if one of them tells its own time.

        Args:
            actions: Fields of (1) `action`; the time is now unless it is told. A `quality` is taken for that of its
                iteration.
            attempt: By default the one that is open.
            iteration: Of actions that name none; by default the one that was named last, else 1.
            quality: What the work is worth by now, 0..1, at the end of `iteration`.
            results: Files to keep under `results/iter-NNN/` of `iteration`, content by name.
            milestones: What was reached, `{event, details, timestamp}` each; the trajectory tells it at once.
        """
        iteration, quality = validation.iteration(iteration), validation.quality(quality)
        validation.check_list(actions, "actions")
        files = validation.results(results)
        if len(actions) > validation.MAX_ACTIONS:
            raise BadInput(f"{len(actions):,} actions in one call; at most {validation.MAX_ACTIONS:,}")
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            place = self._open(folder, attempt)
            record = read_object(place.attempt, self._project.aiwg) or {}
            execution = record.get("execution")
            counted = execution if isinstance(execution, dict) else {}
            now = self._clock()
            reached = validation.milestones(milestones, now)
            if not actions and quality is None and not files and not reached:
                return LogResult(place.number, count(counted, "actions_performed"), 0)
            latest = iteration or min(max(count(counted, "iterations"), 1), validation.MAX_ITERATION)
            records, worth = validation.actions(actions, now, latest)
            told = zip([record["iteration"] for record in records] + [latest], [*worth, quality], strict=True)
            qualities = {at: value for at, value in told if value is not None}
            check_log_metrics(folder, place, qualities)
            check_milestones(folder, place.number, reached)
            for name, data in files.items():
                self._keep_result(place, latest, name, data)
            known = count(counted, "actions_performed")
            added, total = append(place.actions, records, [_told(action) for action in actions], known)
            named = max((latest, *(record["iteration"] for record in records), count(counted, "iterations")))
            update_metrics(folder, place, total, named, qualities)
            if reached:
                started = record.get("started")
                record_milestones(folder, place.number, started if isinstance(started, str) else None, reached)
        return LogResult(place.number, total, added)

    def _keep_result(self, place: AttemptFolder, iteration: int, name: str, data: bytes) -> None:
        store_file(self._project, place.results(iteration) / safe_component(name), data, drafts=place.path)

    def _open(self, folder: TaskFolder, number: int | None) -> AttemptFolder:
        """The attempt that an agent works at."""
        place = find_attempt_folder(folder, number)
        if not StrictReader(folder).attempt(place.number).is_open:
            how = f"start another one: ralphdeck task start {folder.id}"
            raise Refused(f"attempt {place.number} at {folder.id} has ended; {how}")
        return place

    def complete_attempt(
        self,
        task_id: str,
        *,
        outcome: Outcome | None = None,
        reason: str = "",
        final_quality: float | None = None,
        completion_percent: float | None = None,
        worked: Sequence[str] = (),
        didnt_work: Sequence[str] = (),
        suggestions: Sequence[str] = (),
        attempt: int | None = None,
        task_done: bool | None = None,
        milestones: Sequence[Mapping[str, Any]] = (),
    ) -> CompletedAttempt:
        """(1) `complete_attempt`: say how an attempt came out, and draft the reflection on it.

        An attempt that ended already is brought to its end once more: what a kill left out is made up for, and with
        `task_done` the task ends, too. What was said before of how it came out stays.

        Args:
            outcome: Success, failure or timeout; by default what the log proves, see `LogSummary.outcome`.
            final_quality: 0..1; by default the last one that was logged.
            completion_percent: 0..100.
            attempt: By default the newest.
            task_done: Whether the task is done (True) or given up (False); by default it goes on.
            milestones: `{event, details, timestamp}` each.
        """
        if outcome is not None and outcome not in _OUTCOMES:
            raise BadInput(f"outcome must be success, failure or timeout, not {outcome}")
        if task_done is not None:
            check_flag(task_done, "task_done")
        told: dict[str, Any] = {
            "reason": validation.text(reason, "reason"),
            "final_quality": validation.quality(final_quality, "final_quality"),
            "completion_percent": validation.percent(completion_percent),
            **{
                name: validation.texts(values, name)
                for name, values in zip(LISTS, (worked, didnt_work, suggestions), strict=True)
            },
        }
        validation.check_total_size(told, "reason, what worked, what did not and suggestions")
        folder = TaskFolder.of(self._project, task_id)
        ahead = _read_ahead(folder, attempt)
        with self._locked(folder):
            now = self._clock()  # not before: what another writer began meanwhile would end before it began
            told[MILESTONES] = validation.milestones(milestones, now)
            place = find_attempt_folder(folder, attempt)
            reader = StrictReader(folder)
            reader.check(place)
            repair_log(place)
            known = reader.attempt(place.number)
            goes_on = known.outcome is Outcome.UNKNOWN
            log = ahead.log if ahead is not None and ahead.is_still(place) else None
            if log is None and goes_on and outcome is None:
                log = reader.log(place)
            found = determine_outcome(known, log, outcome)
            if task_done is not None:
                check_task_end(folder, found, task_done, newest=place.number == max(folder.attempts()))
                told[TASK_STATUS] = (TaskStatus.COMPLETED if task_done else TaskStatus.FAILED).value
            if goes_on:
                check_milestones(folder, place.number, told[MILESTONES])
                check_editable(place.attempt, self._project.aiwg, room=validation.json_size(told) + ROOM)
                if final_quality is None and known.quality:
                    told["final_quality"] = known.quality[-1].quality
                done = end(folder, place, {"status": found.value, **told}, now=now, log=log)
            else:
                done = repeat_end(folder, place, found, told.get(TASK_STATUS), now, log=log)
            reflections = tuple(one for one in reader.reflections() if one.attempt == place.number)
            status = reader.task().status
            derived = goes_on and outcome is None
            return CompletedAttempt(place.number, found, derived, not goes_on, status, done, reflections)

    def pause_task(self, task_id: str) -> None:
        """Say that nobody works at a task for now; an open attempt stays open, and the next start resumes it."""
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            reader = StrictReader(folder)
            reader.check()
            status = reader.task().status
            if status.ended:
                raise Refused(f"{task_id} is {status.value} already")
            now = self._clock()

            def edit(document: JsonText) -> None:
                if document.value.get("status") != TaskStatus.PAUSED:
                    put(document, (), {"updated": iso(now), "status": TaskStatus.PAUSED.value})

            edit_object(folder.metadata, edit, {"id": folder.id})
            index(folder, TaskStatus.PAUSED)

    def reflect(
        self,
        task_id: str,
        attempt: int | None = None,
        *,
        observation: str = "",
        analysis: str = "",
        learning: str = "",
        action_items: Sequence[str] = (),
        trigger: str = "manual",
        reflection_type: str | None = None,
    ) -> Reflection:
        """Add a reflection on an attempt; for readers it takes the place of the drafts on it.

        What is not said is taken over from the draft, so that one part can be said better without losing the others.
        The same reflection on the same attempt is not written twice in a row.

        Args:
            attempt: By default the newest.
            reflection_type: With hyphens or with underscores; by default the one that (1) has for the outcome.
        """
        check_choice(trigger, "trigger", TRIGGERS)
        if reflection_type is not None:
            check_text(reflection_type, "reflection_type")
            reflection_type = reflection_type.replace("_", "-")
            check_choice(reflection_type, "reflection_type", TYPES)
        said = {
            "observation": validation.text(observation, "observation"),
            "analysis": validation.text(analysis, "analysis"),
            "learning": validation.text(learning, "learning"),
        }
        if not any(text.strip() for text in said.values()):
            raise BadInput("a reflection says what was observed, why it happened, or what to do differently")
        parts = {**said, "action_items": validation.texts(action_items, "action_items")}
        validation.check_total_size(parts, "the parts of a reflection")
        given = {name: part for name, part in parts.items() if part}
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            place = find_attempt_folder(folder, attempt)
            reader = StrictReader(folder)
            trigger_of = attempt_trigger(reader.attempt(place.number).outcome)
            kind = reflection_type or TYPE_OF.get(trigger_of, TYPES[-1])
            drafts = [one for one in reader.reflections() if one.draft and one.attempt == place.number]
            whole = {**parts, **(parts_of_draft(drafts[0]) if drafts else {}), **given}
            line = reflection_line(place.number, self._clock(), **whole, triggered_by=trigger, reflection_type=kind)
            mine = [
                one.value
                for one in reader.reflection_lines()
                if isinstance(one.value, dict) and one.value.get("attempt_id") == place.number
            ]
            again = {**given, "triggered_by": trigger, "reflection_type": kind}
            if not mine or drafts or {**mine[-1], **again} != mine[-1]:
                self._append_reflection(folder, msgspec.json.encode(line))
            return [one for one in reader.reflections() if one.attempt == place.number][-1]

    def _append_reflection(self, folder: TaskFolder, line: bytes) -> None:
        size = len(line) + (folder.reflections.stat().st_size if folder.reflections.exists() else 0)
        if size > _MOST_REFLECTED:
            limit = f"{size:,} bytes; at most {_MOST_REFLECTED:,} are kept"
            raise BadInput(f"with this one the reflections on {folder.id} have {limit}: say it shorter")
        AppendLog(folder.reflections).append([line])


class _Ahead(NamedTuple):
    """What the log of an attempt amounted to before others were kept out: a long one takes seconds."""

    number: int
    stamp: Stamp
    log: LogSummary

    def is_still(self, place: AttemptFolder) -> bool:
        """Whether it is that of this attempt, and nobody has written to it since."""
        return self.number == place.number and self.stamp == _stamp(place)


def _stamp(place: AttemptFolder) -> Stamp | None:
    try:
        return Stamp.of(place.actions.lstat())
    except FileNotFoundError:
        return None


def _read_ahead(folder: TaskFolder, attempt: int | None) -> _Ahead | None:
    """The log of an attempt as it is now, if there is one."""
    try:
        place = find_attempt_folder(folder, attempt)
    except (Refused, UnknownRecord):  # somebody may begin it while one waits for the lock
        return None
    stamp = _stamp(place)
    return _Ahead(place.number, stamp, StrictReader(folder).log(place)) if stamp is not None else None


def _told(action: Mapping[str, Any]) -> Set[str]:
    """The fields that an action tells itself."""
    return {name for name, value in action.items() if value not in (None, "")}
