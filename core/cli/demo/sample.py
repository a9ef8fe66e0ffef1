"""Copy the sample project and shift all its times to the present."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from core.base.paths import ProjectPaths
from core.files.hash_chain import Chain, link_lines, strip_link, write_anchor
from core.records.times import parse_time
from core.sources.ledger import Ledger

SAMPLE: Final = Path(__file__).parents[3] / "sample_data"
"""Folder of the sample project, in the repository and in an installed wheel."""

_ISO: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)([:-])(\d\d)\3(\d\d)")
_DECISION_ID: Final = re.compile(r"\b\d{8}T\d{6}(?=\d{3}-[0-9a-f]{8}\b)")
_EPOCH_MS: Final = re.compile(r"\b1\d{12}\b")
_ARCHIVE: Final = re.compile(r"\d{4}-\d\d(?=-patterns\.json$)")
_ARCHIVED_AT: Final = re.compile(r'"archived_at": "(\d{4}-\d\d)')


def copy_sample(target: Path, now: datetime) -> None:
    """Copy the sample project into `target`; shift its times to end at `now`.

    Times in file contents (ISO 8601, epoch milliseconds, decision IDs) and in file names are shifted by whole seconds.
    """
    delta = timedelta(seconds=int((now - sample_anchor()).total_seconds() // 1))
    root = SAMPLE / ".aiwg"
    for source in sorted(path for path in root.rglob("*") if path.is_file()):
        text = _move_times(source.read_text(encoding="utf-8"), delta)
        name = _move_times(source.name, delta)
        if archived := _ARCHIVED_AT.search(text):
            name = _ARCHIVE.sub(archived[1], name)
        copy = target / ".aiwg" / source.relative_to(root).with_name(name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8", newline="")
    # The lines of the ledger have changed, so its hash chain must be computed again.
    ledger = ProjectPaths(target).ledger
    lines, end = link_lines(list(map(strip_link, ledger.read_bytes().splitlines())), Chain().place)
    ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    write_anchor(ledger, end)
    confirm_decisions(target)


def confirm_decisions(project: Path) -> None:
    """Make all decisions of a copy of the sample project own ones of this user."""
    ledger = Ledger(ProjectPaths(project))
    ledger.confirm(ledger.by_id())


def sample_anchor() -> datetime:
    """Return the time at which the sample project in the repository ends."""
    anchor = parse_time((SAMPLE / "anchor.txt").read_text(encoding="ascii").strip())
    assert anchor is not None
    return anchor


def _move_times(text: str, by: timedelta) -> str:
    def iso(match: re.Match[str]) -> str:
        day, hour, separator, minute, second = match.groups()
        moment = datetime.fromisoformat(f"{day}T{hour}:{minute}:{second}") + by
        return moment.strftime(f"%Y-%m-%dT%H{separator}%M{separator}%S")

    def decision(match: re.Match[str]) -> str:
        form = "%Y%m%dT%H%M%S"
        return (datetime.strptime(f"{match[0]}Z", f"{form}%z") + by).strftime(form)

    def epoch(match: re.Match[str]) -> str:
        return str(int(match[0]) + round(by / timedelta(milliseconds=1)))

    return _EPOCH_MS.sub(epoch, _DECISION_ID.sub(decision, _ISO.sub(iso, text)))
