"""What the scripted model does in a session: scenarios as data, and the tool calls of each agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MODULE: Final = "cart.py"
BROKEN: Final = '''"""Prices of a shopping cart."""


def total(items, discount=None):
    """Return the price of all items, less a discount of 0 to 1."""
    price = sum(item["price"] * item["count"] for item in items)
    return price * (1 - discount)
'''
BROKEN_LINE: Final = "    return price * (1 - discount)"
FIXED_LINE: Final = "    return price * (1 - (discount or 0))"
TEST: Final = """from cart import total


def test_total_without_discount():
    assert total([{"price": 5, "count": 2}]) == 10
"""
TEST_COMMAND: Final = "python -m pytest -q"
ERROR: Final = "unsupported operand type(s) for -: 'int' and 'NoneType'"
REASON: Final = "The discount is None when a cart has none, so count a missing discount as zero."
GAVE_UP: Final = "I could not find the cause, sorry."


Tools = Mapping[str, Sequence[str]]
"""Names of the tools that an agent offers, each with the names of its parameters."""


@dataclass(frozen=True)
class Run:
    """Run a shell command."""

    command: str


@dataclass(frozen=True)
class Read:
    """Read a file."""

    file: str


@dataclass(frozen=True)
class Edit:
    """Replace a line of a file."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class CallTool:
    """Call a tool of the MCP server, by the end of its name."""

    name: str
    arguments: dict[str, Any]


Action = Run | Read | Edit | CallTool


@dataclass(frozen=True)
class Step:
    """One answer of the model: a text, a tool call, or both."""

    text: str = ""
    action: Action | None = None


@dataclass(frozen=True)
class Call:
    """A tool call in the words of one agent; `arguments` is a text for tools that take free text."""

    name: str
    arguments: dict[str, Any] | str


_RUN_TESTS: Final = Step("I run the test first.", Run(TEST_COMMAND))
_READ_CART: Final = Step(action=Read(MODULE))
_FIX: Final = Step(REASON, Edit(MODULE, BROKEN_LINE, FIXED_LINE))
_WAIT: Final = "python -c 'import time; time.sleep(30)'"  # Claude Code refuses a mere `sleep 30`

_LOOK_UP: Final = (
    _RUN_TESTS,
    Step(action=CallTool("known_fix", {"message": f"TypeError: {ERROR}", "error_type": "TypeError"})),
    _READ_CART,
    _FIX,
    Step(action=Run(TEST_COMMAND)),
    Step(action=CallTool("report_outcome", {"result": "success", "summary": REASON})),
    Step("Done. All tests pass."),
)

SCENARIOS: Final[dict[str, Sequence[Step]]] = {
    "fix": (_RUN_TESTS, _READ_CART, _FIX, Step(action=Run(TEST_COMMAND)), Step("Done. All tests pass.")),
    "give-up": (_RUN_TESTS, Step(GAVE_UP)),
    "chat": (Step("A cart sums the prices of its items."),),
    "open-skill": (Step(action=CallTool("Skill", {"skill": "ralphdeck-errors"})), Step("A cart sums prices.")),
    "wait": (_RUN_TESTS, Step(action=Run(_WAIT)), Step("Done.")),
    "look-up": _LOOK_UP,
    "report": (Step(action=CallTool("loop_context", {"task": "Make the failing test of the cart pass"})), *_LOOK_UP),
}


def next_step(scenario: str, calls: int) -> Step:
    """Return the answer after a number of tool calls; the last one is repeated."""
    steps = SCENARIOS[scenario]
    return steps[min(calls, len(steps) - 1)]


def tool_call(action: Action, tools: Tools, folder: Path) -> Call:
    """Return the call of one of the offered tools that does the action."""
    match action:
        case CallTool(name, arguments):
            return Call(next((tool for tool in tools if tool.endswith(name)), name), arguments)
        case Run(command):
            name = next(tool for tool in _SHELLS if tool in tools)
            return Call(name, _arguments(tools[name], command=command, description="Run the test", wait=30_000))
        case Read(file):
            if name := next((tool for tool in _READERS if tool in tools), ""):
                return Call(name, _arguments(tools[name], file=str(folder / file)))
            return tool_call(Run(f"cat {file}"), tools, folder)
        case Edit(file, old, new):
            if name := next((tool for tool in _EDITORS if tool in tools), ""):
                path = str(folder / file)
                return Call(name, _arguments(tools[name], file=path, old=old, new=new, instruction=REASON))
            patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n"
            if "apply_patch" in tools:
                return Call("apply_patch", patch)
            return tool_call(Run(f"apply_patch <<'PATCH'\n{patch}PATCH"), tools, folder)


def _arguments(parameters: Sequence[str], **values: Any) -> dict[str, Any]:
    """Name the values as the tool does; a value that the tool does not take is left out."""
    return {name: values[value] for value in values for name in _PARAMETERS[value] if name in parameters}


_SHELLS: Final = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command")
_READERS: Final = ("Read", "read", "read_file", "view")
_EDITORS: Final = ("Edit", "edit", "replace")
_PARAMETERS: Final = {
    "command": ("command", "cmd"),
    "description": ("description",),
    "wait": ("yield_time_ms",),
    "file": ("file_path", "filePath", "path"),
    "old": ("old_string", "oldString", "old_str"),
    "new": ("new_string", "newString", "new_str"),
    "instruction": ("instruction",),
}
"""How the tools of the agents name the same parameter."""
