"""Table of commands: where each is implemented, its help, and former spellings.

A Python literal, since parsing a file would take a tenth of the time of a short command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

COMMANDS: Final = "core.cli.commands"


class Place(NamedTuple):
    """Location of a command's implementation, and its line of help.

    `target` is `module:function`; the module is one of `COMMANDS` if it has no dot.
    """

    target: str
    help: str


class GroupPlace(NamedTuple):
    """Group of commands with its help texts.

    `aliases` maps old names to new ones; `default` is the command that runs without a name, if there is one.
    """

    help: str
    details: str
    commands: dict[str, Place]
    aliases: Mapping[str, str] = MappingProxyType({})
    default: str = ""


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
        "init": Place("init:init", "Begin a project in a repository."),
        "trust": Place("trust:trust", "Decide whether agents get what a project contains."),
        "connect": Place("connect:connect", "Connect coding agents: hooks, MCP server, instructions."),
        "compile": Place("compile:compile_lessons", "Write approved lessons into AGENTS.md, CLAUDE.md, rules, skills."),
        "doctor": Place("doctor:doctor", "Check the files of a project, connected agents and the terminal."),
        "mcp": Place("mcp:mcp", "Serve a project to an agent over the Model Context Protocol."),
        "completion": Place("completion:completion", "Print the completion script for a shell."),
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
                "show": Place("patterns:show_pattern", "Show everything known about one pattern."),
                "why": Place("patterns:why", "Explain the state of a pattern: the verdict, then every rule."),
                "promote": Place("decisions:promote", "Pin patterns as proven."),
                "deprecate": Place("decisions:deprecate", "Pin patterns as deprecated: agents are not given them."),
                "reset": Place("decisions:reset", "Remove the pin: the evidence decides the state again."),
                "quarantine": Place(
                    "decisions:quarantine", "Keep patterns out of every context until they are released."
                ),
                "release": Place("decisions:release", "Approve patterns that are held or in quarantine."),
                "note": Place("decisions:note", "Add a note to a pattern."),
                "invert": Place("decisions:invert", "Review patterns that should become warnings."),
                "duplicates": Place("maintenance:duplicates", "List pairs of similar patterns."),
                "merge": Place("maintenance:merge", "Merge one pattern into another."),
                "anchors": Place("anchors:anchors", "Show or change the files and names that a pattern is about."),
                "repair": Place("repair:repair", "Repair patterns that earlier versions extracted by other rules."),
                "prune": Place("maintenance:prune", "Archive patterns that rarely helped or are unused."),
                "archive": Place("maintenance:archive", "Move patterns into the archive."),
                "archived": Place("maintenance:archived", "List the archived patterns."),
                "restore": Place("maintenance:restore", "Restore a pattern from the archive."),
                "export": Place(
                    "exchange:export_patterns", "Write patterns to a file that another project can import."
                ),
                "import": Place("exchange:import_patterns", "Import patterns that another project exported."),
            },
        ),
    },
    "Team": {
        "team": GroupPlace(
            "Share patterns, decisions and evidence with a team.",
            """\
Share patterns, decisions and evidence with a team, through a PostgreSQL database. Needs the extra `team`.

\b
Examples:
  ralphdeck team init postgresql://ada@db.example/team
  ralphdeck team sync --dry-run
  ralphdeck team join postgresql://ada@db.example/team
  ralphdeck team status""",
            {
                "init": Place("team:init_team", "Prepare a database for a team, and create a space."),
                "join": Place("team:join", "Join this project to a team."),
                "status": Place("team_sync:status", "Show the space, members, and what is not sent yet."),
                "sync": Place("team_sync:sync", "Send and receive what is new."),
                "leave": Place("team:leave", "Stop sending and receiving; all files stay."),
                "member": Place("team:member", "Add, change or remove a member of the space."),
            },
        ),
    },
    "Review": {
        "review": GroupPlace(
            "List and show the questions that need a decision, snooze them, and check suspicious reports.",
            """\
List and show the questions that need a decision, snooze them, and check suspicious reports. Without a command, the
questions are listed.

\b
Examples:
  ralphdeck review
  ralphdeck review show pat-success-split-by-type-002
  ralphdeck review snooze pat-success-split-by-type-002 --until 2026-12-24""",
            {
                "list": Place(
                    "review:list_questions", "List the questions that are worth the time, in the order of Review."
                ),
                "show": Place("review:show", "Show a question with its evidence, and what yes and no do."),
                "snooze": Place("review:snooze", "Ask a question again later, or after new evidence."),
                "suspicious": Place("review:suspicious", "Review sources that report many patterns as harmful."),
            },
            default="list",
        ),
        "undo": Place("decisions:undo", "Undo the newest decision in effect."),
        "redo": Place("decisions:redo", "Repeat the decision that was undone last."),
        "log": Place("decision_log:log", "List the decisions, or verify the hash chain of the decision log."),
        "changes": Place("changes:changes", "Show what changed between two moments."),
        "check": Place("policy_check:check_command", "Check a project against a policy, for CI."),
        "accuracy": Place("review:accuracy", "Show how many decisions of a reviewer were confirmed by later evidence."),
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
                "usage": Place(
                    "loops:show_usage", "Sum the tokens and the reported cost by day, source, agent, model or loop."
                ),
                "inject": Place("inject:inject", "Print the lessons that a loop or a task is given."),
                "deliver": Place("deliver:deliver", "Print how the lessons get to a loop of another runner."),
                "extract": Place("extract:extract", "Extract patterns from finished loops, tasks and debug sessions."),
                "record": Place("reports:record", "Record that a loop followed a pattern, or feedback on a criterion."),
                "outcome": Place("reports:outcome", "Record whether a loop or an attempt worked."),
                "errors": Place("reports:errors", "Print, add or resolve the errors of a loop or an attempt."),
                "score": Place("score:score", "Score how well loops and attempts worked."),
            },
        ),
        "watch": Place("watch:watch", "Follow a project without a screen; extract and prune automatically."),
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
                "log": Place("task_log:log", "Log the actions of an attempt."),
                "complete": Place(
                    "task_attempts:complete", "Close an attempt with its outcome, and draft the reflection on it."
                ),
                "reflect": Place("task_attempts:reflect", "Write the reflection on an attempt."),
                "pause": Place("task_attempts:pause", "Pause a task; the next start resumes it."),
                "list": Place("tasks:list_tasks", "List the tasks with their attempts."),
                "show": Place("history:history", "Print or export the attempts at a task, like history."),
                "report": Place(
                    "task_report:report", "Compare second tries with and without reflections; print success metrics."
                ),
                "similar": Place("tasks:similar", "List similar past tasks with their learnings."),
            },
        ),
        "debug": GroupPlace(
            "Record and list debug sessions, find known fixes, and archive old sessions.",
            """\
Query and archive the debug memory: what agents ran, what failed, why, and what fixed it. The commands failure, success
and escalate are hooks for agents; start, run, analyse, fix and end record a session from a script.

\b
Examples:
  ralphdeck debug list --status failed,escalated
  ralphdeck debug failure --error-type TypeError --message "Cannot read property 'id' of null"
  ralphdeck debug causes""",
            {
                "list": Place("debug:list_sessions", "List the debug sessions, newest first."),
                "show": Place("debug:show", "Show one debug session in full."),
                "similar": Place("debug:similar", "List the sessions with an error of a type."),
                "templates": Place("debug:templates", "List the fix templates for a root cause."),
                "escalations": Place("debug:escalations", "List the sessions that were escalated to a person."),
                "causes": Place("debug:causes", "List the most frequent root causes and recurring failures."),
                "failure": Place("debug_hooks:failure", "Print the known fix for an error."),
                "success": Place("debug_hooks:success", "Learn from a session that succeeded."),
                "start": Place("debug_record:start", "Start a session and print its ID."),
                "run": Place("debug_record:run", "Run a command, and add its failures and exit code to a session."),
                "analyse": Place("debug_record:analyse", "Record the root cause of the newest failing run."),
                "fix": Place("debug_record:fix", "Record the fix of the newest failing run."),
                "end": Place("debug_record:end", "End a session: resolved, escalated or abandoned."),
                "escalate": Place("debug_hooks:escalate", "Escalate a session to a person and save its context."),
                "archive-expired": Place(
                    "debug_archive:archive_expired", "Archive the sessions whose retention time is over."
                ),
                "archived": Place("debug_archive:archived", "List the archived sessions."),
                "restore": Place("debug_archive:restore", "Restore a session from the archive."),
            },
            aliases={"sessions": "list", "retain": "archive-expired", "analyze": "analyse"},
        ),
        "reflection": GroupPlace(
            "List what agents wrote about their attempts, and learnings that recur.",
            """\
List what agents wrote about their attempts, and learnings that recur.

\b
Examples:
  ralphdeck reflection list --loop ralph-fix-auth-a1b2c3d4
  ralphdeck reflection list --recurring""",
            {
                "list": Place("reflections:list_reflections", "List reflections, newest first."),
            },
        ),
        "lesson": GroupPlace(
            "Review what agents wrote into their own memories and progress files.",
            """\
Review what agents and runners wrote down as learned: in memories, progress files, signs and guardrails.

\b
Examples:
  ralphdeck lesson list --state open
  ralphdeck lesson show 1a2b3c
  ralphdeck lesson accept 1a2b3c
  ralphdeck lesson conflicts
  ralphdeck lesson reject 1a2b3c --reason "only true before the migration\"""",
            {
                "list": Place("lessons:list_lessons", "List what agents and runners wrote down as learned."),
                "show": Place("lessons:show", "Show a lesson, where it is written, and what contradicts it."),
                "accept": Place("lessons:accept", "Make a candidate pattern of a lesson."),
                "reject": Place("lessons:reject", "Do not ask about a lesson again."),
                "conflicts": Place("conflicts:conflicts", "List instructions that contradict or repeat each other."),
                "fine": Place("conflicts:fine", "Mark a pair of instructions as fine."),
            },
        ),
        "history": Place("history:history", "Print or export the attempts at a task."),
        "replay": Place("replay:replay", "Step through an attempt at a task."),
        "search": Place("search:search", "Search tasks: their attempts, actions, reflections and errors."),
    },
    "Agents": {
        "hook": Place("hook:hook", "Answer one hook event of a coding agent."),
    },
    "Analyse": {
        "metrics": Place("metrics:metrics", "Print whether lessons help, and how the project develops."),
        "cost": Place("cost:cost", "Show what lessons and agents' own files cost, and what they prevented."),
        "experiment": GroupPlace(
            "Hold lessons out by chance, and show whether they help.",
            """\
Hold lessons out of some tasks by chance, and show whether they help. Off until you start it. Without a command, the
status is shown.

\b
Examples:
  ralphdeck experiment start --share 0.2
  ralphdeck experiment
  ralphdeck experiment stop""",
            {
                "status": Place("experiment:status", "Show what is held out, and what that shows about each lesson."),
                "start": Place("experiment:start", "Start to hold lessons out by chance, in all your projects."),
                "stop": Place("experiment:stop", "Stop it in all your projects; what was recorded stays."),
            },
            default="status",
        ),
        "what-if": Place("what_if:what_if", "Replay the history with other thresholds."),
        "scan": Place("scan:scan", "Scan texts for dangerous instructions, and mask their secrets."),
        "embed": Place("embed:embed", "Compute the vectors for semantic search."),
    },
}
"""The commands in the sections and the order of `--help`."""
ALIASES: Final = {
    "patterns": ["pattern"],
    "why": ["pattern", "why"],
    "promote": ["pattern", "promote"],
    "deprecate": ["pattern", "deprecate"],
    "reset": ["pattern", "reset"],
    "quarantine": ["pattern", "quarantine"],
    "release": ["pattern", "release"],
    "note": ["pattern", "note"],
    "invert": ["pattern", "invert"],
    "loops": ["loop", "list"],
    "inject": ["loop", "inject"],
    "extract": ["loop", "extract"],
    "record": ["loop", "record"],
    "outcome": ["loop", "outcome"],
    "errors": ["loop", "errors"],
    "score": ["loop", "score"],
    "snooze": ["review", "snooze"],
    "bursts": ["review", "suspicious"],
    "mirror": ["accuracy"],
    "reflections": ["reflection", "list"],
}
"""Former spellings by the command lines that replace them. They work, but `--help` does not list them."""
PROGRAM_ALIASES: Final = {
    "ralph-extract-patterns": ["loop", "extract"],
    "ralph-inject-patterns": ["loop", "inject"],
    "ralph-patterns": ["pattern"],
    "ralph-history": ["history"],
    "ralph-replay": ["replay"],
    "ralph-search": ["search"],
}
"""Names of other programs by the command lines that replace them; they are entry points and commands."""
TASK_ALIAS: Final = "ralph"  # Followed by a task: prints the context for it, like `loop inject --task`.


def translate_alias(args: list[str]) -> list[str]:
    """Replace an alias at the start of a command line."""
    name, *rest = args
    if name == TASK_ALIAS and rest:
        renamed = [re.sub("^--min-pattern-success-rate(?==|$)", "--min-success-rate", word) for word in rest]
        return ["loop", "inject", *([] if rest[0].startswith("-") else ["--task"]), *renamed]
    return [*(ALIASES.get(name) or PROGRAM_ALIASES.get(name) or [name]), *rest]
