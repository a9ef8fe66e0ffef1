from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import ChopsUpdate, Compositor
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from core.cli.demo.sample import confirm_decisions, copy_sample
from core.files.file_reader import Stamp
from core.index import parse as index
from core.index.parse import FileParts
from core.questions.context_recipients import MAX_TASKS
from core.sources.patterns import KnownRecords
from tests.copying import copy_folder
from tests.factories import RunningProcesses
from tests.tui.user import NOW, set_times

COMPARED_TASKS = 2
"""Past tasks whose contexts forecasts compare, which takes most of the time of stories about Review."""
IDLE_SECONDS = 0.005
"""Time almost without work after which a key has acted; Textual waits for 0.02, twice for each key."""

DRAW_CHANGES = Compositor.render_partial_update


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are drawn in the machine's zone; here that is UTC. No colour setting and no process leaks in. A notice
    stays until a newer one takes its place, however slow the machine is.
    """
    monkeypatch.setattr("tui.shell.NOTICE_SECONDS", 3600.0)
    monkeypatch.setattr("core.index.refresh.system_processes", RunningProcesses)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TMUX", raising=False)
    time.tzset()


@pytest.fixture(autouse=True)
def _few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.questions.context_recipients.MAX_TASKS", COMPARED_TASKS)


@pytest.fixture
def all_tasks(monkeypatch: pytest.MonkeyPatch, _few_tasks: None) -> None:
    """Compare the contexts of as many past tasks as the product."""
    monkeypatch.setattr("core.questions.context_recipients.MAX_TASKS", MAX_TASKS)


@pytest.fixture
def drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw each change, as the product does."""
    monkeypatch.setattr(Compositor, "render_partial_update", DRAW_CHANGES)


@pytest.fixture(scope="session", autouse=True)
def _fast() -> Iterator[None]:
    """Waits for keys are short; style sheets of a theme, and files with the same content and time, are parsed once;
    what changes is not drawn at once.
    """
    parse = Stylesheet._parse_rules
    parse_file = index.parse
    files: dict[tuple[str, int, bytes], FileParts] = {}

    def parse_file_once(project: str, path: str, stamp: Stamp, known: KnownRecords | None = None) -> FileParts:
        file = Path(project, path)
        if known is not None or not file.is_file() or file.is_symlink():
            return parse_file(project, path, stamp, known)
        key = (path, stamp.mtime_ns, file.read_bytes())
        if key not in files:
            found = parse_file(project, path, stamp)
            if found.problem is not None:
                return found
            files[key] = found
        return files[key]._replace(stamp=stamp)

    parsed: dict[tuple[Any, ...], list[RuleSet]] = {}

    def parse_once(sheet: Stylesheet, *source: Any, **more: Any) -> list[RuleSet]:
        key = (source, tuple(more.items()), tuple(sheet._variables.items()))
        if key not in parsed:
            parsed[key] = parse(sheet, *source, **more)
        return parsed[key]

    def update_without_drawing(compositor: Compositor) -> ChopsUpdate | None:
        """The lines to paint, without content: a story draws the screen when it looks at it."""
        regions = compositor._dirty_regions.copy()
        compositor._dirty_regions.clear()
        return ChopsUpdate([], list(compositor._regions_to_spans(regions)), []) if regions else None

    async def wait_for_idle(_: float) -> None:
        for _step in range(200):
            start = time.process_time()
            await asyncio.sleep(IDLE_SECONDS)
            if time.process_time() - start < IDLE_SECONDS / 5:
                break

    with pytest.MonkeyPatch.context() as patch:
        for module in ("textual.app", "textual.pilot"):  # both import the function by name
            patch.setattr(f"{module}.wait_for_idle", wait_for_idle)
        patch.setattr(Compositor, "render_partial_update", update_without_drawing)
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        patch.setattr(index, "parse", parse_file_once)
        yield


@pytest.fixture(scope="session")
def _sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample project, as of `NOW`, to be copied only."""
    target = tmp_path_factory.mktemp("sample")
    copy_sample(target, NOW)
    set_times(target)
    return target


@pytest.fixture
def sample(tmp_path: Path, _sample: Path) -> Path:
    """The sample project, as of `NOW`."""
    folder = copy_folder(_sample, tmp_path / "acme-api")
    confirm_decisions(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the dashboard keeps its own files."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder
