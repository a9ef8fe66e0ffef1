"""The table of rows: what is measured, its limit and its floor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final

from msgspec import Struct

from tests.bench import (
    background,
    changing,
    episodes,
    growth,
    loaded,
    retrieval,
    review_session,
    scanning,
    showing,
    starting,
)
from tests.bench.measured import Measured
from tests.bench.one_change import CHANGES, cost
from tests.bench.place import Place

PYTHON: Final = "python -c pass"
BARE: Final = "bare Textual, first frame"
SWEEP: Final = "stat of all files of the loops"


def _new(name: str) -> Callable[[Place], Measured]:
    """A measurement `module.function` of code that older revisions lack."""
    module, _, function = name.partition(".")
    return lambda place: getattr(import_module(f"tests.bench.{module}"), function)(place)


class Row(Struct, frozen=True):
    """One row; rows of a group run in one process, in this order. `slow` rows are left out by `--quick`."""

    group: str
    what: str
    measure: Callable[[Place], Measured]
    at_most: float | None = None  # in the unit of the value
    floor: str = ""  # the row of the least that anything of this kind costs
    slow: bool = False


ROWS: Final = (
    Row("start", PYTHON, starting.python),
    Row("start", "`ralphdeck --version`", starting.version, 120, PYTHON),
    Row("start", "`ralphdeck --help`", starting.help_of_all, 120, PYTHON),
    Row("start", "`COMMAND --help`, the slowest of all", starting.help_of_one, 120, PYTHON),
    Row("start", "`task log`", starting.task_log, 80, PYTHON),
    Row("start", "`hook`, a tool call is logged", _new("starting.hook_tool_call"), 150, PYTHON),
    Row("start", "`hook`, a prompt gets its context", _new("starting.hook_prompt"), 300, PYTHON),
    Row("screen", BARE, showing.bare_frame),
    Row("screen", SWEEP, showing.stat_sweep),
    Row("screen", "all lists, opened for the first time", showing.all_from_nothing, 3000, SWEEP),
    Row("screen", "first rows of loops, opened for the first time", showing.loops_from_nothing, 1000, BARE),
    Row("screen", "first frame", showing.first_frame, 400, BARE),
    Row("screen", "loops on screen, opened before", showing.loops_reopened, 600, SWEEP),
    Row("screen", "patterns on screen, opened before", showing.patterns_reopened, 800, SWEEP),
    Row("screen", "file written to row on screen, p99", showing.write_to_row, 150),
    Row("screen", "idle dashboard", showing.idle, 1, slow=True),
    Row("many", "all lists with many patterns, opened for the first time", showing.all_of_many_from_nothing, 8000),
    Row("many", "key to paint with many patterns, p95", showing.key_to_paint, 30, slow=True),
    Row("many", "memory with many patterns", showing.memory, 600, slow=True),
    Row("many", "memory with many patterns, all screens opened", showing.memory_after_all_screens, 600, slow=True),
    Row("loaded", "everything read again from the cache, without a screen", loaded.load_again, None, SWEEP),
    Row("loaded", "file written to changed state, without a screen, p99", loaded.write_to_state),
    Row("loaded", "details of a loop, p95", loaded.details, 50),
    Row("loaded", "extraction from one loop, p95", loaded.extraction),
    Row("loaded", "near-duplicates among the patterns", loaded.near_duplicates, 1500),
    Row("loaded", "scan of one pattern", scanning.cost, 50),
    Row("loaded", "review queue, p95", loaded.review_list),
    Row("searching", "longest step of the searches for questions", background.longest_step, 20),
    *(
        Row("changes", f"{change.__name__.replace('_', ' ')} after all events, p95", partial(cost, change=change), 20)
        for change in CHANGES
    ),
    Row("scores", "context preview with many patterns, p95", loaded.preview, 100),
    Row("scores", "the same with reflections on 10,000 tasks, p95", retrieval.preview_with_reflections, 100),
    Row("scores", "the same with semantic search, p95", retrieval.injection_by_meaning, 100),
    Row("scores", "filter keystroke with many patterns, p95", loaded.filter_keystrokes, 50),
    Row("scores", "full rescore, many patterns, p95", loaded.rescore, 15),
    Row("scores", "full rescore, all events, p95", loaded.rescore_events, 50),
    Row("scores", "one new event after all others, p95", loaded.new_event, 20),
    Row("scores", "what-if after 10,000 events, p95", loaded.what_if_again, 300),
    Row("scores", "all metrics of a year, p95", loaded.metrics, 1000),
    Row("scores", "why, of the patterns with most evidence, p95", loaded.why, 20),
    Row("scores", "impact of many patterns, p95", loaded.impacts),
    Row("scores", "review queue of many patterns, p95", loaded.review_list_of_many),
    Row("sources", "sessions of an agent, read for the first time", _new("sessions.read_first")),
    Row("sources", "the same with ten times the bytes", _new("sessions.read_first_large"), slow=True),
    Row("sources", "sessions read again from kept states", _new("sessions.reopened")),
    Row("sources", "new line of a session to changed loop, p95", _new("sessions.line_to_loop")),
    Row("sources", "idle checks of sessions, share of a core", _new("sessions.idle"), 1),
    Row("sources", "memory with sessions", _new("sessions.memory"), 800),
    Row("tasks", "history of the longest task, p95", episodes.long_history, 50),
    Row("tasks", "history of one of many tasks, p95", episodes.short_history, 50),
    Row("tasks", "replay of one of many attempts, p95", episodes.replay, 50),
    Row("tasks", "first page of a search, rare word", episodes.rare_word, 50),
    Row("tasks", "first page of a search, frequent word", episodes.frequent_word, 50),
    Row("tasks", "search index of all tasks, built", _new("search_index.build")),
    Row("quality", "tasks of the second set, found by words", _new("retrieval_history.by_words")),
    Row("quality", "the same with past tasks", _new("retrieval_history.by_words_with_past")),
    Row("quality", "tasks of the second set, found by meaning", _new("retrieval_history.by_meaning")),
    Row("quality", "the same with past tasks, cross-validated", _new("retrieval_history.by_meaning_with_past")),
    Row("quality", "embedding model, idle", _new("retrieval_history.idle_model"), 0.5),
    Row("quality", "paraphrased tasks, found by words", partial(retrieval.found_by_words, tasks="paraphrased")),
    Row("quality", "paraphrased tasks, found by meaning", partial(retrieval.found_by_meaning, tasks="paraphrased")),
    Row("quality", "scan, texts that rules were tuned on", partial(scanning.summary, held_out=False)),
    Row("quality", "scan, texts held out", partial(scanning.summary, held_out=True)),
    Row("live", "next sweep, processor time", _new("live.next_sweep"), None, SWEEP),
    Row("live", "a change on screen, processor time", _new("live.change_on_screen"), slow=True),
    Row("live", "200 decisions in a terminal, key to next question", review_session.review_200_questions, slow=True),
    Row("live", "dashboard at 20 changes a second", partial(changing.under_load, rate=20), 15, slow=True),
    Row(
        "live",
        "dashboard at 200 changes a second",
        partial(changing.under_load, rate=200, seconds=360),
        slow=True,
    ),
    Row("team", "uses that 50 clients add", _new("team_load.events_a_second"), slow=True),
    Row(
        "team", "decision to the dashboard of another member, p99", _new("team_load.decision_to_other"), 1000, slow=True
    ),
    Row("team", "a project with many patterns joins", _new("team_load.join_with_many_patterns"), slow=True),
    Row("team", "growth with the number of uses, exponent", _new("team_load.growth"), 1.15, slow=True),
    Row("team", "an empty project joins a space with many patterns", _new("team_load.open_first"), slow=True),
    Row("team", "all texts and sums of a space read again", _new("team_load.open_again"), slow=True),
    Row("team", "a space with many patterns and uses opened again", _new("team_load.open_known"), 3000, slow=True),
    Row("growth", "growth with the number of loops, exponent", growth.of_loops, 1.15, slow=True),
    Row("growth", "growth with the number of patterns, exponent", growth.of_patterns, 1.15, slow=True),
    Row(
        "growth",
        "growth of the search index with the number of tasks, exponent",
        _new("search_index.growth"),
        1.15,
        slow=True,
    ),
)
GROUPS: Final = tuple(dict.fromkeys(row.group for row in ROWS))
