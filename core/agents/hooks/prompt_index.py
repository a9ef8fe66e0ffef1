"""Tasks by the first prompts of sessions: a prompt that a new process repeats is another attempt at the same task.

One small file in the folder of the session records, private to one machine. A damaged file counts as empty.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from core.agents.hooks.sessions import read_record, save_record
from core.files.file_access import file_lock

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

REPEATED_WITHIN: Final = timedelta(days=1)
MAX_PROMPTS: Final = 500  # the newest ones
_NAME: Final = "prompts.json"
_MAX_BYTES: Final = 1 << 18
_LOCK_SECONDS: Final = 3.0


class PromptTask(Struct, frozen=True):
    """The task of a prompt, and the session that worked on it last."""

    task: str
    session: str
    at: Annotated[datetime, Meta(tz=True)]


_decoder: Final = msgspec.json.Decoder(dict[str, PromptTask])


def find_prompt_task(project: ProjectPaths, prompt: str, now: datetime) -> PromptTask | None:
    """Return the task of a prompt, by its digest, if a session began with it lately."""
    found = _read(_file(project)).get(prompt)
    return found if found is not None and abs(now - found.at) <= REPEATED_WITHIN else None


def remember_prompt_task(project: ProjectPaths, prompt: str, task: PromptTask) -> None:
    """Remember the task of a session by the digest of its first prompt; Unwritable if that fails."""
    path = _file(project)
    with file_lock(path.with_suffix(".lock"), _LOCK_SECONDS):
        tasks = _read(path)
        tasks.pop(prompt, None)
        tasks[prompt] = task
        save_record(path, msgspec.json.encode(_newest(tasks)))


def _newest(tasks: dict[str, PromptTask]) -> dict[str, PromptTask]:
    """Return the entries that were added last and fit into the file; times may be wrong, so the order decides."""
    newest = list(reversed(tasks.items()))[:MAX_PROMPTS]
    sizes = accumulate(len(msgspec.json.encode({prompt: task})) for prompt, task in newest)
    fitting = sum(size < _MAX_BYTES for size in sizes)
    return dict(reversed(newest[:fitting]))


def _file(project: ProjectPaths) -> Path:
    return project.unlinked(project.relative(project.sessions)) / _NAME


def _read(path: Path) -> dict[str, PromptTask]:
    return read_record(path, _decoder, _MAX_BYTES) or {}
