"""Hooks of agents: an event on stdin, an answer on stdout, exit code 0 on errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from core.base.errors import BadInput
from core.base.paths import find_project
from core.cli.support.options import invocation
from core.cli.support.output import print_bytes, print_json, remark
from core.cli.support.process import read_stdin
from core.cli.support.project import named_project
from core.files.file_reader import decode_json

CLAUDE_CODE: Final = "claude-code"
FORMS: Final = (CLAUDE_CODE, "plain")
SESSION: Final = "SessionStart"
PROMPT: Final = "UserPromptSubmit"

_NO_EVENT: Final = "stdin is not the JSON of an event"


class HookEvent(NamedTuple):
    """The event that an agent sends, in one of `FORMS`."""

    form: str
    name: str = SESSION
    task: str = ""  # The prompt of the user, "" at the start of a session.
    folder: str = ""  # Working directory of the agent, "" if unknown.
    fault: str = ""  # Why the event is invalid, "" for a valid one.


def read_event(form: str) -> HookEvent:
    """Read the event from stdin: a JSON object, or for `plain` also a task's text.

    Raises BadInput if Claude Code does not accept a context for this event.
    """
    data = read_stdin()
    decoded = decode_json(data)
    if not isinstance(decoded.value, dict):
        if form == "plain":
            return HookEvent(form, task=data.decode(errors="replace").strip())
        return HookEvent(form, fault=_NO_EVENT)
    fields: dict[str, Any] = {key: value for key, value in decoded.value.items() if isinstance(value, str)}
    name = fields.get("hook_event_name", SESSION)
    if form == CLAUDE_CODE and name not in (SESSION, PROMPT):
        raise BadInput(f"{name} accepts no context; use {SESSION} or {PROMPT}")
    return HookEvent(
        form, name, task=fields.get("prompt", fields.get("task", "")).strip(), folder=fields.get("cwd", "")
    )


def read_tool_event() -> dict[str, Any]:
    """Read the event of a tool call from stdin; raises BadInput if it is not one."""
    value = decode_json(read_stdin()).value
    if not isinstance(value, dict):
        raise BadInput(_NO_EVENT)
    return value


def use_folder(folder: str) -> None:
    """Use the project of the agent's folder, unless another one is named."""
    if folder and named_project() is None:
        invocation().project = find_project(Path(folder)).project


def print_answer(event: HookEvent, context: str) -> None:
    """Print the context in the form that the agent expects; nothing if it is empty."""
    if event.form == "plain":
        print_bytes(context.encode("utf-8", "replace"))
    elif context:
        print_json({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}})


class HookCommand(click.Command):
    """A command that with `--hook`, or `always`, never blocks an agent.

    An error is reported in one line on stderr, nothing is printed, and the exit code is 0, because Claude Code drops
    the user's prompt on exit code 2 (wrong usage). `skipped` names in that line what did not happen.
    """

    def __init__(self, *args: Any, skipped: str, always: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self._skipped = skipped
        self._always = always

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        is_hook = self._always or any(arg.partition("=")[0] == "--hook" for arg in args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if not is_hook:
                raise
            read_stdin()  # else the writer of the event gets a broken pipe
            raise self._report(error.format_message()) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if not (self._always or ctx.params.get("hook")):
                raise
            reason = error.format_message() if isinstance(error, click.ClickException) else str(error)
            raise self._report(reason or type(error).__name__) from None

    def _report(self, reason: str) -> click.exceptions.Exit:
        remark(f"ralphdeck {self._skipped}: {reason}")
        return click.exceptions.Exit(0)
