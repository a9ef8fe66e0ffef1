"""The contract of an adapter for one agent or runner; docs/adapters.md#contract.

An adapter only reads, and only through `RunnerFiles`. It never changes, locks or creates a file of the runner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from core.records.findings import Finding
from core.records.instructions import InstructionFile
from core.records.loops import Loop, LoopDetails
from core.records.reflections import Lesson
from core.sources.liveness import Moment as Moment  # noqa: TC001 - adapters import it from here

if TYPE_CHECKING:
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles


class Delivery(Struct, frozen=True, kw_only=True):
    """A runner's way to a context, for a person to apply; docs/adapters.md#delivery.

    Either a `command` (words to run, no shell), or a `diff` (unified, of one of the runner's files) to apply.
    """

    explanation: str
    command: tuple[str, ...] = ()
    diff: str = ""


class Adapter(Protocol):
    """Reads the files of one agent or runner; one instance per project, one thread.

    `name` is lower case, such as `codex`; the IDs of its loops are `name:` and the runner's own ID. `title` is for
    people. `versions` is the range of the runner's versions that it was written for. `contains` and `lacks` are for the
    table in the documentation: what the files contain, and what they do not. The methods below `loops` have usual
    answers for adapters that derive from this class, or from `RunnerAdapter` or `SessionAdapter`.
    """

    name: str
    title: str
    versions: str
    contains: str
    lacks: str

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        """Return the files that show that this runner was used; () if none.

        Cheap: at most six `stat` calls and one read of 4 KiB; several runners share the folder `.ralph`, so the
        name of a folder does not show which one was used.
        """

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        """Return all loops, with usage; called again after each change of a file."""

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        """Return iterations, notes and facts of a loop; called when a person opens it."""
        return LoopDetails(loop_id=loop.id)

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        """Return lessons in the files; nothing is used before a person accepts it."""
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        """Return how the runner can be given a context; None if only hooks reach it."""
        return None


class AdapterReport(Struct, frozen=True, kw_only=True):
    """What one adapter found; `evidence` are files that show the use of its runner."""

    name: str
    evidence: tuple[str, ...] = ()
    loops: int = 0
    lessons: int = 0
    findings: tuple[Finding, ...] = ()  # about its files


class AdapterRecords(Struct, frozen=True, kw_only=True):
    """Masked loops and lessons of all adapters, and instructions that agents load.

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
