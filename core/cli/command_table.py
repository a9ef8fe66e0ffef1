"""The commands: where each is implemented, its help, and its former spellings."""

from __future__ import annotations

from typing import Final, NamedTuple

COMMANDS: Final = "core.cli.commands"


class Place(NamedTuple):
    """Where a command is implemented (below `COMMANDS`, or in a named package), and its help."""

    target: str
    help: str


class GroupPlace(NamedTuple):
    """A group of commands: its line of help, its full help, its commands by name, and old names by new ones."""

    help: str
    details: str
    commands: dict[str, Place]
    aliases: dict[str, str] = {}
    default: str = ""


PATTERN: Final = GroupPlace(
    "List and show patterns, decide on them, archive, export and import them.",
    """List patterns, decide on them, archive them, and exchange them with other projects.

    \b
    Examples:
      ralphdeck pattern list --state proven
      ralphdeck pattern show pat-error-null-check-015
      ralphdeck pattern deprecate pat-error-retry-004 --reason "hides the cause"
      ralphdeck pattern prune --dry-run
    """,
    {
        "list": Place("patterns:list_patterns", "List patterns with state, success rate and use."),
        "show": Place("patterns:show_pattern", "Show everything known about one pattern."),
        "why": Place("patterns:why", "Explain the state of a pattern, rule by rule."),
        "promote": Place("decisions:promote", "Pin patterns as proven."),
        "deprecate": Place("decisions:deprecate", "Pin patterns as deprecated, so that they are not injected."),
        "reset": Place("decisions:reset", "Remove the pin: the evidence decides the state again."),
        "quarantine": Place("decisions:quarantine", "Keep patterns out of every context until they are released."),
        "release": Place("decisions:release", "Approve patterns that are held or in quarantine."),
        "note": Place("decisions:note", "Add a note to a pattern."),
        "invert": Place("inversions:invert", "Review patterns that should become warnings."),
        "duplicates": Place("duplicates:duplicates", "List pairs of similar patterns."),
        "merge": Place("duplicates:merge", "Merge one pattern into another."),
        "prune": Place("archive:prune", "Archive patterns that rarely helped or are unused."),
        "archive": Place("archive:archive", "Move patterns into the archive."),
        "archived": Place("archive:archived", "List the archived patterns."),
        "restore": Place("archive:restore", "Restore a pattern from the archive."),
        "export": Place("exchange:export_patterns", "Write patterns to a file that another project can import."),
        "import": Place("exchange:import_patterns", "Import patterns that another project exported."),
    },
)
LOOP: Final = GroupPlace(
    "List loops, inject patterns into them, and record and extract what they learned.",
    """List loops, print the context they get, and record and extract what they learned.

    \b
    Examples:
      ralphdeck loop list --status running,paused
      ralphdeck loop inject --task "Fix the login"
      ralphdeck loop extract --all --dry-run
    """,
    {
        "list": Place("loops:list_loops", "List the loops of every source."),
        "inject": Place("inject:inject", "Print the context that a loop or a task gets."),
        "extract": Place("extract:extract", "Extract patterns from finished loops, tasks and debug sessions."),
        "record": Place("record:record", "Record that a loop applied a pattern, or feedback on a criterion."),
        "outcome": Place("outcome:outcome", "Record the outcome of a loop or an attempt."),
        "errors": Place("errors:errors", "Print, add or resolve the errors of a loop or an attempt."),
        "score": Place("score:score", "Score the outcomes of loops and attempts."),
    },
)
REVIEW: Final = GroupPlace(
    "List the questions that need a decision, snooze them, and check suspicious reports.",
    """List the questions that need a decision. Without a command: list.

    \b
    Examples:
      ralphdeck review
      ralphdeck review list --minutes 12
      ralphdeck review snooze pat-success-split-by-type-002 --until 2026-12-24
    """,
    {
        "list": Place("review:list_questions", "List the questions that need a decision, highest impact first."),
        "snooze": Place("review:snooze", "Ask a question again later, or after new evidence."),
        "suspicious": Place("review:suspicious", "Review sources that report many patterns as harmful."),
    },
    default="list",
)
TASK: Final = GroupPlace(
    "Keep the memory of tasks: attempts, actions, outcomes, reflections.",
    """Keep the memory of tasks: what was tried, with which outcome, and what was learned.

    An agent calls these as it works. Each call is on disk when it returns and may be repeated after a crash. Without
    TASK or --agent, $RALPHDECK_TASK and $RALPHDECK_AGENT are used.

    \b
    Examples:
      id=$(ralphdeck task init "Add OAuth login" --criteria "npm test passes")
      ralphdeck task start $id --approach "types first"
      ralphdeck task log $id --type bash --tool Bash --param command="npm test" \\
        --failure --error "3 failing" --reasoning "see what is left" --expected "green"
      ralphdeck task complete $id --failure --reason "types are missing" --suggest "interface first"
    """,
    {
        "init": Place("task_attempts:init", "Create a task; prints its id."),
        "start": Place("task_attempts:start", "Start an attempt or resume a paused one; prints its plan."),
        "log": Place("task_log:log", "Log the actions of an attempt."),
        "complete": Place("task_attempts:complete", "Close an attempt with its outcome; drafts the reflection on it."),
        "reflect": Place("task_attempts:reflect", "Write the reflection on an attempt."),
        "pause": Place("task_attempts:pause", "Pause a task; the next start resumes it."),
        "list": Place("task_list:list_tasks", "List the tasks with their attempts."),
        "report": Place("task_report:report", "Compare retries with and without reflections; success metrics."),
        "similar": Place("task_similar:similar", "List similar past tasks and what was learned in them."),
    },
)
DEBUG: Final = GroupPlace(
    "List debug sessions, find known fixes, and archive old sessions.",
    """The debug memory: what agents ran, what failed, why, and what fixed it; and hooks for agents.

    \b
    Examples:
      ralphdeck debug list --status failed,escalated
      ralphdeck debug failure --error-type TypeError --message "Cannot read property 'id' of null"
      ralphdeck debug causes
    """,
    {
        "list": Place("debug:list_sessions", "List the debug sessions, newest first."),
        "show": Place("debug:show", "Show one debug session in full."),
        "similar": Place("debug:similar", "List the sessions with an error of a type."),
        "templates": Place("debug:templates", "List the fix templates for a root cause."),
        "escalations": Place("debug:escalations", "List the sessions that were escalated to a person."),
        "causes": Place("debug:causes", "List the most frequent root causes and recurring failures."),
        "failure": Place("debug_hooks:failure", "Print the known fix for an error."),
        "success": Place("debug_hooks:success", "Learn from a session that succeeded."),
        "escalate": Place("debug_hooks:escalate", "Escalate a session to a person and save its context."),
        "archive-expired": Place("debug_archive:archive_expired", "Archive sessions after their retention time."),
        "archived": Place("debug_archive:archived", "List the archived sessions."),
        "restore": Place("debug_archive:restore", "Restore a session from the archive."),
    },
    aliases={"sessions": "list", "retain": "archive-expired"},
)
REFLECTION: Final = GroupPlace(
    "List what agents wrote about their attempts, and what they learned repeatedly.",
    """List what agents wrote about their attempts, and learnings that recur.

    \b
    Examples:
      ralphdeck reflection list --loop ralph-fix-auth-a1b2c3d4
      ralphdeck reflection list --recurring
    """,
    {"list": Place("reflections:list_reflections", "List reflections, newest first.")},
)

SECTIONS: Final[dict[str, dict[str, Place | GroupPlace]]] = {
    "Core": {
        "doctor": Place("doctor:doctor", "Check the files of a project, the terminal and the file watcher."),
        "completion": Place("completion:completion", "Print the completion script for a shell."),
    },
    "Curate": {"pattern": PATTERN},
    "Review": {
        "review": REVIEW,
        "undo": Place("decisions:undo", "Undo the newest decision in effect."),
        "redo": Place("decisions:redo", "Repeat the decision that was undone last."),
        "log": Place("decision_log:log", "List the decisions, or verify the hash chain of the decision log."),
        "changes": Place("changes:changes", "Show what changed between two moments."),
        "check": Place("policy_check:check_command", "Check a project against a policy, for CI."),
        "accuracy": Place("accuracy:accuracy", "Show how many decisions of a reviewer later evidence confirmed."),
    },
    "Loops": {
        "loop": LOOP,
        "watch": Place("watch:watch", "Follow a project without a screen; extract and prune automatically."),
    },
    "Memory": {
        "task": TASK,
        "debug": DEBUG,
        "reflection": REFLECTION,
        "history": Place("history:history", "Print or export the attempts at a task."),
        "replay": Place("replay:replay", "Step through an attempt at a task."),
        "search": Place("search:search", "Search tasks, actions, reflections and errors."),
    },
    "Analyse": {
        "metrics": Place("metrics:metrics", "Print the effect of sharing patterns."),
        "what-if": Place("what_if:what_if", "Replay the history with other thresholds."),
        "scan": Place("scan:scan", "Scan texts for dangerous instructions, and mask their secrets."),
        "embed": Place("embed:embed", "Compute the vectors for semantic search."),
    },
}
"""The commands as `--help` lists them."""

ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "patterns": ("pattern",),
    **{
        name: ("pattern", name)
        for name in ["why", "promote", "deprecate", "reset", "quarantine", "release", "note", "invert"]
    },
    "loops": ("loop", "list"),
    **{name: ("loop", name) for name in ["inject", "extract", "record", "outcome", "errors", "score"]},
    "snooze": ("review", "snooze"),
    "bursts": ("review", "suspicious"),
    "mirror": ("accuracy",),
    "reflections": ("reflection", "list"),
}
"""Former spellings and their replacement. They work, but `--help` does not list them."""

PROGRAM_ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "ralph-extract-patterns": ("loop", "extract"),
    "ralph-inject-patterns": ("loop", "inject"),
    "ralph-patterns": ("pattern",),
    "ralph-history": ("history",),
    "ralph-replay": ("replay",),
    "ralph-search": ("search",),
}
"""Names of other programs, installed as entry points and accepted as commands."""
TASK_ALIAS: Final = "ralph"
"""Followed by a task: prints the context for it, like `loop inject --task`."""
_TASK_OPTIONS: Final = {"--min-pattern-success-rate": "--min-success-rate"}


def translate_alias(args: list[str]) -> list[str]:
    """Replace an alias at the start of a command line."""
    name, *rest = args
    if name == TASK_ALIAS and rest:
        task = [] if rest[0].startswith("-") else ["--task"]
        return ["loop", "inject", *task, *map(_translate_option, rest)]
    return [*(ALIASES.get(name) or PROGRAM_ALIASES.get(name) or (name,)), *rest]


def _translate_option(word: str) -> str:
    option, equals, value = word.partition("=")
    return f"{_TASK_OPTIONS.get(option, option)}{equals}{value}"
