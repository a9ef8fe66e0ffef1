"""What is known about a session of Codex (docs/adapter-files.md#codex)."""

from __future__ import annotations

from msgspec import Struct

from core.adapters.sessions import TestRun, Turn


class Tokens(Struct, array_like=True, gc=False):
    """Cumulative numbers of tokens; `cached` is a part of `input`, `reasoning` of `output`."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class Goal(Struct, array_like=True, gc=False):
    """Goal of a session, and its status in the words of Codex."""

    objective: str = ""
    status: str = ""
    token_budget: int | None = None
    tokens_used: int | None = None
    seconds_used: int | None = None
    created_ms: float = 0
    updated_ms: float = 0


class Call(Struct, array_like=True):
    """A command or patch without a result yet."""

    command: str = ""
    files: list[str] = []
    exit_code: int | None = None


class Rollout(Struct):
    """What a rollout shows about its session; times are as written."""

    id: str = ""
    cwd: str = ""
    started: str = ""
    source: str = ""  # cli, vscode, exec, mcp or subagent
    version: str = ""
    branch: str = ""
    parent: str = ""  # session that started this one
    forked_from: str = ""  # session whose history this one continues
    model: str = ""
    task: str = ""
    last: str = ""  # time of the last line
    is_copy: bool = False  # the lines are a copy of the history of another session
    copied: Tokens | None = None  # of that history
    tokens: Tokens | None = None
    goal: Goal | None = None
    turns: list[Turn] = []
    turn_count: int = 0
    commands: int = 0
    failures: int = 0
    compactions: int = 0
    files: list[str] = []
    has_other_changes: bool = False  # a command ran that can change files
    test: TestRun | None = None
    changed: str = ""  # time of the last change of a file, a commit or a resolved error
    calls: dict[str, Call] = {}
