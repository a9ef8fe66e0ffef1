"""The common options of one call of the program."""

from __future__ import annotations

from pathlib import Path

import click


class Invocation:
    """Common options of a call, wherever they are on the command line; `folder` is the project that was found."""

    folder: Path | None = None
    project: Path | None = None
    readonly: bool = False
    by: str | None = None
    as_json: bool = False
    strict: bool = False


def invocation() -> Invocation:
    return click.get_current_context().ensure_object(Invocation)
