"""Ids for shell completion, from the files; silent where anything is wrong."""

from __future__ import annotations

from collections.abc import Iterable

import click

from core.config.paths import SAFE_ID


def complete_loop(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of loops that begin so."""
    return _offered(ctx, "loops", incomplete)


def complete_pattern(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of patterns that begin so."""
    return _offered(ctx, "patterns", incomplete)


def complete_work(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of loops and of attempts at tasks that begin so."""
    return _offered(ctx, "loops", incomplete) + _offered(ctx, "attempts", incomplete)


def complete_task(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of tasks that begin so; a look into one folder."""
    from core.cli.support.project import chosen_project
    from core.episodes.task_lookup import task_ids

    try:
        with ctx.scope(cleanup=False):
            ids = task_ids(chosen_project())
    except Exception:  # a key press in a shell is no place for an error message
        return []
    return _harmless(ids, incomplete)


def complete_source(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of loops, of tasks and of debug sessions that begin so."""
    return [id for kind in ("loops", "tasks", "debug_sessions") for id in _offered(ctx, kind, incomplete)]


def complete_session(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of debug sessions that begin so."""
    return _offered(ctx, "debug_sessions", incomplete)


def _offered(ctx: click.Context, records: str, incomplete: str) -> list[str]:
    from core.cli.support.project import read_snapshot

    try:
        with ctx.scope(cleanup=False):
            ids: Iterable[str] = getattr(read_snapshot(), records)
    except Exception:  # a key press in a shell is no place for an error message
        return []
    return _harmless(ids, incomplete)


def _harmless(ids: Iterable[str], incomplete: str) -> list[str]:
    """Those that begin so; the shell would run or show what else an id may hold."""
    return [identifier for identifier in ids if identifier.startswith(incomplete) and SAFE_ID.fullmatch(identifier)]
