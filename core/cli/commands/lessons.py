"""`ralphdeck lesson list`, `show`, `accept` and `reject`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.base.errors import Refused
from core.base.id_lookup import find_matching_ids, require_one
from core.cli.json import objects
from core.cli.render.document import print_document
from core.cli.render.output import Column, end, id_column, print_object, print_table, remark, wants_json
from core.cli.support.id_completion import complete_lesson
from core.cli.support.options import DecidingCommand, OneOf, ReadingCommand, limit_option, reason_option, words_option
from core.cli.support.project import open_project
from core.decisions.commands import Extract
from core.records.extractions import ALL_TYPES
from core.records.patterns import PatternType
from core.records.reflections import JoinedLesson, LessonKind, LessonState
from core.show.pages.reflections import place_name

if TYPE_CHECKING:
    from core.project.project import Project

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
lesson_argument = click.argument("lesson_id", metavar="ID", shell_complete=complete_lesson)


@click.command("list", cls=ReadingCommand)
@click.option("--runner", metavar="NAME", help="Only lessons in files of this runner or agent.")
@words_option("--kind", words=[kind.value for kind in LessonKind], help="Only of these kinds.")
@words_option(
    "--state",
    words=[*(state.value for state in LessonState), CONTRADICTS],
    help="Only in these states. `contradicts`: an approved pattern, or another lesson, demands the opposite.",
)
@click.option("--loaded", is_flag=True, help="Only lessons that an agent adds to its context by itself.")
@limit_option
def list_lessons(
    runner: str | None, kind: frozenset[str], state: frozenset[str], loaded: bool, limit: int | None
) -> None:
    """List what agents and runners wrote down as learned, in their own memories and progress files.

    Lessons that say the same are one row, wherever they are written. Nothing of a lesson is injected before a person
    accepts it. The agent itself may load it: see LOADED.

    \b
    Examples:
      ralphdeck lesson list --state open
      ralphdeck lesson list --runner claude --loaded --state contradicts
      ralphdeck lesson list --json | jq -r '.lessons[].text'
    """
    from core.index.findings import all_findings

    project = _open_project()
    found = [
        one
        for one in project.lessons()
        if (runner is None or runner in one.runners)
        and (not kind or one.lesson.kind in kind)
        and (not state or one.state in state or (one.is_contradicted and CONTRADICTS in state))
        and (one.is_loaded or not loaded)
    ][:limit]
    if wants_json():
        print_object(
            "LessonList", findings=all_findings(project.view), lessons=(_lesson_json(project, one) for one in found)
        )
    else:
        print_table(COLUMNS, found, "no lessons")
    end(all_findings(project.view))


@click.command(cls=ReadingCommand)
@lesson_argument
def show(lesson_id: str) -> None:
    """Show a lesson: its text, where it is written, what contradicts it, and what was decided.

    For a rejected lesson the files and lines to delete are printed; ralphdeck never changes files of agents.

    \b
    Examples:
      ralphdeck lesson show lesson:1a2b3c4d5e6f7a8b
      ralphdeck lesson show 1a2b3c --json | jq .lesson.places
    """
    from core.show.pages.reflections import lesson_document

    project = _open_project()
    found = find_lesson(project, lesson_id)
    if wants_json():
        print_object("LessonDocument", findings=(), lesson=_lesson_json(project, found))
    else:
        print_document(lesson_document(project.view, found))
    end(())


@click.command(cls=DecidingCommand)
@lesson_argument
@click.option(
    "--type",
    "kind",
    type=OneOf([kind.value for kind in PatternType if kind is not PatternType.TEMPLATE]),
    help="Type of the pattern. Default: as the kind of the lesson says.",
)
@reason_option
def accept(lesson_id: str, kind: str | None, reason: str) -> None:
    """Make a candidate pattern of a lesson, or add a place to a pattern that says the same.

    The pattern names the session, the runner, the file and the line of each place. A fact needs a --type.

    \b
    Examples:
      ralphdeck lesson show 1a2b3c && ralphdeck lesson accept 1a2b3c
      ralphdeck lesson accept 1a2b3c --type anti --reason "seen in three sessions" && ralphdeck undo
    """
    from core.cli.commands.decisions import decide

    project = _open_project()
    types = frozenset({PatternType(kind)}) if kind is not None else ALL_TYPES
    found = find_lesson(project, lesson_id)
    decide(project, Extract(found.id, types, reason=reason))


@click.command(cls=DecidingCommand)
@lesson_argument
@reason_option
def reject(lesson_id: str, reason: str) -> None:
    """Do not ask about the text of a lesson again, in any file, unless it changes.

    The agent still has the lesson: the files and lines to delete are printed. ralphdeck never changes them.

    \b
    Examples:
      ralphdeck lesson reject 1a2b3c --reason "only true before the migration" && ralphdeck undo
    """
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
    return by_id[require_one(found, name, what="lesson", command="lesson list", known=by_id)]


def _lesson_json(project: Project, joined: JoinedLesson) -> objects.Wire:
    from core.base.scanning.verdict import describe_danger  # reads the rules, which the help does not need

    return objects.AgentLesson.of(joined, joined.lesson, danger=describe_danger(joined.lesson.text, project.settings))
