"""The JSON output of each command, and its description for `--help`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.cli.json import analysis, debug, decisions, loops, patterns, tasks
from core.cli.json.wire import FIELDS, Field, Finding, Wire

_RULES: Final = "Times are ISO-8601 in UTC, rates are 0 to 1, null is unknown. Keys are only ever added."
_FINDINGS: Final = "A finding is {file, pointer, severity, code, message, count}."
_DECIDING: Final = ("pattern note", "pattern restore", "undo", "redo", "review snooze")
_DECIDING_MANY: Final = tuple(f"pattern {verb}" for verb in ("promote", "deprecate", "reset", "quarantine", "release"))


def json_schemas() -> Mapping[str, type[Wire]]:
    """The Struct of each document by its command, followed by the option or condition where it differs."""
    found: dict[str, type[Wire]] = {}
    for command in _DECIDING:
        found[command] = decisions.Decided
        found[f"{command}, with several decisions"] = decisions.DecidedTogether
    for command in _DECIDING_MANY:
        found[command] = decisions.Decided
        found[f"{command}, with several IDs"] = decisions.DecidedTogether
        found[f"{command} --dry-run"] = decisions.DryRun
    return found | {
        "accuracy": analysis.AccuracyDocument,
        "changes": analysis.ChangesDocument,
        "check": decisions.PolicyResult,
        "debug archive-expired": debug.ArchiveResult,
        "debug archive-expired --dry-run": debug.RetentionDocument,
        "debug archived": debug.ArchivedSessionList,
        "debug causes": debug.CauseList,
        "debug escalate": debug.EscalationDocument,
        "debug escalations": debug.SessionList,
        "debug failure": debug.FailureDocument,
        "debug list": debug.SessionList,
        "debug restore": debug.RestoreResult,
        "debug show": debug.SessionDocument,
        "debug similar": debug.SessionList,
        "debug success": debug.SuccessDocument,
        "debug templates": debug.FixTemplateList,
        "demo": analysis.DemoReport,
        "doctor": analysis.DoctorDocument,
        "embed": analysis.VectorCounts,
        "history": tasks.HistoryDocument,
        "history --attempt": tasks.AttemptDocument,
        "history --reflections": loops.ReflectionList,
        "log": decisions.DecisionLog,
        "log --head": decisions.LogHead,
        "log --verify": decisions.LogVerification,
        "loop errors": loops.ErrorList,
        "loop extract": decisions.ExtractionList,
        "loop inject": loops.InjectionDocument,
        "loop list": loops.LoopList,
        "loop outcome": loops.OutcomeDocument,
        "loop record": loops.RecordDocument,
        "loop score": loops.ScoreDocument,
        "metrics": analysis.MetricsDocument,
        "pattern archive": decisions.DecidedEach,
        "pattern archived": patterns.ArchivedPatternList,
        "pattern duplicates": patterns.DuplicateList,
        "pattern export": patterns.Export,
        "pattern import": patterns.ImportResult,
        "pattern import --dry-run": patterns.ImportPlan,
        "pattern invert": patterns.InversionList,
        "pattern invert, with a decision": decisions.Decided,
        "pattern invert --auto": decisions.DecidedEach,
        "pattern invert --dry-run": decisions.DryRun,
        "pattern list": patterns.PatternList,
        "pattern merge": decisions.Decided,
        "pattern merge --dry-run": patterns.MergePreview,
        "pattern prune": decisions.Decided,
        "pattern prune, with several decisions": decisions.DecidedTogether,
        "pattern prune --dry-run": patterns.PruneList,
        "pattern show": patterns.PatternDocument,
        "pattern why": patterns.Explanation,
        "reflection list": loops.ReflectionList,
        "reflection list --recurring": loops.RecurringList,
        "replay": tasks.ReplayDocument,
        "review list": decisions.ReviewQueue,
        "review suspicious": decisions.BurstList,
        "review suspicious, with a decision": decisions.Decided,
        "scan": analysis.ScanDocument,
        "scan --lines": analysis.ScanResult,
        "search": tasks.SearchResult,
        "task complete": tasks.AttemptCompleted,
        "task init": tasks.TaskCreated,
        "task list": tasks.TaskList,
        "task log": tasks.ActionsLogged,
        "task pause": tasks.TaskPaused,
        "task reflect": tasks.ReflectionWritten,
        "task report": tasks.TaskReport,
        "task similar": tasks.SimilarTaskList,
        "task start": tasks.AttemptStarted,
        "watch": loops.WatchLine,
        "what-if": analysis.WhatIfDocument,
        "what-if, with no arguments": analysis.ThresholdList,
    }


def json_help(command: str) -> str | None:
    """The paragraphs on JSON in the help of a command; None if it prints no JSON."""
    schemas = json_schemas()
    if command not in schemas:
        return None
    shown: set[type[Wire]] = set()
    texts = [describe(schemas[command], shown)]
    for name, wire in schemas.items():
        condition = name.removeprefix(command)
        if name != command and name.startswith(command) and condition[:1] in {" ", ","}:
            words = condition.lstrip(", ").removeprefix("with ")
            texts.append(f"With {words}: {describe(wire, shown)}")
    rules = f"{_RULES} {_FINDINGS}" if "findings" in texts[0] else _RULES
    return "\n\n".join([f"JSON: {texts[0]}", *texts[1:], rules])


def describe(struct: type[Wire], shown: set[type[Wire]]) -> str:
    """The keys of a Struct in braces; a Struct that was described before is named only by its key."""
    return f"{{{', '.join(_describe_field(field, shown) for field in FIELDS[struct])}}}"


def _describe_field(field: Field, shown: set[type[Wire]]) -> str:
    structs = field.structs
    if not structs or structs[0] is Finding or structs[0] in shown:
        return field.name
    shown.add(structs[0])
    keys = describe(structs[0], shown)
    return f"{field.name}: {f'[{keys}]' if field.container else keys}"
