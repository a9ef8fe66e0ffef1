"""What adapters found in the files of agents and runners."""

from __future__ import annotations

from msgspec import Struct

from core.records.findings import Finding
from core.records.instructions import InstructionFile
from core.records.lessons import Lesson
from core.records.loops import Loop


class AdapterReport(Struct, frozen=True, kw_only=True):
    """What one adapter found; `evidence` are the files that show that its runner was used."""

    name: str
    title: str
    evidence: tuple[str, ...] = ()
    loops: int = 0
    lessons: int = 0
    findings: tuple[Finding, ...] = ()  # about its files


class AdapterRecords(Struct, frozen=True, kw_only=True):
    """Loops and lessons of all adapters, and the instructions that agents load; texts are masked.

    `others` are findings that are not about one adapter. `is_behind` is set while files are not read to their end.
    """

    loops: tuple[Loop, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    instructions: tuple[InstructionFile, ...] = ()
    reports: tuple[AdapterReport, ...] = ()
    others: tuple[Finding, ...] = ()
    is_behind: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*(finding for report in self.reports for finding in report.findings), *self.others)
