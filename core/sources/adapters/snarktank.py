"""snarktank/ralph and others with a prd.json; docs/adapter-files.md#snarktank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.files.file_reader import decode_json
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource
from core.records.times import newest
from core.sources.adapters.contract import Delivery
from core.sources.adapters.lessons import ProgressLog, progress_lessons, read_progress
from core.sources.adapters.runner_files import MAX_LABEL, MAX_PLANS, cut, distinct, head_of, local_time
from core.sources.adapters.runs import MAX_NOTE, RunnerAdapter, State, context_bullets, file_diff, put_block
from core.sources.normalize import Fields, text

if TYPE_CHECKING:
    from core.records.reflections import Lesson
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

SCRIPT: Final = "ralph.sh"
PATTERNS_HEADING: Final = "## Codebase Patterns"
_PLACES: Final = ("", "scripts/ralph", "ralph", "tasks", ".agents/tasks")  # folders of a prd.json, below the project
_NAMED: Final = ("prd.json", "scripts/ralph/prd.json", "ralph/prd.json")
_MANY: Final = ("tasks", ".agents/tasks")  # folders of files such as prd-cart.json
_MAX_STORIES: Final = 1000
_MAX_ARCHIVES: Final = 200
_KEYS: Final = re.compile(rb"userStories|branchName")
_DIALECT: Final = lazy_regex(r'("(?>(?:\\.|[^"\\])*)(?:"|\\?\Z))|//[^\n]*|,(?=\s*[}\]])', re.DOTALL)
_DATED: Final = lazy_regex(r"(\d{4}-\d\d-\d\d)-(.+)")


class _Story(Struct, frozen=True):
    id: str
    title: str
    passes: bool
    notes: str


class _Plan(Struct, frozen=True):
    """A prd.json; in the archive (`is_archived`), it is in a folder of its own."""

    path: Path
    id: str
    fields: Fields
    stories: tuple[_Story, ...]
    is_archived: bool

    @property
    def done(self) -> int:
        return sum(story.passes for story in self.stories)

    @property
    def count(self) -> str:
        return f"{self.done} of {len(self.stories)} stories"

    @property
    def progress_path(self) -> Path:
        return self.path.with_name("progress.txt")


class SnarktankAdapter(RunnerAdapter):
    """Reads prd.json, progress.txt, archive; a run is known only by its process."""

    name = "snarktank"
    title = "snarktank/ralph"
    versions = "to February 2026, and others that read a prd.json"
    contains = "stories with results, entries of the progress log, lessons, archived runs"
    lacks = "tokens, cost, errors, why it stopped"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        root = folders.project
        paths = [root / name for name in _NAMED]
        for folder in _MANY:
            paths += sorted((root / folder).glob("prd*.json"))[:1]
        found = next((path for path in paths if _KEYS.search(head_of(path, root))), None)
        return (found.relative_to(root).as_posix(),) if found else ()

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for plan in _plans(files):
            yield self._loop(plan, _log(plan, files), files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        plan = next((plan for plan in _plans(files) if plan.id == loop.id), None)
        if plan is None:
            return LoopDetails(loop_id=loop.id)
        stories = "\n".join(f"[{'x' if story.passes else ' '}] {story.id} {story.title}" for story in plan.stories)
        return self.make_details(
            loop,
            (
                ("Stories", stories),
                *((f"Notes of {story.id}", story.notes) for story in plan.stories),
                ("progress.txt", files.text(plan.progress_path)[-MAX_NOTE:]),
            ),
            (
                ("stories", plan.count),
                ("branch", plan.fields.text("branchName")),
                ("project", plan.fields.text("project")),
            ),
            iterations=tuple(_iterations(plan, _log(plan, files), with_learnings=True)),
        )

    def lessons(self, files: RunnerFiles) -> Iterator[Lesson]:
        return distinct(lesson for plan in _plans(files) for lesson in _lessons(plan, files))

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        plan = next((plan for plan in _plans(files) if plan.id == loop.id and not plan.is_archived), None)
        return pattern_delivery(plan.progress_path, context, files) if plan else None

    def _loop(self, plan: _Plan, log: ProgressLog, files: RunnerFiles, moment: Moment) -> Loop:
        written = (plan.path, plan.progress_path)
        written_at = newest(*map(files.modified_at, written))
        last = min(log.newest_at, moment.now) if log.newest_at else written_at
        dated = _DATED.fullmatch(plan.path.parent.name) if plan.is_archived else None
        iterations = tuple(_iterations(plan, log, with_learnings=False))
        progress = Progress(
            stories=len(plan.stories) or None,
            stories_done=plan.done if plan.stories else None,
            is_claimed=log.is_claimed,
            changed_at=last,
        )
        return self.make_loop(
            plan.id,
            files.folders.root_of(plan.path),
            _state(plan, log, _find_process(plan, files, moment)),
            files,
            moment,
            written=written,
            last=last,
            ended=log.newest_at or (local_time(dated[1]) if dated else None) or written_at,
            badges=("completed-but-open",) if log.is_claimed and progress.stories_open else (),
            task=cut(plan.fields.text("description") or plan.fields.text("project")),
            criteria=tuple(cut(f"{story.id} {story.title}", MAX_LABEL) for story in plan.stories),
            owner="amp" if any(entry.thread for entry in log.entries) else "",
            session_ids=tuple(dict.fromkeys(entry.thread for entry in log.entries if entry.thread)),
            iteration=len(iterations) or None,
            iterations=iterations,
            started_at=log.started_at or min((entry.at for entry in log.entries if entry.at), default=None),
            progress=progress,
            archived=plan.is_archived,
        )


def pattern_delivery(path: Path, context: str, files: RunnerFiles) -> Delivery | None:
    """Return a change that appends a context to a log's patterns; None if present."""
    before = files.text(path) if files.exists(path) else None
    bullets = context_bullets(context)
    if not bullets or before == "":
        return None
    lines = (before or "").removesuffix("\n").split("\n") if before else []
    start = next((n for n, line in enumerate(lines, 1) if line.casefold().startswith("## codebase patt")), 0)
    if not start:  # before the first entry, else at the end
        start = next((n for n, line in enumerate(lines) if line.startswith("## ")), len(lines))
        lines[start:start] = [PATTERNS_HEADING, "---"]
        start += 1
    is_end = (n for n, line in enumerate(lines[start:], start) if line.startswith(("#", "---")))
    end = next(is_end, len(lines))
    while end > start and not lines[end - 1].strip():
        end -= 1
    diff = file_diff(files.shown(path), before, "\n".join(put_block(lines, end, bullets)) + "\n")
    explanation = "Each iteration reads the Codebase Patterns first. Apply this change."
    return Delivery(explanation=explanation, diff=diff) if diff else None


def _lessons(plan: _Plan, files: RunnerFiles) -> Iterator[Lesson]:
    passed = {story.id for story in plan.stories if story.passes}
    for lesson in progress_lessons("snarktank", _log(plan, files), files.shown(plan.progress_path), plan.id):
        yield replace(lesson, outcome=Outcome.SUCCESS) if lesson.title in passed else lesson


def _plans(files: RunnerFiles) -> Iterator[_Plan]:
    """Yield the plans of the project and its working trees, then archived ones."""
    folders = [root / place for root in files.folders.roots for place in _PLACES]
    for folder in folders:
        pattern = "prd*.json" if folder.name == "tasks" else "prd.json"
        yield from filter(
            None, (_plan(path, files, is_archived=False) for path in files.names(folder, pattern)[-MAX_PLANS:])
        )
    for folder in folders:
        for archive in files.names(folder / "archive")[-_MAX_ARCHIVES:]:
            if plan := _plan(archive / "prd.json", files, is_archived=True):
                yield plan


def _plan(path: Path, files: RunnerFiles, *, is_archived: bool) -> _Plan | None:
    value = files.read(path, _decode)
    if value is None and _KEYS.search(head_of(path, files.folders.root_of(path))):
        files.report(path, "cannot be read as a plan", "bad-plan")
    if value is None or not isinstance(value.get("userStories"), list):
        return None
    fields = Fields(files.shown(path), value, [])
    stories = tuple(
        _Story(text(story.get("id")), text(story.get("title")), story.get("passes") is True, text(story.get("notes")))
        for story in value["userStories"][:_MAX_STORIES]
        if isinstance(story, dict)
    )
    branch = cut(fields.text("branchName"), MAX_LABEL).removeprefix("ralph/")
    name = "" if path.name == "prd.json" and (is_archived or branch) else path.stem
    parts = (files.shown(path.parent).removesuffix("."), name, "" if is_archived else branch)
    return _Plan(path, f"snarktank:{'/'.join(filter(None, parts))}", fields, stories, is_archived)


def _decode(data: bytes) -> dict[str, Any]:
    """Decode JSON with comments, trailing commas or prose around it; else ValueError."""
    decoded = decode_json(data)
    if decoded.failed:
        source = data.decode("utf-8", "replace")
        inner = source[source.find("{") : source.rfind("}") + 1]
        decoded = decode_json(_DIALECT.sub(lambda found: found[1] or "", inner).encode())
    if decoded.failed or not isinstance(decoded.value, dict):
        raise ValueError("not a plan")
    return decoded.value


def _log(plan: _Plan, files: RunnerFiles) -> ProgressLog:
    if plan.path.name != "prd.json":
        return ProgressLog()
    return read_progress(files.text(plan.progress_path), frozenset(story.id for story in plan.stories if story.id))


def _state(plan: _Plan, log: ProgressLog, pid: int | None) -> State:
    if pid is not None:
        why = f"process {pid} ({SCRIPT}) runs"
        return State(LoopStatus.RUNNING, "", Liveness.ALIVE, why, StateSource.REPORTED, pid)
    if plan.done == len(plan.stories) > 0:
        reason, why = f"all {len(plan.stories)} stories pass", "its files report that all stories pass"
        return State(LoopStatus.COMPLETED, reason, Liveness.ENDED, why, StateSource.REPORTED)
    if plan.is_archived:
        return State(reason=f"archived, {plan.count}", liveness=Liveness.ENDED, why="archived")
    reason = "stopped" if plan.done or log.entries else "not started"
    return State(reason=f"{reason}, {plan.count}", why=f"no process {SCRIPT} runs here")


def _find_process(plan: _Plan, files: RunnerFiles, moment: Moment) -> int | None:
    """Return the pid of the script, started in its own folder or in the project."""
    if plan.is_archived or plan.path.name != "prd.json":
        return None
    folder = plan.path.parent
    if (pid := moment.processes.find(SCRIPT, folder)) is not None or not files.exists(folder / SCRIPT):
        return pid
    return moment.processes.find(SCRIPT, files.folders.root_of(folder))


def _iterations(plan: _Plan, log: ProgressLog, *, with_learnings: bool) -> Iterator[Iteration]:
    """Yield the entries of the log, then the passed stories that it lacks."""
    stories = {story.id: story for story in plan.stories}
    written = {entry.story for entry in log.entries}
    number = 0
    for number, entry in enumerate(log.entries, start=1):
        story = stories.get(entry.story)
        yield Iteration(
            number=number,
            at=entry.at,
            action=cut(f"{story.id} {story.title}" if story else entry.title, MAX_LABEL),
            result=cut("\n".join(note.text for note in entry.notes)) if with_learnings else "",
            outcome=Outcome.SUCCESS if story and story.passes else Outcome.UNKNOWN,
            learnings=tuple(note.text for note in entry.learnings) if with_learnings else (),
            files=tuple(entry.files),
        )
    passed = (story for story in plan.stories if story.passes and story.id not in written)
    for place, story in enumerate(passed, start=number + 1):
        action = cut(f"{story.id} {story.title}", MAX_LABEL)
        yield Iteration(number=place, action=action, result=cut(story.notes), outcome=Outcome.SUCCESS)
