"""Tables of databases whose columns differ between versions."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles


def columns_of(files: RunnerFiles, path: Path, table: str) -> frozenset[str]:
    """Return the columns of a table; none if it does not exist."""
    return frozenset(str(row[0]) for row in files.rows(path, "SELECT name FROM pragma_table_info(?)", (table,)))


def read_table(
    files: RunnerFiles,
    path: Path,
    table: str,
    columns: Sequence[str],
    required: Set[str] = frozenset(),
    where: tuple[str, Sequence[Any]] = ("1", ()),
) -> list[tuple[Any, ...]] | None:
    """Return the rows of a table that match a condition; None if there is none with the `required` columns.

    Other columns that are missing are None. The names and the condition are part of the query, so they must be
    constants; its values are not.
    """
    known = columns_of(files, path, table)
    if not known or not known >= required:
        return None
    wanted = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
    return files.rows(path, f'SELECT {wanted} FROM "{table}" WHERE {where[0]}', where[1])
