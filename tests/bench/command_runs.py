"""A run of every command: its arguments, for the sample project and for generated ones.

Used by the bench and by the tests that run every command. The bench also runs it with the code of older revisions, so
it imports nothing of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

GUARDRAILS: Final = """\
### Sign: Clock
- **Instruction**: Use the fixed clock in each test

### Sign: Port
- **Instruction**: Never open port 80
"""
"""Text of `.ralph/guardrails.md`, with two lessons."""
CLOCK: Final = "lesson:384e330f47ceefc9"
"""ID of the first lesson."""
PORT: Final = "lesson:127202ed08f3551c"
"""ID of the second lesson."""


class Subjects(Struct, frozen=True):
    """IDs of a project that the arguments name."""

    loop: str  # finished
    pattern: str
    other: str  # pattern of the same type
    template: str  # pattern of another type
    question: str  # of Review
    session: str  # debug session
    started: str = "11111111-1111-4111-8111-111111111111"  # debug session that `debug record --start` begins


SAMPLE: Final = Subjects(
    loop="ralph-fix-null-customer-crash-in-the-644aee36",
    pattern="pat-error-decimal-json-016",
    other="pat-error-type-mismatch-003",
    template="tmpl-async-error-handler-001",
    question="pat-success-split-by-type-002",
    session="80750770-4397-47c0-9ef8-505ce47f5f8c",
)
RUNS: Final[dict[str, list[str]]] = {
    "review --suspicious": [],
    "trust": ["--yes"],
    "changes": ["--since", "7d"],
    "check": [],
    "--completion": ["bash"],
    "connect": ["claude", "--yes"],
    "compile": ["all"],
    "debug record --start": ["--id", "{started}"],
    "debug run": ["{started}", "--", "false"],
    "debug record --cause": ["the command always fails", "{started}", "--strategy", "run another command instead"],
    "debug record --fix": ["run another command", "{started}"],
    "debug record --end": ["abandoned", "{started}"],
    "debug list --archived": [],
    "debug list --causes": [],
    "debug record --escalate": ["{session}", "--reason", "flaky"],
    "debug list --escalated": [],
    "debug failure": ["--error-type", "TypeError", "--message", "Cannot read properties of null"],
    "debug archive --restore": ["{session}"],
    "debug archive": ["--dry-run"],
    "debug list": [],
    "debug show": ["{session}"],
    "debug list --error-type": ["TypeError"],
    "debug record --success": ["{session}"],
    "debug list --templates": ["type_mismatch"],
    "demo": ["--check"],
    "pattern deprecate": ["{pattern}", "--reason", "replaced"],
    "doctor": [],
    "doctor --embed": [],
    "cost": [],
    "experiment": [],
    "experiment start": ["--share", "0.2"],
    "experiment stop": [],
    "review --conflicts": [],
    "review --fine": ["0"],
    "lesson": [],
    "lesson --accept": [CLOCK],
    "lesson --reject": [PORT, "--reason", "port 80 is open"],
    "loop inject --deliver": ["{loop}"],
    "loop score --errors": ["{loop}"],
    "loop extract": ["--all"],
    "task show": ["task-001"],
    "hook": ["--agent", "claude"],
    "init": [],
    "start": ["--yes"],
    "now": [],
    "loop inject": ["{loop}"],
    "pattern invert": [],
    "log": ["--verify"],
    "loop list": [],
    "loop show": ["{loop}"],
    "mcp": [],
    "metrics": [],
    "metrics --reviewer": [],
    "pattern note": ["{pattern}", "read"],
    "loop record --outcome": ["{loop}", "--success"],
    "pattern prune --reason": ["old", "{pattern}"],
    "pattern prune --restore": ["{pattern}"],
    "pattern list --archived": [],
    "pattern merge --threshold": ["0.8"],
    "pattern export": ["--output", "{outside}/patterns.json"],
    "pattern import": ["--input", "{outside}/patterns.json"],
    "pattern list": [],
    "pattern prune": ["--dry-run"],
    "doctor --repair": [],
    "pattern anchors": [],
    "pattern show": ["{other}"],
    "pattern promote": ["{other}"],
    "pattern quarantine": ["{template}", "--reason", "look again"],
    "pattern release": ["{template}"],
    "pattern reset": ["{other}"],
    "pattern merge": ["{pattern}", "{other}"],
    "loop record": ["{loop}", "{pattern}", "--success"],
    "lesson --recurring": [],
    "task show --replay": ["task-001", "--attempt", "1"],
    "review": [],
    "scan": ["{outside}/patterns.json"],
    "loop score": [],
    "cost --by": ["day"],
    "search": ["flaky test"],
    "review --kind": ["inversion", "{question}"],
    "review --until": ["2099-01-01", "{question}"],
    "task init": ["Fix the flaky checkout test"],
    "task start": ["task-002", "--resume"],
    "task log": ["task-002", "--type", "bash", "--tool", "Bash", "--success"],
    "task complete --pause": ["task-002"],
    "task complete": ["task-002", "--success"],
    "task list": [],
    "task reflect": ["task-001", "--learning", "profile first"],
    "metrics --tasks": [],
    "task list --similar": ["fix a flaky test"],
    "team join --create": ["--service", "none"],
    "team join": ["--service", "none", "--yes"],
    "team join --leave": [],
    "team member": ["rita", "--level", "reviewer"],
    "team status": [],
    "team sync": ["--dry-run"],
    "undo": [],
    "undo --redo": [],
    "changes --thresholds": [],
    "pattern show --why": ["{pattern}"],
}
"""Arguments by command and option, in an order in which each finds something to do in the sample project."""
NOTHING_TO_DO: Final = {
    *("debug archive --restore", "debug run", "review --fine", "pattern release"),
    *("team join --create", "team join", "team join --leave", "team member", "team status"),
}
"""Commands that exit with 1: no use in the sample project, one that runs `false`, one that a script may not run."""
LONG_RUNNING: Final = {"serve", "watch"}
"""Commands that run until interrupted."""
CHANGING: Final = {
    *("trust", "connect", "compile", "init", "start", "undo", "undo --redo", "review --until", "review --fine"),
    *("doctor --repair", "pattern prune --reason", "pattern prune --restore"),
    *(f"pattern {verb}" for verb in ("deprecate", "invert", "note", "import", "merge")),
    *(f"pattern {verb}" for verb in ("promote", "quarantine", "release", "reset")),
    *(f"loop {verb}" for verb in ("record --outcome", "record", "extract")),
    *("lesson --accept", "lesson --reject"),
    *(f"task {verb}" for verb in ("init", "start", "log", "complete --pause", "complete", "reflect")),
    *(f"debug record --{part}" for part in ("start", "cause", "fix", "end", "escalate", "success")),
    *("debug run", "debug archive --restore"),
    *(f"team {verb}" for verb in ("join --create", "join", "join --leave", "member")),
}
"""Commands that change the project."""
LARGEST: Final = "loop extract"
"""The command that changes most."""
NEEDS: Final = {
    "debug run": "debug record --start",
    "debug record --cause": "debug run",
    "debug record --fix": "debug record --cause",
    "debug record --end": "debug record --start",
    "pattern prune --restore": "pattern prune --reason",
    "undo --redo": "undo",
    "pattern import": "pattern export",
    "scan": "pattern export",
    "pattern release": "pattern quarantine",
    "pattern reset": "pattern promote",
    "undo": "pattern note",
    "task log": "task start",
    "task complete --pause": "task start",
    "task complete": "task start",
}
"""By command: the command that must have run before it, so that it finds something to do."""


def arguments(command: str, subjects: Subjects, outside: str) -> list[str]:
    """Arguments of a command in a project; `outside` is a folder for the files that it exports."""
    names: Mapping[str, str] = {**asdict(subjects), "outside": outside}
    return [*command.split(), *(text.format_map(names) for text in RUNS[command])]
