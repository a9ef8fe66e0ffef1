"""The agent protocol (docs/task-memory.md#agent-protocol).

Changes are durable when a call returns. If the process is killed during a call, repeating the call completes it. A lock
allows one writer per task. An attempt is open until its `outcome.json` exists. The calls import what they need, because
`log_actions` runs after every step of an agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import structs

from core.base.errors import BadInput, Conflict, Refused, Unwritable
from core.base.paths import ProjectPaths, safe_component
from core.files.append_log import AppendLog
from core.records.episodes import TaskStatus
from core.records.loops import Outcome
from core.records.times import iso
from core.sources import normalize
from core.tasks import action_log, validation
from core.tasks.action_log import MILESTONES, LogResult, check_milestones, record_milestones
from core.tasks.history import strict_reader
from core.tasks.task_files import (
    ROOM,
    TaskFolder,
    check_editable,
    edit_object,
    find_attempt_folder,
    read_object,
    set_members,
    store_file,
)

if TYPE_CHECKING:
    from core.files.json_editor import JsonText
    from core.records.reflections import Reflection
    from core.tasks.lifecycle import CompletedAttempt, StartedAttempt


class Episodes:
    """Writes the task memory of one project.

    `clock` returns the current time, aware UTC. `by` is the agent for calls without an agent. `warn` is called with
    problems that do not stop a call, such as an index that could not be updated.

    All methods raise `BadInput` for an invalid argument, `UnknownRecord` for an unknown task or attempt, `Refused` if
    the protocol forbids the call, `Conflict` if a file cannot be parsed (it is named in the message and not changed),
    and `Unwritable` if a file cannot be written or locked.
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
        """Create a task and return its ID.

        `criteria` are the completion criteria, and `related` IDs of other tasks. `task_id` is by default the next free
        `task-NNN`. If a task with this ID, the same description and criteria, and no attempts exists, it is used.
        """
        from core.tasks import lifecycle

        now = iso(self._clock())
        task = validation.check(
            validation.TaskArguments,
            description=description,
            criteria=criteria,
            tags=tags,
            related=related,
            agent=agent or self._by,
            loop_id=loop_id,
        )
        if not description.strip():
            raise BadInput("description is empty")
        metadata: dict[str, Any] = {
            "description": task.description,
            "completion_criteria": task.criteria,
            "created": now,
            "updated": now,
            "status": TaskStatus.RUNNING.value,
            "current_attempt": 0,
            "total_attempts": 0,
            "tags": task.tags,
            "related_tasks": [safe_component(id) for id in task.related],
            **({"agent": task.agent} if task.agent else {}),
            **({"loop_id": task.loop_id} if task.loop_id else {}),
        }
        validation.check_total_size(metadata, "criteria, tags and related tasks")
        wanted = None if task_id is None else validation.check_task_id(task_id)
        created = lifecycle.create_task(self._project, metadata, wanted)
        folder = TaskFolder.of(self._project, created)
        try:
            lifecycle.update_index(folder, TaskStatus.RUNNING)
        except (Conflict, Unwritable) as error:  # the task exists, so the caller must get its ID
            folder.warnings.append(f"{created} is not in the index: {error}")
        self._send_warnings(folder)
        return created

    def _send_warnings(self, folder: TaskFolder) -> None:
        for text in dict.fromkeys(folder.warnings):
            self._warn(text)

    @contextmanager
    def _locked(self, folder: TaskFolder) -> Iterator[None]:
        """Lock a task for writing; send warnings after the lock is released."""
        try:
            with folder.locked():
                yield
        finally:
            self._send_warnings(folder)

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
        beside: bool = False,
        reopen: bool = False,
        loop_id: str = "",
    ) -> StartedAttempt:
        """Start an attempt; if the task is paused, resume its open attempt instead.

        `agent` is by default that of the task. `similar` are pairs of similar task and learning for the plan. If
        `orders` is set, the plan leaves out texts of other attempts that give orders. `abandon` ends open attempts with
        the outcome timeout. `resume` resumes the open attempt, for an agent that was killed. `beside` starts another
        one and leaves open attempts without an outcome. `reopen` allows a new attempt at a completed or failed task.
        `loop_id` names the session that makes the attempt, if it is not that of the task.
        """
        from core.tasks import lifecycle

        if abandon + resume + beside > 1:
            raise BadInput("an open attempt can be resumed, abandoned or left open, only one of these")
        intent = validation.check(
            validation.StartArguments,
            agent=agent or self._by,
            approach=approach,
            steps=steps,
            estimated_iterations=estimated_iterations,
            similar=similar,
            loop_id=loop_id,
        )
        validation.check_total_size([intent.approach, intent.steps], "approach and steps")
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            now, reader = self._clock(), strict_reader(folder)
            folder.check_editable(room=2 * ROOM)  # room for the start and the end of the attempt
            status = reader.task().status
            if status.ended and not reopen:
                raise Refused(f"{task_id} is {status.value}; to try again, reopen it (--reopen)")
            lifecycle.propagate_all(folder, now=now)
            open_attempt = None
            if not beside:
                open_attempt = lifecycle.find_resumable(folder, abandon=abandon, resume=resume, now=now)
            if open_attempt is not None:
                started = lifecycle.resume_attempt(folder, open_attempt)
            else:
                started = lifecycle.create_attempt(folder, intent, now, orders=orders)
            lifecycle.mark_running(folder, started.number, now=now)
            return started

    def log_action(self, task_id: str, action: Mapping[str, Any], *, attempt: int | None = None) -> LogResult:
        """Append one action to the log of an attempt; see `log_actions`."""
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
        """Append actions to the log of an attempt, all or none, and update its counts.

        If at least one action has a timestamp and the log already ends with these actions, nothing is appended.

        `actions` have the fields of docs/task-memory.md#actions; the default `timestamp` is now, and `quality` is that
        of the iteration. `attempt` is by default the newest. `iteration` is used for actions without an iteration, and
        for `quality` and `results`; by default it is the latest in the log, or 1. `quality` (0..1) is that of the work
        after this iteration. `results` are file contents by name, written to `results/iter-NNN/`. `milestones` are
        objects `{event, details, timestamp}`, which are added to the trajectory.
        """
        validation.check(validation.LogArguments, iteration=iteration, quality=quality)
        validation.check_results(results)
        if not isinstance(actions, tuple | list) or len(actions) > validation.MAX_ACTIONS:
            raise BadInput(f"actions must be a list of at most {validation.MAX_ACTIONS:,} actions")
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            place, now = find_attempt_folder(folder, attempt), self._clock()
            if not strict_reader(folder).attempt(place.number).is_open:
                hint = f"start another one: ralphdeck task start {folder.id}"
                raise Refused(f"attempt {place.number} at {folder.id} has ended; {hint}")
            record = read_object(place.attempt, self._project.aiwg) or {}
            execution = record.get("execution")
            counts = execution if isinstance(execution, dict) else {}
            known = normalize.count(counts.get("actions_performed")) or 0
            known_iterations = normalize.count(counts.get("iterations")) or 0
            new_milestones = validation.validate_milestones(milestones, now)
            if not actions and quality is None and not results and not new_milestones:
                return LogResult(place.number, known, 0)
            latest = iteration or min(max(known_iterations, 1), validation.MAX_ITERATION)
            lines, action_qualities = validation.validate_actions(actions, now, latest)
            iterations = [line["iteration"] for line in lines]
            pairs = zip([*iterations, latest], [*action_qualities, quality], strict=True)
            qualities = {at: value for at, value in pairs if value is not None}
            action_log.check_metrics(folder, place, qualities)
            check_milestones(folder, place.number, new_milestones)
            for name, data in (results or {}).items():
                store_file(self._project, place.results(latest) / safe_component(name), data, drafts=place.path)
            given = [{name for name, value in action.items() if value not in (None, "")} for action in actions]
            newest = max((latest, *iterations, known_iterations))
            is_repeated = newest == known_iterations
            with action_log.append_actions(place.actions, lines, given, known) as (added, total):
                if new_milestones:
                    started = normalize.text(record.get("started"))
                    record_milestones(folder, place.number, started, new_milestones)
                action_log.update_metrics(folder, place, total, newest, qualities, is_repeated=is_repeated)
            return LogResult(place.number, total, added)

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
        success_completes: bool = False,
        milestones: Sequence[Mapping[str, Any]] = (),
    ) -> CompletedAttempt:
        """Record the outcome of an attempt and draft a reflection on it.

        If the attempt has already ended, its outcome and texts are not changed; the call completes an interrupted
        completion, and `task_done` can still end the task.

        `outcome` is success, failure or timeout, by default that of the log (`LogSummary.outcome`). `final_quality` is
        0..1, by default the last logged quality. `completion_percent` is 0..100. `attempt` is by default the newest.
        `task_done` ends the task: True as completed, False as failed; by default the task continues, unless
        `success_completes` is set and its newest attempt is a success. `milestones` are objects `{event, details,
        timestamp}`.
        """
        from core.tasks import lifecycle

        if outcome not in (None, Outcome.SUCCESS, Outcome.FAILURE, Outcome.TIMEOUT):
            raise BadInput(f"outcome must be success, failure or timeout, not {outcome}")
        end = validation.check(
            validation.CompletionArguments,
            reason=reason,
            final_quality=final_quality,
            completion_percent=completion_percent,
            what_worked=worked,
            what_didnt_work=didnt_work,
            suggestions_for_next_time=suggestions,
        )
        result = structs.asdict(end)
        validation.check_total_size(result, "reason, what worked, what did not and suggestions")
        folder = TaskFolder.of(self._project, task_id)
        ahead = lifecycle.read_log_ahead(folder, attempt)
        with self._locked(folder):
            now = self._clock()  # inside the lock, so that the end is not before a start by another writer
            result[MILESTONES] = validation.validate_milestones(milestones, now)
            place = find_attempt_folder(folder, attempt)
            reader = strict_reader(folder)
            folder.check_editable(place)
            AppendLog(place.actions).undo_incomplete_batch()
            known = reader.attempt(place.number)
            is_open = known.outcome is Outcome.UNKNOWN
            log = ahead.get(lifecycle.read_log_stamp(place))
            if log is None and is_open and outcome is None:
                log = reader.log(place.number)
            found = lifecycle.determine_outcome(known, log, outcome)
            is_newest = place.number == max(folder.attempts())
            if task_done is None and success_completes and is_newest and found is Outcome.SUCCESS:
                task_done = True
            if task_done is not None:
                if not is_newest:
                    raise Refused(f"only the newest attempt at {folder.id} can end the task")
                if task_done and found is not Outcome.SUCCESS:
                    raise Refused(f"the attempt ended in {found.value}; only a success can complete {folder.id}")
                result[lifecycle.TASK_STATUS] = (TaskStatus.COMPLETED if task_done else TaskStatus.FAILED).value
            if is_open:
                check_milestones(folder, place.number, result[MILESTONES])
                check_editable(place.attempt, self._project.aiwg, room=validation.json_size(result) + ROOM)
                if final_quality is None and known.quality:
                    result["final_quality"] = known.quality[-1].quality
                log = lifecycle.end_attempt(folder, place, {"status": found.value, **result}, now=now, log=log)
            else:
                if task_done is not None:
                    members = {"status": found.value, lifecycle.TASK_STATUS: result[lifecycle.TASK_STATUS]}
                    edit_object(place.outcome, lambda document: set_members(document, (), members), {})
                log = lifecycle.propagate(folder, place, now=now, log=log)
            return lifecycle.CompletedAttempt(
                number=place.number,
                outcome=found,
                derived=is_open and outcome is None,
                again=not is_open,
                status=reader.task().status,
                log=log,
                reflections=tuple(one for one in reader.newest_reflections() if one.attempt == place.number),
            )

    def reopen_attempt(self, task_id: str, attempt: int) -> None:
        """Reopen the newest ended attempt, not a success: remove its outcome and drafts."""
        from core.tasks import lifecycle

        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            place, reader = find_attempt_folder(folder, attempt), strict_reader(folder)
            folder.check_editable(place)
            outcome = reader.attempt(place.number).outcome
            if outcome is Outcome.SUCCESS or place.number != max(folder.attempts()):
                raise Refused(f"attempt {place.number} at {task_id} is a success or not the newest; start another one")
            if outcome is not Outcome.UNKNOWN:
                try:
                    lifecycle.reopen_attempt(folder, place)
                except OSError as error:
                    raise Unwritable(f"cannot reopen {place.path}: {error.strerror}") from None
            lifecycle.mark_running(folder, place.number, now=self._clock())

    def pause_task(self, task_id: str) -> None:
        """Pause a task; an open attempt stays open, and the next start resumes it."""
        from core.tasks import lifecycle

        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            reader = strict_reader(folder)
            folder.check_editable()
            status = reader.task().status
            if status.ended:
                raise Refused(f"{task_id} is already {status.value}")
            now = self._clock()

            def edit(document: JsonText) -> None:
                if document.value.get("status") != TaskStatus.PAUSED:
                    set_members(document, (), {"updated": iso(now), "status": TaskStatus.PAUSED.value})

            edit_object(folder.metadata, edit, {"id": folder.id})
            lifecycle.update_index(folder, TaskStatus.PAUSED)

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
        """Add a reflection on an attempt; readers then ignore the drafts on it.

        Missing parts are taken from the draft. A reflection that equals the last one is not written again. `attempt` is
        by default the newest. `reflection_type` may contain hyphens or underscores; its default depends on the outcome.
        """
        from core.tasks.reflections import add_reflection

        texts = {"observation": observation, "analysis": analysis, "learning": learning}
        found = validation.check(validation.ReflectionArguments, **texts, action_items=action_items)
        parts = structs.asdict(found)
        if not any(text.strip() for text in texts.values()):
            raise BadInput("a reflection needs an observation, an analysis or a learning")
        validation.check_total_size(parts, "the parts of a reflection")
        folder = TaskFolder.of(self._project, task_id)
        with self._locked(folder):
            return add_reflection(folder, attempt, parts, trigger, reflection_type, self._clock())
