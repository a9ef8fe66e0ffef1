"""Evidence of a team's other projects; docs/file-formats.md#team-evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.base.text import visible_line
from core.files.append_log import AppendLog, IncrementalLines
from core.files.atomic_write import put
from core.files.file_access import as_unwritable
from core.records.findings import Finding, Severity
from core.records.team import HeldUses, TeamEvidence, TeamSums

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

BAD_HEADER: Final = "bad-header"  # Code of the finding for a file whose first line does not describe its sums.
BAD_SUMS: Final = "bad-sums"  # Code of the finding for a line that is not used.
_MAX_PATTERNS: Final = 1_000_000
_MAX_FINDINGS: Final = 1_000
_MAX_ID: Final = 500  # characters
_MAX_HALF_LIFE_DAYS: Final = 1e6
_TOLERANCE: Final = 1e-6  # of sums that a server added up in any order, as a share and as a value
_SPARE_LINES: Final = 100  # outdated lines for which no file is rewritten
_SECONDS_PER_DAY: Final = 86_400.0


class _Header(Struct, frozen=True, tag_field="kind", tag="space"):
    space: Annotated[str, Meta(min_length=1, max_length=_MAX_ID)]
    epoch: datetime
    half_life_days: Annotated[float, Meta(gt=0, le=_MAX_HALF_LIFE_DAYS)]


_decode_header: Final = msgspec.json.Decoder(_Header).decode


class _Held(HeldUses, frozen=True, tag_field="kind", tag="held"):
    """Line about the held results of a member; the last one is in effect."""


_HELD_FIELDS: Final = HeldUses.__struct_fields__
_HELD: Final = b'{"kind":"held"'
_decode_held: Final = msgspec.json.Decoder(_Held).decode
_decode_sums: Final = msgspec.json.Decoder(TeamSums).decode
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)


class TeamEvidenceLog(IncrementalLines):
    """Sums in a team evidence file, read by increments; a pattern's last line counts."""

    def __init__(self, file: str) -> None:
        self._file = file
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.findings: tuple[Finding, ...] = ()
        self.evidence = TeamEvidence()
        self._findings: list[Finding] = []
        self._is_usable = False
        self._sums: dict[str, TeamSums] = {}
        self._held: dict[str, HeldUses] = {}

    def feed(self, data: bytes) -> None:
        super().feed(data)
        if self._is_usable:
            self.evidence = replace(self.evidence, sums=self._sums.copy(), held=tuple(self._held.values()))
        if len(self._findings) != len(self.findings):
            self.findings = tuple(self._findings)

    def _parse_line(self, line: bytes) -> None:
        if self.lines == 1:
            self._parse_header(line)
        elif self._is_usable and line.startswith(_HELD):
            self._parse_held(line)
        elif self._is_usable and line.strip():
            self._parse_sums(line)

    def _parse_header(self, line: bytes) -> None:
        try:
            header = _decode_header(line)
            epoch = _to_utc(header.epoch)
        except _UNREADABLE as error:
            message = f"the first line does not describe a space, so nothing in this file is used: {_reason(error)}"
            self._add(BAD_HEADER, message, Severity.ERROR)
            return
        self._is_usable = True
        self.evidence = TeamEvidence(header.space, epoch, header.half_life_days)

    def _parse_sums(self, line: bytes) -> None:
        try:
            sums = _decode_sums(line)
            if sums.last_used is not None and sums.last_used.tzinfo is not UTC:
                sums = replace(sums, last_used=_to_utc(sums.last_used))
        except _UNREADABLE as error:
            self._add(BAD_SUMS, f"{_reason(error)}; the line is not used")
            return
        id = sums.pattern_id
        if (problem := self._find_problem(sums)) is not None:
            self._add(BAD_SUMS, f"{problem}; the line is not used")
        elif sums.is_empty:
            self._sums.pop(id, None)
        else:
            self._sums[id] = sums

    def _parse_held(self, line: bytes) -> None:
        try:
            found = _decode_held(line)
            fields = {name: getattr(found, name) for name in _HELD_FIELDS}
            held = HeldUses(**fields | {"first": _to_utc(found.first), "last": _to_utc(found.last)})
        except _UNREADABLE as error:
            self._add(BAD_SUMS, f"{_reason(error)}; the line is not used")
            return
        self._held.pop(held.member, None)
        if held.patterns:
            self._held[held.member] = held

    def _find_problem(self, sums: TeamSums) -> str | None:
        """Return why the sums contradict each other; None if they do not."""
        results = sums.successes + sums.failures
        if not 0 < len(sums.pattern_id) <= _MAX_ID:
            return f"expected an ID with 1 to {_MAX_ID} characters"
        if len(self._sums) >= _MAX_PATTERNS and sums.pattern_id not in self._sums:
            return f"the file has more than {_MAX_PATTERNS:,} patterns"
        if results > sums.uses:
            return f"{results:,} results of {sums.uses:,} uses"
        if _exceeds(sums.undecayed, results):
            return f"the weights of {results:,} results add up to {sums.undecayed:g}"
        fixed, moving = sums.fixed_helpful + sums.fixed_harmful, sums.helpful + sums.harmful
        if moving and sums.last_used is None:
            return "the sums decay, but the last use has no time"
        if sums.last_used is not None and moving:
            age = (sums.last_used - self.evidence.epoch).total_seconds() / _SECONDS_PER_DAY
            moving = _scale(moving, -age / self.evidence.half_life_days)
        if _exceeds(fixed + moving, sums.undecayed):
            return f"the decayed sums are larger than {sums.undecayed:g}, the sum without decay"
        return None

    def _add(self, code: str, message: str, severity: Severity = Severity.WARNING) -> None:
        if len(self._findings) < _MAX_FINDINGS:
            self._findings.append(Finding(self._file, f"line {self.lines}", severity, code, message))


def _reason(error: Exception) -> str:
    return visible_line(str(error), 200).rstrip(".")


def _to_utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError("a time has no time zone")
    return at.astimezone(UTC)


def _exceeds(value: float, limit: float) -> bool:
    return not value <= limit * (1 + _TOLERANCE) + _TOLERANCE


def _differs(sums: TeamSums, before: TeamSums | None) -> bool:
    """Return whether a file needs a line for new sums of a pattern."""
    return not sums.is_empty if before is None else sums != before


def _scale(value: float, exponent: float) -> float:
    """Return `value * 2 ** exponent`, also if the second factor is not a float."""
    if not value:
        return 0.0
    power = math.log2(value) + exponent if math.isfinite(value) else math.inf
    return math.inf if power > 1000 else 2.0**power


class TeamEvidenceWriter:
    """Writes evidence of a team's other projects; `flock` locks out other writers."""

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._path = paths.team_evidence
        self._file = AppendLog(self._path)
        self._log = TeamEvidenceLog(paths.relative(self._path))

    def read(self) -> TeamEvidence:
        """Return the file's content; raises Unwritable if it exists but is unreadable."""
        self._log.read(self._file.read()[0])
        return self._log.evidence

    def is_whole(self, space: str, epoch: datetime, half_life_days: float) -> bool:
        """Return whether all lines are valid for these values; else write all sums."""
        reference = TeamEvidence(space, epoch, half_life_days)
        return self.read().has_same_reference(reference) and not self._log.findings

    def update(
        self,
        space: str,
        epoch: datetime,
        half_life_days: float,
        changed: Iterable[TeamSums],
        held: Iterable[HeldUses] = (),
    ) -> int | None:
        """Write changed sums durably; return the number of patterns, None if unchanged.

        Sums without a use are removed. `held` are all results that do not count yet. The file keeps its other sums only
        if it `is_whole`. New lines are appended; the file is replaced if most of its lines would be outdated. Raises
        Unwritable if disk, permissions or lock prevent it; the file is then unchanged.
        """
        wanted = TeamEvidence(space, epoch, half_life_days)
        with as_unwritable(self._path):
            self._paths.unlinked(self._paths.relative(self._path))
            with self._file.locked():
                known = self.read()
                is_same = known.has_same_reference(wanted) and not self._log.findings
                before = known.sums if is_same else {}
                newest = {sums.pattern_id: sums for sums in changed}
                new = {id: sums for id, sums in newest.items() if _differs(sums, before.get(id))}
                of_members = {one.member: one for one in held}
                lines = _held_lines({one.member: one for one in known.held} if is_same else {}, of_members)
                if is_same and not new and not lines:
                    return None
                size = len(before) + sum((not sums.is_empty) - (id in before) for id, sums in new.items())
                if is_same and self._log.lines + len(new) + len(lines) <= 2 * (size + 1) + _SPARE_LINES:
                    self._file.append([*(msgspec.json.encode(sums) for sums in new.values()), *lines])
                    return len(new)
                after = {id: sums for id, sums in {**before, **new}.items() if not sums.is_empty}
                whole = replace(wanted, sums=after, held=tuple(of_members.values()))
                put(self._path, b"".join(encode_evidence(whole)))
                return len(new)

    def remove(self) -> None:
        """Delete the file of a project that left its space; Unwritable, also if linked."""
        with as_unwritable(self._path):
            self._paths.unlinked(self._paths.relative(self._path.parent))
            with self._file.locked():
                self._path.unlink(missing_ok=True)


def encode_evidence(evidence: TeamEvidence) -> Iterator[bytes]:
    """Yield the lines of a file with this evidence."""
    yield msgspec.json.encode(_Header(evidence.space, evidence.epoch, evidence.half_life_days)) + b"\n"
    for line in _held_lines({}, {one.member: one for one in evidence.held}):
        yield line + b"\n"
    for sums in evidence.sums.values():
        yield msgspec.json.encode(sums) + b"\n"


def _held_lines(before: Mapping[str, HeldUses], after: Mapping[str, HeldUses]) -> list[bytes]:
    """Return the lines that a file needs so that `after` is in effect in it."""
    changed = [held for member, held in after.items() if before.get(member) != held]
    changed += [
        replace(held, patterns=(), successes=0, failures=0) for member, held in before.items() if member not in after
    ]
    return [msgspec.json.encode(_Held(**{name: getattr(held, name) for name in _HELD_FIELDS})) for held in changed]
