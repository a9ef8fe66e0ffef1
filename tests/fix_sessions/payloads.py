"""The hook events and the transcript that each agent makes of a session, in the order in which it makes them.

The events have the keys that Claude Code 2.1.331, Codex 0.169.0, Gemini CLI 0.61.0 and Copilot CLI 1.0.102 sent;
those of Cursor follow its documentation. Gemini's transcript is left out, because its last event has all its texts.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from tests.fix_sessions.sessions import Failure, Session, Step

RECORDED_HOME: Final = "/home/user"
RECORDED_PROJECT: Final = f"{RECORDED_HOME}/project"
_TIME: Final = "2026-11-20T09:00:00.000Z"

JsonObject = dict[str, Any]


@dataclass
class Conversation:
    """One session of an agent; `send` gets each hook event, `change` each new content of a file."""

    id: str
    project: Path
    transcript: Path
    send: Callable[[JsonObject], None]
    files: dict[str, str] = field(default_factory=dict)
    _calls: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    agent: ClassVar[str]
    is_write_recorded: ClassVar[bool] = True  # whether it is known how the agent reports a written file
    is_refusal_recorded: ClassVar[bool] = False  # whether it is known how the agent reports a refused edit

    def play(self, session: Session) -> None:
        """Play a whole session; the files of the project change with it."""
        self.files = dict(session.files)
        self.start(session.prompt)
        text = ""
        for step in session.steps:
            if step.say:
                text = step.say
                self.say(text)
                continue
            self.call(step, text)
            text = ""
        if session.last:
            self.say(session.last)
        self.end([step.say for step in session.steps if step.say], session.last)

    def fail(self, failure: Failure) -> None:
        """Let one command fail."""
        self.call(Step(run=failure.command, exit=failure.exit, output=failure.output), "")

    def call(self, step: Step, text: str) -> None:
        """Make one tool call; `text` is what the agent wrote before it."""
        call_id = f"call_{self.id}_{next(self._calls):04}"
        if step.run:
            self.run(call_id, step.run, step.exit, self._located(step.output))
        elif step.read:
            self.read(call_id, step.read)
        elif step.error:
            self.fail_edit(call_id, step)
        else:
            name = step.edit or step.write
            before = self.files.get(name)
            after = step.content if step.write else (before or "").replace(step.old, step.new)
            self.files[name] = after
            target = self.project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(after)
            self.change(call_id, step, before, text)

    def start(self, prompt: str) -> None:
        raise NotImplementedError

    def say(self, text: str) -> None:
        raise NotImplementedError

    def run(self, call_id: str, command: str, code: int, output: str) -> None:
        raise NotImplementedError

    def read(self, call_id: str, name: str) -> None:
        raise NotImplementedError

    def change(self, call_id: str, step: Step, before: str | None, text: str) -> None:
        """Edit or write a file; `before` is its content, None if it is new."""
        raise NotImplementedError

    def fail_edit(self, call_id: str, step: Step) -> None:
        """Make an edit that the tool refuses."""
        raise NotImplementedError

    def end(self, texts: list[str], last: str) -> None:
        raise NotImplementedError

    def _located(self, text: str) -> str:
        """Return a text with the paths of this project."""
        return text.replace(RECORDED_PROJECT, str(self.project)).replace(RECORDED_HOME, str(self.project.parent))

    def _write(self, *entries: JsonObject) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)

    def _path(self, name: str) -> str:
        return str(self.project / name)


class Claude(Conversation):
    """Claude Code: failures are events of their own; the reading tools are not connected."""

    agent = "claude"
    is_refusal_recorded = True

    def start(self, prompt: str) -> None:
        self._send("SessionStart", source="startup")
        self._send("UserPromptSubmit", prompt=prompt, permission_mode="default")
        self._entry("user", prompt)

    def say(self, text: str) -> None:
        self._entry("assistant", [{"type": "text", "text": text}])

    def run(self, call_id: str, command: str, code: int, output: str) -> None:
        given = {"command": command, "description": "Run a command"}
        if code:
            error = f"Exit code {code}\n{output}".rstrip()
            self._call(call_id, "Bash", given, {"error": error, "is_interrupt": False}, error)
        else:
            streams = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            self._call(call_id, "Bash", given, {"tool_response": {**streams, "noOutputExpected": False}}, output)

    def read(self, call_id: str, name: str) -> None:
        self._entry("assistant", [self._use(call_id, "Read", {"file_path": self._path(name)})])
        self._result(call_id, self.files[name], is_error=False)

    def change(self, call_id: str, step: Step, before: str | None, text: str) -> None:
        path = self._path(step.edit or step.write)
        given: JsonObject
        response: JsonObject
        if step.edit:
            given = {"file_path": path, "old_string": step.old, "new_string": step.new, "replace_all": False}
            patch = _claude_hunks(before or "", self.files[step.edit])
            response = {"filePath": path, "oldString": step.old, "newString": step.new, "originalFile": before}
            response |= {"structuredPatch": patch, "userModified": False, "replaceAll": False}
        else:
            given = {"file_path": path, "content": step.content}
            kind, patch = ("create", []) if before is None else ("update", _claude_hunks(before, step.content))
            response = {"type": kind, "filePath": path, "content": step.content, "originalFile": before}
            response |= {"structuredPatch": patch}
        done = f"The file {path} has been updated successfully."
        self._call(call_id, "Edit" if step.edit else "Write", given, {"tool_response": response}, done)

    def fail_edit(self, call_id: str, step: Step) -> None:
        given = {"file_path": self._path(step.edit), "old_string": step.old, "new_string": step.new}
        error = f"<tool_use_error>{step.error}</tool_use_error>"
        self._call(call_id, "Edit", given, {"error": error, "is_interrupt": False}, error)

    def end(self, texts: list[str], last: str) -> None:
        self._send("Stop", stop_hook_active=False, last_assistant_message=last, background_tasks=[], session_crons=[])
        self._send("SessionEnd", reason="other")

    def _call(self, call_id: str, tool: str, given: JsonObject, result: JsonObject, text: str) -> None:
        self._entry("assistant", [self._use(call_id, tool, given)])
        event = "PostToolUseFailure" if "error" in result else "PostToolUse"
        self._send(event, tool_name=tool, tool_input=given, tool_use_id=call_id, duration_ms=700, **result)
        self._result(call_id, text, is_error="error" in result)

    def _use(self, call_id: str, tool: str, given: JsonObject) -> JsonObject:
        return {"type": "tool_use", "id": call_id, "name": tool, "input": given}

    def _result(self, call_id: str, text: str, *, is_error: bool) -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}
        self._entry("user", [block])

    def _entry(self, role: str, content: Any) -> None:
        common = {"isSidechain": False, "cwd": str(self.project), "sessionId": self.id, "timestamp": _TIME}
        self._write({"type": role, "message": {"role": role, "content": content}, **common})

    def _send(self, event: str, **fields: Any) -> None:
        common = {"session_id": self.id, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        self.send({**common, "hook_event_name": event, **fields})


class Codex(Conversation):
    """Codex: outputs without exit codes, which are only in the transcript; files are read with commands."""

    agent = "codex"

    def start(self, prompt: str) -> None:
        self._send("SessionStart", source="startup")
        self._send("UserPromptSubmit", prompt=prompt)
        self._response({"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]})
        self._item({"type": "UserMessage", "content": [{"type": "text", "text": prompt}]})

    def say(self, text: str) -> None:
        self._item({"type": "AgentMessage", "content": [{"type": "Text", "text": text}]})
        content = [{"type": "output_text", "text": text, "annotations": []}]
        self._response({"type": "message", "role": "assistant", "status": "completed", "content": content})

    def run(self, call_id: str, command: str, code: int, output: str) -> None:
        printed = f"{output}\n" if output else ""
        arguments = json.dumps({"cmd": command, "yield_time_ms": 30000})
        self._response({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call_id})
        ended = {"aggregated_output": printed, "exit_code": code, "status": "failed" if code else "completed"}
        self._item({"type": "CommandExecution", "id": call_id, "command": ["/usr/bin/bash", "-lc", command], **ended})
        self._tool("Bash", call_id, command, printed)
        shown = f"Wall time: 0.7 seconds\nProcess exited with code {code}\nOutput:\n{printed}"
        self._response({"type": "function_call_output", "call_id": call_id, "output": shown})

    def read(self, call_id: str, name: str) -> None:
        self.run(call_id, f"cat {name}", 0, self.files[name].rstrip("\n"))

    def change(self, call_id: str, step: Step, before: str | None, text: str) -> None:
        name = step.edit or step.write
        patch = _codex_patch(name, before, self.files[name])
        done = f"Success. Updated the following files:\n{'M' if before is not None else 'A'} {name}\n"
        self._response(self._patch_call(call_id, patch))
        kind = "update" if before is not None else "add"
        changes = {self._path(name): {"type": kind, "unified_diff": "\n".join(_diff(before or "", self.files[name]))}}
        self._item({"type": "FileChange", "id": call_id, "changes": changes, "status": "completed", "stdout": done})
        shown = f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{done}"
        self._send_patch(call_id, patch, shown)
        self._response({"type": "custom_tool_call_output", "call_id": call_id, "output": shown})

    def end(self, texts: list[str], last: str) -> None:
        self._send("Stop", stop_hook_active=False, last_assistant_message=last or None)
        self._send("SessionEnd", reason="other")

    def _patch_call(self, call_id: str, patch: str) -> JsonObject:
        return {"type": "custom_tool_call", "call_id": call_id, "name": "apply_patch", "input": patch}

    def _send_patch(self, call_id: str, patch: str, shown: str) -> None:
        self._tool("apply_patch", call_id, patch, shown)

    def _tool(self, tool: str, call_id: str, command: str, response: str) -> None:
        given = {"command": command}
        self._send("PostToolUse", tool_name=tool, tool_input=given, tool_response=response, tool_use_id=call_id)

    def _item(self, item: JsonObject) -> None:
        self._line("event_msg", {"type": "item_completed", "thread_id": self.id, "item": {"id": "item", **item}})

    def _response(self, payload: JsonObject) -> None:
        self._line("response_item", payload)

    def _line(self, kind: str, payload: JsonObject) -> None:
        self._write({"timestamp": _TIME, "type": kind, "payload": payload})

    def _send(self, event: str, **fields: Any) -> None:
        common = {"session_id": self.id, "turn_id": f"{self.id}-1", "transcript_path": str(self.transcript)}
        common |= {"cwd": str(self.project), "model": "gpt-5.5", "permission_mode": "bypassPermissions"}
        self.send({**common, "hook_event_name": event, **fields})


class CodexWithoutEdits(Codex):
    """Codex with a model that it does not know: a patch is a command, and only the transcript has the edit."""

    def _patch_call(self, call_id: str, patch: str) -> JsonObject:
        arguments = json.dumps({"cmd": f"apply_patch <<'PATCH'\n{patch}PATCH", "yield_time_ms": 30000})
        return {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call_id}

    def _send_patch(self, call_id: str, patch: str, shown: str) -> None:
        pass


class Gemini(Conversation):
    """Gemini CLI: an exit code only after a failure, all texts at the end of the turn."""

    agent = "gemini"
    _prompt = ""

    def start(self, prompt: str) -> None:
        self._prompt = prompt
        self._send("SessionStart", source="startup")
        self._send("BeforeAgent", prompt=prompt)

    def say(self, text: str) -> None:
        pass

    def run(self, call_id: str, command: str, code: int, output: str) -> None:
        lines = ["<untrusted_context>", f"Output: {output or '(empty)'}", *([f"Exit Code: {code}"] if code else [])]
        shown = "\n".join([*lines, "Process Group PGID: 29900", "</untrusted_context>"])
        given = {"command": command, "description": "Run a command"}
        self._tool("run_shell_command", given, {"llmContent": shown, "returnDisplay": output})

    def read(self, call_id: str, name: str) -> None:
        self._tool("read_file", {"file_path": self._path(name)}, {"llmContent": self.files[name], "returnDisplay": ""})

    def change(self, call_id: str, step: Step, before: str | None, text: str) -> None:
        name = step.edit or step.write
        path, after = self._path(name), self.files[name]
        shown = {"fileDiff": "\n".join(_diff(before or "", after)), "fileName": name}
        if step.edit:
            given = {"file_path": path, "old_string": step.old, "new_string": step.new}
            given |= {"instruction": text} if text else {}
            done = f"Successfully modified file: {path} (1 replacements). Here is the updated code:\n{after}"
            self._tool("replace", given, {"llmContent": done, "returnDisplay": shown})
        else:
            done = f"Successfully overwrote file: {path}." if before is not None else f"Successfully created: {path}."
            given = {"file_path": path, "content": after}
            self._tool("write_file", given, {"llmContent": done, "returnDisplay": shown})

    def end(self, texts: list[str], last: str) -> None:
        response = "\n".join(filter(None, [*texts, last]))
        self._send("AfterAgent", prompt=self._prompt, prompt_response=response, stop_hook_active=False)
        self._send("SessionEnd", reason="exit")

    def _tool(self, tool: str, given: JsonObject, response: JsonObject) -> None:
        self._send("AfterTool", tool_name=tool, tool_input=given, tool_response=response)

    def _send(self, event: str, **fields: Any) -> None:
        common = {"session_id": self.id, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        second = next(self._calls)  # the calls have no ID, so their time is their identity
        common |= {"hook_event_name": event, "timestamp": f"2026-11-20T09:{second // 60:02}:{second % 60:02}.000Z"}
        self.send({**common, **fields})


class Copilot(Conversation):
    """Copilot CLI: the exit code is in the last line; only the end of a turn names the transcript."""

    agent = "copilot"
    is_write_recorded = False

    def start(self, prompt: str) -> None:
        self._send("SessionStart", source="new", initial_prompt=prompt)
        self._send("UserPromptSubmit", prompt=prompt)
        self._line("user.message", {"content": prompt})

    def say(self, text: str) -> None:
        self._line("assistant.message", {"content": text, "toolRequests": []})

    def run(self, call_id: str, command: str, code: int, output: str) -> None:
        shown = f"{output}\n<shellId: 0 completed with exit code {code}>"
        self._tool("Bash", call_id, {"command": command, "description": "Run a command"}, shown)

    def read(self, call_id: str, name: str) -> None:
        self._tool("Read", call_id, {"path": self._path(name)}, self.files[name])

    def change(self, call_id: str, step: Step, before: str | None, text: str) -> None:
        given = {"path": self._path(step.edit), "old_str": step.old, "new_str": step.new}
        self._tool("Edit", call_id, given, f"File {self._path(step.edit)} updated with changes.")

    def end(self, texts: list[str], last: str) -> None:
        common = {"transcript_path": str(self.transcript), "stop_reason": "end_turn", "stop_hook_active": False}
        self._send("Stop", **common)
        self._send("SessionEnd", reason="complete")

    def _tool(self, tool: str, call_id: str, given: JsonObject, shown: str) -> None:
        request = {"toolCallId": call_id, "name": tool, "arguments": given}
        self._line("assistant.message", {"content": "", "toolRequests": [request]})
        result = {"result_type": "success", "text_result_for_llm": shown}
        self._send("PostToolUse", tool_name=tool, tool_input=given, tool_result=result)
        self._line("tool.execution_complete", {"toolCallId": call_id, "success": True, "result": {"content": shown}})

    def _line(self, kind: str, data: JsonObject) -> None:
        self._write({"type": kind, "data": data, "timestamp": _TIME})

    def _send(self, event: str, **fields: Any) -> None:
        second = next(self._calls)  # the calls have no ID, so their time is their identity
        time = f"2026-11-20T09:{second // 60:02}:{second % 60:02}.000Z"
        common = {"session_id": self.id, "timestamp": time, "cwd": str(self.project)}
        self.send({"hook_event_name": event, **common, **fields})


class Cursor(Conversation):
    """Cursor: results as JSON text; the end of a turn has no message, but names the transcript."""

    agent = "cursor"

    def start(self, prompt: str) -> None:
        self._send("sessionStart", is_background_agent=False, composer_mode="agent")
        self._send("beforeSubmitPrompt", prompt=prompt, attachments=[])
        self._line("user", prompt)

    def say(self, text: str) -> None:
        self._line("assistant", text)

    def run(self, call_id: str, command: str, code: int, output: str) -> None:
        self._tool("Shell", call_id, {"command": command}, {"output": output, "exitCode": code})

    def read(self, call_id: str, name: str) -> None:
        self._tool("Read", call_id, {"path": self._path(name)}, {"content": self.files[name]})

    def change(self, call_id: str, step: Step, before: str | None, text: str) -> None:
        name = step.edit or step.write
        given = {"path": self._path(name)}
        given |= {"old_string": step.old, "new_string": step.new} if step.edit else {"contents": step.content}
        self._tool("StrReplace" if step.edit else "Write", call_id, given, {"success": True})

    def end(self, texts: list[str], last: str) -> None:
        self._send("stop", status="completed", loop_count=0)
        self._send("sessionEnd", reason="completed")

    def _tool(self, tool: str, call_id: str, given: JsonObject, output: Mapping[str, Any]) -> None:
        shown = json.dumps(output)
        self._send("postToolUse", tool_name=tool, tool_input=given, tool_output=shown, tool_use_id=call_id)

    def _line(self, role: str, text: str) -> None:
        self._write({"role": role, "message": {"content": [{"type": "text", "text": text}]}})

    def _send(self, event: str, **fields: Any) -> None:
        common = {"conversation_id": self.id, "generation_id": f"{self.id}-1", "workspace_roots": [str(self.project)]}
        self.send({**common, "hook_event_name": event, "transcript_path": str(self.transcript), **fields})


CONVERSATIONS: Final = {
    **{each.agent: each for each in (Claude, Codex, Gemini, Copilot, Cursor)},
    "codex-without-edits": CodexWithoutEdits,
}
"""The forms of conversations; most are named after their agent."""


def convert_session(session: Session, form: str) -> Session | None:
    """Return a session as one of another form; None if it is not known how that agent reports its steps."""
    kind = CONVERSATIONS[form]
    if not kind.is_write_recorded and any(step.write for step in session.steps):
        return None
    steps = [step for step in session.steps if not step.error or kind.is_refusal_recorded]
    return msgspec.structs.replace(session, agent=form, steps=steps)


def _diff(before: str, after: str) -> list[str]:
    """Return the hunks of a unified diff, without the names of files."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=3, lineterm=""))[2:]


def _codex_patch(name: str, before: str | None, after: str) -> str:
    if before is None:
        changes = [f"*** Add File: {name}", *(f"+{line}" for line in after.splitlines())]
    else:
        hunks = ["@@" if line.startswith("@@") else line for line in _diff(before, after)]
        changes = [f"*** Update File: {name}", *hunks]
    return "\n".join(["*** Begin Patch", *changes, "*** End Patch\n"])


def _claude_hunks(before: str, after: str) -> list[JsonObject]:
    hunks: list[JsonObject] = []
    for line in _diff(before, after):
        if line.startswith("@@"):
            old, new = (part[1:].split(",") for part in line.split()[1:3])
            counts = {"oldLines": int(old[1]) if old[1:] else 1, "newLines": int(new[1]) if new[1:] else 1}
            hunks.append({"oldStart": int(old[0]), "newStart": int(new[0]), **counts, "lines": []})
        else:
            hunks[-1]["lines"].append(line)
    return hunks
