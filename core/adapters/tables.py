"""Tables of databases whose columns differ between versions."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles


def read_table(
    files: RunnerFiles, path: Path, table: str, columns: Sequence[str], required: Set[str] = frozenset()
) -> list[tuple[Any, ...]] | None:
    """Return the rows of a table; None if there is none with the `required` columns.

    Other columns that are missing are None. The names are part of the query, so they must be constants.
    """
    known = {str(row[0]) for row in files.rows(path, f"SELECT name FROM pragma_table_info('{table}')")}
    if not known or not known >= required:
        return None
    wanted = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
    return files.rows(path, f'SELECT {wanted} FROM "{table}"')
