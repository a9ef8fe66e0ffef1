"""`ralphdeck pattern anchors`: what patterns are about, what became of it, and other anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import replace

from core.cli.json import patterns as patterns_json
from core.cli.render.output import line, print_object, remark, wants_json
from core.cli.support.id_completion import complete_pattern
from core.cli.support.options import DecidingCommand, reason_option
from core.cli.support.project import open_project

if TYPE_CHECKING:
    from core.cli.json.wire import Wire
    from core.index.anchors import Stale
    from core.index.project_state import ProjectState
    from core.records.anchors import AnchorChange
    from core.records.patterns import Pattern

_UNCHANGED: Final = {"change": "", "commit": "", "at": None, "to": ""}


@click.command(cls=DecidingCommand)
@click.argument("pattern_id", metavar="[ID]", required=False, shell_complete=complete_pattern)
@click.option("--add", "added", metavar="ANCHOR", multiple=True, help="A file, or FILE#NAME; may be repeated.")
@click.option("--remove", "removed", metavar="ANCHOR", multiple=True, help="An anchor to remove; may be repeated.")
@click.option(
    "--update",
    is_flag=True,
    help="Replace renamed files and moved names by what they are called now, also in the text.",
)
@reason_option
def anchors(
    pattern_id: str | None, added: tuple[str, ...], removed: tuple[str, ...], update: bool, reason: str
) -> None:
    """Show which files and names a pattern is about, and what Git shows about those that are gone.

    An anchor is a path in the project, or a path and a name in that file: a function, a class, or a dependency in a
    manifest. Without an ID, the patterns with anchors that were removed or renamed are listed. Other anchors do not
    change the text that agents get. --update also replaces the old paths in the text, which stays approved if it is.

    \b
    Examples:
      ralphdeck pattern anchors
      ralphdeck pattern anchors pat-error-null-check-015
      ralphdeck pattern anchors pat-error-null-check-015 --update
      ralphdeck pattern anchors pat-error-null-check-015 --add src/cart.py#total --remove src/basket.py
    """
    from core.base.steps import run_all
    from core.cli.commands.decisions import decide
    from core.index.anchors import explain_unchecked
    from core.index.verdicts import VerdictsInMemory
    from core.questions.doubts import find_stale_anchors, update_of

    is_change = bool(added or removed or update)
    if is_change and pattern_id is None:
        raise click.UsageError("--add, --remove and --update need the ID of a pattern")
    project = open_project(asks=False)
    state = project.view
    checked = VerdictsInMemory()
    changes = run_all(find_stale_anchors(state, checked))
    problem = explain_unchecked(state.snapshot, checked)
    if not state.settings.review.check_anchors:
        problem = "the setting review.check_anchors is off"
    if pattern_id is None:
        _print(state, [state.pattern(id) for id in changes if id in state.snapshot.patterns], changes, problem)
        return
    pattern = state.find_pattern(pattern_id)
    if not is_change:
        _print(state, [pattern], changes, problem)
        return
    renamed = update_of(pattern, changes.get(pattern.id, ()) if update else ())
    wanted = renamed.anchors
    if unknown := [one for one in removed if one not in wanted]:
        known = ", ".join(wanted) or "none"
        raise click.UsageError(f"{pattern.id} has no anchor {unknown[0][:80]!r}; its anchors: {known}")
    kept = [one for one in wanted if one not in removed]
    anchors = tuple(dict.fromkeys((*kept, *added)))
    decide(project, replace(renamed, anchors=anchors, reason=reason))


def anchor_rows(pattern: Pattern, changes: Sequence[AnchorChange]) -> list[Wire]:
    """Return the anchors of a pattern for JSON, each with what became of it."""
    known = {one.anchor: one for one in changes}
    return [patterns_json.Anchor.of(known.get(anchor, {**_UNCHANGED, "anchor": anchor})) for anchor in pattern.anchors]


def _print(state: ProjectState, patterns: Sequence[Pattern], changes: Stale, problem: str) -> None:
    from core.base.pattern_titles import describe_change
    from core.questions.doubts import describe_update

    rows = [patterns_json.PatternAnchors.of(one, anchors=anchor_rows(one, changes.get(one.id, ()))) for one in patterns]
    if wants_json():
        print_object(patterns_json.AnchorList, patterns=rows, problem=problem)
    else:
        for pattern in patterns:
            line((pattern.id, "bold"), f"  {pattern.title}")
            known = {one.anchor: one for one in changes.get(pattern.id, ())}
            for anchor in pattern.anchors:
                if (change := known.get(anchor)) is not None:
                    line("  ", (describe_change(change, state.now), "yellow"))
                else:
                    line(f"  {anchor}")
            if update := describe_update(pattern, changes.get(pattern.id, ())):
                line("  --update changes in its text:")
                for text in update.split("\n"):
                    line(f"    {text}")
        if problem:
            remark(f"not checked with Git: {problem}")
        elif not patterns:
            remark("no pattern is about a file or name that was removed or renamed")
        elif not any(pattern.anchors for pattern in patterns):
            remark("it has no anchors")
