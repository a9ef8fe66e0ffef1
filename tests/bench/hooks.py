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

from tests.bench.commands import Copy, copy_of, summary
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


def _session(
    names: str, tool: str, passing: Mapping[str, Any], failing: Mapping[str, Any], **fields: Mapping[str, Any]
) -> Events:
    """The events of a session: start, prompt, tool calls that pass and fail, end of a turn, end.

    The first tool call of a turn opens a task, or delivers a context that the prompt couldn't. `fields` are those of
    the other events, by kind.
    """
    start, prompt, passed, failed, stop, end = names.split()
    call = {"tool_name": tool, "tool_input": _COMMAND}
    return (
        (START, start, fields["start"]),
        (PROMPT, prompt, {}),
        (FIRST_TOOL, passed, {**call, **passing}),
        (TOOL, passed, {**call, **passing}),
        (FAILED, failed, {**call, **failing}),
        (TURN_END, stop, fields["stop"]),
        (END, end, fields["end"]),
    )


_STARTUP: Final = {"start": {"source": "startup"}, "end": {"reason": "exit"}}
EVENTS: Final[Mapping[str, Events]] = {
    "claude": _session(
        "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop SessionEnd",
        "Bash",
        {"tool_response": {"stdout": "12 passed", "stderr": "", "interrupted": False}},
        {"error": f"Exit code 1\n{_FAILURE}"},
        stop={"last_assistant_message": _DONE},
        **_STARTUP,
    ),
    "codex": _session(
        "SessionStart UserPromptSubmit PostToolUse PostToolUse Stop SessionEnd",
        "Bash",
        {"tool_response": "Exit code: 0\nOutput:\n12 passed"},
        {"tool_response": f"Exit code: 1\nOutput:\n{_FAILURE}"},
        stop={"last_assistant_message": _DONE},
        **_STARTUP,
    ),
    "gemini": _session(
        "SessionStart BeforeAgent AfterTool AfterTool AfterAgent SessionEnd",
        "run_shell_command",
        {"tool_response": {"llmContent": "Output: 12 passed", "returnDisplay": ""}},
        {"tool_response": {"llmContent": f"Output: {_FAILURE}\nExit Code: 1", "returnDisplay": ""}},
        stop={"prompt_response": _DONE},
        **_STARTUP,
    ),
    "cursor": _session(
        "sessionStart beforeSubmitPrompt postToolUse postToolUseFailure stop sessionEnd",
        "Shell",
        {"tool_output": '{"output": "12 passed", "exitCode": 0}'},
        {"error_message": _FAILURE, "failure_type": "error"},
        start={},
        stop={"status": "completed"},
        end={"reason": "completed"},
    ),
    "copilot": _session(
        "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop SessionEnd",
        "Bash",
        {"tool_result": {"result_type": "success", "text_result_for_llm": "12 passed"}},
        {"tool_result": {"result_type": "failure", "text_result_for_llm": _FAILURE}},
        start={"source": "new"},
        stop={},
        end={"reason": "complete"},
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
        for place, (kind, _, _) in enumerate(EVENTS[agent]):
            runs[kind].append(answer(copy, agent, session, place))
        if sum(ended.wall for kind in runs.values() for ended in kind) > _ENOUGH:
            break
    return runs


def answer(copy: Copy, agent: str, session: str, place: int, *options: str) -> Ended:
    """Run the hook for the event at a place of a session, with options of Python."""
    kind, name, fields = EVENTS[agent][place]
    event = {
        "hook_event_name": name,
        "session_id": session,
        "cwd": str(copy.project),
        "tool_use_id": f"{session}-{place}",
        **({"prompt": f"{_PROMPT} {session}"} if kind == PROMPT else {}),
        **fields,
    }
    return copy.run(["hook", "--agent", agent], msgspec.json.encode(event), *options)
