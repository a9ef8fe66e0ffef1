"""Shell completion of IDs; silent on any error."""

from __future__ import annotations

from collections.abc import Iterable

import click

from core.config.paths import SAFE_ID


def complete_loop(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """IDs of loops."""
    return _offered(ctx, "loops", incomplete)


def complete_pattern(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """IDs of patterns."""
    return _offered(ctx, "patterns", incomplete)


def complete_work(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """IDs of loops and attempts."""
    return _offered(ctx, "loops", incomplete) + _offered(ctx, "attempts", incomplete)


def complete_task(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """IDs of tasks, from one folder."""
    from core.cli.support.project import chosen_project
    from core.episodes.task_lookup import task_ids

    try:
        with ctx.scope(cleanup=False):
            ids = task_ids(chosen_project())
    except Exception:  # completion must not print errors
        return []
    return _safe(ids, incomplete)


def complete_source(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """IDs of loops, tasks and debug sessions."""
    return [id for kind in ("loops", "tasks", "debug_sessions") for id in _offered(ctx, kind, incomplete)]


def complete_session(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """IDs of debug sessions."""
    return _offered(ctx, "debug_sessions", incomplete)


def _offered(ctx: click.Context, records: str, incomplete: str) -> list[str]:
    from core.cli.support.project import read_snapshot

    try:
        with ctx.scope(cleanup=False):
            ids: Iterable[str] = getattr(read_snapshot(), records)
    except Exception:  # completion must not print errors
        return []
    return _safe(ids, incomplete)


def _safe(ids: Iterable[str], incomplete: str) -> list[str]:
    """The IDs with a prefix; without those that a shell would interpret."""
    return [identifier for identifier in ids if identifier.startswith(incomplete) and SAFE_ID.fullmatch(identifier)]
