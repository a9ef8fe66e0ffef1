"""Shell completion of IDs; silent on any error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from core.base.paths import SAFE_ID

if TYPE_CHECKING:
    import click


def _completer(*kinds: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Complete the IDs of records, except IDs that a shell would interpret."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        try:
            with ctx.scope(cleanup=False):
                return [one for one in _read_ids(*kinds) if one.startswith(incomplete) and SAFE_ID.fullmatch(one)]
        except Exception:  # completion must not print errors
            return []

    return complete


def _read_ids(*kinds: str) -> Iterable[str]:
    from core.cli.support.project import chosen_project, read_snapshot

    if kinds == ("tasks",):  # needs only one folder
        from core.tasks.task_files import task_ids

        return task_ids(chosen_project())
    snapshot = read_snapshot(adapted="lessons" in kinds)
    return (one for kind in kinds for one in getattr(snapshot, kind))


complete_lesson: Final = _completer("lessons")
complete_loop: Final = _completer("loops")
complete_pattern: Final = _completer("patterns")
complete_session: Final = _completer("debug_sessions")
complete_source: Final = _completer("loops", "tasks", "debug_sessions")
complete_task: Final = _completer("tasks")
complete_work: Final = _completer("loops", "attempts")
