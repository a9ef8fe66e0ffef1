"""Shell completion of IDs; silent on any error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import click

from core.config.paths import SAFE_ID


def _completer(read_ids: Callable[[], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Complete the IDs that a function reads; without those that a shell would interpret."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        try:
            with ctx.scope(cleanup=False):
                return [one for one in read_ids() if one.startswith(incomplete) and SAFE_ID.fullmatch(one)]
        except Exception:  # completion must not print errors
            return []

    return complete


def _ids_of(*kinds: str) -> Callable[[], Iterator[str]]:
    def read_ids() -> Iterator[str]:
        from core.cli.support.project import read_snapshot

        snapshot = read_snapshot()
        return (one for kind in kinds for one in getattr(snapshot, kind))

    return read_ids


def _task_ids() -> Iterable[str]:
    from core.cli.support.project import chosen_project
    from core.episodes.task_lookup import task_ids

    return task_ids(chosen_project())


complete_loop: Final = _completer(_ids_of("loops"))
complete_pattern: Final = _completer(_ids_of("patterns"))
complete_session: Final = _completer(_ids_of("debug_sessions"))
complete_source: Final = _completer(_ids_of("loops", "tasks", "debug_sessions"))
complete_task: Final = _completer(_task_ids)
complete_work: Final = _completer(_ids_of("loops", "attempts"))
