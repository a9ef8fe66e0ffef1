"""The hook events of all agents, in a copy of the project of a size: sessions of each agent, event by event."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from tests.bench.commands import copy_of, summary
from tests.bench.measured import Measured
from tests.bench.processes import Ended

if TYPE_CHECKING:
    from tests.bench.place import Place

_ENOUGH: Final = 10_000  # milliseconds of an agent's sessions, after which no more follow
_PROMPT: Final = "Fix the deadlock in the payment webhook migration, TypeError: Cannot cache order of null"
_FAILURE: Final = "1 failed\nTypeError: Cannot read properties of null (reading 'name')"
_COMMAND: Final = {"command": "npm test"}
_DONE: Final = "All tests pass."
_GAVE_UP: Final = "not finished in time"  # printed by a hook at its deadline

START: Final = "session start"
PROMPT: Final = "prompt"
FIRST_TOOL: Final = "first tool call"
TOOL: Final = "tool call logged"
FAILED: Final = "failed tool call"
TURN_END: Final = "end of turn"
END: Final = "session end"
Events = tuple[tuple[str, str, Mapping[str, Any]], ...]


def _calls(name: str, failed: str, tool: str, passing: Mapping[str, Any], failing: Mapping[str, Any]) -> Events:
    """Tool calls: the first of a turn opens a task, or delivers a context that the prompt couldn't."""
    call = {"tool_name": tool, "tool_input": _COMMAND}
    return (
        (FIRST_TOOL, name, {**call, **passing}),
        (TOOL, name, {**call, **passing}),
        (FAILED, failed, {**call, **failing}),
    )


EVENTS: Final[Mapping[str, Events]] = {
    "claude": (
        (START, "SessionStart", {"source": "startup"}),
        (PROMPT, "UserPromptSubmit", {}),
        *_calls(
            "PostToolUse",
            "PostToolUseFailure",
            "Bash",
            {"tool_response": {"stdout": "12 passed", "stderr": "", "interrupted": False}},
            {"error": f"Exit code 1\n{_FAILURE}"},
        ),
        (TURN_END, "Stop", {"last_assistant_message": _DONE}),
        (END, "SessionEnd", {"reason": "exit"}),
    ),
    "codex": (
        (START, "SessionStart", {"source": "startup"}),
        (PROMPT, "UserPromptSubmit", {}),
        *_calls(
            "PostToolUse",
            "PostToolUse",
            "Bash",
            {"tool_response": "Exit code: 0\nOutput:\n12 passed"},
            {"tool_response": f"Exit code: 1\nOutput:\n{_FAILURE}"},
        ),
        (TURN_END, "Stop", {"last_assistant_message": _DONE}),
        (END, "SessionEnd", {"reason": "exit"}),
    ),
    "gemini": (
        (START, "SessionStart", {"source": "startup"}),
        (PROMPT, "BeforeAgent", {}),
        *_calls(
            "AfterTool",
            "AfterTool",
            "run_shell_command",
            {"tool_response": {"llmContent": "Output: 12 passed", "returnDisplay": ""}},
            {"tool_response": {"llmContent": f"Output: {_FAILURE}\nExit Code: 1", "returnDisplay": ""}},
        ),
        (TURN_END, "AfterAgent", {"prompt_response": _DONE}),
        (END, "SessionEnd", {"reason": "exit"}),
    ),
    "cursor": (
        (START, "sessionStart", {}),
        (PROMPT, "beforeSubmitPrompt", {}),
        *_calls(
            "postToolUse",
            "postToolUseFailure",
            "Shell",
            {"tool_output": '{"output": "12 passed", "exitCode": 0}'},
            {"error_message": _FAILURE, "failure_type": "error"},
        ),
        (TURN_END, "stop", {"status": "completed"}),
        (END, "sessionEnd", {"reason": "completed"}),
    ),
    "copilot": (
        (START, "SessionStart", {"source": "new"}),
        (PROMPT, "UserPromptSubmit", {}),
        *_calls(
            "PostToolUse",
            "PostToolUseFailure",
            "Bash",
            {"tool_result": {"result_type": "success", "text_result_for_llm": "12 passed"}},
            {"tool_result": {"result_type": "failure", "text_result_for_llm": _FAILURE}},
        ),
        (TURN_END, "Stop", {}),
        (END, "SessionEnd", {"reason": "complete"}),
    ),
}
"""By agent: the events of a session in their order, each with its kind, its name, and fields."""


def measure(place: Place, agent: str, kind: str, size: str) -> Measured:
    """Answer an event in several sessions; the note has what the agent got."""
    runs = _sessions(place.folder, agent, size, place.sizes.runs)[kind]
    measured = summary(runs)
    given, errors = len(runs[-1].output.strip()), " ".join(runs[-1].errors.split())
    notes = [measured.note, f"gives {given:,} characters" if given else "gives nothing", errors[:100]]
    must_give = kind == (FIRST_TOOL if agent == "cursor" else PROMPT)  # Cursor gives no context to a prompt
    mark = measured.mark or ("gave up" if _GAVE_UP in errors else "nothing" if must_give and not given else "")
    return replace(measured, note="; ".join(filter(None, notes)), mark=mark)


@lru_cache
def _sessions(folder: Path, agent: str, size: str, count: int) -> Mapping[str, Sequence[Ended]]:
    """Run at most `count` sessions of an agent; the ends of the hooks by kind of event."""
    copy = copy_of(folder, size)
    runs: defaultdict[str, list[Ended]] = defaultdict(list)
    for number in range(count):
        session = f"{agent}-{number}-{os.urandom(4).hex()}"
        for place, (kind, name, fields) in enumerate(EVENTS[agent]):
            event = {
                "hook_event_name": name,
                "session_id": session,
                "cwd": str(copy.project),
                "tool_use_id": f"{session}-{place}",
                **({"prompt": f"{_PROMPT} {session}"} if kind == PROMPT else {}),
                **fields,
            }
            runs[kind].append(copy.run(["hook", "--agent", agent], msgspec.json.encode(event)))
        if sum(ended.wall for kind in runs.values() for ended in kind) > _ENOUGH:
            break
    return runs
