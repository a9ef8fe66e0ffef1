"""The agent protocol of (1): what an agent does at a task becomes `tasks/<id>/`, step by step.

Every call is durable when it returns, and is safe to repeat after a kill: it completes what is there already. Writers
of one task exclude each other. An attempt is open until its `outcome.json` is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from core.checks import check_choice, check_count, check_flag
from core.episodes import arguments
from core.episodes.action_log import append, check_metrics, count, mend, update_metrics
from core.episodes.completing import came_out, check_end, end, end_again
from core.episodes.folders import AttemptFolder, TaskFolder, attempt_folder, keep_file
from core.episodes.indexing import index_task
from core.episodes.initializing import make_task
from core.episodes.json_files import edit_object, put, read_object
from core.episodes.log_summary import LogSummary
from core.episodes.propagating import LISTS, MILESTONES, TASK_STATUS, propagate_all
from core.episodes.reflecting import TRIGGERS, TYPE_OF, TYPES, attempt_trigger, parts_of_draft, reflection_line
from core.episodes.starting import Intent, StartedAttempt, begin, index, make_attempt, resume, to_resume
from core.episodes.strict_reader import StrictReader
from core.errors import BadInput, Conflict, Refused, Unwritable
from core.paths import ProjectPaths, safe_component
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso
from core.sources.journal import Journal
from core.sources.json_text import JsonText
from core.sources.reading import MAX_BYTES

_OUTCOMES: Final = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT)
"""(1) `outcome`."""


@dataclass(frozen=True, slots=True)
class Logged:
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
        status: That of the task.
        reflections: Those on this attempt, drafts among them.
    """

    number: int
    outcome: Outcome
    derived: bool
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
        by: The agent, where a call names none.
    """

    def __init__(self, project: ProjectPaths, *, clock: Callable[[], datetime], by: str = "") -> None:
        self._project = project
        self._clock = clock
        self._by = by

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
        warnings: list[str] | None = None,
    ) -> str:
        """(1) `init_task`: make the folder of a task, and return its id.

        Args:
            criteria: When it is done.
            related: Ids of other tasks.
            task_id: Its id; by default the next free `task-NNN`. A task of this id that nobody has begun, with
                the same description, is this one.
            warnings: Gets why the index does not list the task yet; a later call of any kind makes up for it.
        """
        now = iso(self._clock())
        agent = arguments.text(agent or self._by, "agent", arguments.MAX_ID)
        metadata: dict[str, Any] = {
            "description": arguments.required_text(description, "description"),
            "completion_criteria": arguments.text(criteria, "criteria"),
            "created": now,
            "updated": now,
            "status": TaskStatus.RUNNING.value,
            "current_attempt": 0,
            "total_attempts": 0,
            "tags": arguments.texts(tags, "tags"),
            "related_tasks": [arguments.task_id(id, "related") for id in related],
        }
        metadata |= {"agent": agent} if agent else {}
        metadata |= {"loop_id": arguments.text(loop_id, "loop_id", arguments.MAX_ID)} if loop_id else {}
        made = make_task(self._project, metadata, None if task_id is None else arguments.task_id(task_id, "task_id"))
        try:
            index_task(self._project, made, TaskStatus.RUNNING.value, (agent,))
        except (Conflict, Unwritable) as error:  # the folder is the task; who is told of no id would make another one
            if warnings is not None:
                warnings.append(f"{made} is not in the index yet: {error}")
        return made

    def start_attempt(
        self,
        task_id: str,
        *,
        agent: str = "",
        approach: str = "",
        steps: Sequence[str] = (),
        estimated_iterations: int | None = None,
        similar: Sequence[tuple[str, str]] = (),
        abandon: bool = False,
        reopen: bool = False,
    ) -> StartedAttempt:
        """(1) `start_attempt`; at a paused task it goes on with the attempt that was open.

        Args:
            agent: Who works at it; by default that of the task.
            similar: Task and learning, from other tasks, for the plan.
            abandon: Close an attempt that was left open, as a timeout.
            reopen: Also if the task is completed or failed.
        """
        if estimated_iterations is not None:
            check_count(estimated_iterations, "estimated_iterations", arguments.MAX_ITERATION)
        intent = Intent(
            agent=arguments.text(agent or self._by, "agent", arguments.MAX_ID),
            approach=arguments.text(approach, "approach"),
            steps=arguments.texts(steps, "steps"),
            estimated_iterations=estimated_iterations,
            similar=similar,
        )
        folder = TaskFolder.of(self._project, task_id)
        with folder.locked():
            now, reader = self._clock(), StrictReader(folder)
            reader.check()
            status = reader.task().status
            if status.ended and not reopen:
                raise Refused(f"{task_id} is {status.value}; to try again, reopen it (--reopen)")
            propagate_all(folder, seen_at=now)
            open_one = to_resume(folder, abandon=abandon, now=now)
            started = resume(folder, open_one) if open_one is not None else make_attempt(folder, intent, now)
            begin(folder, started.number, now=now)
            return started

    def log_action(self, task_id: str, action: Mapping[str, Any], *, attempt: int | None = None) -> Logged:
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
    ) -> Logged:
        """Append actions to the log of an attempt, all or none, and count them.

        Actions that tell their own time and are the last of the log already are not written twice.

        Args:
            actions: Fields of (1) `action`; the time is now unless it is told. A `quality` is taken for that of its
                iteration.
            attempt: By default the one that is open.
            iteration: Of actions that name none; by default the one that was named last, else 1.
            quality: What the work is worth by now, 0..1, at the end of `iteration`.
            results: Files to keep under `results/iter-NNN/` of `iteration`, content by name.
        """
        iteration, quality = arguments.iteration(iteration), arguments.quality(quality)
        if len(actions) > arguments.MAX_ACTIONS:
            raise BadInput(f"{len(actions):,} actions in one call; at most {arguments.MAX_ACTIONS:,}")
        folder = TaskFolder.of(self._project, task_id)
        with folder.locked():
            place = self._open(folder, attempt)
            execution = (read_object(place.attempt, self._project.aiwg) or {}).get("execution")
            counted = execution if isinstance(execution, dict) else {}
            latest = iteration or min(max(count(counted, "iterations"), 1), arguments.MAX_ITERATION)
            now = self._clock()
            records = [arguments.action(action, now, latest) for action in actions]
            worth = [arguments.quality(action.get(arguments.QUALITY)) for action in actions]
            told = zip([record["iteration"] for record in records] + [latest], [*worth, quality], strict=True)
            qualities = {at: value for at, value in told if value is not None}
            check_metrics(folder, place, qualities)
            for name, data in (results or {}).items():
                self._keep_result(place, latest, name, data)
            known = count(counted, "actions_performed")
            added, total = append(place.actions, [msgspec.json.encode(record) for record in records], known)
            named = max((latest, *(record["iteration"] for record in records), count(counted, "iterations")))
            update_metrics(folder, place, total, named, qualities)
        return Logged(place.number, total, added)

    def _keep_result(self, place: AttemptFolder, iteration: int, name: str, data: bytes) -> None:
        if len(data) > MAX_BYTES:
            raise BadInput(f"result {name[:80]!r} has {len(data):,} bytes; at most {MAX_BYTES:,} are kept")
        keep_file(self._project, place.results(iteration) / safe_component(name), data)

    def _open(self, folder: TaskFolder, number: int | None) -> AttemptFolder:
        """The attempt that an agent works at."""
        place = attempt_folder(folder, number)
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
        now = self._clock()
        if outcome is not None and outcome not in _OUTCOMES:
            raise BadInput(f"outcome must be success, failure or timeout, not {outcome}")
        if task_done is not None:
            check_flag(task_done, "task_done")
        told: dict[str, Any] = {
            "reason": arguments.text(reason, "reason"),
            "final_quality": arguments.quality(final_quality, "final_quality"),
            "completion_percent": arguments.percent(completion_percent),
            **{
                name: arguments.texts(values, name)
                for name, values in zip(LISTS, (worked, didnt_work, suggestions), strict=True)
            },
            MILESTONES: [arguments.milestone(milestone, now) for milestone in milestones],
        }
        folder = TaskFolder.of(self._project, task_id)
        with folder.locked():
            place = attempt_folder(folder, attempt)
            reader = StrictReader(folder)
            reader.check(place)
            mend(place)
            known = reader.attempt(place.number)
            goes_on = known.outcome is Outcome.UNKNOWN
            log = reader.log(place) if goes_on and outcome is None else None
            found = came_out(known, log, outcome)
            if task_done is not None:
                check_end(folder, found, task_done, newest=place.number == max(folder.attempts()))
                told[TASK_STATUS] = (TaskStatus.COMPLETED if task_done else TaskStatus.FAILED).value
            if goes_on:
                if final_quality is None and known.quality:
                    told["final_quality"] = known.quality[-1].quality
                done = end(folder, place, {"status": found.value, **told}, now=now, log=log)
            else:
                done = end_again(folder, place, found, told.get(TASK_STATUS), now)
            reflections = tuple(one for one in reader.reflections() if one.attempt == place.number)
            status = reader.task().status
            return CompletedAttempt(place.number, found, goes_on and outcome is None, status, done, reflections)

    def pause_task(self, task_id: str) -> None:
        """Say that nobody works at a task for now; an open attempt stays open, and the next start resumes it."""
        folder = TaskFolder.of(self._project, task_id)
        with folder.locked():
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
            reflection_type: By default the one that (1) has for the outcome.
        """
        check_choice(trigger, "trigger", TRIGGERS)
        if reflection_type is not None:
            check_choice(reflection_type, "reflection_type", TYPES)
        said = {
            "observation": arguments.text(observation, "observation"),
            "analysis": arguments.text(analysis, "analysis"),
            "learning": arguments.text(learning, "learning"),
        }
        if not any(text.strip() for text in said.values()):
            raise BadInput("a reflection says what was observed, why it happened, or what to do differently")
        parts = {**said, "action_items": arguments.texts(action_items, "action_items")}
        given = {name: part for name, part in parts.items() if part}
        folder = TaskFolder.of(self._project, task_id)
        with folder.locked():
            place = attempt_folder(folder, attempt)
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
                Journal(folder.reflections).append([msgspec.json.encode(line)])
            return [one for one in reader.reflections() if one.attempt == place.number][-1]
