"""What one file contributes to what is known: a pure function of its name, its bytes and its stamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.ledger.ledger import DecisionLog
from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import Decision
from core.records.episodes import Attempt, Task
from core.records.events import Event
from core.records.findings import Finding, Severity
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask, Reflection
from core.sources.cross_task_memory import is_memory_file, read_memory
from core.sources.debug_sessions import is_debug_memory, read_sessions
from core.sources.episodes import ActionTally, episode_file, read_episode
from core.sources.escalations import read_escalation
from core.sources.events import EventLog
from core.sources.finding_groups import MOST_ALIKE, condense, kind_in_file
from core.sources.loops import LoopFact, directory_fact, read_crash_log, read_loops
from core.sources.path_kinds import CRASH_LOG, loop_source
from core.sources.patterns import Records, read_patterns
from core.sources.record_checks import check_metrics, check_records, in_own_style, normalized
from core.sources.reflections import is_memory_reflection, read_reflections, reflection_shape
from core.sources.sweep import Kind
from core.storage.decoded import Problem
from core.storage.file_reader import RawFile, Stamp, decode
from core.storage.hash_chain import Place


class ParsedFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that one file says; records keep the order of the file. See `DecisionLog` for what is of a ledger."""

    patterns: tuple[Pattern, ...] = ()
    facts: tuple[LoopFact, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    memory_tasks: tuple[MemoryTask, ...] = ()
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    debug_sessions: tuple[DebugSession, ...] = ()
    escalations: tuple[Escalation, ...] = ()
    events: tuple[Event, ...] = ()
    decisions: tuple[Decision, ...] = ()
    places: tuple[Place, ...] = ()
    is_chained: bool = False
    findings: tuple[Finding, ...] = ()


class Earlier:
    """What makes reading a file again cheaper after a small change to it; never changes what is read."""

    def __init__(self) -> None:
        self.records: Records = {}
        self.log: EventLog | None = None
        self.ledger: DecisionLog | None = None
        self.actions: ActionTally | None = None


MAX_FINDINGS: Final = 200
"""Findings of one file that are kept; a file that is wrong all over would bury those of all others."""


def contribution(
    file: str,
    kind: Kind,
    raw: RawFile,
    earlier: Earlier | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ParsedFile | Problem:
    """What `file` says, or the problem that keeps it from being read at all.

    Args:
        file: Project-relative name.
        kind: What it is read as; not `DIRECTORY`.
        raw: Its bytes and stamp.
        earlier: What is kept of an earlier reading of this file, brought up to date here.
        progress: Called now and then with the records that are read, and the records in all, of a pattern file.
    """
    said = _said(file, kind, raw, earlier or Earlier(), progress)
    if isinstance(said, Problem) or len(said.findings) <= MOST_ALIKE:
        return said
    said = replace(said, findings=condense(said.findings, kind_in_file))
    if len(said.findings) <= MAX_FINDINGS:
        return said
    message = f"{len(said.findings) - MAX_FINDINGS:,} more findings of this file are not listed"
    rest = Finding(file, "", Severity.INFO, "more-findings", message)
    return replace(said, findings=(*said.findings[:MAX_FINDINGS], rest))


def _said(
    file: str, kind: Kind, raw: RawFile, earlier: Earlier, progress: Callable[[int, int], None] | None
) -> ParsedFile | Problem:
    if kind is Kind.EVENTS:
        log = earlier.log or EventLog(file)
        log.read(raw.data)
        earlier.log = log
        return ParsedFile(events=log.events, findings=log.findings)
    if kind is Kind.LEDGER:
        ledger = earlier.ledger or DecisionLog()
        ledger.read(raw.data)
        earlier.ledger = ledger
        return ParsedFile(
            decisions=ledger.decisions, places=ledger.places, is_chained=ledger.is_chained, findings=ledger.findings
        )
    if kind is Kind.ACTIONS:
        tally = earlier.actions or ActionTally(file)
        attempt, findings = tally.read(raw.data)
        earlier.actions = tally
        return ParsedFile(attempts=(attempt,) if attempt else (), findings=findings)
    if kind is Kind.HISTORY:
        return _history(file, raw)
    if kind is Kind.ESCALATION:
        return _escalation(file, raw)
    if kind is Kind.METRICS:
        return _metrics(file, raw)
    copy_folder = file.rpartition("/")[0] if kind is Kind.MIRROR else ""
    checked = kind is Kind.PATTERNS
    found = read_patterns(file, raw.data, copy_folder, earlier.records, with_schema=checked, progress=progress)
    return found.problem or ParsedFile(patterns=found.patterns, findings=found.findings)


def _escalation(file: str, raw: RawFile) -> ParsedFile | Problem:
    decoded = decode(file, raw.data)
    if decoded.failed:
        return decoded.problems[0]
    calls, findings = read_escalation(file, decoded.value)
    return ParsedFile(escalations=calls, findings=(*(problem.finding(file) for problem in decoded.problems), *findings))


def _metrics(file: str, raw: RawFile) -> ParsedFile | Problem:
    decoded = decode(file, raw.data)
    if decoded.failed:
        return decoded.problems[0]
    problems = tuple(problem.finding(file) for problem in decoded.problems)
    return ParsedFile(findings=(*problems, *check_metrics(file, decoded.value)))


def _history(file: str, raw: RawFile) -> ParsedFile | Problem:
    modified_at = raw.stamp.modified_at
    source = loop_source(file)
    if source == CRASH_LOG:
        facts, findings = read_crash_log(file, raw.data, modified_at)
        return ParsedFile(facts=facts, findings=findings)
    decoded = decode(file, raw.data, every=is_debug_memory(file) or is_memory_reflection(file))
    if decoded.failed:
        return decoded.problems[0]
    value = normalized(decoded.value)
    said: dict[str, Any] = {}
    findings = tuple(problem.finding(file) for problem in decoded.problems)
    if source:
        said["facts"], wrong = read_loops(file, value, modified_at)
        findings += wrong
    if reflection_shape(file):
        said["reflections"], wrong = read_reflections(file, value, modified_at)
        findings += wrong
    if is_memory_file(file):
        said["memory_tasks"], wrong = read_memory(file, value, modified_at)
        findings += wrong
    if episode_file(file):
        said["tasks"], said["attempts"], wrong = read_episode(file, value)
        findings += wrong
    if is_debug_memory(file):
        said["debug_sessions"], wrong = read_sessions(file, value)
        findings += wrong
    findings += check_records(file, value, findings)
    if value is not decoded.value:
        findings = in_own_style(findings, decoded.value)
    return ParsedFile(**said, findings=findings)


def folder_contribution(file: str, stamp: Stamp) -> ParsedFile:
    """What the folder of a loop, a name with a final `/`, says by being there."""
    fact = directory_fact(file, stamp.modified_at)
    return ParsedFile(facts=(fact,)) if fact else ParsedFile()
