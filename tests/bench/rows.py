"""The table of rows: what is measured, its limit and its floor.

The modules that measure are imported by the process of their group: older revisions can run those that they have the
modules for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Final

from msgspec import Struct

from tests.bench import hooks, imports
from tests.bench.command_runs import CHANGING, LARGEST, RUNS
from tests.bench.commands import FIRST
from tests.bench.measured import Measured
from tests.bench.place import Place
from tests.bench.sized import SIZES

PYTHON: Final = "python -c pass"
BARE: Final = "bare Textual, first frame"
SWEEP: Final = "stat of all files of the loops"
CHANGES: Final = (
    *("new event", "running loop", "finished loop", "changed pattern"),
    *("decision", "reflection", "debug session", "attempt"),
)
Limits = tuple[float | None, float | None, float | None]
"""One for each of `SIZES`."""
_NO_LIMITS: Final[Limits] = (None, None, None)
_COMMAND_LIMITS: Final[Mapping[str, Limits]] = {
    "pattern list": (None, 400, None),
    "pattern show": (None, 400, None),
    "loop list": (None, 400, None),
    "review": (None, 600, None),
    "metrics": (None, 1500, None),
    "loop inject": (None, 500, 600),
    "task log": (80, None, None),
}
_THIRD: Final = {"name": "paraphrases"}  # the set of patterns as loops extract them
_HOOK_LIMITS: Final[Mapping[str, Limits]] = {hooks.PROMPT: (120, 150, 200), hooks.TOOL: (50, 50, 50)}


class Row(Struct, frozen=True):
    """One row; rows of a group run in one process, in this order. `slow` rows are left out by `--quick`.

    `measure` is the name of a function below `tests.bench`, which gets the place and the `arguments`. A row with a
    size is one cell of the table of the projects of three sizes.
    """

    group: str
    what: str
    measure: str
    at_most: float | None = None  # in the unit of the value
    floor: str = ""  # the row of the least that anything of this kind costs
    slow: bool = False
    arguments: Mapping[str, str | bool] = {}
    size: str = ""
    limits_cpu: bool = False  # whether the limit is one of processor time

    @property
    def key(self) -> str:
        """What is measured, with the size."""
        return f"{self.what}, {self.size}" if self.size else self.what

    @property
    def function(self) -> Callable[..., Measured]:
        """The function that measures; raises ImportError if this revision lacks a module that it needs."""
        module, _, name = self.measure.partition(".")
        function: Callable[..., Measured] = getattr(import_module(f"tests.bench.{module}"), name)
        return function

    def take(self, place: Place) -> Measured:
        """Measure."""
        return self.function(place, **self.arguments)

    def is_over(self, measured: Measured) -> bool:
        """Return whether a value is above the limit."""
        if self.at_most is None:
            return False
        value = measured.cpu if self.limits_cpu and measured.cpu is not None else measured.value
        return not value <= self.at_most


def sized_rows() -> Iterator[Row]:
    """Every command and every hook event, at each size.

    Commands that change the project follow the others; the last one changes most, and may be ended before it is done.
    """
    commands = sorted((name for name in RUNS if name != "hook"), key=lambda name: (name in CHANGING, name == LARGEST))
    first = f"`{FIRST}`, nothing cached"
    for place, size in enumerate(SIZES):
        yield Row("commands", first, "commands.from_nothing", arguments={"size": size}, size=size)
        for command in commands:
            limit = _COMMAND_LIMITS.get(command, _NO_LIMITS)[place]
            arguments = {"command": command, "size": size}
            yield Row("commands", f"`{command}`", "commands.measure", limit, arguments=arguments, size=size)
        for agent, events in hooks.EVENTS.items():
            for kind, name, _ in events:
                yield Row(
                    "hooks",
                    f"{agent}: {kind} (`{name}`)",
                    "hooks.measure",
                    _HOOK_LIMITS.get(kind, _NO_LIMITS)[place],
                    arguments={"agent": agent, "kind": kind, "size": size},
                    size=size,
                    limits_cpu=True,
                )


def import_rows() -> Iterator[Row]:
    """What each hook and each short command imports."""
    for kind in imports.EVENT_KINDS:
        yield Row("imports", f"imports of `hook`, {kind}", "imports.of_event", arguments={"kind": kind})
    for command in imports.COMMANDS:
        yield Row("imports", f"imports of `{command}`", "imports.of_command", arguments={"command": command})


ROWS: Final = (
    Row("start", PYTHON, "starting.python"),
    Row("start", "`ralphdeck --version`", "starting.version", 120, PYTHON),
    Row("start", "`ralphdeck --help`", "starting.help_of_all", 120, PYTHON),
    Row("start", "`COMMAND --help`, the slowest of all", "starting.help_of_one", 120, PYTHON),
    Row("screen", BARE, "showing.bare_frame"),
    Row("screen", SWEEP, "showing.stat_sweep"),
    Row("screen", "all lists, opened for the first time", "showing.all_from_nothing", 2500, SWEEP),
    Row("screen", "first rows of loops, opened for the first time", "showing.loops_from_nothing", 500, BARE),
    Row("screen", "first frame", "showing.first_frame", 400, BARE),
    Row("screen", "Now on screen, opened before", "showing.now_reopened", 300, SWEEP),
    Row("screen", "loops on screen, opened before", "showing.loops_reopened", 300, SWEEP),
    Row("screen", "all files checked, opened before", "showing.all_checked", 700, SWEEP, slow=True),
    Row("screen", "patterns on screen, opened before", "showing.patterns_reopened", 800, SWEEP),
    Row("screen", "file written to row on screen, p99", "showing.write_to_row", 60),
    Row("screen", "file written to row on screen, median", "showing.median_write_to_row", 30),
    Row("screen", "idle dashboard", "showing.idle", 1, slow=True),
    Row("many", "all lists with many patterns, opened for the first time", "showing.all_of_many_from_nothing", 6000),
    Row(
        "many",
        "first rows with many patterns, opened for the first time",
        "showing.loops_of_many_from_nothing",
        500,
        slow=True,
    ),
    Row("many", "key to paint with many patterns, p95", "showing.key_to_paint", 30, slow=True),
    Row("many", "memory with many patterns", "showing.memory", 250, slow=True),
    Row("many", "memory with many patterns, all screens opened", "showing.memory_after_all_screens", 250, slow=True),
    Row("loaded", "everything read again from the cache, without a screen", "loaded.load_again", None, SWEEP),
    Row("loaded", "file written to changed state, without a screen, p99", "loaded.write_to_state"),
    Row("loaded", "details of a loop, p95", "loaded.details", 50),
    Row("loaded", "extraction from one loop, p95", "loaded.extraction"),
    Row("loaded", "near-duplicates among the patterns", "loaded.near_duplicates", 1500),
    Row("loaded", "scan of one pattern", "scanning.cost", 50),
    Row("loaded", "review queue, p95", "loaded.review_list"),
    Row("searching", "longest step of the searches for questions", "background.longest_step", 20),
    *(
        Row("changes", f"{change} after all events, p95", "one_change.cost", 20, arguments={"change": change})
        for change in CHANGES
    ),
    Row("scores", "context preview with many patterns, p95", "loaded.preview", 100),
    Row("scores", "the same with reflections on 10,000 tasks, p95", "retrieval.preview_with_reflections", 100),
    Row("scores", "the same with semantic search, p95", "retrieval.injection_by_meaning", 100),
    Row("scores", "filter keystroke with many patterns, p95", "loaded.filter_keystrokes", 20),
    Row("scores", "full rescore, many patterns, p95", "loaded.rescore", 15),
    Row("scores", "full rescore, all events, p95", "loaded.rescore_events", 50),
    Row("scores", "one new event after all others, p95", "loaded.new_event", 20),
    Row("scores", "what-if after 10,000 events, p95", "loaded.what_if_again", 300),
    Row("scores", "all metrics of a year, p95", "loaded.metrics", 1000),
    Row("scores", "why, of the patterns with most evidence, p95", "loaded.why", 20),
    Row("scores", "impact of many patterns, p95", "loaded.impacts"),
    Row("scores", "review queue of many patterns, p95", "loaded.review_list_of_many"),
    Row("sources", "sessions of an agent, read for the first time", "sessions.read_first"),
    Row("sources", "the same with ten times the bytes", "sessions.read_first_large", slow=True),
    Row("sources", "sessions read again from kept states", "sessions.reopened"),
    Row("sources", "new line of a session to changed loop, p95", "sessions.line_to_loop"),
    Row("sources", "idle checks of sessions, share of a core", "sessions.idle", 1),
    Row("sources", "memory with sessions", "sessions.memory", 800),
    Row("tasks", "history of the longest task, p95", "episodes.long_history", 50),
    Row("tasks", "history of one of many tasks, p95", "episodes.short_history", 50),
    Row("tasks", "replay of one of many attempts, p95", "episodes.replay", 50),
    Row("tasks", "first page of a search, rare word", "episodes.rare_word", 50),
    Row("tasks", "first page of a search, frequent word", "episodes.frequent_word", 50),
    Row("tasks", "search index of all tasks, built", "search_index.build"),
    Row("quality", "tasks of the second set, found by words", "retrieval_history.by_words"),
    Row("quality", "the same with past tasks", "retrieval_history.by_words_with_past"),
    Row("quality", "tasks of the second set, found by meaning", "retrieval_history.by_meaning"),
    Row("quality", "the same with past tasks, cross-validated", "retrieval_history.by_meaning_with_past"),
    Row("quality", "tasks of the third set, found by words", "retrieval_history.by_words", arguments=_THIRD),
    Row(
        "quality",
        "the third set by words, with the source tasks",
        "retrieval_history.by_words_with_past",
        arguments=_THIRD,
    ),
    Row("quality", "tasks of the third set, found by meaning", "retrieval_history.by_meaning", arguments=_THIRD),
    Row("quality", "the third set, weights cross-validated", "retrieval_history.by_fitted_weights"),
    Row(
        "quality",
        "the third set by meaning, with the source tasks",
        "retrieval_history.by_meaning_with_past",
        arguments=_THIRD,
    ),
    Row("quality", "embedding model, idle", "retrieval_history.idle_model", 0.5),
    Row("quality", "paraphrased tasks, found by words", "retrieval.found_by_words", arguments={"tasks": "paraphrased"}),
    Row(
        "quality",
        "paraphrased tasks, found by meaning",
        "retrieval.found_by_meaning",
        arguments={"tasks": "paraphrased"},
    ),
    Row("quality", "scan, texts that rules were tuned on", "scanning.summary", arguments={"held_out": False}),
    Row("quality", "scan, texts held out", "scanning.summary", arguments={"held_out": True}),
    Row("live", "next sweep, processor time", "live.next_sweep", None, SWEEP),
    Row("live", "a change on screen, processor time", "live.change_on_screen", slow=True),
    Row("live", "200 decisions in a terminal, key to next question", "review_session.review_200_questions", slow=True),
    Row("live", "dashboard at 20 changes a second", "changing.at_20_a_second", 15, slow=True),
    Row(
        "live",
        "dashboard at 200 changes a second",
        "changing.at_200_a_second",
        slow=True,
    ),
    Row("team", "uses that 50 clients add", "team_load.events_a_second", slow=True),
    Row("team", "decision to the dashboard of another member, p99", "team_load.decision_to_other", 1000, slow=True),
    Row("team", "a project with many patterns joins", "team_load.join_with_many_patterns", slow=True),
    Row("team", "growth with the number of uses, exponent", "team_load.growth", 1.15, slow=True),
    Row("team", "an empty project joins a space with many patterns", "team_load.open_first", slow=True),
    Row("team", "all texts and sums of a space read again", "team_load.open_again", slow=True),
    Row("team", "a space with many patterns and uses opened again", "team_load.open_known", 3000, slow=True),
    Row("growth", "growth with the number of loops, exponent", "growth.of_loops", 1.15, slow=True),
    Row("growth", "growth with the number of patterns, exponent", "growth.of_patterns", 1.15, slow=True),
    Row(
        "growth",
        "growth of the search index with the number of tasks, exponent",
        "search_index.growth",
        1.15,
        slow=True,
    ),
    Row("code", "lines of the data path", "code.data_path_lines", 22_000),
    *import_rows(),
    *sized_rows(),
)
GROUPS: Final = tuple(dict.fromkeys(row.group for row in ROWS))
