"""What the hooks of agents tell and expect: the event on stdin, the answer on stdout, and never a failure."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from core.base.errors import BadInput
from core.cli.render.output import print_bytes, print_json, remark
from core.cli.support.options import Invocation
from core.cli.support.project import named_project
from core.config.paths import find_project
from core.storage.json_reader import decode_json

CLAUDE_CODE: Final = "claude-code"
FORMS: Final = (CLAUDE_CODE, "plain")
SESSION: Final = "SessionStart"
PROMPT: Final = "UserPromptSubmit"

_STDIN: Final = 0
_PATIENCE_SECONDS: Final = 2.0
"""How long to wait for the event of an agent that keeps stdin open and says nothing."""
_MAX_BYTES: Final = 64 << 20
"""Longest event: that of a tool has all of a file that was written."""
_NO_EVENT: Final = "stdin is not the JSON of an event"


class HookEvent(NamedTuple):
    """What an agent tells of the moment.

    Attributes:
        form: One of `FORMS`.
        name: `hook_event_name`; `SESSION` where it says none.
        task: What the person asked for, "" at the start of a session.
        folder: Where the agent works, "" if it says nothing.
        fault: Why nobody can tell what is wanted, "" if that is clear.
    """

    form: str
    name: str = SESSION
    task: str = ""
    folder: str = ""
    fault: str = ""


def read_event(form: str) -> HookEvent:
    """The event on stdin: a JSON object, or for `plain` also the bare text of a task.

    Raises:
        BadInput: Claude Code takes no context at this event.
    """
    data = _read_stdin()
    decoded = decode_json(data)
    if not isinstance(decoded.value, dict):
        if form == "plain":
            return HookEvent(form, task=data.decode(errors="replace").strip())
        return HookEvent(form, fault=_NO_EVENT)
    said: dict[str, Any] = {key: value for key, value in decoded.value.items() if isinstance(value, str)}
    name = said.get("hook_event_name", SESSION)
    if form == CLAUDE_CODE and name not in (SESSION, PROMPT):
        raise BadInput(f"{name} takes no context; {SESSION} and {PROMPT} do")
    return HookEvent(
        form,
        name,
        task=said.get("prompt", said.get("task", "")).strip(),
        folder=said.get("cwd", ""),
    )


def read_tool_event() -> dict[str, Any]:
    """The event of a tool that was used, on stdin.

    Raises:
        BadInput: It is none.
    """
    value = decode_json(_read_stdin()).value
    if not isinstance(value, dict):
        raise BadInput(_NO_EVENT)
    return value


def work_in(folder: str) -> None:
    """Let the agent's own folder lead to the project, where nothing else names one."""
    if folder and named_project() is None:
        click.get_current_context().ensure_object(Invocation).project = find_project(Path(folder)).project


def _read_stdin() -> bytes:
    """What is written to stdin until it is closed, or silent for too long; nothing from a terminal."""
    chunks, size = [], 0
    try:
        if os.isatty(_STDIN):
            return b""
        while size < _MAX_BYTES and select.select([_STDIN], [], [], _PATIENCE_SECONDS)[0]:
            chunk = os.read(_STDIN, 1 << 16)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
    except OSError:  # stdin is closed
        pass
    return b"".join(chunks)


def print_answer(event: HookEvent, context: str) -> None:
    """What the agent is to read, in the form that it expects; nothing at all for no context."""
    if event.form == "plain":
        print_bytes(context.encode("utf-8", "replace"))
        return
    if context:
        print_json({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}})


class HookCommand(click.Command):
    """A command that with `--hook` never stands in an agent's way.

    Whatever goes wrong is one line on stderr; nothing is printed, and the exit code is 0. Claude Code would drop the
    person's prompt on an exit code of 2, that of wrong usage.

    Args:
        undone: What does not happen then, for that line.
    """

    def __init__(self, *args: Any, undone: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._undone = undone

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Take the options."""
        if not any(arg == "--hook" or arg.startswith("--hook=") for arg in args):
            return super().make_context(info_name, args, parent, **extra)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            _read_stdin()  # who writes the event would be told of a broken pipe
            raise self._let_go(error.format_message()) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        if not ctx.params.get("hook"):
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except click.ClickException as error:
            raise self._let_go(error.format_message()) from None
        except Exception as error:
            raise self._let_go(str(error) or type(error).__name__) from None

    def _let_go(self, reason: str) -> click.exceptions.Exit:
        remark(f"ralphdeck {self._undone}: {reason}")
        return click.exceptions.Exit(0)
