"""Table of commands: where each is implemented, and its help.

A Python literal, since parsing a file would take a tenth of the time of a short command.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

COMMANDS: Final = "core.cli.commands"


class Place(NamedTuple):
    """Location of a command's implementation, and its line of help.

    `target` is `module:function`; the module is one of `COMMANDS` if it has no dot.
    """

    target: str
    help: str


class GroupPlace(NamedTuple):
    """Group of commands with its help texts."""

    help: str
    details: str
    commands: dict[str, Place]


EXAMPLES: Final = """\
\b
Examples:
  ralphdeck                                  open the dashboard here
  ralphdeck demo                             open the dashboard on a sample project
  ralphdeck loop list --status running       list what agents are doing
  ralphdeck pattern list --type error --json
  ralphdeck loop inject --task "Fix the login"   print what an agent is given for a task
  ralphdeck pattern deprecate pat-error-retry-004 --reason "hides the cause\""""
EPILOG: Final = """\
\b
Exit codes:
  0    success
  1    failure; one line on stderr gives the reason (check: the broken rules on stdout)
  2    wrong usage
  3    problems found: by --strict, scan, log --verify, connect --check or compile --check
  130  interrupted
  141  the reader of a pipe closed it, as in: ralphdeck loop list | head -1

\b
Environment:
  RALPHDECK_PROJECT   the project, like --project
  RALPHDECK_USER      who decides, like --by
  RALPHDECK_AGENT     the agent that reports or works
  RALPHDECK_TASK      the task, where a command takes [TASK]
  RALPHDECK_READONLY  1: write nothing, like --readonly
  RALPHDECK_TRUSTED_PATHS  folders in which all projects are trusted, separated as in PATH
  RALPHDECK_SEMANTIC  off: no semantic search, compare words only
  RALPHDECK_THEME     theme of the dashboard, like --theme
  NO_COLOR            no colours

Help for a command: ralphdeck COMMAND --help"""
SECTIONS: Final[dict[str, dict[str, Place | GroupPlace]]] = {
    "Core": {
        "start": Place("start:start", "Set up a project, connect agents, and learn from the sessions they left."),
        "now": Place("now:now", "Print what needs you, what happened, whether lessons help, and which are new."),
        "init": Place("start:init", "Begin a project in a repository."),
        "trust": Place("start:trust", "Decide whether agents get what a project contains."),
        "connect": Place("connect:connect", "Connect coding agents: hooks, MCP server, instructions."),
        "compile": Place("connect:compile_lessons", "Write approved lessons into AGENTS.md, CLAUDE.md, rules, skills."),
        "doctor": Place("doctor:doctor", "Check a project, connected agents and the terminal; repair old patterns."),
        "mcp": Place("mcp:mcp", "Serve a project to an agent over the Model Context Protocol."),
    },
    "Curate": {
        "pattern": GroupPlace(
            "List lessons (patterns), decide on them, archive, export and import them.",
            """\
List patterns, decide on them, archive them, and exchange them with other projects. A pattern is a lesson that
ralphdeck records, scores, and gives to agents.

\b
Examples:
  ralphdeck pattern list --state proven
  ralphdeck pattern show pat-error-null-check-015
  ralphdeck pattern deprecate pat-error-retry-004 --reason "hides the cause"
  ralphdeck pattern prune --dry-run""",
            {
                "list": Place("patterns:list_patterns", "List patterns with state, success rate and use."),
                "show": Place(
                    "patterns:show_pattern", "Show everything known about a pattern, or why it has its state."
                ),
                "promote": Place("decisions:promote", "Pin patterns as proven."),
                "deprecate": Place("decisions:deprecate", "Pin patterns as deprecated: agents are not given them."),
                "reset": Place("decisions:reset", "Remove the pin: the evidence decides the state again."),
                "quarantine": Place(
                    "decisions:quarantine", "Keep patterns out of every context until they are released."
                ),
                "release": Place("decisions:release", "Approve patterns that are held or in quarantine."),
                "note": Place("decisions:note", "Add a note to a pattern."),
                "invert": Place("decisions:invert", "Review patterns that should become warnings."),
                "merge": Place("patterns:merge", "List pairs of similar patterns, or merge two."),
                "anchors": Place("patterns:anchors", "Show or change the files and names that a pattern is about."),
                "prune": Place("patterns:prune", "Archive patterns that rarely helped or are unused; restore them."),
                "export": Place(
                    "exchange:export_patterns", "Write patterns to a file that another project can import."
                ),
                "import": Place("exchange:import_patterns", "Import patterns that another project exported."),
            },
        ),
        "lesson": Place("lessons:lesson", "Review what agents wrote into their memories, and their reflections."),
        "review": Place("review:review", "List the questions that need a decision, show one, or snooze it."),
        "undo": Place("decisions:undo", "Undo the newest decision in effect, or repeat the one undone last."),
        "log": Place("decisions:log", "List the decisions, or verify the hash chain of the decision log."),
        "changes": Place("changes:changes", "Show what changed between two moments, or would with other thresholds."),
        "check": Place("scan:check_command", "Check a project against a policy, for CI."),
    },
    "Team": {
        "team": GroupPlace(
            "Share patterns, decisions and evidence with a team.",
            """\
Share patterns, decisions and evidence with a team, through a PostgreSQL database. Needs the extra `team`.

\b
Examples:
  ralphdeck team join postgresql://ada@db.example/team --create
  ralphdeck team sync --dry-run
  ralphdeck team join postgresql://ada@db.example/team
  ralphdeck team status""",
            {
                "join": Place("team:join", "Join this project to a team, create a space, or leave the team."),
                "status": Place("team:status", "Show the space, members, and what is not sent yet."),
                "sync": Place("team:sync", "Send and receive what is new."),
                "member": Place("team:member", "Add, change or remove a member of the space."),
            },
        ),
    },
    "Loops": {
        "loop": GroupPlace(
            "List sessions (loops), print what they are given, record results, extract patterns.",
            """\
List loops, print the lessons that a loop is given, record results, and extract patterns. A loop is what the dashboard
calls a session: an agent that works on one task, once or in many iterations.

\b
Examples:
  ralphdeck loop list --status running,paused
  ralphdeck loop inject --task "Fix the login"
  ralphdeck loop extract --all --dry-run""",
            {
                "list": Place("loops:list_loops", "List what agents are doing and did, of every source."),
                "show": Place("loops:show", "Show a loop with its iterations, lessons, files and transcripts."),
                "inject": Place("inject:inject", "Print the lessons that a loop or a task is given."),
                "extract": Place("loops:extract", "Extract patterns from finished loops, tasks and debug sessions."),
                "record": Place("reports:record", "Record the outcome of a loop, a use of a pattern, or an error."),
                "score": Place("reports:score", "Score how well loops and attempts worked; print their errors."),
            },
        ),
        "watch": Place("now:watch", "Follow a project without a screen; extract and prune automatically."),
    },
    "Memory": {
        "task": GroupPlace(
            "Record and list tasks: attempts, actions, outcomes, reflections.",
            """\
Record and list tasks: what was tried, with which outcome, and what was learned.

Agents call these commands while they work. Each command has written to disk when it returns, and can be repeated
after a crash. The defaults of TASK and --agent are $RALPHDECK_TASK and $RALPHDECK_AGENT.

\b
Examples:
  id=$(ralphdeck task init "Add OAuth login" --criteria "npm test passes")
  ralphdeck task start $id --approach "types first"
  ralphdeck task log $id --type bash --tool Bash --param command="npm test" \\
    --failure --error "3 failing" --reasoning "see what is left" --expected "green"
  ralphdeck task complete $id --failure --reason "types are missing" --suggest "interface first\"""",
            {
                "init": Place("task_attempts:init", "Create a task and print its ID."),
                "start": Place("task_attempts:start", "Start an attempt, or resume an open one, and print its plan."),
                "log": Place("task_attempts:log", "Log the actions of an attempt."),
                "complete": Place(
                    "task_attempts:complete", "Close an attempt with its outcome and draft the reflection, or pause."
                ),
                "reflect": Place("task_attempts:reflect", "Write the reflection on an attempt."),
                "list": Place("history:list_tasks", "List the tasks with their attempts, or similar tasks."),
                "show": Place("history:show", "Print, export or replay the attempts at a task."),
            },
        ),
        "debug": GroupPlace(
            "Record and list debug sessions, find known fixes, and archive old sessions.",
            """\
Record, query and archive the debug memory: what agents ran, what failed, why, and what fixed it.

\b
Examples:
  ralphdeck debug list --status failed,escalated
  ralphdeck debug failure --error-type TypeError --message "Cannot read property 'id' of null"
  ralphdeck debug list --causes""",
            {
                "list": Place("debug:list_sessions", "List debug sessions, root causes, or fix templates."),
                "show": Place("debug:show", "Show one debug session in full."),
                "failure": Place("debug_record:failure", "Print the known fix for an error."),
                "run": Place("debug_record:run", "Run a command, and add its failures and exit code to a session."),
                "record": Place("debug_record:record", "Start a session; record its cause, fix, end and lessons."),
                "archive": Place("debug:archive", "Archive the sessions whose retention time is over."),
            },
        ),
        "search": Place("history:search", "Search tasks: their attempts, actions, reflections and errors."),
    },
    "Agents": {
        "hook": Place("hook:hook", "Answer one hook event of a coding agent."),
    },
    "Analyse": {
        "metrics": Place("metrics:metrics", "Print whether lessons help, and how the project develops."),
        "cost": Place("loops:cost", "Show what lessons and agents' own files cost, or the usage of loops."),
        "experiment": Place("metrics:experiment", "Hold lessons out by chance, and show whether they help."),
        "scan": Place("scan:scan", "Scan texts for dangerous instructions, and mask their secrets."),
    },
}
"""The commands in the sections and the order of `--help`."""
PROGRAM_ALIASES: Final = {
    "ralph-extract-patterns": ["loop", "extract"],
    "ralph-inject-patterns": ["loop", "inject"],
    "ralph-patterns": ["pattern"],
    "ralph-history": ["task", "show"],
    "ralph-replay": ["task", "show", "--replay"],
    "ralph-search": ["search"],
}
"""Names of the documents of the loops, by the command lines that replace them; they are entry points and commands."""
TASK_ALIAS: Final = "ralph"  # Followed by a task: prints the context for it, like `loop inject --task`.


def translate_alias(args: list[str]) -> list[str]:
    """Replace an alias at the start of a command line."""
    name, *rest = args
    if name == TASK_ALIAS and rest:
        renamed = [re.sub("^--min-pattern-success-rate(?==|$)", "--min-success-rate", word) for word in rest]
        return ["loop", "inject", *([] if rest[0].startswith("-") else ["--task"]), *renamed]
    return [*PROGRAM_ALIASES.get(name, [name]), *rest]
