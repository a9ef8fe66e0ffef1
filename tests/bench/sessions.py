"""Generated sessions of an agent, to measure how runners' files are read."""

from __future__ import annotations

import json
import re
import resource
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.files.cache_database import remove
from core.files.user_files import cache_path
from core.project.adapter_files import CHECK_SECONDS, LOOK_SECONDS
from core.sources.adapters.collector import Collector
from core.sources.adapters.folders import Folders
from core.sources.adapters.transcripts import KeptFile
from tests.bench.measured import Measured, milliseconds, processor_seconds, spread, timed

if TYPE_CHECKING:
    from tests.bench.place import Place

SIZE: Final = 20_000  # bytes of a transcript: 10,000 have 200 MB
START = datetime(2026, 10, 1, tzinfo=UTC)


def write_sessions(home: Path, project: Path, count: int, size: int) -> Path:
    """Write transcripts of about `size` bytes each; returns their folder."""
    folder = home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        id = str(uuid.UUID(int=number))
        lines = [*_lines(id, str(project), START + timedelta(minutes=5 * number), size)]
        (folder / f"{id}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def _lines(id: str, project: str, start: datetime, size: int) -> list[str]:
    """Turns of a session: a prompt, and tool calls with results."""
    lines: list[str] = []
    written = 0
    while written < size:
        number = len(lines)
        common = {
            "uuid": f"{id}-{number}",
            "sessionId": id,
            "cwd": project,
            "timestamp": (start + timedelta(seconds=number)).isoformat().replace("+00:00", "Z"),
            "version": "2.1.240",
        }
        if number == 0:
            line = {"type": "user", **common, "message": {"role": "user", "content": f"Make test {id[-4:]} pass."}}
        elif number % 2:
            usage = {"input_tokens": 12, "output_tokens": 80, "cache_read_input_tokens": 21_000}
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "npm test"}}
            content = [{"type": "text", "text": "word " * 40}, call]
            message = {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-5", "usage": usage}
            line = {
                "type": "assistant",
                "requestId": f"r{number}",
                **common,
                "message": {**message, "content": content},
            }
        else:
            result = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": "passed " * 250}
            line = {"type": "user", **common, "message": {"role": "user", "content": [result]}}
        lines.append(json.dumps(line))
        written += len(lines[-1])
    return lines


class _Sessions:
    """The sessions of a run, with the files of kept states beside them."""

    def __init__(self, place: Place, size: int = SIZE) -> None:
        root = place.folder / f"sessions-{size}"
        self.project, self.home = root / "project", root / "home"
        if not self.project.is_dir():
            write_sessions(self.home, self.project, place.sizes.loops, size)
            self.project.mkdir(parents=True)
        self.folders = Folders(project=self.project, home=self.home)

    def open(self, *, budget: int | None = None) -> Collector:
        collector = Collector(self.folders, clock=lambda: datetime.now(UTC), kept=KeptFile(self.project))
        collector.set_limits(budget, None if budget is not None else lambda count: None)
        return collector

    def forget(self) -> None:
        remove(cache_path(self.project, "adapters"))


def read_first(place: Place) -> Measured:
    """Read all transcripts for the first time, and keep their states."""
    return _read_first(_Sessions(place))


def read_first_large(place: Place) -> Measured:
    """The same with ten times the bytes."""
    return _read_first(_Sessions(place, 10 * SIZE))


def _read_first(sessions: _Sessions) -> Measured:
    sessions.forget()
    collector = sessions.open()

    def read() -> None:
        collector.look()
        collector.close()

    found = timed(read)
    return Measured(found.value, cpu=found.cpu, note=f"{len(collector.records.loops):,} sessions")


def reopened(place: Place) -> Measured:
    """Read the kept states of all transcripts."""
    sessions = _Sessions(place)
    sessions.open().read_all()
    return timed(lambda: sessions.open(budget=1 << 20).look())


def line_to_loop(place: Place) -> Measured:
    """Find and read one new line, in a collector that follows the files."""
    sessions = _Sessions(place)
    collector = sessions.open()
    collector.look()
    path = max(sessions.home.glob(".claude/projects/*/*.jsonl"))

    def change() -> None:
        with path.open("a") as file:
            file.write(json.dumps({"type": "system", "subtype": "note", "uuid": str(uuid.uuid4())}) + "\n")
        collector.look_at_changed()

    return spread(milliseconds(change, 20))


def idle(place: Place) -> Measured:
    """Processor time of the checks in a minute without a change, as a share of a core."""
    collector = _Sessions(place).open()
    collector.look()
    collector.look_at_changed()
    begin = processor_seconds()
    for _ in range(int(LOOK_SECONDS / CHECK_SECONDS)):
        collector.look_at_changed()
    collector.look()
    return Measured(100 * (processor_seconds() - begin) / LOOK_SECONDS, "%")


def memory(place: Place) -> Measured:
    """Memory of a process that has read all sessions."""
    collector = _Sessions(place).open()
    collector.look()
    return Measured(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB")
