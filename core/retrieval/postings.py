"""Posting lists of an inverted index: the rows of each key, such as a word."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from core.base.steps import Steps, run_all

Rows = NDArray[np.int32]
_Key = TypeVar("_Key")


def index_rows(keys_of_rows: Iterable[Iterable[_Key]], first: int = 0) -> dict[_Key, Rows]:
    """Return the rows by key; rows are numbered from `first`."""
    return run_all(index_rows_in_steps(keys_of_rows, first))


def index_rows_in_steps(keys_of_rows: Iterable[Iterable[_Key]], first: int = 0) -> Steps[dict[_Key, Rows]]:
    """Do `index_rows` step by step."""
    found: dict[_Key, array[int]] = {}
    for row, keys in enumerate(keys_of_rows, first):
        for key in keys:
            found.setdefault(key, array("i")).append(row)
        yield
    return (yield from convert_in_steps(found))


def convert_in_steps(found: Mapping[_Key, array[int]]) -> Steps[dict[_Key, Rows]]:
    """Return the same rows by key, as posting lists."""
    postings = {}
    for key, rows in found.items():
        postings[key] = np.array(rows, np.int32)
        yield
    return postings


def move_row(postings: dict[_Key, Rows], before: set[_Key], after: set[_Key], row: int) -> None:
    """Change the keys of a row from `before` to `after`."""
    for key in before - after:
        left = postings[key][postings[key] != row]
        if left.size:
            postings[key] = left
        else:
            del postings[key]
    for key in after - before:
        postings[key] = np.append(postings.get(key, np.empty(0, np.int32)), np.int32(row))
