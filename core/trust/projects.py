"""Projects trusted in the user's own state (docs/safety.md#trusted-projects).

Nothing from another project reaches an agent. The record of a project names its real path and its owner; a random key
in a private file of the project, which Git ignores, shows that the folder is still the one that was trusted and not a
new clone in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from core.base.errors import RalphdeckError, Refused, Unwritable
from core.base.paths import ProjectPaths, is_in_trusted_path
from core.files.atomic_write import put
from core.files.file_access import open_regular
from core.files.file_reader import read_first_line
from core.files.user_files import read_tables, state_file, team_file
from core.records.times import iso

TABLE: Final = "trusted_projects"
NOT_TRUSTED: Final = (
    "This project is not trusted yet, so agents get nothing from it. To see what it brings, and decide: ralphdeck trust"
)
FOR_AGENTS: Final = (
    "Ask the user about this project: it has lessons that agents do not get before the user trusts it. To look and "
    "decide, the user runs in a terminal: ralphdeck trust"
)
_KEY_BYTES: Final = 64  # maximum size of the file with the key
Answer = Literal["trusted", "declined", "revoked"]


class TrustedProject(Struct, frozen=True, kw_only=True):
    """The answer of the user about one project.

    `path` is the real path of the project, `owner` the user ID of its `.aiwg`, `project_id` its ID then, "" if it had
    none, `how` what made the record: `init`, `connect`, `team join` or `question`.
    """

    path: str
    owner: int
    key: str
    project_id: str = ""
    since: str  # ISO-8601
    how: str
    answer: Answer = "trusted"


def is_trusted(paths: ProjectPaths) -> bool:
    """Return whether agents may get a project's texts; without `.aiwg` it has none."""
    if is_in_trusted_path(paths.project) or not os.path.lexists(paths.aiwg):
        return True
    found = find_answer(paths)
    return found is not None and found.answer == "trusted"


def require_trust(paths: ProjectPaths) -> None:
    """Raise Refused unless agents may get texts of a project."""
    if not is_trusted(paths):
        raise Refused(NOT_TRUSTED)


def find_answer(paths: ProjectPaths) -> TrustedProject | None:
    """Return the user's answer about this folder; None if open, revoked or replaced."""
    record = find_record(paths)
    root = ProjectPaths(trust_root(paths.project))
    return record if record is not None and record.answer != "revoked" and _is_same_folder(root, record) else None


def find_record(paths: ProjectPaths) -> TrustedProject | None:
    """Return the last answer for this path, even if revoked or the folder changed."""
    real = os.path.realpath(trust_root(paths.project))
    return next((record for record in list_answers() if record.path == real), None)


def _is_same_folder(paths: ProjectPaths, record: TrustedProject) -> bool:
    try:
        owner = paths.aiwg.lstat().st_uid
    except OSError:
        return False
    return owner == record.owner and compare_digest(_read_key(paths), record.key.encode())


def list_answers() -> tuple[TrustedProject, ...]:
    """Return all answers; empty if the user's state cannot be read."""
    try:
        rows = read_tables(state_file()).rows(TABLE)
    except Unwritable:
        return ()
    answers = []
    for row in rows:
        with suppress(msgspec.ValidationError):
            answers.append(msgspec.convert(row, TrustedProject))
    return tuple(answers)


def save_answer(
    paths: ProjectPaths, how: str, now: datetime, *, answer: Answer = "trusted", project_id: str = ""
) -> TrustedProject:
    """Save the user's answer about a project, replacing any. Raises Unwritable."""
    from tinydb import where  # hooks only read

    from core.files.user_files import UserStore

    root = ProjectPaths(trust_root(paths.project))
    try:
        owner = root.aiwg.lstat().st_uid
    except OSError as error:
        raise Unwritable(f"cannot read {root.aiwg}: {error.strerror}") from None
    with UserStore(state_file()).transaction() as tables:
        # A repository can bring a key, so only one that this user made for this folder is kept. The lock makes that two
        # processes that trust it at once agree on one key.
        known = find_answer(paths)
        record = TrustedProject(
            path=os.path.realpath(root.project),
            owner=owner,
            key=known.key if known is not None else _make_key(root),
            project_id=project_id,
            since=known.since if known is not None else iso(now) or "",
            how=how,
            answer=answer,
        )
        tables.table(TABLE).upsert(msgspec.to_builtins(record), where("path") == record.path)
    return record


def revoke_answer(paths: ProjectPaths, now: datetime) -> bool:
    """Revoke the user's answer, so it is asked again; return whether there was one.

    The record stays, so that only an answer to the question trusts the project again.
    """
    from tinydb import where

    from core.files.user_files import UserStore

    real = os.path.realpath(trust_root(paths.project))
    is_answer = (where("path") == real) & (where("answer") != "revoked")
    with UserStore(state_file()).transaction() as tables:
        revoked: Iterable[int] = tables.table(TABLE).update({"answer": "revoked", "since": iso(now)}, is_answer)
    return bool(list(revoked))


def is_joined(project: Path) -> bool:
    """Return whether the user joined the project to a team, so its sums may be used."""
    try:
        with os.fdopen(open_regular(team_file(), os.O_RDONLY), "rb") as file:
            projects = msgspec.json.decode(file.read(), type=dict[str, dict[str, msgspec.Raw]])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return str(project.resolve()) in projects.get("projects", {})


def _key_file(paths: ProjectPaths) -> Path:
    return paths.sessions / "trust-key"


def _read_key(paths: ProjectPaths) -> bytes:
    try:
        with os.fdopen(open_regular(_key_file(paths), os.O_RDONLY), "rb") as file:
            data = file.read(_KEY_BYTES).strip()
    except OSError:
        return b""
    return data if data.isalnum() else b""


def _make_key(paths: ProjectPaths) -> str:
    key = os.urandom(16).hex()
    file = _key_file(paths)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        put(file, key.encode() + b"\n")
    except OSError as error:
        raise Unwritable(f"cannot write {file}: {error.strerror}") from None
    except RalphdeckError as error:
        raise Unwritable(str(error)) from None
    return key


# Worktrees share the trust in the main working tree of their repository


@lru_cache(maxsize=64)
def trust_root(project: Path) -> Path:
    """Return the project folder whose trust counts for `project`.

    For a worktree that its repository knows, that is the same folder in the main working tree. Git keeps the list of
    worktrees inside the main `.git` folder, which no clone can write.
    """
    real = Path(os.path.realpath(project))
    top = next((folder for folder in (real, *real.parents) if (folder / ".git").is_file()), None)
    if top is None or any((folder / ".git").is_dir() for folder in (real, *real.parents) if folder.is_relative_to(top)):
        return real
    link = read_first_line(top / ".git").removeprefix("gitdir:").strip()
    entry = Path(os.path.realpath(top / link)) if link else top
    is_known = entry.parent.name == "worktrees" and os.path.realpath(read_first_line(entry / "gitdir")) == str(
        top / ".git"
    )
    if not is_known or entry.parent.parent.name != ".git":
        return real
    return entry.parent.parent.parent / real.relative_to(top)
