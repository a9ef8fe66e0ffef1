"""`ralphdeck lesson`: lessons that agents and runners wrote, and reflections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from core.base.errors import Refused
from core.base.validation import find_matching_ids, require_one
from core.cli.json import loops as loops_json
from core.cli.support.document import print_document
from core.cli.support.options import (
    ListingCommand,
    OneOf,
    WholeNumber,
    choose_mode,
    filter_option,
    limit_option,
    read_filter,
    reason_option,
    words_option,
)
from core.cli.support.output import (
    OUTCOME_COLOURS,
    Column,
    end,
    format_optional,
    id_column,
    minute,
    print_object,
    print_table,
    remark,
    wants_json,
)
from core.cli.support.project import complete_lesson, complete_loop, open_project, open_reader, read_snapshot
from core.decisions.commands import Extract
from core.records.extractions import ALL_TYPES
from core.records.patterns import PatternType
from core.records.reflections import MIN_LOOPS, JoinedLesson, LessonKind, LessonState
from core.show.pages.reflections import place_name

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.project.project import Project
    from core.records.reflections import Reflection as ReflectionRecord

CONTRADICTS = "contradicts"  # A state beside the others: an approved pattern or another lesson demands the opposite.
COLUMNS = (
    id_column("ID", lambda one: one.id),
    Column("STATE", lambda one: f"{one.state.value}{', contradicts' if one.is_contradicted else ''}"),
    Column("KIND", lambda one: one.lesson.kind.value, expendable=4),
    Column("RUNNER", lambda one: ", ".join(one.runners), expendable=3),
    Column("LOADED", lambda one: "yes" if one.is_loaded else "", expendable=2),
    Column("CITED", lambda one: "" if one.uses is None else f"{one.uses:,}", right=True, expendable=1),
    Column("LESSON", lambda one: one.lesson.text, free=True, least=40),
    Column("FILE", lambda one: place_name(one.lesson), free=True, expendable=5),
)

REFLECTION_KINDS = (
    "error-analysis",
    "strategy-change",
    "success-pattern",
    "constraint-discovery",
    "process-improvement",
)


_MODES: Final = {
    "ID": "accept reject kind_of_pattern reason",
    "--reflections": "filter_text kind limit loop task",
    "--recurring": "kind limit loop task min_loops",
    "": "filter_text runner kind state loaded limit",
}


@click.command(cls=ListingCommand, modes=_MODES)
@click.argument("lesson_id", metavar="[ID]", required=False, shell_complete=complete_lesson)
@click.option("--accept", is_flag=True, help="Make a candidate pattern of the lesson with this ID.")
@click.option(
    "--type",
    "kind_of_pattern",
    type=OneOf([kind.value for kind in PatternType if kind is not PatternType.TEMPLATE]),
    help="With --accept: the type of the new pattern. Default: the one that fits the kind of the lesson.",
)
@click.option("--reject", is_flag=True, help="Do not ask about the text of the lesson again, in any file.")
@reason_option
@filter_option
@click.option("--runner", metavar="NAME", help="Only lessons in files of this runner or agent.")
@words_option("--kind", words=[*(kind.value for kind in LessonKind), *REFLECTION_KINDS], help="Only of these kinds.")
@words_option(
    "--state",
    words=[*(state.value for state in LessonState), CONTRADICTS],
    help="Only in these states; `contradicts`: a pattern or another lesson demands the opposite of the lesson.",
)
@click.option("--loaded", is_flag=True, help="Only lessons that an agent adds to its context by itself.")
@limit_option
@click.option("--reflections", is_flag=True, help="List what agents wrote about their attempts instead, newest first.")
@click.option("--recurring", is_flag=True, help="List learnings that several loops reported, most frequent first.")
@click.option("--loop", metavar="ID", help="With --reflections: only of this loop.", shell_complete=complete_loop)
@click.option("--task", metavar="ID", help="With --reflections: only of this task.")
@click.option(
    "--min-loops",
    type=WholeNumber(min=MIN_LOOPS),
    metavar="N",
    help=f"Minimum number of loops, or tasks without a known loop. Default: {MIN_LOOPS}.",
)
def lesson(
    lesson_id: str | None,
    accept: bool,
    kind_of_pattern: str | None,
    reject: bool,
    reason: str,
    filter_text: str,
    runner: str | None,
    kind: frozenset[str],
    state: frozenset[str],
    loaded: bool,
    limit: int | None,
    reflections: bool,
    recurring: bool,
    loop: str | None,
    task: str | None,
    min_loops: int | None,
) -> None:
    """List what agents and runners learned, from their memories and progress files.

    Lessons that say the same are one row, wherever they are written. Nothing of a lesson is injected before a person
    accepts it. The agent itself may load it: see LOADED.

    With ID, shows a lesson: its text, where it is written, what contradicts it, and what was decided. --accept makes a
    candidate pattern of it, or adds a place to a pattern that says the same; a fact needs a --type. --reject does not
    ask again, unless the text changes; the files and lines to delete are printed, and ralphdeck never changes them.

    --reflections lists what agents wrote about their attempts, without duplicates. Drafts without a learning are left
    out; `ralphdeck task show` has them. With --recurring, learnings with nearly the same text in several loops are
    listed once. Pass the ID of one to `ralphdeck loop extract` to draft a candidate pattern from it.

    \b
    Examples:
      ralphdeck lesson --state open
      ralphdeck lesson --filter 'runner:claude is:cited docker'
      ralphdeck lesson --runner claude --loaded --state contradicts
      ralphdeck lesson 1a2b3c
      ralphdeck lesson 1a2b3c --accept --type anti --reason "seen in three sessions" && ralphdeck undo
      ralphdeck lesson 1a2b3c --reject --reason "only true before the migration"
      ralphdeck lesson --reflections --kind strategy-change --limit 20 --json
      ralphdeck lesson --recurring --min-loops 3
    """
    mode = choose_mode(_MODES)
    words = {word.value for word in LessonKind} if mode == "" else set(REFLECTION_KINDS)
    if not kind <= words:
        raise click.UsageError(f"--kind {','.join(sorted(kind - words))} is not one of {', '.join(sorted(words))}")
    if lesson_id is None:
        if mode:
            list_reflections(filter_text, loop, task, kind, limit, recurring=recurring, min_loops=min_loops)
        else:
            _list_lessons(filter_text, runner, kind, state, loaded, limit)
        return
    if accept and reject:
        raise click.UsageError("give either --accept or --reject")
    if (kind_of_pattern and not accept) or (reason and not (accept or reject)):
        raise click.UsageError("--type needs --accept, and --reason a decision")
    if accept:
        _accept(lesson_id, kind_of_pattern, reason)
    elif reject:
        _reject(lesson_id, reason)
    else:
        _show(lesson_id)


def _list_lessons(
    filter_text: str,
    runner: str | None,
    kind: frozenset[str],
    state: frozenset[str],
    loaded: bool,
    limit: int | None,
) -> None:
    from core.index.project_state import all_findings
    from core.show.reflections import LESSON_FIELDS, select_lessons

    query = read_filter(filter_text, LESSON_FIELDS)
    project = _open_project()
    lessons = project.lessons()
    matching = set(select_lessons(lessons, query))
    found = [
        one
        for one in lessons
        if one.id in matching
        and (runner is None or runner in one.runners)
        and (not kind or one.lesson.kind in kind)
        and (not state or one.state in state or (one.is_contradicted and CONTRADICTS in state))
        and (one.is_loaded or not loaded)
    ][:limit]
    if wants_json():
        print_object(
            loops_json.LessonList,
            findings=all_findings(project.view),
            lessons=(_lesson_json(project, one) for one in found),
        )
    else:
        print_table(COLUMNS, found, "no lessons")
    end(all_findings(project.view))


def _show(lesson_id: str) -> None:
    from core.show.pages.reflections import lesson_document

    project = _open_project()
    found = find_lesson(project, lesson_id)
    if wants_json():
        print_object(loops_json.LessonDocument, findings=(), lesson=_lesson_json(project, found))
    else:
        print_document(lesson_document(project.view, found))
    end(())


def _accept(lesson_id: str, kind: str | None, reason: str) -> None:
    """Make a lesson a candidate, with session, runner, file and line of each place."""
    from core.cli.commands.decisions import decide

    project = _open_project()
    types = frozenset({PatternType(kind)}) if kind is not None else ALL_TYPES
    found = find_lesson(project, lesson_id)
    decide(project, Extract(found.id, types, reason=reason))


def _reject(lesson_id: str, reason: str) -> None:
    """Do not ask about the text of a lesson again."""
    from core.cli.commands.decisions import decide
    from core.questions.answer import reject_lesson

    project = _open_project()
    found = find_lesson(project, lesson_id)
    if found.state is LessonState.ACCEPTED:
        raise Refused(f"{found.id} is already {found.state}; undo that first: ralphdeck undo")
    decide(project, reject_lesson(found, reason))
    for place in found.places:
        remark(f"the agent still has it; to remove it, delete it in {place_name(place)}")


def _open_project() -> Project:
    """Open the project with the lessons of agents, without review questions."""
    project = open_project(asks=False)
    project.read_adapted()
    return project


def find_lesson(project: Project, name: str) -> JoinedLesson:
    """Find a lesson by its ID or a unique part of it; raises UnknownRecord."""
    by_id = {place.id: one for one in project.lessons() for place in one.places}
    found = find_matching_ids(name, by_id, fragments=True)
    if len({by_id[id].id for id in found}) == 1:
        return by_id[found[0]]
    return by_id[require_one(found, name, what="lesson", command="lesson", known=by_id)]


def _lesson_json(project: Project, joined: JoinedLesson) -> Wire:
    from core.base.scanning.verdict import describe_danger  # reads the rules, which the help does not need

    return loops_json.AgentLesson.of(
        joined, joined.lesson, danger=describe_danger(joined.lesson.text, project.settings)
    )


REFLECTION_COLUMNS = (
    Column("AT (UTC)", lambda one: minute(one.at), expendable=2),
    id_column("LOOP OR TASK", lambda one: one.loop_id or one.task_id),
    Column("ITERATION", lambda one: _iteration(one), right=True, expendable=3),
    Column("KIND", lambda one: f"{one.kind.replace('_', ' ')}{' (draft)' if one.draft else ''}".strip(), expendable=1),
    Column("OUTCOME", lambda one: one.outcome.label, colours=OUTCOME_COLOURS),
    Column("REFLECTION", lambda one: one.text, free=True),
)
RECURRING_COLUMNS = (
    Column("ID", lambda cluster: cluster.id),
    Column("LOOPS", lambda cluster: str(len(cluster.sources)), right=True),
    Column("LAST (UTC)", lambda cluster: minute(cluster.last_at), expendable=2),
    Column("KIND", lambda cluster: ", ".join(cluster.kinds).replace("_", " "), expendable=1),
    Column("LEARNING", lambda cluster: cluster.text, free=True),
)


def list_reflections(
    filter_text: str,
    loop: str | None,
    task: str | None,
    kind: frozenset[str],
    limit: int | None,
    *,
    recurring: bool,
    min_loops: int | None,
) -> None:
    """List reflections, or with `recurring` learnings of at least `min_loops` loops."""
    from core.show.reflections import REFLECTION_FIELDS, select_reflections

    query = read_filter(filter_text, REFLECTION_FIELDS)
    reader = open_reader(reads_agents=False) if recurring else None
    snapshot = reader.view.snapshot if reader is not None else read_snapshot()
    home = snapshot.find_loop(loop) if loop is not None else None
    loop_ids = {loop} if home is None else {home.id, *home.aliases}
    kinds = {word.replace("-", "_") for word in kind}

    def matches(source: str, reflection: ReflectionRecord) -> bool:
        is_of_loop = loop is None or source in loop_ids
        return is_of_loop and task in {None, reflection.task_id} and (not kinds or reflection.kind in kinds)

    if reader is not None:
        clusters = [
            cluster
            for cluster in reader.recurring()
            if len(cluster.sources) >= (min_loops or MIN_LOOPS) and any(matches(*one) for one in cluster.members)
        ][:limit]
        if wants_json():
            print_object(
                loops_json.RecurringList,
                findings=snapshot.findings,
                recurring=(
                    loops_json.RecurringLearning.of(one, reflections=[member.reflection.id for member in one.members])
                    for one in clusters
                ),
            )
        else:
            print_table(RECURRING_COLUMNS, clusters, "no recurring learnings")
        end(snapshot.findings)
        return
    selected = (snapshot.reflections[key] for key in select_reflections(snapshot.reflections, query))
    chosen = [one for one in selected if one.has_learning and matches(one.loop_id, one)][:limit]
    if wants_json():
        print_object(loops_json.ReflectionList, findings=snapshot.findings, reflections=chosen)
    else:
        print_table(REFLECTION_COLUMNS, chosen, "no reflections")
    end(snapshot.findings)


def _iteration(reflection: ReflectionRecord) -> str:
    return format_optional(reflection.iteration if reflection.iteration is not None else reflection.attempt)
