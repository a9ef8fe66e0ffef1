"""All tables of the index; each module has those that it fills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_TABLES: Final = (
    # Values of the whole project by name.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
    # Files that were read, with their stamps at that time, and folders with what they contain.
    "CREATE TABLE file (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, inode INT, size INT, mtime INT,"
    " ctime INT)",
    "CREATE TABLE folder (path TEXT PRIMARY KEY, inode INT, size INT, mtime INT, ctime INT, folders TEXT, files TEXT)"
    " WITHOUT ROWID",
    # Files whose content was incomplete when they were last read: since when, and whether that is a finding.
    "CREATE TABLE torn (path TEXT PRIMARY KEY, since REAL, is_reported INT, problem BLOB) WITHOUT ROWID",
    # What single files say. Parts with the same kind and key are joined to records.
    "CREATE TABLE part (number INTEGER PRIMARY KEY, file INT NOT NULL, kind INT NOT NULL, key TEXT NOT NULL,"
    " loop TEXT, data BLOB NOT NULL)",
    "CREATE INDEX part_by_key ON part (kind, key)",
    "CREATE INDEX part_by_file ON part (file)",
    "CREATE INDEX part_by_loop ON part (kind, loop) WHERE loop IS NOT NULL",
    # Records of the project. A changed record gets a new number; `is_open` if time alone may change it.
    "CREATE TABLE record (number INTEGER PRIMARY KEY AUTOINCREMENT, kind INT NOT NULL, id TEXT NOT NULL,"
    " key TEXT NOT NULL, place REAL, is_open INT NOT NULL, data BLOB NOT NULL)",
    "CREATE UNIQUE INDEX record_by_id ON record (kind, id)",
    "CREATE INDEX record_by_key ON record (kind, key)",
    "CREATE INDEX record_by_place ON record (kind, place DESC, id)",
    "CREATE INDEX record_open ON record (kind) WHERE is_open",
    # IDs of removed records, for views that showed them.
    "CREATE TABLE removed (number INTEGER PRIMARY KEY AUTOINCREMENT, kind INT NOT NULL, id TEXT NOT NULL)",
    # Other IDs of loops, and the tasks in which a session of an agent worked.
    "CREATE TABLE alias (kind INT, name TEXT, id TEXT, PRIMARY KEY (kind, name, id)) WITHOUT ROWID",
    "CREATE INDEX alias_by_id ON alias (kind, id)",
    "CREATE TABLE session_work (loop TEXT, task TEXT, PRIMARY KEY (loop, task)) WITHOUT ROWID",
    "CREATE INDEX session_work_by_task ON session_work (task)",
    # Patterns have a place, which is their row in columns and posting lists. A place is given once.
    "CREATE TABLE pattern (place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE reference (source TEXT, target TEXT, PRIMARY KEY (source, target)) WITHOUT ROWID",
    "CREATE INDEX reference_by_target ON reference (target)",
    # Findings by what they are about: a file, a folder, a group of loops, a pattern.
    "CREATE TABLE finding (about TEXT, number INT, data BLOB NOT NULL, PRIMARY KEY (about, number)) WITHOUT ROWID",
    # Verdicts of the searches for review questions, which are not filled from files.
    "CREATE TABLE verdict (kind TEXT, key TEXT, owner BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (kind, key))"
    " WITHOUT ROWID",
)


class AllTables:
    """The statements that create all tables; iterating imports the modules that fill them, for a new index alone."""

    def __iter__(self) -> Iterator[str]:
        from core.index import (
            events,
            evidence,
            learnings,
            past_tasks,
            scores,
            similarity,
            task_words,
            terms,
        )
        from core.tasks import debug_index

        yield from _TABLES
        for module in (debug_index, events, evidence, learnings, past_tasks, scores, similarity, task_words, terms):
            yield from module.TABLES


ALL_TABLES: Final = AllTables()
