"""JSON objects of setting up a project, and of teams."""

from __future__ import annotations

from typing import Annotated, Any

from core.cli.json.analysis import TeamTrials
from core.cli.json.wire import Finding, Time, Wire


class VectorCounts(Wire, frozen=True):
    """`doctor --embed`."""

    made: int
    patterns: int
    tasks_made: int
    tasks: int
    instructions_made: int
    instructions: int
    model: str


class CheckResult(Wire, frozen=True):
    """One check; `status` is ok, note, warning or error."""

    area: str
    name: str
    status: str
    text: str


class SettingValue(Wire, frozen=True):
    """A setting and where its value comes from."""

    name: str
    value: Any
    source: str


class StartDocument(Wire, frozen=True):
    """`start`; `lessons` is the number proposed, `left` what only the user can do."""

    project: str
    written: bool
    steps: list[str]
    sessions: int
    lessons: int
    left: list[str]


class InitDocument(Wire, frozen=True):
    """`init`; `ignored`: whether .gitignore was changed."""

    project: str
    created: bool
    ignored: bool


class AgentFile(Wire, frozen=True):
    """A file of an agent; `action` is add, change or delete."""

    file: str
    action: str


class AgentConnection(Wire, frozen=True):
    """An agent; `state` is current, stale, absent or broken."""

    name: str
    title: str
    state: str
    problem: str | None
    files: list[AgentFile]
    hook_seconds: float | None
    notes: list[str]
    left: list[str]


class ConnectDocument(Wire, frozen=True):
    """`connect`; `written`: whether files were written."""

    agents: list[AgentConnection]
    written: bool
    notes: list[str]


class CompiledFile(Wire, frozen=True):
    """A file with lessons; `state`: new, changed, deleted, current, or why unchanged.

    With `--check`, `state` is current, missing, outdated, edited, left or broken.
    """

    file: str
    state: str
    details: list[str]


class CompileTarget(Wire, frozen=True):
    """A target and its files."""

    name: str
    files: list[CompiledFile]


class OmittedLesson(Wire, frozen=True):
    """A pattern that is not written, and why."""

    id: str
    reason: str


class CompileDocument(Wire, frozen=True):
    """`compile`; `tokens` is an estimate.

    `lessons` are the IDs of approved patterns within the budget, best first, `stale` those about something removed.
    """

    targets: list[CompileTarget]
    lessons: list[str]
    left_out: list[OmittedLesson]
    tokens: int
    budget: int
    stale: list[str]
    written: bool


class DemoReport(Wire, frozen=True):
    """`demo --check`; `findings` is a number."""

    ok: bool
    loops: int
    patterns: int
    reflections: int
    findings: int
    changes: int
    changed_loops: int
    changed_patterns: int
    watch: str


class DoctorDocument(Wire, frozen=True):
    """`doctor`."""

    verdict: str
    checks: list[CheckResult]
    settings: list[SettingValue]
    findings: list[Finding]
    old_rules: OldRules | None


class OldRules(Wire, frozen=True):
    """Number of patterns that rules now reject, by problem; null without a project."""

    trigger: int
    text: int
    template: int
    repeated: int
    left: int


class TeamInit(Wire, frozen=True):
    """`team join --create`; `created`: whether the space is new."""

    id: Annotated[str, "id.hex"]
    name: str
    member: str
    level: str
    half_life_days: float
    epoch: Time
    schema: int
    created: bool


class TeamSync(Wire, frozen=True):
    """`team sync`: sent, received, conflicting, refused; `notes` on what is left out."""

    space: str
    sent_patterns: Annotated[int, "sent_texts"]
    sent_decisions: int
    sent_uses: int
    withdrawn_uses: int
    sent_trials: int
    received_patterns: Annotated[int, "received_texts"]
    received_decisions: int
    changed_evidence: Annotated[int, "changed_sums"]
    conflicts: list[str]
    refused: list[str]
    notes: list[str]


class TeamText(Wire, frozen=True):
    """A pattern to send; `record` is its JSON, `expected` the hash that it replaces."""

    id: Annotated[str, "pattern_id"]
    type: str
    record: str | None
    hash: Annotated[str, "content_hash"]
    expected: str | None


class TeamUse(Wire, frozen=True):
    """A use to send; `withdraws` is the ID of a use that does not count any more."""

    id: Annotated[str, "id.hex"]
    pattern: Annotated[str, "pattern_id"]
    kind: str
    at: Time
    success: bool | None
    weight: float
    count: int
    withdraws: Annotated[str | None, "withdraws.hex"]


class TeamTrial(Wire, frozen=True):
    """A trial as it would be sent; `kind` is `returned` or `succeeded`.

    `rate` is the mean of the earlier trials of the pattern in steps of 0.05.
    """

    id: Annotated[str, "id.hex"]
    pattern: Annotated[str, "pattern_id"]
    kind: str
    share: float
    rate: int
    held_out: Annotated[bool, "is_held_out"]
    outcome: bool


class TeamMasked(Wire, frozen=True):
    """What was masked where, never the content."""

    pattern: Annotated[str, "pattern_id"]
    pointer: str
    kind: str


class TeamPreview(Wire, frozen=True):
    """`team sync --dry-run`; a decision is its JSON."""

    patterns: list[TeamText]
    decisions: list[str]
    uses: list[TeamUse]
    trials: list[TeamTrial]
    masked: list[TeamMasked]


class TeamMember(Wire, frozen=True):
    """A member of a space; the level is null if it was removed."""

    role: str
    name: str
    level: str | None


class TeamMembership(Wire, frozen=True):
    """`team member`; `decision` withdrew what the removed member had sent."""

    role: str
    name: str
    level: str | None
    decision: str | None


class TeamProject(Wire, frozen=True):
    """A project in a space, with its uses."""

    name: str
    joined_by: str
    joined_at: Time
    successes: int
    failures: int
    uses: int


class TeamStatus(Wire, frozen=True):
    """`team status`; `withdrawn` are members whose uses no longer count.

    `decisions` is the number of verified ones with --verify.
    """

    space: str
    member: str | None
    level: str | None
    online: bool
    offline_since: Time
    problem: str | None
    last_sync: str | None
    to_send: int
    conflicts: list[str]
    decisions: int | None
    members: list[TeamMember]
    projects: list[TeamProject]
    held: list[HeldUses]
    withdrawn: list[str]
    trials: list[TeamTrials]


class HeldUses(Wire, frozen=True):
    """Results of a contributor held for a reviewer; `first` and `last` are arrivals."""

    member: str
    patterns: list[str]
    successes: int
    failures: int
    first: Time
    last: Time


class TeamLeft(Wire, frozen=True):
    """`team join --leave`."""

    space: str
    at: Time
