"""Policy rules and their check for `ralphdeck check`; see docs/ci.md."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.scanning.verdict import find_combined_harm, find_harm_when_cut, find_stopping_severity, highest_severity
from core.base.text import plural, visible_line
from core.base.validation import format_value
from core.files.file_reader import decode_yaml
from core.files.hash_chain import NOT_AS_WRITTEN
from core.index.project_state import all_findings, explain_pattern
from core.learning.maturity import DECIDED
from core.questions.context_recipients import ContextCache, Recipient, list_recipients
from core.records.findings import Finding, Severity
from core.records.patterns import Maturity
from core.sources import normalize
from core.sources.ledger import FILE as LEDGER
from core.sources.ledger import verify_ledger
from core.sources.record_kinds import ACTIONS, ESCALATION, FOLDER, METRICS, PATTERN_COPIES, can_contain_records, kind_of

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.index.project_state import ProjectState
    from core.learning.scoreboard import Scoreboard
    from core.learning.scores import Flags
    from core.retrieval.injection import InjectedContext

MAX_BYTES: Final = 64 << 10  # Maximum size of a policy, in bytes.
_MAX_UNKNOWN: Final = 5
_NAME_CHARS: Final = 80
_SWITCH: Final = {"on": True, "off": False}
_ALWAYS_CHECKED: Final = frozenset({"log_verified", "max_errors"})
"""Rules that can be checked even if files are unreadable."""
_NOT_NEEDED: Final = frozenset({None, PATTERN_COPIES, METRICS, ACTIONS, ESCALATION, FOLDER})
"""Kinds of files that no other rule depends on."""


class Policy(Struct, frozen=True, kw_only=True):
    """The policy of a project: rules (True if on) and limits (None: no limit)."""

    no_quarantined: bool = True  # Forbids the injection of held and quarantined patterns.
    no_critical: bool = True
    """Forbids the injection of texts that the scan blocks or holds, unless a person approved them."""
    no_single_loop: bool = True
    """Forbids patterns that are proven by the results of a single loop; promoted patterns are exempt."""
    log_verified: bool = True  # Requires an intact hash chain of the decision log.
    max_tokens: int | None = 2000  # Maximum estimated tokens in the context of a running or paused loop or past task.
    max_questions: int | None = None  # Maximum number of pending questions in Review.
    max_blocked: int | None = None  # Maximum number of patterns in quarantine.
    max_held: int | None = None  # Maximum number of patterns that are held until a person approves them.
    max_unreconciled: int | None = None  # Maximum number of patterns whose records and evidence disagree.
    max_errors: int | None = None  # Maximum number of files or records that cannot be used.


class RuleResult(Struct, frozen=True, kw_only=True):
    """The result of one rule; `passed` is None if it is off.

    `text` is safe to display. `subjects` are the patterns, loops or tasks (by ID) that violate the rule, or unreadable
    files; untrusted.
    """

    rule: str
    passed: bool | None
    text: str
    subjects: tuple[str, ...] = ()


def read_policy(name: str, data: bytes) -> Policy:
    """Parse a YAML policy such as `no-critical: on`; `BadInput` if it is invalid."""
    decoded = decode_yaml(data)
    file = visible_line(name, 200)
    if decoded.value is None and all(problem.code == "empty" for problem in decoded.problems):
        return Policy()
    if not isinstance(decoded.value, dict) or decoded.failed:
        why = decoded.problems[0].message if decoded.problems else "is not a list of rules such as `no-critical: on`"
        raise BadInput(f"{file} {why}")
    given = {str(key): value for key, value in decoded.value.items()}
    if unknown := [key for key in given if key not in _FIELDS]:
        raise BadInput(f"{file}: {'; '.join(map(_nearest, unknown[:_MAX_UNKNOWN]))}")
    return replace(Policy(), **{_FIELDS[key]: _value(file, key, value) for key, value in given.items()})


def rule_name(field: str) -> str:
    """Return the name of a rule in a policy file: `max-tokens`."""
    return field.replace("_", "-")


_FIELDS: Final = {rule_name(field): field for field in Policy.__struct_fields__}


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key[:_NAME_CHARS].casefold().replace("_", "-"), _FIELDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_FIELDS)}"
    return f"no rule {format_value(key)}; {hint}"


def _value(file: str, key: str, value: Any) -> Any:
    switch = _SWITCH.get(str(value).strip().casefold(), normalize.flag(value))
    if not key.startswith("max-"):
        if switch is None:
            raise BadInput(f"{file}: {key} must be on or off, not {format_value(value)}")
        return switch
    limit = normalize.count(value)
    if limit is not None:
        return limit
    if switch is False:
        return None
    raise BadInput(f"{file}: {key} must be off or a whole number of at least 0, not {format_value(value)}")


def check(policy: Policy, state: ProjectState, paths: ProjectPaths) -> tuple[RuleResult, ...]:
    """Check every rule; a rule fails if files that it needs are unreadable.

    If the policy limits questions, the queue of `state` must contain all of them.
    """
    checker = _Checker(policy, state, paths)
    return tuple(checker.result(field) for field in Policy.__struct_fields__)


class _Checker:
    def __init__(self, policy: Policy, state: ProjectState, paths: ProjectPaths) -> None:
        self._policy, self._state, self._paths = policy, state, paths

    def result(self, field: str) -> RuleResult:
        setting = getattr(self._policy, field)
        rule = rule_name(field)
        if setting is None or setting is False:
            return RuleResult(rule=rule, passed=None, text="off")
        if self._unreadable and field not in _ALWAYS_CHECKED:
            first = self._unreadable[0]
            more = f" (and {plural(len(self._unreadable) - 1, 'more file')})" if len(self._unreadable) > 1 else ""
            text = f"cannot be checked: {visible_line(first.file, 200)} {visible_line(first.message, 200)}{more}"
            return RuleResult(rule=rule, passed=False, text=text, subjects=tuple(one.file for one in self._unreadable))
        rules: dict[str, Callable[[], tuple[Sequence[str], str]]] = {
            "no_quarantined": self._quarantined,
            "no_critical": self._critical,
            "no_single_loop": self._single_loop,
            "log_verified": self._log,
            "max_tokens": self._tokens,
        }
        if field in rules:
            broken, text = rules[field]()
            return RuleResult(rule=rule, passed=not broken, text=text, subjects=tuple(broken))
        found, noun, many = self._counted(field)
        excess = tuple(found) if len(found) > setting else ()
        text = f"{plural(len(found), noun, many)}, at most {setting:,}"
        return RuleResult(rule=rule, passed=not excess, text=text, subjects=excess)

    @cached_property
    def _unreadable(self) -> list[Finding]:
        """Return a finding for each unreadable file, folder or part of the decision log."""
        snapshot = self._state.snapshot
        found = {
            finding.file: finding
            for finding in reversed(snapshot.findings)
            if finding.severity is Severity.ERROR
            and (not finding.pointer or finding.file in snapshot.unreadable or finding.file == LEDGER)
            and finding.code != NOT_AS_WRITTEN
            and (kind_of(finding.file) not in _NOT_NEEDED or can_contain_records(finding.file))
        }
        return list(found.values())

    @cached_property
    def _contexts(self) -> list[tuple[Recipient, InjectedContext]]:
        contexts = ContextCache()
        return [
            (reader, contexts.current_context(self._state, reader.task))
            for reader in list_recipients(self._state.snapshot)
        ]

    @property
    def _contexts_text(self) -> str:
        return plural(len(self._contexts), "context") + " of running and paused loops and last tasks"

    def _injectable_ids(self) -> Iterator[str]:
        """Yield IDs of patterns that may be injected, by state or in one of the contexts."""
        board = self._state.board
        yield from _ids(board, board.injectable)
        yield from (id for _, given in self._contexts for id in given.pattern_ids)

    def _quarantined(self) -> tuple[Sequence[str], str]:
        board = self._state.board
        quarantined = set(_ids(board, board.quarantined))
        broken = list(dict.fromkeys(id for id in self._injectable_ids() if id in quarantined))
        held = len(_ids(board, board.held))
        counts = f"{plural(held, 'pattern')} held, {len(quarantined) - held:,} in quarantine"
        return broken, f"{counts}; {_count_text(broken)} of them in {self._contexts_text}"

    def _critical(self) -> tuple[Sequence[str], str]:
        state = self._state
        patterns, curation = state.snapshot.patterns, state.snapshot.curation
        scan, board = state.settings.scan, state.board
        used = board.used_scripts
        given = {id: highest_severity(patterns[id], curation, scan, used) for id in self._injectable_ids()}
        dangerous = [id for id, severity in given.items() if severity is not None and severity.stops]
        by_rule = (id for id in dangerous if state.assessment(id).decided_by not in DECIDED)
        broken = [id for id in by_rule if find_stopping_severity(patterns[id], curation, scan, used) is not None]
        max_chars, together = state.settings.injection.max_field_chars, []
        for reader, injected in self._contexts:
            ids = injected.pattern_ids
            orders = all(map(board.stops_orders, ids))
            if find_combined_harm(injected.context, (patterns[id] for id in ids), orders=orders) or any(
                find_harm_when_cut(patterns[id], max_chars, orders=board.stops_orders(id)) for id in ids
            ):
                together.append(reader.id)
        allowed = len(dangerous) - len(broken)
        released = f"; a person has released {plural(allowed, 'dangerous text')}" if allowed else ""
        return [
            *broken,
            *together,
        ], f"{_count_text([*broken, *together])} dangerous in {self._contexts_text}{released}"

    def _single_loop(self) -> tuple[Sequence[str], str]:
        state = self._state
        proven = [
            assessment
            for id in sorted(state.board.ids)
            if (assessment := state.assessment(id)).state is Maturity.PROVEN
        ]
        broken = [
            one.pattern_id
            for one in proven
            if one.decided_by not in DECIDED
            and any(loop.state_without is not one.computed for loop in explain_pattern(state, one.pattern_id).loops)
        ]
        return broken, f"{plural(len(proven), 'proven pattern')}, {_count_text(broken)} by a single loop"

    def _log(self) -> tuple[Sequence[str], str]:
        found = verify_ledger(self._paths)
        return [f"line {problem.line}: {problem.what}" for problem in found.problems], found.summary

    def _tokens(self) -> tuple[Sequence[str], str]:
        limit = self._policy.max_tokens or 0
        broken = [reader.id for reader, given in self._contexts if given.tokens > limit]
        most = max((given.tokens for _, given in self._contexts), default=0)
        return broken, f"{self._contexts_text}, the longest of {most:,} tokens, at most {limit:,}"

    def _counted(self, field: str) -> tuple[list[str], str, str]:
        """Return what a limit counts: subjects, and the noun in singular and plural."""
        state, board = self._state, self._state.board
        match field:
            case "max_questions":
                return [item.subject for item in state.worth_reading], "open question", "open questions"
            case "max_held":
                return _ids(board, board.held), "held pattern", "held patterns"
            case "max_blocked":
                return _ids(board, board.quarantined & ~board.held), "pattern in quarantine", "patterns in quarantine"
            case "max_errors":
                errors = [f"{one.file}{one.pointer}" for one in all_findings(state) if one.severity is Severity.ERROR]
                return errors, "finding of severity error", "findings of severity error"
        found = [id for id in board.ids if any(one.severity is not Severity.INFO for one in board.reconcile(id))]
        return found, "record that differs from the evidence", "records that differ from the evidence"


def _ids(board: Scoreboard, rows: Flags) -> list[str]:
    return sorted(board.ids[row] for row in rows.nonzero()[0].tolist())


def _count_text(broken: Sequence[str]) -> str:
    return f"{len(broken):,}" if broken else "none"
